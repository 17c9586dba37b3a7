import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification, BertConfig, DistilBertConfig, ElectraConfig, MPNetConfig

from fivelenses.lenses import directions
from fivelenses.lenses.directions import angle, difference, layer_parameters, moved, norm, placed, project
from fivelenses.models import thirds
from fivelenses.models.layers import part

numbers = st.floats(-100, 100).filter(lambda number: abs(number) > 1e-3)
triples = st.lists(numbers, min_size=3, max_size=3)


def parameters(values):
    """Three or four numbers in two tensors, so that sums have to run over names too."""
    values = torch.tensor(values, dtype=torch.float64)
    return {"weight": values[:2].reshape(1, 2), "bias": values[2:]}


@given(triples, triples, st.floats(0.01, 100))
@settings(deadline=None, max_examples=50)
def test_the_angle_is_that_of_all_numbers_and_does_not_depend_on_lengths(one, other, scale):
    first, second = parameters(one), parameters(other)
    expected = sum(x * y for x, y in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)
    assert norm(first) == pytest.approx(math.hypot(*one))
    assert math.cos(math.radians(angle(first, second))) == pytest.approx(expected, abs=1e-9)
    scaled = moved(second, second, scale - 1)
    assert angle(scaled, first) == pytest.approx(angle(first, second), abs=1e-6)


def test_small_angles_keep_their_digits():
    tilted = {"x": torch.tensor([1.0, 1e-9], dtype=torch.float64)}
    assert angle({"x": torch.tensor([1.0, 0.0], dtype=torch.float64)}, tilted) == pytest.approx(math.degrees(1e-9))
    assert angle(tilted, {"x": -tilted["x"]}) == 180


@given(triples, triples)
@settings(deadline=None, max_examples=50)
def test_a_rescaled_direction_keeps_its_own_way_and_takes_the_others_length(one, other):
    found = directions.rescaled(parameters(one), parameters(other))
    assert norm(found) == pytest.approx(norm(parameters(other)))
    assert angle(found, parameters(one)) == pytest.approx(0, abs=1e-5)


@given(triples, triples, st.floats(-4, 4))
@settings(deadline=None, max_examples=50)
def test_moving_by_a_difference_goes_from_start_to_end(one, other, coefficient):
    start, end = parameters(one), parameters(other)
    way = difference(end, start)
    for name, tensor in moved(moved(start, way, coefficient), way, 1 - coefficient).items():
        torch.testing.assert_close(tensor, end[name], atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(start["bias"], parameters(one)["bias"], atol=0, rtol=0)


def test_each_row_of_a_random_direction_has_the_length_of_the_points_row():
    torch.manual_seed(0)
    point = {"weight": torch.randn(5, 3, 2), "bias": torch.randn(5), "norm": torch.tensor(2.0)}
    point["weight"][2] = 0
    direction = directions.random_direction(point, seed=1)
    lengths = [tensor["weight"].flatten(1).norm(dim=1) for tensor in (direction, point)]
    torch.testing.assert_close(*lengths)
    assert not direction["bias"].any() and not direction["norm"].any()
    assert torch.equal(directions.random_direction(point, seed=1)["weight"], direction["weight"])
    assert not torch.equal(directions.random_direction(point, seed=2)["weight"], direction["weight"])


@pytest.mark.parametrize(
    ("direction", "sentence"),
    [
        ({"x": torch.tensor([1.0, math.nan])}, "'x' holds NaN"),
        ({"x": torch.tensor([1.0, math.inf])}, "'x' holds NaN"),
        ({"x": torch.tensor([1, 2])}, "'x' holds .* torch.int64"),
        ({"y": torch.ones(2)}, "do not have the same parameters: 'x'"),
        ({"x": torch.ones(2), "y": torch.ones(2)}, "do not have the same parameters: 'y'"),
        ({"x": torch.ones(3)}, "do not have the same parameters: 'x'"),
    ],
)
def test_a_direction_that_does_not_fit_is_refused_in_one_sentence(direction, sentence):
    with pytest.raises(ValueError, match=sentence):
        directions.vector(direction, directions.vector({"x": torch.ones(2)}))


def test_what_has_no_angle_or_no_filters_is_refused():
    nothing, ones = {"x": torch.zeros(2)}, {"x": torch.ones(2)}
    for pair in ((nothing, ones), (ones, nothing)):
        with pytest.raises(ValueError, match="'x' holds NaN"):
            angle(*pair)
    with pytest.raises(ValueError, match="has no matrix"):
        directions.random_direction(ones, 0)


def test_the_projection_worked_by_hand():
    origin, first, second = parameters([1, 0, 0, 0]), parameters([2, 0, 0, 0]), parameters([2, 2, 0, 0])
    projected = project([parameters([1, 0, 0, 0]), parameters([5, 2, 0, 4])], origin, first, second)
    np.testing.assert_allclose(projected.alphas, [0, 2])
    np.testing.assert_allclose(projected.betas, [0, math.sqrt(20) / 2])
    np.testing.assert_allclose(projected.cosines, [np.nan, 4 / 6])
    np.testing.assert_allclose(projected.plane, [[0, 0], [1, 1]], atol=1e-12)
    np.testing.assert_allclose(projected.share, [np.nan, 20 / 36])


@given(st.floats(-4, 4), st.floats(-4, 4), st.floats(0, 4), st.floats(0.1, 4), st.floats(-100, 100))
@settings(deadline=None, max_examples=50)
def test_coordinates_are_those_of_the_plane_wherever_it_starts_and_in_the_unit_of_its_directions(
    alpha, beta, outside, length, start
):
    first, second = parameters([length, length, 0, 0]), parameters([0, 3, 1, 0])
    way = np.array([alpha * length, alpha * length + 3 * beta, beta, outside])
    projected = project([parameters(start + way)], parameters([start] * 4), first, second)
    np.testing.assert_allclose(projected.plane, [[alpha, beta]], atol=1e-7)
    along = way[:2].sum() / (2 * length)
    assert projected.alphas[0] == pytest.approx(along, abs=1e-7)
    across = math.hypot(*(way - along * np.array([length, length, 0, 0]))) / (length * math.sqrt(2))
    assert projected.betas[0] == pytest.approx(across, abs=1e-7)
    if (squared := way @ way) > 1e-6:
        assert projected.share[0] == pytest.approx(1 - outside**2 / squared, abs=1e-7)


def test_a_plane_without_width_is_refused():
    start, first, second = parameters([0] * 4), parameters([1, 0, 0, 0]), parameters([0, 1, 0, 0])
    with pytest.raises(ValueError, match="are parallel"):
        project([start], start, first, parameters([-3, 0, 0, 0]))
    with pytest.raises(ValueError, match="do not have the same parameters"):
        project([{"weight": start["weight"]}], start, first, second)


SHAPE = dict(vocab_size=20, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16)
CONFIGURATIONS = {
    "bert": BertConfig(**SHAPE),
    # Embeddings narrower than the layers, as in the published models.
    "electra": ElectraConfig(**SHAPE, embedding_size=4),
    "mpnet": MPNetConfig(**SHAPE),
    "distilbert": DistilBertConfig(vocab_size=20, dim=8, n_layers=3, n_heads=2, hidden_dim=16),
}


def seeded(kind="bert", seed=0):
    torch.manual_seed(seed)
    return AutoModelForSequenceClassification.from_config(CONFIGURATIONS[kind]).eval()


@pytest.mark.parametrize("depth", [3, 4, 6, 8, 12, 24, 48])
def test_thirds_partition_the_layers_in_order(depth):
    groups = thirds(depth)
    assert [layer for name in ("low", "middle", "high") for layer in groups[name]] == list(range(1, depth + 1))
    sizes = [len(group) for group in groups.values()]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_layers_partition_the_encoder_without_its_head(kind):
    model = seeded(kind)
    of_layers = [layer_parameters(model, [layer]) for layer in range(4)]
    names = [name for group in of_layers for name in group]
    assert len(names) == len(set(names))
    assert set(names) == {name for name, _ in model.base_model.named_parameters() if "pooler" not in name}
    assert set(layer_parameters(model, range(4))) == set(names)
    for layer in (1, 2, 3):
        assert len(of_layers[layer]) == len(list(part(model, layer).parameters()))
        assert not any("embeddings" in name for name in of_layers[layer])


def test_a_point_is_in_the_model_within_the_block_and_its_own_comes_back_to_the_bit_even_after_a_failure():
    model, other = seeded("bert", 0), seeded("bert", 1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    places = {name: parameter.data_ptr() for name, parameter in model.named_parameters()}
    with pytest.raises(KeyboardInterrupt), placed(model, layer_parameters(other, [1, 3])):
        for layer in (1, 3):
            for mine, theirs in zip(part(model, layer).parameters(), part(other, layer).parameters(), strict=True):
                assert torch.equal(mine, theirs)
        name = "bert.encoder.layer.1.output.dense.weight"
        assert torch.equal(model.state_dict()[name], before[name])
        raise KeyboardInterrupt
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert places == {name: parameter.data_ptr() for name, parameter in model.named_parameters()}


def test_what_does_not_fit_the_model_is_refused_in_one_sentence():
    model = seeded()
    for point, sentence in (
        ({"embeddings.position_ids": torch.zeros(1, 512)}, "is no parameter of the model"),
        ({"classifier.weight": torch.zeros(2, 8)}, "is no parameter of the model"),
        ({"encoder.layer.0.output.dense.bias": torch.zeros(9)}, r"of shape \(9,\) is no parameter"),
    ):
        with pytest.raises(ValueError, match=sentence), placed(model, point):
            raise AssertionError("The block must not run.")
    with pytest.raises(ValueError, match="no layer 4"):
        layer_parameters(model, [4])
