"""The streaming comparison: several models read the same examples once, side by side, and lenses compare pairs of
them layer by layer while they read. No token is stored.

`compare_with` takes any of the lenses `AttentionJS`, `CCA` and `RSA`; `compare` is what chapter 1 measures,
`layers_rolled_back` the same with single layers reset.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import datasets
import numpy as np
import pandas as pd
from torch import nn

from fivelenses.activations import Activations, stream
from fivelenses.lenses import cca
from fivelenses.lenses.attention import JSAccumulator
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.rsa import RSAAccumulator
from fivelenses.models.layers import layer_list, with_layer_rolled_back

Pair = tuple[int, int]


class PairLens(Protocol):
    """A lens that compares pairs of models, batch by batch. `begin` forgets what an earlier stream gave."""

    reads_attention: bool

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], heads: int) -> None:
        """Prepare for a stream of models, whose pairs are named by the models' positions."""

    def update(self, batches: Sequence[Activations]) -> None:
        """Add what each model computes on one batch."""

    def row(self, pair: Pair, layer: int) -> dict[str, float]:
        """Column to value for a pair and a layer, after the stream."""


class AttentionJS:
    """Attention divergence; columns `js` (nats, [0, ln 2]) and `js_error` (its standard error over examples).

    Both are missing at layer 0: the embeddings have no attention.
    """

    reads_attention = True

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], heads: int) -> None:
        self._layers = [layer for layer in layers if layer > 0]
        self._divergences = {pair: JSAccumulator(len(self._layers), heads) for pair in pairs}

    def update(self, batches: Sequence[Activations]) -> None:
        for (first, second), divergence in self._divergences.items():
            attentions = ([batches[side].attention[layer] for layer in self._layers] for side in (first, second))
            divergence.update(*attentions, batches[first].mask)

    def row(self, pair: Pair, layer: int) -> dict[str, float]:
        if layer == 0:
            return {"js": np.nan, "js_error": np.nan}
        divergence, index = self._divergences[pair].result(), self._layers.index(layer)
        return {"js": divergence.layers[index], "js_error": divergence.layers_error[index]}


class CCA:
    """The CCA family of hidden states; the columns are the measures chosen, and `tokens`.

    Args:
        measures: of `svcca`, `svcca_all` (with all directions), `pwcca` (distances in [0, 1]), `cka` (a similarity in
            [0, 1]) and `svcca_null` (the SVCCA distance for permuted rows).
        variance_kept: the share of variance that the principal directions of `svcca` and `pwcca` hold.
        null_seed: of the permutations.
    """

    reads_attention = False
    MEASURES = ("svcca", "svcca_all", "pwcca", "cka", "svcca_null")

    def __init__(self, measures: Sequence[str] = MEASURES, variance_kept: float = 0.99, null_seed: int = 0) -> None:
        if unknown := set(measures) - set(self.MEASURES):
            raise ValueError(f"There is no measure {min(unknown)!r}: choose from {', '.join(self.MEASURES)}.")
        self.measures, self.variance_kept = tuple(measures), variance_kept
        self._null_seed = null_seed if "svcca_null" in measures else None

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], heads: int) -> None:
        self._moments = {layer: Moments(pairs, self._null_seed) for layer in layers}

    def update(self, batches: Sequence[Activations]) -> None:
        for layer, moments in self._moments.items():
            moments.update(*(batch.tokens(layer) for batch in batches))

    def row(self, pair: Pair, layer: int) -> dict[str, float]:
        moments = self._moments[layer]
        scatter = moments.pair(*pair)
        compute = {
            "svcca": lambda: cca.svcca_distance(scatter, variance_kept=self.variance_kept),
            "svcca_all": lambda: cca.svcca_distance(scatter, variance_kept=1.0),
            "pwcca": lambda: cca.pwcca_distance(scatter, variance_kept=self.variance_kept),
            "cka": lambda: cca.linear_cka(scatter),
            "svcca_null": lambda: cca.svcca_distance(moments.null(*pair), variance_kept=self.variance_kept),
        }
        return {measure: compute[measure]() for measure in self.measures} | {"tokens": scatter.n}


class RSA:
    """Representational similarity of hidden states; columns `rsa` ([-1, 1]), `rsa_null` (for permuted rows) and
    `rsa_tokens`.

    Args:
        positions: positions in the stream of the tokens compared, from :func:`fivelenses.lenses.rsa.sample_positions`;
            all tokens by default.
        null_seed: of the permutations; without a seed there is no column `rsa_null`.
    """

    reads_attention = False

    def __init__(self, positions: np.ndarray | None = None, null_seed: int | None = None) -> None:
        self._positions, self._null_seed = positions, null_seed

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], heads: int) -> None:
        self._kernels = {layer: RSAAccumulator(pairs, self._positions, self._null_seed) for layer in layers}

    def update(self, batches: Sequence[Activations]) -> None:
        for layer, kernels in self._kernels.items():
            kernels.update(*(batch.tokens(layer) for batch in batches))

    def row(self, pair: Pair, layer: int) -> dict[str, float]:
        kernels = self._kernels[layer]
        row = {"rsa": kernels.similarity(*pair)}
        if self._null_seed is not None:
            row["rsa_null"] = kernels.null(*pair)
        return row | {"rsa_tokens": kernels.n}


def compare_with(
    lenses: Sequence[PairLens],
    models: Mapping[str, nn.Module],
    pairs: Sequence[tuple[str, str]],
    examples: datasets.Dataset,
    layers: Iterable[int] | None = None,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Compare pairs of models on the same examples with several lenses; every model reads each example once.

    Args:
        lenses: what compares, `AttentionJS()`, `CCA(…)`, `RSA(…)`.
        models: name to model; all with one tokenizer and of one shape.
        pairs: the names compared.
        examples: encoded examples.
        layers: layers compared, 0…L, all of 1…L when None; 0 is the embedding output.
        batch_rows: examples per batch.
        device: a GPU when there is one, by default.

    Returns:
        One row per pair and layer, with `first`, `second`, `layer`, the columns of each lens, and `examples`.

    Raises:
        ValueError: a pair that names no model, or what `stream` or a lens refuses.
    """
    reference = next(iter(models.values()))
    layers = sorted(layers) if layers is not None else list(range(1, len(layer_list(reference)) + 1))
    names = list(models)
    for name in (name for pair in pairs for name in pair):
        if name not in models:
            raise ValueError(f"There is no model {name!r} to compare: the models are {', '.join(names)}.")
    positions = {pair: (names.index(pair[0]), names.index(pair[1])) for pair in pairs}
    for lens in lenses:
        lens.begin(list(positions.values()), layers, reference.config.num_attention_heads)
    hidden = layers if any(not lens.reads_attention for lens in lenses) else ()
    attention = [layer for layer in layers if layer > 0] if any(lens.reads_attention for lens in lenses) else ()
    streams = [stream(model, examples, hidden, attention, batch_rows, device) for model in models.values()]
    for batches in zip(*streams, strict=True):
        for lens in lenses:
            lens.update(batches)
    rows = []
    for (first, second), position in positions.items():
        for layer in layers:
            row = {"first": first, "second": second, "layer": layer}
            for lens in lenses:
                row |= lens.row(position, layer)
            rows.append(row | {"examples": examples.num_rows})
    return pd.DataFrame(rows)


def compare(
    models: Mapping[str, nn.Module],
    pairs: Sequence[tuple[str, str]],
    examples: datasets.Dataset,
    variance_kept: float = 0.99,
    layers: Iterable[int] | None = None,
    with_attention: bool = True,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Compare pairs of models by attention divergence and the CCA family.

    Args:
        models, pairs, examples, layers, batch_rows, device: as in `compare_with`.
        variance_kept: the share of variance that SVCCA and PWCCA keep.
        with_attention: also compare attentions.

    Returns:
        One row per pair and layer, with `first`, `second`, `layer`, the columns of `AttentionJS` (unless
        `with_attention` is False) and of `CCA`, and `examples`.

    Raises:
        ValueError: too few tokens for CCA, reported before any model runs, or as `compare_with`.
    """
    check_tokens(examples, next(iter(models.values())).config.hidden_size)
    lenses = [AttentionJS()] if with_attention else []
    return compare_with(
        [*lenses, CCA(variance_kept=variance_kept)], models, pairs, examples, layers, batch_rows, device
    )


def check_tokens(examples: datasets.Dataset, width: int) -> None:
    """Refuse examples with too few tokens for the CCA of two layers of this width.

    Raises:
        ValueError: there are no more tokens than both layers together have features.
    """
    tokens = sum(map(len, examples["input_ids"]))
    if tokens <= 2 * width:
        raise ValueError(
            f"{examples.num_rows} examples hold {tokens} tokens and SVCCA of two layers of width {width} needs "
            f"more than {2 * width}: take more examples."
        )


def layers_rolled_back(
    tuned: nn.Module,
    original: nn.Module,
    examples: datasets.Dataset,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """How far the last layer of a fine-tuned model moves when one of its layers is rolled back to the original.

    The models with a layer rolled back share their tensors with the two models, so all of them stream side by side in
    the memory of two.

    Returns:
        One row per layer rolled back, with `layer`, and the columns of `CCA` and `examples` for the last layer.
    """
    depth = len(layer_list(tuned))
    rolled_back = {f"{layer}": with_layer_rolled_back(tuned, original, layer) for layer in range(1, depth + 1)}
    pairs = [("tuned", name) for name in rolled_back]
    models = {"tuned": tuned, **rolled_back}
    table = compare(models, pairs, examples, variance_kept, [depth], False, batch_rows, device)
    return table.assign(layer=table["second"].astype(int)).drop(columns=["first", "second"])
