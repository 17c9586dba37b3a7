"""Memory is this machine's, or what its control group allows; a worker that is silent for a while keeps its task."""

import os
import signal
import time

import dask
import distributed  # noqa: F401 - whose settings come with it
import pytest

from fivelenses import processes
from fivelenses.files import RunError
from fivelenses.processes import memory, workers


def begun_in(file):
    """Who does this task, which takes a second."""
    file.write_text(str(os.getpid()))
    time.sleep(1)
    return os.getpid()


def test_a_worker_that_the_machine_stopped_for_a_while_goes_on_with_its_task(tmp_path):
    begun = tmp_path / "worker"
    with dask.config.set({"distributed.scheduler.worker-ttl": "500ms"}), workers(1) as client:
        task = client.submit(begun_in, begun, pure=False)
        while not begun.exists() or not begun.read_text():
            time.sleep(0.05)
        worker = int(begun.read_text())
        os.kill(worker, signal.SIGSTOP)
        time.sleep(7)  # dask waits for ten heartbeats, of half a second each
        os.kill(worker, signal.SIGCONT)
        assert task.result(timeout=20) == worker


def test_a_task_that_loses_too_many_workers_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(processes, "MAX_LOST_WORKERS", 0)
    with pytest.raises(RunError, match="1 processes of one task were lost"), workers(1) as client:
        client.submit(os._exit, 1).result(timeout=20)


def test_the_least_limit_of_a_job_and_of_what_it_is_part_of_counts(tmp_path):
    whole, job = memory(tmp_path, tmp_path / "none"), tmp_path / "slurm" / "job_7"
    assert whole > 10**8, "without a limit it is that of this machine"
    job.mkdir(parents=True)
    (tmp_path / "own").write_text("0::/slurm/job_7\n")
    for own, other, expected in (("max", "max", whole), ("max", "16000000", 16e6), ("4000000", "16000000", 4e6)):
        (job / "memory.max").write_text(f"{own}\n")
        (job.parent / "memory.max").write_text(f"{other}\n")
        assert memory(tmp_path, tmp_path / "own") == expected
