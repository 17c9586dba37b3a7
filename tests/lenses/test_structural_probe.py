import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses import structural_probe
from fivelenses.lenses.structural_probe import StructuralProbe, fit_depth, fit_distance
from fivelenses.lenses.trees import tree_depths, tree_distances


def random_tree(random, n):
    heads = np.zeros(n, dtype=int)
    heads[1:] = [random.integers(word) + 1 for word in range(1, n)]
    return heads.tolist()


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


seeds = st.integers(0, 2**31)


@pytest.mark.parametrize("kind", ["distance", "depth"])
@given(seeds)
@settings(deadline=None, max_examples=20)
def test_loss_and_gradient_are_those_of_autograd_on_all_differences(kind, seed):
    vectors, trees = noisy(seed % 1000, 4)
    geometry = tree_distances if kind == "distance" else tree_depths
    gold = [geometry(heads).astype(np.float32) for heads in trees]
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
    of_distance = StructuralProbe("distance", torch.eye(12)[None], pd.DataFrame())
    result = of_distance.evaluate(vectors, [tree_distances(heads) for heads in trees])
    assert result.spearman.tolist() == pytest.approx([1]) and result.uuas.tolist() == [1]
    of_depth = StructuralProbe("depth", torch.eye(13, 12)[None], pd.DataFrame())
    result = of_depth.evaluate(vectors, [tree_depths(heads) for heads in trees])
    assert result.spearman.tolist() == pytest.approx([1]) and result.root_accuracy.tolist() == [1]


def test_training_finds_the_trees_under_a_rotation_among_noise_features():
    random = np.random.default_rng(0)
    rotation = np.linalg.qr(random.standard_normal((20, 20)))[0].astype(np.float32)
    parts = []
    for seed, sentences in ((1, 300), (2, 40), (3, 40)):
        trees, vectors = treebank(seed, sentences)
        noise = [random.standard_normal((len(heads), 8)).astype(np.float32) for heads in trees]
        parts.append(
            (trees, [np.concatenate(both, 1) @ rotation for both in zip(vectors, noise, strict=True)]),
        )
    distances, depths = (
        [(vectors, [geometry(heads) for heads in trees]) for trees, vectors in parts]
        for geometry in (tree_distances, tree_depths)
    )
    result = fit_distance(*distances[:2], rank=16, learning_rate=0.02).evaluate(*distances[2])
    assert result.uuas[0] > 0.97 and result.spearman[0] > 0.95
    result = fit_depth(*depths[:2], learning_rate=0.02).evaluate(*depths[2])
    assert result.root_accuracy[0] > 0.97 and result.spearman[0] > 0.9


def centred_depths(seed, sentences, shift, d=24):
    """Words whose depth lies in one direction, about a mean of 0, among noise; all moved by one vector."""
    random = np.random.default_rng(seed)
    rotation, constant = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0], np.ones(d) / d**0.5
    depths = [tree_depths(heads) for heads in treebank(seed, sentences)[0]]
    words = [random.standard_normal((len(of_sentence), d)) for of_sentence in depths]
    for sentence, of_sentence in zip(words, depths, strict=True):
        sentence[:, 0] = of_sentence - 2
    return [(sentence @ rotation + shift * constant).astype(np.float32) for sentence in words], depths


@pytest.mark.parametrize("shift", [2, 20])
def test_a_constant_vector_added_to_every_word_does_not_change_how_much_depth_is_found(shift):
    def found(shift):
        training, development, test = [centred_depths(*part, shift) for part in ((1, 200), (2, 40), (3, 40))]
        return fit_depth(training, development, learning_rate=0.01).evaluate(*test)

    still, moved = found(0), found(shift)
    assert still.spearman[0] > 0.9 and still.root_accuracy[0] > 0.9
    assert moved.spearman == pytest.approx(still.spearman, abs=0.05)
    assert moved.root_accuracy == pytest.approx(still.root_accuracy, abs=0.1)


def test_distances_need_no_offset_since_a_constant_changes_none():
    words, _ = centred_depths(1, 20, 0)
    gold = [tree_distances(heads) for heads in treebank(1, 20)[0]]
    moved = [sentence + np.float32(4) for sentence in words]
    probe, of_moved = (fit_distance((part, gold), (part, gold), max_epochs=2) for part in (words, moved))
    assert probe.projection.shape == (1, 24, 24)
    torch.testing.assert_close(probe.projection, of_moved.projection, atol=1e-4, rtol=0)
    for one, other in zip(probe.predict(words), probe.predict(moved), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("fit", [fit_distance, fit_depth])
def test_layers_side_by_side_are_trained_as_each_alone_is(fit):
    geometry = tree_distances if fit is fit_distance else tree_depths
    vectors, trees = noisy(1, 60)
    # One layer of another kind, so that the layers end after different numbers of epochs.
    for sentence, heads in zip(vectors, trees, strict=True):
        sentence[1] = 0.01 * exactly_embedded(heads, 12)[:, :6] + 1
    gold = [geometry(heads) for heads in trees]
    training, development = (vectors[:45], gold[:45]), (vectors[45:], gold[45:])
    together = fit(training, development, rank=4, seed=5, learning_rate=0.01)
    epochs = together.history.groupby("probe").epoch.max()
    assert epochs.nunique() > 1
    for layer in range(3):
        alone = fit(
            *(([s[layer] for s in v], g) for v, g in (training, development)), rank=4, seed=5, learning_rate=0.01
        )
        own = together.history[together.history.probe == layer].drop(columns="probe").reset_index(drop=True)
        assert len(own) == len(alone.history)
        np.testing.assert_allclose(own, alone.history.drop(columns="probe"), rtol=1e-3)
        np.testing.assert_allclose(together.projection[layer], alone.projection[0], atol=1e-3)


def test_the_rate_falls_tenfold_after_each_epoch_without_improvement_and_the_best_state_is_kept():
    vectors, trees = noisy(2, 40, layers=1)
    gold = [tree_distances(heads) for heads in trees]
    probe = fit_distance((vectors[:30], gold[:30]), (vectors[30:], gold[30:]), learning_rate=0.05)
    history = probe.history
    best = np.inf
    for now, after in zip(history.itertuples(), history.iloc[1:].itertuples(), strict=False):
        improved = now.development_loss < best - 1e-4
        assert after.learning_rate == pytest.approx(now.learning_rate * (1 if improved else 0.1))
        best = min(best, now.development_loss) if improved else best
    held_out = [torch.from_numpy(sentence[0]) for sentence in vectors[30:]]
    loss = mean_loss("distance", probe.projection[0], held_out, [torch.from_numpy(truth) for truth in gold[30:]])
    assert loss.item() == pytest.approx(best, rel=1e-5) and len(history) <= 40


def test_a_far_origin_costs_no_digits_of_a_distance():
    random = np.random.default_rng(0)
    words = random.standard_normal((7, 5)).astype(np.float32)
    probe = StructuralProbe("distance", torch.eye(5)[None], pd.DataFrame())
    near, far = probe.predict([words])[0], probe.predict([words + np.float32(1024)])[0]
    np.testing.assert_allclose(near, ((words[:, None] - words[None]) ** 2).sum(-1)[None], atol=1e-5)
    np.testing.assert_allclose(near, far, atol=5e-3)


def with_nan(vectors):
    vectors = [sentence.copy() for sentence in vectors]
    vectors[3][0, 0, 0] = np.nan
    return vectors


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v, g: ([], []), "hold no sentence"),
        (lambda v, g: (with_nan(v), g), "Sentence 3 of the training vectors holds NaN"),
        (lambda v, g: ([v[0][:, :0], *v[1:]], g), "Sentence 0 of the training vectors has shape"),
        (lambda v, g: ([*v[:5], v[5][:, :, :2], *v[6:]], g), "Sentence 5 of the training vectors has shape"),
        (lambda v, g: ([*v[:5], v[5][:1], *v[6:]], g), "Sentence 5 of the training vectors has shape"),
        (lambda v, g: (v, g[:-1]), "training gold is of 9 sentences and the vectors of 10"),
        (lambda v, g: (v, [g[0][:2, :2], *g[1:]]), "Sentence 0 of the training gold has shape"),
        (lambda v, g: (v, [np.triu(g[0]), *g[1:]]), "not symmetric"),
        (lambda v, g: ([s[:, :, :3] for s in v], g), "give the same layers and features of both"),
        (lambda v, g: ([s * 1e30 for s in v], g), "diverged before validation 1"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sentences_that_cannot_be_probed_are_refused_with_a_sentence(change, words):
    vectors, trees = noisy(4, 10)
    gold = [tree_distances(heads) for heads in trees]
    with pytest.raises(ValueError, match=words):
        fit_distance(change(vectors, gold), (vectors, gold), max_epochs=2)


def test_numbers_and_probes_that_do_not_fit_are_refused_with_a_sentence():
    vectors, trees = noisy(5, 10)
    part = vectors, [tree_distances(heads) for heads in trees]
    for wrong in ({"rank": 0}, {"batch_size": 0}, {"max_epochs": 0}):
        with pytest.raises(ValueError, match="give a whole number from 1"):
            fit_distance(part, part, **wrong)
    probe = fit_distance(part, part, max_epochs=1)
    with pytest.raises(ValueError, match="of 1 layers of 6 features and the probes of 3 of 6"):
        probe.predict([vectors[0][:1]])
