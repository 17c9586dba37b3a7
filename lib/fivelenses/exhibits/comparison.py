"""Two models layer by layer: attention divergence and the CCA family from one streaming pass over several
models at once.
"""

from collections.abc import Iterable, Mapping, Sequence

import datasets
import pandas as pd
from torch import nn

from fivelenses.activations import stream
from fivelenses.lenses import attention, cca
from fivelenses.lenses.moments import Moments
from fivelenses.models.layers import layer_list, with_layer_rolled_back

NULL_SEED = 0


def compare(
    models: Mapping[str, nn.Module],
    pairs: Sequence[tuple[str, str]],
    examples: datasets.Dataset,
    keep: float = 0.99,
    layers: Iterable[int] | None = None,
    with_attention: bool = True,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Compare pairs of models on the same examples; every model reads each example once, and no token is kept.

    Args:
        models: name to model; all with one tokeniser.
        pairs: the names compared.
        examples: encoded examples.
        keep: the share of variance that SVCCA keeps.
        layers: layers compared, all of 1…L when None.
        with_attention: also compare attentions.
        batch_rows: examples a batch.
        device: a GPU when there is one, by default.

    Returns:
        One row a pair and layer: `first`, `second`, `layer`, `js` (nats, [0, ln 2]), `js_error` (its standard error
        over examples), `svcca`, `svcca_all` (every direction kept), `pwcca` (distances in [0, 1]), `cka` (a similarity
        in [0, 1]), `svcca_null` (the distance for permuted rows), `tokens`, `examples`. Without attention, `js` and
        `js_error` are left out.

    Raises:
        ValueError: too few tokens for CCA, said before any model runs.
    """
    names, used = list(models), next(iter(models.values()))
    depth = len(layer_list(used))
    chosen = sorted(layers) if layers is not None else list(range(1, depth + 1))
    check_tokens(examples, used.config.hidden_size)
    places = [(names.index(first), names.index(second)) for first, second in pairs]
    moments = {layer: Moments(places, null_seed=NULL_SEED) for layer in chosen}
    heads = used.config.num_attention_heads
    divergences = [attention.JSAccumulator(len(chosen), heads) for _ in pairs] if with_attention else []
    wanted = chosen if with_attention else ()
    streams = [stream(model, examples, chosen, wanted, batch_rows, device) for model in models.values()]
    for batches in zip(*streams, strict=True):
        for layer in chosen:
            moments[layer].update(*(batch.tokens(layer) for batch in batches))
        for divergence, (first, second) in zip(divergences, places, strict=False):
            attentions = ([batches[side].attention[layer] for layer in chosen] for side in (first, second))
            divergence.update(*attentions, batches[first].mask)
    rows = []
    for number, ((first, second), place) in enumerate(zip(pairs, places, strict=True)):
        measured = divergences[number].result() if with_attention else None
        for index, layer in enumerate(chosen):
            row = {"first": first, "second": second, "layer": layer}
            if measured is not None:
                row |= {"js": measured.layers[index], "js_error": measured.layers_error[index]}
            rows.append(row | _representations(moments[layer], place, keep) | {"examples": examples.num_rows})
    return pd.DataFrame(rows)


def _representations(moments: Moments, place: tuple[int, int], keep: float) -> dict:
    pair = moments.pair(*place)
    return {
        "svcca": cca.svcca_distance(pair, keep=keep),
        "svcca_all": cca.svcca_distance(pair, keep=1.0),
        "pwcca": cca.pwcca_distance(pair, keep=keep),
        "cka": cca.linear_cka(pair),
        "svcca_null": cca.svcca_distance(moments.null(*place), keep=keep),
        "tokens": pair.n,
    }


def check_tokens(examples: datasets.Dataset, width: int) -> None:
    """Refuse examples with too few tokens for the CCA of two layers of this width.

    Raises:
        ValueError: they are no more than the features of both.
    """
    tokens = sum(len(pieces) for pieces in examples["input_ids"])
    if tokens <= 2 * width:
        raise ValueError(
            f"{examples.num_rows} examples hold {tokens} tokens and SVCCA of two layers of width {width} needs "
            f"more than {2 * width}: "
            "take more examples."
        )


def layers_put_back(
    tuned: nn.Module,
    original: nn.Module,
    examples: datasets.Dataset,
    keep: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """How far the last layer moves when one layer of a tuned model is put back to its original values, layer after
    layer.

    The views with a layer put back share their tensors with the two models, so all of them stream side by side in
    the memory of two.

    Returns:
        One row a layer put back: `layer`, `svcca`, `svcca_all`, `pwcca`, `cka`, `svcca_null`, `tokens`, `examples`,
            all of the last layer.
    """
    depth = len(layer_list(tuned))
    views = {f"{layer}": with_layer_rolled_back(tuned, original, layer) for layer in range(1, depth + 1)}
    pairs = [("tuned", name) for name in views]
    table = compare({"tuned": tuned, **views}, pairs, examples, keep, [depth], False, batch_rows, device)
    return table.assign(layer=table["second"].astype(int)).drop(columns=["first", "second"])
