"""What becomes of a model whose training diverged: it is left out where others are there, and refused where not."""

import dataclasses
from types import SimpleNamespace

import pytest

from fivelenses.checkpoints.store import check_finite
from fivelenses.papers import hao2020


def gone(checkpoint) -> SimpleNamespace:
    return SimpleNamespace(manifest=checkpoint.manifest | {"diverged": True}, specification=checkpoint.specification)


def test_where_none_can_be_left_out_the_first_is_named_with_the_parameter(toy_checkpoint):
    check_finite({("pos", 0): toy_checkpoint}, "followed")
    with pytest.raises(ValueError, match=r"training of \('dep', 1\) diverged: .* out of followed"):
        check_finite({("pos", 0): toy_checkpoint, ("dep", 1): gone(toy_checkpoint)}, "followed")


def test_a_pair_of_data_sets_is_absent_where_one_training_diverged(toy_checkpoint):
    other = gone(toy_checkpoint)
    other.specification = dataclasses.replace(toy_checkpoint.specification, task="mrpc")
    table = hao2020.between_datasets([toy_checkpoint, other], ("mrpc", "rte"), 4)
    assert table.empty and {"pair", "layer", "js", "svcca"} < set(table)
