import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, BertConfig

from fivelenses.lenses import weights
from fivelenses.models.layers import PARTS, layer_list, reinitialise, roll_back

TINY = dict(hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8, vocab_size=10)


def tiny(**changes):
    torch.manual_seed(0)
    return AutoModel.from_config(BertConfig(**TINY | changes))


def shifted(model, by: float):
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(by)
    return moved


def test_a_case_worked_by_hand():
    original, tuned = tiny(), tiny()
    with torch.no_grad():
        layer_list(original)[1].output.dense.weight.fill_(1.0)  # 4 × 8 entries: its norm is sqrt(32)
        layer_list(tuned)[1].output.dense.weight.fill_(1.0)
        layer_list(tuned)[1].output.dense.weight[0, :2] = torch.tensor([4.0, 5.0])  # differences 3 and 4
    found = weights.distance(original, tuned)
    assert found.absolute[:, PARTS.index("output")].tolist() == [0.0, 5.0]
    assert found.relative[1, PARTS.index("output")] == pytest.approx(5 / 32**0.5)
    assert found.absolute.sum() == 5.0


@settings(max_examples=20, deadline=None)
@given(by=st.floats(-2, 2), factor=st.floats(0.1, 10))
def test_absolute_distance_scales_with_the_models_and_relative_does_not(by, factor):
    original = tiny()
    tuned = shifted(original, by)
    before = weights.distance(original, tuned)
    for model in (original, tuned):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(factor)
    after = weights.distance(original, tuned)
    np.testing.assert_allclose(after.absolute, factor * before.absolute, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after.relative, before.relative, rtol=1e-4, atol=1e-6)


def test_distance_is_symmetric_and_obeys_the_triangle():
    one, other, third = tiny(), shifted(tiny(), 0.1), tiny()
    reinitialise(third, [1, 2], seed=0)
    there, back = weights.distance(one, other).absolute, weights.distance(other, one).absolute
    np.testing.assert_allclose(there, back, rtol=1e-6)
    detour = weights.distance(one, third).absolute + weights.distance(third, other).absolute
    assert (there <= detour + 1e-9).all()


def test_a_layer_put_back_has_distance_zero(toy_model):
    tuned = shifted(toy_model, 0.01)
    roll_back(tuned, toy_model, [2])
    found = weights.distance(toy_model, tuned)
    assert not found.absolute[1].any() and found.absolute[[0, 2, 3, 4, 5]].all()


@pytest.mark.parametrize(
    ("tuned", "message"),
    [
        (lambda: tiny(num_hidden_layers=3), "2 and 3 layers"),
        (lambda: tiny(intermediate_size=6), r"The intermediate projection of layer 1 is \(8, 4\) .* \(6, 4\)"),
        (lambda: shifted(tiny(), float("nan")), "query projection of layer 1 holds a weight that is not finite"),
    ],
)
def test_models_that_cannot_be_compared_are_refused(tuned, message):
    with pytest.raises(ValueError, match=message):
        weights.distance(tiny(), tuned())


def test_a_weight_without_scale_is_refused():
    blank = tiny()
    with torch.no_grad():
        layer_list(blank)[0].intermediate.dense.weight.zero_()
    with pytest.raises(ValueError, match="intermediate projection of layer 1 is zero"):
        weights.distance(blank, tiny())
