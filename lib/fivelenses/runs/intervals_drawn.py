"""Effects with their intervals as a small plot: a dot, a bar and the threshold per group, in percent of a width.

Templates draw it as inline SVG, one row of a table per group, so that it fits any screen and the numbers are beside
it as text.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

from fivelenses.first_exhibits.claims import Judged
from fivelenses.first_exhibits.verdicts import AT_LEAST, AT_MOST, BOUNDS, OPEN, Effect, Part

EDGE = 4.0  # percent of the width on either side that no mark but an arrow reaches
TICKS = 3
ROUNDING = 1e-9  # a width or number below it is one of floating point
CENSORED = {AT_LEAST: "at least ", AT_MOST: "at most "}


@dataclass(frozen=True)
class Scale:
    """The shared axis of one part in all runs of a claim: numbers from `low` to `high`, with ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, number: float) -> float:
        """Where a number lies, in percent of the width; what lies outside is at the edge.

        Example:
            >>> Scale(0, 2, ()).at(1), Scale(0, 2, ()).at(-7)
            (50.0, 4.0)
        """
        share = (min(max(number, self.low), self.high) - self.low) / (self.high - self.low)
        return round(EDGE + (100 - 2 * EDGE) * share, 2)

    @property
    def marks(self) -> list[tuple[float, str]]:
        """The ticks: where, and the number in words."""
        return [(self.at(tick), f"{tick:z.6g}".replace("-", "−")) for tick in self.ticks]


@dataclass(frozen=True)
class Row:
    """One group: where its dot, its bar and the bar's arrows are, what stands beside, what became of it, and in
    `nearly` why it is open with a bar on one side of the threshold.
    """

    group: str
    at: float
    low: float
    high: float
    goes_on_left: bool
    goes_on_right: bool
    measured: bool
    printed: str
    outcome: str
    nearly: str = ""


@dataclass(frozen=True)
class Drawn:
    """The plot of one part in one run."""

    part: Part
    threshold: float
    scale: Scale
    rows: tuple[Row, ...]


def scale(part: Part, values: Iterable[Effect]) -> Scale:
    """An axis for the effects of one part in all runs, on which all estimates and the threshold lie, and the intervals
    as far as they are not much wider.

    Example:
        >>> from fivelenses.first_exhibits.effects import over_models, without_interval
        >>> scale(Part("growth"), [Effect("MRPC", "growth", over_models([4, 6, 5]))]).marks
        [(4.0, '0'), (34.73, '2.5'), (65.46, '5')]
    """
    intervals = [effect.interval for effect in values]
    seen = [part.threshold, *(one.estimate for one in intervals)]
    ends = np.array([end for one in intervals for end in (one.low, one.high)], dtype=float)
    ends = ends[np.isfinite(ends)]
    reach = [abs(end - one.estimate) for one in intervals for end in (one.low, one.high) if math.isfinite(end)]
    room = max(max(seen) - min(seen), 1.5 * float(np.median(reach)) if reach else 0.0)
    room = room if room > 0 else max(abs(part.threshold), 1.0)
    low = float(max(min([*ends, *seen]), min(seen) - room))
    high = float(min(max([*ends, *seen]), max(seen) + room))
    if low == high:
        low, high = low - room, high + room
    ticks = MaxNLocator(nbins=TICKS, steps=[1, 2, 2.5, 4, 5, 10]).tick_values(low, high)
    return Scale(low, high, tuple(float(tick) for tick in ticks if low <= tick <= high))


def printed(effect: Effect) -> str:
    """An effect with its interval in words, as exactly as the interval allows.

    Example:
        >>> from fivelenses.first_exhibits.effects import over_models, without_interval
        >>> printed(Effect("MRPC", "growth", over_models([4, -6, 5])))
        '1 [−14, 16]'
        >>> printed(Effect("MRPC", "width", over_models([4, 3.9, 4]), "at least"))
        'at least 3.97 [3.82, ∞]'
        >>> printed(Effect("MRPC", "growth", without_interval(0.03125))), printed(Effect("a", "b", over_models([2.5])))
        ('0.0312', '2.50 [−∞, ∞]')
    """
    one, (low_stands, high_stands) = effect.interval, BOUNDS[effect.bound]
    if not one.measured:
        return CENSORED.get(effect.bound, "") + f"{one.estimate:z.3g}".replace("-", "−")
    low, high = one.low if low_stands else -math.inf, one.high if high_stands else math.inf
    half = (one.high - one.low) / 2
    # Two digits of half the width; three of the number where there is no width, or none that ends.
    known = math.isfinite(half) and half > ROUNDING
    size = half if known else abs(one.estimate)
    digits = (1 if known else 2) - math.floor(math.log10(size)) if size > ROUNDING else 0
    spelled = [_rounded(number, digits) for number in (one.estimate, low, high)]
    return f"{CENSORED.get(effect.bound, '')}{spelled[0]} [{spelled[1]}, {spelled[2]}]"


def _rounded(number: float, digits: int) -> str:
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return f"{round(number, digits):z,.{max(digits, 0)}f}".replace("-", "−")


def drawn(part: Part, judged: Judged, axis: Scale) -> Drawn:
    """The plot of one part in one run, a row per group that has this part, in the verdict's order; the
    axis of `scale`.
    """
    of_part, rows = judged.of(part), []
    for group in (one for one in judged.verdict.groups if one.name in of_part):
        effect = of_part[group.name]
        one, (low_stands, high_stands) = effect.interval, BOUNDS[effect.bound]
        low, high = one.low if low_stands else -math.inf, one.high if high_stands else math.inf
        places = axis.at(one.estimate), axis.at(low), axis.at(high)
        goes_on = low < axis.low, high > axis.high
        outcome = group.of(part.name)
        below = outcome == OPEN and one.measured and high < part.threshold
        parts = sum(effect.group == group.name for effect in judged.effects)
        nearly = f"below at 95 %, not at the level for {parts} parts" if below else ""
        rows.append(Row(group.name, *places, *goes_on, one.measured, printed(effect), outcome, nearly))
    return Drawn(part, axis.at(part.threshold), axis, tuple(rows))


def plots(parts: Sequence[Part], judged: Sequence[Judged]) -> list[list[Drawn]]:
    """The plots of a claim: for each run that judged it, one per part, each part on one axis in all runs."""
    axes = {part: scale(part, [effect for one in judged for effect in one.of(part).values()]) for part in parts}
    return [[drawn(part, one, axes[part]) for part in parts if one.of(part)] for one in judged]
