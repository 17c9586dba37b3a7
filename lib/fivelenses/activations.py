"""The one streaming pass: hidden states and attentions of any layers, batch by batch, without padding, in bounded
memory.

Batches depend only on the examples, so that the streams of two models over the same examples can be zipped, and a lens
that accumulates stores no token.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

import datasets
import numpy as np
import torch
from torch import nn

from fivelenses.models.heads import padded_tokens, word_means
from fivelenses.models.layers import layer_list


@dataclass(frozen=True)
class Activations:
    """The hidden states and attentions of one model for one batch of examples.

    Attributes:
        rows: (batch,) the examples' rows in the table.
        mask: (batch, tokens) True for tokens, including [CLS] and [SEP], False for padding.
        hidden: layer 0…L to (batch, tokens, width) float32; 0 is the embedding output.
        attention: layer 1…L to (batch, heads, tokens, tokens); rows are queries and sum to 1 over the tokens.
        words: (batch, tokens) the word that a token belongs to, -1 for special tokens and padding; None if the table
            has no `word_ids`.
    """

    rows: np.ndarray
    mask: torch.Tensor
    hidden: dict[int, torch.Tensor]
    attention: dict[int, torch.Tensor]
    words: torch.Tensor | None

    def tokens(self, layer: int) -> torch.Tensor:
        """(tokens of all examples, width) the hidden states of a layer without padding, example after example."""
        return self.hidden[layer][self.mask]

    def unit_means(self, layer: int, units: list[list[list[int]]]) -> torch.Tensor:
        """(units of all examples, words of a unit × width) the word means of each unit, concatenated; `units` holds,
        per row of `rows`, the words of each unit. A word without tokens is refused.
        """
        means, counts = word_means(self.hidden[layer], self.words)
        indices = torch.tensor([[row, *unit] for row, of_row in enumerate(units) for unit in of_row])
        row, *words = indices.to(means.device).T
        if any((counts[row, word] == 0).any() for word in words):
            raise ValueError("A unit names a word that has no tokens: encode the examples with their units.")
        return torch.cat([means[row, word] for word in words], dim=-1)


def stream(
    model: nn.Module,
    examples: datasets.Dataset,
    hidden: Iterable[int] = (),
    attention: Iterable[int] = (),
    batch_size: int = 32,
    device: str | torch.device | None = None,
) -> Iterator[Activations]:
    """One pass of a model over encoded examples.

    Args:
        model: any transformers encoder, with or without a head; it is set to evaluation mode and moved to `device`.
        examples: encoded (`input_ids`, `attention_mask`, and `token_type_ids` and `word_ids` if there are any).
        hidden: layers 0…L whose hidden states are read.
        attention: layers 1…L whose attentions are read; the pass then runs without fused attention.
        batch_size: examples per batch; results depend on it only by rounding.
        device: by default a GPU if there is one.

    Yields:
        Batches, the longest examples first, so that a batch that does not fit in memory fails at once.

    Refused: a layer that does not exist, or attentions that the model does not return.
    """
    hidden, attention = sorted(set(hidden)), sorted(set(attention))
    depth = len(layer_list(model))
    if wrong := {*hidden} - {*range(depth + 1)} | {*attention} - {*range(1, depth + 1)}:
        raise ValueError(f"There is no layer {min(wrong)}: hidden states have 0 to {depth}, attentions 1 to {depth}.")
    model = _placed(model, device)
    with _eager(model.base_model) if attention else nullcontext():
        for rows, inputs in _batches(model, examples, batch_size):
            yield _one_batch(model, rows, inputs, hidden, attention)


@torch.no_grad()
def stream_rolled_back(
    fine_tuned: nn.Module,
    pretrained: nn.Module,
    layers: Sequence[int],
    examples: datasets.Dataset,
    batch_size: int = 32,
    device: str | torch.device | None = None,
) -> Iterator[list[Activations]]:
    """The last layer of a model, and then of the same model with each of some layers reset to that of `pretrained`.

    What enters a layer does not depend on it: a model with layer l rolled back is computed from layer l upwards, so
    that all L of them together take (L + 1) / 2 passes.
    """
    own, others = (layer_list(_placed(model, device)) for model in (fine_tuned, pretrained))
    depth = len(own)
    for rows, inputs in _batches(fine_tuned, examples, batch_size):
        inputs.pop("word_ids", None)
        with states_entering(fine_tuned, range(depth + 1)) as recorded:
            fine_tuned.base_model(**inputs)
        mask, last = inputs["attention_mask"].bool(), [recorded[depth][0]]
        for layer in layers:
            states = recorded[layer - 1][0]
            for entered, module in enumerate([others[layer - 1], *own[layer:]], layer - 1):
                _, arguments, named = recorded[entered]
                states = first_of(module(states, *arguments, **named))
            last.append(states)
        yield [Activations(rows, mask, {depth: of_model.float()}, {}, None) for of_model in last]


def stream_order(examples: datasets.Dataset) -> np.ndarray:
    """The rows of the examples in the order in which `stream` reads them: the longest first."""
    return np.argsort([-len(tokens) for tokens in examples["input_ids"]], kind="stable")


def _placed(model: nn.Module, device: str | torch.device | None) -> nn.Module:
    """A model in evaluation mode on a device, by default a GPU if there is one."""
    return model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()


def _batches(
    model: nn.Module, examples: datasets.Dataset, size: int
) -> Iterator[tuple[np.ndarray, dict[str, torch.Tensor]]]:
    """Rows and inputs of so many examples at once, in the order of the stream."""
    order = stream_order(examples)
    for begin in range(0, len(order), size):
        rows = order[begin : begin + size]
        yield rows, _inputs(model, examples.select(rows))


def labelled_batches(
    examples: datasets.Dataset, model: nn.Module, tokens: int
) -> Iterator[tuple[np.ndarray, dict[str, torch.Tensor], torch.Tensor]]:
    """Rows, inputs and labels of classified examples in batches of so many tokens, the longest examples first."""
    labels, order = np.asarray(examples["labels"]), stream_order(examples)
    while len(order):
        longest = len(examples[int(order[0])]["input_ids"])
        rows, order = np.split(order, [max(1, tokens // longest)])
        yield rows, _inputs(model, examples.select(rows)), torch.from_numpy(labels[rows]).to(model.device)


@torch.no_grad()
def _one_batch(model, rows, inputs, hidden, attention) -> Activations:
    words, mask = inputs.pop("word_ids", None), inputs["attention_mask"].bool()
    with states_entering(model, hidden) as recorded:
        output = model.base_model(**inputs, output_attentions=bool(attention), return_dict=True)
    if attention and not output.attentions:
        kind = model.config.model_type
        raise ValueError(f"The architecture {kind!r} returns no attention weights: they cannot be compared.")
    states = {layer: recorded[layer][0].float() for layer in hidden}
    return Activations(rows, mask, states, {layer: output.attentions[layer - 1] for layer in attention}, words)


def _inputs(model: nn.Module, batch: datasets.Dataset) -> dict[str, torch.Tensor]:
    """What the model is called with, and the word of each token, padded."""
    padded = padded_tokens(batch[:], model.config.pad_token_id)
    return {name: values.to(model.device) for name, values in padded.items()}


class Reached(Exception):
    """Ends a pass that is not wanted any further."""


@contextmanager
def states_entering(model: nn.Module, hidden: Iterable[int], stop: bool = False) -> Iterator[dict[int, tuple]]:
    """Per layer 0…L whose hidden states are wanted: these, once the model has run, and the other arguments and those by
    name with which they enter the next layer; none at L. With `stop`, the first of them raises `Reached`.

    We use our own hooks, since `output_hidden_states` patches modules permanently, and a layer that two models share
    would then report to the wrong one.
    """
    layers, recorded = layer_list(model), {}

    def entering(layer: int):
        def keep(module, arguments, named):
            named = dict(named)
            states, *others = arguments or [named.pop("hidden_states")]
            recorded[layer] = states, others, named
            if stop:
                raise Reached

        return keep

    def leaving(module, arguments, output):
        recorded[len(layers)] = first_of(output), (), {}

    with ExitStack() as hooks:
        for layer in hidden:
            if layer == len(layers):
                hooks.enter_context(layers[-1].register_forward_hook(leaving))
            else:
                hooks.enter_context(layers[layer].register_forward_pre_hook(entering(layer), with_kwargs=True))
        yield recorded


def first_of(output: torch.Tensor | tuple) -> torch.Tensor:
    """The hidden states that a layer returns, alone or before others."""
    return output[0] if isinstance(output, tuple) else output


@contextmanager
def _eager(model: nn.Module) -> Iterator[None]:
    """Eager attention, of which the weights can be read: the fused kernels return none."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def represent(
    model: nn.Module, examples: datasets.Dataset, layers: Iterable[int], batch_size: int = 32, device=None
) -> dict[int, np.ndarray]:
    """The inputs of a classifier on some layers, 0…L: layer to (points, width) float32; arguments as `stream`.

    If the examples have `units`, a point is a unit (its words concatenated, each the mean of its tokens); otherwise it
    is an example, represented by its first token, [CLS]. Rows are in the order of the examples.
    """
    units = list(examples["units"]) if "units" in examples.column_names else None
    parts: dict[int, list[np.ndarray]] = {layer: [] for layer in sorted(set(layers))}
    for batch in stream(model, examples, hidden=parts, batch_size=batch_size, device=device):
        for layer, states in batch.hidden.items():
            points = states[:, 0] if units is None else batch.unit_means(layer, [units[row] for row in batch.rows])
            parts[layer].append(points.cpu().numpy())
    # The stream gives long examples first; the units of one example keep their order.
    rows = stream_order(examples)
    order = np.argsort(rows if units is None else np.repeat(rows, [len(units[row]) for row in rows]), kind="stable")
    return {layer: np.concatenate(of_layer)[order] for layer, of_layer in parts.items()}


def word_vectors(model: nn.Module, examples: datasets.Dataset, layers: Iterable[int], device=None) -> list[np.ndarray]:
    """The words of each example, encoded with `word_ids`, in some layers, 0…L, each word the mean of its tokens.

    Returns:
        Per example (layers, words, width) float16, in the order of the examples and of increasing layers; truncated
        words are left out, and a word without tokens is a row of zeros.
    """
    layers = sorted(set(layers))
    vectors: list[np.ndarray] = [np.empty(0)] * examples.num_rows
    for batch in stream(model, examples, hidden=layers, device=device):
        means = torch.stack([word_means(batch.hidden[layer], batch.words)[0] for layer in layers], dim=1)
        counts = batch.words.max(dim=1).values + 1
        for row, of_row, count in zip(batch.rows, means.half().cpu().numpy(), counts.tolist(), strict=True):
            vectors[row] = of_row[:, :count].copy()
    return vectors
