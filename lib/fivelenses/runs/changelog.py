"""What a release changes in what the book says: the verdicts of its published runs, beside those of the one before."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fivelenses.exhibits.exhibit import counted
from fivelenses.files import written_beside

# What judges a run takes seconds to load, for which the refusal of a table does not wait.
if TYPE_CHECKING:
    from fivelenses.runs.pages import Shown

COLUMNS = ["run", "paper", "claim", "verdict"]
VERDICTS, CHANGES = "verdicts.csv", "CHANGES.md"


def verdicts_of(runs: "Iterable[Shown]") -> pd.DataFrame:
    """One row per run and claim of a paper: `run`, `paper`, `claim`, `verdict`, in the order of the ledger.

    Raises:
        RunError: a run judged other claims than its chapter has now.
    """
    from fivelenses.runs.ledger import entries

    rows = [(entry.run, entry.claim.paper, entry.claim.key, entry.outcome) for entry in entries(runs)]
    return pd.DataFrame(rows, columns=COLUMNS)


def changes(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Which verdicts differ between two tables of `verdicts_of`, as Markdown.

    Example:
        >>> before = pd.DataFrame([("small", "p", "rises", "reproduced")], columns=COLUMNS)
        >>> after = pd.DataFrame([("small", "p", "rises", "not reproduced")], columns=COLUMNS)
        >>> print(changes(before, after))
        ## Verdicts
        <BLANKLINE>
        1 verdict changed, 0 are new, 0 are gone, of 1.
        <BLANKLINE>
        | run | claim | before | now |
        |---|---|---|---|
        | small | rises | reproduced | not reproduced |
        <BLANKLINE>
    """
    both = before.merge(after, on=["run", "paper", "claim"], how="outer", suffixes=("_before", "_now"), sort=False)
    new, gone = both["verdict_before"].isna(), both["verdict_now"].isna()
    differing = both[both["verdict_before"] != both["verdict_now"]].fillna("–")
    changed = len(differing) - new.sum() - gone.sum()
    lines = ["## Verdicts", ""]
    lines += [f"{counted(changed, 'verdict')} changed, {new.sum()} are new, {gone.sum()} are gone, of {len(both)}.", ""]
    if len(differing):
        lines += ["| run | claim | before | now |", "|---|---|---|---|"]
        lines += [
            f"| {row.run} | {row.claim} | {row.verdict_before} | {row.verdict_now} |" for row in differing.itertuples()
        ]
        lines.append("")
    return "\n".join(lines)


def read(before: Path | None) -> pd.DataFrame:
    """The ``verdicts.csv`` of the release before; no row where `before` is None or missing, as for the first release.

    Raises:
        ValueError: `before` is no such table.
    """
    if before is None or not before.exists():
        return pd.DataFrame(columns=COLUMNS)
    try:
        earlier = pd.read_csv(before)
    except (ValueError, OSError) as error:
        raise ValueError(f"{before} is no table of verdicts ({type(error).__name__}).") from error
    if list(earlier.columns) != COLUMNS:
        raise ValueError(f"{before} is no table of verdicts: its columns have to be {', '.join(COLUMNS)}.")
    return earlier


def write(folder: Path, runs: "Iterable[Shown]", earlier: pd.DataFrame) -> Path:
    """Write ``verdicts.csv``, for the next release to be compared with, and ``CHANGES.md`` into a folder; `earlier`
    has the verdicts of the release before.
    """
    after = verdicts_of(runs)
    with written_beside(folder / VERDICTS) as place:
        after.to_csv(place, index=False)
    with written_beside(folder / CHANGES) as place:
        place.write_text(changes(earlier, after), encoding="utf-8")
    return folder / CHANGES
