"""Effects with their intervals as a small plot: a dot, a bar and the threshold per group, in percent of a width.

Templates draw it as inline SVG, one row of a table per group, so that it fits any screen and the numbers are beside
it as text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

from fivelenses.judging import OPEN, Interval, Threshold, Verdict

EDGE = 4.0  # percent of the width on either side that no mark but an arrow reaches
TICKS = 3
ROUNDING = 1e-9  # a width or number below it is one of floating point
CENSORED = {(True, False): "at least ", (False, True): "at most "}


@dataclass(frozen=True)
class Scale:
    """The shared axis of one part in all runs of a claim: numbers from `low` to `high`, with ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, number: float) -> float:
        """Where a number lies, in percent of the width; what lies outside is at the edge.

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
    printed: str
    outcome: str
    nearly: str = ""


@dataclass(frozen=True)
class Drawn:
    """The plot of one part in one run."""

    part: Threshold
    threshold: float
    scale: Scale
    rows: tuple[Row, ...]


def intervals_of(part: Threshold, verdict: Verdict) -> dict[str, Interval]:
    """The intervals of one part, by group."""
    return {group.name: one.interval for group in verdict.groups for one in group.parts if one.name == part.name}


def scale(part: Threshold, intervals: Sequence[Interval]) -> Scale:
    """An axis for the intervals of one part in all runs, on which all estimates and the threshold lie, and the
    intervals as far as they are not much wider.

    >>> from fivelenses.judging import over_seeds
    >>> scale(Threshold("growth"), [over_seeds([4, 6, 5])]).marks
    [(4.0, '0'), (34.73, '2.5'), (65.46, '5')]
    """
    seen = [part.threshold, *(one.estimate for one in intervals)]
    ends = [(one.estimate, end) for one in intervals for end in one.uncensored() if math.isfinite(end)]
    reach = [abs(end - estimate) for estimate, end in ends]
    ends = [end for _, end in ends]
    room = max(max(seen) - min(seen), 1.5 * float(np.median(reach)) if reach else 0.0)
    room = room if room > 0 else max(abs(part.threshold), 1.0)
    low = float(max(min([*ends, *seen]), min(seen) - room))
    high = float(min(max([*ends, *seen]), max(seen) + room))
    if low == high:
        low, high = low - room, high + room
    ticks = MaxNLocator(nbins=TICKS, steps=[1, 2, 2.5, 4, 5, 10]).tick_values(low, high)
    return Scale(low, high, tuple(float(tick) for tick in ticks if low <= tick <= high))


def printed(interval: Interval) -> str:
    """An estimate with its interval in words, as exactly as the interval allows.

    >>> from fivelenses.judging import over_seeds
    >>> printed(over_seeds([4, -6, 5])), printed(over_seeds([4, 3.9, 4]).at_least()), printed(over_seeds([2.5]))
    ('1 [−14, 16]', 'at least 3.97 [3.82, ∞]', '2.50 [−∞, ∞]')
    """
    low, high = interval.uncensored()
    half = (high - low) / 2
    # Two digits of half the width; three of the number where there is no width, or none that ends.
    known = math.isfinite(half) and half > ROUNDING
    size = half if known else abs(interval.estimate)
    digits = (1 if known else 2) - math.floor(math.log10(size)) if size > ROUNDING else 0
    spelled = [_rounded(number, digits) for number in (interval.estimate, *interval.bounds())]
    return f"{CENSORED.get(interval.bounded, '')}{spelled[0]} [{spelled[1]}, {spelled[2]}]"


def _rounded(number: float, digits: int) -> str:
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return f"{round(number, digits):z,.{max(digits, 0)}f}".replace("-", "−")


def drawn(part: Threshold, verdict: Verdict, axis: Scale) -> Drawn:
    """The plot of one part in one run, a row per group that has this part, in the verdict's order; the axis of
    `scale`.
    """
    rows = []
    for group in verdict.groups:
        for one in group.parts:
            if one.name != part.name:
                continue
            low, high = one.interval.bounds()
            places = axis.at(one.interval.estimate), axis.at(low), axis.at(high)
            goes_on = low < axis.low, high > axis.high
            below = one.outcome == OPEN and high < part.threshold
            nearly = f"below at 95 %, not at the level for {len(group.parts)} parts" if below else ""
            rows.append(Row(group.name, *places, *goes_on, printed(one.interval), one.outcome, nearly))
    return Drawn(part, axis.at(part.threshold), axis, tuple(rows))


def plots(parts: Sequence[Threshold], verdicts: Sequence[Verdict]) -> list[list[Drawn]]:
    """The plots of a claim: for each run that judged it, one per part, each part on one axis in all runs."""
    axes = {}
    for part in parts:
        axes[part] = scale(part, [one for verdict in verdicts for one in intervals_of(part, verdict).values()])
    return [[drawn(part, one, axes[part]) for part in parts if intervals_of(part, one)] for one in verdicts]
