"""Committed records are as they were written, to the single bit, and a run with damaged facts is none."""

import json
import shutil
from dataclasses import replace

import pytest

from fivelenses import records
from fivelenses.book import pages
from fivelenses.execution import of_chapter, of_records
from fivelenses.files import RunError, checksums

PUBLISHED = pages.published_runs()


@pytest.mark.parametrize("run", PUBLISHED, ids=lambda run: f"{run.name}/{run.chapter.slug}")
def test_committed_records_are_as_they_were_written(run):
    facts = json.loads((run.committed / "run.json").read_text(encoding="utf-8"))
    assert facts["files"] == checksums(run.committed)
    for file in run.committed.glob("*.parquet"):
        assert not records.read(file).table.empty


@pytest.mark.parametrize("lost", [False, True])
def test_one_flipped_bit_or_a_lost_record_is_refused(tmp_path, lost):
    folder = shutil.copytree(PUBLISHED[0].committed, tmp_path / "run")
    file = next(folder.glob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.unlink() if lost else file.write_bytes(content)
    with pytest.raises(RunError, match="not as they were written"):
        of_records(folder)


@pytest.mark.parametrize("content", ["{", "{}", '{"digest": '])
def test_a_run_with_damaged_facts_is_made_again(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    assert replace(of_chapter(1, "tiny"), place=tmp_path).reason
