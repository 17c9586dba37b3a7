"""Sweeps: one chapter at many points of its parameters, on the workers of a dask cluster.

A sweep is a folder under ``runs/sweeps``: ``sweep.yaml`` (its points), ``status.json`` (what has become of each),
``<point>.log``, and the tables that `sweep_tables` makes of all its runs. The run of a point is a run like any other,
in the folder that `execution.run` gives it: one that is current is not made again, and a point whose worker was killed
begins again on another, with the checkpoints that are already there.
"""

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import yaml
from distributed import Client, KilledWorker, as_completed, get_worker
from filelock import FileLock, Timeout

from fivelenses import project
from fivelenses.files import written_beside
from fivelenses.first_exhibits.exhibit import counted
from fivelenses.runs import execution, sweep_tables
from fivelenses.runs.clusters import Cluster, Place, connect
from fivelenses.runs.execution import Finished, RunError
from fivelenses.runs.folders import folder_name
from fivelenses.runs.run import check_device
from fivelenses.runs.settings import find_chapter, settings
from fivelenses.runs.sweep_points import Point, check_sweep

POINTS, STATUS = "sweep.yaml", "status.json"
WAITING, RUNNING, DONE, CURRENT, FAILED = "waiting", "running", "done", "current", "failed"
LOG_LINES = 10  # of a failed point, printed at the end of a sweep


@dataclass(frozen=True)
class Status:
    """What has become of a point.

    Attributes:
        state: waiting, running, done, current (it had a current run already) or failed.
        begun: how often it was begun, including the times that a worker was lost.
        failures: how often it ended with an error.
        host, process: where it was begun last, and the worker's process there.
        seconds: of its run, when it was made in this sweep.
        reason: of the last failure.
    """

    state: str = WAITING
    begun: int = 0
    failures: int = 0
    host: str = ""
    process: int = 0
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """A sweep that has ended.

    Attributes:
        folder: where it is.
        states: by the name of a point, what became of it.
        table: the tidy table of all exhibits; None when no point has a run.
    """

    folder: Path
    states: Mapping[str, Status]
    table: Path | None

    @property
    def failed(self) -> list[str]:
        """The points that have no run."""
        return [name for name, status in self.states.items() if status.state == FAILED]

    def complaint(self) -> str:
        """What failed, with the end of each log; the reason alone for a point that was never begun."""
        parts = []
        for name in self.failed:
            log = self.folder / f"{name}.log"
            lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else [self.states[name].reason]
            parts.append("\n  ".join([f"\n{name} failed; its log ends:", *lines[-LOG_LINES:]]))
        return "\n".join([*parts, f"\nfivelenses: {len(self.failed)} of {len(self.states)} points failed."])


def sweep_name(number: int, profile: str, points: Sequence[Point]) -> str:
    """The name of a sweep that was given none: the same for the same points, in whatever order."""
    content = sorted(json.dumps(point.overrides, sort_keys=True) for point in points)
    return f"{find_chapter(number).slug}-{profile}-{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]}"


def sweep(
    number: int,
    profile: str,
    points: Sequence[Point],
    name: str | None = None,
    cluster: Cluster | None = None,
    retries: int = 1,
    log: Callable[[str], None] = print,
) -> Outcome:
    """Run a chapter at every point whose run is not current, and gather all exhibits in one table.

    Args:
        number: the chapter.
        profile: `tiny`, `small` or `paper`.
        points: of `sweep_points.points`.
        name: of the sweep's folder; made from the points when None.
        cluster: where the points run; on this machine when None.
        retries: how often a point that failed is tried again.
        log: called with one line for each event.

    Raises:
        RunError: the cluster cannot be reached or went away, or the sweep is already running elsewhere.
        ValueError: a name or cluster that does not fit.
    """
    check_sweep(name, retries)
    cluster, name = cluster or Cluster(), name or sweep_name(number, profile, points)
    execution.check_pair(find_chapter(number))
    if cluster.scheduler is None and cluster.slurm is None:
        for point in points:
            check_device(settings(number, profile, **point.overrides), profile)
    folder = sweeps_folder() / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder.parent / f".{name}.lock", blocking=False):
            return _sweep(number, profile, points, folder, cluster, retries, log)
    except Timeout as error:
        raise RunError(f"The sweep {name} is being run by another process: wait for it, or end it.") from error


def sweeps_folder() -> Path:
    """Where sweeps are left."""
    return project.runs_folder() / "sweeps"


def run_folder(number: int, profile: str, overrides: Mapping) -> Path:
    """Where the run of a point is left."""
    return project.runs_folder() / folder_name(find_chapter(number), profile, dict(overrides))


def reason_to_run(number: int, profile: str, overrides: Mapping) -> str:
    """Why a point has to be run: an empty string when its run is current."""
    parameters = settings(number, profile, **overrides).model_dump(mode="json")
    return execution.state(find_chapter(number), run_folder(number, profile, overrides), parameters)


def _sweep(number, profile, points, folder: Path, cluster: Cluster, retries: int, log) -> Outcome:
    _write_points(number, profile, points, folder)
    pending = [point for point in points if reason_to_run(number, profile, point.overrides)]
    states = {point.name: Status(WAITING if point in pending else CURRENT) for point in points}
    progress = _Progress(folder, states, log)
    progress.write()
    current = len(points) - len(pending)
    told = f"sweep {folder.name}: {counted(len(points), 'point')}, {current} current, {len(pending)} to run"
    if not pending:
        log(told)
    else:
        gpu = any(settings(number, profile, **point.overrides).device != "cpu" for point in pending)
        try:
            with connect(cluster, len(pending), gpu, folder, log) as (client, places):
                log(told)
                _run(client, number, profile, pending, places, progress, retries)
        except (KeyboardInterrupt, SystemExit):
            log("interrupted: the same command continues with what is left")
            raise
        finally:
            progress.close()
    complete = [point for point in points if states[point.name].state in (DONE, CURRENT)]
    runs = {point.name: run_folder(number, profile, point.overrides) for point in complete}
    table = sweep_tables.collect(number, profile, complete, runs, folder, log) if complete else None
    log(f"{len(complete)} of {len(points)} points have a run" + (f"; their exhibits are in {table}" if table else ""))
    return Outcome(folder, states, table)


def _write_points(number: int, profile: str, points: Sequence[Point], folder: Path) -> None:
    """Write what is swept; the folder of a sweep of something else is not taken."""
    place = folder / POINTS
    if place.is_file():
        try:
            content = yaml.safe_load(place.read_text(encoding="utf-8"))
            owner = content["chapter"], content["profile"]
        except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(f"{place} is damaged: remove its folder, or choose another name.") from error
        if owner != (number, profile):
            raise ValueError(
                f"{folder.name} is a sweep of chapter {owner[0]} on profile {owner[1]}: choose another name."
            )
    content = {"chapter": number, "profile": profile, "swept": list(points[0].values)}
    content["points"] = {point.name: dict(point.overrides) for point in points}
    with written_beside(place) as partial:
        partial.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _run(client: Client, number: int, profile: str, points: Sequence[Point], places, progress, retries: int) -> None:
    """Run every point; what fails is tried again, and what fails too often is recorded."""
    topic = f"sweep-{progress.folder.name}"
    client.subscribe_topic(topic, progress.begun)
    environment = {name: value for name, value in os.environ.items() if name.startswith("FIVELENSES_")}
    environment["FIVELENSES_HOME"] = str(project.root())
    environment["FIVELENSES_RUNS"] = str(project.runs_folder())
    environment["FIVELENSES_STORE"] = str(project.store_folder())
    submitted = {}

    def submit(point: Point):
        # Without a key of ours: keys are the scheduler's, and another sweep may have a point of the same name.
        how = dict(pure=False, priority=-points.index(point))
        future = client.submit(run_point, number, profile, point, progress.folder, environment, places, topic, **how)
        submitted[future.key] = point
        return future

    ended = as_completed([submit(point) for point in points])
    for future in ended:
        point = submitted[future.key]
        if future.cancelled():
            raise RunError("The cluster went away: the same command continues with what is left.")
        error = future.exception()
        if error is None:
            progress.done(point.name, future.result())
            continue
        if isinstance(error, KilledWorker):
            error = f"{error.allowed_failures + 1} workers were lost while they ran it: is there enough memory?"
        again = progress.states[point.name].failures < retries
        progress.failed(point.name, str(error) or type(error).__name__, again)
        if again:
            ended.add(submit(point))


def run_point(
    number: int,
    profile: str,
    point: Point,
    folder: Path,
    environment: Mapping[str, str],
    places: Mapping[int, Place],
    topic: str,
) -> Finished:
    """Run one point; called on a worker.

    Args:
        number, profile: the chapter, and the profile that its parameters come from.
        point: which.
        folder: the sweep's, on a disk that workers share.
        environment: the FIVELENSES_ variables of the process that sweeps.
        places: by the name of the worker, what it has for itself.
        topic: of dask's events, under which the worker says that it has begun.

    Raises:
        RunError: the notebook failed, or this worker does not see the sweep's folder.
    """
    if not (folder / POINTS).is_file():
        raise RunError(f"The worker on {socket.gethostname()} does not see {folder}: it has to share that disk.")
    worker = get_worker()
    if worker.name in places:
        places[worker.name].take()
    os.environ.update(environment)
    host, process = socket.gethostname(), os.getpid()
    worker.log_event(topic, {"point": point.name, "host": host, "process": process})

    def log(line: str) -> None:
        with (folder / f"{point.name}.log").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {line}\n")

    log(f"begins on {host}, process {process}")
    try:
        return execution.run(number, profile, dict(point.overrides), log=log)
    except Exception as error:
        log(f"failed: {error}")
        raise


class _Progress:
    """The status of every point, logged and written as it changes; events come from the client's thread too."""

    def __init__(self, folder: Path, states: dict[str, Status], log: Callable[[str], None]):
        self.folder, self.states, self.log, self._lock = folder, states, log, threading.RLock()

    def write(self) -> None:
        with self._lock, written_beside(self.folder / STATUS) as place:
            content = {name: asdict(status) for name, status in self.states.items()}
            place.write_text(json.dumps(content, indent=1), encoding="utf-8")

    def _change(self, name: str, line: str, **changes) -> None:
        self.states[name] = replace(self.states[name], **changes)
        self.log(f"{name}: {line}")
        self.write()

    def begun(self, event: tuple[float, dict]) -> None:
        """Take note of a worker's event that it begins a point."""
        _, origin = event
        name, place = origin["point"], {"host": origin["host"], "process": origin["process"]}
        with self._lock:
            how = "its worker was lost, it begins again" if self.states[name].state == RUNNING else "begins"
            line = f"{how} (process {place['process']} on {place['host']})"
            self._change(name, line, state=RUNNING, begun=self.states[name].begun + 1, **place)

    def done(self, name: str, run: Finished) -> None:
        with self._lock:
            complete = 1 + sum(status.state in (DONE, CURRENT) for status in self.states.values())
            line = f"done in {run.seconds:.0f} s ({complete} of {len(self.states)})"
            self._change(name, line, state=DONE, seconds=round(run.seconds, 1), reason="")

    def failed(self, name: str, reason: str, again: bool) -> None:
        with self._lock:
            line = f"{'failed and is tried again' if again else 'failed'}: {reason}"
            failures = self.states[name].failures + 1
            self._change(name, line, state=WAITING if again else FAILED, reason=reason, failures=failures)

    def close(self) -> None:
        """Leave no point that seems to be running when the sweep ends early."""
        with self._lock:
            for name, status in self.states.items():
                if status.state == RUNNING:
                    self.states[name] = replace(status, state=WAITING)
            self.write()
