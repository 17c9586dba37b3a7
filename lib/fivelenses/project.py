"""Where things lie: the project's root, and the folders that are made rather than kept."""

import os
from pathlib import Path

CORES_VARIABLE = "FIVELENSES_CORES"
# By these a runner says to a notebook where it writes, and which committed records it reads.
RUN_FOLDER_VARIABLE, RECORDS_VARIABLE = "FIVELENSES_RUN_FOLDER", "FIVELENSES_RECORDS"


def root() -> Path:
    """The folder that holds ``notebooks/``, ``models/`` and ``_toc.yml``: FIVELENSES_HOME, or this clone."""
    named = os.environ.get("FIVELENSES_HOME")
    folder = Path(named).expanduser().resolve() if named else Path(__file__).resolve().parents[2]
    if not (folder / "notebooks").is_dir():
        raise FileNotFoundError(
            f"{folder} is not a clone of the project (it has no notebooks folder): set FIVELENSES_HOME to one."
        )
    return folder


def store_folder() -> Path:
    """Where checkpoints are kept: FIVELENSES_STORE, or ``store/`` in the clone (ignored by git)."""
    return _named_folder("FIVELENSES_STORE") or root() / "store"


def runs_folder() -> Path:
    """Where runs are left: FIVELENSES_RUNS, or ``runs/`` in the clone (ignored by git)."""
    return _named_folder("FIVELENSES_RUNS") or root() / "runs"


def records_folder() -> Path:
    """Where this machine's own records are kept, ``records/`` in the folder of runs."""
    return runs_folder() / "records"


def check_environment() -> None:
    """Refuse variables of the environment that no run could use, before work begins."""
    for variable in ("FIVELENSES_STORE", "FIVELENSES_RUNS"):
        _named_folder(variable)
    named_cores()


def named_cores() -> int | None:
    """The cores that FIVELENSES_CORES leaves to a process; None where it names none."""
    named = os.environ.get(CORES_VARIABLE)
    if not named:
        return None
    if not named.isdecimal() or int(named) < 1:
        raise ValueError(f"{CORES_VARIABLE} is {named!r}: name a number of cores, 1 or more, or unset it.")
    return int(named)


def _named_folder(variable: str) -> Path | None:
    """The folder that a variable of the environment names, which need not exist yet; None where it names none."""
    named = os.environ.get(variable)
    if not named:
        return None
    folder = Path(named).expanduser().resolve()
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        where = "" if there == folder else f" a place in {there}, which is"
        raise ValueError(f"{variable} is {named},{where} a file: set it to a folder, or unset it.")
    return folder
