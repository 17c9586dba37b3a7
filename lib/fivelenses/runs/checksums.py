"""``run.json`` holds the SHA-256 of every file of a run that is shown or read again.

A disk that loses a bit, or a table that was edited by hand, is found when the run is next asked for, not when a number
in the book looks odd.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

CHECKED = {".parquet", ".png", ".html", ".ipynb"}
VERDICTS = "claims.json"


def checksums(folder: Path) -> dict[str, str]:
    """The name of each checked file of a run, with its SHA-256.

    Line ends of text files do not matter: git may change them on another system.
    """
    files = [file for file in sorted(folder.iterdir()) if file.suffix in CHECKED or file.name == VERDICTS]
    return {file.name: _checksum(file) for file in files}


def damaged(folder: Path, expected: Mapping[str, str]) -> list[str]:
    """The checked files of a run that are missing or not what they were.

    Example:
        >>> damaged(Path("nowhere"), {"table.parquet": "ab12"})
        ['table.parquet']
    """
    return [name for name, one in expected.items() if not (folder / name).is_file() or _checksum(folder / name) != one]


def _checksum(file: Path) -> str:
    content = file.read_bytes()
    if file.suffix not in (".parquet", ".png"):
        content = content.replace(b"\r\n", b"\n")
    return hashlib.sha256(content).hexdigest()
