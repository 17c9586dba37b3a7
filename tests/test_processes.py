"""The memory that a process may use is this machine's, or what its control group allows."""

import numpy as np

from fivelenses.processes import memory, peak_memory


def test_without_a_limit_it_is_that_of_this_machine(tmp_path):
    whole = memory(tmp_path, tmp_path / "none")
    assert whole > 10**8
    (tmp_path / "own").write_text("0::/\n")
    for no_limit in ("max\n", f"{2 * whole}\n"):
        (tmp_path / "memory.max").write_text(no_limit)
        assert memory(tmp_path, tmp_path / "own") == whole


def test_the_least_limit_of_a_job_and_of_what_it_is_part_of_counts(tmp_path):
    job = tmp_path / "slurm" / "job_7"
    job.mkdir(parents=True)
    (tmp_path / "own").write_text("0::/slurm/job_7\n")
    (job / "memory.max").write_text("max\n")
    (job.parent / "memory.max").write_text("16000000\n")
    assert memory(tmp_path, tmp_path / "own") == 16_000_000
    (job / "memory.max").write_text("4000000\n")
    assert memory(tmp_path, tmp_path / "own") == 4_000_000


def test_the_most_that_was_held_is_told_in_bytes_and_never_falls():
    held = np.ones(10_000_000)
    most = peak_memory()
    assert held.nbytes < most < 1e12
    del held
    assert peak_memory() >= most
