import pytest
from dask_jobqueue.slurm import SLURMJob

from fivelenses.runs import clusters
from fivelenses.runs.clusters import Cluster, places, slurm_options
from fivelenses.runs.execution import RunError


def test_workers_share_the_cores_and_no_core_is_shared(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    made = places(3, 9, range(8), [])
    assert sorted(core for place in made for core in place.cores) == list(range(8))
    assert [place.threads for place in made] == [3, 3, 2]
    assert {place.gpu for place in made} == {""}


def test_more_workers_than_cores_take_turns_on_them():
    assert [place.cores for place in places(3, 9, [4, 6], [])] == [(4,), (6,), (4,)]


def test_threads_are_as_the_caller_says(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert [place.threads for place in places(1, 9, range(8), [])] == [1]


def test_a_worker_has_a_gpu_to_itself(monkeypatch):
    assert [place.gpu for place in places(None, 9, range(8), ["0", "3"])] == ["0", "3"]
    with pytest.raises(ValueError, match="at most 2 workers, not 3"):
        places(3, 9, range(8), ["0", "3"])
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert clusters.gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    assert clusters.gpus() == ["GPU-a", "GPU-b"]


@pytest.mark.parametrize(("points", "count"), [(1, 1), (2, 2), (50, 4)])
def test_there_are_no_more_workers_than_points_or_pairs_of_cores(points, count):
    assert len(places(None, points, range(8), [])) == count


def script(options: dict) -> str:
    return SLURMJob(scheduler="tcp://127.0.0.1:1", name="1", **options).job_script()


def test_a_slurm_job_is_one_worker_that_runs_one_point_on_all_its_cores(tmp_path):
    written = script(slurm_options("queue=gpu,cores=8,memory=32GB,walltime=12:00:00", tmp_path / "logs", gpu=True))
    for line in ("-p gpu", "--cpus-per-task=8", "--mem=30G", "-t 12:00:00", "--gres=gpu:1"):
        assert f"#SBATCH {line}\n" in written
    assert "export OMP_NUM_THREADS=8\n" in written
    assert "--nthreads 1 " in written
    assert "gres" not in script(slurm_options("cores=8,memory=32GB", tmp_path / "logs", gpu=False))


def test_one_directive_of_slurm_is_one_line(tmp_path):
    options = slurm_options("cores=2,memory=4GB,job_extra_directives=--gres=gpu:2", tmp_path, gpu=True)
    assert options["job_extra_directives"] == ["--gres=gpu:2"]


def test_options_of_slurm_can_be_a_file_and_keep_their_own_directives(tmp_path):
    file = tmp_path / "slurm.yaml"
    file.write_text(
        "account: 007\ncores: 4\nmemory: 8GB\nwalltime: 12:00:00\njob_extra_directives: [--gpus-per-task=1]\n"
        "job_script_prologue: [module load python]\n",
        encoding="utf-8",
    )
    written = script(slurm_options(str(file), tmp_path / "logs", gpu=True))
    for line in ("-A 007", "-t 12:00:00", "--gpus-per-task=1"):
        assert f"#SBATCH {line}\n" in written
    assert "module load python\n" in written
    assert "gres" not in written


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"workers": 0}, "at least one worker"),
        ({"scheduler": "tcp://127.0.0.1:1", "workers": 2}, "without --workers"),
        ({"slurm": "queue"}, "written name=value,name=value"),
        ({"slurm": "queue=gpu"}, "has to know the cores"),
        ({"slurm": "cores=many,memory=4GB"}, "has to know the cores"),
        ({"slurm": "cores=2"}, "does not take these options"),
        ({"slurm": "cores=2,memory=4GB,colour=red"}, "colour"),
        ({"slurm": "no/such/file.yaml"}, "cannot be read"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_in_one_sentence(asked, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message) as refusal:
        Cluster(**asked)
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_a_scheduler_that_does_not_answer_is_said_in_one_sentence(monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 0.2)
    with (
        pytest.raises(RunError, match="No dask scheduler answers at tcp://127.0.0.1:1: start one with"),
        clusters.running("tcp://127.0.0.1:1"),
    ):
        raise AssertionError("nothing answers there")


def test_a_machine_without_slurm_is_said_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.which", lambda program: None)
    with (
        pytest.raises(RunError, match="no sbatch on this machine"),
        clusters.slurm(slurm_options("cores=2,memory=4GB", tmp_path, gpu=False), 1),
    ):
        raise AssertionError("there is no sbatch")
