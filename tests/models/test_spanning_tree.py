import itertools
import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fivelenses.models.spanning_tree import spanning_tree
from fivelenses.tasks.parsing import check_tree


def is_tree(heads) -> bool:
    try:
        check_tree(heads)
    except ValueError:
        return False
    return True


@cache
def all_trees(words: int) -> np.ndarray:
    """(trees, words) the heads of every tree with one root."""
    return np.array([heads for heads in itertools.product(range(words + 1), repeat=words) if is_tree(heads)])


def scores_of(most_words: int, values):
    return st.integers(1, most_words).flatmap(lambda n: arrays(float, (n, n + 1), elements=values))


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_there_are_as_many_trees_as_cayley_counts(words):
    assert len(all_trees(words)) == words ** (words - 1)


@given(scores_of(5, st.floats(-1e3, 1e3)) | scores_of(5, st.sampled_from([-1.0, 0.0, 1.0])))
def test_the_tree_is_the_best_of_all_trees_with_one_root(scores):
    n = len(scores)
    heads = spanning_tree(scores)
    assert is_tree(heads.tolist())
    best = scores[np.arange(n), all_trees(n)].sum(1).max()
    assert scores[np.arange(n), heads].sum() == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(scores_of(20, st.floats(-1e6, 1e6)), st.floats(0, 1e6))
def test_there_is_one_root_however_much_the_words_prefer_it(scores, preference):
    scores[:, 0] += preference
    check_tree(spanning_tree(scores).tolist())


def test_cycles_inside_cycles_are_contracted():
    # Words 2 and 3 prefer each other, word 1 prefers them, and together they prefer word 1 to the root.
    scores = np.array([[6.0, 0.0, 9.0, 0.0], [0.0, 5.0, 0.0, 9.0], [0.0, 4.0, 9.0, 0.0]])
    assert spanning_tree(scores).tolist() == [0, 1, 2]


def test_a_sentence_of_sixty_words_takes_milliseconds():
    scores = np.random.default_rng(0).normal(size=(10, 60, 61))
    spanning_tree(scores[0])
    started = time.perf_counter()
    for sentence in scores:
        spanning_tree(sentence)
    assert (time.perf_counter() - started) / len(scores) < 0.05


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros((0, 1)), "at least one word"),
        (np.zeros((2, 2)), "1 \\+ words"),
        (np.full((2, 3), np.nan), "not finite"),
    ],
)
def test_scores_that_are_no_sentence_are_refused(scores, message):
    with pytest.raises(ValueError, match=message):
        spanning_tree(scores)
