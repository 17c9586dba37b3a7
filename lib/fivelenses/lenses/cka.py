r"""Linear CKA: how similar two representations of the same tokens are up to a rotation, and its debiased form.

With centred :math:`X` (n, d₁) and :math:`Y` (n, d₂), and their scatter matrices :math:`S`,

.. math::

    \mathrm{linear\ CKA} = \frac{\Vert S_{xy} \Vert_F^2}{\Vert S_{xx} \Vert_F \Vert S_{yy} \Vert_F}

(Kornblith et al. 2019). At n rows, independent white data have about d / (n + d), not 0. The debiased form (with the
unbiased estimator of Song et al. 2012; Nguyen et al. 2021) takes each kernel :math:`K = X X^\top` without its diagonal:

.. math::

    \langle X, Y \rangle = \Vert X^\top Y \Vert_F^2
        - \frac{n}{n - 2} \sum_i \Vert x_i \Vert^2 \Vert y_i \Vert^2
        + \frac{\Vert X \Vert_F^2 \, \Vert Y \Vert_F^2}{(n - 1)(n - 2)},
    \qquad
    \mathrm{CKA} = \frac{\langle X, Y \rangle}{\sqrt{\langle X, X \rangle \langle Y, Y \rangle}} .

This is the cosine of the two kernels after U-centring, an inner product (Székely and Rizzo 2014). So its range is
[-1, 1], and independent data have 0 on average, whatever n; that of linear CKA is [0, 1]. Both are 1 for
representations that are equal up to rotation, scaling and translation, and refuse fewer than four rows.

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order. All sums are gathered in one pass, in memory
that does not grow: rows are shifted by the mean of the first batch, and the sums over squared lengths of rows are
centred afterwards.
"""

from collections import defaultdict
from collections.abc import Sequence

import torch

from fivelenses.lenses.arrays import Array, as_tensor
from fivelenses.lenses.cca import warn_of_few_rows
from fivelenses.lenses.moments import Moments, Scatter, check_representation, scatter_of

MIN_ROWS = 4
# A kernel whose U-centred square is below this share of its plain one is constant up to rounding.
RELATIVE_TOLERANCE = 1e-13


def linear_cka(x: Array | Moments | Scatter, y: Array | None = None) -> float:
    """Linear CKA, a similarity in [0, 1].

    Args:
        x: (n, d₁), n ≥ 4; or, without ``y``, the :class:`Moments` of one pair or the :class:`Scatter` of a pair. Fewer
            than 10 × max(d₁, d₂) rows raise a warning.
        y: (n, d₂) for the same rows.

    Example:
        >>> x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
        >>> round(linear_cka(x, -2 * x), 6)
        1.0
    """
    scatter = scatter_of(x, y)
    if scatter.n < MIN_ROWS:
        raise ValueError(f"n = {scatter.n} rows are too few for CKA, which is 1 for any two rows: give at least 4.")
    warn_of_few_rows(scatter)
    # Each side in units of its own largest entry: squares of second moments overflow long before the moments do.
    (xx, unit_x), (yy, unit_y) = ((own / own.abs().max(), own.abs().max().sqrt()) for own in (scatter.xx, scatter.yy))
    shared = (scatter.xy / unit_x / unit_y).square().sum()
    # Bounded by Cauchy and Schwarz, so that only the rounding of the last digit is cut.
    return min(1.0, float(shared / (xx.norm() * yy.norm())))


def debiased_linear_cka(x: Array, y: Array) -> float:
    """Debiased linear CKA of two representations, (n, d₁) and (n, d₂) with n ≥ 4, in [-1, 1].

    Example:
        >>> x = torch.randn(12, 50, generator=torch.Generator().manual_seed(0))
        >>> debiased_linear_cka(x, x)
        1.0
    """
    cka = DebiasedCKA()
    cka.update(x, y)
    return cka.similarity()


class DebiasedCKA:
    """Debiased linear CKA of several representations of the same rows, gathered from a stream.

    ``pairs`` are the representations compared, by their position in :meth:`update`.

    Example:
        >>> x = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
        >>> cka = DebiasedCKA()
        >>> for rows in x.split(7):
        ...     cka.update(rows, 3 - 2 * rows)
        >>> round(cka.similarity(), 6)
        1.0
    """

    def __init__(self, pairs: Sequence[tuple[int, int]] = ((0, 1),)) -> None:
        self.n, self.pairs = 0, tuple(pairs)
        self._every = {(side, side) for pair in self.pairs for side in pair} | set(self.pairs)
        self._shifts: list[torch.Tensor] = []
        self._first: list[torch.Tensor] = []
        self._sums: dict = defaultdict(float)

    @torch.inference_mode(False)
    def update(self, *representations: Array) -> None:
        """Add rows: (rows, d) of each representation, of any floating type; nothing is added of what is refused."""
        sides = 1 + max(max(pair) for pair in self.pairs)
        if len(representations) != sides:
            raise ValueError(f"{len(representations)} representations were given and the pairs name {sides}.")
        tensors = [as_tensor(values) for values in representations]
        for side, rows in enumerate(tensors):
            check_representation(side, rows, tensors[0], self._first[side] if self._first else rows)
        if not len(tensors[0]):
            return
        if not self._shifts:
            self._first = [rows[:0].clone() for rows in tensors]
            self._shifts = [rows.mean(0, dtype=torch.float64) for rows in tensors]
        shifted = [rows.double() - shift for rows, shift in zip(tensors, self._shifts, strict=True)]
        squares = [rows.square().sum(1) for rows in shifted]
        for side, rows in enumerate(shifted):
            self._sums["rows", side] += rows.sum(0)
            self._sums["squares", side] += squares[side].sum()
        for i, j in self._every:
            self._sums["products", i, j] += shifted[i].T @ shifted[j]
            self._sums["lengths", i, j] += squares[i] @ squares[j]
            self._sums["weighted", i, j] += squares[i] @ shifted[j]
            if i != j:
                self._sums["weighted", j, i] += squares[j] @ shifted[i]
        self.n += len(tensors[0])

    def similarity(self, i: int = 0, j: int = 1) -> float:
        """Debiased linear CKA of representations i and j, in [-1, 1]; exactly 1 of equal ones."""
        if self.n < MIN_ROWS:
            raise ValueError(f"Debiased CKA needs at least {MIN_ROWS} rows, not {self.n}: give more tokens.")
        itself = [self._inner(side, side) for side in (i, j)]
        for side, (value, plain) in zip((i, j), itself, strict=True):
            if not value > RELATIVE_TOLERANCE * plain:
                raise ValueError(f"Representation {side} does not vary over its {self.n} rows: its kernel is constant.")
        # Roots before the product: squares of second moments overflow long before the moments do.
        value = float(self._inner(i, j)[0] / itself[0][0].sqrt() / itself[1][0].sqrt())
        if not -2 < value < 2:
            raise ValueError("The squares of these representations overflow double precision: scale them down.")
        # Bounded by Cauchy and Schwarz: only the rounding of the last digits is cut.
        return min(1.0, max(-1.0, value)) if abs(value - 1) > 1e-15 else 1.0

    def _inner(self, i: int, j: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The debiased inner product of two centred representations, and its first term."""
        n, sums = self.n, self._sums
        x, y = sums["rows", i] / n, sums["rows", j] / n
        crossed = sums["products", i, j] - n * torch.outer(x, y)
        squares_x, squares_y = sums["squares", i], sums["squares", j]
        (of_x, of_y), products = (x @ x, y @ y), sums["products", i, j]
        # The sum over rows of (a − 2 x·row + |x|²)(b − 2 y·row + |y|²), a and b the squared lengths of shifted rows.
        lengths = (
            sums["lengths", i, j]
            - 2 * (y @ sums["weighted", i, j] + x @ sums["weighted", j, i])
            + 4 * x @ products @ y
            + of_y * squares_x
            + of_x * squares_y
            - 3 * n * of_x * of_y
        )
        total = (squares_x - n * of_x) * (squares_y - n * of_y)
        plain = crossed.square().sum()
        return plain - n / (n - 2) * lengths + total / ((n - 1) * (n - 2)), plain
