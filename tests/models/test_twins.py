import copy

import pytest
import torch
from tests.conftest import ENCODER
from transformers import AutoModel, BertConfig

from fivelenses.lenses import weights
from fivelenses.lenses.directions import angle
from fivelenses.lenses.parameter_motion import layer_direction, layer_parameters
from fivelenses.models import encoders, heads
from fivelenses.models.twins import moved_at_random

ALL = range(7)
UNMOVED = "encoder.layer.2.output.dense.weight"


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


def equal(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_every_parameter_moves_by_the_norm_of_the_models_move_in_another_direction(tuned, twin, original):
    of_tuned, of_twin = layer_direction(original, tuned, ALL), layer_direction(original, twin, ALL)
    for name, move in of_tuned.items():
        assert of_twin[name].norm().item() == pytest.approx(move.norm().item(), rel=1e-4), name
    matrices = [name for name, move in of_tuned.items() if move.ndim == 2 and move.any()]
    assert len(matrices) > 36
    for name in matrices:
        # The cosine of random directions in n dimensions has a deviation of 1/√n, at most 1/√128 here.
        assert angle({name: of_tuned[name]}, {name: of_twin[name]}) == pytest.approx(90, abs=20), name


def test_the_weights_lens_gives_the_models_curve(tuned, twin, original):
    expected, measured = weights.distance(original, tuned), weights.distance(original, twin)
    assert measured.relative == pytest.approx(expected.relative, rel=1e-4)
    assert expected.relative.min() == 0 < expected.relative.max()


def test_one_seed_has_one_twin_and_another_seed_another(tuned, twin, original):
    assert equal(moved_at_random(tuned, original, seed=0), twin)
    other = moved_at_random(tuned, original, seed=1)
    apart = layer_direction(twin, other, [1])
    assert all(move.any() for move in apart.values())


def test_the_noise_of_a_parameter_depends_on_no_other_parameter(tuned, twin, original):
    less = copy.deepcopy(tuned)
    first = less.bert.encoder.layer[0]
    first.load_state_dict(original.encoder.layer[0].state_dict())
    other = moved_at_random(less, original, seed=0)
    assert equal(other.bert.encoder.layer[0], original.encoder.layer[0])
    assert equal(other.bert.encoder.layer[1], twin.bert.encoder.layer[1])


def test_what_did_not_move_stays_and_head_and_pooler_are_the_tuned_ones(tuned, twin, original):
    assert torch.equal(layer_parameters(twin, ALL)[UNMOVED], layer_parameters(original, ALL)[UNMOVED])
    assert equal(twin.classifier, tuned.classifier)
    assert equal(twin.bert.pooler, tuned.bert.pooler)
    assert not equal(tuned.bert.pooler, original.pooler)


def test_neither_model_is_changed(tuned, original):
    before = copy.deepcopy(tuned), copy.deepcopy(original)
    moved_at_random(tuned, original, seed=3)
    assert equal(tuned, before[0]) and equal(original, before[1])


def test_a_model_that_did_not_move_is_its_own_twin(original):
    assert equal(moved_at_random(original, original, seed=0), original)


def test_the_twin_reads_text(tuned, twin):
    with torch.no_grad():
        logits, of_tuned = (model(input_ids=torch.arange(5, 15)[None]).logits for model in (twin, tuned))
    assert logits.shape == (1, 2) and logits.isfinite().all() and not torch.equal(logits, of_tuned)


@pytest.mark.parametrize("changes", [{"hidden_size": 32}, {"num_hidden_layers": 5}], ids=str)
def test_models_of_different_shapes_are_refused(tuned, changes):
    shape = tuned.config.to_dict() | changes
    with pytest.raises(ValueError, match="not of one architecture"):
        moved_at_random(tuned, AutoModel.from_config(BertConfig(**shape)), seed=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("diverged", ["tuned", "original"])
def test_values_that_are_not_finite_are_refused(tuned, original, diverged, value):
    models = {"tuned": copy.deepcopy(tuned), "original": copy.deepcopy(original)}
    with torch.no_grad():
        models[diverged].base_model.encoder.layer[3].output.dense.bias[0] = value
    with pytest.raises(ValueError, match="layer.3.output.dense.bias' holds a weight that is not finite"):
        moved_at_random(**models, seed=0)
