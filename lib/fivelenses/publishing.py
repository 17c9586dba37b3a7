"""The records of a run, committed: what the published pages are made from.

``book/records/<profile>-<encoder>/<chapter>/`` holds a Parquet table per measurement and ``run.json``: parameters,
addresses of the checkpoints, and the facts of the run that measured.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from fivelenses import project, records
from fivelenses.book.findings import FILE as FINDINGS
from fivelenses.catalogue import find
from fivelenses.chapters import ChapterParameters, find_chapter, resolved, settings
from fivelenses.execution import RunError, find_run
from fivelenses.files import checksums, folder_beside, written_beside

# Of a run's facts, those that its committed records keep.
PUBLISHED_FACTS = (
    *("chapter", "profile", "parameters", "not_measured", "specifications"),
    *("device", "python", "versions", "seconds", "training_seconds", "peak_memory"),
)
MAX_RECORDS = 8 * 10**6  # bytes of all published records together


def run_name(profile: str, parameters: ChapterParameters) -> str:
    """The name of a published run: its profile and the encoder that it follows.

    Example:
        >>> run_name("tiny", settings(1, "tiny"))
        'tiny-toy-bert-seed-0'
    """
    encoder = parameters.encoder
    shipped = (project.root() / "models" / encoder).is_dir()
    return f"{profile}-{encoder.replace('/', '-') if shipped else encoder.rstrip('/').split('/')[-1]}"


def publish(number: int, profile: str = "small", overrides: dict | None = None) -> Path:
    """Copy the records of a chapter's run into ``book/records``. The run without overrides leads its chapter: it is the
    one that the book's page of the chapter shows. A run on a table of the reader's own is refused.
    """
    chapter, overrides = find_chapter(number), resolved(number, profile, overrides or {})
    parameters = settings(number, profile, **overrides)
    for name in parameters.tasks_trained():
        if find(name).own:
            raise RunError(
                f"{find(name).title} is a table of your own, which readers of a published page do not have: publish "
                "runs on tasks of the catalogue, and send others as a report."
            )
    run = find_run(chapter, profile, overrides)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    place = project.records_folder() / chapter.slug
    measured = {}
    for files in facts["records"].values():
        for file in files:
            name = file.removesuffix(".parquet").rpartition(".")[0]
            measured.setdefault(name, []).append(records.read(place / file))
    return commit(
        number,
        run_name(profile, parameters),
        {name: records.merge(parts) for name, parts in measured.items()},
        facts,
        not overrides,
    )


def commit(number: int, name: str, measured: dict[str, records.Record], facts: dict, leads: bool) -> Path:
    """Write records and their ``run.json`` where published runs lie, in the place of the run of the same name.

    Args:
        number, name: the chapter, and the run, see `run_name`.
        measured: record by the name of its file.
        facts: of the run, from its own ``run.json``.
        leads: whether the book's page of the chapter shows this run.

    Refused: all published records together would be too large to commit.
    """
    place = records.committed_folder() / name / find_chapter(number).slug
    with folder_beside(place) as partial:
        for measurement, record in measured.items():
            records.write(partial / f"{measurement}.parquet", record)
        others = (file for file in records.committed_folder().rglob("*") if place not in file.parents)
        size = sum(file.stat().st_size for file in others if file.is_file())
        if size > MAX_RECORDS:
            raise RunError(
                f"With chapter {number} the published records would have {size / 1e6:.1f} MB: they take at most 8 MB."
            )
        published = {one: facts[one] for one in PUBLISHED_FACTS if one in facts}
        published |= {"leads": leads, "files": checksums(partial)}
        (partial / "run.json").write_text(json.dumps(published, indent=1) + "\n", encoding="utf-8")
        if (place / FINDINGS).is_file():
            shutil.copy(place / FINDINGS, partial)
    return place


def stamp(number: int) -> list[Path]:
    """Write the digest of today's measuring code into a chapter's published records, whose numbers stay.

    For a change of code that changes no number: the chapter on the toy world has to give equal tables before and after,
    which whoever asks for this has seen. Returns the folders of the runs whose records were stamped.
    """
    chapter = find_chapter(number)
    folders = [file.parent for file in sorted(records.committed_folder().glob(f"*/{chapter.slug}/run.json"))]
    for folder in folders:
        for file in sorted(folder.glob("*.parquet")):
            record = records.read(file)
            code = records.measuring_code(records.measuring_module(record.identity.function, chapter.measures))
            records.write(file, replace(record, identity=replace(record.identity, code=code)))
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        facts["files"] = checksums(folder)
        with written_beside(folder / "run.json") as place:
            place.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return folders
