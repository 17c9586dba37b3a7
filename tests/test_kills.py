"""Whatever kills a command, nothing that it started goes on: no notebook, no kernel, nothing that trains there."""

import subprocess
import sys
import time

import psutil
import pytest

from tests.homes import make_home, write_notebook

PATIENCE, AFTER = 300, 30  # seconds for a busy machine to begin, and until nothing is left
WORKING = """
import os, pathlib, time
from fivelenses.processes import workers
partial = pathlib.Path(os.environ["FIVELENSES_HOME"], "store", "partial")
def work(number):
    (partial / str(number)).mkdir(parents=True)
    time.sleep(3600)
with workers(2) as client:
    client.gather(client.map(work, range(2)))
"""
RUN = [sys.executable, "-m", "fivelenses.cli", "run", "1"]


def family_at_work(process: subprocess.Popen, store) -> list[psutil.Process]:
    """A command's processes as soon as two workers are at work."""
    deadline = time.monotonic() + PATIENCE
    while len(list((store / "partial").glob("*"))) < 2:
        assert time.monotonic() < deadline and process.poll() is None, "no work began"
        time.sleep(0.1)
    return psutil.Process(process.pid).children(recursive=True)


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """Starts commands in a home of their own, as leaders of a group; ends what a test leaves."""
    make_home(tmp_path, monkeypatch)
    started = []

    def begin(command):
        process = subprocess.Popen(command, start_new_session=True)
        started.append(process)
        family = family_at_work(process, tmp_path / "store")
        started.extend(family)
        return process, family

    yield begin
    for process in started:
        if psutil.pid_exists(process.pid):
            process.kill()


def left_of(process: subprocess.Popen, family: list[psutil.Process]) -> list[str]:
    """What still runs of a family a while after a kill."""
    process.wait(AFTER)
    return [" ".join(one.cmdline()) for one in psutil.wait_procs(family, timeout=AFTER)[1]]


def test_workers_end_with_the_process_that_began_them(begun):
    process, family = begun([sys.executable, "-c", WORKING])
    assert sum("spawn_main" in " ".join(one.cmdline()) for one in family) == 2
    process.kill()
    assert left_of(process, family) == []


def test_a_command_of_the_makefile_ends_with_it(begun, monkeypatch):
    # The command is told by SIGTERM.
    monkeypatch.setenv("FIVELENSES_ENDS_WITH_CALLER", "1")
    write_notebook(WORKING)
    process, family = begun([sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *RUN])
    assert len(family) >= 4
    process.kill()
    assert left_of(process, family) == []


def test_a_notebook_and_its_workers_end_with_their_runner(begun):
    # The kernel is in a group of its own, which the signal does not reach.
    write_notebook(WORKING)
    process, family = begun(RUN)
    assert any("ipykernel" in " ".join(one.cmdline()) for one in family)
    process.kill()
    assert left_of(process, family) == []
