"""Dry runs: what would be read and trained, and for how long, with nothing begun."""

import json
import re
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from fivelenses import inputs, records
from fivelenses.chapters import CHAPTERS, chapters_on, settings
from fivelenses.cli import app
from fivelenses.inputs import dry_run
from fivelenses.tasks.sources import SourceError


def described(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--dry-run"])
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("number", sorted(CHAPTERS))
def test_every_chapter_has_a_dry_run_of_all_its_models(number):
    text = described("run", str(number)).replace("one model", "1 model")
    assert "encoder: toy-bert/seed-0, on this machine" in text and "from the toy world, generated" in text
    models = map(int, re.findall(r"(\d+) models? to train", text))
    stored = map(int, re.findall(r"(\d+) in the store", text))
    assert sum(models) + sum(stored) == len(settings(number, "tiny").specifications())


@pytest.mark.parametrize("number", [chapter.number for chapter in chapters_on("paper")])
def test_a_dry_run_says_what_the_paper_would_take_without_a_network(number):
    text = described("run", str(number), "--profile", "paper")
    assert "GB of disk" in text and "times the published run's" in text
    assert "(less those in the store)" in text and "(0 in the store)" not in text
    if number == 5:
        assert "data: WikiText-2 from" in text and "data: Parsing from" in text


def test_a_dry_run_of_the_published_run_takes_what_it_took():
    file = next(records.committed_folder().glob("*-all-MiniLM-L6-v2/1-*/run.json"))
    published = json.loads(file.read_text(encoding="utf-8"))
    line = dry_run(1, [CHAPTERS[1].parameters(**published["parameters"])])[-1]
    took = timedelta(seconds=round(published["seconds"] + published["training_seconds"]))
    times, printed = re.match(r"about (\S+) times the published run's (\S+)", line).groups()
    assert 0.8 < float(times) < 1.25 and printed == str(took)


def test_a_dry_run_refuses_a_folder_without_an_encoder_and_counts_no_models_of_one_that_only_the_hub_has():
    with pytest.raises(SourceError, match="There is no encoder at"):
        dry_run(1, [settings(1, "tiny", encoder="/nowhere/encoder")])
    lines = dry_run(1, [settings(1, "tiny", encoder="nobody/no-such-encoder")])
    assert lines[0] == "encoder: nobody/no-such-encoder, from the hub, which cannot be read now"
    assert lines[-1] == "an encoder is not at hand, so the models and their time are not known"
    assert not any("models to train" in line or "times" in line for line in lines)


def test_a_dry_run_names_every_table_that_a_mirror_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    text = described("run", "6", "--profile", "small", "-p", "encoder=toy-bert/seed-0", "-p", "tasks=[rte,mrpc]")
    assert re.findall(r"data: (\w+) from the mirror: missing \(", text) == ["RTE", "MRPC", "Parsing"]
    assert "RTE: 3 models to train" in text and "MRPC: 3 models to train" in text


def test_a_model_of_two_points_of_a_sweep_is_counted_once_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    text = described("sweep", "1", "--grid", "tasks=rte,mrpc", "evaluation_examples=100,200")
    assert text.startswith("4 points, 0 current, 4 to run\n")
    assert re.findall(r", (\w+): (\d+) models to train", text) == [("RTE", "2"), ("MRPC", "2")]
    assert text.count("data: RTE from the toy world") == 1 and "times the published run's" in text
    assert not list(tmp_path.iterdir())


def test_an_encoder_that_is_not_at_hand_has_the_shape_that_its_name_says():
    assert inputs._shape("distilbert/distilbert-base-uncased") == (6, 768)
    assert inputs._shape("google-bert/bert-base-uncased") == (12, 768)
