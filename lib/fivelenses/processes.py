"""Processes that end with the one that started them, however that one ends.

A worker that was spawned to train waits for work on a pipe that it holds open itself, so it would outlive a parent that
was killed. Python gives each spawned process a second pipe that its parent alone holds open: it closes with the parent,
on every system, also by a kill that leaves the parent no time.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait

INTERRUPTIONS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def end_with_parent() -> None:
    """End this spawned process, at once and without a word, when the process that spawned it has ended.

    Raises:
        RuntimeError: this process was not started by multiprocessing.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("Only a process that multiprocessing started has a parent that it can end with.")
    threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def begin_worker(threads: int) -> None:
    """What a training worker does first: end with its parent, and use so many threads."""
    end_with_parent()
    # Seconds, in which the parent is watched already.
    import torch

    torch.set_num_threads(threads)


def end_with_caller() -> None:
    """Ask this process to end, as SIGTERM does, when the one that called it is gone: a killed `make` tells nobody."""
    caller = os.getppid()

    def follow() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@contextmanager
def workers_end_when_interrupted() -> Iterator[None]:
    """Kill the processes that were spawned inside when the block is interrupted, instead of waiting for their work.

    An error is no interruption: what other workers have begun is then brought to its end.

    Example:
        >>> with workers_end_when_interrupted():
        ...     len(multiprocessing.active_children())
        0
    """
    earlier = set(multiprocessing.active_children())
    try:
        yield
    except INTERRUPTIONS:
        for process in set(multiprocessing.active_children()) - earlier:
            process.kill()
        raise
