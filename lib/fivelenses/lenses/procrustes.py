r"""Orthogonal Procrustes distance: how far two representations of the same tokens stay apart after the best rotation.

For centred :math:`X` (n, d₁) and :math:`Y` (n, d₂), each scaled to Frobenius norm 1, the narrower one widened by zeros,

.. math::

    d(X, Y) = \min_{Q^\top Q = I} \Vert X - Y Q \Vert_F
            = \sqrt{2 - 2\, \frac{\Vert S_{xy} \Vert_*}{\sqrt{\operatorname{tr} S_{xx} \operatorname{tr} S_{yy}}}} ,

where :math:`S` are the scatter matrices and :math:`\Vert \cdot \Vert_*` is the sum of the singular values (Schönemann
1966; as a distance of representations, Ding et al. 2021, who take its square). It is a metric, so unlike CKA it obeys
the triangle inequality (Williams et al. 2021).

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order. Range: [0, √2]; 0 for representations that are
equal up to rotation, scaling and translation. The root makes rounding visible: equal ones may be 1e-7 apart.
"""

import math

import torch

from fivelenses.lenses.arrays import Array
from fivelenses.lenses.moments import Moments, Scatter


def procrustes_distance(x: Array | Scatter, y: Array | None = None) -> float:
    """The distance of two representations, in [0, √2].

    Args:
        x: (n, d₁), n ≥ 2; or, without ``y``, the :class:`~fivelenses.lenses.moments.Scatter` of a pair.
        y: (n, d₂) for the same rows.

    Raises:
        ValueError: a representation that does not vary, one whose squares overflow double precision, or what
            :meth:`~fivelenses.lenses.moments.Moments.update` refuses.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        >>> round(procrustes_distance(x, x[:, :1]), 4)
        0.7654
    """
    if isinstance(x, Scatter):
        if y is not None:
            raise ValueError("A scatter holds both representations already: give it alone.")
        scatter = x
    elif y is None:
        raise ValueError("A second representation is missing: give x and y, or a scatter.")
    else:
        moments = Moments()
        moments.update(x, y)
        scatter = moments.pair()
    norms = scatter.xx.trace().sqrt() * scatter.yy.trace().sqrt()
    if not (scatter.xy.isfinite().all() and norms.isfinite()):
        raise ValueError("The squares of these representations overflow double precision: scale them down.")
    similarity = float(torch.linalg.svdvals(scatter.xy).sum() / norms)
    return math.sqrt(max(0.0, 2 - 2 * similarity))
