"""How much memory a process may use (the machine's, or what a container or a cluster's job allows) and has used."""

import os
import resource
import sys
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
    """Bytes of memory that this process may use at most: this machine's, or what a container or a job may take.

    Args:
        groups: where Linux keeps its control groups.
        own: the file that names that of a process; elsewhere than on Linux there is none.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    named = [line for line in own.read_text().splitlines() if line.startswith("0::")] if own.is_file() else []
    for group in (groups / line.removeprefix("0::").strip("/") for line in named):
        files = (folder / "memory.max" for folder in (group, *group.parents) if folder.is_relative_to(groups))
        texts = [file.read_text().strip() for file in files if file.is_file()]
        limits += [int(text) for text in texts if text.isdigit()]
    return min(limits)
