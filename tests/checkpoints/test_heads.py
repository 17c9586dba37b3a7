"""Every kind of head through the one routine: trained, kept along the way, read back, and scored example by example."""

import numpy as np
import pytest
import torch
from tests.conftest import ENCODER, few_development_examples, short_schedule
from tests.trees import is_tree

from fivelenses import judging, tasks
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.checkpoints.tables import by_example, predict, scored
from fivelenses.models import heads, layers
from fivelenses.tasks.examples import encode
from fivelenses.tasks.scores import score

# Examples, epochs and rate; CoLA takes the longest to be learnt at all.
TRAININGS = {
    "rte": (1000, 1, 7e-4),
    "cola": (1500, 2, 1e-3),
    "squad": (300, 1, 2e-3),
    "parsing": (200, 2, 2e-3),
    "pos": (200, 1, 2e-3),
}
LONGEST = 96
OF_HEADS = ("classifier", "qa_outputs", "biaffine")


@pytest.fixture(scope="module", autouse=True)
def few_examples():
    with few_development_examples():
        yield


@pytest.fixture(scope="module", params=TRAININGS)
def trained(request, tmp_path_factory):
    """A checkpoint of each head."""
    examples, epochs, rate = TRAININGS[request.param]
    schedule = short_schedule(learning_rate=rate, epochs=epochs, max_length=LONGEST, by_length=True)
    one = specify(ENCODER, request.param, "toyworld", 0, schedule, examples=examples, saved_steps=(0, 5))
    return prepare([one], Store(tmp_path_factory.getbasetemp() / "heads"), workers=1, log=lambda line: None)[0]


def predicted_of(checkpoint, tokenizer, longest: int = LONGEST) -> tuple:
    """What a checkpoint predicts, its task, and the encoded examples."""
    data = tasks.load(checkpoint.specification.task, "toyworld")
    encoded = encode(data, "validation", tokenizer, longest)
    collate = heads.collator(data.task.head, tokenizer)
    return predict(checkpoint.model(), data, encoded, collate), data, encoded


def test_the_score_is_that_of_the_model_that_is_read_back(trained, toy_tokenizer):
    predicted, data, encoded = predicted_of(trained, toy_tokenizer)
    again, _ = scored(trained.specification, data, encoded, predicted)
    assert again == {name: trained.manifest[name] for name in again} and again["score"] != again["null_rate"]


def test_states_along_the_way_are_read_back_with_their_head(trained, toy_model):
    assert trained.steps() == (0, 5)
    before, after = trained.model_at(0), trained.model()
    pretrained = toy_model.encoder.layer[3].output.dense.weight
    torch.testing.assert_close(layers.projections(before, 4)["output"].weight, pretrained, atol=1e-3, rtol=1e-3)
    ours, theirs = before.state_dict(), after.state_dict()
    of_head = [name for name in ours if name.startswith(OF_HEADS)]
    assert of_head and all(not torch.equal(ours[name], theirs[name]) for name in of_head)


def test_rows_by_example_add_up_to_the_score_and_the_null_rate(trained):
    rows, manifest = by_example([trained]), trained.manifest
    above = judging.score(rows.assign(score=rows["score"] - rows["null"]))
    assert above.estimate == pytest.approx(manifest["score"] - manifest["null_rate"], abs=1e-6)
    assert above.models == 1
    if rows["metric"][0] == "matthews":
        assert score("matthews", rows["predicted"], rows["label"]) == pytest.approx(manifest["score"], abs=1e-6)
        return
    scored, null = (rows[name].sum() / rows["weight"].sum() for name in ("score", "null"))
    assert (scored, null) == pytest.approx((manifest["score"], manifest["null_rate"]), abs=1e-6)
    of_one_label = (rows["label"] >= 0).all()
    assert of_one_label == (rows["task"][0] == "rte")
    if of_one_label:
        assert np.array_equal(rows["predicted"] == rows["label"], rows["score"] == 1)


@pytest.mark.parametrize("trained", ["squad"], indirect=True)
def test_answers_are_short_and_long_passages_are_read_in_windows(trained, toy_tokenizer):
    predicted, data, _ = predicted_of(trained, toy_tokenizer)
    assert max(len(toy_tokenizer(one, add_special_tokens=False)["input_ids"]) for one in predicted) <= 30
    predicted, data, encoded = predicted_of(trained, toy_tokenizer, longest=32)
    passages = data.splits["validation"]["context"]
    assert encoded.num_rows > len(passages)
    assert all(one and one in passage for one, passage in zip(predicted, passages, strict=True))


@pytest.mark.parametrize("trained", ["parsing"], indirect=True)
def test_predicted_trees_are_trees_and_words_that_were_cut_off_count_as_wrong(trained, toy_tokenizer):
    predicted, data, _ = predicted_of(trained, toy_tokenizer)
    assert all(is_tree(heads) and set(relations) <= set(data.labels) for heads, relations in predicted)
    predicted, data, encoded = predicted_of(trained, toy_tokenizer, longest=8)
    lost = sum(heads.count(-1) for heads, _ in predicted)
    words = sum(map(len, data.splits["validation"]["tokens"]))
    scores, _ = scored(trained.specification, data, encoded, predicted)
    assert scores["uas"] <= 1 - lost / words < 1
