"""The tasks by name: where their tables are on the hub, which columns are read, what the labels mean, how they are
scored; and the tasks of edge probing.

It imports no library, so that a command can refuse a name before libraries are loaded, which takes seconds.

The toy world's tables have the same names and columns, so one entry serves both sources. A new task touches at most
three files:

1. this one, for its entry in `TASKS`;
2. ``toyworld/tables.py``, for the builder of its toy table and its label names, where the toy world lacks the table;
3. ``fivelenses/tasks/treebanks.py``, only for a task on words whose treebank is not read yet.

A chapter uses it once its profile (``notebooks/profiles``) names it.
"""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from fivelenses import project

Head = Literal["sequence", "token", "token-pair", "span", "biaffine", "none"]
Metric = Literal["accuracy", "matthews", "exact-match-f1", "las", "none"]
SCORES = {"accuracy": "accuracy", "matthews": "Matthews correlation", "exact-match-f1": "F1", "las": "LAS", "none": ""}

GLUE_REVISION = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
SQUAD_REVISION = "7b6d24c440a36b6815f21b70d25016731768db1f"
WIKITEXT_REVISION = "b08601e04326c79dfdd32d625aee71d232d685c3"
# The main branch holds a loading script, which `datasets` no longer runs; this is the hub's own conversion to Parquet.
TREC_REVISION = "refs/convert/parquet"
TREEBANK_RELEASES = {
    "pud": ("UniversalDependencies/UD_English-PUD", "r2.7"),
    "ewt": ("UniversalDependencies/UD_English-EWT", "r2.16"),
    "streusle": ("nert-nlp/streusle", "v4.2"),
}


@dataclass(frozen=True)
class Task:
    """One task: its table on the hub and what is read from it.

    Attributes:
        name: the name used everywhere (`rte`, `mrpc`, ...).
        title: how the field writes it (`RTE`).
        inputs: the text columns, one or two.
        label: the label column.
        labels: label names in the order of their integers; empty where they are read from the table.
        repository, config, revision: the data set on the hub.
        splits: our split name to the hub's.
        sizes: rows of each split on the hub, by our names, so that a sample can be called a sample.
        head: the kind of prediction head.
        metric: the score that the papers print.
        mean_tokens: mean tokens per example in BERT's uncased vocabulary; only estimates of time use it.
        treebank, annotation: for a task on words, the treebank that it is read from and the column with its labels.
        place: of a task of the reader's own (`fivelenses.tasks.own`), how many there were in the store before it; None
            for the tasks of the catalogue.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    label: str
    repository: str
    config: str
    revision: str
    splits: MappingProxyType = field(hash=False)
    sizes: MappingProxyType = field(hash=False)
    labels: tuple[str, ...] = ()
    head: Head = "sequence"
    metric: Metric = "accuracy"
    mean_tokens: int = 40
    treebank: str = ""
    annotation: str = ""
    place: int | None = None

    @property
    def own(self) -> bool:
        """Whether it is a task of the reader's own."""
        return self.place is not None

    @property
    def score_name(self) -> str:
        """How the field writes the score; empty where there is none."""
        return SCORES[self.metric]


def _by_split(train, validation) -> MappingProxyType:
    return MappingProxyType({"train": train, "validation": validation})


# Treebank: the split that is evaluated on, the sentences of the two splits, mean tokens per sentence.
_TREEBANKS = {
    "pud": ("test", (800, 200), 28),
    "ewt": ("validation", (12_544, 2_001), 20),
    "streusle": ("test", (1_857, 249), 22),
}


def _words(name, title, head, treebank, annotation, targets="units", metric="accuracy") -> Task:
    """A task on words: its inputs are the words of a sentence, and its rows are sentences, not labels."""
    (repository, release), (held_out, sizes, mean_tokens) = TREEBANK_RELEASES[treebank], _TREEBANKS[treebank]
    return Task(
        name=name,
        title=title,
        inputs=("tokens", targets),
        label="names",
        repository=repository,
        config="",
        revision=release,
        splits=_by_split("train", held_out),
        sizes=_by_split(*sizes),
        head=head,
        metric=metric,
        mean_tokens=mean_tokens,
        treebank=treebank,
        annotation=annotation,
    )


def _glue(name, title, inputs, labels, sizes, mean_tokens, metric="accuracy", validation="validation") -> Task:
    return Task(
        name=name,
        title=title,
        inputs=inputs,
        label="label",
        labels=labels,
        repository="nyu-mll/glue",
        config=name,
        revision=GLUE_REVISION,
        splits=_by_split("train", validation),
        sizes=_by_split(*sizes),
        metric=metric,
        mean_tokens=mean_tokens,
    )


_PAIR = ("sentence1", "sentence2")
_ENTAILMENT, _NLI = ("entailment", "not_entailment"), ("entailment", "neutral", "contradiction")

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _glue("rte", "RTE", _PAIR, _ENTAILMENT, (2_490, 277), 69),
        _glue("mrpc", "MRPC", _PAIR, ("not_equivalent", "equivalent"), (3_668, 408), 54),
        _glue("sst2", "SST-2", ("sentence",), ("negative", "positive"), (67_349, 872), 14),
        _glue("mnli", "MNLI", ("premise", "hypothesis"), _NLI, (392_702, 9_815), 40, validation="validation_matched"),
        _glue("qnli", "QNLI", ("question", "sentence"), _ENTAILMENT, (104_743, 5_463), 50),
        _glue("cola", "CoLA", ("sentence",), ("unacceptable", "acceptable"), (8_551, 1_043), 12, "matthews"),
        Task(
            name="squad",
            title="SQuAD",
            inputs=("question", "context"),
            label="answers",
            repository="rajpurkar/squad",
            config="plain_text",
            revision=SQUAD_REVISION,
            splits=_by_split("train", "validation"),
            sizes=_by_split(87_599, 10_570),
            head="span",
            metric="exact-match-f1",
            mean_tokens=180,
        ),
        Task(
            name="trec",
            title="TREC-50",
            inputs=("text",),
            label="fine_label",
            repository="CogComp/trec",
            config="default",
            revision=TREC_REVISION,
            splits=_by_split("train", "test"),
            sizes=_by_split(5_452, 500),
            mean_tokens=12,
        ),
        _words("pos", "POS", "token", "pud", "upos"),
        _words("dep", "DEP", "token-pair", "pud", "deprels"),
        _words("pos-ewt", "POS (EWT)", "token", "ewt", "upos"),
        _words("dep-ewt", "DEP (EWT)", "token-pair", "ewt", "deprels"),
        _words("parsing", "Parsing", "biaffine", "ewt", "deprels", "heads", "las"),
        _words("ps-role", "PS-role", "token", "streusle", "role"),
        _words("ps-fxn", "PS-fxn", "token", "streusle", "function"),
        Task(
            name="wikitext",
            title="WikiText-2",
            inputs=("text",),
            label="",
            repository="Salesforce/wikitext",
            config="wikitext-2-raw-v1",
            revision=WIKITEXT_REVISION,
            splits=MappingProxyType({"validation": "validation", "test": "test"}),
            sizes=MappingProxyType({"validation": 3_760, "test": 4_358}),
            head="none",
            metric="none",
        ),
    )
}


OWN_NAME = re.compile(r"[a-z0-9][a-z0-9-]*-[0-9a-f]{8}")


def own_folder() -> Path:
    """Where tasks of the reader's own are kept, ``tasks/`` in the store."""
    return project.store_folder() / "tasks"


def slug(title: str) -> str:
    """A title as the beginning of a name.

    Example:
        >>> slug("Film reviews, 2nd"), slug("…")
        ('film-reviews-2nd', 'task')
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or "task"


def read_own(name: str) -> Task | None:
    """The task of the reader's own of that name; None where the store has none."""
    folder = own_folder() / name
    # A folder comes into its place whole, and one that is not there may come.
    return _read_own(folder) if OWN_NAME.fullmatch(name) and folder.is_dir() else None


@cache
def _read_own(folder: Path) -> Task:
    facts = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    return Task(
        name=folder.name,
        title=facts["title"],
        inputs=tuple(facts["inputs"]),
        label=facts["label"],
        labels=tuple(facts["labels"]),
        repository="",
        config="",
        revision="",
        splits=_by_split("train", "validation"),
        sizes=MappingProxyType(facts["sizes"]),
        mean_tokens=facts["mean_tokens"],
        place=facts["place"],
    )


def is_task(name: str) -> bool:
    """Whether there is a task of that name.

    Example:
        >>> is_task("rte"), is_task("etr")
        (True, False)
    """
    return name in TASKS or read_own(name) is not None


def find(name: str) -> Task:
    """The task of that name: of the catalogue, or of the reader's own.

    Example:
        >>> find("mrpc").labels
        ('not_equivalent', 'equivalent')
    """
    task = TASKS.get(name) or read_own(name)
    if task is None:
        raise ValueError(
            f"There is no task {name!r}: choose among {', '.join(sorted(TASKS))}, or name a table of your own "
            "(.csv, .tsv, .jsonl, .parquet) or a data set, hub:owner/name."
        )
    return task


@dataclass(frozen=True)
class EdgeTask:
    """One edge-probing task.

    Attributes:
        name, title: the name used in the code, and the one that the papers print.
        spans: 1 or 2.
        stand_in: the open data that are read where OntoNotes is not available.
        in_ontonotes: whether the published task is made of OntoNotes.
    """

    name: str
    title: str
    spans: int
    stand_in: str
    in_ontonotes: bool = True


EDGE_TASKS = {
    task.name: task
    for task in (
        EdgeTask("pos", "POS", 1, "UD English EWT 2.16"),
        EdgeTask("constituents", "Constituents", 1, "GUM 11.1"),
        EdgeTask("dependencies", "Dependencies", 2, "UD English EWT 2.16", in_ontonotes=False),
        EdgeTask("entities", "Entities", 1, "GUM 11.1"),
        EdgeTask("srl", "SRL", 2, "PropBank on UD English EWT 2.2"),
        EdgeTask("coreference", "Coreference", 2, "GUM 11.1, inside sentences"),
        EdgeTask("coreference-dpr", "Coreference (DPR)", 2, "Definite Pronoun Resolution", in_ontonotes=False),
        EdgeTask("spr", "SPR", 2, "Semantic Proto-Roles 2", in_ontonotes=False),
        EdgeTask("relations", "Relations", 2, "SemEval-2010 task 8", in_ontonotes=False),
    )
}


def find_edge_task(name: str) -> EdgeTask:
    """The task of that name.

    Example:
        >>> find_edge_task("srl").spans
        2
    """
    if name not in EDGE_TASKS:
        raise ValueError(f"There is no edge-probing task {name!r}: choose among {', '.join(EDGE_TASKS)}.")
    return EDGE_TASKS[name]
