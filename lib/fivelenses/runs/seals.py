"""A finished run is sealed: ``run.json`` holds a hash of every file beside it that is shown or read again.

A disk that loses a bit, or a table that was edited by hand, is found when the run is next asked for, not when a number
in the book looks odd.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

SEALED = {".parquet", ".png", ".md", ".ipynb"}
VERDICTS = "claims.json"


def seal(folder: Path) -> dict[str, str]:
    """The name of each sealed file of a run, with its SHA-256.

    Line ends are not told apart in files of text: git may change them on another system.
    """
    files = [file for file in sorted(folder.iterdir()) if file.suffix in SEALED or file.name == VERDICTS]
    return {file.name: _hash(file) for file in files}


def broken(folder: Path, seals: Mapping[str, str]) -> list[str]:
    """The sealed files of a run that are missing or not what they were.

    Example:
        >>> broken(Path("nowhere"), {"table.parquet": "ab12"})
        ['table.parquet']
    """
    return [name for name, sealed in seals.items() if not (folder / name).is_file() or _hash(folder / name) != sealed]


def _hash(file: Path) -> str:
    content = file.read_bytes()
    if file.suffix not in (".parquet", ".png"):
        content = content.replace(b"\r\n", b"\n")
    return hashlib.sha256(content).hexdigest()
