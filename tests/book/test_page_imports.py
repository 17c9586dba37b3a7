"""A page from records is made without the libraries that measure."""

import ast
import json
import subprocess
import sys

import nbformat
import pytest

from fivelenses import records
from fivelenses.book.pages import published_runs
from fivelenses.chapters import CHAPTERS
from fivelenses.execution import code_cells
from fivelenses.files import RECORDS_VARIABLE, RUN_FOLDER_VARIABLE

# What takes seconds to load; seaborn is loaded where something is drawn.
HEAVY = ("torch", "transformers", "datasets", "sklearn", "seaborn")
BEGIN = f"""
import json, os, sys
for number, imports, committed in json.load(sys.stdin):
    names = {{}}
    exec(imports, names)
    if committed:
        os.environ["{RECORDS_VARIABLE}"] = committed
        run = names["begin"](number, {{}})
        run.measure("models")
    loaded = [name for name in {HEAVY} if name in sys.modules]
    assert not loaded, f"chapter {{number}} has loaded {{', '.join(loaded)}}"
"""


def code(chapter) -> list[ast.stmt]:
    """The statements of a notebook, but for the cells that show a lens at work."""
    cells = code_cells(nbformat.read(chapter.notebook, as_version=4))
    return ast.parse("\n".join(cell.source for cell in cells if "method" not in cell.metadata["tags"])).body


def test_no_chapter_that_is_begun_on_records_has_loaded_what_measures(tmp_path):
    committed = {run.chapter.number: str(run.committed) for run in published_runs()}
    begun = []
    for number, chapter in CHAPTERS.items():
        imports = [one for one in code(chapter) if isinstance(one, ast.Import | ast.ImportFrom)]
        begun.append((number, "\n".join(map(ast.unparse, imports)), committed.get(number)))
    environment = {"PYTHONPATH": str(records.LIBRARY), "PATH": "", RUN_FOLDER_VARIABLE: str(tmp_path)}
    told = {"input": json.dumps(begun), "env": environment, "text": True, "capture_output": True}
    ended = subprocess.run([sys.executable, "-c", BEGIN], check=False, **told)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("number", CHAPTERS)
def test_what_a_notebook_measures_is_found_by_its_name(number):
    calls = [one for part in code(CHAPTERS[number]) for one in ast.walk(part) if isinstance(one, ast.Call)]
    measured = [one.args[0].value for one in calls if ast.unparse(one.func) == "run.measure"]
    assert {"models", "by_example"} < set(measured)
    for name in measured:
        assert records.measuring_module(name, CHAPTERS[number].measures)
