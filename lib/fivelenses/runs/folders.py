"""Where runs are, and the two environment variables by which a runner tells a notebook."""

import hashlib
import json
from pathlib import Path

from fivelenses.runs.settings import Chapter

RUN_FOLDER_VARIABLE = "FIVELENSES_RUN_FOLDER"  # where a run writes
RECORDS_VARIABLE = "FIVELENSES_RECORDS"  # the committed records that a published run reads


def folder_name(chapter: Chapter, profile: str, overrides: dict) -> Path:
    """Where a run is left under the runs folder: one place per profile, and one per set of overrides."""
    overrides = {name: value for name, value in overrides.items() if value is not None}
    suffix = "-" + hashlib.sha256(json.dumps(overrides, sort_keys=True).encode()).hexdigest()[:8] if overrides else ""
    return Path(profile) / f"{chapter.slug}{suffix}"
