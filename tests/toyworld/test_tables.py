"""Tables: the same everywhere, with the promised columns, sizes, labels and disjoint splits."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import pandas
import pytest

from toyworld.tables import LABELS, TASKS, table

DIGESTS = json.loads(Path(__file__).with_name("table_digests.json").read_text(encoding="utf-8"))
TEXT_COLUMNS = ("premise", "hypothesis", "sentence1", "sentence2", "sentence", "question", "context", "text")
SIZES = {
    "mnli": {"train": 8000, "validation": 600},
    "rte": {"train": 6000, "validation": 300},
    "mrpc": {"train": 6000, "validation": 400},
    "sst2": {"train": 4000, "validation": 500},
    "cola": {"train": 4000, "validation": 500},
    "qnli": {"train": 4000, "validation": 500},
    "squad": {"train": 3000, "validation": 400},
    "trec": {"train": 3000, "test": 400},
    "treebank": {"train": 2000, "validation": 300, "test": 400},
    "prepositions": {"train": 2500, "test": 400},
}
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


@pytest.mark.parametrize("task", SIZES)
def test_sizes_are_as_listed(task: str) -> None:
    assert {split: len(rows) for split, rows in table(task).items()} == SIZES[task]


@pytest.mark.parametrize("task", [task for task in TASKS if task.startswith("edge")])
def test_edge_tasks_have_three_splits_of_the_listed_size(task: str) -> None:
    assert {split: len(rows) for split, rows in table(task).items()} == {"train": 2000, "validation": 300, "test": 400}


@pytest.mark.parametrize("task", SHARES)
def test_labels_have_their_shares(task: str) -> None:
    for rows in table(task).values():
        shares = rows["label"].value_counts(normalize=True)
        for label, share in enumerate(SHARES[task]):
            assert shares[label] == pytest.approx(share, abs=0.01)
        assert len(shares) == len(LABELS[task])


def test_question_types_are_hierarchical_and_all_present() -> None:
    for rows in table("trec").values():
        assert set(rows["fine_label"]) == set(range(len(LABELS["trec_fine"])))
        for coarse, fine in zip(rows["coarse_label"], rows["fine_label"], strict=True):
            assert LABELS["trec_fine"][fine].startswith(LABELS["trec"][coarse] + ":")


@pytest.mark.parametrize("task", TASKS)
def test_no_sentence_is_in_two_splits(task: str) -> None:
    seen: dict[str, str] = {}
    for split, rows in table(task).items():
        sentences = [text for column in TEXT_COLUMNS if column in rows for text in rows[column]]
        if "tokens" in rows:
            sentences = [" ".join(tokens) for tokens in rows["tokens"]]
        if task in ("squad", "qnli", "trec"):
            column = {"squad": "context", "qnli": "sentence", "trec": "text"}[task]
            sentences = list(rows[column])
        assert all(seen.setdefault(sentence, split) == split for sentence in sentences)


@pytest.mark.parametrize("task", [task for task in TASKS if task not in ("plain", "second_domain")])
def test_rows_are_not_repeated(task: str) -> None:
    for rows in table(task).values():
        records = rows.drop(columns="id", errors="ignore").to_dict("records")
        contents = [json.dumps(row, sort_keys=True) for row in records]
        assert len(contents) == len(set(contents))


def test_sentences_have_four_to_twenty_words() -> None:
    columns = {"mnli": ("premise", "hypothesis"), "mrpc": ("sentence1", "sentence2"), "rte": ("sentence2",)}
    columns |= {"sst2": ("sentence",), "qnli": ("question", "sentence"), "plain": ("text",), "second_domain": ("text",)}
    for task, names in columns.items():
        for rows in table(task).values():
            for name in names:
                lengths = rows[name].str.replace("'s", " 's").str.split().str.len()
                assert lengths.between(4, 20).all(), (task, name)


def test_the_world_has_four_to_eight_hundred_word_forms() -> None:
    forms = {word for task in TASKS for rows in table(task).values() for word in words_in(rows)}
    assert 400 <= len(forms) <= 800


def test_plain_text_is_large_and_zipf_like() -> None:
    training, held_out = table("plain")["train"], table("plain")["validation"]
    assert training["text"].str.split().str.len().sum() >= 400_000
    assert held_out["text"].str.split().str.len().sum() >= 20_000
    counts = [count for _, count in Counter(words_in(training)).most_common()]
    assert counts[0] > 20 * counts[30] > 20 * 4 * counts[300]
    assert training["document"].is_monotonic_increasing


def test_the_second_domain_has_words_of_its_own() -> None:
    home, sea = set(words_in(table("plain")["train"])), words_in(table("second_domain")["validation"])
    assert sum(word not in home for word in sea) > 0.15 * len(sea)


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


def test_some_prepositions_have_a_function_unlike_their_role() -> None:
    rows = table("prepositions")["train"]
    assert 0.15 < (rows["role"] != rows["function"]).mean() < 0.7
    words = {tokens[index].lower() for tokens, index in zip(rows["tokens"], rows["index"], strict=True)}
    assert words == {"in", "on", "at", "to", "from", "by", "with", "for", "of", "about", "through"}
