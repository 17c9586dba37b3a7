import dataclasses
import multiprocessing
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import ENCODER, few_development_examples, one_by_one, short_schedule
from transformers import DataCollatorWithPadding

from fivelenses.checkpoints import finetuning
from fivelenses.checkpoints.finetuning import fine_tune, prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import DamagedCheckpoint, Store
from fivelenses.checkpoints.tables import predict
from fivelenses.files import RunError
from fivelenses.tasks.examples import encode
from fivelenses.tasks.scores import score

PATIENCE = 240  # seconds for a busy machine to begin


@pytest.fixture(autouse=True)
def few_examples():
    with few_development_examples():
        yield


def silent(line: str) -> None:
    """Progress that a test does not read."""


def weights(folder) -> dict[str, torch.Tensor]:
    # Cloned: the loaded tensors are a view of the file, which some tests change.
    return {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}


def equal(one: dict, other: dict) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_second_call_finds_the_first_ones_checkpoint(toy_specification, toy_checkpoint, session_store):
    lines = []
    again = prepare([toy_specification, toy_specification], session_store, log=lines.append)
    assert [one.folder for one in again] == [toy_checkpoint.folder] * 2
    assert not lines


def test_a_training_in_bfloat16_keeps_weights_in_single_precision(toy_specification, toy_checkpoint, tmp_path):
    half = dataclasses.replace(toy_specification, precision="bfloat16")
    other = weights(prepare([half], Store(tmp_path), workers=1, log=silent)[0].folder)
    assert {tensor.dtype for tensor in other.values()} == {torch.float32}
    name = "bert.encoder.layer.5.output.dense.weight"
    single = weights(toy_checkpoint.folder)[name]
    assert 0 < float((other[name] - single).norm() / single.norm()) < 0.05


def test_the_score_is_that_of_the_saved_model_example_by_example(toy_checkpoint, toy_data, toy_tokenizer):
    model = toy_checkpoint.model()
    rows = encode(toy_data, "validation", toy_tokenizer, 64)
    _, wrong = one_by_one(model, rows)
    batched = predict(model, toy_data, rows, DataCollatorWithPadding(toy_tokenizer))
    assert (batched != np.array(rows["labels"])).tolist() == wrong.tolist()
    assert score("accuracy", batched, np.array(rows["labels"])) == toy_checkpoint.manifest["score"]


@pytest.mark.parametrize("damage", ["flipped byte", "lost file", "broken manifest"])
def test_a_damaged_checkpoint_is_found_and_made_anew_with_the_same_weights(
    toy_specification, toy_checkpoint, tmp_path, damage
):
    store = Store(tmp_path)
    folder = shutil.copytree(toy_checkpoint.folder, tmp_path / toy_checkpoint.folder.name)
    if damage == "flipped byte":
        content = bytearray((folder / "model.safetensors").read_bytes())
        content[-1] ^= 1
        (folder / "model.safetensors").write_bytes(content)
    elif damage == "lost file":
        (folder / "tokenizer.json").unlink()
    else:
        (folder / "manifest.json").write_text("{")
    with pytest.raises(DamagedCheckpoint, match="made anew"):
        store.find(toy_specification)
    lines = []
    again = prepare([toy_specification], store, workers=1, log=lines.append)[0]
    assert "made anew" in lines[0]
    assert equal(weights(again.folder), weights(toy_checkpoint.folder))


def test_a_checkpoint_that_another_process_trains_is_waited_for_last(tmp_path):
    held, free = (specify(ENCODER, "rte", "toyworld", seed, short_schedule(), examples=32) for seed in (7, 8))
    store = Store(tmp_path)
    lock = store.lock(held.address)
    with ThreadPoolExecutor(1) as pool:
        with lock:
            both = pool.submit(prepare, [held, free], store, 1, silent)
            deadline = time.monotonic() + PATIENCE
            while not store.addresses() and time.monotonic() < deadline:
                time.sleep(0.02)
            assert store.addresses() == [free.address]
        assert [checkpoint.folder.name for checkpoint in both.result()] == [held.address, free.address]


def train(specification, folder) -> None:
    torch.set_num_threads(1)
    finetuning.SECONDS_BETWEEN_SAVES = 0
    fine_tune(specification, Store(folder))


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path):
    # Long enough to be killed in the middle.
    one = specify(ENCODER, "rte", "toyworld", 6, short_schedule(epochs=5), examples=160)
    whole = prepare([one], Store(tmp_path / "whole"), workers=1, log=silent)[0]
    process = multiprocessing.get_context("spawn").Process(target=train, args=(one, tmp_path / "killed"))
    process.start()
    store, deadline = Store(tmp_path / "killed"), time.monotonic() + PATIENCE
    while not list(store.partial(one).glob("trainer/checkpoint-*/trainer_state.json")):
        assert time.monotonic() < deadline and process.is_alive(), "no state was saved"
        time.sleep(0.02)
    process.kill()
    process.join()
    assert store.addresses(unfinished=True) == [one.address] and not store.addresses()
    resumed = prepare([one], store, workers=1, log=silent)[0]
    assert equal(weights(resumed.folder), weights(whole.folder))
    assert not store.addresses(unfinished=True)


@pytest.mark.parametrize("by_length", [True, False])
def test_a_training_that_was_cut_in_any_epoch_or_state_goes_on_to_the_same_weights(by_length, tmp_path, monkeypatch):
    one = specify(ENCODER, "rte", "toyworld", 9, short_schedule(epochs=3, by_length=by_length), examples=96)
    whole = prepare([one], Store(tmp_path / "whole"), workers=1, log=silent)[0]
    assert whole.manifest["steps"] == 18
    assert f", {torch.get_num_threads()} of " in finetuning.environment("cpu")["device"]

    class Cut(finetuning._StopOnDivergence):
        at = 0

        def on_step_begin(self, args, state, control, **_):
            if state.global_step == Cut.at:
                raise KeyboardInterrupt

    store = Store(tmp_path / "cut")
    with monkeypatch.context() as patched:
        patched.setattr(finetuning, "_StopOnDivergence", Cut)
        patched.setattr(finetuning, "SECONDS_BETWEEN_SAVES", 0)
        # One after another: the last whole state is in the first and the second epoch, at its end, and in the third.
        for Cut.at, half_written in ((5, None), (10, "trainer_state.json"), (13, "optimizer.pt"), (17, None)):
            with pytest.raises(KeyboardInterrupt):
                prepare([one], store, workers=1, log=silent)
            if half_written:
                cut_short(store.partial(one) / "trainer", half_written)
    resumed = prepare([one], store, workers=1, log=silent)[0]
    assert equal(weights(resumed.folder), weights(whole.folder))
    assert resumed.manifest["history"] == whole.manifest["history"]


def test_a_training_that_ends_within_an_epoch_and_is_killed_after_it_takes_no_further_step(tmp_path, monkeypatch):
    one = specify(ENCODER, "rte", "toyworld", 9, short_schedule(epochs=1.5), examples=32)
    whole = prepare([one], Store(tmp_path / "whole"), workers=1, log=silent)[0]

    store = Store(tmp_path / "killed")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(finetuning, "predict", Mock(side_effect=KeyboardInterrupt))
        prepare([one], store, workers=1, log=silent)
    resumed = prepare([one], store, workers=1, log=silent)[0]
    assert resumed.manifest["steps"] == whole.manifest["steps"] == 3
    assert equal(weights(resumed.folder), weights(whole.folder))


def cut_short(folder, name):
    """A further state as a kill leaves it while it writes `name`: files before it are whole, those after it absent."""
    newest = folder / "checkpoint-1000"
    newest.mkdir()
    if name != "trainer_state.json":
        (newest / "model.safetensors").write_bytes(b"whole")
    (newest / name).touch()


@pytest.mark.parametrize("examples", [16, 64])
def test_a_training_that_diverges_says_so_also_where_its_last_step_alone_spoils_the_weights(examples, tmp_path):
    wild = specify(ENCODER, "rte", "toyworld", 0, short_schedule(learning_rate=1e30), examples=examples)
    made = prepare([wild], Store(tmp_path), workers=1, log=silent)[0]
    assert made.manifest["diverged"] and np.isfinite(made.manifest["history"]).all() == (examples == 16)


def test_a_training_says_how_far_it_is(toy_specification, tmp_path, monkeypatch):
    monkeypatch.setattr(finetuning.processes, "SECONDS_BETWEEN_LINES", 0.05)
    monkeypatch.setattr(finetuning, "SECONDS_BETWEEN_STATES", 0.0)
    lines = []
    prepare([toy_specification], Store(tmp_path), workers=1, log=lines.append)
    found = re.findall(r"seed 0, 96 examples, step (\d+) of 6, about \d+ s left", "\n".join(lines))
    assert found and found == sorted(found)


def test_a_disk_that_fills_while_a_model_trains_is_named(toy_specification, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.PreTrainedModel.save_pretrained", lambda *_: Path("/dev/full").write_bytes(b"x"))
    with pytest.raises(RunError, match=f"No space left on the disk of {tmp_path}.*: make room"):
        prepare([toy_specification], Store(tmp_path), workers=1, log=silent)
