"""Sweeps: one chapter at many points of its parameters, on the workers of a dask cluster.

A sweep is a folder under ``runs/sweeps``: ``sweep.yaml`` (its points), ``status.json`` (what has become of each),
``<point>.log``, and the tables that `sweep_tables` makes of all its runs. The run of a point is a run like any other,
in the folder that `execution.run` gives it: one that is current is not made again, and a point whose worker was killed
is begun again on another, on the checkpoints that are already there.
"""

import hashlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml
from distributed import Client, KilledWorker, as_completed, get_worker
from filelock import FileLock, Timeout

from fivelenses import project
from fivelenses.files import written_beside
from fivelenses.runs import execution, sweep_tables
from fivelenses.runs.clusters import Place, Where, connect
from fivelenses.runs.execution import Finished, RunError
from fivelenses.runs.folders import folder_name
from fivelenses.runs.run import check_device
from fivelenses.runs.settings import find_chapter, settings
from fivelenses.runs.sweep_points import Point

POINTS, STATUS = "sweep.yaml", "status.json"
WAITING, RUNNING, DONE, CURRENT, FAILED = "waiting", "running", "done", "current", "failed"
LINES = 10  # of a log, at the end of a sweep with failures


@dataclass(frozen=True)
class Order:
    """What a worker needs to know to run a point.

    Attributes:
        number, profile: the chapter, and the profile that its parameters come from.
        name, overrides: the point's.
        folder: the sweep's, on a disk that workers share.
        environment: the FIVELENSES_ variables of the process that sweeps.
        places: by the name of the worker, what it has for itself.
    """

    number: int
    profile: str
    name: str
    overrides: Mapping
    folder: Path
    environment: Mapping[str, str]
    places: Mapping[int, Place]


@dataclass
class Status:
    """What has become of a point.

    Attributes:
        state: waiting, running, done, current (its run stood already) or failed.
        begun: how often it was begun, the times included that a worker was lost.
        failures: how often it ended with an error.
        host, process: where it was begun last, and the worker's process there.
        seconds: of the run that stands, when it was made in this sweep.
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
        folder: where it lies.
        states: by the name of a point, what became of it.
        table: the tidy table of all exhibits; None when no point stands.
    """

    folder: Path
    states: Mapping[str, Status]
    table: Path | None

    @property
    def failed(self) -> list[str]:
        """The points that have no run."""
        return [name for name, status in self.states.items() if status.state == FAILED]

    def tail(self, name: str, lines: int = LINES) -> list[str]:
        """The last lines of a point's log; its reason alone when it was never begun."""
        log = self.folder / f"{name}.log"
        return log.read_text(encoding="utf-8").splitlines()[-lines:] if log.is_file() else [self.states[name].reason]

    def complaint(self) -> str:
        """What failed, with the end of each log."""
        parts = ["\n  ".join([f"\n{name} failed; its log ends:", *self.tail(name)]) for name in self.failed]
        return "\n".join([*parts, f"\nfivelenses: {len(self.failed)} of {len(self.states)} points failed."])


def sweep_name(number: int, profile: str, chosen: Sequence[Point]) -> str:
    """The name of a sweep that was given none: the same for the same points, in whatever order."""
    content = sorted(json.dumps(point.overrides, sort_keys=True) for point in chosen)
    return f"{find_chapter(number).slug}-{profile}-{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]}"


def sweep(
    number: int,
    profile: str,
    chosen: Sequence[Point],
    name: str | None = None,
    where: Where | None = None,
    retries: int = 1,
    log: Callable[[str], None] = print,
) -> Outcome:
    """Run a chapter at every point whose run is not current, and gather all exhibits in one table.

    Args:
        number: the chapter.
        profile: `tiny`, `small` or `paper`.
        chosen: of `sweep_points.points`.
        name: of the sweep's folder; made from the points when None.
        where: the cluster; this machine's when None.
        retries: how often a point that failed is tried again.
        log: called with one line for each event.

    Raises:
        RunError: the cluster cannot be reached or went away, or the sweep is already running elsewhere.
        ValueError: a name or cluster that does not fit.
    """
    where, name = where or Where(), name or sweep_name(number, profile, chosen)
    if retries < 0:
        raise ValueError(f"A point cannot be tried again {retries} times.")
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"A sweep's name is made of letters, digits, dots and dashes, not {name!r}.")
    execution.check_pair(find_chapter(number))
    if where.scheduler is None and where.slurm is None:
        for point in chosen:
            check_device(settings(number, profile, **point.overrides), profile)
    folder = sweeps_folder() / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder.parent / f".{name}.lock", blocking=False):
            return _sweep(number, profile, chosen, folder, where, retries, log)
    except Timeout as error:
        raise RunError(f"The sweep {name} is being run by another process: wait for it, or end it.") from error


def sweeps_folder() -> Path:
    """Where sweeps are left."""
    return project.runs_folder() / "sweeps"


def run_folder(number: int, profile: str, overrides: Mapping) -> Path:
    """Where the run of a point is left."""
    return project.runs_folder() / folder_name(find_chapter(number), profile, dict(overrides))


def why_not(number: int, profile: str, overrides: Mapping) -> str:
    """Why a point has to be run: an empty string when its run is current."""
    parameters = settings(number, profile, **overrides).model_dump(mode="json")
    return execution.state(find_chapter(number), run_folder(number, profile, overrides), parameters)


def _sweep(number, profile, chosen, folder: Path, where: Where, retries: int, log) -> Outcome:
    _write_points(number, profile, chosen, folder)
    record = _Record(folder, {point.name: Status() for point in chosen}, log)
    pending = []
    for point in chosen:
        if why_not(number, profile, point.overrides):
            pending.append(point)
        else:
            record.states[point.name].state = CURRENT
    record.write()
    count = f"{len(chosen)} point{'s' if len(chosen) > 1 else ''}"
    log(f"sweep {folder.name}: {count}, {len(chosen) - len(pending)} current, {len(pending)} to run")
    if pending:
        gpu = any(settings(number, profile, **point.overrides).device != "cpu" for point in pending)
        environment = {name: value for name, value in os.environ.items() if name.startswith("FIVELENSES_")}
        environment |= {
            "FIVELENSES_HOME": str(project.root()),
            "FIVELENSES_RUNS": str(project.runs_folder()),
            "FIVELENSES_STORE": str(project.store_folder()),
        }
        try:
            with connect(where, len(pending), gpu, folder, log) as (client, places):
                orders = [
                    Order(number, profile, point.name, dict(point.overrides), folder, environment, places)
                    for point in pending
                ]
                _run(client, orders, record, retries)
        except (KeyboardInterrupt, SystemExit):
            log("interrupted: the same command goes on with what is left")
            raise
        finally:
            record.close()
    standing = [point for point in chosen if record.states[point.name].state in (DONE, CURRENT)]
    runs = {point.name: run_folder(number, profile, point.overrides) for point in standing}
    table = sweep_tables.collect(number, profile, standing, runs, folder, log) if standing else None
    log(f"{len(standing)} of {len(chosen)} points stand" + (f", their exhibits in {table}" if table else ""))
    return Outcome(folder, record.states, table)


def _write_points(number: int, profile: str, chosen: Sequence[Point], folder: Path) -> None:
    """Write what is swept; the folder of a sweep of something else is not taken."""
    place = folder / POINTS
    if place.is_file():
        try:
            there = yaml.safe_load(place.read_text(encoding="utf-8"))
            owner = there["chapter"], there["profile"]
        except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(f"{place} is damaged: remove its folder, or choose another name.") from error
        if owner != (number, profile):
            raise ValueError(
                f"{folder.name} is a sweep of chapter {owner[0]} on profile {owner[1]}: choose another name."
            )
    content = {
        "chapter": number,
        "profile": profile,
        "swept": list(chosen[0].values),
        "points": {point.name: dict(point.overrides) for point in chosen},
    }
    with written_beside(place) as partial:
        partial.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _run(client: Client, orders: Sequence[Order], record: "_Record", retries: int) -> None:
    """Have every order run; what fails is tried again, what cannot be mended is recorded."""
    topic = f"sweep-{record.folder.name}"
    client.subscribe_topic(topic, record.began)
    submitted = {}

    def submit(order: Order):
        key = f"{order.name}#{record.states[order.name].failures}"
        future = client.submit(run_point, order, topic, key=key, pure=False, priority=-orders.index(order))
        submitted[future.key] = order
        return future

    ended = as_completed([submit(order) for order in orders])
    for future in ended:
        order = submitted[future.key]
        if future.cancelled():
            raise RunError("The cluster went away: the same command goes on with what is left.")
        error = future.exception()
        if error is None:
            record.finished(order.name, future.result())
            continue
        if isinstance(error, KilledWorker):
            error = f"{error.allowed_failures + 1} workers were lost while they ran it: is there enough memory?"
        again = record.states[order.name].failures < retries
        record.stopped(order.name, str(error) or type(error).__name__, again)
        if again:
            ended.add(submit(order))


def run_point(order: Order, topic: str) -> Finished:
    """Run one point; called on a worker.

    Raises:
        RunError: the notebook failed, or this worker does not see the sweep's folder.
    """
    if not (order.folder / POINTS).is_file():
        raise RunError(f"The worker on {socket.gethostname()} does not see {order.folder}: it has to share that disk.")
    worker = get_worker()
    if worker.name in order.places:
        order.places[worker.name].take()
    os.environ.update(order.environment)
    here = {"point": order.name, "host": socket.gethostname(), "process": os.getpid()}
    worker.log_event(topic, here)

    def tell(line: str) -> None:
        with (order.folder / f"{order.name}.log").open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {line}\n")

    tell(f"begins on {here['host']}, process {here['process']}")
    try:
        return execution.run(order.number, order.profile, dict(order.overrides), log=tell)
    except Exception as error:
        tell(f"failed: {error}")
        raise


@dataclass
class _Record:
    """The status of every point, told and written as it changes; events come from the client's thread too."""

    folder: Path
    states: dict[str, Status]
    log: Callable[[str], None]
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def write(self) -> None:
        with self._lock:
            content = {name: asdict(status) for name, status in self.states.items()}
            with written_beside(self.folder / STATUS) as place:
                place.write_text(json.dumps(content, indent=1), encoding="utf-8")

    def began(self, event: tuple[float, dict]) -> None:
        """Take note of a worker's word that it begins a point."""
        _, here = event
        with self._lock:
            status = self.states[here["point"]]
            lost = status.state == RUNNING
            status.state, status.host, status.process = RUNNING, here["host"], here["process"]
            status.begun += 1
            how = "its worker was lost, it begins again" if lost else "begins"
            self.log(f"{here['point']}: {how} (process {here['process']} on {here['host']})")
            self.write()

    def finished(self, name: str, run: Finished) -> None:
        with self._lock:
            status = self.states[name]
            status.state, status.seconds, status.reason = DONE, round(run.seconds, 1), ""
            stand = sum(one.state in (DONE, CURRENT) for one in self.states.values())
            self.log(f"{name}: done in {run.seconds:.0f} s ({stand} of {len(self.states)})")
            self.write()

    def stopped(self, name: str, reason: str, again: bool) -> None:
        with self._lock:
            status = self.states[name]
            status.state, status.reason = WAITING if again else FAILED, reason
            status.failures += 1
            self.log(f"{name}: {'failed and is tried again' if again else 'failed'}: {reason}")
            self.write()

    def close(self) -> None:
        """Leave no point that seems to be running when the sweep ends before it did."""
        with self._lock:
            for status in self.states.values():
                if status.state == RUNNING:
                    status.state = WAITING
            self.write()
