"""Encoders addressed by layer and part, their heads, batches for them, and surgery on their parts."""

import numpy as np


def thirds(depth: int) -> dict[str, tuple[int, ...]]:
    """The low, middle and high layers of an encoder: 1…depth in three parts, as equal as possible, low ones larger.

    Example:
        >>> thirds(7)
        {'low': (1, 2, 3), 'middle': (4, 5), 'high': (6, 7)}
    """
    groups = np.array_split(np.arange(1, depth + 1), 3)
    return {name: tuple(group.tolist()) for name, group in zip(("low", "middle", "high"), groups, strict=True)}
