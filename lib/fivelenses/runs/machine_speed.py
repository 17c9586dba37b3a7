"""How fast this machine is at what takes most of a run's time: products of matrices, and taking one apart."""

import functools
import time
from collections.abc import Callable

import torch

# The share of the matrix rate that fine-tuning reaches: padding, small products, the optimiser. Measured on a CPU
# at 6 × 384.
EFFICIENCY = 0.35


class Machine:
    """The device that a run would use here, and how fast it is.

    Args:
        asked: the device that the run's parameters name: `auto`, `cpu` or `cuda`.

    Attributes:
        asked: the same.
        device: `cuda` where there is a GPU and it is not declined, `cpu` otherwise.
        peak: floating-point operations per second of a product of matrices.
        rate: those of fine-tuning.
    """

    def __init__(self, asked: str) -> None:
        self.asked = asked
        self.device = "cuda" if torch.cuda.is_available() and asked != "cpu" else "cpu"
        self.peak = matrix_rate(self.device)
        self.rate = self.peak * EFFICIENCY

    def __str__(self) -> str:
        if self.device == "cuda":
            return torch.cuda.get_device_name()
        return f"this CPU ({self.peak / 1e9:.0f} GFLOP/s)"


def matrix_rate(device: str, size: int = 1024) -> float:
    """Floating-point operations per second of a square matrix product on this machine, the best of five."""
    matrix = torch.randn(size, size, device=device, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
    return 2 * size**3 / _quickest(lambda: matrix @ matrix, device, times=5)


@functools.cache
def decomposition_seconds(width: int, device: str) -> float:
    """Seconds that the eigenvectors of a covariance of this width take on this machine, the better of two."""
    rows = torch.randn(2 * width, width, dtype=torch.float64, device=device)
    covariance = rows.T @ rows
    return _quickest(lambda: torch.linalg.eigh(covariance), device, times=2)


def _quickest(work: Callable[[], object], device: str, times: int) -> float:
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    seconds = []
    for _ in range(times):
        wait()
        started = time.perf_counter()
        work()
        wait()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
