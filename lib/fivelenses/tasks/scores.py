r"""Scores of predictions, as the papers print them: of labels, and of extracted answers.

Answers have an exact match and an F1, as the official evaluation script of SQuAD 1.1 defines them. Texts are normalised
(lower case, without punctuation, articles and superfluous white space). A prediction is compared with each gold answer
of its question, and the best comparison counts:

.. math::

    \mathrm{F_1}(p, g) = \frac{2\,|p \cap g|}{|p| + |g|}, \qquad
    \mathrm{score} = \operatorname*{mean}_{\mathrm{questions}} \max_{g} \mathrm{F_1}(p, g),

where the intersection counts each word as often as both have it. Source: Rajpurkar et al. 2016, section 6.1. Range:
[0, 1]; the script prints percentages.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
from sklearn.metrics import accuracy_score, matthews_corrcoef

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def score(metric: str, predicted: np.ndarray, gold: np.ndarray) -> float:
    """Accuracy in [0, 1] or Matthews correlation in [-1, 1] of predicted labels.

    A constant prediction has Matthews correlation 0: its formula is 0/0, and 0 is the value of a predictor without
    information.

    Args:
        metric: `accuracy` or `matthews`.
        predicted, gold: (n,) labels, at least one, of whole numbers.

    Example:
        >>> score("matthews", np.array([1, 1, 1]), np.array([0, 1, 1]))
        0.0
    """
    predicted, gold = np.asarray(predicted), np.asarray(gold)
    if predicted.shape != gold.shape or predicted.ndim != 1 or predicted.size == 0:
        raise ValueError(f"A score needs two equally long lists of labels, not {predicted.shape} and {gold.shape}.")
    if metric == "accuracy":
        return float(accuracy_score(gold, predicted))
    if metric == "matthews":
        if len(np.unique(predicted)) == 1 or len(np.unique(gold)) == 1:
            return 0.0
        return float(matthews_corrcoef(gold, predicted))
    raise ValueError(f"There is no metric {metric!r} for labels: choose accuracy or matthews.")


def majority_rate(gold: np.ndarray) -> float:
    """The accuracy of always answering the most frequent label: the null rate.

    Example:
        >>> majority_rate(np.array([0, 1, 1, 1]))
        0.75
    """
    return float(np.unique(gold, return_counts=True)[1].max() / np.size(gold))


def normalise(text: str) -> str:
    """A text in lower case without ASCII punctuation and articles, its words one space apart.

    Punctuation goes first, so that `U.S.` is one word; articles are whole words.

    Example:
        >>> normalise("The  U.S. and an apple-tree!")
        'us and appletree'
    """
    words = re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_PUNCTUATION))
    return " ".join(words.split())


def exact_match(predicted: str, gold: Sequence[str]) -> bool:
    """Whether a prediction equals one of the gold answers when both are normalised.

    Example:
        >>> exact_match("the Cat.", ["dog", "cat"])
        True
    """
    return any(normalise(predicted) == normalise(answer) for answer in gold)


def f1(predicted: str, gold: Sequence[str]) -> float:
    """The best F1 of a prediction's words against those of a gold answer, in [0, 1].

    As in the script, a prediction without words has F1 0, even against a gold answer without words.

    Example:
        >>> f1("a big cat", ["the cat", "dog"])
        0.6666666666666666
    """
    return max(_f1(normalise(predicted).split(), normalise(answer).split()) for answer in gold)


def _f1(predicted: list[str], gold: list[str]) -> float:
    shared = (Counter(predicted) & Counter(gold)).total()
    return 2 * shared / (len(predicted) + len(gold)) if shared else 0.0


def squad_scores(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> tuple[float, float]:
    """The share of exact matches and the mean F1 over questions, both in [0, 1].

    Args:
        predicted: one answer per question.
        gold: the gold answers of each question.

    Example:
        >>> squad_scores(["the cat", "two dogs"], [["cat"], ["dogs"]])
        (0.5, 0.8333333333333333)
    """
    if not len(predicted) or len(predicted) != len(gold):
        raise ValueError(f"{len(predicted)} answers to {len(gold)} questions cannot be scored: give one per question.")
    for answers in gold:
        if isinstance(answers, str) or not len(answers):
            raise ValueError(f"The gold answers of a question are a list of at least one text, not {answers!r}.")
    pairs = list(zip(predicted, gold, strict=True))
    return sum(exact_match(*pair) for pair in pairs) / len(pairs), sum(f1(*pair) for pair in pairs) / len(pairs)


def first_sentence(passage: str) -> str:
    """A passage up to its first full stop, question or exclamation mark before white space, as the null answer.

    Example:
        >>> first_sentence("Ann has 2.5 apples. Ben has none.")
        'Ann has 2.5 apples.'
    """
    return re.split(r"(?<=[.!?])\s", passage.strip(), maxsplit=1)[0]
