"""Time and peak memory of a computation in a process of its own, so that no measurement inherits another's memory."""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch


@dataclass(frozen=True)
class Cost:
    """Seconds of the computation, its peak memory in MB above that with its input loaded, and what it returned."""

    seconds: float
    megabytes: float
    result: float


def _peak_megabytes() -> float:
    """The most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux a new process inherits its parent's ru_maxrss; this counts from its own start.
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _measure(
    answers: multiprocessing.SimpleQueue, compute: Callable[..., float], folder: str, warm: Sequence[np.ndarray]
) -> None:
    # Loading libraries and starting threads count for neither side, and small inputs do not start all threads.
    compute(*warm)
    square = torch.ones(512, 512, dtype=torch.float64)
    (square @ square).sum()
    inputs = [np.load(path) for path in sorted(Path(folder).iterdir())]
    loaded = _peak_megabytes()
    start = time.perf_counter()
    result = compute(*inputs)
    seconds = time.perf_counter() - start
    answers.put(Cost(seconds, _peak_megabytes() - loaded, result))


def _in_fresh_process(compute: Callable[..., float], folder: str, warm: Sequence[np.ndarray]) -> Cost:
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    process = context.Process(target=_measure, args=(answers, compute, folder, warm))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"Measuring {compute.__name__} ended with exit code {process.exitcode}.")
    return answers.get()


def arguments(description: str, quick: str, repeats: int = 3) -> tuple[bool, int]:
    """Whether a quick run is requested, and the number of repeats, which is 1 in a quick run.

    Args:
        description: a benchmark's docstring, whose first line describes it.
        quick: what a quick run leaves out.
        repeats: by default.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    help_text = f"how often each side is measured (default {repeats})"
    parser.add_argument("--repeats", type=int, default=repeats, help=help_text)
    given = parser.parse_args()
    return given.quick, 1 if given.quick else given.repeats


def compare(
    plain: Callable[..., float],
    ours: Callable[..., float],
    inputs: Sequence[np.ndarray],
    warm: Sequence[np.ndarray],
    repeats: int,
) -> tuple[Cost, Cost]:
    """Median costs of both on the same inputs, measured in turns so that a busy machine slows both alike.

    Inputs are loaded from files, since making them could take more memory than the computation and hide it.

    Args:
        plain: module-level function of the input arrays.
        ours: module-level function of the input arrays.
        inputs: what both are measured on.
        warm: small inputs of the same kind, computed once before.
        repeats: how often each is measured.
    """
    with tempfile.TemporaryDirectory() as folder:
        for number, values in enumerate(inputs):
            np.save(Path(folder, f"{number}.npy"), values)
        pairs = [[_in_fresh_process(compute, folder, warm) for compute in (plain, ours)] for _ in range(repeats)]
    costs = [
        Cost(median(cost.seconds for cost in side), median(cost.megabytes for cost in side), side[0].result)
        for side in zip(*pairs, strict=True)
    ]
    return costs[0], costs[1]


def report(title: str, plain: Cost, ours: Cost) -> str:
    """A line of the table: times, memory, their ratios, and how far the results are apart."""
    return (
        f"{title:<24}{plain.seconds:>9.3f} s{ours.seconds:>9.3f} s{plain.seconds / ours.seconds:>8.1f} ×"
        f"{plain.megabytes:>9.0f} MB{ours.megabytes:>8.0f} MB{plain.megabytes / max(ours.megabytes, 1):>8.1f} ×"
        f"{abs(plain.result - ours.result):>10.1e}"
    )


HEADER = (
    f"{'':<24}{'plain':>11}{'ours':>11}{'faster':>10}{'plain':>12}{'ours':>11}{'smaller':>10}{'apart':>10}\n"
    "(seconds and peak memory without the input, medians of fresh processes measured in turns)"
)
