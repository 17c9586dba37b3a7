"""Sweeps: one chapter at many points of its parameters, each a run like any other, on the workers of dask.

A sweep is a folder under ``runs/sweeps``: ``sweep.yaml`` (its points), ``<point>.log``, and two tables.
``sweep.parquet`` has one row for each row of each exhibit of each point: ``chapter``, ``profile`` and ``point``; one
column for each swept parameter; ``exhibit`` and ``row``; and the columns of all exhibits' tables, where one that has
the name of a column before is called ``table_<name>``. A column is a number where it is one in every exhibit that has
it, and a text otherwise. The exhibit `MODELS` is the chapter's own table of fine-tuned models, with their scores.
``claims.parquet`` has the same first columns and one row for each claim, point, group and part.
"""

import hashlib
import itertools
import json
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch
import yaml

from fivelenses import execution, judging, processes, records
from fivelenses.chapters import ParameterError, check_device, find_chapter, parse_parameters, settings
from fivelenses.execution import Job, RunError, of_chapter
from fivelenses.files import project_folder, records_folder, runs_folder, store_folder, written_beside
from fivelenses.processes import CORES_VARIABLE, cores, repeated

if TYPE_CHECKING:
    from distributed import Client, Future

POINTS, TABLE, CLAIMS = "sweep.yaml", "sweep.parquet", "claims.parquet"
MODELS = "models"
CORES_OF_A_CHAPTER = 2
MAX_JOBS = 8  # of Slurm, unless the caller says how many
PATIENCE = 10  # seconds in which a scheduler that is up has to answer


@dataclass(frozen=True)
class Sweep:
    """A sweep that has ended: its folder; by the name of a point that has no run, why (`missing`); and the table of all
    exhibits, None when no point has a run.
    """

    folder: Path
    missing: Mapping[str, str]
    table: Path | None


@dataclass(frozen=True)
class Point:
    """One run of a sweep: its number and values, as far as they fit into the name of a file; parameters as the chapter
    takes them; and each swept parameter's value here, a number, a text, or JSON.
    """

    name: str
    overrides: Mapping[str, object]
    values: Mapping[str, object]

    def job(self, number: int, profile: str) -> Job:
        """Its run of a chapter."""
        return of_chapter(number, profile, self.overrides)


def read_grid(texts: Iterable[str]) -> dict[str, list]:
    """Names and values of a grid from ``name=value,value``. Values are YAML, so that a list can be one of them.

    Example:
        >>> read_grid(["tasks=rte,mrpc", "depths=[0, 6],[0, 3, 6]"])
        {'tasks': ['rte', 'mrpc'], 'depths': [[0, 6], [0, 3, 6]]}
    """
    pairs = [text.partition("=") for text in texts]
    return parse_parameters([f"{name}=[{values}]" for name, _, values in pairs])


def expand(grid: Mapping[str, Sequence]) -> list[dict]:
    """Every combination of a grid's values; the last name changes fastest.

    Example:
        >>> expand({"tasks": ["rte", "mrpc"], "seeds": [0, 1]})[1]
        {'tasks': 'rte', 'seeds': 1}
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def points(number: int, profile: str, entries: Sequence[Mapping], fixed: Mapping | None = None) -> list[Point]:
    """The points of a sweep, one per entry, each with what all share (`fixed`) unless it says otherwise, checked
    against the chapter. Entries that are the same run are one point.

    Example:
        >>> [point.overrides for point in points(1, "tiny", expand({"tasks": ["rte"], "seeds": [0, 1]}))]
        [{'tasks': ['rte'], 'seeds': [0]}, {'tasks': ['rte'], 'seeds': [1]}]
    """
    if not entries:
        raise ParameterError("A sweep needs at least one point: write its grid as --grid name=value,value.")
    swept = list(dict.fromkeys(name for entry in entries for name in entry))
    made: dict[str, Point] = {}
    for entry in entries:
        overrides = {**(fixed or {}), **entry}
        try:
            content = settings(number, profile, **overrides).model_dump(mode="json")
        except ParameterError as error:
            raise ParameterError(f"The point {_words(entry)} does not fit. {error}") from error
        values = {name: _cell(content[name]) for name in swept}
        name = re.sub(r"[^\w.,=+-]+", "-", f"{len(made) + 1}-{_words({one: values[one] for one in entry})}")[:60]
        point = Point(name, {parameter: content[parameter] for parameter in overrides}, values)
        made.setdefault(json.dumps(content, sort_keys=True), point)
    return list(made.values())


def _cell(value):
    """A parameter's value as a cell of a table; of a list of one its entry."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return json.dumps(value) if isinstance(value, list | dict) else value


def _words(values: Mapping) -> str:
    words = {name: f"{value:g}" if isinstance(value, float) else value for name, value in values.items()}
    return ",".join(f"{name}={value}" for name, value in words.items())


def sweep(
    number: int,
    profile: str,
    points: Sequence[Point],
    name: str | None = None,
    retries: int = 1,
    **cluster,
) -> Sweep:
    """Run a chapter at every point whose run is not current, and gather all exhibits in one table.

    Args:
        number, profile: the chapter, and `tiny`, `small` or `paper`.
        points: of `points`.
        name: of the sweep's folder; the same for the same points, in whatever order, when None.
        retries: how often a point that failed is tried again.
        cluster: where the points run, see `connect`; on this machine by default.
    """
    if name is None:
        content = sorted(json.dumps(point.overrides, sort_keys=True) for point in points)
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
        name = f"{find_chapter(number).slug}-{profile}-{digest}"
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"A sweep's name is made of letters, digits, dots and dashes, not {name!r}.")
    execution.check_pair(find_chapter(number))
    for parameters in (point.job(number, profile).parameters for point in points):
        if not (cluster.get("scheduler") or cluster.get("slurm")):
            check_device(parameters)
        execution.check_inputs(parameters)
    folder = runs_folder() / "sweeps" / name
    content = {"chapter": number, "profile": profile, "swept": list(points[0].values)}
    content["points"] = {point.name: dict(point.overrides) for point in points}
    with written_beside(folder / POINTS) as partial:
        partial.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    pending = [point for point in points if point.job(number, profile).reason]
    current = len(points) - len(pending)
    print(f"sweep {name}: {len(points)} points, {current} current, {len(pending)} to run", flush=True)
    reasons = _run(number, profile, pending, folder, retries, **cluster) if pending else {}
    # What counts is what is on the disk: a point that was done before its worker was lost is done.
    without = [point.name for point in pending if point.job(number, profile).reason]
    missing = {name: reasons.get(name, "it has no run") for name in without}
    complete = [point for point in points if point.name not in missing]
    table = collect(number, profile, complete, folder) if complete else None
    print(f"{len(complete)} of {len(points)} points have a run" + (f"; their exhibits are in {table}" if table else ""))
    return Sweep(folder, missing, table)


@contextmanager
def connect(
    points: int, gpu: bool, workers: int | None = None, scheduler: str | None = None, slurm: str | None = None
) -> "Iterator[Client]":
    """A client of a cluster's workers, for so many points that use a GPU or not.

    Args:
        workers: processes of this machine, or Slurm jobs; as many as this machine has GPUs or pairs of cores, and at
            most 8 jobs, where None.
        scheduler: the address of a running dask scheduler.
        slurm: options of dask-jobqueue's SLURMCluster, ``queue=gpu,cores=8,memory=32GB``; what it is not told here, it
            reads in its own configuration.

    Refused: no scheduler answers, or this machine has no Slurm.
    """
    from distributed import Client

    if scheduler:
        try:
            client = Client(scheduler, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise RunError(
                f"No dask scheduler answers at {scheduler}: start one with `dask scheduler`, or leave --scheduler out."
            ) from error
        with client:
            yield client
    elif slurm:
        with _slurm(slurm, min(points, workers or MAX_JOBS), gpu) as client:
            yield client
    else:
        usual = torch.cuda.device_count() if gpu else max(1, cores() // CORES_OF_A_CHAPTER)
        with processes.workers(min(points, workers or usual)) as client:
            yield client


@contextmanager
def _slurm(options: str, jobs: int, gpu: bool) -> "Iterator[Client]":
    """Slurm jobs, each one worker that runs one point at a time on all the job's cores."""
    import dask
    from dask_jobqueue import SLURMCluster
    from distributed import Client

    configured = dask.config.get("jobqueue.slurm", {})
    try:
        named = dict(pair.split("=", 1) for pair in options.split(","))
        count = named.pop("cores", "1")
        prologue = [*configured.get("job-script-prologue", []), f"export OMP_NUM_THREADS={count}"]
        directives = [*configured.get("job-extra-directives", []), *(["--gres=gpu:1"] if gpu else [])]
        # To dask, cores are tasks at a time.
        shape = dict(cores=1, processes=1, job_cpu=int(count), log_directory=str(runs_folder() / "slurm"))
        cluster = SLURMCluster(**named, **shape, job_script_prologue=prologue, job_extra_directives=directives)
    except (OSError, TypeError, ValueError) as error:
        raise RunError(f"No Slurm job can be made of {options!r}: {' '.join(str(error).split())[:300]}") from error
    with cluster, Client(cluster) as client:
        # A point takes minutes and dask cannot know: ask at once for one job per waiting point, anew where one dies.
        cluster.adapt(minimum_jobs=1, maximum_jobs=jobs, target_duration="100ms")
        yield client


def _run(number: int, profile: str, points: Sequence[Point], folder: Path, retries: int, **cluster) -> dict[str, str]:
    """Run every point; by name, why one failed."""
    from distributed import as_completed

    environment = {name: value for name, value in os.environ.items() if name.startswith("FIVELENSES_")}
    environment |= {"FIVELENSES_HOME": str(project_folder()), "FIVELENSES_RUNS": str(runs_folder())}
    environment |= {"FIVELENSES_STORE": str(store_folder())}
    environment.pop(CORES_VARIABLE, None)
    shared = dict(number=number, profile=profile, folder=folder, environment=environment)
    gpu = torch.cuda.is_available() and points[0].job(number, profile).parameters.device != "cpu"
    reasons: dict[str, str] = {}
    started = time.monotonic()
    with connect(len(points), gpu, **cluster) as client:
        print(f"dashboard: {client.dashboard_link}", flush=True)
        futures = client.map(run_point, points, **shared, retries=retries, pure=False)
        names = dict(zip(futures, (point.name for point in points), strict=True))
        with repeated(lambda: print(_progress(futures, started), flush=True)):
            for done, future in enumerate(as_completed(futures), 1):
                if future.status == "cancelled":
                    raise RunError("The cluster went away: the same command continues with what is left.")
                name, error = names[future], future.exception()
                if error is not None:
                    reasons[name] = " ".join(str(error).split()) or type(error).__name__
                outcome = f"done in {future.result():.0f} s" if error is None else f"failed: {reasons[name]}"
                print(f"{name}: {outcome} ({done} of {len(points)})", flush=True)
    return reasons


def _progress(futures: "Sequence[Future]", started: float) -> str:
    """How many points are done, and what the others take if they take as long."""
    done, passed = sum(future.done() for future in futures), time.monotonic() - started
    left = f", about {passed / done * (len(futures) - done):,.0f} s left" if done else ""
    return f"after {passed:,.0f} s {done} of {len(futures)} points are done{left}"


def run_point(point: Point, number: int, profile: str, folder: Path, environment: Mapping[str, str]) -> float:
    """Run one point on a worker, with the variables of the process that sweeps; the seconds that it took."""
    from distributed import get_worker

    if not (folder / POINTS).is_file():
        raise RunError(f"The worker on {socket.gethostname()} does not see {folder}: it has to share that disk.")
    os.environ.update(environment)
    name, started = get_worker().name, time.monotonic()
    if isinstance(name, int) and torch.cuda.device_count() > 1:
        # Of this machine's workers each has a GPU to itself.
        os.environ["CUDA_VISIBLE_DEVICES"] = str(name % torch.cuda.device_count())

    def log(line: str) -> None:
        with (folder / f"{point.name}.log").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {line}\n")

    log(f"begins on {socket.gethostname()}, process {os.getpid()}")
    try:
        execution.run(number, profile, point.overrides, log=log)
    except Exception as error:
        log(f"failed: {error}")
        raise
    return time.monotonic() - started


def collect(number: int, profile: str, points: Sequence[Point], folder: Path) -> Path:
    """Write a sweep's tables from the runs of its points; the path of the exhibits' table."""
    parts, verdicts = [], []
    for point in points:
        run = point.job(number, profile).place
        origin = {"chapter": number, "profile": profile, "point": point.name, **point.values}
        facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
        parts += [(origin, key, pd.read_parquet(run / f"{key}.parquet")) for key in facts["exhibits"]]
        measured = records_folder() / find_chapter(number).slug
        parts += [(origin, MODELS, records.read(measured / file).table) for file in facts["records"].get(MODELS, ())]
        judged = judging.as_table(judging.load(run))
        verdicts.append(pd.concat([pd.DataFrame([origin] * len(judged), columns=list(origin)), judged], axis=1))
    for name, table in ((TABLE, gather(parts)), (CLAIMS, pd.concat(verdicts, ignore_index=True))):
        with written_beside(folder / name) as place:
            table.to_parquet(place, index=False)
    return folder / TABLE


def gather(parts: Iterable[tuple[Mapping, str, pd.DataFrame]]) -> pd.DataFrame:
    """Tables of many shapes as one, see the head of this module: of each the columns that say where it is from, the
    exhibit's key, and the table.

    Example:
        >>> table = pd.DataFrame({"seed": ["0–1"], "js": [0.2]})
        >>> gather([({"seed": 3}, "figure-4", table)]).to_dict("records")
        [{'seed': 3, 'exhibit': 'figure-4', 'row': 0, 'table_seed': '0–1', 'js': 0.2}]
    """
    whole = []
    for origin, key, table in parts:
        first = {**origin, "exhibit": key, "row": range(len(table))}
        renamed = table.rename(columns={name: f"table_{name}" for name in first})
        whole.append(pd.concat([pd.DataFrame(first, index=table.index), renamed], axis=1))
    table = pd.concat(whole, ignore_index=True)
    for name in table:
        filled = [part[name] for part in whole if name in part and part[name].notna().any()]
        if filled and all(pd.api.types.is_numeric_dtype(column) for column in filled):
            table[name] = table[name] if pd.api.types.is_numeric_dtype(table[name]) else table[name].astype("float64")
        else:
            table[name] = table[name].map(_text).astype("object")
    return table


def _text(value):
    """A cell as text; a missing one stays missing."""
    if not pd.api.types.is_scalar(value):
        return json.dumps(value, default=lambda array: array.tolist())
    return None if pd.isna(value) else str(value)
