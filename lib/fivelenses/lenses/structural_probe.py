r"""Structural probes: whether a linear image of word vectors has the geometry of the sentence's dependency tree.

For word vectors :math:`h` (words, d) and a projection :math:`B` (d, rank), the squared length after projection stands
for a word's depth, the squared distance for the number of edges between two words:

.. math::

    \hat d_{ij} = \Vert (h_i - h_j) B \Vert^2 = q_i + q_j - 2 G_{ij}, \qquad
    \hat t_i = \Vert h_i B \Vert^2, \qquad G = (h B)(h B)^\top,\ q = \operatorname{diag} G,

.. math::

    \mathrm{loss} = \operatorname*{mean}_{\mathrm{sentences}} \frac{1}{n^2} \sum_{ij} |\hat d_{ij} - d_{ij}|
    \quad\mathrm{or}\quad
    \operatorname*{mean}_{\mathrm{sentences}} \frac{1}{n} \sum_i |\hat t_i - t_i|.

Source: Hewitt and Manning 2019. Trained as there: entries of B uniform in ±0.05, Adam at 1e-3 with batches of 20
sentences, at most 40 epochs; after each epoch whose development loss is not 1e-4 below the best, Adam starts anew at a
tenth of its rate (their paper; their code keeps Adam's moments), and after five such epochs in a row training ends. The
state with the best development loss is kept.

Shapes: a sentence's vectors (words, d), or (k, words, d) for k layers or models, whose k probes are trained side by
side, each as it would be alone: all start from the same B and meet the same batches. Gold distances are (words, words),
depths (words,), both in edges. Losses are in edges too, correlations in [-1, 1], shares in [0, 1].

The authors build h_i − h_j for every pair, words × words × rank numbers; here G, words × words, takes their place. The
projected words of a sentence are taken from its first one, which changes no distance and keeps the digits that
differences keep, however far from 0 all words lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch.optim.adam import adam

from fivelenses.lenses.arrays import Array, as_tensor
from fivelenses.lenses.trees import Evaluation, check_gold, evaluate

START, TOLERANCE, DECAY, PATIENCE = 0.05, 1e-4, 0.1, 5

Sentences = tuple[Sequence[Array], Sequence[Array]]


@dataclass(frozen=True, eq=False)
class StructuralProbe:
    """k trained probes.

    Attributes:
        kind: what they predict, "distance" or "depth".
        projection: (k, d, rank) float32.
        history: a row per probe and epoch with the columns probe, epoch, learning_rate, training_loss,
            development_loss.
    """

    kind: Literal["distance", "depth"]
    projection: torch.Tensor
    history: pd.DataFrame

    def predict(self, vectors: Sequence[Array]) -> list[np.ndarray]:
        """Per sentence the squared distances (k, words, words), or the squared lengths (k, words), float32.

        Raises:
            ValueError: vectors that are not those of k probes of this width, or hold NaN or infinity.

        Example:
            >>> probe = StructuralProbe("distance", torch.eye(2)[None], pd.DataFrame())
            >>> probe.predict([np.array([[0.0, 0.0], [3.0, 4.0]])])[0].tolist()
            [[[0.0, 25.0], [25.0, 0.0]]]
        """
        sentences = _checked_vectors(vectors, "vectors")
        k, d, _ = self.projection.shape
        if sentences[0].shape[::2] != (k, d):
            raise ValueError(
                f"The vectors are of {sentences[0].shape[0]} layers of {sentences[0].shape[2]} features and the probes "
                f"of {k} of {d}: give what they were trained on."
            )
        predicted = []
        for sentence in sentences:
            words = sentence.to(self.projection.device, torch.float32) @ self.projection
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
            counted: per sentence (words,), False for words, such as punctuation, that neither spanning trees nor the
                choice of a root take in.

        Raises:
            ValueError: sentences that do not fit each other, or as :meth:`predict`.

        Example:
            >>> words = np.array([[0.0], [1.0], [2.0]])
            >>> probe = StructuralProbe("depth", torch.ones(1, 1, 1), pd.DataFrame())
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
        how: ``learning_rate`` (1e-3), ``batch_size`` (20 sentences), ``max_epochs`` (40), and ``device``, by default
            where the vectors are.

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
    """Train depth probes, as :func:`fit_distance`, on gold depths, (words,).

    They are those of :func:`~fivelenses.lenses.trees.tree_depths`.

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
    splits = []
    for name, (vectors, gold) in (("training", training), ("development", development)):
        sentences = _checked_vectors(vectors, f"{name} vectors")
        splits.append(
            (sentences, check_gold(kind, gold, [sentence.shape[1] for sentence in sentences], f"{name} gold"))
        )
    (sentences, gold), (held_out, held_out_gold) = splits
    k, _, d = sentences[0].shape
    if held_out[0].shape[::2] != (k, d):
        raise ValueError(
            f"The training vectors are {k} of {d} features and the development vectors {held_out[0].shape[0]} of "
            f"{held_out[0].shape[2]}: give the same layers of both."
        )
    rank = d if rank is None else rank
    if min(rank, batch_size, max_epochs) < 1:
        raise ValueError(f"rank = {rank}, batch_size = {batch_size}, max_epochs = {max_epochs}: give at least 1 each.")
    device = sentences[0].device if device is None else torch.device(device)
    random = torch.Generator().manual_seed(seed)
    start = torch.empty(d, rank).uniform_(-START, START, generator=random)
    projection = start.to(device).repeat(k, 1, 1)
    kept = projection.clone()
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
                _adam_step(
                    projection[i], gradient[i] / len(places), [m[i] for m in moments], steps[probe], rates[probe]
                )
        in_order = torch.arange(len(held_out)).split(batch_size)
        losses = sum(
            _batch(kind, projection, held_out, held_out_gold, places.tolist(), running)[0] for places in in_order
        )
        losses = (losses / len(held_out)).cpu().numpy()
        if not np.isfinite(losses).all():
            raise ValueError(f"Training diverged in epoch {epoch}: scale the vectors or the learning rate down.")
        seen = (total / len(sentences)).cpu().numpy()
        rows += zip(running.tolist(), [epoch] * len(running), rates[running], seen, losses, strict=True)
        improved = losses < best[running] - TOLERANCE
        kept[running[improved]] = projection[torch.from_numpy(improved).to(device)]
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
            chosen = torch.from_numpy(going).to(device)
            projection, moments, running = projection[chosen], [m[chosen] for m in moments], running[going]
    columns = ["probe", "epoch", "learning_rate", "training_loss", "development_loss"]
    history = pd.DataFrame(rows, columns=columns).sort_values(["probe", "epoch"], ignore_index=True)
    return StructuralProbe(kind, kept, history)


def _batch(
    kind: str,
    projection: torch.Tensor,
    sentences: list[torch.Tensor],
    gold: list[np.ndarray],
    places: list[int],
    running: np.ndarray,
    with_gradient: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The loss summed over some sentences, (running,), and its gradient (running, d, rank)."""
    device = projection.device
    # Words of all sentences end to end, so that no padding is multiplied.
    vectors = torch.cat([sentences[place] for place in places], 1).to(device, torch.float32)
    if len(running) < len(vectors):
        vectors = vectors[torch.from_numpy(running).to(device)]
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


def _distances(words: torch.Tensor) -> torch.Tensor:
    """Squared distances between rows, (…, words, words), exactly 0 on the diagonal."""
    gram = words @ words.transpose(-1, -2)
    squares = gram.diagonal(dim1=-2, dim2=-1)
    return (squares[..., None] + squares[..., None, :]).sub_(gram, alpha=2)


def _depths(words: torch.Tensor) -> torch.Tensor:
    return words.square().sum(-1)


def _adam_step(
    values: torch.Tensor, gradient: torch.Tensor, moments: list[torch.Tensor], steps: torch.Tensor, rate: float
) -> None:
    """One step of Adam in place, with torch's fused kernel, which counts in ``steps``."""
    adam(
        [values],
        [gradient],
        [moments[0]],
        [moments[1]],
        [],
        [steps],
        fused=True,
        amsgrad=False,
        beta1=0.9,
        beta2=0.999,
        lr=float(rate),
        weight_decay=0,
        eps=1e-8,
        maximize=False,
    )


def _checked_vectors(vectors: Sequence[Array], name: str) -> list[torch.Tensor]:
    """Sentences as (k, words, d)."""
    sentences = [as_tensor(sentence) for sentence in vectors]
    if not sentences:
        raise ValueError(f"The {name} hold no sentence: give at least one.")
    sentences = [sentence[None] if sentence.ndim == 2 else sentence for sentence in sentences]
    for place, sentence in enumerate(sentences):
        if sentence.ndim != 3 or 0 in sentence.shape or sentence.shape[::2] != sentences[0].shape[::2]:
            raise ValueError(
                f"Sentence {place} of the {name} has shape {tuple(sentence.shape)}, not (layers, words, features) "
                f"with the layers and features of the first, {tuple(sentences[0].shape)}."
            )
        # Single precision is what the probes see, in which a large double is infinite.
        if not sentence.is_floating_point() or not sentence.float().isfinite().all():
            raise ValueError(
                f"Sentence {place} of the {name} holds NaN, infinity in single precision, or no floating-point numbers."
            )
    return sentences
