"""Notebooks executed with papermill: what is current is left alone, what fails or is killed leaves the last
good run in place.
"""

import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from unittest import mock

import jupytext
import nbformat
from filelock import FileLock

from fivelenses import catalogue, project, records
from fivelenses.chapters import (
    CHAPTERS,
    Chapter,
    ChapterParameters,
    ParameterError,
    check_device,
    check_profile,
    find_chapter,
    folder_name,
    resolved,
    settings,
)
from fivelenses.files import checksums, damaged, disk_named
from fivelenses.processes import cores, repeated, workers
from fivelenses.project import RECORDS_VARIABLE, RUN_FOLDER_VARIABLE

CARDS = [Path(__file__).parent / "book" / "templates" / name for name in ("cards.html", "macros.html")]
EXECUTED = "notebook.ipynb"
PROGRESS = "progress.log"  # beside the executed notebook, while it runs: a line for each event
# Seconds for what a cell printed to arrive. On a busy machine it can be late, and papermill gives it four, after
# which it ends a run of hours at its last cell.
OUTPUT_PATIENCE = 600
# Until Python 3.11.9, two threads that parse at the same time may fail ("AST constructor recursion depth mismatch").
ONE_PARSES = threading.Lock()
FINE_TUNED = ("Classification", "QuestionAnswering", "MultipleChoice")  # ends of names of models with such heads
MIN_DISK = 2 * 10**9  # bytes that must be free before a run starts


class RunError(RuntimeError):
    """A run that could not start or failed; the message says where and what to do."""


@dataclass(frozen=True)
class Finished:
    """A finished run: its folder, whether it was executed now, and how long that took (seconds)."""

    folder: Path
    executed: bool
    seconds: float


# --- whether a run is current -----------------------------------------------------------------------------------------


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """A notebook's cells of code, but for those that papermill adds."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if "injected-parameters" not in cell.metadata.get("tags", [])]


def run_digest(chapter: Chapter, parameters: dict, committed: Path | None = None) -> str:
    """A digest of all that a run is made from: its parameters, the notebook's code, the library's code that this runs
    (what it imports, directly or not, what it measures with, the table of tasks, and the cards of claims), and the
    committed records that it reads or else the encoders that the project ships.

    Prose, docstrings and comments change nothing; neither does code that fine-tunes or runs notebooks, whose work is in
    the records.
    """
    cells = [cell.source.strip() for cell in code_cells(nbformat.read(chapter.notebook, as_version=4))]
    with ONE_PARSES:
        modules = {name for source in cells for name in records.imported_by(source)}
        code = records.code_digest({"fivelenses.run", *chapter.measures, *modules}, ("pretraining",))
    content = hashlib.sha256(json.dumps([parameters, cells, code], sort_keys=True).encode())
    models = sorted((project.root() / "models").rglob("*.safetensors"))
    for file in [catalogue.FILE, *CARDS, *(models if committed is None else [committed / "run.json"])]:
        content.update(file.name.encode() + file.read_bytes())
    return content.hexdigest()[:16]


def state(chapter: Chapter, folder: Path, parameters: dict, committed: Path | None = None) -> str:
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
    if facts.get("digest") != run_digest(chapter, parameters, committed):
        return "its code, parameters, encoders or records have changed since"
    broken = damaged(folder, facts["files"])
    return f"its {broken[0]} is damaged" if broken else ""


def find_run(chapter: Chapter, profile: str, overrides: dict) -> Path:
    """The folder of a run that is current; where there is none, a `ParameterError` names the command that makes it."""
    folder = project.runs_folder() / folder_name(chapter, profile, overrides)
    parameters = settings(chapter.number, profile, **overrides).model_dump(mode="json")
    if reason := state(chapter, folder, parameters):
        given = "".join(f" -p '{name}={json.dumps(value)}'" for name, value in overrides.items() if value is not None)
        raise ParameterError(
            f"Chapter {chapter.number} has no current run on {profile} ({reason}): run "
            f"`fivelenses run {chapter.number} --profile {profile}{given}`."
        )
    return folder


# --- runs -------------------------------------------------------------------------------------------------------------


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
    chapter, parameters = find_chapter(number), settings(number, profile, **overrides)
    check_device(parameters, profile)
    _check_disk(project.store_folder())
    place = project.runs_folder() / folder_name(chapter, profile, overrides)
    # Threads that wait let go of their core: spinning beside a busy neighbour made small products many times slower.
    environment, given = {"OMP_WAIT_POLICY": "PASSIVE"}, {"profile": profile, **overrides}
    with _only_one(chapter, place):
        reason = state(chapter, place, parameters.model_dump(mode="json")) or ("asked for" if force else "")
        if reason:
            check_inputs(parameters, log)
        return _executed(chapter, place, given, environment, reason, log)


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
    if broken := damaged(committed, facts["files"]):
        raise RunError(
            f"The file {broken[0]} of chapter {chapter.number} in {committed} is not as it was written: take it from "
            f"git again, or measure and publish the chapter anew."
        )
    environment = {RECORDS_VARIABLE: str(committed), "OMP_NUM_THREADS": "1"}
    place = committed_page(committed)
    # A parameter that came to the chapter since has its default, as in the run itself.
    parameters = chapter.parameters(**facts["parameters"]).model_dump(mode="json")
    with _only_one(chapter, place):
        reason = state(chapter, place, parameters, committed) or ("asked for" if force else "")
        return _executed(chapter, place, {"profile": facts["profile"]}, environment, reason, log)


def committed_page(committed: Path) -> Path:
    """Where the page of committed records is executed."""
    return project.runs_folder() / "published" / committed.parent.name / committed.name


def run_all(profile: str | None = None, force: bool = False, committed: Sequence[Path] = ()) -> list[Finished]:
    """Every chapter that has a profile, on it, and the pages of committed records, side by side, one per core.

    Args:
        profile: of the local runs; none where None.
        force: execute them also when nothing has changed.
        committed: folders of committed records.

    Raises:
        RunError: after all have ended, the first that failed.
    """
    from distributed import wait

    if profile is not None:
        check_profile(profile)
    log = partial(print, flush=True)  # in a worker, whose output is this process's
    numbers = [number for number, chapter in CHAPTERS.items() if profile in chapter.profiles]
    runs = [partial(run, number, profile, None, force, log) for number in numbers]
    chapters = {chapter.slug: chapter for chapter in CHAPTERS.values()}
    runs += [partial(run_committed, chapters[folder.name], folder, log) for folder in committed]
    if not runs:
        return []
    with workers(min(cores(), len(runs))) as client:
        # A failure is the notebook's, not the worker's: what others have begun is brought to its end.
        futures = [client.submit(one, pure=False, priority=-place) for place, one in enumerate(runs)]
        wait(futures)
        return [future.result() for future in futures]


# --- before a notebook starts -----------------------------------------------------------------------------------------


def check_inputs(parameters: ChapterParameters, log: Callable[[str], None] = print) -> None:
    """Refuse encoders of a run that cannot be studied or read fewer tokens than it asks for, and examples too few to be
    compared, before it starts.

    Args:
        parameters: of the run.
        log: called with one line on each table of the reader's own, with the examples of each class, and on each
            encoder that was fine-tuned before.

    Raises:
        SourceError, ValueError: in one sentence.
    """
    from fivelenses import tasks
    from fivelenses.models import encoders
    from fivelenses.tasks.own import description

    for task in map(tasks.find, parameters.tasks_trained()):
        if task.own:
            log(description(task.name))
    for name in dict.fromkeys(parameters.encoders_read()):
        shape = encoders.check_encoder(name, parameters.six_projections, parameters.fewest_layers)
        if heads := [one for one in shape.architectures or () if one.endswith(FINE_TUNED)]:
            log(f"{name}: its old head ({heads[0]}) is left out, and each model's new one is drawn by its seed")
        most = encoders.positions(shape)
        if most is not None and most < getattr(parameters, "max_tokens", 0):
            raise ParameterError(
                f"max_tokens is {parameters.max_tokens} and {name} reads {most} tokens at most: "
                f"pass -p max_tokens={most}."
            )
    for name, (compared, limit) in product(parameters.encoders_used(), parameters.sets_compared()):
        _check_compared(name, compared, limit, parameters)


def _check_compared(name: str, compared: Sequence[str], limit: int | None, parameters: ChapterParameters) -> None:
    """Refuse development examples of these tasks, at most `limit` of each, with too few tokens to compare layers on."""
    import datasets
    import numpy as np

    from fivelenses import tasks
    from fivelenses.comparison import check_tokens
    from fivelenses.models import encoders
    from fivelenses.tasks.examples import encode
    from fivelenses.tasks.subsets import folds, subset

    encoder = encoders.locate(name)
    width, tokenizer = encoders.config(encoder).hidden_size, encoders.tokenizer(encoder)
    sets, labels = [], []
    for place, task in enumerate(compared):
        data = tasks.load(task, parameters.source, ("validation",))
        table = data.splits["validation"]
        chosen = subset(np.array(table[data.task.label]), limit or table.num_rows, seed=0)
        if len(chosen) > 2 * width:
            return  # each example has several tokens
        part = replace(data, splits={"validation": table.select(chosen)})
        sets.append(encode(part, "validation", tokenizer, parameters.schedule_of(task, name).max_length))
        labels += [f"{place} {label}" for label in sets[-1]["labels"]]
    check_tokens(datasets.concatenate_datasets(sets), width, folds(np.array(labels)))


def check_pair(chapter: Chapter) -> None:
    """Refuse a paired notebook of which a half is missing, or whose two halves differ."""
    percent = chapter.notebook.with_suffix(".py")
    for file in (chapter.notebook, percent):
        if not file.is_file():
            raise RunError(
                f"The notebook {file.name} is missing from {file.parent}: restore it with git, or make it from its "
                "other half with `make pair`."
            )
    if _sources(chapter.notebook) != _sources(percent):
        raise RunError(f"{chapter.notebook.name} and {percent.name} differ: run `make pair`.")


def _sources(half: Path) -> list[tuple[str, str]]:
    """Kind and source of each cell."""
    return [(cell.cell_type, cell.source) for cell in jupytext.read(half).cells]


def _check_disk(folder: Path) -> None:
    """Refuse to start on a disk that is nearly full."""
    folder = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(folder).free
    if free < MIN_DISK:
        raise RunError(
            f"Only {free / 1e9:.1f} GB are free at {folder} and a run needs {MIN_DISK / 1e9:.0f}: make room first."
        )


@contextmanager
def _only_one(chapter: Chapter, place: Path) -> Iterator[None]:
    """No other process runs a notebook in this place meanwhile."""
    check_pair(chapter)
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.parent / f".{place.name}.lock"):
        yield


# --- one notebook -----------------------------------------------------------------------------------------------------


def _executed(
    chapter: Chapter, place: Path, given: dict, environment: dict, reason: str, log: Callable[[str], None]
) -> Finished:
    """Execute a notebook where there is a reason to, and put the whole run in its place."""
    name, started = f"chapter {chapter.number}, {given['profile']}", time.monotonic()
    if not reason:
        log(f"{name}: current, in {place}")
        return Finished(place, False, 0.0)
    _check_disk(place.parent)
    log(f"{name}: running ({reason})")
    partial = place.with_name(f".{place.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    environment = environment | {RUN_FOLDER_VARIABLE: str(partial)}
    with disk_named(partial):
        failure = _failure(
            chapter.notebook, partial / EXECUTED, given, environment, lambda line: log(f"{name}: {line}")
        )
        if failure:
            raise RunError(f"C{name[1:]}: {failure}")
    if not (partial / "run.json").is_file():
        raise RunError(f"Chapter {chapter.number} ended without run.finish(): its last cell has to call it.")
    _complete_facts(chapter, partial, environment.get(RECORDS_VARIABLE))
    replaced = place.with_name(f".{place.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    if place.exists():
        place.rename(replaced)
    partial.rename(place)
    shutil.rmtree(replaced, ignore_errors=True)
    seconds = time.monotonic() - started
    log(f"{name}: done in {seconds:.0f} s, in {place}")
    return Finished(place, True, seconds)


def _complete_facts(chapter: Chapter, folder: Path, committed: str | None) -> None:
    """Add to a run's facts its digest and those of its files, and what measuring took where it was published."""
    file = folder / "run.json"
    facts, source = json.loads(file.read_text(encoding="utf-8")), Path(committed) if committed else None
    facts["digest"] = run_digest(chapter, facts["parameters"], source)
    facts["files"] = checksums(folder)
    if source:
        published = json.loads((source / "run.json").read_text(encoding="utf-8"))
        # Making the page from records says nothing of these.
        took = ("seconds", "training_seconds", "peak_memory")
        facts |= {name: published[name] for name in took if name in published}
    file.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _failure(
    notebook: Path,
    executed: Path,
    parameters: Mapping[str, object],
    environment: Mapping[str, str],
    log: Callable[[str], None],
) -> str:
    """Execute a notebook, leave the copy with outputs, and return what went wrong and where; "" where nothing did."""
    import papermill

    options = {"kernel_name": "python3", "progress_bar": False, "iopub_timeout": OUTPUT_PATIENCE}
    options["extra_arguments"] = ["--log-level=ERROR"]  # a kernel warns that its ports are not encrypted
    with mock.patch.dict(os.environ, environment), _followed(executed.with_name(PROGRESS), log):
        try:
            papermill.execute_notebook(notebook, executed, dict(parameters), cwd=notebook.parent, **options)
            # Without paths and times of this machine, two equal runs are equal files.
            copy = nbformat.read(executed, as_version=4)
            for metadata in (copy.metadata, *(cell.metadata for cell in copy.cells)):
                metadata.pop("papermill", None)
                metadata.pop("execution", None)
            nbformat.write(copy, executed)
        except papermill.PapermillExecutionError as error:
            first = error.source.strip().splitlines()[0]
            return f"the cell that begins {first!r} failed, {error.ename}: {error.evalue} (see {executed})."
        except Exception as error:  # a kernel that died, or a notebook that papermill cannot run
            return f"papermill failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    executed.with_name(PROGRESS).unlink(missing_ok=True)
    return ""


@contextmanager
def _followed(file: Path, log: Callable[[str], None]) -> Iterator[None]:
    """Pass on the lines of a file that grows while the block runs."""
    passed = 0

    def pass_on() -> None:
        nonlocal passed
        if file.is_file():
            lines = file.read_text(encoding="utf-8").split("\n")[:-1]
            for line in lines[passed:]:
                log(line)
            passed = len(lines)

    try:
        with repeated(pass_on, 0.5):
            yield
    finally:
        pass_on()
