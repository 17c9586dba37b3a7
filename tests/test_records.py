"""Records: what makes one stale and what does not, and what a run does with those that are there."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow.parquet as pq
import pytest

from fivelenses import memory, project, publishing, records
from fivelenses import run as running
from fivelenses.chapters import CHAPTERS, find_chapter, settings
from fivelenses.checkpoints import finetuning
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.records import Identity, Missing, Record, RecordError
from fivelenses.run import Run

FACTS = {"seconds": 1.0, "trained": {}, "device": "CPU", "python": "3", "versions": {}}


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
    records._read.cache_clear()
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


def test_an_import_inside_a_function_counts_as_one(library):
    assert "fivelenses.lenses.heights" in records.closure(["fivelenses.measure"])
    assert "fivelenses.lenses.other" not in records.closure(["fivelenses.measure"])


def test_a_module_left_out_is_not_followed(library):
    assert records.closure(["fivelenses.measure"], ("fivelenses.lenses",)) == ["fivelenses", "fivelenses.measure"]


@pytest.mark.parametrize("number", CHAPTERS)
def test_measuring_code_does_not_know_what_is_made_of_records(number):
    reached = records.closure(CHAPTERS[number].measures, records.KNOWN_OTHERWISE)
    right = tuple(f"fivelenses.{name}" for name in ("judging", "exhibits", "run", "cli"))
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


def test_the_numbers_of_examples_take_little_space(tmp_path):
    examples = pd.DataFrame({"model": model, "example": range(1000)} for model in range(20)).explode("example")
    table = examples.astype({"example": "int32"}).reset_index(drop=True)
    records.write(tmp_path / "by_example.parquet", Record(table, Identity("by_example", "0"), FACTS))
    pd.testing.assert_frame_equal(records.read(tmp_path / "by_example.parquet").table, table)
    assert (tmp_path / "by_example.parquet").stat().st_size < 10_000


@pytest.mark.parametrize(
    "changes", [{"function": "widths"}, {"code": "d0ne"}, {"parameters": {"task": "mrpc"}}, {"checkpoints": ("b",)}]
)
def test_a_record_of_something_else_has_another_address(changes):
    assert identity(**changes).digest != identity().digest


def test_a_file_that_is_no_record_is_named(tmp_path):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "table.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for name in ("table", "broken"):
        with pytest.raises(RecordError, match=f"The record {name}.parquet .* is damaged"):
            records.read(tmp_path / f"{name}.parquet")
    with pytest.raises(RecordError, match="There is no record none.parquet"):
        records.read(tmp_path / "none.parquet")


def test_parts_are_merged_with_what_they_share(tmp_path):
    parts = [
        Record(
            pd.DataFrame({"task": [task]}), identity(parameters={"task": task, "points": 4}, checkpoints=(task,)), FACTS
        )
        for task in ("rte", "mrpc")
    ]
    merged = records.merge([*parts, Record(pd.DataFrame(), parts[0].identity, FACTS)])
    assert merged.table["task"].tolist() == ["rte", "mrpc"] and merged.facts["seconds"] == 3.0
    assert merged.identity.parameters == {"points": 4} and merged.identity.checkpoints == ("rte", "mrpc")


# --- a run and its records --------------------------------------------------------------------------------------------

calls: list = []


def count(seeds: tuple[int, ...], factor: int = 1, log=print) -> pd.DataFrame:
    """A measurement that takes a parameter of the chapter, one of its own, and tells how often it was made."""
    calls.append(factor)
    log("measuring")
    return pd.DataFrame({"seed": list(seeds), "value": [factor * seed for seed in seeds]})


def several(seeds: tuple[int, ...]) -> dict[str, pd.DataFrame]:
    return {"first": pd.DataFrame({"a": list(seeds)}), "second": pd.DataFrame({"b": [0]})}


def asks_too_much(nobody_has_this: int) -> pd.DataFrame:
    return pd.DataFrame()


@pytest.fixture
def run(tmp_path, monkeypatch):
    calls.clear()
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(records, "measuring_code", lambda module: "c0de")
    chapter = replace(find_chapter(1), measures=(__name__,))
    return Run(chapter, "tiny", settings(1, "tiny", seeds=[1, 2]), tmp_path)


def test_what_was_measured_is_not_measured_again(run):
    first = run.measure("count")
    again = Run(run.chapter, run.profile, run.settings, run.folder).measure("count")
    pd.testing.assert_frame_equal(first, again)
    assert calls == [1] and first["value"].tolist() == [1, 2]


def test_another_parameter_or_other_code_is_measured(run, monkeypatch):
    run.measure("count")
    run.measure("count", factor=2)
    monkeypatch.setattr(records, "measuring_code", lambda module: "d0ne")
    run.measure("count")
    assert calls == [1, 2, 1]


def test_values_are_measured_one_after_another_and_only_those_that_are_new(run):
    run.measure("count", over={"factor": [1, 2]})
    table = run.measure("count", over={"factor": [1, 2, 3]})
    assert calls == [1, 2, 3] and table["value"].tolist() == [1, 2, 2, 4, 3, 6]


def test_a_measurement_of_nothing_says_so_where_it_is_published(run):
    reason = "its parameters ask for nothing of the kind"
    assert run.measure("count", over={"factor": []}) == Missing("count", reason)
    assert run.measurements.not_measured == {"count": reason}


def test_a_measurement_may_give_several_tables(run):
    for _ in range(2):
        tables = run.measure("several")
        assert {name: list(table.columns) for name, table in tables.items()} == {"first": ["a"], "second": ["b"]}


def test_a_measurement_that_was_killed_between_two_tables_is_made_again(run):
    run.measure("several")
    next(iter((run.folder / "runs" / "records" / run.chapter.slug).glob("several.second.*"))).unlink()
    assert set(run.measure("several")) == {"first", "second"}


def test_a_damaged_record_is_measured_again_with_a_line_that_says_so(run, capsys):
    first = run.measure("count")
    [file] = (run.folder / "runs" / "records" / run.chapter.slug).glob("count.*")
    file.write_bytes(file.read_bytes()[:100])
    pd.testing.assert_frame_equal(Run(run.chapter, run.profile, run.settings, run.folder).measure("count"), first)
    assert calls == [1, 1] and "it is measured again" in capsys.readouterr().out


def of_models(checkpoints, seeds: tuple[int, ...]) -> pd.DataFrame:
    return pd.DataFrame({"model": [one.folder.name for one in checkpoints]})


def test_a_checkpoint_is_checked_once_in_a_run(run, monkeypatch, tmp_path):
    asked = []

    def prepare(specifications, log, device):
        asked.extend(one.address for one in specifications)
        return [Checkpoint(tmp_path / one.address, {"seconds": 1.0}) for one in specifications]

    monkeypatch.setattr(finetuning, "prepare", prepare)
    table = run.measure("of_models", each=("task", "seed"))
    addresses = [one.address for one in run.settings.specifications()]
    assert sorted(table["model"]) == sorted(asked) == sorted(addresses)


def test_what_measuring_held_is_told_by_a_run_that_only_reads_the_record(run, monkeypatch):
    for most in (8e9, 2e9):
        monkeypatch.setattr(memory, "peak_memory", lambda most=most: most)
        again = Run(run.chapter, run.profile, run.settings, run.folder)
        again.measure("count")
        assert again.measurements.summary()["peak_memory"] == 8e9
    assert calls == [1]


def test_a_parameter_that_nobody_gives_is_named(run):
    with pytest.raises(TypeError, match="asks for 'nobody_has_this', which chapter 1 has not"):
        run.measure("asks_too_much")
    with pytest.raises(TypeError, match="count has no parameter 'points'"):
        run.measure("count", points=3)


def test_a_name_that_nothing_measures_is_refused(run):
    with pytest.raises(LookupError, match=f"No function 'counts' measures in this chapter: .* {__name__}."):
        run.measure("counts")


def test_code_is_told_without_importing_what_measures(library, monkeypatch):
    (library / "measure.py").write_text('raise ImportError("this was imported")\n\n\ndef heights(x):\n    return x\n')
    monkeypatch.setattr(records, "find_spec", lambda name: SimpleNamespace(origin=library / "measure.py"))
    assert records.measuring_module("heights", ["fivelenses.measure"]) == "fivelenses.measure"
    assert records.measuring_code("fivelenses.measure") == digest()


def committed(run, folder, **changes) -> Run:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"not_measured": {"several": "it took too long"}}))
    records.write(folder / "count.parquet", Record(pd.DataFrame({"value": [7]}), identity(**changes), FACTS))
    return Run(run.chapter, run.profile, run.settings, run.folder, folder)


def test_a_published_run_reads_and_never_measures(run, tmp_path):
    published = committed(run, tmp_path / "committed")
    assert published.measure("count")["value"].tolist() == [7] and not calls
    assert not published.measurements.outdated and list(published.measurements.addresses) == ["a"]
    lacking = published.measure("asks_too_much", over=lambda: 1 / 0)
    assert lacking == Missing("asks_too_much", "it was published before chapters measured this")
    assert published.measure("several") == Missing("several", "it took too long")


def test_a_published_record_of_older_code_is_shown_and_named(run, tmp_path):
    published = committed(run, tmp_path / "committed", code="older")
    published.measure("count")
    assert published.measurements.outdated == ["count"]


@pytest.mark.parametrize("given", [{"seedz": 3}, {"seeds": "many"}])
def test_a_notebook_that_sets_what_does_not_exist_is_refused(given, monkeypatch, tmp_path):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    monkeypatch.delenv("FIVELENSES_RUN_FOLDER", raising=False)
    with pytest.raises(ValueError, match=next(iter(given))):
        running.begin(1, {"profile": "tiny", **given})
    assert not list(tmp_path.iterdir())


def test_a_notebook_run_by_hand_never_writes_into_a_finished_run(monkeypatch, tmp_path):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    monkeypatch.delenv("FIVELENSES_RUN_FOLDER", raising=False)
    begun = running.begin(1, {"profile": "tiny", "tasks": None, "pd": pd})
    assert begun.folder == tmp_path / "by-hand" / "tiny" / "1-attention-svcca"


def test_every_column_of_a_committed_record_is_in_the_codebook():
    named = set(re.findall(r"`([\w ]+)`", (project.root() / "book" / "codebook.md").read_text(encoding="utf-8")))
    for file in records.committed_folder().rglob("*.parquet"):
        assert set(pq.read_schema(file).names) <= named, file


def test_all_committed_records_are_small():
    size = sum(file.stat().st_size for file in records.committed_folder().rglob("*") if file.is_file())
    assert size <= publishing.MAX_RECORDS
