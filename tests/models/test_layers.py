import copy

import pytest
import torch
from tests.conftest import equal_weights
from transformers import AutoModel, ElectraConfig, MPNetConfig

from fivelenses.models import layers


def test_rolling_a_layer_back_changes_that_layer_alone(toy_model):
    moved = copy.deepcopy(toy_model)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(1.0)
    found = copy.deepcopy(moved)
    layers.roll_back(found, toy_model, [3])
    for layer in range(7):
        expected = toy_model if layer == 3 else moved
        assert equal_weights(layers.part(found, layer), layers.part(expected, layer))


def test_reinitialisation_changes_exactly_the_six_projections(toy_model):
    before = copy.deepcopy(toy_model)
    layers.reinitialise(toy_model, [5, 6], seed=0)
    old, projections = before.state_dict(), layers.PROJECTIONS["bert"]
    changed = {name for name, tensor in toy_model.state_dict().items() if not torch.equal(tensor, old[name])}
    assert changed == {f"encoder.layer.{layer}.{name}.weight" for layer in (4, 5) for name in projections}


def test_reinitialised_weights_are_a_truncated_normal(toy_model):
    layers.reinitialise(toy_model, range(1, 7), seed=0)
    weights = torch.cat([toy_model.encoder.layer[i].intermediate.dense.weight.flatten() for i in range(6)])
    assert weights.abs().max() <= 0.04
    assert abs(weights.mean()) < 2e-4
    # A normal cut at ±2σ has 0.8796 of its deviation.
    assert weights.std().item() == pytest.approx(0.02 * 0.8796, rel=0.02)


def test_reset_also_sets_biases_and_norms(toy_model):
    layers.reinitialise(toy_model, [1], seed=0, biases_and_norms="reset")
    first = toy_model.encoder.layer[0]
    assert not first.output.dense.bias.any()
    assert torch.equal(first.output.LayerNorm.weight, torch.ones(64))
    assert toy_model.encoder.layer[1].output.dense.bias.any()


SMALL = dict(vocab_size=50, max_position_embeddings=16, hidden_size=8, num_hidden_layers=2, num_attention_heads=2)


@pytest.mark.parametrize(
    ("config", "beside"),
    [
        (ElectraConfig(**SMALL, embedding_size=4), "embeddings_project"),
        (MPNetConfig(**SMALL), "encoder.relative_attention_bias"),
    ],
    ids=["electra", "mpnet"],
)
def test_what_belongs_to_no_layer_goes_with_the_embeddings(config, beside):
    original, tuned = AutoModel.from_config(config), AutoModel.from_config(config)
    assert not equal_weights(tuned.get_submodule(beside), original.get_submodule(beside))
    layers.roll_back(tuned, original, [0])
    assert equal_weights(tuned.get_submodule(beside), original.get_submodule(beside))
    layers.freeze(tuned, range(3))
    free = {name for name, parameter in tuned.named_parameters() if parameter.requires_grad}
    assert all(name.startswith("pooler.") for name in free)
