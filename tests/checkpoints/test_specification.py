import dataclasses

import pytest
import torch

from fivelenses.checkpoints.finetuning import rate_multiplier, resolved_precision
from fivelenses.checkpoints.specification import Schedule


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"examples": 95},
        {"examples_seed": 1},
        {"frozen": (0,)},
        {"truncated": 3},
        {"reinitialised": (6,)},
        {"saved_steps": (0,)},
        {"data_digest": "other"},
        {"encoder_identity": "other"},
        {"precision": "bfloat16"},
        {"shuffled_labels": True},
        {"schedule": Schedule(2e-3, 16, 1)},
        {"schedule": Schedule(1e-3, 16, 1, max_length=64, further_epochs=1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_content_has_another_address(toy_specification, change):
    assert dataclasses.replace(toy_specification, **change).address != toy_specification.address


def test_the_name_of_an_encoder_is_not_its_content(toy_specification):
    assert dataclasses.replace(toy_specification, encoder="elsewhere").address == toy_specification.address


@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0}, {"batch_size": 0}, {"warmup": 1.0}, {"shape": "cosine"}, {"further_epochs": -1}]
)
def test_a_schedule_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="schedule"):
        Schedule(**{"learning_rate": 1e-3, "batch_size": 8, "epochs": 1} | wrong)


@pytest.mark.parametrize(("shape", "last"), [("slanted-triangular", 1 / 32), ("linear", 0)])
def test_the_rate_rises_and_falls_to_its_last_value(shape, last):
    rate = rate_multiplier(Schedule(1e-3, 8, 1, shape=shape, warmup=0.1), 200)
    assert [rate(step) for step in (0, 20, 110, 200)] == pytest.approx([last, 1, (1 + last) / 2, last])


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [({"avx2": True}, "float32"), ({"avx512_bf16": True}, "bfloat16"), ({"amx_bf16": True}, "bfloat16")],
)
def test_automatic_precision_is_what_the_processor_multiplies_in(monkeypatch, capabilities, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert resolved_precision("auto", "cpu") == expected
    assert resolved_precision("bfloat16", "cpu") == "bfloat16"
