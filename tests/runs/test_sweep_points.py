import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fivelenses.chapters import ParameterError
from fivelenses.sweep import MAX_NAME_LENGTH, expand, points, read_grid

words = some.text("abcdefgh", min_size=1, max_size=3)
values = some.lists(some.integers(-9, 9) | words, min_size=1, max_size=4, unique=True)
grids = some.dictionaries(words, values, min_size=1, max_size=3)


@given(grids)
def test_a_grid_has_every_combination_once_in_a_stable_order(grid):
    made = expand(grid)
    product = 1
    for of_name in grid.values():
        product *= len(of_name)
    assert len(made) == len({tuple(entry.items()) for entry in made}) == product
    places = [[grid[name].index(value) for name, value in entry.items()] for entry in made]
    assert places == sorted(places)


@given(grids)
def test_a_grid_is_read_as_it_is_written_on_one_line_or_several(grid):
    pairs = [f"{name}={','.join(map(str, of_name))}" for name, of_name in grid.items()]
    assert read_grid(pairs) == read_grid([" ".join(pairs)]) == grid


def test_a_grid_of_two_names_by_hand():
    made = points(1, "tiny", expand(read_grid(["task=rte,mrpc", "learning_rate=1e-4,5e-4"])), {"seeds": [3]})
    assert [point.name for point in made] == [
        "task=rte,learning_rate=0.0001",
        "task=rte,learning_rate=0.0005",
        "task=mrpc,learning_rate=0.0001",
        "task=mrpc,learning_rate=0.0005",
    ]
    assert made[1].overrides == {"seeds": [3], "tasks": ["rte"], "learning_rate": 0.0005}
    assert made[1].values == {"task": "rte", "learning_rate": 0.0005}


def test_a_list_of_points_has_a_column_for_every_name_in_it():
    made = points(1, "tiny", [{"task": "rte", "epochs": 1}, {"tasks": ["rte", "mrpc"]}, {"seed": 4}])
    assert [point.overrides for point in made][1:] == [{"tasks": ["rte", "mrpc"]}, {"seeds": [4]}]
    assert made[0].values == {"task": "rte", "epochs": 1.0, "tasks": '["rte"]', "seed": "[0, 1]"}
    # A name that a point does not give has the profile's value there.
    assert made[2].values["tasks"] == '["cola", "rte", "sst2"]'


@pytest.mark.parametrize("encoder", ["google-bert/bert-base-uncased", "/a/very/long/path" * 20, "with spaces"])
def test_the_name_of_a_point_is_the_name_of_a_file(encoder):
    names = [point.name for point in points(1, "tiny", [{"encoder": encoder}, {"encoder": f"{encoder}x"}])]
    assert len(set(names)) == 2
    assert all(len(name) <= MAX_NAME_LENGTH and re.fullmatch(r"[\w.,=+\[\]-]+", name) for name in names)


@pytest.mark.parametrize(
    ("wanted", "fixed", "message"),
    [
        ([{"colour": "red"}], {}, "The point colour=red does not fit. Chapter 1 has no parameter 'colour'"),
        ([{"profile": "small"}], {}, "no parameter 'profile'"),
        ([{"seed": 0}, {"seed": "zero"}], {}, "The point seed=zero does not fit. Chapter 1, seeds (overridden)"),
        ([{"task": ["rte", "mrpc"]}], {}, "tasks (overridden)"),
        ([{"task": "squad"}], {}, "squad has a span head"),
        ([{"task": "rte"}, {"task": "rte"}], {}, "The points task=rte and task=rte are the same run"),
        ([{"task": "rte"}, {"tasks": ["rte"]}], {}, "are the same run"),
        ([{"epochs": 5}, {"epochs": 5.0}], {}, "are the same run"),
        ([{"task": "rte", "tasks": ["mrpc"]}], {}, "gives tasks twice"),
        ([{"task": "rte"}], {"tasks": ["mrpc"]}, "gives tasks twice"),
        ([], {}, "at least one point"),
    ],
)
def test_a_point_that_does_not_fit_is_named_before_anything_starts(wanted, fixed, message):
    with pytest.raises(ParameterError) as refusal:
        points(1, "tiny", wanted, fixed)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (["task"], "written name=value,value, not 'task'"),
        (["=rte"], "written name=value,value"),
        (["task=[rte"], "not YAML"),
        (["task=rte", "seed=0 task=mrpc"], "names task twice"),
        ([""], "written name=value,value"),
    ],
)
def test_a_grid_that_is_not_written_as_one_is_refused(grid, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_grid(grid)
