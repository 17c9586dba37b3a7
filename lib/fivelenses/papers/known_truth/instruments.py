"""The measures of chapter 7: those of chapter 6, the other per-layer measures of chapter 1, and three that no chapter
has; and what each is declared to ignore.

An *invariance* is a change of a model's features that leaves a measure as it was (rotation, scaling of all features
alike, permutation of features, translation, any invertible linear map), as in the survey of Klabunde et al. (2025) and
the benchmark ReSi. The features of the encoder that the model is compared with stay as they are: the weights of PWCCA
are taken from that side. What a measure does not declare, it need not ignore.
"""

from dataclasses import dataclass

from fivelenses.lenses.checks import DECLARED
from fivelenses.papers.five_lenses.instruments import BY_KEY as OF_CHAPTER_6
from fivelenses.papers.five_lenses.instruments import LENSES

BESIDE = "beside the papers"  # of measures that no paper has


@dataclass(frozen=True)
class Measure:
    """One number per layer of an encoder, larger where it departs more from the pre-trained one; as chapter 6's.

    Attributes:
        lens: the paper that it is from, in the words of chapter 6, or BESIDE.
        invariances: of :data:`fivelenses.lenses.checks.INVARIANCES`, for changes of the model's features; None where
            it reads no features.
    """

    key: str
    lens: str
    name: str
    reads_activations: bool
    invariances: frozenset[str] | None


def _of_chapter_6(key: str) -> Measure:
    known = OF_CHAPTER_6[key]
    return Measure(key, LENSES[known.lens], known.name, known.reads_activations, DECLARED.get(key))


FEATURES = LENSES["hao2020"]
MEASURES = (
    _of_chapter_6("js"),
    _of_chapter_6("svcca"),
    Measure("pwcca", FEATURES, "features, PWCCA", True, DECLARED["pwcca"]),
    Measure("cka", FEATURES, "features, CKA", True, DECLARED["cka"]),
    _of_chapter_6("labels"),
    _of_chapter_6("probe"),
    _of_chapter_6("rollback"),
    Measure("last", FEATURES, "last layer after rollback", False, None),
    _of_chapter_6("weights"),
    _of_chapter_6("rsa"),
    _of_chapter_6("structure"),
    Measure("cka_debiased", BESIDE, "debiased CKA", True, DECLARED["cka_debiased"]),
    Measure("procrustes", BESIDE, "Procrustes", True, DECLARED["procrustes"]),
    Measure("neighbours", BESIDE, "neighbours", True, DECLARED["neighbours"]),
)
BY_KEY = {measure.key: measure for measure in MEASURES}


def name(key: str) -> str:
    """A measure's name in pictures."""
    return BY_KEY[key].name
