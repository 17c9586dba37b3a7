import copy
import math

import numpy as np
import pytest
import torch
from tests.conftest import ENCODER, equal_weights

from fivelenses.activations import stream
from fivelenses.comparison import last_layer_movement
from fivelenses.lenses.directions import angle, difference, layer_parameters
from fivelenses.models import encoders, heads
from fivelenses.models.controls import TOLERANCE, _scale, moved_at_random, scale_of_equal_movement

ALL = range(7)
UNMOVED = "encoder.layer.2.output.dense.weight"


def movements(origin, target):
    return difference(layer_parameters(target, ALL), layer_parameters(origin, ALL))


@pytest.fixture(scope="module")
def original():
    """The pre-trained toy BERT; no test changes it."""
    return encoders.load_weights(encoders.locate(ENCODER))


@pytest.fixture(scope="module")
def tuned(original):
    """A classifier on it whose parameters have moved by different lengths, but for one matrix."""
    torch.manual_seed(0)
    model = heads.build(encoders.locate(ENCODER), "sequence", ("no", "yes")).eval()
    with torch.no_grad():
        for place, (name, parameter) in enumerate(model.base_model.named_parameters()):
            if name != UNMOVED:
                parameter.add_(torch.randn(parameter.shape), alpha=1e-3 * (1 + place % 5))
    return model


@pytest.fixture(scope="module")
def twin(tuned, original):
    return moved_at_random(tuned, original, seed=0)


def test_every_parameter_moves_by_the_norm_of_the_models_move_in_another_direction(tuned, twin, original):
    of_tuned, of_twin = movements(original, tuned), movements(original, twin)
    for name, move in of_tuned.items():
        assert of_twin[name].norm().item() == pytest.approx(move.norm().item(), rel=1e-4), name
    matrices = [name for name, move in of_tuned.items() if move.ndim == 2 and move.any()]
    assert len(matrices) > 36
    for name in matrices:
        # The cosine of random directions in n dimensions has a deviation of 1/√n, at most 1/√128 here.
        assert angle({name: of_tuned[name]}, {name: of_twin[name]}) == pytest.approx(90, abs=20), name


def test_the_noise_of_a_parameter_depends_on_no_other_parameter(tuned, twin, original):
    less = copy.deepcopy(tuned)
    first = less.bert.encoder.layer[0]
    first.load_state_dict(original.encoder.layer[0].state_dict())
    other = moved_at_random(less, original, seed=0)
    assert equal_weights(other.bert.encoder.layer[0], original.encoder.layer[0])
    assert equal_weights(other.bert.encoder.layer[1], twin.bert.encoder.layer[1])


def test_what_did_not_move_stays_and_head_and_pooler_are_the_tuned_ones(tuned, twin, original):
    assert torch.equal(layer_parameters(twin, ALL)[UNMOVED], layer_parameters(original, ALL)[UNMOVED])
    assert equal_weights(twin.classifier, tuned.classifier)
    assert equal_weights(twin.bert.pooler, tuned.bert.pooler)
    assert not equal_weights(tuned.bert.pooler, original.pooler)


def test_a_functional_twin_moves_the_last_layer_as_far_as_training_did(tuned, original, toy_examples):
    # A move that all neurons share changes more of what the model computes than noise of its norm.
    aligned = copy.deepcopy(tuned)
    with torch.no_grad():
        for layer in aligned.bert.encoder.layer:
            layer.output.dense.weight.add_(torch.linspace(-0.1, 0.1, 64)[:, None])
    movement = last_layer_movement(original, toy_examples, device="cpu")
    scale = scale_of_equal_movement(aligned, original, 0, movement)
    found = moved_at_random(aligned, original, 0, scale)
    assert movement(found) == pytest.approx(movement(aligned), rel=1.5 * TOLERANCE)
    assert scale > 1.2 and movement(moved_at_random(aligned, original, 0)) < 0.9 * movement(aligned)


def test_the_movement_of_the_last_layer_is_that_of_all_its_tokens(original, tuned, toy_examples):
    states = [
        np.concatenate([batch.tokens(6).numpy() for batch in stream(model, toy_examples, [6], device="cpu")])
        for model in (original, tuned)
    ]
    kernels = [rows @ rows.T for rows in (one / np.linalg.norm(one, axis=1, keepdims=True) for one in states)]
    pairs = np.triu_indices(len(states[0]), 1)
    expected = 1 - np.corrcoef(*(kernel[pairs] for kernel in kernels))[0, 1]
    assert last_layer_movement(original, toy_examples, device="cpu")(tuned) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("goal", [1e-6, 0.01, 0.4, 0.7, 0.98])
@pytest.mark.parametrize("unit", [0.02, 1, 40])
@pytest.mark.parametrize("steep", [1, 2, 4])
def test_a_scale_is_found_on_curves_that_saturate(goal, unit, steep):
    def moved(scale):
        return 1 - math.exp(-((scale / unit) ** steep))

    assert moved(_scale(moved, goal)) == pytest.approx(goal, rel=TOLERANCE)
