"""Notebooks executed with papermill: what is current is left alone, what fails leaves the last good run in place."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import joblib
import jupytext
import nbformat
from filelock import FileLock

from fivelenses import catalogue, files, records
from fivelenses.chapters import CHAPTERS, Chapter, ChapterParameters, check_device, settings
from fivelenses.files import RunError, project_folder, runs_folder, sha256
from fivelenses.processes import workers

CARDS = [Path(__file__).parent / "book" / "templates" / name for name in ("cards.html", "macros.html")]
EXECUTED = "notebook.ipynb"


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """A notebook's cells of code, but for those that papermill adds."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if "injected-parameters" not in cell.metadata.get("tags", [])]


@dataclass(frozen=True)
class Job:
    """A chapter's notebook to be executed: with which parameters, of which `overrides` are not the profile's; the
    folder of the run; and that of the committed records that it reads, None for a run that may measure.
    """

    chapter: Chapter
    profile: str
    parameters: ChapterParameters
    overrides: Mapping[str, object]
    place: Path
    committed: Path | None = None

    @property
    def digest(self) -> str:
        """Of all that the run is made from: its parameters; the code, without docstrings and comments, of the notebook
        and of what it imports or measures with; the table of tasks and the cards of claims; what all runs share among
        the committed records, and those that it reads, or else its encoders and the place of the data.
        """
        cells = [cell.source.strip() for cell in code_cells(nbformat.read(self.chapter.notebook, as_version=4))]
        modules = {name for source in cells for name in records.imported_by(source)}
        code = records.code_digest({"fivelenses.run", *self.chapter.measures, *modules}, ("pretraining",))
        mirror = "" if self.committed else os.environ.get("FIVELENSES_MIRROR", "")
        described = [self.parameters.model_dump(mode="json"), cells, code, mirror]
        content = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        read = [self.committed / "run.json"] if self.committed else self._encoder_files()
        shared = sorted(records.committed_folder().glob("*.parquet"))
        for file in [Path(catalogue.__file__).with_suffix(".yaml"), *shared, *CARDS, *read]:
            content.update(f"{file.name}{sha256(file)}".encode())
        return content.hexdigest()[:16]

    def _encoder_files(self) -> list[Path]:
        """The weights that the project ships, and the files that the reader's own encoders are known by."""
        found = sorted((project_folder() / "models").rglob("*.safetensors"))
        for folder in (Path(name.removeprefix("random:")) for name in self.parameters.encoders_read()):
            if folder.is_absolute():
                from fivelenses.models.encoders import IDENTIFYING

                found += (file for pattern in IDENTIFYING for file in sorted(folder.glob(pattern)))
        return found

    @property
    def reason(self) -> str:
        """Why it has to be executed: an empty string when its last run is current. A paired notebook of which a half is
        missing, or whose two halves differ, is refused.
        """
        pair = [file for kind in (".ipynb", ".py") if (file := self.chapter.notebook.with_suffix(kind)).is_file()]
        halves = [[(cell.cell_type, cell.source) for cell in jupytext.read(file).cells] for file in pair]
        if len(halves) < 2 or halves[0] != halves[1]:
            slug = self.chapter.slug
            raise RunError(f"{slug}.ipynb and {slug}.py differ, or one is missing: run `make pair`.")
        try:
            facts = json.loads((self.place / "run.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return "there is no run"
        changed = "its code, parameters, encoders or records have changed since"
        return "" if facts.get("digest") == self.digest else changed


def of_chapter(number: int, profile: str, overrides: Mapping | None = None) -> Job:
    """A chapter on a profile, in one place per set of overrides; a parameter that does not exist or fit is refused."""
    parameters, chapter = settings(number, profile, **(overrides or {})), CHAPTERS[number]
    # As the chapter has read them: the notebook runs in another folder, where a relative path is another file's.
    read = parameters.model_dump(mode="json")
    changed = {name: read[name] for name, value in (overrides or {}).items() if value is not None}
    suffix = "-" + hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:8] if changed else ""
    return Job(chapter, profile, parameters, changed, runs_folder() / profile / f"{chapter.slug}{suffix}")


def of_records(committed: Path) -> Job:
    """The page of committed records; one that is not as it was written is refused."""
    facts = json.loads((committed / "run.json").read_text(encoding="utf-8"))
    if files.checksums(committed) != facts["files"]:
        raise RunError(f"The files in {committed} are not as they were written: take them from git again.")
    chapter, profile = CHAPTERS[facts["chapter"]], facts["profile"]
    return Job(chapter, profile, chapter.parameters(**facts["parameters"]), {}, committed_page(committed), committed)


def committed_page(committed: Path) -> Path:
    """Where the page of committed records is executed."""
    return runs_folder() / "published" / committed.parent.name / committed.name


def execute_all(jobs: Iterable[Job], force: bool = False, done: Callable[[Job], None] = lambda job: None) -> None:
    """Execute notebooks side by side, on all cores; after all have ended, the first failure is raised. While others go
    on, `done` is called with each that has succeeded.
    """
    from distributed import as_completed

    due = [job for job in jobs if job.reason or force]
    if not due:
        return
    log = partial(print, flush=True)  # in a worker, whose output is this process's
    with workers(min(joblib.cpu_count(), len(due))) as client:
        # A failure is the notebook's, not the worker's: what others have begun is brought to its end.
        running = {client.submit(execute, job, force, log, pure=False, priority=-n): job for n, job in enumerate(due)}
        for future in as_completed(running):
            if future.status == "finished":
                done(running[future])
        for future in running:
            future.result()


def execute(job: Job, force: bool = False, log: Callable[[str], None] = print) -> Path:
    """Execute a chapter's notebook unless its last run is current (or with `force`), and return the run's folder.

    The run is made in a folder beside and takes its place when whole; checkpoints and records that were made before a
    kill are not made again. Refused in one sentence, which `log` does not get: what the notebook refuses, and a
    notebook that fails.
    """
    name, started = f"Chapter {job.chapter.number}, {job.profile}", time.monotonic()
    job.place.parent.mkdir(parents=True, exist_ok=True)
    made = job.place.with_name(f".{job.place.name}.partial")
    with FileLock(job.place.parent / f".{job.place.name}.lock"):
        reason = job.reason or ("asked for" if force else "")
        if not reason:
            log(f"{name}: current, in {job.place}")
            return job.place
        if job.committed is None:
            check_device(job.parameters)
        log(f"{name}: running ({reason})")
        digest = job.digest
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        with files.disk_named(made):
            if failure := _failure(job, made, lambda line: log(f"{name}: {line}")):
                raise RunError(f"{name}: {failure}")
            facts = json.loads((made / "run.json").read_text(encoding="utf-8")) | {"digest": digest}
            if job.committed is not None:
                # Making the page from records says nothing of what measuring took.
                published = json.loads((job.committed / "run.json").read_text(encoding="utf-8"))
                facts |= {one: published[one] for one in ("seconds", "training_seconds", "peak_memory")}
            (made / "run.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        shutil.rmtree(job.place, ignore_errors=True)
        made.rename(job.place)
    log(f"{name}: done in {time.monotonic() - started:.0f} s, in {job.place}")
    return job.place


def _failure(job: Job, folder: Path, log: Callable[[str], None]) -> str:
    """Execute a notebook, leave the copy with outputs, and return what went wrong and where: no `run.finish()`, too."""
    import papermill

    executed, notebook, parameters = folder / EXECUTED, job.chapter.notebook, {"profile": job.profile, **job.overrides}
    # Threads that wait let go of their core: spinning beside a busy neighbour made small products many times slower.
    environment = {files.RUN_FOLDER_VARIABLE: str(folder), "OMP_WAIT_POLICY": "PASSIVE"}
    # A kernel warns that its ports are not encrypted, and calls it an error that it is asked to end.
    options = {"extra_arguments": ["--log-level=CRITICAL"]}
    if job.committed is not None:
        environment |= {files.RECORDS_VARIABLE: str(job.committed), "OMP_NUM_THREADS": "1"}
        # Nearly all objects here are the libraries' and stay: seldom looking for garbage saves an eighth of the time.
        options["extra_arguments"] += ['--IPKernelApp.exec_lines=__import__("gc").set_threshold(100_000)']
    # What a cell printed can be late on a busy machine; after papermill's four seconds a run of hours would end.
    options |= {"kernel_name": "python3", "progress_bar": False, "iopub_timeout": 600}
    options["request_save_on_cell_execute"] = False  # the run is kept when whole, or as it failed
    options["stdout_file"] = SimpleNamespace(write=lambda text: [*map(log, text.splitlines())], flush=bool)
    with mock.patch.dict(os.environ, environment):
        try:
            made = papermill.execute_notebook(notebook, executed, parameters, cwd=notebook.parent, **options)
        except papermill.PapermillExecutionError as error:
            if error.ename in ("ParameterError", "RunError", "SourceError"):  # refused, so there is nothing to look at
                executed.unlink()
                return error.evalue
            first = error.source.strip().splitlines()[0]
            return f"the cell that begins {first!r} failed, {error.ename}: {error.evalue} (see {executed})."
        except Exception as error:  # a kernel that died, or a notebook that papermill cannot run
            return f"papermill failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    for cell in code_cells(made):  # progress is no part of the page
        cell.outputs = [one for one in cell.outputs if one.get("name") != "stdout"]
    nbformat.write(made, executed)
    return "" if (folder / "run.json").is_file() else "it ended without run.finish(), which its last cell has to call."
