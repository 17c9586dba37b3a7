"""Training on shuffled labels: what it is known by, what is permuted, and what stays."""

import dataclasses
from collections import Counter

import pytest
import torch
from datasets import Dataset
from tests.conftest import ENCODER, short_schedule

from fivelenses import tasks
from fivelenses.checkpoints import finetuning
from fivelenses.checkpoints.finetuning import prepare, shuffled
from fivelenses.checkpoints.specification import Schedule, Specification, specify
from fivelenses.checkpoints.store import Store
from fivelenses.tasks.examples import encode


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


def test_shuffled_labels_are_part_of_the_content():
    one = plain(shuffled_labels=True)
    assert one.address not in (plain().address, plain(seed=1, shuffled_labels=True).address)
    assert one.as_dict()["shuffled_labels"] is True
    assert Specification.from_dict(one.as_dict()) == one
    assert one.describe() == f"{plain().describe()}, shuffled labels"
    assert specify(ENCODER, "rte", "toyworld", 0, Schedule(1e-3, 32, 1), shuffled_labels=True).shuffled_labels


@pytest.mark.parametrize("name", ["squad", "parsing"])
def test_tasks_without_one_label_each_are_refused(name):
    with pytest.raises(ValueError, match=f"labels of '{name}' cannot be shuffled"):
        specify(ENCODER, name, "toyworld", 0, short_schedule(), shuffled_labels=True)


@pytest.mark.parametrize("name", ["rte", "dep"])
def test_labels_are_permuted_and_nothing_else_changes(name, toy_tokenizer):
    rows = encode(tasks.load(name, "toyworld", ("train",)), "train", toy_tokenizer, 64).select(range(100))
    changed = shuffled(rows, seed=0)
    assert changed["labels"] != rows["labels"]
    assert [len(row) if isinstance(row, list) else 0 for row in changed["labels"]] == [
        len(row) if isinstance(row, list) else 0 for row in rows["labels"]
    ]
    assert Counter(finetuning.flat_labels(changed).tolist()) == Counter(finetuning.flat_labels(rows).tolist())
    assert changed.remove_columns("labels").to_dict() == rows.remove_columns("labels").to_dict()
    assert list(shuffled(rows, seed=0)["labels"]) == list(changed["labels"]) != list(shuffled(rows, seed=1)["labels"])


def test_a_model_is_trained_on_the_permuted_labels_of_the_same_examples(
    toy_specification, toy_checkpoint, toy_tokenizer, tmp_path, monkeypatch
):
    evaluated, trained = [], []
    predict, trainer = finetuning.predict, finetuning.Trainer

    def noted_predict(model, data, split, encoded: Dataset, collate):
        evaluated.append((split, list(encoded["labels"])))
        return predict(model, data, split, encoded, collate)

    def noted_trainer(**arguments):
        trained.append(arguments["train_dataset"])
        return trainer(**arguments)

    monkeypatch.setattr(finetuning, "predict", noted_predict)
    monkeypatch.setattr(finetuning, "Trainer", noted_trainer)
    empty = dataclasses.replace(toy_specification, shuffled_labels=True)
    made, again = prepare([empty, dataclasses.replace(empty)], Store(tmp_path), workers=1, log=lambda line: None)

    assert made.folder == again.folder and len(trained) == 1
    assert made.specification == empty
    data = tasks.load("rte", "toyworld")
    assert evaluated == [("validation", list(data.splits["validation"]["label"]))]
    ordinary = finetuning._training_examples(data, toy_specification, toy_tokenizer)
    assert trained[0]["input_ids"] == ordinary["input_ids"]
    assert list(trained[0]["labels"]) != list(ordinary["labels"])
    assert Counter(trained[0]["labels"]) == Counter(ordinary["labels"])
    for name in ("steps", "training_examples", "null_rate"):
        assert made.manifest[name] == toy_checkpoint.manifest[name]
    head, other = (checkpoint.model().classifier.weight for checkpoint in (made, toy_checkpoint))
    assert not torch.equal(head, other)
