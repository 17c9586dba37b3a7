r"""Representational similarity analysis (RSA): whether the same pairs of tokens are similar in two representations.

.. math::

    \mathrm{RSA}(X, Y) = \operatorname{Pearson}_{i < j}(\hat x_i \cdot \hat x_j,\ \hat y_i \cdot \hat y_j),
    \qquad \hat x = x / \Vert x \Vert,

the correlation of the strict upper triangles of the two cosine kernels of the same n tokens (Kriegeskorte et al. 2008;
with this kernel, Merchant et al. 2020). Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order. Range:
[-1, 1]; 1 if one is the other rotated and scaled, possibly with a factor per token, and about 0 if they are
independent. Translation changes it, since a cosine is taken from the origin.

No kernel is computed. With the mean :math:`c` of the unit rows and their centred scatter matrices :math:`S`, the
cosines, less their mean over all n² pairs, are :math:`u_i \cdot u_j + c \cdot u_i + c \cdot u_j` for
:math:`u = \hat x - c`; since the u sum to 0, their products over all pairs add up to

.. math::

    T_{xy} = \Vert S_{xy} \Vert_F^2 + 2 n\, c_x^\top S_{xy}\, c_y,

and without the diagonal, whose cosines are 1, that is :math:`\delta = 1 - \Vert c \Vert^2` above that mean,

.. math::

    \mathrm{RSA} = \frac{R_{xy}}{\sqrt{R_{xx} R_{yy}}}, \qquad
    R_{xy} = T_{xy} - \tfrac{n^2}{n - 1} \delta_x \delta_y.

So we store three d × d matrices of float64, whatever n; no large numbers cancel, and the result agrees with that of the
two full kernels to about ten digits. The paper takes 5 000 tokens, a stream may take all. Tokens gathered in folds give
the RSA of those outside any one fold, from n, S and c of the others: no pair with a token of that fold counts.
"""

from collections.abc import Sequence

import numpy as np
import torch

from fivelenses.lenses.arrays import Array, as_array, as_tensor
from fivelenses.lenses.moments import Moments, Scatter, check_representation, merged

# Cosines that deviate by less than this are equal up to the rounding of single precision.
EQUAL_COSINES = 1e-12

# Rows whose copies in double precision are held at once.
ROWS_AT_ONCE = 1024


def sample_positions(total: int, sample: int | None = 5000, seed: int = 0) -> np.ndarray:
    """Positions of tokens drawn uniformly without replacement, in order, the same in every model's stream.

    Args:
        total: tokens to draw from, without padding; the caller decides whether special tokens are among them.
        sample: tokens to draw; all if there are no more, and with None.
        seed: of the draw.

    Returns:
        (min(sample, total),) increasing, from 0 to total - 1. A sample below 3 has too few pairs and is refused.

    Example:
        >>> sample_positions(10, 4), sample_positions(3)
        (array([2, 4, 5, 7]), array([0, 1, 2]))
    """
    if total < 1:
        raise ValueError(f"total = {total}: there is no token to draw.")
    if sample is not None and sample < 3:
        raise ValueError(f"sample = {sample} is too small: a correlation over pairs needs at least 3 tokens.")
    if sample is None or sample >= total:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, sample, replace=False))


class RSAAccumulator:
    """RSA of several representations of the same tokens, gathered from a stream in memory that does not grow.

    Args:
        pairs: the representations to compare, by their position in :meth:`update`.
        positions: increasing positions in the stream of the tokens to take, from :func:`sample_positions`; every token
            by default.
        null_seed: also gather each pair with the rows of its second side permuted (:meth:`null`), within blocks of
            1024 rows of the sample, and within folds.
        folds: parts in which tokens are gathered, of which one can be left out; memory is so many times as large.

    Example:
        >>> x = torch.randn(100, 8, generator=torch.Generator().manual_seed(0))
        >>> rsa = RSAAccumulator(positions=sample_positions(100, 50))
        >>> for rows in x.split(30):
        ...     rsa.update(rows, -3 * rows)
        >>> rsa.n, round(rsa.similarity(), 6)
        (50, 1.0)
    """

    def __init__(
        self,
        pairs: Sequence[tuple[int, int]] = ((0, 1),),
        positions: Array | None = None,
        null_seed: int | None = None,
        folds: int = 1,
    ) -> None:
        self._folds = [Moments(pairs, null_seed) for _ in range(folds)]
        self._read: dict[int | None, Moments] = {}
        self._sums: list[torch.Tensor] = []
        self._positions = None if positions is None else as_array(positions)
        self._seen = 0

    @property
    def n(self) -> int:
        """Tokens taken so far."""
        return self._seen if self._positions is None else int(np.searchsorted(self._positions, self._seen))

    def update(self, *representations: Array, fold_of: torch.Tensor | None = None) -> None:
        """Add a batch: (rows, d) of each representation, of any floating type, computed on the rows' device.

        ``fold_of``, (rows,), is the fold of each token, the first by default. Nothing is added of what is refused: rows
        that do not fit each other, NaN or infinity, and a zero vector, which has no cosine.
        """
        sides = self._folds[0].sides
        if len(representations) != sides:
            raise ValueError(f"{len(representations)} representations were given and the pairs name {sides}.")
        tensors = [as_tensor(rows) for rows in representations]
        for side, rows in enumerate(tensors):
            check_representation(side, rows, tensors[0], self._sums[side] if self._sums else rows)
            _refuse_zero_vectors(side, rows, self._seen)
        if not self._sums:
            self._sums = [rows.new_zeros(len(self._folds), rows.shape[1], dtype=torch.float64) for rows in tensors]
        self._read, taken = {}, self._taken(len(tensors[0]))
        folds = torch.zeros(len(taken), dtype=torch.int64) if fold_of is None else fold_of.cpu()[taken]
        for fold in folds.unique().tolist():
            for block in taken[folds == fold].split(ROWS_AT_ONCE):
                unit = [_unit(rows[block.to(rows.device)]) for rows in tensors]
                self._folds[fold].update(*unit)
                for sums, rows in zip(self._sums, unit, strict=True):
                    sums[fold] += rows.sum(0)
        self._seen += len(tensors[0])

    def similarity(self, i: int = 0, j: int = 1, left_out: int | None = None) -> float:
        """RSA between representations i and j, in [-1, 1], of all tokens taken or of those outside one fold.

        Refused: fewer than 3 tokens, a stream that ended before the last position, and cosines that are all equal.
        """
        self._check_complete(i, j)
        scatter = self._moments(left_out).pair(i, j)
        if scatter.n < 3:
            raise ValueError(f"Outside fold {left_out} there are {scatter.n} tokens: a correlation needs at least 3.")
        return _correlation(scatter, *self._means(left_out, scatter.n, i, j))

    def null(self, i: int = 0, j: int = 1) -> float:
        """As :meth:`similarity`, with the rows of j permuted, where there is a ``null_seed``."""
        self._check_complete(i, j)
        return _correlation(self._moments(None).null(i, j), *self._means(None, self.n, i, j))

    def taken(self, left_out: int | None = None) -> int:
        """Tokens taken outside one fold."""
        return self.n if left_out is None else self._moments(left_out).n

    def _moments(self, left_out: int | None) -> Moments:
        """The moments of all folds but one, kept until those of another are asked for."""
        if None not in self._read:
            self._read = {None: merged(self._folds)}
        whole = self._read[None]
        if left_out not in self._read:
            self._read = {None: whole, left_out: whole.without(self._folds[left_out])}
        return self._read[left_out]

    def _means(self, left_out: int | None, n: int, *sides: int) -> list[torch.Tensor]:
        kept = [fold for fold in range(len(self._folds)) if fold != left_out]
        return [self._sums[side][kept].sum(0) / n for side in sides]

    def _taken(self, rows: int) -> torch.Tensor:
        """Positions, in a batch of this many rows, of the rows to take."""
        if self._positions is None:
            return torch.arange(rows)
        first, last = np.searchsorted(self._positions, [self._seen, self._seen + rows])
        return torch.from_numpy(self._positions[first:last] - self._seen)

    def _check_complete(self, i: int, j: int) -> None:
        if self._positions is not None and self._seen <= self._positions[-1]:
            raise ValueError(
                f"The stream ended after {self._seen} tokens, before position {self._positions[-1]} of the sample: "
                "draw positions from as many tokens as there are."
            )
        if self.n < 3:
            raise ValueError(f"n = {self.n} tokens are too few: a correlation over pairs needs at least 3.")
        for side in {i, j} & set(range(len(self._sums))):
            if 1 - float((self._sums[side].sum(0) / self.n).square().sum()) < EQUAL_COSINES:
                raise ValueError(
                    f"All rows of representation {side} point the same way: their cosines do not vary, so there is "
                    "nothing to correlate."
                )


def similarity(x: Array, y: Array, sample: int | None = 5000, seed: int = 0) -> float:
    """RSA of two representations over a sample of their rows, in [-1, 1].

    Args:
        x, y: (n, d₁) and (n, d₂) of the same tokens.
        sample: tokens drawn, the same for both; all if n is not larger, and with None.
        seed: of the draw.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((100, 4))
        >>> round(similarity(x, 2 * x[:, ::-1]), 6), round(similarity(x, x + 3), 1)
        (1.0, 0.5)
    """
    x = as_tensor(x)
    rsa = RSAAccumulator(positions=sample_positions(x.numel() and len(x), sample, seed))
    rsa.update(x, y)
    return rsa.similarity()


def _refuse_zero_vectors(side: int, rows: torch.Tensor, before: int) -> None:
    """``before`` is the number of rows of the stream before these."""
    zero = _largest(rows) == 0
    if zero.any():
        raise ValueError(
            f"Representation {side} is the zero vector in row {before + int(zero.int().argmax())}: "
            "it has no cosine, so leave this token out."
        )


def _largest(rows: torch.Tensor) -> torch.Tensor:
    """The largest absolute entry of each row."""
    least, most = rows.aminmax(dim=1)
    return torch.maximum(-least, most)


def _unit(rows: torch.Tensor) -> torch.Tensor:
    """Rows of length 1 in float64; divided by their largest entry first, so that no square overflows or vanishes."""
    rows = rows.double()
    rows = rows / _largest(rows)[:, None]
    return rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True)


def _correlation(scatter: Scatter, mean_x: torch.Tensor, mean_y: torch.Tensor) -> float:
    """The Pearson correlation of the strict upper triangles, from the moments of the unit rows."""
    n = scatter.n
    above_x, above_y = (float(own.trace()) / n for own in (scatter.xx, scatter.yy))

    def over_pairs(products: torch.Tensor, means: tuple[torch.Tensor, torch.Tensor], diagonal: float) -> float:
        all_pairs = float(products.square().sum() + 2 * n * (means[0] @ products @ means[1]))
        return all_pairs - diagonal * n**2 / (n - 1)

    spreads = []
    for side, (own, mean, above) in enumerate(((scatter.xx, mean_x, above_x), (scatter.yy, mean_y, above_y))):
        spread = over_pairs(own, (mean, mean), above**2)
        # If all cosines are equal, two sums of about n δ² cancel.
        if spread <= max((n * EQUAL_COSINES) ** 2, 1e-12 * n * above**2):
            raise ValueError(f"All cosines of side {side} of the pair are equal: there is nothing to correlate.")
        spreads.append(spread)
    together = over_pairs(scatter.xy, (mean_x, mean_y), above_x * above_y)
    # Bounded by Cauchy and Schwarz, so that only the rounding of the last digit is cut.
    return float(np.clip(together / np.sqrt(spreads[0] * spreads[1]), -1, 1))
