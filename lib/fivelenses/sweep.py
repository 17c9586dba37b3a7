"""Sweeps: one chapter at many points of its parameters, each a run like any other, on the workers of dask.

A sweep is a folder under ``runs/sweeps``: ``sweep.yaml`` (its points), ``<point>.log``, and two tables.
``sweep.parquet`` has one row for each row of each exhibit of each point: ``chapter``, ``profile`` and ``point``; one
column for each swept parameter; ``exhibit`` and ``row``; and the columns of all exhibits' tables, where one that has
the name of a column before is called ``table_<name>``. A column is a number where it is one in every exhibit that has
it, and a text otherwise. The exhibit `MODELS` has one row for each fine-tuned model, with its score.
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

from fivelenses import execution, judging, project
from fivelenses.chapters import ParameterError, check_device, find_chapter, folder_name, read_yaml, settings
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.store import MANIFEST, Checkpoint, Store
from fivelenses.execution import RunError
from fivelenses.files import written_beside
from fivelenses.processes import CORES_VARIABLE, cores, repeated, workers

if TYPE_CHECKING:
    from distributed import Client, Future

POINTS, TABLE, CLAIMS = "sweep.yaml", "sweep.parquet", "claims.parquet"
MODELS = "models"
MAX_NAME_LENGTH = 80  # characters of a point's name: it is also the name of a file
CORES_OF_A_CHAPTER = 2
MAX_JOBS = 8  # of Slurm, unless the caller says how many
PATIENCE = 10  # seconds in which a scheduler that is up has to answer
LOG_LINES = 10  # of a failed point, printed at the end of a sweep


@dataclass(frozen=True)
class Cluster:
    """What a sweep runs on.

    Attributes:
        workers: processes of this machine, or Slurm jobs; as many as this machine has GPUs or pairs of cores, and at
            most 8 jobs, where None.
        scheduler: the address of a running dask scheduler.
        slurm: options of dask-jobqueue's SLURMCluster, ``queue=gpu,cores=8,memory=32GB``; what it is not told here, it
            reads in its own configuration.
    """

    workers: int | None = None
    scheduler: str | None = None
    slurm: str | None = None

    def __post_init__(self):
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"A sweep needs at least one worker, not {self.workers}.")
        if self.scheduler and (self.workers or self.slurm):
            raise ValueError("A running cluster has its own workers: give --scheduler without --workers and --slurm.")
        if self.slurm and not re.fullmatch(r"\w+=[^,=]+(,\w+=[^,]+)*", self.slurm):
            raise ValueError(f"The options of Slurm are written name=value,name=value, not {self.slurm!r}.")


@dataclass(frozen=True)
class Sweep:
    """A sweep that has ended.

    Attributes:
        folder: where it is.
        missing: by the name of a point that has no run, why.
        table: the table of all exhibits; None when no point has a run.
    """

    folder: Path
    missing: Mapping[str, str]
    table: Path | None


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        name: what is swept and its values here, written so that it can be the name of a file.
        overrides: parameters as the chapter takes them.
        values: each swept parameter, as it was given, and its value here: a number, a text, or JSON.
    """

    name: str
    overrides: Mapping[str, object]
    values: Mapping[str, object]


def read_grid(texts: Iterable[str]) -> dict[str, list]:
    """Names and values of a grid from ``name=value,value``, one or several in a text, separated by spaces.

    Values are YAML, so that a list can be one of them. A name twice, or without values, is refused.

    Example:
        >>> read_grid(["task=rte,mrpc seed=0,1", "depths=[0, 6],[0, 3, 6]"])
        {'task': ['rte', 'mrpc'], 'seed': [0, 1], 'depths': [[0, 6], [0, 3, 6]]}
    """
    grid: dict[str, list] = {}
    for pair in (pair for text in texts for pair in re.split(r"\s+(?=[^\s=,\[\]]+=)", text.strip())):
        name, _, values = pair.partition("=")
        if name in grid:
            raise ValueError(f"The grid names {name} twice: write all its values after one name.")
        try:
            grid[name] = read_yaml(f"[{values}]")
        except yaml.YAMLError as error:
            raise ValueError(
                f"The values of {name} are not YAML: {values!r}; write them as a,b or '[a, b],[c]'."
            ) from error
        if not re.fullmatch(r"\w+", name) or not grid[name]:
            raise ValueError(f"A grid is written name=value,value, not {pair!r}.")
    return grid


def expand(grid: Mapping[str, Sequence]) -> list[dict]:
    """Every combination of a grid's values; the last name changes fastest.

    Example:
        >>> expand({"task": ["rte", "mrpc"], "seed": [0, 1]})[1]
        {'task': 'rte', 'seed': 1}
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def points(number: int, profile: str, entries: Sequence[Mapping], fixed: Mapping | None = None) -> list[Point]:
    """The points of a sweep, one per entry, each with what all share (`fixed`), checked against the chapter.

    A name in the singular is a plural parameter with one entry: ``task=rte`` is ``tasks=[rte]``. Refused with its name:
    a point that does not fit the chapter, or is the same run as another.

    Example:
        >>> [point.overrides for point in points(1, "tiny", expand({"task": ["rte"], "seed": [0, 1]}))]
        [{'tasks': ['rte'], 'seeds': [0]}, {'tasks': ['rte'], 'seeds': [1]}]
    """
    if not entries:
        raise ParameterError("A sweep needs at least one point: give it a grid.")
    swept = list(dict.fromkeys(name for entry in entries for name in entry))
    checked: dict[str, Point] = {}
    for entry in entries:
        overrides: dict[str, object] = {}
        for name, value in [*(fixed or {}).items(), *entry.items()]:
            parameter, one_entry = _parameter(number, name)
            if value is None or parameter in overrides:
                raise ParameterError(f"The point {_words(entry)} gives {parameter} twice or no value.")
            overrides[parameter] = [value] if one_entry else value
        try:
            content = settings(number, profile, **overrides).model_dump(mode="json")
        except ParameterError as error:
            raise ParameterError(f"The point {_words(entry)} does not fit. {error}") from error
        run = json.dumps(content, sort_keys=True)
        if run in checked:
            raise ParameterError(f"The points {checked[run].name} and {_words(entry)} are the same run: name it once.")
        values = {name: _cell(content, number, name) for name in swept}
        name = _name({name: values[name] for name in entry})
        checked[run] = Point(name, {parameter: content[parameter] for parameter in overrides}, values)
    return list(checked.values())


def _parameter(number: int, name: str) -> tuple[str, bool]:
    """A parameter of the chapter from a name that may be in the singular, and whether it is."""
    fields = find_chapter(number).parameters.model_fields
    singular = name not in fields and f"{name}s" in fields
    return (f"{name}s" if singular else name), singular


def _cell(content: Mapping, number: int, name: str):
    """A point's value as a cell of a table."""
    parameter, singular = _parameter(number, name)
    value = content[parameter]
    if singular and len(value) == 1:
        value = value[0]
    return json.dumps(value) if isinstance(value, list | dict) else value


def _words(values: Mapping) -> str:
    return ",".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()
    )


def _name(values: Mapping) -> str:
    words = _words(values).replace('"', "").replace(" ", "")
    safe = re.sub(r"[^\w.,=+\[\]-]+", "-", words)
    if safe == words and len(safe) <= MAX_NAME_LENGTH:
        return safe
    return f"{safe[: MAX_NAME_LENGTH - 9]}-{hashlib.sha256(_words(values).encode()).hexdigest()[:8]}"


def sweep(
    number: int,
    profile: str,
    points: Sequence[Point],
    name: str | None = None,
    cluster: Cluster | None = None,
    retries: int = 1,
) -> Sweep:
    """Run a chapter at every point whose run is not current, and gather all exhibits in one table.

    Args:
        number, profile: the chapter, and `tiny`, `small` or `paper`.
        points: of `points`.
        name: of the sweep's folder; made from the points when None.
        cluster: where the points run; on this machine when None.
        retries: how often a point that failed is tried again.

    Raises:
        RunError, ValueError: the cluster cannot be reached, or the name does not fit.
    """
    name = name if name is not None else sweep_name(number, profile, points)
    cluster, folder = cluster or Cluster(), sweeps_folder() / name
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"A sweep's name is made of letters, digits, dots and dashes, not {name!r}.")
    execution.check_pair(find_chapter(number))
    for parameters in (settings(number, profile, **point.overrides) for point in points):
        if not (cluster.scheduler or cluster.slurm):
            check_device(parameters, profile)
        execution.check_inputs(parameters)
    _write_points(number, profile, points, folder)
    pending = _without_run(number, profile, points)
    current = len(points) - len(pending)
    print(f"sweep {name}: {len(points)} points, {current} current, {len(pending)} to run", flush=True)
    reasons = _run(number, profile, pending, folder, cluster, retries) if pending else {}
    # What counts is what is on the disk: a point that was done before its worker was lost is done.
    missing = {one.name: reasons.get(one.name, "it has no run") for one in _without_run(number, profile, pending)}
    complete = [point for point in points if point.name not in missing]
    table = collect(number, profile, complete, folder) if complete else None
    print(f"{len(complete)} of {len(points)} points have a run" + (f"; their exhibits are in {table}" if table else ""))
    return Sweep(folder, missing, table)


def sweep_name(number: int, profile: str, points: Sequence[Point]) -> str:
    """The name of a sweep that was given none: the same for the same points, in whatever order."""
    content = sorted(json.dumps(point.overrides, sort_keys=True) for point in points)
    return f"{find_chapter(number).slug}-{profile}-{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]}"


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


def _without_run(number: int, profile: str, points: Sequence[Point]) -> list[Point]:
    return [point for point in points if reason_to_run(number, profile, point.overrides)]


def _write_points(number: int, profile: str, points: Sequence[Point], folder: Path) -> None:
    content = {"chapter": number, "profile": profile, "swept": list(points[0].values)}
    content["points"] = {point.name: dict(point.overrides) for point in points}
    with written_beside(folder / POINTS) as partial:
        partial.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")


@contextmanager
def connect(cluster: Cluster, points: int, gpu: bool) -> "Iterator[Client]":
    """A client of a cluster's workers, for so many points that use a GPU or not.

    Raises:
        RunError: no scheduler answers, or this machine has no Slurm.
    """
    from distributed import Client

    if cluster.scheduler:
        try:
            client = Client(cluster.scheduler, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise RunError(
                f"No dask scheduler answers at {cluster.scheduler}: start one with `dask scheduler`, or leave "
                "--scheduler out."
            ) from error
        with client:
            yield client
    elif cluster.slurm:
        with _slurm(cluster.slurm, min(points, cluster.workers or MAX_JOBS), gpu) as client:
            yield client
    else:
        usual = torch.cuda.device_count() if gpu else max(1, cores() // CORES_OF_A_CHAPTER)
        with workers(min(cluster.workers or usual, points)) as client:
            yield client


@contextmanager
def _slurm(options: str, jobs: int, gpu: bool) -> "Iterator[Client]":
    """Slurm jobs, each one worker that runs one point at a time on all the job's cores."""
    import dask
    from dask_jobqueue import SLURMCluster
    from distributed import Client

    named = dict(pair.split("=", 1) for pair in options.split(","))
    count, configured = named.pop("cores", "1"), dask.config.get("jobqueue.slurm", {})
    prologue = [*configured.get("job-script-prologue", []), f"export OMP_NUM_THREADS={count}"]
    directives = [*configured.get("job-extra-directives", []), *(["--gres=gpu:1"] if gpu else [])]
    try:
        # To dask, cores are tasks at a time.
        shape = dict(cores=1, processes=1, job_cpu=int(count), log_directory=str(sweeps_folder() / "slurm"))
        cluster = SLURMCluster(**named, **shape, job_script_prologue=prologue, job_extra_directives=directives)
    except (OSError, TypeError, ValueError) as error:
        raise RunError(f"No Slurm job can be made of {options!r}: {' '.join(str(error).split())[:300]}") from error
    with cluster, Client(cluster) as client:
        # A point takes minutes and dask cannot know: ask at once for one job per waiting point, anew where one dies.
        cluster.adapt(minimum_jobs=1, maximum_jobs=jobs, target_duration="100ms")
        yield client


def _run(
    number: int, profile: str, points: Sequence[Point], folder: Path, cluster: Cluster, retries: int
) -> dict[str, str]:
    """Run every point; by name, why one failed."""
    from distributed import as_completed

    environment = {name: value for name, value in os.environ.items() if name.startswith("FIVELENSES_")}
    environment |= {"FIVELENSES_HOME": str(project.root()), "FIVELENSES_RUNS": str(project.runs_folder())}
    environment |= {"FIVELENSES_STORE": str(project.store_folder())}
    environment.pop(CORES_VARIABLE, None)
    shared = dict(number=number, profile=profile, folder=folder, environment=environment)
    gpu = torch.cuda.is_available() and settings(number, profile, **points[0].overrides).device != "cpu"
    reasons: dict[str, str] = {}
    started = time.monotonic()
    with connect(cluster, len(points), gpu) as client:
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
    """Run one point on a worker, with the FIVELENSES_ variables of the process that sweeps; the seconds that it took.

    Raises:
        RunError: the notebook failed, or this worker does not see the sweep's folder.
    """
    from distributed import get_worker

    if not (folder / POINTS).is_file():
        raise RunError(f"The worker on {socket.gethostname()} does not see {folder}: it has to share that disk.")
    os.environ.update(environment)
    name = get_worker().name
    if isinstance(name, int) and torch.cuda.device_count() > 1:
        # Of this machine's workers each has a GPU to itself.
        os.environ["CUDA_VISIBLE_DEVICES"] = str(name % torch.cuda.device_count())

    def log(line: str) -> None:
        with (folder / f"{point.name}.log").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {line}\n")

    log(f"begins on {socket.gethostname()}, process {os.getpid()}")
    try:
        return execution.run(number, profile, dict(point.overrides), log=log).seconds
    except Exception as error:
        log(f"failed: {error}")
        raise


def failures(sweep: Sweep) -> str:
    """The points of a sweep that have no run, each with the end of its log, or the reason why it was never begun."""
    parts = []
    for name, reason in sweep.missing.items():
        log = sweep.folder / f"{name}.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else [reason]
        parts.append("\n  ".join([f"\n{name} failed; its log ends:", *lines[-LOG_LINES:]]))
    return "\n".join([*parts, f"\nfivelenses: {len(sweep.missing)} points failed: {', '.join(sweep.missing)}."])


def collect(number: int, profile: str, points: Sequence[Point], folder: Path) -> Path:
    """Write a sweep's tables from the runs of its points, and return the path of the exhibits' table."""
    parts, verdicts = [], []
    for point in points:
        run = run_folder(number, profile, point.overrides)
        origin = {"chapter": number, "profile": profile, "point": point.name, **point.values}
        facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
        parts += [(origin, key, pd.read_parquet(run / f"{key}.parquet")) for key in facts["exhibits"]]
        manifests = [Store().folder / address / MANIFEST for address in facts["specifications"]]
        stored = [Checkpoint(file.parent, json.loads(file.read_text("utf-8"))) for file in manifests if file.is_file()]
        if len(stored) < len(manifests):
            print(f"{point.name}: {len(manifests) - len(stored)} of its models are no longer in the store")
        if stored:
            parts.append((origin, MODELS, tables.models(stored)))
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
