"""Where runs are, and the two environment variables by which a runner tells a notebook."""

import hashlib
import json
from pathlib import Path

from fivelenses import project
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import Chapter

RUN_FOLDER_VARIABLE = "FIVELENSES_RUN_FOLDER"  # where a run writes
RECORDS_VARIABLE = "FIVELENSES_RECORDS"  # the committed records that a published run reads


def folder_name(chapter: Chapter, profile: str, overrides: dict) -> Path:
    """Where a run is left under the runs folder: one place per profile, and one per set of overrides."""
    overrides = {name: value for name, value in overrides.items() if value is not None}
    suffix = "-" + hashlib.sha256(json.dumps(overrides, sort_keys=True).encode()).hexdigest()[:8] if overrides else ""
    return Path(profile) / f"{chapter.slug}{suffix}"


def find_run(chapter: Chapter, profile: str, overrides: dict) -> Path:
    """The folder of a run.

    Raises:
        ParameterError: there is none.
    """
    folder = project.runs_folder() / folder_name(chapter, profile, overrides)
    if not folder.is_dir():
        raise ParameterError(no_current_run(chapter, profile, overrides, "there is no run"))
    return folder


def no_current_run(chapter: Chapter, profile: str, overrides: dict, reason: str) -> str:
    """Why a run cannot be used, and the command that makes it, in one sentence."""
    given = "".join(f" -p '{name}={json.dumps(value)}'" for name, value in overrides.items() if value is not None)
    again = f"fivelenses run {chapter.number} --profile {profile}{given}"
    return f"Chapter {chapter.number} has no current run on {profile} ({reason}): run `{again}`."
