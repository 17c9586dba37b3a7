"""Pre-training: WordPiece, segment pairs, masks, the objective, the run with its state, the written checkpoint."""

import json
import lzma
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file
from transformers import AutoTokenizer, BertForPreTraining

from pretraining import (
    PretrainingSpecification,
    held_out_loss,
    pretrain,
    text_files,
    tokenise,
    train_wordpiece,
    training_run,
)
from pretraining.masking import IGNORED, SpecialPieces, lay_out, make_batch, mask_pieces
from pretraining.objective import masked_losses
from pretraining.text_blocks import plan_pass

ANIMALS = {"anna": "dogs", "bert": "cats", "carla": "horses", "david": "parrots"}


def trivial_language(documents: int = 60, seed: int = 0) -> list[list[str]]:
    """Documents about one person each, whose animal follows from the name."""
    draw = random.Random(seed)
    language = []
    for _ in range(documents):
        person = draw.choice([*ANIMALS])
        verbs = [draw.choice(("feeds", "washes", "likes", "finds")) for _ in range(draw.randint(2, 6))]
        language.append([f"{person} {verb} the {ANIMALS[person]}" for verb in verbs])
    return language


DOCUMENTS = trivial_language()
TOKENIZER = train_wordpiece(DOCUMENTS, 60)
SHAPE = dict(layers=2, hidden=16, heads=2, intermediate=32, vocabulary_size=60)
SMALL = PretrainingSpecification(**SHAPE, sequence_length=24, batch_tokens=240, steps=12, learning_rate=5e-3)
CPU = torch.device("cpu")
SPECIAL = SpecialPieces.of(TOKENIZER, CPU)


def same_weights(*folders: Path) -> bool:
    first, second = (BertForPreTraining.from_pretrained(folder).state_dict() for folder in folders)
    return all(torch.equal(value, second[name]) for name, value in first.items())


def pretrained(folder, documents=DOCUMENTS, specification=SMALL, log=lambda line: None, **options):
    return pretrain(documents, specification, folder, TOKENIZER, log=log, **options)


@pytest.fixture
def often(monkeypatch):
    """States are saved every four steps, and each step has a line."""
    monkeypatch.setattr(training_run, "SAVE_EVERY", 4)
    monkeypatch.setattr(training_run, "SECONDS_BETWEEN_LINES", 0.0)


def stop_at(step: int):
    """A listener that kills the run with the line of this step."""

    def listen(line: str) -> None:
        if line.startswith(f"step {step} "):
            raise KeyboardInterrupt

    return listen


def test_wordpiece_reads_lower_case_without_accents():
    assert len(TOKENIZER) == 60
    assert TOKENIZER.tokenize("ÀNNA feeds") == TOKENIZER.tokenize("anna feeds")
    assert TOKENIZER.unk_token not in TOKENIZER.tokenize("anna feeds the dogs")


@pytest.mark.parametrize(
    ("documents", "size", "message"),
    [(DOCUMENTS, 5000, "yields only"), (DOCUMENTS, 10, "set vocabulary_size to more"), ([["", " "]], 60, "no words")],
)
def test_a_text_without_words_or_a_vocabulary_that_does_not_fit_it_is_refused(documents, size, message):
    with pytest.raises(ValueError, match=message):
        train_wordpiece(documents, size)


def test_every_piece_is_read_in_some_pass_and_half_of_the_second_segments_are_random():
    text = tokenise(trivial_language(400), TOKENIZER, 48)
    read = torch.zeros(len(text.pieces), dtype=torch.bool)
    bounds = torch.tensor([text.sentence_offsets[sentence] for sentence in text.document_offsets])
    for seed in range(12):
        plan = plan_pass(text, 48, 480, 0.3, seed)
        documents = [torch.bucketize(plan.pairs[:, column].contiguous(), bounds, right=True) for column in (0, 2)]
        assert torch.equal(documents[0] != documents[1], plan.pairs[:, 4].bool())
        for start_a, length_a, start_b, length_b, is_random in plan.pairs.tolist():
            read[start_a : start_a + length_a] = True
            read[start_b : start_b + length_b] = True
            assert is_random or start_b == start_a + length_a
        assert abs(plan.pairs[:, 4].float().mean() - 0.5) < 0.06
        assert sorted(torch.cat(plan.batches).tolist()) == list(range(len(plan.pairs)))
    assert read.all()


def test_a_row_is_what_the_tokenizer_makes_of_the_two_segments():
    text = tokenise(DOCUMENTS, TOKENIZER, 24)
    pairs = plan_pass(text, 24, 480, 0.5, seed=1).pairs[:20]
    ids, types, mask = lay_out(text.pieces, pairs, SPECIAL)
    for row, (start_a, length_a, start_b, length_b, _) in enumerate(pairs.tolist()):
        first, second = (
            TOKENIZER.convert_ids_to_tokens(text.pieces[start : start + length].tolist())
            for start, length in ((start_a, length_a), (start_b, length_b))
        )
        expected = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
        padding = ids.shape[1] - len(expected)
        assert TOKENIZER.convert_ids_to_tokens(ids[row].tolist()) == expected + ["[PAD]"] * padding
        assert types[row].tolist() == [0] * (length_a + 2) + [1] * (length_b + 1) + [0] * padding
        assert mask[row].tolist() == [True] * len(expected) + [False] * padding


def test_masks_real_pieces_at_the_stated_rate_with_80_10_10():
    text = tokenise(trivial_language(2000), TOKENIZER, 24)
    pairs = plan_pass(text, 24, 480, 0.0, seed=1).pairs
    ids, _, _ = lay_out(text.pieces, pairs, SPECIAL)
    masked, places, labels = mask_pieces(ids, SPECIAL, 0.15, torch.Generator().manual_seed(0))
    special, predicted = torch.tensor(TOKENIZER.all_special_ids), labels != IGNORED
    real = ~torch.isin(ids, special)
    assert torch.equal(predicted.sum(1), (0.15 * real.sum(1)).round().long().clamp(min=1))
    at_places, original = (pieces.gather(1, places)[predicted] for pieces in (masked, ids))
    assert torch.equal(original, labels[predicted]) and not torch.isin(original, special).any()
    for share, expected in ((at_places == TOKENIZER.mask_token_id, 0.8), (at_places == original, 0.1 + 0.1 / 55)):
        error = math.sqrt(expected * (1 - expected) / len(original))
        assert abs(share.float().mean() - expected) < 4 * error
    untouched = torch.ones_like(ids, dtype=torch.bool).scatter(1, places, ~predicted)
    assert torch.equal(ids[untouched], masked[untouched])


def test_the_loss_at_masked_positions_is_the_loss_of_the_whole_output_layer(tmp_path):
    torch.manual_seed(0)
    model = BertForPreTraining.from_pretrained(pretrained(tmp_path / "bert"))
    text = tokenise(DOCUMENTS, TOKENIZER, 24)
    pairs = plan_pass(text, 24, 480, 0.5, seed=1).pairs
    batch = make_batch(text.pieces, pairs, SPECIAL, 0.15, torch.Generator().manual_seed(0))
    labels = torch.full_like(batch.input_ids, IGNORED).scatter(1, batch.masked_positions, batch.masked_labels)
    inputs = {name: getattr(batch, name) for name in ("input_ids", "attention_mask", "token_type_ids")}
    whole = model(**inputs, labels=labels, next_sentence_label=batch.random_next).loss
    masked, following, _, _ = masked_losses(model, batch)
    torch.testing.assert_close(masked + following, whole, rtol=1e-6, atol=1e-6)


def test_the_loss_falls_on_a_trivial_language(tmp_path):
    specification = replace(SMALL, hidden=32, steps=250, batch_tokens=960, learning_rate=1e-2, dropout=0.0)
    folder = pretrained(tmp_path / "bert", trivial_language(300), specification, held_out=trivial_language(50, 1))
    record = json.loads((folder / "pretraining.json").read_text())
    assert record["loss_curve"][-1]["masked"] < 0.5 * record["loss_curve"][0]["masked"]
    assert record["held_out"]["masked_loss"] < 1.6


def test_a_killed_run_resumes_to_the_same_losses_and_the_same_weights(tmp_path, often):
    specification = replace(SMALL, batch_tokens=960, first_length=12, first_share=0.5)
    whole, killed, lines = pretrained(tmp_path / "whole", specification=specification), tmp_path / "killed", []
    for step in (3, 6, 11):
        with pytest.raises(KeyboardInterrupt):
            pretrained(killed, specification=specification, log=stop_at(step))
        assert not killed.exists()
    pretrained(killed, specification=specification, log=lines.append)
    assert lines[0] == "resuming from step 8 of 12"
    assert same_weights(whole, killed)
    records = [json.loads((folder / "pretraining.json").read_text()) for folder in (whole, killed)]
    assert records[0]["passes"] > 1
    assert all(records[0][key] == records[1][key] for key in ("loss_curve", "pieces_seen"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "whole"]


def test_a_damaged_state_is_remade_with_a_line_of_notice_and_that_of_another_run_is_refused(tmp_path, often):
    folder, lines = tmp_path / "bert", []
    with pytest.raises(KeyboardInterrupt):
        pretrained(folder, log=stop_at(6))
    with pytest.raises(FileExistsError, match="state of another run"):
        pretrained(folder, specification=replace(SMALL, seed=1))
    state = tmp_path / ".bert.partial" / "state.pt"
    state.write_bytes(state.read_bytes()[:1000])
    pretrained(folder, log=lines.append)
    assert "damaged" in lines[0]
    assert same_weights(folder, pretrained(tmp_path / "other"))


def test_a_finished_folder_is_returned_and_another_run_does_not_overwrite_it(tmp_path):
    folder = pretrained(tmp_path / "bert")
    changed = (folder / "model.safetensors").stat().st_mtime_ns
    assert pretrained(folder) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == changed
    with pytest.raises(FileExistsError, match="something other than this run"):
        pretrained(folder, specification=replace(SMALL, seed=9))
    assert not same_weights(folder, pretrained(tmp_path / "seed-9", specification=replace(SMALL, seed=9)))
    partial = tmp_path / ".other.partial"
    partial.mkdir()
    with FileLock(partial / "lock"), pytest.raises(RuntimeError, match="another process is pre-training"):
        pretrained(tmp_path / "other")


@pytest.mark.parametrize("half_precision", [False, True])
def test_a_checkpoint_loads_in_float32_with_its_tokenizer_and_measures_what_it_says(tmp_path, half_precision):
    folder = pretrained(tmp_path / "bert", held_out=DOCUMENTS[:20], half_precision=half_precision)
    model, tokenizer = BertForPreTraining.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert model.dtype == torch.float32 and model.config.hidden_dropout_prob == 0.1
    assert tokenizer.get_vocab() == TOKENIZER.get_vocab() and tokenizer.model_max_length == 24
    assert tokenizer.tokenize("Anna feeds") == TOKENIZER.tokenize("anna feeds")
    record = json.loads((folder / "pretraining.json").read_text())
    assert record["stored"] == ("float16" if half_precision else "float32")
    assert record["held_out"] == vars(held_out_loss(model, tokenizer, DOCUMENTS[:20]))
    stored = load_file(folder / "model.safetensors").values()
    # Tied weights are stored once.
    assert sum(tensor.numel() for tensor in stored) == record["parameters"]
    assert {tensor.dtype for tensor in stored} == {torch.float16 if half_precision else torch.float32}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"hidden": 18, "heads": 4}, "hidden size 18 is not divisible by 4 heads"),
        ({"sequence_length": 4}, "sequence_length is 4: set it to 8 or more"),
        ({"batch_tokens": 10}, "batch_tokens is 10, less than one sequence"),
        ({"steps": 0}, "steps is 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"vocabulary_size": 61}, "the tokenizer has 60 pieces and the specification says 61"),
    ],
)
def test_an_impossible_specification_is_refused(wrong, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        pretrained(tmp_path / "bert", specification=replace(SMALL, **wrong))


def test_a_run_that_diverges_says_so_and_leaves_nothing(tmp_path):
    specification = replace(SMALL, learning_rate=1e30, warm_up=0.0, gradient_norm=1e30)
    with pytest.raises(FloatingPointError, match="diverged, lower learning_rate"):
        pretrained(tmp_path / "bert", specification=specification)
    assert list(tmp_path.iterdir()) == []


def test_empty_lines_part_documents_and_stops_part_sentences(tmp_path):
    file, compressed, empty = tmp_path / "a.txt", tmp_path / "a.txt.xz", tmp_path / "empty.txt"
    file.write_text("One. Two!\nThree?\n\nFour.\n", encoding="utf-8")
    compressed.write_bytes(lzma.compress(file.read_bytes()))
    assert text_files([file]) == text_files([compressed]) == [["One.", "Two!", "Three?"], ["Four."]]
    for content, message in ((None, "no text file"), (b"\xff\xfe", "not UTF-8"), (b"\n \n", "no text")):
        if content:
            empty.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            text_files([empty])
