import pytest

from fivelenses.tasks.squad_scores import exact_match, f1, first_sentence, normalise, squad_scores


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
