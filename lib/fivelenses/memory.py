"""How much memory a process may use (the machine's, or what a container or a cluster's job allows) and has used."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

SHARE = 1 / 3  # what is gathered in a stream may take; the rest is for the models, and for what else the machine does
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def memory_at_hand(device: str | None = None) -> float:
    """Bytes that may be filled with what is gathered in a stream: a third of what is free on a GPU, or of `memory`.

    Args:
        device: a GPU when there is one, by default.
    """
    chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    return SHARE * (torch.cuda.mem_get_info(chosen)[0] if chosen.type == "cuda" else memory())


def peak_memory() -> int:
    """The most bytes of memory that this process has held at a time since it began."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def memory(groups: Path = CONTROL_GROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """Bytes of memory that this process may use at most.

    Args:
        groups: where Linux keeps its control groups, of the first or of the second version.
        own: the file that names those of a process; elsewhere than on Linux there is none.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _limits(groups, own.read_text().splitlines() if own.is_file() else []):
        text = file.read_text().strip() if file.is_file() else ""
        limits += [int(text)] if text.isdigit() else []
    return min(limits)


def _limits(groups: Path, named: list[str]) -> Iterator[Path]:
    """The files that may hold a limit: of each of a process's groups, and of those that it is part of."""
    for line in named:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (groups / "memory", "memory.limit_in_bytes") if controllers else (groups, "memory.max")
        parts = [part for part in path.split("/") if part not in ("", "..")]
        yield from (root.joinpath(*parts[:count], name) for count in range(len(parts) + 1))
