"""A reader's own task among a chapter's parameters: its table becomes a name, and the chapter takes its plain path."""

import pandas as pd
import pytest

from fivelenses import catalogue, exhibits, report
from fivelenses.chapters import ParameterError, settings
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.store import Store
from fivelenses.dry_run import dry_run
from fivelenses.execution import RunError, check_inputs
from fivelenses.publishing import publish
from fivelenses.sweep import points
from fivelenses.tasks.own import name_of

ANIMALS = "./animals.csv:label=animal"


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    """A table of one text and a class, another of two texts, in the folder one is in."""
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    rows = [(f"the {animal} sleeps {n} times", animal) for n in range(40) for animal in ("hen", "dog")]
    frame = pd.DataFrame(rows, columns=["text", "animal"])
    frame.to_csv("animals.csv", index=False)
    frame.assign(text2="a dog").rename(columns={"animal": "label"}).to_csv("pairs.csv", index=False)


def test_a_table_takes_the_first_schedule_of_texts_and_no_role():
    chosen = settings(4, "tiny", tasks=[ANIMALS, "pairs.csv"])
    assert [catalogue.find(name).title for name in chosen.tasks] == ["animals", "pairs"]
    assert {chosen.schedule(name) for name in chosen.tasks} == {chosen.schedule("sst2")}
    assert chosen.sized == chosen.matched == ()
    small = settings(1, "small", tasks=[ANIMALS])
    assert small.schedule_of(small.tasks[0], "sentence-transformers/all-MiniLM-L6-v2").learning_rate == 5e-5


def test_roles_and_schedules_come_from_the_caller():
    schedule = {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2}
    chosen = settings(4, "tiny", tasks=[ANIMALS], sized=[ANIMALS], schedules={ANIMALS: schedule})
    assert chosen.sized == chosen.tasks and chosen.schedule(chosen.tasks[0]).batch_size == 8


@pytest.mark.parametrize("number", [1, 4, 5, 6, 7])
def test_a_chapter_without_roles_takes_a_table_alone(number):
    assert settings(number, "tiny", tasks=[ANIMALS]).tasks == (name_of(ANIMALS),)


@pytest.mark.parametrize(
    ("number", "roles", "sentence"),
    [
        (2, {}, "followed has none of the tasks, animals"),
        (2, {"schedules": {"pos": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2}}}, "has none for animals"),
        (3, {}, "scratch_epochs has none for animals"),
        (3, {"scratch_epochs": {ANIMALS: 6}}, "name another of the tasks that are run"),
    ],
)
def test_a_chapter_that_needs_roles_says_which(number, roles, sentence):
    with pytest.raises(ParameterError, match=sentence):
        settings(number, "tiny", tasks=[ANIMALS], **roles)


def test_a_chapter_with_roles_takes_a_table_in_them():
    assert settings(2, "tiny", tasks=[ANIMALS], followed=[ANIMALS], tuned_on=[ANIMALS]).tasks
    both = {"tasks": [ANIMALS, "cola"], "second": {ANIMALS: "cola", "cola": ANIMALS}}
    assert settings(3, "tiny", **both, scratch_epochs={ANIMALS: 6, "cola": 6}).second["cola"] == name_of(ANIMALS)


def test_sweeps_and_reports_take_tables():
    assert points(1, "tiny", [{"task": ANIMALS}, {"task": "rte"}])[0].values["task"] == name_of(ANIMALS)
    parts = {part.chapter.number: part for part in report.plan("toy-bert/seed-1", tasks=[ANIMALS, "rte"])}
    assert parts[1].tasks == (name_of(ANIMALS), "rte") and parts[1].narrowed
    assert name_of(ANIMALS) not in parts[3].tasks and not parts[3].narrowed


def test_it_is_trained_and_its_classes_are_said_before():
    chosen = settings(1, "tiny", tasks=["pairs.csv"], seeds=[0], epochs=1, shuffled=[])
    lines = []
    check_inputs(chosen, lines.append)
    assert len(lines) == 1 and "development examples dog 32 + 8, hen 32 + 8 (" in lines[0]
    made = prepare(chosen.specifications(), Store(), workers=1, log=lambda line: None)[0]
    assert made.manifest["null_rate"] == 0.5 and made.manifest["provenance"]["train"] == "whole, 64 examples"
    assert "null rate 0.500" in "\n".join(dry_run(1, "tiny", {"tasks": ["pairs.csv"]}))


def test_tables_have_looks_of_their_own():
    looks = exhibits.looks([name_of(ANIMALS), name_of("pairs.csv"), "rte"])
    assert len({colour for colour, _ in looks.values()}) == 3


def test_a_run_on_a_table_is_not_published():
    with pytest.raises(RunError, match="animals is a table of your own, which readers .* do not have"):
        publish(1, "tiny", {"tasks": [ANIMALS]})
