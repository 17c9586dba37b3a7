"""Claims of a paper as predicates on exhibits, and verdicts that are computed.

A claim reads one exhibit's table and returns *cases*: one row a thing it was tested on (a task, a seed, a pair of
data sets), each with
a number and whether the claim holds there. One rule turns cases into a verdict, the same for all claims:

- **reproduced**: it holds for every group (task or pair); within a group, for more than half of the seeds;
- **partly**: it holds for at least half of the groups, but not all;
- **not reproduced**: it holds for fewer than half;
- **cannot be tested**: the run does not hold what the claim is about; the reason says what is lacking.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from fivelenses.files import written_beside

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
CANNOT_BE_TESTED = "cannot be tested"
VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, CANNOT_BE_TESTED)
OURS = "this project"  # the place of a statement that no paper makes


class CannotTest(ValueError):
    """Raised by a predicate when its table lacks what the claim is about; the message is the reason."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper that a table can support or not.

    Attributes:
        key: the ledger's name.
        paper: the paper's key.
        sentence: what the paper says, in our words and short.
        place: where the paper says it.
        exhibits: the exhibits whose tables the predicate reads, in the order of its arguments.
        measure: what the number is, with its unit or range.
        criterion: when it counts as holding; the papers give shapes, so the threshold is ours and stated.
        predicate: tables to cases, a table with the columns `group`, `seed`, `value`, `holds`.
        printed: the number that the paper itself prints for it, empty where it draws only a shape.
    """

    key: str
    paper: str
    sentence: str
    place: str
    exhibits: tuple[str, ...]
    measure: str
    criterion: str
    predicate: Callable[..., pd.DataFrame]
    printed: str = ""


@dataclass(frozen=True)
class Verdict:
    """What became of a claim in one run.

    Attributes:
        claim: its key.
        verdict: one of VERDICTS.
        value: mean of the number over all cases, None when it cannot be tested.
        spread: standard deviation over all cases (n − 1), None for fewer than two.
        held, groups: groups in which it holds, and all groups.
        by_group: mean number of each group.
        reason: the groups in which it does not hold, or why it cannot be tested.
    """

    claim: str
    verdict: str
    value: float | None
    spread: float | None
    held: int
    groups: int
    by_group: dict[str, float]
    reason: str

    @property
    def number(self) -> str:
        """The value with its spread, to the second digit of the spread; a dash where there is none.

        Example:
            >>> Verdict("deeper", PARTLY, -0.00259, 0.02156, 2, 6, {}, "").number
            '−0.003 ± 0.022'
        """
        if self.value is None:
            return "–"
        if not self.spread:
            said = f"{self.value:.3g}" + ("" if self.spread is None else " ± 0")
        else:
            decimals = min(max(1 - math.floor(math.log10(self.spread)), 0), 6)
            said = f"{round(self.value, decimals) + 0:.{decimals}f} ± {self.spread:.{decimals}f}"
        return said.replace("-", "−")


def as_cases(rows: Iterable[tuple[str, str, float, bool]]) -> pd.DataFrame:
    """Cases of a claim from (group, seed, value, holds)."""
    return pd.DataFrame(list(rows), columns=["group", "seed", "value", "holds"])


def judge(claim: Claim, tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict on a claim from the tables of a run, by exhibit key.

    Raises:
        ValueError: the predicate returned no case, or a case without a finite number.

    Example:
        >>> def falls(table):
        ...     return table.assign(holds=table["value"] < 0)
        >>> claim = Claim("falls", "p", "It falls.", "§1", ("t",), "slope", "below 0", falls)
        >>> cases = pd.DataFrame({"group": ["rte", "mrpc"], "seed": [0, 0], "value": [-1.0, 2.0]})
        >>> judge(claim, {"t": cases}).verdict
        'partly'
    """
    lacking = [key for key in claim.exhibits if key not in tables]
    if lacking:
        return Verdict(claim.key, CANNOT_BE_TESTED, None, None, 0, 0, {}, f"this run has no {', '.join(lacking)}")
    try:
        cases = claim.predicate(*(tables[key] for key in claim.exhibits))
    except CannotTest as reason:
        return Verdict(claim.key, CANNOT_BE_TESTED, None, None, 0, 0, {}, str(reason))
    if cases.empty or not cases["value"].map(math.isfinite).all():
        raise ValueError(
            f"The predicate of {claim.key} gave no case, or one without a finite number: its table is damaged."
        )
    groups = cases.groupby("group", sort=False)
    holds = groups["holds"].mean() > 0.5
    failed = [str(group) for group, held in holds.items() if not held]
    verdict = REPRODUCED if not failed else PARTLY if holds.mean() >= 0.5 else NOT_REPRODUCED
    return Verdict(
        claim=claim.key,
        verdict=verdict,
        value=float(cases["value"].mean()),
        spread=float(cases["value"].std()) if len(cases) > 1 else None,
        held=int(holds.sum()),
        groups=len(holds),
        by_group={str(group): float(value) for group, value in groups["value"].mean().items()},
        reason=f"does not hold for {', '.join(failed)}" if failed else "",
    )


def judge_all(claims: Iterable[Claim], tables: Mapping[str, pd.DataFrame]) -> list[Verdict]:
    """The verdicts on several claims from one run's tables."""
    return [judge(claim, tables) for claim in claims]


def ledger(claims: Iterable[Claim], verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Claims and verdicts as the table that a chapter ends with."""
    claims = list(claims)
    said = "the statement" if all(claim.place == OURS for claim in claims) else "the paper says"
    rows = []
    for claim, verdict in zip(claims, verdicts, strict=True):
        where = f"{verdict.held} of {verdict.groups}" if verdict.groups else "–"
        rows.append(
            {
                "claim": claim.key,
                said: f"{claim.sentence} ({claim.place})",
                "our measure": f"{claim.measure}; holds if {claim.criterion}",
                "ours": verdict.number,
                "holds in": where,
                "verdict": verdict.verdict + (f": {verdict.reason}" if verdict.reason else ""),
            }
        )
    return pd.DataFrame(rows)


def save(verdicts: Iterable[Verdict], folder: Path) -> None:
    """Write ``claims.json`` into a run's folder, beside and renamed."""
    with written_beside(folder / "claims.json") as place:
        place.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1), encoding="utf-8")


def load(folder: Path) -> list[Verdict]:
    """The verdicts of a run from its ``claims.json``."""
    return [Verdict(**entry) for entry in json.loads((folder / "claims.json").read_text(encoding="utf-8"))]
