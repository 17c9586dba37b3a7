import pytest
import torch
from transformers import DataCollatorWithPadding

from fivelenses import tasks
from fivelenses.models import heads
from fivelenses.tasks.examples import encode


@pytest.fixture(scope="module", params=["pos", "dep", "parsing"])
def rows(request, toy_tokenizer):
    return list(encode(tasks.load(request.param, "toyworld"), "validation", toy_tokenizer, 64).select(range(9)))


def test_tokens_are_padded_as_transformers_pads_them(rows, toy_tokenizer):
    names = ("input_ids", "attention_mask", "token_type_ids")
    expected = DataCollatorWithPadding(toy_tokenizer, pad_to_multiple_of=8)(
        [{name: row[name] for name in names} for row in rows]
    )
    batch = heads.collator("token", toy_tokenizer)(rows)
    assert all(torch.equal(batch[name], expected[name]) for name in names)


def test_every_target_keeps_its_sentence_and_place(rows, toy_tokenizer):
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
