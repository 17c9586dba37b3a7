"""Chapter 5: each predicate on tables made to pass and to fail, and the measurements on the toy world."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

import toyworld
from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, REPRODUCED, judge
from fivelenses.models import encoders
from fivelenses.papers import merchant2020
from fivelenses.papers.merchant2020.measure import drawn_targets, encoded_words
from fivelenses.tasks.edge_tasks import edge_table

ENCODER = "toy-bert/seed-0"
DEPTH = 12
LAYERS = range(DEPTH + 1)
BY_KEY = {claim.key: claim for claim in merchant2020.CLAIMS}
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
    scores = ablations("frozen", lambda task, place: 0.0).assign(kept=DEPTH)
    scores = scores[(scores["task"] != "squad") | (scores["frozen"] == -1)]
    exhibit = merchant2020.figure_3(scores)
    assert set(exhibit.table["task"]) == {"mnli", "parsing"} and "SQuAD" not in exhibit.caption
    assert "whole encoders" in merchant2020.figure_3(scores[scores["frozen"] == -1]).sentence
    plt.close("all")


def test_a_run_without_a_parser_cannot_test_what_it_helps():
    table = PASSING["merchant2020-table-1"]
    verdict = judge(BY_KEY["dep-helps-syntax"], {"merchant2020-table-1": table[table["model"] != "parsing"]})
    assert verdict.verdict == CANNOT_BE_TESTED and "parsing" in verdict.reason


@pytest.fixture(scope="module")
def models():
    found = encoders.locate(ENCODER)
    torch.manual_seed(0)
    blank = encoders.load_weights(encoders.locate(f"random:{ENCODER}"))
    return {"base": encoders.load_weights(found), "randomised": blank}


def test_drawn_targets_are_whole_sentences_and_the_same_each_time():
    table = edge_table("dependencies", "toyworld")["train"]
    sentences, targets = drawn_targets(table, 50)
    again = drawn_targets(table, 50)
    assert targets == again[1] and 50 <= len(targets) < 80
    counts = table["tokens"].map(tuple).value_counts()
    of_sentence = pd.Series([target.sentence for target in targets]).value_counts()
    assert all(of_sentence[place] == counts[tuple(words)] for place, words in enumerate(sentences))


def test_edge_probes_read_more_from_a_pretrained_encoder(models, toy_tokenizer):
    quick = merchant2020.Probing(400, 2e-3, 15, 6, 32)
    scores, codes = merchant2020.edge_probing(models, toy_tokenizer, ["pos"], "toyworld", quick, codelengths=["pos"])
    mean = scores.set_index(["layers", "model"])["micro_f1"]
    assert mean["mix", "base"] > mean["mix", "randomised"] and mean["top", "base"] > mean["top", "randomised"]
    assert set(scores["model"]) == {"base", "randomised", "lexical"}
    bits = codes.set_index("model")
    assert bits.loc["base", "bits"] < bits.loc["randomised", "bits"] < bits.loc["base", "uniform"]
    exhibit = merchant2020.edge_table_exhibit(scores, "mix", "toyworld")
    assert "97.5" in exhibit.shown.loc[0, "base"] and exhibit.shown.loc[0, "data"] == "toy world"


def test_structural_probes_have_a_row_a_layer(models, toy_tokenizer):
    table = merchant2020.structural_probes({"base": models["base"]}, toy_tokenizer, toyworld.table("treebank"), 60)
    assert table.groupby("kind")["layer"].apply(list).tolist() == [list(range(7))] * 2
    assert table["spearman"].between(0.3, 1).all() and table["tree"].between(0, 1).all()
    figure = merchant2020.figure_1(table, "distance")
    assert figure.key == "merchant2020-figure-1a" and "UUAS" in figure.caption


def test_an_encoder_is_like_itself_and_unlike_random_weights(models, toy_tokenizer):
    inputs = merchant2020.plain_inputs("toyworld", toy_tokenizer, 64, 30)
    assert set(inputs) == {"wikipedia", "mnli", "mnli, premise alone", "squad", "squad, question alone"}
    tuned = {"same": models["base"], "other": models["randomised"]}
    table = merchant2020.similarity_to_base(models["base"], tuned, {"wikipedia": inputs["wikipedia"]}, 200)
    by_model = table.groupby("model")["similarity"]
    np.testing.assert_allclose(by_model.min()["same"], 1.0, atol=1e-6)
    assert by_model.max()["other"] < 0.6
    assert (table["tokens"] == 200).all() and table["null"].abs().max() < 0.2


def test_words_that_were_cut_off_are_no_targets(toy_tokenizer, models):
    from fivelenses.activations import word_vectors

    long = [["hen"] * 30, ["hen"]]
    vectors = word_vectors(models["base"], encoded_words(long, toy_tokenizer, 12), [0, 6])
    assert vectors[0].shape[0] == 2 and vectors[0].shape[1] < 30 and vectors[1].shape == (2, 1, 64)
