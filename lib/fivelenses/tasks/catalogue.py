"""The tasks by name: where their tables lie on the hub, which columns are read, what the labels mean, how they are
scored.

The toy world's tables have the same names and columns, so one entry serves both sources.
"""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Head = Literal["sequence", "token", "token-pair", "span", "biaffine", "none"]
Metric = Literal["accuracy", "matthews", "exact-match-f1", "las", "none"]
SCORES = {"accuracy": "accuracy", "matthews": "Matthews correlation", "exact-match-f1": "F1", "las": "LAS", "none": ""}

GLUE_REVISION = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
SQUAD_REVISION = "7b6d24c440a36b6815f21b70d25016731768db1f"
WIKITEXT_REVISION = "b08601e04326c79dfdd32d625aee71d232d685c3"
# The data set's main branch holds a loading script, which `datasets` no longer runs; the hub's own conversion is
# served here.
TREC_REVISION = "refs/convert/parquet"
PUD, EWT = "UniversalDependencies/UD_English-PUD", "UniversalDependencies/UD_English-EWT"
STREUSLE = "nert-nlp/streusle"


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
        sizes: rows of each hub split, by our names, so that a sample can be called a sample.
        head: the kind of prediction head.
        metric: the score the papers print.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    repository: str
    config: str
    revision: str
    splits: MappingProxyType = field(hash=False)
    sizes: MappingProxyType = field(hash=False)
    head: Head = "sequence"
    metric: Metric = "accuracy"

    @property
    def score_name(self) -> str:
        """How the field writes the score, empty where there is none."""
        return SCORES[self.metric]


def _words(
    name, title, head, repository, release, held_out, train, validation, second="units", metric="accuracy"
) -> Task:
    """A task on words: its inputs are the words of a sentence, and its rows are sentences, not labels."""
    return Task(
        name=name,
        title=title,
        inputs=("tokens", second),
        label="names",
        labels=(),
        repository=repository,
        config="",
        revision=release,
        splits=MappingProxyType({"train": "train", "validation": held_out}),
        sizes=MappingProxyType({"train": train, "validation": validation}),
        head=head,
        metric=metric,
    )


def _glue(name, title, inputs, labels, train, validation, metric="accuracy", evaluated_on="validation") -> Task:
    return Task(
        name=name,
        title=title,
        inputs=inputs,
        label="label",
        labels=labels,
        repository="nyu-mll/glue",
        config=name,
        revision=GLUE_REVISION,
        splits=MappingProxyType({"train": "train", "validation": evaluated_on}),
        sizes=MappingProxyType({"train": train, "validation": validation}),
        metric=metric,
    )


_PAIR = ("sentence1", "sentence2")
_ENTAILMENT = ("entailment", "not_entailment")

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _glue("rte", "RTE", _PAIR, _ENTAILMENT, 2_490, 277),
        _glue("mrpc", "MRPC", _PAIR, ("not_equivalent", "equivalent"), 3_668, 408),
        _glue("sst2", "SST-2", ("sentence",), ("negative", "positive"), 67_349, 872),
        _glue(
            "mnli",
            "MNLI",
            ("premise", "hypothesis"),
            ("entailment", "neutral", "contradiction"),
            392_702,
            9_815,
            evaluated_on="validation_matched",
        ),
        _glue("qnli", "QNLI", ("question", "sentence"), _ENTAILMENT, 104_743, 5_463),
        _glue("cola", "CoLA", ("sentence",), ("unacceptable", "acceptable"), 8_551, 1_043, metric="matthews"),
        Task(
            name="squad",
            title="SQuAD",
            inputs=("question", "context"),
            label="answers",
            labels=(),
            repository="rajpurkar/squad",
            config="plain_text",
            revision=SQUAD_REVISION,
            splits=MappingProxyType({"train": "train", "validation": "validation"}),
            sizes=MappingProxyType({"train": 87_599, "validation": 10_570}),
            head="span",
            metric="exact-match-f1",
        ),
        Task(
            name="trec",
            title="TREC-50",
            inputs=("text",),
            label="fine_label",
            labels=(),
            repository="CogComp/trec",
            config="default",
            revision=TREC_REVISION,
            splits=MappingProxyType({"train": "train", "validation": "test"}),
            sizes=MappingProxyType({"train": 5_452, "validation": 500}),
        ),
        _words("pos", "POS", "token", PUD, "r2.7", "test", 800, 200),
        _words("dep", "DEP", "token-pair", PUD, "r2.7", "test", 800, 200),
        _words("pos-ewt", "POS (EWT)", "token", EWT, "r2.16", "validation", 12_544, 2_001),
        _words("dep-ewt", "DEP (EWT)", "token-pair", EWT, "r2.16", "validation", 12_544, 2_001),
        _words("parsing", "Parsing", "biaffine", EWT, "r2.16", "validation", 12_544, 2_001, "heads", "las"),
        _words("ps-role", "PS-role", "token", STREUSLE, "v4.2", "test", 1_857, 249),
        _words("ps-fxn", "PS-fxn", "token", STREUSLE, "v4.2", "test", 1_857, 249),
        Task(
            name="wikitext",
            title="WikiText-2",
            inputs=("text",),
            label="",
            labels=(),
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


def find(name: str) -> Task:
    """The task of that name.

    Raises:
        ValueError: there is none; the sentence lists those there are.

    Example:
        >>> find("mrpc").labels
        ('not_equivalent', 'equivalent')
    """
    if name not in TASKS:
        raise ValueError(f"There is no task {name!r}: choose among {', '.join(sorted(TASKS))}.")
    return TASKS[name]
