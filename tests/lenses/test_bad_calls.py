"""Lenses, parts of models and scores called with bad values: a share of the calls of `tests.hostile.lenses`."""

import copy
import itertools

import pytest
from tests.hostile.lenses import RIGHT, answer, attempts

STRIDE = 29  # a prime, so that calls of all kinds are among them


@pytest.mark.parametrize(("function", "arguments"), RIGHT, ids=[f"{one.__module__}.{one.__name__}" for one, _ in RIGHT])
def test_the_calls_that_are_spoilt_are_right(function, arguments):
    function(**copy.deepcopy(arguments))


def test_bad_calls_are_answered_by_a_number_or_in_one_sentence_of_ours():
    tried = itertools.islice(attempts(), 0, None, STRIDE)
    answers = {name: answer(function, arguments) for name, function, arguments in tried}
    assert len(answers) > 100
    assert {name: said for name, said in answers.items() if said[0] not in ("refused", "a number")} == {}
