"""Papermill on a tether: a notebook that ends, with all that it started, when the process that wanted it ends.

`execution` runs this file as a program: ``python -P tethered.py LOCK ARGUMENTS-OF-PAPERMILL``. Its standard input is
the tether, a pipe whose other end only the process in front holds: it closes however that process ends, also by a kill
that leaves it no time. The lock is held as long as anything of the notebook lives, so that the next run of the same
folder waits for it. Nothing of this package is imported here: a notebook's runner stays small.
"""

import os
import sys
import threading

import psutil
from filelock import FileLock

PATIENCE = 10.0  # seconds in which a killed process has to be gone


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


def _follow_the_tether() -> None:
    while os.read(0, 1):
        pass
    end_descendants()
    os._exit(1)


def main() -> None:
    """Run papermill with this program's arguments after the first, holding the lock that the first names."""
    threading.Thread(target=_follow_the_tether, daemon=True).start()
    with FileLock(sys.argv[1]):
        from papermill.cli import papermill

        sys.argv = ["papermill", *sys.argv[2:]]
        papermill()


if __name__ == "__main__":
    main()
