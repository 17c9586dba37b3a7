"""The statements of chapter 6 on records made to pass and to fail, on trivial shapes, and where nothing can be said."""

import numpy as np
import pandas as pd
import pytest

from fivelenses.first_exhibits import verdicts
from fivelenses.first_exhibits.claims import judge
from fivelenses.first_exhibits.verdicts import CANNOT_BE_TESTED, CONTRADICTED, MIXED, OPEN, REPRODUCED
from fivelenses.papers.five_lenses import agreement, claims
from fivelenses.papers.five_lenses.instruments import BY_KEY, LENSES, OWN, lens
from fivelenses.records import WHOLE

LAYERS = np.arange(1, 7)
TASKS, SEEDS = ("mnli", "rte", "sst2", "mrpc"), (0, 1)
FOLDED = ("js", "svcca", "probe", "rollback", "rsa")
CLAIMS = {claim.key: claim for claim in claims.CLAIMS}


def changes(curve, entering=lambda measure: np.zeros(6), noise=1e-3, folds=3, control="", tasks=TASKS) -> pd.DataFrame:
    """A record with the same curves for all models, but for a little noise of models and of folds."""
    random, rows = np.random.default_rng(0), []
    for task in tasks:
        for seed in SEEDS:
            for measure in BY_KEY:
                values = np.asarray(curve(measure), dtype=float)
                values = values + noise * random.normal(size=6) * (np.ptp(values) > 0)
                for fold in range(WHOLE, folds if measure in FOLDED else 0):
                    left_out = noise / 10 * random.normal(size=6) * (fold >= 0) * (np.ptp(values) > 0)
                    for layer, value, below in zip(LAYERS, values + left_out, entering(measure), strict=True):
                        rows.append((task, seed, control, measure, fold, layer, value, 0.0, float(below)))
    names = ["task", "seed", "control", "measure", "fold", "layer", "value", "null", "entering"]
    return pd.DataFrame(rows, columns=names)


def verdict(key, table, unlearned=None):
    return judge(CLAIMS[key], {"changes_by_layer": table}, unlearned).verdict


def rising(measure):
    return LAYERS


def flat(measure):
    return np.ones(6)


def falling(measure):
    return LAYERS[::-1]


def outlier(measure):
    return [0, 0, 9, 0, 0, 0]


def weights_against_all(measure):
    return -LAYERS if measure == "weights" else LAYERS


def own_steps(measure):
    """Parameters that go down and up, and activations that add them up."""
    steps = np.array([6.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    return steps if measure in OWN else np.cumsum(steps)


def in_their_own_ways(measure):
    """Every lens begins elsewhere."""
    return np.roll(LAYERS, list(LENSES).index(lens(measure)))


REPRODUCING = {
    "all-rise-with-depth": changes(rising),
    "lenses-agree": changes(falling),
    "top-is-high": changes(lambda measure: [1, 2, 0, 1, 5, 6]),
    "outputs-agree-more": changes(weights_against_all),
    "layers-inherit": changes(own_steps, lambda measure: own_steps("js") - own_steps("weights")),
}
CONTRADICTING = {
    "all-rise-with-depth": changes(falling),
    "lenses-agree": changes(in_their_own_ways),
    "top-is-high": changes(falling),
    "outputs-agree-more": changes(lambda measure: -LAYERS if measure == "js" else LAYERS),
    "layers-inherit": changes(rising, lambda measure: np.cumsum(LAYERS)),
}
# A shape that is what the sentence says.
SAID = {
    ("all-rise-with-depth", rising),
    ("top-is-high", rising),
    *(("lenses-agree", shape) for shape in (rising, falling, outlier)),
}


@pytest.mark.parametrize("key", CLAIMS)
def test_a_record_that_shows_the_statement_reproduces_it(key):
    found = verdict(key, REPRODUCING[key])
    assert found.outcome == REPRODUCED, verdicts.sentence(found)


@pytest.mark.parametrize("key", CLAIMS)
def test_a_record_that_shows_the_contrary_contradicts_it(key):
    found = verdict(key, CONTRADICTING[key])
    assert found.outcome == CONTRADICTED, verdicts.sentence(found)


@pytest.mark.parametrize("shape", [flat, rising, falling, outlier], ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("key", CLAIMS)
def test_a_trivial_shape_reproduces_nothing_but_what_it_is(key, shape):
    found = verdict(key, changes(shape, noise=0))
    assert (found.outcome == REPRODUCED) == ((key, shape) in SAID), verdicts.sentence(found)


@pytest.mark.parametrize("key", CLAIMS)
def test_noise_reproduces_nothing(key):
    assert verdict(key, changes(flat_with_noise, noise=1.0)).outcome != REPRODUCED


def flat_with_noise(measure):
    return [0, 0, 0, 0, 0, 1e-9]


@pytest.mark.parametrize("key", CLAIMS)
def test_measures_that_are_the_same_at_all_layers_test_nothing(key):
    found = verdict(key, changes(flat, flat))
    assert found.outcome == CANNOT_BE_TESTED and "same at all layers" in found.reason


def test_one_constant_measure_is_left_out_of_the_others_verdict():
    found = verdict("top-is-high", changes(lambda measure: np.ones(6) if measure == "js" else LAYERS))
    assert found.outcome == REPRODUCED and len(found.groups) == 7


def test_a_statement_that_fails_for_one_measure_is_mixed_and_names_the_part():
    found = verdict("all-rise-with-depth", changes(lambda m: [1, 1, 9, 9, 5, 5] if m == "structure" else LAYERS))
    (failed,) = found.of(verdicts.FAILS)
    assert found.outcome == MIXED and failed.name == "syntax"
    assert failed.failed == ("high third over middle third",)


def test_models_that_differ_much_leave_it_open():
    assert verdict("all-rise-with-depth", changes(rising, noise=20.0)).outcome == OPEN


def test_a_task_that_was_not_learned_takes_no_part():
    odd = changes(falling, tasks=("rte",))
    table = pd.concat([changes(rising, tasks=("mnli", "sst2", "mrpc")), odd])
    assert verdict("all-rise-with-depth", table).outcome == OPEN
    found = verdict("all-rise-with-depth", table, {"rte": "RTE was not learned"})
    assert found.outcome == REPRODUCED and found.left_out == {"rte": "RTE was not learned"}
    per_task = verdict("outputs-agree-more", changes(weights_against_all), {"rte": "RTE was not learned"})
    assert [group.name for group in per_task.groups] == ["MNLI", "MRPC", "SST-2"]


def test_nothing_is_left_when_no_task_was_learned():
    found = verdict("lenses-agree", changes(rising), dict.fromkeys(TASKS, "not learned"))
    assert found.outcome == CANNOT_BE_TESTED and "no task was learned" in found.reason


def test_a_fold_that_turns_an_order_does_not_widen_the_interval_of_a_rank_correlation():
    table = changes(rising)
    turned = (table["measure"] == "js") & (table["fold"] >= 0)
    table.loc[turned, "value"] *= -1
    assert verdict("lenses-agree", table) == verdict("lenses-agree", changes(rising))


@pytest.mark.parametrize("control", ["twin", "functional twin"])
def test_each_twin_is_judged_beside_the_models(control):
    both = pd.concat([changes(rising), changes(falling, control=control)])
    judged = judge(CLAIMS["all-rise-with-depth"], {"changes_by_layer": both})
    assert judged.verdict.outcome == REPRODUCED and judged.controls[control].verdict.outcome == CONTRADICTED


def test_tasks_that_agree_by_chance_do_not_narrow_an_interval():
    rows = [(task, seed, fold, value) for task in "ab" for seed, value in enumerate((0.2, 0.6)) for fold in (-1, 0, 1)]
    found = agreement.interval(pd.DataFrame(rows, columns=["task", "seed", "fold", "correlation"]))
    assert found.models == 4 and found.estimate == pytest.approx(0.4) and found.low < 0.2


def test_tasks_are_the_draws_where_models_of_a_task_are_alike():
    rows = [(task, seed, -1, value) for task, value in (("a", 0.2), ("b", 0.6)) for seed in range(5)]
    assert agreement.interval(pd.DataFrame(rows, columns=["task", "seed", "fold", "correlation"])).models == 2


@pytest.mark.parametrize("column, most", [("correlation", 1.0), ("difference", 2.0)])
def test_an_interval_ends_where_a_correlation_or_a_difference_of_two_does(column, most):
    rows = [(task, seed, -1, value) for task, value in (("a", -0.9), ("b", 1.0)) for seed in range(3)]
    found = agreement.interval(pd.DataFrame(rows, columns=["task", "seed", "fold", column]), column)
    assert (found.low, found.high) == (-most, most) and found.estimate == pytest.approx(0.05)
