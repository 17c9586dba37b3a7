"""The measures of chapter 7 that no paper has, on hidden states of the toy BERT, against code that is not ours."""

import numpy as np
import pytest
import torch
from scipy.spatial import procrustes
from sklearn.metrics.pairwise import linear_kernel
from sklearn.neighbors import NearestNeighbors

from fivelenses.lenses.debiased_cka import debiased_linear_cka
from fivelenses.lenses.neighbours import mutual_neighbours
from fivelenses.lenses.procrustes import procrustes_distance
from fivelenses.models import encoders

K = 10


@pytest.fixture(scope="module")
def states(toy_encoder, toy_examples):
    """(layers, tokens, width) of the words of forty examples, each vector once."""
    model, read = encoders.load_weights(toy_encoder).eval(), []
    for tokens in toy_examples["input_ids"]:
        with torch.no_grad():
            hidden = model(torch.tensor([tokens]), output_hidden_states=True).hidden_states
        read.append(torch.cat(hidden)[:, 1:-1])
    return torch.cat(read, dim=1).double().numpy()[:, :600]


@pytest.mark.parametrize(("first", "second"), [(0, 6), (2, 3), (5, 6)])
def test_debiased_cka_is_the_ratio_of_unbiased_hsic(states, first, second):
    def hsic(one, other):
        """Song et al. 2012, equation 4: kernels without their diagonals."""
        one, other = (kernel - np.diag(np.diag(kernel)) for kernel in (one, other))
        n = len(one)
        crossed = one.sum() * other.sum() / ((n - 1) * (n - 2)) - 2 * (one @ other).sum() / (n - 2)
        return (np.trace(one @ other) + crossed) / (n * (n - 3))

    x, y = (linear_kernel(states[layer]) for layer in (first, second))
    expected = hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y))
    assert debiased_linear_cka(states[first], states[second]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("first", "second"), [(0, 6), (2, 3), (5, 6)])
def test_the_procrustes_distance_is_that_of_scipy(states, first, second):
    # SciPy also scales the second side: it leaves 1 − s² where a rotation alone leaves 2 − 2s.
    *_, left = procrustes(states[first], states[second])
    expected = np.sqrt(2 - 2 * np.sqrt(1 - left))
    assert procrustes_distance(states[first], states[second]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("first", "second"), [(0, 6), (2, 3), (5, 6)])
def test_neighbours_are_those_of_scikit_learn(states, first, second):
    distinct = np.unique(states[0], axis=0, return_index=True)[1]
    x, y = states[first][distinct], states[second][distinct]
    near = [NearestNeighbors(n_neighbors=K).fit(side).kneighbors(return_distance=False) for side in (x, y)]
    shared = [len(set(one) & set(other)) for one, other in zip(*near, strict=True)]
    assert mutual_neighbours(x, y, K) == pytest.approx(np.mean(shared) / K, abs=2e-3)
