"""Chapter 5: each predicate on tables made to pass and to fail, and the measurements on the toy world."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import toyworld
from fivelenses.activations import word_vectors
from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, REPRODUCED, judge
from fivelenses.papers.merchant2020 import claims, figures, measure
from fivelenses.papers.merchant2020.measure import drawn_targets, encoded_words
from fivelenses.runs.settings import settings
from fivelenses.tasks.edge_tasks import edge_table

ENCODER = "toy-bert/seed-0"
OTHER = "sentence-transformers/all-MiniLM-L6-v2"
DEPTH = 12
LAYERS = range(DEPTH + 1)
BY_KEY = {claim.key: claim for claim in claims.CLAIMS}
EDGE = ("pos", "constituents", "dependencies", "coreference", "spr", "relations")


def edge_scores(change) -> pd.DataFrame:
    """Scores of 0.9 for the encoder, and so much more or less in the others."""
    models = ("base", "lexical", "randomised", "mnli", "squad", "parsing")
    rows = [
        {"task": task, "model": model, "seed": seed, "layers": "mix", "micro_f1": 0.9 + change(task, model)}
        for task in EDGE
        for model in models
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows)


def kept(task, model):
    baseline = {"base": 0.0, "lexical": -0.1, "randomised": -0.2, "mnli": -0.003, "squad": -0.01}
    syntax = task in ("constituents", "dependencies")
    return baseline.get(model, 0.02 if syntax else -0.01)


def forgotten(task, model):
    syntax = task in ("constituents", "dependencies")
    return {"base": 0.0, "lexical": -0.02, "randomised": -0.1, "parsing": -0.2 if syntax else 0.1}.get(model, -0.2)


def structure(change) -> pd.DataFrame:
    rows = [
        {"model": model, "layer": layer, "spearman": 0.8 + change(model, layer), "tree": 0.5}
        for model in ("base", "mnli", "squad", "parsing")
        for layer in LAYERS
    ]
    return pd.DataFrame(rows)


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


def falls_everywhere(model, layer, text):
    return 0.5 + {"mnli": 0.0, "squad": 0.2, "parsing": 0.4}[model]


def ablations(column: str, loss) -> pd.DataFrame:
    places = range(-1, DEPTH + 1) if column == "frozen" else range(1, DEPTH + 1)
    rows = [
        {"task": task, "seed": 0, column: place, "layers": DEPTH, "score": 0.8 - loss(task, place), "null_rate": 0.3}
        for task in ("mnli", "squad", "parsing")
        for place in places
    ]
    return pd.DataFrame(rows)


def codes(factor) -> pd.DataFrame:
    rows = [
        {"task": task, "model": model, "bits": 1000.0 * factor(task, model), "uniform": 4000.0}
        for task in ("pos", "dependencies")
        for model in ("base", "randomised", "mnli", "squad", "parsing")
    ]
    return pd.DataFrame(rows)


def own_kind(more):
    def similarity(model, layer, text):
        return 0.9 - (more if text == model and layer > DEPTH / 2 else 0.0)

    return similarity


PASSING = {
    "merchant2020-table-1": edge_scores(kept),
    "merchant2020-figure-1a": structure(lambda model, layer: 0.05 if model == "parsing" and layer > 5 else 0.0),
    "merchant2020-figure-1b": structure(lambda model, layer: 0.05 if model == "parsing" and layer > 5 else 0.0),
    "merchant2020-codelengths": codes(lambda task, model: 0.8 if (task, model) == ("dependencies", "parsing") else 1.0),
    "merchant2020-figure-2": similar(falls_on_top),
    "merchant2020-figure-3": ablations(
        "frozen", lambda task, place: 0.1 if place > (4 if task == "parsing" else 9) else 0.0
    ),
    "merchant2020-figure-4": ablations(
        "kept", lambda task, place: 0.1 if place < (9 if task == "parsing" else 4) else 0.0
    ),
    "merchant2020-figure-5-mnli": similar(own_kind(0.2), ("wikipedia", "mnli", "squad"), ("mnli",)),
    "merchant2020-figure-5-squad": similar(own_kind(0.2), ("wikipedia", "mnli", "squad"), ("squad",)),
}
FAILING = {
    "merchant2020-table-1": edge_scores(forgotten),
    "merchant2020-figure-1a": structure(lambda model, layer: -0.1 if model != "base" else 0.0),
    "merchant2020-figure-1b": structure(lambda model, layer: -0.1 if model != "base" else 0.0),
    "merchant2020-codelengths": codes(lambda task, model: 1.0 if model == "base" else 1.5),
    "merchant2020-figure-2": similar(falls_everywhere),
    "merchant2020-figure-3": ablations("frozen", lambda task, place: 0.0 if place < 0 or task == "parsing" else 0.3),
    "merchant2020-figure-4": ablations("kept", lambda task, place: 0.3 if place < DEPTH and task != "parsing" else 0.0),
    "merchant2020-figure-5-mnli": similar(own_kind(-0.05), ("wikipedia", "mnli", "squad"), ("mnli",)),
    "merchant2020-figure-5-squad": similar(own_kind(-0.05), ("wikipedia", "mnli", "squad"), ("squad",)),
}


@pytest.mark.parametrize("key", BY_KEY)
def test_a_table_that_shows_the_claim_passes(key):
    assert judge(BY_KEY[key], PASSING).verdict == REPRODUCED


@pytest.mark.parametrize("key", BY_KEY)
def test_a_table_that_shows_the_contrary_fails(key):
    assert judge(BY_KEY[key], FAILING).verdict == NOT_REPRODUCED


@pytest.mark.parametrize(("key", "figure"), [("few-layers-suffice", "3"), ("shallow-truncation", "4")])
def test_a_task_that_is_not_learned_is_not_judged_by_what_it_loses(key, figure):
    table = FAILING[f"merchant2020-figure-{figure}"]
    name = f"merchant2020-figure-{figure}"
    of_one = table.assign(null_rate=table["null_rate"].where(table["task"] != "squad", 0.77))
    assert set(judge(BY_KEY[key], {name: of_one}).by_group) == {"MNLI", "Parsing"}
    nothing = judge(BY_KEY[key], {name: table.assign(null_rate=0.77)})
    assert nothing.verdict == CANNOT_BE_TESTED and "learned" in nothing.reason


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
    assert "mixture of all layers" in figures.appendix_a(PASSING["merchant2020-table-1"]).sentence


def test_models_tuned_whole_are_averaged_over_seeds():
    row = {"task": "mnli", "encoder": ENCODER, "training_data": "toy world", "examples": 1200, "steps": 1000}
    row |= {"null_rate": 0.35, "truncated": -1}
    scores = [(0, -1, 0.5), (1, -1, 0.6), (0, 3, 0.1)]
    models = pd.DataFrame([row | {"seed": seed, "frozen": top, "score": score} for seed, top, score in scores])
    table = figures.appendix_c(models).table
    assert table[["score", "score_spread", "seeds"]].to_numpy().tolist() == [[0.55, pytest.approx(0.05), 2]]


def test_a_run_without_a_parser_cannot_test_what_it_helps():
    table = PASSING["merchant2020-table-1"]
    verdict = judge(BY_KEY["dep-helps-syntax"], {"merchant2020-table-1": table[table["model"] != "parsing"]})
    assert verdict.verdict == CANNOT_BE_TESTED and "parsing" in verdict.reason


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def models(toy_checkpoint):
    return measure.probed_models([toy_checkpoint], ("base", "randomised"))


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
    table = measure.edge_probing([toy_checkpoint], "pos", 400, 2e-3, 15, 6, 32)
    mean = table.set_index(["layers", "model"])["micro_f1"]
    assert mean["mix", "base"] > mean["mix", "randomised"] and mean["top", "base"] > mean["top", "randomised"]
    assert set(table["model"]) == {"base", "randomised", "lexical", tuned} and set(table["task"]) == {"pos"}
    exhibit = figures.table_1(table)
    assert "97.5" in exhibit.shown.loc[0, "base"] and exhibit.shown.loc[0, "data"] == "toy world"


def test_a_pretrained_encoder_makes_labels_cheaper(toy_checkpoint):
    table = measure.codelengths([toy_checkpoint], "pos", 400)
    bits = table.set_index("model")
    assert bits.loc["base", "bits"] < bits.loc["randomised", "bits"] < bits.loc["base", "uniform"]
    shown = figures.appendix_b(table).shown
    assert shown.loc[0, "base"] == f"{bits.loc['base', 'bits'] / 1000:.2f}" and shown.columns[1] == "uniform code"


def test_structural_probes_have_a_row_per_layer(toy_checkpoint, models, toy_tokenizer):
    table = measure.structure([toy_checkpoint], "base", 60)
    assert table.groupby("kind")["layer"].apply(list).tolist() == [list(range(7))] * 2
    assert table["spearman"].between(0.3, 1).all() and table["tree"].between(0, 1).all()
    given = measure.structural_probes({"base": models["base"]}, toy_tokenizer, toyworld.table("treebank"), 60)
    pd.testing.assert_frame_equal(table, given)
    figure = figures.figure_1(table, "distance")
    assert figure.key == "merchant2020-figure-1a" and "UUAS" in figure.caption


def test_an_encoder_is_like_itself_and_unlike_random_weights(models, toy_tokenizer):
    texts = measure.inputs("toyworld", ["wikipedia", "mnli", "squad"], 30)
    assert list(texts) == ["wikipedia", "mnli", "mnli, premise alone", "squad", "squad, question alone"]
    assert [len(sides) for sides in texts.values()] == [1, 2, 1, 2, 1]
    three = {"base": models["base"], "same": models["base"], "other": models["randomised"]}
    table = measure.similarity_to_base(three, {"wikipedia": texts["wikipedia"]}, toy_tokenizer, 200, 64)
    by_model = table.groupby("model")["similarity"]
    np.testing.assert_allclose(by_model.min()["same"], 1.0, atol=1e-6)
    assert by_model.max()["other"] < 0.6
    assert (table["tokens"] == 200).all() and table["null"].abs().max() < 0.2


def diverged(checkpoint):
    return dataclasses.replace(checkpoint, manifest=checkpoint.manifest | {"diverged": True})


def test_the_first_model_that_did_not_diverge_is_probed(toy_checkpoint):
    models = measure.first_models([diverged(toy_checkpoint), toy_checkpoint])
    assert list(models.values()) == [toy_checkpoint]


def test_a_pretraining_whose_trainings_all_diverged_has_no_similarity_and_no_probes(toy_checkpoint):
    assert measure.similarities([diverged(toy_checkpoint)], 100, 10).empty
    with pytest.raises(ValueError, match="every model diverged"):
        measure.edge_probing([diverged(toy_checkpoint)], "pos", 40)


def test_similarity_by_input_is_measured_where_a_model_has_its_own_kind(toy_checkpoint):
    assert toy_checkpoint.specification.task not in measure.SIDES
    assert measure.similarities_by_input([toy_checkpoint], 100, 10).empty


def test_whole_models_are_probed_and_those_of_all_pretrainings_compared():
    chosen = settings(5, "tiny")
    whole = chosen.whole()
    assert {one.encoder for one in whole} == set(chosen.pretrained) and len(whole) == 9
    assert not any(one.frozen or one.truncated for one in whole)
    assert {one.encoder for one in chosen.probed()} == {ENCODER} and len(chosen.probed()) == 3


def test_the_first_encoder_is_ablated_and_other_pretrainings_are_not():
    chosen = settings(5, "small", frozen=[0, 4], truncated=[2])
    models = {name: chosen.trainings("mnli", name, 3000, 6) for name in chosen.encoders_used()}
    assert [len(of_encoder) for of_encoder in models.values()] == [4, 1, 1]
    assert len(chosen.trainings("squad", chosen.encoder, 3000, 6)) == 1
    alone = settings(5, "small", encoder=OTHER, pretrained=[OTHER], frozen=[0, 4], truncated=[2])
    tuned = alone.trainings("mnli", OTHER, 3000, 6)
    assert len(tuned) == 4 and tuned[0]["schedule"].learning_rate == 3e-4
    assert models["english-bert/seed-0"][0]["schedule"].learning_rate == 5e-4


def test_words_that_were_cut_off_are_no_targets(toy_tokenizer, models):
    long = [["hen"] * 30, ["hen"]]
    vectors = word_vectors(models["base"], encoded_words(long, toy_tokenizer, 12), [0, 6])
    assert vectors[0].shape[0] == 2 and vectors[0].shape[1] < 30 and vectors[1].shape == (2, 1, 64)
