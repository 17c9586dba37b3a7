"""Two streaming comparisons of hidden states that no chapter before has, in the form that `comparison` takes."""

from collections.abc import Sequence

import numpy as np
import torch

from fivelenses.activations import Activations
from fivelenses.comparison import Pair, bytes_in_folds
from fivelenses.lenses.cka import DebiasedCKA
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.similarities import mutual_neighbours, procrustes_distance


class Alignment:
    """Hidden states up to rotation and scaling; one column: `cka_debiased` (a similarity in [−1, 1]) or `procrustes`
    (a distance in [0, √2]).

    Args:
        column: which of the two.

    Raises:
        ValueError: another column.
    """

    reads_attention = False

    def __init__(self, column: str) -> None:
        if column not in ("cka_debiased", "procrustes"):
            raise ValueError(f"There is no column {column!r}: choose cka_debiased or procrustes.")
        self._column = column

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], heads: int, fold_of: np.ndarray) -> None:
        if fold_of.any():
            raise ValueError("These measures have no folds: compare without.")
        gathered = DebiasedCKA if self._column == "cka_debiased" else Moments
        self._of_layers = {layer: gathered(pairs) for layer in layers}

    def update(self, batches: Sequence[Activations]) -> None:
        for layer, gathered in self._of_layers.items():
            gathered.update(*(batch.tokens(layer) for batch in batches))

    def row(self, pair: Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        gathered = self._of_layers[layer]
        if isinstance(gathered, DebiasedCKA):
            return {self._column: gathered.similarity(*pair)}
        return {self._column: procrustes_distance(gathered.pair(*pair))}

    def bytes_per_layer(self, models: int, pairs: int, width: int, folds: int) -> int:
        return bytes_in_folds(models, pairs, width, folds, null=False)


class Neighbours:
    """Mutual nearest neighbours of a sample of tokens; column `neighbours`, a similarity in [0, 1].

    Args:
        positions: of the tokens in the stream, from :func:`fivelenses.lenses.rsa.sample_positions`; they are kept.
        k: neighbours of a token.
    """

    reads_attention = False

    def __init__(self, positions: np.ndarray, k: int) -> None:
        self._positions, self._k = torch.from_numpy(positions), k

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], heads: int, fold_of: np.ndarray) -> None:
        if fold_of.any():
            raise ValueError("These measures have no folds: compare without.")
        self._seen = 0
        self._tokens: dict[int, list[list[torch.Tensor]]] = {layer: [] for layer in layers}

    def update(self, batches: Sequence[Activations]) -> None:
        count = int(batches[0].mask.sum())
        here = self._positions[(self._positions >= self._seen) & (self._positions < self._seen + count)] - self._seen
        self._seen += count
        for layer, kept in self._tokens.items():
            kept.append([batch.tokens(layer)[here.to(batch.mask.device)] for batch in batches])

    def row(self, pair: Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        x, y = (torch.cat([batch[side] for batch in self._tokens[layer]]) for side in pair)
        return {"neighbours": mutual_neighbours(x, y, self._k)}

    def bytes_per_layer(self, models: int, pairs: int, width: int, folds: int) -> int:
        return 4 * models * len(self._positions) * width
