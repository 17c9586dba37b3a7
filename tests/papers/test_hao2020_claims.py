"""Each claim of chapter 1 on records with known shapes: the paper's own, its opposite, and trivial ones."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from tests import chapters

from fivelenses.judging import CANNOT_BE_TESTED, CONTRADICTED, FAILS, HOLDS, MIXED, OPEN, REPRODUCED
from fivelenses.records import PRETRAINED, SHUFFLED, TWIN

TASKS = ("mnli", "rte", "sst2", "mrpc")
PAIRS = ("rte–mnli", "mrpc–rte", "mrpc–sst2")
SIZES = {"mnli": 392_702, "rte": 2_490, "sst2": 67_349, "mrpc": 3_668}


@pytest.fixture
def judge(tmp_path):
    """What becomes of a claim on records."""
    return lambda key, tables, excluded=None: chapters.verdicts(1, tables, tmp_path, excluded, key)[key]


def rows(source, shape, depth, noise, folds, names) -> dict[str, list]:
    """One model's, or pair's, curve of all examples and without each fold, in both measures, as columns."""
    random = np.random.default_rng(source)
    layers = np.arange(1, depth + 1)
    # The paper's 24 layers, whatever the depth.
    curve = np.array([shape(24 * layer / depth) for layer in layers]) * (1 + noise * random.standard_normal(depth))
    found = range(-1, folds)
    values = np.ravel([curve * (1 + (fold >= 0) * noise / 10 * random.standard_normal(depth)) for fold in found])
    columns = {"layer": [*layers] * len(found), "js": values, "svcca": values, "svcca_all": values}
    columns["fold"] = np.repeat(found, depth)
    return columns | {name: [value] * len(values) for name, value in ({"examples": 400} | names).items()}


def joined(parts: list[dict[str, list]]) -> pd.DataFrame:
    """One table of all these columns: many small tables take minutes."""
    return pd.DataFrame({name: [value for part in parts for value in part[name]] for name in parts[0]})


def records(shapes, depth=24, noise=0.01, folds=10, seeds=3, sizes=SIZES, control=None) -> dict[str, pd.DataFrame]:
    """All records of a run in which task (or pair) number `place` has the shape `shapes(layer, place)`."""
    labelled = {} if control is None else {"control": control}
    models = [str(seed) for seed in range(seeds)]
    compared = [(PRETRAINED, one) for one in models] + list(combinations(models, 2))
    changes, rollbacks, between = [], [], []
    for place, task in enumerate(TASKS):
        of_task = dict(shape=lambda layer, place=place: shapes(layer, place), depth=depth, noise=noise, folds=folds)
        for number, (first, second) in enumerate(compared):
            names = {"task": task, "first": first, "second": second} | labelled
            changes.append(rows([place, number], **of_task, names=names))
        for seed in range(seeds):
            rollbacks.append(rows([place, seed, 1], **of_task, names={"task": task, "seed": seed} | labelled))
            if place < len(PAIRS):
                names = {"pair": PAIRS[place], "seed": seed} | labelled
                between.append(rows([place, seed, 2], **of_task, names=names))
    tables = {"changes_by_layer": changes, "rollbacks": rollbacks, "between_datasets": between}
    found = {name: joined(parts) for name, parts in tables.items()}
    # As `comparison.layers_rolled_back` gives them.
    found["rollbacks"] = found["rollbacks"].drop(columns=["js", "svcca_all"])
    return found | {"models": pd.DataFrame({"task": list(sizes), "examples": list(sizes.values())})}


def step(layer, place):
    return 0.4 if layer > 20 else 0.02


def rising(layer, place):
    return 0.1 + layer / 100


def low_harmless(layer, place):
    return 0.01 + 0.02 * max(0, layer - 11)


def seeds_in_attention(layer, place):
    # MRPC (place 3) from layer 10 on, the others in the last layers.
    return 0.3 if layer > (9 if place == 3 else 20) else 0.01


def seeds_in_features(layer, place):
    bend = 13 if place == 3 else 19
    return 0.005 * layer + 0.05 * max(0, layer - bend)


def ordered(layer, place):
    return 0.005 if layer <= 8 else 0.1 * (place + 1)


def flat(layer, place):
    return 0.1


def ramp(layer, place):
    return layer / 40


def ramp_from_the_first_layer(layer, place):
    return (layer - 1) / 40


def falling(layer, place):
    return (25 - layer) / 40


def sinking(layer, place):
    return 0.5 - 0.4 * (layer / 24) ** 2


def outlier(layer, place):
    return 0.5 if 11 < layer <= 16 else 0.1


def late_mrpc(layer, place):
    # Nothing that the paper says of seeds: large sets fall, and MRPC begins later than they do.
    return (0.5 if layer > 23 else 0.001) if place == 3 else 0.1 + 0.2 * (12 < layer <= 20)


def reversed_order(layer, place):
    return ordered(layer, 2 - place)


PAPERS_SHAPES = {
    "js-last-layers": step,
    "svcca-grows": rising,
    "rollback-low-harmless": low_harmless,
    "seeds-js": seeds_in_attention,
    "seeds-svcca": seeds_in_features,
    "datasets-low-agree": ordered,
    "datasets-order": ordered,
}
OPPOSITES = {
    "js-last-layers": flat,
    "svcca-grows": falling,
    "rollback-low-harmless": falling,
    "seeds-js": late_mrpc,
    "seeds-svcca": sinking,
    "datasets-low-agree": flat,
    "datasets-order": reversed_order,
}


def test_each_claim_of_the_paper_has_a_shape(tmp_path):
    assert list(chapters.verdicts(1, records(flat, 6, folds=2), tmp_path)) == list(PAPERS_SHAPES) == list(OPPOSITES)


@pytest.mark.parametrize("key", PAPERS_SHAPES)
def test_the_papers_shape_is_reproduced(judge, key):
    verdict = judge(key, records(PAPERS_SHAPES[key]))
    assert verdict.outcome == REPRODUCED, verdict
    assert not verdict.left_out


@pytest.mark.parametrize("key", PAPERS_SHAPES)
def test_the_opposite_is_contradicted(judge, key):
    verdict = judge(key, records(OPPOSITES[key]))
    assert verdict.outcome == CONTRADICTED, verdict


# What the sentence itself says: distance that grows with depth.
TRUE_OF_A_LINE = {"svcca-grows"}


@pytest.mark.parametrize("depth", [6, 24])
@pytest.mark.parametrize("shape", [flat, ramp, ramp_from_the_first_layer, falling, outlier])
@pytest.mark.parametrize("key", PAPERS_SHAPES)
def test_a_trivial_shape_is_not_reproduced(judge, key, shape, depth):
    outcome = judge(key, records(shape, depth)).outcome
    lines = (ramp, ramp_from_the_first_layer)
    assert (outcome == REPRODUCED) == (key in TRUE_OF_A_LINE and shape in lines)


@pytest.mark.parametrize("key", PAPERS_SHAPES)
def test_noise_and_ties_are_not_reproduced(judge, key):
    noisy, tied = records(flat, noise=0.5), records(flat, noise=0)
    assert judge(key, noisy).outcome != REPRODUCED
    assert judge(key, tied).outcome != REPRODUCED


def test_one_seed_that_lies_out_leaves_a_claim_open(judge):
    tables = records(ramp, 6)
    one = (tables["changes_by_layer"]["second"] == "2") & (tables["changes_by_layer"]["layer"] > 4)
    tables["changes_by_layer"].loc[one, "js"] *= 10
    assert judge("js-last-layers", tables).outcome == OPEN


def test_mrpc_that_begins_later_than_large_data_fails_there(judge):
    def late(layer, place):
        return 0.3 if layer > (23 if place == 3 else 18) else 0.01

    verdict = judge("seeds-js", records(late))
    failed = {group.name for group in verdict.groups if group.outcome == FAILS}
    assert failed == {"MRPC before MNLI", "MRPC before SST-2"} and verdict.outcome == MIXED


@pytest.mark.parametrize("key", ["seeds-js", "seeds-svcca"])
def test_a_set_of_a_few_thousand_examples_is_not_large(judge, key):
    verdict = judge(key, records(PAPERS_SHAPES[key], sizes=SIZES | {"mnli": 3000}))
    assert set(verdict.left_out) == {"MRPC before MNLI", "MNLI, last layers"}
    reason = "MNLI has 3,000 training examples here, not 10 times MRPC's 3,668"
    assert set(verdict.left_out.values()) == {reason}
    assert verdict.outcome == REPRODUCED
    assert verdict.left_of_half["large sets in the last layers"] == "SST-2, last layers"


def test_without_a_large_set_neither_half_is_tested(judge):
    sizes = SIZES | {"mnli": 3000, "sst2": 8000}
    attention = judge("seeds-js", records(seeds_in_attention, sizes=sizes))
    assert attention.outcome == CANNOT_BE_TESTED and "SST-2 has 8,000 training examples here" in attention.reason
    features = judge("seeds-svcca", records(seeds_in_features, sizes=sizes))
    assert features.outcome == OPEN and {group.outcome for group in features.groups} == {HOLDS}
    assert features.untested == ("large sets in the last layers", "MRPC from a lower layer on")


def test_without_mrpc_its_half_is_named(judge):
    verdict = judge("seeds-js", records(seeds_in_attention), {"mrpc": "MRPC was not learned"})
    assert verdict.outcome == OPEN and verdict.untested == ("MRPC from a lower layer on",)


def test_pairs_that_the_paper_does_not_compare_are_not_judged(judge):
    tables = records(ordered)
    other = tables["between_datasets"].assign(pair="mnli–sst2", js=1.0, svcca=1.0)
    tables["between_datasets"] = pd.concat([tables["between_datasets"], other])
    verdict = judge("datasets-low-agree", tables)
    assert verdict.outcome == REPRODUCED and len(verdict.groups) == 3
    none = judge("datasets-low-agree", tables | {"between_datasets": other})
    assert none.reason == "this run compares none of the paper's pairs of data sets"


def test_each_setting_of_the_multiverse_is_judged(judge):
    tables = records(rising)
    tables["changes_by_layer"]["svcca_all"] = 0.5
    verdict = judge("svcca-grows", tables)
    assert [name for name, one in verdict.settings.items() if one != REPRODUCED] == ["all of the variance kept"]
    assert len(verdict.settings) == 4 and verdict.settings["all of the variance kept"] == OPEN
    lasts = judge("js-last-layers", records(step)).settings
    assert {"thresholds × 0.75", "thresholds × 1.25", "halves of the layers"} < set(lasts)


def test_controls_are_judged_apart(judge):
    def both(layer, place):
        return step(layer, place)

    tables = records(both, control="")
    for name, table in records(ramp, control=TWIN).items():
        if name != "models":
            tables[name] = pd.concat([tables[name], table])
    shuffled = records(step, control=SHUFFLED)["changes_by_layer"]
    tables["changes_by_layer"] = pd.concat([tables["changes_by_layer"], shuffled[shuffled["task"] == "sst2"]])
    verdict = judge("js-last-layers", tables)
    assert verdict.outcome == REPRODUCED and verdict.controls[TWIN].outcome == CONTRADICTED
    assert [group.name for group in verdict.controls[SHUFFLED].groups] == ["SST-2"]


def test_a_task_that_was_not_learned_takes_no_part(judge):
    tables, unlearned = records(ordered), {"rte": "RTE was not learned"}
    assert judge("datasets-order", tables, unlearned).outcome == CANNOT_BE_TESTED
    left = judge("datasets-low-agree", tables, unlearned)
    assert [group.name for group in left.groups] == ["MRPC–SST-2"] and set(left.left_out) == {"RTE–MNLI", "MRPC–RTE"}
    assert left.alone


def test_what_a_run_lacks_cannot_be_tested(judge):
    two = records(ordered)
    two["between_datasets"] = two["between_datasets"][two["between_datasets"]["pair"] != PAIRS[0]]
    assert "MNLI, RTE, SST-2 and MRPC" in judge("datasets-order", two).reason
    assert "this run has one" in judge("seeds-js", records(step, seeds=1)).reason
    shallow = judge("js-last-layers", records(step, depth=3))
    assert shallow.outcome == CANNOT_BE_TESTED and "3 layers has too few" in shallow.reason


def test_two_seeds_are_one_pair(judge):
    verdict = judge("seeds-js", records(seeds_in_attention, seeds=2))
    assert verdict.outcome == REPRODUCED and all(group.models == 1 for group in verdict.groups)
