"""Notebooks executed by processes that are forked from one that has imported the libraries.

Most of the time that a page made from records takes goes to importing torch, transformers and SciPy. Python's fork
server imports them once; from it come, for each notebook, a process for papermill and one that becomes the kernel which
papermill asks for. Both end with the process that wanted the notebook, and with each other.
"""

import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

from fivelenses.processes import end_with_parent
from fivelenses.runs.tethered import OUTPUT_PATIENCE

_STARTING = threading.Lock()  # notebooks are begun from several threads, and the server once


@dataclass(frozen=True)
class Running:
    """A notebook that is being executed: by which processes, and where its end is told."""

    pids: tuple[int, int]
    _told: Connection

    def complaint(self) -> str | None:
        """Wait for the end: None when all cells ran, else what papermill or the system said."""
        try:
            return self._told.recv()
        except EOFError:
            return ""


@contextmanager
def notebook(
    source: Path, executed: Path, parameters: Mapping[str, object], environment: Mapping[str, str], lock: Path
) -> Iterator[Running]:
    """A notebook that is being executed; after the block nothing of it is left.

    Args:
        source: is read.
        executed: is written.
        parameters: for papermill.
        environment: all variables of the two processes. Those that a library reads once, when it is imported, are those
            of the first notebook.
        lock: a file that is locked as long as papermill lives.

    Yields:
        The two processes, which are at work.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"{__package__}.preloaded"])
    told, telling = context.Pipe(duplex=False)
    asking, asked = context.Pipe()
    arguments = (str(source), str(executed), dict(parameters), dict(environment), str(lock))
    kernel = context.Process(target=_become_kernel, args=(asked,))
    runner = context.Process(target=_run_papermill, args=(*arguments, asking, telling))
    with _STARTING, _without_main():
        kernel.start()
        runner.start()
    # The ends that only the two of them may hold: each is then closed by the end of its process.
    for end in (telling, asking, asked):
        end.close()
    try:
        yield Running((runner.pid, kernel.pid), told)
    finally:
        for process in (runner, kernel):
            process.kill()
            process.join()
        told.close()


@contextmanager
def _without_main() -> Iterator[None]:
    """New processes need nothing of the program that runs, which they would otherwise read again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _run_papermill(source, executed, parameters, environment, lock, asking: Connection, telling: Connection) -> None:
    end_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    import papermill
    from filelock import FileLock
    from jupyter_client.manager import AsyncKernelManager

    class Manager(AsyncKernelManager):
        """A manager of the one kernel that waits already."""

        def __init__(self, **settings):
            super().__init__(**settings)
            self.provisioner = _provisioner(self, asking)

    settings = {"kernel_name": "python3", "progress_bar": False, "cwd": str(Path(source).parent)}
    settings["iopub_timeout"] = OUTPUT_PATIENCE
    with FileLock(lock):
        try:
            papermill.execute_notebook(source, executed, parameters, kernel_manager_class=Manager, **settings)
        except Exception as error:
            telling.send(f"{type(error).__name__}: {error}")
        else:
            telling.send(None)


def _provisioner(manager, asking: Connection):
    from jupyter_client.provisioning import LocalProvisioner

    class Forked(LocalProvisioner):
        """Asks a process that waits to become the kernel, where the usual one starts a program."""

        async def launch_kernel(self, cmd: list[str], **settings):
            asking.send((cmd[cmd.index("-f") :], settings["env"], settings.get("cwd") or os.getcwd()))
            self.process = _Kernel(asking)
            self.pid = self.process.pid
            return self.connection_info

    return Forked(parent=manager, kernel_id=manager.kernel_id, kernel_spec=manager.kernel_spec)


class _Kernel:
    """The kernel's process, as jupyter_client wants to see one that it has started."""

    stdin = stdout = stderr = None

    def __init__(self, asking: Connection):
        self.pid, self._asking = asking.recv(), asking

    def poll(self) -> int | None:
        # Nothing more is sent: what can be read is the end of the pipe, and so of the process.
        return 0 if self._asking.poll() else None

    def wait(self) -> int:
        wait([self._asking])
        return 0

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _become_kernel(asked: Connection) -> None:
    end_with_parent()
    try:
        arguments, environment, folder = asked.recv()
    except EOFError:
        return
    os.environ.clear()
    # It is no child of papermill's process, for which it would look.
    os.environ.update({name: value for name, value in environment.items() if name != "JPY_PARENT_PID"})
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    asked.send(os.getpid())
    threading.Thread(target=_end_with, args=(asked,), daemon=True).start()
    sys.argv = ["ipykernel_launcher", *arguments]
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


def _end_with(other: Connection) -> None:
    wait([other])
    os._exit(1)
