"""The seven claims of Hao et al. (2020): their numbers from the records of `measure`.

The paper argues from the shapes of curves and prints no numbers, so thresholds are ours. Where it says that layers
change *drastically*, *hardly*, or agree, the threshold asks for more than a straight line gives: a curve to which every
layer adds the same says nothing of any layer. Growth is the difference between thirds of the layers, in the measure's
own units. Layers are taken relative to the depth: the lower third of 24 layers is that of 6. A *large* set has at least
ten times MRPC's training examples. Pairs of data sets that the paper does not compare are drawn and not judged.

Intervals cover models and examples: folds of sentences are left out of the whole number, and pairs of seeds are counted
by the models in them (`intervals.of_pairs`).
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pandas as pd

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.first_exhibits.effects import Interval
from fivelenses.first_exhibits.exhibit import title
from fivelenses.first_exhibits.intervals import of_measure, of_pairs
from fivelenses.first_exhibits.verdicts import RATIO, Effect, Part
from fivelenses.records import PRETRAINED, UNTRAINED

CLAIMS = Claims("hao2020")
LOW, HIGH = (0, 1 / 3), (2 / 3, 1)  # of the depth
MIDDLE, BELOW = (1 / 3, 2 / 3), (0, 2 / 3)
HALVES = (0, 1 / 2), (1 / 2, 1)
EARLY, LAST = (1 / 2, 5 / 6), (5 / 6, 1)
LOW_OF_24 = 11 / 24  # the paper's layers 0–10
MIN_LAYERS = 6  # from which a bend can be told from a straight line
DATASET_ORDER = ("rte–mnli", "mrpc–rte", "mrpc–sst2")
LARGE, SMALL = ("mnli", "sst2"), "mrpc"
LARGER = 10  # times MRPC's training examples make a large set; SST-2 has 18 times as many
LEAST_SHARE = 0.01  # of the height: what has risen less, or fallen, has not begun to rise

Measure = Callable[[pd.DataFrame], float]
Span = tuple[float, float]


def _before(task: str) -> str:
    """The group in which MRPC is compared with a large set."""
    return f"{title(SMALL)} before {title(task)}"


def _at_last(task: str) -> str:
    """The group in which the last layers of a large set are compared with those below."""
    return f"{title(task)}, last layers"


DRASTIC = 3.5, "a straight line that starts at zero or above gives at most 3.3 over six layers or more", RATIO
LAST_OVER_BELOW = Part("last third over the layers below", *DRASTIC)
TOP_OVER_BOTTOM = Part("last third minus lower third", unit="SVCCA distance")
LOW_MOVES_LESS = Part(
    "the other layers over the low ones",
    8,
    "low layers move the last one by an eighth or less: a straight line gives at least a seventh over six layers or "
    "more",
    RATIO,
)
LARGE_LATE, SMALL_EARLY = "large sets in the last layers", "MRPC from a lower layer on"
SEEDS_LAST_OVER_BELOW = Part(LAST_OVER_BELOW.name, *DRASTIC, tuple(map(_at_last, LARGE)), LARGE_LATE)
SMALL_EARLIER = Part(
    "share of the height that is reached before the last sixth, MRPC over the large set",
    1,
    "the same share",
    RATIO,
    tuple(map(_before, LARGE)),
    SMALL_EARLY,
)
RISING = tuple(map(title, (*LARGE, "rte", SMALL)))
RISE_TO_LAST = Part("last third minus middle third", unit="SVCCA distance", groups=RISING)
RISE_TO_MIDDLE = Part("middle third minus lower third", unit="SVCCA distance", groups=RISING)
STEEPER_AT_LAST = Part(
    "rise into the last third minus rise into the middle third",
    unit="SVCCA distance",
    groups=tuple(map(_at_last, LARGE)),
    half=LARGE_LATE,
)
AGREE_BELOW = (
    10,
    "the lower third differs by a tenth or less of the last: a straight line gives 0.11 to 0.27 over 6, 12 or 24 "
    "layers",
    RATIO,
)
ATTENTION_AGREES = Part("attention, last third over the lower third", *AGREE_BELOW)
FEATURES_AGREE = Part("features, last third over the lower third", *AGREE_BELOW)
NEAR_TO_FURTHER = Part("MRPC–RTE minus RTE–MNLI", unit="nats or SVCCA distance")
FURTHER_TO_FAR = Part("MRPC–SST-2 minus MRPC–RTE", unit="nats or SVCCA distance")


def _mean(rows: pd.DataFrame, value: str, span: Span) -> float:
    """The mean of a curve over the layers between two relative depths."""
    # Arrays: this is asked for each model and fold, where comparing columns of a table would take most of the time.
    layers, values = rows["layer"].to_numpy(), rows[value].to_numpy()
    (above, upto), depth = span, layers.max()
    inside = (layers > above * depth + 1e-9) & (layers <= upto * depth + 1e-9)
    if not inside.any():
        raise CannotTest(f"an encoder of {depth} layers has none between {above:.0%} and {upto:.0%} of its depth")
    return float(values[inside].mean())


def _difference(value: str, upper: Span, lower: Span) -> Measure:
    return lambda rows: _mean(rows, value, upper) - _mean(rows, value, lower)


def _ratio(value: str, upper: Span, lower: Span) -> Measure:
    """A ratio of means, of which none counts as less than what rounding leaves."""
    return lambda rows: max(_mean(rows, value, upper), 1e-12) / max(_mean(rows, value, lower), 1e-12)


def _reached_early(value: str) -> Measure:
    """The rise from the lower third to the layers between 1/2 and 5/6 of the depth, as a share of the last sixth."""

    def measure(rows: pd.DataFrame) -> float:
        rise = _mean(rows, value, EARLY) - _mean(rows, value, LOW)
        return max(rise / max(_mean(rows, value, LAST), 1e-12), LEAST_SHARE)

    return measure


def _of_models(rows: pd.DataFrame, measure: Measure, model: str = "seed", log: bool = False) -> Interval:
    return of_measure(rows, measure, model, examples=_examples(rows), log=log)


def _of_pairs(rows: pd.DataFrame, measure: Measure, log: bool = False) -> Interval:
    return of_pairs(rows, measure, examples=_examples(rows), log=log)


def _examples(rows: pd.DataFrame) -> int:
    return int(rows["examples"].max())


def _deep_enough(table: pd.DataFrame) -> None:
    if not table.empty and table["layer"].max() < MIN_LAYERS:
        raise CannotTest(
            f"an encoder of {table['layer'].max()} layers has too few to tell a bend from a straight line, "
            f"which takes {MIN_LAYERS}"
        )


def _examples_given(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Where a measure was not repeated without each fold, as if that changed nothing: seeds alone are chance."""
    if not table[value].isna().any():
        return table
    names = [name for name in ("task", "pair", "first", "second", "seed", "layer") if name in table.columns]
    return table.assign(**{value: table.groupby(names)[value].transform("max")})


def _against_pretrained(changes: pd.DataFrame) -> pd.DataFrame:
    return changes[(changes["first"] == PRETRAINED) & (changes["second"] != UNTRAINED)]


def _between_seeds(changes: pd.DataFrame) -> pd.DataFrame:
    rows = changes[~changes["first"].isin((PRETRAINED, UNTRAINED))]
    if rows.empty:
        raise CannotTest("it compares seeds and this run has one, or one that did not diverge")
    return rows


ALL_VARIANCE = {"all of the variance kept": {"features": "svcca_all"}}
MRPC_EARLIER = (
    "the rise from the lower third to the layers between 1/2 and 5/6 of the depth as a share of the height of the last "
    f"sixth (at least {LEAST_SHARE:g}), MRPC over each large set"
)
OF_LARGE = f"a set is large from {LARGER} times MRPC's training examples on"


@CLAIMS.add(
    "js-last-layers",
    "Fine-tuning hardly changes the attention of low and middle layers, and changes that of the last layers "
    "drastically.",
    "mean JS divergence of the last third of the layers over that of the two thirds below",
    LAST_OVER_BELOW,
    place="section 3, Figure 1",
    exhibits=("hao2020-figure-1",),
    variants={"halves of the layers": {"spans": HALVES}},
)
def last_layers_change(changes_by_layer: pd.DataFrame, *, spans: tuple[Span, Span] = (BELOW, HIGH)) -> Iterator[Effect]:
    _deep_enough(changes_by_layer)
    lower, upper = spans
    for task, rows in _against_pretrained(changes_by_layer).groupby("task", sort=False):
        change = _of_models(rows, _ratio("js", upper, lower), "second", log=True)
        yield Effect(title(task), LAST_OVER_BELOW.name, change, stands_on=(task,))


@CLAIMS.add(
    "svcca-grows",
    "SVCCA distance to the pre-trained encoder is larger in higher layers.",
    "mean SVCCA distance of the last third of the layers minus that of the lower third",
    TOP_OVER_BOTTOM,
    place="section 4, Figure 2",
    exhibits=("hao2020-figure-2",),
    variants={"halves of the layers": {"spans": HALVES}} | ALL_VARIANCE,
)
def distance_grows(
    changes_by_layer: pd.DataFrame, *, spans: tuple[Span, Span] = (LOW, HIGH), features: str = "svcca"
) -> Iterator[Effect]:
    lower, upper = spans
    changes = _examples_given(changes_by_layer, features)
    for task, rows in _against_pretrained(changes).groupby("task", sort=False):
        growth = _of_models(rows, _difference(features, upper, lower), "second")
        yield Effect(title(task), TOP_OVER_BOTTOM.name, growth, stands_on=(task,))


@CLAIMS.add(
    "rollback-low-harmless",
    "Rolling back any of the lower 11 of 24 layers hardly moves the last layer; rolling back a higher one does.",
    "mean movement for the layers above the lower 11/24 over that for those",
    LOW_MOVES_LESS,
    place="section 4, Figure 3",
    exhibits=("hao2020-figure-3",),
    printed="layers 0–10 of 24, counted from 0",
    variants={"halves of the layers": {"border": 1 / 2}} | ALL_VARIANCE,
)
def low_layers_harmless(
    rollbacks: pd.DataFrame, *, border: float = LOW_OF_24, features: str = "svcca"
) -> Iterator[Effect]:
    _deep_enough(rollbacks)
    rollbacks = _examples_given(rollbacks, features) if len(rollbacks) else rollbacks
    for task, rows in rollbacks.groupby("task", sort=False) if len(rollbacks) else ():
        change = _of_models(rows, _ratio(features, (border, 1), (0, border)), log=True)
        yield Effect(title(task), LOW_MOVES_LESS.name, change, stands_on=(task,))


def _small_set(task: str, examples: pd.Series) -> str:
    """Why a set that is large in the paper is not here; empty where it is."""
    if examples[task] >= LARGER * examples[SMALL]:
        return ""
    return f"{title(task)} has {examples[task]:,} training examples here, not {LARGER} times MRPC's {examples[SMALL]:,}"


def _of_large(
    seeds: pd.DataFrame, models: pd.DataFrame, value: str, late: tuple[Part, Measure, bool]
) -> Iterator[Effect | LeftOut]:
    """Both halves: what each large set does in its last layers, and how much more of its height MRPC has reached by
    then.
    """
    examples, by_task = models.groupby("task")["examples"].max(), dict(list(seeds.groupby("task")))
    part, measure, log = late
    for task in LARGE:
        lacking = [one for one in (task, SMALL) if one not in by_task or one not in examples]
        reason = f"this run does not compare seeds of {title(lacking[0])}" if lacking else _small_set(task, examples)
        if reason:
            yield LeftOut(_at_last(task), reason)
            yield LeftOut(_before(task), reason)
            continue
        yield Effect(_at_last(task), part.name, _of_pairs(by_task[task], measure, log), stands_on=(task,))
        shares = [_of_pairs(by_task[one], _reached_early(value), log=True) for one in (SMALL, task)]
        earlier = effects.independent_difference(*shares)
        yield Effect(_before(task), SMALL_EARLIER.name, earlier, stands_on=(SMALL, task))


@CLAIMS.add(
    "seeds-js",
    "Between seeds, attention agrees in low and middle layers of models of the large sets MNLI and SST-2 and "
    "diverges in the last; for MRPC it diverges from about layer 10 of 24 on.",
    "for each large set, mean JS divergence between seeds of the last third over that of the two thirds below; for "
    f"MRPC, {MRPC_EARLIER}; {OF_LARGE}",
    SEEDS_LAST_OVER_BELOW,
    SMALL_EARLIER,
    place="section 5.1, Figure 4",
    exhibits=("hao2020-figure-4",),
    printed="MRPC: from layer 9 of 24, counted from 0",
    unit="comparison",
    variants={"halves of the layers": {"spans": HALVES}},
)
def seeds_agree_in_attention(
    changes_by_layer: pd.DataFrame, models: pd.DataFrame, *, spans: tuple[Span, Span] = (BELOW, HIGH)
) -> Iterator[Effect | LeftOut]:
    _deep_enough(changes_by_layer)
    lower, upper = spans
    late = SEEDS_LAST_OVER_BELOW, _ratio("js", upper, lower), True
    yield from _of_large(_between_seeds(changes_by_layer), models, "js", late)


@CLAIMS.add(
    "seeds-svcca",
    "Between seeds, SVCCA distance rises through all layers: for MNLI and SST-2 most in the last, for MRPC "
    "from about layer 14 of 24.",
    "differences of mean SVCCA distance between seeds from third to third; for each large set, the second difference "
    f"minus the first; for MRPC, {MRPC_EARLIER}; {OF_LARGE}",
    RISE_TO_LAST,
    RISE_TO_MIDDLE,
    STEEPER_AT_LAST,
    SMALL_EARLIER,
    place="section 5.1, Figure 5",
    exhibits=("hao2020-figure-5",),
    printed="MRPC: from layer 13 of 24, counted from 0",
    unit="comparison",
    variants=ALL_VARIANCE,
)
def seeds_part_in_features(
    changes_by_layer: pd.DataFrame, models: pd.DataFrame, *, features: str = "svcca"
) -> Iterator[Effect | LeftOut]:
    to_middle, to_last = _difference(features, MIDDLE, LOW), _difference(features, HIGH, MIDDLE)
    seeds = _between_seeds(_examples_given(changes_by_layer, features))
    for task, rows in seeds.groupby("task", sort=False):
        for part, measure in ((RISE_TO_MIDDLE, to_middle), (RISE_TO_LAST, to_last)):
            yield Effect(title(task), part.name, _of_pairs(rows, measure), stands_on=(task,))
    late = STEEPER_AT_LAST, lambda one: to_last(one) - to_middle(one), False
    yield from _of_large(seeds, models, features, late)


@CLAIMS.add(
    "datasets-low-agree",
    "The lower third of the layers agrees between models of different data sets, whatever the domain.",
    "mean distance in the last third over that in the lower, for JS divergence and for SVCCA distance",
    ATTENTION_AGREES,
    FEATURES_AGREE,
    place="section 5.2, Figures 6 and 7",
    exhibits=("hao2020-figure-6", "hao2020-figure-7"),
    unit="pair of tasks",
    printed="layers 0–7 of 24, counted from 0",
    nothing="this run compares none of the paper's pairs of data sets",
    variants={"halves of the layers": {"spans": HALVES}} | ALL_VARIANCE,
)
def low_layers_agree_between_datasets(
    between_datasets: pd.DataFrame, *, spans: tuple[Span, Span] = (LOW, HIGH), features: str = "svcca"
) -> Iterator[Effect]:
    _deep_enough(between_datasets)
    lower, upper = spans
    between = _examples_given(between_datasets, features) if len(between_datasets) else between_datasets
    for pair, rows in between.groupby("pair", sort=False) if len(between) else ():
        if pair in DATASET_ORDER:
            for part, value in ((ATTENTION_AGREES, "js"), (FEATURES_AGREE, features)):
                change = _of_models(rows, _ratio(value, upper, lower), log=True)
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
    variants={"halves of the layers": {"border": 1 / 2}} | ALL_VARIANCE,
)
def distance_orders_datasets(
    between_datasets: pd.DataFrame, *, border: float = 1 / 3, features: str = "svcca"
) -> Iterator[Effect]:
    """Models and examples that two pairs of data sets share are left out of both together."""
    table, stands_on = between_datasets, tuple(dict.fromkeys("–".join(DATASET_ORDER).split("–")))
    seeds = [set(table.loc[table["pair"] == pair, "seed"]) if len(table) else set() for pair in DATASET_ORDER]
    if not (shared := set.intersection(*seeds)):
        raise CannotTest("it needs models of MNLI, RTE, SST-2 and MRPC with one seed")
    table = _examples_given(table[table["seed"].isin(shared)], features)
    neighbours = dict(zip((NEAR_TO_FURTHER, FURTHER_TO_FAR), pairwise(DATASET_ORDER), strict=True))
    for group, value in (("attention", "js"), ("features", features)):
        for part, (nearer, further) in neighbours.items():

            def further_apart(rows: pd.DataFrame, value=value, nearer=nearer, further=further) -> float:
                of_pairs = [_mean(rows[rows["pair"] == pair], value, (border, 1)) for pair in (further, nearer)]
                return of_pairs[0] - of_pairs[1]

            difference = _of_models(table[table["pair"].isin((nearer, further))], further_apart)
            yield Effect(group, part.name, difference, stands_on=stands_on)
