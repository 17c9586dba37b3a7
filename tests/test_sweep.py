"""Sweeps: points, the tables of many runs, and a small notebook with real workers, one of which is killed."""

import re
import threading
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest
from typer.testing import CliRunner

from fivelenses import sweep as sweeps
from fivelenses.cli import app
from fivelenses.sweep import points, sweep
from tests.homes import BEGIN, make_home, write_notebook


def test_a_grid_of_two_names_by_hand():
    made = points(1, "tiny", {"tasks": ["rte", ["rte", "cola"]], "epochs": [1, 0.5, 1.0]}, {"seeds": [3]})
    assert [point.name for point in made] == [
        "1-tasks=rte,epochs=1",
        "2-tasks=rte,epochs=0.5",
        "3-tasks=-rte-,-cola-,epochs=1",
        "4-tasks=-rte-,-cola-,epochs=0.5",
    ]
    assert made[1].job.overrides == {"seeds": [3], "tasks": ["rte"], "epochs": 0.5}
    assert [point.values for point in made[1:3]] == [
        {"tasks": "rte", "epochs": 0.5},
        {"tasks": '["rte", "cola"]', "epochs": 1.0},
    ]


@pytest.mark.parametrize("encoder", ["google-bert/bert-base-uncased", "/a/very/long/path" * 20, "with spaces"])
def test_the_name_of_a_point_is_the_name_of_a_file(encoder):
    names = [point.name for point in points(1, "tiny", {"encoder": [encoder, f"{encoder}x"]})]
    assert len(set(names)) == 2
    assert all(len(name) <= 60 and re.fullmatch(r"[\w.,=+-]+", name) for name in names)


def test_a_column_is_numbers_or_text_and_may_have_the_name_of_a_swept_parameter(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps.judging, "load", lambda run: None)
    monkeypatch.setattr(sweeps.judging, "as_table", lambda _: pd.DataFrame({"claim": ["rises"], "low": 0.1}))
    first = pd.DataFrame({"seed": [3], "diverged": True, "steps": [[1, 2]], "mixed": 1.5, "point": "x"})
    second = pd.DataFrame({"seed": ["0–1"], "diverged": [2], "steps": [np.array([3])], "mixed": ["few"]})
    swept = []
    for name, rate, low, table in (("p", 0.1, -2, first), ("q", None, "[-2, -4]", second)):
        job = SimpleNamespace(place=tmp_path / name, chapter=SimpleNamespace(number=3), profile="tiny")
        job.place.mkdir()
        (job.place / "run.json").write_text('{"exhibits": ["toy"], "records": {}}')
        table.to_parquet(job.place / "toy.parquet")
        swept.append(SimpleNamespace(job=job, name=name, values={"rate": rate, "low": low}))
    sweeps.collect(swept, tmp_path)
    read, claims = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("sweep", "claims"))
    assert list(read)[:7] == ["chapter", "profile", "point", "rate", "low", "exhibit", "row"]
    assert list(read)[7:] == ["seed", "diverged", "steps", "mixed", "table_point"]
    assert read["seed"].tolist() == ["3", "0–1"] and read["diverged"].tolist() == [1, 2]
    assert read["steps"].tolist() == ["[1, 2]", "[3]"] and read["mixed"].tolist() == ["1.5", "few"]
    # Also where a point leaves it open.
    assert pd.api.types.is_float_dtype(read["rate"]) and np.isnan(read["rate"][1])
    assert claims["low"].tolist() == ["-2", "[-2, -4]"] and claims["table_low"].tolist() == [0.1, 0.1]


PATIENCE = 300  # seconds, for a machine with busy neighbours
PARAMETERS = 'profile = "tiny"\nseeds = None\ntasks = None'
# The first two seeds wait to be let go, and for each other where they need the same checkpoint; the third fails. All
# that comes before a run begins, so that one that is killed or fails has imported little; names are no parameters.
WAITING = f"""
import os, pathlib, time
from fivelenses.files import RunError
home = pathlib.Path(os.environ["FIVELENSES_HOME"])
def wait_for(name):
    deadline = time.monotonic() + {PATIENCE}
    while not (home / name).exists():
        assert time.monotonic() < deadline, name
        time.sleep(0.05)
if seeds[0] == 2:
    raise RunError("there is no third seed")
with (home / f"processes-{{seeds[0]}}").open("a") as processes:
    processes.write(f"{{os.getpid()}}\\n")
wait_for("go")
"""
MEASURING = """
import pandas as pd
from fivelenses.checkpoints import finetuning
from fivelenses.checkpoints.specification import Schedule, specify
from fivelenses.judging import over_seeds
train = finetuning._train
def counted(*arguments):
    with (home / "trainings").open("a") as trainings:
        trainings.write(f"{seed}\\n")
    return train(*arguments)
finetuning._train = counted
seed = seeds[0]
(home / f"ready-{seed}").touch()
wait_for(f"ready-{1 - seed}")
schedule = Schedule(1e-3, 16, 1, max_length=64)
run.measure("models", of=lambda: [specify("toy-bert/seed-0", "rte", "toyworld", 0, schedule, examples=32)])
table = pd.DataFrame({"layer": [1, 2], "seed": "all", "value": [seed + 0.25, seed + 0.5]})
run.table("Toy table", table, "A caption.")
@run.claim("rises", "It rises.", "p. 1", table)
def growth(table):
    return {"rte": over_seeds([[1.0, 1.1, 0.9], [-1.0, -1.1, -0.9]][seed])}
run.finish()
"""


def wait_until(holds) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not holds():
        time.sleep(0.05)
    return holds()


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Three points on two workers; the worker of the first is killed while both run."""
    home, ended, over = tmp_path_factory.mktemp("home"), [], threading.Event()

    def kill_a_worker():
        begun = [home / "processes-0", home / "processes-1"]
        wait_until(lambda: over.is_set() or all(file.is_file() and file.read_text() for file in begun))
        if over.is_set():
            return
        notebook = int(begun[0].read_text())
        psutil.Process(notebook).parent().kill()
        ended.append(wait_until(lambda: not psutil.pid_exists(notebook)))
        (home / "go").touch()

    with pytest.MonkeyPatch.context() as patch:
        make_home(home, patch)
        write_notebook(WAITING, BEGIN, MEASURING, parameters=PARAMETERS)
        killer = threading.Thread(target=kill_a_worker)
        killer.start()
        command = ["sweep", "1", "--grid", "seeds=0,1,2", "-p", "tasks=rte", "--name", "toy", "--workers", "2"]
        result = CliRunner().invoke(app, command)
        over.set()
        killer.join()
        folder = home / "runs" / "sweeps" / "toy"
        table = pd.read_parquet(folder / "sweep.parquet")
        yield SimpleNamespace(home=home, result=result, folder=folder, table=table, notebook_ended=ended == [True])


def test_the_notebook_of_a_killed_worker_ends_with_it_and_the_point_begins_again(swept):
    assert swept.notebook_ended and (swept.folder / "1-seeds=0.log").read_text().count("begins on") == 2
    assert len((swept.home / "processes-0").read_text().split()) == 2
    assert len((swept.home / "processes-1").read_text().split()) == 1


def test_a_sweep_that_lost_a_worker_ends_with_the_same_tables(swept):
    rows = swept.table[swept.table["exhibit"] == "hao2020-toy-table"]
    expected = [[0, 0, 0.25], [0, 1, 0.5], [1, 0, 1.25], [1, 1, 1.5]]
    assert rows[["seeds", "row", "value"]].values.tolist() == expected and set(rows["seed"]) == {"all"}
    verdicts = pd.read_parquet(swept.folder / "claims.parquet")
    assert verdicts[["seeds", "claim", "verdict", "group", "part", "outcome"]].values.tolist() == [
        [0, "rises", "reproduced", "RTE", "growth", "holds"],
        [1, "rises", "contradicted", "RTE", "growth", "fails"],
    ]


def test_two_points_that_need_one_checkpoint_train_it_once(swept):
    assert len((swept.home / "trainings").read_text().split()) == 1
    models = swept.table[swept.table["exhibit"] == "models"]
    assert models["point"].tolist() == ["1-seeds=0", "2-seeds=1"]
    assert models["address"].nunique() == models["score"].nunique() == 1


def test_progress_is_a_line_per_event_and_a_point_that_fails_is_tried_again_and_reported_at_the_end(swept):
    lines = swept.result.stdout.splitlines()
    assert lines[0] == "sweep toy: 3 points, 0 current, 3 to run"
    assert sum("done in" in line for line in lines) == 2
    assert lines[-1].startswith("2 of 3 points have a run; their exhibits are in ")
    assert swept.result.exit_code == 1
    assert "3-seeds=2: failed: Chapter 1, tiny: there is no third seed (" in swept.result.stdout  # in one sentence
    log = swept.folder / "3-seeds=2.log"
    assert swept.result.stderr == f"fivelenses: 3-seeds=2 has no run; its log is {log}\n"
    assert log.read_text().count("failed: Chapter 1, tiny: there is no third seed\n") == 2


def test_a_sweep_whose_points_are_current_runs_nothing(swept, monkeypatch, capsys):
    monkeypatch.setattr(sweeps, "connect", None)
    made = points(1, "tiny", {"seeds": [1, 0]}, {"tasks": "rte"})
    folder, missing = sweep(made)
    assert "2 points, 2 current, 0 to run" in capsys.readouterr().out and not missing
    again = pd.read_parquet(folder / "sweep.parquet")
    pd.testing.assert_frame_equal(
        again.sort_values(["seeds", "exhibit", "row"], ignore_index=True).drop(columns="point"),
        swept.table.sort_values(["seeds", "exhibit", "row"], ignore_index=True).drop(columns="point"),
    )
    # The same points are the same sweep, in whatever order, and others are not.
    assert sweep(made[::-1])[0] == folder and sweep(made[:1])[0] != folder


def test_a_done_point_is_done_and_a_lost_one_is_named(swept, monkeypatch):
    # The cluster forgets what was done when its workers are lost; the disk does not.
    made = points(1, "tiny", {"seeds": [0, 5]}, {"tasks": "rte"})
    monkeypatch.setattr(sweeps, "_run", lambda *_: None)
    folder, missing = sweep(made, "lost")
    assert missing == ["2-seeds=5"]
    assert set(pd.read_parquet(folder / "sweep.parquet")["point"]) == {"1-seeds=0"}


def test_slurm_jobs_run_one_point_at_a_time_on_all_their_cores(monkeypatch, tmp_path):
    dask_jobqueue, asked = pytest.importorskip("dask_jobqueue"), {}

    class Cluster:
        def __init__(self, **options):
            asked.update(options)
            raise ValueError("no such queue")

    monkeypatch.setattr(dask_jobqueue, "SLURMCluster", Cluster)
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    options = {"gpu": True, "slurm": "queue=gpu,cores=8,memory=32GB"}
    with pytest.raises(sweeps.RunError, match="There is no sbatch here"):
        sweeps.connect(3, **options).__enter__()
    monkeypatch.setattr(sweeps.shutil, "which", lambda _: "/usr/bin/sbatch")
    with pytest.raises(sweeps.RunError, match="No Slurm job can be made of .*no such queue"):
        sweeps.connect(3, **options).__enter__()
    assert (asked["queue"], asked["memory"], asked["cores"], asked["job_cpu"]) == ("gpu", "32GB", 1, 8)
    assert asked["job_script_prologue"] == ["export OMP_NUM_THREADS=8"]
    assert asked["job_extra_directives"] == ["--gres=gpu:1"]
