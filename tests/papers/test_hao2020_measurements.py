"""What chapter 1 measures: models beside their twins, models of shuffled labels, and folds of the examples left out."""

import dataclasses
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from tests.conftest import ENCODER

from fivelenses.chapters import settings
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.comparison import compare
from fivelenses.models import encoders
from fivelenses.papers import hao2020 as measure
from fivelenses.papers import twins
from fivelenses.papers.hao2020 import between_datasets, changes_by_layer, rollbacks
from fivelenses.records import FOLDS, FUNCTIONAL_TWIN, PRETRAINED, SHARED, SHUFFLED, TWINS, UNTRAINED

EXAMPLES = 40


@pytest.fixture(scope="module")
def checkpoints(toy_specification, session_store):
    """Two seeds, and one model of shuffled labels."""
    second = dataclasses.replace(toy_specification, seed=1)
    shuffled = dataclasses.replace(toy_specification, shuffled_labels=True)
    return prepare([toy_specification, second, shuffled], session_store, workers=1, log=lambda line: None)


@pytest.fixture(scope="module")
def changes(checkpoints):
    return changes_by_layer(checkpoints[:2], EXAMPLES, device="cpu")


def test_each_comparison_of_models_is_made_of_their_twins(changes):
    whole = changes[(changes["fold"] == -1) & (changes["layer"] == 6)]
    pairs = [(PRETRAINED, "0"), (PRETRAINED, "1"), ("0", "1")]
    expected = [(control, *pair) for control in ("", *TWINS) for pair in pairs]
    expected.insert(3, (SHARED, PRETRAINED, UNTRAINED))
    assert list(zip(whole["control"], whole["first"], whole["second"], strict=True)) == expected
    assert (whole["js"] > 0).all() and (whole["svcca"] > 0).all()
    # A twin moved as far, and elsewhere.
    tuned, *twins = (whole.loc[whole["control"] == control, "svcca"] for control in ("", *TWINS))
    assert not any(np.allclose(tuned, one, rtol=0.01) for one in twins)


def test_examples_are_left_out_in_folds(changes):
    assert set(changes["fold"]) == {-1, *range(FOLDS)} and changes.groupby("fold").size().nunique() == 1
    assert set(changes["examples"]) == {EXAMPLES, EXAMPLES * 9 // 10}
    left_out = changes[changes["fold"] >= 0]
    assert left_out[["js", "svcca"]].notna().all(axis=None) and left_out["svcca_null"].isna().all()


def test_folds_are_alike_in_their_labels_however_the_examples_stand(checkpoints, monkeypatch):
    whole, dealt = measure.evaluation_part(checkpoints[0], None), []
    labels = np.array(whole["labels"])
    # Labels take turns, so that every second row has the same.
    rows = np.stack([np.flatnonzero(labels == label)[:20] for label in (0, 1)], axis=1).ravel()
    monkeypatch.setattr(measure, "evaluation_part", lambda *given: whole.select(rows))
    monkeypatch.setattr(
        measure, "compare", lambda *given, fold_of, **how: dealt.append(fold_of) or compare(*given, **how)
    )
    changes_by_layer(checkpoints[:1], EXAMPLES, device="cpu")
    shares = [labels[rows][dealt[0] == fold].mean() for fold in range(FOLDS)]
    np.testing.assert_allclose(shares, 0.5)


def test_models_of_shuffled_labels_have_no_twins(checkpoints):
    table = changes_by_layer(checkpoints[2:], EXAMPLES, device="cpu")
    assert set(table["control"]) == {SHUFFLED} and set(table["second"]) == {"0"}
    assert set(rollbacks(checkpoints[2:], EXAMPLES, device="cpu")["control"]) == {SHUFFLED}


def test_every_layer_of_a_twin_is_rolled_back(checkpoints):
    table = rollbacks(checkpoints[:1], EXAMPLES, device="cpu")
    assert table.groupby(["control", "fold"]).size().eq(6).all() and set(table["control"]) == {"", *TWINS}


def test_twins_of_two_data_sets_share_no_noise(checkpoints):
    other = dataclasses.replace(checkpoints[1].specification, task="mrpc", seed=0)
    other = SimpleNamespace(specification=other, manifest={"diverged": False}, model=checkpoints[0].model)
    table = between_datasets([checkpoints[0], other], ("rte", "mrpc"), 20, device="cpu")
    last = table[(table["fold"] == -1) & (table["layer"] == 6)].set_index("control")
    assert last["examples"].tolist() == [40, 40, 40]
    # The models are one and the same, and their twins are not.
    assert last.loc["", "svcca"] < 1e-6 < last.loc[list(TWINS), "svcca"].min()


def test_a_model_without_a_functional_twin_is_measured_without_and_said(checkpoints, monkeypatch):
    monkeypatch.setattr(twins, "_scales", {checkpoints[0].specification.address: None})
    lines = []
    table = changes_by_layer(checkpoints[:2], EXAMPLES, device="cpu", log=lines.append)
    (line,) = lines
    assert line.startswith("rte, seed 0: no functional twin")
    pairs = table[(table["control"] == FUNCTIONAL_TWIN) & (table["fold"] == -1) & (table["layer"] == 6)]
    assert pairs[["first", "second"]].to_numpy().tolist() == [[PRETRAINED, "1"]]


def test_a_functional_twin_is_found_once(checkpoints, monkeypatch):
    monkeypatch.setattr(twins, "_scales", {})
    searches = Mock(wraps=twins.scale_of_equal_movement)
    monkeypatch.setattr(twins, "scale_of_equal_movement", searches)
    original = encoders.load_weights(encoders.locate(ENCODER))
    first, second = (twins.model_of(checkpoints[0], FUNCTIONAL_TWIN, original, "cpu") for _ in range(2))
    assert searches.call_count == 1
    assert all(map(torch.equal, first.state_dict().values(), second.state_dict().values()))


def test_shuffled_models_are_named_apart_from_the_ordinary_ones():
    chosen = settings(1, "tiny", shuffled=["sst2"])
    ordinary, every = chosen.ordinary_models(), chosen.specifications()
    assert not any(one.shuffled_labels for one in ordinary) and every[: len(ordinary)] == ordinary
    assert {(one.task, one.seed) for one in every[len(ordinary) :]} == {("sst2", 0), ("sst2", 1)}
    assert ordinary == settings(1, "tiny", shuffled=[]).specifications()
    assert all(one.shuffled_labels for one in every[len(ordinary) :])
