"""A claim and what runs say of it, as a card: sentence and measure, and per run the outcome, the effects with their
intervals, groups that were left out, and whether it holds for controls, too.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fivelenses.judging import (
    CANNOT_BE_TESTED,
    CONTRADICTED,
    FAILS,
    HOLDS,
    OPEN,
    OURS,
    REPRODUCED,
    Group,
    Statement,
    Verdict,
    listed,
)
from fivelenses.records import FUNCTIONAL_TWIN, SHUFFLED, TWIN, TWINS
from fivelenses.runs.intervals_drawn import Drawn, plots
from fivelenses.runs.side_by_side import render
from fivelenses.runs.thresholds import cases

NAMES = {TWIN: "the twin that moved at random", SHUFFLED: "models trained on shuffled labels"}
NAMES[FUNCTIONAL_TWIN] = "the twin that moved at random until its last layer had changed as much"
MEANING = dict.fromkeys(TWINS, "it does not speak of what training does")
MEANING[SHUFFLED] = "it does not need a task that can be learned"


@dataclass(frozen=True)
class View:
    """What one run says of a claim: what became of it, the run in a reader's words (empty where the page has one run),
    the name of its place on the page, texts and addresses of the exhibits that show it, and where the records are
    that it is judged on; empty where a page says so elsewhere.
    """

    verdict: Verdict
    run: str = ""
    anchor: str = ""
    figures: tuple[tuple[str, str], ...] = ()
    record: str = ""


@dataclass(frozen=True)
class Card:
    """A claim with the views of its runs, the plots of each, and the name of its place."""

    claim: Statement
    views: tuple[View, ...]
    anchor: str = ""

    @property
    def said_by(self) -> str:
        """Who says it."""
        return "Our statement" if self.claim.place == OURS else f"The paper, {self.claim.place}"

    @property
    def moved(self) -> str:
        """The cases for a reader who moves the thresholds; empty on pages of one run, where cards are not compared."""
        return cases(self.claim.parts, {view.run: view.verdict for view in self.views}) if self.views[0].run else ""

    @property
    def drawn(self) -> list[list[Drawn]]:
        """The plots of each view."""
        return plots(self.claim.parts, [view.verdict for view in self.views])

    def sentence(self, view: View) -> str:
        """The verdict of a run in one sentence."""
        return sentence(view.verdict, self.claim.per)

    def controls(self, view: View) -> list[str]:
        """Whether the claim holds for each control, too, a sentence each, and why there is none."""
        sentences = []
        for name, verdict in view.verdict.controls.items():
            if verdict.outcome == CANNOT_BE_TESTED:
                sentences.append(f"On {NAMES[name]} it cannot be tested: {verdict.reason}.")
                continue
            counted = f"{len(verdict.of(HOLDS))} of {len(verdict.groups)}"
            held = f"({verdict.outcome}: it holds in {counted})"
            if verdict.outcome == REPRODUCED:
                sentences.append(f"It holds for {NAMES[name]}, too {held}: {MEANING[name]}.")
            elif verdict.outcome == CONTRADICTED:
                sentences.append(f"It does not hold for {NAMES[name]} {held}.")
            else:
                sentences.append(f"Whether it holds for {NAMES[name]} is not clear {held}.")
        if not any(name in view.verdict.controls for name in TWINS):
            sentences.append(f"No twin: {self.claim.no_twin or 'this run has none'}.")
        return sentences

    def settings(self, view: View) -> str:
        """In how many settings of the multiverse the verdict stays, and what it is in the others; empty without any."""
        verdict = view.verdict
        if not verdict.settings:
            return ""
        others = "; ".join(f"{name}: {outcome}" for name, outcome in verdict.changed.items())
        same = ", ".join(name for name in verdict.settings if name not in verdict.changed)
        return (
            f"The verdict stays in {verdict.stays} other settings"
            + (f" ({same})" if same else "")
            + (f"; {others}." if others else ".")
        )


def left_out(verdict: Verdict) -> dict[str, str]:
    """Groups that took no part, joined, by the reason.

    >>> left_out(Verdict("open", left_out={"a": "why", "b": "why"}))
    {'why': 'a, b'}
    """
    by_reason: dict[str, list[str]] = {}
    for group, reason in verdict.left_out.items():
        by_reason.setdefault(reason, []).append(group)
    return {reason: ", ".join(groups) for reason, groups in by_reason.items()}


def as_html(given: Sequence[Card]) -> str:
    """Cards as HTML, folded to their first line."""
    return render("cards.html", cards=given, left_out=left_out)


def cards(claims: Sequence[Statement], verdicts: Sequence[Verdict], exhibits: Iterable[str] = ()) -> str:
    """The claims of a chapter with what its run says of them, as HTML; `exhibits` are the keys of those on the same
    page.
    """
    shown, given = set(exhibits), []
    for claim, verdict in zip(claims, verdicts, strict=True):
        figures = tuple((figure_name(key), f"#{key}") for key in claim.exhibits if key in shown)
        given.append(Card(claim, (View(verdict, figures=figures),), f"claim-{claim.key}"))
    return as_html(given)


def figure_name(key: str) -> str:
    """An exhibit's key in a reader's words.

    >>> figure_name("hao2020-figure-1")
    'figure 1'
    """
    return key.split("-", 1)[-1].replace("-", " ")


def sentence(verdict: Verdict, unit: str = "group") -> str:
    """A verdict in words for a card, whose plot names the parts: counts, halves, whether it is of one model.

    >>> sentence(Verdict(CANNOT_BE_TESTED, reason="nothing moved"))
    'Cannot be tested: nothing moved.'
    """
    if verdict.outcome == CANNOT_BE_TESTED:
        return f"{verdict.outcome.capitalize()}: {verdict.reason}."
    said = [f"{verdict.outcome.capitalize()}{_counts(verdict, unit)}{_models(verdict.groups)}."]
    if verdict.untested:
        halves = "half" if len(verdict.untested) == 1 else "halves"
        said.append(f"No group is about the {halves} {listed([f'“{half}”' for half in verdict.untested])}.")
    said += [f"The half “{half}” rests on {group} alone." for half, group in verdict.left_of_half.items()]
    wanting = [one.name for one in verdict.of(OPEN) if one.models == 1] if verdict.outcome == OPEN else []
    if wanting:
        said.append(f"More than one model is needed to decide {listed(wanting)}.")
    if of_one := [one.name for one in verdict.groups if one.models == 1 and one.name not in wanting]:
        which = "Each result" if 1 < len(of_one) == len(verdict.groups) else f"The result for {listed(of_one)}"
        said.append(f"{which} is of this model and says nothing about other seeds.")
    return " ".join(said)


def _models(groups: Sequence[Group]) -> str:
    """How many models the groups have, where that is more than one."""
    counts = sorted({group.models for group in groups})
    if counts[0] < 2:
        return ""
    each = " each" if len(groups) > 1 and len(counts) == 1 else ""
    return f", with {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} models{each}"


def _counts(verdict: Verdict, unit: str) -> str:
    """In how many groups a claim holds, fails and is open, and in which of them it does not hold.

    >>> groups = (Group("MRPC", HOLDS, ()), Group("RTE", FAILS, ()))
    >>> _counts(Verdict("mixed", groups), "task")
    ': it holds in 1 of 2 tasks and fails in 1 (RTE)'
    """
    groups = verdict.groups
    alone = f" on {listed([group.name for group in groups])} alone" if verdict.alone else ""
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
    return f"{alone}: it {listed(counts)}"


def _several(unit: str) -> str:
    """The plural of what a group is: pairs of tasks, encoders on a task, data sets."""
    head, joint, rest = re.match(r"(.*?)(\b (?:of|on|at|with) |$)(.*)", unit).groups()
    return f"{head}s{joint}{rest}"
