"""What a run could not read or compare is refused before its notebook starts."""

import os
import shutil
import socket

import pytest
from huggingface_hub import constants
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

from fivelenses.chapters import CHAPTERS, parse_parameters, settings
from fivelenses.cli import app
from fivelenses.execution import check_inputs
from fivelenses.models import encoders
from fivelenses.tasks import sources


def test_a_broken_encoder_is_refused_before_its_notebook_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    (tmp_path / "config.json").write_text("{")
    result = CliRunner().invoke(app, ["run", "1", "-p", f"encoder={tmp_path}"])
    assert result.exit_code == 2 and f"{tmp_path} cannot be read" in result.stderr
    assert not list((tmp_path / "runs").rglob("*.ipynb"))


@pytest.mark.parametrize(
    ("number", "given"),
    [(1, {"evaluation_examples": 5}), (1, {"mixed_examples": 3}), (6, {"evaluation_examples": 5})],
)
def test_too_few_examples_to_compare_are_refused_before_a_training(number, given):
    with pytest.raises(ValueError, match="of two layers of width 64 needs more than 128: take more examples"):
        check_inputs(settings(number, "tiny", tasks=["cola", "rte"], **given))


def test_a_head_of_an_earlier_training_is_named(tmp_path):
    folder = shutil.copytree(encoders.locate("toy-bert/seed-0").place, tmp_path / "fine-tuned")
    AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3).save_pretrained(folder)
    lines = []
    check_inputs(settings(1, "tiny", encoder=str(folder)), lines.append)
    assert lines == [
        f"{folder}: its old head (BertForSequenceClassification) is left out, and each model's new one is "
        "drawn by its seed"
    ]


@pytest.mark.parametrize(("written", "read"), [("010", 10), ("[010]", [10]), ("[0,1:30]", [0, "1:30"])])
def test_numbers_are_those_of_yaml_1_2(written, read):
    assert parse_parameters([f"value={written}"]) == {"value": read}


@pytest.mark.parametrize("number", sorted(CHAPTERS))
def test_another_encoder_is_one_parameter_in_every_chapter(number):
    chosen = settings(number, "tiny", encoder="toy-bert/seed-1")
    assert chosen.encoder == "toy-bert/seed-1" and "toy-bert/seed-0" not in chosen.encoders_read()


@pytest.fixture
def online(monkeypatch):
    """A process to which nobody has said that it has no network."""
    for name in ("HF_HUB_OFFLINE", *(name for name in os.environ if name.lower().endswith("_proxy"))):
        monkeypatch.delenv(name)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield
    sources.ask_hub_once.cache_clear()
    os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.mark.parametrize("answers", [True, False])
def test_a_hub_that_does_not_answer_is_not_asked_again(answers, online, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        if not answers:
            server.close()
        sources.ask_hub_once.cache_clear()
        sources.ask_hub_once()
    assert (not answers) == constants.HF_HUB_OFFLINE and ("HF_HUB_OFFLINE" in os.environ) == (not answers)
