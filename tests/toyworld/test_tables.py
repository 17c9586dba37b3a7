"""Tables: the same everywhere, with the promised columns, sizes and disjoint splits; labels come from meaning."""

import doctest
import hashlib
import json
from pathlib import Path

import pytest
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from fivelenses.files import project_folder
from toyworld.tables import BUILDERS, LABELS, TASKS, table

DIGESTS = json.loads(Path(__file__).with_name("table_digests.json").read_text(encoding="utf-8"))
TEXT_COLUMNS = ("premise", "hypothesis", "sentence1", "sentence2", "sentence", "question", "context", "text")
# The fields of a task, the share of its most frequent label, and what words and length have to stay below.
FIELDS = {
    "mnli": (("premise", "hypothesis"), 1 / 3, 0.48),
    "rte": (("sentence1", "sentence2"), 0.5, 0.60),
    "mrpc": (("sentence1", "sentence2"), 0.67, 0.70),
    "sst2": (("sentence",), 0.5, 0.72),
    "cola": (("sentence",), 0.7, 0.73),
    "qnli": (("question", "sentence"), 0.5, 0.58),
}


@pytest.mark.parametrize("task", TASKS)
def test_every_table_has_its_pinned_content(task: str) -> None:
    found = hashlib.sha256()
    for split, rows in table(task).items():
        found.update(json.dumps([split, rows.to_dict("records")], ensure_ascii=True).encode())
    assert found.hexdigest() == DIGESTS[task]


def test_a_table_is_drawn_once_on_a_machine(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    drawn = table.__wrapped__("second_domain")["validation"]
    monkeypatch.setitem(BUILDERS, "second_domain", None)
    assert table.__wrapped__("second_domain")["validation"].equals(drawn)


@pytest.mark.parametrize("task", TASKS)
def test_no_sentence_is_in_two_splits(task: str) -> None:
    only = {"squad": ["context"], "qnli": ["sentence"]}.get(task)
    splits: dict[str, str] = {}
    for split, rows in table(task).items():
        sentences = [text for name in only or rows.columns.intersection(TEXT_COLUMNS) for text in rows[name]]
        sentences += map(" ".join, rows.get("tokens", []))
        assert all(splits.setdefault(sentence, split) == split for sentence in sentences)


def test_answers_are_where_they_are_said_to_be() -> None:
    for rows in table("squad").values():
        for context, answers in zip(rows["context"], rows["answers"], strict=True):
            (text,), (start,) = answers["text"], answers["answer_start"]
            assert text and context[start : start + len(text)] == text


def accuracy(task: str) -> float:
    """Validation accuracy of logistic regression on each field's words and length."""
    training, validation = table(task)["train"], table(task)["validation"]
    parts = []
    for field in FIELDS[task][0]:
        counts = CountVectorizer(token_pattern=r"[A-Za-z]+")
        parts.append((counts.fit_transform(training[field]), counts.transform(validation[field])))
        lengths = (rows[field].str.split().str.len().to_numpy()[:, None] / 10 for rows in (training, validation))
        parts.append(tuple(scipy.sparse.csr_matrix(length) for length in lengths))
    x, x_validation = (scipy.sparse.hstack([part[side] for part in parts]).tocsr() for side in (0, 1))
    return LogisticRegression(C=0.3, max_iter=500).fit(x, training["label"]).score(x_validation, validation["label"])


@pytest.mark.parametrize("task", FIELDS)
def test_words_and_length_alone_do_not_give_the_label(task: str) -> None:
    _, majority, bound = FIELDS[task]
    for rows in table(task).values():
        shares = rows["label"].value_counts(normalize=True)
        assert shares.max() == pytest.approx(majority, abs=0.01) and len(shares) == len(LABELS[task])
    assert majority - 0.1 < accuracy(task) < bound


def test_what_the_page_shows_is_what_python_says():
    outcome = doctest.testfile(str(project_folder() / "book" / "toy-world.md"), module_relative=False)
    assert outcome.attempted > 10 and outcome.failed == 0
