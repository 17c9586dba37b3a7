"""A run and its records: what is measured, what is read, and in which parts."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fivelenses import inputs, processes, records
from fivelenses.chapters import CHAPTERS, settings
from fivelenses.checkpoints import finetuning
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.files import RunError
from fivelenses.records import Identity, Missing, Record
from fivelenses.run import Run

FACTS = {"seconds": 1.0, "tables": 1, "trained": {}, "device": "CPU", "python": "3", "versions": {}}

calls: list = []


def count(seeds: tuple[int, ...], factor: int = 1, log=print) -> pd.DataFrame:
    """A measurement that takes a parameter of the chapter, one of its own, and tells how often it was made."""
    calls.append(factor)
    log("measuring")
    return pd.DataFrame({"seed": list(seeds), "value": [factor * seed for seed in seeds]})


def several(seeds: tuple[int, ...]) -> dict[str, pd.DataFrame]:
    return {"first": pd.DataFrame({"a": list(seeds)}), "second": pd.DataFrame({"b": [0]})}


@pytest.fixture
def run(tmp_path, monkeypatch):
    calls.clear()
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(records, "measuring_code", lambda module: "c0de")
    chapter = replace(CHAPTERS[1], measures=(__name__,))
    return Run(chapter, "tiny", settings(1, "tiny", tasks=["cola", "rte", "sst2"], seeds=[1, 2]), tmp_path)


def test_what_was_measured_is_measured_again_for_another_parameter_or_other_code_alone(run, monkeypatch):
    first = run.measure("count")
    again = Run(run.chapter, run.profile, run.settings, run.folder).measure("count")
    pd.testing.assert_frame_equal(first, again)
    assert calls == [1] and first["value"].tolist() == [1, 2]
    run.measure("count", factor=2)
    monkeypatch.setattr(records, "measuring_code", lambda module: "d0ne")
    run.measure("count")
    assert calls == [1, 2, 1]


def test_a_full_disk_is_said_before_anything_is_measured(run, monkeypatch):
    monkeypatch.setattr(inputs, "MIN_DISK", 10**18)
    with pytest.raises(RunError, match="make room"):
        run.measure("count")
    assert not calls


def test_values_are_measured_one_after_another_and_only_those_that_are_new(run):
    run.measure("count", over={"factor": [1, 2]})
    table = run.measure("count", over={"factor": [1, 2, 3]})
    assert calls == [1, 2, 3] and table["value"].tolist() == [1, 2, 2, 4, 3, 6]


def test_a_measurement_of_nothing_says_so_where_it_is_published(run):
    reason = "its parameters leave it out"
    assert run.measure("count", over={"factor": []}) == Missing("count", reason)
    assert run.not_measured == {"count": reason}


def test_a_measurement_may_give_several_tables_and_is_made_again_if_it_was_killed_between_two(run):
    for _ in range(2):
        tables = run.measure("several")
        assert {name: list(table.columns) for name, table in tables.items()} == {"first": ["a"], "second": ["b"]}
        next(iter((run.folder / "runs" / "records" / run.chapter.slug).glob("several.second.*"))).unlink()


def test_a_damaged_record_is_measured_again_with_a_line_that_says_so(run, capsys):
    first = run.measure("count")
    [file] = (run.folder / "runs" / "records" / run.chapter.slug).glob("count.*")
    file.write_bytes(file.read_bytes()[:100])
    pd.testing.assert_frame_equal(Run(run.chapter, run.profile, run.settings, run.folder).measure("count"), first)
    assert calls == [1, 1] and "it is measured again" in capsys.readouterr().out


def of_models(checkpoints, seeds: tuple[int, ...]) -> pd.DataFrame:
    return pd.DataFrame({"model": [one.folder.name for one in checkpoints]})


def of_pair(checkpoints, pair) -> pd.DataFrame:
    return of_models(checkpoints, ()).assign(pair="–".join(pair), models=len(checkpoints))


@pytest.fixture
def trained(monkeypatch):
    """What a run asked to be trained, of which nothing is."""
    asked = []

    def prepare(specifications, log, device):
        asked.extend(f"{one.task}-{one.seed}" for one in specifications)
        return [Checkpoint(Path(f"{one.task}-{one.seed}"), {"seconds": 1.0}) for one in specifications]

    monkeypatch.setattr(finetuning, "prepare", prepare)
    return asked


def test_a_checkpoint_is_checked_once_in_a_run_and_not_at_all_for_a_part_that_is_kept(run, trained):
    run.measure("of_models", of={"task": "cola"}, each=("task", "seed"))
    table = Run(run.chapter, run.profile, run.settings, run.folder).measure("of_models", each=("task", "seed"))
    every = [f"{one.task}-{one.seed}" for one in run.settings.specifications()]
    assert sorted(table["model"]) == sorted(trained) == sorted(every)


def test_a_value_is_measured_on_its_own_models_and_a_run_of_more_takes_what_was_measured_before(run, trained):
    def models(pair):
        return [one for one in run.settings.specifications() if one.task in pair and not one.shuffled_labels]

    asked = {"of": models, "each": "seed"}
    run.measure("of_pair", **asked, over={"pair": [("cola", "rte")]})
    trained.clear()
    again = Run(run.chapter, run.profile, run.settings, run.folder)
    table = again.measure("of_pair", **asked, over={"pair": [("cola", "rte"), ("rte", "sst2"), ()]})
    assert table.groupby("pair")["model"].apply(sorted).to_dict() == {
        "cola–rte": ["cola-1", "cola-2", "rte-1", "rte-2"],
        "rte–sst2": ["rte-1", "rte-2", "sst2-1", "sst2-2"],
    }
    assert sorted(trained) == ["rte-1", "rte-2", "sst2-1", "sst2-2"]
    assert len(again.summary()["records"]["of_pair"]) == 5 and table["models"].eq(2).all(), "one is of no model"


def test_what_measuring_held_is_told_by_a_run_that_only_reads_the_record(run, monkeypatch):
    for most in (8e9, 2e9):
        monkeypatch.setattr(processes, "peak_memory", lambda most=most: most)
        again = Run(run.chapter, run.profile, run.settings, run.folder)
        again.measure("count")
        assert again.summary()["peak_memory"] == 8e9
    assert calls == [1]


def test_a_name_that_nothing_measures_is_refused(run):
    with pytest.raises(LookupError, match=f"No function 'counts' measures in this chapter: .* {__name__}."):
        run.measure("counts")


def test_a_published_run_reads_and_never_measures(run, tmp_path):
    folder = tmp_path / "committed"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"not_measured": {"several": "it took too long"}}))
    for code, outdated in (("c0de", []), ("older", ["count"])):
        record = Record(pd.DataFrame({"value": [7]}), Identity("count", code, {}, ("a",)), FACTS)
        records.write(folder / "count.parquet", record)
        published = Run(run.chapter, run.profile, run.settings, run.folder, folder)
        assert published.measure("count")["value"].tolist() == [7] and not calls
        assert published.outdated == outdated and published.summary()["specifications"] == ["a"]
    lacking = published.measure("of_models", over=lambda: 1 / 0)
    assert lacking == Missing("of_models", "it was published before chapters measured this")
    assert published.measure("several") == Missing("several", "it took too long")
