import pytest
import torch
from tests.conftest import ENCODER, equal_weights

from fivelenses import tasks
from fivelenses.models import encoders, heads
from fivelenses.tasks.examples import encode


@pytest.fixture(scope="module")
def arcs(toy_tokenizer):
    encoded = encode(tasks.load("dep", "toyworld"), "validation", toy_tokenizer, 64)
    return list(encoded.select(range(6)).remove_columns("labels"))


@pytest.fixture
def arc_model():
    torch.manual_seed(0)
    return heads.build(encoders.locate(ENCODER), "token-pair", ("det", "nsubj", "obj")).eval()


def test_word_means_of_a_case_worked_by_hand():
    states = torch.tensor([[[9.0], [1.0], [3.0], [5.0]], [[2.0], [4.0], [9.0], [9.0]]])
    words = torch.tensor([[-1, 0, 0, 1], [1, 1, -1, -1]])
    means, counts = heads.word_means(states, words)
    assert means[..., 0].tolist() == [[2.0, 5.0], [0.0, 3.0]]
    assert counts.tolist() == [[2.0, 1.0], [0.0, 2.0]]


def test_padding_and_neighbours_do_not_change_the_logits_of_a_unit(arc_model, arcs, toy_tokenizer):
    collate = heads.collator("token-pair", toy_tokenizer)
    with torch.no_grad():
        together = arc_model(**collate(arcs)).logits
        alone = torch.cat([arc_model(**collate([row])).logits for row in arcs])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


def test_a_pair_is_its_head_and_then_its_dependent(arc_model, arcs, toy_tokenizer):
    row, batch = arcs[0], heads.collator("token-pair", toy_tokenizer)(arcs[:1])
    with torch.no_grad():
        states = arc_model.encoder(
            batch["input_ids"], attention_mask=batch["attention_mask"], token_type_ids=batch["token_type_ids"]
        ).last_hidden_state[0]
        head, dependent = (
            states[: len(row["word_ids"])][torch.tensor(row["word_ids"]) == word].mean(0) for word in row["units"][0]
        )
        expected = arc_model.classifier(torch.cat([head, dependent]))
        torch.testing.assert_close(arc_model(**batch).logits[0], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("head", [*heads.LIBRARY, *heads.WORDS_PER_UNIT, "biaffine"])
def test_a_model_that_was_saved_reads_back_the_same(head, tmp_path):
    torch.manual_seed(0)
    model = heads.build(encoders.locate(ENCODER), head, ("a", "b", "c"))
    model.save_pretrained(tmp_path)
    again = heads.read(tmp_path, head)
    assert not again.training and equal_weights(again, model)
