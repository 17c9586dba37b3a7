"""Five statements of this project on whether the lenses agree, from the record of changes by layer.

No paper makes them. The layers are no sample: they count as given, and intervals are over models and sentences.
"""

from collections.abc import Iterator

import pandas as pd

from fivelenses.first_exhibits.claims import OURS, CannotTest, Claims
from fivelenses.first_exhibits.exhibit import title
from fivelenses.first_exhibits.verdicts import Effect, Part
from fivelenses.models import thirds
from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.instruments import LENSES, SIMILARITIES, name

CONSTANT = "the measures that it compares are the same at all layers"
CLAIMS = Claims("five-lenses", place=OURS, exhibits=("five-lenses-overview",), nothing=CONSTANT, pools_tasks=True)
UNIT = "the measure's own"
MIDDLE_OVER_LOW = Part("middle third over low third", unit=UNIT)
HIGH_OVER_MIDDLE = Part("high third over middle third", unit=UNIT)
HIGH_OVER_LOW = Part("high third over low third", unit=UNIT)
SAME_ORDER = Part("rank correlation", 0.5, "below, three quarters of one order are unexplained by the other", "1")
KINSHIP = Part("agreement with themselves over that with the weights", unit="rank correlation")
INHERITED = Part("agreement of what a layer adds over that of the whole", unit="rank correlation")


def _varying(changes: pd.DataFrame) -> pd.DataFrame:
    """The curves that vary: a measure that is the same at all layers orders nothing."""
    if changes.empty:
        raise CannotTest("no task was learned")
    vary = changes.groupby(["measure", *agreement.MODEL])["value"].transform(lambda values: values.nunique() > 1)
    if not vary.any():
        raise CannotTest(CONSTANT)
    return changes[vary]


def _effect(
    group: str, part: Part, rows: pd.DataFrame, value: str, stands_on: tuple[str, ...] = ()
) -> Iterator[Effect]:
    """The mean of a column over models as an effect; none where it is defined for no model."""
    interval = agreement.interval(rows, value)
    if interval is not None:
        yield Effect(group, part.name, interval, stands_on=stands_on)


def _of_tasks(part: Part, rows: pd.DataFrame) -> Iterator[Effect]:
    for task, of_task in rows.groupby("task", sort=False):
        yield from _effect(title(task), part, of_task, "gap", (task,))


def _between_thirds(changes: pd.DataFrame, parts: dict[Part, tuple[str, str]]) -> Iterator[Effect]:
    """Differences of the mean change between thirds of the layers, per measure."""
    changes = _varying(changes)
    of_third = {layer: third for third, layers in thirds(int(changes["layer"].max())).items() for layer in layers}
    keys = [key for key in ("measure", *agreement.MODEL, "fold") if key in changes.columns]
    means = changes.groupby([*keys, changes["layer"].map(of_third)], sort=False)["value"].mean().unstack("layer")
    means = means.reset_index()
    for measure, rows in means.groupby("measure", sort=False):
        for part, (upper, lower) in parts.items():
            yield from _effect(name(measure), part, rows.assign(gap=rows[upper] - rows[lower]), "gap")


@CLAIMS.add(
    "all-rise-with-depth",
    "Whatever the lens, fine-tuning changes a layer the more the higher it is.",
    "change in a third of the layers less that in the third below",
    MIDDLE_OVER_LOW,
    HIGH_OVER_MIDDLE,
    unit="measure",
)
def rises_with_depth(changes_by_layer: pd.DataFrame) -> Iterator[Effect]:
    parts = {MIDDLE_OVER_LOW: ("middle", "low"), HIGH_OVER_MIDDLE: ("high", "middle")}
    return _between_thirds(changes_by_layer, parts)


@CLAIMS.add(
    "lenses-agree",
    "Any two lenses order the layers alike.",
    "rank correlation of two lenses over the layers, mean over their measures",
    SAME_ORDER,
    unit="pair",
)
def lenses_agree(changes_by_layer: pd.DataFrame) -> Iterator[Effect]:
    table = agreement.lenses_by_model(_varying(changes_by_layer))
    for (first, second), rows in table.groupby(agreement.PAIR, sort=False):
        yield from _effect(f"{LENSES[first]} / {LENSES[second]}", SAME_ORDER, rows, "correlation")


@CLAIMS.add(
    "top-is-high",
    "The high third of the layers changes most, whatever the measure.",
    "change in the high third of the layers less that in the middle, and less that in the low third",
    HIGH_OVER_MIDDLE,
    HIGH_OVER_LOW,
    unit="measure",
)
def top_is_high(changes_by_layer: pd.DataFrame) -> Iterator[Effect]:
    return _between_thirds(changes_by_layer, {HIGH_OVER_MIDDLE: ("high", "middle"), HIGH_OVER_LOW: ("high", "low")})


@CLAIMS.add(
    "outputs-agree-more",
    "What is read of attention and features agrees more with itself than with how far the weights moved.",
    "mean rank correlation among attention, features and similarity, minus theirs with the weights",
    KINSHIP,
    pools_tasks=False,
)
def outputs_agree_more(changes_by_layer: pd.DataFrame) -> Iterator[Effect]:
    table = agreement.by_model(_varying(changes_by_layer))
    inside = table["first"].isin(SIMILARITIES) & table["second"].isin(SIMILARITIES)
    to_weights = (table["first"] == "weights") | (table["second"] == "weights")
    across = to_weights & (table["first"].isin(SIMILARITIES) | table["second"].isin(SIMILARITIES))
    means = [agreement.mean_by_model(table[kind], "correlation") for kind in (inside, across)]
    yield from _of_tasks(KINSHIP, (means[0] - means[1]).rename("gap").reset_index())


@CLAIMS.add(
    "layers-inherit",
    "Features part from weights because a layer inherits what changed below it: what it adds agrees better.",
    "rank correlation with the weights of what a layer adds to the features' change, minus that of the whole",
    INHERITED,
    pools_tasks=False,
)
def layers_inherit(changes_by_layer: pd.DataFrame) -> Iterator[Effect]:
    table = agreement.added(_varying(changes_by_layer))
    means = agreement.mean_by_model(table[table["own"] == "weights"], "difference")
    yield from _of_tasks(INHERITED, means.rename("gap").reset_index())
