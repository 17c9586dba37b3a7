import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr

from fivelenses.lenses.rsa import RSAAccumulator, sample_positions, similarity
from fivelenses.lenses.similarities import permuted_null


def related(seed, n=60, d1=5, d2=7, dtype=np.float64, away=1.0):
    """Two representations that share a part, neither centred."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, d1)) + away
    y = x @ random.standard_normal((d1, d2)) + random.standard_normal((n, d2)) - away
    return x.astype(dtype), y.astype(dtype)


def full_matrices(x, y):
    """Both n × n kernels, their upper triangles, SciPy's correlation."""
    above = np.triu_indices(len(x), 1)
    triangles = []
    for rows in (x, y):
        unit = rows.astype(np.float64) / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        triangles.append((unit @ unit.T)[above])
    return pearsonr(*triangles)[0]


seeds = st.integers(0, 2**31)


@given(seeds, st.integers(3, 40), st.integers(2, 9), st.floats(0, 30))
@settings(deadline=None, max_examples=40)
def test_similarity_is_that_of_the_two_full_matrices(seed, n, d, away):
    x, y = related(seed, n, d, away=away)
    assert similarity(x, y) == pytest.approx(full_matrices(x, y), abs=1e-7)


def test_ten_digits_are_kept_where_all_cosines_are_nearly_one():
    x, y = related(0, n=300, away=1000.0)
    assert similarity(x, y) == pytest.approx(full_matrices(x, y), abs=1e-9)
    single = similarity(x.astype(np.float32), y.astype(np.float32))
    assert single == pytest.approx(full_matrices(x, y), abs=1e-2)


def test_a_case_done_by_hand():
    # Cosines of x: 0, 1/√2, 1/√2; of y: 1, 0, 0; their correlation is -1.
    x = np.array([[1.0, 0], [0, 2], [3, 3]])
    y = np.array([[1.0, 0], [4, 0], [0, 1]])
    assert similarity(x, y) == pytest.approx(-1, abs=1e-12)


def test_shuffled_rows_are_near_zero_and_so_is_the_null():
    random = np.random.default_rng(0)
    x = random.standard_normal((2000, 20)) + 1
    assert abs(similarity(x, x[random.permutation(2000)])) < 0.02
    assert abs(permuted_null(similarity, x, x)) < 0.02


def test_a_stream_gives_what_the_whole_gives_however_it_is_cut():
    x, y = related(1, n=3000, dtype=np.float32)
    whole = similarity(x, y, sample=2500, seed=3)
    for cut in (1, 700, 3000):
        rsa = RSAAccumulator(positions=sample_positions(3000, 2500, 3))
        for first in range(0, 3000, max(cut, 7)):
            rows = slice(first, first + max(cut, 7))
            rsa.update(x[rows], y[rows])
        assert rsa.n == 2500
        assert rsa.similarity() == pytest.approx(whole, abs=1e-10)


@pytest.mark.parametrize("positions", [None, sample_positions(3000, 1200, 3)])
def test_a_fold_left_out_leaves_the_pairs_of_the_other_tokens(positions):
    x, y = related(1, n=3000)
    z, folds = np.random.default_rng(3).standard_normal((3000, 6)), np.random.default_rng(4).integers(0, 4, 3000)
    rsa = RSAAccumulator(((0, 1), (2, 0)), positions, folds=5)
    for rows in np.array_split(np.arange(3000), 7):
        rsa.update(x[rows], y[rows], z[rows], fold_of=torch.from_numpy(folds[rows]))
    chosen = np.arange(3000) if positions is None else positions
    # Nothing belongs to the last fold.
    for fold in (None, 0, 3, 1, 4):
        kept = chosen[folds[chosen] != fold]
        assert rsa.taken(fold) == len(kept)
        assert rsa.similarity(0, 1, fold) == pytest.approx(full_matrices(x[kept], y[kept]), abs=1e-9)
        assert rsa.similarity(2, 0, fold) == pytest.approx(full_matrices(z[kept], x[kept]), abs=1e-9)
    rsa.update(x[:5], y[:5], z[:5])
    again = np.concatenate([x, x[:5]]), np.concatenate([y, y[:5]])
    expected = full_matrices(*again) if positions is None else full_matrices(x[chosen], y[chosen])
    assert rsa.similarity(0, 1) == pytest.approx(expected, abs=1e-9)


def test_a_fold_that_holds_all_tokens_cannot_be_left_out():
    rsa = RSAAccumulator(folds=2)
    rsa.update(*related(2, n=50))
    with pytest.raises(ValueError, match="cannot be left out"):
        rsa.similarity(left_out=0)


def test_several_pairs_share_a_stream():
    x, y = related(2, n=500)
    z = np.random.default_rng(3).standard_normal((500, 6))
    rsa = RSAAccumulator(pairs=((0, 1), (0, 2)), null_seed=0)
    rsa.update(x, y, z)
    assert rsa.similarity(0, 1) == pytest.approx(full_matrices(x, y), abs=1e-10)
    assert rsa.similarity(0, 2) == pytest.approx(full_matrices(x, z), abs=1e-10)
    assert abs(rsa.null(0, 1)) < 0.1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, y: (np.where(np.arange(60)[:, None] == 7, 0, x), y), "Representation 0 is the zero vector in row 7"),
        (lambda x, y: (x[:2], y[:2]), "too few"),
        (lambda x, y: (np.ones_like(x), y), "point the same way"),
        (lambda x, y: (np.arange(1.0, 61)[:, None] * x[:1], y), "point the same way"),
        (lambda x, y: (np.eye(60), y), "All cosines of side 0 of the pair are equal"),
        (lambda x, y: (x[:0], y[:0]), "no token"),
    ],
)
def test_what_has_no_similarity_is_refused_with_a_sentence(change, words):
    with pytest.raises(ValueError, match=words):
        similarity(*change(*related(7)))


def test_samples_and_streams_that_cannot_be_are_refused_with_a_sentence():
    x, y = related(8)
    with pytest.raises(ValueError, match="sample = 2 is too small"):
        similarity(x, y, sample=2)
    short = RSAAccumulator(positions=np.array([0, 1, 2, 99]))
    short.update(x, y)
    with pytest.raises(ValueError, match="ended after 60 tokens, before position 99"):
        short.similarity()
    rsa = RSAAccumulator()
    rsa.update(x, y)
    with pytest.raises(ValueError, match="5 features, and had 7 before"):
        rsa.update(x, x)
    with pytest.raises(ValueError, match="1 representations were given"):
        rsa.update(x)
    with pytest.raises(ValueError, match="row 62"):
        rsa.update(np.where(np.arange(60)[:, None] == 2, 0, x), y)
    assert rsa.n == 60
