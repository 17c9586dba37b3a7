import json
import re

import jupytext
import pandas as pd
import pytest
from typer.testing import CliRunner

from fivelenses import dry_run, project, records
from fivelenses.chapters import CHAPTERS, parse_parameters, profiles, settings
from fivelenses.cli import app
from fivelenses.dry_run import dry_sweep
from fivelenses.models.encoders import REVISIONS
from fivelenses.sweep import Point


def test_every_profile_fits_every_chapter():
    assert profiles() == ["paper", "small", "tiny"]
    for number in CHAPTERS:
        for profile in profiles():
            if profile in CHAPTERS[number].profiles:
                settings(number, profile)


def test_the_paper_profile_has_the_numbers_of_table_1():
    parameters = settings(1, "paper")
    printed = {"mnli": (3e-5, 64, 3), "rte": (1e-5, 32, 5), "sst2": (3e-5, 64, 4), "mrpc": (1e-5, 16, 5)}
    for task, (rate, batch, epochs) in printed.items():
        schedule = parameters.schedule(task)
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


def test_one_learning_rate_for_all_tasks():
    parameters = settings(1, "tiny", learning_rate=5e-4)
    assert {parameters.schedule(task).learning_rate for task in parameters.tasks} == {5e-4}


def test_pairs_of_tasks_that_are_not_run_are_left_out():
    assert settings(1, "tiny", tasks=["rte", "sst2"]).dataset_pairs == (("rte", "sst2"),)


@pytest.mark.parametrize("number", sorted(CHAPTERS))
def test_every_chapter_has_a_dry_run_of_all_its_models(number):
    result = CliRunner().invoke(app, ["run", str(number), "--profile", "tiny", "--dry-run"])
    assert result.exit_code == 0
    assert f"chapter {number}, profile tiny: toy-bert/seed-0" in result.stdout
    assert "from the toy world, generated" in result.stdout
    models = map(int, re.findall(r"(\d+) models? to train", result.stdout))
    stored = map(int, re.findall(r"(\d+) in the store", result.stdout))
    assert sum(models) + sum(stored) == len(settings(number, "tiny").specifications())


@pytest.mark.parametrize("number", [number for number, chapter in CHAPTERS.items() if "paper" in chapter.profiles])
def test_a_dry_run_says_what_the_paper_would_take_without_a_network(number):
    result = CliRunner().invoke(app, ["run", str(number), "--profile", "paper", "--dry-run"])
    assert result.exit_code == 0 and "can be counted when" not in result.stdout
    assert "GB of disk" in result.stdout and "times the published run's" in result.stdout


def test_a_dry_run_of_the_published_run_takes_what_it_took():
    folder = next(file.parent for file in records.committed_folder().glob("small-all-MiniLM*/1-*/run.json"))
    facts = json.loads((folder / "run.json").read_text())
    work = dry_run._published_work(pd.read_parquet(folder / "models.parquet"))
    took = dry_run.duration(facts["seconds"] + facts["training_seconds"])
    assert dry_run._time(1, work)[0].startswith(f"about 1 times the published run's {took} ")
    assert dry_run._time(1, 3 * work)[0].startswith("about 3 times")


def test_a_dry_run_of_a_sweep_says_what_each_point_takes_and_counts_a_model_of_two_points_once(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    grid = ["--grid", "task=rte,mrpc", "evaluation_examples=100,200"]
    result = CliRunner().invoke(app, ["sweep", "1", *grid, "--dry-run"])
    assert result.exit_code == 0 and "4 points, 0 current, 4 to run" in result.stdout
    trained = re.findall(r"^(task=\S+): .*?(\d+) models? to train", result.stdout, re.MULTILINE)
    assert [(point, int(models) > 0) for point, models in trained] == [
        ("task=rte,evaluation_examples=100", True),
        ("task=rte,evaluation_examples=200", False),
        ("task=mrpc,evaluation_examples=100", True),
        ("task=mrpc,evaluation_examples=200", False),
    ]
    assert result.stdout.count("data: RTE from the toy world") == 1
    assert "times the published run's" in result.stdout
    assert not (tmp_path / "runs").exists() and not (tmp_path / "store").exists()


def test_a_dry_run_of_a_sweep_leaves_out_the_points_that_are_current():
    of = [Point("seed=0", {"seeds": [0]}, {"seed": 0}), Point("seed=1", {"seeds": [1]}, {"seed": 1})]
    lines = dry_sweep(1, "tiny", of, current=["seed=0"])
    assert lines[0] == "chapter 1, profile tiny: 2 points, 1 current, 1 to run"
    assert not any(line.startswith("seed=0") for line in lines) and any(line.startswith("seed=1") for line in lines)
    assert dry_sweep(1, "tiny", of, current=["seed=0", "seed=1"]) == [
        "chapter 1, profile tiny: 2 points, 2 current, 0 to run"
    ]


def test_a_dry_run_names_what_is_read_besides_the_tasks():
    lines = CliRunner().invoke(app, ["run", "5", "--profile", "paper", "--dry-run"]).stdout
    assert "data: WikiText-2 from" in lines and "data: Parsing from" in lines


def test_encoders_of_the_profiles_are_read_at_a_commit_where_one_is_known():
    chosen = [
        settings(number, profile)
        for number, chapter in CHAPTERS.items()
        for profile in chapter.profiles
        if profile != "small"
    ]
    names = {name.removeprefix("random:") for one in chosen for name in one.encoders_read()}
    assert {name for name in names if "/seed-" not in name and name not in REVISIONS} == {
        *(f"google/bert_uncased_{shape}" for shape in ("L-4_H-512_A-8", "L-8_H-512_A-8", "L-12_H-768_A-12")),
        *(f"google/multiberts-seed_{seed}" for seed in range(2)),
    }


def test_a_folder_of_an_encoder_is_named_in_full(tmp_path, monkeypatch):
    # A notebook runs in another folder, from which a relative path would name another.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    place = str(tmp_path / "mine")
    chosen = settings(5, "tiny", encoder="mine", pretrained=["./mine", "toy-bert/seed-0"])
    assert (chosen.encoder, chosen.pretrained) == (place, (place, "toy-bert/seed-0"))
    assert settings(6, "tiny", independent="random:mine").independent == f"random:{place}"


def test_the_first_example_of_the_readme_shows_every_figure_of_its_chapter():
    readme = (project.root() / "README.md").read_text(encoding="utf-8")
    number, given = re.search(r"fivelenses run (\d) ((-p \S+ ?)+)", readme).groups()[:2]
    overrides = parse_parameters([pair.replace("'", "") for pair in given.split("-p ")[1:]])
    chosen, usual = (settings(int(number), "tiny", **some) for some in (overrides, {}))
    # The profile's tasks are those that its encoder learns.
    assert {*chosen.tasks} <= {*usual.tasks}
    assert chosen.dataset_pairs and {*chosen.tasks} & {*chosen.shuffled}
