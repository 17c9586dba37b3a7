r"""A fine-tuned model's twins: moved from the pre-trained model as far as training moved it, in random directions.

For a parameter :math:`\theta_0` before and :math:`\theta_1` after fine-tuning, a twin's is

.. math:: \theta_0 + s \, \lVert \theta_1 - \theta_0 \rVert \, \frac{\varepsilon}{\lVert \varepsilon \rVert},
    \qquad \varepsilon_i \sim N(0, 1) ,

tensor by tensor, with Frobenius norms. The *twin* has moved as far in its parameters: :math:`s = 1`. That changes what
an encoder computes much less than training does. The *functional twin* has moved as far in what it computes:
:math:`s` is such that a movement, such as that of the last layer, is that of the fine-tuned model. What a lens sees in
the model and in a twin alike is due to this distance and not to what was learnt.
"""

import copy
import hashlib
import math
from collections.abc import Callable

import torch
from torch import nn

from fivelenses.models.layers import check_same_parts, layer_list

TOLERANCE = 0.01  # of the movement of a functional twin, relative
UNMOVED = 1e-9  # movements that differ by less are equal up to rounding
PASSES = 16  # at most, in search of its scale
STEPS = (math.log(1.5), math.log(8))  # by which the scale changes before it is enclosed, least (at first) and greatest


@torch.no_grad()
def moved_at_random(fine_tuned: nn.Module, pretrained: nn.Module, seed: int, scale: float = 1.0) -> nn.Module:
    """A copy of a fine-tuned model whose encoder has moved from the pre-trained one by noise of the same norm.

    Every matrix and every vector of embeddings and layers moves by its own norm; one that training left alone stays,
    and so do the head, the pooler, which is part of a head here, and buffers. The noise is spread over a whole tensor:
    rows of the embeddings that no training example used move like the others.

    Args:
        seed: of the noise; the draw for a parameter depends on the seed and the parameter's name alone, and is the
            same on every device.
        scale: s, the norm of the noise in norms of the model's own move.

    Returns:
        The twin, in the mode and on the device of `fine_tuned`, which is unchanged.

    Refused: encoders with different parameters or shapes.
    """
    twin = copy.deepcopy(fine_tuned)
    targets, origins = _encoder_parameters(twin), _encoder_parameters(pretrained)
    for layer in range(len(layer_list(fine_tuned)) + 1):
        check_same_parts(fine_tuned, pretrained, layer)
    for name, target in targets.items():
        end, start = target.double().cpu(), origins[name].double().cpu()
        distance = torch.linalg.vector_norm(end - start)
        if distance > 0:
            noise = torch.randn(end.shape, generator=_generator(seed, name), dtype=torch.float64)
            target.copy_(start + noise * (scale * distance / torch.linalg.vector_norm(noise)))
    return twin


@torch.no_grad()
def scale_of_equal_movement(
    fine_tuned: nn.Module, pretrained: nn.Module, seed: int, movement: Callable[[nn.Module], float]
) -> float | None:
    """The scale at which the noise of `moved_at_random` moves a model as far as it was moved by training.

    Args:
        movement: how far a model has moved from `pretrained`, at least 0.

    Returns:
        s, with a movement within `TOLERANCE` of that of `fine_tuned`; None where no scale that was tried comes as near.
    """
    twin = moved_at_random(fine_tuned, pretrained, seed)
    targets, origins = _encoder_parameters(twin), _encoder_parameters(pretrained)
    ends = {name: target.clone() for name, target in targets.items()}

    def moved(scale: float) -> float:
        for name, target in targets.items():
            torch.lerp(origins[name].to(target.device), ends[name].to(target.device), scale, out=target)
        return movement(twin)

    return _scale(moved, movement(fine_tuned))


def _scale(moved: Callable[[float], float], goal: float) -> float | None:
    """Where a function of the scale that grows is near the goal; found on logarithmic axes, where it is about a line.

    >>> round(_scale(lambda scale: scale**2 / 1000, 0.4), 6)
    20.0
    >>> _scale(lambda scale: min(scale, 0.3), 0.4)
    """
    place, low, high = 0.0, None, None
    for tried in range(1, 1 + PASSES):
        movement = moved(math.exp(place))
        if abs(movement - goal) <= max(TOLERANCE * goal, UNMOVED):
            return math.exp(place)
        miss = math.log(max(movement, UNMOVED) / max(goal, UNMOVED))
        low, high = ((place, miss), high) if miss < 0 else (low, (place, miss))
        if low and high:
            # Some way from either end, so that a bend does not hold one of them.
            share = min(max(low[1] / (low[1] - high[1]), 0.1), 0.9)
            place = low[0] + share * (high[0] - low[0])
        else:
            # A small noise moves activations in proportion, and their similarity with the square of it.
            # Where it saturates, a miss says little of how far it is.
            place -= math.copysign(min(max(abs(miss) / 2, tried * STEPS[0]), STEPS[1]), miss)
    return None


def _encoder_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of embeddings and layers, named as in the base model."""
    return {name: parameter for name, parameter in model.base_model.named_parameters() if "pooler" not in name}


def _generator(seed: int, name: str) -> torch.Generator:
    # Python's own hash of a string differs from one process to the next.
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big", signed=True))
