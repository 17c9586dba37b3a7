"""The bag of words learns from the very examples that models are fine-tuned on."""

from unittest.mock import patch

import datasets
import pytest
from tests.conftest import ENCODER, short_schedule

from fivelenses import tasks
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


def test_a_word_of_the_second_text_is_enough():
    rows = {"sentence1": ["a", "b", "a", "b"], "sentence2": ["yes", "no", "no", "yes"], "label": [1, 0, 0, 1]}
    both = dict.fromkeys(("train", "validation"), datasets.Dataset.from_dict(rows))
    data = tasks.TaskData(tasks.find("mrpc"), "hub", both, ())
    assert tables.words_predicted(data).tolist() == rows["label"]
