"""The parser's scores, loss and trees, and the best tree of all."""

import itertools
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.conftest import ENCODER
from tests.trees import is_tree

from fivelenses import tasks
from fivelenses.models import encoders, heads
from fivelenses.models.biaffine import BiaffineHead, parse, spanning_tree
from fivelenses.tasks.examples import encode


def test_a_word_without_pieces_is_in_no_tree():
    arcs = np.zeros((3, 4))
    arcs[:, 2] = 100.0  # every word would like the second, which has no pieces
    arcs[2, 1] = 1.0
    relations = np.zeros((3, 4, 2))
    relations[2, 1, 1] = 1.0
    found, names = parse(arcs, relations, np.array([0, 2]))
    assert found.tolist() == [0, 1] and names.tolist() == [0, 1]


def test_a_diverged_parser_still_gives_trees():
    found, _ = parse(np.full((3, 4), np.nan), np.full((3, 4, 2), np.nan), np.arange(3))
    assert is_tree(found.tolist())


def test_scores_are_those_of_the_equations():
    torch.manual_seed(0)
    head = BiaffineHead(6, 3).eval()
    words = torch.randn(1, 4, 6)
    with torch.no_grad():
        arcs, relations = head(words, torch.ones(1, 4, dtype=torch.bool))

        def vector(layer, word):
            return torch.cat([torch.nn.functional.leaky_relu(layer(word), 0.1), torch.ones(1)])

        for dependent, (place, of_head) in itertools.product(range(4), enumerate([head.root, *words[0]])):
            d, h = vector(head.relation_dependent, words[0, dependent]), vector(head.relation_head, of_head)
            torch.testing.assert_close(relations[0, dependent, place], (d @ head.relation_scores) @ h)
            if place != dependent + 1:
                d, h = vector(head.arc_dependent, words[0, dependent]), vector(head.arc_head, of_head)
                torch.testing.assert_close(arcs[0, dependent, place], d @ head.arc_scores @ h)
        assert (arcs[0].diagonal(1) == torch.finfo(arcs.dtype).min).all()


def test_padding_and_neighbours_do_not_change_scores_nor_loss(toy_tokenizer):
    data = tasks.load("parsing", "toyworld")
    torch.manual_seed(0)
    model = heads.build(encoders.locate(ENCODER), "biaffine", data.labels).eval()
    collate = heads.collator("biaffine", toy_tokenizer)
    rows = encode(data, "validation", toy_tokenizer, 64).select(range(8))
    wanted = [{name: value for name, value in row.items() if name != "row"} for row in rows]
    with torch.no_grad():
        together = model(**collate(wanted))
        losses = []
        for place, row in enumerate(wanted):
            alone, words = model(**collate([row])), len(row["heads"])
            losses += [alone.loss * words]
            for ours, theirs in ((together.arcs, alone.arcs), (together.relations, alone.relations)):
                torch.testing.assert_close(ours[place, :words, : words + 1], theirs[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(together.loss, sum(losses) / sum(len(row["heads"]) for row in wanted))


@cache
def all_trees(words: int) -> np.ndarray:
    """(trees, words) the heads of every tree with one root."""
    return np.array([heads for heads in itertools.product(range(words + 1), repeat=words) if is_tree(heads)])


def scores_of(most_words: int, values):
    return st.integers(1, most_words).flatmap(lambda n: arrays(float, (n, n + 1), elements=values))


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
    assert is_tree(spanning_tree(scores).tolist())
