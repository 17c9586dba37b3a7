"""Five statements of this project on whether the lenses agree, as predicates on the table of changes.

No paper makes them. The thresholds were fixed before the first run of this chapter. After it, the loss with a layer put
back was taken on training examples instead of development examples, which left all verdicts of that run as they were.
"""

from collections.abc import Callable

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.claims import OURS, CannotTest, Claim, as_cases
from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.instruments import LENSES, SIMILARITIES, name

PAPER = "five-lenses"
TABLE = "five-lenses-overview"
RISING = 0.8  # rank correlation with depth from which a curve counts as rising, as in chapter 1
AGREEING = 0.5  # rank correlation from which two lenses count as agreeing
UPPER = 2 / 3  # of the depth, above which the upper third begins


def _cases(rows: pd.DataFrame, undefined: str) -> pd.DataFrame:
    """Cases without those whose number is undefined.

    Raises:
        CannotTest: none is left.
    """
    defined = rows.dropna(subset=["value"])
    if defined.empty:
        raise CannotTest(undefined)
    return as_cases(defined[["group", "seed", "value", "holds"]].itertuples(index=False, name=None))


def _models(table: pd.DataFrame) -> pd.Series:
    """A model in words: the seed of a case whose group is not a task."""
    return table["task"] + ", seed " + table["seed"].astype(str)


def _of_tasks(means: pd.Series) -> pd.DataFrame:
    """A number per model as cases that are grouped by the names of their tasks, and hold where it is above 0."""
    rows = means.rename("value").reset_index()
    return rows.assign(group=[tasks.find(task).title for task in rows["task"]], holds=rows["value"] > 0)


def rises_with_depth(changes: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of each measure with the layer."""
    table = agreement.centres(changes)
    rows = table.assign(group=table["measure"].map(name), seed=_models(table), value=table["rises"])
    return _cases(rows.assign(holds=rows["value"] >= RISING), "every measure is the same at all layers")


def lenses_agree(changes: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of each pair of lenses over the layers."""
    table = agreement.lenses_by_model(changes)
    pairs = table["first"].map(LENSES) + " / " + table["second"].map(LENSES)
    rows = table.assign(group=pairs, seed=_models(table), value=table["correlation"])
    return _cases(
        rows.assign(holds=rows["value"] >= AGREEING),
        "every measure of some lens in every pair is the same at all layers",
    )


def top_is_high(changes: pd.DataFrame) -> pd.DataFrame:
    """The layer that changes most, as a share of the depth."""
    table = agreement.centres(changes)
    share = table["top"] / changes["layer"].max()
    rows = table.assign(group=table["measure"].map(name), seed=_models(table), value=share)
    return _cases(rows.assign(holds=share > UPPER + 1e-9), "every measure is the same at all layers")


def outputs_agree_more(changes: pd.DataFrame) -> pd.DataFrame:
    """Mean correlation among measures of attention and features, minus theirs with the weights."""
    table = agreement.by_model(changes)
    inside = table["first"].isin(SIMILARITIES) & table["second"].isin(SIMILARITIES)
    to_weights = (table["first"] == "weights") | (table["second"] == "weights")
    across = to_weights & (table["first"].isin(SIMILARITIES) | table["second"].isin(SIMILARITIES))
    means = [table[kind].groupby(agreement.MODEL, sort=False)["correlation"].mean() for kind in (inside, across)]
    return _cases(
        _of_tasks(means[0] - means[1]), "the weights, or all of attention and features, are the same at all layers"
    )


def layers_inherit(changes: pd.DataFrame) -> pd.DataFrame:
    """Correlation with the weights of what a layer adds to a measure, minus that of what it puts out."""
    table = agreement.added(changes)
    table = table[table["own"] == "weights"]
    table = table.assign(value=table["added"] - table["output"])
    means = table.groupby(agreement.MODEL, sort=False)["value"].mean()
    return _cases(_of_tasks(means), "the weights, or the features, are the same at all layers")


def _statement(key: str, sentence: str, quantity: str, threshold: str, cases: Callable) -> Claim:
    return Claim(key, PAPER, sentence, OURS, (TABLE,), quantity, threshold, cases)


CLAIMS = (
    _statement(
        "all-rise-with-depth",
        "Whatever the lens, fine-tuning changes a layer the more the higher it is.",
        "rank correlation of each measure with the layer",
        f"at least {RISING:g}",
        rises_with_depth,
    ),
    _statement(
        "lenses-agree",
        "Any two lenses order the layers alike.",
        "rank correlation of two lenses over the layers, mean over their measures",
        f"at least {AGREEING:g}",
        lenses_agree,
    ),
    _statement(
        "top-is-high",
        "The layer that changes most is in the upper third, whatever the measure.",
        "that layer as a share of the depth",
        f"above {UPPER:.2f}",
        top_is_high,
    ),
    _statement(
        "outputs-agree-more",
        "What is read of attention and features agrees more with itself than with how far the weights moved.",
        "mean rank correlation among attention, features and similarity, minus theirs with the weights",
        "above 0",
        outputs_agree_more,
    ),
    _statement(
        "layers-inherit",
        "Features part from weights because a layer inherits what changed below it: what it adds agrees better.",
        "rank correlation with the weights of what a layer adds to the features' change, minus that of the whole",
        "above 0",
        layers_inherit,
    ),
)
