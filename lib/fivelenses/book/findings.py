"""Findings: sentences about one published run, written by hand, each with a condition that the build checks.

They lie beside the run's records, in ``book/records/<profile>-<encoder>/<chapter>/findings.yaml``, a list of entries::

    - exhibit: hao2020-figure-1            # whose figure or table the sentence follows; none: the head alone has it
      answer: true                         # also at the top of the chapter (optional)
      introduction: true                   # also on the first screen of the book (optional)
      numbers:
        top: {column: js, where: {layer: 6}, take: mean}
        low: {column: js, where: {layer: [1, 2]}, take: mean}
        ratio: top / low
        verdict: {claim: js-last-layers, take: outcome}
      says: Attention moves {ratio:.1f} times as far in the last layer as in the first two.
      holds: ratio > 2 and verdict == "reproduced"

A number is taken from a table: that of the entry's exhibit, of another `exhibit`, or of a `record`; `where` keeps the
rows whose columns have these values, and `take` is one of `TAKES` (without it, there has to be one value). Or it is
taken from what became of a `claim`, with a `part` and a `group` where it is about an effect. Or it is an expression of
the numbers above it.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import yaml
from jinja2 import StrictUndefined, TemplateError, Undefined
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel

from fivelenses import judging, records
from fivelenses.execution import RunError
from fivelenses.exhibits import Typographic
from fivelenses.judging import FAILS, HOLDS, Verdict

FILE = "findings.yaml"
EXPRESSIONS = SandboxedEnvironment(undefined=StrictUndefined)
EXPRESSIONS.globals = {"abs": abs, "min": min, "max": max, "round": round}
TAKES = ("mean", "min", "max", "sum", "count")


class Number(BaseModel, extra="forbid"):
    """Where a number comes from: a table, or a claim."""

    exhibit: str = ""
    record: str = ""
    column: str = ""
    where: dict[str, object] = {}
    claim: str = ""
    part: str = ""
    group: str = ""
    take: str = ""


class Finding(BaseModel, extra="forbid"):
    """One sentence about a run.

    Attributes:
        says: the sentence; with its numbers filled in where `findings` gives it.
        exhibit: the key of the exhibit that it follows, if any.
        holds: the condition.
        numbers: by the name that sentence and condition know it by.
        answer, introduction: whether it also stands at the top of the chapter, and on the first page of the book.
    """

    says: str
    exhibit: str = ""
    holds: str = "true"
    numbers: dict[str, str | Number] = {}
    answer: bool = False
    introduction: bool = False


def findings(committed: Path, page: Path) -> list[Finding]:
    """The findings of a published run, their numbers filled in; none where it has no file of them.

    Args:
        committed: the folder of the run's records.
        page: the folder of its executed page: exhibits and ``claims.json``.

    Raises:
        RunError: an entry is not well formed, or its condition does not hold; the message names its sentence.
    """
    file = committed / FILE
    if not file.is_file():
        return []
    verdicts = {claim.key: verdict for claim, verdict in judging.load(page)}
    found = []
    for entry in yaml.safe_load(file.read_text(encoding="utf-8")):
        try:
            found.append(_filled(Finding(**entry), committed, page, verdicts))
        except (ValueError, KeyError, AttributeError, OSError) as error:  # of an entry, a file, a name or a number
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise RunError(
                f"The finding “{entry.get('says')}” in {file} does not hold of the records: {why}"
            ) from error
    return found


def _filled(finding: Finding, committed: Path, page: Path, verdicts: Mapping[str, Verdict]) -> Finding:
    if finding.exhibit:
        pd.read_parquet(page / f"{finding.exhibit}.parquet", columns=[])  # there has to be one
    names: dict[str, object] = {}
    for name, number in finding.numbers.items():
        if isinstance(number, str):
            names[name] = evaluate(number, names)
        elif number.claim:
            names[name] = _of_claim(number, verdicts[number.claim])
        else:
            names[name] = _of_table(number, number.exhibit or finding.exhibit, committed, page)
    if evaluate(finding.holds, names) is not True:
        values = ", ".join(f"{name} = {value}" for name, value in names.items())
        raise ValueError(f"{finding.holds} is not true ({values}): rewrite or remove it.")
    return finding.model_copy(update={"says": Typographic().vformat(finding.says, (), names)})


def evaluate(expression: str, names: Mapping[str, object]) -> object:
    """The value of an expression, as Jinja reads it: arithmetic, comparisons, `and`, `or`, `not`, abs, min, max, round.

    >>> evaluate("0.5 < top / low <= 4 and verdict == 'open'", {"top": 3.0, "low": 1.5, "verdict": "open"})
    True
    """
    try:
        value = EXPRESSIONS.compile_expression(expression, undefined_to_none=False)(**names)
        if isinstance(value, Undefined):
            str(value)  # raises the error that names it
    except (TemplateError, TypeError, ZeroDivisionError) as error:
        raise ValueError(f"{expression!r} has no value: {error}") from None
    return value


def _of_table(number: Number, exhibit: str, committed: Path, page: Path) -> object:
    if number.record:
        table = records.read(committed / f"{number.record}.parquet").table
    else:
        table = pd.read_parquet(page / f"{exhibit}.parquet")
    for column, values in number.where.items():
        table = table[table[column].isin(values if isinstance(values, list) else [values])]
    return _taken(table[number.column], number.take)


def _of_claim(number: Number, verdict: Verdict) -> object:
    of_verdict = {"outcome": verdict.outcome, "groups": len(verdict.groups)}
    of_verdict |= {"holding": len(verdict.of(HOLDS)), "failing": len(verdict.of(FAILS))}
    if number.take in of_verdict:
        return of_verdict[number.take]
    groups = [group for group in verdict.groups if group.name == (number.group or group.name)]
    parts = [part for group in groups for part in group.parts if part.name == (number.part or part.name)]
    ends = [(part.interval.estimate, *part.interval.uncensored()) for part in parts]
    table = pd.DataFrame(ends, columns=["estimate", "low", "high"], dtype=float)
    return _taken(table[number.take], "") if number.take in table else _taken(table["estimate"], number.take)


def _taken(values: pd.Series, take: str) -> object:
    """One number of a column; the only one of its values where nothing else is asked for."""
    if take and take not in TAKES:
        raise ValueError(f"there is no {take!r} among {', '.join(TAKES)}")
    if not take and values.nunique(dropna=False) != 1:
        raise ValueError(f"{values.nunique()} values are left: narrow `where`, or say what to take")
    taken = getattr(values, take)() if take else values.iloc[0]
    if pd.isna(taken):
        raise ValueError("no row is left, or its value is missing")
    return taken.item() if hasattr(taken, "item") else taken
