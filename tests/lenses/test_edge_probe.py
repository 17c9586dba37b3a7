"""Edge probes: the classifier against torch's own layers, its targets and batches, and its training."""

import numpy as np
import pytest
import torch
from torch import nn

from fivelenses.lenses import edge_probe
from fivelenses.lenses.edge_probe import Configuration, SpanTargets, Target, first_parameters, fit, logits

SMALL = {"projection": 12, "hidden": 16, "learning_rate": 0.01, "batch_size": 8, "validate_every": 10}
NARROW = Configuration(projection=5, hidden=7)


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


def splits(seeds=(0, 1), sizes=(120, 30), models=1, **how):
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


def micro_f1(probe, split):
    (vectors, *_), targets = split
    said = probe.predict(vectors, targets) >= 0.5
    truth = np.array([[label in target.labels for label in probe.labels] for target in targets])
    return 2 * (said & truth).sum() / (said.sum() + sum(len(target.labels) for target in targets))


def test_span_pooling_ignores_what_stands_outside_the_span_and_beside_in_the_batch():
    (probe,) = fit(*splits(), max_validations=2, **SMALL)
    sentences, targets = kinds(9, 6)
    alone = [probe.predict(sentences, [target])[0] for target in targets]
    wide = [*targets, Target(0, (0, len(sentences[0][0])), None, set())]
    np.testing.assert_allclose(probe.predict(sentences, wide)[:-1], alone, rtol=1e-4, atol=1e-6)
    changed = [sentence.copy() for sentence in sentences]
    for place, sentence in enumerate(changed):
        used = {target.span1[0] for target in targets if target.sentence == place}
        sentence[:, sorted(set(range(sentence.shape[1])) - used)] = 1e6
    np.testing.assert_allclose(probe.predict(changed, targets), alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("two", [False, True])
def test_training_reads_the_labels_and_the_mixture_finds_the_layer_that_tells_them(two):
    training, development, test = splits(seeds=(0, 1, 2), sizes=(300, 40, 40), two=two)
    (probe,) = fit(training, development, max_validations=40, **SMALL)
    assert micro_f1(probe, test) > 0.85
    assert probe.parameters["mix"].argmax() == 1
    assert probe.labels == tuple(sorted(probe.labels)) and len(probe.labels) == (8 if two else 4)
    # The state that is kept is the best on development targets.
    assert micro_f1(probe, development) == pytest.approx(probe.score)


def test_the_top_layer_alone_is_read_where_wanted():
    made = [splits(seeds=(0, 1, 2), sizes=(120, 30, 40), telling=at) for at in (2, 1)]
    reads, cannot = (fit(*parts[:2], layers="top", max_validations=15, **SMALL)[0] for parts in made)
    assert micro_f1(reads, made[0][2]) > 0.85 > 0.6 > micro_f1(cannot, made[1][2])
    sentences, targets = kinds(9, 3)
    only = [sentence[-1:] for sentence in sentences]
    np.testing.assert_array_equal(reads.predict(sentences, targets), reads.predict(only, targets))


@pytest.mark.parametrize("layers", ["mix", "top"])
def test_probes_side_by_side_are_those_trained_one_after_another(layers, monkeypatch):
    monkeypatch.setattr(edge_probe, "HALVE_AFTER", 2)
    monkeypatch.setattr(edge_probe, "STOP_AFTER", 3)
    made = splits(sizes=(60, 20), two=True, telling=2 if layers == "top" else 1)
    # A model that says nothing stops early, so that probes leave the stack at different times.
    made = [([*models, [0 * sentence for sentence in models[0]]], targets) for models, targets in made]
    how = SMALL | {"layers": layers, "max_validations": 10}
    stacks = set()
    plain = edge_probe.logits
    monkeypatch.setattr(edge_probe, "logits", lambda *given: stacks.add(len(given[1])) or plain(*given))
    together = fit(*made, seeds=(0, 7), **how)
    assert [(probe.model, probe.seed) for probe in together] == [(m, s) for m in range(2) for s in (0, 7)]
    assert len(stacks) > 1
    for probe in together:
        own = [([models[probe.model]], targets) for models, targets in made]
        (alone,) = fit(*own, seeds=(probe.seed,), **how)
        assert alone.score == pytest.approx(probe.score)
        for name, values in probe.parameters.items():
            np.testing.assert_allclose(alone.parameters[name], values, rtol=2e-3, atol=1e-4)


def test_a_label_that_training_never_showed_is_missed():
    training, (vectors, targets) = splits()
    more = [Target(t.sentence, t.span1, None, {*t.labels, "new"}) for t in targets]
    (probe,), (other,) = (fit(training, (vectors, those), max_validations=1, **SMALL) for those in (targets, more))
    assert probe.score > other.score == pytest.approx(micro_f1(other, (vectors, more)))


def test_what_cannot_be_trained_is_refused_with_a_sentence():
    training, development = splits()
    with pytest.raises(ValueError, match="diverged before validation 1"):
        fit(training, development, **SMALL | {"max_validations": 1, "learning_rate": 1e38})
    unlabelled = [Target(t.sentence, t.span1, None, set()) for t in training[1]]
    with pytest.raises(ValueError, match="No target of the training split has a label"):
        fit((training[0], unlabelled), development)
    with pytest.raises(ValueError, match="The splits differ in"):
        fit(training, splits(two=True)[1])


class PlainProbe(nn.Module):
    """The published classifier for one target at a time, written with torch's own layers."""

    def __init__(self, parameters, spans):
        super().__init__()
        d, width = parameters["project"].shape
        width //= spans
        hidden, labels = parameters["output"].shape
        self.weights, self.scale = parameters["mix"], parameters["scale"]
        self.projections = nn.ModuleList(nn.Linear(d, width) for _ in range(spans))
        self.attentions = nn.ModuleList(nn.Linear(width, 1) for _ in range(spans))
        self.mlp = nn.Sequential(
            nn.Linear(spans * width, hidden), nn.Tanh(), nn.LayerNorm(hidden), nn.Linear(hidden, labels)
        )
        with torch.no_grad():
            for slot in range(spans):
                part = slice(slot * width, (slot + 1) * width)
                self.projections[slot].weight.copy_(parameters["project"][:, part].T)
                self.projections[slot].bias.copy_(parameters["project_bias"][0, part])
                self.attentions[slot].weight.copy_(parameters["attend"][slot : slot + 1])
            for layer, name in ((0, "hidden"), (3, "output")):
                self.mlp[layer].weight.copy_(parameters[name].T)
                self.mlp[layer].bias.copy_(parameters[f"{name}_bias"][0])
            self.mlp[2].weight.copy_(parameters["gain"][0])
            self.mlp[2].bias.copy_(parameters["shift"][0])

    def forward(self, sentence, spans):
        mixed = self.scale * sum(s * layer for s, layer in zip(self.weights.softmax(0), sentence, strict=True))
        pooled = []
        for (start, end), project, attend in zip(spans, self.projections, self.attentions, strict=True):
            words = project(mixed)[start:end]
            pooled.append((attend(words).softmax(0) * words).sum(0))
        return self.mlp(torch.cat(pooled))


def given(spans, models=1):
    """Vectors of nine sentences for each model, and targets with narrow and wide spans."""
    random = np.random.default_rng(0)
    lengths = random.integers(2, 9, 9).tolist()
    vectors = [[random.standard_normal((3, n, 8)).astype(np.float32) for n in lengths] for _ in range(models)]
    targets = []
    for place, n in enumerate(lengths):
        for bounds in ((0, n), (1, 2)):
            targets.append(Target(place, bounds, (n - 2, n) if spans == 2 else None, {"kind"}))
    return vectors, targets


def moved(parameters, random):
    """Parameters away from where they start at 0 or 1."""
    return parameters | {
        name: torch.randn(parameters[name].shape, generator=random) for name in ("mix", "scale", "gain", "shift")
    }


@pytest.mark.parametrize("spans", [1, 2])
def test_logits_of_stacked_probes_are_those_of_the_published_classifier_target_by_target(spans):
    random = torch.Generator().manual_seed(0)
    probes = [moved(first_parameters((3, 8, spans), 4, NARROW, random), random) for _ in range(3)]
    stacked = {name: torch.stack([probe[name] for probe in probes]) for name in probes[0]}
    models, reads = given(spans, models=2), [0, 0, 1]
    split = SpanTargets(models, ["kind"])
    said = torch.cat([logits(stacked, reads, batch) for batch in split.batches(4, [0, 1], split.device)], 1)
    for probe, model in enumerate(reads):
        plain = PlainProbe(probes[probe], spans)
        for row, place in enumerate(split.order):
            target = models[1][place]
            sentence = torch.from_numpy(models[0][model][target.sentence])
            expected = plain(sentence, [target.span1, target.span2][:spans])
            np.testing.assert_allclose(said[probe, row].detach(), expected.detach(), rtol=1e-4, atol=1e-5)


FIRST = [np.ones((2, n, 3), dtype=np.float32) for n in (4, 1, 6)]
TARGETS = [Target(2, (1, 4), (5, 6), {"a"}), Target(0, (0, 1), (1, 4), {"b", "never seen"})]


@pytest.mark.parametrize(
    ("models", "targets", "words"),
    [
        ([FIRST, [s[:, :, :2] for s in FIRST]], TARGETS, "Sentence 0 of model 1 in the given split has"),
        ([[s * np.nan for s in FIRST]], TARGETS, "Sentence 0 of model 0 in the given split holds NaN"),
        ([[s.astype(int) for s in FIRST]], TARGETS, "no floating-point numbers"),
        ([FIRST], [Target(3, (0, 1), None, {"a"})], "in sentence 3 of 0 words"),
        ([FIRST], [Target(0, (3, 5), None, {"a"})], r"spans .\(3, 5\). in sentence 0 of 4 words"),
        ([FIRST], [Target(0, (2, 2), None, {"a"})], r"spans .\(2, 2\)"),
        ([FIRST], [Target(0, (0, 1), (3, 2), {"a"})], r"Target 0 of the given split .* spans .\(0, 1\), \(3, 2\)"),
        ([FIRST], [*TARGETS, Target(0, (0, 1), None, {"a"})], "Target 2 .* give each target of a split 2"),
    ],
)
def test_vectors_and_targets_that_are_no_split_are_refused_with_a_sentence(models, targets, words):
    with pytest.raises(ValueError, match=words):
        SpanTargets((models, targets), ["a", "b"])
