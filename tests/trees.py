"""What a dependency tree is, for tests of what makes trees."""

from collections.abc import Sequence


def is_tree(heads: Sequence[int]) -> bool:
    """Whether heads, counted from 1 with 0 for the root, are a tree with one root."""
    reached = {0}
    for _ in heads:
        reached |= {word for word, head in enumerate(heads, 1) if head in reached}
    return list(heads).count(0) == 1 and reached == set(range(len(heads) + 1))
