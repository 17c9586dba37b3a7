import numpy as np
import pandas as pd
import pytest

from fivelenses import records
from fivelenses.checkpoints.specification import Schedule, specify
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.first_exhibits.exhibit import Absent
from fivelenses.lenses import directprobe, mlp_probe
from fivelenses.papers.zhou2022 import figures, geometry, points, probes, tables
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import settings


def distances(curves: dict[str, list[float]]) -> pd.DataFrame:
    rows = [
        {"task": "pos", "seed": 0, "step": step, "layer": 6, "label": label, "min_distance": value}
        for label, values in curves.items()
        for step, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def centroids_worked_by_hand() -> dict[tuple[int, int], np.ndarray]:
    start = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [9.0, 9.0, 0.0]])
    end = start + np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 4.0], [0.0, 0.0, 5.0], [0.0, 0.0, 6.0]])
    return {(step, layer): states for layer in (1, 2) for step, states in ((0, start), (7, end))}


def moved_by_hand(task: str = "pos") -> pd.DataFrame:
    return geometry.movements(centroids_worked_by_hand(), ["A", "B", "C", "D"]).assign(task=task, seed=0)


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


def test_the_closest_labels_are_followed():
    table = geometry.closest_paths(centroids_worked_by_hand(), ["A", "B", "C", "D"])
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


def with_control(table: pd.DataFrame, control: str, **columns) -> pd.DataFrame:
    """A record with the same rows again for a control; the first state is shared."""
    first, rows = table["step"] == 0, table.assign(control="")
    rows.loc[first, "control"] = "all"
    return pd.concat([rows, rows[~first].assign(control=control, **columns)], ignore_index=True)


def test_what_a_twin_does_is_a_line_of_its_own():
    curves = distances({"A": [1.0, 9.0], "B": [3.0, 2.0]})
    exhibit = figures.figure_6({"distances": with_control(curves, "twin", min_distance=1.5)}, "toy-bert")
    assert exhibit.table.groupby("step")["twin"].unique().map(list).to_dict() == {0: [2.0], 1: [1.5]}
    assert set(exhibit.table["control"]) == {"", "all"} and len(exhibit.table) == len(curves)
    assert "moved at random" in {text.get_text() for text in exhibit.figure.axes[0].texts}
    assert "random direction" in exhibit.caption
    kept = pd.DataFrame({"task": "pos", "seed": 0, "step": [0, 1] * 2, "layer": [4, 4, 6, 6]})
    kept = kept.assign(similarity=[1.0, 0.8, 1.0, 0.6], points=60, all_points=100)
    exhibit = figures.figure_4({"similarities": with_control(kept, "shuffled labels", similarity=0.9)}, "toy-bert")
    assert "shuffled labels" in {text.get_text() for text in exhibit.figure.axes[0].texts}
    assert "60 of 100 in POS" in exhibit.caption


def test_movements_are_compared_absolutely_and_relative_to_the_labels_of_their_layer():
    moved = pd.DataFrame({"task": "pos", "seed": 0, "layer": [1, 2, 3], "label": "A", "x": 1.0, "y": 0.0})
    moved = moved.assign(length=[1.0, 2.0, 4.0], spread=[1.0, 1.0, 2.0], in_two=0.5)
    caption = figures.figure_of_movements({"movements": moved}, "pos", "toy-bert/seed-0").caption
    assert "0.25 times as far" in caption and "relative to the distances between labels 0.50 times" in caption
    both = pd.concat([moved.assign(control=""), moved.assign(control="twin", length=3.0)])
    caption = figures.figure_of_movements({"movements": both}, "pos", "toy-bert/seed-0").caption
    assert "0.25 times as far" in caption and "moved at random 1.00 and 2.00" in caption


def test_a_figure_of_tasks_that_are_not_followed_is_absent():
    other = distances({"A": [1, 2], "B": [1, 3]}).assign(task="dep")
    assert isinstance(figures.figure_2({"distances": other}, "toy-bert"), Absent)


def test_the_sketch_shows_one_case_that_planes_separate_and_one_that_they_do_not():
    table = figures.figure_1().table.groupby("panel")["cluster"].nunique()
    assert table["separable"] == 2 and table["not separable"] > 2


# --- measurements -----------------------------------------------------------------------------------------------------


def toy(task: str):
    return specify("toy-bert/seed-0", task, "toyworld", 0, Schedule(1e-3, 32, 1, max_length=64))


def test_all_labels_are_kept_and_a_sentence_is_measured_once():
    splits = points.splits(toy("dep"), points=30)
    whole = points.splits(toy("dep"), None)
    assert set(splits["train"].labels) == set(whole["train"].labels)
    assert 30 <= len(splits["train"].labels) < 100 and splits["train"].size == len(whole["train"].labels)
    assert set(geometry.common_labels(whole, 10)) < set(geometry.common_labels(whole, 1))
    _, counts = np.unique(whole["validation"].labels, return_counts=True)
    assert len(geometry.common_labels(whole, 10)) <= (counts >= 10).sum()
    texts = [tuple(tokens) for tokens in splits["train"].examples["input_ids"]]
    assert len(texts) == len(set(texts))


def test_points_are_those_of_their_sentences_though_the_others_are_not_read():
    few, whole = (points.splits(toy("dep"), count)["train"] for count in (40, None))
    assert len(few.examples) < len(whole.examples) and np.array_equal(
        np.unique(few.sentences), range(len(few.examples))
    )
    model = points.pretrained(toy("dep"))
    texts = [tuple(tokens) for tokens in whole.examples["input_ids"]]
    for point in (0, len(few.labels) // 2, len(few.labels) - 1):
        sentence = texts.index(tuple(few.examples[int(few.sentences[point])]["input_ids"]))
        labels = np.array(whole.labels[whole.sentences == sentence])
        alone = points.Split(whole.examples.select([sentence]), labels, np.arange(len(labels)), labels, 0)
        near = np.abs(alone.last_layer(model, "cpu") - few.last_layer(model, "cpu")[point]).max(axis=1)
        assert labels[near.argmin()] == few.labels[point] and near.min() < 1e-4


def test_a_label_that_is_in_one_split_alone_counts_in_the_training_set_and_not_in_the_comparison():
    generator = np.random.default_rng(0)
    labels = np.repeat(["A", "B", "C", "rare"], [6, 6, 6, 1])
    states = generator.standard_normal((19, 4)) * 0.1 + np.repeat(np.eye(4), [6, 6, 6, 1], axis=0) * 9
    probed = directprobe.probe(states, labels)
    test = states[:18] * [1.0, 2.0, 1.0, 1.0], labels[:18]
    similarity = geometry._similarity((states, labels), test, ["A", "B", "C"], probed)
    of_three = directprobe.probe(states[:18], labels[:18])
    expected = directprobe.spatial_similarity(of_three, directprobe.probe(*test))
    assert probed.n_clusters == 4 and similarity == pytest.approx(expected)
    assert np.isnan(geometry._similarity((states, labels), test, ["A", "B"], probed))


def test_what_a_probe_has_right_is_kept_by_sentence():
    splits, model = points.splits(toy("ps-fxn"), points=60), points.pretrained(toy("ps-fxn"))
    grid = mlp_probe.grid([8], [1e-3])
    found = probes._accuracies([([{"seed": 0}, {"seed": 1}], model)], splits, grid, 2, 5, "cpu")
    fit, read = found["fits"].iloc[1], found["sentences"].query("seed == 1")
    assert found["fits"]["seed"].tolist() == [0, 1]
    assert read["score"].sum() / read["weight"].sum() == pytest.approx(fit["accuracy"])
    assert read["weight"].sum() == len(splits["validation"].labels) and read["example"].is_unique
    assert 0 < read["null"].sum() < read["weight"].sum()


def test_words_and_sentences_of_a_task_are_counted():
    sizes = points.task_sizes(["dep", "trec"], "toyworld").set_index("task")
    whole = points.splits(toy("dep"), None)
    # Repeated sentences are counted here, and measured once there.
    assert sizes.loc["dep", "training"] >= len(whole["train"].labels) > 1000
    assert sizes.loc["trec", "labels"] > 2 and sizes.loc["trec", "test"] > 100


def diverged(task: str) -> Checkpoint:
    return Checkpoint(None, {"specification": toy(task).as_dict(), "diverged": True})


def test_states_along_a_training_that_diverged_are_refused_before_any_is_read():
    with pytest.raises(ValueError, match="training of toy-bert/seed-0, pos, seed 0 diverged: .* out of followed"):
        geometry.along_training([diverged("pos")])


@pytest.mark.parametrize("function", [geometry.target_distances, probes.target_accuracy])
def test_a_target_is_not_measured_in_a_model_whose_training_diverged(function):
    given = {} if function is geometry.target_distances else {"probe_sizes": [8], "probe_regularisers": [0.1]}
    with pytest.raises(ValueError, match="training of pos diverged: .* out of tuned_on"):
        function([diverged("pos")], "ps-fxn", **given)


def test_a_model_whose_training_diverged_is_left_out_and_none_is_an_error():
    assert {"task", "stage", "control"} <= set(geometry.geometry([diverged("pos")]))
    for table in probes.probe_accuracy([diverged("pos")], [8], [0.1]).values():
        assert table.empty and {"task", "stage", "control"} <= set(table)
    with pytest.raises(ValueError, match="training of every model diverged, .* lower learning_rate"):
        tables.table_2(pd.DataFrame(), pd.DataFrame())


def test_a_change_of_directprobe_leaves_the_probes_records_as_they_are():
    lens = "fivelenses.lenses.directprobe"
    assert lens in records.closure([geometry.__name__], records.KNOWN_OTHERWISE)
    assert lens not in records.closure([probes.__name__], records.KNOWN_OTHERWISE)
    assert "fivelenses.lenses.mlp_probe" not in records.closure([geometry.__name__], records.KNOWN_OTHERWISE)


# --- tables and parameters --------------------------------------------------------------------------------------------


def measured(task: str, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    model = {"encoder": "toy-bert/seed-0", "task": task, "seed": seed}
    shared = {"points": 90, "dimensions": 64, "labels": 3, "all_points": 100, "control_separable": False}
    shared |= {"control": "all"}
    geometry = [model | shared | {"stage": "before", "clusters": 5, "separable": False, "similarity": np.nan}]
    shared |= {"control": ""}
    geometry += [model | shared | {"stage": "after", "clusters": 3, "separable": True, "similarity": 0.5}]
    probe = {"hidden_1": 32, "hidden_2": 64, "deviation": 0.1, "initialisations": 3}
    probes = [model | probe | {"stage": stage, "accuracy": 0.5 + seed / 10} for stage in ("before", "after")]
    return pd.DataFrame(geometry), {"fits": pd.DataFrame(probes)}


def with_twin(geometry: pd.DataFrame) -> pd.DataFrame:
    moved = geometry[geometry["stage"] == "after"].assign(control="twin", clusters=7)
    return pd.concat([geometry, moved], ignore_index=True)


def test_tables_have_a_row_per_task_with_the_means_of_its_seeds():
    first, second = measured("pos"), measured("pos", 1)
    probes = {"fits": pd.concat([first[1]["fits"], second[1]["fits"]])}
    table = tables.before_and_after(pd.concat([first[0], second[0]]), probes)
    assert len(table) == 1
    row = table.iloc[0]
    assert (row["clusters_before"], row["clusters_after"]) == (5, 3)
    assert row["accuracy_after"] == pytest.approx(0.55)
    assert np.isnan(row["similarity_before"]) and row["similarity_after"] == 0.5


def test_table_4_is_absent_without_its_task():
    assert "TREC-50" in tables.table_4(*measured("pos")).sentence
    assert "all 100" in tables.table_3(*measured("trec")).caption
    assert tables.table_4(*measured("trec")).caption == "TREC-50 in all encoders, as Table 3."


def test_a_twin_has_columns_where_it_was_measured_and_none_where_not():
    geometry, probes = measured("trec")
    exhibit = tables.table_4(with_twin(geometry), probes)
    assert exhibit.table["clusters_twin"].tolist() == [7] and exhibit.columns["clusters_twin"][0].endswith("at random")
    for bare in (tables.table_4(geometry, probes), tables.table_4(geometry.drop(columns="control"), probes)):
        assert not any("twin" in name for name in (*bare.table.columns, *bare.columns))


def test_nothing_is_counted_where_nothing_was_tuned():
    rows = [("nothing", "Goal", 2.0, 2.0), ("pos", "Goal", 2.0, 1.0), ("pos", "Source", 2.0, 3.5)]
    apart = pd.DataFrame(rows, columns=["tuned_on", "label", "before", "after"]).assign(seed=0)
    accuracies = pd.DataFrame({"tuned_on": ["nothing", "pos"], "seed": 0, "accuracy": [0.5, 0.6], "deviation": 0.1})
    shown = tables.table_5(apart, {"fits": accuracies}).shown.set_index("tuned_on")
    assert shown.loc["nothing", ["grew", "shrank", "change"]].isna().all()
    assert shown.loc["POS", ["grew", "shrank", "change", "relative"]].tolist() == [1, 1, 0.25, 0.125]
    assert shown["accuracy"].tolist() == [0.5, 0.6]
    assert "POS" in shown.index


@pytest.mark.parametrize("name", ["followed", "tuned_on"])
def test_tasks_that_are_not_run_cannot_be_followed(name):
    with pytest.raises(ParameterError, match=f"{name} has none of the tasks"):
        settings(2, "tiny", tasks=["trec", "dep"], **{"followed": ["dep"], "tuned_on": ["dep"]} | {name: ["pos"]})


def test_paths_stand_for_an_encoder_of_one_layer():
    paths = pd.DataFrame(
        [
            ("pos", 0, layer, label, step, step + layer, label_number, 0.0)
            for layer in (1, 12)
            for label_number, label in enumerate("abc")
            for step in (0, 1)
        ],
        columns=["task", "seed", "layer", "label", "step", "x", "y", "z"],
    )
    for shown in (paths, paths[paths["layer"] == 1]):
        exhibit = figures.figure_3({"paths": shown}, "toy-bert/seed-0")
        assert len(exhibit.figure.axes) == shown["layer"].nunique()
        exhibit.figure.canvas.draw()
