"""Files of a finished run are found when they are not as they were written, to the single bit."""

import json
from dataclasses import replace

import pytest

from fivelenses import judging, records
from fivelenses.book import pages
from fivelenses.execution import EXECUTED, of_chapter
from fivelenses.files import checksums, damaged
from fivelenses.judging import CANNOT_BE_TESTED, Verdict
from tests.book.judged import CLAIMS


@pytest.fixture
def run(tmp_path):
    """A finished run with a table, a picture and verdicts, and their checksums."""
    (tmp_path / "table.parquet").write_bytes(bytes(range(256)))
    (tmp_path / "figure.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "figure.html").write_text("<figure>A caption.</figure>\n")
    (tmp_path / EXECUTED).write_text("{}")
    judging.save([(CLAIMS[0], Verdict(CANNOT_BE_TESTED, reason="it is a test"))], tmp_path)
    facts = {"files": checksums(tmp_path)}
    (tmp_path / "run.json").write_text(json.dumps(facts))
    return tmp_path


def recorded(run):
    return json.loads((run / "run.json").read_text())["files"]


def test_a_run_as_it_was_written_is_whole(run):
    assert damaged(run, recorded(run)) == []
    assert set(recorded(run)) == {"table.parquet", "figure.png", "figure.html", EXECUTED, "claims.json"}


@pytest.mark.parametrize("name", ["table.parquet", "figure.png", "claims.json", EXECUTED])
def test_one_flipped_bit_or_a_lost_file_is_found(run, name):
    content = bytearray((run / name).read_bytes())
    content[len(content) // 2] ^= 1
    (run / name).write_bytes(content)
    assert damaged(run, recorded(run)) == [name]
    (run / name).unlink()
    assert damaged(run, recorded(run)) == [name]


@pytest.mark.parametrize("content", ["{", "{}", '{"files": '])
def test_a_run_with_damaged_facts_is_made_again(run, content):
    (run / "run.json").write_text(content)
    assert replace(of_chapter(1, "tiny"), place=run).reason


@pytest.mark.parametrize("run", pages.published_runs(), ids=lambda run: f"{run.name}/{run.chapter.slug}")
def test_committed_records_are_as_they_were_written(run):
    facts = json.loads((run.committed / "run.json").read_text(encoding="utf-8"))
    assert facts["files"] == checksums(run.committed)
    for file in run.committed.glob("*.parquet"):
        assert not records.read(file).table.empty


def test_a_damaged_local_run_is_made_again(run):
    job = replace(of_chapter(1, "tiny"), place=run)
    (run / "run.json").write_text(json.dumps({"digest": job.digest, "files": checksums(run)}))
    assert job.reason == ""
    (run / "table.parquet").write_bytes(b"other")
    assert job.reason == "its table.parquet is damaged"
