"""What chapter 2 measures, on toy models and cases worked by hand, and its exhibits, from a small record."""

import numpy as np
import pandas as pd
import pytest
from tests import chapters

from fivelenses import records
from fivelenses.chapters import ParameterError, settings
from fivelenses.checkpoints.specification import Schedule, specify
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directprobe, mlp_probe
from fivelenses.papers.zhou2022 import geometry, points, probes


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


def test_the_closest_labels_are_followed():
    table = geometry.closest_paths(centroids_worked_by_hand(), ["A", "B", "C", "D"])
    assert set(table["label"]) == {"A", "B", "C"}
    assert set(table["layer"]) == {1, 2}
    start, end = (table[(table["layer"] == 2) & (table["label"] == "C") & (table["step"] == step)] for step in (0, 7))
    assert np.hypot(end["x"].item() - start["x"].item(), end["y"].item() - start["y"].item()) == pytest.approx(
        5, abs=0.3
    )


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


def test_a_model_whose_training_diverged_is_left_out():
    read = probes.probe_accuracy([diverged("pos")], [8], [0.1])
    for table in (geometry.geometry([diverged("pos")]), *read.values()):
        assert table.empty and {"encoder", "task", "stage", "seed", "control"} <= set(table)


def test_a_change_of_directprobe_leaves_the_probes_records_as_they_are():
    lens = "fivelenses.lenses.directprobe"
    assert lens in records.closure([geometry.__name__], records.KNOWN_OTHERWISE)
    assert lens not in records.closure([probes.__name__], records.KNOWN_OTHERWISE)
    assert "fivelenses.lenses.mlp_probe" not in records.closure([geometry.__name__], records.KNOWN_OTHERWISE)


# --- exhibits ---------------------------------------------------------------------------------------------------------

ENDS = {"A": 9.0, "B": 8.0, "C": 7.0, "D": 3.0, "E": 2.0, "F": 1.0, "G": 5.0}  # least distances after training


def with_controls(rows: list[dict], moved: dict) -> pd.DataFrame:
    """Rows of two seeds: of the first state, of fine-tuned models, and with other values of their twins."""
    table = pd.DataFrame(rows).merge(pd.DataFrame({"seed": [0, 1]}), how="cross")
    after = table.get("stage", table.get("step")).isin(["after", 1])
    table["control"] = np.where(after, "", "all")
    return pd.concat([table, table[after].assign(control="twin", **moved)], ignore_index=True)


def small_record() -> dict:
    cases, fits, labels, states = [], [], [], []
    for stage, clusters in (("before", 5), ("after", 3)):
        for task in ("pos", "trec"):
            case = {"encoder": "toy-bert/seed-0", "task": task, "stage": stage}
            case |= dict.fromkeys(("separable", "control_separable"), stage == "after") | {"labels": 3}
            counted = {"points": 90, "all_points": 100, "dimensions": 64, "clusters": clusters, "similarity": 0.5}
            cases.append(case | counted)
            probe = {"hidden_1": 32, "hidden_2": 64, "accuracy": 0.5, "deviation": 0.1, "points": 90}
            fits.append({name: case[name] for name in ("encoder", "task", "stage")} | probe)
    for step in (0, 1):
        row = {"task": "pos", "step": step}
        labels += [
            row | {"layer": 2, "label": name, "min_distance": 1 + step * (end - 1)} for name, end in ENDS.items()
        ]
        sizes = {"points": 60, "all_points": 100}
        states += [row | {"layer": layer, "similarity": 1 - step * layer / 10} | sizes for layer in (1, 2)]
    tasks = ("pos", "dep", "ps-role", "ps-fxn")
    moved = [
        moved_by_hand(task).assign(seed=seed, control=name)
        for task in tasks
        for seed in (0, 1)
        for name in ("", "twin")
    ]
    paths = geometry.closest_paths(centroids_worked_by_hand(), ["A", "B", "C", "D"]).assign(task="pos", seed=0)
    rows = [("nothing", "Goal", 2.0, 2.0), ("pos", "Goal", 2.0, 1.0), ("pos", "Source", 2.0, 3.5)]
    target = pd.DataFrame(rows, columns=["tuned_on", "label", "before", "after"]).assign(control="", seed=0)
    read = pd.DataFrame({"tuned_on": ["nothing", "pos"], "control": "", "seed": 0, "accuracy": [0.5, 0.6]})
    return {
        "encoder_sizes": pd.DataFrame({"encoder": ["toy-bert/seed-0"], "layers": 2, "hidden": 64, "parameters": 9999}),
        "task_sizes": pd.DataFrame({"task": ["pos"], "training": 16854, "test": 4322, "labels": 17}),
        "geometry": with_controls(cases, {"clusters": 7}),
        "probe_accuracy": {"fits": with_controls(fits, {"accuracy": 0.4})},
        "along_training": {
            "distances": with_controls(labels, {"min_distance": 1.5}).assign(separable=True),
            "similarities": with_controls(states, {"similarity": 0.95}),
            "movements": pd.concat(moved, ignore_index=True),
            "paths": paths,
        },
        "target_distances": target,
        "target_accuracy": {"fits": read.assign(deviation=0.1)},
    }


@pytest.fixture(scope="module")
def exhibits(tmp_path_factory):
    run, _ = chapters.executed(2, small_record(), tmp_path_factory.mktemp("page"), tag="", seeds=[0, 1])
    return {one.key.removeprefix("zhou2022-"): one for one in run.exhibits}


def test_all_exhibits_are_made_from_a_small_record(exhibits):
    names = [f"table-{number}" for number in range(1, 8)] + [f"figure-{number}" for number in range(1, 8)]
    assert set(exhibits) == {*names, "figure-8", "figure-9", "figure-10"}


def test_without_records_the_sketch_is_all_there_is(tmp_path):
    run, _ = chapters.executed(2, {}, tmp_path, tag="")
    assert [one.title for one in run.exhibits] == ["Figure 1"]


def test_the_sketch_shows_one_case_that_planes_separate_and_one_that_they_do_not(exhibits):
    clusters = exhibits["figure-1"].table.groupby("panel")["cluster"].nunique()
    assert clusters.to_dict() == {"separable": 2, "not separable": 3}


def test_tables_have_a_row_per_encoder_and_task_with_the_twins_beside(exhibits):
    table = exhibits["table-7"].table.set_index("task")
    assert (
        len(table) == 2
        and (table.loc["pos", ["clusters_before", "clusters_after", "clusters_twin"]] == [5, 3, 7]).all()
    )
    assert "clusters_twin" in exhibits["table-4"].columns and "all" not in exhibits["table-3"].columns
    assert "0.400" not in exhibits["table-2"].html and "16,854 (16,860)" in exhibits["table-6"].html


def test_nothing_is_counted_where_nothing_was_fine_tuned(exhibits):
    table = exhibits["table-5"].shown.set_index("tuned_on")
    assert table.loc["nothing", ["grew", "shrank", "change"]].isna().all()
    assert table.loc["POS", ["grew", "shrank", "change", "relative"]].tolist() == [1, 1, 0.25, 0.125]
    assert table["accuracy"].tolist() == [0.5, 0.6]


def test_labels_that_grow_most_and_least_are_drawn_with_what_the_twins_do(exhibits):
    table, figure = exhibits["figure-6"].table, exhibits["figure-6"].drawing.figure
    grows = table.groupby("label")["grows"].first()
    assert grows.to_dict() == {"A": "most", "B": "most", "C": "most", "D": "least", "E": "least", "F": "least"}
    assert {text.get_text() for text in figure.axes[0].texts} == {*"ABCDEF", "moved at random"}
    assert table.groupby("step")["min_distance_twin"].unique().loc[1].tolist() == [1.5]


def test_labels_that_moved_most_are_named_clear_of_the_points(exhibits):
    for axes in exhibits["figure-7"].drawing.figure.axes:
        sides, heights = zip(*(name.get_position() for name in axes.texts), strict=True)
        points = axes.collections[0].get_offsets()
        assert {name.get_text() for name in axes.texts} == {"B", "C", "D"} and (np.diff(sorted(heights)) > 0.2).all()
        assert len(set(sides)) == 1 and np.sign(sides[0]) != np.sign(points[:, 0].sum())


@pytest.mark.parametrize("name", ["followed", "tuned_on"])
def test_tasks_that_are_not_run_cannot_be_followed(name):
    with pytest.raises(ParameterError, match=f"{name} has none of the tasks"):
        settings(2, "tiny", tasks=["trec", "dep"], **{"followed": ["dep"], "tuned_on": ["dep"]} | {name: ["pos"]})
