"""Notebooks in forked processes: what they give, what they say when they fail, and that nothing of them is left."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import nbformat
import psutil
from tests.runs.conftest import KERNEL

from fivelenses.runs import notebooks

PATIENCE = 120  # seconds for a busy machine to begin
AFTER = 20  # seconds until nothing is left
SLEEPING = "import os, pathlib, time\npathlib.Path('kernel').write_text(str(os.getpid()))\ntime.sleep(600)"
EXECUTE = """
import os, pathlib
from fivelenses.runs import notebooks
here = pathlib.Path.cwd()
notebooks.execute(here / "one.ipynb", here / "done.ipynb", {}, os.environ, here / "lock", print, fork=True)
"""


def write(folder, *cells):
    made = [nbformat.v4.new_code_cell("given = 0", metadata={"tags": ["parameters"]})]
    made += [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata=KERNEL), folder / "one.ipynb")


def execute(folder, fork=True, **environment):
    lines = []
    ended = notebooks.execute(
        folder / "one.ipynb",
        folder / "done.ipynb",
        {"given": 7},
        {**os.environ, **environment},
        folder / "lock",
        lines.append,
        fork,
    )
    done = folder / "done.ipynb"
    return ended, nbformat.read(done, as_version=4) if done.is_file() else None, lines


def begun(folder, goes_on) -> int:
    """The kernel's process, as soon as it sleeps."""
    deadline = time.monotonic() + PATIENCE
    while not (folder / "kernel").is_file() or not (folder / "kernel").read_text():
        assert time.monotonic() < deadline and goes_on(), "no kernel began"
        time.sleep(0.1)
    return int((folder / "kernel").read_text())


def test_the_copy_is_the_one_that_papermill_leaves(tmp_path):
    write(
        tmp_path,
        "import os\nprint(given, os.environ['PLACE'])",
        "given + 1",
        "from IPython.display import HTML\nHTML('a')",
    )
    forked, plain = (execute(tmp_path, fork, PLACE="here") for fork in (True, False))
    assert not forked[0].failure and forked[0].peak_memory > 10**7
    for one, other in zip(forked[1].cells, plain[1].cells, strict=True):
        assert (one.source, one.get("outputs"), one.get("execution_count")) == (
            other.source,
            other.get("outputs"),
            other.get("execution_count"),
        )
    assert forked[1].metadata == plain[1].metadata


def test_notebooks_know_nothing_of_each_other(tmp_path):
    write(tmp_path, "import os, math\nos.environ['LEFT'] = 'over'\nmath.pi = 3")
    assert not execute(tmp_path)[0].failure
    write(tmp_path, "import os, math\nassert 'LEFT' not in os.environ and math.pi > 3")
    assert not execute(tmp_path)[0].failure


def test_lines_of_progress_are_passed_on(tmp_path):
    write(tmp_path, "import pathlib\npathlib.Path('progress.log').write_text('halfway\\n')")
    assert execute(tmp_path)[2] == ["halfway"]
    assert not (tmp_path / "progress.log").exists()


def test_a_failure_names_the_cell(tmp_path):
    write(tmp_path, "1 / 0")
    assert "the cell that begins '1 / 0' failed, ZeroDivisionError: division by zero" in execute(tmp_path)[0].failure


def test_a_kernel_that_dies_is_said(tmp_path):
    write(tmp_path, "import os\nos._exit(3)")
    assert "papermill failed" in execute(tmp_path)[0].failure


def test_nothing_is_left_when_the_one_that_wanted_it_is_killed(tmp_path):
    write(tmp_path, SLEEPING)
    # From standard input, and without the guard that a program needs whose children read it again.
    process = subprocess.Popen([sys.executable, "-"], cwd=tmp_path, stdin=subprocess.PIPE, text=True)
    process.stdin.write(EXECUTE)
    process.stdin.close()
    kernel = begun(tmp_path, lambda: process.poll() is None)
    family = psutil.Process(process.pid).children(recursive=True)
    assert kernel in {one.pid for one in family}
    process.kill()
    process.wait(AFTER)
    assert not psutil.wait_procs(family, timeout=AFTER)[1]


def test_the_kernel_ends_with_papermill(tmp_path):
    write(tmp_path, SLEEPING)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(execute, tmp_path)
        kernel = psutil.Process(begun(tmp_path, lambda: not ended.done()))
        # Both are children of the fork server, papermill's the younger one.
        max(kernel.parent().children(), key=lambda one: one.create_time()).kill()
        assert psutil.wait_procs([kernel], timeout=AFTER)[0] == [kernel]
        assert "papermill failed: it was killed" in ended.result()[0].failure
