"""Encoders that are broken in one way each, or cannot be addressed by layer: refused in one sentence."""

import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from fivelenses.models import encoders
from fivelenses.tasks.sources import SourceError


@pytest.fixture
def folder(tmp_path, toy_encoder):
    """A copy of the toy BERT, to be damaged."""
    return shutil.copytree(toy_encoder.place, tmp_path / "encoder")


def change_json(file, change) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")


def with_nan(folder):
    weights = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
    next(tensor for name, tensor in weights.items() if "layer.2" in name)[..., 0] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def without_tokenizer(folder):
    for file in folder.glob("tokenizer*"):
        file.unlink()


def with_a_late_token(folder):
    def change(content):
        vocabulary = content["model"]["vocab"]
        vocabulary[max(vocabulary, key=vocabulary.get)] = 5_000

    change_json(folder / "tokenizer.json", change)


def cut_short(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def configured(**values):
    return lambda folder: change_json(folder / "config.json", lambda content: content.update(values))


BROKEN = {
    "no tokeniser": (without_tokenizer, "cannot be read|is not its own"),
    "a token without an embedding": (with_a_late_token, "is not its own: .* the last of number 5,000"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "cannot be read .*model.safetensors"),
    "weights cut short": (cut_short, "cannot be read .*: its files are damaged"),
    "a larger vocabulary": (configured(vocab_size=9999), "is not its own: it has 1,000 tokens.* have 9,999 rows"),
    "another width": (configured(intermediate_size=96), "cannot be read .*: its files are .*of different encoders"),
    "NaN": (with_nan, "are not finite .*layer.2"),
}


@pytest.mark.parametrize(("damage", "sentence"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_encoder_is_refused_in_one_sentence(damage, sentence, folder):
    damage(folder)
    with pytest.raises((SourceError, ValueError), match=sentence) as refusal:
        encoders.check_encoder(str(folder))
    assert str(folder) in str(refusal.value) and "\n" not in str(refusal.value)


def test_of_a_random_encoder_no_weights_are_read(folder):
    (folder / "model.safetensors").unlink()
    assert encoders.check_encoder(f"random:{folder}").num_hidden_layers == 6


REFUSED = {
    "albert": (transformers.AlbertConfig, {}, "in one list"),
    "modernbert": (transformers.ModernBertConfig, {}, "projections of .* not known"),
    "t5": (transformers.T5Config, {}, "a decoder"),
    "gpt2": (transformers.GPT2Config, {}, "a decoder"),
    "a decoder of BERT": (transformers.BertConfig, {"is_decoder": True}, "a decoder"),
}


@pytest.mark.parametrize(("config", "values", "reason"), REFUSED.values(), ids=list(REFUSED))
def test_an_architecture_is_refused_by_name_before_its_weights_are_read(config, values, reason, tmp_path):
    # A configuration is all that there is.
    config(**values).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"architecture {config.model_type!r}.*{reason}.*BERT, DistilBERT"):
        encoders.check_encoder(str(tmp_path), projections=True)


def test_prefixes_of_exports_are_taken_off_and_flash_attention_is_replaced(folder, toy_model):
    weights = load_file(folder / "model.safetensors")
    renamed = {f"0.auto_model.{name.removeprefix('bert.')}": tensor for name, tensor in weights.items()}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    configured(_attn_implementation="flash_attention_2")(folder)
    encoders.check_encoder(str(folder))
    read = encoders.load_weights(encoders.locate(str(folder)))
    assert read.config._attn_implementation == "eager"
    pairs = zip(read.parameters(), toy_model.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
