import dataclasses
import multiprocessing
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import ENCODER, short_schedule
from transformers import DataCollatorWithPadding

from fivelenses import tasks
from fivelenses.checkpoints import finetuning
from fivelenses.checkpoints.finetuning import fine_tune, prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import DamagedCheckpoint, Store
from fivelenses.checkpoints.tables import predict
from fivelenses.files import RunError
from fivelenses.tasks.examples import encode

PATIENCE = 240  # seconds for a busy machine to begin


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


def test_the_same_specification_gives_the_same_weights(toy_specification, toy_checkpoint, tmp_path):
    other = prepare([toy_specification], Store(tmp_path), workers=1, log=silent)[0]
    assert equal(weights(other.folder), weights(toy_checkpoint.folder))


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
    right = 0
    with torch.no_grad():
        for row in rows.select(range(60)):
            inputs = {name: torch.tensor([row[name]]) for name in ("input_ids", "token_type_ids", "attention_mask")}
            right += int(model(**inputs).logits.argmax()) == row["labels"]
    batched = predict(model, toy_data, rows, DataCollatorWithPadding(toy_tokenizer))
    assert np.mean(batched[:60] == np.array(rows["labels"][:60])) == pytest.approx(right / 60)
    assert tasks.score("accuracy", batched, np.array(rows["labels"])) == toy_checkpoint.score


@pytest.mark.parametrize("damage", ["flipped byte", "lost file", "broken manifest"])
def test_a_damaged_checkpoint_is_found_and_made_anew(tmp_path, damage):
    store = Store(tmp_path)
    one = specify(ENCODER, "rte", "toyworld", 0, short_schedule(epochs=0))
    folder = prepare([one], store, workers=1, log=silent)[0].folder
    whole = weights(folder)
    if damage == "flipped byte":
        content = bytearray((folder / "model.safetensors").read_bytes())
        content[-1] ^= 1
        (folder / "model.safetensors").write_bytes(content)
    elif damage == "lost file":
        (folder / "tokenizer.json").unlink()
    else:
        (folder / "manifest.json").write_text("{")
    with pytest.raises(DamagedCheckpoint, match="made anew"):
        store.find(one)
    lines = []
    again = prepare([one], store, workers=1, log=lines.append)[0]
    assert "made anew" in lines[0]
    assert equal(weights(again.folder), whole)


def train(specification, folder) -> None:
    torch.set_num_threads(1)
    fine_tune(specification, Store(folder))


def begin_training(specification, folder) -> multiprocessing.Process:
    """Train in another process, from a server that has imported the libraries once for all of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fivelenses.checkpoints.finetuning"])
    process = context.Process(target=train, args=(specification, folder))
    process.start()
    return process


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


@pytest.fixture(scope="module")
def long_training(tmp_path_factory):
    """Long enough to be killed in the middle, and what becomes of it when nobody does."""
    one = specify(ENCODER, "rte", "toyworld", 6, short_schedule(epochs=8), examples=160)
    return one, prepare([one], Store(tmp_path_factory.mktemp("whole")), workers=1, log=silent)[0]


@pytest.mark.parametrize("cut", [None, "trainer_state.json", "optimizer.pt"])
def test_a_killed_training_goes_on_to_the_same_weights(cut, long_training, tmp_path):
    one, whole = long_training
    process = begin_training(one, tmp_path / "killed")
    store = Store(tmp_path / "killed")
    deadline = time.monotonic() + PATIENCE
    while not list(store.partial(one).glob("trainer/checkpoint-*/trainer_state.json")):
        assert time.monotonic() < deadline and process.is_alive(), "no state was saved"
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert store.addresses(unfinished=True) == [one.address] and not store.addresses()
    if cut:
        cut_short(store.partial(one) / "trainer", cut)
    resumed = prepare([one], store, workers=1, log=silent)[0]
    assert equal(weights(resumed.folder), weights(whole.folder))
    assert not store.addresses(unfinished=True)


@pytest.mark.parametrize("by_length", [True, False])
def test_a_training_that_was_cut_within_any_epoch_goes_on_to_the_same_weights(by_length, tmp_path, monkeypatch):
    schedule = short_schedule(epochs=3, by_length=by_length)
    one = specify(ENCODER, "rte", "toyworld", 9, schedule, examples=160)
    whole = prepare([one], Store(tmp_path / "whole"), workers=1, log=silent)[0]
    steps = whole.manifest["steps"]

    class Cut(finetuning._StopOnDivergence):
        at = 0

        def on_step_begin(self, args, state, control, **_):
            if state.global_step == Cut.at:
                raise KeyboardInterrupt

    store = Store(tmp_path / "cut")
    with monkeypatch.context() as patched:
        patched.setattr(finetuning, "_StopOnDivergence", Cut)
        # One after another in the first, second and third epoch, and where one of them ends.
        for Cut.at in (steps // 3 - 1, steps // 2 + 1, 2 * steps // 3 + 1, steps - 1):
            with pytest.raises(KeyboardInterrupt):
                prepare([one], store, workers=1, log=silent)
    resumed = prepare([one], store, workers=1, log=silent)[0]
    assert equal(weights(resumed.folder), weights(whole.folder))
    assert resumed.manifest["history"] == whole.manifest["history"]


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
    monkeypatch.setattr(finetuning.heads, "save", lambda model, folder: Path("/dev/full").write_bytes(b"weights"))
    with pytest.raises(RunError, match=f"No space left on the disk of {tmp_path}.*: make room"):
        prepare([toy_specification], Store(tmp_path), workers=1, log=silent)
