"""The records of a run, committed: what the published pages are made from.

``book/records/<profile>-<encoder>/<chapter>/`` holds a Parquet table per measurement and ``run.json``: parameters,
addresses of the checkpoints, and the facts of the run that measured.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fivelenses import records
from fivelenses.book.pages import FINDINGS
from fivelenses.catalogue import find
from fivelenses.chapters import ParameterError, find_chapter
from fivelenses.execution import RunError, of_chapter
from fivelenses.files import checksums, folder_beside, records_folder, written_beside
from fivelenses.judging import short

# Of a run's facts, those that its committed records keep.
PUBLISHED_FACTS = {"chapter", "profile", "parameters", "not_measured", "specifications", "device", "python", "versions"}
PUBLISHED_FACTS |= {"seconds", "training_seconds", "peak_memory"}


def publish(number: int, profile: str = "small", overrides: dict | None = None) -> Path:
    """Copy the records of a chapter's run into ``book/records``. The run without overrides leads its chapter: it is the
    one that the book's page of the chapter shows. Refused: a run that is not current, or on the reader's own table.
    """
    job = of_chapter(number, profile, overrides)
    if own := [task.title for task in map(find, job.parameters.tasks_trained()) if task.own]:
        lacking = "which readers of a published page do not have: send a report instead"
        raise RunError(f"{own[0]} is a table of your own, {lacking}.")
    if reason := job.reason:
        options = "".join(f" -p '{name}={json.dumps(value)}'" for name, value in job.overrides.items())
        command = f"fivelenses run {number} --profile {profile}{options}"
        raise ParameterError(f"Chapter {number} has no current run on {profile} ({reason}): run `{command}`.")
    facts, measured = json.loads((job.place / "run.json").read_text(encoding="utf-8")), {}
    for file in (file for files in facts["records"].values() for file in files):
        name = file.removesuffix(".parquet").rpartition(".")[0]
        measured.setdefault(name, []).append(records.read(records_folder() / job.chapter.slug / file))
    merged = {name: records.merge(parts) for name, parts in measured.items()}
    encoder = short(job.parameters.encoder.rstrip("/")).replace("/", "-")
    return commit(number, f"{profile}-{encoder}", merged, facts, leads=not job.overrides)


def commit(number: int, name: str, measured: Mapping[str, records.Record], facts: Mapping, leads: bool) -> Path:
    """Write records, by the names of their files, and their ``run.json`` where published runs lie, in the place of the
    run of the same name (`small-all-MiniLM-L6-v2`), whose findings stay.
    """
    place = records.committed_folder() / name / find_chapter(number).slug
    with folder_beside(place) as partial:
        for measurement, record in measured.items():
            records.write(partial / f"{measurement}.parquet", record)
        _write_facts(partial, {one: facts[one] for one in facts if one in PUBLISHED_FACTS} | {"leads": leads})
        if (place / FINDINGS).is_file():
            shutil.copy(place / FINDINGS, partial)
    return place


def stamp(number: int) -> list[Path]:
    """Write the digest of today's measuring code into a chapter's published records, whose numbers stay; returns the
    folders of their runs. For a change of code that changes no number: the chapter on the toy world has to give equal
    tables before and after, which whoever asks for this has seen.
    """
    chapter = find_chapter(number)
    folders = [file.parent for file in sorted(records.committed_folder().glob(f"*/{chapter.slug}/run.json"))]
    for folder in folders:
        for file in sorted(folder.glob("*.parquet")):
            record = records.read(file)
            code = records.measuring_code(records.measuring_module(record.identity.function, chapter.measures))
            records.write(file, replace(record, identity=replace(record.identity, code=code)))
        _write_facts(folder, json.loads((folder / "run.json").read_text(encoding="utf-8")))
    return folders


def _write_facts(folder: Path, facts: Mapping[str, object]) -> None:
    with written_beside(folder / "run.json") as place:
        place.write_text(json.dumps({**facts, "files": checksums(folder)}, indent=1) + "\n", encoding="utf-8")
