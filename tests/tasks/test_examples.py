"""Tables of tasks and their encoding; running text."""

from types import SimpleNamespace

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivelenses import tasks
from fivelenses.tasks import examples
from fivelenses.tasks.examples import encode, wikipedia_text
from fivelenses.tasks.subsets import subset


def test_a_changed_label_changes_the_digest(toy_data):
    rows = toy_data.splits["validation"]
    changed = rows.map(
        lambda row, index: {"label": 1 - row["label"] if index == 0 else row["label"]}, with_indices=True
    )
    other = tasks.TaskData(toy_data.task, "toyworld", {"validation": changed}, toy_data.labels)
    assert other.digest("validation") != toy_data.digest("validation")


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    seed=st.integers(0, 5),
    sizes=st.tuples(st.integers(1, 60), st.integers(1, 60)),
)
def test_subsets_of_a_seed_are_nested_and_stratified(counts, seed, sizes):
    labels = np.repeat(np.arange(len(counts)), counts)
    small, large = sorted(sizes)
    fewer, more = subset(labels, small, seed), subset(labels, large, seed)
    assert set(fewer) <= set(more)
    assert len(more) == min(large, labels.size)
    expected = len(more) * np.array(counts) / labels.size
    assert (np.abs(np.bincount(labels[more], minlength=len(counts)) - expected) < len(counts)).all()


def test_subsets_of_two_seeds_differ():
    labels = np.tile([0, 1], 100)
    assert not np.array_equal(subset(labels, 20, 0), subset(labels, 20, 1))


def test_words_count_on_over_the_second_input(toy_data, toy_tokenizer):
    row = encode(toy_data, "validation", toy_tokenizer, 64, words=True)[0]
    words = [word for word in row["word_ids"] if word >= 0]
    assert words == sorted(words)
    assert set(words) == set(range(max(words) + 1))
    assert row["word_ids"][0] == -1


def test_an_unknown_task_names_those_there_are():
    with pytest.raises(ValueError, match="no task 'rtf'.*rte"):
        tasks.load("rtf", "toyworld")


def test_wikipedia_is_read_by_articles_without_headings_and_split_marks(monkeypatch):
    lines = ["", " = A = \n", " It is 10 @,@ 000 m . A well @-@ known one . \n", " = = Part = = \n", " More . \n"]
    table = datasets.Dataset.from_dict({"text": [*lines, " = Homarus gammarus = \n", " Last . \n", " = Empty = \n"]})
    monkeypatch.setattr(examples, "load", lambda *_: SimpleNamespace(splits={"validation": table}))
    assert wikipedia_text("hub") == [["It is 10,000 m .", "A well-known one .", "More ."], ["Last ."]]


def test_the_second_domain_keeps_its_stories():
    stories = wikipedia_text("toyworld")
    assert len(stories) > 100
    assert max(map(len, stories)) < 50
