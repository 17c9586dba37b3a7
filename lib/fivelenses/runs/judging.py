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

    The cell that judges is run as it is now, on the run's tables alone. What it shows and glues takes the place of what
    the executed notebook has there; tables, pictures and the facts of the run stay.

    Args:
        number: the chapter.
        profile: of the run, without overrides.

    Returns:
        The run's folder.

    Raises:
        ParameterError: there is no such chapter or profile.
        RunError: there is no finished run, it is damaged, another cell of its notebook has changed since, no cell
            judges, or judging failed, as where it asks for more than `run`.
    """
    chapter = find_chapter(number)
    settings(number, profile)  # a profile that the chapter does not have is said first
    place = project.runs_folder() / folder_name(chapter, profile, {})
    facts = facts_of(place, chapter, profile)
    executed, present = (nbformat.read(file, as_version=4) for file in (place / EXECUTED, chapter.notebook))
    cell, source = (_judging_cell(notebook, number) for notebook in (executed, present))
    cell.source = source.source
    if code_digest(executed) != code_digest(present):
        raise RunError(
            f"Chapter {number} ({profile}) cannot be judged again, since its notebook's code has changed: run "
            f"`fivelenses run {number} --profile {profile}`."
        )
    cells = [cell for cell in executed.cells if cell.cell_type == "code"]
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.judging-") as kept:
        beside = Path(kept) / place.name
        shutil.copytree(place, beside)
        cell.outputs = _outputs(_imports(cells), _judgement(cell), number, profile, beside)
        nbformat.write(executed, beside / EXECUTED)
        facts |= {"files": seals.seal(beside), "notebook": code_digest(executed)}
        (beside / "run.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        replaced = Path(kept) / "replaced"
        place.rename(replaced)
        beside.rename(place)
    return place


def _judging_cell(notebook: nbformat.NotebookNode, number: int) -> nbformat.NotebookNode:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    judging = [cell for cell in cells if any(_calls(node, "judge") for node in ast.parse(cell.source).body)]
    if len(judging) != 1:
        raise RunError(f"Chapter {number} has {len(judging)} cells that call run.judge: it needs one.")
    return judging[0]


def _judgement(cell: nbformat.NotebookNode) -> str:
    """The statements of a cell without the one that finishes the run."""
    return "\n".join(ast.unparse(node) for node in ast.parse(cell.source).body if not _calls(node, "finish"))


def _calls(node: ast.AST, method: str) -> bool:
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == method


def _imports(cells: list[nbformat.NotebookNode]) -> str:
    nodes = (node for cell in cells for node in ast.parse(cell.source).body)
    return "\n".join(ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def _outputs(imports: str, statements: str, number: int, profile: str, folder: Path) -> list[nbformat.NotebookNode]:
    """What the statements display and glue, in a kernel of its own with the run open as `run`."""
    opening = f"from pathlib import Path\nfrom fivelenses.runs import judging\n{imports}\n"
    opening += f"run = judging.reopen({number}, {profile!r}, Path({str(folder)!r}))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in (opening, statements)])
    client = NotebookClient(notebook, kernel_name="python3", allow_errors=True)
    # What a kernel has to say of its transport is nothing to the one who judges.
    client.execute(stderr=subprocess.DEVNULL)
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    failed = [output for output in outputs if output.output_type == "error"]
    if failed:
        raise RunError(f"Chapter {number} ({profile}) could not be judged, {failed[0].ename}: {failed[0].evalue}.")
    return outputs
