"""The tasks by name, as `catalogue.yaml` lists them: where their tables are on the hub, which columns are read, what
the labels mean, how they are scored; the tasks of edge probing; and corpora of raw files.

A new task touches at most three files: ``catalogue.yaml``, for its entry; ``toyworld/tables.py``, for the builder of
its toy table, which has the same columns; ``fivelenses/tasks/treebanks.py``, for what a task on words reads of its
treebank. A chapter uses it once its profile (``notebooks/profiles``) names it. This module loads no large library, so
that a command can refuse a name at once.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import yaml

from fivelenses.files import store_folder

# How the field writes a score.
SCORES = {"accuracy": "accuracy", "matthews": "Matthews correlation", "exact-match-f1": "F1", "las": "LAS", "none": ""}


@dataclass(frozen=True)
class Task:
    """One task: its table on the hub and what is read from it.

    Attributes:
        name, title: as a command names it (`rte`), and as the field writes it (`RTE`).
        inputs: the text columns, one or two; of a task on words the column of words, and that of what is labelled.
        splits: our split name to the hub's.
        sizes: rows of each split on the hub, by our names, so that a sample can be called a sample.
        repository, config, revision: the data set on the hub, or the repository of a treebank and its tag.
        labels: label names in the order of their integers; empty where they are read from the table.
        head: the kind of prediction head; `none` for running text.
        metric: the score that the papers print.
        treebank: that a task on words is read from.
        own: whether it is a task of the reader's own (`fivelenses.tasks.own`).
        read: how the table of such a task was read, with the examples of each class, in a sentence.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    label: str
    splits: Mapping[str, str] = field(hash=False)
    sizes: Mapping[str, int] = field(hash=False)
    repository: str = ""
    config: str = ""
    revision: str = ""
    labels: tuple[str, ...] = ()
    head: Literal["sequence", "token", "token-pair", "span", "biaffine", "none"] = "sequence"
    metric: Literal["accuracy", "matthews", "exact-match-f1", "las", "none"] = "accuracy"
    treebank: str = ""
    own: bool = False
    read: str = field(default="", compare=False)

    @property
    def score_name(self) -> str:
        """How the field writes the score; empty where there is none."""
        return SCORES[self.metric]


def _task(name: str, facts: Mapping) -> Task:
    lists = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    return Task(**{"name": name, **facts, **lists})


_ENTRIES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TASKS = {name: _task(name, facts) for name, facts in _ENTRIES["tasks"].items()}
EDGE_TASKS, CORPORA = _ENTRIES["edge_tasks"], _ENTRIES["corpora"]
OWN_NAME = re.compile(r"[a-z0-9][a-z0-9-]*-[0-9a-f]{8}")


def own_folder() -> Path:
    """Where tasks of the reader's own are kept, ``tasks/`` in the store."""
    return store_folder() / "tasks"


def read_own(name: str) -> Task | None:
    """The task of the reader's own of that name; None where the store has none."""
    file = own_folder() / name / "task.json"
    if not OWN_NAME.fullmatch(name) or not file.is_file():
        return None
    facts, splits = json.loads(file.read_text(encoding="utf-8")), {"train": "train", "validation": "validation"}
    known = {key: value for key, value in facts.items() if key in Task.__dataclass_fields__}
    return _task(name, known | {"splits": splits, "own": True})


def is_task(name: str) -> bool:
    """Whether there is a task of that name."""
    return name in TASKS or read_own(name) is not None


def find(name: str) -> Task:
    """The task of that name: of the catalogue, or of the reader's own.

    >>> find("mrpc").labels
    ('not_equivalent', 'equivalent')
    """
    if task := TASKS.get(name) or read_own(name):
        return task
    own = "name a table of your own (.csv, .tsv, .jsonl, .parquet)"
    raise ValueError(f"There is no task {name!r}: choose among {', '.join(sorted(TASKS))}, or {own}.")
