"""Examples of a task: its splits as tables, and their encoding for an encoder; running text."""

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import datasets
import huggingface_hub
import numpy as np
from transformers import PreTrainedTokenizerBase

import toyworld
from fivelenses.catalogue import Task, find
from fivelenses.tasks import own, subset
from fivelenses.tasks.encoding import encode_trees, encode_units, encode_windows
from fivelenses.tasks.sources import SourceError, mirror, read_hub
from fivelenses.tasks.treebanks import word_tables

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")  # an abbreviation is taken for one, too
# WikiText writes an article's title as `= Title =`, a section's with more signs, and `well @-@ known`, `10 @,@ 000`.
ARTICLE = re.compile(r"= [^=].*[^=] =$|= [^=] =$")
SPLIT_MARK = re.compile(r" @([-,.])@ ")

# No bars are drawn, and the hub's client says nothing of each retry.
datasets.disable_progress_bars()
huggingface_hub.utils.logging.set_verbosity_error()


@dataclass(frozen=True)
class TaskData:
    """The splits of one task, by our names for them, from one source (`toyworld`, `hub`, or `own` for a task of the
    reader's own), with the label names in the order of their integers.
    """

    task: Task
    source: str
    splits: Mapping[str, datasets.Dataset] = field(hash=False)
    labels: tuple[str, ...]

    def provenance(self, split: str) -> str:
        """Whether a split is whole, a sample, or the toy world's, in words."""
        rows = self.splits[split].num_rows
        if self.source == "toyworld":
            return f"toy world, {rows:,} examples"
        whole = self.task.sizes[split]
        return f"whole, {rows:,} examples" if rows == whole else f"sample, {rows:,} of {whole:,} examples"

    def digest(self, split: str) -> str:
        """A hash of a split's inputs and labels: equal tables, equal digests, whatever the source."""
        content, columns = hashlib.sha256(), filter(None, (*self.task.inputs, self.task.label))
        for row in zip(*(self.splits[split][column] for column in columns), strict=True):
            content.update(repr(row).encode("utf-8"))
        return content.hexdigest()[:16]


def load(name: str, source: str, splits: tuple[str, ...] | None = None) -> TaskData:
    """A task's splits from `toyworld` or `hub` (FIVELENSES_MIRROR names a folder that replaces the hub).

    Example:
        >>> data = load("mrpc", "toyworld")
        >>> sorted(data.splits), data.labels
        (['train', 'validation'], ('not_equivalent', 'equivalent'))
    """
    task = find(name)
    splits, labels = splits or tuple(task.splits), task.labels
    if task.own:
        source, frames = "own", {split: own.table(task, split) for split in splits}
    elif task.treebank:
        every = word_tables(name, source)
        frames = {split: every[there] for split, there in task.splits.items()}
        # Those of all splits in alphabetical order, as the table lists none.
        labels = tuple(sorted({label for frame in frames.values() for names in frame["names"] for label in names}))
    elif source == "toyworld":
        # The toy world's second domain takes the place of Wikipedia.
        every = toyworld.table("second_domain" if name == "wikitext" else name)
        frames = {split: every[split if split in every else task.splits[split]] for split in splits}
        labels = tuple(toyworld.LABELS["trec_fine"]) if name == "trec" else labels
    else:
        return _hub_data(task, splits)
    tables = {split: datasets.Dataset.from_pandas(frames[split], preserve_index=False) for split in splits}
    return TaskData(task, source, tables, labels)


def _hub_data(task: Task, splits: tuple[str, ...]) -> TaskData:
    where = (mirror(), task.repository, task.config, task.revision)
    tables = {split: read_hub(*where, task.splits[split]) for split in splits}
    for split, table in tables.items():
        # Running text has no label.
        if missing := ", ".join(sorted({*task.inputs, task.label} - {*table.column_names, ""})):
            raise SourceError(f"{task.title} {split} has no column {missing}: it is not the hub's table.")
    labels = task.labels or tuple(getattr(table.features.get(task.label), "names", ()))
    return TaskData(task, "hub", tables, labels)


def with_examples(data: TaskData, examples: int | None, seed: int) -> TaskData:
    """The task with so many examples of its training split at most (None: all), stratified by label where each example
    has one.
    """
    if examples is None:
        return data
    table = data.splits["train"]
    labels = table[data.task.label] if data.task.head == "sequence" else np.zeros(table.num_rows, dtype=int)
    chosen = table.select(subset(np.array(labels), examples, seed))
    return dataclasses.replace(data, splits={**data.splits, "train": chosen})


def encode(data: TaskData, split: str, tokenizer: PreTrainedTokenizerBase, max_length: int) -> datasets.Dataset:
    """A split as tokens, cut to `max_length` with both inputs and special tokens: `input_ids`, `attention_mask`,
    `token_type_ids` where used, and `labels`; tasks on words, trees and questions have the columns of `encode_units`,
    `encode_trees` and `encode_windows` in :mod:`fivelenses.tasks.encoding`.
    """
    table, columns = data.splits[split], data.task.inputs
    if data.task.head in ("token", "token-pair"):
        return encode_units(table, data.labels, tokenizer, max_length)
    if data.task.head == "biaffine":
        return encode_trees(table, data.labels, tokenizer, max_length)
    if data.task.head == "span":
        return encode_windows(table, tokenizer, max_length)
    encoded = tokenizer(*(list(table[column]) for column in columns), truncation=True, max_length=max_length)
    return datasets.Dataset.from_dict({**encoded, "labels": list(table[data.task.label])})


def wikipedia_text(source: str) -> list[list[str]]:
    """The sentences of each article of WikiText-2's validation split, without headings and marks, or of each story of
    the toy world's second domain.

    Example:
        >>> wikipedia_text("toyworld")[0][0]
        'Magnus was loading his oar in a huge barrel quickly.'
    """
    table = load("wikitext", source, ("validation",)).splits["validation"].to_pandas()
    if "document" in table:
        return [list(sentences) for _, sentences in table.groupby("document", sort=False)["text"]]
    documents: list[list[str]] = []
    for line in table["text"].str.strip():
        if ARTICLE.match(line):
            documents.append([])
        elif line and not line.startswith("="):
            documents[-1] += SENTENCE_END.split(SPLIT_MARK.sub(r"\1", line))
    return [document for document in documents if document]
