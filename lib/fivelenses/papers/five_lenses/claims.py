"""Five statements of this project on whether the lenses agree, from the record of changes by layer.

No paper makes them. The layers are no sample: they count as given, and intervals are over models and sentences.
"""

from collections.abc import Callable, Iterator

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.claims import OURS, CannotTest, Claim
from fivelenses.exhibits.verdicts import Effect, Part
from fivelenses.lenses.parameter_motion import thirds
from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.instruments import LENSES, SIMILARITIES, name

PAPER = "five-lenses"
TABLE = "five-lenses-overview"
UNIT = "the measure's own"
MIDDLE_OVER_LOW = Part("middle third over low third", unit=UNIT)
HIGH_OVER_MIDDLE = Part("high third over middle third", unit=UNIT)
HIGH_OVER_LOW = Part("high third over low third", unit=UNIT)
SAME_ORDER = Part("rank correlation", 0.5, "below, three quarters of one order are unexplained by the other", "1")
KINSHIP = Part("agreement with themselves over that with the weights", unit="rank correlation")
INHERITED = Part("agreement of what a layer adds over that of the whole", unit="rank correlation")


def _effect(
    group: str, part: Part, rows: pd.DataFrame, value: str, stands_on: tuple[str, ...] = ()
) -> Iterator[Effect]:
    """The mean of a column over models as an effect; none where it is defined for no model."""
    interval = agreement.interval(rows, value)
    if interval is not None:
        yield Effect(group, part.name, interval, stands_on=stands_on)


def _between_thirds(changes: pd.DataFrame, parts: dict[Part, tuple[str, str]]) -> Iterator[Effect]:
    """Differences of the mean change between thirds of the layers, per measure."""
    of_third = {layer: third for third, layers in thirds(int(changes["layer"].max())).items() for layer in layers}
    keys = [key for key in ("measure", *agreement.MODEL, "fold") if key in changes.columns]
    means = changes.groupby([*keys, changes["layer"].map(of_third)], sort=False)["value"].mean().unstack("layer")
    means = means.reset_index()
    for measure, rows in means.groupby("measure", sort=False):
        for part, (upper, lower) in parts.items():
            yield from _effect(name(measure), part, rows.assign(gap=rows[upper] - rows[lower]), "gap")


def rises_with_depth(changes: pd.DataFrame) -> Iterator[Effect]:
    """The change of each third of the layers less that of the third below."""
    return _between_thirds(changes, {MIDDLE_OVER_LOW: ("middle", "low"), HIGH_OVER_MIDDLE: ("high", "middle")})


def top_is_high(changes: pd.DataFrame) -> Iterator[Effect]:
    """The change of the highest third of the layers less that of either other."""
    return _between_thirds(changes, {HIGH_OVER_MIDDLE: ("high", "middle"), HIGH_OVER_LOW: ("high", "low")})


def lenses_agree(changes: pd.DataFrame) -> Iterator[Effect]:
    """Rank correlation of each pair of lenses over the layers."""
    for (first, second), rows in agreement.lenses_by_model(changes).groupby(agreement.PAIR, sort=False):
        yield from _effect(f"{LENSES[first]} / {LENSES[second]}", SAME_ORDER, rows, "correlation")


def outputs_agree_more(changes: pd.DataFrame) -> Iterator[Effect]:
    """Mean correlation among measures of attention and features, minus theirs with the weights."""
    table = agreement.by_model(changes)
    inside = table["first"].isin(SIMILARITIES) & table["second"].isin(SIMILARITIES)
    to_weights = (table["first"] == "weights") | (table["second"] == "weights")
    across = to_weights & (table["first"].isin(SIMILARITIES) | table["second"].isin(SIMILARITIES))
    means = [agreement.mean_by_model(table[kind], "correlation") for kind in (inside, across)]
    yield from _of_tasks(KINSHIP, (means[0] - means[1]).rename("gap").reset_index())


def layers_inherit(changes: pd.DataFrame) -> Iterator[Effect]:
    """Correlation with the weights of what a layer adds to a measure, minus that of what it puts out."""
    table = agreement.added(changes)
    means = agreement.mean_by_model(table[table["own"] == "weights"], "difference")
    yield from _of_tasks(INHERITED, means.rename("gap").reset_index())


def _of_tasks(part: Part, rows: pd.DataFrame) -> Iterator[Effect]:
    for task, of_task in rows.groupby("task", sort=False):
        yield from _effect(tasks.find(task).title, part, of_task, "gap", (task,))


def _checked(effects: Callable[[pd.DataFrame], Iterator[Effect]]) -> Callable[[pd.DataFrame], list[Effect]]:
    """Effects of curves that vary: a measure that is the same at all layers orders nothing.

    Raises:
        CannotTest: none is left.
    """

    def checked(changes: pd.DataFrame) -> list[Effect]:
        if changes.empty:
            raise CannotTest("no task was learned")
        vary = changes.groupby(["measure", *agreement.MODEL])["value"].transform(lambda values: values.nunique() > 1)
        found = list(effects(changes[vary])) if vary.any() else []
        if not found:
            raise CannotTest("the measures that it compares are the same at all layers")
        return found

    return checked


def _statement(
    key: str, sentence: str, quantity: str, parts: tuple[Part, ...], effects: Callable, unit: str, pools: bool = True
) -> Claim:
    records, effects = ("changes_by_layer",), _checked(effects)
    return Claim(key, PAPER, sentence, OURS, (TABLE,), quantity, parts, records, effects, unit, pools_tasks=pools)


CLAIMS = (
    _statement(
        "all-rise-with-depth",
        "Whatever the lens, fine-tuning changes a layer the more the higher it is.",
        "change in a third of the layers less that in the third below",
        (MIDDLE_OVER_LOW, HIGH_OVER_MIDDLE),
        rises_with_depth,
        "measure",
    ),
    _statement(
        "lenses-agree",
        "Any two lenses order the layers alike.",
        "rank correlation of two lenses over the layers, mean over their measures",
        (SAME_ORDER,),
        lenses_agree,
        "pair",
    ),
    _statement(
        "top-is-high",
        "The high third of the layers changes most, whatever the measure.",
        "change in the high third of the layers less that in the middle, and less that in the low third",
        (HIGH_OVER_MIDDLE, HIGH_OVER_LOW),
        top_is_high,
        "measure",
    ),
    _statement(
        "outputs-agree-more",
        "What is read of attention and features agrees more with itself than with how far the weights moved.",
        "mean rank correlation among attention, features and similarity, minus theirs with the weights",
        (KINSHIP,),
        outputs_agree_more,
        "task",
        pools=False,
    ),
    _statement(
        "layers-inherit",
        "Features part from weights because a layer inherits what changed below it: what it adds agrees better.",
        "rank correlation with the weights of what a layer adds to the features' change, minus that of the whole",
        (INHERITED,),
        layers_inherit,
        "task",
        pools=False,
    ),
)
