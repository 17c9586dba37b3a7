import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, PARTLY, REPRODUCED, judge
from fivelenses.papers.zhou2022 import CLAIMS, figure_1, figures_7_to_10, movements
from fivelenses.papers.zhou2022 import centroid_paths as paths_of
from fivelenses.papers.zhou2022.along_training import Dynamics
from fivelenses.papers.zhou2022.claims import MOVEMENTS
from fivelenses.papers.zhou2022.measure import labelled_splits

BY_KEY = {claim.key: claim for claim in CLAIMS}


def verdict(key: str, *tables: pd.DataFrame) -> str:
    claim = BY_KEY[key]
    return judge(claim, dict(zip(claim.exhibits, tables, strict=True))).verdict


def summary(**columns) -> pd.DataFrame:
    rows = len(next(iter(columns.values())))
    return pd.DataFrame({"encoder": ["toy-bert/seed-0"] * rows, "task": ["pos", "dep", "trec"][:rows]} | columns)


def test_the_paper_has_seven_claims():
    assert len(CLAIMS) == len(BY_KEY) == 7


@pytest.mark.parametrize(
    ("after", "expected"),
    [([0.9, 0.9, 0.9], REPRODUCED), ([0.9, 0.5, 0.4], NOT_REPRODUCED), ([0.9, 0.9, 0.7], NOT_REPRODUCED)],
)
def test_improvement_is_asked_of_nearly_all_tasks(after, expected):
    assert verdict("mostly-improves", summary(accuracy_before=[0.8, 0.8, 0.8], accuracy_after=after)) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [([0.5, 0.6, 0.1], REPRODUCED), ([0.5, 0.95, 0.1], PARTLY), ([np.nan] * 3, CANNOT_BE_TESTED)],
)
def test_divergence_is_a_fall_of_similarity_where_there_is_one(after, expected):
    assert verdict("diverges", summary(similarity_before=[0.9, 0.9, 0.9], similarity_after=after)) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([20, 17, 60], [17, 17, 50], REPRODUCED),
        ([20, 17, 60], [25, 17, 50], PARTLY),
        ([20, 17, 60], [20, 17, 70], NOT_REPRODUCED),
        ([17, 17, 50], [17, 17, 50], CANNOT_BE_TESTED),
    ],
)
def test_simpler_is_asked_only_where_labels_were_not_separable(before, after, expected):
    table = summary(labels_before=[17, 17, 50], clusters_before=before, clusters_after=after)
    assert verdict("simplifies", table.assign(separable_before=0, separable_after=0)) == expected


def test_all_points_that_become_separable_are_simpler_though_the_counted_ones_always_were():
    table = summary(labels_before=[17], clusters_before=[17], clusters_after=[17])
    assert verdict("simplifies", table.assign(separable_before=0, separable_after=1)) == REPRODUCED
    assert verdict("simplifies", table.assign(separable_before=1, separable_after=1)) == CANNOT_BE_TESTED


def distances(curves: dict[str, list[float]]) -> pd.DataFrame:
    rows = [
        {"task": "pos", "seed": 0, "step": step, "layer": 6, "label": label, "min_distance": value}
        for label, values in curves.items()
        for step, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        ({"A": [1, 3, 2], "B": [1, 2, 3]}, REPRODUCED),
        ({"A": [1, 3, 2], "B": [3, 2, 1]}, NOT_REPRODUCED),
        # The paper says: not monotonically.
        ({"A": [1, 2, 3], "B": [1, 2, 3]}, NOT_REPRODUCED),
    ],
)
def test_labels_are_pushed_apart_but_not_at_every_step(curves, expected):
    assert verdict("pushes-apart", distances(curves)) == expected


def across(changes: dict[str, float], accuracies: dict[str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"tuned_on": task, "seed": 0, "label": "Goal", "before": 2.0, "after": 2.0 + change,
             "accuracy": accuracies[task], "deviation": 0.0}
            for task, change in changes.items()
        ]
    )  # fmt: skip


RISING = {"ps-fxn": 0.9, "ps-role": 0.8, "pos": 0.7}


@pytest.mark.parametrize(
    ("changes", "accuracies", "expected"),
    [
        ({"ps-fxn": 1.0, "ps-role": 0.5, "pos": -0.5}, RISING, REPRODUCED),
        ({"ps-fxn": 1.0, "ps-role": 0.5, "pos": 0.1}, RISING, NOT_REPRODUCED),
        ({"ps-fxn": 1.0, "ps-role": 1.5, "pos": -0.5}, RISING, NOT_REPRODUCED),
        ({"ps-fxn": 1.0, "ps-role": 0.5, "pos": -0.5}, RISING | {"pos": 0.95}, NOT_REPRODUCED),
        ({"ps-fxn": 1.0, "ps-role": 0.5}, RISING, CANNOT_BE_TESTED),
    ],
)
def test_related_and_opposing_tasks_are_told_apart(changes, accuracies, expected):
    assert verdict("cross-task", across(changes, accuracies)) == expected


def test_order_is_kept_while_the_last_layer_stays_above_a_half():
    table = pd.DataFrame(
        {"task": "pos", "seed": 0, "step": [0, 1, 0, 1], "layer": [4, 4, 6, 6], "similarity": [1.0, 0.1, 1.0, 0.6]}
    )
    assert verdict("keeps-order", table) == REPRODUCED
    assert verdict("keeps-order", table.assign(similarity=[1.0, 1.0, 1.0, 0.4])) == NOT_REPRODUCED
    assert verdict("keeps-order", table.assign(similarity=[1.0, 1.0, 1.0, np.nan])) == CANNOT_BE_TESTED


def moved(low: float, high: float, low_in_two: float = 0.9, task: str = "pos") -> pd.DataFrame:
    layers = [1, 2, 3, 4, 5, 6]
    lengths = [low, low, 1, 1, high, high]
    shares = [low_in_two] * 2 + [0.5] * 4
    return pd.DataFrame(
        {"task": task, "seed": 0, "layer": layers, "label": "NOUN", "length": lengths, "in_two": shares, "spread": 2.0}
    )


@pytest.mark.parametrize(
    ("table", "expected"),
    [(moved(0.1, 1.0), REPRODUCED), (moved(0.9, 1.0), NOT_REPRODUCED), (moved(0.1, 1.0, 0.2), NOT_REPRODUCED)],
)
def test_low_layers_move_little_and_in_few_directions(table, expected):
    tables = [table.assign(task=task) for task in ("pos", "dep", "ps-role", "ps-fxn")]
    assert verdict("low-moves-little", *tables) == expected
    assert len(tables) == len(MOVEMENTS)


def made_dynamics() -> Dynamics:
    start = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [9.0, 9.0, 0.0]])
    end = start + np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 4.0], [0.0, 0.0, 5.0], [0.0, 0.0, 6.0]])
    centroids = {("pos", 0, step, layer): states for layer in (0, 1, 2) for step, states in ((0, start), (7, end))}
    return Dynamics(pd.DataFrame(), pd.DataFrame(), centroids, {"pos": np.array(["A", "B", "C", "D"])})


def test_movements_of_a_case_worked_by_hand():
    table = movements(made_dynamics())
    last = table[table["layer"] == 2]
    assert last["length"].tolist() == [3, 4, 5, 6]
    np.testing.assert_allclose(last["x"].abs(), [3, 4, 5, 6])
    np.testing.assert_allclose(last["y"], 0, atol=1e-12)
    np.testing.assert_allclose(last["in_two"], 1.0)


def test_names_of_labels_stand_clear_of_one_another_and_of_the_points():
    table = movements(made_dynamics())
    (exhibit,) = figures_7_to_10(table, "toy-bert/seed-0")
    for axes in exhibit.figure.axes:
        names, reach = axes.texts, axes.get_xlim()[1]
        assert {name.get_text() for name in names} == {"B", "C", "D"}
        sides, heights = zip(*(name.get_position() for name in names), strict=True)
        points = axes.collections[0].get_offsets()
        assert len(set(sides)) == 1 and (np.sign(sides[0]) != np.sign(points[:, 0].sum()))
        assert (np.diff(sorted(heights)) > 0.19 * reach).all() and np.abs(heights).max() < reach
    plt.close("all")


def test_the_closest_labels_are_followed():
    table = paths_of(made_dynamics(), "pos", 0)
    assert set(table["label"]) == {"A", "B", "C"}
    assert set(table["layer"]) == {1, 2}
    start, end = (table[(table["layer"] == 2) & (table["label"] == "C") & (table["step"] == step)] for step in (0, 7))
    assert np.hypot(end["x"].item() - start["x"].item(), end["y"].item() - start["y"].item()) == pytest.approx(
        5, abs=0.3
    )


def test_the_sketch_shows_one_case_that_planes_separate_and_one_that_they_do_not():
    table = figure_1().table.groupby("panel")["cluster"].nunique()
    assert table["separable"] == 2 and table["not separable"] > 2


def test_rare_labels_are_left_out_and_a_sentence_is_measured_once():
    splits = labelled_splits("toy-bert/seed-0", "dep", "toyworld", 64, points=500, least=10)
    assert len(splits["train"].labels) == 500
    assert set(splits["train"].labels) <= set(splits["validation"].labels)
    _, counts = np.unique(splits["validation"].labels, return_counts=True)
    assert counts.min() >= 10
    texts = [tuple(pieces) for pieces in splits["train"].examples["input_ids"]]
    assert len(texts) == len(set(texts))
