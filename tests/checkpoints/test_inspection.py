import shutil

import pytest

from fivelenses.checkpoints.inspection import inspect
from fivelenses.checkpoints.store import Store


@pytest.fixture
def stored(tmp_path, monkeypatch, toy_checkpoint):
    """A store of one whole checkpoint, one damaged and one unfinished."""
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path))
    for name in ("whole", "damaged"):
        shutil.copytree(toy_checkpoint.folder, tmp_path / name)
    (tmp_path / "damaged" / "tokenizer.json").unlink()
    (tmp_path / "partial" / "begun").mkdir(parents=True)
    return Store()


def said(**asked) -> list[str]:
    lines = []
    inspect(**({"remove": [], "prune": False} | asked), log=lines.append)
    return lines


def test_every_checkpoint_is_listed_with_what_it_is(stored):
    damaged, whole, begun, total = said()
    assert whole.startswith("whole  whole") and "rte, seed" in whole
    assert damaged.startswith("damaged  damaged") and "tokenizer.json" in damaged
    assert begun.startswith("begun  unfinished")
    assert total.startswith("2 checkpoints, 1 damaged")
    assert stored.addresses() == ["damaged", "whole"]


def test_pruning_removes_what_is_damaged_or_unfinished_and_nothing_else(stored):
    assert said(prune=True)[-1].startswith("1 checkpoints, 1 damaged")
    assert stored.addresses() == ["whole"] and not stored.unfinished()


def test_a_checkpoint_is_removed_by_its_address(stored):
    assert said(remove=["whole"])[0] == "whole  removed"
    with pytest.raises(ValueError, match="There is no checkpoint 'whole'"):
        said(remove=["whole"])
