import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses import mdl
from fivelenses.lenses.mdl import online_code


def frequencies(x, y, x_block, classes, seed, learning_rate):
    """A probe that says how often it saw each class, whatever the vector."""
    counts = np.bincount(y, minlength=classes) if y.ndim == 1 else y.mean(0)
    with np.errstate(divide="ignore"):
        said = np.log(counts / counts.sum() if y.ndim == 1 else counts)
    return np.tile(said, (len(x_block), 1))


def sure_and_wrong(x, y, x_block, classes, seed, learning_rate):
    with np.errstate(divide="ignore"):
        return np.log(np.eye(classes)[x_block[:, 0].int().numpy()])


def one_by_one(y, classes):
    """The code of ``frequencies``, example by example."""
    ends = sorted({math.ceil(round(fraction * len(y), 9)) for fraction in mdl.FRACTIONS})
    bits = ends[0] * math.log2(classes)
    for sent, end in zip(ends[:-1], ends[1:], strict=True):
        for label in y[sent:end]:
            p = (sent * np.mean(y[:sent] == label) + 1 / classes) / (sent + 1)
            bits -= math.log2(p)
    return bits


def blank(n):
    return np.zeros((n, 1), dtype=np.float32)


seeds = st.integers(0, 2**31)


@given(seeds, st.integers(1, 300), st.integers(2, 6))
@settings(max_examples=30)
def test_codelength_agrees_with_a_code_sent_example_by_example(seed, n, classes):
    y = np.random.default_rng(seed).integers(0, classes, n)
    y[0] = classes - 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mdl, "_log_probabilities", frequencies)
        code = online_code(blank(n), y, seed)
    order = np.random.default_rng(seed).permutation(n)
    assert code.codelength == pytest.approx(one_by_one(y[order], classes))
    assert code.uniform == pytest.approx(n * math.log2(classes))
    assert code.compression == pytest.approx(code.uniform / code.codelength)


@given(seeds, st.integers(2, 200), st.integers(1, 5))
@settings(max_examples=20)
def test_several_labels_cost_what_each_costs_as_a_choice_of_two(seed, n, labels):
    random = np.random.default_rng(seed)
    y = (random.random((n, labels)) < random.random(labels)).astype(int)
    y[0] = 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mdl, "_log_probabilities", frequencies)
        together = online_code(blank(n), y)
        alone = [online_code(blank(n), y[:, label]) for label in range(labels)]
    np.testing.assert_allclose(together.bits, sum(code.bits for code in alone))
    assert together.uniform == n * labels


def test_a_sure_and_wrong_probe_costs_no_more_than_the_mixture_allows(monkeypatch):
    monkeypatch.setattr(mdl, "_log_probabilities", sure_and_wrong)
    y = np.arange(100) % 4
    code = online_code(((y[:, None] + 1) % 4).astype(np.float32), y)
    assert np.sort(code.bits)[-50:] == pytest.approx(math.log2(4 * 51))


def test_noise_is_close_to_uniform_and_a_copied_label_close_to_0():
    random = np.random.default_rng(0)
    y = random.integers(0, 4, 600)
    noise = random.standard_normal((600, 16)).astype(np.float32)
    assert online_code(noise, y).compression == pytest.approx(1, abs=0.05)
    code = online_code(np.concatenate([3 * np.eye(4, dtype=np.float32)[y], 0.1 * noise], 1), y, learning_rate=1e-2)
    assert code.codelength < 0.1 * code.uniform


def test_a_probe_that_saw_one_example_says_the_uniform_code():
    code = online_code(np.ones((2, 2), dtype=np.float32), np.array([4, 4]))
    np.testing.assert_allclose(code.bits, math.log2(5), rtol=1e-6)


X, Y = np.ones((10, 2), dtype=np.float32), np.arange(10) % 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": X[:9]}, "9 rows have 10 labels"),
        ({"y": Y * 0}, "10 labels of 1 classes"),
        ({"x": X * np.nan}, "NaN or infinity"),
        ({"x": X.astype(int)}, "floating-point"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        online_code(**({"x": X, "y": Y} | arguments))
