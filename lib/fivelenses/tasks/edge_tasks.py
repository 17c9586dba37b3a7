"""The tasks of edge probing: one label or several for one or two spans of words, by name and source.

OntoNotes, which most of the published tasks are made of, is licensed: open data with the same annotation take its
place, which `EdgeTask.data` names.

Every reader of a corpus returns rows of one form: ``tokens``, the words of a text; ``span1`` and ``span2``, [start,
end) in words, the second None where a single span is labelled; ``labels``, a list.
"""

import io
import json
import re
import tarfile
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import conllu
import pandas as pd

import toyworld
from fivelenses.catalogue import CORPORA, find_edge_task
from fivelenses.tasks.sources import raw_bytes, raw_text
from fivelenses.tasks.treebanks import read_treebank, words_of

SPLITS = ("train", "validation", "test")

# `(12-person-new-…` opens a mention, which ends at the same word with `)` or at a later one with `12)`; `12[1/2]` is
# one part of a discontinuous mention.
_MENTION = re.compile(r"\((\d+)(\[[^\]]*\])?-(\w+)[^()]*(\))?|(\d+)(\[[^\]]*\])?\)")
# Two editions of a sentence count as the same where at least this share of their part-of-speech tags agrees.
SAME_SENTENCE = 0.8

Row = dict
Span = tuple[int, int]


def data_behind(name: str, source: str) -> str:
    """What a task is read from, as a table prints it."""
    return "toy world" if source == "toyworld" else find_edge_task(name).data


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
    find_edge_task(name)
    return {split: pd.DataFrame(_open_data(name, split)) for split in SPLITS}


def _with_lists(frame: pd.DataFrame) -> pd.DataFrame:
    labels = [label if isinstance(label, list) else [label] for label in frame["label"]]
    return frame.drop(columns="label").assign(labels=labels)


def _open_data(name: str, split: str) -> list[Row]:
    if name in ("pos", "dependencies"):
        read = parts_of_speech if name == "pos" else dependencies
        return read(read_treebank("ewt", "hub")[split])
    if name == "srl":
        return semantic_roles(raw_text("propbank"), raw_text("ewt-2.2", split))
    if name in CORPORA:
        return edge_probing_json(raw_text(name, split))
    text = raw_text("gum", split)
    if name == "constituents":
        documents: dict[str, list[list[str]]] = {}
        for identifier, words in _sentences(text):
            documents.setdefault(identifier.rpartition("-")[0], []).append(_forms(words))
        return [row for name, sentences in documents.items() for row in constituents(_gum_trees()[name], sentences)]
    return entities(text) if name == "entities" else coreference(text)


@cache
def _gum_trees() -> dict[str, str]:
    """The bracketed trees of each GUM document, by its name."""
    with tarfile.open(fileobj=io.BytesIO(raw_bytes("gum-trees"))) as archive:
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
    """The format of the edge-probing suite: one JSON object per line, spans in words split at spaces.

    Example:
        >>> line = '{"text": "a red hen", "targets": [{"span1": [1, 2], "label": "ADJ"}]}'
        >>> edge_probing_json(line)[0]["labels"]
        ['ADJ']
    """
    rows = []
    for entry in map(json.loads, text.splitlines()):
        for target in entry["targets"]:
            labels = target["label"] if isinstance(target["label"], list) else [target["label"]]
            rows.append(_row(entry["text"].split(" "), target["span1"], target.get("span2"), labels))
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
