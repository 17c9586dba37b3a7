import pytest

from fivelenses import tasks
from fivelenses.models import heads
from fivelenses.tasks.examples import encode


@pytest.mark.parametrize("task", ["pos", "dep", "parsing"])
def test_every_target_keeps_its_sentence_and_place(task, toy_tokenizer):
    rows = list(encode(tasks.load(task, "toyworld"), "validation", toy_tokenizer, 64).select(range(9)))
    batch = heads.collator("token", toy_tokenizer)(rows)
    for sentence, row in enumerate(rows):
        assert batch["word_ids"][sentence].tolist()[: len(row["word_ids"])] == row["word_ids"]
        if "units" in row:
            of_sentence = batch["units"][:, 0] == sentence
            assert batch["units"][of_sentence, 1:].tolist() == row["units"]
            assert batch["labels"][of_sentence].tolist() == row["labels"]
        else:
            for name in ("heads", "labels"):
                values = batch[name][sentence].tolist()
                assert values[: len(row[name])] == row[name] and set(values[len(row[name]) :]) <= {-100}
