"""Whether anything has changed since the book was made, from the sizes and times of files: said in a second.

Where something has, `book` and `execution` look closer, at content.
"""

import hashlib
import os
from pathlib import Path

from fivelenses import project

IGNORED = {"__pycache__", ".ipynb_checkpoints", "by-hand", "reports", "records", "surfaces"}


def first_page() -> Path:
    """Where the first page of the built book is."""
    return project.root() / "build" / "book" / "html" / "index.html"


def _inputs() -> str:
    """A digest of the names, sizes and times of all files that the book and this machine's runs are made from."""
    root = project.root()
    content = hashlib.sha256()
    for place in (root / "lib", root / "notebooks", root / "book", root / "models", project.runs_folder()):
        for folder, below, files in os.walk(place):
            committed = place == root / "book"
            below[:] = sorted(name for name in below if committed or name not in IGNORED)
            for name in sorted(files):
                if not name.startswith(".") and not name.endswith(".pyc"):
                    told = os.stat(os.path.join(folder, name))
                    content.update(f"{folder}/{name} {told.st_size} {told.st_mtime_ns}\n".encode())
    for file in (root / "_config.yml", root / "_toc.yml"):
        content.update(file.read_bytes())
    return content.hexdigest()


def _stamp() -> Path:
    return first_page().parents[1] / "unchanged.sha256"


def is_unchanged() -> bool:
    """Whether all files are as they were when `remember` was called."""
    stamp = _stamp()
    return first_page().is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == _inputs()


def remember() -> None:
    """Remember the files as they are: the book has been made from them."""
    _stamp().write_text(_inputs(), encoding="utf-8")
