import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses.directions import (
    angle,
    difference,
    direction_at,
    filter_normalised,
    inner,
    moved,
    norm,
    random_direction,
    rescaled,
    vector,
)

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


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-150, 1e150, 1e200, 1e300])
def test_lengths_and_angles_are_right_where_squares_are_no_numbers(scale):
    three_four, across = parameters([3 * scale, 4 * scale, 0]), parameters([0, 0, scale])
    assert norm(three_four) == pytest.approx(5 * scale, rel=1e-12)
    assert angle(three_four, across) == pytest.approx(90)
    assert rescaled(three_four, parameters([0, 0, 1]))["weight"].tolist() == [pytest.approx([0.6, 0.8])]
    assert norm(rescaled(parameters([1, 1, 1]), three_four)) == pytest.approx(5 * scale, rel=1e-12)


def test_what_is_beyond_double_precision_is_refused():
    huge = parameters([1.7e308, 1.7e308, 1.7e308])
    with pytest.raises(ValueError, match="length of the direction is beyond double precision"):
        norm(huge)
    with pytest.raises(ValueError, match="inner product of the two directions is beyond"):
        inner(huge, huge)
    with pytest.raises(ValueError, match="cannot be as long as the first"):
        rescaled({"x": torch.tensor([1.0, 1e-38])}, {"x": torch.tensor([3e38, 3e38])})
    with pytest.raises(ValueError, match="A coefficient is nan"):
        moved(parameters([1, 2, 3]), [parameters([1, 1, 1])], [math.nan])


def test_what_has_no_angle_or_no_filters_is_refused():
    nothing, ones = {"x": torch.zeros(2)}, {"x": torch.ones(2)}
    for pair in ((nothing, ones), (ones, nothing)):
        with pytest.raises(ValueError, match="is 0 in all its parameters"):
            angle(*pair)
        with pytest.raises(ValueError, match="is 0 in all its parameters"):
            rescaled(*pair)
    with pytest.raises(ValueError, match="has no matrix"):
        random_direction(ones, 0)
