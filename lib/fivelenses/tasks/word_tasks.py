"""Tasks that label words, or pairs of words, inside sentences: parts of speech, dependency relations, prepositions.

Every such task is one table: ``tokens``, the words of a sentence; ``units``, what is labelled, each a list of one word
(counted from 0) or of two (head and dependent); ``names``, the label of each unit. Parsing labels every word and has
``heads`` instead of units.
"""

from collections.abc import Sequence
from functools import cache
from itertools import groupby

import datasets
import pandas as pd
from transformers import PreTrainedTokenizerBase

import toyworld
from fivelenses.catalogue import find
from fivelenses.tasks import treebanks
from fivelenses.tasks.encoding import encode_words, select
from fivelenses.tasks.parsing import tree_table


def word_tables(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of a word task with the columns `tokens`, `units`, `names`, by the names of the source's splits.

    Example:
        >>> row = word_tables("dep", "toyworld")["train"].iloc[0]
        >>> row["units"][0], row["names"][0]
        ([2, 0], 'det')
    """
    task = find(name)
    frames = _toy(task.treebank) if source == "toyworld" else _read(task.treebank)
    by_annotation = {"upos": _words, "deprels": tree_table if task.head == "biaffine" else _arcs}
    to_units = by_annotation.get(task.annotation, _prepositions)
    return {split: to_units(frame, task.annotation) for split, frame in frames.items()}


def _toy(treebank: str) -> dict[str, pd.DataFrame]:
    return toyworld.table("prepositions" if treebank == "streusle" else "treebank")


@cache
def _read(treebank: str) -> dict[str, pd.DataFrame]:
    return treebanks.prepositions() if treebank == "streusle" else treebanks.treebank(treebank)


def _words(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    units = [[[word] for word in range(len(tokens))] for tokens in frame["tokens"]]
    return pd.DataFrame({"tokens": frame["tokens"], "units": units, "names": frame[column]})


def _arcs(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Every word but the root, after its head."""
    rows = []
    for tokens, heads, names in zip(frame["tokens"], frame["heads"], frame[column], strict=True):
        arcs = [[head - 1, word] for word, head in enumerate(heads) if head > 0]
        rows.append((tokens, arcs, [names[word] for _, word in arcs]))
    return pd.DataFrame(rows, columns=["tokens", "units", "names"])


def _prepositions(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """All prepositions of a sentence, which are in neighbouring rows, in one row."""
    rows = []
    for tokens, group in groupby(frame.itertuples(index=False), key=lambda row: tuple(row.tokens)):
        of_sentence = list(group)
        rows.append((list(tokens), [[row.index] for row in of_sentence], [getattr(row, column) for row in of_sentence]))
    return pd.DataFrame(rows, columns=["tokens", "units", "names"])


def encode_units(
    table: datasets.Dataset, labels: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Sentences as tokens with `word_ids`, the `units` and their `labels`.

    A unit with a word that was cut off, or that the tokeniser drops, is left out, and so is a sentence without units.

    Args:
        table: `tokens`, `units`, `names`.
        labels: the names in the order of their numbers.
        max_length: tokens that a sentence is cut to.
    """
    number = {name: place for place, name in enumerate(labels)}
    columns = encode_words(table["tokens"], tokenizer, max_length)
    kept: dict[int, list[tuple[list[int], int]]] = {}
    for row, (units, names) in enumerate(zip(table["units"], table["names"], strict=True)):
        present = set(columns["word_ids"][row])
        for unit, name in zip(units, names, strict=True):
            if present.issuperset(unit):
                kept.setdefault(row, []).append((unit, number[name]))
    targets = {
        "units": [[unit for unit, _ in of_row] for of_row in kept.values()],
        "labels": [[label for _, label in of_row] for of_row in kept.values()],
    }
    return datasets.Dataset.from_dict(select(columns, list(kept)) | targets)
