import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses.attention import JSAccumulator, js_divergence


def attention(seed, batch=3, heads=2, tokens=5, lengths=None, dtype=torch.float64):
    """Random attention as a model gives it: padded keys get exactly 0, padded queries still attend."""
    random = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(batch, heads, tokens, tokens, generator=random, dtype=torch.float64)
    mask = torch.arange(tokens) < torch.tensor(lengths or [tokens] * batch)[:, None]
    return scores.masked_fill(~mask[:, None, None, :], -math.inf).softmax(-1).to(dtype), mask.long()


def plain_divergence(p, q, mask):
    """Token by token, from the definition."""
    result = np.zeros(p.shape[:2])
    for example, head in np.ndindex(*result.shape):
        real = np.flatnonzero(mask[example])
        for query in real:
            for one, other in ((p, q), (q, p)):
                for key in real:
                    value = one[example, head, query, key]
                    if value > 0:
                        middle = (value + other[example, head, query, key]) / 2
                        result[example, head] += value * math.log(value / middle) / 2 / len(real)
    return result


seeds = st.integers(0, 2**31)
lengths = st.lists(st.integers(1, 5), min_size=3, max_size=3)


@given(seeds, lengths)
@settings(deadline=None, max_examples=30)
def test_divergence_is_symmetric_bounded_and_zero_for_itself(seed, lengths):
    (p, mask), (q, _) = attention(seed, lengths=lengths), attention(seed + 1, lengths=lengths)
    there, back = js_divergence(p, q, mask), js_divergence(q, p, mask)
    torch.testing.assert_close(there, back, rtol=1e-12, atol=1e-15)
    assert (there >= 0).all()
    assert (there <= math.log(2)).all()
    assert (js_divergence(p, p, mask) == 0).all()


@given(seeds, lengths)
@settings(deadline=None, max_examples=20)
def test_divergence_agrees_with_the_definition(seed, lengths):
    (p, mask), (q, _) = attention(seed, lengths=lengths), attention(seed + 1, lengths=lengths)
    expected = plain_divergence(p.numpy(), q.numpy(), mask.numpy())
    # Where q is nearly 0 beside p, what the two parts of a term lose to rounding stays below 1e-11 nats.
    np.testing.assert_allclose(js_divergence(p.numpy(), q.numpy(), mask.numpy()), expected, rtol=1e-11, atol=1e-11)


def test_divergence_of_a_case_done_by_hand():
    p = torch.tensor([[[[0.5, 0.5], [1.0, 0.0]]]], dtype=torch.float64)
    q = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]], dtype=torch.float64)
    first = 0.5 * (0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)) + 0.5 * math.log(1 / 0.75)
    assert js_divergence(p, q, torch.ones(1, 2)).item() == pytest.approx(first / 2, rel=1e-12)


@pytest.mark.parametrize("dtype, error", [(torch.float64, 1e-14), (torch.float32, 2e-6), (torch.float16, 2e-6)])
def test_disjoint_attentions_are_ln_2_apart_in_any_precision(dtype, error):
    p = torch.eye(4, dtype=dtype).expand(1, 2, 4, 4)
    assert js_divergence(p, p.flip(-1), torch.ones(1, 4)).double().numpy() == pytest.approx(math.log(2), rel=error)


@pytest.mark.parametrize("disturbance", [1, 1e-2, 1e-3, 1e-4])
def test_single_precision_keeps_six_digits_even_of_tiny_divergences(disturbance):
    random = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(2, 3, 40, 40, generator=random, dtype=torch.float64)
    p = scores.softmax(-1).float()
    q = (scores + disturbance * torch.randn(scores.shape, generator=random, dtype=torch.float64)).softmax(-1).float()
    exact = js_divergence(p.double(), q.double(), torch.ones(2, 40))
    assert exact.max() < disturbance**2
    torch.testing.assert_close(js_divergence(p, q, torch.ones(2, 40)).double(), exact, rtol=1e-6, atol=0)


def test_padding_and_batch_size_change_nothing():
    lengths = [7, 3, 5]
    (p, mask), (q, _) = (attention(seed, tokens=7, lengths=lengths) for seed in (0, 1))
    p[1, :, 3:], q[1, :, :, 3:] = math.nan, math.inf  # is not read
    together = js_divergence(p, q, mask)
    for example, length in enumerate(lengths):
        part = (slice(example, example + 1), slice(None), slice(length), slice(length))
        torch.testing.assert_close(
            js_divergence(p[part], q[part], torch.ones(1, length))[0], together[example], rtol=1e-12, atol=1e-15
        )


def changed(values, place, value):
    values = values.clone()
    values[place] = value
    return values


P, MASK = attention(0)
Q, _ = attention(1)


@pytest.mark.parametrize(
    "p, q, mask, message",
    [
        (changed(P, (1, 0, 2, 3), math.nan), Q, MASK, "p, example 1, head 0, query 2: the row sums to nan"),
        (P, changed(Q, (0, 1, 0, 0), math.inf), MASK, "q, example 0, head 1, query 0: the row sums to inf"),
        (P, 0.9 * Q, MASK, "sums to 0.9 over unmasked keys"),
        (changed(changed(P, (0, 0, 0, 0), -1.0), (0, 0, 0, 1), 2 - P[0, 0, 0, 2:].sum()), Q, MASK, "negative values"),
        (P, attention(1, tokens=6)[0], MASK, "different tokenizers or heads cannot be compared"),
        (P, Q, MASK[:, :4], "mask has shape"),
    ],
)
def test_what_is_no_attention_is_refused(p, q, mask, message):
    with pytest.raises(ValueError, match=message):
        js_divergence(p, q, mask)


def test_accumulated_average_is_tokens_then_heads_then_examples():
    lengths, fold_of = [5, 2, 4, 1, 3, 5], np.array([0, 1, 0, 1, 2, 2])
    layers = [(attention(layer, 6, lengths=lengths), attention(layer + 10, 6, lengths=lengths)) for layer in range(3)]
    mask = layers[0][0][1]
    whole = torch.stack([js_divergence(p, q, mask) for (p, _), (q, _) in layers]).numpy().mean(2)
    accumulator = JSAccumulator(layers=3, folds=3)
    for batch in (slice(0, 1), slice(1, 5), slice(5, 6)):
        p, q = ([pair[side][0][batch] for pair in layers] for side in (0, 1))
        accumulator.update(p, q, mask[batch], fold_of[batch])
    np.testing.assert_allclose(accumulator.result(), whole.mean(1), rtol=1e-12)
    for fold in range(3):
        np.testing.assert_allclose(accumulator.result(fold), whole[:, fold_of != fold].mean(1), rtol=1e-12)


def test_accumulator_refuses_a_batch_whole():
    accumulator = JSAccumulator(layers=2)
    with pytest.raises(ValueError, match="Attention q, example 0"):
        accumulator.update([P, P], [Q, changed(Q, (0, 0, 0, 0), math.nan)], MASK)
    with pytest.raises(ValueError, match="No examples"):
        accumulator.result()
