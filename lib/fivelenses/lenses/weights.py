r"""How far the weights of each layer have moved.

For a projection with weight matrix :math:`W` before and :math:`W'` after fine-tuning, the distance is the Frobenius
norm

.. math:: d(W, W') = \lVert W - W' \rVert_F ,

and relative to the scale of the original weights, :math:`d(W, W') / \lVert W \rVert_F`. The absolute distance grows
with the size of a matrix, so that only the relative one compares sub-layers of different shapes.

Shapes: (L, P) for L layers and P = 6 projections each. Range: [0, ∞); 0 for equal weights.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import nn

from fivelenses.models.layers import PARTS, layer_list, projections


@dataclass(frozen=True)
class WeightDistance:
    """Distances between the projections of two models.

    Attributes:
        parts: the names of the P = 6 projections of a layer.
        absolute: (L, P) Frobenius norm of the difference; row 0 is layer 1.
        relative: (L, P) the same, divided by the norm of the first model's weight.
    """

    parts: tuple[str, ...]
    absolute: np.ndarray
    relative: np.ndarray


@torch.no_grad()
def distance(pretrained: nn.Module, fine_tuned: nn.Module) -> WeightDistance:
    """Distance of every projection of every layer between two models of one architecture; heads are not compared.

    Norms are computed in double precision, whatever the precision of the weights. Refused: different depths or shapes,
    an architecture without known projections, a weight that is not finite, or an original one that is zero throughout.

    """
    depth, other = len(layer_list(pretrained)), len(layer_list(fine_tuned))
    if depth != other:
        raise ValueError(f"The models have {depth} and {other} layers: only equally deep ones have a distance.")
    absolute, norms = np.empty((2, depth, len(PARTS)))
    for layer, (column, name) in product(range(depth), enumerate(PARTS)):
        first, second = (
            projections(model, layer + 1)[name].weight.double().cpu() for model in (pretrained, fine_tuned)
        )
        where = f"{name} projection of layer {layer + 1}"
        if first.shape != second.shape:
            raise ValueError(
                f"The {where} is {tuple(first.shape)} in one model and {tuple(second.shape)} in the other: they are "
                "not of one architecture."
            )
        absolute[layer, column], norms[layer, column] = (first - second).norm(), first.norm()
        if not np.isfinite(absolute[layer, column]):
            raise ValueError(f"The {where} holds a weight that is not finite: the training diverged.")
        if norms[layer, column] == 0:
            raise ValueError(f"The {where} is zero in the first model: a relative distance needs a scale.")
    return WeightDistance(PARTS, absolute, absolute / norms)
