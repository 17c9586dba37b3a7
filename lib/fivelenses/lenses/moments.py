r"""Second moments of several representations of the same tokens, gathered from a stream in memory that does not grow.

.. math::

    S_{ij} = \sum_t (x_{i,t} - \bar x_i)(x_{j,t} - \bar x_j)^\top
           = \sum_t (x_{i,t} - c_i)(x_{j,t} - c_j)^\top - \tfrac1n s_i s_j^\top,
    \qquad s_i = \sum_t (x_{i,t} - c_i),

shifted sums as in Chan, Golub and LeVeque 1983. The shift :math:`c_i` is the mean of the first block of rows, so that
features far from 0 lose no digits. :math:`x_i` is (n, dᵢ), :math:`S_{ij}` is (dᵢ, dⱼ); range: any real value.

Products are computed in float64. Single precision would take about half the time, but lose directions whose variance
is below about 1e-7 of the largest in the rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch

from fivelenses.lenses.arrays import Array, as_tensor


@dataclass(frozen=True, eq=False)
class Scatter:
    """Centred sums of products of a pair: xx (d₁, d₁), yy (d₂, d₂), xy (d₁, d₂), float64, over n rows."""

    n: int
    xx: torch.Tensor
    yy: torch.Tensor
    xy: torch.Tensor


class Moments:
    """Sums and second moments of representations of the same rows, gathered in one pass.

    Rows wait until there are ``block`` of them, so that the size of batches does not change the result, not even its
    rounding, as long as nothing is read or merged in between. Memory: a d × d matrix of float64 per representation and
    per pair (one more per pair with a null), and up to ``block`` waiting rows of each representation.

    Args:
        pairs: the representations to compare, by their position in :meth:`update`. The default is one pair; with
            ``((0, 1), (0, 2))`` the moments of the first of three representations are gathered once.
        null_seed: also gather each pair with the rows of its second side permuted (:meth:`null`). Rows are permuted
            within blocks, so that 1/``block`` of them stay where they are on average.
        block: rows multiplied and permuted at once; at least 2.

    Example:
        >>> moments = Moments()
        >>> for rows in torch.tensor([[1.0, 5.0], [3.0, 5.0], [2.0, 8.0], [2.0, 2.0]]).split(3):
        ...     moments.update(rows, -rows[:, :1])
        >>> moments.pair().xx.diagonal(), moments.pair().xy[:, 0]
        (tensor([ 2., 18.], dtype=torch.float64), tensor([-2.,  0.], dtype=torch.float64))
    """

    def __init__(
        self, pairs: Sequence[tuple[int, int]] = ((0, 1),), null_seed: int | None = None, block: int = 1024
    ) -> None:
        self.n = 0
        self.pairs, self.null_seed, self.block = tuple(pairs), null_seed, block
        self.sides = 1 + max(max(pair) for pair in self.pairs)
        self._random = None if null_seed is None else torch.Generator().manual_seed(null_seed)
        self._waiting: list[torch.Tensor] = []
        self._shifts: list[torch.Tensor] = []
        self._sums: list[torch.Tensor] = []
        self._products: dict[tuple[int, int], torch.Tensor] = {}
        self._null_products: dict[tuple[int, int], torch.Tensor] = {}

    @torch.inference_mode(False)
    def update(self, *representations: Array) -> None:
        """Add rows: (rows, d) of each representation, of any floating type; sums are kept on the rows' device.

        Refused, with nothing added: another number of representations or rows, other features than before, NaN.
        """
        if len(representations) != self.sides:
            raise ValueError(f"{len(representations)} representations were given and the pairs name {self.sides}.")
        tensors = [as_tensor(values) for values in representations]
        for side, rows in enumerate(tensors):
            check_representation(side, rows, tensors[0], self._waiting[side] if self._waiting else rows)
        if not self._waiting:
            self._waiting = _no_rows(tensors)
        first, n = 0, tensors[0].shape[0]
        while first < n:
            last = first + self.block - len(self._waiting[0])
            fresh = [rows[first:last] for rows in tensors]
            if len(self._waiting[0]):
                fresh = [torch.cat(both) for both in zip(self._waiting, fresh, strict=True)]
            if last <= n:
                self._waiting = _no_rows(fresh)
                self._absorb(fresh)
            else:
                # A copy, since the caller may overwrite its rows.
                self._waiting = [rows.clone() for rows in fresh]
            first = last

    @torch.inference_mode(False)
    def merge(self, other: Self) -> None:
        """Add the rows of another pass of the same pairs and widths, whose own result does not change."""
        self._finish()
        other._finish()
        if not other.n:
            return
        if not self.n:
            self._start([shift.clone() for shift in other._shifts])
            self._waiting = _no_rows(other._waiting)
        self._add(other, 1)

    @torch.inference_mode(False)
    def without(self, other: Self) -> "Moments":
        """The moments of these rows without those of another pass that was merged into this one; no null is kept.

        Products are subtracted, which costs digits only where the other rows hold nearly all of the variance.
        """
        self._finish()
        other._finish()
        if other.n >= self.n:
            raise ValueError(f"Of {self.n} rows, {other.n} cannot be left out: give a part of them.")
        rest = Moments(self.pairs, block=self.block)
        rest._start([shift.clone() for shift in self._shifts])
        rest._add(self, 1)
        if other.n:
            rest._add(other, -1)
        return rest

    def _add(self, other: Self, sign: int) -> None:
        """Add, or with −1 take away, sums and products of other rows, which may have other shifts."""
        moved = [second - first for first, second in zip(self._shifts, other._shifts, strict=True)]
        for own, others in ((self._products, other._products), (self._null_products, other._null_products)):
            for (i, j), products in own.items():
                # The other's rows minus this shift are those rows minus the other's shift, plus the shifts' difference.
                products.add_(others[i, j], alpha=sign).addr_(moved[i], moved[j], alpha=sign * other.n)
                products.addr_(other._sums[i], moved[j], alpha=sign).addr_(moved[i], other._sums[j], alpha=sign)
        for side, sums in enumerate(other._sums):
            self._sums[side].add_(sums, alpha=sign).add_(moved[side], alpha=sign * other.n)
        self.n += sign * other.n

    def pair(self, i: int = 0, j: int = 1) -> Scatter:
        """The scatter matrices of representations i (as x) and j (as y), neither of which is constant."""
        return self._scatter(i, j, self._products)

    def null(self, i: int = 0, j: int = 1) -> Scatter:
        """As :meth:`pair`, with the rows of j permuted, where there is a ``null_seed``."""
        return self._scatter(i, j, self._null_products)

    def _scatter(self, i: int, j: int, crossed: dict[tuple[int, int], torch.Tensor]) -> Scatter:
        self._finish()
        if not self.n:
            raise ValueError("No rows were given: update the moments before comparing.")
        crossed_scatter = torch.addr(crossed[i, j], self._sums[i], self._sums[j], alpha=-1 / self.n)
        return Scatter(self.n, self._own_scatter(i), self._own_scatter(j), crossed_scatter)

    def _own_scatter(self, side: int) -> torch.Tensor:
        sums = self._sums[side]
        scatter = torch.addr(self._products[side, side], sums, sums, alpha=-1 / self.n)
        mean = self._shifts[side] + sums / self.n
        # Equal rows leave only the rounding of their mean, 1e-16 of it.
        if scatter.trace() <= self.n * (1e-14 * mean).square().sum():
            raise ValueError(f"Representation {side} is constant: all {self.n} rows are equal.")
        return scatter.triu_().add_(scatter.triu(1).T)

    def _finish(self) -> None:
        """Add the rows that still wait."""
        if self._waiting and len(self._waiting[0]):
            rows, self._waiting = self._waiting, _no_rows(self._waiting)
            self._absorb(rows)

    def _start(self, shifts: list[torch.Tensor]) -> None:
        self._shifts = shifts
        self._sums = [torch.zeros_like(shift) for shift in shifts]
        for i, j in {(side, side) for pair in self.pairs for side in pair} | set(self.pairs):
            self._products[i, j] = shifts[i].new_zeros(shifts[i].shape[0], shifts[j].shape[0])
        if self._random is not None:
            self._null_products |= {pair: torch.zeros_like(self._products[pair]) for pair in self.pairs}

    @torch.inference_mode(False)
    def _absorb(self, rows: list[torch.Tensor]) -> None:
        """Add a block of rows; a representation's products with itself are only summed in the upper triangle."""
        if not self._shifts:
            self._start([side.mean(0, dtype=torch.float64) for side in rows])
        shifted = [side.double() - shift for side, shift in zip(rows, self._shifts, strict=True)]
        for side, sums in enumerate(self._sums):
            sums.add_(shifted[side].sum(0))
        for (i, j), products in self._products.items():
            if i == j:
                _add_upper_products(products, shifted[i])
            else:
                products.addmm_(shifted[i].T, shifted[j])
        if self._random is not None:
            order = torch.randperm(shifted[0].shape[0], generator=self._random).to(shifted[0].device)
            for (i, j), products in self._null_products.items():
                products.addmm_(shifted[i].T, shifted[j][order])
        self.n += shifted[0].shape[0]


def merged(folds: Sequence[Moments]) -> Moments:
    """The moments of the rows of all folds; those of the only one, itself."""
    if len(folds) == 1:
        return folds[0]
    whole = Moments(folds[0].pairs, folds[0].null_seed, folds[0].block)
    for fold in folds:
        whole.merge(fold)
    return whole


def scatter_of(x: Array | Moments | Scatter, y: Array | None = None) -> Scatter:
    """The scatter matrices of two arrays, or of the one pair of moments, refused if squares overflow."""
    if isinstance(x, Moments):
        if y is not None or len(x.pairs) > 1:
            raise ValueError(f"Moments of {len(x.pairs)} pairs hold both sides: give one pair alone, pair(i, j).")
        x = x.pair(*x.pairs[0])
    elif not isinstance(x, Scatter):
        if y is None:
            raise ValueError("A second representation is missing: give x and y, or moments.")
        moments = Moments()
        moments.update(x, y)
        x = moments.pair()
    if not all(part.isfinite().all() for part in (x.xx, x.yy, x.xy)):
        raise ValueError("The squares of these representations overflow double precision: scale them down.")
    return x


def bytes_needed(sides: int, pairs: int, width: int, null: bool = False, block: int = 1024) -> int:
    """Bytes that the moments of so many representations and pairs of one width take, from rows of single precision."""
    matrices = sides + pairs * (2 if null else 1)
    return 8 * matrices * width**2 + 4 * sides * block * width


def _add_upper_products(products: torch.Tensor, rows: torch.Tensor, columns: int = 256) -> None:
    """Add rowsᵀ rows to the upper triangle, some columns at a time, which takes little more than half of the work."""
    for first in range(0, rows.shape[1], columns):
        products[first : first + columns, first:].addmm_(rows[:, first : first + columns].T, rows[:, first:])


def check_representation(side: int, rows: torch.Tensor, first: torch.Tensor, before: torch.Tensor) -> None:
    """Refuse rows that are no representation, do not match those of the ``first``, or are not as wide as ``before``."""
    name = f"Representation {side}"
    if rows.ndim != 2 or 0 in rows.shape[1:]:
        raise ValueError(f"{name} has shape {tuple(rows.shape)}, not (rows, features).")
    if not rows.is_floating_point():
        raise ValueError(f"{name} holds {rows.dtype}, not floating-point numbers.")
    if len(rows) != len(first):
        raise ValueError(f"{name} has {len(rows)} rows and representation 0 has {len(first)}: give the same tokens.")
    if rows.shape[1] != before.shape[1]:
        raise ValueError(f"{name} has {rows.shape[1]} features, and had {before.shape[1]} before.")
    # The float64 sum of a network's activations is finite if and only if its terms are, and needs no copy.
    if not rows.sum(dtype=torch.float64).isfinite():
        broken = (~rows.isfinite().all(1)).nonzero()
        where = f"row {int(broken[0])}" if len(broken) else "its sum"
        raise ValueError(f"{name} holds NaN or infinity, first in {where}: check the model that computed it.")


def _no_rows(like: list[torch.Tensor]) -> list[torch.Tensor]:
    """Empty tensors of these widths, which do not keep the memory of the others alive."""
    return [rows.new_empty(0, rows.shape[1]) for rows in like]
