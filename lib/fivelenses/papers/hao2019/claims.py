"""The nine claims of Hao et al. (2019).

The paper shows pictures and gives no thresholds. A claim about an optimum takes a task only where both models reached
one: their loss on all training examples is clearly more than `RISE` nats below the entropy of the labels. A width that
reaches the edge of the grid is at least what is seen of it, so that a difference with it is bounded on one side; a
share of a disc is not cut. A rise on a line is at least the largest between its points. Trainings on one training set
are compared, so where no examples are measured, the seeds alone are chance.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.first_exhibits.effects import Interval
from fivelenses.first_exhibits.exhibit import printed, title
from fivelenses.first_exhibits.intervals import of_measure
from fivelenses.first_exhibits.verdicts import AT_LEAST, AT_MOST, EXACT, HOLDS, UNBOUNDED, Effect, Part, judge_group
from fivelenses.papers.hao2019.basins import HALF, RADII, RISE, areas, correlations, drops, ends, group_ways, ways
from fivelenses.papers.hao2019.tables import DIVERGED, printed_falls
from fivelenses.records import BETWEEN, CONTINUED, OPTIMISATION, PRETRAINED, RANDOM_ENCODER, SCRATCH

MEASURES = "hao2019-measures"
THIRD = 1 / 3  # of the steps
STEPS = 40  # from start to end, at least: between fewer points an obstacle is stepped over
NEAR = "over the cells near the way from start to end"
ON_GRID = {"the whole grid": {"measure": "correlation"}}
MANY = 10  # times as many training examples: MNLI and SST-2 have 18 to 158 times those of MRPC and RTE
LOW, MIDDLE, HIGH = "low", "middle", "high"
LENGTHS, DROP, POINTS = "lengths of its direction", "of the drop", "of the development examples"
DRAMATIC = "two points: the paper says that the error does not increase dramatically and prints no number"
RANDOM_SURFACE = "a random plane would take as long as all surfaces; the claim on curves has a random line"

Landscapes = Mapping[str, pd.DataFrame]
Found = Iterator[Effect | LeftOut]
Measure = Callable[[pd.DataFrame], float]

CLAIMS = Claims("hao2019")
OPTIMUM = Part("depth", RISE, "0.1 nats: less is hardly below always giving the labels' shares", "nats")
WIDER = Part("wider at half of the drop", unit="of a disc")
FASTER = Part("lower on the way", unit="nats")
LOWER = Part("lower at the end", unit="nats")
SMOOTHER = Part("smoother", RISE, "0.1 nats, at which a basin ends: less is no obstacle", "nats")
STRAIGHTER = Part("nearer to the final direction", unit="degrees")
KEPT = Part("error kept", -0.02, DRAMATIC, POINTS)
SAME_REGION = Part("no barrier", -0.02, DRAMATIC, POINTS)
FLATTER = Part("width at half of the drop", unit=LENGTHS)
AGREES = Part("agreement", 0.5, "half of perfect: below it, a lower loss says little of the error", "rank correlation")
AGREES_MORE = Part("more than from scratch", unit="rank correlation")
MORE_WITH_DATA = Part("more with more data", unit="rank correlation")
WIDER_THAN_MIDDLE = Part("low wider than middle", unit=LENGTHS)
WIDER_THAN_HIGH = Part("low wider than high", unit=LENGTHS)
HIGH_LOSS = Part("high leads to a high loss", HALF, "half of what training had gained: less is nearer to the end", DROP)
LOW_LOSS = Part(
    "low keeps the loss low",
    -0.2,
    "a fifth of what training had gained: twice the share of the gain in accuracy over the most frequent label that "
    "the low third costs at most in Table 1",
    DROP,
)
LEAST = Part("middle costs more than low", unit=POINTS)
MOST = Part("high costs more than middle", unit=POINTS)
POSSIBLE = {AGREES: (-1, 1), AGREES_MORE: (-2, 2), KEPT: (-1, 1), SAME_REGION: (-1, 0)}  # an interval goes no further


def _difference(table: pd.DataFrame, column: str, names: str, more: str, less: str) -> pd.DataFrame:
    """`value` per task, seed and fold: the column for one of these names, minus that for another."""
    wide = table.pivot(index=["task", "seed", "fold"], columns=names, values=column)
    return (wide[more] - wide[less]).rename("value").reset_index().assign(examples=table["examples"].min())


def _interval(values: pd.DataFrame, measure: Measure = lambda of_model: of_model["value"].iloc[0]) -> Interval:
    return of_measure(values, measure, examples=int(values["examples"].min()))


def _bound(of_task: pd.DataFrame, column: str, names: str, more: str, less: str) -> str:
    """How a difference is bounded where some extents reach the edge of the grid."""
    whole = of_task.groupby(names)[column].all()
    if whole[less]:
        return EXACT if whole[more] else AT_LEAST
    return AT_MOST if whole[more] else UNBOUNDED


def _by_task(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    if table.empty:
        raise CannotTest(DIVERGED)
    yield from table.groupby("task", sort=False)


def _effects(task: str, values: Mapping[Part, tuple[pd.DataFrame, str]]) -> Found:
    """One effect per part from its values and bound, unless some value is not finite."""
    if not all(np.isfinite(of_part["value"]).all() for of_part, _ in values.values()):
        yield LeftOut(title(task), f"on {title(task)} a measure is not finite: its loss does not fall, or overflows")
        return
    for part, (of_part, bound) in values.items():
        interval = effects.cut(_interval(of_part), *POSSIBLE.get(part, (-np.inf, np.inf)))
        yield Effect(title(task), part.name, interval, bound, (task,))


def _without_optimum(landscapes: Landscapes) -> dict[str, str]:
    """Why a task has no two optima to compare, by task: a model's training loss is not clearly below the entropy."""
    reasons = {}
    for (task, init), of_model in ends(landscapes).groupby(["task", "init"], sort=False):
        below = _interval(of_model.rename(columns={"below": "value"}))
        if judge_group([OPTIMUM], [Effect(task, OPTIMUM.name, below)]).outcome != HOLDS:
            reach = f" [{printed(below.low, '.3f')}, {printed(below.high, '.3f')}]" if below.measured else ""
            reached = f"{printed(below.estimate, '.3f')}{reach} nats below the entropy of the labels"
            which = "from scratch" if init == SCRATCH else "fine-tuned"
            no_optimum = f"the model {which} of {title(task)} has no optimum"
            reasons[task] = f"{no_optimum}: it ends {reached}, not clearly above 0.1"
    return reasons


def _of_optima(landscapes: Landscapes, table: pd.DataFrame, extents: Mapping[Part, tuple[str, str | None]]) -> Found:
    """Effects of tuned minus scratch for tasks where both reached an optimum: parts to a column and its `whole`, None
    of what no edge cuts.
    """
    without, which = _without_optimum(landscapes), ("init", PRETRAINED, SCRATCH)
    for task, of_task in _by_task(table):
        if task in without:
            yield LeftOut(title(task), without[task])
            continue
        compared = {
            part: (_difference(of_task, extent, *which), _bound(of_task, whole, *which) if whole else EXACT)
            for part, (extent, whole) in extents.items()
        }
        yield from _effects(task, compared)


def _check(landscapes: Landscapes) -> None:
    if landscapes["models"].empty:
        raise CannotTest(DIVERGED)


@CLAIMS.add(
    "wider-optima",
    "Fine-tuning ends in wider optima than training from scratch.",
    f"share of a disc of radius {RADII[-1]} around the end in which the training loss is at most half of the drop from "
    "start to end above that of the end, tuned minus scratch; radii are lengths of each model's own direction, and "
    "smaller where the grid does not hold the disc; only where both training losses end clearly more than "
    f"{RISE:g} nats below the entropy of the labels",
    WIDER,
    place="section 5.1, Figure 1",
    exhibits=("hao2019-figure-1", MEASURES),
    untwinned=RANDOM_SURFACE,
    variants={f"radius {radius}": {"most": radius} for radius in RADII[:-1]}
    | {f"{RISE:g} nats above the end": {"level": "share"}},
)
def wider_optima(landscapes: Landscapes, *, level: str = "half_share", most: int = RADII[-1]) -> Found:
    _check(landscapes)
    table = areas(landscapes["surfaces"])
    columns = [f"{level}_{radius}" for radius in RADII if radius <= most]
    held = [column for column in columns if table[column].notna().any()] or columns
    yield from _of_optima(landscapes, table, {WIDER: (held[-1], None)})


def _mean_loss(history: pd.DataFrame, until: int) -> float:
    """The mean training loss of the steps up to one; each value is a mean over the steps since the one before."""
    history = history.sort_values("step")
    before = history["step"].shift(fill_value=0)
    lengths = (history["step"].clip(upper=until) - before).clip(lower=0)
    return float(np.average(history["loss"], weights=lengths))


def _faster(histories: pd.DataFrame) -> dict[tuple[str, int], float]:
    """Mean training loss over the steps of fine-tuning, from scratch minus tuned, by task and seed."""
    usual = histories["epochs"] == histories.groupby(["task", "encoder", "seed"])["epochs"].transform("min")
    gaps = {}
    for key, curves in histories[usual].groupby(["task", "seed"]):
        from_scratch = curves["encoder"].str.startswith(RANDOM_ENCODER)
        scratch, tuned = curves[from_scratch], curves[~from_scratch]
        last = tuned["step"].max()
        gaps[key] = _mean_loss(scratch, last) - _mean_loss(tuned, last)
    return gaps


@CLAIMS.add(
    "easier",
    "Fine-tuning converges faster than training from scratch, ends lower, even with fewer epochs, and has the "
    "smoother straight line from start to end.",
    "from scratch minus tuned, in nats: mean training loss over the steps of fine-tuning; loss at the end on all "
    "training examples; largest rise of the loss on the straight line from start to end, which a line of fewer than "
    f"{STEPS} steps does not show",
    FASTER,
    LOWER,
    SMOOTHER,
    place="sections 5.1 and 5.2, Figures 1 and 2",
    exhibits=("hao2019-figure-2", MEASURES),
    untwinned="what moved at random was not trained: it has no curve of training and no end",
)
def easier(landscapes: Landscapes, histories: pd.DataFrame) -> Found:
    _check(landscapes)
    faster, along = _faster(histories), ways(landscapes)
    along = along[along["direction"] == OPTIMISATION]
    lower = _difference(ends(landscapes), "loss", "init", SCRATCH, PRETRAINED)
    smoother = _difference(along, "climb", "init", SCRATCH, PRETRAINED)
    for task, of_task in _by_task(lower):
        of_seeds = [faster[task, seed] for seed in sorted(set(of_task["seed"]))]
        yield Effect(title(task), FASTER.name, effects.over_models(of_seeds), stands_on=(task,))
        rough = smoother[smoother["task"] == task]
        bound = EXACT if along.loc[along["task"] == task, "steps"].min() >= STEPS else UNBOUNDED
        yield from _effects(task, {LOWER: (of_task, EXACT), SMOOTHER: (rough, bound)})


@CLAIMS.add(
    "straighter",
    "Fine-tuning stays near its final direction; from scratch, the first epochs point elsewhere.",
    "angle between the way so far and the final direction after a third of the steps of each training, from "
    "scratch minus tuned, degrees; as a control, random walks whose steps have the same lengths",
    STRAIGHTER,
    place="section 5.2, Figure 3",
    exhibits=("hao2019-figure-3",),
)
def straighter(trajectories: pd.DataFrame) -> Found:
    for task, of_task in _by_task(trajectories):
        more = []
        for _, of_seed in of_task[of_task["step"] > 0].sort_values("share").groupby("seed"):
            by_init = dict(list(of_seed.groupby("init")))
            scratch, tuned = (
                np.interp(THIRD, by_init[init]["share"], by_init[init]["angle"], left=np.nan)
                for init in (SCRATCH, PRETRAINED)
            )
            more.append(scratch - tuned)
        if np.isfinite(more).all():
            yield Effect(title(task), STRAIGHTER.name, effects.over_models(more), stands_on=(task,))
        else:
            yield LeftOut(title(task), f"no state of {title(task)} was kept in a third of the steps: raise `states`")


@CLAIMS.add(
    "robust-overfitting",
    "Many more epochs do not raise the development error much, and end in the same region of low error.",
    "development error of a model after a few epochs, whose rate has fallen to a tenth, minus that after many more at "
    "that rate, and the higher of the two minus the highest on the straight line between; as a control, as far in a "
    "random direction",
    KEPT,
    SAME_REGION,
    place="section 5.3, Figure 4",
    exhibits=("hao2019-figure-4",),
)
def robust_overfitting(long_training: pd.DataFrame) -> Found:
    if not long_training.empty and "training" not in long_training.columns:
        raise CannotTest("this run has no training that was continued, only a separate one as long")
    measures = {
        KEPT: lambda errors: errors[0] - errors[-1],
        SAME_REGION: lambda errors: errors[[0, -1]].max() - errors.max(),
    }
    for task, rows in _by_task(long_training):
        between = rows[(rows["kind"] == BETWEEN) & (rows["training"] == CONTINUED)].sort_values("share")
        for part, measure in measures.items():
            interval = _interval(between, lambda way, measure=measure: float(measure(way["error"].to_numpy())))
            yield Effect(title(task), part.name, effects.cut(interval, *POSSIBLE[part]), stands_on=(task,))


@CLAIMS.add(
    "sharper-from-scratch",
    "On curves with normalised axes, the optima of training from scratch are sharper than those of fine-tuning.",
    "width of the basin around the end at half of the drop from start to end along the direction between them, "
    "tuned minus scratch, each in lengths of its own direction; as a control, a random direction of that length; "
    "only where both models reached an optimum, as for `wider-optima`",
    FLATTER,
    place="section 6.1, Figure 5",
    exhibits=("hao2019-figure-5",),
)
def sharper_from_scratch(landscapes: Landscapes) -> Found:
    _check(landscapes)
    table = ways(landscapes)
    if OPTIMISATION in set(table["direction"]):
        table = table[table["direction"] == OPTIMISATION]
    yield from _of_optima(landscapes, table, {FLATTER: ("half_width", "half_width_whole")})


@CLAIMS.add(
    "error-follows-loss",
    "The surface of the development error agrees with that of the training loss, more so for fine-tuning than from "
    "scratch.",
    f"rank correlation of the two surfaces {NEAR}, for the tuned model, and tuned minus scratch",
    AGREES,
    AGREES_MORE,
    place="section 6.2, Figures 1 and 6",
    exhibits=("hao2019-figure-6", MEASURES),
    untwinned=RANDOM_SURFACE,
    variants=ON_GRID,
)
def error_follows_loss(landscapes: Landscapes, *, measure: str = "near_correlation") -> Found:
    _check(landscapes)
    for task, of_task in _by_task(correlations(landscapes["surfaces"])):
        tuned = of_task[of_task["init"] == PRETRAINED].rename(columns={measure: "value"})
        more = _difference(of_task, measure, "init", PRETRAINED, SCRATCH)
        yield from _effects(task, {AGREES: (tuned, EXACT), AGREES_MORE: (more, EXACT)})


@CLAIMS.add(
    "scratch-needs-data",
    "From scratch, the surfaces of error and loss agree more on large data sets than on small ones.",
    f"rank correlation of the two surfaces from scratch {NEAR}, on a task with at least {MANY} times as many training "
    "examples minus on the other",
    MORE_WITH_DATA,
    place="section 6.2, Figure 6",
    exhibits=("hao2019-figure-6", MEASURES),
    unit="pair of tasks",
    untwinned=RANDOM_SURFACE,
    variants=ON_GRID,
)
def scratch_needs_data(landscapes: Landscapes, *, measure: str = "near_correlation") -> Found:
    _check(landscapes)
    sizes = landscapes["models"].groupby("task", sort=False)["examples"].max()
    pairs = [(large, small) for large in sizes.index for small in sizes.index if sizes[large] >= MANY * sizes[small]]
    if not pairs:
        raise CannotTest(f"no task of this run has {MANY} times as many training examples as another")
    table = correlations(landscapes["surfaces"]).query("init == @SCRATCH").rename(columns={measure: "value"})
    of_task = dict(list(table.groupby("task")))
    for pair in pairs:
        name = " against ".join(map(title, pair))
        if all(np.isfinite(of_task[task]["value"]).all() for task in pair):
            more = effects.independent_difference(*(_interval(of_task[task]) for task in pair))
            yield Effect(name, MORE_WITH_DATA.name, more, stands_on=pair)
        else:
            yield LeftOut(name, f"the error is the same in all cells of a surface of {name}")


@CLAIMS.add(
    "low-invariant",
    "The low layers have the widest optimum, and rolling them back does not hurt much; rolling back the high ones "
    "leads to a high loss.",
    f"distance from the fine-tuned model at which the training loss has risen by {RISE:g} nats towards the "
    "pre-trained layers and beyond, low minus middle and low minus high, in lengths of each group's direction; rise of "
    "the loss at the pre-trained layers, as a share of the drop from start to end, of the high layers, and of the low "
    "ones with a minus; as a control, random directions of these lengths",
    WIDER_THAN_MIDDLE,
    WIDER_THAN_HIGH,
    HIGH_LOSS,
    LOW_LOSS,
    place="section 7, Figure 7",
    exhibits=("hao2019-figure-7", "hao2019-groups"),
)
def low_invariant(group_surfaces: pd.DataFrame, landscapes: Landscapes) -> Found:
    if group_surfaces.empty:
        raise CannotTest(DIVERGED)
    gained = drops(landscapes["surfaces"]).query("init == @PRETRAINED and drop > 0")
    table = group_ways(group_surfaces).merge(gained, "left", ["task", "seed", "fold"])
    table["value"] = table["rise"] / table["drop"]
    for task, of_task in _by_task(table):
        values, of_group = {}, dict(list(of_task.groupby("group")))
        for part, other in ((WIDER_THAN_MIDDLE, MIDDLE), (WIDER_THAN_HIGH, HIGH)):
            which = "group", LOW, other
            values[part] = _difference(of_task, "side", *which), _bound(of_task, "side_whole", *which)
        kept = of_group[LOW].assign(value=-of_group[LOW]["value"])
        yield from _effects(task, values | {HIGH_LOSS: (of_group[HIGH], EXACT), LOW_LOSS: (kept, EXACT)})


@CLAIMS.add(
    "rollback",
    "Rolling back the low layers costs least, the high layers most.",
    "development accuracy with the low layers rolled back minus that with the middle ones, and with the middle ones "
    "minus that with the high ones; as a control, as far in random directions",
    LEAST,
    MOST,
    place="section 7, Table 1",
    exhibits=("hao2019-table-1",),
    printed=printed_falls(),
)
def rollback(rollbacks: pd.DataFrame) -> Found:
    for task, of_task in _by_task(rollbacks):
        for part, more, less in ((LEAST, LOW, MIDDLE), (MOST, MIDDLE, HIGH)):
            one, other = (of_task[of_task["group"] == group] for group in (more, less))
            if "example" in of_task.columns:
                scores = [side.pivot(index="seed", columns="example", values="score") for side in (one, other)]
                gain = effects.interval(*scores)
            else:
                gain = effects.without_interval(one["accuracy"].mean() - other["accuracy"].mean())
            yield Effect(title(task), part.name, gain, stands_on=(task,))
