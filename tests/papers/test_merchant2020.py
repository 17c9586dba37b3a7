"""Chapter 5: its measurements on the toy world, and its figures."""

import copy
import dataclasses
from types import SimpleNamespace

import datasets
import numpy as np
import pandas as pd
import pytest

import toyworld
from fivelenses import records
from fivelenses.activations import represent, word_vectors
from fivelenses.lenses import rsa
from fivelenses.lenses.edge_probe import SpanTargets
from fivelenses.models.twins import moved_at_random
from fivelenses.papers.merchant2020 import SIDES, figures, measure, probed, similarity
from fivelenses.papers.merchant2020.measure import drawn_targets, encoded_words
from fivelenses.runs.settings import settings
from fivelenses.tasks.edge_tasks import edge_table

ENCODER = "toy-bert/seed-0"
OTHER = "sentence-transformers/all-MiniLM-L6-v2"
DEPTH = 12
LAYERS = range(DEPTH + 1)


def similar(change, inputs=("wikipedia",), models=("mnli", "squad", "parsing")) -> pd.DataFrame:
    rows = [
        {"pretrained": start, "input": text, "model": model, "layer": layer, "similarity": change(model, layer, text)}
        for start in ("one", "two")
        for model in models
        for text in inputs
        for layer in LAYERS
    ]
    return pd.DataFrame(rows)


def falls_on_top(model, layer, text):
    return 1 - {"mnli": 0.1, "squad": 0.2, "parsing": 0.5}[model] * (layer / DEPTH) ** 6


def ablations(column: str, loss) -> pd.DataFrame:
    places = range(-1, DEPTH + 1) if column == "frozen" else range(1, DEPTH + 1)
    rows = [
        {"task": task, "seed": 0, column: place, "layers": DEPTH, "score": 0.8 - loss(task, place), "null_rate": 0.3}
        for task in ("mnli", "squad", "parsing")
        for place in places
    ]
    return pd.DataFrame(rows)


def test_a_task_without_ablations_has_no_curve():
    models = ablations("frozen", lambda task, place: 0.0).drop(columns="layers").assign(encoder=ENCODER, truncated=-1)
    models = models[(models["task"] != "squad") | (models["frozen"] == -1)]
    others = models.assign(encoder="another", score=0.0)
    depth = similar(falls_on_top).assign(pretrained=ENCODER)
    exhibit = figures.figure_3(pd.concat([models, others]), depth, ENCODER)
    assert set(exhibit.table["task"]) == {"mnli", "parsing"} and "SQuAD" not in exhibit.caption
    assert set(exhibit.table["encoder"]) == {ENCODER} and set(exhibit.table["layers"]) == {DEPTH}
    assert "whole encoders" in figures.figure_3(models[models["frozen"] == -1], depth, ENCODER).sentence


def test_truncated_encoders_are_drawn_by_the_layers_they_keep():
    models = ablations("truncated", lambda task, place: 0.0).assign(encoder=ENCODER, frozen=-1)
    models["truncated"] = models["truncated"].where(models["truncated"] < DEPTH, -1)
    table = figures.figure_4(models, similar(falls_on_top).assign(pretrained=ENCODER), ENCODER).table
    assert sorted(table["kept"].unique()) == list(range(1, DEPTH + 1))


def test_a_picture_of_inputs_takes_running_text_from_the_other_record():
    inputs = {"mnli": 0.5, "mnli, premise alone": 0.6}
    by_input = similar(lambda model, layer, text: inputs[text], tuple(inputs), ("mnli",)).assign(tokens=100)
    by_input = by_input[by_input["pretrained"] == "one"]
    exhibit = figures.figure_5(similar(falls_on_top).assign(tokens=200), by_input, "mnli")
    assert list(exhibit.table["input"].unique()) == ["wikipedia", *inputs] and set(exhibit.table["model"]) == {"mnli"}
    assert set(exhibit.table["pretrained"]) == {"one"} and "at most 200 tokens" in exhibit.caption
    names = {text.get_text() for text in exhibit.figure.axes[0].texts}
    assert names == {"running text", "MNLI", "MNLI, premise alone"}
    assert "no encoder that was tuned on SQuAD" in figures.figure_5(by_input, by_input, "squad").sentence


def test_a_run_that_kept_no_probes_of_the_top_layer_says_so():
    assert "mixture of all layers" in figures.appendix_a(pd.DataFrame({"layers": ["mix"]})).sentence


@pytest.mark.parametrize("controls", [False, True])
def test_a_twin_stands_as_a_line_beside_the_models(controls):
    table = similar(falls_on_top).assign(tokens=200, null=0.0)
    if controls:
        twins = table.assign(control="twin", similarity=0.95)
        table = pd.concat([table.assign(control=""), twins]).assign(fold=-1)
        table = pd.concat([table, table.assign(fold=0, similarity=0.0, null=np.nan)])
    exhibit = figures.figure_2(table)
    names = {text.get_text() for text in exhibit.figure.axes[0].texts}
    assert ("moved at random" in names) == controls and {"MNLI", "permuted"} <= names
    assert ("special ones left out" in exhibit.caption) == controls
    assert "similarity" in exhibit.table and exhibit.table["similarity"].min() == pytest.approx(0.5)
    assert not controls or set(exhibit.table["twin"]) == {0.95}


def test_models_tuned_whole_are_averaged_over_seeds():
    row = {"task": "mnli", "encoder": ENCODER, "training_data": "toy world", "examples": 1200, "steps": 1000}
    row |= {"null_rate": 0.35, "truncated": -1}
    scores = [(0, -1, 0.5), (1, -1, 0.6), (0, 3, 0.1)]
    models = pd.DataFrame([row | {"seed": seed, "frozen": top, "score": score} for seed, top, score in scores])
    exhibit = figures.appendix_c(models)
    numbers = exhibit.table[["score", "score_spread", "seeds"]].to_numpy().tolist()
    assert numbers == [[0.55, pytest.approx(0.05), 2]] and exhibit.shown["score"].tolist() == ["0.550 ± 0.050"]
    assert figures.appendix_c(models[models["seed"] == 0]).shown["score"].tolist() == ["0.500"]


@pytest.fixture(autouse=True)
def closed():
    yield


@pytest.fixture(scope="module")
def models(toy_checkpoint):
    return probed.probed_models(ENCODER, [], ("base", "randomised"))


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
    how = (400, 2e-3, 15, 6, 32)
    table = measure.edge_probing([], ENCODER, "toyworld", "base", "pos", *how)
    assert set(table["model"]) == {"base", "randomised", "lexical"}
    # The one task with a twin is the parser's.
    parser = SimpleNamespace(
        specification=dataclasses.replace(toy_checkpoint.specification, task="parsing"),
        manifest=toy_checkpoint.manifest,
        model=toy_checkpoint.model,
    )
    named = {tuned: toy_checkpoint, "parsing": parser}
    own = [measure.edge_probing([one], ENCODER, "toyworld", name, "pos", *how) for name, one in named.items()]
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
    exhibit = figures.table_1(table)
    assert "97.5" in exhibit.shown.loc[0, "base"] and exhibit.shown.loc[0, "data"] == "toy world"
    (beside,) = (column for column in exhibit.shown.columns if "moved at random" in column)
    assert float(exhibit.shown.loc[0, beside].replace("−", "-")) < 100 * (1 - mean["mix", "base"])


def test_scores_without_a_fold_are_those_of_the_other_targets(toy_checkpoint, models, toy_tokenizer):
    sentences, targets = drawn_targets(edge_table("srl", "toyworld")["train"], 150)
    vectors = word_vectors(models["base"], encoded_words(sentences, toy_tokenizer, 64), [0, 6])
    split = ([vectors], targets)
    probe, *_ = measure.edge_probe.fit(split, split, split, validate_every=15, max_validations=2, learning_rate=5e-3)
    scores = measure._micro_f1(probe, vectors, targets)
    assert scores[-1] == pytest.approx(probe.micro_f1) and 0 < probe.micro_f1 < 1
    others = [target for target in targets if target.sentence % 10 != 3]
    assert scores[3] == pytest.approx(measure._micro_f1(probe, vectors, others)[-1]) and scores[3] != scores[-1]


def test_a_pretrained_encoder_makes_labels_cheaper(toy_checkpoint):
    table = measure.codelengths([], ENCODER, "toyworld", "base", "pos", 400, [0, 1])
    assert sorted(table["fold"].unique()) == list(range(-1, 10)) and set(table["seed"]) == {0, 1}
    own = table[(table["control"] != "twin") & (table["seed"] == 0)]
    bits = own[own["fold"] == -1].set_index("model")
    assert bits.loc["base", "bits"] < bits.loc["randomised", "bits"] < bits.loc["base", "uniform"]
    replicates = own[(own["model"] == "base") & (own["fold"] >= 0)]
    # Each label is left out once.
    assert replicates["bits"].sum() == pytest.approx(9 * bits.loc["base", "bits"])
    assert replicates["targets"].sum() == 9 * bits.loc["base", "targets"]
    shown = figures.appendix_b(own).shown
    assert shown.loc[0, "base"] == f"{bits.loc['base', 'bits'] / 1000:.2f}" and shown.columns[1] == "uniform code"


def test_structural_probes_have_a_row_per_layer_and_fold(toy_checkpoint, models, toy_tokenizer):
    table = measure.structure([], ENCODER, "toyworld", "base", 60)
    whole = table[table["fold"] == -1]
    assert whole.groupby("kind")["layer"].apply(list).tolist() == [list(range(7))] * 2
    assert whole["spearman"].between(0.3, 1).all() and whole["tree"].between(0, 1).all()
    given = measure.structural_probes({"base": models["base"]}, toy_tokenizer, toyworld.table("treebank"), 60)
    pd.testing.assert_frame_equal(whole[given.columns].reset_index(drop=True), given)
    assert table.groupby(["kind", "layer"])["spearman"].std().gt(0).all() and (table["control"] == "all").all()
    figure = figures.figure_1(table, "distance")
    assert figure.key == "merchant2020-figure-1a" and "UUAS" in figure.caption
    assert set(table["tuned_seed"]) == {-1}


def test_a_tuned_model_brings_its_twin(toy_checkpoint, models):
    task = toy_checkpoint.specification.task
    table = measure.structure([toy_checkpoint], ENCODER, "toyworld", task, 60)
    assert set(table["model"]) == {task} and set(table["control"]) == {"", "twin"}
    twin = probed.probed_models(ENCODER, [toy_checkpoint], [probed.TWIN_OF + task])[probed.TWIN_OF + task]
    seed = int(toy_checkpoint.specification.address[:12], 16)
    expected = moved_at_random(toy_checkpoint.model(), models["base"], seed)
    assert all((one == other).all() for one, other in zip(twin.parameters(), expected.parameters(), strict=True))
    assert set(table["tuned_seed"]) == {toy_checkpoint.specification.seed}


def test_an_encoder_is_like_itself_and_unlike_random_weights(models, toy_tokenizer):
    texts = similarity.inputs("toyworld", ["wikipedia", "mnli", "squad"], 30)
    assert list(texts) == ["wikipedia", "mnli", "mnli, premise alone", "squad", "squad, question alone"]
    assert [len(sides) for sides in texts.values()] == [1, 2, 1, 2, 1]
    three = {"base": models["base"], "same": models["base"], "other": models["randomised"]}
    table = similarity.similarity_to_base(three, {"wikipedia": texts["wikipedia"]}, toy_tokenizer, 200)
    by_model = table.groupby("model")["similarity"]
    np.testing.assert_allclose(by_model.min()["same"], 1.0, atol=1e-6)
    assert by_model.max()["other"] < 0.6
    whole = table[table["fold"] == -1]
    assert (whole["tokens"] == 200).all() and whole["null"].abs().max() < 0.2
    left_out = table[table["fold"] >= 0].groupby(["model", "layer"])["tokens"].sum()
    assert (left_out == 9 * 200).all()


def test_special_tokens_do_not_count(models, toy_tokenizer):
    texts = (["The hen saw a cat.", "A dog ran."] * 6, ["It was a good day for her.", "No."] * 6)
    table = similarity.similarity_to_base(models, {"pairs": texts}, toy_tokenizer, 10_000)
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
        base, other = (represent(models[name], kept, [3])[3] for name in ("base", "randomised"))
        measured = table[(table["layer"] == 3) & (table["fold"] == fold)]["similarity"].item()
        assert measured == pytest.approx(rsa.similarity(base, other), abs=1e-5)


def test_what_measures_similarity_does_not_know_what_is_made_of_records():
    reached = records.closure(["fivelenses.papers.merchant2020.similarity"], records.KNOWN_OTHERWISE)
    assert not [name for name in reached if name.startswith("fivelenses.first_exhibits") or "claims" in name]


def test_long_texts_are_cut_only_at_what_the_encoder_reads(models, toy_tokenizer):
    longest = models["base"].config.max_position_embeddings
    texts = ([" ".join(["hen"] * (2 * longest))] + ["hen cat dog"] * 11,)
    table = similarity.similarity_to_base(models, {"long": texts}, toy_tokenizer, 10**6)
    assert table["tokens"].max() == longest - 2 + 33


def test_texts_are_drawn_at_random_and_pairs_stay_together():
    few, many = (similarity.inputs("toyworld", ["mnli", "wikipedia"], most) for most in (20, 10**6))
    pairs = list(zip(*many["mnli"], strict=True))
    assert set(zip(*few["mnli"], strict=True)) <= set(pairs) and few["mnli"][0] == few["mnli, premise alone"][0]
    drawn = similarity._drawn(list(range(100)), 10)
    assert drawn != sorted(drawn) and drawn == similarity._drawn(list(range(100)), 20)[:10]


def diverged(checkpoint):
    return dataclasses.replace(checkpoint, manifest=checkpoint.manifest | {"diverged": True})


def test_the_first_model_that_did_not_diverge_is_probed(toy_checkpoint):
    models = probed.first_models([diverged(toy_checkpoint), toy_checkpoint])
    assert list(models.values()) == [toy_checkpoint]


def test_a_pretraining_whose_trainings_all_diverged_has_no_similarity_and_no_probes(toy_checkpoint):
    assert similarity.similarities([diverged(toy_checkpoint)], 100, 10).empty
    task = toy_checkpoint.specification.task
    assert measure.edge_probing([diverged(toy_checkpoint)], ENCODER, "toyworld", task, "pos", 40).empty
    assert measure.structure([diverged(toy_checkpoint)], ENCODER, "toyworld", task, 40).empty


def test_similarity_by_input_is_measured_where_a_model_has_its_own_kind(toy_checkpoint):
    assert toy_checkpoint.specification.task not in SIDES
    assert similarity.similarities_by_input([toy_checkpoint], 100, 10).empty


def test_whole_models_are_probed_and_those_of_all_pretrainings_compared():
    chosen = settings(5, "tiny")
    whole = chosen.whole()
    assert {one.encoder for one in whole} == set(chosen.pretrained) and len(whole) == 9
    assert not any(one.frozen or one.truncated for one in whole)
    assert {one.encoder for one in chosen.probed()} == {ENCODER} and len(chosen.probed()) == 3
    assert [one.task for one in chosen.tuned_on("mnli")] == ["mnli"] and chosen.tuned_on("base") == []


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
    vectors = word_vectors(models["base"], encoded_words(long, toy_tokenizer, 12), [0, 6])
    assert vectors[0].shape[0] == 2 and vectors[0].shape[1] < 30 and vectors[1].shape == (2, 1, 64)


NO_TOKEN = "\u200b"


@pytest.fixture
def cut_on_the_left(toy_tokenizer):
    tokenizer = copy.deepcopy(toy_tokenizer)
    tokenizer.truncation_side = "left"
    return tokenizer


def test_words_without_tokens_are_none_of_those_measured(toy_tokenizer, cut_on_the_left):
    sentences = [["the", NO_TOKEN, "hen"], ["hen"] * 5, [NO_TOKEN]]
    assert measure.words_with_tokens(encoded_words(sentences, toy_tokenizer, 6)) == [{0, 2}, {0, 1, 2, 3}, set()]
    assert measure.words_with_tokens(encoded_words(sentences, cut_on_the_left, 6))[1] == {1, 2, 3, 4}


def test_targets_with_a_word_without_tokens_are_left_out_and_counted(models, toy_tokenizer):
    rows = [(["the", NO_TOKEN, "hen"], (0, 1), (2, 3)), (["the", NO_TOKEN, "hen"], (0, 1), (1, 3))]
    rows += [([NO_TOKEN], (0, 1), (0, 1)), (["a", "hen"], (0, 1), (1, 2))]
    table = pd.DataFrame(rows, columns=["tokens", "span1", "span2"]).assign(labels=[["x"]] * 4)
    given = ({"base": models["base"]}, toy_tokenizer, {"train": table})
    vectors, targets, left_out = measure._vectors_and_targets(*given, 10, 64, "cpu")
    assert left_out == 2 and sorted(target.span2 for target in targets["train"]) == [(1, 2), (2, 3)]
    read = SpanTargets((list(one["train"] for one in vectors.values()), targets["train"]), ["x"])
    assert all((batch.words[0] != 0).any(-1).all() for batch in read.batches(8, [0]))


def test_sentences_with_a_word_without_tokens_are_left_out_and_counted(models, toy_tokenizer):
    treebank = {split: rows.head(40) for split, rows in toyworld.table("treebank").items()}
    asked = {"sentences": 80, "device": "cpu", "with_folds": True}
    before = measure.structural_probes({"base": models["base"]}, toy_tokenizer, treebank, **asked)
    long_enough = treebank["test"]["tokens"].map(len).ge(measure.MIN_WORDS)
    spoilt = treebank["test"]["tokens"].map(lambda words: [NO_TOKEN, *words[1:]])
    treebank["test"].loc[long_enough.cumsum() <= 3, "tokens"] = spoilt
    after = measure.structural_probes({"base": models["base"]}, toy_tokenizer, treebank, **asked)
    assert set(before["left_out"]) == {0} and set(after["left_out"]) == {3}
    assert set(before["examples"] - after["examples"]) == {3}
