"""Chapter 6 asked of another encoder: how like the two sets of correlations are, and verdicts on its own table."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from tests.papers.test_five_lenses import changes, random_curves

from fivelenses.papers import five_lenses
from fivelenses.papers.five_lenses.another_encoder import likeness
from fivelenses.papers.five_lenses.instruments import BY_KEY


def in_one_order(measure, task, seed):
    return np.arange(1, 7) + 0.1 * seed


def test_an_encoder_is_like_itself_and_its_pairs_are_counted():
    table = changes(random_curves())
    alike, pairs = likeness(table, table)
    assert alike == pytest.approx(1) and pairs == len(BY_KEY) * (len(BY_KEY) - 1) / 2


def test_pairs_that_turn_from_alike_to_opposed_turn_the_sign():
    # Half of the measures rise in one encoder and fall in the other, so that each mixed pair changes sides.
    kept = sorted(BY_KEY)[:2]

    def half(measure, task, seed):
        return in_one_order(measure, task, seed) * (1 if measure in kept else -1)

    mixed, ordered = changes(half), changes(in_one_order)
    mixed_again = changes(lambda *which: -half(*which))
    assert likeness(mixed, mixed_again)[0] == pytest.approx(1)
    # All correlations are 1: there is no order to compare.
    assert np.isnan(likeness(mixed, ordered)[0])


def test_too_few_pairs_have_no_correlation():
    table = changes(in_one_order)
    two = table[table["measure"].isin(list(BY_KEY)[:2])]
    alike, pairs = likeness(two, two)
    assert np.isnan(alike) and pairs == 1


def test_the_caption_judges_the_statements_on_the_other_encoders_own_table():
    usual, other = changes(random_curves(1)), changes(in_one_order)
    exhibit = five_lenses.another_encoder(other, usual, "english-bert/seed-0")
    plt.close("all")
    assert exhibit.key == "five-lenses-correlations-english-bert-seed-0"
    assert set(exhibit.table["encoder"]) == {"english-bert/seed-0"}
    assert "all-rise-with-depth is reproduced (1 ± 0)" in exhibit.caption and "lenses-agree is" in exhibit.caption
    assert "28 pairs of measures" in exhibit.caption
