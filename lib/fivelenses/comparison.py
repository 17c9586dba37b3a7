"""The streaming comparison: several models read the same examples once, side by side, and lenses compare pairs of
them layer by layer while they read. No token is stored.

With `fold_of`, the fold of each example (`tasks.folds`), what a lens gathers is kept fold by fold. Then each row of the
result stands for all examples (`fold` −1), or for all but those of one fold (`fold` 0, 1, …), from the same pass: the
replicates from which intervals are taken. Memory for moments is then `folds` times as large. Where all layers together
need more than there is, some are read in each of several passes; the numbers are the same to the last bit.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn

from fivelenses.activations import Activations, stream, stream_rolled_back
from fivelenses.lenses import cca, similarities
from fivelenses.lenses.attention import JSAccumulator
from fivelenses.lenses.moments import Moments, bytes_needed, scatter_of
from fivelenses.models.layers import changed_layers, layer_list
from fivelenses.processes import memory_at_hand
from fivelenses.records import WHOLE

Pair = tuple[int, int]

# Of the measures of `CCA`, those that need no principal directions.
OF_SCATTER = {"cka": similarities.linear_cka, "procrustes": similarities.procrustes_distance}


class PairLens:
    """A lens that compares pairs of models, batch by batch. Unless it says otherwise, it gathers second moments of
    hidden states, layer by layer and fold by fold.
    """

    reads_attention = False
    _null_seed: int | None = None

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], fold_of: np.ndarray) -> None:
        """Forget an earlier stream, and prepare for one of models, whose pairs are named by the models' positions.

        `fold_of` is the fold of each example, 0 for all where nothing will be left out.
        """
        self._fold_of = fold_of
        self._moments = {layer: Moments(pairs, self._null_seed, _count(fold_of)) for layer in layers}

    def update(self, batches: Sequence[Activations]) -> None:
        """Add what each model computes on one batch, whose `rows` are places in `fold_of`."""

    def row(self, pair: Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        """Column to value for a pair and a layer, from all examples or all but those of one fold; a column that is
        missing is NaN in the table. Rows of one layer are asked for together.
        """

    def bytes_per_layer(self, models: int, pairs: int, width: int, folds: int) -> int:
        """Memory that what is gathered of one layer's hidden states takes, at most."""
        return bytes_needed(models, pairs, width, folds, self._null_seed is not None)


class AttentionJS(PairLens):
    """Attention divergence; column `js` (nats, [0, ln 2]), missing at layer 0: the embeddings have no attention. With a
    `null_seed`, column `js_null` instead: the rows of the second model are permuted among the tokens of a text.
    """

    reads_attention = True

    def __init__(self, null_seed: int | None = None) -> None:
        self._null_seed, self._column = null_seed, "js" if null_seed is None else "js_null"

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], fold_of: np.ndarray) -> None:
        self._layers, self._fold_of = [layer for layer in layers if layer > 0], fold_of
        self._divergences = {pair: JSAccumulator(len(self._layers), _count(fold_of)) for pair in pairs}
        if self._null_seed is not None:
            self._draw = torch.Generator().manual_seed(self._null_seed)  # the same in every pass

    def update(self, batches: Sequence[Activations]) -> None:
        mask, fold_of = batches[0].mask, self._fold_of[batches[0].rows]
        if self._null_seed is not None:
            # Padding comes last in each text, and stays there.
            order = (torch.rand(mask.shape, generator=self._draw).to(mask.device) + (~mask).float()).argsort(dim=1)
        for sides, divergence in self._divergences.items():
            first, second = ([batches[side].attention[layer] for layer in self._layers] for side in sides)
            if self._null_seed is not None:
                second = [values.gather(2, order[:, None, :, None].expand_as(values)) for values in second]
            divergence.update(first, second, mask, fold_of)

    def row(self, pair: Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        divergence = self._divergences[pair].result(left_out)[self._layers.index(layer)] if layer > 0 else np.nan
        return {self._column: divergence}


class CCA(PairLens):
    """The CCA family of hidden states; the columns are the measures chosen, and `tokens`.

    Without a fold there are only `svcca` and `tokens`. Permuted rows stay within their fold.

    Args:
        measures: of `svcca`, `svcca_all` (with all directions), `pwcca` (distances in [0, 1]), `cka` (a similarity in
            [0, 1]), `svcca_null` (the SVCCA distance for permuted rows) and `procrustes` (a distance in [0, √2]).
        variance_kept: the share of variance that the principal directions of `svcca` and `pwcca` hold.
    """

    MEASURES = ("svcca", "svcca_all", "pwcca", "cka", "svcca_null")

    def __init__(self, measures: Sequence[str] = MEASURES, variance_kept: float = 0.99) -> None:
        self.measures, self.variance_kept = tuple(measures), variance_kept
        self._null_seed = 0 if "svcca_null" in measures else None

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], fold_of: np.ndarray) -> None:
        super().begin(pairs, layers, fold_of)
        self._current: Moments | None = None  # of the layer whose rows are asked for

    def update(self, batches: Sequence[Activations]) -> None:
        fold_of = _folds_of_tokens(batches[0], self._fold_of)
        for layer, moments in self._moments.items():
            moments.update(*(batch.tokens(layer) for batch in batches), fold_of=fold_of)

    def row(self, pair: Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        if self._moments[layer] is not self._current:
            # Of one layer at a time: they take as much memory as its moments.
            self._current, self._whitenings, self._rows = self._moments[layer], {}, {}
        if left_out is None:
            return self._whole(pair)
        if pair not in self._rows:
            self._rows[pair] = self._without_folds(pair)
        return self._rows[pair][left_out]

    def _whole(self, pair: Pair) -> dict[str, float]:
        scatter = cca.enough_rows(scatter_of(self._current.pair(*pair)))
        own, row = list(zip(pair, (scatter.xx, scatter.yy), strict=True)), {}
        for measure in self.measures:
            if measure in OF_SCATTER:
                row[measure] = OF_SCATTER[measure](scatter)
                continue
            share = 1.0 if measure == "svcca_all" else self.variance_kept
            crossed = self._current.null(*pair).xy if measure == "svcca_null" else scatter.xy
            sides = [cca.truncated(self._whitened(None, *side), share) for side in own]
            distance = cca.pwcca if measure == "pwcca" else cca.svcca
            row[measure] = float(distance(crossed, *sides))
        return row | {"tokens": scatter.n}

    def _without_folds(self, pair: Pair) -> list[dict[str, float]]:
        """Fold by fold what is measured without it; all at once, as a GPU decomposes many in hardly longer than one."""
        folds = range(_count(self._fold_of))
        if "svcca" not in self.measures:
            return [{"tokens": self._current.pair(*pair, fold).n} for fold in folds]
        scatters = [cca.enough_rows(scatter_of(self._current.pair(*pair, fold))) for fold in folds]
        x, y, crossed = (torch.stack([getattr(one, name) for one in scatters]) for name in ("xx", "yy", "xy"))
        sides = [self._whitened(folds, side, own) for side, own in zip(pair, (x, y), strict=True)]
        distances = cca.svcca(crossed, *(cca.truncated(side, self.variance_kept) for side in sides)).tolist()
        return [{"svcca": value, "tokens": one.n} for value, one in zip(distances, scatters, strict=True)]

    def _whitened(self, folds: range | None, side: int, scatter: torch.Tensor) -> cca.Whitening:
        """All directions of one side, of all examples or without each of the folds: the same in all of its pairs."""
        if (folds, side) not in self._whitenings:
            self._whitenings[folds, side] = cca.whitening(scatter, variance_kept=1.0)
        return self._whitenings[folds, side]


def _count(fold_of: np.ndarray) -> int:
    return int(fold_of.max()) + 1


def _folds_of_tokens(batch: Activations, fold_of: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(fold_of[batch.rows]).repeat_interleave(batch.mask.sum(1).cpu())


class RSA(PairLens):
    """Representational similarity of hidden states; columns `rsa` ([-1, 1]), `rsa_null` (for permuted rows) and
    `rsa_tokens`; without a fold, there is no `rsa_null`.

    Args:
        positions: of the tokens compared in the stream, increasing, as of `lenses.similarities.sample_positions`.
        null_seed: of the permutations; without a seed there is no column `rsa_null`.
    """

    def __init__(self, positions: np.ndarray, null_seed: int | None = None) -> None:
        self._positions, self._null_seed = positions, null_seed

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], fold_of: np.ndarray) -> None:
        super().begin(pairs, layers, fold_of)
        self._tokens = 0

    def update(self, batches: Sequence[Activations]) -> None:
        fold_of = _folds_of_tokens(batches[0], self._fold_of)
        sampled = _positions_in_batch(self._positions, self._tokens, len(fold_of))
        self._tokens += len(fold_of)
        for layer, moments in self._moments.items():
            rows = (similarities.unit_rows(batch.tokens(layer)[sampled]) for batch in batches)
            moments.update(*rows, fold_of=fold_of[sampled])

    def row(self, pair: Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        scatter = self._moments[layer].pair(*pair, left_out)
        row = {"rsa": similarities.rsa(scatter)}
        if self._null_seed is not None and left_out is None:
            row["rsa_null"] = similarities.rsa(self._moments[layer].null(*pair))
        return row | {"rsa_tokens": scatter.n}


class Sampled(PairLens):
    """Measures of tokens at some positions of the stream, which are kept: a column each, and `…_null` of permuted rows.

    Args:
        measures: column to a function of both sides, (tokens, width) each.
        positions: from `lenses.similarities.sample_positions`.
        null_seed: of the permutations; without a seed, and without a fold, there are no nulls.
    """

    def __init__(self, measures: Mapping[str, Callable], positions: np.ndarray, null_seed: int | None = None) -> None:
        self._measures, self._positions, self._null_seed = dict(measures), positions, null_seed

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], fold_of: np.ndarray) -> None:
        self._fold_of, self._before, self._folds = fold_of, 0, []
        self._tokens: dict[int, list[list[torch.Tensor]]] = {layer: [] for layer in layers}

    def update(self, batches: Sequence[Activations]) -> None:
        fold_of = _folds_of_tokens(batches[0], self._fold_of)
        here = _positions_in_batch(self._positions, self._before, len(fold_of))
        self._before += len(fold_of)
        self._folds.append(fold_of[here])
        for layer, kept in self._tokens.items():
            kept.append([batch.tokens(layer)[here.to(batch.mask.device)] for batch in batches])

    def row(self, pair: Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        kept = torch.cat(self._folds) != (WHOLE if left_out is None else left_out)
        x, y = (torch.cat([batch[side] for batch in self._tokens[layer]])[kept] for side in pair)
        row = {column: measure(x, y) for column, measure in self._measures.items()}
        if self._null_seed is not None and left_out is None:
            for column, measure in self._measures.items():
                row[f"{column}_null"] = similarities.permuted_null(measure, x, y, self._null_seed)
        return row

    def bytes_per_layer(self, models: int, pairs: int, width: int, folds: int) -> int:
        return 4 * models * len(self._positions) * width


def _positions_in_batch(positions: np.ndarray, before: int, tokens: int) -> torch.Tensor:
    """Which of a batch's tokens are at some increasing positions of a stream, `before` of whose tokens have passed."""
    first, last = np.searchsorted(positions, [before, before + tokens])
    return torch.from_numpy(positions[first:last] - before)


def compare_with(
    lenses: Sequence[PairLens],
    models: Mapping[str, nn.Module],
    pairs: Sequence[tuple[str, str]],
    examples: datasets.Dataset,
    layers: Iterable[int] | None = None,
    batch_rows: int = 32,
    device: str | None = None,
    fold_of: np.ndarray | None = None,
) -> pd.DataFrame:
    """Compare pairs of models on the same examples with several lenses.

    Args:
        lenses: what compares, such as `AttentionJS()`, `CCA(…)` and `RSA(…)`.
        models, pairs: name to model, all with one tokenizer and of one shape; and the names compared.
        examples, batch_rows, device: encoded examples, how many are in a batch, and where; as `activations.stream`.
        layers: layers compared, 0…L, all of 1…L when None; 0 is the embedding output.
        fold_of: (examples,) the fold of each example, of `tasks.folds`; no fold is left out when None.

    Returns:
        One row per pair and layer, with `first`, `second`, `layer`, `examples`, and the columns of each lens. With
        folds, these rows for all examples and then for each fold left out, told apart by `fold`: −1, 0, 1, ….
        What a lens does not measure without a fold is NaN.
    """
    reference = next(iter(models.values()))
    layers = sorted(layers) if layers is not None else list(range(1, len(layer_list(reference)) + 1))
    names = list(models)
    parted, left_out_once = _parted(examples, fold_of)
    positions = {pair: (names.index(pair[0]), names.index(pair[1])) for pair in pairs}
    of_layer = _bytes_per_layer(lenses, models, positions, examples, batch_rows, _count(parted))
    rows = {}
    for part in _in_passes(layers, of_layer, memory_at_hand(device)):
        _read(lenses, models, positions, examples, part, batch_rows, device, parted)
        for layer, left_out, pair in product(part, left_out_once, positions):
            row = dict(zip(("first", "second"), pair, strict=True)) | {"layer": layer} | left_out_once[left_out]
            for lens in lenses:
                row |= lens.row(positions[pair], layer, left_out)
            rows[left_out, pair, layer] = row
    return pd.DataFrame([rows[key] for key in product(left_out_once, positions, layers)])


def _parted(examples: datasets.Dataset, fold_of: np.ndarray | None) -> tuple[np.ndarray, dict[int | None, dict]]:
    """The fold of each example, and what is left out one after another (None: nothing), with what rows say of it."""
    count = examples.num_rows
    if fold_of is None:
        return np.zeros(count, dtype=np.int64), {None: {"examples": count}}
    rest = {fold: {"fold": fold, "examples": count - size} for fold, size in enumerate(np.bincount(fold_of).tolist())}
    return fold_of, {None: {"fold": WHOLE, "examples": count}, **rest}


def _read(lenses, models, positions, examples, layers, batch_rows, device, fold_of) -> None:
    """One pass of all models, side by side, of which the lenses gather some layers."""
    for lens in lenses:
        lens.begin(list(positions.values()), layers, fold_of)
    hidden = layers if any(not lens.reads_attention for lens in lenses) else ()
    attention = [layer for layer in layers if layer > 0] if any(lens.reads_attention for lens in lenses) else ()
    streams = [stream(model, examples, hidden, attention, batch_rows, device) for model in models.values()]
    for batches in zip(*streams, strict=True):
        for lens in lenses:
            lens.update(batches)


def _bytes_per_layer(lenses, models, pairs, examples, batch_rows, folds) -> int:
    """What the lenses gather of one layer's hidden states, and one batch of all models in single precision."""
    config = next(iter(models.values())).config
    longest = max(map(len, examples["input_ids"]), default=0)
    of_token = config.hidden_size if any(not lens.reads_attention for lens in lenses) else 0
    of_token += config.num_attention_heads * longest if any(lens.reads_attention for lens in lenses) else 0
    of_batches = 4 * len(models) * min(batch_rows, examples.num_rows) * longest * of_token
    counts = len(models), len(pairs), config.hidden_size, folds
    return of_batches + sum(lens.bytes_per_layer(*counts) for lens in lenses if not lens.reads_attention)


def _in_passes(layers: Sequence[int], of_layer: float, memory: float) -> list[list[int]]:
    """The layers of each pass: in as few passes as fit, of about as many layers each."""
    passes = math.ceil(len(layers) / max(1, memory // of_layer))
    parts = [part.tolist() for part in np.array_split(layers, passes)]
    if len(parts) > 1 and parts[0] == [0]:
        # The embeddings have no attention, without which a model would be read, and rounded, in another way.
        parts[:2] = [parts[0] + parts[1]]
    return parts


def check_tokens(examples: datasets.Dataset, width: int, fold_of: np.ndarray) -> None:
    """Refuse examples that have, without any of the folds, no more tokens than two layers of this width have features:
    their CCA is 1 whatever they hold.
    """
    lengths = np.array([len(tokens) for tokens in examples["input_ids"]])
    tokens = int(lengths.sum() - np.bincount(fold_of, lengths).max())
    if tokens <= 2 * width:
        raise ValueError(
            f"{examples.num_rows} examples hold {tokens} tokens without one fold and SVCCA of two layers of width "
            f"{width} needs more than {2 * width}: take more examples."
        )


def last_layer_movement(
    pretrained: nn.Module, examples: datasets.Dataset, device: str | None = None
) -> Callable[[nn.Module], float]:
    """How far the last layer of a model has moved from that of `pretrained`, as a function of the model.

    It is 1 − RSA over all tokens of the examples, 0 to 2, and 1 for a model whose tokens have all become one direction,
    as a large random movement makes them: nothing of its similarities is left. `pretrained` reads the examples once.
    """
    depth = len(layer_list(pretrained))

    def tokens(model: nn.Module) -> torch.Tensor:
        return torch.cat([batch.tokens(depth) for batch in stream(model, examples, [depth], device=device)])

    before = tokens(pretrained)

    def movement(model: nn.Module) -> float:
        after = tokens(model)
        common = nn.functional.normalize(after.double(), dim=1).mean(0).square().sum()
        return 1.0 if 1 - common < similarities.EQUAL_COSINES else 1 - similarities.rsa(before, after, sample=None)

    return movement


def layers_rolled_back(
    fine_tuned: nn.Module,
    pretrained: nn.Module,
    examples: datasets.Dataset,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
    fold_of: np.ndarray | None = None,
) -> pd.DataFrame:
    """How far the last layer of a fine-tuned model moves when one of its layers is rolled back.

    Returns:
        One row per layer rolled back (and fold left out, see `compare_with`), with `layer`, `fold` where there are
        folds, `svcca`, `tokens` and `examples`, for the last layer.
    """
    lens, depth = CCA(("svcca",), variance_kept), len(layer_list(fine_tuned))
    changed = [layer for layer in changed_layers(fine_tuned, pretrained) if layer > 0]
    # Of the models that are read the first is the fine-tuned one, which a layer that did not change leaves as it is.
    pairs = {layer: (0, changed.index(layer) + 1 if layer in changed else 0) for layer in range(1, depth + 1)}
    parted, left_out_once = _parted(examples, fold_of)
    lens.begin(list(pairs.values()), [depth], parted)
    for batches in stream_rolled_back(fine_tuned, pretrained, changed, examples, batch_rows, device):
        lens.update(batches)
    return pd.DataFrame(
        {"layer": layer} | left_out_once[left_out] | lens.row(pairs[layer], depth, left_out)
        for left_out, layer in product(left_out_once, pairs)
    )
