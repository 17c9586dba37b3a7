import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    ElectraConfig,
    ElectraForSequenceClassification,
    MPNetConfig,
    MPNetForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from fivelenses.lenses.directions import (
    angle,
    difference,
    direction_at,
    filter_normalised,
    inner,
    layer_parameters,
    moved,
    norm,
    placed,
    random_direction,
    rescaled,
    vector,
)
from fivelenses.models import thirds
from fivelenses.models.layers import part

numbers = st.floats(-100, 100).filter(lambda number: abs(number) > 1e-3)
triples = st.lists(numbers, min_size=3, max_size=3)


def parameters(values):
    """Three numbers in two tensors, so that sums have to run over names too."""
    values = torch.tensor(values, dtype=torch.float64)
    return {"weight": values[:2].reshape(1, 2), "bias": values[2:]}


@given(triples, triples)
@settings(deadline=None, max_examples=50)
def test_products_run_over_all_names(one, other):
    expected = sum(x * y for x, y in zip(one, other, strict=True))
    assert inner(parameters(one), parameters(other)) == pytest.approx(expected, abs=1e-9)
    assert norm(parameters(one)) == pytest.approx(math.hypot(*one))


@given(triples, triples, st.floats(0.01, 100), st.floats(0.01, 100))
@settings(deadline=None, max_examples=50)
def test_the_angle_does_not_depend_on_lengths_and_is_symmetric(one, other, scale, another_scale):
    first, second = parameters(one), parameters(other)
    found = angle(first, second)
    assert 0 <= found <= 180
    assert angle(second, first) == pytest.approx(found, abs=1e-6)
    scaled = [moved(side, [side], [times - 1]) for side, times in ((first, scale), (second, another_scale))]
    assert angle(*scaled) == pytest.approx(found, abs=1e-6)
    assert math.cos(math.radians(found)) == pytest.approx(inner(first, second) / norm(first) / norm(second), abs=1e-9)


def test_small_angles_keep_their_digits():
    tilted = {"x": torch.tensor([1.0, 1e-9], dtype=torch.float64)}
    assert angle({"x": torch.tensor([1.0, 0.0], dtype=torch.float64)}, tilted) == pytest.approx(math.degrees(1e-9))
    assert angle(tilted, {"x": -tilted["x"]}) == 180


@given(triples, triples)
@settings(deadline=None, max_examples=50)
def test_a_rescaled_direction_keeps_its_own_way_and_takes_the_others_length(one, other):
    found = rescaled(parameters(one), parameters(other))
    assert norm(found) == pytest.approx(norm(parameters(other)))
    assert angle(found, parameters(one)) == pytest.approx(0, abs=1e-5)


@given(triples, triples, st.floats(-4, 4))
@settings(deadline=None, max_examples=50)
def test_moving_by_a_difference_goes_from_start_to_end(one, other, coefficient):
    start, end = parameters(one), parameters(other)
    way = difference(end, start)
    for name, tensor in moved(start, [way, way], [coefficient, 1 - coefficient]).items():
        torch.testing.assert_close(tensor, end[name], atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(start["bias"], parameters(one)["bias"], atol=0, rtol=0)


def test_each_row_of_a_filter_normalised_direction_has_the_length_of_the_points_row():
    torch.manual_seed(0)
    point = {"weight": torch.randn(5, 3, 2), "bias": torch.randn(5), "norm": torch.tensor(2.0)}
    point["weight"][2] = 0
    found = random_direction(point, seed=1)
    lengths = [tensor["weight"].flatten(1).norm(dim=1) for tensor in (found, point)]
    torch.testing.assert_close(*lengths)
    assert not found["bias"].any() and not found["norm"].any()


def test_filter_normalisation_does_not_see_the_scale_of_a_direction():
    point = {"weight": torch.randn(4, 3, generator=torch.Generator().manual_seed(0))}
    direction = {"weight": torch.randn(4, 3, generator=torch.Generator().manual_seed(1))}
    scaled = {"weight": direction["weight"] * torch.tensor([[1.0], [7.0], [0.1], [3.0]])}
    torch.testing.assert_close(
        filter_normalised(scaled, point)["weight"], filter_normalised(direction, point)["weight"]
    )


@pytest.mark.parametrize(
    ("direction", "sentence"),
    [
        ({}, "has no parameters"),
        ({"x": torch.tensor([1.0, math.nan])}, "NaN or infinity in 'x'"),
        ({"x": torch.tensor([1.0, math.inf])}, "NaN or infinity in 'x'"),
        ({"x": torch.tensor([1, 2])}, "only floating-point"),
        ({"y": torch.ones(2)}, "do not name the same parameters: 'x'"),
        ({"x": torch.ones(2), "y": torch.ones(2)}, "do not name the same parameters: 'y'"),
        ({"x": torch.ones(3)}, r"shape \(3,\) in 'x', where the point has \(2,\)"),
        ({"x": torch.zeros(2)}, "leads nowhere"),
    ],
)
def test_a_direction_that_does_not_fit_is_refused_in_one_sentence(direction, sentence):
    with pytest.raises(ValueError, match=sentence):
        direction_at(direction, vector({"x": torch.ones(2)}))


def test_what_has_no_angle_or_no_filters_is_refused():
    nothing, ones = {"x": torch.zeros(2)}, {"x": torch.ones(2)}
    for pair in ((nothing, ones), (ones, nothing)):
        with pytest.raises(ValueError, match="is 0 in all its parameters"):
            angle(*pair)
        with pytest.raises(ValueError, match="is 0 in all its parameters"):
            rescaled(*pair)
    with pytest.raises(ValueError, match="has no matrix"):
        random_direction(ones, 0)
    with pytest.raises(ValueError, match="A coefficient is nan"):
        moved(ones, [ones], [math.nan])


# --- parameters of a model ---

SHAPE = dict(vocab_size=20, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16)
MODELS = {
    "bert": lambda: BertForSequenceClassification(BertConfig(**SHAPE)),
    "roberta": lambda: RobertaForSequenceClassification(RobertaConfig(**SHAPE)),
    # Embeddings narrower than the layers, as in the published models.
    "electra": lambda: ElectraForSequenceClassification(ElectraConfig(**SHAPE, embedding_size=4)),
    "mpnet": lambda: MPNetForSequenceClassification(MPNetConfig(**SHAPE)),
    "distilbert": lambda: DistilBertForSequenceClassification(
        DistilBertConfig(vocab_size=20, dim=8, n_layers=3, n_heads=2, hidden_dim=16)
    ),
}


def seeded(kind="bert", seed=0):
    torch.manual_seed(seed)
    return MODELS[kind]().eval()


def layer_direction(origin, target, layers):
    return difference(layer_parameters(target, layers), layer_parameters(origin, layers))


def snapshot(model):
    return {name: tensor.clone() for name, tensor in model.state_dict(keep_vars=False).items()}


def assert_as_before(model, before):
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


@given(st.integers(3, 48))
@settings(max_examples=46)
def test_thirds_partition_the_layers_in_order(depth):
    groups = thirds(depth)
    assert list(groups) == ["low", "middle", "high"]
    assert [layer for group in groups.values() for layer in group] == list(range(1, depth + 1))
    sizes = [len(group) for group in groups.values()]
    assert max(sizes) - min(sizes) <= 1


def test_the_thirds_of_a_large_bert_are_the_papers_which_counts_from_zero():
    assert thirds(24) == {"low": tuple(range(1, 9)), "middle": tuple(range(9, 17)), "high": tuple(range(17, 25))}


@pytest.mark.parametrize("kind", MODELS)
def test_groups_of_layers_partition_the_encoder(kind):
    model = seeded(kind)
    of_layers = [layer_parameters(model, [layer]) for layer in range(4)]
    named = [name for group in of_layers for name in group]
    assert len(named) == len(set(named))
    inside = {name for name, _ in model.base_model.named_parameters() if "pooler" not in name}
    assert set(named) == inside
    assert set(layer_parameters(model, range(4))) == inside
    for layer in (1, 2, 3):
        assert len(of_layers[layer]) == len(list(part(model, layer).parameters()))


@pytest.mark.parametrize("kind", MODELS)
def test_neither_buffers_nor_embeddings_nor_the_head_are_on_the_way_of_the_layers(kind):
    way = layer_direction(seeded(kind, 0), seeded(kind, 1), range(1, 4))
    assert not [name for name in way if "embeddings" in name or "classifier" in name or "pooler" in name]
    assert not set(way) & {name for name, _ in seeded(kind).base_model.named_buffers()}


def test_a_point_is_in_the_model_while_the_block_runs_and_its_own_come_back_to_the_bit():
    model, other = seeded("bert", 0), seeded("bert", 1)
    before, point = snapshot(model), layer_parameters(other, [1, 3])
    places = {name: parameter.data_ptr() for name, parameter in model.named_parameters()}
    with placed(model, point) as same:
        assert same is model
        for layer in (1, 3):
            for mine, theirs in zip(part(model, layer).parameters(), part(other, layer).parameters(), strict=True):
                assert torch.equal(mine, theirs)
        assert torch.equal(
            model.bert.encoder.layer[1].output.dense.weight, before["bert.encoder.layer.1.output.dense.weight"]
        )
    assert_as_before(model, before)
    assert places == {name: parameter.data_ptr() for name, parameter in model.named_parameters()}


def test_a_failure_inside_the_block_leaves_the_model_as_before():
    model = seeded()
    before = snapshot(model)
    with pytest.raises(KeyboardInterrupt), placed(model, layer_parameters(seeded(seed=1), range(4))):
        raise KeyboardInterrupt
    assert_as_before(model, before)


def test_what_does_not_fit_the_model_is_refused_in_one_sentence():
    model = seeded()
    for point, sentence in (
        ({"embeddings.position_ids": torch.zeros(1, 512)}, "is no parameter of the model"),
        ({"classifier.weight": torch.zeros(2, 8)}, "is no parameter of the model"),
        ({"encoder.layer.0.output.dense.bias": torch.zeros(9)}, r"shape \(9,\) in the point"),
    ):
        with pytest.raises(ValueError, match=sentence), placed(model, point):
            raise AssertionError("The block must not run.")
    with pytest.raises(ValueError, match="No layers"):
        layer_parameters(model, [])
    with pytest.raises(ValueError, match="no layer 4"):
        layer_parameters(model, [4])
    with pytest.raises(ValueError, match="no thirds"):
        thirds(2)
    with pytest.raises(ValueError, match="do not name the same parameters"):
        layer_direction(seeded("bert"), seeded("distilbert"), [1])
    wider = BertModel(BertConfig(**(SHAPE | {"intermediate_size": 24})))
    with pytest.raises(ValueError, match="has shape"):
        layer_direction(model, wider, [1])
    with torch.no_grad():
        wider.encoder.layer[0].output.dense.bias[0] = math.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        layer_direction(wider, wider, [1])
