"""The bag of words learns from the very examples that models are fine-tuned on, once for each set of these."""

import dataclasses
from unittest.mock import patch

import pytest
from tests.conftest import ENCODER, short_schedule

from fivelenses import tasks
from fivelenses.chapters import settings
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.finetuning import _training_examples
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.tables import scored, words_by_example
from fivelenses.tasks.examples import encode


@pytest.mark.parametrize("examples, seed", [(96, 3), (None, 0)])
def test_it_learns_from_the_examples_of_the_models(toy_tokenizer, examples, seed):
    made = specify(ENCODER, "mrpc", "toyworld", 0, short_schedule(), examples=examples, examples_seed=seed)
    trained_on = _training_examples(tasks.load("mrpc", "toyworld"), made, toy_tokenizer)
    with patch.object(tables, "words_predicted", wraps=tables.words_predicted) as fitted:
        rows = words_by_example(made.as_dict())
    encoded = encode(fitted.call_args.args[0], "train", toy_tokenizer, made.schedule.max_length)
    assert encoded.to_dict() == trained_on.to_dict()
    assert set(rows["examples"]) == {trained_on.num_rows} and set(rows["seed"]) == {seed}


@pytest.mark.parametrize("task", ["mrpc", "cola"])
def test_its_rows_are_those_of_a_model_that_predicts_the_same(task, toy_tokenizer):
    made = specify(ENCODER, task, "toyworld", 0, short_schedule(), examples=200)
    data = tasks.load(task, "toyworld", ("validation",))
    of_words = words_by_example(made.as_dict())
    encoded = encode(data, "validation", toy_tokenizer, made.schedule.max_length)
    _, of_model = scored(made, data, encoded, of_words["predicted"].to_numpy())
    shared = [column for column in of_model if column not in ("encoder", "address")]
    assert of_words[shared].equals(of_model[shared].astype(of_words[shared].dtypes))
    assert {*of_words} == {*shared, "examples"}


def test_a_run_has_each_set_of_training_examples_once(monkeypatch):
    chosen = settings(4, "tiny")
    one = specify(ENCODER, "mrpc", "toyworld", 0, short_schedule(), examples=96)
    changes = [{}, {"seed": 1}, {"examples": 200}, {"examples_seed": 1}, {"shuffled_labels": True}, {"task": "pos"}]
    specifications = [dataclasses.replace(one, **changed) for changed in changes]
    monkeypatch.setattr(type(chosen), "specifications", lambda self: specifications)
    sets = chosen.training_sets()["training_set"]
    assert [(each["examples"], each["examples_seed"]) for each in sets] == [(96, 0), (200, 0), (96, 1)]
    assert {each["task"] for each in sets} == {"mrpc"} and {each["data_digest"] for each in sets} == {one.data_digest}
