import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from fivelenses import records
from fivelenses.checkpoints.specification import Schedule, specify
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, PARTLY, REPRODUCED, judge
from fivelenses.exhibits.exhibit import Absent
from fivelenses.papers.zhou2022 import figures, labelled, measure, probing, tables
from fivelenses.papers.zhou2022.claims import CLAIMS, MOVEMENTS
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import settings

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


def centroids_worked_by_hand() -> dict[tuple[int, int], np.ndarray]:
    start = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [9.0, 9.0, 0.0]])
    end = start + np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 4.0], [0.0, 0.0, 5.0], [0.0, 0.0, 6.0]])
    return {(step, layer): states for layer in (1, 2) for step, states in ((0, start), (7, end))}


def moved_by_hand(task: str = "pos") -> pd.DataFrame:
    return measure.movements(centroids_worked_by_hand(), ["A", "B", "C", "D"]).assign(task=task, seed=0)


def test_movements_of_a_case_worked_by_hand():
    table = moved_by_hand()
    last = table[table["layer"] == 2]
    assert last["length"].tolist() == [3, 4, 5, 6]
    np.testing.assert_allclose(last["x"].abs(), [3, 4, 5, 6])
    np.testing.assert_allclose(last["y"], 0, atol=1e-12)
    np.testing.assert_allclose(last["in_two"], 1.0)


def test_names_of_labels_stand_clear_of_one_another_and_of_the_points():
    exhibit = figures.figure_of_movements({"movements": moved_by_hand()}, "pos", "toy-bert/seed-0")
    for axes in exhibit.figure.axes:
        names, reach = axes.texts, axes.get_xlim()[1]
        assert {name.get_text() for name in names} == {"B", "C", "D"}
        sides, heights = zip(*(name.get_position() for name in names), strict=True)
        points = axes.collections[0].get_offsets()
        assert len(set(sides)) == 1 and (np.sign(sides[0]) != np.sign(points[:, 0].sum()))
        assert (np.diff(sorted(heights)) > 0.19 * reach).all() and np.abs(heights).max() < reach
    plt.close("all")


@pytest.mark.parametrize(
    ("task", "key", "title"),
    [
        ("ps-fxn", "zhou2022-figure-10", "Figure 10"),
        ("pos", "zhou2022-figure-7", "Figure 7"),
        ("trec", "zhou2022-movements-trec", "TREC-50"),
    ],
)
def test_a_task_has_the_papers_figure_whatever_other_tasks_are_followed(task, key, title):
    moved = pd.concat([moved_by_hand("dep"), moved_by_hand(task)])
    exhibit = figures.figure_of_movements({"movements": moved}, task, "toy-bert/seed-0")
    assert (exhibit.key, exhibit.title) == (key, title)
    assert set(exhibit.table["task"]) == {task}
    plt.close("all")


def test_the_closest_labels_are_followed():
    table = measure.closest_paths(centroids_worked_by_hand(), ["A", "B", "C", "D"])
    assert set(table["label"]) == {"A", "B", "C"}
    assert set(table["layer"]) == {1, 2}
    start, end = (table[(table["layer"] == 2) & (table["label"] == "C") & (table["step"] == step)] for step in (0, 7))
    assert np.hypot(end["x"].item() - start["x"].item(), end["y"].item() - start["y"].item()) == pytest.approx(
        5, abs=0.3
    )


def test_labels_that_grow_most_and_least_are_marked_and_drawn():
    ends = {"A": 9.0, "B": 8.0, "C": 7.0, "D": 3.0, "E": 2.0, "F": 1.0, "G": 5.0}
    exhibit = figures.figure_6({"distances": distances({name: [1.0, end] for name, end in ends.items()})}, "toy-bert")
    grows = exhibit.table.groupby("label")["grows"].first()
    assert grows.to_dict() == {"A": "most", "B": "most", "C": "most", "D": "least", "E": "least", "F": "least", "G": ""}
    assert {text.get_text() for text in exhibit.figure.axes[0].texts} == set("ABCDEF")
    assert "A from 1.00 to 9.00, F from 1.00 to 1.00" in exhibit.alt
    plt.close("all")


def test_a_figure_of_tasks_that_are_not_followed_is_absent():
    other = distances({"A": [1, 2], "B": [1, 3]}).assign(task="dep")
    assert isinstance(figures.figure_2({"distances": other}, "toy-bert"), Absent)


def test_the_sketch_shows_one_case_that_planes_separate_and_one_that_they_do_not():
    table = figures.figure_1().table.groupby("panel")["cluster"].nunique()
    assert table["separable"] == 2 and table["not separable"] > 2


# --- measurements -----------------------------------------------------------------------------------------------------


def toy(task: str):
    return specify("toy-bert/seed-0", task, "toyworld", 0, Schedule(1e-3, 32, 1, max_length=64))


def test_rare_labels_are_left_out_and_a_sentence_is_measured_once():
    splits = labelled.labelled_splits(toy("dep"), points=500, min_examples=10)
    assert len(splits["train"].labels) == 500
    assert set(splits["train"].labels) <= set(splits["validation"].labels)
    _, counts = np.unique(splits["validation"].labels, return_counts=True)
    assert counts.min() >= 10
    texts = [tuple(tokens) for tokens in splits["train"].examples["input_ids"]]
    assert len(texts) == len(set(texts))


def test_words_and_sentences_of_a_task_are_counted():
    sizes = labelled.task_sizes(["dep", "trec"], "toyworld").set_index("task")
    whole = labelled.labelled_splits(toy("dep"), None)
    # Repeated sentences are counted here, and measured once there.
    assert sizes.loc["dep", "training"] >= len(whole["train"].labels) > 1000
    assert sizes.loc["trec", "labels"] > 2 and sizes.loc["trec", "test"] > 100


def diverged(task: str) -> Checkpoint:
    return Checkpoint(None, {"specification": toy(task).as_dict(), "diverged": True})


def test_states_along_a_training_that_diverged_are_refused_before_any_is_read():
    with pytest.raises(ValueError, match=r"training of \('pos', 0\) diverged: .* out of followed"):
        measure.along_training([diverged("pos")])


@pytest.mark.parametrize("function", [measure.target_distances, probing.target_accuracy])
def test_a_target_is_not_measured_in_a_model_whose_training_diverged(function):
    given = {} if function is measure.target_distances else {"probe_sizes": [8], "probe_regularisers": [0.1]}
    with pytest.raises(ValueError, match="training of pos diverged: .* out of tuned_on"):
        function([diverged("pos")], "ps-fxn", **given)


def test_a_model_whose_training_diverged_is_left_out_and_none_is_an_error():
    assert measure.geometry([diverged("pos")]).empty
    with pytest.raises(ValueError, match="training of every model diverged, .* lower learning_rate"):
        tables.table_2(pd.DataFrame(), pd.DataFrame())


def test_a_change_of_directprobe_leaves_the_probes_records_as_they_are():
    lens = "fivelenses.lenses.directprobe"
    assert lens in records.closure([measure.__name__], records.KNOWN_OTHERWISE)
    assert lens not in records.closure([probing.__name__], records.KNOWN_OTHERWISE)
    assert "fivelenses.lenses.mlp_probe" not in records.closure([measure.__name__], records.KNOWN_OTHERWISE)


# --- tables and parameters --------------------------------------------------------------------------------------------


def measured(task: str, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    model = {"encoder": "toy-bert/seed-0", "task": task, "seed": seed}
    shared = {"points": 90, "dimensions": 64, "labels": 3, "all_points": 100, "control_separable": False}
    geometry = [model | shared | {"stage": "before", "clusters": 5, "separable": False, "similarity": np.nan}]
    geometry += [model | shared | {"stage": "after", "clusters": 3, "separable": True, "similarity": 0.5}]
    probe = {"hidden_1": 32, "hidden_2": 64, "deviation": 0.1, "initialisations": 3}
    probes = [model | probe | {"stage": stage, "accuracy": 0.5 + seed / 10} for stage in ("before", "after")]
    return pd.DataFrame(geometry), pd.DataFrame(probes)


def test_tables_have_a_row_per_task_with_the_means_of_its_seeds():
    geometry, probes = (pd.concat(parts) for parts in zip(measured("pos"), measured("pos", 1), strict=True))
    table = tables.before_and_after(geometry, probes)
    assert len(table) == 1
    row = table.iloc[0]
    assert (row["clusters_before"], row["clusters_after"]) == (5, 3)
    assert row["accuracy_after"] == pytest.approx(0.55)
    assert np.isnan(row["similarity_before"]) and row["similarity_after"] == 0.5


def test_table_4_is_absent_without_its_task():
    assert "TREC-50" in tables.table_4(*measured("pos")).sentence
    assert "all 100" in tables.table_4(*measured("trec")).caption


def test_nothing_is_counted_where_nothing_was_tuned():
    rows = [("nothing", "Goal", 2.0, 2.0), ("pos", "Goal", 2.0, 1.0), ("pos", "Source", 2.0, 3.5)]
    apart = pd.DataFrame(rows, columns=["tuned_on", "label", "before", "after"]).assign(seed=0)
    accuracies = pd.DataFrame({"tuned_on": ["nothing", "pos"], "seed": 0, "accuracy": [0.5, 0.6], "deviation": 0.1})
    shown = tables.table_5(apart, accuracies).shown.set_index("tuned_on")
    assert shown.loc["nothing", ["grew", "shrank", "change"]].isna().all()
    assert shown.loc["pos", ["grew", "shrank", "change", "relative"]].tolist() == [1, 1, 0.25, 0.125]
    assert shown["accuracy"].tolist() == [0.5, 0.6]


@pytest.mark.parametrize("name", ["followed", "tuned_on"])
def test_tasks_that_are_not_run_cannot_be_followed(name):
    with pytest.raises(ParameterError, match=f"{name} has none of the tasks"):
        settings(2, "tiny", tasks=["trec", "dep"], **{"followed": ["dep"], "tuned_on": ["dep"]} | {name: ["pos"]})
