"""One notebook executed with papermill; its kernel ends with this process."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import nbformat

PROGRESS = "progress.log"  # beside the executed notebook, while it runs: a line for each event
# Seconds for what a cell printed to arrive. On a busy machine it can be late, and papermill gives it four, after
# which it ends a run of hours at its last cell.
OUTPUT_PATIENCE = 600


def execute(
    notebook: Path,
    executed: Path,
    parameters: Mapping[str, object],
    environment: Mapping[str, str],
    log: Callable[[str], None],
) -> str:
    """Execute a notebook and leave the copy with outputs, without paths and times of this machine.

    Args:
        notebook: is read.
        executed: is written, also when a cell fails; its folder exists.
        parameters: for papermill.
        environment: variables of the kernel, besides this process's.
        log: called with each line that the notebook adds to `PROGRESS` beside the copy.

    Returns:
        What went wrong and where, an empty string where nothing did.
    """
    import papermill

    progress = executed.with_name(PROGRESS)
    settings = {"kernel_name": "python3", "progress_bar": False, "iopub_timeout": OUTPUT_PATIENCE}
    settings["extra_arguments"] = ["--log-level=ERROR"]  # a kernel warns that its ports are not encrypted
    with mock.patch.dict(os.environ, environment), _followed(progress, log):
        try:
            papermill.execute_notebook(notebook, executed, dict(parameters), cwd=notebook.parent, **settings)
        except papermill.PapermillExecutionError as error:
            first = error.source.strip().splitlines()[0]
            return f"the cell that begins {first!r} failed, {error.ename}: {error.evalue} (see {executed})."
        except Exception as error:  # a kernel that died, or a notebook that papermill cannot run
            return f"papermill failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    progress.unlink(missing_ok=True)
    _scrub(executed)
    return ""


def _scrub(file: Path) -> None:
    """Take the paths and times of this machine out of an executed notebook: two equal runs are then equal files."""
    notebook = nbformat.read(file, as_version=4)
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, file)


@contextmanager
def _followed(file: Path, log: Callable[[str], None]) -> Iterator[None]:
    """Pass on the lines of a file that grows while the block runs."""
    ended, passed = threading.Event(), 0

    def pass_on() -> None:
        nonlocal passed
        if file.is_file():
            lines = file.read_text(encoding="utf-8").split("\n")[:-1]
            for line in lines[passed:]:
                log(line)
            passed = len(lines)

    def follow() -> None:
        while not ended.wait(0.5):
            pass_on()
        pass_on()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
