import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from fivelenses.lenses.trees import evaluate, tree_depths, tree_distances


def random_heads(seed, n):
    """Each word of a random order hangs on one before it."""
    random = np.random.default_rng(seed)
    order = random.permutation(n)
    heads = np.zeros(n, dtype=int)
    for place in range(1, n):
        heads[order[place]] = order[random.integers(place)] + 1
    return heads.tolist()


def paths_walked(heads):
    """Distances by walking from both words to the root."""
    above = []
    for word in range(len(heads)):
        path = [word]
        while heads[path[-1]]:
            path.append(heads[path[-1]] - 1)
        above.append(path)
    return np.array([[len(set(one) ^ set(other)) for other in above] for one in above])


seeds = st.integers(0, 2**31)


@given(seeds, st.integers(1, 15))
@settings(deadline=None, max_examples=50)
def test_distances_and_depths_are_those_of_walked_paths(seed, n):
    heads = random_heads(seed, n)
    distances = tree_distances(heads)
    np.testing.assert_array_equal(distances, paths_walked(heads))
    np.testing.assert_array_equal(tree_depths(heads), distances[heads.index(0)])


@pytest.mark.parametrize(
    ("heads", "words"),
    [
        ([], "one whole number per word"),
        ([0.5, 0], "one whole number per word"),
        ([[0]], "one whole number per word"),
        ([0, 3], "The head of word 2 is none of the 2 words"),
        ([-1, 0], "The head of word 1 is none"),
        ([0, 0, 1], r"words \[1, 2\] have the head 0"),
        ([2, 1], r"one root: words \[\]"),
        ([0, 3, 2], r"Words \[2, 3\] hang on a cycle"),
        ([0, 2], r"Words \[2\] hang on a cycle"),
    ],
)
def test_what_is_no_tree_is_refused_with_a_sentence(heads, words):
    for function in (tree_distances, tree_depths):
        with pytest.raises(ValueError, match=words):
            function(heads)


def plain_spearman(predicted, gold):
    """As the authors average: per length the mean over rows, then over lengths 5 to 50."""
    of_length = {}
    for values, truth in zip(predicted, gold, strict=True):
        rows = [spearmanr(a, b)[0] for a, b in zip(np.atleast_2d(values), np.atleast_2d(truth), strict=True)]
        of_length.setdefault(len(truth), []).extend(rows)
    return np.mean([np.mean(rows) for n, rows in of_length.items() if 5 <= n <= 50])


def prim_edges(distances, words):
    inside, edges = {words[0]}, set()
    while len(inside) < len(words):
        pair = min(((i, j) for i in inside for j in words if j not in inside), key=lambda pair: distances[pair])
        edges.add(tuple(sorted(pair)))
        inside.add(pair[1])
    return edges


@given(seeds)
@settings(deadline=None, max_examples=8)
def test_evaluation_agrees_with_a_slow_one(seed):
    random = np.random.default_rng(seed)
    trees = [random_heads(seed + i, n) for i, n in enumerate([3, 5, 5, 9, 52])]
    gold = [tree_distances(heads) for heads in trees]
    predicted = []
    for truth in gold:
        noise = random.random((2, *truth.shape)) * np.array([0.5, 20])[:, None, None]
        predicted.append(truth + noise + noise.transpose(0, 2, 1))
    counted = [random.random(len(truth)) < 0.8 for truth in gold]
    for mask in counted:
        mask[:2] = True
    # Leaves only, so that what is left is a tree with edges of 1 and its spanning tree is unique.
    for mask, heads in zip(counted, trees, strict=True):
        mask[[head - 1 for head in heads if head]] = True
    result = evaluate("distance", predicted, gold, counted)
    for probe in range(2):
        own = [values[probe] for values in predicted]
        assert result.spearman[probe] == pytest.approx(plain_spearman(own, gold), abs=1e-10)
        right = possible = 0
        for values, truth, mask in zip(own, gold, counted, strict=True):
            words = np.flatnonzero(mask).tolist()
            right += len(prim_edges(values, words) & prim_edges(truth, words))
            possible += len(words) - 1
        assert result.uuas[probe] == pytest.approx(right / possible)
    assert result.root_accuracy is None
    depths = [tree_depths(heads) for heads in trees]
    guesses = [depth + 2 * random.random((1, len(depth))) for depth in depths]
    of_depth = evaluate("depth", guesses, depths)
    assert of_depth.spearman[0] == pytest.approx(plain_spearman([one[0] for one in guesses], depths), abs=1e-10)
    roots = [guess[0].argmin() == heads.index(0) for guess, heads in zip(guesses, trees, strict=True)]
    assert of_depth.root_accuracy[0] == np.mean(roots)


def test_distances_of_zero_between_words_are_edges_too():
    gold = tree_distances([0, 1, 2])
    predicted = np.array([[[0, 0, 5], [0, 0, 0], [5, 0, 0]]])
    assert evaluate("distance", [predicted], [gold]).uuas.tolist() == [1]


def test_a_prediction_without_variation_counts_as_0_and_short_sentences_only_by_length():
    gold = [tree_distances([0, 1, 2, 3, 4]), tree_distances([0, 1]), tree_distances([0])]
    result = evaluate("distance", [np.zeros((1, n, n)) for n in (5, 2, 1)], gold)
    assert result.spearman.tolist() == [0]
    assert result.by_length.length.tolist() == [2, 5] and result.by_length.sentences.tolist() == [1, 1]
    assert np.isnan(evaluate("distance", [np.zeros((1, 1, 1))], gold[2:]).spearman).all()
    assert np.isnan(evaluate("distance", [np.zeros((1, 1, 1))], gold[2:]).uuas).all()


def test_words_that_do_not_count_are_no_candidates_for_the_root():
    depths = [np.array([1, 0, 2])]
    predicted = [np.array([[0.1, 0.2, 3.0]])]
    assert evaluate("depth", predicted, depths).root_accuracy.tolist() == [0]
    assert evaluate("depth", predicted, depths, [[False, True, True]]).root_accuracy.tolist() == [1]
    assert np.isnan(evaluate("depth", predicted, depths, [[False] * 3]).root_accuracy).all()


def test_what_does_not_fit_is_refused_with_a_sentence():
    gold = [tree_distances([0, 1, 2])]
    predicted = [np.zeros((1, 3, 3))]
    for arguments, words in (
        (([], []), "no sentence"),
        ((predicted, gold * 2), "2 sentences"),
        ((predicted, [gold[0][:2, :2]]), r"shape \(2, 2\), not \(3, 3\)"),
        ((predicted, [gold[0] + np.eye(3)]), "not symmetric with 0"),
        ((predicted, [np.triu(gold[0])]), "not symmetric with 0"),
        ((predicted, [gold[0] * np.nan]), "finite"),
        ((predicted, gold, [[True]]), "counted does not fit"),
    ):
        with pytest.raises(ValueError, match=words):
            evaluate("distance", *arguments)
    for wrong, words in (
        (np.zeros((3, 3)), r"Sentence 0 is predicted with shape \(3, 3\)"),
        (np.full((1, 3, 3), np.nan), "finite numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            evaluate("distance", [wrong], gold)
    with pytest.raises(ValueError, match="not 'height'"):
        evaluate("height", predicted, gold)
