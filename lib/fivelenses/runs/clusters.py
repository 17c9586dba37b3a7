"""Where the points of a sweep run: worker processes of this machine, a dask cluster that is up, or jobs of Slurm."""

import contextlib
import logging
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dask
import numpy as np
import torch
import yaml
from distributed import Client, LocalCluster
from distributed.utils import silence_logging_cmgr

from fivelenses.checkpoints.finetuning import cores
from fivelenses.runs.execution import RunError

PATIENCE = 10  # seconds in which a scheduler that is up has to answer
CORES_OF_A_CHAPTER = 2
MAX_JOBS = 8  # of Slurm, unless the caller says how many


@dataclass(frozen=True)
class Place:
    """What one local worker has for itself.

    Attributes:
        cores: the numbers of its cores.
        threads: of its numerical libraries: OMP_NUM_THREADS where that is set, and one a core otherwise.
        gpu: its GPU as CUDA_VISIBLE_DEVICES names it; empty for none.
    """

    cores: tuple[int, ...]
    threads: int
    gpu: str = ""

    def take(self) -> None:
        """Keep this thread, and all processes that it starts from now on, to the place."""
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self.cores)
        os.environ["OMP_NUM_THREADS"] = str(self.threads)
        os.environ["CUDA_VISIBLE_DEVICES"] = self.gpu


@dataclass(frozen=True)
class Where:
    """Which cluster a sweep runs on.

    Attributes:
        workers: local processes, or jobs of Slurm; None for as many as there are GPUs, or pairs of cores, here, and at
            most 8 jobs.
        scheduler: the address of a dask scheduler that is up.
        slurm: options of dask-jobqueue's SLURMCluster, ``queue=gpu,cores=8,memory=32GB`` or the path of a YAML file.

    Raises:
        ValueError: they do not go together, or Slurm's options do not fit.
    """

    workers: int | None = None
    scheduler: str | None = None
    slurm: str | None = None

    def __post_init__(self):
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"A sweep needs at least one worker, not {self.workers}.")
        if self.scheduler is not None and (self.workers is not None or self.slurm is not None):
            raise ValueError("A running cluster has its own workers: give --scheduler without --workers and --slurm.")
        if self.slurm is not None:
            slurm_options(self.slurm, Path("logs"), gpu=False)


def gpus() -> list[str]:
    """The GPUs of this machine as CUDA_VISIBLE_DEVICES names them."""
    if not torch.cuda.is_available():
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(number) for number in range(torch.cuda.device_count())]


def places(workers: int | None, points: int, own_cores: Sequence[int], own_gpus: Sequence[str]) -> list[Place]:
    """The places of local workers: a GPU each where there are GPUs, and equal shares of the cores.

    Raises:
        ValueError: more workers than GPUs.

    Example:
        >>> [place.cores for place in places(2, 6, range(4), [])]
        [(0, 1), (2, 3)]
    """
    if own_gpus and workers is not None and workers > len(own_gpus):
        raise ValueError(f"A worker has a GPU to itself: ask for at most {len(own_gpus)} workers, not {workers}.")
    usual = len(own_gpus) or max(1, len(own_cores) // CORES_OF_A_CHAPTER)
    count = min(workers or usual, points)
    shares = [tuple(map(int, share)) for share in np.array_split(list(own_cores), min(count, len(own_cores)))]
    made = []
    for number in range(count):
        share = shares[number % len(shares)]
        threads = int(os.environ.get("OMP_NUM_THREADS") or len(share))
        made.append(Place(share, threads, own_gpus[number] if own_gpus else ""))
    return made


@contextlib.contextmanager
def local(chosen: Sequence[Place]) -> Iterator[Client]:
    """Worker processes of this machine, named by the numbers of their places; a nanny starts a killed one again."""
    # Workers of a sweep hold no data: their notebooks are processes of their own, with a memory of their own.
    with (
        LocalCluster(
            n_workers=len(chosen),
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextlib.contextmanager
def running(address: str) -> Iterator[Client]:
    """The cluster whose scheduler is at an address.

    Raises:
        RunError: nothing answers there, or it has no worker.
    """
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise RunError(
            f"No dask scheduler answers at {address}: start one with `dask scheduler`, or leave --scheduler out."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise RunError(
                f"The scheduler at {address} has no worker: start some with `dask worker {address} --nthreads 1`."
            ) from error
        yield client


def slurm_options(given: str, folder: Path, gpu: bool) -> dict:
    """The options of a SLURMCluster whose jobs are one worker each, which runs one point at a time on all their cores.

    Args:
        given: ``name=value,name=value``, or the path of a YAML file with a mapping.
        folder: where the jobs' own logs go.
        gpu: whether each job asks for a GPU, unless `given` has directives that do.

    Raises:
        ValueError: not of that form, or refused by dask-jobqueue.

    Example:
        >>> options = slurm_options("queue=gpu,cores=8,memory=32GB", Path("logs"), gpu=True)
        >>> options["job_cpu"], options["job_extra_directives"]
        (8, ['--gres=gpu:1'])
    """
    from dask_jobqueue.slurm import SLURMJob

    options = _slurm_mapping(given)
    try:
        count = int(options.pop("cores"))
    except (KeyError, ValueError) as error:
        raise ValueError("Slurm has to know the cores of a job: --slurm cores=8,memory=32GB,…") from error
    # To dask, cores are tasks at a time.
    options |= {"cores": 1, "processes": 1, "job_cpu": count}
    options["job_script_prologue"] = [f"export OMP_NUM_THREADS={count}", *options.get("job_script_prologue", [])]
    directives = list(options.get("job_extra_directives", []))
    if gpu and not any("gpu" in directive or "gres" in directive for directive in directives):
        directives.append("--gres=gpu:1")
    options["job_extra_directives"] = directives
    try:
        # Without its folder of logs, which it would make.
        SLURMJob(scheduler="tcp://127.0.0.1:0", name="check", **{**options, "log_directory": None})
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"dask-jobqueue does not take these options of Slurm: {' '.join(str(error).split())}"
        ) from error
    return {"log_directory": str(folder), **options}


def _slurm_mapping(given: str) -> dict:
    if Path(given).suffix in (".yaml", ".yml"):
        try:
            # Every scalar as it is written: YAML would read the time 12:00:00 as a number.
            mapping = yaml.load(Path(given).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(
                f"The options of Slurm in {given} cannot be read: {' '.join(str(error).split())}."
            ) from error
        if not isinstance(mapping, dict):
            raise ValueError(f"The options of Slurm in {given} have to be a mapping, `queue: gpu` a line.")
        return mapping
    pairs = [pair.partition("=") for pair in given.split(",")]
    for name, equals, value in pairs:
        if not re.fullmatch(r"\w+", name) or not equals or not value:
            raise ValueError(f"The options of Slurm are written name=value,name=value, not {given!r}.")
    return {name: value for name, _, value in pairs}


@contextlib.contextmanager
def slurm(options: dict, jobs: int) -> Iterator[Client]:
    """Jobs of Slurm, at most so many at once: asked for as points wait, asked for again when they die, ended when idle.

    Raises:
        RunError: this machine has no `sbatch`.
    """
    from dask_jobqueue import SLURMCluster

    if shutil.which("sbatch") is None:
        raise RunError("There is no sbatch on this machine: start the sweep where jobs of Slurm can be submitted.")
    with SLURMCluster(**options) as cluster, Client(cluster) as client:
        # A point takes minutes and dask cannot know: ask for a job a waiting point at once.
        cluster.adapt(minimum_jobs=1, maximum_jobs=jobs, target_duration="100ms")
        yield client


@contextlib.contextmanager
def connect(where: Where, points: int, gpu: bool, folder: Path, log: Callable[[str], None]) -> Iterator[tuple]:
    """A client of the chosen cluster, and the places of its workers by name (for local ones).

    Args:
        where: the cluster.
        points: how many are to run.
        gpu: whether the points use a GPU where there is one.
        folder: the sweep's.
        log: called with one line for each event.
    """
    with contextlib.ExitStack() as stack:
        # The point of a worker that is lost goes to another; a point that has lost three of them has failed.
        stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": 2}))
        # What is lost is told by the sweep, in a line and without a traceback.
        stack.enter_context(silence_logging_cmgr(logging.CRITICAL))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        given: dict[int, Place] = {}
        if where.scheduler is not None:
            client = stack.enter_context(running(where.scheduler))
            count = len(client.nthreads())
            log(f"on the cluster at {where.scheduler}, which has {count} worker{'s' if count > 1 else ''}")
        elif where.slurm is not None:
            options = slurm_options(where.slurm, folder / "slurm", gpu)
            jobs = min(points, where.workers or MAX_JOBS)
            client = stack.enter_context(slurm(options, jobs))
            log(f"on at most {jobs} jobs of Slurm")
        else:
            own = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(cores())
            chosen = places(where.workers, points, own, gpus() if gpu else [])
            given = dict(enumerate(chosen))
            client = stack.enter_context(local(chosen))
            log(f"on {len(chosen)} worker{'s' if len(chosen) > 1 else ''} of this machine")
        log(f"dashboard: {client.dashboard_link}")
        yield client, given
