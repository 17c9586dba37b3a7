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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch

from fivelenses.lenses.adam import adam_step
from fivelenses.lenses.arrays import Array, as_tensor, checked_list, checked_positive, checked_sentence, checked_whole
from fivelenses.lenses.trees import Evaluation, check_gold, evaluate

START, TOLERANCE, DECAY, PATIENCE = 0.05, 1e-4, 0.1, 5
MAX_RANK = 100_000  # far more than any layer has features

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

    kind: Literal["distance", "depth"]
    projection: torch.Tensor
    history: pd.DataFrame

    def predict(self, vectors: Sequence[Array]) -> list[np.ndarray]:
        """Per sentence the squared distances (k, words, words), or the squared lengths (k, words), float32.

        Raises:
            ValueError: vectors that do not fit the k probes and their width, or hold NaN or infinity.

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

        Args:
            vectors: as in training.
            gold: distances (words, words) or depths (words,) of each sentence.
            counted: per sentence (words,), False for words, such as punctuation, that are left out of spanning trees
                and are no candidates for the root.

        Raises:
            ValueError: sentences that do not fit each other, or as :meth:`predict`.

        Example:
            >>> words = np.array([[0.0], [1.0], [2.0]])
            >>> probe = StructuralProbe("depth", torch.tensor([[[1.0], [0.0]]]), pd.DataFrame())
            >>> probe.evaluate([words], [[0, 1, 2]]).root_accuracy
            array([1.])
        """
        gold = check_gold(self.kind, gold, [as_tensor(sentence).shape[-2] for sentence in vectors], "gold")
        return evaluate(self.kind, self.predict(vectors), gold, counted)


def fit_distance(
    training: Sentences, development: Sentences, rank: int | None = None, seed: int = 0, **how: object
) -> StructuralProbe:
    """Train distance probes.

    Args:
        training: per sentence the vectors, (words, d) or (k, words, d), and the gold distances, (words, words), of
            :func:`~fivelenses.lenses.trees.tree_distances`; two sequences of equal length. Vectors are converted batch
            by batch, so they may lie in memory maps, in any floating precision.
        development: as ``training``.
        rank: columns of B, by default d.
        seed: of the first B and of the order of sentences.
        how: ``learning_rate`` (1e-3), ``batch_size`` (20 sentences), ``max_epochs`` (40), and ``device`` (by default
            that of the vectors).

    Raises:
        ValueError: no sentence, an empty one, shapes that do not fit each other, NaN or infinity, distances that are
            not symmetric, or training that diverged.

    Example:
        >>> from fivelenses.lenses.trees import tree_distances
        >>> words = np.eye(4, dtype=np.float32)
        >>> sentences = [words] * 20, [tree_distances([0, 1, 2, 3])] * 20
        >>> probe = fit_distance(sentences, sentences, learning_rate=0.01, batch_size=1)
        >>> probe.predict([words])[0].round().astype(int).tolist()[0][0]
        [0, 1, 2, 3]
    """
    return _fit("distance", training, development, rank, seed, **how)


def fit_depth(
    training: Sentences, development: Sentences, rank: int | None = None, seed: int = 0, **how: object
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
    return _fit("depth", training, development, rank, seed, **how)


@torch.no_grad()
def _fit(
    kind: Literal["distance", "depth"],
    training: Sentences,
    development: Sentences,
    rank: int | None,
    seed: int,
    *,
    learning_rate: float = 1e-3,
    batch_size: int = 20,
    max_epochs: int = 40,
    device: str | torch.device | None = None,
) -> StructuralProbe:
    batch_size, max_epochs = checked_whole("batch_size", batch_size, 1), checked_whole("max_epochs", max_epochs, 1)
    seed, learning_rate = checked_whole("seed", seed), checked_positive("learning_rate", learning_rate)
    sentences, gold = _checked_split(kind, training, "training")
    held_out, held_out_gold = _checked_split(kind, development, "development")
    k, _, d = sentences[0].shape
    if held_out[0].shape[::2] != (k, d):
        raise ValueError(
            f"The training vectors are {k} layers of {d} features and the development vectors "
            f"{held_out[0].shape[0]} of {held_out[0].shape[2]}: give the same layers of both."
        )
    rank = d if rank is None else checked_whole("rank", rank, 1, MAX_RANK)
    device = sentences[0].device if device is None else torch.device(device)
    random = torch.Generator().manual_seed(seed)
    start = torch.empty(d + (kind == "depth"), rank).uniform_(-START, START, generator=random)
    projection = start.to(device).repeat(k, 1, 1)
    best_projection = projection.clone()
    moments = [torch.zeros_like(projection) for _ in range(2)]
    steps = [torch.zeros((), device=device) for _ in range(k)]
    rates = np.full(k, float(learning_rate))
    best, waited = np.full(k, np.inf), np.zeros(k, dtype=int)
    running = np.arange(k)
    rows = []
    for epoch in range(1, max_epochs + 1):
        total = 0.0
        for places in torch.randperm(len(sentences), generator=random).split(batch_size):
            loss, gradient = _batch(kind, projection, sentences, gold, places.tolist(), running, with_gradient=True)
            total = total + loss
            for i, probe in enumerate(running):
                own = [[moment[i]] for moment in moments]
                adam_step([projection[i]], [gradient[i] / len(places)], own, [steps[probe]], rates[probe])
        batches = torch.arange(len(held_out)).split(batch_size)
        losses = sum(_batch(kind, projection, held_out, held_out_gold, rows.tolist(), running)[0] for rows in batches)
        losses = (losses / len(held_out)).cpu().numpy()
        if not np.isfinite(losses).all():
            raise ValueError(f"Training diverged in epoch {epoch}: scale the vectors or the learning rate down.")
        training_losses = (total / len(sentences)).cpu().numpy()
        rows += zip(running.tolist(), [epoch] * len(running), rates[running], training_losses, losses, strict=True)
        improved = losses < best[running] - TOLERANCE
        best_projection[running[improved]] = projection[torch.from_numpy(improved).to(device)]
        best[running[improved]] = losses[improved]
        waited[running] = np.where(improved, 0, waited[running] + 1)
        for i in np.flatnonzero(~improved):
            rates[running[i]] *= DECAY
            steps[running[i]].zero_()
            for moment in moments:
                moment[i].zero_()
        going = waited[running] < PATIENCE
        if not going.any():
            break
        if not going.all():
            stay = torch.from_numpy(going).to(device)
            projection, moments, running = projection[stay], [m[stay] for m in moments], running[going]
    columns = ["probe", "epoch", "learning_rate", "training_loss", "development_loss"]
    history = pd.DataFrame(rows, columns=columns).sort_values(["probe", "epoch"], ignore_index=True)
    return StructuralProbe(kind, best_projection, history)


def _batch(
    kind: str,
    projection: torch.Tensor,
    sentences: list[torch.Tensor],
    gold: list[np.ndarray],
    places: list[int],
    running: np.ndarray,
    with_gradient: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The loss summed over some sentences, (running,), and its gradient, of the projection's shape."""
    device = projection.device
    # Words of all sentences end to end, so that no padding is multiplied.
    vectors = torch.cat([sentences[place] for place in places], 1).to(device, torch.float32)
    if len(running) < len(vectors):
        vectors = vectors[torch.from_numpy(running).to(device)]
    vectors = _features(kind, vectors)
    words = vectors @ projection
    lengths = torch.tensor([len(gold[place]) for place in places], device=device)
    if kind == "depth":
        truth = torch.from_numpy(np.concatenate([gold[place] for place in places])).to(device)
        weights = (1 / lengths).repeat_interleave(lengths)
        error = _depths(words) - truth
        loss = (error.abs() * weights).sum(1)
        slope = 2 * (error.sign() * weights)[..., None] * words
    else:
        n = int(lengths.max())
        real = torch.arange(n, device=device) < lengths[:, None]
        truth = torch.zeros(len(places), n, n)
        for row, place in enumerate(places):
            truth[row, : len(gold[place]), : len(gold[place])] = torch.from_numpy(gold[place])
        padded = words.new_zeros(len(words), *real.shape, words.shape[-1])
        padded[:, real] = words
        padded = padded - padded[:, :, :1]
        weights = (real[:, :, None] & real[:, None, :]) / lengths[:, None, None].square()
        error = _distances(padded) - truth.to(device)
        loss = (error.abs() * weights).sum((1, 2, 3))
        # Of Σ E_ij d_ij, E symmetric, the gradient by the projected words is 4 (diag(E 1) - E) h B.
        slopes = error.sign_().mul_(weights)
        slope = (slopes.sum(-1, keepdim=True) * padded - slopes @ padded).mul_(4)[:, real]
    return loss, vectors.transpose(1, 2) @ slope if with_gradient else None


def _features(kind: str, vectors: torch.Tensor) -> torch.Tensor:
    """What B multiplies: the vectors, (…, d), and for depths a constant 1, whose row of B is the offset."""
    return torch.nn.functional.pad(vectors, (0, 1), value=1.0) if kind == "depth" else vectors


def _distances(words: torch.Tensor) -> torch.Tensor:
    """Squared distances between rows, (…, words, words), exactly 0 on the diagonal."""
    gram = words @ words.transpose(-1, -2)
    squares = gram.diagonal(dim1=-2, dim2=-1)
    return (squares[..., None] + squares[..., None, :]).sub_(gram, alpha=2)


def _depths(words: torch.Tensor) -> torch.Tensor:
    return words.square().sum(-1)


def _checked_split(kind: str, split: Sentences, name: str) -> tuple[list[torch.Tensor], list[np.ndarray]]:
    split = checked_list(f"The {name} split", split)
    if len(split) != 2:
        raise ValueError(f"The {name} split has {len(split)} members: give the vectors and the gold of its sentences.")
    vectors, gold = split
    sentences = _checked_vectors(vectors, f"{name} vectors")
    return sentences, check_gold(kind, gold, [sentence.shape[1] for sentence in sentences], f"{name} gold")


def _checked_vectors(vectors: Sequence[Array], name: str) -> list[torch.Tensor]:
    """Sentences as (k, words, d)."""
    sentences = [as_tensor(sentence) for sentence in checked_list(f"The {name}", vectors)]
    if not sentences:
        raise ValueError(f"The {name} hold no sentence: give at least one.")
    sentences = [sentence[None] if sentence.ndim == 2 else sentence for sentence in sentences]
    for number, sentence in enumerate(sentences):
        checked_sentence(f"Sentence {number} of the {name}", sentence, sentences[0])
    return sentences
