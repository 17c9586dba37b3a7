"""Sweeps of a small notebook with real worker processes, one of which is killed while it runs a point."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import psutil
import pytest
from click.testing import Result
from tests.runs.conftest import make_home, write_notebook
from typer.testing import CliRunner

from fivelenses import sweep as sweeps
from fivelenses.cli import app
from fivelenses.sweep import expand, points, sweep

PATIENCE = 300  # seconds, for a machine with busy neighbours
PARAMETERS = 'profile = "tiny"\nseeds = None\ntasks = None'
BEGIN = "from fivelenses.run import begin\nrun = begin(1, globals())"
# The first two seeds wait to be let go, and for each other where they need the same checkpoint; the third fails.
WAITING = f"""
import os, pathlib, time
home, seed = pathlib.Path(os.environ["FIVELENSES_HOME"]), seeds[0]
def wait_for(name):
    deadline = time.monotonic() + {PATIENCE}
    while not (home / name).exists():
        assert time.monotonic() < deadline, name
        time.sleep(0.05)
if seed == 2:
    raise RuntimeError("there is no third seed")
with (home / f"processes-{{seed}}").open("a") as processes:
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


@dataclass
class Swept:
    """What is left of the sweep with a killed worker: its printed result, its folder, and what was killed."""

    home: Path
    result: Result
    notebook_ended: bool

    @property
    def folder(self) -> Path:
        return self.home / "runs" / "sweeps" / "toy"

    @property
    def table(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "sweep.parquet")


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
        write_notebook(BEGIN, WAITING, MEASURING, parameters=PARAMETERS)
        killer = threading.Thread(target=kill_a_worker)
        killer.start()
        command = ["sweep", "1", "--grid", "seed=0,1,2", "-p", "tasks=[rte]", "--name", "toy", "--workers", "2"]
        result = CliRunner().invoke(app, command)
        over.set()
        killer.join()
        yield Swept(home, result, ended == [True])


def test_the_notebook_of_a_killed_worker_ends_with_it_and_the_point_begins_again(swept):
    assert swept.notebook_ended
    assert (swept.folder / "seed=0.log").read_text().count("begins on") == 2
    assert len((swept.home / "processes-0").read_text().split()) == 2
    assert len((swept.home / "processes-1").read_text().split()) == 1


def test_a_sweep_that_lost_a_worker_ends_with_the_same_tables(swept):
    rows = swept.table[swept.table["exhibit"] == "hao2020-toy-table"]
    assert rows["seed"].tolist() == [0, 0, 1, 1]
    assert rows["row"].tolist() == [0, 1, 0, 1]
    assert rows["value"].tolist() == [0.25, 0.5, 1.25, 1.5]
    assert rows["table_seed"].tolist() == ["all"] * 4
    verdicts = pd.read_parquet(swept.folder / "claims.parquet")
    assert verdicts[["seed", "claim", "verdict", "group", "part", "outcome"]].values.tolist() == [
        [0, "rises", "reproduced", "RTE", "growth", "holds"],
        [1, "rises", "contradicted", "RTE", "growth", "fails"],
    ]


def test_two_points_that_need_one_checkpoint_train_it_once(swept):
    assert len((swept.home / "trainings").read_text().split()) == 1
    models = swept.table[swept.table["exhibit"] == "models"]
    assert models["point"].tolist() == ["seed=0", "seed=1"]
    assert models["address"].nunique() == models["score"].nunique() == 1


def test_a_point_that_fails_is_tried_again_and_reported_at_the_end(swept):
    assert swept.result.exit_code == 1
    assert "seed=2: failed: Chapter 1, tiny: the cell that begins" in swept.result.stdout
    assert swept.result.stderr.startswith("\nseed=2 failed; its log ends:\n")
    assert "RuntimeError: there is no third seed" in swept.result.stderr
    assert swept.result.stderr.endswith("fivelenses: 1 points failed: seed=2.\n")
    assert (swept.folder / "seed=2.log").read_text().count("begins on") == 2


def test_progress_is_one_line_per_event_with_the_address_of_the_dashboard(swept):
    lines = swept.result.stdout.splitlines()
    assert lines[0] == "sweep toy: 3 points, 0 current, 3 to run"
    assert lines[1].startswith("dashboard: http://127.0.0.1:")
    assert sum("done in" in line for line in lines) == 2
    assert lines[-1].startswith("2 of 3 points have a run; their exhibits are in ")


def test_a_sweep_whose_points_are_current_runs_nothing(swept, monkeypatch, capsys):
    monkeypatch.setattr(sweeps, "connect", None)
    made = points(1, "tiny", expand({"seed": [1, 0]}), {"tasks": ["rte"]})
    outcome = sweep(1, "tiny", made)
    assert "2 points, 2 current, 0 to run" in capsys.readouterr().out and not outcome.missing
    again = pd.read_parquet(outcome.table)
    pd.testing.assert_frame_equal(
        again.sort_values(["seed", "exhibit", "row"], ignore_index=True),
        swept.table.sort_values(["seed", "exhibit", "row"], ignore_index=True),
    )
    # The same points are the same sweep, in whatever order.
    assert outcome.folder.name == sweeps.sweep_name(1, "tiny", made[::-1])


def test_a_done_point_is_done_and_a_lost_one_is_named(swept, monkeypatch):
    # The cluster forgets what was done when its workers are lost; the disk does not.
    made = points(1, "tiny", expand({"seed": [0, 5]}), {"tasks": ["rte"]})
    monkeypatch.setattr(sweeps, "_run", lambda *_: {"seed=5": "its worker was lost"})
    outcome = sweep(1, "tiny", made, "lost")
    assert outcome.missing == {"seed=5": "its worker was lost"}
    assert set(pd.read_parquet(outcome.table)["point"]) == {"seed=0"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "at least one worker"),
        ({"scheduler": "tcp://a:1", "workers": 2}, "without --workers"),
        ({"slurm": "queue"}, "written name=value,name=value"),
    ],
)
def test_clusters_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sweeps.Cluster(**options)


def test_slurm_jobs_run_one_point_at_a_time_on_all_their_cores(monkeypatch, tmp_path):
    dask_jobqueue, asked = pytest.importorskip("dask_jobqueue"), {}

    class Cluster:
        def __init__(self, **options):
            asked.update(options)
            raise ValueError("no sbatch here")

    monkeypatch.setattr(dask_jobqueue, "SLURMCluster", Cluster)
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    slurm = sweeps.connect(sweeps.Cluster(slurm="queue=gpu,cores=8,memory=32GB"), 3, gpu=True)
    with pytest.raises(sweeps.RunError, match="No Slurm job can be made of .*no sbatch here"):
        slurm.__enter__()
    assert (asked["queue"], asked["memory"], asked["cores"], asked["job_cpu"]) == ("gpu", "32GB", 1, 8)
    assert asked["job_script_prologue"] == ["export OMP_NUM_THREADS=8"]
    assert asked["job_extra_directives"] == ["--gres=gpu:1"]
