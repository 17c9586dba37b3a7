r"""Jensen–Shannon divergence between the attentions of two models that read the same tokens.

.. math::

    \mathrm{JS}(p, q) = \tfrac12 \mathrm{KL}(p \Vert r) + \tfrac12 \mathrm{KL}(q \Vert r), \qquad r = \tfrac12 (p + q),

in nats, for the two distributions over keys that a head gives one query token: 0 if they are equal, ln 2 if they have
no key in common. The mean over the real query tokens of an example, [CLS] and [SEP] among them, is the divergence of
that head on that example (Hao et al. 2020).

We compute the sum as

.. math::

    \mathrm{JS}(p, q) = \tfrac12 \sum_k r_k \left[ 2 d_k \operatorname{artanh} d_k + \ln(1 - d_k^2) \right],
    \qquad d = \frac{p - q}{p + q},

where every term is at least 0 and no large numbers cancel: a divergence of 1e-8 between two nearly equal models keeps
six digits in single precision, and none in the direct formula.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch

from fivelenses.lenses.arrays import Array, as_tensor

# How far the sum of a row may be from 1: far above the rounding of a softmax, and far below the effect of dropout.
ROW_SUM_TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 1e-2}

# Attention values computed at once: a processor keeps the temporaries in its cache, a GPU needs more to be busy.
VALUES_AT_ONCE = {"cpu": 2**17, "cuda": 2**25}


@torch.no_grad()
def js_divergence(p: Array, q: Array, mask: Array) -> torch.Tensor:
    """Mean over the real query tokens of the JS divergence between two attentions, per example and head.

    Args:
        p, q: attentions of two models, (batch, heads, tokens, tokens), queries before keys; rows sum to 1 over keys.
        mask: (batch, tokens), 1 or True for real tokens. Padded rows and columns are not read.

    Returns:
        (batch, heads) on the device of ``p``, in nats, in [0, ln 2]; float64 if an input is, else float32. It is cut to
        ln 2, which rows whose sum exceeds 1 within the tolerance can exceed by a relative 1e-4, in half precision 1e-2.

    Example:
        >>> uniform = torch.full((1, 1, 2, 2), 0.5)
        >>> itself = torch.eye(2).reshape(1, 1, 2, 2)
        >>> js_divergence(uniform, itself, torch.ones(1, 2)).round(decimals=4)
        tensor([[0.2158]])
    """
    p = as_tensor(p)
    q, real = as_tensor(q).to(p.device), as_tensor(mask).to(p.device) == 1
    if p.shape != q.shape:
        shapes = f"{tuple(p.shape)} and {tuple(q.shape)}"
        raise ValueError(f"Attentions of {shapes}: models with different tokenizers or heads cannot be compared.")
    if real.shape != p.shape[::3]:
        raise ValueError(f"The mask has shape {tuple(real.shape)}, not (batch, tokens) = {tuple(p.shape[::3])}.")
    batch, heads, tokens, _ = p.shape
    precision = torch.promote_types(torch.promote_types(p.dtype, q.dtype), torch.float32)
    result = torch.empty(batch, heads, dtype=precision, device=p.device)
    at_once = max(1, VALUES_AT_ONCE.get(p.device.type, 2**25) // (heads * tokens * tokens))
    for first in range(0, batch, at_once):
        examples = slice(first, first + at_once)
        both = real[examples, None, :, None] & real[examples, None, None, :]
        rows = [torch.where(both, attention[examples], 0).to(precision) for attention in (p, q)]
        for name, attention, given in zip("pq", rows, (p.dtype, q.dtype), strict=True):
            _check_rows(name, attention, real[examples], ROW_SUM_TOLERANCE[given], first)
        result[examples] = _sum_of_terms(*rows) / real[examples].sum(1, keepdim=True)
    return result.clamp_(max=math.log(2))


def _sum_of_terms(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """The sum of all terms of each head, (batch, heads); both inputs are overwritten."""
    limits = torch.finfo(p.dtype)
    total = p + q
    # If both are 0, the term is 0; the smallest normal number only avoids a division by 0.
    ratio = p.sub_(q).div_(torch.clamp(total, min=limits.tiny, out=q))
    # At ±1 the two parts of the term are infinite; one rounding step closer to 0, their sum is 2 ln 2 within 2e-6.
    ratio.clamp_(min=limits.eps / 2 - 1, max=1 - limits.eps / 2)
    terms = torch.atanh(ratio, out=q).mul_(ratio).mul_(2)
    terms.add_(ratio.square_().neg_().log1p_()).mul_(total)
    return terms.sum((-2, -1)).div_(4).clamp_(min=0)


def _check_rows(name: str, attention: torch.Tensor, real: torch.Tensor, tolerance: float, first: int) -> None:
    """Refuse masked attention with a real row that is no distribution; ``first`` is the first example's number."""
    if attention.amin() < 0:
        raise ValueError(f"Attention {name} holds negative values: take attentions after the softmax.")
    sums = attention.sum(-1)
    within = (sums - real[:, None].to(sums.dtype)).abs() <= tolerance
    if not within.all():
        example, head, query = (~within).nonzero()[0].tolist()
        raise ValueError(
            f"Attention {name}, example {first + example}, head {head}, query {query}: the row sums to "
            f"{sums[example, head, query]:.6g} over unmasked keys, not to 1 within {tolerance:g}: take attentions "
            "after the softmax, without dropout, and with the mask that the model saw."
        )


class JSAccumulator:
    """The paper's average in one pass, of so many ``layers``: over tokens within an example, then heads, then examples,
    since a mean over all tokens would give long examples more weight.

    Stores a sum per layer and fold in float64. Row 0 of the result is layer 1: the embeddings have no attention. Each
    of the ``folds`` of the examples can be left out of :meth:`result`.

    Example:
        >>> uniform, itself = torch.full((3, 1, 2, 2), 0.5), torch.eye(2).expand(3, 1, 2, 2)
        >>> divergence = JSAccumulator(layers=2)
        >>> divergence.update([uniform, uniform], [uniform, itself], torch.ones(3, 2))
        >>> divergence.result().round(4)
        array([0.    , 0.2158])
    """

    def __init__(self, layers: int, folds: int = 1) -> None:
        self._counts, self._sums = np.zeros(folds, dtype=int), np.zeros((folds, layers))

    def update(self, p: Sequence[Array], q: Sequence[Array], mask: Array, fold_of: np.ndarray | None = None) -> None:
        """Add a batch: per layer the attentions of both models, as in ``output.attentions``, and one mask. ``fold_of``,
        (batch,), is the fold of each example, 0…folds − 1, the first by default. A refused batch is not counted.
        """
        batch = [js_divergence(first, second, mask) for first, second in zip(p, q, strict=True)]
        values = torch.stack([divergences.double().mean(1) for divergences in batch], dim=1).cpu().numpy()
        fold_of = np.zeros(len(values), dtype=int) if fold_of is None else fold_of
        np.add.at(self._sums, fold_of, values)
        np.add.at(self._counts, fold_of, 1)

    def result(self, left_out: int | None = None) -> np.ndarray:
        """The mean of each layer in nats, (layers,), over the examples so far, or over those outside one fold."""
        rest = np.arange(len(self._counts)) != left_out
        n = self._counts[rest].sum()
        if not n:
            raise ValueError("No examples were given: update the accumulator before asking for its result.")
        return self._sums[rest].sum(0) / n
