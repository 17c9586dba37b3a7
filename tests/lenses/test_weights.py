import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, BertConfig

from fivelenses.lenses import weights
from fivelenses.models.layers import PARTS, layer_list

TINY = dict(hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8, vocab_size=10)


def tiny(**changes):
    torch.manual_seed(0)
    return AutoModel.from_config(BertConfig(**TINY | changes))


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
    original, tuned = tiny(), tiny()
    with torch.no_grad():
        for parameter in tuned.parameters():
            parameter.add_(by)
        before = weights.distance(original, tuned)
        for parameter in (*original.parameters(), *tuned.parameters()):
            parameter.mul_(factor)
    after = weights.distance(original, tuned)
    np.testing.assert_allclose(after.absolute, factor * before.absolute, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after.relative, before.relative, rtol=1e-4, atol=1e-6)


def test_models_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="2 and 3 layers"):
        weights.distance(tiny(), tiny(num_hidden_layers=3))
