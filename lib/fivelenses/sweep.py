"""Sweeps: one chapter at many points of its parameters, each a run like any other, on the workers of dask.

A sweep is a folder under ``runs/sweeps``: ``sweep.yaml`` (its points), ``<point>.log``, and the tables of all exhibits
and claims, ``sweep.parquet`` and ``claims.parquet``, whose columns the book's page on sweeps describes.
"""

import hashlib
import itertools
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import joblib
import pandas as pd
import yaml

from fivelenses import judging, processes, records
from fivelenses.chapters import ParameterError, check_device
from fivelenses.execution import Job, execute, of_chapter
from fivelenses.files import RunError, project_folder, records_folder, runs_folder, store_folder, written_beside

MODELS = "models"  # as an exhibit, the chapter's own table of fine-tuned models
PATIENCE = 10  # seconds in which a scheduler that is up has to answer


@dataclass(frozen=True)
class Point:
    """One run of a sweep."""

    name: str  # its number and values, as far as they fit into the name of a file
    values: Mapping[str, object]  # of each swept parameter: a number, a text, or JSON
    job: Job


def points(number: int, profile: str, grid: Mapping[str, Sequence], fixed: Mapping | None = None) -> list[Point]:
    """The points of a sweep: every combination of a grid's values, of which the last changes fastest, with what all
    share (`fixed`). Combinations that are the same run are one point; one that does not fit the chapter is refused.
    """
    if not grid or not all(grid.values()):
        raise ParameterError("A sweep needs at least one point: write its grid as --grid name=value,value.")
    made: dict[Path, Point] = {}
    for combination in itertools.product(*grid.values()):
        entry = dict(zip(grid, combination, strict=True))
        job = of_chapter(number, profile, {**(fixed or {}), **entry})
        content = job.parameters.model_dump(mode="json")
        values = {name: _cell(content[name]) for name in grid}
        words = [f"{key}={one:g}" if isinstance(one, float) else f"{key}={one}" for key, one in values.items()]
        name = re.sub(r"[^\w.,=+-]+", "-", f"{len(made) + 1}-{','.join(words)}")[:60]
        made.setdefault(job.place, Point(name, values, job))
    return list(made.values())


def _cell(value):
    """A parameter's value as a cell of a table; of a list of one its entry."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return json.dumps(value) if isinstance(value, list | dict) else value


def sweep(points: Sequence[Point], name: str = "", retries: int = 1, **cluster) -> tuple[Path, list[str]]:
    """Run a chapter at every point whose run is not current, and gather all exhibits and claims in two tables. Returns
    the sweep's folder, and the names of points that have no run.

    Args:
        name: of the sweep's folder; by default the same for the same points, in whatever order.
        retries: how often a point that failed is tried again.
        cluster: where the points run, see `connect`; on this machine by default.
    """
    from fivelenses.inputs import check_inputs  # a worker's notebook loads what measures, not the worker

    job, places = points[0].job, json.dumps(sorted(point.job.place.name for point in points))
    name = name or f"{job.chapter.slug}-{job.profile}-{hashlib.sha256(places.encode()).hexdigest()[:8]}"
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"A sweep's name is made of letters, digits, dots and dashes, not {name!r}.")
    for point in points:
        check_inputs(point.job.parameters)
        if not (cluster.get("scheduler") or cluster.get("slurm")):
            check_device(point.job.parameters)
    pending, folder = [point for point in points if point.job.reason], runs_folder() / "sweeps" / name
    content = {"chapter": job.chapter.number, "profile": job.profile, "swept": list(points[0].values)}
    content["points"] = {point.name: dict(point.job.overrides) for point in points}
    with written_beside(folder / "sweep.yaml") as partial:
        partial.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    current = len(points) - len(pending)
    print(f"sweep {name}: {len(points)} points, {current} current, {len(pending)} to run", flush=True)
    if pending:
        _run(pending, folder, retries, **cluster)
    # What counts is what is on the disk: a point that was done before its worker was lost is done.
    missing = [point.name for point in pending if point.job.reason]
    if complete := [point for point in points if point.name not in missing]:
        collect(complete, folder)
    where = f"; their exhibits are in {folder}" if complete else ""
    print(f"{len(complete)} of {len(points)} points have a run{where}")
    return folder, missing


@contextmanager
def connect(
    points: int, gpu: bool, workers: int | None = None, scheduler: str | None = None, slurm: str | None = None
) -> Iterator:
    """A client of a cluster's workers, for so many points that may use a GPU or not.

    Args:
        workers: processes of this machine, by default one per GPU or two cores; or Slurm jobs, by default at most 8.
        scheduler: the address of a running dask scheduler.
        slurm: options of dask-jobqueue's SLURMCluster, ``queue=gpu,cores=8,memory=32GB``, beside its configuration.
    """
    import torch
    from distributed import Client

    if scheduler:
        try:
            client = Client(scheduler, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            advice = "start one with `dask scheduler`, or leave --scheduler out"
            raise RunError(f"No dask scheduler answers at {scheduler}: {advice}.") from error
        with client:
            yield client
    elif slurm:
        with _slurm(slurm, gpu) as cluster, Client(cluster) as client:
            # A point takes minutes: ask at once for one job per waiting point, anew where one dies.
            cluster.adapt(minimum_jobs=1, maximum_jobs=min(points, workers or 8), target_duration="100ms")
            yield client
    else:
        usual = (torch.cuda.device_count() if gpu else 0) or max(1, joblib.cpu_count() // 2)
        with processes.workers(min(points, workers or usual)) as client:
            yield client


def _slurm(options: str, gpu: bool):
    """A cluster of Slurm jobs, each one worker that runs one point at a time on all the job's cores."""
    import dask
    from dask_jobqueue import SLURMCluster

    if shutil.which("sbatch") is None:
        raise RunError("There is no sbatch here: sweep where Slurm jobs can be submitted, or leave --slurm out.")
    configured = dask.config.get("jobqueue.slurm", {})
    try:
        shape = dict(pair.split("=", 1) for pair in options.split(","))
        count = shape.pop("cores", configured.get("cores") or 1)
        # To dask, cores are tasks at a time.
        shape |= dict(cores=1, processes=1, job_cpu=int(count), log_directory=str(runs_folder() / "slurm"))
        prologue = [*configured.get("job-script-prologue", []), f"export OMP_NUM_THREADS={count}"]
        directives = [*configured.get("job-extra-directives", []), *(["--gres=gpu:1"] if gpu else [])]
        return SLURMCluster(**shape, job_script_prologue=prologue, job_extra_directives=directives)
    except (OSError, TypeError, ValueError) as error:
        raise RunError(f"No Slurm job can be made of {options!r}: {' '.join(str(error).split())[:300]}") from error


def _run(points: Sequence[Point], folder: Path, retries: int, **cluster) -> None:
    """Run every point, and say what became of it."""
    from distributed import as_completed

    environment = {name: value for name, value in os.environ.items() if name.startswith("FIVELENSES_")}
    places = {"HOME": project_folder(), "RUNS": runs_folder(), "STORE": store_folder()}
    environment |= {f"FIVELENSES_{name}": str(place) for name, place in places.items()}
    gpu, started = points[0].job.parameters.device != "cpu", time.monotonic()
    with connect(len(points), gpu, **cluster) as client:
        print(f"dashboard: {client.dashboard_link}", flush=True)
        futures = client.map(run_point, points, folder=folder, environment=environment, retries=retries, pure=False)
        names = dict(zip(futures, (point.name for point in points), strict=True))

        def progress() -> None:
            done = sum(future.done() for future in futures)
            print(f"after {time.monotonic() - started:,.0f} s {done} of {len(points)} points are done", flush=True)

        with processes.repeated(progress):
            for done, future in enumerate(as_completed(futures), 1):
                if future.status == "cancelled":
                    raise RunError("The cluster went away: the same command continues with what is left.")
                if error := future.exception():
                    outcome = f"failed: {' '.join(str(error).split()) or type(error).__name__}"
                else:
                    outcome = f"done in {future.result():.0f} s"
                print(f"{names[future]}: {outcome} ({done} of {len(points)})", flush=True)


def run_point(point: Point, folder: Path, environment: Mapping[str, str]) -> float:
    """Run one point on a worker, with the variables of the process that sweeps; the seconds that it took."""
    import torch
    from distributed import get_worker

    if not folder.is_dir():
        raise RunError(f"The worker on {socket.gethostname()} does not see {folder}: it has to share that disk.")
    os.environ.update(environment)
    name, started = get_worker().name, time.monotonic()
    if isinstance(name, int) and torch.cuda.device_count() > 1:
        # Of this machine's workers each has a GPU to itself.
        given = filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(","))
        devices = list(given) or range(torch.cuda.device_count())
        os.environ["CUDA_VISIBLE_DEVICES"] = str(devices[name % len(devices)])

    def log(line: str) -> None:
        with (folder / f"{point.name}.log").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {line}\n")

    log(f"begins on {socket.gethostname()}, process {os.getpid()}")
    try:
        execute(point.job, log=log)
    except Exception as error:
        log(f"failed: {error}")
        raise
    return time.monotonic() - started


def collect(points: Sequence[Point], folder: Path) -> None:
    """Write a sweep's tables from the runs of its points."""
    exhibits, verdicts = [], []
    for point in points:
        run, chapter = point.job.place, point.job.chapter
        origin = {"chapter": chapter.number, "profile": point.job.profile, "point": point.name, **point.values}
        facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
        tables = [(key, pd.read_parquet(run / f"{key}.parquet")) for key in facts["exhibits"]]
        models = [records_folder() / chapter.slug / file for file in facts["records"].get(MODELS, ())]
        tables += [(MODELS, records.read(file).table) for file in models]
        for key, table in tables:
            exhibits.append(_with_origin({**origin, "exhibit": key, "row": range(len(table))}, table))
        verdicts.append(_with_origin(origin, judging.as_table(judging.load(run))))
    for name, parts in (("sweep", exhibits), ("claims", verdicts)):
        with written_beside(folder / f"{name}.parquet") as place:
            _of_one_type(parts).to_parquet(place, index=False)


def _with_origin(origin: Mapping, table: pd.DataFrame) -> pd.DataFrame:
    """A table with columns that say where it is from before its own; a name that both have is also `table_<name>`."""
    renamed = table.rename(columns={name: f"table_{name}" for name in origin})
    return pd.concat([pd.DataFrame(origin, index=table.index), renamed], axis=1)


def _of_one_type(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables below one another, each column numbers or text."""
    table = pd.concat(tables, ignore_index=True)
    for name in table.columns[table.dtypes.map(pd.api.types.is_object_dtype)]:  # not of one type
        numeric = table[name].dropna().map(pd.api.types.is_number).all()
        table[name] = pd.to_numeric(table[name]) if numeric else table[name].map(_text)
    return table


def _text(value):
    """A cell as text; a missing one stays missing."""
    if not pd.api.types.is_scalar(value):
        return json.dumps(value, default=lambda array: array.tolist())
    return None if pd.isna(value) else str(value)
