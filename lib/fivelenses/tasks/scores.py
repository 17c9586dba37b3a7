r"""Scores of predictions, as the papers print them: of labels, of extracted answers, and of dependency trees.

Answers have an exact match and an F1, as the official evaluation script of SQuAD 1.1 defines them: of normalised texts,
the best comparison with a gold answer of the question counts:

.. math::

    \mathrm{F_1}(p, g) = \frac{2\,|p \cap g|}{|p| + |g|}, \qquad
    \mathrm{score} = \operatorname*{mean}_{\mathrm{questions}} \max_{g} \mathrm{F_1}(p, g),

where the intersection counts each word as often as both have it (Rajpurkar et al. 2016, section 6.1). Trees have

.. math::

    \mathrm{UAS} = \frac{\#\{w : \hat h_w = h_w\}}{\#\{w\}}, \qquad
    \mathrm{LAS} = \frac{\#\{w : \hat h_w = h_w, \hat r_w = r_w\}}{\#\{w\}},

over all words of a split, the root's word and punctuation included. With gold words this is the F1 of the CoNLL shared
task (Zeman et al. 2018, section 5). Range: [0, 1], of Matthews correlation [-1, 1]; the scripts print percentages.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
from sklearn.metrics import accuracy_score, matthews_corrcoef


def score(metric: str, predicted: np.ndarray, gold: np.ndarray) -> float:
    """The `accuracy` or `matthews` correlation of predicted labels (n,), 0 of a constant prediction."""
    return float({"accuracy": accuracy_score, "matthews": matthews_corrcoef}[metric](gold, predicted))


def normalise(text: str) -> str:
    """A text in lower case without ASCII punctuation and articles, its words one space apart.

    Example:
        >>> normalise("The  U.S. and an apple-tree!")
        'us and appletree'
    """
    bare = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def exact_match(predicted: str, gold: Sequence[str]) -> bool:
    """Whether a prediction equals one of the gold answers when both are normalised."""
    return normalise(predicted) in map(normalise, gold)


def f1(predicted: str, gold: Sequence[str]) -> float:
    """The best F1 of a prediction's words against those of a gold answer; 0 without words, as in the script."""
    words, best = Counter(normalise(predicted).split()), 0.0
    for answer in gold:
        of_gold = Counter(normalise(answer).split())
        if shared := (words & of_gold).total():
            best = max(best, 2 * shared / (words.total() + of_gold.total()))
    return best


Tree = tuple[Sequence[int], Sequence[str]]  # the heads and the relations of a sentence's words


def attached(predicted: Tree, gold: Tree) -> tuple[int, int]:
    """How many words of a sentence have the right head, and how many also the right relation."""
    heads = [one == other for one, other in zip(predicted[0], gold[0], strict=True)]
    both = [head and one == other for head, one, other in zip(heads, predicted[1], gold[1], strict=True)]
    return sum(heads), sum(both)


def chain_matches(gold: Sequence[Tree]) -> list[int]:
    """How many words of each sentence the null parser gets right: each word depends on the next, the last is the root,
    and all have the relation that scores best.
    """
    right = []
    for heads, names in gold:
        chain = zip([*range(2, len(heads) + 1), 0], heads, names, strict=True)
        right.append([name for next_word, head, name in chain if next_word == head])
    ((best, _),) = Counter(name for of_sentence in right for name in of_sentence).most_common(1) or [("", 0)]
    return [of_sentence.count(best) for of_sentence in right]
