r"""Moving some layers of a model through parameter space, and restoring them.

The parameters of layers :math:`G` are a vector :math:`\theta^G`, and the direction from one model to another is
:math:`\delta^G = \theta_1^G - \theta_0^G`; a model can be evaluated anywhere on this line, at
:math:`\theta^G + \alpha \delta^G`, its other parameters unchanged (Hao et al. 2019, for groups of layers). Layers are
counted 1…L; 0 is the embeddings, which move only on request. The head, the pooler and buffers never move.

Parameters are named as in the base model, so that models with different heads, or none, have the same names. They are
moved by giving the model other tensors: its own are never written, and are restored bit by bit also after an exception.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from fivelenses.lenses.directions import Parameters, difference
from fivelenses.models.layers import part


def layer_parameters(model: nn.Module, layers: Iterable[int]) -> dict[str, torch.Tensor]:
    """The parameters of some layers 0…L, as a point of a landscape: names in the base model to tensors that it shares.

    The model is any transformers model whose layers are in one list, with or without a head.

    Example:
        >>> from transformers import BertConfig, BertModel
        >>> shape = BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=2, num_attention_heads=1)
        >>> sorted({name.split(".")[2] for name in layer_parameters(BertModel(shape), [2])})
        ['1']
    """
    layers = sorted(set(layers))
    if not layers:
        raise ValueError("No layers: name those whose parameters move, such as range(1, 7).")
    moving = [parameter for layer in layers for parameter in part(model, layer).parameters()]
    wanted = {id(parameter) for parameter in moving}
    return {
        name: parameter.detach() for name, parameter in model.base_model.named_parameters() if id(parameter) in wanted
    }


def layer_direction(origin: nn.Module, target: nn.Module, layers: Iterable[int]) -> dict[str, torch.Tensor]:
    """The direction from one model to another of its architecture in some of their layers: α = 0 is the origin, 1 the
    target.
    """
    layers = list(layers)
    return difference(layer_parameters(target, layers), layer_parameters(origin, layers))


@contextmanager
def placed(model: nn.Module, point: Parameters) -> Iterator[nn.Module]:
    """A model with a point's values in the parameters that the point names, within a ``with`` block.

    If precision and device agree, nothing is copied: the model holds the point's tensors, and afterwards its own again,
    which never changed.

    Args:
        model: a transformers model, whose parameters are named as in its base model, or any other module.
        point: names to tensors of the parameters' shapes.

    Yields:
        The model.

    Example:
        >>> line = nn.Linear(1, 1)
        >>> with placed(line, {"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])}):
        ...     line(torch.tensor([[3.0]])).item()
        7.0
    """
    parameters = dict(getattr(model, "base_model", model).named_parameters())
    for name, tensor in point.items():
        if name not in parameters:
            raise ValueError(f"{name!r} is no parameter of the model: use the names of layer_parameters.")
        if tensor.shape != parameters[name].shape:
            raise ValueError(
                f"{name!r} has shape {tuple(tensor.shape)} in the point, {tuple(parameters[name].shape)} in the model."
            )
    own = {name: parameters[name].data for name in point}
    try:
        for name, tensor in point.items():
            parameters[name].data = tensor.detach().to(own[name])
        yield model
    finally:
        for name, tensor in own.items():
            parameters[name].data = tensor
