import numpy as np
import pytest
import torch
from torch import nn

from fivelenses.lenses.span_classifier import first_parameters, logits
from fivelenses.lenses.spans import SpanBatch, SpanTargets, Target


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
    probes = [moved(first_parameters(3, 8, spans, 5, 7, 4, random), random) for _ in range(3)]
    stacked = {name: torch.stack([probe[name] for probe in probes]) for name in probes[0]}
    models, reads = given(spans, models=2), [0, 0, 1]
    split = SpanTargets(models, ["kind"])
    said = torch.cat([logits(stacked, reads, batch) for batch in split.batches(4, [0, 1])], 1)
    for probe, model in enumerate(reads):
        plain = PlainProbe(probes[probe], spans)
        for row, place in enumerate(split.order):
            target = models[1][place]
            sentence = torch.from_numpy(models[0][model][target.sentence])
            expected = plain(sentence, [target.span1, target.span2][:spans])
            np.testing.assert_allclose(said[probe, row].detach(), expected.detach(), rtol=1e-4, atol=1e-5)


def test_span_pooling_ignores_padding():
    random = torch.Generator().manual_seed(1)
    stacked = {name: v[None] for name, v in moved(first_parameters(3, 8, 2, 5, 7, 4, random), random).items()}
    (batch,) = SpanTargets(given(2), ["kind"]).batches(9, [0])
    said = logits(stacked, [0], batch)
    # Wider padding that points anywhere.
    extra = torch.randint(batch.words[0].shape[1], (*batch.places.shape[:2], 5), generator=random)
    places = torch.cat([torch.where(batch.inside, batch.places, 3), extra], -1)
    inside = torch.cat([batch.inside, torch.zeros_like(extra, dtype=torch.bool)], -1)
    padded = SpanBatch(batch.words, places, inside, batch.truth)
    np.testing.assert_allclose(logits(stacked, [0], padded), said, rtol=1e-5, atol=1e-6)


def test_words_of_models_that_no_probe_reads_change_nothing():
    random = torch.Generator().manual_seed(2)
    stacked = {name: v[None] for name, v in first_parameters(3, 8, 1, 5, 7, 4, random).items()}
    split = SpanTargets(given(1, models=2), ["kind"])
    (both,), (one,) = split.batches(9, [0, 1]), split.batches(9, [1])
    assert torch.equal(logits(stacked, [1], both), logits(stacked, [1], one))


def test_first_weights_are_bounded_by_the_inputs_and_the_mixture_starts_as_the_mean():
    parameters = first_parameters(4, 9, 2, 25, 16, 3, torch.Generator().manual_seed(3))
    assert parameters["mix"].softmax(0).tolist() == [0.25] * 4 and parameters["scale"].tolist() == [1]
    for name, inputs in (("project", 9), ("attend", 25), ("hidden", 50), ("output", 16)):
        assert 0.8 * inputs**-0.5 < parameters[name].abs().max() <= inputs**-0.5
    assert "mix" not in first_parameters(None, 9, 2, 25, 16, 3, torch.Generator().manual_seed(3))
