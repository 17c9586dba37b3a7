"""The two halves of each notebook, `.ipynb` and `.py`, brought together by what is in them; times of files say nothing.

A half is old if it holds what both held before: in the commit that is checked out, or when this was last called.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import jupytext
from jupytext.cli import jupytext as call_jupytext

from fivelenses.files import project_folder

Cells = list[tuple[str, str]]  # kind and source of each


def read_cells(file: Path) -> Cells:
    """Kind and source of each cell of a half."""
    return _cells(file.read_text(encoding="utf-8"), "ipynb" if file.suffix == ".ipynb" else "py:percent")


def _cells(text: str, form: str) -> Cells:
    return [(cell.cell_type, cell.source) for cell in jupytext.reads(text, fmt=form).cells]


def pair(notebook: Path, remembered: Path) -> None:
    """Write the half that is old or missing from the other one; refused where both have changed.

    Args:
        notebook: the `.ipynb`, beside which the `.py` lies.
        remembered: where the `.py` of the last time is kept.
    """
    percent = notebook.with_suffix(".py")
    halves = {half: read_cells(half) for half in (notebook, percent) if half.is_file()}
    committed = subprocess.run(["git", "-C", percent.parent, "show", f"HEAD:./{percent.name}"], capture_output=True)
    before = [read_cells(remembered)] if remembered.is_file() else []
    before += [] if committed.returncode else [_cells(committed.stdout.decode(), "py:percent")]
    changed = [half for half, cells in halves.items() if cells not in before or len(halves) == 1]
    if len(halves) == 1 or halves[notebook] != halves[percent]:
        if len(changed) != 1:
            name = notebook.stem
            raise ValueError(
                f"Both halves of {name} have changed and are left as they are: put what you need into one of them, and "
                f"make the other of it by `jupytext --update --to ipynb {name}.py` or `jupytext --to py {name}.ipynb`."
            )
        to = ["py:percent"] if changed == [notebook] else ["ipynb", "--update"]  # cells' outputs stay
        call_jupytext(["--quiet", str(changed[0]), "--to", *to])
    remembered.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(percent, remembered)


def main() -> None:
    """Pair all notebooks; the exit status is 2 where both halves of one have changed."""
    conflicts = []
    for notebook in sorted({file.with_suffix(".ipynb") for file in (project_folder() / "notebooks").glob("[0-9]*.*")}):
        try:
            pair(notebook, project_folder() / "build" / "pairs" / f"{notebook.stem}.py")
        except ValueError as conflict:
            conflicts.append(str(conflict))
    if conflicts:
        print("\n".join(conflicts), file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
