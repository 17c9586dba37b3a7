"""The seven claims of Hao et al. (2020): their numbers from the records of `measure`.

The paper argues from the shapes of curves and prints no numbers, so thresholds are ours. Where it says that layers
change *drastically*, *hardly*, or agree, the threshold asks for more than a straight line gives: a curve to which every
layer adds the same says nothing of any layer. Growth is the difference between thirds of the layers, in the measure's
own units. Layers are taken relative to the depth: the lower third of 24 layers is that of 6.

Intervals cover models and examples: folds of sentences are left out of the whole number, and pairs of seeds are counted
by the models in them (`intervals.of_pairs`).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits import effects
from fivelenses.exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.exhibits.effects import Interval
from fivelenses.exhibits.exhibit import title
from fivelenses.exhibits.intervals import of_measure, of_pairs
from fivelenses.exhibits.verdicts import Effect, Part
from fivelenses.papers.hao2020.measure import PRETRAINED, UNTRAINED

CLAIMS = Claims("hao2020")
THIRDS = {"low": (0, 1 / 3), "middle": (1 / 3, 2 / 3), "last": (2 / 3, 1)}  # of the depth
LOW_OF_24 = 11 / 24  # the paper's layers 0–10
MIN_LAYERS = 6  # from which a bend can be told from a straight line
DATASET_ORDER = ("rte–mnli", "mrpc–rte", "mrpc–sst2")
LARGE, SMALL = ("mnli", "sst2"), "mrpc"
LARGER = 10  # times MRPC's training examples make a large set; SST-2 has 18 times as many

Measure = Callable[[pd.DataFrame], float]


def _before(task: str) -> str:
    """The group in which MRPC is compared with a large set."""
    return f"{title(SMALL)} before {title(task)}"


LAST_OVER_BELOW = Part(
    "last third over the layers below",
    3.5,
    "a straight line that starts at zero or above gives at most 3.3 over six layers or more",
    "ratio",
)
TOP_OVER_BOTTOM = Part("last third minus lower third", unit="SVCCA distance")
LOW_MOVES_LESS = Part(
    "share by which low layers move the last one less",
    7 / 8,
    "an eighth or less of what the other layers do: a straight line gives at least a seventh over six layers or more",
    "share",
)
SEEDS_LAST_OVER_BELOW = replace(LAST_OVER_BELOW, groups=tuple(map(title, LARGE)))
SMALL_EARLIER = Part(
    "share of the height that is reached before the last sixth, MRPC minus the large set",
    unit="share",
    groups=tuple(map(_before, LARGE)),
)
OF_TASKS = tuple(task.title for task in tasks.TASKS.values() if task.head == "sequence")
RISE_TO_LAST = Part("last third minus middle third", unit="SVCCA distance", groups=OF_TASKS)
RISE_TO_MIDDLE = Part("middle third minus lower third", unit="SVCCA distance", groups=OF_TASKS)
STEEPER_AT_LAST = Part(
    "rise into the last third minus rise into the middle third",
    unit="SVCCA distance",
    groups=tuple(map(title, LARGE)),
)
AGREE_BELOW = (
    0.9,
    "a tenth or less of the last third: a straight line gives 0.11 to 0.27 over 6, 12 or 24 layers",
    "share",
)
ATTENTION_AGREES = Part("share by which attention differs less in the lower third", *AGREE_BELOW)
FEATURES_AGREE = Part("share by which features differ less in the lower third", *AGREE_BELOW)
NEAR_TO_FURTHER = Part("MRPC–RTE minus RTE–MNLI", unit="nats or SVCCA distance")
FURTHER_TO_FAR = Part("MRPC–SST-2 minus MRPC–RTE", unit="nats or SVCCA distance")


def _mean(rows: pd.DataFrame, value: str, above: float, upto: float) -> float:
    """The mean of a curve over the layers between two relative depths."""
    # Arrays: this is asked for each model and fold, where comparing columns of a table would take most of the time.
    layers, values = rows["layer"].to_numpy(), rows[value].to_numpy()
    depth = layers.max()
    inside = (layers > above * depth + 1e-9) & (layers <= upto * depth + 1e-9)
    if not inside.any():
        raise CannotTest(f"an encoder of {depth} layers has none between {above:.0%} and {upto:.0%} of its depth")
    return float(values[inside].mean())


def _rise(rows: pd.DataFrame, value: str, lower: str, upper: str) -> float:
    """The mean over one third of the layers minus that over another."""
    return _mean(rows, value, *THIRDS[upper]) - _mean(rows, value, *THIRDS[lower])


def _of_models(rows: pd.DataFrame, measure: Measure, model: str = "seed") -> Interval:
    return of_measure(rows, measure, model, examples=_examples(rows))


def _of_pairs(rows: pd.DataFrame, measure: Measure) -> Interval:
    return of_pairs(rows, measure, examples=_examples(rows))


def _examples(rows: pd.DataFrame) -> int:
    return int(rows["examples"].max())


def _ratio(of: float, to: float) -> float:
    return of / max(to, 1e-12)


def _last_over_below(rows: pd.DataFrame) -> float:
    return _ratio(_mean(rows, "js", *THIRDS["last"]), _mean(rows, "js", 0, 2 / 3))


def _less_below(rows: pd.DataFrame, value: str, border: float, above: float) -> float:
    """1 minus the mean up to a relative depth over that from another depth on."""
    return 1 - _ratio(_mean(rows, value, 0, border), _mean(rows, value, above, 1))


def _reached_early(value: str) -> Measure:
    """The rise from the lower third to the layers between 1/2 and 5/6 of the depth, as a share of the last sixth."""

    def measure(rows: pd.DataFrame) -> float:
        early = _mean(rows, value, 1 / 2, 5 / 6) - _mean(rows, value, *THIRDS["low"])
        return _ratio(early, _mean(rows, value, 5 / 6, 1))

    return measure


def _deep_enough(table: pd.DataFrame) -> None:
    if not table.empty and table["layer"].max() < MIN_LAYERS:
        raise CannotTest(
            f"an encoder of {table['layer'].max()} layers has too few to tell a bend from a straight line, "
            f"which takes {MIN_LAYERS}"
        )


def _against_pretrained(changes: pd.DataFrame) -> pd.DataFrame:
    return changes[(changes["first"] == PRETRAINED) & (changes["second"] != UNTRAINED)]


def _between_seeds(changes: pd.DataFrame) -> pd.DataFrame:
    rows = changes[~changes["first"].isin((PRETRAINED, UNTRAINED))]
    if rows.empty:
        raise CannotTest("it compares seeds and this run has one, or one that did not diverge")
    return rows


EARLY = (
    "the rise from the lower third to the layers between 1/2 and 5/6 of the depth as a share of the height of the last "
    f"sixth, minus that share for each large set (at least {LARGER} times MRPC's training examples)"
)


@CLAIMS.add(
    "js-last-layers",
    "Fine-tuning hardly changes the attention of low and middle layers, and changes that of the last layers "
    "drastically.",
    "mean JS divergence of the last third of the layers over that of the two thirds below",
    LAST_OVER_BELOW,
    place="section 3, Figure 1",
    exhibits=("hao2020-figure-1",),
)
def last_layers_change(changes_by_layer: pd.DataFrame) -> Iterator[Effect]:
    _deep_enough(changes_by_layer)
    for task, rows in _against_pretrained(changes_by_layer).groupby("task", sort=False):
        change = _of_models(rows, _last_over_below, "second")
        yield Effect(title(task), LAST_OVER_BELOW.name, change, stands_on=(task,))


@CLAIMS.add(
    "svcca-grows",
    "SVCCA distance to the pre-trained encoder is larger in higher layers.",
    "mean SVCCA distance of the last third of the layers minus that of the lower third",
    TOP_OVER_BOTTOM,
    place="section 4, Figure 2",
    exhibits=("hao2020-figure-2",),
)
def distance_grows(changes_by_layer: pd.DataFrame) -> Iterator[Effect]:
    for task, rows in _against_pretrained(changes_by_layer).groupby("task", sort=False):
        growth = _of_models(rows, lambda one: _rise(one, "svcca", "low", "last"), "second")
        yield Effect(title(task), TOP_OVER_BOTTOM.name, growth, stands_on=(task,))


@CLAIMS.add(
    "rollback-low-harmless",
    "Rolling back any of the lower 11 of 24 layers hardly moves the last layer; rolling back a higher one does.",
    "1 minus the mean movement for the lower 11/24 of the layers over that for those above",
    LOW_MOVES_LESS,
    place="section 4, Figure 3",
    exhibits=("hao2020-figure-3",),
    printed="layers 0–10 of 24, counted from 0",
)
def low_layers_harmless(rollbacks: pd.DataFrame) -> Iterator[Effect]:
    _deep_enough(rollbacks)
    for task, rows in rollbacks.groupby("task", sort=False) if len(rollbacks) else ():
        change = _of_models(rows, lambda one: _less_below(one, "svcca", LOW_OF_24, LOW_OF_24))
        yield Effect(title(task), LOW_MOVES_LESS.name, change, stands_on=(task,))


def _small_before_large(seeds: pd.DataFrame, models: pd.DataFrame, value: str) -> Iterator[Effect | LeftOut]:
    """How much more of its height MRPC has reached before the last sixth than each large set, where both are large."""
    examples = models.groupby("task")["examples"].max()
    by_task = dict(list(seeds.groupby("task")))
    for task in LARGE:
        lacking = [one for one in (*LARGE, SMALL) if one not in by_task or one not in examples]
        too_small = [one for one in LARGE if not lacking and examples[one] < LARGER * examples[SMALL]]
        if lacking:
            yield LeftOut(_before(task), f"this run does not compare seeds of {title(lacking[0])}")
        elif too_small:
            counts = f"{title(too_small[0])} has {examples[too_small[0]]:,} training examples here"
            less = f"{counts}, not {LARGER} times MRPC's {examples[SMALL]:,}"
            yield LeftOut(_before(task), f"the comparison needs two large sets: {less}")
        else:
            measured = [_of_pairs(by_task[one], _reached_early(value)) for one in (SMALL, task)]
            difference = effects.independent_difference(*measured)
            yield Effect(_before(task), SMALL_EARLIER.name, difference, stands_on=(SMALL, task))


@CLAIMS.add(
    "seeds-js",
    "Between seeds, attention agrees in low and middle layers of models of the large sets MNLI and SST-2 and "
    "diverges in the last; for MRPC it diverges from about layer 10 of 24 on.",
    "for MNLI and SST-2, mean JS divergence between seeds of the last third over that of the two thirds below; for "
    f"MRPC, {EARLY}",
    SEEDS_LAST_OVER_BELOW,
    SMALL_EARLIER,
    place="section 5.1, Figure 4",
    exhibits=("hao2020-figure-4",),
    printed="MRPC: from layer 9 of 24, counted from 0",
)
def seeds_agree_in_attention(changes_by_layer: pd.DataFrame, models: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    _deep_enough(changes_by_layer)
    seeds = _between_seeds(changes_by_layer)
    for task, rows in seeds.groupby("task", sort=False):
        if task in LARGE:
            change = _of_pairs(rows, _last_over_below)
            yield Effect(title(task), SEEDS_LAST_OVER_BELOW.name, change, stands_on=(task,))
    yield from _small_before_large(seeds, models, "js")


@CLAIMS.add(
    "seeds-svcca",
    "Between seeds, SVCCA distance rises through all layers: for MNLI and SST-2 most in the last, for MRPC "
    "from about layer 14 of 24.",
    "differences of mean SVCCA distance between seeds from third to third; for MNLI and SST-2 also the second "
    f"difference minus the first; for MRPC also {EARLY}",
    RISE_TO_LAST,
    RISE_TO_MIDDLE,
    STEEPER_AT_LAST,
    SMALL_EARLIER,
    place="section 5.1, Figure 5",
    exhibits=("hao2020-figure-5",),
    printed="MRPC: from layer 13 of 24, counted from 0",
)
def seeds_part_in_features(changes_by_layer: pd.DataFrame, models: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    def to_middle(one: pd.DataFrame) -> float:
        return _rise(one, "svcca", "low", "middle")

    def to_last(one: pd.DataFrame) -> float:
        return _rise(one, "svcca", "middle", "last")

    seeds = _between_seeds(changes_by_layer)
    for task, rows in seeds.groupby("task", sort=False):
        measures = {RISE_TO_MIDDLE: to_middle, RISE_TO_LAST: to_last}
        if task in LARGE:
            measures[STEEPER_AT_LAST] = lambda one: to_last(one) - to_middle(one)
        for part, measure in measures.items():
            yield Effect(title(task), part.name, _of_pairs(rows, measure), stands_on=(task,))
    yield from _small_before_large(seeds, models, "svcca")


@CLAIMS.add(
    "datasets-low-agree",
    "The lower third of the layers agrees between models of different data sets, whatever the domain.",
    "1 minus the mean distance in the lower third over that in the last, for JS divergence and for SVCCA distance",
    ATTENTION_AGREES,
    FEATURES_AGREE,
    place="section 5.2, Figures 6 and 7",
    exhibits=("hao2020-figure-6", "hao2020-figure-7"),
    unit="pair of tasks",
    printed="layers 0–7 of 24, counted from 0",
)
def low_layers_agree_between_datasets(between_datasets: pd.DataFrame) -> Iterator[Effect]:
    _deep_enough(between_datasets)
    for pair, rows in between_datasets.groupby("pair", sort=False) if len(between_datasets) else ():
        for part, value in ((ATTENTION_AGREES, "js"), (FEATURES_AGREE, "svcca")):
            change = _of_models(rows, lambda one, value=value: _less_below(one, value, 1 / 3, 2 / 3))
            yield Effect(title(pair), part.name, change, stands_on=tuple(pair.split("–")))


@CLAIMS.add(
    "datasets-order",
    "In middle and last layers models differ more the more their data sets do: RTE–MNLI, then MRPC–RTE, then "
    "MRPC–SST-2.",
    "differences of the mean distance above the lower third between neighbouring pairs in that order",
    NEAR_TO_FURTHER,
    FURTHER_TO_FAR,
    place="section 5.2, Figures 6 and 7",
    exhibits=("hao2020-figure-6", "hao2020-figure-7"),
    unit="measure",
)
def distance_orders_datasets(between_datasets: pd.DataFrame) -> Iterator[Effect]:
    """Models and examples that two pairs of data sets share are left out of both together."""
    table, stands_on = between_datasets, tuple(dict.fromkeys("–".join(DATASET_ORDER).split("–")))
    seeds = [set(table.loc[table["pair"] == pair, "seed"]) if len(table) else set() for pair in DATASET_ORDER]
    if not (shared := set.intersection(*seeds)):
        raise CannotTest("it needs models of MNLI, RTE, SST-2 and MRPC with one seed")
    table = table[table["seed"].isin(shared)]
    neighbours = dict(zip((NEAR_TO_FURTHER, FURTHER_TO_FAR), pairwise(DATASET_ORDER), strict=True))
    for group, value in (("attention", "js"), ("features", "svcca")):
        for part, (nearer, further) in neighbours.items():

            def further_apart(rows: pd.DataFrame, value=value, nearer=nearer, further=further) -> float:
                of_pairs = [_mean(rows[rows["pair"] == pair], value, 1 / 3, 1) for pair in (further, nearer)]
                return of_pairs[0] - of_pairs[1]

            difference = _of_models(table[table["pair"].isin((nearer, further))], further_apart)
            yield Effect(group, part.name, difference, stands_on=stands_on)
