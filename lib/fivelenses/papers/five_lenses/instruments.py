"""The instruments of chapter 6: one number a layer from each, and the direction in which it says "more change".

Two things set instruments apart, and the chapter's account of where they part rests on both. An instrument that reads a
layer's activations sees all that changed below it too, where one that looks at the layer's own parameters does not. And
some know the task's labels, where others count every change alike.
"""

from dataclasses import dataclass

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
        key: its name in tables.
        lens: the paper that it is from, a key of LENSES.
        name: its name in pictures.
        more: what a larger number means, with its unit.
        null: what stands beside it as null or control.
        reads_activations: whether it reads what the layer makes of a text, and so inherits what changed below.
        knows_labels: whether it is told the task's labels.
    """

    key: str
    lens: str
    name: str
    more: str
    null: str
    reads_activations: bool
    knows_labels: bool


INDEPENDENT = "the same between the pre-trained and an independent encoder"
MEASURES = (
    Measure(
        "js",
        "hao2020",
        "attention",
        "JS divergence from the pre-trained encoder's attention (nats)",
        INDEPENDENT,
        True,
        False,
    ),
    Measure(
        "svcca",
        "hao2020",
        "features",
        "SVCCA distance from the pre-trained encoder's output (0 to 1)",
        INDEPENDENT,
        True,
        False,
    ),
    Measure(
        "labels",
        "zhou2022",
        "label distance",
        "growth of the distance between the labels' convex hulls (natural logarithm of after over before; negative "
        "where they moved together)",
        "the same with permuted labels",
        True,
        True,
    ),
    Measure(
        "probe",
        "zhou2022",
        "probe gain",
        "accuracy of a classifier probe minus that on the pre-trained encoder",
        "an untrained encoder in place of the fine-tuned one",
        True,
        True,
    ),
    Measure(
        "rollback",
        "hao2019",
        "rollback",
        "rise of the training loss with this layer alone put back to its pre-trained parameters (nats)",
        "the layer moved as far in random directions",
        False,
        True,
    ),
    Measure(
        "weights",
        "singh2020",
        "weights",
        "relative Frobenius distance from the pre-trained weights, mean of the six projections",
        INDEPENDENT,
        False,
        False,
    ),
    Measure(
        "rsa",
        "merchant2020",
        "similarity",
        "1 minus RSA similarity to the pre-trained encoder",
        INDEPENDENT,
        True,
        False,
    ),
    Measure(
        "structure",
        "merchant2020",
        "syntax",
        "fall of a structural probe's rank correlation with tree distances and depths",
        "an untrained encoder in place of the fine-tuned one",
        True,
        False,
    ),
)
BY_KEY = {measure.key: measure for measure in MEASURES}
# What sets two measures apart: an attribute of `Measure`, in words.
DISTINCTIONS = {
    "reads_activations": "what they read: a layer's activations, or its parameters",
    "knows_labels": "whether they know the task's labels",
}
# Measures that are also taken on what enters a layer, so that what the layer adds can be told.
ADDED = ("svcca", "rsa")
# Measures of how alike two representations or attentions are, whatever the task.
SIMILARITIES = ("js", "svcca", "rsa")
OWN = tuple(measure.key for measure in MEASURES if not measure.reads_activations)


def name(key: str) -> str:
    """A measure's name in pictures.

    Example:
        >>> name("js")
        'attention'
    """
    return BY_KEY[key].name
