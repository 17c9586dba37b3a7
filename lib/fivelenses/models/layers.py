"""A model addressed by layer and part, and surgery on its parts: freeze, truncate, re-initialise, roll back.

Layers are counted 1…L; 0 is the embeddings, with all else that belongs to no layer: what widens ELECTRA's embeddings,
and the relative positions that MPNet's layers share. Everything works on any transformers model whose base model has
its layers in one list; another architecture is refused by name.
"""

from collections.abc import Iterable

import torch
from torch import nn

# The six projections of a layer, in the order in which they are computed, and where an architecture has them.
PARTS = ("query", "key", "value", "attention output", "intermediate", "output")
_FEED_FORWARD = ("intermediate.dense", "output.dense")
_BERT = (*(f"attention.self.{name}" for name in PARTS[:3]), "attention.output.dense", *_FEED_FORWARD)
PROJECTIONS = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "electra"), _BERT),
    "mpnet": (*(f"attention.attn.{name}" for name in "qkvo"), *_FEED_FORWARD),
    # The feed-forward module holds the intermediate and the output projection.
    "distilbert": (*(f"attention.{name}_lin" for name in ("q", "k", "v", "out")), "ffn.lin1", "ffn.lin2"),
}
INITIAL_DEVIATION = 0.02


def layer_list(model: nn.Module) -> nn.ModuleList:
    """The encoder layers of a model, in order; index 0 is layer 1."""
    count = model.config.num_hidden_layers
    for module in model.base_model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise ValueError(
        f"The architecture {model.config.model_type!r} does not have its {count} layers in one list: not supported."
    )


def part(model: nn.Module, layer: int) -> nn.Module:
    """Layer 1…L of a model, or its embeddings for 0."""
    layers = layer_list(model)
    if layer not in range(len(layers) + 1):
        raise ValueError(f"There is no layer {layer!r}: there are 1 to {len(layers)}, and 0 for the embeddings.")
    if layer:
        return layers[layer - 1]
    # What holds parameters and is in no layer; a pooler belongs to a head.
    outside, waiting = [], [model.base_model]
    for module in waiting:
        for name, child in module.named_children():
            if any(inner is layers for inner in child.modules()):
                waiting += [] if child is layers else [child]
            elif name != "pooler" and any(True for _ in child.parameters()):
                outside.append(child)
    return outside[0] if len(outside) == 1 else nn.ModuleList(outside)


def projections(model: nn.Module, layer: int) -> dict[str, nn.Linear]:
    """The six linear projections of layer 1…L, by the names in `PARTS`; an unknown architecture is refused."""
    kind = model.config.model_type
    if kind not in PROJECTIONS:
        raise ValueError(f"The projections of {kind!r} are not known, only those of {', '.join(sorted(PROJECTIONS))}.")
    module = part(model, layer)
    return {name: module.get_submodule(path) for name, path in zip(PARTS, PROJECTIONS[kind], strict=True)}


def changed_layers(model: nn.Module, pretrained: nn.Module) -> tuple[int, ...]:
    """The layers 0…L that have a weight that is not equal, to the last bit."""

    def equal(layer: int) -> bool:
        ours, theirs = (part(one, layer).state_dict() for one in (model, pretrained))
        return all(torch.equal(ours[name].cpu(), tensor.cpu()) for name, tensor in theirs.items())

    return tuple(layer for layer in range(len(layer_list(model)) + 1) if not equal(layer))


def freeze(model: nn.Module, layers: Iterable[int]) -> None:
    """Exclude the parameters of these layers (0: embeddings) from training."""
    for layer in layers:
        part(model, layer).requires_grad_(False)


def truncate(model: nn.Module, depth: int) -> None:
    """Keep layers 1…`depth` and drop those above, in place."""
    layers = layer_list(model)
    if not 1 <= depth <= len(layers):
        raise ValueError(f"A truncated encoder keeps 1 to {len(layers)} layers, not {depth!r}.")
    del layers[depth:]
    model.config.num_hidden_layers = depth


@torch.no_grad()
def roll_back(model: nn.Module, pretrained: nn.Module, layers: Iterable[int]) -> None:
    """Reset the parameters and buffers of these layers of `model` to those of `pretrained`, in place."""
    for layer in layers:
        part(model, layer).load_state_dict(part(pretrained, layer).state_dict())


@torch.no_grad()
def reinitialise(model: nn.Module, layers: Iterable[int], seed: int, biases_and_norms: str = "kept") -> None:
    """Re-initialise the six projections of these layers in place: truncated normal, mean 0, σ 0.02, cut at ±2σ.

    The cut makes the realised deviation 0.0176. Biases and LayerNorms stay (`kept`) or become 0 and (1, 0) (`reset`).
    Each layer's draw depends on the seed and the layer alone.
    """
    bound = 2 * INITIAL_DEVIATION
    for layer in layers:
        generator = torch.Generator().manual_seed(seed * 1_000 + int(layer))
        for projection in projections(model, layer).values():
            # Drawn on the processor, so that the draw is the same whatever device the model is on.
            initial = torch.empty(projection.weight.shape)
            nn.init.trunc_normal_(initial, 0.0, INITIAL_DEVIATION, -bound, bound, generator=generator)
            projection.weight.copy_(initial)
            if biases_and_norms == "reset":
                projection.bias.zero_()
        if biases_and_norms == "reset":
            for norm in (inner for inner in part(model, layer).modules() if isinstance(inner, nn.LayerNorm)):
                norm.reset_parameters()
