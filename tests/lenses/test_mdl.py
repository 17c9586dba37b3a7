import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses.mdl import Perceptron, online_code


def frequencies(x, y, classes):
    """A probe that says how often it saw each class, whatever the vector."""
    counts = np.bincount(y, minlength=classes) if y.ndim == 1 else y.mean(0)
    with np.errstate(divide="ignore"):
        said = np.log(counts / counts.sum() if y.ndim == 1 else counts)
    return lambda rows: np.tile(said, (len(rows), 1))


def copies(x, y, classes):
    """A probe that reads the label from the vector, sure of it."""
    return lambda rows: np.where(np.eye(classes)[rows[:, 0].astype(int)], 0.0, -np.inf)


def one_by_one(y, classes, ends):
    """The code of ``frequencies``, example by example."""
    bits = ends[0] * math.log2(classes)
    for seen, end in zip(ends[:-1], ends[1:], strict=True):
        for label in y[seen:end]:
            p = (seen * np.mean(y[:seen] == label) + 1 / classes) / (seen + 1)
            bits -= math.log2(p)
    return bits


seeds = st.integers(0, 2**31)


@given(seeds, st.integers(1, 300), st.integers(2, 6))
@settings(deadline=None, max_examples=30)
def test_codelength_agrees_with_a_code_sent_example_by_example(seed, n, classes):
    y = np.random.default_rng(seed).integers(0, classes, n)
    code = online_code(np.zeros((n, 1)), y, fit=frequencies, classes=classes, seed=None)
    ends = code.blocks.end.tolist()
    assert code.codelength == pytest.approx(one_by_one(y, classes, ends))
    assert code.uniform == pytest.approx(n * math.log2(classes))
    assert ends[-1] == n and code.blocks.seen.tolist() == [0, *ends[:-1]] == code.blocks["first"].tolist()
    assert code.blocks.bits.sum() == pytest.approx(code.codelength)
    assert code.compression == pytest.approx(code.uniform / code.codelength)


@given(seeds, st.integers(2, 200), st.integers(1, 5))
@settings(deadline=None, max_examples=20)
def test_several_labels_cost_what_each_costs_as_a_choice_of_two(seed, n, labels):
    random = np.random.default_rng(seed)
    y = (random.random((n, labels)) < random.random(labels)).astype(int)
    x = np.zeros((n, 1))
    together = online_code(x, y, fit=frequencies, seed=3)
    alone = [online_code(x, y[:, label], fit=frequencies, classes=2, seed=3) for label in range(labels)]
    assert together.codelength == pytest.approx(sum(code.codelength for code in alone))
    assert together.uniform == n * labels


def test_a_sure_and_wrong_probe_costs_no_more_than_the_mixture_allows():
    y = np.arange(100) % 4
    code = online_code((y[:, None] + 1.0) % 4, y, fit=copies, fractions=(0.5, 1))
    assert code.blocks.bits[1] == pytest.approx(50 * math.log2(4 * 51))


def test_a_class_that_was_never_seen_has_a_finite_code():
    y = np.zeros(64, dtype=int)
    y[-1] = 2
    x = np.random.default_rng(0).standard_normal((64, 3)).astype(np.float32)
    code = online_code(x, y, fit=frequencies, seed=None, fractions=(0.5, 1))
    assert code.blocks.bits[1] == pytest.approx(math.log2(3 * 33) - 31 * math.log2((32 + 1 / 3) / 33))
    assert math.isfinite(online_code(x, y, seed=None, fractions=(0.5, 1)).codelength)


def test_noise_is_close_to_uniform_and_a_copied_label_close_to_0():
    random = np.random.default_rng(0)
    y = random.integers(0, 4, 1000)
    noise = random.standard_normal((1000, 16)).astype(np.float32)
    assert online_code(noise, y).compression == pytest.approx(1, abs=0.05)
    copy = np.concatenate([3 * np.eye(4, dtype=np.float32)[y], 0.1 * noise], 1)
    code = online_code(copy, y, fit=Perceptron(learning_rate=1e-2))
    assert code.codelength < 0.06 * code.uniform
    # The last half, sent by a probe that saw 500, costs next to nothing.
    assert code.blocks.bits.iloc[-1] < 0.01 * code.blocks.uniform.iloc[-1]


def test_noise_of_a_skewed_label_costs_its_entropy():
    random = np.random.default_rng(1)
    y = (random.random(2000) < 0.1).astype(int)
    entropy = -(0.1 * math.log2(0.1) + 0.9 * math.log2(0.9))
    code = online_code(
        random.standard_normal((2000, 4)).astype(np.float32), y, fit=Perceptron(hidden=0, learning_rate=0.02)
    )
    assert code.codelength == pytest.approx(2000 * entropy, rel=0.12)


def test_the_seed_decides_the_order_and_remakes_the_code():
    random = np.random.default_rng(3)
    x, y = random.standard_normal((60, 3)), random.integers(0, 2, 60)
    codes = [online_code(x, y, fit=frequencies, seed=seed).codelength for seed in (0, 0, 1, None)]
    assert codes[0] == codes[1] and len(set(codes)) == 3
    probe = Perceptron(hidden=8, max_epochs=3)
    assert online_code(x, y, fit=probe).codelength == online_code(x, y, fit=probe).codelength


def test_a_probe_that_saw_one_example_says_the_uniform_code():
    said = Perceptron()(np.ones((1, 2), dtype=np.float32), np.array([1]), 5)(np.ones((3, 2), dtype=np.float32))
    np.testing.assert_allclose(said.exp(), np.full((3, 5), 0.2), rtol=1e-6)


def answering(said):
    return lambda x, y, classes: lambda rows: np.tile(said, (len(rows), 1))


X, Y = np.ones((10, 2), dtype=np.float32), np.arange(10) % 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"y": Y[:0], "x": X[:0]}, "at least one of each"),
        ({"y": Y[:, None, None]}, "not \\(examples,\\)"),
        ({"x": X[:9]}, "one entry of x for each example"),
        ({"y": Y / 2}, "number the classes from 0 up"),
        ({"y": Y - 1}, "Row 0 of y is no class"),
        ({"classes": 2}, "Row 2 of y is no class from 0 to 1"),
        ({"y": Y * 0}, "single class"),
        ({"y": np.stack([Y, Y], 1)}, "row 2 is not"),
        ({"y": np.eye(10, dtype=int), "classes": 3}, "leave classes out"),
        ({"fractions": (0.5, 0.5, 1)}, "must increase"),
        ({"fractions": (0.5,)}, "must increase"),
        ({"fractions": ()}, "must increase"),
        ({"fractions": (0, 1)}, "must increase"),
        ({"x": X * np.nan}, "NaN or infinity"),
        ({"x": X.astype(int)}, "floating-point"),
        ({"fit": answering(np.log([0.5, 0.5]))}, "answers with shape"),
        ({"fit": answering(np.log([0.5, 0.5, 0.5]))}, "do not sum to 1"),
        ({"fit": answering(np.array([0.5, 0.2, 0.3]))}, "natural logarithms"),
        ({"fit": answering(np.full(3, np.nan))}, "NaN"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        online_code(**({"x": X, "y": Y} | arguments))


@pytest.mark.parametrize(
    "wrong", [{"held_out": 0}, {"held_out": 1}, {"hidden": -1}, {"patience": 0}, {"batch_size": 0}, {"max_epochs": 0}]
)
def test_a_probe_that_cannot_be_trained_is_refused_with_a_sentence(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Perceptron(**wrong)
