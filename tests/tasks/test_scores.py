"""Scores of labels, of answers and of trees, on cases worked by hand."""

import numpy as np
import pytest

from fivelenses.tasks.scores import attached, chain_matches, exact_match, f1, normalise, score


def test_scores_of_labels_worked_by_hand():
    # TP 2, TN 1, FP 1, FN 0: (2·1 − 1·0) / sqrt(3·2·2·1) = 2 / sqrt(12)
    assert score("matthews", np.array([1, 1, 1, 0]), np.array([1, 1, 0, 0])) == pytest.approx(2 / 12**0.5)
    assert score("accuracy", np.array([0, 1, 1]), np.array([0, 1, 0])) == pytest.approx(2 / 3)


def test_matthews_of_a_constant_is_zero_without_a_warning(recwarn):
    assert score("matthews", np.zeros(5, int), np.array([0, 1, 0, 1, 1])) == 0.0
    assert not recwarn.list


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("  two\t spaces\n", "two spaces"),
        ("an A the", ""),
        ("theatre and another", "theatre and another"),
        ("U.S. (1990-2000)", "us 19902000"),
        ("the-end", "theend"),  # punctuation goes before articles
        ("10,000 °C", "10000 °c"),
        ("“quoted” text", "“quoted” text"),  # only ASCII punctuation is removed
    ],
)
def test_texts_are_normalised_as_the_official_script_does(text, expected):
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ("the Denver Broncos!", ["denver broncos"], 1.0),
        ("the team Broncos", ["Denver Broncos"], 0.5),
        ("Broncos", ["Denver Broncos", "Carolina"], 2 / 3),
        ("big big cat", ["big cat"], 0.8),  # a word counts as often as both have it
        ("cat", ["dog"], 0.0),
        ("", ["dog"], 0.0),
        ("the", ["a"], 0.0),  # no words on either side: the script gives 0, though the match is exact
    ],
)
def test_f1_of_cases_worked_by_hand(predicted, gold, expected):
    assert f1(predicted, gold) == pytest.approx(expected)


def test_an_exact_match_is_one_of_normalised_texts():
    assert exact_match("The U.S.", ["Canada", "us"]) and exact_match("the", ["a"])
    assert not exact_match("U S", ["US"])


GOLD = ([2, 0, 2, 2], ["nsubj", "root", "obj", "punct"])


@pytest.mark.parametrize(
    ("heads", "relations", "right"),
    [
        ([2, 0, 2, 2], ["nsubj", "root", "obj", "punct"], (4, 4)),
        ([2, 0, 2, 2], ["obj", "root", "obj", "punct"], (4, 3)),
        ([2, 0, 2, 3], ["nsubj", "root", "obj", "punct"], (3, 3)),  # punctuation counts
        ([-1, 0, 2, 2], ["", "root", "obj", "punct"], (3, 3)),  # a word that was not parsed
    ],
)
def test_words_of_trees_that_are_right(heads, relations, right):
    assert attached((heads, relations), GOLD) == right


def test_the_null_parser_hangs_every_word_on_the_next():
    # Right: the first two words, by two relations; the last is not the root.
    assert chain_matches([([2, 3, 0, 3], ["det", "nsubj", "root", "punct"]), ([0, 1], ["root", "obj"])]) == [1, 0]
