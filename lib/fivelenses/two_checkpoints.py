"""Two checkpoints compared without training: what changed, where, and whether it is more than chance.

Each lens gives one number per layer, 0 where nothing changed, with its null (the rows of one side permuted, which
independent encoders come near to), its 95% interval over folds of the texts, and the smallest change that it can tell
from nothing: one whose interval, as wide in proportion as that of the change at hand, would lie above what storing
BEFORE in half precision gives. Both twins of AFTER (`models.controls`) are measured, too.
"""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn

from fivelenses import comparison, exhibits
from fivelenses.book.compared import FUNCTIONAL_TWIN, OTHER, TWIN, Comparison
from fivelenses.judging import Interval, jackknife, listed
from fivelenses.lenses import weights
from fivelenses.lenses.similarities import debiased_linear_cka, mutual_neighbours, rsa
from fivelenses.models import encoders
from fivelenses.models.controls import moved_at_random, scale_of_equal_movement
from fivelenses.models.layers import changed_layers, layer_list, projections
from fivelenses.papers.measures import name
from fivelenses.papers.merchant2020 import random_positions
from fivelenses.records import WHOLE
from fivelenses.tasks import folds
from fivelenses.tasks.own import FILES, read_table
from fivelenses.tasks.sources import SourceError

# The questions that a lens answers: those on which it scored 0.9 or more in chapter 7, on the toy BERT and all-MiniLM.
ANSWERS = {
    "where": ("weights", "last"),
    "how much": ("weights",),
    "whether": ("svcca", "cka_debiased", "rsa", "neighbours", "last"),
    "learning": ("svcca", "neighbours", "last"),
}
# Similarities of a sample of words; the change is 1 minus them.
SAMPLED = dict(cka_debiased=debiased_linear_cka, rsa=partial(rsa, sample=None), neighbours=mutual_neighbours)
STREAMED = ("js", "svcca", *SAMPLED)
LENSES = (*STREAMED, "weights", "last")
ROUNDED = "rounded"
MEASURED = ["layer", "lens", "value", "null", "low", "high", "detection_limit", TWIN, FUNCTIONAL_TWIN, OTHER]
LONGEST, WORDS = 128, 1_000  # tokens of a text, and words of the sample, at most
TOKENS = 4_000  # of all texts: with more, 12 layers of width 768 take more than minutes, and only intervals narrow
FOLDS = 5  # each takes a decomposition of every layer
SEARCHED = 64  # texts on which the scale of the functional twin is found
BATCH = 16  # texts that all encoders read at once
VARIANCE_KEPT = 1.0  # of SVCCA: directions at the edge of less would come and go with a fold
UNRELATED = 0.5  # of the distance of permuted embeddings: a child of an encoder keeps nearly all of them
SEED = 0
UNRELATED_ENCODERS = """They are no parent and child: their embeddings are nearly as far apart as permuted ones. \
A layer of one does not fit into the other, so that no lens says where they differ."""
UNSEEN = """Not seen by any lens here: the heads; what shows on other texts alone; and what a change is good for, \
which takes labels. Attention and weights also change where a layer is only written in another way."""


def compare(
    before: str,
    after: str,
    texts: str | Path | Sequence[str],
    other: str | None = None,
    device: str | None = None,
    log: Callable[[str], None] = print,
) -> Comparison:
    """Compare an encoder with what became of it, on texts; neither is trained, heads and poolers are ignored.

    Args:
        before, after: folders in the Hugging Face layout, or names as `models.encoders` understands them.
        texts: a file with a text in each line, or a table with a column `text`; or the texts.
        other: an encoder that was pre-trained independently of BEFORE: changes are read as shares of their distance.
        device: a GPU when there is one, by default.

    Refused: encoders of other shapes or tokenisers, and texts with fewer tokens than SVCCA needs.
    """
    names = [before, after, *([other] if other else [])]
    for encoder in names:
        encoders.check_encoder(encoder, projections=True)
    loaded = [encoders.load_weights(encoders.locate(encoder)) for encoder in names]
    _check_shapes(names, loaded)
    models = dict(zip(("before", "after", OTHER), loaded, strict=False))
    examples, words, facts = _encoded(read_texts(texts), names)
    changed = changed_layers(models["before"], models["after"])
    facts += [*_heads(names[:2]), _weights_in_words(models["before"], models["after"], changed)]
    if not changed:
        summary = "The two encoders are one: no lens can find a difference, whatever the texts."
        return Comparison(before, after, True, (), (), tuple(facts), summary, pd.DataFrame(columns=MEASURED))
    related = _related(models["before"], models["after"])
    facts += [] if related else [UNRELATED_ENCODERS]
    comparison.check_tokens(examples, models["before"].config.hidden_size, folds(np.zeros(examples.num_rows), FOLDS))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rows")  # a fact says how many tokens there are
        measures, where, scale = _measured(models, examples, words, device, log)
    summary = _summary(measures, where, related, scale)
    return Comparison(before, after, False, changed, where if related else (), tuple(facts), summary, measures)


def _check_shapes(names: Sequence[str], models: Sequence[nn.Module]) -> None:
    """Refuse encoders that are not of the first one's shape."""
    shapes = []
    for encoder, model in zip(names, models, strict=True):
        shape, rows = model.config, model.get_input_embeddings().num_embeddings
        size = f"{shape.num_hidden_layers} layers × {shape.hidden_size}, {shape.num_attention_heads} heads"
        shapes.append(f"{shape.model_type} of {size} and {rows:,} tokens")
        if shapes[-1] != shapes[0]:
            raise ValueError(
                f"{names[0]} is {shapes[0]}, and {encoder} is {shapes[-1]}: only encoders of one shape and vocabulary "
                "are compared, so name a checkpoint that was fine-tuned from the first."
            )


def read_texts(texts: str | Path | Sequence[str]) -> list[str]:
    """The texts of a file, a line each, or of a table's column `text`; empty and repeated ones are left out."""
    if isinstance(texts, str | Path):
        file = Path(texts).expanduser()
        if file.suffix.lower() in FILES:
            table = read_table(file)
            if "text" not in table:
                raise SourceError(f"{file} has no column 'text' but {', '.join(map(str, table))}: rename one.")
            texts = table["text"].tolist()
        elif not file.is_file():
            raise SourceError(f"There is no file {file.absolute()}: give one with a text in each line.")
        else:
            texts = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    return list(dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip()))


def _encoded(texts: Sequence[str], names: Sequence[str]) -> tuple[datasets.Dataset, np.ndarray, list[str]]:
    """The texts as tokens, refused where tokenisers differ; positions of a sample of words; and what is to be said."""
    if len(texts) < 2:
        raise ValueError(f"Only {exhibits.counted(len(texts), 'text')}: give a few hundred different ones.")
    located = [encoders.locate(one) for one in names]
    most = min(LONGEST, encoders.positions(encoders.config(located[0])) or LONGEST)
    tokenizers = [encoders.tokenizer(one) for one in located]
    columns = [one(texts, truncation=True, max_length=most) for one in tokenizers]
    for encoder, other in zip(names, columns, strict=True):
        pairs = zip(columns[0]["input_ids"], other["input_ids"], strict=True)
        if differing := [text for text, (one, two) in zip(texts, pairs, strict=True) if one != two]:
            raise ValueError(
                f"The tokenisers of {names[0]} and {encoder} make other tokens of {len(differing):,} of {len(texts):,} "
                f"texts, such as {differing[0][:60]!r}: models are compared on the same tokens alone."
            )
    lengths = np.array(list(map(len, columns[0]["input_ids"])))
    order = np.random.default_rng(SEED).permutation(len(texts))
    chosen = np.sort(order[: 1 + np.searchsorted(lengths[order].cumsum(), TOKENS)])
    examples, cut = datasets.Dataset.from_dict(dict(columns[0])).select(chosen), (lengths == most).sum()
    fact = f"{exhibits.counted(len(texts), 'text')}, {lengths.sum():,} tokens; the tokenisers are equal on them"
    fact += f"; {cut:,} reach {most} tokens, where texts are cut" if cut else ""
    fact += f"; {len(chosen):,} of them, drawn at random, are read" if len(chosen) < len(texts) else ""
    return examples, random_positions(examples, tokenizers[0], WORDS), [f"{fact}."]


def _heads(names: Sequence[str]) -> list[str]:
    """A sentence on the heads that are ignored."""
    heads = []
    for encoder in names:
        shape = encoders.config(encoders.locate(encoder))
        for kind in shape.architectures or ():
            labels = f" with {exhibits.counted(shape.num_labels, 'label')}" if "Classification" in kind else ""
            heads += [f"that of {encoder} ({kind}{labels})"] if not kind.endswith("Model") else []
    return [f"Heads are ignored: {listed(heads)}."] if heads else []


def _weights_in_words(before: nn.Module, after: nn.Module, changed: Sequence[int]) -> str:
    """Which layers have equal weights, to the last bit."""
    places = ["the embeddings", *(f"layer {layer}" for layer in range(1, len(layer_list(before)) + 1))]
    equal = [place for layer, place in enumerate(places) if layer not in changed]
    if not changed:
        return "All weights of the two encoders are equal, to the last bit."
    if not changed_layers(copy.deepcopy(before).half(), copy.deepcopy(after).half()):
        return "All weights are equal in half precision: one encoder is the other, stored in fewer bits."
    return f"Equal to the last bit, as frozen weights are: {listed(equal)}." if equal else "No layer has equal weights."


def _related(before: nn.Module, after: nn.Module) -> bool:
    """Whether the embeddings are nearer to each other than two that were drawn apart."""
    one, two = (model.get_input_embeddings().weight.detach() for model in (before, after))
    order = torch.randperm(len(two), generator=torch.Generator().manual_seed(SEED))
    return bool((one - two).norm() < UNRELATED * (one - two[order]).norm())


def _measured(models, examples, words, device, log) -> tuple[pd.DataFrame, tuple[int, ...], float | None]:
    """All measures, the layers that rolling back names, and the scale of the functional twin."""
    before, after, fold_of = models["before"], models["after"], folds(np.zeros(examples.num_rows), FOLDS)
    searched = examples.select(range(min(SEARCHED, examples.num_rows)))
    log(f"1 of 3: looking for noise that moves the last layer as far, on {searched.num_rows} texts")
    movement = comparison.last_layer_movement(before, searched, device=device)
    scale = scale_of_equal_movement(after, before, SEED, movement)
    controls = {TWIN: moved_at_random(after, before, SEED), ROUNDED: copy.deepcopy(before).half().float()}
    controls |= {FUNCTIONAL_TWIN: moved_at_random(after, before, SEED, scale)} if scale else {}
    controls |= {OTHER: models[OTHER]} if OTHER in models else {}
    names = listed(["before", "after", *controls])
    log(f"2 of 3: reading {exhibits.counted(examples.num_rows, 'text')} with these encoders: {names}")
    own = [comparison.AttentionJS(), comparison.CCA(("svcca", "svcca_null"), VARIANCE_KEPT)]
    own += [comparison.AttentionJS(SEED), comparison.Sampled(SAMPLED, words, SEED)]
    others = [comparison.AttentionJS(), comparison.CCA(("svcca",), VARIANCE_KEPT), comparison.Sampled(SAMPLED, words)]
    table = _changes(own, {"before": before, "after": after}, examples, device, fold_of)
    references = _changes(others, {"before": before, **controls}, examples, device)
    log("3 of 3: rolling layers back one by one")
    references, measured = references.pivot(index="layer", columns="second").reset_index(drop=True), []
    for lens in STREAMED:
        measured.append(_with_intervals(table.assign(null=table[f"{lens}_null"]), lens, lens).join(references[lens]))
    measured.append(_of_weights(before, after, controls))
    last, where = _rolled_back(before, after, controls[TWIN], examples, measured[1].iloc[-1], device)
    measures = pd.concat([*measured, last], ignore_index=True).reindex(columns=[*MEASURED, ROUNDED])
    measures["detection_limit"] = _detection_limits(measures)
    return measures[MEASURED], where, scale


def _changes(lenses, models, examples, device, fold_of=None) -> pd.DataFrame:
    """What lenses say of how each layer of the first model and of every other differ."""
    first, *others = models
    pairs = [(first, other) for other in others]
    table = comparison.compare_with(lenses, models, pairs, examples, None, BATCH, device, fold_of)
    alike = [column for column in table if column.removesuffix("_null") in SAMPLED]
    table[alike] = 1 - table[alike]
    return table


def _detection_limits(measures: pd.DataFrame) -> pd.Series:
    """The smallest changes whose intervals, as wide in proportion, would lie above rounding; NaN where none would."""
    spread = (1 - measures["low"] / measures["value"]).where(measures["value"] > measures[ROUNDED], 0)
    return measures[ROUNDED] / (1 - spread).where(spread < 1)


def _rolled_back(before, after, twin, examples, svcca, device) -> tuple[pd.DataFrame, tuple[int, ...]]:
    """How far the last layer moves with each layer rolled back, and the layers that this names."""
    fold_of = folds(np.zeros(examples.num_rows), FOLDS)
    rolled = comparison.layers_rolled_back(after, before, examples, VARIANCE_KEPT, device=device, fold_of=fold_of)
    last = _with_intervals(rolled.assign(null=svcca["null"]), "svcca", "last").assign(**{ROUNDED: svcca[ROUNDED]})
    last[TWIN] = comparison.layers_rolled_back(twin, before, examples, VARIANCE_KEPT, device=device)["svcca"]
    # The layer that moves the last one most, and those that the texts do not tell apart from it.
    wide = rolled.pivot(index="layer", columns="fold", values="svcca")
    most, moving = wide.loc[wide[WHOLE].idxmax()], wide[wide[WHOLE] > svcca[ROUNDED]]
    return last, tuple(layer for layer, values in moving.iterrows() if _interval(most - values).low <= 0)


def _with_intervals(table: pd.DataFrame, column: str, lens: str) -> pd.DataFrame:
    """Value, null and interval of a lens at each layer, from a table by layer and fold."""
    wide = table.pivot(index="layer", columns="fold", values=column)
    low, high = np.clip([_interval(values).bounds() for _, values in wide.iterrows()], 0, None).T
    of_all = table.loc[table["fold"] == WHOLE, ["layer", column, "null"]].reset_index(drop=True)
    return of_all.set_axis(["layer", "value", "null"], axis=1).assign(lens=lens, low=low, high=high)


def _interval(values: pd.Series) -> Interval:
    """The interval of a value by fold left out."""
    return jackknife(values[[WHOLE]].to_numpy(), values.drop(WHOLE).to_numpy()[None])


def _of_weights(before: nn.Module, after: nn.Module, controls: Mapping[str, nn.Module]) -> pd.DataFrame:
    """How far the six projections of each layer lie apart, relative to what they were."""
    permuted, draw = copy.deepcopy(after), torch.Generator().manual_seed(SEED)
    for layer in range(1, len(layer_list(after)) + 1):
        for projection in projections(permuted, layer).values():
            weight = projection.weight.data
            weight.copy_(weight[torch.randperm(len(weight), generator=draw)])
    found = {"value": after, "null": permuted, **controls}
    columns = {key: weights.distance(before, model).relative.mean(axis=1) for key, model in found.items()}
    table = pd.DataFrame(columns).assign(lens="weights", layer=range(1, len(columns["value"]) + 1))
    return table.assign(low=table["value"], high=table["value"])


def _summary(measures: pd.DataFrame, where: Sequence[int], related: bool, scale: float | None) -> str:
    """Where, how much, whether it is more than chance, and what no lens here could have seen."""
    by_lens = {lens: rows.set_index("layer") for lens, rows in measures.groupby("lens", sort=False)}
    moved, last = by_lens["weights"]["value"], by_lens["last"]
    of_weights = f"the weights moved most in layer {moved.idxmax()}, by {moved.max():.2g} of their norm"
    seen = measures[measures["lens"].isin(ANSWERS["whether"]) & (measures["value"] > measures["detection_limit"])]
    if seen.empty:
        return (
            "On these texts both compute the same: no lens that is silent where nothing changed tells them apart from "
            f"one encoder stored in half precision, though {of_weights}. {UNSEEN}"
        )
    if not related:
        return f"{_how_much(by_lens)} {UNSEEN}"
    most = last.loc[last["value"].idxmax()]
    size = f"SVCCA distance {most['value']:.2g}, {most['low']:.2g} to {most['high']:.2g}"
    tied = ", which these texts do not tell apart," if len(where) > 1 else ""
    layers = listed(list(map(str, where))).replace(" and ", " or ")
    rolled = f"rolling back layer {layers}{tied} moves the last layer most ({size})"
    place = rolled if where else "no single layer, rolled back, moves the last one"
    return f"Where: {place}; {of_weights}. {_how_much(by_lens)} {_learning(by_lens, scale)} {UNSEEN}"


def _how_much(by_lens: Mapping[str, pd.DataFrame]) -> str:
    near, cka = (by_lens[lens][["value", "null", OTHER]].mean() for lens in ("neighbours", "cka_debiased"))
    shares = f"{near['value'] / near[OTHER]:.0%} (neighbours) and {cka['value'] / cka[OTHER]:.0%} (debiased CKA)"
    return (
        f"How much, over all layers: {near['value']:.0%} of a word's ten nearest neighbours are others now (permuted "
        f"rows: {near['null']:.0%}), and one minus debiased CKA is {cka['value']:.2f}"
        f"{f'; of the distance between BEFORE and the other encoder that is {shares}' if near[OTHER] > 0 else ''}."
    )


def _learning(by_lens: Mapping[str, pd.DataFrame], scale: float | None) -> str:
    above = {lens: int((by_lens[lens]["low"] > by_lens[lens][TWIN]).sum()) for lens in ANSWERS["learning"]}
    layers = listed([f"{count} by {name(lens)}" for lens, count in above.items()])
    noise = "no noise"
    if scale is not None:
        size = "more than 1,000" if scale > 1000 else f"{float(f'{scale:.2g}'):g}"
        noise = f"noise {size} times as large"
    return (
        f"More than chance? Of {len(by_lens['last'])} layers, {layers} change more than after a random move of the "
        f"same length; {noise} moves the last layer as far as here."
    )
