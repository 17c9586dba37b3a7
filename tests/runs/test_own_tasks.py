"""A reader's own task among a chapter's parameters: its table becomes a name, and it takes a task's roles."""

import pandas as pd
import pytest

from fivelenses import catalogue
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.store import Store
from fivelenses.exhibits import style
from fivelenses.runs import report
from fivelenses.runs.dry_run import dry_run
from fivelenses.runs.execution import RunError
from fivelenses.runs.own_tasks import name_of
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.publishing import publish
from fivelenses.runs.settings import settings
from fivelenses.runs.sweep_points import points


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    """A table of one text and a label, another of two texts, in the folder one is in."""
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    rows = [(f"the {animal} sleeps {n} times", animal) for n in range(40) for animal in ("hen", "dog")]
    frame = pd.DataFrame(rows, columns=["text", "label"])
    frame.to_csv("animals.csv", index=False)
    frame.assign(other="a dog").to_csv("pairs.csv", index=False)


def test_a_table_takes_the_schedule_and_the_roles_of_a_task_that_reads_as_many_texts():
    chosen = settings(4, "tiny", tasks=["./animals.csv", "pairs.csv"])
    one, two = chosen.tasks
    assert [catalogue.find(name).title for name in chosen.tasks] == ["animals", "pairs"]
    assert chosen.schedules[one] == chosen.schedules["sst2"] and chosen.schedules[two] == chosen.schedules["qnli"]
    assert chosen.sized_tasks() == chosen.matched_tasks() == [one, two]
    assert one in chosen.shuffled and two not in chosen.shuffled


def test_what_is_given_stays_as_it_is():
    schedule = {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2}
    given = {"tasks": ["animals.csv"], "sized": [], "schedules": {"animals.csv": schedule}}
    chosen = settings(4, "tiny", **given)
    assert chosen.sized == () and chosen.schedule(chosen.tasks[0]).batch_size == 8


def test_pairs_are_made_of_the_tasks_that_are_run():
    chosen = settings(1, "tiny", tasks=["animals.csv", "rte"])
    assert chosen.compared_pairs() == [("rte", chosen.tasks[0])]


@pytest.mark.parametrize("number", [1, 2, 4, 5, 6, 7])
def test_every_chapter_of_a_paper_takes_a_table_alone(number):
    assert settings(number, "tiny", tasks=["animals.csv"]).tasks == (name_of("animals.csv"),)


def test_a_surface_needs_a_second_task():
    with pytest.raises(ParameterError, match="animals needs another beside it"):
        settings(3, "tiny", tasks=["animals.csv"])
    chosen = settings(3, "tiny", tasks=["animals.csv", "cola"])
    assert chosen.second[chosen.tasks[0]] == "cola" and chosen.tasks[0] in chosen.followed_tasks()


@pytest.mark.parametrize("number", [0, 8])
def test_a_chapter_on_the_project_s_own_says_so(number):
    with pytest.raises(ParameterError, match=f"Chapter {number} is about .* so it does not take animals"):
        settings(number, "tiny", tasks=["animals.csv"])


def test_sweeps_and_reports_take_tables():
    found = points(1, "tiny", [{"task": "./animals.csv"}, {"task": "rte"}])
    assert found[0].values["task"] == name_of("animals.csv")
    parts = {part.chapter.number: part for part in report.plan("toy-bert/seed-1", tasks=["animals.csv", "rte"])}
    assert [catalogue.find(name).title for name in parts[1].tasks] == ["animals", "RTE"]
    assert [catalogue.find(name).title for name in parts[3].tasks] == ["animals", "CoLA"]
    assert all(part.narrowed for part in parts.values())


def test_it_is_trained_and_its_null_rate_told(tmp_path):
    chosen = settings(1, "tiny", tasks=["animals.csv"], seeds=[0], epochs=1, shuffled=[])
    made = prepare(chosen.specifications(), Store(), workers=1, log=lambda line: None)[0]
    assert made.manifest["null_rate"] == 0.5 and made.manifest["provenance"]["train"] == "whole, 64 examples"
    assert Store().strangers() == []
    assert "null rate 0.500" in "\n".join(dry_run(1, "tiny", {"tasks": ["animals.csv"]}))


def test_tables_have_looks_of_their_own():
    names = [name_of("animals.csv"), name_of("pairs.csv")]
    looks = style.looks_of_tasks([*names, "rte"])
    assert len(set(looks.colours.values())) == 3 and list(looks.names.values()) == ["animals", "pairs", "RTE"]
    assert not {looks.colours[name] for name in names} & set(style.TASK_COLOURS.values())


def test_a_run_on_a_table_is_not_published():
    with pytest.raises(RunError, match="animals is a table of your own, which readers .* do not have"):
        publish(1, "tiny", {"tasks": ["animals.csv"]})
