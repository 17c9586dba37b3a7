"""Runs: parameters and profiles, notebooks executed with papermill, dry runs, sweeps, and the book."""

from collections.abc import Mapping


def begin(number: int, given: Mapping):
    """Begin a run of a chapter, `fivelenses.runs.run.begin`; a notebook's first line.

    Args:
        number: the chapter.
        given: the notebook's `globals()`, after its cell of parameters.
    """
    # What a run needs takes seconds to import, which a refusal on the command line does not wait for.
    from fivelenses.runs.run import begin as begin_run

    return begin_run(number, given)
