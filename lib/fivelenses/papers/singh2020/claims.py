"""The six claims of Singh and Giovanardi (2020).

The report argues from the shapes of its curves and gives no thresholds; those here are ours, each with its reason. A
curve that does not fall has no shape, and a claim about it cannot be tested. *Few* are the number of training examples
nearest to the report's 1 % of SST-2, *most* all that a run has. The report gives each size of data the same epochs, so
fewer examples also mean fewer steps; models of as many steps are in figures alone, since the report has none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pandas as pd

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.first_exhibits.exhibit import title
from fivelenses.first_exhibits.gate import key
from fivelenses.first_exhibits.verdicts import HOLDS, Effect, Part, judge_group
from fivelenses.papers.singh2020 import curves
from fivelenses.papers.singh2020.curves import MIN_DROP, at, clear, drop, falls, interval, values

CLAIMS = Claims("singh2020")
NEEDS_HEAD = "scores need a trained classifier, which a twin has not"
COMPARED = ("sst2", "qnli")  # the report's figures 1 to 3; CoLA has an appendix of its own
FEW = 673  # 1 % of SST-2
TOP = 2 / 12
FROM_SCRATCH = "SST-2 against no pre-training"
POINTS = "points of the score, as a share"
SHARE = "share of the drop"
PARABOLA = "a parabola that begins flat: the least bent that is clearly no line"

LATER = Part(
    "the curve with more data is the more concave",
    unit=SHARE,
    groups=tuple(map(title, COMPARED)),
    half="the score drops sooner",
)
BEATS = Part(
    "few examples with the pre-trained layers beat the most without them",
    unit=POINTS,
    groups=(FROM_SCRATCH,),
    half="1 % with pre-training beats all without",
)
QNLI_CONCAVE = Part("QNLI's curve is concave", 1 / 6, PARABOLA, SHARE)
SST_NEARER = Part("SST-2's curve is nearer to a line than QNLI's", unit=SHARE)
SST_MIDDLE = Part(
    "the middle third of the layers matters to SST-2",
    0.02,
    "two points: less is no considerable drop (the report sees about five)",
    POINTS,
)
NOT_ABOVE = Part("minus the height above a line", -1 / 4, f"a quarter of the drop, as of {PARABOLA}", SHARE)
NOT_BELOW = Part("minus the depth below a line", -1 / 4, f"a quarter of the drop, as of {PARABOLA}", SHARE)
PEAKS_LOWER = Part("the best frozen probe scores below the best tuned model", unit=POINTS)
NEEDS_MORE = Part("the probe needs more layers", unit="share of the layers")
TOP_HURTS = Part("the probe gains without the top sixth of the layers", unit=POINTS)
READ = Part("the better of both above the null rate", 0.02, "two points, as for the gate", POINTS)
UPWARDS = Part("the top third moves further than the bottom third", unit="Frobenius norm")
FURTHER = Part("the layers move further with more data, on average", unit="Frobenius norm")
STEEPER = Part("top and bottom third lie further apart with more data", unit="Frobenius norm")

Table = pd.DataFrame
Found = Iterator[Effect | LeftOut]
Probes = pd.DataFrame | Mapping[str, pd.DataFrame]


def _compared(table: Table) -> list[str]:
    return [task for task in COMPARED if (table["task"] == task).any()]


def _concavity(curve: Table) -> Table:
    places = curve["place"].unique()
    return values(curve, curves.concavity(places), drop(places))


def _at_most_data(table: Table) -> Table:
    return table[table["examples"] == table["examples"].max()]


def _few(table: Table) -> int:
    """The number of examples that is nearest to the report's smallest."""
    return min(table["examples"].unique(), key=lambda examples: abs(examples - FEW))


def _usual(table: Table) -> dict[str, Table]:
    """The curves of each task that is compared, trained for the usual epochs, where there are two sizes."""
    by_task = {task: table[(table["task"] == task) & ~table["equal_steps"]] for task in COMPARED}
    return {task: rows for task, rows in by_task.items() if rows["examples"].nunique() > 1}


def _sizes(rows: Table, task: str) -> tuple[Table, Table, tuple[str, ...]]:
    """The rows with few and with the most examples, and what the gate calls them."""
    few = _few(rows)
    return rows[rows["examples"] == few], _at_most_data(rows), (task, key(task, "", "", few))


def _at_shared_places(*tables: Table) -> list[Table]:
    """Curves at the numbers of re-initialised layers that all of them have."""
    shared = set.intersection(*(set(one["place"]) for one in tables))
    return [one[one["place"].isin(shared)] for one in tables]


@CLAIMS.add(
    "less-data-more-reliance",
    "With less data, more layers' pre-training is needed: the score drops sooner, and 1 % of SST-2 with the "
    "pre-trained layers beats all of it without them.",
    "concavity of the curve with the most data minus that with few (−1 to 1); on SST-2, score with few and all layers "
    "minus that with the most data and none",
    LATER,
    BEATS,
    place="abstract and section 6.1, Figures 1a and 1b",
    exhibits=("singh2020-figure-1a", "singh2020-figure-1b"),
    printed="QNLI: the rapid drop begins at the first three (100 %), four (10 %), five (1 %) layers",
    unit="case",
    nothing="this run has trained neither SST-2 nor QNLI on two numbers of examples",
    untwinned=NEEDS_HEAD,
)
def less_data_more_reliance(models: Table, by_example: Table | None = None) -> Found:
    for task, rows in _usual(curves.of_models(models, by_example)).items():
        few, most, on = _sizes(rows, task)
        few, most = _at_shared_places(few, most)
        flat = [size for size, curve in zip(("few", "the most"), (few, most), strict=True) if not falls(curve)]
        if flat:
            which = f"the curve of {title(task)} with {' and with '.join(flat)} examples"
            yield LeftOut(title(task), f"{which} does not clearly fall, by {MIN_DROP:g} or more", on)
        else:
            yield Effect(title(task), LATER.name, interval(_concavity(most), _concavity(few)), stands_on=on)
        if task == "sst2":
            places = set(few["place"])
            beats = interval(values(few, at(places, min(places))), values(most, at(places, max(places))))
            yield Effect(FROM_SCRATCH, BEATS.name, beats, stands_on=on)


def _shape(curve: Table, task: str) -> Table:
    """A curve whose shape can be spoken of."""
    if curve["place"].nunique() < 3:
        raise CannotTest(f"the curve of {title(task)} has no place between none and all layers re-initialised")
    if not falls(curve):
        raise CannotTest(
            f"the curve of {title(task)} does not clearly fall, by {MIN_DROP:g} or more, from none to all layers "
            "re-initialised: it has no shape"
        )
    return curve


def _departure(curve: Table, side: int = 0) -> Table:
    return values(curve, curves.departure(curve, side)[1], drop(curve["place"].unique()))


@CLAIMS.add(
    "qnli-concave-sst-linear",
    "With about 670 examples each, QNLI drops late and steeply, SST-2 gradually.",
    "concavity of QNLI (-1/2 to 1/2); greatest distance from a line, QNLI's minus SST-2's, as a share of the drop; "
    "what SST-2 loses with the middle third of the layers",
    QNLI_CONCAVE,
    SST_NEARER,
    SST_MIDDLE,
    place="section 6.1.3, Figure 1c",
    exhibits=("singh2020-figure-1c",),
    unit="pair of tasks",
    printed="SST-2 drops by about 5 points over the middle layers; QNLI most over the last four",
    untwinned=NEEDS_HEAD,
)
def qnli_concave_sst_linear(models: Table, by_example: Table | None = None) -> Found:
    """Both tasks at the number of examples nearest to the report's 670 that both have."""
    table = curves.of_models(models, by_example)
    table = table[~table["equal_steps"]]
    if lacking := set(COMPARED) - set(table["task"]):
        raise CannotTest(f"this run has not trained {' and '.join(map(title, sorted(lacking)))}")
    sizes = [set(table.loc[table["task"] == task, "examples"]) for task in COMPARED]
    if not (shared := set.intersection(*sizes)):
        raise CannotTest("SST-2 and QNLI have no number of training examples in common")
    size = _few(table[table["examples"].isin(shared)])
    table = table[table["examples"] == size]
    sst2, qnli = (_shape(table[table["task"] == task], task) for task in COMPARED)
    middle, last = [at(sst2["place"].unique(), sst2["layers"].iloc[0] * share) for share in (1 / 3, 2 / 3)]
    intervals = {
        QNLI_CONCAVE: interval(_concavity(qnli)),
        SST_NEARER: effects.independent_difference(interval(_departure(qnli)), interval(_departure(sst2))),
        SST_MIDDLE: interval(values(sst2, middle - last)),
    }
    on = tuple(key(task, "", "", size) for task in COMPARED)
    for part, one in intervals.items():
        yield Effect(f"QNLI against SST-2, {size:,} examples each", part.name, one, stands_on=on)


@CLAIMS.add(
    "cola-linear",
    "CoLA drops about linearly.",
    "minus the mean curve's greatest distance above and below the line between its ends, as a share of the drop",
    NOT_ABOVE,
    NOT_BELOW,
    place="section 6.1.4, Figure 1d",
    exhibits=("singh2020-figure-1d",),
    untwinned=NEEDS_HEAD,
)
def cola_linear(models: Table, by_example: Table | None = None) -> Found:
    """The places are chosen where the distances are greatest, so the intervals are simultaneous over places
    (Bonferroni).
    """
    table = curves.of_models(models, by_example)
    if "cola" not in set(table["task"]):
        raise CannotTest("this run has not trained CoLA")
    curve = _shape(_at_most_data(table[(table["task"] == "cola") & ~table["equal_steps"]]), "cola")
    for part, side in ((NOT_ABOVE, 1), (NOT_BELOW, -1)):
        away = _departure(curve, side)
        line = interval(away.assign(value=-away["value"]))
        if line.measured:
            level = 1 - (1 - line.level) / (curve["place"].nunique() - 2)
            line = replace(effects.at_level(line, level), level=line.level)
        yield Effect("CoLA", part.name, line, stands_on=("cola",))


@CLAIMS.add(
    "probing-needs-more",
    "Frozen probing peaks lower and needs more layers than re-initialisation.",
    "best score, tuned minus frozen; layers needed beyond the first, over all shares of the rise over the null "
    "rate, frozen minus tuned, as a share of these layers",
    PEAKS_LOWER,
    NEEDS_MORE,
    place="section 6.2, Figure 2",
    exhibits=("singh2020-figure-1a", "singh2020-figure-1b", "singh2020-figure-2a", "singh2020-figure-2b"),
    untwinned=NEEDS_HEAD,
)
def probing_needs_more(models: Table, frozen_probes: Probes, by_example: Table | None = None) -> Found:
    """Tuned and frozen with the most data, both read from one layer kept to all."""
    tuned, frozen = curves.of_models(models, by_example), curves.of_probes(frozen_probes)
    if tuned["layers"].min() < 2:
        raise CannotTest("an encoder of one layer has no curve from one layer kept to all")
    for task in _compared(tuned):
        usual = (tuned["task"] == task) & ~tuned["equal_steps"]
        both = [curves.above_null(_at_most_data(one)) for one in (tuned[usual], frozen[frozen["task"] == task])]
        weights = [curves.rise_kept(one) for one in both]
        peaks = [values(one, best) for one, (_, best) in zip(both, weights, strict=True)]
        if not all(clear(interval(peak)) for peak in peaks):
            reason = f"a curve of {title(task)} does not clearly rise above the null rate, by {MIN_DROP:g} or more"
            yield LeftOut(title(task), reason, (task,))
            continue
        kept = [values(one, *pair) for one, pair in zip(both, weights, strict=True)]
        intervals = {PEAKS_LOWER: interval(*peaks), NEEDS_MORE: interval(*kept)}
        for part, one in intervals.items():
            yield Effect(title(task), part.name, one, stands_on=(task,))


@CLAIMS.add(
    "top-two-hurt-probing",
    "Removing the top two of twelve layers raises the accuracy of frozen probing.",
    "probing score without the top sixth of the layers minus that with all",
    TOP_HURTS,
    place="section 6.2, Figure 2",
    exhibits=("singh2020-figure-2a", "singh2020-figure-2b"),
    printed="the highest two of 12 layers",
    untwinned="it is measured on the pre-trained encoder, and nothing has moved",
)
def top_hurts_probing(frozen_probes: Probes) -> Found:
    """With the most data."""
    table = curves.of_probes(frozen_probes)
    for task in _compared(table):
        curve = _at_most_data(table[table["task"] == task])
        removed = max(1, round(TOP * curve["layers"].iloc[0]))
        whole, without = (at(curve["place"].unique(), place) for place in (0, removed))
        better = max(whole, without, key=lambda weights: weights @ curves.mean_curve(curve))
        if (
            judge_group([READ], [Effect(task, READ.name, interval(values(curves.above_null(curve), better)))]).outcome
            != HOLDS
        ):
            yield LeftOut(title(task), f"the frozen probe of {title(task)} is not clearly above the null rate", (task,))
            continue
        yield Effect(title(task), TOP_HURTS.name, interval(values(curve, without - whole)), stands_on=(task,))


@CLAIMS.add(
    "weights-move-up",
    "Weights move further in higher layers, and all layers further, and more steeply, with more data.",
    "distance of the output projections: top minus bottom third with the most data; mean, and top minus bottom "
    "third, with the most minus with few",
    UPWARDS,
    FURTHER,
    STEEPER,
    place="section 6.3, Figure 3",
    exhibits=("singh2020-figure-3a", "singh2020-figure-3b"),
    untwinned="a twin's matrices have moved exactly as far, by construction; the control is a training on shuffled "
    "labels",
    nothing="this run has trained neither SST-2 nor QNLI on two numbers of examples",
    variants={"halves of the layers": {"parts": 2}},
)
def weights_move_up(weight_distances: Table, *, parts: int = 3) -> Found:
    """Distances have no examples, so seeds alone give intervals."""
    table = curves.with_equal_steps(weight_distances[weight_distances["part"] == "output"])
    for task, rows in _usual(table).items():
        *tables, on = _sizes(rows, task)
        few, most = (one.pivot(index="seed", columns="layer", values="absolute") for one in tables)
        for part, numbers in {
            UPWARDS: _top_minus_bottom(most, parts),
            FURTHER: (most.mean(axis=1) - few.mean(axis=1)).dropna(),
            STEEPER: (_top_minus_bottom(most, parts) - _top_minus_bottom(few, parts)).dropna(),
        }.items():
            yield Effect(title(task), part.name, effects.over_models(numbers), stands_on=on)


def _top_minus_bottom(by_layer: Table, parts: int) -> pd.Series:
    of_part = max(1, by_layer.shape[1] // parts)
    return by_layer.iloc[:, -of_part:].mean(axis=1) - by_layer.iloc[:, :of_part].mean(axis=1)
