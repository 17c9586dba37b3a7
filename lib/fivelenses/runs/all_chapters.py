"""All chapters' notebooks executed side by side, one per core."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from fivelenses.checkpoints.finetuning import cores
from fivelenses.processes import INTERRUPTIONS
from fivelenses.runs import tethered
from fivelenses.runs.execution import Finished, run, run_committed
from fivelenses.runs.settings import CHAPTERS, check_profile


def run_all(
    profile: str, force: bool = False, log: Callable[[str], None] = print, committed: Sequence[Path] = ()
) -> list[Finished]:
    """Every chapter that has a profile, on it, and the pages of committed records, side by side, one per core.

    Args:
        profile: of the local runs.
        force: execute them also when nothing has changed.
        log: called with one line of plain text for each event.
        committed: folders of committed records.

    Raises:
        ParameterError: there is no such profile.
        RunError: after all have ended, the first that failed.
    """
    check_profile(profile)
    numbers = [number for number, chapter in CHAPTERS.items() if profile in chapter.profiles]
    local = [lambda number=number: run(number, profile, None, force, log, cores=1) for number in numbers]
    return _side_by_side(local + _pages_of(committed, log))


def run_all_committed(folders: Sequence[Path], log: Callable[[str], None] = print) -> list[Finished]:
    """The pages of committed records, side by side.

    Args:
        folders: of the records.

    Raises:
        RunError: after all have ended, the first that failed.
    """
    return _side_by_side(_pages_of(folders, log))


def _pages_of(folders: Sequence[Path], log) -> list[Callable[[], Finished]]:
    chapters = {chapter.slug: chapter for chapter in CHAPTERS.values()}
    return [lambda folder=folder: run_committed(chapters[folder.name], folder, log) for folder in folders]


def _side_by_side(runs: list[Callable[[], Finished]]) -> list[Finished]:
    with ThreadPoolExecutor(cores()) as pool:
        futures = [pool.submit(one) for one in runs]
        try:
            wait(futures)
        except INTERRUPTIONS:
            # Leaving the pool waits for its threads, which wait for their notebooks; those in line are not begun.
            pool.shutdown(wait=False, cancel_futures=True)
            # `wait` never returns a future that was cancelled in its queue.
            while not all(future.done() for future in futures):
                tethered.end_descendants()
                time.sleep(0.1)
            raise
    return [future.result() for future in futures]
