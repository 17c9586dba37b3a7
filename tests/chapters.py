"""The claims of a chapter, judged on tables that a test makes: its notebook's cells that are tagged `claim` are run."""

from functools import cache
from pathlib import Path
from types import CodeType

import jupytext

import fivelenses.run
from fivelenses.chapters import CHAPTERS, settings
from fivelenses.judging import Verdict
from fivelenses.records import Missing
from fivelenses.run import Run


class Tables(dict):
    """Records, or the tables of one, by name; one that is not there is missing."""

    def __missing__(self, name: str) -> Missing:
        return Missing(name, "a test has none")


class OnTables(Run):
    """A run whose records are given; one that is not is missing."""

    def measure(self, function, **asked):
        record = Tables(self.tables)[function]
        return Tables(record) if isinstance(record, dict) else record

    def claim(self, key, *given, **declared):
        """Judged if it is the one that is asked for."""
        return super().claim(key, *given, **declared) if self.only in ("", key) else lambda function: function


@cache
def cells(number: int, tag: str) -> tuple[CodeType, ...]:
    """The cells of a chapter with a tag; all that compute where it is empty."""
    notebook = jupytext.read(CHAPTERS[number].notebook.with_suffix(".py"))
    tagged = [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]
    code = tagged if tag else [cell for cell in notebook.cells if cell.cell_type == "code"]
    return tuple(compile(cell.source, f"chapter {number}", "exec") for cell in code)


def executed(number: int, tables: dict, folder, excluded=None, only="", tag="claim", **parameters) -> tuple[Run, dict]:
    """The run of a chapter's cells of a tag (or all) on made records, by name of measurement, and what they define."""
    run = OnTables(CHAPTERS[number], "tiny", settings(number, "tiny", **parameters), folder, committed=folder)
    run.tables, run.only, run.excluded, usual = tables, only, excluded or {}, fivelenses.run.begin
    fivelenses.run.begin, names = lambda *_: run, {}
    try:
        for code in cells(number, tag):
            exec(code, names)
    finally:
        fivelenses.run.begin = usual
    return run, names


def judge(number: int):
    """What becomes of one claim of a chapter: a function of its key, tables, and why tasks take no part."""
    return lambda key, tables, excluded=None: verdicts(number, tables, Path(), excluded, key)[key]


def verdicts(number: int, tables: dict, folder, excluded=None, only="", **parameters) -> dict[str, Verdict]:
    """What becomes of each claim of a chapter, by key; arguments as `executed`."""
    run, _ = executed(number, tables, folder, excluded, only, **parameters)
    return {claim.key: verdict for claim, verdict in run.claims}
