"""The streaming comparison: several lenses in one pass give what each gives alone."""

import numpy as np
import pandas as pd
import pytest

from fivelenses import comparison
from fivelenses.activations import stream
from fivelenses.comparison import CCA, RSA, AttentionJS, Sampled, check_tokens, compare_with, layers_rolled_back
from fivelenses.lenses.cca import svcca_distance
from fivelenses.lenses.similarities import mutual_neighbours, rsa, sample_positions
from fivelenses.models import encoders
from fivelenses.tasks import folds

ALL = np.arange(10_000)  # positions of tokens, and more


@pytest.fixture(scope="module")
def models():
    return {f"seed {seed}": encoders.load_weights(encoders.locate(f"toy-bert/seed-{seed}")) for seed in range(3)}


def test_lenses_share_one_pass_and_give_what_they_give_alone(models, toy_examples):
    pairs = [("seed 0", "seed 2"), ("seed 1", "seed 0")]
    positions = sample_positions(sum(map(len, toy_examples["input_ids"])), 100)
    lenses = [AttentionJS(), CCA(["svcca"], 0.9), RSA(positions, null_seed=0)]
    lenses.append(Sampled({"neighbours": mutual_neighbours}, positions))
    table = compare_with(lenses, models, pairs, toy_examples, layers=[0, 4], device="cpu")
    measured = ["js", "svcca", "tokens", "rsa", "rsa_null", "rsa_tokens", "neighbours"]
    assert list(table) == ["first", "second", "layer", "examples", *measured]
    assert table["js"].isna().tolist() == [True, False] * 2
    alone = compare_with([CCA(variance_kept=0.9), AttentionJS()], models, pairs, toy_examples, [4], device="cpu")
    np.testing.assert_allclose(table[table["layer"] == 4][["js", "svcca"]], alone[["js", "svcca"]], rtol=1e-6)
    x, y = (
        np.concatenate([batch.tokens(4).numpy() for batch in stream(models[name], toy_examples, [4], device="cpu")])
        for name in pairs[1]
    )
    last = table.iloc[-1]
    # Fused attention, which the stream takes where no weights are wanted, rounds in another order.
    assert last["svcca"] == pytest.approx(svcca_distance(x, y, variance_kept=0.9), rel=1e-6)
    assert last["rsa"] == pytest.approx(rsa(x[positions], y[positions]), rel=1e-6)
    assert last["neighbours"] == mutual_neighbours(x[positions], y[positions])
    assert (last["tokens"], last["rsa_tokens"], last["examples"]) == (len(x), 100, 40)


@pytest.mark.parametrize(
    ("lenses", "layers", "several"),
    [([AttentionJS(), CCA(variance_kept=0.9), RSA(ALL, null_seed=0)], range(5), 4), ([AttentionJS()], None, 6)],
)
def test_layers_that_do_not_fit_into_memory_at_once_are_read_in_several_passes_to_the_same_last_bit(
    models, toy_examples, lenses, layers, several, monkeypatch
):
    passes = []
    monkeypatch.setattr(comparison, "stream", lambda *given: passes.append(given[2:4]) or stream(*given))
    settings = {"layers": layers, "batch_rows": 7, "device": "cpu", "fold_of": folds(toy_examples["labels"], 3)}
    pairs = [("seed 0", "seed 2"), ("seed 1", "seed 0")]
    whole = compare_with(lenses, models, pairs, toy_examples, **settings)
    assert len(passes) == len(models)
    monkeypatch.setattr(comparison, "memory_at_hand", lambda device: 0)
    in_parts = compare_with(lenses, models, pairs, toy_examples, **settings)
    # The embeddings are read with the first layer.
    assert len(passes) == len(models) * (1 + several)
    pd.testing.assert_frame_equal(in_parts, whole, check_exact=True)


def test_a_fold_left_out_is_a_comparison_without_its_examples(models, toy_examples):
    pairs, fold_of = [("seed 0", "seed 2"), ("seed 1", "seed 0")], folds(toy_examples["labels"], 3)
    lenses = [AttentionJS(), CCA(variance_kept=0.9), RSA(ALL)]
    settings = {"layers": [0, 4], "device": "cpu"}
    # Batches of 7 hold examples of all folds, and a fold ends within a block of rows.
    table = compare_with(lenses, models, pairs, toy_examples, batch_rows=7, fold_of=fold_of, **settings)
    assert table["fold"].tolist() == [-1] * 4 + [0] * 4 + [1] * 4 + [2] * 4
    whole = compare_with(lenses, models, pairs, toy_examples, **settings)
    measured = ["first", "second", "layer", "js", "svcca", "svcca_all", "pwcca", "cka", "rsa", "tokens"]
    of_all = table[table["fold"] == -1]
    pd.testing.assert_frame_equal(of_all[measured], whole[measured], rtol=1e-5)
    np.testing.assert_allclose(of_all["svcca_null"], whole["svcca_null"], atol=0.1)
    for fold in range(3):
        others = toy_examples.select(np.flatnonzero(fold_of != fold))
        direct = compare_with(lenses, models, pairs, others, **settings)
        left_out = table[table["fold"] == fold].reset_index(drop=True)
        replicated = ["first", "second", "layer", "js", "svcca", "tokens", "rsa", "rsa_tokens", "examples"]
        pd.testing.assert_frame_equal(left_out[replicated], direct[replicated], rtol=1e-5, check_dtype=False)
        assert left_out[["pwcca", "cka", "svcca_null"]].isna().all(axis=None)


def test_a_layer_that_did_not_change_can_be_rolled_back_without_effect(models, toy_examples):
    model = models["seed 0"]
    same = layers_rolled_back(model, model, toy_examples, device="cpu")
    assert same["layer"].tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(same["svcca"], 0, atol=1e-6)
    assert layers_rolled_back(model, models["seed 1"], toy_examples, device="cpu")["svcca"].min() > 0.01


def test_too_few_tokens_are_refused(toy_examples):
    with pytest.raises(ValueError, match="tokens without one fold and SVCCA of two layers of width 64 needs"):
        check_tokens(toy_examples.select(range(8)), 64, np.arange(8) % 2)
