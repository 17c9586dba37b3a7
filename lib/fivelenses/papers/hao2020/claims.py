"""The seven claims of Hao et al. (2020): their numbers from the records of `measure`.

The paper argues from the shapes of curves and prints no numbers, so thresholds are ours. Where it says that layers
change *drastically*, *hardly*, or agree, the threshold asks for more than a straight line gives: a curve to which every
layer adds the same says nothing of any layer. Growth is the difference between thirds of the layers, in the measure's
own units. Layers are taken relative to the depth: the lower third of 24 layers is that of 6.

Intervals cover models and examples: folds of sentences are left out of the whole number, and pairs of seeds are counted
by the models in them (`intervals.of_pairs`).
"""

from collections.abc import Callable, Iterator

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits import effects
from fivelenses.exhibits.claims import CannotTest, Claim, LeftOut
from fivelenses.exhibits.effects import Interval
from fivelenses.exhibits.intervals import of_measure, of_pairs
from fivelenses.exhibits.verdicts import Effect, Part
from fivelenses.papers.hao2020.measure import PRETRAINED, UNTRAINED

PAPER = "hao2020"
THIRDS = {"low": (0, 1 / 3), "middle": (1 / 3, 2 / 3), "last": (2 / 3, 1)}  # of the depth
LOW_OF_24 = 11 / 24  # the paper's layers 0–10
MIN_LAYERS = 6  # from which a bend can be told from a straight line
DATASET_ORDER = ("rte–mnli", "mrpc–rte", "mrpc–sst2")
LARGE, SMALL = ("mnli", "sst2"), "mrpc"
LARGER = 10  # times MRPC's training examples make a large set; SST-2 has 18 times as many

Measure = Callable[[pd.DataFrame], float]


def _title(group: str) -> str:
    """A task's, or a pair of tasks', title."""
    return "–".join(tasks.find(task).title for task in group.split("–"))


def _before(task: str) -> str:
    """The group in which MRPC is compared with a large set."""
    return f"{_title(SMALL)} before {_title(task)}"


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
SEEDS_LAST_OVER_BELOW = Part(
    LAST_OVER_BELOW.name, LAST_OVER_BELOW.threshold, LAST_OVER_BELOW.reason, "ratio", tuple(map(_title, LARGE))
)
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
    groups=tuple(map(_title, LARGE)),
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
    chosen = (layers > above * depth + 1e-9) & (layers <= upto * depth + 1e-9)
    if not chosen.any():
        raise CannotTest(f"an encoder of {depth} layers has none between {above:.0%} and {upto:.0%} of its depth")
    return float(values[chosen].mean())


def _thirds(rows: pd.DataFrame, value: str) -> tuple[float, float, float]:
    low, middle, last = (_mean(rows, value, *third) for third in THIRDS.values())
    return low, middle, last


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


def last_layers_change(changes: pd.DataFrame) -> Iterator[Effect]:
    """JS divergence of the last third of the layers over that of the two thirds below, by task."""
    _deep_enough(changes)
    for task, rows in _against_pretrained(changes).groupby("task", sort=False):
        yield Effect(
            _title(task), LAST_OVER_BELOW.name, _of_models(rows, _last_over_below, "second"), stands_on=(task,)
        )


def distance_grows(changes: pd.DataFrame) -> Iterator[Effect]:
    """SVCCA distance of the last third minus that of the lower third, by task."""

    def growth(rows: pd.DataFrame) -> float:
        low, _, last = _thirds(rows, "svcca")
        return last - low

    for task, rows in _against_pretrained(changes).groupby("task", sort=False):
        yield Effect(_title(task), TOP_OVER_BOTTOM.name, _of_models(rows, growth, "second"), stands_on=(task,))


def low_layers_harmless(rollbacks: pd.DataFrame) -> Iterator[Effect]:
    """By how much less the last layer moves when a low layer is rolled back than when a middle or last one is."""
    _deep_enough(rollbacks)
    for task, rows in rollbacks.groupby("task", sort=False) if len(rollbacks) else ():
        found = _of_models(rows, lambda one: _less_below(one, "svcca", LOW_OF_24, LOW_OF_24))
        yield Effect(_title(task), LOW_MOVES_LESS.name, found, stands_on=(task,))


def _small_before_large(seeds: pd.DataFrame, models: pd.DataFrame, value: str) -> Iterator[Effect | LeftOut]:
    """How much more of its height MRPC has reached before the last sixth than each large set, where both are large."""
    examples = models.groupby("task")["examples"].max()
    by_task = dict(list(seeds.groupby("task")))
    for task in LARGE:
        lacking = [one for one in (*LARGE, SMALL) if one not in by_task or one not in examples]
        too_small = [one for one in LARGE if not lacking and examples[one] < LARGER * examples[SMALL]]
        if lacking:
            yield LeftOut(_before(task), f"this run does not compare seeds of {_title(lacking[0])}")
        elif too_small:
            counts = f"{_title(too_small[0])} has {examples[too_small[0]]:,} training examples here"
            yield LeftOut(
                _before(task),
                f"MRPC is compared with large sets: {counts}, not {LARGER} times MRPC's {examples[SMALL]:,}",
            )
        else:
            measured = [_of_pairs(by_task[one], _reached_early(value)) for one in (SMALL, task)]
            found = effects.independent_difference(*measured)
            yield Effect(_before(task), SMALL_EARLIER.name, found, stands_on=(SMALL, task))


def seeds_agree_in_attention(changes: pd.DataFrame, models: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    """As `last_layers_change`, between seeds of a large set; and MRPC's divergence begins earlier than theirs."""
    _deep_enough(changes)
    seeds = _between_seeds(changes)
    for task, rows in seeds.groupby("task", sort=False):
        if task in LARGE:
            found = _of_pairs(rows, _last_over_below)
            yield Effect(_title(task), SEEDS_LAST_OVER_BELOW.name, found, stands_on=(task,))
    yield from _small_before_large(seeds, models, "js")


def seeds_part_in_features(changes: pd.DataFrame, models: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    """SVCCA distance between seeds rises from third to third; for large sets more into the last, for MRPC earlier."""

    def rises(rows: pd.DataFrame) -> tuple[float, float]:
        low, middle, last = _thirds(rows, "svcca")
        return middle - low, last - middle

    seeds = _between_seeds(changes)
    for task, rows in seeds.groupby("task", sort=False):
        measures = {RISE_TO_MIDDLE: lambda one: rises(one)[0], RISE_TO_LAST: lambda one: rises(one)[1]}
        if task in LARGE:
            measures[STEEPER_AT_LAST] = lambda one: rises(one)[1] - rises(one)[0]
        for part, measure in measures.items():
            yield Effect(_title(task), part.name, _of_pairs(rows, measure), stands_on=(task,))
    yield from _small_before_large(seeds, models, "svcca")


def low_layers_agree_between_datasets(between: pd.DataFrame) -> Iterator[Effect]:
    """By how much less models of two data sets differ in the lower third than in the last: attention and features."""
    _deep_enough(between)
    for pair, rows in between.groupby("pair", sort=False) if len(between) else ():
        for part, value in ((ATTENTION_AGREES, "js"), (FEATURES_AGREE, "svcca")):
            found = _of_models(rows, lambda one, value=value: _less_below(one, value, 1 / 3, 2 / 3))
            yield Effect(_title(pair), part.name, found, stands_on=tuple(pair.split("–")))


def distance_orders_datasets(between: pd.DataFrame) -> Iterator[Effect]:
    """The differences of the mean distance above the lower third between neighbours in the paper's order of pairs."""
    seeds = [set(between.loc[between["pair"] == pair, "seed"]) if len(between) else set() for pair in DATASET_ORDER]
    if not (shared := set.intersection(*seeds)):
        raise CannotTest("it needs models of MNLI, RTE, SST-2 and MRPC with one seed")
    between = between[between["seed"].isin(shared)]
    for group, value in (("attention", "js"), ("features", "svcca")):
        for part, nearer, further in zip(
            (NEAR_TO_FURTHER, FURTHER_TO_FAR), DATASET_ORDER, DATASET_ORDER[1:], strict=False
        ):
            found = _further(between, value, nearer, further)
            stands_on = tuple(dict.fromkeys("–".join(DATASET_ORDER).split("–")))
            yield Effect(group, part.name, found, stands_on=stands_on)


def _further(between: pd.DataFrame, value: str, nearer: str, further: str) -> Interval:
    """The difference of two pairs' distances; models and examples that both have are left out together."""

    def difference(rows: pd.DataFrame) -> float:
        means = [_mean(rows[rows["pair"] == pair], value, 1 / 3, 1) for pair in (further, nearer)]
        return means[0] - means[1]

    return _of_models(between[between["pair"].isin((nearer, further))], difference)


EARLY = (
    "the rise from the lower third to the layers between 1/2 and 5/6 of the depth as a share of the height of the last "
    "sixth, minus that share for each large set"
)
CLAIMS = (
    Claim(
        "js-last-layers",
        PAPER,
        "Fine-tuning hardly changes the attention of low and middle layers, and changes that of the last layers "
        "drastically.",
        "section 3, Figure 1",
        ("hao2020-figure-1",),
        "mean JS divergence of the last third of the layers over that of the two thirds below",
        (LAST_OVER_BELOW,),
        ("changes_by_layer",),
        last_layers_change,
    ),
    Claim(
        "svcca-grows",
        PAPER,
        "SVCCA distance to the pre-trained encoder is larger in higher layers.",
        "section 4, Figure 2",
        ("hao2020-figure-2",),
        "mean SVCCA distance of the last third of the layers minus that of the lower third",
        (TOP_OVER_BOTTOM,),
        ("changes_by_layer",),
        distance_grows,
    ),
    Claim(
        "rollback-low-harmless",
        PAPER,
        "Rolling back any of the lower 11 of 24 layers hardly moves the last layer; rolling back a higher one does.",
        "section 4, Figure 3",
        ("hao2020-figure-3",),
        "1 minus the mean movement for the lower 11/24 of the layers over that for those above",
        (LOW_MOVES_LESS,),
        ("rollbacks",),
        low_layers_harmless,
        printed="layers 0–10 of 24, counted from 0",
    ),
    Claim(
        "seeds-js",
        PAPER,
        "Between seeds, attention agrees in low and middle layers of models of the large sets MNLI and SST-2 and "
        "diverges in the last; for MRPC it diverges from about layer 10 of 24 on.",
        "section 5.1, Figure 4",
        ("hao2020-figure-4",),
        "for MNLI and SST-2, mean JS divergence between seeds of the last third over that of the two thirds below; "
        f"for MRPC, {EARLY} (at least {LARGER} times MRPC's training examples)",
        (SEEDS_LAST_OVER_BELOW, SMALL_EARLIER),
        ("changes_by_layer", "models"),
        seeds_agree_in_attention,
        printed="MRPC: from layer 9 of 24, counted from 0",
    ),
    Claim(
        "seeds-svcca",
        PAPER,
        "Between seeds, SVCCA distance rises through all layers: for MNLI and SST-2 most in the last, for MRPC "
        "from about layer 14 of 24.",
        "section 5.1, Figure 5",
        ("hao2020-figure-5",),
        "differences of mean SVCCA distance between seeds from third to third; for MNLI and SST-2 also the second "
        f"difference minus the first; for MRPC also {EARLY} (at least {LARGER} times MRPC's training examples)",
        (RISE_TO_LAST, RISE_TO_MIDDLE, STEEPER_AT_LAST, SMALL_EARLIER),
        ("changes_by_layer", "models"),
        seeds_part_in_features,
        printed="MRPC: from layer 13 of 24, counted from 0",
    ),
    Claim(
        "datasets-low-agree",
        PAPER,
        "The lower third of the layers agrees between models of different data sets, whatever the domain.",
        "section 5.2, Figures 6 and 7",
        ("hao2020-figure-6", "hao2020-figure-7"),
        "1 minus the mean distance in the lower third over that in the last, for JS divergence and for SVCCA distance",
        (ATTENTION_AGREES, FEATURES_AGREE),
        ("between_datasets",),
        low_layers_agree_between_datasets,
        unit="pair of tasks",
        printed="layers 0–7 of 24, counted from 0",
    ),
    Claim(
        "datasets-order",
        PAPER,
        "In middle and last layers models differ more the more their data sets do: RTE–MNLI, then MRPC–RTE, then "
        "MRPC–SST-2.",
        "section 5.2, Figures 6 and 7",
        ("hao2020-figure-6", "hao2020-figure-7"),
        "differences of the mean distance above the lower third between neighbouring pairs in that order",
        (NEAR_TO_FURTHER, FURTHER_TO_FAR),
        ("between_datasets",),
        distance_orders_datasets,
        unit="measure",
    ),
)
