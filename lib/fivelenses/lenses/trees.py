r"""Dependency trees as distances and depths of words, and how well predictions of either agree with them.

The distance of two words is the number of edges on the path between them; a word's depth is its distance from the root.
Predictions need not be in edges, since only their order counts:

.. math::

    \rho = \operatorname*{mean}_{5 \le n \le 50}\ \operatorname*{mean}_{\mathrm{sentences\ of\ } n \mathrm{\ words}}
    \operatorname{Spearman}(\hat t, t), \qquad
    \mathrm{UUAS} = \frac{\#\{\mathrm{edges\ of\ the\ minimum\ spanning\ tree\ of\ } \hat d
    \mathrm{\ that\ are\ gold}\}}{\#\{\mathrm{gold\ edges}\}},

for distances with one correlation per word's row, the word itself included. Source: Hewitt and Manning 2019.

Shapes: distances (words, words), depths (words,), predictions of k probes with a first axis of k. Range: correlations
in [-1, 1], shares in [0, 1].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import rankdata

from fivelenses.lenses.arrays import Array, as_array, as_tensor

# The sentence lengths over which the authors average their correlations.
LENGTHS = range(5, 51)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well the predictions of k probes order the words of held-out sentences.

    Attributes:
        spearman: (k,) mean over the sentence lengths 5 to 50 of the mean correlation at that length, in [-1, 1]; NaN
            where no sentence has such a length.
        by_length: a row per probe and length with the columns probe, length, sentences, spearman.
        uuas: (k,) for distances, the share of gold edges in the minimum spanning trees of the predictions; else None.
        root_accuracy: (k,) for depths, the share of sentences whose root has the least predicted depth; else None.
    """

    spearman: np.ndarray
    by_length: pd.DataFrame
    uuas: np.ndarray | None
    root_accuracy: np.ndarray | None


def tree_depths(heads: Sequence[int]) -> np.ndarray:
    """The number of edges between each word and the root, (words,) int64; 0 for the root.

    Args:
        heads: per word the number of its head, counted from 1, or 0 for the root; refused unless they are one tree.
    """
    return tree_distances(heads)[list(heads).index(0)]


def tree_distances(heads: Sequence[int]) -> np.ndarray:
    """The number of edges between each two words, (words, words) int64; arguments and errors of :func:`tree_depths`.

    Example:
        >>> tree_distances([2, 0, 2])
        array([[0, 1, 2],
               [1, 0, 1],
               [2, 1, 0]])
    """
    heads = as_array(heads)
    n = len(heads) if heads.ndim == 1 else 0
    if not n or heads.dtype.kind not in "iu":
        raise ValueError(f"heads has shape {heads.shape} of {heads.dtype}: give one whole number per word.")
    if heads.min() < 0 or heads.max() > n:
        raise ValueError(f"The head of word {int(((heads < 0) | (heads > n)).argmax()) + 1} is none of the {n} words.")
    roots = np.flatnonzero(heads == 0) + 1
    if len(roots) != 1:
        raise ValueError(f"A tree has one root: words {roots.tolist()} have the head 0.")
    # Words are ordered from the root downwards: a word is one edge farther than its head from all words before it.
    order = [int(roots[0]) - 1]
    for head in order:
        order += np.flatnonzero(heads == head + 1).tolist()
    if len(order) < n:
        raise ValueError(f"Words {sorted(set(range(1, n + 1)) - {i + 1 for i in order})} hang on a cycle, not a root.")
    distances = np.zeros((n, n), dtype=np.int64)
    for number, word in enumerate(order[1:], start=1):
        before = order[:number]
        distances[word, before] = distances[before, word] = distances[heads[word] - 1, before] + 1
    return distances


def evaluate(
    kind: Literal["distance", "depth"],
    predicted: Sequence[np.ndarray],
    gold: Sequence[Array],
    counted: Sequence[Array] | None = None,
) -> Evaluation:
    """Compare predictions with gold trees, as the authors of the structural probe do.

    Equal values get their mean rank. A constant prediction has correlation 0. Among equally short edges, SciPy decides
    which are in the spanning tree; among equally deep words, the first is the root.

    Args:
        kind: of the predictions.
        predicted: per sentence (k, words, words) or (k, words).
        gold: per sentence (words, words) or (words,).
        counted: per sentence (words,), False for words, such as punctuation, that are left out of the spanning trees
            and are no candidates for the root; a sentence without any other word is left out of both shares (the
            authors' code counts its root as missed). Correlations are over all words. The gold edges are then those of
            the spanning tree of the gold distances between the remaining words.

    Example:
        >>> gold = tree_distances([2, 0, 2])
        >>> evaluate("distance", [np.stack([gold, 3 - gold])], [gold]).uuas
        array([1. , 0.5])
    """
    return summary(kind, sentence_scores(kind, predicted, gold, counted))


def sentence_scores(
    kind: Literal["distance", "depth"],
    predicted: Sequence[np.ndarray],
    gold: Sequence[Array],
    counted: Sequence[Array] | None = None,
) -> pd.DataFrame:
    """What each sentence adds to :func:`evaluate`, whose arguments these are.

    Returns:
        One row per sentence and probe: `sentence`, `probe`, `length` (words), `spearman` (missing for one word),
        `correct` and `possible` (edges of spanning trees, or roots).
    """
    if kind not in ("distance", "depth"):
        raise ValueError(f"kind is 'distance' or 'depth', not {kind!r}.")
    predicted = [as_array(as_tensor(one)) for one in predicted]
    if not predicted:
        raise ValueError("There is no sentence to evaluate: give at least one.")
    gold = check_gold(kind, gold, [one.shape[-1] if one.ndim else 0 for one in predicted], "gold")
    for number, (one, truth) in enumerate(zip(predicted, gold, strict=True)):
        if one.shape != (len(predicted[0]), *truth.shape) or not np.isfinite(one).all():
            shape = f"(probes, {', '.join(map(str, truth.shape))})"
            raise ValueError(f"Sentence {number} is predicted with shape {one.shape}, not {shape} of finite numbers.")
    masks, parts = _checked_masks(counted, gold), []
    for sentence, (values, truth, mask) in enumerate(zip(predicted, gold, masks, strict=True)):
        correct, possible = np.zeros(len(values), dtype=int), 0
        if mask.any() and kind == "distance":
            edges = _spanning_edges(truth[np.ix_(mask, mask)])
            possible = len(edges)
            correct[:] = [len(edges & _spanning_edges(one[np.ix_(mask, mask)])) for one in values]
        elif mask.any():
            possible, correct = 1, np.where(mask, values, np.inf).argmin(1) == truth.argmin()
        spearman = _spearman(values, truth) if len(truth) > 1 else np.full(len(values), np.nan)
        of_probes = {"probe": np.arange(len(values)), "spearman": spearman, "correct": correct.astype(int)}
        parts.append(pd.DataFrame({"sentence": sentence, "length": len(truth), "possible": possible} | of_probes))
    return pd.concat(parts, ignore_index=True)


def summary(kind: Literal["distance", "depth"], scores: pd.DataFrame) -> Evaluation:
    """The measures of some sentences, from their rows of :func:`sentence_scores`.

    Example:
        >>> gold = tree_distances([2, 0, 2])
        >>> summary("distance", sentence_scores("distance", [np.stack([gold, 3 - gold])], [gold])).uuas
        array([1. , 0.5])
    """
    by_probe = scores.groupby("probe")
    correlations = scores.dropna(subset="spearman").groupby(["probe", "length"])["spearman"]
    by_length = correlations.agg(sentences="count", spearman="mean").reset_index()
    within = by_length[by_length.length.isin(LENGTHS)].groupby("probe").spearman.mean()
    spearman = within.reindex(range(len(by_probe))).to_numpy(dtype=float)
    correct, possible = (by_probe[name].sum().to_numpy(dtype=float) for name in ("correct", "possible"))
    share = np.divide(correct, possible, out=np.full(len(by_probe), np.nan), where=possible > 0)
    return Evaluation(spearman, by_length, *((share, None) if kind == "distance" else (None, share)))


def check_gold(kind: str, gold: Sequence[Array], words: Sequence[int], name: str) -> list[np.ndarray]:
    """Gold distances or depths as float32, refused where they are none or do not fit the sentences' words."""
    checked = [as_array(as_tensor(truth)).astype(np.float32) for truth in gold]
    if len(checked) != len(words):
        raise ValueError(f"The {name} is of {len(checked)} sentences and the vectors of {len(words)}.")
    for number, (truth, n) in enumerate(zip(checked, words, strict=True)):
        shape = (n, n) if kind == "distance" else (n,)
        if truth.shape != shape or not np.isfinite(truth).all():
            raise ValueError(f"Sentence {number} of the {name} has shape {truth.shape}, not {shape} of finite numbers.")
        if kind == "distance" and ((truth != truth.T).any() or truth.diagonal().any()):
            raise ValueError(f"Sentence {number} of the {name} is no distance: it is not symmetric with 0 to itself.")
    return checked


def _spearman(predicted: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Spearman's correlation along the last axis, 0 where one side is constant, then the mean over rows: (k,)."""
    ranks = [rankdata(values, axis=-1) for values in (predicted, truth)]
    first, second = (values - values.mean(-1, keepdims=True) for values in ranks)
    norms = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    correlations = (first * second).sum(-1) / np.where(norms > 0, norms, 1)
    return correlations.reshape(len(predicted), -1).mean(1)


def _spanning_edges(distances: np.ndarray) -> set[tuple[int, int]]:
    # Ranks from 1 give the same trees; a distance of 0 would be a missing edge to SciPy.
    ranks = rankdata(distances, method="dense").reshape(distances.shape)
    tree = minimum_spanning_tree(np.triu(ranks, 1)).tocoo()
    return set(zip(tree.row.tolist(), tree.col.tolist(), strict=True))


def _checked_masks(counted: Sequence[Array] | None, gold: list[np.ndarray]) -> list[np.ndarray]:
    if counted is None:
        return [np.ones(len(truth), dtype=bool) for truth in gold]
    masks = [np.asarray(mask) for mask in counted]
    fitting = [mask.shape for mask in masks] == [(len(truth),) for truth in gold]
    if not fitting or not all(mask.dtype == bool for mask in masks):
        raise ValueError("counted does not fit the sentences: give one True or False per word of each sentence.")
    return masks
