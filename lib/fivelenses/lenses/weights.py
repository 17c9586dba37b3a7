r"""How far the weights of each layer have moved.

For a projection with weight matrix :math:`W` before and :math:`W'` after fine-tuning, the distance is the Frobenius
norm

.. math:: d(W, W') = \lVert W - W' \rVert_F ,

and relative to the scale of the original weights, :math:`d(W, W') / \lVert W \rVert_F`. The absolute distance grows
with the size of a matrix, so that only the relative one compares sub-layers of different shapes.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from fivelenses.models.layers import layer_list, projections


class WeightDistance(NamedTuple):
    """Distances (L, 6), 0 or more, between the projections of two models, row 0 for layer 1, in the order of
    `models.layers.PARTS`; ``relative`` ones are divided by the norm of the first model's weight.
    """

    absolute: np.ndarray
    relative: np.ndarray


@torch.no_grad()
def distance(pretrained: nn.Module, fine_tuned: nn.Module) -> WeightDistance:
    """Distance of every projection of every layer between two models of one architecture; heads are not compared.

    Norms are computed in double precision, whatever the precision of the weights. Refused: different depths, and an
    architecture without known projections.
    """
    depth, other = len(layer_list(pretrained)), len(layer_list(fine_tuned))
    if depth != other:
        raise ValueError(f"The models have {depth} and {other} layers: only equally deep ones have a distance.")
    rows = []
    for layer in range(1, depth + 1):
        before, after = (projections(model, layer) for model in (pretrained, fine_tuned))
        for name in before:
            first, second = (of_layer[name].weight.double().cpu() for of_layer in (before, after))
            moved = (first - second).norm().item()
            rows.append((moved, moved / first.norm().item()))
    return WeightDistance(*np.array(rows).T.reshape(2, depth, -1))
