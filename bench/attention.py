"""JS divergence of attentions against the direct formula: time and peak memory per batch, and agreement, from one run.

    python bench/attention.py [--quick] [--repeats N]

The direct formula takes two Kullback–Leibler divergences to the mean of the two, with masked logarithms. Half of the
examples are padded.
"""

import numpy as np
import torch
from measure import HEADER, arguments, compare, report

from fivelenses.lenses.attention import js_divergence


def _direct(p: torch.Tensor, q: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    middle = (p + q) / 2
    keys = mask[:, None, None, :].bool()

    def divergence(attention: torch.Tensor) -> torch.Tensor:
        terms = attention * (torch.log(attention) - torch.log(middle))
        return torch.where(keys & (attention > 0), terms, 0).sum(-1)

    tokens = (divergence(p) + divergence(q)) / 2
    queries = mask[:, None, :].to(p.dtype)
    return (tokens * queries).sum(-1) / queries.sum(-1)


def plain_divergence(p: np.ndarray, q: np.ndarray, mask: np.ndarray) -> float:
    return float(_direct(*(torch.from_numpy(values) for values in (p, q, mask))).mean())


def divergence(p: np.ndarray, q: np.ndarray, mask: np.ndarray) -> float:
    return float(js_divergence(p, q, mask).mean())


def attentions(batch: int, heads: int, tokens: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two float32 attentions of which one is a disturbed copy, and the mask of examples of two lengths."""
    random = np.random.default_rng(0)
    mask = np.ones((batch, tokens), dtype=np.int64)
    mask[batch // 2 :, tokens * 3 // 4 :] = 0
    scores = 2 * random.standard_normal((batch, heads, tokens, tokens), dtype=np.float32)
    both = []
    for disturbance in (0, 1):
        disturbed = scores + disturbance * random.standard_normal(scores.shape, dtype=np.float32)
        weights = np.exp(disturbed) * mask[:, None, None, :]
        both.append((weights / weights.sum(-1, keepdims=True)).astype(np.float32))
    return both[0], both[1], mask


def main() -> None:
    quick, repeats = arguments(__doc__, "a small shape, once", repeats=5)
    shapes = [(8, 4, 32)] if quick else [(8, 12, 128), (8, 16, 128), (8, 16, 384)]
    print(HEADER)
    for shape in shapes:
        plain, ours = compare(plain_divergence, divergence, attentions(*shape), attentions(1, 2, 8), repeats)
        print(report(f"JS {shape}", plain, ours), flush=True)


if __name__ == "__main__":
    main()
