"""The effects that the claims of Hao et al. (2019) stand on, from its records.

The paper shows pictures and gives no thresholds. A claim about an optimum takes a task only where both models reached
one: their loss on all training examples is clearly more than `RISE` nats below the entropy of the labels. A basin that
reaches the edge of the grid is at least as wide as what is seen of it, so that a difference with it is bounded on one
side. Trainings on one training set are compared, so where no examples are measured, the seeds alone are chance.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits import effects
from fivelenses.exhibits.claims import CannotTest, LeftOut
from fivelenses.exhibits.effects import Interval
from fivelenses.exhibits.intervals import of_measure
from fivelenses.exhibits.verdicts import AT_LEAST, AT_MOST, EXACT, HOLDS, UNBOUNDED, Effect, Part, judge_group
from fivelenses.papers.hao2019.basins import RISE, areas, correlations, ends, group_ways, ways
from fivelenses.papers.hao2019.measure import BETWEEN, OPTIMISATION
from fivelenses.papers.hao2019.planes import PRETRAINED, RANDOM_ENCODER, SCRATCH
from fivelenses.papers.hao2019.tables import DIVERGED

THIRD = 1 / 3  # of the steps
MANY = 10  # times as many training examples: MNLI and SST-2 have 18 to 158 times those of MRPC and RTE
LOW, MIDDLE, HIGH = "low", "middle", "high"
LENGTHS, SQUARES, POINTS = "lengths of its direction", "squared lengths of its direction", "of the development examples"
DRAMATIC = "two points: the paper says that the error does not increase dramatically and prints no number"
RANDOM_SURFACE = "a random plane would take as long as all surfaces; `sharper-from-scratch` has a random line"

Landscapes = Mapping[str, pd.DataFrame]
Found = Iterator[Effect | LeftOut]
Measure = Callable[[pd.DataFrame], float]

OPTIMUM = Part("depth", RISE, "0.1 nats: less is hardly below always giving the labels' shares", "nats")
WIDER = Part(f"area at {RISE:g} nats", unit=SQUARES)
WIDER_AT_HALF = Part("area at half of the drop", unit=SQUARES)
FASTER = Part("lower on the way", unit="nats")
LOWER = Part("lower at the end", unit="nats")
SMOOTHER = Part("smoother", unit="nats")
STRAIGHTER = Part("nearer to the final direction", unit="degrees")
KEPT = Part("error kept", -0.02, DRAMATIC, POINTS)
SAME_REGION = Part("no barrier", -0.02, DRAMATIC, POINTS)
FLATTER = Part("width at half of the drop", unit=LENGTHS)
AGREES = Part("agreement", 0.5, "half of perfect: below it, a lower loss says little of the error", "rank correlation")
AGREES_MORE = Part("more than from scratch", unit="rank correlation")
MORE_WITH_DATA = Part("more with more data", unit="rank correlation")
WIDER_LOW = Part("low wider than high", unit=LENGTHS)
HIGH_LOSS = Part("high loses more", unit="nats")
LEAST = Part("high costs more than low", unit=POINTS)
LESS_THAN_MIDDLE = Part("middle costs more than low", unit=POINTS)
MOST = Part("high costs more than middle", unit=POINTS)


def _title(task: str) -> str:
    return tasks.find(task).title


def _minus(table: pd.DataFrame, column: str, names: str, more: str, less: str) -> pd.DataFrame:
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
        yield LeftOut(_title(task), f"on {_title(task)} a measure is not finite: its loss does not fall, or overflows")
        return
    for part, (of_part, bound) in values.items():
        yield Effect(_title(task), part.name, _interval(of_part), bound, (task,))


def _without_optimum(landscapes: Landscapes) -> dict[str, str]:
    """Why a task has no two optima to compare, by task: a model's training loss is not clearly below the entropy."""
    reasons = {}
    for (task, init), of_model in ends(landscapes).groupby(["task", "init"], sort=False):
        below = _interval(of_model.rename(columns={"below": "value"}))
        if judge_group([OPTIMUM], [Effect(task, OPTIMUM.name, below)]).outcome != HOLDS:
            reach = f" [{below.low:.3f}, {below.high:.3f}]" if below.measured else ""
            said = f"{below.estimate:.3f}{reach} nats below the entropy of the labels".replace("-", "−")
            which = "from scratch" if init == SCRATCH else "fine-tuned"
            reasons[task] = f"the model {which} of {_title(task)} has no optimum: it ends {said}, not clearly above 0.1"
    return reasons


def _of_optima(landscapes: Landscapes, table: pd.DataFrame, extents: Mapping[Part, tuple[str, str]]) -> Found:
    """Effects of tuned minus scratch for tasks where both reached an optimum: parts to a column and its `whole`."""
    without = _without_optimum(landscapes)
    for task, of_task in _by_task(table):
        if task in without:
            yield LeftOut(_title(task), without[task])
            continue
        which = "init", PRETRAINED, SCRATCH
        yield from _effects(
            task,
            {
                part: (_minus(of_task, extent, *which), _bound(of_task, whole, *which))
                for part, (extent, whole) in extents.items()
            },
        )


def _check(landscapes: Landscapes) -> None:
    if landscapes["models"].empty:
        raise CannotTest(DIVERGED)


def wider_optima(landscapes: Landscapes) -> Found:
    """Area of the tuned model's basin minus that of the one from scratch, each in its own unit."""
    _check(landscapes)
    extents = {WIDER: ("area", "whole"), WIDER_AT_HALF: ("half_area", "half_whole")}
    yield from _of_optima(landscapes, areas(landscapes["surfaces"]), extents)


def sharper_from_scratch(landscapes: Landscapes) -> Found:
    """Width of the basin at half of the drop along the optimisation direction (as a control, a random one)."""
    _check(landscapes)
    table = ways(landscapes)
    if OPTIMISATION in set(table["direction"]):
        table = table[table["direction"] == OPTIMISATION]
    yield from _of_optima(landscapes, table, {FLATTER: ("half_width", "half_width_whole")})


def _mean_loss(history: pd.DataFrame, until: int) -> float:
    """The mean training loss of the steps up to one; each value is a mean over the steps since the one before."""
    history = history.sort_values("step")
    before = history["step"].shift(fill_value=0)
    lengths = (history["step"].clip(upper=until) - before).clip(lower=0)
    return float(np.average(history["loss"], weights=lengths))


def _faster(histories: pd.DataFrame) -> dict[tuple[str, int], float]:
    """Mean training loss over the steps of fine-tuning, from scratch minus tuned, by task and seed."""
    usual = histories["epochs"] == histories.groupby(["task", "encoder", "seed"])["epochs"].transform("min")
    found = {}
    for key, curves in histories[usual].groupby(["task", "seed"]):
        from_scratch = curves["encoder"].str.startswith(RANDOM_ENCODER)
        scratch, tuned = curves[from_scratch], curves[~from_scratch]
        last = tuned["step"].max()
        found[key] = _mean_loss(scratch, last) - _mean_loss(tuned, last)
    return found


def easier(landscapes: Landscapes, histories: pd.DataFrame) -> Found:
    """Scratch minus tuned: mean loss while fine-tuning lasts, loss at the end, climb on the straight way."""
    _check(landscapes)
    faster, along = _faster(histories), ways(landscapes)
    along = along[along["direction"] == OPTIMISATION]
    lower, smoother = (
        _minus(table, column, "init", SCRATCH, PRETRAINED)
        for table, column in ((ends(landscapes), "loss"), (along, "climb"))
    )
    for task, of_task in _by_task(lower):
        of_seeds = [faster[task, seed] for seed in sorted(set(of_task["seed"]))]
        yield Effect(_title(task), FASTER.name, effects.over_models(of_seeds), stands_on=(task,))
        rough = smoother[smoother["task"] == task]
        yield from _effects(task, {LOWER: (of_task, EXACT), SMOOTHER: (rough, EXACT)})


def straighter(trajectories: pd.DataFrame) -> Found:
    """Angle to the final direction after a third of the steps, scratch minus tuned; the control is a random walk."""
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
            yield Effect(_title(task), STRAIGHTER.name, effects.over_models(more), stands_on=(task,))
        else:
            yield LeftOut(_title(task), f"no state of {_title(task)} was kept in a third of the steps: raise `states`")


def robust_overfitting(long_training: pd.DataFrame) -> Found:
    """Development error of the finished training minus that of the long one; the worse of the two minus the highest
    between them.
    """
    if not long_training.empty and "fold" not in long_training.columns:
        raise CannotTest(
            "this run set its long training against a state in mid-schedule, where a finished training is needed"
        )

    def kept(way: pd.DataFrame) -> float:
        errors = way.sort_values("share")["error"].to_numpy()
        return float(errors[0] - errors[-1])

    def unhindered(way: pd.DataFrame) -> float:
        errors = way.sort_values("share")["error"].to_numpy()
        return float(errors[[0, -1]].max() - errors.max())

    for task, rows in _by_task(long_training):
        between = rows[rows["kind"] == BETWEEN]
        for part, measure in ((KEPT, kept), (SAME_REGION, unhindered)):
            yield Effect(_title(task), part.name, _interval(between, measure), stands_on=(task,))


def error_follows_loss(landscapes: Landscapes) -> Found:
    """Rank correlation of training loss and development error over the cells of the tuned model, and more than from
    scratch.
    """
    _check(landscapes)
    for task, of_task in _by_task(correlations(landscapes["surfaces"])):
        tuned = of_task[of_task["init"] == PRETRAINED].rename(columns={"correlation": "value"})
        more = _minus(of_task, "correlation", "init", PRETRAINED, SCRATCH)
        yield from _effects(task, {AGREES: (tuned, EXACT), AGREES_MORE: (more, EXACT)})


def scratch_needs_data(landscapes: Landscapes) -> Found:
    """From scratch, the same correlation on a large data set minus that on a small one."""
    _check(landscapes)
    sizes = landscapes["models"].groupby("task", sort=False)["examples"].max()
    pairs = [(large, small) for large in sizes.index for small in sizes.index if sizes[large] >= MANY * sizes[small]]
    if not pairs:
        raise CannotTest(f"no task of this run has {MANY} times as many training examples as another")
    table = correlations(landscapes["surfaces"]).query("init == @SCRATCH").rename(columns={"correlation": "value"})
    of_task = dict(list(table.groupby("task")))
    for pair in pairs:
        name = " against ".join(map(_title, pair))
        if not all(np.isfinite(of_task[task]["value"]).all() for task in pair):
            yield LeftOut(name, f"the error is the same in all cells of a surface of {name}")
            continue
        large, small = (_interval(of_task[task]) for task in pair)
        if large.measured and small.measured:
            more = effects.independent_difference(large, small)
        else:
            more = effects.without_interval(large.estimate - small.estimate)
        yield Effect(name, MORE_WITH_DATA.name, more, stands_on=pair)


def low_invariant(group_surfaces: pd.DataFrame) -> Found:
    """How far the low layers can go back within the basin, minus the high ones; the rise of the loss when the high ones
    are rolled back minus that when the low ones are. As a control, random directions.
    """
    if group_surfaces.empty:
        raise CannotTest(DIVERGED)
    for task, of_task in _by_task(group_ways(group_surfaces)):
        wider = _minus(of_task, "side", "group", LOW, HIGH), _bound(of_task, "side_whole", "group", LOW, HIGH)
        yield from _effects(task, {WIDER_LOW: wider, HIGH_LOSS: (_minus(of_task, "rise", "group", HIGH, LOW), EXACT)})


def rollback(rollbacks: pd.DataFrame) -> Found:
    """Accuracy with one third of the layers rolled back minus that with another; as a control, moved at random."""
    for task, of_task in _by_task(rollbacks):
        for part, more, less in ((LEAST, LOW, HIGH), (LESS_THAN_MIDDLE, LOW, MIDDLE), (MOST, MIDDLE, HIGH)):
            one, other = (of_task[of_task["group"] == group] for group in (more, less))
            if "example" in of_task.columns:
                scores = [side.pivot(index="seed", columns="example", values="score") for side in (one, other)]
                found = effects.interval(*scores)
            else:
                found = effects.without_interval(one["accuracy"].mean() - other["accuracy"].mean())
            yield Effect(_title(task), part.name, found, stands_on=(task,))
