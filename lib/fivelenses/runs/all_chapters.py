"""All chapters' notebooks executed side by side, one per core."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from fivelenses.processes import cores, workers
from fivelenses.runs.execution import Finished, run, run_committed
from fivelenses.runs.settings import CHAPTERS, check_profile

say = partial(print, flush=True)  # in a worker, whose output is this process's


def run_all(profile: str, force: bool = False, committed: Sequence[Path] = ()) -> list[Finished]:
    """Every chapter that has a profile, on it, and the pages of committed records, side by side, one per core.

    Args:
        profile: of the local runs.
        force: execute them also when nothing has changed.
        committed: folders of committed records.

    Raises:
        ParameterError: there is no such profile.
        RunError: after all have ended, the first that failed.
    """
    check_profile(profile)
    numbers = [number for number, chapter in CHAPTERS.items() if profile in chapter.profiles]
    return _side_by_side([partial(run, number, profile, None, force, say) for number in numbers] + _pages(committed))


def run_all_committed(folders: Sequence[Path]) -> list[Finished]:
    """The pages of committed records, side by side.

    Args:
        folders: of the records.

    Raises:
        RunError: after all have ended, the first that failed.
    """
    return _side_by_side(_pages(folders))


def _pages(folders: Sequence[Path]) -> list[Callable[[], Finished]]:
    chapters = {chapter.slug: chapter for chapter in CHAPTERS.values()}
    return [partial(run_committed, chapters[folder.name], folder, say) for folder in folders]


def _side_by_side(runs: Sequence[Callable[[], Finished]]) -> list[Finished]:
    from distributed import wait

    if not runs:
        return []
    with workers(min(cores(), len(runs))) as client:
        # A failure is the notebook's, not the worker's: what others have begun is brought to its end.
        futures = [client.submit(one, pure=False, priority=-place) for place, one in enumerate(runs)]
        wait(futures)
        return [future.result() for future in futures]
