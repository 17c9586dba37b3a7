"""Where things lie; and files that are whole or not there, written beside their place and renamed, and their hashes."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

# By these a runner says to a notebook where it writes, and which committed records it reads.
RUN_FOLDER_VARIABLE, RECORDS_VARIABLE = "FIVELENSES_RUN_FOLDER", "FIVELENSES_RECORDS"
FULL_DISK = 10**8  # bytes: a disk on which something could not be written has no more left


class RunError(RuntimeError):
    """A run that could not start or failed; the message is one sentence that says where and what to do."""


def project_folder() -> Path:
    """The folder that holds ``notebooks/``, ``models/`` and ``_toc.yml``: FIVELENSES_HOME, or this clone."""
    folder = _named("FIVELENSES_HOME") or Path(__file__).resolve().parents[2]
    if not (folder / "notebooks").is_dir():
        raise FileNotFoundError(f"{folder} has no notebooks folder: set FIVELENSES_HOME to a clone of the project.")
    return folder


def store_folder() -> Path:
    """Where checkpoints are kept: FIVELENSES_STORE, or ``store/`` in the clone (ignored by git)."""
    return _named("FIVELENSES_STORE") or project_folder() / "store"


def runs_folder() -> Path:
    """Where runs are left: FIVELENSES_RUNS, or ``runs/`` in the clone (ignored by git)."""
    return _named("FIVELENSES_RUNS") or project_folder() / "runs"


def cache_folder() -> Path:
    """The folder for what was fetched or converted."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fivelenses"


def records_folder() -> Path:
    """Where this machine's own records are kept, ``records/`` in the folder of runs."""
    return runs_folder() / "records"


def _named(variable: str) -> Path | None:
    named = os.environ.get(variable)
    return Path(named).expanduser().resolve() if named else None


@contextlib.contextmanager
def written_beside(file: Path) -> Iterator[Path]:
    """The path to write a file to; it takes the file's place when the block has ended, and is removed if it failed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.stem}.{uuid4().hex[:8]}.partial{file.suffix}")
    try:
        yield partial
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def folder_beside(place: Path) -> Iterator[Path]:
    """An empty folder to fill; it takes the place of `place` when the block has ended, and is removed if it failed."""
    partial = place.with_name(f".{place.name}.{uuid4().hex[:8]}.partial")
    partial.mkdir(parents=True)
    try:
        yield partial
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def sha256(file: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every record in a folder, by the name of its file."""
    return {file.name: sha256(file) for file in sorted(folder.glob("[!.]*.parquet"))}


@contextlib.contextmanager
def disk_named(folder: Path) -> Iterator[None]:
    """Where the block fails because the disk of a folder is full, say so, whatever a library made of it."""
    try:
        yield
    except Exception as error:
        if "No space left" not in str(error) and shutil.disk_usage(folder).free > FULL_DISK:
            raise
        raise RunError(f"No space left on the disk of {folder}: make room, and give the same command again.") from error
