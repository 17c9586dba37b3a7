"""Synthetic claims of a chapter, judged: every outcome in turn, with and without controls."""

from collections.abc import Sequence
from dataclasses import replace

from fivelenses.judging import (
    CANNOT_BE_TESTED,
    FAILS,
    HOLDS,
    OPEN,
    OUTCOMES,
    Claim,
    Interval,
    Verdict,
    as_verdict,
    judge_group,
    over_seeds,
)

ABOVE = {"change": 0.0, "share": 0.1}
USUAL = dict(measure="a change", code="growth", per="task", exhibits=("hao2020-figure-1",))
USUAL |= dict(because={"share": "a tenth"}, unit={"share": "share"})
PARTS = (["change"], ["change", "share"], ["share"], ["change"], ["share"], ["change"], ["change", "share"])
CLAIMS = tuple(
    Claim(f"claim-{n}", "hao2020", f"It rises <{n}>.", "§1", above={part: ABOVE[part] for part in parts}, **USUAL)
    for n, parts in enumerate(PARTS)
)
STEPS = {HOLDS: (1.0, 1.1, 0.9), FAILS: (-1.0, -1.1, -0.9), OPEN: (-1.0, 1.5, 0.2)}
GROUPS = dict(zip(OUTCOMES, ((HOLDS, HOLDS), (FAILS, FAILS), (HOLDS, FAILS), (OPEN, HOLDS)), strict=False))
LEFT_OUT = {"rte": "RTE was not <learned>"}


def verdict_on(
    claim: Claim, intervals: dict[str, dict[str, Interval]], left_out: dict[str, str] | None = None
) -> Verdict:
    """The verdict from intervals by group and part."""
    groups = [judge_group(claim, name, of_group) for name, of_group in intervals.items()]
    return as_verdict(claim, groups, left_out or {})


def as_judged(claim: Claim, outcome: str, censored: bool = False) -> Verdict:
    """A claim with an outcome: two groups that make it, and one that is left out."""
    if outcome == CANNOT_BE_TESTED:
        return Verdict(outcome, reason="this run has not measured <it>")
    intervals = {}
    for group, steps in zip(("mrpc", "sst2"), GROUPS[outcome], strict=True):
        found = {part: over_seeds([claim.threshold(part) + step for step in STEPS[steps]]) for part in claim.above}
        intervals[group] = {name: one.at_least() if censored else one for name, one in found.items()}
    return verdict_on(claim, intervals, LEFT_OUT)


def in_turn(claims: Sequence[Claim], controls: bool = False) -> list[tuple[Claim, Verdict]]:
    """Each claim with one outcome after another; the twin has that of the claim, shuffled labels the next one."""
    judged = []
    for place, claim in enumerate(claims):
        verdict = as_judged(claim, OUTCOMES[place % 5], place == 5)
        if controls and verdict.groups:
            of = {"twin": as_judged(claim, OUTCOMES[place % 5])}
            of["shuffled labels"] = as_judged(claim, OUTCOMES[(place + 1) % 5])
            verdict = replace(verdict, controls=of)
        judged.append((claim, verdict))
    return judged
