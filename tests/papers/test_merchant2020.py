"""What chapter 5 measures, on the toy world."""

import copy
import dataclasses
from types import SimpleNamespace

import datasets
import numpy as np
import pandas as pd
import pytest

import toyworld
from fivelenses.activations import represent, word_vectors
from fivelenses.chapters import settings
from fivelenses.lenses import rsa
from fivelenses.lenses.edge_probe import SpanTargets
from fivelenses.models.twins import moved_at_random
from fivelenses.papers.merchant2020 import probes, similarity
from fivelenses.papers.merchant2020.models import converged, pretrained_and_fine_tuned, randomised
from fivelenses.papers.merchant2020.probes import drawn_targets, encoded_words
from fivelenses.records import BASE, RANDOMISED, SHARED, TWIN
from fivelenses.tasks.edge_tasks import edge_table

ENCODER = "toy-bert/seed-0"
OTHER = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def models(toy_checkpoint):
    return pretrained_and_fine_tuned(ENCODER, []) | randomised(ENCODER)


def test_drawn_targets_are_whole_sentences_and_the_same_each_time():
    table = edge_table("dependencies", "toyworld")["train"]
    sentences, targets = drawn_targets(table, 50)
    again = drawn_targets(table, 50)
    assert targets == again[1] and 50 <= len(targets) < 80
    counts = table["tokens"].map(tuple).value_counts()
    of_sentence = pd.Series([target.sentence for target in targets]).value_counts()
    assert all(of_sentence[place] == counts[tuple(words)] for place, words in enumerate(sentences))


def test_edge_probes_read_more_from_a_pretrained_encoder(toy_checkpoint):
    tuned = toy_checkpoint.specification.task
    probe = dict(targets=400, seeds=(0,), learning_rate=2e-3, validate_every=15, max_validations=6)
    how = ("pos", probe | dict(projection=32, hidden=32))
    table = probes.edge_probing([], ENCODER, "toyworld", "base", *how)
    assert set(table["model"]) == {"base", "randomised", "lexical"}
    # The one task with a twin is the parser's.
    parser = SimpleNamespace(
        specification=dataclasses.replace(toy_checkpoint.specification, task="parsing"),
        manifest=toy_checkpoint.manifest,
        model=toy_checkpoint.model,
    )
    named = {tuned: toy_checkpoint, "parsing": parser}
    own = [probes.edge_probing([one], ENCODER, "toyworld", name, *how) for name, one in named.items()]
    table = pd.concat([table, *own], ignore_index=True)
    whole = table[(table["fold"] == -1) & (table["control"] != "twin")]
    mean = whole.set_index(["layers", "model"])["micro_f1"]
    assert mean["mix", "base"] > mean["mix", "randomised"] and mean["top", "base"] > mean["top", "randomised"]
    assert set(table["model"]) == {"base", "randomised", "lexical", tuned, "parsing"} and set(table["task"]) == {"pos"}
    assert set(table.loc[table["model"] == tuned, "control"]) == {""}
    assert set(table.loc[table["model"] == "parsing", "control"]) == {"", "twin"}
    assert set(table.loc[~table["model"].isin([tuned, "parsing"]), "control"]) == {"all"}
    replicates = table[(table["layers"] == "mix") & (table["model"] == "base")].set_index("fold")["micro_f1"]
    assert sorted(replicates.index) == list(range(-1, 10)) and replicates.std() > 0
    # POS has one label per target: F1 without a fold averages to F1 with all, up to the folds' sizes.
    assert replicates.drop(-1).mean() == pytest.approx(replicates[-1], abs=0.005)


def test_scores_without_a_fold_are_those_of_the_other_targets(toy_checkpoint, models, toy_tokenizer):
    sentences, targets = drawn_targets(edge_table("srl", "toyworld")["train"], 150)
    vectors = word_vectors(models[BASE, SHARED], encoded_words(sentences, toy_tokenizer, 64), [0, 6])
    split = ([vectors], targets)
    probe, *_ = probes.edge_probe.fit(split, split, validate_every=15, max_validations=2, learning_rate=5e-3)
    scores = probes.micro_f1(probe, vectors, targets)
    assert scores[0] == pytest.approx(-probe.history.score.min()) and 0 < scores[0] < 1
    others = [target for target in targets if target.sentence % 10 != 3]
    assert scores[4] == pytest.approx(probes.micro_f1(probe, vectors, others)[0]) and scores[4] != scores[0]


def test_a_pretrained_encoder_makes_labels_cheaper(toy_checkpoint):
    table = probes.codelengths([], ENCODER, "toyworld", "base", "pos", dict(targets=400, seeds=[0, 1]))
    assert sorted(table["fold"].unique()) == list(range(-1, 10)) and set(table["seed"]) == {0, 1}
    own = table[(table["control"] != "twin") & (table["seed"] == 0)]
    bits = own[own["fold"] == -1].set_index("model")
    assert bits.loc["base", "bits"] < bits.loc["randomised", "bits"] < bits.loc["base", "uniform"]
    replicates = own[(own["model"] == "base") & (own["fold"] >= 0)]
    # Each label is left out once.
    assert replicates["bits"].sum() == pytest.approx(9 * bits.loc["base", "bits"])
    assert replicates["targets"].sum() == 9 * bits.loc["base", "targets"]


def test_structural_probes_have_a_row_per_layer_and_fold(toy_checkpoint, models, toy_tokenizer):
    table = probes.structure([], ENCODER, "toyworld", "base", 60)
    whole = table[table["fold"] == -1]
    assert whole.groupby("kind")["layer"].apply(list).tolist() == [list(range(7))] * 2
    assert whole["spearman"].between(0.3, 1).all() and whole["tree"].between(0, 1).all()
    given = probes.structural_probes({"base": models[BASE, SHARED]}, toy_tokenizer, toyworld.table("treebank"), 60)
    pd.testing.assert_frame_equal(whole[given.columns].reset_index(drop=True), given)
    assert table.groupby(["kind", "layer"])["spearman"].std().gt(0).all() and (table["control"] == "all").all()
    assert set(table["tuned_seed"]) == {-1}


def test_a_tuned_model_brings_its_twin(toy_checkpoint, models):
    task = toy_checkpoint.specification.task
    table = probes.structure([toy_checkpoint], ENCODER, "toyworld", task, 60)
    assert set(table["model"]) == {task} and set(table["control"]) == {"", "twin"}
    twin = pretrained_and_fine_tuned(ENCODER, [toy_checkpoint], [TWIN])[task, TWIN]
    seed = int(toy_checkpoint.specification.address[:12], 16)
    expected = moved_at_random(toy_checkpoint.model(), models[BASE, SHARED], seed)
    assert all((one == other).all() for one, other in zip(twin.parameters(), expected.parameters(), strict=True))
    assert set(table["tuned_seed"]) == {toy_checkpoint.specification.seed}


def test_an_encoder_is_like_itself_and_unlike_random_weights(models, toy_tokenizer):
    texts = similarity.inputs("toyworld", ["wikipedia", "mnli", "squad"], 30)
    assert list(texts) == ["wikipedia", "mnli", "mnli, premise alone", "squad", "squad, question alone"]
    assert [len(sides) for sides in texts.values()] == [1, 2, 1, 2, 1]
    pretrained = models[BASE, SHARED]
    three = {(BASE, SHARED): pretrained, ("same", ""): pretrained, ("other", ""): models[RANDOMISED, SHARED]}
    table = similarity.similarity_to_first(three, {"wikipedia": texts["wikipedia"]}, toy_tokenizer, 200)
    by_model = table.groupby("model")["similarity"]
    np.testing.assert_allclose(by_model.min()["same"], 1.0, atol=1e-6)
    assert by_model.max()["other"] < 0.6
    whole = table[table["fold"] == -1]
    assert (whole["tokens"] == 200).all() and whole["null"].abs().max() < 0.2
    left_out = table[table["fold"] >= 0].groupby(["model", "layer"])["tokens"].sum()
    assert (left_out == 9 * 200).all()


def test_special_tokens_do_not_count(models, toy_tokenizer):
    texts = (["The hen saw a cat.", "A dog ran."] * 6, ["It was a good day for her.", "No."] * 6)
    table = similarity.similarity_to_first(models, {"pairs": texts}, toy_tokenizer, 10_000)
    encoded = toy_tokenizer(*texts, return_special_tokens_mask=True)
    counted = [[place for place, one in enumerate(mask) if not one] for mask in encoded["special_tokens_mask"]]
    assert table["tokens"].max() == sum(map(len, counted))
    examples = datasets.Dataset.from_dict(
        {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}
        | {"token_type_ids": encoded["token_type_ids"], "word_ids": [[*range(len(x))] for x in encoded["input_ids"]]}
        | {"units": [[[place] for place in places] for places in counted]}
    )
    for fold in (-1, 4):
        kept = examples.select([row for row in range(12) if row % 10 != fold])
        base, other = (represent(model, kept, [3])[3] for model in models.values())
        measured = table[(table["layer"] == 3) & (table["fold"] == fold)]["similarity"].item()
        assert measured == pytest.approx(rsa.similarity(base, other), abs=1e-5)


def test_long_texts_are_cut_only_at_what_the_encoder_reads(models, toy_tokenizer):
    longest = models[BASE, SHARED].config.max_position_embeddings
    texts = ([" ".join(["hen"] * (2 * longest))] + ["hen cat dog"] * 11,)
    table = similarity.similarity_to_first(models, {"long": texts}, toy_tokenizer, 10**6)
    assert table["tokens"].max() == longest - 2 + 33


def test_texts_are_drawn_at_random_and_pairs_stay_together():
    few, many = (similarity.inputs("toyworld", ["mnli", "wikipedia"], most) for most in (20, 10**6))
    pairs = list(zip(*many["mnli"], strict=True))
    assert set(zip(*few["mnli"], strict=True)) <= set(pairs) and few["mnli"][0] == few["mnli, premise alone"][0]
    drawn = similarity.drawn(list(range(100)), 10)
    assert drawn != sorted(drawn) and drawn == similarity.drawn(list(range(100)), 20)[:10]


def diverged(checkpoint):
    return dataclasses.replace(checkpoint, manifest=checkpoint.manifest | {"diverged": True})


def test_a_model_that_diverged_is_left_out(toy_checkpoint):
    assert converged([diverged(toy_checkpoint), toy_checkpoint]) == [toy_checkpoint]
    assert list(pretrained_and_fine_tuned(ENCODER, [diverged(toy_checkpoint)])) == [(BASE, SHARED)]


def test_a_pretraining_whose_trainings_all_diverged_has_no_similarity_and_no_probes(toy_checkpoint):
    one, task = [diverged(toy_checkpoint)], toy_checkpoint.specification.task
    tables = {
        "similarity": similarity.similarities(one, 100, 10),
        "micro_f1": probes.edge_probing(one, ENCODER, "toyworld", task, "pos", {"targets": 40}),
        "bits": probes.codelengths(one, ENCODER, "toyworld", task, "pos", {"targets": 40}),
        "spearman": probes.structure(one, ENCODER, "toyworld", task, 40),
    }
    assert all(table.empty and value in table for value, table in tables.items())


def test_similarity_by_input_is_measured_where_a_model_has_its_own_kind(toy_checkpoint):
    assert toy_checkpoint.specification.task not in similarity.SIDES
    assert similarity.similarities_by_input([toy_checkpoint], 100, 10).empty


def test_whole_models_are_probed_and_those_of_all_pretrainings_compared():
    chosen = settings(5, "tiny")
    whole = chosen.whole()
    assert {one.encoder for one in whole} == set(chosen.pretrained) and len(whole) == 9
    assert not any(one.frozen or one.truncated for one in whole)
    assert {one.encoder for one in chosen.probed()} == {ENCODER} and len(chosen.probed()) == 3
    assert [one.task for one in chosen.fine_tuned_on("mnli")] == ["mnli"] and chosen.fine_tuned_on("base") == []


def test_the_first_encoder_is_ablated_and_other_pretrainings_are_not():
    few = {"seeds": [0], "frozen": [0, 4], "truncated": [2], "halved": []}
    ours = [f"english-bert/seed-{seed}" for seed in range(3)]
    chosen = settings(5, "small", encoder=ours[0], pretrained=ours, **few)
    models = {name: chosen.trainings("mnli", name, 3000, 6) for name in chosen.encoders_used()}
    assert [len(of_encoder) for of_encoder in models.values()] == [4, 1, 1]
    assert len(chosen.trainings("squad", chosen.encoder, 3000, 6)) == 1
    alone = settings(5, "small", **few)
    tuned = alone.trainings("mnli", OTHER, 3000, 6)
    assert len(tuned) == 4 and tuned[0]["schedule"].learning_rate == 5e-5
    assert models[ours[0]][0]["schedule"].learning_rate == 5e-4


@pytest.mark.parametrize(("depth", "quarters"), [(12, [3, 6, 9]), (8, [2, 4, 6]), (6, [2, 3, 4])])
def test_half_of_the_layers_is_among_those_frozen_and_kept_at_any_depth_and_squad_has_half_alone(depth, quarters):
    chosen = settings(5, "small", seeds=[20])

    def changed(task):
        trainings = chosen.trainings(task, chosen.encoder, 3000, depth)
        frozen = [len(one["frozen"]) - 1 for one in trainings if "frozen" in one]
        return frozen, [one["truncated"] for one in trainings if "truncated" in one]

    assert changed("mnli") == changed("parsing") == ([0, *quarters], quarters) and depth // 2 in quarters
    assert changed("squad") == ([depth // 2], [depth // 2])


def test_small_edge_tasks_are_validated_as_often_as_the_suite_does():
    chosen = settings(5, "paper")
    assert len(chosen.pretrained) == 3 and chosen.probe_validate_every == 1000
    assert chosen.probe_validate_every_of == {"spr": 100, "relations": 100}


def test_words_that_were_cut_off_are_no_targets(toy_tokenizer, models):
    long = [["hen"] * 30, ["hen"]]
    vectors = word_vectors(models[BASE, SHARED], encoded_words(long, toy_tokenizer, 12), [0, 6])
    assert vectors[0].shape[0] == 2 and vectors[0].shape[1] < 30 and vectors[1].shape == (2, 1, 64)


NO_TOKEN = "\u200b"


@pytest.fixture
def cut_on_the_left(toy_tokenizer):
    tokenizer = copy.deepcopy(toy_tokenizer)
    tokenizer.truncation_side = "left"
    return tokenizer


def test_words_without_tokens_are_none_of_those_measured(toy_tokenizer, cut_on_the_left):
    sentences = [["the", NO_TOKEN, "hen"], ["hen"] * 5, [NO_TOKEN]]
    assert probes.words_with_tokens(encoded_words(sentences, toy_tokenizer, 6)) == [{0, 2}, {0, 1, 2, 3}, set()]
    assert probes.words_with_tokens(encoded_words(sentences, cut_on_the_left, 6))[1] == {1, 2, 3, 4}


def test_targets_with_a_word_without_tokens_are_left_out_and_counted(models, toy_tokenizer):
    rows = [(["the", NO_TOKEN, "hen"], (0, 1), (2, 3)), (["the", NO_TOKEN, "hen"], (0, 1), (1, 3))]
    rows += [([NO_TOKEN], (0, 1), (0, 1)), (["a", "hen"], (0, 1), (1, 2))]
    table = pd.DataFrame(rows, columns=["tokens", "span1", "span2"]).assign(labels=[["x"]] * 4)
    (split,) = probes.targets_of_splits({"train": table}, ENCODER, 10, 64)
    assert split.left_out == 2 and sorted(target.span2 for target in split.targets) == [(1, 2), (2, 3)]
    vectors = probes.vectors_of(models[BASE, SHARED], [split], "cpu")
    read = SpanTargets((vectors, split.targets), ["x"])
    assert all((batch.words[0] != 0).any(-1).all() for batch in read.batches(8, [0]))


def test_sentences_with_a_word_without_tokens_are_left_out_and_counted(models, toy_tokenizer):
    treebank = {split: rows.head(40) for split, rows in toyworld.table("treebank").items()}
    asked = {"sentences": 80, "device": "cpu", "with_folds": True}
    before = probes.structural_probes({"base": models[BASE, SHARED]}, toy_tokenizer, treebank, **asked)
    long_enough = treebank["test"]["tokens"].map(len).ge(probes.MIN_WORDS)
    spoilt = treebank["test"]["tokens"].map(lambda words: [NO_TOKEN, *words[1:]])
    treebank["test"].loc[long_enough.cumsum() <= 3, "tokens"] = spoilt
    after = probes.structural_probes({"base": models[BASE, SHARED]}, toy_tokenizer, treebank, **asked)
    assert set(before["left_out"]) == {0} and set(after["left_out"]) == {3}
    assert set(before["examples"] - after["examples"]) == {3}
