"""The toy world: a lexicon, a meaning, a grammar with full annotation, and the tasks that come from them.

This module is the only way in. `table("mnli")["train"]` is a pandas table with the columns that the data set has on
the hub; `TASKS` names every task, and `LABELS` the labels of those that have them, in the order of their integers.
"""

from toyworld.tables import LABELS, TASKS, table

__all__ = ["LABELS", "TASKS", "table"]
