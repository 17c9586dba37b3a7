"""Chapter 4: the plan of its trainings, the measurements and the exhibits."""

import copy

import numpy as np
import pandas as pd
import pytest
from tests.conftest import ENCODER, short_schedule

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.models import layers
from fivelenses.papers.singh2020 import figures, measure
from fivelenses.papers.singh2020.curves import scores
from fivelenses.runs.settings import settings as chapter_settings
from fivelenses.tasks.examples import encode
from fivelenses.tasks.subsets import subset

DEPTH = 12


def distances(task: str, slopes: dict) -> pd.DataFrame:
    rows = [
        {"task": task, "examples": examples, "seed": seed, "layer": layer, "part": "output", "absolute": slope * layer}
        for examples, slope in slopes.items()
        for seed in range(3)
        for layer in range(1, DEPTH + 1)
    ]
    return pd.DataFrame(rows).assign(steps=lambda table: table["examples"] // 10)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two sizes without, one with re-initialised layers, and one trained on shuffled labels."""
    plain = short_schedule()
    wanted = [
        specify(ENCODER, "sst2", "toyworld", 0, plain, examples=size, reinitialised=drawn)
        for size, drawn in ((48, ()), (96, ()), (96, (1, 2, 3, 4, 5, 6)))
    ]
    wanted.append(specify(ENCODER, "sst2", "toyworld", 0, plain, examples=96, shuffled_labels=True))
    return prepare(wanted, Store(tmp_path_factory.mktemp("models")), workers=1, log=lambda line: None)


def test_the_tables_say_what_the_models_are(models):
    table = scores(tables.models(models))
    assert table["examples"].tolist() == [48, 96, 96] and table["reinitialised"].tolist() == [0, 0, 6]
    assert (table["layers"] == 6).all() and table["score"].between(0, 1).all()
    moved = measure.weight_distances(models)
    # The model with re-initialised layers has moved before it was trained, so it is left out.
    assert moved.groupby(["control", "examples", "layer"])["part"].count().tolist() == [6] * 18
    assert moved["control"].unique().tolist() == ["", "shuffled labels"]
    assert (moved["absolute"] > 0).all() and (moved["relative"] < 1).all()


def test_no_reinitialised_layer_is_plain_fine_tuning():
    plain = specify(ENCODER, "sst2", "toyworld", 0, short_schedule(), examples=48)
    none = specify(ENCODER, "sst2", "toyworld", 0, short_schedule(), examples=48, reinitialised=[])
    assert none == plain and none.address == plain.address


def test_all_layers_reinitialised_keep_embeddings_biases_and_norms(tmp_path, toy_model):
    untrained = short_schedule(epochs=0)
    wanted = specify(ENCODER, "sst2", "toyworld", 0, untrained, examples=48, reinitialised=tuple(range(1, 7)))
    made = prepare([wanted], Store(tmp_path), workers=1, log=lambda line: None)[0].model().base_model
    before = toy_model.state_dict()
    changed = {
        name
        for name, tensor in made.state_dict().items()
        if not name.startswith("pooler") and not tensor.equal(before[name])
    }
    drawn = {id(map.weight) for layer in range(1, 7) for map in layers.projections(made, layer).values()}
    assert changed == {name for name, tensor in made.named_parameters() if id(tensor) in drawn}
    assert len(changed) == 36


def test_the_plan_of_the_chapter_is_one_list_without_repetition():
    chosen = chapter_settings(4, "tiny")
    specifications = chosen.specifications()
    assert len(specifications) == len({one.address for one in specifications})
    sizes = chosen.sizes("sst2", 4_000)
    true = [one for one in specifications if not one.shuffled_labels]
    counts = {(one.examples, len(one.reinitialised), one.seed) for one in true if one.task == "sst2"}
    assert counts == {(size, count, seed) for size in sizes for count in (0, 2, 4, 6) for seed in chosen.seeds}
    # What is re-initialised is the top of the encoder.
    assert {one.reinitialised for one in specifications} == {(), (5, 6), (3, 4, 5, 6), (1, 2, 3, 4, 5, 6)}
    # The most examples are those of the other chapters.
    assert all(one.examples_seed == (0 if one.examples == sizes[0] else one.seed) for one in specifications)


@pytest.mark.parametrize(("depth", "counts"), [(12, [0, 4, 8, 12]), (6, [0, 2, 4, 6]), (8, [0, 3, 5, 8])])
def test_thirds_of_the_layers_are_reinitialised_at_any_depth(depth, counts):
    assert chapter_settings(4, "small").reinitialised(depth) == counts


def test_each_task_has_its_own_sizes_and_those_of_the_report_s_comparison():
    small, paper = chapter_settings(4, "small"), chapter_settings(4, "paper")
    rows = {"sst2": 67_349, "qnli": 104_743, "cola": 8_551}
    assert {task: small.sizes(task, count) for task, count in rows.items()} == {
        "sst2": [8_000, 670],
        "qnli": [2_000, 670],
        "cola": [8_551, 670],
    }
    assert [small.sizes("qnli", count) for count in (2_000, 500)] == [[2_000, 670], [500]]
    assert paper.sizes("sst2", 67_349) == [67_349, 6_735, 673]
    trainings = small.trainings("cola", small.encoder, 8_551, 12)
    trained = {(one["examples"], len(one["reinitialised"])) for one in trainings}
    assert trained == {(670, 0), *((8_551, count) for count in (0, 4, 8, 12))}


def test_controls_and_equal_steps_are_added_to_a_plan_that_stays():
    plain, controlled, again = (
        chapter_settings(4, "tiny", **changes)
        for changes in ({"shuffled": []}, {"shuffled": ["sst2"]}, {"shuffled": [], "equal_steps_depth": 4})
    )
    usual = plain.specifications()
    assert set(usual) == set(controlled.specifications()) & set(again.specifications())
    added = set(controlled.specifications()) - set(usual)
    assert {(one.task, one.examples, one.seed, one.reinitialised) for one in added} == {
        ("sst2", size, seed, ()) for size in (3000, 900) for seed in plain.seeds
    }
    assert all(one.shuffled_labels for one in added) and controlled.on_true_labels() == usual
    added = set(again.specifications()) - set(usual)
    assert {(one.task, one.examples, len(one.reinitialised)) for one in added} == {
        (task, 900, count) for task in ("sst2", "qnli") for count in (0, 4, 6)
    }
    for one in added:
        steps = next(other.schedule.steps(3000) for other in usual if (other.task, other.examples) == (one.task, 3000))
        assert 0 <= one.schedule.steps(900) - steps < 900 / one.schedule.batch_size


def test_few_examples_are_read_more_often_where_steps_are_asked_for():
    chosen = chapter_settings(4, "tiny", min_steps=60)
    by_size = {one.examples: one.schedule for one in chosen.specifications() if one.task == "cola"}
    assert by_size[3000].epochs == 1.5
    assert by_size[900].steps(900) >= 60


@pytest.fixture
def sst2(monkeypatch):
    """The first examples of SST-2, which are then all that can be loaded."""
    data = tasks.load("sst2", "toyworld")
    few = {split: table.select(range(200)) for split, table in data.splits.items()}
    some = tasks.TaskData(data.task, data.source, few, data.labels)
    monkeypatch.setattr(tasks, "load", lambda name, source: some)
    return some


def test_features_of_all_truncations_equal_those_of_truncated_encoders(toy_model, toy_tokenizer, sst2):
    examples = encode(sst2, "validation", toy_tokenizer, 64)
    at_once = represent(toy_model, examples, range(1, 7))
    for kept in (1, 3, 6):
        truncated = copy.deepcopy(toy_model)
        layers.truncate(truncated, kept)
        np.testing.assert_allclose(represent(truncated, examples, [kept])[kept], at_once[kept], rtol=1e-5, atol=1e-5)


def test_frozen_probes_read_the_examples_of_the_tuned_models(sst2):
    found = measure.frozen_probes(ENCODER, "sst2", "toyworld", [50, 200], [0, 1], 64)
    table, predictions = found["scores"], found["by_example"]
    assert sorted(table["removed"].unique()) == list(range(6)) and table["score"].between(0, 1).all()
    # All examples are the same ones for every seed, and so is the probe.
    assert table.drop_duplicates(["examples", "seed"])[["examples", "seed"]].values.tolist() == [
        [50, 0],
        [50, 1],
        [200, 0],
    ]
    of_probe = ["examples", "seed", "removed"]
    means = predictions.groupby(of_probe)["score"].mean()
    np.testing.assert_allclose(table.set_index(of_probe)["score"].sort_index(), means, rtol=1e-6)
    assert (predictions.groupby(of_probe).size() == 200).all()


def test_smaller_parts_of_the_data_are_parts_of_the_larger():
    labels = np.array(tasks.load("sst2", "toyworld").splits["train"]["label"])
    for seed in (0, 1):
        parts = [set(subset(labels, size, seed)) for size in (40, 400, 4000)]
        assert parts[0] < parts[1] < parts[2]
        shares = [np.mean([labels[row] for row in part]) for part in parts]
        assert np.ptp(shares) < 0.03
    assert set(subset(labels, 40, 0)) != set(subset(labels, 40, 1))


def models_table(task: str, counts, seeds=range(3), **more) -> pd.DataFrame:
    """A record of models whose score falls with the number of re-initialised layers."""
    rows = [
        {"task": task, "examples": 90, "seed": seed, "reinitialised": count, "score": 0.9 - 0.1 * count + 0.01 * seed}
        for count in counts
        for seed in seeds
    ]
    return pd.DataFrame(rows).assign(**{"null_rate": 0.5, "diverged": False, "steps": 9, "address": ""} | more)


def test_curves_without_a_place_between_their_ends_have_no_table_of_shapes_and_the_page_says_why():
    absent = figures.table_of_shapes(models_table("sst2", (0, 4)))
    assert "because no curve of this run has a place between none and all layers re-initialised" in absent.sentence


def test_shapes_are_tabled_where_curves_have_them():
    flat = models_table("qnli", range(5)).assign(score=0.6)
    shapes = figures.table_of_shapes(pd.concat([models_table("sst2", range(5)), flat]))
    falling, level = shapes.table.set_index("task").loc[["sst2", "qnli"]].to_dict("records")
    assert falling["none"] == pytest.approx(0.51) and falling["concavity"] == pytest.approx(0, abs=1e-9)
    assert falling["top"] == pytest.approx(0.4 / 3) and np.isnan(level["concavity"])
    # Without predictions there are no intervals.
    assert shapes.shown["lost with the top third"].tolist() == ["+0.13", "+0.00"]
    assert shapes.shown["concavity"].tolist()[1] == "–"


def test_a_score_below_zero_is_tabled_with_a_minus_sign():
    shown = figures.table_of_shapes(models_table("cola", range(5)).assign(score=-0.02)).shown
    assert shown["all layers kept"].tolist() == shown["all re-initialised"].tolist() == ["−0.020"]


def test_a_figure_has_a_row_per_model_and_the_null_that_it_draws():
    models = pd.concat([models_table("sst2", range(5)), models_table("qnli", range(5))])
    again = models_table("sst2", range(5), steps=90)
    exhibit = figures.reinitialisation(pd.concat([models, again]), "sst2", [90])
    assert exhibit.key == "singh2020-figure-1a" and len(exhibit.table) == 15
    assert (exhibit.table["layers"] == 4).all() and (exhibit.table["null_rate"] == 0.5).all()
    matched = figures.figure_1c(models, ["sst2", "qnli"], 90)
    assert set(matched.table["task"]) == {"sst2", "qnli"} and matched.table["rise"].max() == pytest.approx(0.42)
    assert figures.reinitialisation(models.replace("sst2", "rte"), "rte", [90]).key == "singh2020-re-initialised-rte"


def test_equal_steps_are_drawn_beside_the_most_data():
    parts = [models_table("sst2", range(5)), models_table("sst2", range(5), steps=90)]
    parts.append(models_table("sst2", range(5), examples=900, steps=90))
    exhibit = figures.equal_steps(scores(pd.concat(parts)), ["sst2"], "score", "score", "reinitialised", "layers")
    assert exhibit.table.groupby("examples")["steps"].unique().map(list).to_dict() == {90: [90], 900: [90]}
    assert [axes.get_title(loc="left") for axes in exhibit.figure.axes] == ["SST-2"]


def test_distances_are_drawn_with_those_of_shuffled_labels():
    usual = distances("sst2", {1000: 0.3, 100: 0.1}).assign(control="")
    shuffled = distances("sst2", {1000: 0.2, 100: 0.1}).assign(control="shuffled labels")
    exhibit = figures.weight_distance(pd.concat([usual, shuffled]), "sst2")
    assert len(exhibit.table) == len(usual) and "shuffled labels" in exhibit.caption
    assert exhibit.table.query("layer == 5")["shuffled"].unique() == pytest.approx([1.0])
    assert "shuffled" not in figures.weight_distance(usual.drop(columns="control"), "sst2").table


def test_models_of_shuffled_labels_are_no_part_of_the_distances_at_equal_steps():
    usual = distances("sst2", {1000: 0.3, 100: 0.1}).assign(control="")
    usual["equal_steps"] = usual["examples"] == 100
    shuffled = usual.assign(control="shuffled labels", absolute=9.0)
    drawn = ["sst2"], "absolute", figures.DISTANCE, "layer", "layer"
    exhibit = figures.equal_steps(pd.concat([usual, shuffled]), *drawn)
    assert exhibit.table["absolute"].max() < 9 and len(exhibit.table) == len(usual)


def test_a_third_in_which_no_model_was_trained_has_no_number():
    shapes = figures.table_of_shapes(models_table("sst2", (0, 3, 4)))
    assert "top" not in shapes.table and "middle" not in shapes.table and shapes.table["bottom"].notna().all()
    assert shapes.shown["lost with the top third"].tolist() == ["–"]


def test_sublayers_need_more_than_the_output_projections():
    outputs = distances("sst2", {1000: 0.3}).assign(relative=0.1)
    assert "output projections alone" in figures.table_of_sublayers(outputs).sentence
    both = pd.concat([outputs, outputs.assign(part="query", relative=0.2)])
    assert figures.table_of_sublayers(both).table.groupby("part")["relative"].mean().to_dict() == {
        "output": pytest.approx(0.1),
        "query": pytest.approx(0.2),
    }


def test_the_sizes_of_a_task_are_measured_in_words_and_numbers():
    data = pd.concat([measure.sizes(task, "toyworld") for task in ("sst2", "trec")])
    assert data["training_examples"].tolist()[0] == 4_000
    table = figures.table_1(data, {"sst2": [3000, 900], "trec": [3000]}).table
    assert table["sizes"].tolist() == ["3,000, 900", "3,000"] and table["paper_training"].fillna("").tolist() == [
        "67k",
        "",
    ]


def test_another_encoder_has_the_same_plan_at_its_own_rate():
    other = "toy-bert/seed-1"
    chosen = chapter_settings(4, "tiny", encoder=other, learning_rate_by_encoder={other: 1e-4}, min_steps=60)
    assert {one.encoder for one in chosen.specifications()} == {other}
    assert {one.schedule.learning_rate for one in chosen.specifications()} == {1e-4}
    few = [one.schedule for one in chosen.specifications() if one.examples == 900]
    assert few and all(one.steps(900) >= 60 for one in few)
    assert {one.reinitialised for one in chosen.with_all_layers()} == {()}
