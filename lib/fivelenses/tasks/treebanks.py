"""Treebanks and other annotated corpora, whose files' hashes are checked, and the tables that are made of them.

Tasks on words have a row for each sentence, see `word_tables`; edge probing has one for each label of one or two spans
of words, see `edge_table`. OntoNotes, which most of its published tasks are made of, is licensed, so open data with the
same annotation take its place.
"""

import io
import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import combinations, groupby
from pathlib import Path

import conllu
import pandas as pd

import toyworld
from fivelenses.catalogue import CORPORA, find
from fivelenses.tasks.sources import raw_bytes, raw_text

PUD_TRAINING_SENTENCES = 800
SAME_SENTENCE = 0.8  # at least this share of the tags agrees between two editions of a sentence
SPLITS = ("train", "validation", "test")  # of edge probing
_CONLLULEX = "id form lemma upos xpos feats head deprel deps misc smwe lexcat lexlemma ss ss2 wmwe wcat wlemma lextag"
_PREPOSITIONAL = ("P", "PRON.POSS", "INF.P", "POSS")
# `(12-person-new-…` opens a mention, which ends at the same word with `)` or at a later one with `12)`; `12[1/2]` is
# one part of a discontinuous mention.
_MENTION = re.compile(r"\((\d+)(\[[^\]]*\])?-(\w+)[^()]*(\))?|(\d+)(\[[^\]]*\])?\)")

Span = tuple[int, int]  # [start, end) in words


@cache
def read_treebank(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of `pud` (its first 800 sentences against the last 200), `ewt` or `streusle`, or of what the toy world
    has in their place, as `parse_conllu` and, of `streusle`, `parse_conllulex` give them.

    Example:
        >>> list(read_treebank("ewt", "toyworld"))
        ['train', 'validation', 'test']
    """
    if source == "toyworld":
        return toyworld.table("prepositions" if name == "streusle" else "treebank")
    parse = parse_conllulex if name == "streusle" else parse_conllu
    tables = {split: parse(raw_text(name, split)) for split in CORPORA[name]["splits"]}
    if name == "pud":
        train, test = tables["all"][:PUD_TRAINING_SENTENCES], tables["all"][PUD_TRAINING_SENTENCES:]
        return {"train": train, "test": test.reset_index(drop=True)}
    return tables


def _words(sentence: conllu.TokenList) -> list[dict]:
    """The rows of a parsed sentence that are words, without multiword tokens and empty nodes."""
    return [word for word in sentence if isinstance(word["id"], int)]


def _forms(words: Iterable[dict]) -> list[str]:
    return [word["form"] for word in words]


def parse_conllu(text: str) -> pd.DataFrame:
    r"""CoNLL-U text as a table with one row per sentence, ``heads`` counted from 1 with 0 as the root.

    Example:
        >>> parse_conllu("1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n").iloc[0].to_dict()
        {'tokens': ['Go'], 'upos': ['VERB'], 'heads': [0], 'deprels': ['root']}
    """
    rows = []
    for words in map(_words, conllu.parse(text)):
        rows.append([[word[field] for word in words] for field in ("form", "upos", "head", "deprel")])
    return pd.DataFrame(rows, columns=["tokens", "upos", "heads", "deprels"])


def parse_conllulex(text: str) -> pd.DataFrame:
    """The single-word prepositions of a text in STREUSLE's 19-column format, one row per preposition: ``tokens``, its
    ``index`` in them, ``role`` (scene role) and ``function``.

    These are words of four lexical categories whose role starts with ``p.``; words inside a strong multiword expression
    are left out.
    """
    rows = []
    for sentence in conllu.parse(text, fields=_CONLLULEX.split(), field_parsers={"head": lambda line, i: line[i]}):
        words = _words(sentence)
        for index, word in enumerate(words):
            role, function = word["ss"] or "_", word["ss2"] or "_"
            if word["lexcat"] in _PREPOSITIONAL and word["smwe"] in (None, "_") and role.startswith("p."):
                rows.append((_forms(words), index, role[2:], function[2:]))
    return pd.DataFrame(rows, columns=["tokens", "index", "role", "function"])


def word_tables(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of a task on words, by the names of the source's splits, with one row per sentence: ``tokens``, the
    words; ``units``, what is labelled, each a list of one word (counted from 0) or of two (head and dependent);
    ``names``, the label of each unit. Parsing labels every word and has ``heads`` instead of units; its relations are
    universal ones: `nsubj:pass` is `nsubj`.

    Example:
        >>> row = word_tables("dep", "toyworld")["train"].iloc[0]
        >>> row["units"][0], row["names"][0]
        ([2, 0], 'det')
    """
    functions = partial(_roles, annotation="function")
    read = {"pos": _tags, "dep": _arcs, "parsing": _trees, "ps-role": _roles, "ps-fxn": functions}[name]
    return {split: read(frame) for split, frame in read_treebank(find(name).treebank, source).items()}


def _tags(frame: pd.DataFrame) -> pd.DataFrame:
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


def _roles(frame: pd.DataFrame, annotation: str = "role") -> pd.DataFrame:
    """All prepositions of a sentence, which are in neighbouring rows, in one row."""
    rows = []
    for tokens, group in groupby(frame.itertuples(index=False), key=lambda row: tuple(row.tokens)):
        units, names = zip(*(([row.index], getattr(row, annotation)) for row in group), strict=True)
        rows.append((list(tokens), list(units), list(names)))
    return pd.DataFrame(rows, columns=["tokens", "units", "names"])


@cache
def edge_table(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of an edge-probing task, one row per labelled span or pair of spans: ``tokens``, the words; ``span1``
    and ``span2``, [start, end) in words, the second None where a single span is labelled; ``labels``, a list.

    Example:
        >>> edge_table("relations", "toyworld")["train"].loc[0, "labels"]
        ['entity-origin(e1,e2)']
    """
    if source != "toyworld":
        return {split: pd.DataFrame(_open_data(name, split)) for split in SPLITS}
    tables = {}
    for split, frame in toyworld.table(f"edge_{name.removesuffix('-dpr')}").items():
        labels = [label if isinstance(label, list) else [label] for label in frame["label"]]
        tables[split] = frame.drop(columns="label").assign(labels=labels)
    return tables


def _open_data(name: str, split: str) -> list[dict]:
    if name in ("pos", "dependencies"):
        frame = read_treebank("ewt", "hub")[split]
        return labelled_units(_tags(frame) if name == "pos" else _arcs(frame))
    if name == "srl":
        return semantic_roles(raw_text("propbank"), raw_text("ewt-2.2", split))
    if name in CORPORA:
        return edge_probing_json(raw_text(name, split))
    read = {"entities": entities, "coreference": coreference, "constituents": _gum_constituents}[name]
    return read(raw_text("gum", split))


def _row(tokens: list[str], spans: Sequence[Span], labels: Iterable[str]) -> dict:
    first, second = (list(map(list, spans)) + [None])[:2]
    return {"tokens": tokens, "span1": first, "span2": second, "labels": sorted(labels)}


def edge_probing_json(text: str) -> list[dict]:
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
            spans = [target[name] for name in ("span1", "span2") if target.get(name)]
            rows.append(_row(entry["text"].split(" "), spans, labels))
    return rows


def labelled_units(table: pd.DataFrame) -> list[dict]:
    """Each unit of a table of words: a word with its label, or a dependent and its head with their relation."""
    return [
        _row(tokens, [(word, word + 1) for word in reversed(unit)], [name])
        for tokens, units, names in zip(table["tokens"], table["units"], table["names"], strict=True)
        for unit, name in zip(units, names, strict=True)
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


def entities(text: str) -> list[dict]:
    """Each mention of a GUM document with its kind."""
    sentences = map(_words, conllu.parse(text))
    return [_row(_forms(words), [span], [kind]) for words in sentences for _, kind, span in _mentions(words)]


def coreference(text: str) -> list[dict]:
    """Pairs of mentions inside a sentence of a GUM document: `coreferent` or `not`.

    A pair is taken if one of the two has a coreferent mention in the sentence, so that negative pairs are close, too.
    """
    rows = []
    for words in map(_words, conllu.parse(text)):
        mentions = sorted(_mentions(words), key=lambda mention: mention[2])
        named = [entity for entity, _, _ in mentions]
        repeated = {entity for entity in named if named.count(entity) > 1}
        for (first, _, span1), (second, _, span2) in combinations(mentions, 2):
            if {first, second} & repeated and span1 != span2:
                rows.append(_row(_forms(words), [span1, span2], ["coreferent" if first == second else "not"]))
    return rows


def _gum_constituents(text: str) -> list[dict]:
    with tarfile.open(fileobj=io.BytesIO(raw_bytes("gum-trees"))) as archive:
        files = [member for member in archive if member.isfile()]
        trees = {Path(one.name).stem: archive.extractfile(one).read().decode("utf-8") for one in files}
    rows = []
    for name, document in groupby(conllu.parse(text), key=lambda one: one.metadata["sent_id"].rpartition("-")[0]):
        rows += constituents(trees[name], [_forms(_words(sentence)) for sentence in document])
    return rows


def constituents(bracketed: str, sentences: list[list[str]]) -> list[dict]:
    """The phrases of a document's trees, one per sentence, in the bracketing of the Penn Treebank, without the root; a
    span that several phrases share has all their labels. A tree whose leaves are not as many as the words is left out.

    Example:
        >>> constituents("(ROOT (S (NP-SBJ (DT The) (NN hen)) (VP (VBZ sings))))", [["The", "hen", "sings"]])[0]
        {'tokens': ['The', 'hen', 'sings'], 'span1': [0, 3], 'span2': None, 'labels': ['S']}
    """
    rows = []
    for (phrases, leaves), tokens in zip(_phrases(bracketed), sentences, strict=True):
        by_span: dict[Span, set[str]] = {}
        for label, span in phrases:
            if leaves == len(tokens) and label not in ("", "ROOT"):
                by_span.setdefault(span, set()).add(label)
        ordered = sorted(by_span.items(), key=lambda phrase: (phrase[0][0], -phrase[0][1]))
        rows += [_row(tokens, [span], labels) for span, labels in ordered]
    return rows


def _phrases(bracketed: str) -> Iterator[tuple[list[tuple[str, Span]], int]]:
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


def semantic_roles(skeleton: str, treebank_text: str) -> list[dict]:
    """PropBank's predicates (first span) with their arguments (second span) and roles, from its columns without words
    and the treebank's sentences in CoNLL-U.

    A sentence is kept where the treebank's has as many words and at least four fifths of the same tags.
    """
    parsed, rows = conllu.parse(treebank_text), []
    sentences = {sentence.metadata.get("sent_id"): _words(sentence) for sentence in parsed}
    for block in filter(str.strip, skeleton.split("\n\n")):
        lines = [line.split() for line in block.strip().splitlines()]
        genre, name = lines[0][0].split("/")[2], lines[0][0].rpartition("/")[2].removesuffix(".xml")
        words = sentences.get(f"{genre}-{name}-{int(lines[0][1]) + 1:04d}", [])
        same = [line[4] == word["xpos"] for line, word in zip(lines, words, strict=False)]
        if len(words) != len(lines) or sum(same) < SAME_SENTENCE * len(lines):
            continue
        for column in range(8, len(lines[0])):
            spans = list(_bracketed_spans([line[column] for line in lines]))
            predicate = next((span for role, span in spans if role == "V"), None)
            if predicate is not None:
                rows += [_row(_forms(words), [predicate, span], [role]) for role, span in spans if role != "V"]
    return rows


def _bracketed_spans(column: list[str]) -> Iterator[tuple[str, Span]]:
    """Roles and spans of a column of `(ARG1*`, `*`, `*)`."""
    opened: list[tuple[str, int]] = []
    for place, cell in enumerate(column):
        opened += [(role, place) for role in re.findall(r"\(([^*()]+)", cell)]
        for _ in range(cell.count(")")):
            role, start = opened.pop()
            yield role, (start, place + 1)
