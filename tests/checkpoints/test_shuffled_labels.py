"""Training on shuffled labels: what it is known by, what is permuted, and what stays."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from tests.conftest import ENCODER, short_schedule

from fivelenses import tasks
from fivelenses.checkpoints.finetuning import _training_examples
from fivelenses.checkpoints.specification import Schedule, Specification, specify
from fivelenses.checkpoints.tables import flat_labels


def plain(**changes) -> Specification:
    """A specification whose hashes are written out, so that its address depends on its form alone."""
    schedule = Schedule(1e-3, 32, 1)
    content = (ENCODER, "c12275dca65463ec", "rte", "toyworld", "81a93573b55e7b98", 0, schedule)
    return dataclasses.replace(Specification(*content), **changes)


@pytest.mark.parametrize(
    ("changes", "address"),
    [
        ({}, "74f230d31dfdb337fdc4"),
        ({"frozen": (0, 1), "saved_steps": (0, 4)}, "2e6ea9838b9c00f2d14d"),
        (
            {"seed": 3, "examples": 64, "truncated": 1, "reinitialised": (1,), "biases_and_norms": "reset"},
            "948b24bc70bb8574b6be",
        ),
    ],
)
def test_ordinary_specifications_keep_their_addresses(changes, address):
    one = plain(**changes)
    assert one.address == address
    assert "shuffled_labels" not in one.as_dict()
    assert Specification.from_dict(one.as_dict()) == one


@pytest.mark.parametrize("name", ["rte", "dep"])
def test_labels_of_the_training_examples_are_permuted_and_nothing_else_changes(name, toy_tokenizer):
    data = tasks.load(name, "toyworld")
    ordinary = specify(ENCODER, name, "toyworld", 0, short_schedule(), examples=100)
    specifications = [ordinary, *(dataclasses.replace(ordinary, seed=seed, shuffled_labels=True) for seed in (0, 1))]
    rows, changed, other = (_training_examples(data, one, toy_tokenizer) for one in specifications)
    assert list(rows["labels"]) != list(changed["labels"]) != list(other["labels"])
    assert [np.size(labels) for labels in changed["labels"]] == [np.size(labels) for labels in rows["labels"]]
    assert Counter(flat_labels(changed).tolist()) == Counter(flat_labels(rows).tolist())
    assert changed.remove_columns("labels").to_dict() == rows.remove_columns("labels").to_dict()
