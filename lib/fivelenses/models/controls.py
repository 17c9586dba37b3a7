r"""Changes of an encoder's weights whose effect is known: twins, which learnt nothing, and symmetries, which change
nothing that it computes.

**Twins** are moved from the pre-trained model as far as training moved it, in random directions. For a parameter
:math:`\theta_0` before and :math:`\theta_1` after fine-tuning, a twin's is

.. math:: \theta_0 + s \, \lVert \theta_1 - \theta_0 \rVert \, \frac{\varepsilon}{\lVert \varepsilon \rVert},
    \qquad \varepsilon_i \sim N(0, 1) ,

tensor by tensor, with Frobenius norms. The *twin* has moved as far in its parameters: :math:`s = 1`. That changes what
an encoder computes much less than training does, so a *functional twin* has the :math:`s` at which what it computes,
such as its last layer, has moved as far. What a lens sees in the model and in a twin alike is due to this distance and
not to what was learnt.

**Symmetries.** A layer with heads :math:`h`, projections :math:`W^Q_h, W^K_h, W^V_h` to the head's d dimensions and
:math:`W^O_h` from them, and a feed-forward part :math:`W_2\, \phi(W_1 x + b_1)` stays the same function under

- a permutation of its heads, with the columns of the output projection that read them;
- a permutation of its intermediate neurons: the rows of :math:`W_1, b_1` and the columns of :math:`W_2`;
- a rotation of a head's values, undone in the output: :math:`W^V_h \to R_h W^V_h,\ b^V_h \to R_h b^V_h,\
  W^O_h \to W^O_h R_h^\top`, because attention mixes values linearly;
- a scaling of a head's queries, undone in its keys: :math:`W^Q_h \to D_h W^Q_h,\ W^K_h \to D_h^{-1} W^K_h`, biases
  likewise, because only their products count.

Each layer keeps its function by itself, so that any of them can be exchanged for the original. (Rotations of the hidden
states through all layers would be a fifth symmetry, but LayerNorm does not commute with them.)
"""

import copy
import hashlib
import math
from collections.abc import Callable

import torch
from torch import nn

from fivelenses import records
from fivelenses.models.layers import layer_list, projections

TOLERANCE = 0.01  # of the movement of a functional twin, relative
UNMOVED = 1e-9  # movements that differ by less are equal up to rounding
PASSES = 16  # at most, in search of its scale
STEPS = (math.log(1.5), math.log(8))  # by which the scale changes before it is enclosed, least (at first) and greatest
# All layers of these add one bias per head, from relative positions: a head that moved would find another's.
BIASED_BY_HEAD = ("mpnet",)


@torch.no_grad()
def moved_at_random(fine_tuned: nn.Module, pretrained: nn.Module, seed: int, scale: float = 1.0) -> nn.Module:
    """A copy of a fine-tuned model whose encoder has moved from the pre-trained one by noise of `scale` times its norm.

    Every matrix and vector of embeddings and layers moves by its own norm; one that training left alone stays, and so
    do the head, the pooler, which is part of a head here, and buffers. Rows of the embeddings that no training example
    used move like the others. The draw for a parameter depends on the seed and the parameter's name alone.
    """
    twin = copy.deepcopy(fine_tuned)
    targets, origins = _encoder_parameters(twin), _encoder_parameters(pretrained)
    for name, target in targets.items():
        end, start = target.double().cpu(), origins[name].double().cpu()
        distance = torch.linalg.vector_norm(end - start)
        if distance > 0:
            # Python's own hash of a string differs from one process to the next.
            digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
            draw = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big", signed=True))
            noise = torch.randn(end.shape, generator=draw, dtype=torch.float64)
            target.copy_(start + noise * (scale * distance / torch.linalg.vector_norm(noise)))
    return twin


@torch.no_grad()
def scale_of_equal_movement(
    fine_tuned: nn.Module, pretrained: nn.Module, seed: int, movement: Callable[[nn.Module], float]
) -> float | None:
    """The scale at which the noise of `moved_at_random` moves a model as far as training did, within `TOLERANCE`; None
    where no scale that was tried comes as near. `movement`, at least 0, is how far a model has moved from `pretrained`.
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
    """Where a growing function of the scale is near the goal; found on logarithmic axes, where it is about a line."""
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


@torch.no_grad()
def permuted_heads(model: nn.Module, seed: int) -> nn.Module:
    """A copy of a transformers model whose heads stand in another order, none in its place if there are two or more.

    Refused: an architecture whose layers share a bias per head.

    Example:
        >>> from fivelenses.models import encoders
        >>> model = encoders.load_weights(encoders.locate("toy-bert/seed-0"))
        >>> changed = permuted_heads(model, seed=0)
        >>> tokens = torch.arange(5)[None]
        >>> torch.allclose(model(tokens).last_hidden_state, changed(tokens).last_hidden_state, atol=1e-5)
        True
    """
    if model.config.model_type in BIASED_BY_HEAD:
        raise ValueError(f"The layers of {model.config.model_type!r} share one bias per head: heads keep their places.")
    changed, layers, draw = _copied(model, seed)
    heads = model.config.num_attention_heads
    for parts in layers:
        width = parts["query"].out_features // heads
        # A random order, moved round by one place, so that nothing stays in its own.
        drawn = torch.randperm(heads, generator=draw)
        order = torch.empty_like(drawn)
        order[drawn] = drawn.roll(1)
        rows = (order[:, None] * width + torch.arange(width)).flatten()
        for name in ("query", "key", "value"):
            _reorder(parts[name], rows)
        parts["attention output"].weight.copy_(parts["attention output"].weight[:, rows])
    return changed


@torch.no_grad()
def permuted_neurons(model: nn.Module, seed: int) -> nn.Module:
    """A copy whose intermediate neurons stand in another order."""
    changed, layers, draw = _copied(model, seed)
    for parts in layers:
        order = torch.randperm(parts["intermediate"].out_features, generator=draw)
        _reorder(parts["intermediate"], order)
        parts["output"].weight.copy_(parts["output"].weight[:, order])
    return changed


@torch.no_grad()
def rotated_values(model: nn.Module, seed: int) -> nn.Module:
    """A copy whose heads have their values rotated, and their outputs rotated back."""
    changed, layers, draw = _copied(model, seed)
    heads = model.config.num_attention_heads
    for parts in layers:
        value, output = parts["value"], parts["attention output"]
        width = value.out_features // heads
        noise = [torch.randn(width, width, generator=draw, dtype=torch.float64) for _ in range(heads)]
        turn = torch.block_diag(*(torch.linalg.qr(one)[0] for one in noise))
        value.weight.copy_(turn @ value.weight.double().cpu())
        value.bias.copy_(turn @ value.bias.double().cpu())
        output.weight.copy_(output.weight.double().cpu() @ turn.T)
    return changed


@torch.no_grad()
def rescaled_queries(model: nn.Module, seed: int) -> nn.Module:
    """A copy whose queries are scaled, each dimension by a factor from 1/2 to 2, and whose keys are scaled back."""
    changed, layers, draw = _copied(model, seed)
    for parts in layers:
        exponents = 2 * torch.rand(parts["query"].out_features, generator=draw, dtype=torch.float64) - 1
        factors = 2.0**exponents
        for name, scale in (("query", factors), ("key", 1 / factors)):
            weight, bias = parts[name].parameters()
            weight.copy_(weight.double().cpu() * scale[:, None])
            bias.copy_(bias.double().cpu() * scale)
    return changed


SYMMETRIES: dict[str, Callable[[nn.Module, int], nn.Module]] = dict(
    zip(records.SYMMETRIES, (permuted_heads, permuted_neurons, rotated_values, rescaled_queries), strict=True)
)


def symmetries_of(model: nn.Module) -> dict[str, Callable[[nn.Module, int], nn.Module]]:
    """Those of `SYMMETRIES` that change nothing that this model computes: MPNet's heads keep their places."""
    refused = permuted_heads if model.config.model_type in BIASED_BY_HEAD else None
    return {name: change for name, change in SYMMETRIES.items() if change is not refused}


def _copied(model: nn.Module, seed: int) -> tuple[nn.Module, list[dict[str, nn.Linear]], torch.Generator]:
    """A copy, the projections of each of its layers, and a generator."""
    changed = copy.deepcopy(model)
    layers = range(1, len(layer_list(model)) + 1)
    return changed, [projections(changed, layer) for layer in layers], torch.Generator().manual_seed(seed)


def _reorder(linear: nn.Linear, rows: torch.Tensor) -> None:
    for parameter in linear.parameters():
        parameter.copy_(parameter[rows])
