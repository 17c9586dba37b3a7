r"""Structural probes: whether a linear image of word vectors has the geometry of the sentence's dependency tree.

For word vectors :math:`h` (words, d), a projection :math:`B` (d, rank) and an offset :math:`b` (rank), the squared
length of a projected word predicts its depth, and the squared distance of two words predicts the number of edges
between them:

.. math::

    \hat d_{ij} = \Vert (h_i - h_j) B \Vert^2 = q_i + q_j - 2 G_{ij}, \qquad
    \hat t_i = \Vert h_i B + b \Vert^2, \qquad G = (h B)(h B)^\top,\ q = \operatorname{diag} G,

.. math::

    \mathrm{loss} = \operatorname*{mean}_{\mathrm{sentences}} \frac{1}{n^2} \sum_{ij} |\hat d_{ij} - d_{ij}|
    \quad\mathrm{or}\quad
    \operatorname*{mean}_{\mathrm{sentences}} \frac{1}{n} \sum_i |\hat t_i - t_i|.

Source: Hewitt and Manning 2019, with their training: entries of B uniform in ±0.05, Adam at 1e-3 on batches of 20
sentences, at most 40 epochs. After each epoch whose development loss is not 1e-4 below the best, Adam restarts at a
tenth of its rate (as in their paper; their code keeps Adam's moments); five such epochs in a row end training. The
state with the best development loss is kept.

Shapes: a sentence's vectors (words, d), or (k, words, d) for k layers or models, whose k probes are trained side by
side, each as it would be alone: all start from the same B and read the same batches. Gold distances are (words, words),
depths (words,), both in edges. Losses are in edges, too, correlations in [-1, 1], shares in [0, 1].

The authors build h_i − h_j for every pair, words × words × rank numbers; here G, words × words, replaces them. We
subtract the first projected word of a sentence from all its words, which changes no distance and keeps the digits that
differences keep, however far from 0 all words lie.

The offset is ours: the authors have none. A distance is blind to where the origin lies, a length is not: without an
offset, probes of an encoder whose words have no common mean vector find less depth than of the same words moved by one
constant vector. It is learned as the last row of B, on a feature that is 1 for every word.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch

from fivelenses.lenses.arrays import Array, as_tensor, check_counts, check_positive, check_sentence
from fivelenses.lenses.training import Plan, Stack, train
from fivelenses.lenses.trees import Evaluation, check_gold, evaluate

START, TOLERANCE, DECAY, PATIENCE = 0.05, 1e-4, 0.1, 5

Kind = Literal["distance", "depth"]
Sentences = tuple[Sequence[Array], Sequence[Array]]


@dataclass(frozen=True, eq=False)
class StructuralProbe:
    """k trained probes.

    Attributes:
        kind: what the probes predict, "distance" or "depth".
        projection: (k, d, rank) float32, for depths (k, d + 1, rank) with the offset last.
        history: a row per probe and epoch with the columns probe, epoch, learning_rate, training_loss,
            development_loss.
    """

    kind: Kind
    projection: torch.Tensor
    history: pd.DataFrame

    def predict(self, vectors: Sequence[Array]) -> list[np.ndarray]:
        """Per sentence the squared distances (k, words, words), or the squared lengths (k, words), float32.

        Example:
            >>> probe = StructuralProbe("distance", torch.eye(2)[None], pd.DataFrame())
            >>> probe.predict([np.array([[0.0, 0.0], [3.0, 4.0]])])[0].tolist()
            [[[0.0, 25.0], [25.0, 0.0]]]
        """
        sentences = _checked_vectors(vectors, "vectors")
        k, d = self.projection.shape[0], self.projection.shape[1] - (self.kind == "depth")
        if sentences[0].shape[::2] != (k, d):
            raise ValueError(
                f"The vectors are of {sentences[0].shape[0]} layers of {sentences[0].shape[2]} features and the probes "
                f"of {k} of {d}: give the layers that they were trained on."
            )
        predicted = []
        for sentence in sentences:
            words = _features(self.kind, sentence.to(self.projection.device, torch.float32)) @ self.projection
            values = _distances(words - words[:, :1]) if self.kind == "distance" else _depths(words)
            predicted.append(values.cpu().numpy())
        return predicted

    def evaluate(
        self, vectors: Sequence[Array], gold: Sequence[Array], counted: Sequence[Array] | None = None
    ) -> Evaluation:
        """Compare the predictions with gold trees, by :func:`fivelenses.lenses.trees.evaluate`.

        Example:
            >>> words = np.array([[0.0], [1.0], [2.0]])
            >>> probe = StructuralProbe("depth", torch.tensor([[[1.0], [0.0]]]), pd.DataFrame())
            >>> probe.evaluate([words], [[0, 1, 2]]).root_accuracy
            array([1.])
        """
        return evaluate(self.kind, self.predict(vectors), gold, counted)


def fit_distance(
    training: Sentences,
    development: Sentences,
    rank: int | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    **how: float,
) -> StructuralProbe:
    """Train distance probes.

    Args:
        training: per sentence the vectors, (words, d) or (k, words, d), and the gold distances, (words, words), of
            :func:`~fivelenses.lenses.trees.tree_distances`; two sequences of equal length. Vectors are converted batch
            by batch, so they may lie in memory maps, in any floating precision.
        development: as ``training``.
        rank: columns of B, by default d.
        seed: of the first B and of the order of sentences.
        device: where to compute, by default that of the vectors.
        how: ``learning_rate`` (1e-3), ``batch_size`` (20 sentences), ``max_epochs`` (40).

    Refused are sentences without a word, of shapes that do not fit each other or with values that are not finite,
    distances that are not symmetric, and a training that diverged.

    Example:
        >>> from fivelenses.lenses.trees import tree_distances
        >>> words = np.eye(4, dtype=np.float32)
        >>> sentences = [words] * 20, [tree_distances([0, 1, 2, 3])] * 20
        >>> probe = fit_distance(sentences, sentences, learning_rate=0.01, batch_size=1)
        >>> probe.predict([words])[0].round().astype(int).tolist()[0][0]
        [0, 1, 2, 3]
    """
    return _fit("distance", (training, development), rank, seed, device, **how)


def fit_depth(
    training: Sentences,
    development: Sentences,
    rank: int | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    **how: float,
) -> StructuralProbe:
    """Train depth probes as :func:`fit_distance` does, on gold depths (words,) of
    :func:`~fivelenses.lenses.trees.tree_depths`.

    Example:
        >>> from fivelenses.lenses.trees import tree_depths
        >>> words = np.eye(3, dtype=np.float32)
        >>> sentences = [words] * 20, [tree_depths([0, 1, 2])] * 20
        >>> probe = fit_depth(sentences, sentences, learning_rate=0.01, batch_size=1)
        >>> probe.predict([words])[0].round().astype(int).tolist()
        [[0, 1, 2]]
    """
    return _fit("depth", (training, development), rank, seed, device, **how)


@torch.no_grad()
def _fit(
    kind: Kind,
    splits: tuple[Sentences, Sentences],
    rank: int | None,
    seed: int,
    device: str | torch.device | None,
    learning_rate: float = 1e-3,
    batch_size: int = 20,
    max_epochs: int = 40,
) -> StructuralProbe:
    check_counts(rank=1 if rank is None else rank, batch_size=batch_size, max_epochs=max_epochs)
    check_positive(learning_rate=learning_rate)
    (sentences, gold), held_out = (
        _checked_split(kind, *split, name) for split, name in zip(splits, ("training", "development"), strict=True)
    )
    k, _, d = sentences[0].shape
    if held_out[0][0].shape[::2] != (k, d):
        shapes = tuple(sentences[0].shape), tuple(held_out[0][0].shape)
        raise ValueError(f"Training and development sentences are {shapes}: give the same layers and features of both.")
    device = sentences[0].device if device is None else torch.device(device)
    random = torch.Generator().manual_seed(seed)
    start = torch.empty(d + (kind == "depth"), d if rank is None else rank).uniform_(-START, START, generator=random)

    def batches(running: np.ndarray) -> Iterator[torch.Tensor]:
        return iter(torch.randperm(len(sentences), generator=random).split(batch_size))

    def gradient(stack: Stack, running: np.ndarray, places: torch.Tensor) -> tuple[torch.Tensor, Stack]:
        loss, slope = _batch(kind, stack["projection"], sentences, gold, places.tolist(), running)
        return loss, {"projection": slope / len(places)}

    def score(stack: Stack, running: np.ndarray) -> np.ndarray:
        parts = torch.arange(len(held_out[0])).split(batch_size)
        losses = [_batch(kind, stack["projection"], *held_out, places.tolist(), running)[0] for places in parts]
        return (sum(losses) / len(held_out[0])).cpu().numpy()

    plan = Plan(learning_rate, max_epochs, PATIENCE, TOLERANCE, DECAY, restart=True)
    best, history = train({"projection": start.to(device).repeat(k, 1, 1)}, batches, gradient, score, plan)
    history["loss"] /= np.float32(len(sentences))
    names = {"period": "epoch", "rate": "learning_rate", "loss": "training_loss", "score": "development_loss"}
    history = history.rename(columns=names).sort_values(["probe", "epoch"], ignore_index=True)
    return StructuralProbe(kind, best["projection"], history)


def _batch(
    kind: Kind,
    projection: torch.Tensor,
    sentences: Sequence[torch.Tensor],
    gold: Sequence[np.ndarray],
    places: list[int],
    running: np.ndarray,
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


def _depth_loss(words: torch.Tensor, gold: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """The summed loss of projected words, and its gradient by them."""
    lengths = torch.tensor([len(truth) for truth in gold], device=words.device)
    truth = torch.from_numpy(np.concatenate(gold)).to(words.device)
    weights = (1 / lengths).repeat_interleave(lengths)
    error = _depths(words) - truth
    return (error.abs() * weights).sum(1), 2 * (error.sign() * weights)[..., None] * words


def _distance_loss(words: torch.Tensor, gold: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of distances, sentence by sentence, padded."""
    lengths = torch.tensor([len(truth) for truth in gold], device=words.device)
    n = int(lengths.max())
    real = torch.arange(n, device=words.device) < lengths[:, None]
    truth = torch.zeros(len(gold), n, n)
    for row, of_sentence in enumerate(gold):
        truth[row, : len(of_sentence), : len(of_sentence)] = torch.from_numpy(of_sentence)
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


def _depths(words: torch.Tensor) -> torch.Tensor:
    return words.square().sum(-1)


def _checked_split(
    kind: Kind, vectors: Sequence[Array], gold: Sequence[Array], name: str
) -> tuple[list[torch.Tensor], list[np.ndarray]]:
    sentences = _checked_vectors(vectors, f"{name} vectors")
    return sentences, check_gold(kind, gold, [sentence.shape[1] for sentence in sentences], f"{name} gold")


def _checked_vectors(vectors: Sequence[Array], name: str) -> list[torch.Tensor]:
    """Sentences as (k, words, d)."""
    sentences = [as_tensor(sentence) for sentence in vectors]
    if not sentences:
        raise ValueError(f"The {name} hold no sentence: give at least one.")
    sentences = [sentence[None] if sentence.ndim == 2 else sentence for sentence in sentences]
    for number, sentence in enumerate(sentences):
        check_sentence(f"Sentence {number} of the {name}", sentence, sentences[0])
    return sentences
