"""Scores of labels and of answers, on cases worked by hand."""

import numpy as np
import pytest

from fivelenses.tasks.scores import exact_match, f1, first_sentence, majority_rate, normalise, score, squad_scores


def test_matthews_of_a_case_worked_by_hand():
    # TP 2, TN 1, FP 1, FN 0: (2·1 − 1·0) / sqrt(3·2·2·1) = 2 / sqrt(12)
    assert score("matthews", np.array([1, 1, 1, 0]), np.array([1, 1, 0, 0])) == pytest.approx(2 / 12**0.5)


def test_matthews_of_a_constant_is_zero_without_a_warning(recwarn):
    assert score("matthews", np.zeros(5, int), np.array([0, 1, 0, 1, 1])) == 0.0
    assert not recwarn.list


def test_accuracy_of_a_case_worked_by_hand():
    assert score("accuracy", np.array([0, 1, 1]), np.array([0, 1, 0])) == pytest.approx(2 / 3)


@pytest.mark.parametrize("predicted", [[], [0, 1]])
def test_unequal_or_empty_labels_are_refused(predicted):
    with pytest.raises(ValueError, match="equally long"):
        score("accuracy", np.array(predicted), np.array([]))


def test_majority_rate_of_a_tie_is_its_share():
    assert majority_rate(np.array([0, 1, 0, 1])) == 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("  two\t spaces\n", "two spaces"),
        ("an A the", ""),
        ("theatre and another", "theatre and another"),
        ("U.S. (1990-2000)", "us 19902000"),
        ("the-end", "theend"),  # punctuation goes before articles
        ("a.b", "ab"),
        ("10,000 °C", "10000 °c"),
        ("“quoted” text", "“quoted” text"),  # only ASCII punctuation is removed
        ("Beyoncé's", "beyoncés"),
    ],
)
def test_texts_are_normalised_as_the_official_script_does(text, expected):
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ("Denver Broncos", ["Denver Broncos", "Broncos"], 1.0),
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


def test_scores_are_means_over_questions():
    assert squad_scores(["a cat", "big dog"], [["cat", "lion"], ["dog"]]) == (0.5, pytest.approx((1 + 2 / 3) / 2))


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match="give one per question"):
        squad_scores(["one"], [["one"], ["two"]])
    with pytest.raises(ValueError, match="give one per question"):
        squad_scores([], [])
    for answers in ([], "one"):
        with pytest.raises(ValueError, match="a list of at least one text"):
            squad_scores(["one"], [answers])


def test_the_first_sentence_ends_at_a_mark_before_white_space():
    assert first_sentence("Who paid 3.50? Ben did.") == "Who paid 3.50?"
    assert first_sentence("No mark") == "No mark"
    assert first_sentence("") == ""
