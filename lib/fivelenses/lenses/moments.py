r"""Second moments of several representations of the same tokens, gathered from a stream in memory that does not grow.

.. math::

    S_{ij} = \sum_t (x_{i,t} - \bar x_i)(x_{j,t} - \bar x_j)^\top
           = \sum_t (x_{i,t} - c_i)(x_{j,t} - c_j)^\top - \tfrac1n s_i s_j^\top,
    \qquad s_i = \sum_t (x_{i,t} - c_i),

shifted sums as in Chan, Golub and LeVeque 1983. The shift :math:`c_i` is the mean of the first block of rows, so that
features far from 0 lose no digits. :math:`x_i` is (n, dᵢ), :math:`S_{ij}` is (dᵢ, dⱼ).

Products are computed in float64. Single precision would take about half the time, but lose directions whose variance
is below about 1e-7 of the largest in the rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fivelenses.lenses.arrays import Array, as_tensor

ROWS_AT_ONCE = 1024  # that are multiplied and, for the null, permuted
COLUMNS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Scatter:
    """What n rows of a pair add up to, in float64: centred sums of products xx (d₁, d₁), yy (d₂, d₂) and xy (d₁, d₂),
    and the means x_mean (d₁,) and y_mean (d₂,).
    """

    n: int
    xx: torch.Tensor
    yy: torch.Tensor
    xy: torch.Tensor
    x_mean: torch.Tensor
    y_mean: torch.Tensor


class Moments:
    """Sums and second moments of representations of the same rows, gathered in one pass, 1024 rows at a time, so that
    the size of batches changes nothing as long as nothing is read in between.

    Args:
        pairs: the representations to compare, by their position in :meth:`update`.
        null_seed: also gather each pair with its second side permuted within blocks and folds (:meth:`null`).
        folds: parts of the rows, each of which :meth:`pair` can leave out; memory is so many times as large.

    Example:
        >>> moments = Moments()
        >>> for rows in torch.tensor([[1.0, 5.0], [3.0, 5.0], [2.0, 8.0], [2.0, 2.0]]).split(3):
        ...     moments.update(rows, -rows[:, :1])
        >>> moments.pair().xx.diagonal(), moments.pair().xy[:, 0]
        (tensor([ 2., 18.], dtype=torch.float64), tensor([-2.,  0.], dtype=torch.float64))
    """

    def __init__(
        self, pairs: Sequence[tuple[int, int]] = ((0, 1),), null_seed: int | None = None, folds: int = 1
    ) -> None:
        self.pairs = tuple(pairs)
        self._counts = [0] * folds
        self._orders = [] if null_seed is None else [torch.Generator().manual_seed(null_seed) for _ in range(folds)]
        self._waiting: list[list[torch.Tensor]] = []
        self._shifts: list[torch.Tensor] = []
        self._sums: list[torch.Tensor] = []
        self._products: dict[tuple[int, int], torch.Tensor] = {}
        self._null_products: dict[tuple[int, int], torch.Tensor] = {}

    @torch.inference_mode(False)
    def update(self, *representations: Array, fold_of: torch.Tensor | None = None) -> None:
        """Add rows: (rows, d) of each representation, of any floating type; sums are kept on their device. ``fold_of``,
        (rows,), is the fold of each, the first by default. Refused, with nothing added: different lengths, NaN.
        """
        rows = as_representations(representations)
        if not self._shifts:
            self._start(rows)
        if fold_of is None:
            self._add(0, rows)
            return
        # One sorting for all folds: to pick each fold's rows by a mask, a GPU would have to count them every time.
        order = fold_of.argsort(stable=True)
        counts = fold_of.bincount(minlength=len(self._counts)).tolist()
        in_turn = [side[order.to(side.device)].split(counts) for side in rows]
        for fold, of_fold in enumerate(zip(*in_turn, strict=True)):
            self._add(fold, of_fold)

    def _start(self, rows: list[torch.Tensor]) -> None:
        folds = len(self._counts)
        self._waiting = [[side[:0].clone() for side in rows] for _ in range(folds)]
        self._shifts = [side.new_zeros(side.shape[1], dtype=torch.float64) for side in rows]
        self._sums = [shift.new_zeros(folds, len(shift)) for shift in self._shifts]
        for i, j in {(side, side) for pair in self.pairs for side in pair} | set(self.pairs):
            self._products[i, j] = self._sums[i].new_zeros(folds, rows[i].shape[1], rows[j].shape[1])
        if self._orders:
            self._null_products = {pair: torch.zeros_like(self._products[pair]) for pair in self.pairs}

    def _add(self, fold: int, rows: Sequence[torch.Tensor]) -> None:
        if len(self._waiting[fold][0]):
            rows = [torch.cat(both) for both in zip(self._waiting[fold], rows, strict=True)]
        whole = len(rows[0]) // ROWS_AT_ONCE * ROWS_AT_ONCE
        for first in range(0, whole, ROWS_AT_ONCE):
            self._absorb(fold, [side[first : first + ROWS_AT_ONCE] for side in rows])
        # A copy, since the caller may overwrite its rows.
        self._waiting[fold] = [side[whole:].clone() for side in rows]

    def _absorb(self, fold: int, rows: list[torch.Tensor]) -> None:
        """Add a block of rows."""
        if not any(self._counts):
            self._shifts = [side.mean(0, dtype=torch.float64) for side in rows]
        shifted = [side.double() - shift for side, shift in zip(rows, self._shifts, strict=True)]
        for sums, side in zip(self._sums, shifted, strict=True):
            sums[fold] += side.sum(0)
        for (i, j), products in self._products.items():
            # Of a side's own products only the upper triangle, some columns at a time: little more than half the work.
            columns = COLUMNS_AT_ONCE if i == j else shifted[i].shape[1]
            for first in range(0, shifted[i].shape[1], columns):
                left, right = shifted[i][:, first : first + columns], shifted[j][:, first:]
                products[fold, first : first + columns, first:].addmm_(left.T, right)
        if self._orders:
            order = torch.randperm(len(rows[0]), generator=self._orders[fold]).to(rows[0].device)
            for (i, j), products in self._null_products.items():
                products[fold].addmm_(shifted[i].T, shifted[j][order])
        self._counts[fold] += len(rows[0])

    def pair(self, i: int = 0, j: int = 1, left_out: int | None = None) -> Scatter:
        """What the rows of representations i (as x) and j (as y) add up to, all of them or those outside one fold."""
        return self._scatter(i, j, self._products, left_out)

    def null(self, i: int = 0, j: int = 1) -> Scatter:
        """As :meth:`pair`, with the rows of j permuted, where there is a ``null_seed``."""
        return self._scatter(i, j, self._null_products, None)

    @torch.inference_mode(False)
    def _scatter(self, i: int, j: int, crossed: dict, left_out: int | None) -> Scatter:
        for fold, waiting in enumerate(self._waiting):
            if len(waiting[0]):
                self._waiting[fold] = [side[:0].clone() for side in waiting]
                self._absorb(fold, waiting)
        folds = [fold for fold in range(len(self._counts)) if fold != left_out]
        n = sum(self._counts[fold] for fold in folds)
        if not n:
            raise ValueError("There are no rows to compare: give more.")
        x, y = (self._sums[side][folds].sum(0) / n for side in (i, j))

        def centred(products: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            # Taking one fold away costs digits only where it holds nearly all of the variance.
            rest = products.sum(0) if left_out is None else products.sum(0).sub_(products[left_out])
            return rest.addr_(one, other, alpha=-n)

        xx, yy = centred(self._products[i, i], x, x), centred(self._products[j, j], y, y)
        for own in (xx, yy):
            own.triu_().add_(own.triu(1).T)
        xy = xx if i == j and crossed is self._products else centred(crossed[i, j], x, y)
        return Scatter(n, xx, yy, xy, self._shifts[i] + x, self._shifts[j] + y)


def scatter_of(x: Array | Scatter, y: Array | None = None) -> Scatter:
    """The scatter matrices of two arrays, or those given; refused if a side is constant or its squares overflow."""
    if not isinstance(x, Scatter):
        moments = Moments()
        moments.update(x, y)
        x = moments.pair()
    for name, own, mean in (("first", x.xx, x.x_mean), ("second", x.yy, x.y_mean)):
        if not own.isfinite().all():
            raise ValueError(f"Squares of the {name} representation overflow double precision: scale it down.")
        # Equal rows leave only the rounding of their mean, 1e-16 of it.
        if own.trace() <= x.n * (1e-14 * mean).square().sum():
            raise ValueError(f"The {name} representation is constant: all its {x.n} rows are equal.")
    return x


def bytes_needed(sides: int, pairs: int, width: int, folds: int = 1, null: bool = False) -> int:
    """Bytes that moments take: those of each fold, with its waiting rows in single precision, and of a pair read."""
    matrices = sides + pairs * (2 if null else 1)
    return folds * (8 * matrices * width**2 + 4 * sides * ROWS_AT_ONCE * width) + 3 * 8 * width**2


def as_representations(values: Sequence[Array]) -> list[torch.Tensor]:
    """Tensors of representations of the same tokens, (rows, features) each; anything else is refused."""
    tensors = [as_tensor(rows) for rows in values]
    for side, rows in enumerate(tensors):
        name = f"Representation {side}"
        if rows.ndim != 2 or not rows.shape[1]:
            raise ValueError(f"{name} has shape {tuple(rows.shape)}, not (rows, features).")
        if not rows.is_floating_point():
            raise ValueError(f"{name} holds {rows.dtype}, not floating-point numbers.")
        if len(rows) != len(tensors[0]):
            raise ValueError(
                f"{name} has {len(rows)} rows and representation 0 has {len(tensors[0])}: give the same tokens."
            )
        # The float64 sum of a network's activations is finite if and only if its terms are, and needs no copy.
        if not rows.sum(dtype=torch.float64).isfinite():
            row = int((~rows.isfinite().all(1)).int().argmax())
            raise ValueError(f"{name} holds NaN, infinity or too large numbers, first in row {row}: check the model.")
    return tensors
