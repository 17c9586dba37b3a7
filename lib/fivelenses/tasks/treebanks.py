"""Universal Dependencies treebanks and STREUSLE prepositions, from raw files with a hash.

A treebank row is one sentence: ``tokens``, ``upos``, ``heads`` (0 is the root), ``deprels``. Only rows with an
integer id are
words, except that `empty_nodes=True` also keeps ``8.1`` rows, as the sizes printed by Zhou and Srikumar need for POS.
A preposition row is one single-token preposition: ``tokens``, ``index``, ``role`` (scene role), ``function``.
"""

import conllu
import pandas as pd

import toyworld
from fivelenses.tasks.sources import RawFile, SourceError, raw_text

_EWT = "UniversalDependencies/UD_English-EWT"
_STREUSLE = "nert-nlp/streusle"

TREEBANKS: dict[str, dict[str, RawFile]] = {
    "pud": {
        "all": RawFile(
            "UniversalDependencies/UD_English-PUD",
            "r2.7",
            "en_pud-ud-test.conllu",
            "e312f9f0273b51634e1b32b7f8c3122341c168a22713a5eefe2d2fbe15ca6545",
        )
    },
    "ewt": {
        "train": RawFile(
            _EWT,
            "r2.16",
            "en_ewt-ud-train.conllu",
            "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
        ),
        "validation": RawFile(
            _EWT, "r2.16", "en_ewt-ud-dev.conllu", "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6"
        ),
        "test": RawFile(
            _EWT, "r2.16", "en_ewt-ud-test.conllu", "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd"
        ),
    },
}

STREUSLE: dict[str, RawFile] = {
    "train": RawFile(
        _STREUSLE,
        "v4.2",
        "train/streusle.ud_train.conllulex",
        "9ff20e4571bde3322fa09d5b99ca623354c763e3513ba4c6c84fa550dc2ed573",
        git_blob="6cdf4861",
    ),
    "validation": RawFile(
        _STREUSLE,
        "v4.2",
        "dev/streusle.ud_dev.conllulex",
        "f2c87fa6f7033b20668d7fb60ae1f10154275c6cbb1f5ab2d78fa82559529b8d",
    ),
    "test": RawFile(
        _STREUSLE,
        "v4.2",
        "test/streusle.ud_test.conllulex",
        "cea04218b6c195bc4fc37f85a547c9f864ae2a07ebd9eaf788b4a54268686e90",
    ),
}

_CONLLULEX = [
    "id",
    "form",
    "lemma",
    "upos",
    "xpos",
    "feats",
    "head",
    "deprel",
    "deps",
    "misc",
    "smwe",
    "lexcat",
    "lexlemma",
    "ss",
    "ss2",
    "wmwe",
    "wcat",
    "wlemma",
    "lextag",
]
_PREPOSITIONAL = ("P", "PRON.POSS", "INF.P", "POSS")
PUD_TRAINING_SENTENCES = 800


def treebank(name: str) -> dict[str, pd.DataFrame]:
    """The splits of a treebank: `pud` (first 800 sentences against the last 200) or `ewt` (its own three splits).

    Raises:
        SourceError: no such treebank, or its file cannot be had.
    """
    if name not in TREEBANKS:
        raise SourceError(f"There is no treebank {name!r}: choose among {', '.join(sorted(TREEBANKS))}.")
    tables = {split: parse_conllu(raw_text(file)) for split, file in TREEBANKS[name].items()}
    if name == "pud":
        whole = tables["all"]
        first = whole.iloc[:PUD_TRAINING_SENTENCES].reset_index(drop=True)
        return {"train": first, "test": whole.iloc[PUD_TRAINING_SENTENCES:].reset_index(drop=True)}
    return tables


def treebank_of(source: str) -> dict[str, pd.DataFrame]:
    """The treebank with three splits of a source: the toy world's, or EWT.

    Raises:
        SourceError: a file that cannot be had.

    Example:
        >>> list(treebank_of("toyworld"))
        ['train', 'validation', 'test']
    """
    return toyworld.table("treebank") if source == "toyworld" else treebank("ewt")


def parse_conllu(text: str, empty_nodes: bool = False) -> pd.DataFrame:
    r"""CoNLL-U text as a table with one row a sentence.

    Example:
        >>> line = "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
        >>> parse_conllu(line).loc[0, "deprels"]
        ['root']
    """
    rows = []
    for sentence in conllu.parse(text):
        words = [word for word in sentence if isinstance(word["id"], int) or (empty_nodes and word["id"][1] == ".")]
        rows.append(
            {
                "tokens": [word["form"] for word in words],
                "upos": [word["upos"] for word in words],
                "heads": [word["head"] for word in words],
                "deprels": [word["deprel"] for word in words],
            }
        )
    return pd.DataFrame(rows, columns=["tokens", "upos", "heads", "deprels"])


def prepositions() -> dict[str, pd.DataFrame]:
    """Single-token prepositions and possessives of STREUSLE 4.2 with a supersense, per split.

    Four lexical categories (P, PRON.POSS, INF.P, POSS) whose role starts with ``p.``; words inside a strong
    multiword expression are
    left out.
    """
    return {split: parse_conllulex(raw_text(file)) for split, file in STREUSLE.items()}


def parse_conllulex(text: str) -> pd.DataFrame:
    """The prepositions of a text in STREUSLE's 19-column format, one row each."""
    rows = []
    for sentence in conllu.parse(text, fields=_CONLLULEX, field_parsers={"head": lambda line, i: line[i]}):
        words = [word for word in sentence if isinstance(word["id"], int)]
        tokens = [word["form"] for word in words]
        for index, word in enumerate(words):
            role, function = word["ss"] or "_", word["ss2"] or "_"
            if word["lexcat"] in _PREPOSITIONAL and word["smwe"] in (None, "_") and role.startswith("p."):
                rows.append({"tokens": tokens, "index": index, "role": role[2:], "function": function[2:]})
    return pd.DataFrame(rows, columns=["tokens", "index", "role", "function"])
