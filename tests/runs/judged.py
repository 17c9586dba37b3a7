"""Synthetic claims of a chapter, judged: every outcome in turn, with and without controls and intervals."""

from collections.abc import Sequence
from dataclasses import replace

from fivelenses.first_exhibits import verdicts
from fivelenses.first_exhibits.claims import Claim, Judged
from fivelenses.first_exhibits.effects import over_models, without_interval
from fivelenses.first_exhibits.verdicts import AT_LEAST, CANNOT_BE_TESTED, OUTCOMES, Effect, Part, Verdict


def growth(table):
    """In the place of a function of records."""


ONE, TWO = Part("change"), Part("share", 0.1, "a tenth", "share")
CLAIMS = tuple(
    Claim(f"claim-{n}", "hao2020", f"It rises <{n}>.", "§1", ("hao2020-figure-1",), "A change.", parts, (), growth)
    for n, parts in enumerate([(ONE,), (ONE, TWO), (TWO,), (ONE,), (TWO,), (ONE,), (ONE, TWO)])
)
STEPS = {"holds": (1.0, 1.1, 0.9), "fails": (-1.0, -1.1, -0.9), "open": (-1.0, 1.5, 0.2)}
GROUPS = dict(
    zip(OUTCOMES, (("holds", "holds"), ("fails", "fails"), ("holds", "fails"), ("open", "holds")), strict=False)
)
LEFT_OUT = {"rte": "RTE was not <learned>"}


def as_judged(claim: Claim, outcome: str, measured: bool = True, bound: str = "exact") -> Judged:
    """A claim with an outcome: two groups that make it, the first with all of its parts, and one that is left out."""
    if outcome == CANNOT_BE_TESTED:
        return Judged(claim.key, Verdict(outcome, (), "this run has not measured <it>"))
    # Which groups a part concerns is of the chapter's own tasks.
    found, parts = [], [replace(part, groups=()) for part in claim.parts]
    for group, steps in zip(("mrpc", "sst2"), GROUPS[outcome], strict=True):
        for part in parts:
            values = [part.threshold + step for step in STEPS[steps]]
            interval = over_models(values) if measured else without_interval(sum(values) / 3)
            found.append(Effect(group, part.name, interval, bound))
    return Judged(claim.key, verdicts.judge(parts, found, LEFT_OUT), tuple(found))


def in_turn(claims: Sequence[Claim], controls: bool = False) -> list[Judged]:
    """Each claim with one outcome after another; the twin has that of the claim, shuffled labels the next one."""
    judged = []
    for place, claim in enumerate(claims):
        one = as_judged(claim, OUTCOMES[place % 5], bound=AT_LEAST if place == 5 else "exact")
        if controls and one.verdict.groups:
            of = {"twin": as_judged(claim, OUTCOMES[place % 5])}
            of["shuffled labels"] = as_judged(claim, OUTCOMES[(place + 1) % 5])
            one = Judged(one.claim, one.verdict, one.effects, of)
        judged.append(one)
    return judged
