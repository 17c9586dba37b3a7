"""Treebanks, whose files' hashes are checked, and the tables of the tasks on words that are made of them: parts of
speech, dependency relations, trees, prepositions.

A row of a treebank is one sentence: ``tokens`` (its words), ``upos``, ``heads`` (0 is the root), ``deprels``. A row of
STREUSLE's prepositions is one single-token preposition: ``tokens``, ``index``, ``role`` (scene role), ``function``.
"""

from functools import cache, partial
from itertools import groupby

import conllu
import pandas as pd

import toyworld
from fivelenses.catalogue import CORPORA, find
from fivelenses.tasks.sources import raw_text

PUD_TRAINING_SENTENCES = 800

_CONLLULEX = "id form lemma upos xpos feats head deprel deps misc smwe lexcat lexlemma ss ss2 wmwe wcat wlemma lextag"
_PREPOSITIONAL = ("P", "PRON.POSS", "INF.P", "POSS")


@cache
def read_treebank(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of `pud` (its first 800 sentences against the last 200), `ewt` or `streusle`, or of what the toy world
    has in their place.

    Example:
        >>> list(read_treebank("ewt", "toyworld"))
        ['train', 'validation', 'test']
    """
    if source == "toyworld":
        return toyworld.table("prepositions" if name == "streusle" else "treebank")
    parse = parse_conllulex if name == "streusle" else parse_conllu
    tables = {split: parse(raw_text(name, split)) for split in CORPORA[name]["splits"]}
    if name == "pud":
        first = tables["all"].index < PUD_TRAINING_SENTENCES
        return {"train": tables["all"][first], "test": tables["all"][~first].reset_index(drop=True)}
    return tables


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


def parse_conllulex(text: str) -> pd.DataFrame:
    """The prepositions of a text in STREUSLE's 19-column format, one row per preposition.

    These are words of four lexical categories (P, PRON.POSS, INF.P, POSS) whose role starts with ``p.``; words inside a
    strong multiword expression are left out.
    """
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
    """The splits of a task on words, by the names of the source's splits, with one row per sentence.

    Returns:
        ``tokens``, the words; ``units``, what is labelled, each a list of one word (counted from 0) or of two (head and
        dependent); ``names``, the label of each unit. Parsing labels every word and has ``heads`` instead of units; its
        relations are universal ones: `nsubj:pass` is `nsubj`.

    Example:
        >>> row = word_tables("dep", "toyworld")["train"].iloc[0]
        >>> row["units"][0], row["names"][0]
        ([2, 0], 'det')
    """
    frames = read_treebank(find(name).treebank, source)
    return {split: _READERS[name](frame) for split, frame in frames.items()}


def _words(frame: pd.DataFrame) -> pd.DataFrame:
    units = [[[word] for word in range(len(tokens))] for tokens in frame["tokens"]]
    return pd.DataFrame({"tokens": frame["tokens"], "units": units, "names": frame["upos"]})


def _arcs(frame: pd.DataFrame) -> pd.DataFrame:
    """Every word but the root, after its head."""
    rows = []
    for tokens, heads, relations in zip(frame["tokens"], frame["heads"], frame["deprels"], strict=True):
        arcs = [[head - 1, word] for word, head in enumerate(heads) if head > 0]
        rows.append((tokens, arcs, [relations[word] for _, word in arcs]))
    return pd.DataFrame(rows, columns=["tokens", "units", "names"])


def _trees(frame: pd.DataFrame) -> pd.DataFrame:
    names = [[relation.partition(":")[0] for relation in relations] for relations in frame["deprels"]]
    return pd.DataFrame({"tokens": frame["tokens"], "heads": frame["heads"], "names": names})


def _prepositions(frame: pd.DataFrame, annotation: str) -> pd.DataFrame:
    """All prepositions of a sentence, which are in neighbouring rows, in one row."""
    rows = []
    for tokens, group in groupby(frame.itertuples(index=False), key=lambda row: tuple(row.tokens)):
        units, names = zip(*(([row.index], getattr(row, annotation)) for row in group), strict=True)
        rows.append((list(tokens), list(units), list(names)))
    return pd.DataFrame(rows, columns=["tokens", "units", "names"])


_READERS = {
    "pos": _words,
    "dep": _arcs,
    "parsing": _trees,
    "ps-role": partial(_prepositions, annotation="role"),
    "ps-fxn": partial(_prepositions, annotation="function"),
}
