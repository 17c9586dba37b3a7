r"""Structural probes: whether a linear image of word vectors has the geometry of the sentence's dependency tree.

The distance of two words in a tree is the number of edges on the path between them; a word's depth is its distance from
the root. For word vectors :math:`h` (words, d), a projection :math:`B` (d, d) and an offset :math:`b` (d), the squared
length of a projected word predicts its depth, and the squared distance of two words predicts that in the tree:

.. math::

    \hat d_{ij} = \Vert (h_i - h_j) B \Vert^2 = q_i + q_j - 2 G_{ij}, \qquad
    \hat t_i = \Vert h_i B + b \Vert^2, \qquad G = (h B)(h B)^\top,\ q = \operatorname{diag} G,

.. math::

    \mathrm{loss} = \operatorname*{mean}_{\mathrm{sentences}} \frac{1}{n^2} \sum_{ij} |\hat d_{ij} - d_{ij}|
    \quad\mathrm{or}\quad
    \operatorname*{mean}_{\mathrm{sentences}} \frac{1}{n} \sum_i |\hat t_i - t_i|.

Since only the order of predictions counts, they are compared with the trees by

.. math::

    \rho = \operatorname*{mean}_{5 \le n \le 50}\ \operatorname*{mean}_{\mathrm{sentences\ of\ } n \mathrm{\ words}}
    \operatorname{Spearman}(\hat t, t), \qquad
    \mathrm{UUAS} = \frac{\#\{\mathrm{edges\ of\ the\ minimum\ spanning\ tree\ of\ } \hat d
    \mathrm{\ that\ are\ gold}\}}{\#\{\mathrm{gold\ edges}\}},

for distances with one correlation per word's row, the word itself included; for depths, instead of UUAS, by the share
of sentences whose root has the least predicted depth.

Source: Hewitt and Manning 2019, with their training: entries of B uniform in ±0.05, Adam at 1e-3 on batches of 20
sentences, at most 40 epochs. After each epoch whose development loss is not 1e-4 below the best, Adam restarts at a
tenth of its rate (as in their paper; their code keeps Adam's moments); five such epochs in a row end training. The
state with the best development loss is kept.

Shapes: a sentence's vectors (k, words, d) for k layers or models, whose k probes are trained side by side, each as it
would be alone: all start from the same B and read the same batches. Gold distances are (words, words), depths (words,),
both in edges. Losses are in edges, too, correlations in [-1, 1], shares in [0, 1].

G, words × words, replaces the authors' h_i − h_j of every pair; the first projected word of a sentence is subtracted
from all, which keeps the digits of differences however far from 0 they lie. The offset is ours: a length, unlike a
distance, depends on where the origin lies. It is the last row of B, on a feature that is 1 for every word.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import rankdata

from fivelenses.lenses.arrays import Array, as_array, as_tensor, check_sentence
from fivelenses.lenses.training import Plan, Stack, train

RATE, BATCH_SIZE, MAX_EPOCHS = 1e-3, 20, 40
START, TOLERANCE, DECAY, PATIENCE = 0.05, 1e-4, 0.1, 5

Kind = Literal["distance", "depth"]
Sentences = tuple[Sequence[Array], Sequence[Array]]


def tree_depths(heads: Sequence[int]) -> np.ndarray:
    """The number of edges between each word and the root, (words,) int64, arguments as for :func:`tree_distances`."""
    return tree_distances(heads)[list(heads).index(0)]


def tree_distances(heads: Sequence[int]) -> np.ndarray:
    """The number of edges between each two words, (words, words) int64.

    ``heads`` has per word the number of its head, counted from 1, or 0 for the root; refused unless they are one tree.

    Example:
        >>> tree_distances([2, 0, 2])
        array([[0, 1, 2],
               [1, 0, 1],
               [2, 1, 0]])
    """
    heads = as_array(heads)
    # Words are ordered from the root downwards: a word is one edge farther than its head from all words before it.
    order = np.flatnonzero(heads == 0).tolist()
    for head in order:
        order += np.flatnonzero(heads == head + 1).tolist()
    if heads.ndim != 1 or heads.dtype.kind not in "iu" or (heads == 0).sum() != 1 or len(order) < len(heads):
        raise ValueError(f"Heads {heads.tolist()} are no tree: give each word its head's number, one root 0, no cycle.")
    distances = np.zeros((len(heads), len(heads)), dtype=np.int64)
    for number, word in enumerate(order[1:], start=1):
        before = order[:number]
        distances[word, before] = distances[before, word] = distances[heads[word] - 1, before] + 1
    return distances


def sentence_scores(
    kind: Kind, predicted: Sequence[np.ndarray], gold: Sequence[Array], counted: Sequence[Array]
) -> pd.DataFrame:
    """How well the predictions of k probes order the words of each sentence, as the authors measure it.

    Equal values get their mean rank. A constant prediction has correlation 0. Among equally short edges, SciPy decides
    which are in the spanning tree; among equally deep words, the first is the root.

    Args:
        predicted, gold: per sentence (k, words, words) and (words, words), or of depths (k, words) and (words,).
        counted: per sentence (words,), False for words, such as punctuation, that are left out of both spanning trees
            and are no candidates for the root; a sentence of only these has none of either (the authors' code counts
            its root as missed). Correlations are over all words.

    Returns:
        One row per sentence and probe, with `sentence`, `probe`, `length` (words), `spearman` (missing for one word),
        `correct` and `possible` (edges of spanning trees, or roots).
    """
    parts = []
    for sentence, (values, truth, mask) in enumerate(zip(predicted, map(as_array, gold), counted, strict=True)):
        mask = np.asarray(mask)
        correct, possible = 0, 0
        if mask.any() and kind == "distance":
            edges = _spanning_edges(truth[np.ix_(mask, mask)])
            possible = len(edges)
            correct = [len(edges & _spanning_edges(one[np.ix_(mask, mask)])) for one in values]
        elif mask.any():
            possible, correct = 1, (np.where(mask, values, np.inf).argmin(1) == truth.argmin()).astype(int)
        spearman = _spearman(values, truth) if len(truth) > 1 else np.nan
        row = {"sentence": sentence, "probe": range(len(values)), "length": len(truth), "spearman": spearman}
        parts.append(pd.DataFrame(row | {"correct": correct, "possible": possible}))
    return pd.concat(parts, ignore_index=True)


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """The measures over some sentences, from their rows of :func:`sentence_scores`.

    Returns:
        One row per probe, with `tree`, UUAS or the share of roots that are right, and `spearman`, the mean over the
        authors' lengths, 5 to 50, of the mean correlation at that length; NaN where no sentence has either.

    Example:
        >>> gold = tree_distances([2, 0, 2])
        >>> scores = sentence_scores("distance", [np.stack([gold, 3 - gold])], [gold], [np.ones(3, dtype=bool)])
        >>> summary(scores)["tree"].tolist()
        [1.0, 0.5]
    """
    sums = scores.groupby("probe")[["correct", "possible"]].sum()
    by_length = scores[scores["length"].between(5, 50)].groupby(["probe", "length"])["spearman"].mean()
    return pd.DataFrame({"tree": sums["correct"] / sums["possible"], "spearman": by_length.groupby("probe").mean()})


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


@dataclass(frozen=True, eq=False)
class StructuralProbe:
    """k trained probes of one kind: their projections, (k, d, d), or for depths (k, d + 1, d) with the offset last, and
    the mean development loss of each, (k,).
    """

    kind: Kind
    projection: torch.Tensor
    losses: np.ndarray

    def predict(self, vectors: Sequence[Array]) -> list[np.ndarray]:
        """Per sentence the squared distances (k, words, words), or the squared lengths (k, words), float32."""
        sentences, predicted = _checked_vectors(vectors, "vectors"), []
        k = len(self.projection)
        if len(sentences[0]) != k:
            raise ValueError(f"Vectors of {len(sentences[0])} layers for {k} probes: give each its own.")
        for sentence in sentences:
            words = _features(self.kind, sentence.to(self.projection.device, torch.float32)) @ self.projection
            values = _distances(words - words[:, :1]) if self.kind == "distance" else words.square().sum(-1)
            predicted.append(values.cpu().numpy())
        return predicted


@torch.no_grad()
def fit(
    kind: Kind, training: Sentences, development: Sentences, device: str | torch.device | None = None
) -> StructuralProbe:
    """Train distance or depth probes.

    Args:
        training, development: per sentence the vectors, (k, words, d), and the gold of :func:`tree_distances` or
            :func:`tree_depths`, in two sequences. Vectors are converted batch by batch: they may lie in memory maps.
        device: where to compute, by default that of the vectors.

    Example:
        >>> words = np.eye(4, dtype=np.float32)[None]
        >>> sentences = [words] * 400, [tree_distances([0, 1, 2, 3])] * 400
        >>> probe = fit("distance", sentences, sentences)
        >>> probe.predict([words])[0].round().astype(int).tolist()[0][0]
        [0, 1, 2, 3]
    """
    sentences, gold = _checked_vectors(training[0], "training vectors"), training[1]
    held_out = _checked_vectors(development[0], "development vectors"), development[1]
    k, _, d = sentences[0].shape
    check_sentence("The first development sentence", held_out[0][0], sentences[0])
    device = sentences[0].device if device is None else torch.device(device)
    random = torch.Generator().manual_seed(0)
    start = torch.empty(d + (kind == "depth"), d).uniform_(-START, START, generator=random)

    def batches(running: np.ndarray) -> Iterator[torch.Tensor]:
        return iter(torch.randperm(len(sentences), generator=random).split(BATCH_SIZE))

    def gradient(stack: Stack, running: np.ndarray, places: torch.Tensor) -> tuple[torch.Tensor, Stack]:
        loss, slope = _batch(kind, stack["projection"], sentences, gold, places.tolist(), running)
        return loss, {"projection": slope / len(places)}

    def score(stack: Stack, running: np.ndarray) -> np.ndarray:
        parts = torch.arange(len(held_out[0])).split(BATCH_SIZE)
        losses = [_batch(kind, stack["projection"], *held_out, places.tolist(), running)[0] for places in parts]
        return (sum(losses) / len(held_out[0])).cpu().numpy()

    plan = Plan(RATE, MAX_EPOCHS, PATIENCE, TOLERANCE, DECAY, restart=True)
    best, losses = train({"projection": start.to(device).repeat(k, 1, 1)}, batches, gradient, score, plan)
    return StructuralProbe(kind, best["projection"], losses)


def _batch(
    kind: Kind, projection: torch.Tensor, sentences: list, gold: list, places: list[int], running: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss summed over some sentences, (running,), and its gradient, of the projection's shape."""
    device = projection.device
    # Words of all sentences end to end, so that no padding is multiplied.
    vectors = torch.cat([sentences[place] for place in places], 1).to(device, torch.float32)
    if len(running) < len(vectors):
        vectors = vectors[torch.from_numpy(running).to(device)]
    vectors = _features(kind, vectors)
    of_kind = _depth_loss if kind == "depth" else _distance_loss
    loss, slope = of_kind(vectors @ projection, [gold[place] for place in places])
    return loss, vectors.transpose(1, 2) @ slope


def _depth_loss(words: torch.Tensor, gold: list[Array]) -> tuple[torch.Tensor, torch.Tensor]:
    """The summed loss of projected words, and its gradient by them."""
    lengths = torch.tensor(list(map(len, gold)), device=words.device)
    truth = torch.cat(list(map(as_tensor, gold))).to(words)
    weights = (1 / lengths).repeat_interleave(lengths)
    error = words.square().sum(-1) - truth
    return (error.abs() * weights).sum(1), 2 * (error.sign() * weights)[..., None] * words


def _distance_loss(words: torch.Tensor, gold: list[Array]) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of distances, sentence by sentence, padded."""
    lengths = torch.tensor(list(map(len, gold)), device=words.device)
    n = int(lengths.max())
    real = torch.arange(n, device=words.device) < lengths[:, None]
    truth = torch.zeros(len(gold), n, n)
    for row, of_sentence in enumerate(gold):
        truth[row, : len(of_sentence), : len(of_sentence)] = as_tensor(of_sentence)
    padded = words.new_zeros(len(words), *real.shape, words.shape[-1])
    padded[:, real] = words
    padded = padded - padded[:, :, :1]
    weights = (real[:, :, None] & real[:, None, :]) / lengths[:, None, None].square()
    error = _distances(padded) - truth.to(words.device)
    loss = (error.abs() * weights).sum((1, 2, 3))
    # Of Σ E_ij d_ij, E symmetric, the gradient by the projected words is 4 (diag(E 1) - E) h B.
    slopes = error.sign_().mul_(weights)
    return loss, (slopes.sum(-1, keepdim=True) * padded - slopes @ padded).mul_(4)[:, real]


def _features(kind: Kind, vectors: torch.Tensor) -> torch.Tensor:
    """What B multiplies: the vectors, (…, d), and for depths a constant 1, whose row of B is the offset."""
    return torch.nn.functional.pad(vectors, (0, 1), value=1.0) if kind == "depth" else vectors


def _distances(words: torch.Tensor) -> torch.Tensor:
    """Squared distances between rows, (…, words, words), exactly 0 on the diagonal."""
    gram = words @ words.transpose(-1, -2)
    squares = gram.diagonal(dim1=-2, dim2=-1)
    return (squares[..., None] + squares[..., None, :]).sub_(gram, alpha=2)


def _checked_vectors(vectors: Sequence[Array], name: str) -> list[torch.Tensor]:
    """Sentences as (k, words, d)."""
    sentences = list(map(as_tensor, vectors))
    for number, sentence in enumerate(sentences):
        check_sentence(f"Sentence {number} of the {name}", sentence, sentences[0])
    return sentences
