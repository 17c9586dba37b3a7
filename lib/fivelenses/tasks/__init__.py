"""Tasks: from a name and a source to examples, labels, a metric and the kind of head."""

from typing import TYPE_CHECKING

from fivelenses.catalogue import TASKS, Task, find
from fivelenses.tasks.sources import SOURCES, SourceError

if TYPE_CHECKING:
    from fivelenses.tasks.examples import TaskData, load
    from fivelenses.tasks.scores import score

__all__ = ["SOURCES", "TASKS", "SourceError", "Task", "TaskData", "find", "load", "score"]


def __getattr__(name: str):
    # What reads examples and scores them takes seconds to load, for which the refusal of a name does not wait.
    if name in ("TaskData", "load"):
        from fivelenses.tasks import examples

        return getattr(examples, name)
    if name == "score":
        from fivelenses.tasks.scores import score

        return score
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
