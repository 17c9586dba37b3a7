"""The heads of answers and of trees through the one routine: trained, frozen, truncated, kept along the way, read."""

import pytest
import torch
from tests.conftest import ENCODER, short_schedule
from tests.trees import is_tree

from fivelenses import tasks
from fivelenses.checkpoints import specification
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.predictions import predict, scores
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.models import batches, layers
from fivelenses.tasks.examples import encode

SECOND = {"squad": "exact_match", "parsing": "uas"}
LONGEST = 96


@pytest.fixture(scope="module", autouse=True)
def small_tables():
    """Questions about times, which are learnt soonest, and a hundred examples to be scored on."""
    whole = tasks.load

    def load(name: str, source: str, splits: tuple[str, ...] | None = None) -> tasks.TaskData:
        data, small = whole(name, source, splits), {}
        for split, rows in data.splits.items():
            if name == "squad":
                rows = rows.select([row for row, asked in enumerate(rows["question"]) if asked.startswith("When")])
            small[split] = rows if split == "train" else rows.select(range(min(100, rows.num_rows)))
        return tasks.TaskData(data.task, data.source, small, data.labels)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "load", load)
        specification._training_split.cache_clear()
        yield
    specification._training_split.cache_clear()


def made(name: str, folder, epochs: float = 1, learning_rate: float = 2e-3, **changes):
    """A checkpoint of a short training."""
    schedule = short_schedule(learning_rate=learning_rate, max_length=LONGEST, epochs=epochs, by_length=True)
    one = specify(ENCODER, name, "toyworld", 0, schedule, **changes)
    return prepare([one], Store(folder), workers=1, log=lambda line: None)[0]


@pytest.fixture(scope="module", params=sorted(SECOND))
def trained(request, tmp_path_factory):
    """A checkpoint of each head."""
    examples = {"squad": None, "parsing": 200}[request.param]
    return made(request.param, tmp_path_factory.mktemp("store"), examples=examples, epochs=2, saved_steps=(0, 5))


def task_name(checkpoint) -> str:
    return checkpoint.manifest["specification"]["task"]


def test_the_score_is_that_of_the_model_that_is_read_back(trained, toy_tokenizer):
    data = tasks.load(task_name(trained), "toyworld")
    encoded = encode(data, "validation", toy_tokenizer, LONGEST)
    collate = batches.collator(data.task.head, toy_tokenizer)
    again = scores(predict(trained.model(), data, "validation", encoded, collate), data, "validation", encoded)
    assert again == {name: trained.manifest[name] for name in again}


def test_states_along_the_way_are_read_back_with_their_head(trained, toy_model):
    assert trained.steps() == (0, 5)
    before, after = trained.model_at(0), trained.model()
    pretrained = toy_model.encoder.layer[3].output.dense.weight
    torch.testing.assert_close(layers.projections(before, 4)["output"].weight, pretrained, atol=1e-3, rtol=1e-3)
    ours, theirs = before.state_dict(), after.state_dict()
    of_head = [name for name in ours if name.startswith(("qa_outputs", "biaffine"))]
    assert of_head and all(not torch.equal(ours[name], theirs[name]) for name in of_head)


def test_what_was_cut_off_is_read_in_windows_or_counts_as_wrong(trained, toy_tokenizer):
    data = tasks.load(task_name(trained), "toyworld")
    encoded = encode(data, "validation", toy_tokenizer, 32 if data.task.head == "span" else 8)
    arguments = (trained.model(), data, "validation", encoded, batches.collator(data.task.head, toy_tokenizer))
    if data.task.head == "span":
        assert encoded.num_rows > 100
        passages = data.splits["validation"]["context"]
        assert all(one and one in passage for one, passage in zip(predict(*arguments), passages, strict=True))
    else:
        predicted = predict(*arguments)
        lost = [sum(head == -1 for head in found) for found, _ in predicted]
        words = [len(tokens) for tokens in data.splits["validation"]["tokens"]]
        assert scores(predicted, data, "validation", encoded)["uas"] <= 1 - sum(lost) / sum(words) < 1


def test_predicted_trees_are_trees_and_answers_are_short(trained, toy_tokenizer):
    data = tasks.load(task_name(trained), "toyworld")
    encoded = encode(data, "validation", toy_tokenizer, LONGEST)
    arguments = (trained.model(), data, "validation", encoded, batches.collator(data.task.head, toy_tokenizer))
    if data.task.head == "span":
        assert max(len(toy_tokenizer(one, add_special_tokens=False)["input_ids"]) for one in predict(*arguments)) <= 30
    else:
        for found, relations in predict(*arguments):
            assert is_tree(found)
            assert set(relations) <= set(data.labels)
