"""The catalogue of tasks under the name by which readers of tables know it; it is kept in `fivelenses.catalogue`."""

from fivelenses.catalogue import SCORES, TASKS, TREEBANK_RELEASES, Head, Metric, Task, find

__all__ = ["SCORES", "TASKS", "TREEBANK_RELEASES", "Head", "Metric", "Task", "find"]
