import numpy as np
import pytest
import torch

from fivelenses.lenses.edge_probe import fit
from fivelenses.lenses.spans import Target

SMALL = {"projection": 12, "hidden": 16, "learning_rate": 0.01, "batch_size": 8, "validate_every": 10}


def kinds(seed, count, layers=3, d=8, two=False, telling=1):
    """Sentences in whose layer ``telling`` each word shows one of four kinds, and spans labelled by these."""
    random = np.random.default_rng(seed)
    sentences, targets = [], []
    for place in range(count):
        n = int(random.integers(3, 9))
        vectors = random.standard_normal((layers, n, d)).astype(np.float32)
        of_word = random.integers(0, 4, n)
        vectors[telling, :, :4] += 4 * np.eye(4, dtype=np.float32)[of_word]
        sentences.append(vectors)
        for _ in range(int(random.integers(1, 4))):
            first, second = random.integers(0, n, 2).tolist()
            labels = {f"kind {of_word[first]}"} if not two else {f"{of_word[first]} then {of_word[second] % 2}"}
            targets.append(Target(place, (first, first + 1), (second, second + 1) if two else None, labels))
    return sentences, targets


def splits(seeds=(0, 1, 2), sizes=(120, 30, 40), models=1, **how):
    """Of a seed all models have the same targets, and vectors of their own."""
    made = []
    for seed, size in zip(seeds, sizes, strict=True):
        vectors, targets = kinds(seed, size, **how)
        others = [
            [v + np.random.default_rng(model).standard_normal(v.shape).astype(np.float32) for v in vectors]
            for model in range(1, models)
        ]
        made.append(([vectors, *others], targets))
    return made


def test_span_pooling_ignores_what_stands_outside_the_span_and_beside_in_the_batch():
    training, development, test = splits()
    (probe,) = fit(training, development, test, max_validations=2, **SMALL)
    sentences, targets = kinds(9, 6)
    alone = [probe.predict(sentences, [target])[0] for target in targets]
    np.testing.assert_allclose(probe.predict(sentences, targets), alone, rtol=1e-4, atol=1e-6)
    wide = [*targets, Target(0, (0, len(sentences[0][0])), None, set())]
    np.testing.assert_allclose(probe.predict(sentences, wide)[:-1], alone, rtol=1e-4, atol=1e-6)
    changed = [sentence.copy() for sentence in sentences]
    for place, sentence in enumerate(changed):
        used = {target.span1[0] for target in targets if target.sentence == place}
        sentence[:, sorted(set(range(sentence.shape[1])) - used)] = 1e6
    np.testing.assert_allclose(probe.predict(changed, targets), alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("two", [False, True])
def test_training_reads_the_labels_and_the_mixture_finds_the_layer_that_tells_them(two):
    (probe,) = fit(*splits(sizes=(300, 40, 40), two=two), max_validations=40, **SMALL)
    assert probe.micro_f1 > 0.85
    assert probe.mixing.argmax() == 1 and probe.mixing.sum() == pytest.approx(1)
    assert probe.labels == tuple(sorted(probe.labels)) and len(probe.labels) == (8 if two else 4)


def test_the_top_layer_alone_is_read_where_wanted():
    told, untold = (fit(*splits(telling=at), layers="top", max_validations=15, **SMALL)[0] for at in (2, 1))
    assert told.micro_f1 > 0.85 > 0.6 > untold.micro_f1
    assert told.mixing.tolist() == [1] and told.scale == 1
    sentences, targets = kinds(9, 3)
    only = [sentence[-1:] for sentence in sentences]
    np.testing.assert_array_equal(told.predict(sentences, targets), told.predict(only, targets))


@pytest.mark.parametrize("layers", ["mix", "top"])
def test_probes_side_by_side_are_those_trained_one_after_another(layers):
    made = splits(models=2, two=True, telling=2 if layers == "top" else 1)
    # A model that says nothing stops early, so that probes leave the stack at different times.
    made = [([*models, [0 * sentence for sentence in models[0]]], targets) for models, targets in made]
    how = SMALL | {"layers": layers, "max_validations": 14, "halve_after": 2, "stop_after": 3}
    together = fit(*made, seeds=(0, 7), **how)
    assert [(probe.model, probe.seed) for probe in together] == [(m, s) for m in range(3) for s in (0, 7)]
    assert len({len(probe.history) for probe in together}) > 1
    for probe in together:
        own = [([models[probe.model]], targets) for models, targets in made]
        (alone,) = fit(*own, seeds=(probe.seed,), **how)
        assert len(alone.history) == len(probe.history)
        np.testing.assert_allclose(alone.history, probe.history, rtol=2e-3, atol=1e-6)
        np.testing.assert_allclose(alone.mixing, probe.mixing, rtol=1e-3)
        assert alone.micro_f1 == pytest.approx(probe.micro_f1, abs=0.02)


def test_the_rate_is_halved_and_training_ends_when_nothing_improves():
    made = splits()
    blank = [([[0 * sentence for sentence in models[0]]], targets) for models, targets in made]
    (probe,) = fit(*blank, halve_after=2, stop_after=5, max_validations=50, **SMALL)
    assert len(probe.history) == 6
    np.testing.assert_allclose(probe.history.learning_rate, 0.01 * np.array([1, 1, 1, 0.5, 0.5, 0.25]))


def test_the_best_state_is_kept_and_its_scores_are_those_of_its_predictions():
    training, development, test = splits(two=True)
    (probe,) = fit(training, development, test, max_validations=12, **SMALL)
    scores = []
    for models, targets in (development, test):
        said = probe.predict(models[0], targets) >= 0.5
        truth = np.array([[label in target.labels for label in probe.labels] for target in targets])
        wanted = sum(len(target.labels) for target in targets)
        scores.append(2 * (said & truth).sum() / (said.sum() + wanted))
    assert scores[0] == pytest.approx(probe.history.development_f1.max())
    assert scores[1] == pytest.approx(probe.micro_f1)
    assert 2 / (1 / probe.precision + 1 / probe.recall) == pytest.approx(probe.micro_f1)


def test_a_label_that_training_never_showed_is_missed():
    training, development, test = splits()
    (probe,) = fit(training, development, test, max_validations=3, **SMALL)
    more = [Target(t.sentence, t.span1, None, {*t.labels, "new"}) for t in test[1]]
    (other,) = fit(training, development, (test[0], more), max_validations=3, **SMALL)
    assert other.precision == probe.precision and other.recall == pytest.approx(probe.recall / 2)


def test_seeds_differ_and_remake_their_probe():
    made = splits()
    probes = fit(*made, seeds=(0, 0, 1), max_validations=2, **SMALL)
    # Kernels may round differently at another position in the stack.
    projections = [probe.parameters["project"] for probe in probes]
    same = [torch.allclose(projections[0], projection, rtol=0, atol=1e-6) for projection in projections]
    assert same == [True, True, False]


def test_dropout_is_only_for_training_and_can_be_left_out():
    made = splits()
    (probe,) = fit(*made, dropout=0, max_validations=3, **SMALL)
    sentences, targets = kinds(9, 5)
    np.testing.assert_array_equal(probe.predict(sentences, targets), probe.predict(sentences, targets))


def test_what_cannot_be_trained_is_refused_with_a_sentence():
    training, development, test = splits()
    for how, words in (
        ({"layers": "all"}, "'mix', or read the last with 'top'"),
        ({"dropout": 1}, "a share in"),
        ({"hidden": 0}, "a whole number from 1"),
        ({"seeds": ()}, "at least one"),
    ):
        with pytest.raises(ValueError, match=words):
            fit(training, development, test, **how)
    unlabelled = [Target(t.sentence, t.span1, None, set()) for t in training[1]]
    with pytest.raises(ValueError, match="No training target has a label"):
        fit((training[0], unlabelled), development, test)
    with pytest.raises(ValueError, match="The splits differ in"):
        fit(training, development, splits(two=True)[2])
    outside = [Target(0, (0, 99), None, {"kind 0"})]
    with pytest.raises(ValueError, match=r"Target 0 of the test split has the span \(0, 99\)"):
        fit(training, development, (test[0], outside))
    huge = ([[sentence.astype(np.float64) * 1e300 for sentence in training[0][0]]], training[1])
    with pytest.raises(ValueError, match="Sentence 0 of model 0 in the training split holds NaN, infinity"):
        fit(huge, development, test)
    with pytest.raises(ValueError, match="diverged before validation 1"):
        fit(training, development, test, max_validations=1, **SMALL | {"learning_rate": 1e38})
    (probe,) = fit(training, development, test, max_validations=1, **SMALL)
    with pytest.raises(ValueError, match="reads 3 layers of 8 features and 1 spans"):
        probe.predict([sentence[:2] for sentence in test[0][0]], test[1])
