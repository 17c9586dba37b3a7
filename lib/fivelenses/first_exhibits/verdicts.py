"""From effects to a verdict: one rule for every claim of every paper.

A claim has parts: each is one signed number per group (a task, a pair of tasks), positive in the direction of the
paper's sentence, with a threshold. A group *holds* if the interval of each part lies wholly above its threshold,
*fails* if that of some part at level 1 − (1 − level)/parts lies wholly below, and is *open* otherwise. All parts must
hold, so holding needs no correction (an intersection-union test, Berger 1982); one suffices to fail, so failing has
Bonferroni's. Groups make the verdict: *reproduced* (fails nowhere, holds in at least two thirds), *contradicted* (holds
nowhere, fails in at least two thirds), *mixed* (holds in some, fails in some), *cannot be tested* (no group) or *open*.

A sentence of two halves (large sets late *and* MRPC early) names the half of each part. It is reproduced only if a
group holds in each half, and open where a half has no group. What the paper does not have (another number of steps)
is no group, and no two groups share an effect: the function that gives effects leaves them out.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.effects import Interval

HOLDS, FAILS, OPEN = "holds", "fails", "open"
REPRODUCED, CONTRADICTED, MIXED, CANNOT_BE_TESTED = "reproduced", "contradicted", "mixed", "cannot be tested"
RATIO = "ratio"  # the unit of what is judged by its logarithm, where 1 is the threshold of a claim of order
OUTCOMES = (REPRODUCED, CONTRADICTED, MIXED, OPEN, CANNOT_BE_TESTED)  # of a claim
Reasons = Mapping[str, str]  # by group, in words
EXACT, AT_LEAST, AT_MOST, UNBOUNDED = "exact", "at least", "at most", "unbounded"
BOUNDS = {EXACT: (True, True), AT_LEAST: (True, False), AT_MOST: (False, True), UNBOUNDED: (False, False)}
MOST_TOLD = 100_000  # models, or examples: whoever reads of more learns that it will not be decided
ROUNDING = 1e-12  # of the threshold, or of 1 if that is more: what lies nearer to the threshold is a tie
NUMBERS = dict.fromkeys(("estimate", "low", "high", "standard_error", "degrees", "level"), float)
NUMBERS |= {"models": int, "examples": int, "of_this_model": bool, "log": bool}
VARIANCES = [f"{source}_{number}" for source in ("M", "E", "I") for number in ("variance", "degrees")]
TASKS = "; "  # between the tasks that an effect stands on
COLUMNS = ["group", "part", "bound", "stands_on", *NUMBERS, *VARIANCES]
THRESHOLDS = {"thresholds × 0.75": 0.75, "thresholds × 1.25": 1.25}  # settings of the multiverse
LEVELS = {"90 % intervals": 2.0, "99 % intervals": 0.2}  # by how much 1 − level grows from 95 %


@dataclass(frozen=True)
class Part:
    """One signed number of a claim, by name, positive in the direction of the paper's sentence.

    The threshold is 0 for a claim of order (1 for that of a ratio), otherwise the smallest difference that would
    matter, with the reason why; `unit` is that of the number, in words. A sentence that says more of some groups has
    parts of these `groups` alone; a part without groups is of all. `half` names the half of the sentence that the part
    is about, where it has two; equivalence has two parts, a bound on either side.
    """

    name: str
    threshold: float = 0.0
    reason: str = ""
    unit: str = ""
    groups: tuple[str, ...] = ()
    half: str = ""

    @property
    def of_order(self) -> bool:
        """Whether it asks for the sign alone."""
        return self.threshold == (1 if self.unit == RATIO else 0)

    def __post_init__(self) -> None:
        if not math.isfinite(self.threshold) or (self.threshold and not self.reason):
            raise ValueError(f"The threshold {self.threshold:g} of '{self.name}' is not finite, or lacks its reason.")


@dataclass(frozen=True)
class Effect:
    """The number of one part in one group, with the interval of one number.

    A value at the edge of a grid is censored: the true one is AT_LEAST or AT_MOST what is seen, or UNBOUNDED (the
    difference of two such values). The mean of min(x, edge) is at most that of x, so the lower end of an AT_LEAST
    interval stands and its upper end is infinite; AT_MOST is its mirror.

    `stands_on` names the tasks that must have been learned for the number to mean anything, as `gate.unlearned` does.
    """

    group: str
    part: str
    interval: Interval
    bound: str = EXACT
    stands_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name, one = f"The effect of '{self.part}' for {self.group}", self.interval
        if self.bound not in BOUNDS:
            raise ValueError(f"{name} is bounded by '{self.bound}', which is none of {', '.join(BOUNDS)}.")
        if any(map(np.ndim, (one.estimate, one.low, one.high))):
            raise ValueError(f"{name} holds many numbers: judge each of them as an effect of its own.")
        if not math.isfinite(one.estimate) or not one.low <= one.high:
            raise ValueError(f"{name} is {one.estimate} in [{one.low}, {one.high}], which is no interval.")


@dataclass(frozen=True)
class Group:
    """What became of one group: it HOLDS, FAILS or is OPEN, with the names of the parts that failed or are undecided.

    `of_this_model` says that some interval has one model and says nothing about other seeds; `models_needed` and
    `examples_needed`, of an open group, how many would decide effects of the size seen with a power of 80 % (None where
    none would); `chance` bounds the probability of a decision from above if every effect lay at its threshold. Where
    the interval of some part was not `measured`, the outcome is that of the estimates. `models` are those of the part
    that has fewest; `halves` those of the sentence that its parts are about.
    """

    name: str
    outcome: str
    failed: tuple[str, ...]
    undecided: tuple[str, ...]
    of_this_model: bool
    models_needed: int | None
    examples_needed: int | None
    chance: float
    measured: bool = True
    models: int = 0
    halves: tuple[str, ...] = ()

    def of(self, part: str) -> str:
        """What became of one part, by its name."""
        return FAILS if part in self.failed else OPEN if part in self.undecided else HOLDS


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim, its groups by name, why it cannot be tested, and which groups took no part and why;
    whether one group, or fewer than half of them, is `alone` in what it rests on; the `untested` halves of a sentence,
    and the group that is left of a half, where others were left out.
    """

    outcome: str
    groups: tuple[Group, ...]
    reason: str = ""
    left_out: Reasons = field(default_factory=dict)
    alone: bool = False
    untested: tuple[str, ...] = ()
    left_of_half: Mapping[str, str] = field(default_factory=dict)

    def of(self, outcome: str) -> tuple[Group, ...]:
        """The groups that hold, fail or are open."""
        return tuple(group for group in self.groups if group.outcome == outcome)


def as_table(values: Iterable[Effect]) -> pd.DataFrame:
    """Effects as a tidy table with COLUMNS, which `from_table` reads: tasks that an effect stands on are joined by
    semicolons, and variances are NaN where an interval has no parts.
    """
    rows = []
    for one in values:
        variances = dict(zip(VARIANCES, np.ravel(one.interval.parts).tolist(), strict=False))
        rows.append(vars(one) | vars(one.interval) | {"stands_on": TASKS.join(one.stands_on)} | variances)
    return pd.DataFrame(rows, columns=COLUMNS)


def from_table(table: pd.DataFrame) -> list[Effect]:
    """Effects from a table that `as_table` wrote.

    >>> effect = Effect("MRPC", "growth", effects.over_models([4, 6, 5]), AT_LEAST)
    >>> from_table(as_table([effect])) == [effect]
    True
    """
    if lacking := [column for column in COLUMNS if column not in table.columns]:
        raise ValueError(f"A table of effects lacks {', '.join(lacking)}.")
    values = []
    for row in table.to_dict("records"):
        variances = [float(row[column]) for column in VARIANCES]
        parts = () if math.isnan(variances[0]) else tuple(map(effects.Part, variances[::2], variances[1::2]))
        interval = Interval(**{number: kind(row[number]) for number, kind in NUMBERS.items()}, parts=parts)
        tasks = "" if pd.isna(row["stands_on"]) else row["stands_on"]  # what is empty in a file is read as missing
        stands_on = tuple(filter(None, tasks.split(TASKS)))
        values.append(Effect(row["group"], row["part"], interval, row["bound"], stands_on))
    return values


def judge_group(parts: Sequence[Part], values: Iterable[Effect]) -> Group:
    """Whether a claim holds or fails in one group, or is open, from one effect per part that is of this group.

    Refused are effects of several groups or levels, an unknown part, and a part without effect or with two.
    """
    values = list(values)
    groups, levels = ({one.group for one in values}, {one.interval.level for one in values})
    names = [one.part for one in values]
    if len(groups) != 1 or len(levels) != 1:
        raise ValueError(f"One group is judged at a time, at one level, not {len(groups)} at {len(levels)}.")
    name, level = *groups, *levels
    parts = [part for part in parts if not part.groups or name in part.groups]
    expected = [part.name for part in parts]
    if not sorted(names) == sorted(expected) == sorted(set(expected)):
        raise ValueError(f"{name} needs one effect for each of the parts {expected}, but has them for {names}.")
    failed, undecided, upwards, downwards, chances = [], [], [], [], []
    for part in parts:
        effect, tie = values[names.index(part.name)], ROUNDING * max(1.0, abs(part.threshold))
        own, (low_stands, high_stands) = effect.interval, BOUNDS[effect.bound]
        corrected = own if len(parts) == 1 or not own.measured else effects.at_level(own, 1 - (1 - level) / len(parts))
        low, high = own.low if low_stands else -math.inf, corrected.high if high_stands else math.inf
        chances.append((low > -math.inf, high < math.inf))
        if high < part.threshold - tie:
            failed.append(part.name)
        elif low <= part.threshold + tie:
            undecided.append(part.name)
            distance = own.estimate - part.threshold
            below, can_move = distance < -tie, abs(distance) > tie and chances[-1][distance < 0]
            needed = _needed(corrected if below else own, part.threshold) if can_move else (math.inf, math.inf)
            (downwards if below else upwards).append(needed)
    outcome = FAILS if failed else OPEN if undecided else HOLDS
    # One part below its threshold suffices to fail; to hold, all must rise above theirs.
    ways = zip(*(() if failed else downwards or upwards), strict=True)
    counts = [(min if downwards else max)(way) for way in ways] or [math.inf, math.inf]
    of_this_model = any(effect.interval.of_this_model for effect in values)
    needed = (None if math.isinf(count) else count for count in counts)
    can_hold, can_fail = zip(*chances, strict=True)
    chance = (1 - level) / 2 * (all(can_hold) + sum(can_fail) / len(parts))
    measured = all(effect.interval.measured for effect in values)
    models = min(effect.interval.models for effect in values)
    halves = tuple(dict.fromkeys(part.half for part in parts if part.half))
    decided = name, outcome, tuple(failed), tuple(undecided)
    return Group(*decided, of_this_model, *needed, chance, measured, models, halves)


def judge(
    parts: Sequence[Part], values: Iterable[Effect], left_out: Reasons | None = None, reason: str = ""
) -> Verdict:
    """The verdict on a claim from its effects, one per part and group, of one run.

    Groups `left_out` take no part, with the reason in words (from `gate.unlearned`); `reason` says why there is no
    group, where that does not. Refused, too, are an effect of a group left out, and no effects without a reason.

    >>> judge([Part("growth")], [Effect("MRPC", "growth", effects.over_models([4, 6, 5]))]).outcome
    'reproduced'
    """
    left_out, by_group = dict(left_out or {}), {}
    for effect in values:
        by_group.setdefault(effect.group, []).append(effect)
        if effect.group in left_out:
            raise ValueError(f"{effect.group} was left out ({left_out[effect.group]}), but it has an effect.")
    if not by_group and not (reason := reason or "; ".join(dict.fromkeys(left_out.values()))):
        raise ValueError("There are no effects to judge, and no reason says why.")
    groups = tuple(judge_group(parts, by_group[name]) for name in sorted(by_group))
    if not groups:
        return Verdict(CANNOT_BE_TESTED, (), reason, left_out)
    untested, unheld = _halves_without(parts, groups), _halves_without(parts, groups, HOLDS)
    held, failed = (sum(group.outcome == outcome for group in groups) for outcome in (HOLDS, FAILS))
    clear = 3 * max(held, failed) >= 2 * len(groups)
    outcome = MIXED if held and failed else OPEN if not clear else REPRODUCED if held else CONTRADICTED
    if untested or (unheld and outcome == REPRODUCED):
        outcome = OPEN
    alone = len(groups) == 1 or len(groups) < len(left_out)
    return Verdict(outcome, groups, "", left_out, alone, untested, _left_of_half(parts, groups, left_out))


def _left_of_half(parts: Sequence[Part], groups: Sequence[Group], left_out: Reasons) -> dict[str, str]:
    """The one group that is left of each half of a sentence that has lost others."""
    lost = {part.half for part in parts if part.half and set(part.groups) & set(left_out)}
    names = {half: [group.name for group in groups if half in group.halves] for half in lost}
    return {half: of_half[0] for half, of_half in sorted(names.items()) if len(of_half) == 1}


def _halves_without(parts: Sequence[Part], groups: Iterable[Group], outcome: str = "") -> tuple[str, ...]:
    """The halves of a sentence that no group is about, or none that has this outcome."""
    covered = {half for group in groups if outcome in ("", group.outcome) for half in group.halves}
    return tuple(dict.fromkeys(part.half for part in parts if part.half and part.half not in covered))


def _scaled(part: Part, factor: float) -> float:
    """A threshold of size, so many times as far from that of an order; of a ratio by its logarithm."""
    return part.threshold**factor if part.unit == RATIO else part.threshold * factor


def varied(parts: Sequence[Part], values: Sequence[Effect]) -> Iterator[tuple[str, list[Part], list[Effect]]]:
    """The settings of the multiverse that need no record, each with its name: thresholds of size a quarter lower and
    higher, intervals at 90 and 99 %.

    >>> values = [Effect("MRPC", "growth", effects.over_models([4, 6, 5]))]
    >>> [name for name, *_ in varied([Part("growth", 2, "two layers")], values)]
    ['thresholds × 0.75', 'thresholds × 1.25', '90 % intervals', '99 % intervals']
    """
    if not all(part.of_order for part in parts):
        for name, factor in THRESHOLDS.items():
            moved = [part if part.of_order else replace(part, threshold=_scaled(part, factor)) for part in parts]
            yield name, moved, list(values)
    if all(one.interval.parts for one in values):
        for name, factor in LEVELS.items():
            levels = [1 - factor * (1 - one.interval.level) for one in values]
            wider = [effects.at_level(one.interval, level) for one, level in zip(values, levels, strict=True)]
            moved = [replace(one, interval=interval) for one, interval in zip(values, wider, strict=True)]
            yield name, list(parts), moved


def multiplicity(verdicts: Iterable[Verdict]) -> tuple[int, int, float]:
    """How many groups are tested, how many decided, and how many chance would decide, all effects at their thresholds.

    At 95 %, a test of one part then holds with 2.5 % and fails with 2.5 %. With several parts this is an upper bound,
    however they depend; an end that is infinite decides nothing. Groups without intervals are not counted.
    """
    groups = [group for verdict in verdicts for group in verdict.groups if group.measured]
    return len(groups), sum(group.outcome != OPEN for group in groups), math.fsum(group.chance for group in groups)


def sentence(verdict: Verdict, unit: str = "group") -> str:
    """A verdict in words for a card, whose plot names the parts: counts, halves, what would decide, whether it is of
    one model.

    >>> sentence(judge([Part("growth")], [Effect("MRPC", "growth", effects.over_models([4, -3, 8]))]), "task")
    'Open on MRPC alone, with 3 models. If the effect is as large as seen, 30 models would decide MRPC with a power\
 of 80 %.'
    """
    if verdict.outcome == CANNOT_BE_TESTED:
        return f"{verdict.outcome.capitalize()}: {verdict.reason}."
    said = [f"{verdict.outcome.capitalize()}{_counts(verdict, unit)}{_models(verdict.groups)}."]
    if verdict.untested:
        halves = "half" if len(verdict.untested) == 1 else "halves"
        said.append(f"No group is about the {halves} {_listed([f'“{half}”' for half in verdict.untested])}.")
    said += [f"The half “{half}” rests on {group} alone." for half, group in verdict.left_of_half.items()]
    open_groups = verdict.of(OPEN) if verdict.outcome == OPEN else []
    deciding, untold = [], []
    for one in open_groups:
        counts = {"models": one.models_needed, "examples": one.examples_needed}
        ways = [f"{_as_told(count)} {of}" for of, count in counts.items() if count is not None]
        if ways and not one.of_this_model:
            deciding.append(f"{' or '.join(ways)} {'would decide ' * (not deciding)}{one.name}")
        elif not one.of_this_model:
            untold.append(one.name)
    if deciding:
        effect = "the effect is" if len(deciding) == 1 else "effects are"
        said.append(f"If {effect} as large as seen, {_listed(deciding)} with a power of 80 %.")
    if untold:
        said.append(f"How many models or examples would decide {_listed(untold)} cannot be told.")
    if wanting := [one.name for one in open_groups if one.of_this_model]:
        said.append(f"More than one model is needed to decide {_listed(wanting)}.")
    if of_one := [one.name for one in verdict.groups if one.of_this_model and one.name not in wanting]:
        which = "Each result" if 1 < len(of_one) == len(verdict.groups) else f"The result for {_listed(of_one)}"
        said.append(f"{which} is of this model and says nothing about other seeds.")
    if not all(one.measured for one in verdict.groups):
        said.append("Where it says so, the interval was not measured.")
    return " ".join(said)


def _as_told(count: int) -> str:
    """A count that rests on an effect's estimate, with no more digits than that bears.

    >>> _as_told(16), _as_told(3462), _as_told(236879)
    ('16', 'about 3,500', 'more than 100,000')
    """
    if count > MOST_TOLD:
        return f"more than {MOST_TOLD:,}"
    return f"{count}" if count < 100 else f"about {float(f'{count:.1e}'):,.0f}"


def _models(groups: Sequence[Group]) -> str:
    """How many models the groups have, where that is more than one and was counted.

    >>> _models([Group("MRPC", HOLDS, (), (), False, None, None, 0.0, models=5)])
    ', with 5 models'
    """
    counts = sorted({group.models for group in groups})
    if counts[0] < 2:
        return ""
    each = " each" if len(groups) > 1 and len(counts) == 1 else ""
    return f", with {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} models{each}"


def _counts(verdict: Verdict, unit: str) -> str:
    """In how many groups a claim holds, fails and is open, and in which of them it does not hold.

    >>> rest = ((), (), False, None, None, 0.0)
    >>> groups = (Group("MRPC", HOLDS, *rest), Group("RTE", FAILS, *rest))
    >>> _counts(Verdict(MIXED, groups), "task")
    ': it holds in 1 of 2 tasks and fails in 1 (RTE)'
    """
    groups = verdict.groups
    alone = f" on {_listed([group.name for group in groups])} alone" if verdict.alone else ""
    if len(groups) == 1:
        return alone
    counts = []
    for outcome, verb in ((HOLDS, "holds"), (FAILS, "fails"), (OPEN, "is open")):
        names = [one.name for one in groups if one.outcome == outcome]
        if len(names) == len(groups):
            return f"{alone}: it {verb} in {'both' if len(groups) == 2 else f'all {len(groups)}'} {_several(unit)}"
        if names:
            of_all = "" if counts else f" of {len(groups)} {_several(unit)}"
            which = "" if outcome == HOLDS else f" ({', '.join(names)})"
            counts.append(f"{verb} in {len(names)}{of_all}{which}")
    return f"{alone}: it {_listed(counts)}"


def _listed(words: Sequence[str]) -> str:
    """Words as a sentence lists them.

    >>> _listed(["one", "two", "three"])
    'one, two and three'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _several(unit: str) -> str:
    """The plural of what a group is: pairs of tasks, encoders on a task, data sets."""
    head, joint, rest = re.match(r"(.*?)(\b (?:of|on|at|with) |$)(.*)", unit).groups()
    return f"{head}s{joint}{rest}"


def _needed(interval: Interval, threshold: float) -> tuple[float, ...]:
    """Models, and examples, at which an effect of the size seen would be decided; infinite where it cannot be told."""
    known = {"models": not interval.of_this_model, "examples": interval.examples > 0}
    counts = [effects.needed(interval, threshold, of) if interval.parts and known[of] else None for of in known]
    return tuple(math.inf if count is None else count for count in counts)
