"""Pre-training: WordPiece, segment pairs, masks, the objective, the run with its state, the written checkpoint."""

import json
import lzma
import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoTokenizer, BertForPreTraining

import fivelenses
from pretraining import (
    PretrainingSpecification,
    held_out_loss,
    pretrain,
    text_files,
    tokenise,
    toy_text,
    train_wordpiece,
)
from pretraining.masking import IGNORED, SpecialPieces, lay_out, make_batch, mask_pieces
from pretraining.objective import masked_losses
from pretraining.text_blocks import plan_pass
from pretraining.training_run import PretrainingRun

PEOPLE = ("anna", "bert", "carla", "david")
ANIMALS = {"anna": "dogs", "bert": "cats", "carla": "horses", "david": "parrots"}


def trivial_language(documents: int = 60, seed: int = 0) -> list[list[str]]:
    """Documents about one person each, whose animal follows from the name."""
    draw = random.Random(seed)
    language = []
    for _ in range(documents):
        person = draw.choice(PEOPLE)
        verbs = [draw.choice(("feeds", "washes", "likes", "finds")) for _ in range(draw.randint(2, 6))]
        language.append([f"{person} {verb} the {ANIMALS[person]}" for verb in verbs])
    return language


DOCUMENTS = trivial_language()
TOKENIZER = train_wordpiece(DOCUMENTS, 60)
SMALL = PretrainingSpecification(
    layers=2,
    hidden=16,
    heads=2,
    intermediate=32,
    vocabulary_size=60,
    sequence_length=24,
    batch_tokens=240,
    steps=12,
    learning_rate=5e-3,
)
CPU = torch.device("cpu")
SPECIAL = SpecialPieces.of(TOKENIZER, CPU)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return BertForPreTraining.from_pretrained(folder).state_dict()


def same_weights(first: Path, second: Path) -> bool:
    others = weights_of(second)
    return all(torch.equal(value, others[name]) for name, value in weights_of(first).items())


def silent(_: str) -> None:
    pass


def stop_at(step: int):
    """A listener that kills the run with the line of this step."""

    def listen(line: str) -> None:
        if line.startswith(f"step {step} "):
            raise KeyboardInterrupt

    return listen


# WordPiece


def test_wordpiece_has_the_asked_size_and_reads_lower_case_without_accents():
    assert len(TOKENIZER) == 60
    assert TOKENIZER.tokenize("ÀNNA feeds") == TOKENIZER.tokenize("anna feeds")
    assert TOKENIZER.unk_token not in TOKENIZER.tokenize("anna feeds the dogs")


def test_wordpiece_is_the_same_in_every_process(capsys):
    program = (
        "import random, sys; from pretraining.wordpiece import train_wordpiece\n"
        "draw = random.Random(1)\n"
        "words = [''.join(draw.choices('abcdefgh', k=draw.randint(1, 6))) for _ in range(300)]\n"
        "text = [[' '.join(draw.choices(words, k=8)) for _ in range(50)]]\n"
        "print(sorted(train_wordpiece(text, 150).get_vocab().items()))"
    )
    # Sets are gone through in another order there.
    environment = os.environ | {"PYTHONPATH": str(Path(fivelenses.__file__).parents[1]), "PYTHONHASHSEED": "1"}
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=environment, text=True)
    exec(program, {})
    assert there.stdout == capsys.readouterr().out


def test_rare_characters_and_the_words_they_write_become_unknown():
    tokenizer = train_wordpiece([["aa ab ba bb"] * 9, ["a♞b"]], 13, largest_alphabet=2)
    assert tokenizer.tokenize("ab a♞b") == ["ab", "[UNK]"]


@pytest.mark.parametrize(
    ("documents", "size", "message"),
    [
        (DOCUMENTS, 5000, "yields only .* set vocabulary_size to"),
        (DOCUMENTS, 10, "set vocabulary_size to more"),
        ([[]], 60, "no words"),
        ([["", "  "]], 60, "no words"),
    ],
)
def test_wordpiece_refuses_a_text_without_words_or_a_vocabulary_that_does_not_fit_it(documents, size, message):
    with pytest.raises(ValueError, match=message):
        train_wordpiece(documents, size)


# Segment pairs


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
    assert read.all()


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(8, 40), tokens=st.integers(40, 400), short=st.sampled_from((0.0, 0.5, 1.0)), seed=st.integers(0)
)
def test_batches_hold_each_pair_once_and_fit(length, tokens, short, seed):
    text = tokenise(DOCUMENTS, TOKENIZER, length)
    plan = plan_pass(text, length, tokens, short, seed % 2**63)
    lengths = plan.pairs[:, 1] + plan.pairs[:, 3] + 3
    assert int(lengths.max()) <= length and int(plan.pairs[:, [1, 3]].min()) >= 1
    assert sorted(torch.cat(plan.batches).tolist()) == list(range(len(plan.pairs)))
    assert all(len(rows) * int(lengths[rows].max()) <= tokens for rows in plan.batches)


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


# Masks


def test_masks_real_pieces_at_the_stated_rate_with_80_10_10():
    text = tokenise(trivial_language(2000), TOKENIZER, 24)
    pairs = plan_pass(text, 24, 480, 0.0, seed=1).pairs
    ids, _, _ = lay_out(text.pieces, pairs, SPECIAL)
    masked, places, labels = mask_pieces(ids, SPECIAL, 0.15, torch.Generator().manual_seed(0))
    real = ~torch.isin(ids, torch.tensor(TOKENIZER.all_special_ids))
    per_row = (labels != IGNORED).sum(1)
    assert torch.equal(per_row, (0.15 * real.sum(1)).round().long().clamp(min=1))

    predicted = labels != IGNORED
    at_places = masked.gather(1, places)[predicted]
    original = ids.gather(1, places)[predicted]
    assert torch.equal(original, labels[predicted])
    assert not torch.isin(original, torch.tensor(TOKENIZER.all_special_ids)).any()
    count = len(original)
    assert abs((at_places == TOKENIZER.mask_token_id).float().mean() - 0.8) < 4 * math.sqrt(0.16 / count)
    assert abs((at_places == original).float().mean() - 0.1 - 0.1 / 55) < 4 * math.sqrt(0.09 / count)
    assert not torch.isin(at_places, torch.tensor([0, 1, 2, 3])).any()
    untouched = torch.ones_like(ids, dtype=torch.bool).scatter(1, places, ~predicted)
    assert torch.equal(ids[untouched], masked[untouched])


def test_unknown_pieces_are_never_predicted_and_a_row_of_them_has_nothing_to_predict():
    ids = torch.tensor([[2, 1, 1, 1, 3, 1, 1, 3]])
    masked, _, labels = mask_pieces(ids, SPECIAL, 0.15, torch.Generator().manual_seed(0))
    assert torch.equal(masked, ids) and (labels == IGNORED).all()


# The objective


def test_the_loss_at_masked_positions_is_the_loss_of_the_whole_output_layer(tmp_path):
    torch.manual_seed(0)
    model = BertForPreTraining.from_pretrained(pretrain(DOCUMENTS, SMALL, tmp_path / "bert", TOKENIZER, log=silent))
    text = tokenise(DOCUMENTS, TOKENIZER, 24)
    pairs = plan_pass(text, 24, 480, 0.5, seed=1).pairs
    batch = make_batch(text.pieces, pairs, SPECIAL, 0.15, torch.Generator().manual_seed(0))
    assert batch.attention_mask is not None
    labels = torch.full_like(batch.input_ids, IGNORED).scatter(1, batch.masked_positions, batch.masked_labels)
    whole = model(
        input_ids=batch.input_ids,
        attention_mask=batch.attention_mask,
        token_type_ids=batch.token_type_ids,
        labels=labels,
        next_sentence_label=batch.random_next,
    ).loss
    masked, following, _, _ = masked_losses(model, batch)
    torch.testing.assert_close(masked + following, whole, rtol=1e-6, atol=1e-6)


def test_the_loss_falls_on_a_trivial_language(tmp_path):
    specification = replace(SMALL, hidden=32, steps=250, batch_tokens=960, learning_rate=1e-2, dropout=0.0)
    folder = pretrain(
        trivial_language(300), specification, tmp_path / "bert", TOKENIZER, held_out=trivial_language(50, 1)
    )
    record = json.loads((folder / "pretraining.json").read_text())
    assert record["loss_curve"][-1]["masked"] < 0.5 * record["loss_curve"][0]["masked"]
    assert record["held_out"]["masked_loss"] < 1.6


# The run


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second, third = (
        pretrain(DOCUMENTS, replace(SMALL, seed=seed), tmp_path / name, TOKENIZER, log=silent)
        for name, seed in (("first", 0), ("second", 0), ("third", 1))
    )
    assert torch.equal(torch.rand(3), expected), "the caller's random numbers are left alone"
    assert same_weights(first, second)
    assert not same_weights(first, third)


def test_a_killed_run_resumes_to_the_same_losses_and_the_same_weights(tmp_path):
    settings_of_both = {"save_every": 4, "seconds_between_lines": 0.0}
    specification = replace(SMALL, batch_tokens=960, first_length=12, first_share=0.5)
    whole = pretrain(DOCUMENTS, specification, tmp_path / "whole", TOKENIZER, log=silent, **settings_of_both)
    killed = tmp_path / "killed"
    for step in (3, 6, 11):
        with pytest.raises(KeyboardInterrupt):
            pretrain(DOCUMENTS, specification, killed, TOKENIZER, log=stop_at(step), **settings_of_both)
        assert not killed.exists()
    lines: list[str] = []
    pretrain(DOCUMENTS, specification, killed, TOKENIZER, log=lines.append, **settings_of_both)
    assert lines[0] == "resuming from step 8 of 12"
    assert same_weights(whole, killed)
    records = [json.loads((folder / "pretraining.json").read_text()) for folder in (whole, killed)]
    assert records[0]["passes"] > 1
    assert records[0]["loss_curve"] == records[1]["loss_curve"]
    assert records[0]["pieces_seen"] == records[1]["pieces_seen"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "whole"]


def test_a_damaged_state_is_remade_with_a_line_of_notice_and_that_of_another_run_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        pretrain(
            DOCUMENTS, SMALL, tmp_path / "bert", TOKENIZER, save_every=4, seconds_between_lines=0.0, log=stop_at(6)
        )
    with pytest.raises(FileExistsError, match="state of another run"):
        pretrain(DOCUMENTS, replace(SMALL, seed=1), tmp_path / "bert", TOKENIZER, log=silent)
    state = tmp_path / ".bert.partial" / "state.pt"
    state.write_bytes(state.read_bytes()[:1000])
    lines: list[str] = []
    remade = pretrain(DOCUMENTS, SMALL, tmp_path / "bert", TOKENIZER, log=lines.append)
    assert "damaged" in lines[0]
    assert same_weights(remade, pretrain(DOCUMENTS, SMALL, tmp_path / "other", TOKENIZER, log=silent))


def test_a_finished_folder_is_returned_and_another_run_does_not_overwrite_it(tmp_path):
    folder = pretrain(DOCUMENTS, SMALL, tmp_path / "bert", TOKENIZER, log=silent)
    changed = (folder / "model.safetensors").stat().st_mtime_ns
    assert pretrain(DOCUMENTS, SMALL, folder, TOKENIZER, log=silent) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == changed
    with pytest.raises(FileExistsError, match="something other than this run"):
        pretrain(DOCUMENTS, replace(SMALL, seed=9), folder, TOKENIZER, log=silent)
    partial = tmp_path / ".other.partial"
    partial.mkdir()
    with FileLock(partial / "lock"), pytest.raises(RuntimeError, match="another process is pre-training"):
        pretrain(DOCUMENTS, SMALL, tmp_path / "other", TOKENIZER)


# The checkpoint


@pytest.mark.parametrize("half_precision", [False, True])
def test_a_checkpoint_loads_in_float32_with_its_tokenizer_and_measures_what_it_says(tmp_path, half_precision):
    how = dict(held_out=DOCUMENTS[:20], half_precision=half_precision, log=silent)
    folder = pretrain(DOCUMENTS, SMALL, tmp_path / "bert", TOKENIZER, **how)
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


def test_weight_decay_spares_biases_and_layer_norms(tmp_path):
    text = tokenise(DOCUMENTS, TOKENIZER, 24)
    run = PretrainingRun(text, SMALL, TOKENIZER, CPU, tmp_path / "state.pt", {}, silent)
    decayed, spared = ({id(weights) for weights in group["params"]} for group in run.optimiser.param_groups)
    assert [group["weight_decay"] for group in run.optimiser.param_groups] == [SMALL.weight_decay, 0.0]
    for name, weights in run.model.named_parameters():
        assert id(weights) in (spared if name.endswith("bias") or "LayerNorm" in name else decayed)


@given(steps=st.integers(1, 500), warm_up=st.floats(0, 1))
def test_the_learning_rate_rises_to_its_peak_and_falls_and_is_never_zero(steps, warm_up):
    specification = replace(SMALL, steps=steps, warm_up=warm_up)
    rates = [specification.learning_rate_at(step) for step in range(steps)]
    peak = rates.index(max(rates))
    assert max(rates) == pytest.approx(SMALL.learning_rate) and min(rates) > 0
    assert rates[: peak + 1] == sorted(rates[: peak + 1]) and rates[peak:] == sorted(rates[peak:], reverse=True)


# Hostile input


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"hidden": 18, "heads": 4}, "hidden size 18 is not divisible by 4 heads"),
        ({"sequence_length": 4}, "sequence_length is 4: set it to 8 or more"),
        ({"first_length": 4}, "first_length is 4: set it between 8 and"),
        ({"batch_tokens": 10}, "batch_tokens is 10, less than one sequence"),
        ({"steps": 0}, "steps is 0"),
        ({"masking_rate": 1.5}, "masking_rate is 1.5"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
    ],
)
def test_an_impossible_specification_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        replace(SMALL, **wrong)


@pytest.mark.parametrize(
    ("documents", "wrong", "message"),
    [
        ([], {}, "needs two or more"),
        ([["anna feeds"], ["", " "]], {}, "needs two or more"),
        ([["anna"], "bert feeds the cats"], {}, "document 1 is a string"),
        (DOCUMENTS, {"vocabulary_size": 61}, "the tokenizer has 60 pieces and the specification says 61"),
    ],
)
def test_documents_and_tokenizers_that_do_not_fit_are_refused(tmp_path, documents, wrong, message):
    with pytest.raises(ValueError, match=message):
        pretrain(documents, replace(SMALL, **wrong), tmp_path / "bert", TOKENIZER)


def test_a_run_that_diverges_says_so_and_leaves_nothing(tmp_path):
    specification = replace(SMALL, learning_rate=1e30, warm_up=0.0, gradient_norm=1e30)
    with pytest.raises(FloatingPointError, match="diverged, lower learning_rate"):
        pretrain(DOCUMENTS, specification, tmp_path / "bert", TOKENIZER, log=silent)
    assert list(tmp_path.iterdir()) == []


# Text


def test_empty_lines_part_documents_and_stops_part_sentences(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("One. Two!\nThree?\n\nFour.\n", encoding="utf-8")
    assert text_files([file]) == [["One.", "Two!", "Three?"], ["Four."]]
    compressed = tmp_path / "a.txt.xz"
    compressed.write_bytes(lzma.compress(file.read_bytes()))
    assert text_files([compressed]) == text_files([file])


@pytest.mark.parametrize(
    ("content", "message"), [(None, "no text file"), (b"\xff\xfe", "not UTF-8"), (b"\n \n", "no text")]
)
def test_files_that_are_no_text_are_refused(tmp_path, content, message):
    file = tmp_path / "a.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        text_files([file])


def test_toy_documents_are_stories_without_overlap():
    assert not {tuple(story) for story in toy_text("train")} & {tuple(story) for story in toy_text("validation")}
