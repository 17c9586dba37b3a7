"""The records of a run are published whole, in the place of those before them, or not at all."""

import json

import pandas as pd
import pytest
from tests.homes import make_home

from fivelenses import execution, records
from fivelenses.book import pages
from fivelenses.chapters import settings
from fivelenses.files import RunError, checksums
from fivelenses.records import Identity, Record

FACTS = {"seconds": 1.0, "tables": 1, "trained": {"abc": 2.0}, "device": "CPU", "python": "3", "versions": {}}
TOLD = {"chapter": 1, "profile": "small", "parameters": {}, "specifications": ["abc"], "not_measured": {}}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    make_home(tmp_path, monkeypatch)
    return {"heights": Record(pd.DataFrame({"height": [1.0, 2.0]}), Identity("heights", "c0de", {}, ("abc",)), FACTS)}


def test_published_records_are_loaded_by_profile_and_chapter(measured):
    place = pages.commit(1, "small-a", measured, TOLD, leads=True)
    pages.commit(1, "small-b", {"weights": measured["heights"]}, TOLD, leads=True)
    assert {file.name for file in place.iterdir()} == {"heights.parquet", "run.json"}
    assert json.loads((place / "run.json").read_text())["files"] == checksums(place)
    assert (list(records.load("small", 1)), pages.published_runs()[1].leads) == (["weights"], False)  # it came last
    assert records.load("small", 1, "a")["heights"]["height"].tolist() == [1.0, 2.0]
    with pytest.raises(RunError, match="No run of chapter 2 on small is published: there are small-a/1-"):
        records.load("small", 2)


def test_published_records_take_the_place_of_those_before_and_keep_the_findings(measured):
    place = pages.commit(1, "small-a", measured, TOLD, leads=True)
    (place / "old.parquet").touch()
    (place / "findings.yaml").write_text("- A finding.\n")
    again = pages.commit(1, "small-a", measured, TOLD, leads=False)  # with a parameter given
    assert not (again / "old.parquet").exists() and (again / "findings.yaml").read_text() == "- A finding.\n"
    assert [run.leads for run in pages.published_runs()] == [True]


def test_a_parameter_that_came_since_has_its_default_on_a_published_page(measured):
    parameters = settings(4, "tiny").model_dump(mode="json")
    before = {name: value for name, value in parameters.items() if name != "shuffled"}
    place = pages.commit(4, "small-a", measured, TOLD | {"chapter": 4, "parameters": before}, leads=True)
    assert execution.of_records(place).parameters.model_dump(mode="json") == before | {"shuffled": []}


def test_a_stamp_marks_published_records_as_of_todays_code_and_leaves_their_numbers(measured, monkeypatch):
    place = pages.commit(1, "small-a", measured, TOLD, leads=True)
    monkeypatch.setattr(records, "measuring_module", lambda function, modules: function)
    monkeypatch.setattr(records, "measuring_code", lambda module: f"new {module}")
    assert pages.stamp(1) == [place]
    stamped = records.read(place / "heights.parquet")
    assert stamped.identity.code == "new heights" and stamped.table.equals(measured["heights"].table)
    assert json.loads((place / "run.json").read_text())["files"] == checksums(place)
