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
    Statement,
    Threshold,
    Verdict,
    as_verdict,
    judge_group,
    over_seeds,
)

ONE, TWO = Threshold("change"), Threshold("share", 0.1, "a tenth", "share")
USUAL = dict(measure="a change", per="task", exhibits=("hao2020-figure-1",), code="notebook.growth")
CLAIMS = tuple(
    Statement(f"claim-{n}", "hao2020", f"It rises <{n}>.", "§1", parts=parts, **USUAL)
    for n, parts in enumerate([(ONE,), (ONE, TWO), (TWO,), (ONE,), (TWO,), (ONE,), (ONE, TWO)])
)
STEPS = {HOLDS: (1.0, 1.1, 0.9), FAILS: (-1.0, -1.1, -0.9), OPEN: (-1.0, 1.5, 0.2)}
GROUPS = dict(zip(OUTCOMES, ((HOLDS, HOLDS), (FAILS, FAILS), (HOLDS, FAILS), (OPEN, HOLDS)), strict=False))
LEFT_OUT = {"rte": "RTE was not <learned>"}


def verdict_on(
    parts: Sequence[Threshold], intervals: dict[str, dict[str, Interval]], left_out: dict[str, str] | None = None
) -> Verdict:
    """The verdict from intervals by group and part."""
    above, because = {part.name: part.threshold for part in parts}, {part.name: part.reason for part in parts}
    unit = {part.name: part.unit for part in parts}
    halves: dict[str, list[str]] = {}
    for part in parts:
        if part.half:
            halves.setdefault(part.half, []).extend(part.groups)
    claim = Claim("rises", "p", "It rises.", "§1", len, above=above, because=because, unit=unit, halves=halves)
    groups = [judge_group(claim, name, of_group) for name, of_group in intervals.items()]
    left_out = left_out or {}
    return replace(as_verdict(claim, groups, left_out), left_out=left_out)


def as_judged(claim: Statement, outcome: str, censored: bool = False) -> Verdict:
    """A claim with an outcome: two groups that make it, the first with all of its parts, and one that is left out."""
    if outcome == CANNOT_BE_TESTED:
        return Verdict(outcome, reason="this run has not measured <it>")
    intervals = {}
    for group, steps in zip(("mrpc", "sst2"), GROUPS[outcome], strict=True):
        found = {part.name: over_seeds([part.threshold + step for step in STEPS[steps]]) for part in claim.parts}
        intervals[group] = {name: one.at_least() if censored else one for name, one in found.items()}
    return verdict_on(claim.parts, intervals, LEFT_OUT)


def in_turn(claims: Sequence[Statement], controls: bool = False) -> list[tuple[Statement, Verdict]]:
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
