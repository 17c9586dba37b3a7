"""The memory that a process may use; and processes that compute side by side, all of which end with the one that
started them, however that one ends: dask's workers see it by a pipe that their parent alone holds open, a notebook's
kernel by its parent's number, a command by `end_with_caller`.
"""

import logging
import os
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import joblib

from fivelenses.files import RunError

SECONDS_BETWEEN_LINES = 30.0
MAX_LOST_WORKERS = 2  # by one task, which goes to another; a task that loses more has failed
SHARE = 1 / 3  # of memory for what is gathered in a stream; the rest is for the models and the rest of the machine


def end_with_caller() -> None:
    """Ask this process to end, as SIGTERM does, when the one that called it is gone: a killed `make` tells nobody."""
    caller = os.getppid()

    def follow() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def repeated(action: Callable[[], None]) -> Iterator[None]:
    """Do something, such as log a line of progress, every half minute while the block runs."""
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(SECONDS_BETWEEN_LINES):
            action()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def workers(count: int) -> Iterator:
    """A client of so many worker processes of this machine, which share its cores and run one task each at a time. The
    task of a killed worker is begun again; one that loses too many is refused. After the block no worker is left.
    """
    # A page that reads records has no worker, and does not wait for the library.
    import dask
    from distributed import Client, KilledWorker, LocalCluster
    from distributed.utils import silence_logging_cmgr

    threads = max(1, joblib.cpu_count() // count)
    shape = dict(n_workers=count, threads_per_worker=1, memory_limit=0, dashboard_address="127.0.0.1:0")
    shape |= dict(silence_logs=logging.CRITICAL, env={"OMP_NUM_THREADS": threads, "LOKY_MAX_CPU_COUNT": threads})
    # By dask's own setting a worker gives memory back after every step: a toy training then fetched 2 GB in pages.
    kept = {"MALLOC_TRIM_THRESHOLD_": 2**30, "MALLOC_MMAP_THRESHOLD_": 2**25}
    settings = {f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in kept.items()}
    # A worker that dies closes its connection; one that is silent for minutes is on a machine that swaps or sleeps.
    settings |= {"distributed.scheduler.worker-ttl": None, "distributed.scheduler.allowed-failures": MAX_LOST_WORKERS}
    with (
        dask.config.set(settings),
        silence_logging_cmgr(logging.CRITICAL),  # who waits for a task says what became of it, in one line
        LocalCluster(**shape) as cluster,
        Client(cluster) as client,
    ):
        try:
            yield client
        except KilledWorker as error:
            often = f"{MAX_LOST_WORKERS + 1} processes of one task were lost, as where memory is short"
            raise RunError(f"{often}: let fewer run side by side.") from error


def memory_at_hand(device: str | None = None) -> float:
    """Bytes that may be filled with what is gathered in a stream: a third of what is free on a GPU (by default where
    there is one), or of `memory`.
    """
    import torch

    chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    return SHARE * (torch.cuda.mem_get_info(chosen)[0] if chosen.type == "cuda" else memory())


def memory(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Bytes of memory that this process may use at most: this machine's, or what a container or a job may take.
    Linux keeps its control `groups` there, and the name of this process's `own` in that file.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    named = re.search(r"^0::/(.*)$", own.read_text(), re.MULTILINE) if own.is_file() else None
    group = groups / (named[1] if named else "")
    files = [folder / "memory.max" for folder in (group, *group.parents)]
    texts = [file.read_text().strip() for file in files if file.is_file()]
    return min([*limits, *(int(text) for text in texts if text.isdigit())])


def peak_memory() -> int:
    """The most bytes of memory that this process has held at a time since it began."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
