"""The two halves of each notebook, `.ipynb` and `.py`, brought together by what is in them; times of files say nothing.

A half is old if it holds what both held before: in the commit that is checked out, or when this was last called.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import jupytext
from jupytext.cli import jupytext as call_jupytext

from fivelenses.files import project_folder, written_beside


def read_cells(file: Path) -> list[tuple[str, str]]:
    """Kind and source of each cell of a half."""
    return _cells(file.read_text(encoding="utf-8"), "ipynb" if file.suffix == ".ipynb" else "py:percent")


def _cells(text: str, form: str) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in jupytext.reads(text, fmt=form).cells]


def _digest(cells: list[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def pair(notebook: Path, before: Collection[str]) -> str:
    """Write the half that is old or missing from the other one; the digest of what both now hold.

    Args:
        notebook: the `.ipynb`, beside which the `.py` lies.
        before: digests of what both halves held at earlier times.

    Refused: both have changed; neither is written.
    """
    halves = [half for half in (notebook, notebook.with_suffix(".py")) if half.is_file()]
    digests = [_digest(read_cells(half)) for half in halves]
    if len(set(digests)) == 1 and len(halves) == 2:
        return digests[0]
    changed = [half for half, digest in zip(halves, digests, strict=True) if digest not in before]
    if len(halves) == 2 and len(changed) != 1:
        name = notebook.stem
        raise ValueError(
            f"Both halves of {name} have changed and are left as they are: put what you need into one of them, and "
            f"make the other of it by `jupytext --update --to ipynb {name}.py` or `jupytext --to py {name}.ipynb`."
        )
    source = changed[0] if len(halves) == 2 else halves[0]
    to = ["py:percent"] if source == notebook else ["ipynb", "--update"]  # cells' outputs stay
    call_jupytext(["--quiet", str(source), "--to", *to])
    return _digest(read_cells(source))


def _committed(percent: Path) -> list[str]:
    """The digest of the `.py` in the commit that is checked out; none where there is no commit that has it."""
    command = ["git", "-C", str(percent.parent), "show", f"HEAD:./{percent.name}"]
    shown = subprocess.run(command, capture_output=True, text=True)
    return [_digest(_cells(shown.stdout, "py:percent"))] if shown.returncode == 0 else []


def main() -> None:
    """Pair all notebooks; the exit status is 2 where both halves of one have changed."""
    remembered = project_folder() / "build" / "pairs.json"
    last = json.loads(remembered.read_text(encoding="utf-8")) if remembered.is_file() else {}
    conflicts = []
    for notebook in sorted({file.with_suffix(".ipynb") for file in (project_folder() / "notebooks").glob("[0-9]*.*")}):
        before = [last.get(notebook.stem, ""), *_committed(notebook.with_suffix(".py"))]
        try:
            last[notebook.stem] = pair(notebook, before)
        except ValueError as conflict:
            conflicts.append(str(conflict))
    with written_beside(remembered) as place:
        place.write_text(json.dumps(last, indent=1), encoding="utf-8")
    if conflicts:
        print("\n".join(conflicts), file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
