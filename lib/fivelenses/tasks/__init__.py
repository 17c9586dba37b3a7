"""Tasks: from a name and a source to examples, labels, a metric and the kind of head."""

from importlib import import_module
from typing import TYPE_CHECKING

from fivelenses.catalogue import Task, find

if TYPE_CHECKING:
    from fivelenses.tasks.examples import TaskData, load
    from fivelenses.tasks.scores import score

__all__ = ["Task", "TaskData", "find", "load", "score"]
# What takes seconds to load, for which the refusal of a name does not wait.
_LOADED_LATE = {"TaskData": "examples", "load": "examples", "score": "scores"}


def __getattr__(name: str):
    if name in _LOADED_LATE:
        return getattr(import_module(f"fivelenses.tasks.{_LOADED_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
