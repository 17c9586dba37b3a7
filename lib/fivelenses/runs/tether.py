"""The end of the tether that a process holds: a command of this environment that does not outlive its caller."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fivelenses.runs import tethered


@contextmanager
def command(
    name: str, arguments: Sequence[str], lock: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen]:
    """A command that is installed with this Python, running; after the block nothing of it is left.

    Args:
        name: `papermill` or `jupyter-book`.
        arguments: of its command line.
        lock: a file that is locked as long as anything of the command lives.
        environment: all its variables.

    Yields:
        The process; its standard output and error are pipes of text.
    """
    line = [sys.executable, "-P", str(Path(tethered.__file__)), str(lock), name, *arguments]
    end_of_tether, held = os.pipe()
    pipes = {"stdin": end_of_tether, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(line, env=dict(environment), text=True, **pipes)
    os.close(end_of_tether)
    try:
        yield process
    finally:
        # Interrupted here, the command must not go on by itself.
        os.close(held)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            pipe.close()
