"""Tasks: from a name and a source to examples, labels, a metric and the kind of head."""

from fivelenses.tasks.catalogue import TASKS, Task, find
from fivelenses.tasks.examples import TaskData, load
from fivelenses.tasks.scores import score
from fivelenses.tasks.sources import SOURCES, SourceError

__all__ = ["SOURCES", "TASKS", "SourceError", "Task", "TaskData", "find", "load", "score"]
