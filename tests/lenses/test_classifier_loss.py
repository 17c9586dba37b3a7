import copy
import math

import datasets
import numpy as np
import pytest
import torch
from tests.conftest import one_by_one
from tests.lenses.test_directions import CONFIGURATIONS, seeded
from transformers import BertConfig, BertForSequenceClassification

from fivelenses.lenses import classifier_loss
from fivelenses.lenses.classifier_loss import ClassifierLoss, curvatures
from fivelenses.lenses.directions import difference, layer_parameters
from fivelenses.lenses.landscape import surface
from fivelenses.models import heads, thirds
from fivelenses.models.layers import part, roll_back


def encoded(rows, labels):
    masks = [[1] * len(row) for row in rows]
    return datasets.Dataset.from_dict({"input_ids": rows, "attention_mask": masks, "labels": labels})


@pytest.fixture(scope="module")
def examples():
    """Sixty examples of 3 to 14 pieces."""
    random = np.random.default_rng(0)
    rows = [random.integers(2, 20, random.integers(3, 15)).tolist() for _ in range(60)]
    return encoded(rows, random.integers(0, 2, 60).tolist())


@pytest.fixture(scope="module")
def classifier(toy_encoder, toy_data):
    """The toy BERT with a head, and one a little way off in all its parameters."""
    torch.manual_seed(0)
    model = heads.build(toy_encoder, "sequence", toy_data.labels).eval()
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.03 * torch.randn_like(parameter))
    return model, other


@pytest.mark.parametrize("kind", CONFIGURATIONS)
@pytest.mark.parametrize("layers", [(0, 1, 2, 3), (1, 2, 3), (2,), (3,)])
def test_every_path_agrees_with_one_example_at_a_time(kind, layers, examples, monkeypatch):
    model, other = seeded(kind, 0), seeded(kind, 1)
    at_other = copy.deepcopy(model)
    roll_back(at_other, other, layers)
    if kind == "electra" and 0 in layers:
        at_other.electra.embeddings_project.load_state_dict(other.electra.embeddings_project.state_dict())
    losses, wrong = one_by_one(at_other, examples)
    # All stored, a part of the batches stored, none stored; many batches, and one.
    for stored, tokens in ((1000, 2**11), (0.01, 2**11), (0, 2**11), (1000, 40), (1000, 10**6)):
        monkeypatch.setattr(classifier_loss, "STORED_MB", stored)
        monkeypatch.setattr(classifier_loss, "TOKENS_AT_ONCE", {"cpu": tokens})
        found = ClassifierLoss(model, examples, layers)(layer_parameters(other, layers))
        assert found.loss == pytest.approx(losses.mean(), rel=1e-5)
        assert found.error == pytest.approx(wrong.mean())
        assert found.loss_standard_error == pytest.approx(losses.std(ddof=1) / math.sqrt(60), rel=1e-4)
        assert found.error_standard_error == pytest.approx(wrong.std(ddof=1) / math.sqrt(60), rel=1e-6)


@pytest.mark.parametrize("group", ["low", "middle", "high"])
def test_minus_one_on_a_surface_around_the_tuned_model_is_rollback(group, classifier, toy_examples):
    pretrained, tuned = classifier
    layers = thirds(6)[group]
    way = difference(layer_parameters(tuned, layers), layer_parameters(pretrained, layers))
    across = {name: tensor.flip(0) for name, tensor in way.items()}
    loss = ClassifierLoss(tuned, toy_examples, layers)
    assert "token_type_ids" in toy_examples.column_names
    found = surface(loss, layer_parameters(tuned, layers), (way, across), [-1, 0], [0, 1])
    rolled_back = copy.deepcopy(tuned)
    roll_back(rolled_back, pretrained, layers)
    for column, model in enumerate((rolled_back, tuned)):
        losses, wrong = one_by_one(model, toy_examples)
        assert found.loss[0, column] == pytest.approx(losses.mean(), rel=1e-5)
        assert found.error[0, column] == pytest.approx(wrong.mean())


def test_a_subset_is_the_same_each_time_and_nested(examples, monkeypatch):
    model = seeded()
    point = layer_parameters(model, [3])
    one, same, whole = (ClassifierLoss(model, examples, [3], limit=limit) for limit in (20, 20, 100))
    assert one(point) == same(point) and one.identity == same.identity
    assert whole.n_examples == 60
    monkeypatch.setattr(classifier_loss, "TOKENS_AT_ONCE", {"cpu": 1})
    rows = [
        {tuple(row) for batch in loss._batches for row in batch.inputs["input_ids"].tolist()}
        for loss in (ClassifierLoss(model, examples, [3], limit=limit) for limit in (5, 9))
    ]
    assert rows[0] < rows[1]


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_the_model_is_as_before_when_an_evaluation_fails_half_way(kind, examples, monkeypatch):
    monkeypatch.setattr(classifier_loss, "TOKENS_AT_ONCE", {"cpu": 40})
    model = seeded(kind).train()
    before = copy.deepcopy(model.state_dict())
    loss = ClassifierLoss(model, examples, [1, 2, 3])
    loss._batches[2] = None
    with pytest.raises(AttributeError):
        loss(layer_parameters(seeded(kind, 1), [1, 2, 3]))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert not [module for module in model.modules() if module._forward_pre_hooks or module._forward_hooks]


def test_identity_tells_examples_heads_and_precisions_apart_and_not_what_moves(examples):
    model = seeded()

    def identity(changed=model, rows=examples, **options):
        return ClassifierLoss(changed, rows, [3], **options).identity

    other_head, other_low, other_high = (copy.deepcopy(model) for _ in range(3))
    with torch.no_grad():
        other_head.classifier.bias.add_(1)
        other_low.bert.encoder.layer[0].output.dense.bias.add_(1)
        other_high.bert.encoder.layer[2].output.dense.bias.add_(1)
    different = [identity(changed) for changed in (model, other_head, other_low)]
    different += [identity(rows=examples.select(range(59))), identity(limit=20), identity(autocast=torch.bfloat16)]
    assert len(set(different)) == len(different)
    assert identity(other_high) == different[0]


def test_lower_precision_is_near_and_the_model_stays_in_its_own(examples):
    model = seeded()
    point = layer_parameters(model, [2, 3])
    exact, rough = (ClassifierLoss(model, examples, [2, 3], autocast=kind)(point) for kind in (None, torch.bfloat16))
    assert rough.loss != exact.loss and rough.loss == pytest.approx(exact.loss, rel=0.02)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_hostile_inputs_are_refused_in_one_sentence(examples):
    model = seeded()
    with pytest.raises(ValueError, match="is not of the layers that move"):
        ClassifierLoss(model, examples, [2])(layer_parameters(model, [1]))
    diverged = copy.deepcopy(model)
    diverged.classifier.weight.data.fill_(math.nan)
    with pytest.raises(ValueError, match="not finite"):
        curvatures(diverged, examples, {"top": list(part(diverged, 3).parameters())})


FOUR = encoded([[1, 2, 3, 4], [4, 5], [6, 7, 8], [3, 1, 2, 2]], [0, 1, 1, 0])


@pytest.fixture
def small():
    """Small enough for its whole Hessian, and with dropout, which must not count."""
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=9, hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=3, num_labels=2,
        max_position_embeddings=4, initializer_range=0.5,
    )  # fmt: skip
    return BertForSequenceClassification(shape).train()


def written_down(model, parameters, step=1e-5):
    """The Hessian of the mean loss in these parameters, (p, p), from differences of gradients in double precision:
    forward derivatives, which `torch.func.hessian` takes, are off by five per cent for this model in torch 2.13.
    """
    model = model.double().eval()

    def gradient():
        losses = [
            model(torch.tensor([ids]), torch.tensor([mask]), labels=torch.tensor([label])).loss
            for ids, mask, label in zip(*(FOUR[name] for name in FOUR.column_names), strict=True)
        ]
        return torch.cat([one.flatten() for one in torch.autograd.grad(sum(losses) / len(losses), parameters)])

    rows = []
    for place in (one.view(-1)[i] for one in map(torch.Tensor.detach, parameters) for i in range(one.numel())):
        place += step
        above = gradient()
        place -= 2 * step
        rows.append((above - gradient()) / (2 * step))
        place += step
    return torch.stack(rows).numpy()


@pytest.mark.parametrize("tokens", [2**11, 4])
def test_eigenvalue_and_trace_are_those_of_the_hessian_written_down(tokens, small, monkeypatch):
    # In one batch, whose gradient is kept, and in several.
    monkeypatch.setattr(classifier_loss, "TOKENS_FORTH_AND_BACK", tokens)
    low, high = (list(part(small, layer).parameters()) for layer in (1, 2))
    groups = {"all": low[-4:] + high[:4], "top": high[:4]}
    small.classifier.requires_grad_(False)
    found = curvatures(small, FOUR, groups, draws=20)
    assert small.training and not small.classifier.weight.requires_grad
    assert all(one.grad is None for one in small.parameters())
    whole = written_down(small, groups["all"])
    size = sum(one.numel() for one in groups["top"])
    for name, full in (("all", whole), ("top", whole[-size:, -size:])):
        assert found[name].top == pytest.approx(np.linalg.eigvalsh(full)[-1], rel=2e-3)
        assert abs(found[name].trace - np.trace(full)) < 4 * found[name].trace_standard_error
