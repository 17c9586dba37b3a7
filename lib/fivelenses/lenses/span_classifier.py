r"""The classifier of an edge probe, for several probes at once: their parameters are stacked, (probes, …).

:mod:`~fivelenses.lenses.edge_probe` says what it computes; its parameters are

.. math::

    w\ (\mathrm{mix}),\ \gamma\ (\mathrm{scale}),\ P\ (\mathrm{project}),\ b\ (\mathrm{project\_bias}),\
    v\ (\mathrm{attend}),\ W_1, b_1\ (\mathrm{hidden}),\ \mathrm{gain\ and\ shift\ of\ LayerNorm},\
    W_2, b_2\ (\mathrm{output}),

with the projections of both spans side by side. Source: the edge-probing suite of Tenney et al. 2019, whose attention
also adds a constant, which changes no softmax.
"""

import torch
from torch.nn.functional import embedding_bag, layer_norm

from fivelenses.lenses.spans import SpanBatch


def first_parameters(
    layers: int | None, d: int, spans: int, projection: int, hidden: int, labels: int, random: torch.Generator
) -> dict[str, torch.Tensor]:
    """The initial parameters of a probe, uniform in ± 1/√(inputs).

    Args:
        layers: in the mixture, which starts as their mean; None for a probe that reads a single layer unchanged.
        d: features per word.
        spans: 1 or 2.
        projection: features after the projection.
        hidden: units of the hidden layer.
        labels: number of outputs.
        random: of the draw.

    Example:
        >>> parameters = first_parameters(3, 4, 2, 5, 6, 7, torch.Generator().manual_seed(0))
        >>> parameters["project"].shape, parameters["mix"]
        (torch.Size([4, 10]), tensor([0., 0., 0.]))
    """

    def uniform(inputs: int, *shape: int) -> torch.Tensor:
        return torch.empty(shape).uniform_(-(inputs**-0.5), inputs**-0.5, generator=random)

    mixture = {} if layers is None else {"mix": torch.zeros(layers), "scale": torch.ones(1)}
    return mixture | {
        "project": uniform(d, d, spans * projection),
        "project_bias": uniform(d, 1, spans * projection),
        "attend": uniform(projection, spans, projection),
        "hidden": uniform(spans * projection, spans * projection, hidden),
        "hidden_bias": uniform(spans * projection, 1, hidden),
        "gain": torch.ones(1, hidden),
        "shift": torch.zeros(1, hidden),
        "output": uniform(hidden, hidden, labels),
        "output_bias": uniform(hidden, 1, labels),
    }


def logits(
    parameters: dict[str, torch.Tensor], models: list[int], batch: SpanBatch, dropout: torch.Tensor | None = None
) -> torch.Tensor:
    """The logit of each probe for each target and label, (probes, targets, labels).

    Args:
        parameters: as :func:`first_parameters` gives them, stacked, (probes, …).
        models: (probes,) the model that each probe reads; probes of one model are neighbours.
        batch: targets, with the words of these models; words of other models are not read.
        dropout: (probes, targets, hidden) factors of the hidden units.

    Example:
        >>> parameters = first_parameters(None, 2, 1, 3, 4, 5, torch.Generator().manual_seed(0))
        >>> stacked = {name: values[None] for name, values in parameters.items()}
        >>> place = torch.zeros(1, 1, 1, dtype=int)
        >>> one = SpanBatch({0: torch.ones(1, 1, 2)}, place, place == 0, torch.ones(1, 5))
        >>> logits(stacked, [0], one).shape
        torch.Size([1, 1, 5])
    """
    words = torch.baddbmm(parameters["project_bias"], _mixed(parameters, models, batch), parameters["project"])
    spans = _pooled(words.unflatten(-1, parameters["attend"].shape[1:]), parameters["attend"], batch)
    units = torch.baddbmm(parameters["hidden_bias"], spans, parameters["hidden"]).tanh()
    units = layer_norm(units, units.shape[-1:]) * parameters["gain"] + parameters["shift"]
    if dropout is not None:
        units = units * dropout
    return torch.baddbmm(parameters["output_bias"], units, parameters["output"])


def _mixed(parameters: dict[str, torch.Tensor], models: list[int], batch: SpanBatch) -> torch.Tensor:
    """The mixture of layers that each probe reads, (probes, U, d)."""
    if "mix" not in parameters:
        return torch.cat([batch.words[model][-1:] for model in models])
    weights = parameters["mix"].softmax(1) * parameters["scale"]
    parts = []
    # One product reads a model's words once for all its probes.
    for model, words in batch.words.items():
        if own := [probe for probe, other in enumerate(models) if other == model]:
            mixed = weights[own[0] : own[-1] + 1] @ words.flatten(1)
            parts.append(mixed.unflatten(1, words.shape[1:]))
    return torch.cat(parts)


def _pooled(words: torch.Tensor, attend: torch.Tensor, batch: SpanBatch) -> torch.Tensor:
    """Self-attentive pooling of words (probes, U, spans, features): (probes, targets, spans × features)."""
    probes, count, spans, features = words.shape
    scores = torch.cat([words[:, :, place] @ attend[:, place, :, None] for place in range(spans)], -1)
    slot = torch.arange(spans, device=words.device)[:, None]
    attention = scores[:, batch.places, slot].masked_fill(~batch.inside, -torch.inf).softmax(-1)
    widths = batch.inside.sum(-1).flatten()
    rows = (batch.places * spans + slot)[batch.inside]
    rows = (torch.arange(probes, device=words.device)[:, None] * (count * spans) + rows).flatten()
    starts = widths.repeat(probes).cumsum(0) - widths.repeat(probes)
    weights = attention[:, batch.inside].flatten()
    pooled = embedding_bag(rows, words.reshape(-1, features), starts, mode="sum", per_sample_weights=weights)
    return pooled.reshape(probes, -1, spans * features)
