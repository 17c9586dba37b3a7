r"""Debiased linear CKA: how similar two representations of the same tokens are, without what few tokens feign.

Linear CKA of independent data with d features is about d / (n + d) at n rows, not 0. Its debiased form (Kornblith et
al. 2019 with the unbiased estimator of Song et al. 2012; Nguyen et al. 2021) takes each kernel :math:`K = X X^\top`
without its diagonal. For centred :math:`X` (n, d₁) and :math:`Y` (n, d₂),

.. math::

    \langle X, Y \rangle = \Vert X^\top Y \Vert_F^2
        - \frac{n}{n - 2} \sum_i \Vert x_i \Vert^2 \Vert y_i \Vert^2
        + \frac{\Vert X \Vert_F^2 \, \Vert Y \Vert_F^2}{(n - 1)(n - 2)},
    \qquad
    \mathrm{CKA} = \frac{\langle X, Y \rangle}{\sqrt{\langle X, X \rangle \langle Y, Y \rangle}} .

This is the cosine of the two kernels after U-centring, an inner product (Székely and Rizzo 2014). So the range is
[-1, 1]: 1 for representations that are equal up to rotation, scaling and translation, 0 on average for independent
ones, whatever n. Three rows or fewer leave nothing after U-centring.

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order. All sums are gathered in one pass, in memory
that does not grow: rows are shifted by the mean of the first batch, and the sums over squared lengths of rows are
centred afterwards.
"""

from collections.abc import Sequence

import torch

from fivelenses.lenses.arrays import Array, as_tensor
from fivelenses.lenses.moments import check_rows

MIN_ROWS = 4
# A kernel whose U-centred square is below this share of its plain one is constant up to rounding.
RELATIVE_TOLERANCE = 1e-13


class DebiasedCKA:
    """Debiased linear CKA of several representations of the same rows, gathered from a stream.

    Args:
        pairs: the representations compared, by their position in :meth:`update`.

    Raises:
        ValueError: no pair, or a negative position.

    Example:
        >>> x = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
        >>> cka = DebiasedCKA()
        >>> for rows in x.split(7):
        ...     cka.update(rows, 3 - 2 * rows)
        >>> round(cka.similarity(), 6)
        1.0
    """

    def __init__(self, pairs: Sequence[tuple[int, int]] = ((0, 1),)) -> None:
        if not pairs or any(min(pair) < 0 for pair in pairs):
            raise ValueError(f"pairs = {pairs} must each name two representations by their positions 0, 1, ….")
        self.n, self.pairs = 0, tuple(pairs)
        self._sides = 1 + max(max(pair) for pair in self.pairs)
        self._every = {(side, side) for pair in self.pairs for side in pair} | set(self.pairs)
        self._shifts: list[torch.Tensor] = []
        self._first: list[torch.Tensor] = []
        self._sums: dict = {}

    @torch.inference_mode(False)
    def update(self, *representations: Array) -> None:
        """Add rows: (rows, d) of each representation, of any floating type.

        Raises:
            ValueError: a wrong number of representations, or what :meth:`~fivelenses.lenses.moments.Moments.update`
                refuses. Then nothing is added.
        """
        if len(representations) != self._sides:
            raise ValueError(f"{len(representations)} representations were given and the pairs name {self._sides}.")
        tensors = [as_tensor(values) for values in representations]
        for side, rows in enumerate(tensors):
            check_rows(side, rows, tensors[0], self._first[side] if self._first else rows)
        if not len(tensors[0]):
            return
        if not self._shifts:
            self._first = [rows[:0].clone() for rows in tensors]
            self._shifts = [rows.mean(0, dtype=torch.float64) for rows in tensors]
        shifted = [rows.double() - shift for rows, shift in zip(tensors, self._shifts, strict=True)]
        squares = [rows.square().sum(1) for rows in shifted]
        for side, rows in enumerate(shifted):
            self._add(("rows", side), rows.sum(0))
            self._add(("squares", side), squares[side].sum())
        for i, j in self._every:
            self._add(("products", i, j), shifted[i].T @ shifted[j])
            self._add(("lengths", i, j), squares[i] @ squares[j])
            self._add(("weighted", i, j), squares[i] @ shifted[j])
            self._add(("weighted", j, i), squares[j] @ shifted[i], i != j)
        self.n += len(tensors[0])

    def _add(self, key: tuple, value: torch.Tensor, wanted: bool = True) -> None:
        if wanted:
            self._sums[key] = self._sums[key] + value if key in self._sums else value

    def similarity(self, i: int = 0, j: int = 1) -> float:
        """Debiased linear CKA of representations i and j, in [-1, 1]; exactly 1 of equal ones.

        Raises:
            ValueError: a pair that was not gathered, fewer than four rows, or a representation whose rows have equal
                products, such as a constant one.
        """
        if (i, j) not in self.pairs:
            raise ValueError(f"The pair {(i, j)} was not gathered, only {', '.join(map(str, self.pairs))}.")
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


def debiased_linear_cka(x: Array, y: Array) -> float:
    """Debiased linear CKA of two representations, in [-1, 1].

    Args:
        x, y: (n, d₁) and (n, d₂), n ≥ 4.

    Raises:
        ValueError: as :meth:`DebiasedCKA.update` and :meth:`DebiasedCKA.similarity`.

    Example:
        >>> x = torch.randn(12, 50, generator=torch.Generator().manual_seed(0))
        >>> debiased_linear_cka(x, x)
        1.0
    """
    cka = DebiasedCKA()
    cka.update(x, y)
    return cka.similarity()
