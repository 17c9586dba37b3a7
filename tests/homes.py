"""Small notebooks that stand for a chapter, in a home of their own."""

import shutil
from pathlib import Path

import jupytext
import nbformat

from fivelenses.chapters import CHAPTERS
from fivelenses.files import project_folder

BEGIN = "from fivelenses.run import begin\nrun = begin(1, globals())"
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def make_home(folder: Path, monkeypatch) -> None:
    """A home, runs folder and store in `folder`, with the project's profiles and models."""
    profiles, models = project_folder() / "notebooks" / "profiles", project_folder() / "models"
    for variable, name in (("HOME", ""), ("RUNS", "runs"), ("STORE", "store")):
        monkeypatch.setenv(f"FIVELENSES_{variable}", str(folder / name))
    shutil.copytree(profiles, folder / "notebooks" / "profiles")
    (folder / "models").symlink_to(models)


def write_notebook(*cells: str, parameters: str = 'profile = "tiny"') -> None:
    """Both halves of chapter 1's notebook, of these cells after its head and the one with its parameters."""
    made = [nbformat.v4.new_markdown_cell("# What changes?")]
    made += [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    made += [nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
    notebook = nbformat.v4.new_notebook(cells=made, metadata=KERNEL)
    place = CHAPTERS[1].notebook
    nbformat.write(notebook, place)
    jupytext.write(notebook, place.with_suffix(".py"), fmt="py:percent")
