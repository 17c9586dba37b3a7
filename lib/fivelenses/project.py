"""Where things lie: the project's root, and the folders that are made rather than kept."""

import os
from pathlib import Path

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
    return _folder("FIVELENSES_STORE", "store")


def runs_folder() -> Path:
    """Where runs are left: FIVELENSES_RUNS, or ``runs/`` in the clone (ignored by git)."""
    return _folder("FIVELENSES_RUNS", "runs")


def records_folder() -> Path:
    """Where this machine's own records are kept, ``records/`` in the folder of runs."""
    return runs_folder() / "records"


def _folder(variable: str, usual: str) -> Path:
    named = os.environ.get(variable)
    return Path(named).expanduser().resolve() if named else root() / usual
