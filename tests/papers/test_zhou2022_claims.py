"""Each claim of chapter 2 on the paper's own numbers, on trivial shapes, and on records that settle it either way."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests import chapters

from fivelenses.judging import CANNOT_BE_TESTED, CONTRADICTED, FAILS, MIXED, OPEN, REPRODUCED

SEEDS = (0, 1, 2)
TASKS = ("pos", "dep", "ps-role", "ps-fxn", "trec")


def judged(key: str, excluded=None, **tables):
    return chapters.verdicts(2, tables, Path(), excluded, key)[key]


def outcome(key: str, **tables) -> str:
    return judged(key, **tables).outcome


def test_the_paper_has_seven_claims():
    judged = chapters.verdicts(2, {}, Path())
    assert len(judged) == 7 and {one.outcome for one in judged.values()} == {CANNOT_BE_TESTED}


# --- mostly-improves --------------------------------------------------------------------------------------------------


def sentences_read(gain: float, seed: int, sentences: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Which sentences a probe has right before and after; a tenth of them change in vain, the gain comes on top."""
    before = np.random.default_rng(9).permutation(sentences) < 0.6 * sentences
    after, generator = before.copy(), np.random.default_rng(seed)
    for right, share in ((False, 0.05 + max(gain, 0)), (True, 0.05 + max(-gain, 0))):
        after[generator.choice(np.flatnonzero(before == right), round(share * sentences), replace=False)] = not right
    return before, after


def probes(gains: dict[str, float], seeds=SEEDS) -> dict:
    parts = []
    for task, gain in gains.items():
        for seed in seeds:
            for stage, right in zip(("before", "after"), sentences_read(gain, seed), strict=True):
                row = {"encoder": "toy-bert/seed-0", "task": task, "seed": seed, "stage": stage, "metric": "accuracy"}
                row["control"] = "all" if stage == "before" else ""
                scored = {"example": np.arange(len(right)), "score": right * 2.0, "weight": 2.0, "null": 1.0}
                parts.append(pd.DataFrame(scored | row))
    return {"sentences": pd.concat(parts, ignore_index=True)}


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([0.2, 0.2, 0.2, 0.2, 0.2], REPRODUCED),
        ([0.2, 0.2, 0.2, 0.2, -0.2], REPRODUCED),  # there are exceptions, as BERT-small on PS-fxn in the paper
        ([0.2, 0.2, 0.2, -0.2, -0.2], CONTRADICTED),
        ([-0.2, -0.2, -0.2, -0.2, -0.2], CONTRADICTED),
        ([0.0, 0.0, 0.0, 0.0, 0.0], OPEN),
        ([0.3, 0.0, 0.0, 0.0, 0.0], OPEN),
    ],
)
def test_nearly_all_tasks_improve(gains, expected):
    assert outcome("mostly-improves", probe_accuracy=probes(dict(zip(TASKS, gains, strict=True)))) == expected


def test_fewer_tasks_than_five_have_no_exception():
    assert outcome("mostly-improves", probe_accuracy=probes({"pos": 0.2, "dep": 0.2, "trec": -0.2})) == CONTRADICTED


def test_an_encoder_is_left_out_with_a_task_that_it_did_not_learn():
    record = probes(dict.fromkeys(TASKS, 0.2))
    found = judged("mostly-improves", {"trec on toy-bert/seed-0": "TREC-50 was not learned"}, probe_accuracy=record)
    assert found.outcome == CANNOT_BE_TESTED and "TREC-50" in found.reason


# --- diverges, simplifies ---------------------------------------------------------------------------------------------


def geometry(seeds=SEEDS, control: str = "", labels: int = 10, **cases) -> pd.DataFrame:
    """Rows of one encoder: a measure's values before and after by task, a fifth higher or lower with the seed after."""
    rows = []
    for task, measures in cases.items():
        for seed in seeds:
            model = {"encoder": "toy-bert/seed-0", "task": task, "seed": seed, "labels": labels}
            for place, stage in enumerate(("before", "after")):
                values = {name: pair[place] + place * spread * (seed - 1) for name, (pair, spread) in measures.items()}
                of_stage = {"stage": stage, "control": "all" if stage == "before" else control}
                rows.append(model | of_stage | {"similarity": np.nan, "clusters": labels} | values)
    return pd.DataFrame(rows)


def similar(before: float, after: float, spread: float = 0.01) -> dict:
    return {"similarity": ((before, after), spread)}


def clustered(before: float, after: float, spread: float = 0.0) -> dict:
    return {"clusters": ((before, after), spread)}


@pytest.mark.parametrize(
    ("pos", "dep", "trec", "expected"),
    [
        (similar(0.9, 0.5), similar(0.9, 0.6), similar(0.9, 0.1), REPRODUCED),
        (similar(0.5, 0.9), similar(0.5, 0.6), similar(0.1, 0.9), CONTRADICTED),
        (similar(0.9, 0.5), similar(0.9, 0.95), similar(0.9, 0.1), MIXED),
        (similar(0.9, 0.9, 0.0), similar(0.8, 0.8, 0.0), similar(0.7, 0.7, 0.0), OPEN),
        (similar(0.9, 0.9, 0.1), similar(0.9, 0.88, 0.1), similar(0.9, 0.86, 0.1), OPEN),
        (similar(0.9, 0.3), similar(0.9, 0.9), similar(0.9, 0.9), OPEN),
        (similar(0.9, np.nan), similar(np.nan, 0.9), similar(np.nan, np.nan), CANNOT_BE_TESTED),
    ],
)
def test_training_and_test_set_become_less_alike(pos, dep, trec, expected):
    assert outcome("diverges", geometry=geometry(pos=pos, dep=dep, trec=trec)) == expected


def test_one_model_decides_nothing_about_a_measure_that_jumps_with_the_examples():
    found = judged("diverges", geometry=geometry(seeds=(1,), pos=similar(0.9, 0.1)))
    assert found.outcome == OPEN and not found.controls and found.groups[0].models == 1


@pytest.mark.parametrize(
    ("pos", "dep", "expected"),
    [
        (clustered(20, 10), clustered(15, 12), REPRODUCED),
        (clustered(20, 25), clustered(15, 16), CONTRADICTED),
        (clustered(20, 10), clustered(15, 19), MIXED),
        (clustered(20, 20), clustered(15, 15), OPEN),
        (clustered(20, 19.7), clustered(15, 14.8), OPEN),  # no count is as exact as equal ones of three seeds look
        (clustered(20, 19, 3), clustered(15, 16, 3), OPEN),
        # As many clusters as labels before: there is nothing to become fewer.
        (clustered(10, 10), clustered(10, 10), CANNOT_BE_TESTED),
    ],
)
def test_clusters_become_fewer_where_labels_were_not_separable(pos, dep, expected):
    assert outcome("simplifies", geometry=geometry(pos=pos, dep=dep)) == expected


def test_all_points_that_become_separable_count_for_nothing_where_clusters_were_not_counted():
    record = geometry(pos=clustered(10, 10))
    record["separable"] = record["stage"] == "after"
    found = judged("simplifies", geometry=record)
    assert found.outcome == CANNOT_BE_TESTED and "planes separate" in found.reason


@pytest.mark.parametrize("name", ["twin", "functional twin"])
def test_each_twin_is_judged_apart(name):
    twin = geometry(control=name, pos=similar(0.9, 0.95))
    record = pd.concat([geometry(pos=similar(0.9, 0.5)), twin[twin["stage"] == "after"]], ignore_index=True)
    found = judged("diverges", geometry=record)
    assert found.outcome == REPRODUCED and found.controls[name].outcome == CONTRADICTED


def test_a_case_is_left_out_by_the_name_of_its_encoder():
    found = judged("diverges", {"pos on toy-bert/seed-0": "not learned"}, geometry=geometry(pos=similar(0.9, 0.5)))
    assert found.left_out == {"toy-bert/seed-0 on POS": "not learned"}


# --- along training ---------------------------------------------------------------------------------------------------


def followed(measure: str, curves: dict, seeds=SEEDS, task: str = "pos", control: str = "", **columns) -> pd.DataFrame:
    """Curves by label or layer along steps, a little higher or lower with the seed but for the first state."""
    by = "label" if measure == "min_distance" else "layer"
    rows = [
        {"task": task, "seed": seed, "control": control if step else "all", "step": step, "layer": 6, by: key}
        | {measure: value + 0.01 * (seed - 1) * (step > 0)}
        for key, values in curves.items()
        for step, value in enumerate(values)
        for seed in seeds
    ]
    return pd.DataFrame(rows).assign(**columns)


WAVERING, RAMP, FLAT, SHRINKING = [1.0, 3.0, 2.0], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [3.0, 3.5, 1.0]
NOISE_OF_LABELS = {"A": [1.0, 1.3, 0.9], "B": [2.0, 1.9, 2.1], "C": [1.5, 1.2, 1.5]}


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        ({"A": WAVERING, "B": RAMP, "C": RAMP}, REPRODUCED),
        ({"A": SHRINKING, "B": SHRINKING, "C": RAMP}, CONTRADICTED),
        ({"A": RAMP, "B": RAMP, "C": RAMP}, REPRODUCED),
        (NOISE_OF_LABELS, CONTRADICTED),
        ({"A": FLAT, "B": FLAT, "C": FLAT}, OPEN),
        ({"A": [1.0, 9.0, 20.0], "B": [2.0, 1.0, 2.0], "C": FLAT}, OPEN),  # one outlier
    ],
)
def test_labels_are_pushed_apart(curves, expected):
    assert (
        outcome("pushes-apart", along_training={"distances": followed("min_distance", curves, separable=True)})
        == expected
    )


def test_distances_of_clusters_are_not_compared():
    record = followed("min_distance", {"A": WAVERING, "B": RAMP}, separable=True)
    record.loc[record["step"] == 2, "separable"] = False
    assert outcome("pushes-apart", along_training={"distances": record}) == CANNOT_BE_TESTED


def test_a_control_that_was_not_trained_on_a_task_is_not_judged_by_the_state_before():
    curves = {"A": WAVERING, "B": RAMP}
    shuffled = followed("min_distance", curves, control="shuffled labels", separable=True)
    other = followed("min_distance", curves, task="dep", separable=True)
    record = pd.concat([shuffled[shuffled["step"] > 0], other])
    found = judged("pushes-apart", along_training={"distances": record})
    assert [group.name for group in found.groups] == ["DEP"]
    control = judged("pushes-apart", along_training={"distances": pd.concat([other, shuffled])}).controls
    assert [group.name for group in control["shuffled labels"].groups] == ["POS"]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ([1.0, 0.9, 0.7], REPRODUCED),
        ([1.0, 1.0, 1.0], REPRODUCED),  # nothing that moves keeps the order best
        ([1.0, 0.3, 0.9], CONTRADICTED),  # one state is enough: it is asked of all
        ([1.0, 0.5, 0.2], CONTRADICTED),
        ([1.0, 0.5, 0.5], OPEN),
        ([1.0, np.nan, 0.9], CANNOT_BE_TESTED),
    ],
)
def test_the_last_layer_keeps_the_order(last, expected):
    record = followed("similarity", {6: last, 4: [1.0, 0.1, 0.1]})
    record["layer"] = record["layer"].astype(int)
    assert outcome("keeps-order", along_training={"similarities": record}) == expected


def moved(lengths, in_two, seeds=SEEDS, spread: float = 2.0) -> dict:
    rows = [
        {"task": "pos", "seed": seed, "control": "", "layer": layer, "label": "NOUN", "spread": spread}
        | {"length": length * (1 + 0.02 * (seed - 1)) + 0.001 * seed, "in_two": share + 0.01 * (seed - 1) * layer / 6}
        for layer, (length, share) in enumerate(zip(lengths, in_two, strict=True), start=1)
        for seed in seeds
    ]
    return {"movements": pd.DataFrame(rows)}


NARROW, EVEN, NOISE = [0.9, 0.8, 0.7, 0.5, 0.4, 0.3], [0.5] * 6, [0.5, 0.2, 0.8, 0.1, 0.9, 0.3]


@pytest.mark.parametrize(
    ("lengths", "in_two", "expected"),
    [
        ([0.5, 1, 3, 5, 8, 9], NARROW, REPRODUCED),
        ([1, 2, 3, 4, 5, 6], NARROW, CONTRADICTED),  # a straight line
        ([3, 3.5, 4, 4.5, 5, 5.5], NARROW, CONTRADICTED),
        ([9, 8, 5, 3, 1.5, 1], NARROW, CONTRADICTED),
        ([0.5, 1, 3, 5, 8, 9], NARROW[::-1], CONTRADICTED),
        ([3] * 6, EVEN, CONTRADICTED),
        ([0.5, 1, 3, 5, 8, 9], EVEN, OPEN),
        ([3, 1, 4, 1, 5, 2], NOISE, CONTRADICTED),
        ([1, 1, 30, 1, 1, 1], NARROW, CONTRADICTED),
    ],
)
def test_low_layers_move_little_and_in_few_directions(lengths, in_two, expected):
    assert outcome("low-moves-little", along_training=moved(lengths, in_two)) == expected


@pytest.mark.parametrize("depth", [3, 6, 12, 24, 48])
def test_no_straight_line_from_zero_moves_low_layers_little(depth):
    line = list(range(1, depth + 1))
    assert outcome("low-moves-little", along_training=moved(line, [1 - layer / 100 for layer in line])) != REPRODUCED


def test_halves_of_the_layers_are_a_setting():
    settings = judged("low-moves-little", along_training=moved([0.5, 1, 3, 5, 8, 9], NARROW)).settings
    assert settings["halves of the layers"] == CONTRADICTED and settings["thresholds × 0.75"] == REPRODUCED


def test_two_layers_have_no_lower_third():
    found = judged("low-moves-little", along_training=moved([1, 5], [0.9, 0.1]))
    assert found.outcome == CANNOT_BE_TESTED and "2 layers" in found.reason


# --- cross-task -------------------------------------------------------------------------------------------------------


def across(changes: dict, gains: dict, seeds=SEEDS, separable: bool = True) -> dict:
    """Records of PS-fxn in models fine-tuned on each task, with the change of its least distances and the gain."""
    distances, sentences = [], []
    for task in ("nothing", *changes):
        change, gain = (0.0, 0.0) if task == "nothing" else (changes[task], gains[task])
        named = {"tuned_on": task, "control": "all" if task == "nothing" else ""}
        for seed in seeds:
            after = 2.0 + change + (task != "nothing") * 0.01 * (seed - 1) * len(task)
            row = named | {"seed": seed, "label": "Goal", "before": 2.0, "after": after, "separable": separable}
            distances.append(row)
        read = probes({"ps-fxn": gain}, seeds=seeds)["sentences"]
        sentences.append(read[read["stage"] == ("before" if task == "nothing" else "after")].assign(**named))
    return {"target_distances": pd.DataFrame(distances), "target_accuracy": {"sentences": pd.concat(sentences)}}


CHANGES, GAINS = {"ps-fxn": 3.0, "ps-role": 1.0, "pos": -1.68}, {"ps-fxn": 0.3, "ps-role": 0.15, "pos": -0.15}


@pytest.mark.parametrize(
    ("changes", "gains", "failed"),
    [
        ({"pos": 0.5}, {}, "distances, pre-trained over POS"),
        ({"ps-role": 4.0}, {}, "distances, PS-fxn over PS-role"),
        ({"ps-role": -1.0}, {}, "distances, PS-role over pre-trained"),
        ({}, {"pos": 0.15}, "accuracy, pre-trained over POS"),
        ({}, {"ps-role": -0.15}, "accuracy, PS-role over pre-trained"),
        ({}, {"ps-fxn": 0.0, "ps-role": 0.15}, "accuracy, PS-fxn over PS-role"),
    ],
)
def test_each_part_of_the_order_across_tasks_can_fail(changes, gains, failed):
    found = judged("cross-task", **across(CHANGES | changes, GAINS | gains))
    fails = [part.name for part in found.groups[0].parts if part.outcome == FAILS]
    assert found.outcome == CONTRADICTED and fails == [failed]


def test_the_papers_order_across_tasks_holds():
    assert outcome("cross-task", **across(CHANGES, GAINS)) == REPRODUCED


def test_related_and_own_task_that_read_alike_stay_open():
    assert outcome("cross-task", **across(CHANGES, GAINS | {"ps-role": 0.3})) == OPEN
    flat = dict.fromkeys(CHANGES, 0.0)
    assert outcome("cross-task", **across(flat, flat)) == OPEN


def test_across_tasks_nothing_is_compared_without_a_model_or_where_labels_are_not_separable():
    few = {task: CHANGES[task] for task in ("ps-fxn", "ps-role")}
    found = judged("cross-task", **across(few, GAINS))
    assert found.outcome == CANNOT_BE_TESTED and "POS" in found.reason
    found = judged("cross-task", **across(CHANGES, GAINS, separable=False))
    assert found.outcome == CANNOT_BE_TESTED and "planes do not separate" in found.reason
