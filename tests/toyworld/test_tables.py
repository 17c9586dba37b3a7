"""Tables: the same everywhere, with the promised columns, sizes, labels and disjoint splits."""

import hashlib
import json
import re
from pathlib import Path

import pandas
import pytest

from toyworld.tables import LABELS, TASKS, table

DIGESTS = json.loads(Path(__file__).with_name("table_digests.json").read_text(encoding="utf-8"))
TEXT_COLUMNS = ("premise", "hypothesis", "sentence1", "sentence2", "sentence", "question", "context", "text")
SHARES = {
    "mnli": (1 / 3, 1 / 3, 1 / 3),
    "rte": (0.5, 0.5),
    "mrpc": (0.33, 0.67),
    "sst2": (0.5, 0.5),
    "cola": (0.3, 0.7),
    "qnli": (0.5, 0.5),
}


def digest(task: str) -> str:
    found = hashlib.sha256()
    for split, rows in table(task).items():
        found.update(json.dumps([split, rows.to_dict("records")], ensure_ascii=True).encode())
    return found.hexdigest()


def words_in(rows: pandas.DataFrame) -> list[str]:
    texts = [text for column in TEXT_COLUMNS if column in rows for text in rows[column]]
    words = [word for text in texts for word in re.sub(r"([.?]|'s)", r" \1", text).split()]
    if "tokens" in rows:
        words += [word for tokens in rows["tokens"] for word in tokens]
    return [word.lower() for word in words]


@pytest.mark.parametrize("task", TASKS)
def test_every_table_has_its_pinned_content(task: str) -> None:
    assert digest(task) == DIGESTS[task]


def test_an_unknown_task_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no task 'copa'"):
        table("copa")


@pytest.mark.parametrize("task", SHARES)
def test_labels_have_their_shares(task: str) -> None:
    for rows in table(task).values():
        shares = rows["label"].value_counts(normalize=True)
        for label, share in enumerate(SHARES[task]):
            assert shares[label] == pytest.approx(share, abs=0.01)
        assert len(shares) == len(LABELS[task])


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


def test_the_world_has_four_to_eight_hundred_word_forms() -> None:
    forms = {word for task in TASKS for rows in table(task).values() for word in words_in(rows)}
    assert 400 <= len(forms) <= 800


def test_answers_are_where_they_are_said_to_be() -> None:
    for rows in table("squad").values():
        for context, answers in zip(rows["context"], rows["answers"], strict=True):
            (text,), (start,) = answers["text"], answers["answer_start"]
            assert text and context[start : start + len(text)] == text


def test_spans_lie_within_their_sentences() -> None:
    for task in (name for name in TASKS if name.startswith("edge")):
        for rows in table(task).values():
            for tokens, *spans in zip(rows["tokens"], rows["span1"], rows["span2"], strict=True):
                for span in spans:
                    assert span is None or 0 <= span[0] < span[1] <= len(tokens)
