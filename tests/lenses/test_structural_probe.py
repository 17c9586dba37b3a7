import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from fivelenses.lenses import structural_probe
from fivelenses.lenses.structural_probe import StructuralProbe, fit, tree_depths, tree_distances

GEOMETRY = {"distance": tree_distances, "depth": tree_depths}
seeds = st.integers(0, 2**31)


def random_tree(random, n):
    """Each word of a random order hangs on one before it."""
    order = random.permutation(n)
    heads = np.zeros(n, dtype=int)
    for place in range(1, n):
        heads[order[place]] = order[random.integers(place)] + 1
    return heads.tolist()


def measures(kind, predicted, gold, counted=None):
    counted = [np.ones(len(truth), dtype=bool) for truth in gold] if counted is None else counted
    return structural_probe.summary(structural_probe.sentence_scores(kind, predicted, gold, counted))


def of_test(probe, vectors, gold):
    return measures(probe.kind, probe.predict(vectors), gold).iloc[0]


def paths_walked(heads):
    """Distances by walking from both words to the root."""
    above = []
    for word in range(len(heads)):
        path = [word]
        while heads[path[-1]]:
            path.append(heads[path[-1]] - 1)
        above.append(path)
    return np.array([[len(set(one) ^ set(other)) for other in above] for one in above])


@given(seeds, st.integers(1, 15))
@settings(max_examples=50)
def test_distances_and_depths_are_those_of_walked_paths(seed, n):
    heads = random_tree(np.random.default_rng(seed), n)
    distances = tree_distances(heads)
    np.testing.assert_array_equal(distances, paths_walked(heads))
    np.testing.assert_array_equal(tree_depths(heads), distances[heads.index(0)])


@pytest.mark.parametrize("heads", [[], [0.5, 0], [[0]], [0, 3], [-1, 0], [0, 0, 1], [2, 1], [0, 3, 2], [0, 2]])
def test_what_is_no_tree_is_refused_with_a_sentence(heads):
    for geometry in (tree_distances, tree_depths):
        with pytest.raises(ValueError, match="are no tree|hang on a cycle"):
            geometry(heads)


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
@settings(max_examples=5)
def test_evaluation_agrees_with_a_slow_one(seed):
    random = np.random.default_rng(seed)
    trees = [random_tree(random, n) for n in [3, 5, 5, 9, 52]]
    gold = [tree_distances(heads) for heads in trees]
    predicted = []
    for truth in gold:
        noise = random.random((2, *truth.shape)) * np.array([0.5, 20])[:, None, None]
        predicted.append(truth + noise + noise.transpose(0, 2, 1))
    counted = [random.random(len(truth)) < 0.8 for truth in gold]
    for mask, heads in zip(counted, trees, strict=True):
        mask[:2] = True
        # Leaves only, so that what is left is a tree with edges of 1 and its spanning tree is unique.
        mask[[head - 1 for head in heads if head]] = True
    result = measures("distance", predicted, gold, counted)
    for probe in range(2):
        own = [values[probe] for values in predicted]
        assert result.spearman[probe] == pytest.approx(plain_spearman(own, gold), abs=1e-10)
        right = possible = 0
        for values, truth, mask in zip(own, gold, counted, strict=True):
            words = np.flatnonzero(mask).tolist()
            right += len(prim_edges(values, words) & prim_edges(truth, words))
            possible += len(words) - 1
        assert result.tree[probe] == pytest.approx(right / possible)
    depths = [tree_depths(heads) for heads in trees]
    guesses = [depth + 2 * random.random((1, len(depth))) for depth in depths]
    of_depth = measures("depth", guesses, depths)
    assert of_depth.spearman[0] == pytest.approx(plain_spearman([one[0] for one in guesses], depths), abs=1e-10)
    roots = [guess[0].argmin() == heads.index(0) for guess, heads in zip(guesses, trees, strict=True)]
    assert of_depth.tree[0] == np.mean(roots)


def test_distances_of_zero_between_words_are_edges_too():
    gold = tree_distances([0, 1, 2])
    predicted = np.array([[[0, 0, 5], [0, 0, 0], [5, 0, 0]]])
    assert measures("distance", [predicted], [gold]).tree.tolist() == [1]


def test_a_prediction_without_variation_counts_as_0_and_short_sentences_do_not_count():
    gold = [tree_distances([0, 1, 2, 3, 4]), tree_distances([0, 1]), tree_distances([0])]
    assert measures("distance", [np.zeros((1, n, n)) for n in (5, 2, 1)], gold).spearman.tolist() == [0]
    assert measures("distance", [np.zeros((1, 1, 1))], gold[2:]).isna().all(axis=None)


def test_words_that_do_not_count_are_no_candidates_for_the_root():
    depths, predicted = [np.array([1, 0, 2])], [np.array([[0.1, 0.2, 3.0]])]
    masks = [[True] * 3], [[False, True, True]], [[False] * 3]
    shares = [measures("depth", predicted, depths, counted).tree[0] for counted in masks]
    assert shares[:2] == [0, 1] and np.isnan(shares[2])


def exactly_embedded(heads, d):
    """A direction for each word, and a word is the sum of those on its path from below the root."""
    vectors = np.zeros((len(heads), d), dtype=np.float32)
    for word in range(len(heads)):
        above = word
        while heads[above]:
            vectors[word, above] = 1
            above = heads[above] - 1
    return vectors


def treebank(seed, sentences, d=12, lengths=(5, 9)):
    random = np.random.default_rng(seed)
    trees = [random_tree(random, n) for n in random.integers(*lengths, sentences)]
    return trees, [exactly_embedded(heads, d) for heads in trees]


def noisy(seed, sentences, layers=3, d=6):
    random = np.random.default_rng(seed)
    trees, _ = treebank(seed, sentences)
    vectors = [random.standard_normal((layers, len(heads), d)).astype(np.float32) for heads in trees]
    for sentence, heads in zip(vectors, trees, strict=True):
        sentence[:, :, 0] += tree_depths(heads)
    return vectors, trees


def mean_loss(kind, projection, vectors, gold):
    """The loss as the authors compute it, with the difference of every pair; depths have an offset, B's last row."""
    total = 0
    for sentence, truth in zip(vectors, gold, strict=True):
        words = sentence @ projection if kind == "distance" else sentence @ projection[:-1] + projection[-1]
        differences = words[:, None] - words[None] if kind == "distance" else words
        predicted = differences.square().sum(-1)
        total = total + (predicted - truth).abs().sum() / len(words) ** truth.ndim
    return total / len(vectors)


@pytest.mark.parametrize("kind", GEOMETRY)
@given(seeds)
@settings(max_examples=10)
def test_loss_and_gradient_are_those_of_autograd_on_all_differences(kind, seed):
    vectors, trees = noisy(seed % 1000, 4)
    gold = [GEOMETRY[kind](heads).astype(np.float32) for heads in trees]
    tensors = [torch.from_numpy(sentence) for sentence in vectors]
    features = 6 if kind == "distance" else 7
    projection = torch.randn(3, features, 4, generator=torch.Generator().manual_seed(seed))
    losses, gradient = structural_probe._batch(kind, projection, tensors, gold, [2, 0, 1], np.arange(3))
    for layer in range(3):
        own = projection[layer].double().requires_grad_()
        chosen = [tensors[place][layer].double() for place in (2, 0, 1)]
        loss = mean_loss(kind, own, chosen, [torch.from_numpy(gold[place]) for place in (2, 0, 1)])
        loss.backward()
        assert losses[layer].item() / 3 == pytest.approx(loss.item(), rel=1e-4)
        np.testing.assert_allclose(gradient[layer] / 3, own.grad, rtol=1e-3, atol=1e-3)


def test_trees_embedded_exactly_give_spearman_1_uuas_1_and_every_root():
    trees, vectors = treebank(0, 40)
    vectors = [sentence[None] for sentence in vectors]
    for kind, projection in (("distance", torch.eye(12)), ("depth", torch.eye(13, 12))):
        probe = StructuralProbe(kind, projection[None], np.zeros(1))
        result = of_test(probe, vectors, [GEOMETRY[kind](heads) for heads in trees])
        assert result.spearman == pytest.approx(1) and result.tree == 1


def test_training_finds_the_trees_under_a_rotation_among_noise_features(monkeypatch):
    monkeypatch.setattr(structural_probe, "RATE", 0.02)
    random = np.random.default_rng(0)
    rotation = np.linalg.qr(random.standard_normal((20, 20)))[0].astype(np.float32)
    parts = []
    for seed, sentences in ((1, 300), (2, 40), (3, 40)):
        trees, vectors = treebank(seed, sentences)
        noise = [random.standard_normal((len(heads), 8)).astype(np.float32) for heads in trees]
        both = zip(vectors, noise, strict=True)
        parts.append((trees, [(np.concatenate(sentence, 1) @ rotation)[None] for sentence in both]))
    for kind, geometry in GEOMETRY.items():
        training, development, test = ((vectors, [geometry(heads) for heads in trees]) for trees, vectors in parts)
        result = of_test(fit(kind, training, development), *test)
        assert result.tree > 0.95 and result.spearman > 0.9


def centred_depths(seed, sentences, shift, d=24):
    """Words whose depth lies in one direction, about a mean of 0, among noise; all moved by one vector."""
    random = np.random.default_rng(seed)
    rotation, constant = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0], np.ones(d) / d**0.5
    depths = [tree_depths(heads) for heads in treebank(seed, sentences)[0]]
    words = [random.standard_normal((len(of_sentence), d)) for of_sentence in depths]
    for sentence, of_sentence in zip(words, depths, strict=True):
        sentence[:, 0] = of_sentence - 2
    return [(sentence @ rotation + shift * constant)[None].astype(np.float32) for sentence in words], depths


def test_a_constant_vector_added_to_every_word_does_not_change_how_much_depth_is_found(monkeypatch):
    monkeypatch.setattr(structural_probe, "RATE", 0.01)

    def found(shift):
        training, development, test = [centred_depths(*part, shift) for part in ((1, 200), (2, 40), (3, 40))]
        return of_test(fit("depth", training, development), *test)

    still, moved = found(0), found(20)
    assert still.spearman > 0.9 and still.tree > 0.9
    assert moved.spearman == pytest.approx(still.spearman, abs=0.05)
    assert moved.tree == pytest.approx(still.tree, abs=0.1)


@pytest.mark.parametrize("kind", GEOMETRY)
def test_layers_side_by_side_are_trained_as_each_alone_is(kind, monkeypatch):
    monkeypatch.setattr(structural_probe, "RATE", 0.01)
    vectors, trees = noisy(1, 60)
    # One layer of another kind, so that the layers end after different numbers of epochs.
    for sentence, heads in zip(vectors, trees, strict=True):
        sentence[1] = 0.01 * exactly_embedded(heads, 12)[:, :6] + 1
    gold = [GEOMETRY[kind](heads) for heads in trees]
    training, development = (vectors[:45], gold[:45]), (vectors[45:], gold[45:])
    together = fit(kind, training, development)
    for layer in range(3):
        own = (([sentence[layer : layer + 1] for sentence in v], g) for v, g in (training, development))
        alone = fit(kind, *own)
        assert together.losses[layer] == pytest.approx(alone.losses[0], rel=1e-3)
        np.testing.assert_allclose(together.projection[layer], alone.projection[0], atol=1e-3)


def test_a_far_origin_costs_no_digits_of_a_distance():
    random = np.random.default_rng(0)
    words = random.standard_normal((7, 5)).astype(np.float32)
    probe = StructuralProbe("distance", torch.eye(5)[None], np.zeros(1))
    near, far = (probe.predict([moved[None]])[0] for moved in (words, words + np.float32(1024)))
    np.testing.assert_allclose(near, ((words[:, None] - words[None]) ** 2).sum(-1)[None], atol=1e-5)
    np.testing.assert_allclose(near, far, atol=5e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda v, g: ([*v[:3], np.where(v[3] > v[3].min(), v[3], np.nan), *v[4:]], g),
            "Sentence 3 of the training vectors holds NaN",
        ),
        (lambda v, g: ([*v[:5], v[5][:, :, :2], *v[6:]], g), "Sentence 5 of the training vectors has shape"),
        (lambda v, g: ([s[:, :, :3] for s in v], g), "The first development sentence has shape"),
        (lambda v, g: ([s * 1e30 for s in v], g), "diverged before validation 1"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sentences_that_cannot_be_probed_are_refused_with_a_sentence(change, words):
    vectors, trees = noisy(4, 10)
    gold = [tree_distances(heads) for heads in trees]
    with pytest.raises(ValueError, match=words):
        fit("distance", change(vectors, gold), (vectors, gold))


def test_vectors_that_do_not_fit_the_probes_are_refused_with_a_sentence():
    vectors, _ = noisy(5, 10)
    probe = StructuralProbe("distance", torch.eye(6).repeat(3, 1, 1), np.zeros(3))
    with pytest.raises(ValueError, match="Vectors of 1 layers for 3 probes"):
        probe.predict([vectors[0][:1]])
