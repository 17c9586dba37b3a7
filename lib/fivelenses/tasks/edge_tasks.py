"""The tasks of edge probing: one label or several for one or two spans of words, by name and source.

OntoNotes, which most of the published tasks are made of, is licensed. Where FIVELENSES_ONTONOTES names a folder that
holds it in the format of the edge-probing suite (``<task>/train.json``, ``development.json``, ``test.json``), it is
read; otherwise open data with the same annotation replace it, which `EdgeTask.data` names.

Every reader of a corpus returns rows of one form: ``tokens``, the words of a text; ``span1`` and ``span2``, [start,
end) in words, the second None where a single span is labelled; ``labels``, a list.
"""

import io
import json
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import conllu
import pandas as pd

import toyworld
from fivelenses.catalogue import find_edge_task
from fivelenses.tasks.sources import RawFile, SourceError, raw_bytes, raw_splits, raw_text
from fivelenses.tasks.treebanks import read_treebank, words_of

ONTONOTES = "FIVELENSES_ONTONOTES"
SPLITS = ("train", "validation", "test")

_SUITE = "mohsenfayyaz/edge-probing-datasets"
FILES: dict[str, dict[str, RawFile]] = {
    "gum": raw_splits(
        "UniversalDependencies/UD_English-GUM",
        "r2.16",
        "en_gum-ud-{}.conllu",
        train=("train", "ed0a0b32d4a6f7e6154a321d19bc9b7325124a0434cad2fd8143018059d6321c"),
        validation=("dev", "581997015a2d878ad49619032d265a9753e1b6b03d75ca18b04a00bb9ee8991d"),
        test=("test", "fe95c0e744f81cdf2a307ce522604ecc05cd359c7c6d1abaa3a46c85d024f34c"),
    ),
    "ewt-2.2": raw_splits(
        "UniversalDependencies/UD_English-EWT",
        "r2.2",
        "en_ewt-ud-{}.conllu",
        train=("train", "74001b5c55bc997fc63394c46ed36207f0107d83e0e57c89699733b5dc999eae"),
        validation=("dev", "9e0340da5b4ede956b52c4ad2b6ce2a3192c1c7e14d5addbd2f0679a41864432"),
        test=("test", "849d1814228f7b124daf22c1a1bd7428fcf6d2f3337698f714fe2ea7f0b7e600"),
    ),
    "relations": raw_splits(
        _SUITE,
        "",
        "data/semeval_data/{}.json",
        train=("train.0.85", "c8fee124fe8b1b2b143eb6e6ce0f4421e52a5285c74dc4bc6770c1c185737246"),
        validation=("dev", "8ac3ce8845790c593c88dac1a9c822d678fb78b969cc0a4a4ee08dcb983e448b"),
        test=("test", "427831f6fc8b5fc4592ca7e71ed9a76ee5bd8677bbb52fc194ad5d1e9f79f605"),
    ),
    "spr": raw_splits(
        _SUITE,
        "",
        "data/spr2_data/edges.{}.json",
        train=("train", "d572327b2c507ce6daafe411fbcdc5edba0a056ceaf01aa0c4e4946dee270b00"),
        validation=("dev", "a7a53ed6d7a525fdb5d256f297cf38334260930d5d6f49d090bee08e53516821"),
        test=("test", "6e1f00ed84a616379b10dfedb8fb7741674a5fe88c00380fa845d4002be71c33"),
    ),
    "coreference-dpr": raw_splits(
        _SUITE,
        "",
        "data/dpr_data/{}.json",
        train=("train", "13f6b98729e4fcba0217d1ba48c660e541a2eda642ce9e62f644b073e567ba59"),
        validation=("dev", "6b0524298c2385e537d8cd788c299eaaedd863c68225f115da8391cd9813e540"),
        test=("test", "fcb836006ff661cf278101b6d79a97da2655ca8e1d818a34fd8e5b750a0e0c1c"),
    ),
}
# Both are put together from many files of their repositories, so that a mirror alone has them.
GUM_TREES = RawFile(
    "amir-zeldes/gum", "V11.1.0", "const.tar", "e07fd8b0c777a1652858b600ac3ed32243c167cb219f81099597e5cb29cd54a1"
)
PROPBANK = RawFile(
    "propbank/propbank-release",
    "",
    "data/google/ewt.gold_skel",
    "de6c69af96e5e9501b070aa78fc31fb57019d5555af44178971d2622ec5c2617",
)

# `(12-person-new-…` opens a mention, which ends at the same word with `)` or at a later one with `12)`; `12[1/2]` is
# one part of a discontinuous mention.
_MENTION = re.compile(r"\((\d+)(\[[^\]]*\])?-(\w+)[^()]*(\))?|(\d+)(\[[^\]]*\])?\)")
# Two editions of a sentence count as the same where at least this share of their part-of-speech tags agrees.
SAME_SENTENCE = 0.8

Row = dict
Span = tuple[int, int]


def data_behind(name: str, source: str) -> str:
    """What a task is read from, as a table prints it."""
    task = find_edge_task(name)
    if source == "toyworld":
        return "toy world"
    return "OntoNotes" if task.in_ontonotes and os.environ.get(ONTONOTES) else task.data


@cache
def edge_table(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of an edge-probing task: `tokens`, `span1`, `span2` (None for one span), `labels` (a list).

    Refused: another task, or a file that cannot be had.

    Example:
        >>> edge_table("relations", "toyworld")["train"].loc[0, "labels"]
        ['entity-origin(e1,e2)']
    """
    if source == "toyworld":
        frames = toyworld.table(f"edge_{name.removesuffix('-dpr')}")
        return {split: _with_lists(frame) for split, frame in frames.items()}
    read = _ontonotes if data_behind(name, source) == "OntoNotes" else _open_data
    return {split: pd.DataFrame(read(name, split)) for split in SPLITS}


def _with_lists(frame: pd.DataFrame) -> pd.DataFrame:
    labels = [label if isinstance(label, list) else [label] for label in frame["label"]]
    return frame.drop(columns="label").assign(labels=labels)


def _ontonotes(name: str, split: str) -> list[Row]:
    folder = Path(os.environ[ONTONOTES]).expanduser()
    file = folder / name / f"{'development' if split == 'validation' else split}.json"
    if not file.is_file():
        raise SourceError(
            f"{ONTONOTES} names {folder}, which has no {file.relative_to(folder)}: put the edge-probing suite's file "
            "there, or unset the variable to read open data."
        )
    return edge_probing_json(file.read_text(encoding="utf-8"))


def _open_data(name: str, split: str) -> list[Row]:
    if name in ("pos", "dependencies"):
        read = parts_of_speech if name == "pos" else dependencies
        return read(read_treebank("ewt", "hub")[split])
    if name == "srl":
        return semantic_roles(raw_text(PROPBANK), raw_text(FILES["ewt-2.2"][split]))
    if name in FILES:
        return edge_probing_json(raw_text(FILES[name][split]))
    text = raw_text(FILES["gum"][split])
    if name == "constituents":
        documents: dict[str, list[list[str]]] = {}
        for identifier, words in _sentences(text):
            documents.setdefault(identifier.rpartition("-")[0], []).append(_forms(words))
        return [row for name, sentences in documents.items() for row in constituents(_gum_trees()[name], sentences)]
    return entities(text) if name == "entities" else coreference(text)


@cache
def _gum_trees() -> dict[str, str]:
    """The bracketed trees of each GUM document, by its name."""
    with tarfile.open(fileobj=io.BytesIO(raw_bytes(GUM_TREES))) as archive:
        files = [member for member in archive if member.isfile()]
        return {Path(one.name).stem: archive.extractfile(one).read().decode("utf-8") for one in files}


def _sentences(text: str) -> Iterator[tuple[str, list[dict]]]:
    """The identifier of each sentence of a CoNLL-U text, and its words with all their columns."""
    return ((sentence.metadata.get("sent_id", ""), words_of(sentence)) for sentence in conllu.parse(text))


def _forms(words: Iterable[dict]) -> list[str]:
    return [word["form"] for word in words]


def _row(tokens: list[str], span1: Span, span2: Span | None, labels: Iterable[str]) -> Row:
    return {"tokens": tokens, "span1": list(span1), "span2": span2 and list(span2), "labels": sorted(labels)}


# --- readers ----------------------------------------------------------------------------------------------------------


def edge_probing_json(text: str) -> list[Row]:
    r"""The format of the edge-probing suite: one JSON object per line, spans in words split at spaces.

    Refused: a span is outside its text; the message names the line.

    Example:
        >>> line = '{"text": "a red hen", "targets": [{"span1": [1, 2], "label": "ADJ"}]}'
        >>> edge_probing_json(line)[0]["labels"]
        ['ADJ']
    """
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = json.loads(line)
        tokens = entry["text"].split(" ")
        for target in entry["targets"]:
            spans = [tuple(target[name]) if target.get(name) else None for name in ("span1", "span2")]
            for start, end in filter(None, spans):
                if not 0 <= start < end <= len(tokens):
                    raise ValueError(
                        f"Line {number} labels words {(start, end)} of a text of {len(tokens)}: it is damaged."
                    )
            labels = target["label"] if isinstance(target["label"], list) else [target["label"]]
            rows.append(_row(tokens, *spans, labels))
    return rows


def parts_of_speech(sentences: pd.DataFrame) -> list[Row]:
    """Each word of a treebank with its universal part of speech."""
    return [
        _row(tokens, (place, place + 1), None, [tag])
        for tokens, tags in zip(sentences["tokens"], sentences["upos"], strict=True)
        for place, tag in enumerate(tags)
    ]


def dependencies(sentences: pd.DataFrame) -> list[Row]:
    """Each word of a treebank except the roots, with its head as the second span, and their relation."""
    columns = (sentences[name] for name in ("tokens", "heads", "deprels"))
    return [
        _row(tokens, (place, place + 1), (head - 1, head), [relation])
        for tokens, heads, relations in zip(*columns, strict=True)
        for place, (head, relation) in enumerate(zip(heads, relations, strict=True))
        if head
    ]


def _mentions(words: list[dict]) -> Iterator[tuple[str, str, Span]]:
    """The entity, its kind and the span of every mention that is continuous and inside the sentence."""
    open_mentions: dict[str, list[tuple[str, int]]] = {}
    for place, word in enumerate(words):
        for bracket in _MENTION.finditer((word["misc"] or {}).get("Entity") or ""):
            entity, part, kind, whole, closed, closed_part = bracket.groups()
            if part or closed_part:
                continue
            if closed is None and whole:
                yield entity, kind, (place, place + 1)
            elif closed is None:
                open_mentions.setdefault(entity, []).append((kind, place))
            elif open_mentions.get(closed):
                kind, start = open_mentions[closed].pop()
                yield closed, kind, (start, place + 1)


def entities(text: str) -> list[Row]:
    """Each mention of a GUM document with its kind."""
    return [
        _row(_forms(words), span, None, [kind]) for _, words in _sentences(text) for _, kind, span in _mentions(words)
    ]


def coreference(text: str) -> list[Row]:
    """Pairs of mentions inside a sentence of a GUM document: `coreferent` or `not`.

    A pair is taken if one of the two has a coreferent mention in the sentence, so that negative pairs are close, too.
    """
    rows = []
    for _, words in _sentences(text):
        tokens, mentions = _forms(words), sorted(_mentions(words), key=lambda mention: mention[2])
        named = [entity for entity, _, _ in mentions]
        repeated = {entity for entity in named if named.count(entity) > 1}
        for (first, _, span1), (second, _, span2) in combinations(mentions, 2):
            if {first, second} & repeated and span1 != span2:
                rows.append(_row(tokens, span1, span2, ["coreferent" if first == second else "not"]))
    return rows


def constituents(bracketed: str, sentences: list[list[str]]) -> list[Row]:
    """The phrases of a document's trees, without the root; a span that several phrases share has all their labels.

    Args:
        bracketed: trees in the bracketing of the Penn Treebank, one per sentence.
        sentences: the document's words, sentence by sentence; a tree with another number of leaves is left out.

    Example:
        >>> constituents("(ROOT (S (NP-SBJ (DT The) (NN hen)) (VP (VBZ sings))))", [["The", "hen", "sings"]])[0]
        {'tokens': ['The', 'hen', 'sings'], 'span1': [0, 3], 'span2': None, 'labels': ['S']}
    """
    rows = []
    for (phrases, leaves), tokens in zip(_trees(bracketed), sentences, strict=True):
        by_span: dict[Span, set[str]] = {}
        for label, span in phrases:
            if leaves == len(tokens) and label not in ("", "ROOT"):
                by_span.setdefault(span, set()).add(label)
        ordered = sorted(by_span.items(), key=lambda phrase: (phrase[0][0], -phrase[0][1]))
        rows += [_row(tokens, span, None, labels) for span, labels in ordered]
    return rows


def _trees(bracketed: str) -> Iterator[tuple[list[tuple[str, Span]], int]]:
    """The phrases (label without function, span) and the number of leaves of each tree."""
    stack: list[list] = []
    phrases, leaves = [], 0
    for opened, word in re.findall(r"\(\s*([^\s()]*)|([^\s()]+|\))", bracketed):
        if word == ")":
            label, start, is_word = stack.pop()
            if not is_word:
                phrases.append((label, (start, leaves)))
            if not stack:
                yield phrases, leaves
                phrases, leaves = [], 0
        elif word:
            stack[-1][2] = True
            leaves += 1
        else:
            stack.append([re.split(r"[-=]", opened)[0], leaves, False])


def semantic_roles(skeleton: str, treebank_text: str) -> list[Row]:
    """PropBank's predicates (first span) with their arguments (second span) and roles.

    A sentence is kept where the treebank's sentence has as many words and at least four fifths of the same tags.

    Args:
        skeleton: PropBank's columns without words.
        treebank_text: the treebank's sentences in CoNLL-U, with the words and their Penn tags.
    """
    sentences, rows = dict(_sentences(treebank_text)), []
    for block in skeleton.split("\n\n"):
        lines = [line.split() for line in block.splitlines() if line.strip()]
        if not lines:
            continue
        genre, name = lines[0][0].split("/")[2], lines[0][0].rpartition("/")[2].removesuffix(".xml")
        words = sentences.get(f"{genre}-{name}-{int(lines[0][1]) + 1:04d}", [])
        same = [line[4] == word["xpos"] for line, word in zip(lines, words, strict=False)]
        if len(words) != len(lines) or sum(same) < SAME_SENTENCE * len(lines):
            continue
        for column in range(8, len(lines[0])):
            spans = list(_bracketed_spans([line[column] for line in lines]))
            predicate = next((span for role, span in spans if role == "V"), None)
            if predicate is not None:
                rows += [_row(_forms(words), predicate, span, [role]) for role, span in spans if role != "V"]
    return rows


def _bracketed_spans(column: list[str]) -> Iterator[tuple[str, Span]]:
    """Roles and spans of a column of `(ARG1*`, `*`, `*)`."""
    opened: list[tuple[str, int]] = []
    for place, cell in enumerate(column):
        opened += [(role, place) for role in re.findall(r"\(([^*()]+)", cell)]
        for _ in range(cell.count(")")):
            role, start = opened.pop()
            yield role, (start, place + 1)
