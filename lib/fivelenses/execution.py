"""Notebooks executed with papermill: what is current is left alone, what fails or is killed leaves the last
good run in place.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from unittest import mock

import nbformat
from filelock import FileLock

from fivelenses import catalogue, records
from fivelenses.chapters import (
    CHAPTERS,
    Chapter,
    ChapterParameters,
    ParameterError,
    chapters_on,
    check_device,
    find_chapter,
    folder_name,
    resolved,
    settings,
)
from fivelenses.files import (
    RECORDS_VARIABLE,
    RUN_FOLDER_VARIABLE,
    RunError,
    checksums,
    damaged,
    disk_named,
    project_folder,
    runs_folder,
    store_folder,
)
from fivelenses.pairing import read_cells
from fivelenses.processes import cores, repeated, workers

CARDS = [Path(__file__).parent / "book" / "templates" / name for name in ("cards.html", "macros.html")]
EXECUTED = "notebook.ipynb"
PROGRESS = "progress.log"  # beside the executed notebook, while it runs: a line for each event
# Seconds for what a cell printed to arrive. On a busy machine it can be late, and papermill gives it four, after
# which it ends a run of hours at its last cell.
OUTPUT_PATIENCE = 600
FINE_TUNED = ("Classification", "QuestionAnswering", "MultipleChoice")  # ends of names of models with such heads
MIN_DISK = 2 * 10**9  # bytes that must be free before a run starts


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
    modules = {name for source in cells for name in records.imported_by(source)}
    code = records.code_digest({"fivelenses.run", *chapter.measures, *modules}, ("pretraining",))
    content = hashlib.sha256(json.dumps([parameters, cells, code], sort_keys=True).encode())
    models = sorted((project_folder() / "models").rglob("*.safetensors"))
    tasks = Path(catalogue.__file__).with_suffix(".yaml")
    for file in [tasks, *CARDS, *(models if committed is None else [committed / "run.json"])]:
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


# --- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A chapter's notebook to be executed: the folder of the run (`place`), the parameters, what papermill writes into
    the notebook (`given`), and the folder of the committed records that it reads, None for a run that may measure.
    """

    chapter: Chapter
    place: Path
    parameters: ChapterParameters
    given: Mapping[str, object]
    committed: Path | None = None

    @property
    def reason(self) -> str:
        """Why it has to be executed: an empty string when its last run is current."""
        return state(self.chapter, self.place, self.parameters.model_dump(mode="json"), self.committed)


def of_chapter(number: int, profile: str, overrides: Mapping | None = None) -> Job:
    """A chapter on a profile; a parameter that does not exist or fit is refused."""
    parameters = settings(number, profile, **(overrides or {}))
    # The notebook runs in another folder, from which a relative path would name another file.
    given = resolved(parameters, overrides or {})
    place = runs_folder() / folder_name(find_chapter(number), profile, given)
    return Job(find_chapter(number), place, parameters, {"profile": profile, **given})


def of_records(committed: Path) -> Job:
    """The page of committed records; one that is not as it was written is refused."""
    chapter = next(chapter for chapter in CHAPTERS.values() if chapter.slug == committed.name)
    facts = json.loads((committed / "run.json").read_text(encoding="utf-8"))
    if broken := damaged(committed, facts["files"]):
        raise RunError(
            f"The file {broken[0]} of chapter {chapter.number} in {committed} is not as it was written: take it from "
            f"git again, or measure and publish the chapter anew."
        )
    # A parameter that came to the chapter since has its default, as in the run itself.
    parameters = chapter.parameters(**facts["parameters"])
    return Job(chapter, committed_page(committed), parameters, {"profile": facts["profile"]}, committed)


def committed_page(committed: Path) -> Path:
    """Where the page of committed records is executed."""
    return runs_folder() / "published" / committed.parent.name / committed.name


def run(
    number: int,
    profile: str,
    overrides: Mapping | None = None,
    force: bool = False,
    log: Callable[[str], None] = print,
) -> Path:
    """Execute a chapter's notebook unless its last run is current (or with `force`), and return the run's folder.

    The run is made in a folder beside and takes its place when whole; checkpoints and records that were made before a
    kill are not made again. Refused in one sentence, which `log` does not get: a parameter that does not exist or fit,
    an encoder or a table that cannot be read, a notebook that fails.
    """
    job = of_chapter(number, profile, overrides)
    execute(job, force, log)
    return job.place


def run_all(profile: str | None = None, force: bool = False, committed: Sequence[Path] = ()) -> None:
    """Every chapter that has a profile, on it, and the pages of committed records (their folders), side by side, one
    per core; after all have ended, the first failure is raised.
    """
    local = [of_chapter(chapter.number, profile) for chapter in (chapters_on(profile) if profile else ())]
    jobs = [job for job in local if force or job.reason]
    jobs += [job for job in map(of_records, committed) if job.reason]
    for chapter in CHAPTERS.values():
        check_pair(chapter)
    if not jobs:
        return
    from distributed import wait

    log = partial(print, flush=True)  # in a worker, whose output is this process's
    with workers(min(cores(), len(jobs))) as client:
        # A failure is the notebook's, not the worker's: what others have begun is brought to its end.
        futures = [client.submit(execute, job, force, log, pure=False, priority=-n) for n, job in enumerate(jobs)]
        wait(futures)
        for future in futures:
            future.result()


# --- before a notebook starts -----------------------------------------------------------------------------------------


def check_inputs(parameters: ChapterParameters, log: Callable[[str], None] = print) -> None:
    """Refuse, before a run starts, encoders that cannot be studied or read fewer tokens than it asks for, examples too
    few to be compared, and a disk that is nearly full.

    `log` gets a line on each table of the reader's own, with the examples of each class, and on each encoder that was
    fine-tuned before.
    """
    from fivelenses import tasks
    from fivelenses.models import encoders
    from fivelenses.tasks.own import description

    _check_disk(store_folder())
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
    from fivelenses.tasks import folds, subset
    from fivelenses.tasks.examples import encode

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
    if read_cells(chapter.notebook) != read_cells(percent):
        raise RunError(f"{chapter.notebook.name} and {percent.name} differ: run `make pair`.")


def _check_disk(folder: Path) -> None:
    """Refuse to start on a disk that is nearly full."""
    folder = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(folder).free
    if free < MIN_DISK:
        raise RunError(
            f"Only {free / 1e9:.1f} GB are free at {folder} and a run needs {MIN_DISK / 1e9:.0f}: make room first."
        )


# --- one notebook -----------------------------------------------------------------------------------------------------


def execute(job: Job, force: bool = False, log: Callable[[str], None] = print) -> None:
    """Execute a notebook where there is a reason to, and put the whole run in its place, which no other process does
    meanwhile.
    """
    check_pair(job.chapter)
    place, started = job.place, time.monotonic()
    name = f"chapter {job.chapter.number}, {job.given['profile']}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.parent / f".{place.name}.lock"):
        reason = job.reason or ("asked for" if force else "")
        if not reason:
            log(f"{name}: current, in {place}")
            return
        if job.committed is None:
            check_device(job.parameters)
            check_inputs(job.parameters, log)
        log(f"{name}: running ({reason})")
        made = place.with_name(f".{place.name}.partial")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        with disk_named(made):
            failure = _failure(job, made, lambda line: log(f"{name}: {line}"))
            if failure:
                raise RunError(f"C{name[1:]}: {failure}")
        if not (made / "run.json").is_file():
            raise RunError(f"Chapter {job.chapter.number} ended without run.finish(): its last cell has to call it.")
        _complete_facts(job, made)
        replaced = place.with_name(f".{place.name}.replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        if place.exists():
            place.rename(replaced)
        made.rename(place)
        shutil.rmtree(replaced, ignore_errors=True)
    log(f"{name}: done in {time.monotonic() - started:.0f} s, in {place}")


def _complete_facts(job: Job, folder: Path) -> None:
    """Add to a run's facts its digest and those of its files; of a published run, what measuring took."""
    file = folder / "run.json"
    facts = json.loads(file.read_text(encoding="utf-8"))
    facts["digest"] = run_digest(job.chapter, facts["parameters"], job.committed)
    facts["files"] = checksums(folder)
    if job.committed is not None:
        published = json.loads((job.committed / "run.json").read_text(encoding="utf-8"))
        # Making the page from records says nothing of these.
        facts |= {name: published[name] for name in ("seconds", "training_seconds", "peak_memory")}
    file.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _failure(job: Job, folder: Path, log: Callable[[str], None]) -> str:
    """Execute a notebook, leave the copy with outputs, and return what went wrong and where; "" where nothing did."""
    import papermill

    executed, notebook = folder / EXECUTED, job.chapter.notebook
    # Threads that wait let go of their core: spinning beside a busy neighbour made small products many times slower.
    environment = {RUN_FOLDER_VARIABLE: str(folder), "OMP_WAIT_POLICY": "PASSIVE"}
    if job.committed is not None:
        environment |= {RECORDS_VARIABLE: str(job.committed), "OMP_NUM_THREADS": "1"}
    options = {"kernel_name": "python3", "progress_bar": False, "iopub_timeout": OUTPUT_PATIENCE}
    options["extra_arguments"] = ["--log-level=ERROR"]  # a kernel warns that its ports are not encrypted
    with mock.patch.dict(os.environ, environment), _followed(folder / PROGRESS, log):
        try:
            papermill.execute_notebook(notebook, executed, dict(job.given), cwd=notebook.parent, **options)
        except papermill.PapermillExecutionError as error:
            first = error.source.strip().splitlines()[0]
            return f"the cell that begins {first!r} failed, {error.ename}: {error.evalue} (see {executed})."
        except Exception as error:  # a kernel that died, or a notebook that papermill cannot run
            return f"papermill failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    (folder / PROGRESS).unlink(missing_ok=True)
    return ""


@contextmanager
def _followed(file: Path, log: Callable[[str], None]) -> Iterator[None]:
    """Pass on the lines of a file that grows while the block runs."""
    file.touch()
    with file.open(encoding="utf-8") as lines:

        def pass_on() -> None:
            for line in lines:
                log(line.rstrip("\n"))

        try:
            with repeated(pass_on, 0.5):
                yield
        finally:
            pass_on()
