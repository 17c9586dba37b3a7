"""Files that are whole or not there: written beside their place and renamed; their hashes; and a disk that is full."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

CHECKED = {".parquet", ".png", ".html", ".ipynb"}  # of a run's files, and its claims.json
FULL_DISK = 10**8  # bytes: a disk on which something could not be written has no more left


class FullDisk(RuntimeError):
    """A disk is full; the message says which."""


@contextlib.contextmanager
def written_beside(file: Path) -> Iterator[Path]:
    """The path to write a file to; it takes the file's place when the block has ended, and is removed if it failed.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with written_beside(folder / "deep" / "a.txt") as place:
        ...     _ = place.write_text("whole")
        >>> [one.name for one in (folder / "deep").iterdir()]
        ['a.txt']
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.stem}.{os.getpid()}.partial{file.suffix}")
    try:
        yield partial
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def folder_beside(place: Path) -> Iterator[Path]:
    """An empty folder to fill; it takes the place of `place` when the block has ended, and is removed if it failed."""
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
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
    """The SHA-256 of every file of a run that is shown or read again, by name."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix in CHECKED or file.name == "claims.json"]
    return {file.name: sha256(file) for file in files}


def damaged(folder: Path, expected: Mapping[str, str]) -> list[str]:
    """The files of a run that are missing or not what they were."""
    return [name for name, one in expected.items() if not (folder / name).is_file() or sha256(folder / name) != one]


@contextlib.contextmanager
def disk_named(folder: Path) -> Iterator[None]:
    """Where the block fails because the disk of a folder is full, say so, whatever a library made of it.

    Example:
        >>> with disk_named(Path("/tmp")):
        ...     raise RuntimeError("I/O error: No space left on device (os error 28)")
        Traceback (most recent call last):
        fivelenses.files.FullDisk: No space left on the disk of /tmp: make room, ...
    """
    try:
        yield
    except Exception as error:
        if "No space left" not in str(error) and shutil.disk_usage(folder).free > FULL_DISK:
            raise
        raise FullDisk(
            f"No space left on the disk of {folder}: make room, and give the same command again, which goes on with "
            "what is there."
        ) from error
