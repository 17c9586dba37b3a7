"""The instruments of chapter 6: one number per layer from each, and the direction in which it says "more change".

Two things set instruments apart, and the chapter's account of where they part rests on both. An instrument that reads a
layer's activations sees all that changed below it too, where one that looks at the layer's own parameters does not. And
some know the task's labels, where others count every change alike.
"""

from dataclasses import dataclass

MIN_LAYERS = 3  # of which an order can be compared with another
# Papers to what their instruments look at, in the order of the chapters.
LENSES = {
    "hao2020": "attention and features",
    "zhou2022": "label geometry",
    "hao2019": "loss landscape",
    "singh2020": "weights",
    "merchant2020": "similarity and syntax",
}


@dataclass(frozen=True)
class Measure:
    """One number for each layer of a fine-tuned encoder, larger where fine-tuning changed more.

    Attributes:
        key, lens, name: in tables, the paper that it is from (a key of LENSES), and in pictures.
        reads_activations: whether it reads what the layer makes of a text, and so inherits what changed below.
        knows_labels: whether it is told the task's labels.
        null, more: what is shown with it as null or control, and what a larger number means, with its unit.
    """

    key: str
    lens: str
    name: str
    reads_activations: bool
    knows_labels: bool
    null: str
    more: str


INDEPENDENT = "the distance between the pre-trained and an independent encoder"
UNTRAINED = "an untrained encoder in place of the fine-tuned one"
JS = "JS divergence from the pre-trained encoder's attention (nats)"
SVCCA = "SVCCA distance from the pre-trained encoder's output (0 to 1)"
LABELS = (
    "growth of the distance between the labels' convex hulls (natural logarithm of after over before; negative where "
    "they moved together)"
)
PERMUTED = "the same with permuted labels"
PROBE = "accuracy of a classifier probe minus that on the pre-trained encoder"
ROLLBACK = "rise of the training loss with this layer alone reset to its pre-trained parameters (nats)"
RANDOM = "the layer moved as far in random directions"
WEIGHTS = "relative Frobenius distance from the pre-trained weights, mean of the six projections"
RSA = "1 minus RSA similarity to the pre-trained encoder"
STRUCTURE = "fall of a structural probe's rank correlation with tree distances and depths"
MEASURES = (
    Measure("js", "hao2020", "attention", True, False, INDEPENDENT, JS),
    Measure("svcca", "hao2020", "features", True, False, INDEPENDENT, SVCCA),
    Measure("labels", "zhou2022", "label distance", True, True, PERMUTED, LABELS),
    Measure("probe", "zhou2022", "probe gain", True, True, UNTRAINED, PROBE),
    Measure("rollback", "hao2019", "rollback", False, True, RANDOM, ROLLBACK),
    Measure("weights", "singh2020", "weights", False, False, INDEPENDENT, WEIGHTS),
    Measure("rsa", "merchant2020", "similarity", True, False, INDEPENDENT, RSA),
    Measure("structure", "merchant2020", "syntax", True, False, UNTRAINED, STRUCTURE),
)
BY_KEY = {measure.key: measure for measure in MEASURES}
# What sets two measures apart: an attribute of `Measure`, in words, and what each of its values says of a measure.
DISTINCTIONS = {
    "reads_activations": "what they read: a layer's activations, or its parameters",
    "knows_labels": "whether they know the task's labels",
}
DIFFERENCES = {
    "reads_activations": {True: "is taken from a layer's activations", False: "is taken from a layer's parameters"},
    "knows_labels": {True: "knows the task's labels", False: "counts every change, whatever the labels"},
}
# Measures that are also taken on what enters a layer, so that what the layer adds can be told.
ADDED = ("svcca", "rsa")
# Measures of how alike two representations or attentions are, whatever the task.
SIMILARITIES = ("js", "svcca", "rsa")
OWN = tuple(measure.key for measure in MEASURES if not measure.reads_activations)


def name(key: str) -> str:
    """A measure's name in pictures."""
    return BY_KEY[key].name


def lens(key: str) -> str:
    """The paper that a measure is from."""
    return BY_KEY[key].lens
