import hashlib
import lzma
import os
import socket

import pandas as pd
import pytest
from huggingface_hub import constants

from fivelenses import tasks
from fivelenses.tasks import sources
from fivelenses.tasks.sources import SourceError, raw_text


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror that holds three rows of RTE's validation split."""
    place = tmp_path / "datasets" / "nyu-mll" / "glue" / "rte"
    place.mkdir(parents=True)
    rows = {"sentence1": ["a", "b", "c"], "sentence2": ["d", "e", "f"], "label": [0, 1, 0]}
    pd.DataFrame(rows).to_parquet(place / "validation.parquet")
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    return tmp_path


def test_a_mirror_is_read_as_the_hub_is_and_a_part_of_a_split_is_called_a_sample(mirror):
    data = tasks.load("rte", "hub", ("validation",))
    assert data.splits["validation"]["sentence2"][:] == ["d", "e", "f"]
    assert data.provenance("validation") == "sample, 3 of 277 examples"


def test_what_the_mirror_lacks_is_named(mirror):
    with pytest.raises(SourceError, match="nyu-mll/glue, rte, train could not be read from "):
        tasks.load("rte", "hub")


def test_a_mirror_that_is_no_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(SourceError, match="not a folder"):
        tasks.load("rte", "hub")


def test_a_table_without_its_columns_is_refused(mirror):
    place = mirror / "datasets" / "nyu-mll" / "glue" / "rte" / "validation.parquet"
    pd.DataFrame({"text": ["a"], "label": [0]}).to_parquet(place)
    with pytest.raises(SourceError, match="has no column sentence1, sentence2"):
        tasks.load("rte", "hub", ("validation",))


def test_without_a_network_one_sentence_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    with pytest.raises(SourceError, match="connect to the network, or set FIVELENSES_MIRROR"):
        tasks.load("cola", "hub")


def test_a_raw_file_is_known_by_its_hash_or_by_its_git_blob_and_another_is_not_kept(mirror, monkeypatch):
    place = mirror / "raw" / "owner" / "bank" / "v1" / "a.txt.xz"
    place.parent.mkdir(parents=True)
    place.write_bytes(lzma.compress(b"abc"))
    sha256, blob = hashlib.sha256(b"abc").hexdigest(), hashlib.sha1(b"blob 3\0abc").hexdigest()
    splits = {"all": ["a", sha256], "blob": ["a", "0" * 64, blob[:8]], "other": ["a", "0" * 64], "lost": ["b", sha256]}
    facts = {"repository": "owner/bank", "tag": "v1", "path": "{}.txt", "splits": splits}
    monkeypatch.setitem(sources.CORPORA, "bank", facts)
    assert raw_text("bank") == raw_text("bank", "blob") == "abc"
    with pytest.raises(SourceError, match="its hash differs"):
        raw_text("bank", "other")
    with pytest.raises(SourceError, match="b.txt of owner/bank could not be read"):
        raw_text("bank", "lost")
    monkeypatch.delenv("FIVELENSES_MIRROR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(mirror))
    fetched = mirror / "fivelenses" / "raw" / "owner" / "bank" / "v1" / "a.txt"
    fetched.parent.mkdir(parents=True)
    fetched.write_bytes(b"ab")
    with pytest.raises(SourceError, match="its hash differs.*: fetch it again"):
        raw_text("bank")
    assert not fetched.exists()


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
