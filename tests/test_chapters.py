"""The parameters of the chapters: what a profile, a reader's values and tables of their own become."""

import shutil

import jupytext
import pandas as pd
import pytest
from transformers import AutoModelForSequenceClassification

from fivelenses import catalogue, report
from fivelenses.book.pages import publish
from fivelenses.chapters import CHAPTERS, PROFILES, ParameterError, chapters_on, parse_parameters, settings
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.store import Store
from fivelenses.execution import RunError
from fivelenses.inputs import check_inputs, dry_run
from fivelenses.models import encoders
from fivelenses.sweep import points
from fivelenses.tasks.own import name_of


def test_the_paper_profile_has_the_numbers_of_table_1():
    parameters = settings(1, "paper")
    printed = {"mnli": (3e-5, 64, 3), "rte": (1e-5, 32, 5), "sst2": (3e-5, 64, 4), "mrpc": (1e-5, 16, 5)}
    for task, (rate, batch, epochs) in printed.items():
        schedule = parameters.schedules[task]
        assert (schedule.learning_rate, schedule.batch_size, schedule.epochs) == (rate, batch, epochs)


@pytest.mark.parametrize("number", sorted(CHAPTERS))
def test_the_parameters_cell_names_every_parameter_once(number):
    chapter = CHAPTERS[number]
    notebook = jupytext.read(chapter.notebook.with_suffix(".py"))
    cells = [cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(cells) == 1
    values: dict = {}
    exec(cells[0], values)  # the cell holds assignments only
    values.pop("__builtins__")
    assert values.pop("profile") == "tiny"
    assert set(values) == set(chapter.parameters.model_fields)
    assert not any(values.values())


@pytest.mark.parametrize(
    ("number", "given"), [(1, {"evaluation_examples": 5}), (1, {"mixed_examples": 3}), (6, {"evaluation_examples": 5})]
)
def test_too_few_examples_to_compare_are_refused_before_a_training(number, given):
    with pytest.raises(ValueError, match="of two layers of width 64 needs more than 128: take more examples"):
        check_inputs(settings(number, "tiny", tasks=["cola", "sst2"], **given))


@pytest.mark.parametrize(("written", "read"), [("010", 10), ("[010]", [10]), ("[0,1:30]", [0, "1:30"])])
def test_numbers_are_those_of_yaml_1_2(written, read):
    assert parse_parameters([f"value={written}"]) == {"value": read}


def test_one_value_of_a_parameter_that_holds_several_is_its_one_entry():
    given = parse_parameters(["tasks=rte", "seeds=3", "learning_rate=1e-4"])
    chosen = settings(1, "tiny", **given)
    assert (chosen.tasks, chosen.seeds) == (("rte",), (3,))
    assert chosen.schedule_of("rte", chosen.encoder).learning_rate == 1e-4
    assert settings(4, "tiny", fractions=0.5, depths=3).depths == (3,)


def test_a_list_needs_no_brackets_on_the_command_line():
    given = parse_parameters(["tasks=rte,sst2", "seeds=0,1", "encoder='a,b'", "shuffled=[]"])
    assert given == {"tasks": ["rte", "sst2"], "seeds": [0, 1], "encoder": "a,b", "shuffled": []}
    columns = "./a.csv:text=body,label=stars"
    assert parse_parameters([f"tasks={columns}"]) == {"tasks": columns}


def test_layers_are_numbers_or_shares_of_all_and_those_beyond_the_encoder_are_said_to_be_left_out():
    assert settings(4, "tiny", depths=[0, 0.5, 1.0, 3]).reinitialised(6) == [0, 3, 6]
    lines, chosen = [], settings(5, "tiny", frozen=[3, 6, 9, 12], truncated=7)
    check_inputs(chosen, lines.append)
    assert lines == [f"left out: {one}, as toy-bert/seed-0 has 6 layers" for one in ("frozen 9 and 12", "truncated 7")]
    assert set(lines) < set(dry_run(5, [chosen]))


def test_a_folder_of_an_encoder_is_named_in_full(tmp_path, monkeypatch):
    # A notebook runs in another folder, from which a relative path would name another.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    place = str(tmp_path / "mine")
    chosen = settings(5, "tiny", encoder="mine", pretrained=["./mine", "toy-bert/seed-0"])
    assert (chosen.encoder, chosen.pretrained) == (place, (place, "toy-bert/seed-0"))
    assert settings(6, "tiny", independent="random:mine").independent == f"random:{place}"


def test_encoders_of_the_profiles_are_read_at_a_commit_where_one_is_known():
    of_profiles = [settings(one.number, profile) for profile in ("tiny", "paper") for one in chapters_on(profile)]
    names = {name.removeprefix("random:") for one in of_profiles for name in one.encoders_read()}
    assert {name for name in names if "/seed-" not in name and name not in encoders.REVISIONS} == {
        *(f"google/bert_uncased_{shape}" for shape in ("L-4_H-512_A-8", "L-8_H-512_A-8", "L-12_H-768_A-12")),
        *(f"google/multiberts-seed_{seed}" for seed in range(2)),
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_chapter_6_asks_for_the_models_of_chapter_1_and_for_no_others(profile):
    first, sixth = settings(1, profile), settings(6, profile)
    assert set(sixth.tasks) <= set(first.tasks)
    for name in ("encoder", "source", "training_examples", "seeds"):
        assert getattr(sixth, name) == getattr(first, name)
    assert all(sixth.schedules[task] == first.schedules[task] for task in sixth.tasks)
    assert sixth.encoders_read() == (sixth.encoder, sixth.independent)


def test_a_head_of_an_earlier_training_is_named(tmp_path):
    folder = shutil.copytree(encoders.locate("toy-bert/seed-0").place, tmp_path / "fine-tuned")
    AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3).save_pretrained(folder)
    lines = []
    check_inputs(settings(1, "tiny", encoder=str(folder)), lines.append)
    assert lines == [
        f"{folder}: its old head (BertForSequenceClassification) is left out, and each model's new one is "
        "drawn by its seed"
    ]


ANIMALS = "./animals.csv:label=animal"


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A table of one text and a class, another of two texts, in the folder one is in."""
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    rows = [(f"the {animal} sleeps {n} times", animal) for n in range(40) for animal in ("hen", "dog")]
    frame = pd.DataFrame(rows, columns=["text", "animal"])
    frame.to_csv("animals.csv", index=False)
    frame.assign(text2="a dog").rename(columns={"animal": "label"}).to_csv("pairs.csv", index=False)


def test_a_table_takes_the_first_schedule_of_texts_and_no_role_but_those_of_the_caller(tables):
    chosen = settings(4, "tiny", tasks=[ANIMALS, "pairs.csv"])
    assert [catalogue.find(name).title for name in chosen.tasks] == ["animals", "pairs"]
    assert {chosen.schedule_of(name, chosen.encoder) for name in chosen.tasks} == {chosen.schedules["sst2"]}
    assert chosen.sized == chosen.matched == ()
    schedule = {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2}
    chosen = settings(4, "tiny", tasks=[ANIMALS], sized=[ANIMALS], schedules={ANIMALS: schedule})
    assert chosen.sized == chosen.tasks and chosen.schedules[chosen.tasks[0]].batch_size == 8


@pytest.mark.parametrize("number", CHAPTERS)
def test_a_table_is_a_chapters_only_task_with_the_roles_that_it_needs(number, tables):
    roles = {"followed": [ANIMALS], "tuned_on": [ANIMALS]} if number == 2 else {}
    if number == 3:
        roles = {"second": {ANIMALS: "cola", "cola": ANIMALS}, "scratch_epochs": {ANIMALS: 6, "cola": 6}}
    chosen = [ANIMALS, "cola"] if number == 3 else [ANIMALS]
    assert name_of(ANIMALS) in settings(number, "tiny", tasks=chosen, **roles).tasks
    if roles:
        with pytest.raises(ParameterError, match="has none.* animals"):
            settings(number, "tiny", tasks=[ANIMALS])


def test_sweeps_and_reports_take_tables(tables):
    assert points(1, "tiny", {"tasks": [ANIMALS, "sst2"]})[0].values["tasks"] == name_of(ANIMALS)
    jobs = {job.chapter.number: job for job in report.plan("toy-bert/seed-1", tasks=[ANIMALS, "sst2"])}
    assert [catalogue.find(name).title for name in jobs[1].overrides["tasks"]] == ["animals", "SST-2"]
    assert "tasks" not in jobs[3].overrides


def test_a_table_is_trained_and_its_classes_are_said_before(tables):
    chosen = settings(1, "tiny", tasks="pairs.csv", seeds=0, epochs=1, shuffled=[])
    lines = []
    check_inputs(chosen, lines.append)
    assert len(lines) == 1 and "development examples dog 32 + 8, hen 32 + 8 (" in lines[0]
    assert "null rate 0.500" in "\n".join(dry_run(1, [chosen]))
    made = prepare(chosen.specifications(), Store(), workers=1, log=lambda line: None)[0]
    assert made.manifest["null_rate"] == 0.5 and made.manifest["provenance"]["train"] == "whole, 64 examples"


def test_a_run_on_a_table_is_not_published(tables):
    with pytest.raises(RunError, match="animals is a table of your own, which readers .* do not have"):
        publish(1, "tiny", {"tasks": [ANIMALS]})


@pytest.mark.parametrize("chapter", [3, 6])
def test_random_weights_are_not_compared_with_random_weights(chapter):
    with pytest.raises(ParameterError, match="name a pre-trained one"):
        settings(chapter, "tiny", encoder="random:toy-bert/seed-0")
