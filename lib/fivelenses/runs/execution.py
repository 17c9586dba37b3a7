"""Notebooks executed with papermill: what is current is left alone, what fails or is killed leaves the last
good run in place.
"""

import hashlib
import json
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from filelock import FileLock

from fivelenses import project, records
from fivelenses.files import sha256
from fivelenses.runs import checksums, notebooks
from fivelenses.runs.folders import RECORDS_VARIABLE, RUN_FOLDER_VARIABLE, folder_name
from fivelenses.runs.parameters import check_device
from fivelenses.runs.settings import Chapter, find_chapter, resolved, settings

TEMPLATES, CARDS = Path(__file__).with_name("templates"), ("cards.html", "macros.html")
EXECUTED = "notebook.ipynb"
# Until Python 3.11.9, two threads that parse at the same time may fail ("AST constructor recursion depth mismatch").
ONE_PARSES = threading.Lock()
MIN_DISK = 2 * 10**9  # bytes that must be free before a run starts


class RunError(RuntimeError):
    """A run that could not start or failed; the message says where and what to do."""


@dataclass(frozen=True)
class Finished:
    """A finished run: its folder, whether it was executed now, and how long that took (seconds)."""

    folder: Path
    executed: bool
    seconds: float


def notebook_digest(notebook: nbformat.NotebookNode) -> str:
    """A hash of a notebook's code cells: an executed copy with the same code is in step with it.

    Cells that papermill adds are not counted, and prose is taken from the notebook, not from the executed copy.
    """
    content = hashlib.sha256()
    for cell in code_cells(notebook):
        content.update(cell.source.strip().encode() + b"\0")
    return content.hexdigest()[:16]


def page_digest(chapter: Chapter, notebook: nbformat.NotebookNode) -> str:
    """A digest of the library's code that a notebook runs: what it imports, directly or not, what it measures with, and
    the cards of claims.

    Docstrings, comments and what the notebook does not import change nothing; neither does code that fine-tunes or
    runs notebooks, whose work is in the records.
    """
    with ONE_PARSES:
        modules = {name for cell in code_cells(notebook) for name in records.imported_by(cell.source)}
        modules |= {"fivelenses.run", *chapter.measures}
        content = hashlib.sha256(records.code_digest(modules, ("pretraining",)).encode())
    for name in CARDS:
        content.update((TEMPLATES / name).read_bytes())
    return content.hexdigest()[:16]


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """A notebook's cells of code, but for those that papermill adds."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if "injected-parameters" not in cell.metadata.get("tags", [])]


def models_digest() -> str:
    """A digest of the encoders that the project ships: measured anew where they are made anew."""
    content = hashlib.sha256()
    for file in sorted((project.root() / "models").rglob("*.safetensors")):
        content.update(str(file.relative_to(project.root())).encode() + file.read_bytes())
    return content.hexdigest()[:16]


def state(chapter: Chapter, folder: Path, parameters: dict) -> str:
    """Why a run's folder cannot stand for this chapter and parameters: an empty string when it can.

    Example:
        >>> state(find_chapter(1), Path("nowhere"), {})
        'there is no run'
    """
    if not folder.is_dir():
        return "there is no run"
    if not (folder / EXECUTED).is_file() or not (folder / "run.json").is_file():
        return "the run is unfinished"
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except ValueError:
        return "its run.json is damaged"
    notebook = nbformat.read(chapter.notebook, as_version=4)
    if facts.get("notebook") != notebook_digest(notebook):
        return "the notebook's code has changed since"
    if facts.get("code") != page_digest(chapter, notebook):
        return "the code that it runs has changed since"
    if facts.get("parameters") != parameters:
        return "the parameters have changed since"
    if facts.get("models") != models_digest():
        return "the encoders under models/ have changed since"
    broken = checksums.damaged(folder, facts["files"])
    return f"its {broken[0]} is damaged" if broken else ""


def run(
    number: int,
    profile: str,
    overrides: dict | None = None,
    force: bool = False,
    log: Callable[[str], None] = print,
) -> Finished:
    """Execute a chapter's notebook unless its last run is current; what was measured before is not measured again.

    The run is made in a folder beside and takes its place when whole; checkpoints and records that were made before a
    kill are not made again.

    Args:
        number: the chapter.
        profile: `tiny`, `small` or `paper`.
        overrides: parameters by name.
        force: execute also when nothing has changed.
        log: called with one line of plain text for each event.

    Raises:
        ParameterError: a parameter that does not exist or fit.
        SourceError: an encoder or a table that cannot be read.
        RunError: the notebook failed, is missing, or the disk is full.
    """
    # The notebook runs in another folder, from which a relative path would name another file.
    overrides = resolved(number, profile, overrides or {})
    chapter = find_chapter(number)
    parameters = settings(number, profile, **overrides)
    check_device(parameters, profile)
    check_disk(project.store_folder())
    place = project.runs_folder() / folder_name(chapter, profile, overrides)
    # Threads that wait let go of their core: spinning beside a busy neighbour made small products many times slower.
    environment = {"OMP_WAIT_POLICY": "PASSIVE"}
    given = {"profile": profile, **overrides}

    def check() -> None:
        # Encoders are read with torch, for which a page from records does not wait.
        from fivelenses.runs.inputs import check_inputs

        check_inputs(parameters, log)

    return _current(chapter, place, parameters.model_dump(mode="json"), given, environment, force, log, check)


def run_committed(
    chapter: Chapter, committed: Path, log: Callable[[str], None] = print, force: bool = False
) -> Finished:
    """Execute a chapter's notebook on committed records, unless its page is current; nothing is measured.

    Args:
        chapter: whose notebook it is.
        committed: the folder of its records and their ``run.json``.
        force: execute it also when nothing has changed.

    Raises:
        RunError: a record is missing or damaged, or the notebook failed.
    """
    facts = json.loads((committed / "run.json").read_text(encoding="utf-8"))
    broken = checksums.damaged(committed, facts["files"])
    if broken:
        raise RunError(
            f"The file {broken[0]} of chapter {chapter.number} in {committed} is not as it was written: take it from "
            f"git again, or measure and publish the chapter anew."
        )
    environment = {RECORDS_VARIABLE: str(committed), "OMP_NUM_THREADS": "1"}
    place = committed_page(committed)
    # A parameter that came to the chapter since has its default, as in the run itself.
    parameters = chapter.parameters(**facts["parameters"]).model_dump(mode="json")
    return _current(chapter, place, parameters, {"profile": facts["profile"]}, environment, force, log)


def committed_page(committed: Path) -> Path:
    """Where the page of committed records is executed."""
    return project.runs_folder() / "published" / committed.parent.name / committed.name


def _current(
    chapter: Chapter,
    place: Path,
    parameters: dict,
    given: dict,
    environment: dict,
    force: bool,
    log: Callable[[str], None],
    check: Callable[[], None] = lambda: None,
) -> Finished:
    check_pair(chapter)
    place.parent.mkdir(parents=True, exist_ok=True)
    name = f"chapter {chapter.number}, {given['profile']}"
    with FileLock(place.parent / f".{place.name}.lock"):
        reason = state(chapter, place, parameters)
        committed = environment.get(RECORDS_VARIABLE)
        if not reason and committed and _of_other_records(place, Path(committed)):
            reason = "its records have changed since"
        if not reason and not force:
            log(f"{name}: current, in {place}")
            return Finished(place, False, 0.0)
        check_disk(place.parent)
        check()
        log(f"{name}: running ({reason or 'asked for'})")
        return _execute(chapter, given, place, environment, log)


def _of_other_records(place: Path, committed: Path) -> bool:
    facts = json.loads((place / "run.json").read_text(encoding="utf-8"))
    return facts.get("committed") != sha256(committed / "run.json")


def check_pair(chapter: Chapter) -> None:
    """The two halves of a paired notebook must say the same.

    Raises:
        RunError: one is missing, or they differ.
    """
    percent = chapter.notebook.with_suffix(".py")
    for file in (chapter.notebook, percent):
        if not file.is_file():
            raise RunError(
                f"The notebook {file.name} is missing from {file.parent}: restore it with git, or make it from its "
                "other half with `make pair`."
            )
    halves = [
        [(cell.cell_type, cell.source) for cell in jupytext.read(file).cells] for file in (chapter.notebook, percent)
    ]
    if halves[0] != halves[1]:
        raise RunError(f"{chapter.notebook.name} and {percent.name} differ: run `make pair` (the newer one wins).")


def check_disk(folder: Path) -> None:
    """Refuse to start on a disk that is nearly full.

    Raises:
        RunError: in one sentence.
    """
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < MIN_DISK:
        raise RunError(
            f"Only {free / 1e9:.1f} GB are free at {folder} and a run needs {MIN_DISK / 1e9:.0f}: make room first."
        )


def _execute(chapter: Chapter, given: dict, place: Path, environment: dict, log) -> Finished:
    partial = place.with_name(f".{place.name}.partial")
    name = f"chapter {chapter.number}, {given['profile']}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    started, committed = time.monotonic(), environment.get(RECORDS_VARIABLE)
    environment = environment | {RUN_FOLDER_VARIABLE: str(partial)}
    failure = notebooks.execute(
        chapter.notebook, partial / EXECUTED, given, environment, lambda line: log(f"{name}: {line}")
    )
    if failure:
        raise RunError(f"C{name[1:]}: {failure}")
    facts_file = partial / "run.json"
    if not facts_file.is_file():
        raise RunError(f"Chapter {chapter.number} ended without run.finish(): its last cell has to call it.")
    facts = json.loads(facts_file.read_text(encoding="utf-8"))
    notebook = nbformat.read(chapter.notebook, as_version=4)
    facts |= {"notebook": notebook_digest(notebook), "code": page_digest(chapter, notebook), "models": models_digest()}
    facts["files"] = checksums.checksums(partial)
    if committed:
        published = json.loads((Path(committed) / "run.json").read_text(encoding="utf-8"))
        # What measuring took, of which making the page from records says nothing.
        took = ("seconds", "training_seconds", "peak_memory")
        facts |= {name: published[name] for name in took if name in published}
        facts["committed"] = sha256(Path(committed) / "run.json")
    facts_file.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    replaced = place.with_name(f".{place.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    if place.exists():
        place.rename(replaced)
    partial.rename(place)
    shutil.rmtree(replaced, ignore_errors=True)
    seconds = time.monotonic() - started
    log(f"{name}: done in {seconds:.0f} s, in {place}")
    return Finished(place, True, seconds)
