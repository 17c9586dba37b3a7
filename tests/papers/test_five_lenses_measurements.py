"""What chapter 6 measures: on a model that did not change, beside the other chapters' numbers, and refusals."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.conftest import ENCODER

from fivelenses.comparison import RSA, AttentionJS, compare, compare_with
from fivelenses.lenses import weights
from fivelenses.models import encoders, heads
from fivelenses.models.layers import layer_list
from fivelenses.papers.five_lenses import MEASURES, changes_by_layer, independent_encoder
from fivelenses.papers.hao2020 import evaluation_part, untrained
from fivelenses.papers.measures import BY_KEY
from fivelenses.papers.merchant2020.similarity import drawn_positions
from fivelenses.records import TWINS
from fivelenses.tasks.subsets import folds

INDEPENDENT = "toy-bert/seed-1"
ADDED = ("svcca", "rsa")
FOLDED = ("js", "svcca", "probe", "rollback", "rsa")
LIMITS = dict(evaluation_examples=40, similarity_tokens=300, probe_points=40, random_directions=1, device="cpu")


def measured_of(checkpoints, **others):
    return changes_by_layer(checkpoints, INDEPENDENT, 12, **LIMITS | others)


@pytest.fixture(scope="module")
def independent():
    return independent_encoder(ENCODER, INDEPENDENT)


@pytest.fixture(scope="module")
def measured(toy_checkpoint):
    """Seed 0 was fine-tuned; of seed 1 only the fifth layer's weights were doubled."""
    torch.manual_seed(0)
    model = heads.build(encoders.locate(ENCODER), "sequence", ("no", "yes")).eval()
    with torch.no_grad():
        for parameter in layer_list(model)[4].parameters():
            parameter.mul_(2)
    specification = replace(toy_checkpoint.specification, seed=1)
    changed = SimpleNamespace(specification=specification, manifest={"diverged": False}, model=lambda: model)
    lines = []
    table = measured_of([toy_checkpoint, changed], log=lines.append)
    assert lines == ["rte: 2 models and their twins measured"]
    return table


def curve(table, measure, seed, column="value", control="", fold=-1):
    rows = table[(table["control"] == control) & (table["fold"] == fold)]
    rows = rows[(rows["measure"] == measure) & (rows["seed"] == seed)]
    return rows.set_index("layer")[column].to_numpy()


def test_every_measure_has_every_layer_of_every_model(measured):
    counts = measured.groupby(["task", "control", "seed", "measure", "fold"], sort=False)["layer"].apply(list)
    expected = [
        ("rte", control, seed, measure, fold)
        for control in ("", *TWINS)
        for seed in (0, 1)
        for measure in MEASURES
        for fold in (range(-1, 10) if measure in FOLDED else [-1])
        if control == "" or measure != "rollback"
    ]
    assert list(counts.index) == expected
    assert all(layers == [1, 2, 3, 4, 5, 6] for layers in counts)
    assert np.isfinite(measured[["value", "null"]]).all(axis=None)
    assert set(measured.dropna(subset=["entering"])["measure"]) == set(ADDED)


@pytest.mark.parametrize("measure", [one for one in MEASURES if BY_KEY[one].reads_activations])
def test_what_is_read_below_the_layer_that_changed_is_as_it_was(measured, measure):
    found = curve(measured, measure, 1)
    np.testing.assert_allclose(found[:4], 0, atol=1e-5)
    assert np.abs(found[4:]).max() > 1e-3


@pytest.mark.parametrize("measure", ["rollback", "weights"])
def test_the_parameters_of_the_layer_that_changed_are_found_alone(measured, measure):
    found = curve(measured, measure, 1)
    np.testing.assert_allclose(np.delete(found, 4), 0, atol=1e-5)
    assert abs(found[4]) > 1e-4


def test_doubled_weights_have_moved_by_themselves(measured):
    assert curve(measured, "weights", 1)[4] == pytest.approx(1.0)


def test_what_enters_a_layer_is_what_the_one_below_puts_out(measured):
    for measure in ADDED:
        for seed in (0, 1):
            np.testing.assert_array_equal(
                curve(measured, measure, seed, "entering")[1:], curve(measured, measure, seed)[:-1]
            )


def test_attention_features_and_weights_are_those_of_the_other_chapters(
    measured, independent, toy_checkpoint, toy_model
):
    examples = evaluation_part(toy_checkpoint, 40)
    models = {"start": toy_model, "tuned": toy_checkpoint.model(), "other": independent}
    alone = compare(models, [("start", "tuned"), ("start", "other")], examples, device="cpu")
    for second, column in (("tuned", "value"), ("other", "null")):
        rows = alone[alone["second"] == second]
        np.testing.assert_allclose(curve(measured, "js", 0, column), rows["js"], rtol=1e-6)
        np.testing.assert_allclose(curve(measured, "svcca", 0, column), rows["svcca"], rtol=1e-6)
    moved = weights.distance(toy_model, models["tuned"]).relative.mean(axis=1)
    np.testing.assert_allclose(curve(measured, "weights", 0), moved, rtol=1e-6)


def test_without_a_fold_a_measure_is_that_of_the_other_examples(measured, toy_checkpoint, toy_model, toy_tokenizer):
    examples = evaluation_part(toy_checkpoint, 40)
    fold_of = folds(examples["labels"])
    kept = examples.select(np.flatnonzero(fold_of != 3))
    models = {"start": toy_model, "tuned": toy_checkpoint.model()}
    lengths = np.array([len(one) for one in examples["input_ids"]])
    order = np.argsort(-lengths, kind="stable")
    positions = drawn_positions(examples, toy_tokenizer, 300)
    rows = np.repeat(order, lengths[order])
    drawn = np.concatenate([examples["input_ids"][row] for row in order])[positions]
    assert len(drawn) == 300 and not np.isin(drawn, toy_tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])).any()
    # The same tokens in a stream that lacks the examples of the fold.
    places = np.flatnonzero(np.isin(np.arange(len(rows))[fold_of[rows] != 3], positions))
    alone = compare_with([AttentionJS(), RSA(places)], models, [("start", "tuned")], kept, device="cpu")
    np.testing.assert_allclose(curve(measured, "js", 0, fold=3), alone["js"], rtol=1e-4)
    np.testing.assert_allclose(curve(measured, "rsa", 0, fold=3), 1 - alone["rsa"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("measure", ["probe", "rollback"])
def test_the_mean_without_each_fold_is_the_mean(measured, measure):
    folds = [curve(measured, measure, 0, fold=fold) for fold in range(10)]
    # Forty examples in ten folds of equal size.
    np.testing.assert_allclose(np.mean(folds, axis=0), curve(measured, measure, 0), atol=1e-6)
    assert np.ptp(folds, axis=0).max() > 0


def test_a_twin_moved_as_far_and_elsewhere(measured):
    np.testing.assert_allclose(curve(measured, "weights", 0, control="twin"), curve(measured, "weights", 0), rtol=1e-4)
    twin, tuned = (curve(measured, "svcca", 0, control=control) for control in ("twin", ""))
    assert np.abs(twin - tuned).max() > 1e-3


def test_a_functional_twin_ends_where_the_model_does(measured):
    twin, functional, tuned = (curve(measured, "rsa", 0, control=control)[-1] for control in (*TWINS, ""))
    # Its movement is taken on other examples, and with special tokens.
    assert functional == pytest.approx(tuned, rel=0.5) and abs(np.log(twin / tuned)) > abs(np.log(functional / tuned))


def test_models_whose_training_diverged_are_left_out(toy_checkpoint):
    diverged = replace(toy_checkpoint, manifest=toy_checkpoint.manifest | {"diverged": True})
    assert measured_of([diverged]).empty


def test_too_few_tokens_are_said_before_any_model_runs(toy_checkpoint):
    with pytest.raises(ValueError, match="take more examples"):
        measured_of([toy_checkpoint], evaluation_examples=2)


def test_random_weights_take_the_place_of_an_independent_encoder():
    first, second = independent_encoder(ENCODER, f"random:{ENCODER}"), untrained(ENCODER)
    assert weights.distance(first, second).relative.max() == 0


def test_encoders_that_cannot_be_compared_are_refused_in_one_sentence(tmp_path, toy_encoder, toy_tokenizer):
    with pytest.raises(ValueError, match="name an independent encoder of the same shape"):
        independent_encoder(ENCODER, "random:bert-base-uncased")
    # The same shape, but another word in the place of one.
    encoders.load_weights(toy_encoder).save_pretrained(tmp_path)
    toy_tokenizer.save_pretrained(tmp_path)
    file = tmp_path / "tokenizer.json"
    content = json.loads(file.read_text())
    word, place = content["model"]["vocab"].popitem()
    content["model"]["vocab"][f"{word}x"] = place
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="different vocabularies"):
        independent_encoder(ENCODER, str(tmp_path))
