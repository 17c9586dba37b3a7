"""The six claims of Singh and Giovanardi (2020).

The report argues from the shapes of its curves and gives no thresholds; those here are ours, each with its reason. A
curve that does not fall has no shape, and a claim about it cannot be tested. The report gives each size of data the
same epochs, so fewer examples also mean fewer steps; where a run has models of fewer examples and as many steps, they
are groups of their own, "at equal steps".
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pandas as pd

from fivelenses.exhibits import effects
from fivelenses.exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.exhibits.exhibit import title
from fivelenses.exhibits.verdicts import Effect, Part
from fivelenses.papers.singh2020 import curves
from fivelenses.papers.singh2020.curves import MIN_DROP, at, drop, falls, interval, values

CLAIMS = Claims("singh2020")
NEEDS_HEAD = "scores need a trained classifier, which a twin has not"
COMPARED = ("sst2", "qnli")  # the report's figures 1 to 3; CoLA has an appendix of its own
MATCHED = 673  # 1 % of SST-2
TOP = 2 / 12
AGAIN = " at equal steps"
POINTS = "points of the score, as a share"
SHARE = "share of the drop"

LATER = Part("the curve with more data is the more concave", unit=SHARE)
BEATS = Part("pre-trained layers with the least data beat none with the most", unit=POINTS)
QNLI_CONCAVE = Part("QNLI's curve is concave", unit=SHARE)
SST_NEARER = Part("SST-2's curve is nearer to a line than QNLI's", unit=SHARE)
SST_MIDDLE = Part(
    "the middle third of the layers matters to SST-2",
    0.02,
    "two points: less is no considerable drop (the report sees about five)",
    POINTS,
)
TOLERANCE = Part(
    "minus the distance from a line",
    -1 / 4,
    "a quarter of the drop, by which a parabola that begins flat departs: it is the least bent that is clearly no line",
    SHARE,
)
PEAKS_LOWER = Part("the best frozen probe scores below the best tuned model", unit=POINTS)
NEEDS_MORE = Part("the probe needs more layers", unit="share of the layers")
TOP_HURTS = Part("the probe gains without the top sixth of the layers", unit=POINTS)
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


def _by_size(table: Table) -> dict[int, Table]:
    """The rows of each number of training examples, from the least."""
    return dict(list(table.groupby("examples")))


def _at_shared_places(*tables: Table) -> list[Table]:
    """Curves at the numbers of re-initialised layers that all of them have."""
    shared = set.intersection(*(set(one["place"]) for one in tables))
    return [one[one["place"].isin(shared)] for one in tables]


def _ways(table: Table) -> Iterator[tuple[str, Table]]:
    """What is added to a group's name, and the rows: with the usual epochs, and at equal steps where there are any."""
    yield "", table[~table["equal_steps"]]
    if table["equal_steps"].any():
        yield AGAIN, curves.at_equal_steps(table)


@CLAIMS.add(
    "less-data-more-reliance",
    "With less data, more layers' pre-training is needed: the score drops sooner, and 1 % of the data with the "
    "pre-trained layers beats all of it without them.",
    "concavity of the curve with the most data minus that with the least, of the sizes at which it falls (−1 to 1); "
    "score with the least data and all layers minus that with the most data and none, of all sizes",
    LATER,
    BEATS,
    place="abstract and section 6.1, Figures 1a and 1b",
    exhibits=("singh2020-figure-1a", "singh2020-figure-1b"),
    printed="QNLI: the rapid drop begins at the first three (100 %), four (10 %), five (1 %) layers",
    unit="case",
    untwinned=NEEDS_HEAD,
)
def less_data_more_reliance(models: Table, by_example: Table | None = None) -> Found:
    table = curves.of_models(models, by_example)
    for task in _compared(table):
        for way, rows in _ways(table[table["task"] == task]):
            by_size = _by_size(rows)
            falling = [of_size for of_size in by_size.values() if falls(of_size)]
            if len(falling) < 2:
                reason = f"the curve of {title(task)}{way} does not clearly fall, by {MIN_DROP:g} or more, at two sizes"
                yield LeftOut(title(task) + way, reason)
                continue
            later = interval(*(_concavity(one) for one in _at_shared_places(falling[-1], falling[0])))
            # Scores are compared whether or not the curves of their sizes have a shape.
            least, most = _at_shared_places(by_size[min(by_size)], by_size[max(by_size)])
            places = set(least["place"])
            beats = interval(values(least, at(places, min(places))), values(most, at(places, max(places))))
            for part, one in ((LATER, later), (BEATS, beats)):
                yield Effect(title(task) + way, part.name, one, stands_on=(task,))


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


def _departure(curve: Table) -> Table:
    return values(curve, curves.departure(curve)[1], drop(curve["place"].unique()))


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
    if lacking := set(COMPARED) - set(table["task"]):
        raise CannotTest(f"this run has not trained {' and '.join(map(title, sorted(lacking)))}")
    sizes = [set(table.loc[table["task"] == task, "examples"]) for task in COMPARED]
    if not (shared := set.intersection(*sizes)):
        raise CannotTest("SST-2 and QNLI have no number of training examples in common")
    size = min(shared, key=lambda examples: abs(examples - MATCHED))
    table = table[table["examples"] == size]
    for again in (False, True):
        pair = [table[(table["task"] == task) & (table["equal_steps"] == again)] for task in COMPARED]
        if again and not all(falls(curve) for curve in pair):
            continue
        sst2, qnli = (_shape(curve, task) for curve, task in zip(pair, COMPARED, strict=True))
        middle, last = [at(sst2["place"].unique(), sst2["layers"].iloc[0] * share) for share in (1 / 3, 2 / 3)]
        intervals = {
            QNLI_CONCAVE: interval(_concavity(qnli)),
            SST_NEARER: effects.independent_difference(interval(_departure(qnli)), interval(_departure(sst2))),
            SST_MIDDLE: interval(values(sst2, middle - last)),
        }
        for part, one in intervals.items():
            name = f"QNLI against SST-2, {size:,} examples each{AGAIN * again}"
            yield Effect(name, part.name, one, stands_on=COMPARED)


@CLAIMS.add(
    "cola-linear",
    "CoLA drops about linearly.",
    "minus the mean curve's greatest distance from the line between its ends, as a share of the drop",
    TOLERANCE,
    place="section 6.1.4, Figure 1d",
    exhibits=("singh2020-figure-1d",),
    untwinned=NEEDS_HEAD,
)
def cola_linear(models: Table, by_example: Table | None = None) -> Found:
    """The place is chosen where the distance is greatest, so the interval is simultaneous over places (Bonferroni)."""
    table = curves.of_models(models, by_example)
    if "cola" not in set(table["task"]):
        raise CannotTest("this run has not trained CoLA")
    curve = _shape(_at_most_data(table[(table["task"] == "cola") & ~table["equal_steps"]]), "cola")
    away = _departure(curve)
    line = interval(away.assign(value=-away["value"]))
    if line.measured:
        line = replace(effects.at_level(line, 1 - (1 - line.level) / (curve["place"].nunique() - 2)), level=line.level)
    yield Effect("CoLA", TOLERANCE.name, line, stands_on=("cola",))


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
        if min(interval(peak).estimate for peak in peaks) < MIN_DROP:
            reason = f"a curve of {title(task)} rises above the null rate by less than {MIN_DROP:g}"
            yield LeftOut(title(task), reason)
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
        gain = at(curve["place"].unique(), removed) - at(curve["place"].unique(), 0)
        yield Effect(title(task), TOP_HURTS.name, interval(values(curve, gain)), stands_on=(task,))


@CLAIMS.add(
    "weights-move-up",
    "Weights move further in higher layers, and all layers further, and more steeply, with more data.",
    "distance of the output projections: top minus bottom third with the most data; mean, and top minus bottom "
    "third, with the most minus the least data",
    UPWARDS,
    FURTHER,
    STEEPER,
    place="section 6.3, Figure 3",
    exhibits=("singh2020-figure-3a", "singh2020-figure-3b"),
    unit="case",
    untwinned="a twin's matrices have moved exactly as far, by construction; the control is a training on shuffled "
    "labels",
)
def weights_move_up(weight_distances: Table) -> Found:
    """Distances have no examples, so seeds alone give intervals."""
    table = curves.with_equal_steps(weight_distances[weight_distances["part"] == "output"])
    for task in _compared(table):
        for way, rows in _ways(table[table["task"] == task]):
            by_size = [
                of_size.pivot(index="seed", columns="layer", values="absolute") for of_size in _by_size(rows).values()
            ]
            if len(by_size) < 2:
                continue
            least, most = by_size[0], by_size[-1]
            for part, numbers in {
                UPWARDS: _top_minus_bottom(most),
                FURTHER: (most.mean(axis=1) - least.mean(axis=1)).dropna(),
                STEEPER: (_top_minus_bottom(most) - _top_minus_bottom(least)).dropna(),
            }.items():
                yield Effect(title(task) + way, part.name, effects.over_models(numbers), stands_on=(task,))


def _top_minus_bottom(by_layer: Table) -> pd.Series:
    third = max(1, by_layer.shape[1] // 3)
    return by_layer.iloc[:, -third:].mean(axis=1) - by_layer.iloc[:, :third].mean(axis=1)
