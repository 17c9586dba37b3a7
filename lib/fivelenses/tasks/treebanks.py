"""Tasks that label words, or pairs of words, inside sentences (parts of speech, dependency relations, prepositions),
and the treebanks that they are read from, whose files' hashes are checked.

A row of a treebank is one sentence: ``tokens`` (its words), ``upos``, ``heads`` (0 is the root), ``deprels``. A row of
STREUSLE's prepositions is one single-token preposition: ``tokens``, ``index``, ``role`` (scene role), ``function``.

Every task on words is one table: ``tokens``, the words of a sentence; ``units``, what is labelled, each a list of one
word (counted from 0) or of two (head and dependent); ``names``, the label of each unit. Parsing labels every word and
has ``heads`` instead of units.
"""

from collections.abc import Sequence
from functools import cache
from itertools import groupby

import conllu
import datasets
import pandas as pd
from transformers import PreTrainedTokenizerBase

import toyworld
from fivelenses.catalogue import TREEBANK_RELEASES, find
from fivelenses.tasks.encoding import encode_words, select
from fivelenses.tasks.parsing import tree_table
from fivelenses.tasks.sources import RawFile, SourceError, raw_splits, raw_text

TREEBANKS: dict[str, dict[str, RawFile]] = {
    "pud": raw_splits(
        *TREEBANK_RELEASES["pud"],
        "en_pud-ud-{}.conllu",
        all=("test", "e312f9f0273b51634e1b32b7f8c3122341c168a22713a5eefe2d2fbe15ca6545"),
    ),
    "ewt": raw_splits(
        *TREEBANK_RELEASES["ewt"],
        "en_ewt-ud-{}.conllu",
        train=("train", "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b"),
        validation=("dev", "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6"),
        test=("test", "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd"),
    ),
}
STREUSLE: dict[str, RawFile] = raw_splits(
    *TREEBANK_RELEASES["streusle"],
    "{0}/streusle.ud_{0}.conllulex",
    train=("train", "9ff20e4571bde3322fa09d5b99ca623354c763e3513ba4c6c84fa550dc2ed573", "6cdf4861"),
    validation=("dev", "f2c87fa6f7033b20668d7fb60ae1f10154275c6cbb1f5ab2d78fa82559529b8d"),
    test=("test", "cea04218b6c195bc4fc37f85a547c9f864ae2a07ebd9eaf788b4a54268686e90"),
)

_CONLLULEX = "id form lemma upos xpos feats head deprel deps misc smwe lexcat lexlemma ss ss2 wmwe wcat wlemma lextag"
_PREPOSITIONAL = ("P", "PRON.POSS", "INF.P", "POSS")
PUD_TRAINING_SENTENCES = 800


def treebank(name: str) -> dict[str, pd.DataFrame]:
    """The splits of a treebank: `pud` (first 800 sentences against the last 200) or `ewt` (its own three splits)."""
    if name not in TREEBANKS:
        raise SourceError(f"There is no treebank {name!r}: choose among {', '.join(sorted(TREEBANKS))}.")
    tables = {split: parse_conllu(raw_text(file)) for split, file in TREEBANKS[name].items()}
    if name == "pud":
        whole = tables["all"]
        first = whole.iloc[:PUD_TRAINING_SENTENCES].reset_index(drop=True)
        return {"train": first, "test": whole.iloc[PUD_TRAINING_SENTENCES:].reset_index(drop=True)}
    return tables


def treebank_of(source: str) -> dict[str, pd.DataFrame]:
    """The treebank of a source that has three splits: the toy world's, or EWT.

    Example:
        >>> list(treebank_of("toyworld"))
        ['train', 'validation', 'test']
    """
    return toyworld.table("treebank") if source == "toyworld" else treebank("ewt")


def words_of(sentence: conllu.TokenList) -> list[dict]:
    """The rows of a parsed sentence that are words, without multiword tokens and empty nodes."""
    return [word for word in sentence if isinstance(word["id"], int)]


def parse_conllu(text: str) -> pd.DataFrame:
    r"""CoNLL-U text as a table with one row per sentence.

    Example:
        >>> line = "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
        >>> parse_conllu(line).loc[0, "deprels"]
        ['root']
    """
    rows = []
    for sentence in conllu.parse(text):
        words = words_of(sentence)
        rows.append([[word[field] for word in words] for field in ("form", "upos", "head", "deprel")])
    return pd.DataFrame(rows, columns=["tokens", "upos", "heads", "deprels"])


def prepositions() -> dict[str, pd.DataFrame]:
    """Single-token prepositions and possessives of STREUSLE 4.2 with a supersense, per split.

    These are words of four lexical categories (P, PRON.POSS, INF.P, POSS) whose role starts with ``p.``; words inside a
    strong multiword expression are left out.
    """
    return {split: parse_conllulex(raw_text(file)) for split, file in STREUSLE.items()}


def parse_conllulex(text: str) -> pd.DataFrame:
    """The prepositions of a text in STREUSLE's 19-column format, one row per preposition."""
    rows = []
    for sentence in conllu.parse(text, fields=_CONLLULEX.split(), field_parsers={"head": lambda line, i: line[i]}):
        words = words_of(sentence)
        tokens = [word["form"] for word in words]
        for index, word in enumerate(words):
            role, function = word["ss"] or "_", word["ss2"] or "_"
            if word["lexcat"] in _PREPOSITIONAL and word["smwe"] in (None, "_") and role.startswith("p."):
                rows.append({"tokens": tokens, "index": index, "role": role[2:], "function": function[2:]})
    return pd.DataFrame(rows, columns=["tokens", "index", "role", "function"])


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
def _read(name: str) -> dict[str, pd.DataFrame]:
    return prepositions() if name == "streusle" else treebank(name)


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
    labelled: dict[int, list[tuple[list[int], int]]] = {}
    for row, (units, names) in enumerate(zip(table["units"], table["names"], strict=True)):
        present = set(columns["word_ids"][row])
        for unit, name in zip(units, names, strict=True):
            if present.issuperset(unit):
                labelled.setdefault(row, []).append((unit, number[name]))
    targets = {
        "units": [[unit for unit, _ in of_row] for of_row in labelled.values()],
        "labels": [[label for _, label in of_row] for of_row in labelled.values()],
    }
    return datasets.Dataset.from_dict(select(columns, list(labelled)) | targets)
