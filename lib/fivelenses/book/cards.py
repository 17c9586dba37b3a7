"""A claim and what runs say of it, as a card: sentence and measure, and per run the outcome, the effects with their
intervals, groups that were left out, and whether it holds for controls, too.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from matplotlib.ticker import MaxNLocator

from fivelenses import judging
from fivelenses.judging import FAILS, HOLDS, OPEN, Claim, Group, Interval, Part, Verdict
from fivelenses.records import FUNCTIONAL_TWIN, SHUFFLED, TWIN, TWINS

# What ends in .html is escaped, Markdown is not; what is asked for and not given is refused.
TEMPLATES = Environment(loader=PackageLoader(__package__), autoescape=select_autoescape(), undefined=StrictUndefined)
# A sign beside the colour, for readers to whom colours look alike.
SIGNS = dict(zip(judging.OUTCOMES, "●✕◐○–", strict=True))
CONTROLS = {
    TWIN: "the twin that moved at random",
    FUNCTIONAL_TWIN: "the twin that moved at random until its last layer had changed as much",
    SHUFFLED: "models trained on shuffled labels",
}
EDGE = 4.0  # percent of a plot's width on either side that no mark but an arrow reaches
ROUNDING = 1e-9  # a width or number below it is one of floating point
CENSORED = {(True, False): "at least ", (False, True): "at most "}


@dataclass(frozen=True)
class View:
    """A claim and what one run says of it: the run in a reader's words (empty on its own page), the view's place on the
    ledger, addresses of exhibits by their keys, and where its records lie.
    """

    claim: Claim
    verdict: Verdict
    run: str = ""
    anchor: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)
    record: str = ""


@dataclass(frozen=True)
class Axis:
    """What a claim asks of one part, in `groups` (all when empty) and for a `half` of the sentence: above which number
    it has to lie and why; and the axis from `low` to `high` on which all runs show it.
    """

    part: str
    threshold: float
    reason: str
    unit: str
    groups: tuple[str, ...]
    half: str
    low: float
    high: float

    def at(self, number: float) -> float:
        """Where a number lies, in percent of the width; what lies outside is at the edge."""
        share = (min(max(number, self.low), self.high) - self.low) / (self.high - self.low)
        return round(EDGE + (100 - 2 * EDGE) * share, 2)

    @property
    def ticks(self) -> dict[str, float]:
        """Numbers in words, and where they lie."""
        ticks = MaxNLocator(nbins=3, steps=[1, 2, 2.5, 4, 5, 10]).tick_values(self.low, self.high)
        inside = (float(tick) for tick in ticks if self.low <= tick <= self.high)
        return {f"{tick:z.6g}".replace("-", "−"): self.at(tick) for tick in inside}

    def rows(self, verdict: Verdict) -> list[tuple[Group, Part]]:
        """The groups of a verdict that have the part."""
        return [(group, part) for group in verdict.groups for part in group.parts if part.name == self.part]


def render(template: str, **content) -> str:
    """A template of this package, filled."""
    return TEMPLATES.get_template(template).render(signs=SIGNS, **content)


def as_cards(claims: Iterable[Sequence[View]]) -> str:
    """Claims, each with the views of its runs, as HTML, folded to their first line."""
    cards = [(views, axes(views[0].claim, [view.verdict for view in views])) for views in claims]
    functions = {one.__name__: one for one in (sentence, by_value, printed)}
    return render("cards.html", cards=cards, ours=judging.OURS, controls=CONTROLS, twins=TWINS, **functions)


def card(claim: Claim, verdict: Verdict, exhibits: Sequence[str] = ()) -> str:
    """A claim with what the run of its page says of it; `exhibits` are the keys of those on the page."""
    return as_cards([[View(claim, verdict, figures={key: f"#{key}" for key in claim.exhibits if key in exhibits})]])


def by_value(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """The names that have each value: {'why': ['a', 'b']}."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return names


def axes(claim: Claim, verdicts: Iterable[Verdict]) -> list[Axis]:
    """One axis for each part that some group of these verdicts has."""
    pairs = [(group, part) for verdict in verdicts for group in verdict.groups for part in group.parts]
    names, found = {group.name for group, _ in pairs}, []
    for name in dict.fromkeys(part.name for _, part in pairs):
        having = [(group, part) for group, part in pairs if part.name == name]
        some, halves = {group.name for group, _ in having}, {group.half for group, _ in having}
        reason, unit = (judging.of_part(said, name) or "" for said in (claim.because, claim.unit))
        of_groups, half = tuple(sorted(some)) if some < names else (), halves.pop() if len(halves) == 1 else ""
        ends = extent(claim.threshold(name), [part.interval for _, part in having])
        found.append(Axis(name, claim.threshold(name), reason, unit, of_groups, half, *ends))
    return found


def extent(threshold: float, intervals: Sequence[Interval]) -> tuple[float, float]:
    """The ends of an axis on which all estimates and the threshold lie, and the intervals as far as they are not much
    wider.
    """
    estimates = [threshold, *(one.estimate for one in intervals)]
    least, most = min(estimates), max(estimates)
    ends = [(one.estimate, end) for one in intervals for end in one.uncensored() if math.isfinite(end)]
    usual = 1.5 * float(np.median([abs(end - estimate) for estimate, end in ends])) if ends else 0.0
    room = max(most - least, usual) or max(abs(threshold), 1.0)
    low = max(min([least, *(end for _, end in ends)]), least - room)
    high = min(max([most, *(end for _, end in ends)]), most + room)
    return (low, high) if low < high else (low - room, high + room)


def printed(interval: Interval) -> str:
    """An estimate with its interval in words, as exactly as the interval allows: two digits of half its width; three of
    the number where there is no width, or none that ends; at most four decimals.

    >>> from fivelenses.judging import over_seeds
    >>> printed(over_seeds([4, -6, 5])), printed(over_seeds([4, 3.9, 4]).at_least()), printed(over_seeds([2.5]))
    ('1 [−14, 16]', 'at least 3.97 [3.82, ∞]', '2.50 [−∞, ∞]')
    """
    low, high = interval.uncensored()
    half = (high - low) / 2
    wide = math.isfinite(half) and half > ROUNDING
    size = half if wide else abs(interval.estimate)
    digits = min((1 if wide else 2) - math.floor(math.log10(size)), 4) if size > ROUNDING else 0
    numbers = (round(number, digits) for number in (interval.estimate, *interval.bounds()))
    estimate, low, high = (f"{one:z,.{max(digits, 0)}f}".replace("-", "−").replace("inf", "∞") for one in numbers)
    return f"{CENSORED.get(interval.bounded, '')}{estimate} [{low}, {high}]"


def sentence(verdict: Verdict, unit: str = "group") -> str:
    """A verdict in words for a card, whose plot names the parts: counts, halves, and whether it is of one model."""
    if not verdict.groups:
        return f"{verdict.outcome.capitalize()}: {verdict.reason}."
    counts = sorted({group.models for group in verdict.groups})
    each = " each" if len(verdict.groups) > 1 and len(counts) == 1 else ""
    models = f", with {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} models{each}"
    said = [f"{verdict.outcome.capitalize()}{_counts(verdict, unit)}{models if counts[0] > 1 else ''}."]
    said += [f"No group tests the half “{half}”." for half in verdict.untested]
    said += [f"The half “{half}” rests on {group} alone." for half, group in verdict.left_of_half.items()]
    if counts[0] == 1:
        said.append("One model says nothing about other seeds.")
    return " ".join(said)


def _counts(verdict: Verdict, unit: str) -> str:
    """In how many groups a claim holds, fails and is open, and in which of them it does not hold."""
    groups = verdict.groups
    if len(groups) == 1:
        return f" on {groups[0].name} alone"
    units, counts = re.sub(r"\b(?= (?:of|on|at|with) |$)", "s", unit, count=1), []
    alone = f" on {len(groups)} of {len(groups) + len(verdict.left_out)} {units} alone" if verdict.alone else ""
    for outcome, verb in ((HOLDS, "holds"), (FAILS, "fails"), (OPEN, "is open")):
        names = [one.name for one in groups if one.outcome == outcome]
        if len(names) == len(groups):
            return f"{alone}: it {verb} in {'both' if len(groups) == 2 else f'all {len(groups)}'} {units}"
        if names:
            of_all = "" if counts else f" of {len(groups)} {units}"
            counts.append(f"{verb} in {len(names)}{of_all}" + ("" if outcome == HOLDS else f" ({'; '.join(names)})"))
    return f"{alone}: it {judging.listed(counts)}"
