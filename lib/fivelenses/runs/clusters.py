"""Where the points of a sweep run: worker processes of this machine, a running dask cluster, or Slurm jobs."""

import contextlib
import itertools
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
from fivelenses.first_exhibits.exhibit import counted
from fivelenses.runs.execution import RunError
from fivelenses.runs.sweep_points import check_workers

PATIENCE = 10  # seconds in which a scheduler that is up has to answer
CORES_OF_A_CHAPTER = 2
MAX_JOBS = 8  # of Slurm, unless the caller says how many
MAX_LOST_WORKERS = 2  # the point of a lost worker goes to another; one that loses more has failed


@dataclass(frozen=True)
class Place:
    """What one local worker has for itself.

    Attributes:
        cores: the numbers of its cores.
        threads: of its numerical libraries: OMP_NUM_THREADS where that is set, and one per core otherwise.
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
class Cluster:
    """What a sweep runs on.

    Attributes:
        workers: local processes, or Slurm jobs; None for as many as this machine has GPUs, or pairs of cores, and at
            most 8 jobs.
        scheduler: the address of a running dask scheduler.
        slurm: options of dask-jobqueue's SLURMCluster, ``queue=gpu,cores=8,memory=32GB`` or the path of a YAML file.

    Raises:
        ValueError: they do not go together, or Slurm's options do not fit.
    """

    workers: int | None = None
    scheduler: str | None = None
    slurm: str | None = None

    def __post_init__(self):
        check_workers(self.workers)
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
    """The places of local workers: one GPU each where there are GPUs, and equal shares of the cores.

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
    threads = os.environ.get("OMP_NUM_THREADS")
    return [
        Place(share, int(threads or len(share)), own_gpus[number] if own_gpus else "")
        for number, share in zip(range(count), itertools.cycle(shares), strict=False)
    ]


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


def _several(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def slurm_options(text: str, folder: Path, gpu: bool) -> dict:
    """The options of a SLURMCluster: each job is one worker, which runs one point at a time on all the job's cores.

    Args:
        text: ``name=value,name=value``, or the path of a YAML file with a mapping.
        folder: where the jobs' own logs go.
        gpu: whether each job asks for a GPU, unless `text` has directives that do.

    Raises:
        ValueError: not of that form, or refused by dask-jobqueue.

    Example:
        >>> options = slurm_options("queue=gpu,cores=8,memory=32GB", Path("logs"), gpu=True)
        >>> options["job_cpu"], options["job_extra_directives"]
        (8, ['--gres=gpu:1'])
    """
    from dask_jobqueue.slurm import SLURMJob

    options = _slurm_file(Path(text)) if Path(text).suffix in (".yaml", ".yml") else _slurm_pairs(text)
    try:
        count = int(options.pop("cores"))
    except (KeyError, ValueError) as error:
        raise ValueError("Slurm has to know the cores of a job: --slurm cores=8,memory=32GB,…") from error
    directives = _several(options.pop("job_extra_directives", []))
    if gpu and not any("gpu" in directive or "gres" in directive for directive in directives):
        directives.append("--gres=gpu:1")
    prologue = [f"export OMP_NUM_THREADS={count}", *_several(options.pop("job_script_prologue", []))]
    # To dask, cores are tasks at a time.
    options |= dict(cores=1, processes=1, job_cpu=count, job_script_prologue=prologue, job_extra_directives=directives)
    try:
        # Without its folder of logs, which it would make.
        SLURMJob(scheduler="tcp://127.0.0.1:0", name="check", **options | {"log_directory": None})
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"dask-jobqueue does not take these options of Slurm: {reason}") from error
    return {"log_directory": str(folder), **options}


def _slurm_file(file: Path) -> dict:
    try:
        # Every scalar as it is written: YAML would read the time 12:00:00 as a number.
        options = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"The options of Slurm in {file} cannot be read: {' '.join(str(error).split())}.") from error
    if not isinstance(options, dict):
        raise ValueError(f"The options of Slurm in {file} have to be a mapping, one `queue: gpu` per line.")
    return options


def _slurm_pairs(text: str) -> dict:
    pairs = re.findall(r"(?:^|,)(\w+)=([^,]+)", text)
    if ",".join(map("=".join, pairs)) != text:
        raise ValueError(f"The options of Slurm are written name=value,name=value, not {text!r}.")
    return dict(pairs)


@contextlib.contextmanager
def slurm(options: dict, jobs: int) -> Iterator[Client]:
    """At most so many Slurm jobs: asked for while points wait, asked for again when they die, ended when idle.

    Raises:
        RunError: this machine has no `sbatch`.
    """
    from dask_jobqueue import SLURMCluster

    if shutil.which("sbatch") is None:
        raise RunError("There is no sbatch on this machine: start the sweep where Slurm jobs can be submitted.")
    with SLURMCluster(**options) as cluster, Client(cluster) as client:
        # A point takes minutes and dask cannot know: ask at once for one job per waiting point.
        cluster.adapt(minimum_jobs=1, maximum_jobs=jobs, target_duration="100ms")
        yield client


@contextlib.contextmanager
def connect(cluster: Cluster, points: int, gpu: bool, folder: Path, log: Callable[[str], None]) -> Iterator[tuple]:
    """A client of a cluster, and the places of its workers by name (of local ones).

    Args:
        cluster: which.
        points: how many are to run.
        gpu: whether the points use a GPU where there is one.
        folder: the sweep's.
        log: called with one line for each event.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": MAX_LOST_WORKERS}))
        # The sweep says what is lost, in one line and without a traceback.
        stack.enter_context(silence_logging_cmgr(logging.CRITICAL))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        own: list[Place] = []
        if cluster.scheduler is not None:
            client = stack.enter_context(running(cluster.scheduler))
            log(f"on the cluster at {cluster.scheduler}, which has {counted(len(client.nthreads()), 'worker')}")
        elif cluster.slurm is not None:
            jobs = min(points, cluster.workers or MAX_JOBS)
            client = stack.enter_context(slurm(slurm_options(cluster.slurm, folder / "slurm", gpu), jobs))
            log(f"on at most {counted(jobs, 'Slurm job')}")
        else:
            own_cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(cores())
            own = places(cluster.workers, points, own_cores, gpus() if gpu else [])
            # Workers hold no data: their notebooks are processes of their own. A nanny restarts one that is killed.
            workers = dict(n_workers=len(own), threads_per_worker=1, processes=True, memory_limit=0)
            quiet = dict(dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL)
            client = stack.enter_context(Client(stack.enter_context(LocalCluster(**workers, **quiet))))
            log(f"on {counted(len(own), 'worker')} of this machine")
        log(f"dashboard: {client.dashboard_link}")
        yield client, dict(enumerate(own))
