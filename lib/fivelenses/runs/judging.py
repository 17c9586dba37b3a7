"""A finished run judged again: its tables as they are, its claims as they are now. Nothing is trained or measured."""

import ast
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import nbformat
import pandas as pd
from nbclient import NotebookClient

from fivelenses import project
from fivelenses.runs import seals
from fivelenses.runs.execution import EXECUTED, RunError, code_digest
from fivelenses.runs.pages import facts_of
from fivelenses.runs.run import Run, folder_name
from fivelenses.runs.settings import find_chapter, settings


def reopen(number: int, profile: str, folder: Path) -> Run:
    """A finished run as its last cells saw it: its folder, and its tables."""
    tables = {file.stem: pd.read_parquet(file) for file in sorted(folder.glob("*.parquet"))}
    return Run(find_chapter(number), profile, settings(number, profile), folder, tables)


def judge_again(number: int, profile: str) -> Path:
    """Judge a finished run's tables by the claims as they are now: after a threshold or a predicate has changed.

    The verdicts, and what the executed notebook shows and glues of them, take the place of the old ones; tables,
    pictures and the facts of the run stay.

    Args:
        number: the chapter.
        profile: of the run, without overrides.

    Returns:
        The run's folder.

    Raises:
        ParameterError: there is no such chapter or profile.
        RunError: there is no finished run, it is damaged, its notebook's code has changed since, no cell judges, or
            judging failed.
    """
    chapter = find_chapter(number)
    settings(number, profile)  # a profile that the chapter does not have is said first
    place = project.runs_folder() / folder_name(chapter, profile, {})
    facts = facts_of(place, chapter, profile)
    executed = nbformat.read(place / EXECUTED, as_version=4)
    if code_digest(executed) != code_digest(nbformat.read(chapter.notebook, as_version=4)):
        raise RunError(
            f"Chapter {number} ({profile}) cannot be judged again, since its notebook's code has changed: run "
            f"`fivelenses run {number} --profile {profile}`."
        )
    cells = [cell for cell in executed.cells if cell.cell_type == "code"]
    judging = [(cell, statement) for cell in cells if (statement := _judgement(cell.source))]
    if len(judging) != 1:
        raise RunError(f"Chapter {number} has {len(judging)} cells that call run.judge: it needs one.")
    cell, statement = judging[0]
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.judging-") as kept:
        beside = Path(kept) / place.name
        shutil.copytree(place, beside)
        outputs = _outputs(_imports(cells), statement, number, profile, beside)
        judged = {_name(output) for output in outputs}
        cell.outputs = outputs + [output for output in cell.outputs if _name(output) not in judged]
        nbformat.write(executed, beside / EXECUTED)
        facts["files"] = seals.seal(beside)
        (beside / "run.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        replaced = Path(kept) / "replaced"
        place.rename(replaced)
        beside.rename(place)
    return place


def _judgement(source: str) -> str:
    """The statement of a cell that judges, empty where none does."""
    for node in ast.parse(source).body:
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "judge":
            return ast.unparse(node)
    return ""


def _imports(cells: list[nbformat.NotebookNode]) -> str:
    nodes = (node for cell in cells for node in ast.parse(cell.source).body)
    return "\n".join(ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def _outputs(imports: str, statement: str, number: int, profile: str, folder: Path) -> list[nbformat.NotebookNode]:
    """What the statement displays and glues, in a kernel of its own with the run open as `run`."""
    opening = f"from pathlib import Path\nfrom fivelenses.runs import judging\n{imports}\n"
    opening += f"run = judging.reopen({number}, {profile!r}, Path({str(folder)!r}))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in (opening, statement)])
    client = NotebookClient(notebook, kernel_name="python3", allow_errors=True)
    # What a kernel has to say of its transport is nothing to the one who judges.
    client.execute(stderr=subprocess.DEVNULL)
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    failed = [output for output in outputs if output.output_type == "error"]
    if failed:
        raise RunError(f"Chapter {number} ({profile}) could not be judged, {failed[0].ename}: {failed[0].evalue}.")
    return outputs


def _name(output: nbformat.NotebookNode) -> str:
    """The name that an output is glued under; empty for what is shown."""
    return output.get("metadata", {}).get("scrapbook", {}).get("name", "")
