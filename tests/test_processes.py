"""The memory that a process may use is this machine's, or what its control group allows."""

from fivelenses.processes import memory


def test_the_least_limit_of_a_job_and_of_what_it_is_part_of_counts(tmp_path):
    whole, job = memory(tmp_path, tmp_path / "none"), tmp_path / "slurm" / "job_7"
    assert whole > 10**8, "without a limit it is that of this machine"
    job.mkdir(parents=True)
    (tmp_path / "own").write_text("0::/slurm/job_7\n")
    for own, other, expected in (("max", "max", whole), ("max", "16000000", 16e6), ("4000000", "16000000", 4e6)):
        (job / "memory.max").write_text(f"{own}\n")
        (job.parent / "memory.max").write_text(f"{other}\n")
        assert memory(tmp_path, tmp_path / "own") == expected
