"""Trees as targets of words, and their scores."""

import datasets
import pytest

from fivelenses import tasks
from fivelenses.tasks.examples import encode
from fivelenses.tasks.parsing import attachment_scores, chain_score, encode_trees

GOLD = [([2, 0, 2, 2], ["nsubj:pass", "root", "obj", "punct"]), ([0], ["root"])]


@pytest.mark.parametrize(
    ("predicted", "uas", "las"),
    [
        (GOLD, 1.0, 1.0),
        ([([2, 0, 2, 2], ["nsubj", "root", "obj", "punct"]), ([0], ["root"])], 1.0, 1.0),  # subtypes do not count
        ([([2, 0, 2, 2], ["obj", "root", "obj", "punct"]), ([0], ["root"])], 1.0, 0.8),
        ([([2, 0, 2, 3], ["nsubj", "root", "obj", "punct"]), ([0], ["root"])], 0.8, 0.8),  # punctuation counts
        ([([-1, 0, 2, 2], ["", "root", "obj", "punct"]), ([0], ["root"])], 0.8, 0.8),  # a word that was not parsed
    ],
)
def test_attachment_scores_of_cases_worked_by_hand(predicted, uas, las):
    assert attachment_scores(predicted, GOLD) == (pytest.approx(uas), pytest.approx(las))


def test_sentences_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="as many predicted as gold"):
        attachment_scores(GOLD[:1], GOLD)
    with pytest.raises(ValueError, match="need words"):
        attachment_scores([], [])


def test_the_null_hangs_every_word_on_the_next():
    # Right: the first two words, by two relations; the last is not the root.
    assert chain_score([([2, 3, 0, 3], ["det", "nsubj", "root", "punct"])]) == 0.25
    assert chain_score([([0, 1], ["root", "obj"])]) == 0.0


def test_targets_are_those_of_the_table(toy_tokenizer):
    data = tasks.load("parsing", "toyworld", ("validation",))
    encoded = encode(data, "validation", toy_tokenizer, 64)
    assert list(encoded["heads"]) == list(data.splits["validation"]["heads"])
    assert [[data.labels[label] for label in row] for row in encoded["labels"]] == list(
        data.splits["validation"]["names"]
    )


def test_words_that_are_cut_off_and_those_that_hang_on_them_are_no_targets(toy_tokenizer):
    rows = {
        "tokens": [["The", "cat", "sees"], ["The", "cat"]],
        "heads": [[2, 3, 0], [2, 0]],
        "names": [["det", "nsubj", "root"], ["det", "root"]],
    }
    cut = encode_trees(datasets.Dataset.from_dict(rows), ("det", "nsubj", "root"), toy_tokenizer, 4)
    assert list(cut["heads"]) == [[2, -100, -100], [2, 0]]
    assert list(cut["labels"]) == [[0, -100, -100], [0, 2]]
    # One word is left, and its head is not: no target, no example.
    short = encode_trees(datasets.Dataset.from_dict(rows), ("det", "nsubj", "root"), toy_tokenizer, 3)
    assert short.num_rows == 0
