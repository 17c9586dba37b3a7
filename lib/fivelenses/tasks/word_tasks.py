"""Tasks that label words, or pairs of words, inside sentences: parts of speech, dependency relations, prepositions.

Every such task is one table: ``tokens``, the words of a sentence; ``units``, the places that are labelled, each a list
of one word (counted from 0) or of two (head and dependent); ``names``, the label of each unit. Parsing labels every
word and has ``heads`` in the place of units.
"""

from functools import cache
from itertools import groupby

import pandas as pd

import toyworld
from fivelenses.tasks import treebanks
from fivelenses.tasks.parsing import tree_table

# Task to the treebank it is read from and to the column that holds its labels.
READ_FROM = {
    "pos": ("pud", "upos"),
    "dep": ("pud", "deprels"),
    "pos-ewt": ("ewt", "upos"),
    "dep-ewt": ("ewt", "deprels"),
    "ps-role": ("streusle", "role"),
    "ps-fxn": ("streusle", "function"),
    "parsing": ("ewt", "deprels"),
}


def word_tables(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of a word task with the columns `tokens`, `units`, `names`, by the names of the source's splits.

    Raises:
        SourceError: a treebank that cannot be had.
        ValueError: trees to parse that are none.

    Example:
        >>> row = word_tables("dep", "toyworld")["train"].iloc[0]
        >>> row["units"][0], row["names"][0]
        ([2, 0], 'det')
    """
    treebank, column = READ_FROM[name]
    frames = _toy(treebank) if source == "toyworld" else _read(treebank)
    to_units = {"upos": _words, "deprels": tree_table if name == "parsing" else _arcs}.get(column, _prepositions)
    return {split: to_units(frame, column) for split, frame in frames.items()}


def _toy(treebank: str) -> dict[str, pd.DataFrame]:
    return toyworld.table("prepositions" if treebank == "streusle" else "treebank")


@cache
def _read(treebank: str) -> dict[str, pd.DataFrame]:
    return treebanks.prepositions() if treebank == "streusle" else treebanks.treebank(treebank)


def _words(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    units = [[[word] for word in range(len(tokens))] for tokens in frame["tokens"]]
    return pd.DataFrame({"tokens": frame["tokens"], "units": units, "names": frame[column]})


def _arcs(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Every word but the root, with its head before it."""
    rows = []
    for tokens, heads, names in zip(frame["tokens"], frame["heads"], frame[column], strict=True):
        arcs = [(head - 1, word) for word, head in enumerate(heads) if head > 0]
        rows.append((tokens, [list(arc) for arc in arcs], [names[word] for _, word in arcs]))
    return pd.DataFrame(rows, columns=["tokens", "units", "names"])


def _prepositions(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """The prepositions of one sentence, which stand in neighbouring rows, in one row."""
    rows = []
    for tokens, group in groupby(frame.itertuples(index=False), key=lambda row: tuple(row.tokens)):
        of_sentence = list(group)
        rows.append((list(tokens), [[row.index] for row in of_sentence], [getattr(row, column) for row in of_sentence]))
    return pd.DataFrame(rows, columns=["tokens", "units", "names"])
