"""Notebooks executed with papermill: what is current is left alone, what fails or is killed leaves the last
good run in place.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
import psutil
import yaml
from filelock import FileLock

from fivelenses import project
from fivelenses.checkpoints import Store
from fivelenses.runs import seals, tethered
from fivelenses.runs.run import FOLDER_VARIABLE, check_device, folder_name
from fivelenses.runs.settings import CHAPTERS, Chapter, check_profile, find_chapter, settings

EXECUTED = "notebook.ipynb"
LEAST_DISK = 2 * 10**9  # bytes that must be free before a run starts


class RunError(RuntimeError):
    """A run that could not start or failed; the message says where and what to do."""


@dataclass(frozen=True)
class Finished:
    """A run that stands: its folder, whether it was executed now, and how long that took (seconds) at which
    peak (bytes).
    """

    folder: Path
    executed: bool
    seconds: float
    peak_memory: int


def code_digest(notebook: nbformat.NotebookNode) -> str:
    """A hash of a notebook's code cells: an executed copy with the same code is in step with it.

    Cells that papermill adds are not counted, and prose is taken from the notebook, not from the executed copy.
    """
    content = hashlib.sha256()
    for cell in notebook.cells:
        if cell.cell_type == "code" and "injected-parameters" not in cell.metadata.get("tags", []):
            content.update(cell.source.strip().encode() + b"\0")
    return content.hexdigest()[:16]


def library_digest() -> str:
    """A hash of the library's source: a local run is current only for the code that made it."""
    content = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    for file in sorted(package.rglob("*.py")):
        content.update(str(file.relative_to(package)).encode() + file.read_bytes())
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
    if facts.get("notebook") != code_digest(nbformat.read(chapter.notebook, as_version=4)):
        return "the notebook's code has changed since"
    if facts.get("library") != library_digest():
        return "the library has changed since"
    if facts.get("parameters") != parameters:
        return "the parameters have changed since"
    damaged = seals.broken(folder, facts["files"])
    return f"its {damaged[0]} is damaged" if damaged else ""


def run(
    number: int,
    profile: str,
    overrides: dict | None = None,
    force: bool = False,
    notify: Callable[[str], None] = print,
) -> Finished:
    """Execute a chapter's notebook unless its last run is current.

    The run is made in a folder beside and takes its place when whole; checkpoints that were trained before a kill
    are not trained again.

    Args:
        number: the chapter.
        profile: `tiny`, `small` or `paper`.
        overrides: parameters by name.
        force: execute also when nothing has changed.
        notify: called with one line of plain text for each event.

    Raises:
        ParameterError: a parameter that does not exist or fit.
        RunError: the notebook failed, is missing, or the disk is full.
    """
    overrides = {name: value for name, value in (overrides or {}).items() if value is not None}
    chapter = find_chapter(number)
    chosen = settings(number, profile, **overrides)
    check_device(chosen, profile)
    check_pair(chapter)
    place = project.runs_folder() / folder_name(chapter, profile, overrides)
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.parent / f".{place.name}.lock"):
        why = state(chapter, place, chosen.model_dump(mode="json"))
        if not why and not force:
            notify(f"chapter {number}, {profile}: current, in {place}")
            return Finished(place, False, 0.0, 0)
        check_disk(place.parent)
        check_disk(Store().folder)
        notify(f"chapter {number}, {profile}: running ({why or 'asked for'})")
        return _execute(chapter, profile, overrides, place, notify)


def check_pair(chapter: Chapter) -> None:
    """The two halves of a paired notebook must say the same.

    Raises:
        RunError: one is missing, or they differ.
    """
    percent = chapter.notebook.with_suffix(".py")
    for file in (chapter.notebook, percent):
        if not file.is_file():
            raise RunError(f"The notebook {file.name} is missing from {file.parent}: restore it with git.")
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
    if free < LEAST_DISK:
        raise RunError(
            f"Only {free / 1e9:.1f} GB are free at {folder} and a run needs {LEAST_DISK / 1e9:.0f}: make room first."
        )


def _execute(chapter: Chapter, profile: str, overrides: dict, place: Path, notify) -> Finished:
    partial = place.with_name(f".{place.name}.partial")
    held = place.with_name(f".{place.name}.notebook.lock")
    # A notebook whose runner was killed this moment lets go of the folder when the last of its processes has ended.
    with FileLock(held):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    started = time.monotonic()
    command = [sys.executable, "-P", str(Path(tethered.__file__)), str(held)]
    command += [str(chapter.notebook), str(partial / EXECUTED), "--no-progress-bar"]
    command += ["--kernel", "python3", "--cwd", str(chapter.notebook.parent)]
    command += ["--parameters_yaml", yaml.safe_dump({"profile": profile, **overrides})]
    # Threads that wait let go of their core: spinning beside a busy neighbour made small products many times slower.
    environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, FOLDER_VARIABLE: str(partial)}
    end_of_tether, tether = os.pipe()
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=end_of_tether,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(end_of_tether)
    with _Watch(process.pid, partial / "progress.log", f"chapter {chapter.number}, {profile}: ", notify) as watch:
        try:
            _, complaint = process.communicate()
        finally:
            # Interrupted here, the notebook must not go on by itself.
            os.close(tether)
            process.wait()
    if process.returncode:
        raise RunError(f"Chapter {chapter.number}, {profile}: {_failure(partial / EXECUTED, complaint)}")
    facts_file = partial / "run.json"
    if not facts_file.is_file():
        raise RunError(f"Chapter {chapter.number} ended without run.finish(): its last cell has to call it.")
    (partial / "progress.log").unlink(missing_ok=True)
    _scrub(partial / EXECUTED)
    facts = json.loads(facts_file.read_text(encoding="utf-8"))
    facts |= {
        "notebook": code_digest(nbformat.read(chapter.notebook, as_version=4)),
        "library": library_digest(),
        "peak_memory": watch.peak,
        "files": seals.seal(partial),
    }
    facts_file.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    replaced = place.with_name(f".{place.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    if place.exists():
        place.rename(replaced)
    partial.rename(place)
    shutil.rmtree(replaced, ignore_errors=True)
    seconds = time.monotonic() - started
    notify(
        f"chapter {chapter.number}, {profile}: done in {seconds:.0f} s, at most {watch.peak / 1e9:.1f} GB, in {place}"
    )
    return Finished(place, True, seconds, watch.peak)


def _failure(executed: Path, complaint: str) -> str:
    """What went wrong in a notebook, from the error that its executed copy holds, or from papermill's last line."""
    if executed.is_file():
        for cell in nbformat.read(executed, as_version=4).cells:
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    first = cell.source.strip().splitlines()[0]
                    return f"the cell that begins {first!r} failed, {output.ename}: {output.evalue} (see {executed})."
    return f"papermill failed: {complaint.strip().splitlines()[-1] if complaint.strip() else 'it was killed'}."


def _scrub(file: Path) -> None:
    """Take the paths and times of this machine out of an executed notebook: two equal runs are then equal files."""
    notebook = nbformat.read(file, as_version=4)
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, file)


class _Watch:
    """While a notebook runs: passes its progress lines on, and measures the memory of all its processes."""

    def __init__(self, pid: int, log: Path, prefix: str, notify: Callable[[str], None]):
        self.pid, self.log, self.prefix, self.notify = pid, log, prefix, notify
        self.peak, self._read, self._done = 0, 0, threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()
        self._pass_on()

    def _follow(self) -> None:
        while not self._done.wait(0.5):
            self._pass_on()
            self.peak = max(self.peak, _resident(self.pid))

    def _pass_on(self) -> None:
        if self.log.is_file():
            lines = self.log.read_text(encoding="utf-8").split("\n")[:-1]
            for line in lines[self._read :]:
                self.notify(self.prefix + line)
            self._read = len(lines)


def _resident(pid: int) -> int:
    """Memory of a process and all its descendants in bytes; shared pages are counted once where the system tells."""
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.rss)
    return total


def run_all(profile: str, force: bool = False, notify: Callable[[str], None] = print) -> list[Finished]:
    """Every chapter that runs locally, on a profile, side by side where cores allow (a chapter uses two).

    Raises:
        ParameterError: there is no such profile.
        RunError: after all have ended, the first that failed.
    """
    check_profile(profile)
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
        chosen = [number for number, chapter in CHAPTERS.items() if chapter.local and profile in chapter.profiles]
        futures = [pool.submit(run, number, profile, None, force, notify) for number in chosen]
    return [future.result() for future in futures]
