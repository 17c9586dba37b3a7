"""Token tasks: gold trees, and the scene role and function of prepositions, on sentences of stories."""

from collections.abc import Callable, Iterator
from functools import cache

import pandas

from toyworld.annotation import Sentence, annotate
from toyworld.rows import Row, generator_for
from toyworld.stories import simulate
from toyworld.texts import Narrator

Told = tuple[int, Sentence]


def written(words: tuple[str, ...]) -> list[str]:
    """The words as in running text: the first one capitalised.

    >>> written(("the", "end"))
    ['The', 'end']
    """
    return [words[0][:1].upper() + words[0][1:], *words[1:]]


@cache
def _statements(split: str, number: int) -> tuple[Sentence, ...]:
    generator = generator_for("annotated", split, number)
    nodes = Narrator(generator, simulate(generator, generator.randrange(5, 9))).narrate()
    return tuple(annotate(node) for node in nodes if node.children[-1].form == ".")


def told_sentences(split: str) -> Iterator[Told]:
    """Statements of stories, without end: the number of the story and the annotated sentence; no questions."""
    number = 0
    while True:
        for sentence in _statements(split, number):
            yield number, sentence
        number += 1


def rows_of_splits(
    sizes: dict[str, int], rows_of: Callable[[Iterator[Told], str], Iterator[Row]]
) -> dict[str, pandas.DataFrame]:
    """Take rows split by split; a row whose words stand in an earlier split, and an equal row, is left out."""
    tables: dict[str, pandas.DataFrame] = {}
    earlier: set[str] = set()
    for split, size in sizes.items():
        rows: list[Row] = []
        seen: set[str] = set()
        for row in rows_of(told_sentences(split), split):
            content = str(sorted(row.items()))
            if content in seen or " ".join(row["tokens"]) in earlier:
                continue
            seen.add(content)
            rows.append(row)
            if len(rows) == size:
                break
        earlier |= {" ".join(row["tokens"]) for row in rows}
        tables[split] = pandas.DataFrame(rows)
    return tables


def _trees(sentences: Iterator[Told], split: str) -> Iterator[Row]:
    seen: set[tuple[str, ...]] = set()
    for _, sentence in sentences:
        if sentence.words not in seen:
            seen.add(sentence.words)
            yield {
                "tokens": written(sentence.words),
                "upos": list(sentence.upos),
                "heads": list(sentence.heads),
                "deprels": list(sentence.deprels),
            }


def treebank() -> dict[str, pandas.DataFrame]:
    """Sentences with parts of speech, heads (1-based, 0 for the root) and dependency relations."""
    return rows_of_splits({"train": 2000, "validation": 300, "test": 400}, _trees)


def _prepositions(sentences: Iterator[Told], split: str) -> Iterator[Row]:
    generator = generator_for("prepositions", split, "choice")
    counts: dict[str, int] = {}
    for _, sentence in sentences:
        if not sentence.prepositions:
            continue
        options = sorted(sentence.prepositions, key=lambda item: counts.get(item[1], 0))
        index, role, function = options[0] if generator.random() < 0.7 else generator.choice(options)
        frequent = counts.get(role, 0)
        if generator.random() < 120.0 / (120.0 + frequent):
            counts[role] = frequent + 1
            yield {"tokens": written(sentence.words), "index": index, "role": role, "function": function}


def prepositions() -> dict[str, pandas.DataFrame]:
    """Single-token prepositions with their scene role and their function, which differ for a part of them."""
    return rows_of_splits({"train": 2500, "test": 400}, _prepositions)
