"""From generators to tables: seeds by name, quotas per label, no sentence in two splits."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pandas

SEED = "five lenses toy world 1"
Row = dict[str, Any]
RowMaker = Callable[[Random, int], Row | None]


def generator_for(*names: str | int) -> Random:
    """A generator seeded by names; equal on every machine.

    >>> generator_for("mnli", 3).random() == generator_for("mnli", 3).random()
    True
    """
    return Random("/".join([SEED, *map(str, names)]))


def labelled_rows(
    task: str,
    sizes: dict[str, int],
    shares: Sequence[float],
    make: RowMaker,
    fields: tuple[str, ...],
) -> dict[str, pandas.DataFrame]:
    """Draw rows split by split, each from a story of its own, with the given share of each label.

    `make(generator, label)` returns a row or None (drawn again); `fields` hold the row's sentences: a row is dropped
    where one of them stands in another split already, or where all of them were drawn together before.
    """
    owner: dict[str, str] = {}
    seen: set[tuple[str, ...]] = set()
    tables = {}
    for split, size in sizes.items():
        labels = _labels(generator_for(task, split), size, shares)
        rows: list[Row] = []
        draws = _draws(task, split)
        while len(rows) < size:
            row = make(next(draws), labels[len(rows)])
            if row is None:
                continue
            texts = tuple(row[field] for field in fields)
            if texts in seen or any(owner.get(text, split) != split for text in texts):
                continue
            seen.add(texts)
            owner |= dict.fromkeys(texts, split)
            rows.append(row)
        tables[split] = pandas.DataFrame(rows)
    return tables


def _draws(task: str, split: str) -> Iterator[Random]:
    number = 0
    while True:
        yield generator_for(task, split, number)
        number += 1


def _labels(generator: Random, size: int, shares: Sequence[float]) -> list[int]:
    counts = [round(size * share) for share in shares]
    counts[0] += size - sum(counts)
    labels = [label for label, count in enumerate(counts) for _ in range(count)]
    generator.shuffle(labels)
    return labels
