"""Records: what makes one stale and what does not, and what a run does with those that are there."""

import re
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from fivelenses import records
from fivelenses.chapters import CHAPTERS
from fivelenses.files import RunError, project_folder
from fivelenses.records import Identity, Record

FACTS = {"seconds": 1.0, "tables": 1, "trained": {}, "device": "CPU", "python": "3", "versions": {}}


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library of three modules, in the place of ours."""
    monkeypatch.setattr(records, "LIBRARY", tmp_path)
    package = tmp_path / "fivelenses"
    (package / "lenses").mkdir(parents=True)
    for name, source in {
        "__init__": "",
        "lenses/__init__": "",
        "lenses/heights": '"""A lens."""\nimport numpy\n\n\ndef height(x):\n    "Twice."\n    return 2 * x\n',
        "lenses/other": "def other(x):\n    return x\n",
        "measure": "def heights(x):\n    from fivelenses.lenses import heights\n    return heights.height(x)\n",
    }.items():
        (package / f"{name}.py").write_text(source)
    return package


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def digest() -> str:
    records._module.cache_clear()
    return records.code_digest(["fivelenses.measure"])


@pytest.mark.parametrize(
    ("name", "before", "after", "stale"),
    [
        ("lenses/heights", "Twice.", "Two times the input.", False),
        ("lenses/heights", '"""A lens."""', "# A lens.", False),
        ("lenses/heights", "return 2 * x", "return (2 *\n        x)  # doubled", False),
        ("lenses/heights", "return 2 * x", "return 3 * x", True),
        ("lenses/heights", "import numpy", "import numpy, fivelenses.lenses.other", True),
        ("lenses/other", "return x", "return -x", False),
        ("measure", "heights.height(x)", "heights.height(x + 1)", True),
    ],
    ids=["docstring", "comment", "layout", "number", "import", "not imported", "own module"],
)
def test_a_record_is_stale_where_what_measured_it_does_something_else(library, name, before, after, stale):
    old = digest()
    edit(library / f"{name}.py", before, after)
    assert (digest() != old) is stale


def test_an_import_inside_a_function_counts_as_one_and_a_module_left_out_is_not_followed(library):
    whole = ["fivelenses", "fivelenses.lenses", "fivelenses.lenses.heights", "fivelenses.measure"]
    assert records.closure(["fivelenses.measure"]) == whole
    assert records.closure(["fivelenses.measure"], ("fivelenses.lenses",)) == ["fivelenses", "fivelenses.measure"]


@pytest.mark.parametrize("number", CHAPTERS)
def test_measuring_code_does_not_know_what_is_made_of_records(number):
    reached = records.closure(CHAPTERS[number].measures, records.NOT_DIGESTED)
    right = tuple(f"fivelenses.{name}" for name in ("judging", "exhibits", "run", "cli"))
    lost = {*records.closure(CHAPTERS[number].measures)} - {*reached}
    assert not [name for name in lost if re.match(r"fivelenses\.(lenses|models|comparison|activations|papers)", name)]
    assert not [name for name in reached if name.startswith(right) or name.endswith((".figures", ".claims"))]


def identity(**changes) -> Identity:
    return Identity(
        **{"function": "heights", "code": "c0de", "parameters": {"task": "rte"}, "checkpoints": ("a",)} | changes
    )


def test_a_record_comes_back_as_it_was_written(tmp_path):
    record = Record(pd.DataFrame({"task": ["rte"], "height": [0.5]}), identity(), FACTS)
    records.write(tmp_path / "deep" / "heights.parquet", record)
    back = records.read(tmp_path / "deep" / "heights.parquet")
    pd.testing.assert_frame_equal(back.table, record.table)
    assert (back.identity, back.facts) == (record.identity, FACTS)
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["heights.parquet"]


@pytest.mark.parametrize(
    "changes", [{"function": "widths"}, {"code": "d0ne"}, {"parameters": {"task": "mrpc"}}, {"checkpoints": ("b",)}]
)
def test_a_record_of_something_else_has_another_address(changes):
    assert identity(**changes).digest != identity().digest


def test_a_file_that_is_no_record_is_named(tmp_path):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "table.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for name in ("table", "broken", "none"):
        with pytest.raises(RunError, match=f"The record {name}.parquet .* is missing or damaged"):
            records.read(tmp_path / f"{name}.parquet")


def test_parts_are_merged_with_what_they_share(tmp_path):
    parts = [
        Record(
            pd.DataFrame({"task": [task]}),
            identity(code=task, parameters={"task": task, "points": 4}, checkpoints=(task,)),
            FACTS | {"trained": {task: 1.0}, "peak_memory": len(task)},
        )
        for task in ("rte", "mrpc")
    ]
    merged = records.merge([*parts, Record(pd.DataFrame(), parts[0].identity, FACTS)])
    assert merged.table["task"].tolist() == ["rte", "mrpc"] and merged.facts["seconds"] == 3.0
    assert merged.identity.code == "mrpc+rte" and merged.facts["peak_memory"] == 4 and len(merged.facts["trained"]) == 2
    assert merged.identity.parameters == {"points": 4} and merged.identity.checkpoints == ("rte", "mrpc")


def test_every_column_of_a_committed_record_is_in_the_codebook():
    named = set(re.findall(r"`([\w ]+)`", (project_folder() / "book" / "codebook.md").read_text(encoding="utf-8")))
    for file in records.committed_folder().glob("*/*/*.parquet"):
        assert set(pq.read_schema(file).names) <= named, file


def test_all_committed_records_are_small():
    size = sum(file.stat().st_size for file in records.committed_folder().rglob("*") if file.is_file())
    assert size <= 8 * 10**6


def test_quotes_that_versions_of_python_write_otherwise_make_no_record_stale():
    assert records.statements("x = f\"{y['a']}\"") == records.statements("x = f'{y[\"a\"]}'")
    assert '"' not in records.statements("x = f\"{y['a']}\"")
