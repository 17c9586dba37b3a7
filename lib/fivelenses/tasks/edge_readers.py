r"""Annotations of several corpora as labelled spans, from the text of their files.

Every reader returns rows of one form: ``tokens``, the words of a text; ``span1`` and ``span2``, [start, end) in words,
the second None where a single span is labelled; ``labels``, a list.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import combinations

import conllu

from fivelenses.tasks.treebanks import words_of

Row = dict

# `(12-person-new-…` opens a mention, which ends at the same word with `)` or at a later one with `12)`; `12[1/2]` is
# one part of a discontinuous mention.
_MENTION = re.compile(r"\((\d+)(\[[^\]]*\])?-(\w+)[^()]*(\))?|(\d+)(\[[^\]]*\])?\)")
# Two editions of a sentence count as the same where at least this share of their part-of-speech tags agrees.
SAME_SENTENCE = 0.8


def _row(tokens: list[str], span1: tuple[int, int], span2: tuple[int, int] | None, labels: Iterable[str]) -> Row:
    return {"tokens": tokens, "span1": list(span1), "span2": span2 and list(span2), "labels": sorted(labels)}


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
        if not line.strip():
            continue
        entry = json.loads(line)
        tokens = entry["text"].split(" ")
        for target in entry["targets"]:
            spans = [tuple(target[name]) if target.get(name) else None for name in ("span1", "span2")]
            for span in spans:
                if span and not 0 <= span[0] < span[1] <= len(tokens):
                    raise ValueError(f"Line {number} labels words {span} of a text of {len(tokens)}: it is damaged.")
            labels = target["label"] if isinstance(target["label"], list) else [target["label"]]
            rows.append(_row(tokens, *spans, labels))
    return rows


def _sentences(text: str) -> Iterator[tuple[list[dict], list[str]]]:
    """The words of each sentence of a CoNLL-U text, with all their columns and as plain text."""
    for sentence in conllu.parse(text):
        words = words_of(sentence)
        yield words, [word["form"] for word in words]


def parts_of_speech(text: str) -> list[Row]:
    r"""Each word of a CoNLL-U treebank with its universal part of speech.

    Example:
        >>> parts_of_speech("1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n")[0]["labels"]
        ['VERB']
    """
    return [
        _row(tokens, (place, place + 1), None, [word["upos"]])
        for words, tokens in _sentences(text)
        for place, word in enumerate(words)
    ]


def dependencies(text: str) -> list[Row]:
    """Each word of a CoNLL-U treebank except the roots, with its head as the second span, and their relation."""
    return [
        _row(tokens, (place, place + 1), (word["head"] - 1, word["head"]), [word["deprel"]])
        for words, tokens in _sentences(text)
        for place, word in enumerate(words)
        if word["head"]
    ]


def _mentions(words: list[dict]) -> Iterator[tuple[str, str, tuple[int, int]]]:
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
        _row(tokens, span, None, [kind]) for words, tokens in _sentences(text) for _, kind, span in _mentions(words)
    ]


def coreference(text: str) -> list[Row]:
    """Pairs of mentions inside a sentence of a GUM document: `coreferent` or `not`.

    A pair is taken if one of the two has a coreferent mention in the sentence, so that negative pairs are close, too.
    """
    rows = []
    for words, tokens in _sentences(text):
        mentions = sorted(_mentions(words), key=lambda mention: mention[2])
        named = [entity for entity, _, _ in mentions]
        repeated = {entity for entity in named if named.count(entity) > 1}
        for (first, _, span1), (second, _, span2) in combinations(mentions, 2):
            if {first, second} & repeated and span1 != span2:
                rows.append(_row(tokens, span1, span2, ["coreferent" if first == second else "not"]))
    return rows


def constituents(bracketed: str, sentences: Iterable[list[str]]) -> list[Row]:
    """The phrases of a document's trees, without the root; a span that several phrases share has all their labels.

    Args:
        bracketed: trees in the bracketing of the Penn Treebank, one per sentence.
        sentences: the document's words, sentence by sentence; a tree with another number of leaves is left out.

    Refused: the numbers of trees and sentences differ.

    Example:
        >>> constituents("(ROOT (S (NP-SBJ (DT The) (NN hen)) (VP (VBZ sings))))", [["The", "hen", "sings"]])[0]
        {'tokens': ['The', 'hen', 'sings'], 'span1': [0, 3], 'span2': None, 'labels': ['S']}
    """
    trees, sentences = list(_trees(bracketed)), list(sentences)
    if len(trees) != len(sentences):
        raise ValueError(f"{len(trees)} trees for {len(sentences)} sentences: they are not of one document.")
    rows = []
    for (phrases, leaves), tokens in zip(trees, sentences, strict=True):
        if leaves != len(tokens):
            continue
        by_span: dict[tuple[int, int], set[str]] = {}
        for label, span in phrases:
            if label and label != "ROOT":
                by_span.setdefault(span, set()).add(label)
        ordered = sorted(by_span.items(), key=lambda phrase: (phrase[0][0], -phrase[0][1]))
        rows += [_row(tokens, span, None, labels) for span, labels in ordered]
    return rows


def _trees(bracketed: str) -> Iterator[tuple[list[tuple[str, tuple[int, int]]], int]]:
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
            stack.append([re.split(r"[-=]", opened)[0] if opened else "", leaves, False])


def semantic_roles(skeleton: str, sentences: dict[str, tuple[list[str], list[str]]]) -> list[Row]:
    """PropBank's predicates (first span) with their arguments (second span) and roles.

    A sentence is kept where the treebank's sentence has as many words and at least four fifths of the same tags.

    Args:
        skeleton: PropBank's columns without words.
        sentences: each sentence's words and their Penn tags, by its id in the treebank.
    """
    rows = []
    for block in skeleton.split("\n\n"):
        lines = [line.split() for line in block.splitlines() if line.strip()]
        if not lines:
            continue
        genre, name = lines[0][0].split("/")[2], lines[0][0].rpartition("/")[2].removesuffix(".xml")
        tokens, tags = sentences.get(f"{genre}-{name}-{int(lines[0][1]) + 1:04d}", ([], []))
        if len(tokens) != len(lines):
            continue
        if sum(line[4] == tag for line, tag in zip(lines, tags, strict=True)) < SAME_SENTENCE * len(lines):
            continue
        for column in range(8, len(lines[0])):
            spans = list(_bracketed_spans([line[column] for line in lines]))
            predicate = next((span for role, span in spans if role == "V"), None)
            if predicate is not None:
                rows += [_row(tokens, predicate, span, [role]) for role, span in spans if role != "V"]
    return rows


def _bracketed_spans(column: list[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Roles and spans of a column of `(ARG1*`, `*`, `*)`."""
    opened: list[tuple[str, int]] = []
    for place, cell in enumerate(column):
        opened += [(role, place) for role in re.findall(r"\(([^*()]+)", cell)]
        for _ in range(cell.count(")")):
            role, start = opened.pop()
            yield role, (start, place + 1)
