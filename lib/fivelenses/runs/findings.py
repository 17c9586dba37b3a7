"""Findings: sentences about one published run, written by hand, each with a condition that the build checks.

They lie beside the run's records, in ``book/records/<profile>-<encoder>/<chapter>/findings.yaml``, a list of entries::

    - exhibit: hao2020-figure-1            # whose figure or table the sentence follows
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
rows whose columns have these values, `take` is one of `TAKES`. Or it is taken from what became of a `claim`, with a
`part` and a `group` where it is about an effect. Or it is an expression of the numbers above it.
"""

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml
from jinja2 import StrictUndefined, TemplateError, Undefined
from jinja2.sandbox import SandboxedEnvironment

from fivelenses import judging, records
from fivelenses.execution import RunError
from fivelenses.judging import FAILS, HOLDS, Verdict

FILE = "findings.yaml"
NEEDED, OPTIONAL = ("exhibit", "says", "holds"), {"numbers", "answer", "introduction"}
RESERVED = {"and", "or", "not", "in", "is", "if", "else", "none", "None", "true", "True", "false", "False"}
EXPRESSIONS = SandboxedEnvironment(undefined=StrictUndefined)
EXPRESSIONS.globals = {"abs": abs, "min": min, "max": max, "round": round}
TAKES: dict[str, Callable[[pd.Series], object]] = {
    "only": lambda values: _only(values.drop_duplicates()),
    "count": len,
    **{name: lambda values, name=name: getattr(values, name)() for name in ("mean", "median", "min", "max", "sum")},
}
OF_CLAIM = ("outcome", "groups", "holding", "failing")
OF_EFFECT = ("estimate", "low", "high")


class FindingError(RunError):
    """A finding that is not well formed, or does not hold; the message names the sentence and its file."""


@dataclass(frozen=True)
class Finding:
    """One sentence about a run.

    Attributes:
        exhibit: the key of the exhibit that it follows.
        sentence: with its numbers filled in.
        answer: whether it also stands at the top of the chapter.
        introduction: whether it also stands on the first page of the book.
    """

    exhibit: str
    sentence: str
    answer: bool = False
    introduction: bool = False


def evaluate(expression: str, names: Mapping[str, object]) -> object:
    """The value of an expression, as Jinja reads it: arithmetic, comparisons, `and`, `or`, `not`, abs, min, max, round.

    Raises:
        ValueError: what is no expression, an unknown name, or a division by zero.

    Example:
        >>> evaluate("0.5 < top / low <= 4 and verdict == 'open'", {"top": 3.0, "low": 1.5, "verdict": "open"})
        True
        >>> evaluate("top / bottom", {"top": 3.0})
        Traceback (most recent call last):
            ...
        ValueError: 'top / bottom' has no value: 'bottom' is undefined
    """
    try:
        value = EXPRESSIONS.compile_expression(expression, undefined_to_none=False)(**names)
        if isinstance(value, Undefined):
            str(value)  # raises the error that names it
    except (TemplateError, TypeError, ZeroDivisionError) as error:
        raise ValueError(f"{expression!r} has no value: {error}") from None
    return value


def findings(committed: Path, page: Path) -> list[Finding]:
    """The findings of a published run, their numbers filled in; none where it has no file of them.

    Args:
        committed: the folder of the run's records.
        page: the folder of its executed page: exhibits and ``claims.json``.

    Raises:
        FindingError: an entry is not well formed, or its condition does not hold; the message names its sentence.
    """
    file = committed / FILE
    if not file.is_file():
        return []
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise FindingError(f"{file} is not YAML ({' '.join(str(error).split())}): mend it.") from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise FindingError(f"{file} has to be a list of entries with {', '.join(NEEDED)}.")
    verdicts = {claim.key: verdict for claim, verdict in judging.load(page)}
    return [_finding(entry, file, committed, page, verdicts) for entry in entries]


def _finding(entry: dict, file: Path, committed: Path, page: Path, verdicts: Mapping[str, Verdict]) -> Finding:
    template = str(entry.get("says", entry))
    place = f"The finding “{template}” in {file}"
    wrong = [f"lacks {name}" for name in NEEDED if name not in entry]
    wrong += [f"has an unknown {name}" for name in entry if name not in {*NEEDED, *OPTIONAL}]
    if wrong:
        raise FindingError(f"{place} {wrong[0]}.")
    if not (page / f"{entry['exhibit']}.parquet").is_file():
        raise FindingError(f"{place} follows the exhibit {entry['exhibit']!r}, which this run does not have.")
    names: dict[str, object] = {}
    for name, source in (entry.get("numbers") or {}).items():
        if not isinstance(name, str):
            raise FindingError(f"{place} has a number that YAML reads as {name}, not as a name: rename it.")
        if name in RESERVED:
            raise FindingError(f"{place} has a number of the name {name}, a word of expressions: rename it.")
        try:
            names[name] = (
                evaluate(source, names)
                if isinstance(source, str)
                else _of_claim(source, verdicts)
                if "claim" in source
                else _of_table(source, entry["exhibit"], committed, page)
            )
        except (ValueError, KeyError, TypeError) as error:
            raise FindingError(f"{place} has no number {name}: {error}.") from error
    try:
        holds, sentence = evaluate(str(entry["holds"]), names), _filled(template, names)
    except ValueError as error:
        raise FindingError(f"{place} cannot be checked: {error}.") from error
    if holds is not True:
        values = ", ".join(
            f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in names.items()
        )
        raise FindingError(f"{place} does not hold of the records ({entry['holds']}; {values}): rewrite or remove it.")
    return Finding(entry["exhibit"], sentence, bool(entry.get("answer")), bool(entry.get("introduction")))


def _of_table(source: Mapping, exhibit: str, committed: Path, page: Path) -> object:
    unknown = set(source) - {"exhibit", "record", "column", "where", "take"}
    if unknown:
        raise ValueError(f"a number of a table has no {sorted(unknown)[0]!r}")
    if "record" in source:
        table = records.read(committed / f"{source['record']}.parquet").table
    else:
        table = pd.read_parquet(page / f"{source.get('exhibit', exhibit)}.parquet")
    for column, values in (source.get("where") or {}).items():
        kept = table[_known(column, table.columns)].isin(values if isinstance(values, list) else [values])
        table = table[kept]
    taken = TAKES[_known(source.get("take", "only"), TAKES)](table[_known(source["column"], table.columns)])
    if pd.isna(taken):
        raise ValueError("no row of the table is left, or its value is missing")
    return taken.item() if hasattr(taken, "item") else taken


def _of_claim(source: Mapping, verdicts: Mapping[str, Verdict]) -> object:
    verdict, take = verdicts[_known(source["claim"], verdicts)], source.get("take", "estimate")
    if take in OF_CLAIM:
        counts = {"groups": len(verdict.groups), "holding": len(verdict.of(HOLDS))}
        return ({"outcome": verdict.outcome, "failing": len(verdict.of(FAILS))} | counts)[take]
    groups = [group for group in verdict.groups if group.name == source.get("group", group.name)]
    parts = [part for group in groups for part in group.parts if part.name == source.get("part", part.name)]
    ends = [dict(zip(OF_EFFECT, (part.interval.estimate, *part.interval.uncensored()), strict=True)) for part in parts]
    values = pd.Series([one[take if take in OF_EFFECT else "estimate"] for one in ends], dtype=float)
    return float(TAKES["only" if take in OF_EFFECT else _known(take, TAKES)](values))


def _only(values: pd.Series) -> object:
    if len(values) != 1:
        raise ValueError(f"{len(values)} values are left where one is asked for: narrow `where`, or say what to take")
    return values.iloc[0]


def _known(name: str, names) -> str:
    if name not in names:
        raise ValueError(f"there is no {name!r} among {', '.join(map(str, names))}")
    return name


def _filled(template: str, names: Mapping[str, object]) -> str:
    """A sentence with its numbers, minus signs as such; placeholders are names with a format and nothing else."""
    filled = ""
    for text, name, form, _ in string.Formatter().parse(template):
        filled += text
        if name is not None:
            try:
                value = format(names[name], form)
            except KeyError:
                raise ValueError(f"its sentence asks for the unknown number {name!r}") from None
            filled += value.replace("-", "−") if isinstance(names[name], int | float) else value
    return filled
