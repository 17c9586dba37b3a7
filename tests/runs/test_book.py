"""A finished run is published whole, in the place of the one before it, or not at all."""

import dataclasses
import json

import pytest
from tests.runs.conftest import make_home

from fivelenses.exhibits import claims
from fivelenses.runs import book, pages, seals, settings
from fivelenses.runs.execution import EXECUTED, RunError
from fivelenses.runs.run import folder_name
from fivelenses.runs.settings import CHAPTERS


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run of chapter 1 on the profile that the book shows, in a home of its own."""
    make_home(tmp_path, monkeypatch)
    folder = tmp_path / "runs" / folder_name(CHAPTERS[1], CHAPTERS[1].published, {})
    folder.mkdir(parents=True)
    (folder / EXECUTED).write_text("{}")
    (folder / "figure.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "figure.svg").write_text("<svg/>")
    claims.save([], folder)
    (folder / "run.json").write_text(json.dumps({"files": seals.seal(folder)}))
    return folder


def test_a_published_run_is_the_run_without_its_large_pictures(run):
    place = book.publish(1)
    assert place == pages.published_folder(CHAPTERS[1])
    assert {file.name for file in place.iterdir()} == {EXECUTED, "figure.png", "claims.json", "run.json"}
    assert pages.facts_of(place, CHAPTERS[1], "small")["files"] == seals.seal(place)


def test_a_published_run_takes_the_place_of_the_one_before_it(run):
    before = pages.published_folder(CHAPTERS[1])
    before.mkdir(parents=True)
    (before / "old.parquet").touch()
    assert not (book.publish(1) / "old.parquet").exists()


def test_a_notebook_too_large_to_commit_is_refused_and_nothing_is_lost(run, monkeypatch):
    place = book.publish(1)
    monkeypatch.setattr(book, "LARGEST_PUBLISHED", 1)
    with pytest.raises(RunError, match="at most 3 MB"):
        book.publish(1)
    assert (place / EXECUTED).is_file()


def test_a_damaged_run_is_not_published(run):
    (run / "figure.png").write_bytes(b"\x89PNG")
    with pytest.raises(RunError, match=r"figure.png of chapter 1 .* is not as it was written"):
        book.publish(1)
    assert not pages.published_folder(CHAPTERS[1]).exists()


def test_a_chapter_of_which_no_run_is_shown_has_nothing_to_publish(run, monkeypatch):
    monkeypatch.setitem(settings.CHAPTERS, 1, dataclasses.replace(CHAPTERS[1], published=None))
    with pytest.raises(RunError, match="no committed run of chapter 1"):
        book.publish(1)
