"""The statements of chapter 6 on tables made to pass and to fail, and where nothing can be said."""

import numpy as np
import pandas as pd
import pytest

from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, PARTLY, REPRODUCED, judge, ledger
from fivelenses.papers.five_lenses import claims
from fivelenses.papers.five_lenses.instruments import BY_KEY, OWN

LAYERS = np.arange(1, 7)
MODELS = tuple((task, seed) for task in ("mnli", "rte") for seed in (0, 1))
CLAIMS = {claim.key: claim for claim in claims.CLAIMS}


def changes(curve, entering=lambda measure: np.zeros(6)) -> pd.DataFrame:
    rows = [
        (task, seed, measure, layer, float(value), 0.0, float(below))
        for task, seed in MODELS
        for measure in BY_KEY
        for layer, value, below in zip(LAYERS, curve(measure), entering(measure), strict=True)
    ]
    return pd.DataFrame(rows, columns=["task", "seed", "measure", "layer", "value", "null", "entering"])


def verdict(key, table):
    claim = CLAIMS[key]
    return judge(claim, {claim.exhibits[0]: table})


def rising(measure):
    return LAYERS


def weights_against_all(measure):
    return -LAYERS if measure == "weights" else LAYERS


def own_steps(measure):
    """Parameters that go down and up, and activations that add them up."""
    steps = np.array([6.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    return steps if measure in OWN else np.cumsum(steps)


def lowest_changes_most(measure):
    return LAYERS[::-1]


def in_their_own_ways(measure):
    """Every lens peaks elsewhere."""
    return np.roll([0, 1, 2, 3, 4, 9], list(BY_KEY).index(measure))


PASSING = {
    "all-rise-with-depth": changes(rising),
    "lenses-agree": changes(lowest_changes_most),
    "top-is-high": changes(rising),
    "outputs-agree-more": changes(weights_against_all),
    "layers-inherit": changes(own_steps, lambda measure: own_steps("js") - own_steps("weights")),
}
FAILING = {
    "all-rise-with-depth": changes(lowest_changes_most),
    "lenses-agree": changes(in_their_own_ways),
    "top-is-high": changes(lowest_changes_most),
    "outputs-agree-more": changes(lambda measure: -LAYERS if measure in ("rsa", "js") else LAYERS),
    "layers-inherit": changes(rising, lambda measure: np.cumsum(LAYERS)),
}


@pytest.mark.parametrize("key", CLAIMS)
def test_a_table_that_shows_the_statement_passes(key):
    assert verdict(key, PASSING[key]).verdict == REPRODUCED


@pytest.mark.parametrize("key", CLAIMS)
def test_a_table_that_shows_the_contrary_fails(key):
    assert verdict(key, FAILING[key]).verdict == NOT_REPRODUCED


def test_a_statement_that_holds_for_most_measures_holds_partly():
    found = verdict("all-rise-with-depth", changes(weights_against_all))
    assert found.verdict == PARTLY and (found.held, found.groups) == (7, 8) and "weights" in found.reason


@pytest.mark.parametrize("key", CLAIMS)
def test_measures_that_are_the_same_at_all_layers_test_nothing(key):
    found = verdict(key, changes(lambda measure: np.ones(6), lambda measure: np.ones(6)))
    assert found.verdict == CANNOT_BE_TESTED and "same at all layers" in found.reason


def test_one_constant_measure_is_left_out_of_the_others_verdict():
    found = verdict("top-is-high", changes(lambda measure: np.ones(6) if measure == "js" else LAYERS))
    assert found.verdict == REPRODUCED and found.groups == 7


def test_the_ledger_names_these_as_statements_and_no_papers_claims():
    verdicts = [verdict(key, PASSING[key]) for key in CLAIMS]
    assert "the statement" in ledger(claims.CLAIMS, verdicts).columns


@pytest.mark.parametrize("key", ["outputs-agree-more", "layers-inherit"])
def test_tasks_have_the_names_that_they_have_in_the_other_chapters(key):
    assert list(verdict(key, PASSING[key]).by_group) == ["MNLI", "RTE"]
