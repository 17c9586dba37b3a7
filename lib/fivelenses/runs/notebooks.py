"""One notebook executed with papermill, in processes of its own that end with the one that wanted it."""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
import yaml

from fivelenses.runs import tether

PROGRESS = "progress.log"  # beside the executed notebook, while it runs: a line for each event


@dataclass(frozen=True)
class Ended:
    """How the execution of a notebook ended.

    Attributes:
        failure: what went wrong and where, an empty string where nothing did.
        peak_memory: the most that all its processes held together, in bytes.
    """

    failure: str
    peak_memory: int


def execute(
    notebook: Path,
    executed: Path,
    parameters: Mapping[str, object],
    environment: Mapping[str, str],
    lock: Path,
    log: Callable[[str], None],
) -> Ended:
    """Execute a notebook and leave the copy with outputs, without paths and times of this machine.

    Args:
        notebook: is read.
        executed: is written, also when a cell fails; its folder exists.
        parameters: for papermill.
        environment: all variables of the notebook's processes.
        lock: a file that is locked as long as any of them lives.
        log: called with each line that the notebook adds to `PROGRESS` beside the copy.
    """
    progress = executed.with_name(PROGRESS)
    arguments = [str(notebook), str(executed), "--no-progress-bar", "--kernel", "python3"]
    arguments += ["--cwd", str(notebook.parent), "--parameters_yaml", yaml.safe_dump(dict(parameters))]
    with (
        tether.command("papermill", arguments, lock, environment) as process,
        _Watch(process.pid, progress, log) as watch,
    ):
        _, complaint = process.communicate()
    if process.returncode != 0:
        return Ended(_failure(executed, complaint), watch.peak)
    progress.unlink(missing_ok=True)
    _scrub(executed)
    return Ended("", watch.peak)


def _failure(executed: Path, complaint: str) -> str:
    """What went wrong in a notebook, from the error that its executed copy holds, or from what papermill says."""
    if executed.is_file():
        for cell in nbformat.read(executed, as_version=4).cells:
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    first = cell.source.strip().splitlines()[0]
                    return f"the cell that begins {first!r} failed, {output.ename}: {output.evalue} (see {executed})."
    said = complaint.strip().splitlines() or ["it was killed"]
    # An error that shows the cell ends with a line of hyphens.
    errors = [line for line in said if re.match(r"[\w.]+(Error|Exception): ", line)]
    return f"papermill failed: {(errors or said)[-1].rstrip('.')}."


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

    def __init__(self, pid: int, file: Path, log: Callable[[str], None]):
        self.pid, self.file, self.log = pid, file, log
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
        next_look = 0.0
        while not self._done.wait(0.5):
            self._pass_on()
            if (begun := time.monotonic()) >= next_look:
                self.peak = max(self.peak, _resident(self.pid))
                # Counting the pages of gigabytes takes long and holds their process up: a fiftieth of the time at most.
                ended = time.monotonic()
                next_look = ended + 50 * (ended - begun)

    def _pass_on(self) -> None:
        if self.file.is_file():
            lines = self.file.read_text(encoding="utf-8").split("\n")[:-1]
            for line in lines[self._read :]:
                self.log(line)
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
