"""Each predicate of chapter 1 is fed a table made to pass and one made to fail."""

import numpy as np
import pandas as pd
import pytest

from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, REPRODUCED, judge
from fivelenses.papers.hao2020.claims import CLAIMS

LAYERS = np.arange(1, 25)
TASKS = ("mnli", "rte", "sst2", "mrpc")
PAIRS = ("rte–mnli", "mrpc–rte", "mrpc–sst2")
BY_KEY = {claim.key: claim for claim in CLAIMS}


def curves(group: str, names, shape, value: str) -> pd.DataFrame:
    """A table with one curve a name and seed; `shape` gets the layer and the name's place."""
    rows = [
        {group: name, "seed": str(seed), "layer": layer, value: float(shape(layer, place))}
        for place, name in enumerate(names)
        for seed in (0, 1)
        for layer in LAYERS
    ]
    return pd.DataFrame(rows)


def step(layer, place):
    return 0.4 if layer > 16 else 0.01


def flat(layer, place):
    return 0.1


def rise(layer, place):
    # Steeper in the last third; the fourth task (MRPC) rises early.
    return layer / 24 if place == 3 else (layer / 24) ** 3


def falling(layer, place):
    return (25 - layer) / 24


def low_harmless(layer, place):
    return 0.3 if layer > 11 else 0.02


def ordered(layer, place):
    return (0.01 if layer <= 8 else 0.1 * (place + 1)) * (1 + layer / 1000)


def reversed_order(layer, place):
    return ordered(layer, 2 - place)


def verdict(key: str, group: str, names, shape) -> str:
    claim = BY_KEY[key]
    values = zip(claim.exhibits, VALUES[key], strict=True)
    tables = {exhibit: curves(group, names, shape, value) for exhibit, value in values}
    return judge(claim, tables).verdict


VALUES = {
    "js-last-layers": ("js",),
    "svcca-grows": ("svcca",),
    "rollback-low-harmless": ("svcca",),
    "seeds-js": ("js",),
    "seeds-svcca": ("svcca",),
    "datasets-low-agree": ("js", "svcca"),
    "datasets-order": ("js", "svcca"),
}


@pytest.mark.parametrize(
    ("key", "group", "names", "shape"),
    [
        ("js-last-layers", "task", TASKS, step),
        ("svcca-grows", "task", TASKS, rise),
        ("rollback-low-harmless", "task", TASKS, low_harmless),
        ("seeds-js", "task", TASKS, step),
        ("seeds-svcca", "task", TASKS, rise),
        ("datasets-low-agree", "pair", PAIRS, ordered),
        ("datasets-order", "pair", PAIRS, ordered),
    ],
)
def test_a_table_made_to_pass_passes(key, group, names, shape):
    assert verdict(key, group, names, shape) == REPRODUCED


@pytest.mark.parametrize(
    ("key", "group", "names", "shape"),
    [
        ("js-last-layers", "task", TASKS, flat),
        ("svcca-grows", "task", TASKS, falling),
        ("rollback-low-harmless", "task", TASKS, flat),
        ("seeds-js", "task", TASKS, flat),
        ("seeds-svcca", "task", TASKS, falling),
        ("datasets-low-agree", "pair", PAIRS, flat),
        ("datasets-order", "pair", PAIRS, reversed_order),
    ],
)
def test_a_table_made_to_fail_fails(key, group, names, shape):
    assert verdict(key, group, names, shape) == NOT_REPRODUCED


def test_the_order_of_data_sets_needs_all_three_pairs():
    assert verdict("datasets-order", "pair", PAIRS[:2], ordered) == CANNOT_BE_TESTED


def test_mrpc_that_diverges_later_than_large_data_fails_there():
    def late(layer, place):
        # MRPC (place 3) jumps at layer 23, the others at 17; every ratio stays above 2.
        return 0.4 if layer > (22 if place == 3 else 16) else 0.01

    claim = BY_KEY["seeds-js"]
    result = judge(claim, {claim.exhibits[0]: curves("task", TASKS, late, "js")})
    assert result.reason == "does not hold for MRPC"


def test_there_is_one_claim_for_each_key_of_the_paper():
    assert list(BY_KEY) == list(VALUES)
    assert all(claim.sentence.endswith(".") and claim.place for claim in CLAIMS)
