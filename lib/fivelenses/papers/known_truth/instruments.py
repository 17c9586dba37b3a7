"""The measures of chapter 7: those of chapter 6, the other per-layer measures of chapter 1, and three that no chapter
has; and what each is declared to ignore.

An *invariance* is a change of a model's features that leaves a measure as it was (rotation, scaling of all features
alike, permutation of features, translation, any invertible linear map), as in the survey of Klabunde et al. (2025) and
the benchmark ReSi. The features of the encoder that the model is compared with stay as they are: the weights of PWCCA
are taken from that side. What a measure does not declare, it need not ignore.
"""

from dataclasses import dataclass

from fivelenses.papers.five_lenses.instruments import BY_KEY as OF_CHAPTER_6
from fivelenses.papers.five_lenses.instruments import LENSES

ROTATION, SCALING, PERMUTATION = "rotation", "scaling", "permutation"
TRANSLATION, LINEAR = "translation", "invertible linear map"
INVARIANCES = (PERMUTATION, ROTATION, SCALING, TRANSLATION, LINEAR)
RIGID = frozenset({PERMUTATION, ROTATION, SCALING, TRANSLATION})
BESIDE = "beside the papers"  # of measures that no paper has


@dataclass(frozen=True)
class Measure:
    """One number per layer of an encoder, larger where it departs more from the pre-trained one; as chapter 6's.

    Attributes:
        lens: the paper that it is from, in the words of chapter 6, or BESIDE.
        invariances: of INVARIANCES, for changes of the model's features; None where it reads no features.
    """

    key: str
    lens: str
    name: str
    reads_activations: bool
    invariances: frozenset[str] | None


def _of_chapter_6(key: str, invariances: frozenset[str] | None) -> Measure:
    known = OF_CHAPTER_6[key]
    return Measure(key, LENSES[known.lens], known.name, known.reads_activations, invariances)


FEATURES = LENSES["hao2020"]
MEASURES = (
    _of_chapter_6("js", None),
    # Its principal directions hold a share of the variance, which an invertible map deals out anew.
    _of_chapter_6("svcca", RIGID),
    Measure("pwcca", FEATURES, "features, PWCCA", True, RIGID | {LINEAR}),
    Measure("cka", FEATURES, "features, CKA", True, RIGID),
    # The growth of a distance between hulls, which scales with the points.
    _of_chapter_6("labels", frozenset({PERMUTATION, ROTATION, TRANSLATION})),
    # A perceptron that is trained with a penalty from weights that were drawn for its inputs is invariant to nothing.
    _of_chapter_6("probe", frozenset()),
    _of_chapter_6("rollback", None),
    Measure("last", FEATURES, "last layer after rollback", False, None),
    _of_chapter_6("weights", None),
    # Cosines are taken from the origin.
    _of_chapter_6("rsa", RIGID - {TRANSLATION}),
    _of_chapter_6("structure", frozenset()),
    Measure("cka_debiased", BESIDE, "debiased CKA", True, RIGID),
    Measure("procrustes", BESIDE, "Procrustes", True, RIGID),
    Measure("neighbours", BESIDE, "neighbours", True, RIGID),
)
BY_KEY = {measure.key: measure for measure in MEASURES}


def name(key: str) -> str:
    """A measure's name in pictures."""
    return BY_KEY[key].name
