"""What lies in the store is listed, verified and removed."""

import json
import os
import shutil

import pytest
from typer.testing import CliRunner

from fivelenses.checkpoints.store import Store, inspect, read
from fivelenses.cli import app

WHOLE, DAMAGED, BEGUN = "a" * 20, "0" * 20, "5" * 20


@pytest.fixture
def stored(tmp_path, monkeypatch, toy_checkpoint):
    """A store of one whole checkpoint, one damaged and one unfinished."""
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path))
    for name in (WHOLE, DAMAGED):
        shutil.copytree(toy_checkpoint.folder, tmp_path / name)
    (tmp_path / DAMAGED / "tokenizer.json").unlink()
    (tmp_path / "partial" / BEGUN).mkdir(parents=True)
    return Store()


def said(prune: bool = False) -> list[str]:
    lines = []
    inspect(prune, lines.append)
    return lines


def test_every_checkpoint_is_listed_with_what_it_is(stored):
    damaged, whole, begun, total = said()
    assert whole.endswith("  whole    " + read(stored.folder / WHOLE).specification.describe())
    assert whole.startswith(f"{WHOLE}  whole") and "rte, seed" in whole
    assert damaged.startswith(f"{DAMAGED}  damaged") and "tokenizer.json" in damaged
    assert begun.startswith(f"{BEGUN}  unfinished")
    assert total.startswith("2 checkpoints, 1 damaged")
    assert stored.addresses() == [DAMAGED, WHOLE]


def test_checkpoints_of_one_description_are_told_apart_by_what_they_differ_in(stored):
    manifest = json.loads((stored.folder / WHOLE / "manifest.json").read_text())
    shutil.rmtree(stored.folder / DAMAGED)
    for epochs, letter in ((2.0, "b"), (3.0, "c")):
        place = shutil.copytree(stored.folder / WHOLE, stored.folder / (letter * 20))
        manifest["specification"]["schedule"]["epochs"] = epochs
        (place / "manifest.json").write_text(json.dumps(manifest))
    names = [line.partition("  whole    ")[2] for line in said()[:3]]
    assert [name.rpartition(", ")[2] for name in names] == ["epochs 1.0", "epochs 2.0", "epochs 3.0"]
    assert len({name.rpartition(", ")[0] for name in names}) == 1


def test_pruning_removes_what_is_damaged_or_unfinished_and_nothing_else(stored):
    assert said(prune=True)[-1].startswith("1 checkpoint, 1 damaged")
    assert stored.addresses() == [WHOLE] and not stored.addresses(unfinished=True)


def test_a_training_in_progress_is_never_pruned(stored):
    with stored.lock(BEGUN):
        assert f"{BEGUN}  being fine-tuned: left alone" in said(prune=True)
    assert stored.addresses(unfinished=True) == [BEGUN]


def test_what_is_no_checkpoint_is_never_removed(stored):
    for folder in ("thesis", "partial/drafts"):
        (stored.folder / folder).mkdir()
        (stored.folder / folder / "chapter.txt").write_text("years of work")
    said(prune=True)
    assert (stored.folder / "thesis" / "chapter.txt").is_file()
    assert (stored.folder / "partial" / "drafts" / "chapter.txt").is_file()


def test_a_relative_folder_is_that_of_the_command_also_for_what_it_starts_elsewhere(stored, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIVELENSES_RUNS", "scratch/runs")
    CliRunner().invoke(app, ["doctor"])
    assert os.environ["FIVELENSES_RUNS"] == str(tmp_path / "scratch" / "runs")


def test_the_exit_status_says_whether_the_store_is_sound(stored):
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1 and "--prune" in result.stderr
    assert CliRunner().invoke(app, ["doctor", "--prune"]).exit_code == 0
    assert CliRunner().invoke(app, ["doctor"]).exit_code == 0
