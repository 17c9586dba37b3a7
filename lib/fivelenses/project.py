"""Where things lie: the project's root, and the folders that are made rather than kept."""

import os
from pathlib import Path


def root() -> Path:
    """The folder that holds ``notebooks/``, ``models/`` and ``_toc.yml``: FIVELENSES_HOME, or the clone this runs from.

    Raises:
        FileNotFoundError: neither is a clone of the project.

    Example:
        >>> (root() / "notebooks").is_dir()
        True
    """
    named = os.environ.get("FIVELENSES_HOME")
    folder = Path(named).expanduser().resolve() if named else Path(__file__).resolve().parents[2]
    if not (folder / "notebooks").is_dir():
        raise FileNotFoundError(
            f"{folder} is not a clone of the project (it has no notebooks folder): set FIVELENSES_HOME to one."
        )
    return folder


def store_folder() -> Path:
    """Where checkpoints are kept: FIVELENSES_STORE, or ``store/`` in the clone (ignored by git)."""
    named = os.environ.get("FIVELENSES_STORE")
    return Path(named).expanduser().resolve() if named else root() / "store"


def runs_folder() -> Path:
    """Where runs are left: FIVELENSES_RUNS, or ``runs/`` in the clone (ignored by git)."""
    named = os.environ.get("FIVELENSES_RUNS")
    return Path(named).expanduser().resolve() if named else root() / "runs"


def records_folder() -> Path:
    """Where this machine's own records are kept, ``records/`` in the folder of runs."""
    return runs_folder() / "records"
