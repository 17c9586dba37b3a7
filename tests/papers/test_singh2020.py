"""Chapter 4: the plan of its trainings, the measurements and the exhibits."""

import copy

import numpy as np
import pandas as pd
import pytest
from tests.conftest import ENCODER, short_schedule

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.chapters import settings as chapter_settings
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.models import layers
from fivelenses.papers import singh2020 as measure
from fivelenses.tasks.examples import encode
from fivelenses.tasks.subsets import subset

DEPTH = 12


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
    table = tables.models(models)
    assert table["examples"].tolist() == [48, 96, 96, 96] and table["reinitialised"].tolist() == [0, 0, 6, 0]
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
    assert all(one.shuffled_labels for one in added) and controlled.ordinary_models() == usual
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


def test_the_sizes_of_a_task_are_measured_in_words_and_numbers():
    data = pd.concat([measure.sizes(task, "toyworld") for task in ("sst2", "trec")])
    assert data["training_examples"].tolist()[0] == 4_000


def test_another_encoder_has_the_same_plan_at_its_own_rate():
    other = "toy-bert/seed-1"
    chosen = chapter_settings(4, "tiny", encoder=other, learning_rate_by_encoder={other: 1e-4}, min_steps=60)
    assert {one.encoder for one in chosen.specifications()} == {other}
    assert {one.schedule.learning_rate for one in chosen.specifications()} == {1e-4}
    few = [one.schedule for one in chosen.specifications() if one.examples == 900]
    assert few and all(one.steps(900) >= 60 for one in few)
    assert {one.reinitialised for one in chosen.with_all_layers()} == {()}
