"""Tables: the same everywhere, with the promised columns, sizes, labels and disjoint splits."""

import hashlib
import json
from pathlib import Path

import pytest

from toyworld.tables import TASKS, table

DIGESTS = json.loads(Path(__file__).with_name("table_digests.json").read_text(encoding="utf-8"))
TEXT_COLUMNS = ("premise", "hypothesis", "sentence1", "sentence2", "sentence", "question", "context", "text")


def digest(task: str) -> str:
    found = hashlib.sha256()
    for split, rows in table(task).items():
        found.update(json.dumps([split, rows.to_dict("records")], ensure_ascii=True).encode())
    return found.hexdigest()


@pytest.mark.parametrize("task", TASKS)
def test_every_table_has_its_pinned_content(task: str) -> None:
    assert digest(task) == DIGESTS[task]


@pytest.mark.parametrize("task", TASKS)
def test_no_sentence_is_in_two_splits(task: str) -> None:
    column = {"squad": "context", "qnli": "sentence"}.get(task)
    splits: dict[str, str] = {}
    for split, rows in table(task).items():
        columns = [column] if column else [name for name in TEXT_COLUMNS if name in rows]
        sentences = [text for name in columns for text in rows[name]]
        if "tokens" in rows:
            sentences = [" ".join(tokens) for tokens in rows["tokens"]]
        assert all(splits.setdefault(sentence, split) == split for sentence in sentences)


def test_answers_are_where_they_are_said_to_be() -> None:
    for rows in table("squad").values():
        for context, answers in zip(rows["context"], rows["answers"], strict=True):
            (text,), (start,) = answers["text"], answers["answer_start"]
            assert text and context[start : start + len(text)] == text
