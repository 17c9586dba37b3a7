r"""Changes of an encoder's weights that change nothing that it computes.

A layer with heads :math:`h`, projections :math:`W^Q_h, W^K_h, W^V_h` to the head's d dimensions and :math:`W^O_h` from
them, and a feed-forward part :math:`W_2\, \phi(W_1 x + b_1)` stays the same function under

- a permutation of its heads, with the columns of the output projection that read them;
- a permutation of its intermediate neurons: the rows of :math:`W_1, b_1` and the columns of :math:`W_2`;
- a rotation of a head's values, undone in the output: :math:`W^V_h \to R_h W^V_h,\ b^V_h \to R_h b^V_h,\
  W^O_h \to W^O_h R_h^\top`, because attention mixes values linearly;
- a scaling of a head's queries, undone in its keys: :math:`W^Q_h \to D_h W^Q_h,\ W^K_h \to D_h^{-1} W^K_h`, biases
  likewise, because only their products count.

Each layer keeps its function by itself, so that any of them can be exchanged for the original. What a lens sees in such
a change is no change of what the encoder does. (Rotations of the hidden states through all layers would be a fifth
symmetry, but LayerNorm does not commute with them.)
"""

import copy
from collections.abc import Callable

import torch
from torch import nn

from fivelenses import records
from fivelenses.models.layers import layer_list, projections

# All layers of these add one bias per head, from relative positions: a head that moved would find another's.
BIASED_BY_HEAD = ("mpnet",)
LARGEST_FACTOR = 2.0  # of a query: factors lie between its inverse and it, evenly in their logarithm


@torch.no_grad()
def permuted_heads(model: nn.Module, seed: int) -> nn.Module:
    """A copy of a transformers model whose heads stand in another order, none in its place if there are two or more.

    Refused: an architecture whose projections are not known, or whose layers share a bias per head.

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

    def permute(parts: dict[str, nn.Linear], heads: int, draw: torch.Generator) -> None:
        width = parts["query"].out_features // heads
        order = _derangement(heads, draw)
        rows = (order[:, None] * width + torch.arange(width)).flatten()
        for name in ("query", "key", "value"):
            _reorder(parts[name], rows)
        parts["attention output"].weight.copy_(parts["attention output"].weight[:, rows])

    return _changed(model, seed, permute)


@torch.no_grad()
def permuted_neurons(model: nn.Module, seed: int) -> nn.Module:
    """A copy whose intermediate neurons stand in another order."""

    def permute(parts: dict[str, nn.Linear], heads: int, draw: torch.Generator) -> None:
        order = torch.randperm(parts["intermediate"].out_features, generator=draw)
        _reorder(parts["intermediate"], order)
        parts["output"].weight.copy_(parts["output"].weight[:, order])

    return _changed(model, seed, permute)


@torch.no_grad()
def rotated_values(model: nn.Module, seed: int) -> nn.Module:
    """A copy whose heads have their values rotated, and their outputs rotated back."""

    def rotate(parts: dict[str, nn.Linear], heads: int, draw: torch.Generator) -> None:
        value, output = parts["value"], parts["attention output"]
        width = value.out_features // heads
        noise = [torch.randn(width, width, generator=draw, dtype=torch.float64) for _ in range(heads)]
        turn = torch.block_diag(*(torch.linalg.qr(one)[0] for one in noise))
        value.weight.copy_(turn @ value.weight.double().cpu())
        if value.bias is not None:
            value.bias.copy_(turn @ value.bias.double().cpu())
        output.weight.copy_(output.weight.double().cpu() @ turn.T)

    return _changed(model, seed, rotate)


@torch.no_grad()
def rescaled_queries(model: nn.Module, seed: int) -> nn.Module:
    """A copy whose queries are scaled, each dimension by a factor from 1/2 to 2, and whose keys are scaled back."""

    def rescale(parts: dict[str, nn.Linear], heads: int, draw: torch.Generator) -> None:
        exponents = 2 * torch.rand(parts["query"].out_features, generator=draw, dtype=torch.float64) - 1
        factors = LARGEST_FACTOR**exponents
        for name, scale in (("query", factors), ("key", 1 / factors)):
            for parameter in parts[name].parameters():
                scaled = parameter.double().cpu() * scale.reshape(-1, *[1] * (parameter.ndim - 1))
                parameter.copy_(scaled)

    return _changed(model, seed, rescale)


SYMMETRIES: dict[str, Callable[[nn.Module, int], nn.Module]] = dict(
    zip(records.SYMMETRIES, (permuted_heads, permuted_neurons, rotated_values, rescaled_queries), strict=True)
)


def symmetries_of(model: nn.Module) -> dict[str, Callable[[nn.Module, int], nn.Module]]:
    """Those of `SYMMETRIES` that change nothing that this model computes: MPNet's heads keep their places."""
    refused = permuted_heads if model.config.model_type in BIASED_BY_HEAD else None
    return {name: change for name, change in SYMMETRIES.items() if change is not refused}


def _changed(model: nn.Module, seed: int, change: Callable) -> nn.Module:
    changed, draw = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    for layer in range(1, len(layer_list(model)) + 1):
        change(projections(changed, layer), changed.config.num_attention_heads, draw)
    return changed


def _derangement(count: int, draw: torch.Generator) -> torch.Tensor:
    """An order in which nothing stays in its place: a random one, moved round by one place."""
    order = torch.randperm(count, generator=draw)
    following = torch.empty_like(order)
    following[order] = order.roll(1)
    return following


def _reorder(linear: nn.Linear, rows: torch.Tensor) -> None:
    for parameter in linear.parameters():
        parameter.copy_(parameter[rows])
