"""Chapter 1: its claims on records of known shapes (the paper's own, its opposite, trivial ones), and its measures."""

import dataclasses
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tests import chapters
from tests.conftest import few_development_examples

from fivelenses.checkpoints.finetuning import prepare
from fivelenses.judging import CANNOT_BE_TESTED, CONTRADICTED, HOLDS, OPEN, REPRODUCED
from fivelenses.papers import models
from fivelenses.papers.hao2020 import between_datasets, changes_by_layer
from fivelenses.records import PRETRAINED, RANDOMLY_INITIALISED, SHARED, TWINS
from fivelenses.tasks import FOLDS

TASKS = ("mnli", "rte", "sst2", "mrpc")
PAIRS = ("rte–mnli", "mrpc–rte", "mrpc–sst2")
SIZES = {"mnli": 392_702, "rte": 2_490, "sst2": 67_349, "mrpc": 3_668}
EXAMPLES = 40  # that are measured

# Curves over the paper's 24 layers, which may differ from task to task (or from pair to pair).
LAYERS, PLACES = np.arange(1, 25), np.arange(len(TASKS))[:, None]
MRPC = PLACES == 3
FLAT, RAMP, FALLING = np.full(24, 0.1), LAYERS / 40, (25 - LAYERS) / 40
OUTLIER = np.where((LAYERS > 11) & (LAYERS <= 16), 0.5, 0.1)
STEP = np.where(LAYERS > 20, 0.4, 0.02)
LOW_HARMLESS = 0.01 + 0.02 * np.clip(LAYERS - 11, 0, None)
SINKING = 0.5 - 0.4 * (LAYERS / 24) ** 2
# MRPC from a lower layer on, the others in the last layers.
SEEDS_IN_ATTENTION = np.where(np.where(MRPC, LAYERS > 9, LAYERS > 20), 0.3, 0.01)
SEEDS_IN_FEATURES = 0.005 * LAYERS + 0.05 * np.clip(LAYERS - np.where(MRPC, 13, 19), 0, None)
# Nothing that the paper says of seeds: large sets fall, and MRPC begins later than they do.
LATE_MRPC = np.where(MRPC, np.where(LAYERS > 23, 0.5, 0.001), 0.1 + 0.2 * ((LAYERS > 12) & (LAYERS <= 20)))
ORDERED = np.where(LAYERS <= 8, 0.005, 0.1 * (PLACES + 1))

# What the paper draws, and the opposite.
SHAPES = {
    "js-last-layers": (STEP, FLAT),
    "svcca-grows": (0.1 + LAYERS / 100, FALLING),
    "rollback-low-harmless": (LOW_HARMLESS, FALLING),
    "seeds-js": (SEEDS_IN_ATTENTION, LATE_MRPC),
    "seeds-svcca": (SEEDS_IN_FEATURES, SINKING),
    "datasets-low-agree": (ORDERED, FLAT),
    "datasets-order": (ORDERED, ORDERED[[2, 1, 0, 3]]),
}
TRIVIAL = {"flat": FLAT, "ramp": RAMP, "falling": FALLING, "outlier": OUTLIER}
# What the sentence itself says: distance that grows with depth.
TRUE_OF_A_LINE = {"svcca-grows"}
judge = chapters.judge(1)


def rows(source, curve, noise, names) -> dict[str, list]:
    """One model's, or pair's, curve of all examples and without each fold, in both measures, as columns."""
    random, depth, folds = np.random.default_rng(source), len(curve), np.arange(-1, 3)
    curve = curve * (1 + noise * random.standard_normal(depth))
    left_out = (folds >= 0)[:, None] * noise / 10 * random.standard_normal((len(folds), depth))
    values = (curve * (1 + left_out)).ravel()
    columns = {"layer": np.tile(np.arange(1, depth + 1), len(folds)), "fold": np.repeat(folds, depth)}
    columns |= {"js": values, "svcca": values, "svcca_all": values}
    return columns | {name: [value] * len(values) for name, value in ({"examples": 400} | names).items()}


def joined(parts: list[dict[str, list]]) -> pd.DataFrame:
    """One table of all these columns: many small tables take minutes."""
    return pd.DataFrame({name: [value for part in parts for value in part[name]] for name in parts[0]})


def records(shape, depth=24, noise=0.01, seeds=3, sizes=SIZES, **control) -> dict[str, pd.DataFrame]:
    """All records of a run in which tasks (or pairs) have this shape."""
    curves = np.broadcast_to(shape, (len(TASKS), 24))[:, 24 // depth * np.arange(1, depth + 1) - 1]
    models = [str(seed) for seed in range(seeds)]
    compared = [(PRETRAINED, one) for one in models] + list(combinations(models, 2))
    changes, rolled_back, between = [], [], []
    for place, (task, curve) in enumerate(zip(TASKS, curves, strict=True)):
        for number, (first, second) in enumerate(compared):
            names = {"task": task, "first": first, "second": second} | control
            changes.append(rows([place, number], curve, noise, names))
        for seed in range(seeds):
            rolled_back.append(rows([place, seed, 1], curve, noise, {"task": task, "seed": seed} | control))
            for pair in PAIRS[place : place + 1]:
                between.append(rows([place, seed, 2], curve, noise, {"pair": pair, "seed": seed} | control))
    return {
        "changes_by_layer": joined(changes),
        # As `comparison.layers_rolled_back` gives them.
        "rollbacks": joined(rolled_back).drop(columns=["js", "svcca_all"]),
        "between_datasets": joined(between),
        "models": pd.DataFrame({"task": list(sizes), "examples": list(sizes.values())}),
    }


@pytest.mark.parametrize("key", SHAPES)
def test_the_papers_shape_is_reproduced_and_its_opposite_contradicted(key):
    found = [judge(key, records(shape)) for shape in SHAPES[key]]
    assert [one.outcome for one in found] == [REPRODUCED, CONTRADICTED]
    assert not found[0].left_out


@pytest.mark.parametrize("shape", TRIVIAL)
@pytest.mark.parametrize("key", SHAPES)
def test_a_trivial_shape_is_not_reproduced(key, shape):
    for depth in (6, 24):
        outcome = judge(key, records(TRIVIAL[shape], depth)).outcome
        assert (outcome == REPRODUCED) == (key in TRUE_OF_A_LINE and shape == "ramp"), depth
    for noise in (0.5, 0) if shape == "flat" else ():
        assert judge(key, records(FLAT, noise=noise)).outcome != REPRODUCED, noise


def test_without_a_large_set_neither_half_is_tested():
    sizes = SIZES | {"mnli": 3000, "sst2": 8000}
    attention = judge("seeds-js", records(SEEDS_IN_ATTENTION, sizes=sizes))
    assert attention.outcome == CANNOT_BE_TESTED and "SST-2 has 8,000 training examples here" in attention.reason
    features = judge("seeds-svcca", records(SEEDS_IN_FEATURES, sizes=sizes))
    assert features.outcome == OPEN and {group.outcome for group in features.groups} == {HOLDS}
    assert features.untested == ("large sets in the last layers", "MRPC from a lower layer on")


def test_what_a_run_lacks_or_did_not_learn_takes_no_part():
    tables, unlearned = records(ORDERED), {"rte": "RTE was not learned"}
    assert judge("datasets-order", tables, unlearned).outcome == CANNOT_BE_TESTED
    left = judge("datasets-low-agree", tables, unlearned)
    assert [group.name for group in left.groups] == ["MRPC–SST-2"] and set(left.left_out) == {"RTE–MNLI", "MRPC–RTE"}
    tables["between_datasets"] = tables["between_datasets"].query("pair != @PAIRS[0]")
    assert "MNLI, RTE, SST-2 and MRPC" in judge("datasets-order", tables).reason
    assert "this run has one" in judge("seeds-js", records(STEP, seeds=1)).reason
    assert "3 layers has too few" in judge("js-last-layers", records(STEP, depth=3)).reason


@pytest.fixture(scope="module")
def checkpoints(toy_specification, session_store):
    """Two seeds."""
    wanted = [toy_specification, dataclasses.replace(toy_specification, seed=1)]
    with few_development_examples():
        return prepare(wanted, session_store, workers=1, log=lambda line: None)


def test_each_comparison_of_models_is_made_of_their_twins_and_without_each_fold(checkpoints):
    changes = changes_by_layer(checkpoints, EXAMPLES, device="cpu")
    whole = changes[(changes["fold"] == -1) & (changes["layer"] == 6)]
    pairs = [(PRETRAINED, "0"), (PRETRAINED, "1"), ("0", "1")]
    expected = [(control, *pair) for control in ("", *TWINS) for pair in pairs]
    expected.insert(3, (SHARED, PRETRAINED, RANDOMLY_INITIALISED))
    assert list(zip(whole["control"], whole["first"], whole["second"], strict=True)) == expected
    assert (whole["js"] > 0).all() and (whole["svcca"] > 0).all()
    # A twin moved as far, and elsewhere.
    tuned, *twins = (whole.loc[whole["control"] == control, "svcca"] for control in ("", *TWINS))
    assert not any(np.allclose(tuned, one, rtol=0.01) for one in twins)
    # Each model's noise is sought for itself.
    assert {one.specification.address for one in checkpoints} <= {*models._scales}
    assert set(changes["fold"]) == {-1, *range(FOLDS)} and changes.groupby("fold").size().nunique() == 1
    assert set(changes["examples"]) == {EXAMPLES, EXAMPLES * 9 // 10}
    left_out = changes[changes["fold"] >= 0]
    assert left_out[["js", "svcca"]].notna().all(axis=None) and left_out["svcca_null"].isna().all()


def test_twins_of_two_data_sets_share_no_noise(checkpoints):
    other = dataclasses.replace(checkpoints[1].specification, task="mrpc", seed=0)
    other = SimpleNamespace(specification=other, manifest={"diverged": False}, model=checkpoints[0].model)
    table = between_datasets([checkpoints[0], other], ("rte", "mrpc"), 20, device="cpu")
    last = table[(table["fold"] == -1) & (table["layer"] == 6)].set_index("control")
    assert last["examples"].tolist() == [40, 40, 40]
    # The models are one and the same, and their twins are not.
    assert last.loc["", "svcca"] < 1e-6 < last.loc[list(TWINS), "svcca"].min()
    # A pair of which one training diverged is absent.
    other.manifest["diverged"] = True
    table = between_datasets([checkpoints[0], other], ("mrpc", "rte"), 4)
    assert table.empty and {"pair", "layer", "js", "svcca"} < set(table)
