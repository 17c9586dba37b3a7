"""A claim and what runs say of it, as a card: sentence and measure, and per run the outcome, the effects with their
intervals, groups that were left out, and whether it holds for controls, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fivelenses.first_exhibits import verdicts
from fivelenses.first_exhibits.claims import OURS, TWINS, Claim, Judged
from fivelenses.first_exhibits.verdicts import CANNOT_BE_TESTED, CONTRADICTED, HOLDS, REPRODUCED
from fivelenses.records import FUNCTIONAL_TWIN, SHUFFLED, TWIN
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

    judged: Judged
    run: str = ""
    anchor: str = ""
    figures: tuple[tuple[str, str], ...] = ()
    record: str = ""


@dataclass(frozen=True)
class Card:
    """A claim with the views of its runs, the plots of each, where its code is, and the name of its place."""

    claim: Claim
    views: tuple[View, ...]
    code: str
    anchor: str = ""

    @property
    def said_by(self) -> str:
        """Who says it."""
        return "Our statement" if self.claim.place == OURS else f"The paper, {self.claim.place}"

    @property
    def moved(self) -> str:
        """The cases for a reader who moves the thresholds; empty on pages of one run, where cards are not compared."""
        return cases(self.claim.parts, {view.run: view.judged for view in self.views}) if self.views[0].run else ""

    @property
    def drawn(self) -> list[list[Drawn]]:
        """The plots of each view."""
        return plots(self.claim.parts, [view.judged for view in self.views])

    def sentence(self, view: View) -> str:
        """The verdict of a run in one sentence."""
        return verdicts.sentence(view.judged.verdict, self.claim.unit)

    def controls(self, view: View) -> list[str]:
        """Whether the claim holds for each control, too, a sentence each, and why there is none."""
        sentences = []
        for name, judged in view.judged.controls.items():
            verdict = judged.verdict
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
        if not any(name in view.judged.controls for name in TWINS):
            sentences.append(f"No twin: {self.claim.untwinned or 'this run has none'}.")
        return sentences

    def settings(self, view: View) -> str:
        """In how many settings of the multiverse the verdict stays, and what it is in the others; empty without any."""
        judged = view.judged
        if not judged.settings:
            return ""
        others = "; ".join(f"{name}: {outcome}" for name, outcome in judged.changed.items())
        same = ", ".join(name for name in judged.settings if name not in judged.changed)
        return (
            f"The verdict stays in {judged.stays} other settings"
            + (f" ({same})" if same else "")
            + (f"; {others}." if others else ".")
        )


def left_out(judged: Judged) -> dict[str, str]:
    """Groups that took no part, joined, by the reason.

    Example:
        >>> left_out(Judged("deeper", verdicts.Verdict("open", (), "", {"a": "why", "b": "why"})))
        {'why': 'a, b'}
    """
    by_reason: dict[str, list[str]] = {}
    for group, reason in judged.verdict.left_out.items():
        by_reason.setdefault(reason, []).append(group)
    return {reason: ", ".join(groups) for reason, groups in by_reason.items()}


def code_of(claim: Claim) -> str:
    """Where the effects of a claim are computed: module and function."""
    return f"{claim.effects.__module__}.{getattr(claim.effects, '__qualname__', claim.key)}"


def as_html(given: Sequence[Card]) -> str:
    """Cards as HTML, folded to their first line."""
    return render("cards.html", cards=given, left_out=left_out)


def cards(claims: Sequence[Claim], judged: Sequence[Judged], exhibits: Iterable[str] = ()) -> str:
    """The claims of a chapter with what its run says of them, as HTML; `exhibits` are the keys of those on the same
    page.
    """
    shown, given = set(exhibits), []
    for claim, one in zip(claims, judged, strict=True):
        figures = tuple((figure_name(key), f"#{key}") for key in claim.exhibits if key in shown)
        given.append(Card(claim, (View(one, figures=figures),), code_of(claim), f"claim-{claim.key}"))
    return as_html(given)


def figure_name(key: str) -> str:
    """An exhibit's key in a reader's words.

    Example:
        >>> figure_name("hao2020-figure-1")
        'figure 1'
    """
    return key.split("-", 1)[-1].replace("-", " ")
