"""Encoders whose files are broken in one way each: refused by name, before a notebook starts and without torch."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from fivelenses.cli import app
from fivelenses.runs.encoder_names import check_name
from fivelenses.runs.inputs import check_inputs
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import settings


@pytest.fixture
def folder(tmp_path, toy_encoder):
    """A copy of the toy BERT, to be damaged."""
    return shutil.copytree(toy_encoder.place, tmp_path / "encoder")


def configure(folder, **values) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | values), encoding="utf-8")


def without_tokenizer(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()


def empty_tokenizer(folder):
    (folder / "tokenizer.json").write_text("")


def without_weights(folder):
    (folder / "model.safetensors").unlink()


def weights_in_a_folder(folder):
    without_weights(folder)
    (folder / "model.safetensors").mkdir()


def lacking_a_part(folder):
    without_weights(folder)
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def damaged_index(folder):
    without_weights(folder)
    (folder / "model.safetensors.index.json").write_text("[]")


def seven_heads(folder):
    configure(folder, num_attention_heads=7)


def larger_vocabulary(folder):
    configure(folder, vocab_size=9999)


def spare_rows(folder):
    configure(folder, vocab_size=1024)


def wider(folder):
    configure(folder, hidden_size=96)


def with_value(value):
    def put(folder):
        weights = load_file(folder / "model.safetensors")
        name = next(name for name in weights if name.endswith("intermediate.dense.weight"))
        weights[name] = weights[name].copy()
        weights[name][0, 0] = value
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return put


BROKEN = {
    "no tokeniser": (without_tokenizer, "There is no tokeniser in .*encoder: put the encoder's own tokenizer.json"),
    "an empty tokeniser": (empty_tokenizer, "The tokeniser .*tokenizer.json is damaged .*: copy it again"),
    "no weights": (without_weights, "There are no weights in .*encoder: put model.safetensors there"),
    "weights in a folder": (weights_in_a_folder, "model.safetensors are a folder"),
    "a part is missing": (lacking_a_part, "model-00001-of-00002.safetensors are missing"),
    "a damaged index": (damaged_index, "index.json is damaged"),
    "seven heads": (seven_heads, "hidden size of 64, which cannot be divided among 7 attention heads"),
    "a larger vocabulary": (larger_vocabulary, "has 1,000 tokens, .* and config.json a vocabulary of 9,999"),
    "rows to spare": (spare_rows, "word_embeddings.weight is 1,000 × 64 and should be 1,024 × 64"),
    "another width": (wider, "do not fit config.json .* is 128 × 64 and should be 128 × 96"),
    "NaN": (with_value(np.nan), r"are not finite \(.*intermediate.dense.weight has 1 bad values of 16,384"),
    "infinity": (with_value(-np.inf), "are not finite"),
}


@pytest.mark.parametrize(("damage", "sentence"), BROKEN.values(), ids=BROKEN)
def test_a_broken_encoder_is_refused_before_a_notebook_starts(folder, damage, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    damage(folder)
    with pytest.raises(ParameterError, match=sentence) as refusal:
        check_name(str(folder))
    assert "\n" not in str(refusal.value)
    result = CliRunner().invoke(app, ["run", "1", "-p", f"encoder={folder}"])
    assert result.exit_code == 2 and str(refusal.value) in result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_broken_encoder_is_refused_without_torch(folder):
    with_value(np.nan)(folder)
    program = f"""
import sys
from fivelenses.cli import app
try:
    app(["run", "1", "-p", "encoder={folder}"])
except SystemExit as end:
    print(end.code, "torch" in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout.split() == ["2", "False"] and "are not finite" in answer.stderr


def test_of_a_random_encoder_no_weights_are_read(folder):
    without_weights(folder)
    check_name(f"random:{folder}")


def test_weights_in_parts_and_a_vocabulary_alone_are_taken(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "tokenizer.json").rename(folder / "vocab.txt")
    check_name(str(folder))


def test_an_encoder_that_is_mended_is_taken(folder, toy_encoder):
    with_value(np.inf)(folder)
    with pytest.raises(ParameterError, match="not finite"):
        check_name(str(folder))
    shutil.copyfile(f"{toy_encoder.place}/model.safetensors", folder / "model.safetensors")
    check_name(str(folder))


@pytest.mark.parametrize("kind", ["deberta-v2", "modernbert"])
def test_an_architecture_without_six_projections_is_refused_where_they_are_needed(tmp_path, kind):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "num_hidden_layers": 6}))
    with pytest.raises(ValueError, match=f"architecture '{kind}'"):
        check_inputs(settings(4, "tiny", encoder=str(tmp_path)))
    for command in (["run", "4", "-p", f"encoder={tmp_path}"], ["report", str(tmp_path)]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2 and f"architecture '{kind}'" in result.stderr
    # Chapter 1 needs none of them, and comes to the files, which are not there.
    with pytest.raises(ParameterError, match="There is no tokeniser"):
        check_name(str(tmp_path))


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "llama"},
        {"model_type": "gpt_neox"},
        {"model_type": "bert", "is_decoder": True},
        {"model_type": "newest", "architectures": ["NewestForCausalLM"]},
    ],
)
def test_decoders_are_refused_by_name(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"architecture '{config['model_type']}'.* it is a decoder"):
        check_name(str(tmp_path))


def test_an_encoder_that_is_not_known_by_name_is_tried(folder):
    configure(folder, model_type="camembert")
    check_name(str(folder))
