"""A program on a tether: one that ends, with all that it started, when the process that wanted it ends.

`tether` runs this file: ``python -P tethered.py LOCK COMMAND ARGUMENTS``, with papermill or jupyter-book for a command.
Its standard input is the tether, a pipe whose other end only the process in front holds: it closes however that process
ends, also by a kill that leaves it no time. The lock is held as long as anything of the program lives, so that the next
run of the same folder waits for it. Nothing of this package is imported here: a notebook's runner stays small.
"""

import os
import signal
import sys
import threading
from importlib.metadata import entry_points

import psutil
from filelock import FileLock

PATIENCE = 10.0  # seconds in which a killed process has to be gone
# Seconds for what a cell printed to arrive. On a busy machine it can be late, and papermill gives it four, after
# which it ends a run of hours at its last cell.
OUTPUT_PATIENCE = 600


def end_descendants() -> None:
    """Kill all that this process has started: the kernel, and the kernel's own training processes."""
    # From the top: a kernel that is gone starts nothing more.
    descendants = psutil.Process().children(recursive=True)
    for process in descendants:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(descendants, timeout=PATIENCE)


def _end(code: int) -> None:
    end_descendants()
    os._exit(code)


def _follow_the_tether() -> None:
    while os.read(0, 1):
        pass
    _end(1)


def wait_for_output() -> None:
    """Have papermill wait so long for the output of a cell."""
    from papermill.engines import NBClientEngine, papermill_engines

    class Patient(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, *given, **settings):
            return super().execute_managed_notebook(*given, **{"iopub_timeout": OUTPUT_PATIENCE} | settings)

    # Without a name: the engine that is taken by default.
    papermill_engines.register(None, Patient)


def main() -> None:
    """Run the command that the second argument names with those after it, holding the lock that the first names."""
    # A kernel is in a group of its own: what is sent to this program's group does not reach it.
    signal.signal(signal.SIGTERM, lambda number, frame: _end(128 + number))
    threading.Thread(target=_follow_the_tether, daemon=True).start()
    with FileLock(sys.argv[1]):
        sys.argv = sys.argv[2:]
        if sys.argv[0] == "papermill":
            wait_for_output()
        command = next(iter(entry_points(group="console_scripts", name=sys.argv[0])))
        sys.exit(command.load()())


if __name__ == "__main__":
    main()
