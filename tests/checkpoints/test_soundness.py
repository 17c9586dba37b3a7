"""Encoders that are broken in one way each: refused in one sentence before anything is trained."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import short_schedule

from fivelenses.checkpoints import soundness
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.tasks.sources import SourceError


def with_nan(folder):
    weights = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
    next(tensor for name, tensor in weights.items() if "layer.2" in name)[..., 0] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def with_foreign_words(folder):
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {
        piece if piece.startswith("[") else f"ж{number}": number for piece, number in vocabulary.items()
    }
    file.write_text(json.dumps(content), encoding="utf-8")


def with_a_late_token(folder):
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    last = max(content["model"]["vocab"], key=content["model"]["vocab"].get)
    content["model"]["vocab"][last] = 5_000
    file.write_text(json.dumps(content), encoding="utf-8")


def with_another_width(folder):
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(content | {"intermediate_size": 96}), encoding="utf-8")


def cut_short(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (with_nan, "are not finite .*layer.2.* bad values"),
        (with_foreign_words, "does not know .*% of the tokens of rte"),
        (with_a_late_token, "a token of number 5,000 and its embeddings have"),
        (with_another_width, "do not fit its config.json"),
        (cut_short, "cut|read"),
    ],
)
def test_a_broken_encoder_is_refused_before_training(broken, sentence, tmp_path, toy_encoder):
    folder = tmp_path / "encoder"
    shutil.copytree(toy_encoder.place, folder)
    broken(folder)
    one = specify(str(folder), "rte", "toyworld", 0, short_schedule(), examples=8)
    with pytest.raises(SourceError, match=sentence) as refusal:
        prepare([one], Store(tmp_path / "store"), workers=1, log=lambda line: None)
    assert str(folder) in str(refusal.value) and "\n" not in str(refusal.value)
    assert not (tmp_path / "store" / "partial").exists()


@pytest.mark.parametrize("task", ["rte", "pos", "squad", "parsing"])
def test_the_toy_encoder_knows_the_toy_worlds_text(task, toy_tokenizer):
    assert soundness.unknown_share(toy_tokenizer, task, "toyworld") < 0.01
