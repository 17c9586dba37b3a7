"""The measures of change that chapters 6 and 7 take of every model, apart from what reads them, so that a page from
records loads no torch.
"""

from dataclasses import dataclass

from fivelenses.lenses.checks import DECLARED

# What the measures of each paper look at, in the order of the chapters, and those of no paper.
LENSES = {
    "hao2020": "attention and features",
    "zhou2022": "label geometry",
    "hao2019": "loss landscape",
    "singh2020": "weights",
    "merchant2020": "similarity and syntax",
    "": "beside the papers",
}


@dataclass(frozen=True)
class Measure:
    """One number per layer, larger where a fine-tuned encoder departs more from the pre-trained one.

    Attributes:
        key, name, lens: in records, in pictures, and the paper that it is from, a key of LENSES.
        reads_activations: whether it reads what the layer makes of a text, and so inherits what changed below.
        knows_labels: whether it takes the task's labels, where others count every change alike.
    """

    key: str
    name: str
    lens: str
    reads_activations: bool = True
    knows_labels: bool = False

    @property
    def invariances(self) -> frozenset[str] | None:
        """Changes of the model's features that it ignores; None where it reads no features."""
        return DECLARED[self.key][1] if self.key in DECLARED else None


MEASURES = (
    Measure("js", "attention", "hao2020"),
    Measure("svcca", "features", "hao2020"),
    Measure("pwcca", "features, PWCCA", "hao2020"),
    Measure("cka", "features, CKA", "hao2020"),
    Measure("labels", "label distance", "zhou2022", knows_labels=True),
    Measure("probe", "probe gain", "zhou2022", knows_labels=True),
    Measure("rollback", "rollback", "hao2019", False, True),
    Measure("last", "last layer after rollback", "hao2020", False, False),
    Measure("weights", "weights", "singh2020", False, False),
    Measure("rsa", "similarity", "merchant2020"),
    Measure("structure", "syntax", "merchant2020"),
    Measure("cka_debiased", "debiased CKA", ""),
    Measure("procrustes", "Procrustes", ""),
    Measure("neighbours", "neighbours", ""),
)
BY_KEY = {measure.key: measure for measure in MEASURES}


def name(key: str) -> str:
    """What a measure is called in pictures."""
    return BY_KEY[key].name


def lens(key: str) -> str:
    """The paper that a measure is from; empty for none."""
    return BY_KEY[key].lens
