import datasets
import numpy as np
import pandas as pd
import pytest
from tests.conftest import ENCODER, short_schedule

from fivelenses import tasks
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.evaluation import flat_labels
from fivelenses.checkpoints.finetuning import fine_tune
from fivelenses.checkpoints.specification import specify
from fivelenses.exhibits import verdicts
from fivelenses.exhibits.claims import judge
from fivelenses.exhibits.verdicts import CANNOT_BE_TESTED, CONTRADICTED, OPEN, REPRODUCED
from fivelenses.papers.own_encoders import claims, figures, measure
from fivelenses.papers.toy_world import claims as toy_world
from fivelenses.papers.toy_world.measure import record, without_reading
from fivelenses.runs.settings import settings
from fivelenses.tasks.examples import TaskData

CLAIMS = {claim.key: claim for claim in claims.CLAIMS}


@pytest.fixture(scope="module")
def paraphrase_model(session_store):
    return fine_tune(specify(ENCODER, "mrpc", "toyworld", 0, short_schedule(), examples=96), session_store)


def test_an_encoder_without_a_record_is_refused():
    with pytest.raises(ValueError, match="fivelenses pretrain"):
        measure.loss_curves(["random:bert-base-uncased"])


def test_loss_curves_are_those_that_pretraining_wrote():
    table = measure.loss_curves(["toy-bert/seed-0", "toy-bert/seed-1"])
    written = record("toy-bert/seed-1")["loss_curve"]
    assert table[table["encoder"] == "toy-bert/seed-1"]["masked"].tolist() == [row["masked"] for row in written]


def test_the_curve_of_the_loss_has_means_over_equally_many_steps():
    logged = pd.DataFrame({"encoder": "own", "step": [10, 20, 21, 30], "masked": [8.0, 6.0, 15.0, 5.0]})
    table = figures._at_equal_distances(logged.assign(next_sentence=0.5))
    assert table["step"].tolist() == [10, 20, 30]
    assert table["masked"].tolist() == pytest.approx([8.0, 6.0, (15 + 9 * 5) / 10])
    assert table["next_sentence"].tolist() == pytest.approx([0.5] * 3)


def test_frequencies_of_two_equally_frequent_pieces_cost_the_logarithm_of_two(toy_tokenizer):
    word, other = (toy_tokenizer.convert_ids_to_tokens(piece) for piece in toy_tokenizer("the was")["input_ids"][1:3])
    documents = [[f"{word} {other}"], [f"{other} {word}"]]
    found = measure._frequencies(ENCODER, [documents, documents])
    assert [row["fold"] for row in found] == [-1, 0, 1]
    assert [row["masked_loss"] for row in found] == pytest.approx([np.log(2)] * 3)
    assert found[0]["masked_accuracy"] == 0.5


def test_a_pretrained_encoder_reads_its_own_language_better_than_random_weights(monkeypatch):
    from pretraining import toy_text

    monkeypatch.setattr(measure, "wikipedia_text", lambda source: toy_text("validation")[:60])
    measured = measure.language_modelling([ENCODER], "toyworld", "cpu")
    assert sorted(measured[measured["encoder"] == "random"]["fold"]) == list(range(-1, 10))
    table = measured[measured["fold"] == -1].set_index(["encoder", "text"])["masked_loss"]
    assert table[ENCODER, "elsewhere"] == pytest.approx(table[ENCODER, "held out"], abs=0.3)
    assert table[ENCODER, "elsewhere"] < table["frequency", "elsewhere"] < table["random", "elsewhere"]


def test_tags_of_words_are_counted_and_unseen_words_get_the_most_frequent():
    def split(*sentences):
        return datasets.Dataset.from_list(
            [{"tokens": tokens.split(), "names": names.split()} for tokens, names in sentences]
        )

    training = split(("The dog", "DET NOUN"), ("dog dog", "NOUN VERB"), ("cats", "NOUN"))
    held_out = split(("the dog runs", "DET VERB NOUN"), ("DOG", "NOUN"))
    data = TaskData(tasks.find("pos-ewt"), "toyworld", {"train": training, "validation": held_out}, ())
    assert measure._right_by_word(data).tolist() == [True, False, True, True]


def test_a_probe_reads_every_layer_of_every_encoder():
    folds = measure.parts_of_speech([ENCODER], "toyworld", 20, "cpu")
    assert (folds.groupby(["encoder", "layer"])["fold"].apply(list).map(len) == 11).all()
    table = folds[folds["fold"] == -1]
    assert table.groupby("encoder")["layer"].apply(list).to_dict() == {
        ENCODER: list(range(7)),
        "random": list(range(7)),
        "words alone": [0],
    }
    best = table.groupby("encoder")["accuracy"].max()
    assert best["random"] < best[ENCODER] <= 1


def test_f1_counts_paraphrases_found(paraphrase_model, monkeypatch):
    gold = np.array(tasks.load("mrpc", "toyworld").splits["validation"]["label"])
    predicted = np.arange(len(gold)) % 2
    monkeypatch.setattr(measure, "predictions", lambda model, encoded, collate: predicted)
    row = measure.paraphrase_f1([paraphrase_model], "cpu").iloc[0]
    hits = ((predicted == 1) & (gold == 1)).sum()
    assert row["score"] == pytest.approx(2 * hits / (predicted.sum() + gold.sum()))
    assert row["majority"] == pytest.approx(2 * gold.sum() / (len(gold) + gold.sum()))


def test_f1_is_taken_on_the_predictions_whose_accuracy_the_manifest_records(paraphrase_model, monkeypatch):
    seen, predict = [], measure.predictions

    def kept(model, encoded, collate):
        seen.append(predict(model, encoded, collate) == flat_labels(encoded))
        return flat_labels(encoded)

    monkeypatch.setattr(measure, "predictions", kept)
    assert measure.paraphrase_f1([paraphrase_model], "cpu")["score"].tolist() == [1.0]
    assert np.mean(seen) == pytest.approx(paraphrase_model.score)


def test_scores_are_those_of_the_models_with_both_measures_of_mrpc(paraphrase_model):
    scratch = pd.DataFrame({"encoder": [f"random:{ENCODER}"], "task": ["mrpc"], "seed": [0], "score": [0.5]})
    models = pd.concat([tables.models([paraphrase_model]), scratch])
    baselines = without_reading(["mrpc"], "toyworld", 96)
    f1 = measure.paraphrase_f1([paraphrase_model], "cpu")
    table = figures.scores(models, baselines, f1)
    assert list(table[["start", "metric"]].itertuples(index=False, name=None)) == [
        ("pre-trained", "accuracy"),
        ("scratch", "accuracy"),
        ("pre-trained", "F1"),
    ]
    assert table["score"].tolist() == [paraphrase_model.score, 0.5, f1["score"].item()]
    assert table["majority"].tolist() == [*baselines["majority"].tolist() * 2, f1["majority"].item()]
    none = measure.paraphrase_f1([], "cpu")
    assert figures.scores(models, baselines, none)["metric"].unique().tolist() == ["accuracy"]


def made_scores(pretrained=(0.8, 0.9), scratch=(0.6, 0.7), task="sst2", metric="accuracy"):
    rows = [
        {"task": task, "start": start, "seed": seed, "score": score, "majority": 0.5, "metric": metric}
        for start, scores in (("pre-trained", pretrained), ("scratch", scratch))
        for seed, score in enumerate(scores)
    ]
    return pd.DataFrame(rows).assign(length=0.5, bag_of_words=0.6 if metric != "F1" else np.nan)


def test_pretraining_is_judged_as_in_chapter_0():
    assert CLAIMS["own-pretraining-pays"].effects is toy_world.CLAIMS[0].effects


def losses(*encoders, frequency=6.0, folds=range(-1, 10)):
    """Losses of encoders, and of frequencies, that differ a little between folds."""
    named = {f"e{place}": loss for place, loss in enumerate(encoders)} | {"frequency": frequency, "random": 9.0}
    rows = [(name, "elsewhere", fold, loss + 0.001 * fold) for name, loss in named.items() for fold in folds]
    return pd.DataFrame([*rows, ("e0", "held out", -1, 1.0)], columns=["encoder", "text", "fold", "masked_loss"])


@pytest.mark.parametrize(
    ("encoders", "expected"),
    [
        ((4.0, 4.1, 4.05), REPRODUCED),
        ((5.5, 5.4, 5.45), CONTRADICTED),
        ((5.0, 5.0, 5.0), OPEN),
        ((2.0, 6.0, 5.0), OPEN),
        ((9.0, 9.0, 9.0), CONTRADICTED),
    ],
    ids=["reads", "hardly", "tie", "noise", "untrained"],
)
def test_reading_elsewhere_is_a_loss_well_below_the_frequencies(encoders, expected):
    found = judge(CLAIMS["own-reads-elsewhere"], {"language_modelling": losses(*encoders)}).verdict
    assert found.outcome == expected, verdicts.sentence(found)


def probes(*encoders, random=(0.7, 0.6, 0.6, 0.6), words=0.75, folds=range(-1, 10)):
    """Accuracies by layer that differ between folds, for all encoders alike."""
    named = {f"e{place}": layers for place, layers in enumerate(encoders)} | {"random": random, "words alone": (words,)}
    rows = [
        (name, layer, fold, accuracy + 0.001 * (fold % 3))
        for name, layers in named.items()
        for layer, accuracy in enumerate(layers)
        for fold in folds
    ]
    return pd.DataFrame(rows, columns=["encoder", "layer", "fold", "accuracy"])


CONTEXT = [
    (((0.80, 0.90, 0.85, 0.8), (0.81, 0.90, 0.85, 0.8), (0.80, 0.91, 0.85, 0.8)), REPRODUCED),
    (((0.90, 0.85, 0.80, 0.8), (0.91, 0.85, 0.80, 0.8), (0.90, 0.86, 0.80, 0.8)), CONTRADICTED),
    (((0.90, 0.90, 0.90, 0.9), (0.90, 0.90, 0.90, 0.9), (0.90, 0.90, 0.90, 0.9)), CONTRADICTED),
    (((0.70, 0.72, 0.71, 0.7), (0.70, 0.72, 0.71, 0.7), (0.70, 0.72, 0.71, 0.7)), CONTRADICTED),
    (((0.80, 0.99, 0.80, 0.8), (0.80, 0.78, 0.78, 0.8), (0.80, 0.81, 0.80, 0.8)), OPEN),
]


@pytest.mark.parametrize(("encoders", "expected"), CONTEXT, ids=["reads", "falls", "flat", "below words", "noise"])
def test_context_is_read_where_a_layer_beats_the_embeddings_and_the_words(encoders, expected):
    found = judge(CLAIMS["own-context-is-read"], {"parts_of_speech": probes(*encoders)}).verdict
    assert found.outcome == expected, verdicts.sentence(found)


def test_choosing_the_best_of_many_layers_of_noise_earns_nothing():
    random, gains = np.random.default_rng(0), []
    for _ in range(30):
        right = random.random((13, 400)) < 0.5
        fold_of = np.arange(400) % 10
        rows = [
            ("e0", layer, fold, right[layer, fold_of != fold].mean()) for layer in range(13) for fold in range(-1, 10)
        ]
        table = pd.DataFrame(rows, columns=["encoder", "layer", "fold", "accuracy"])
        gains.append((claims._of_best_layer(table) - 0.5).mean())
    assert abs(np.mean(gains)) < 0.01


def test_a_record_without_folds_has_estimates_alone():
    table = probes(*CONTEXT[0][0], folds=[-1]).drop(columns="fold")
    found = judge(CLAIMS["own-context-is-read"], {"parts_of_speech": table}).verdict
    assert found.outcome == REPRODUCED and "interval was not measured" in verdicts.sentence(found)
    found = judge(CLAIMS["own-reads-elsewhere"], {"language_modelling": losses(4.0, folds=[-1]).drop(columns="fold")})
    assert found.verdict.outcome == REPRODUCED and not found.verdict.groups[0].measured


def test_a_probe_of_embeddings_alone_tests_nothing():
    table = probes((0.8,), random=(0.7,))
    assert judge(CLAIMS["own-context-is-read"], {"parts_of_speech": table}).verdict.outcome == CANNOT_BE_TESTED


def test_points_behind_published_encoders_are_means_over_shared_tasks():
    table = pd.concat([made_scores((0.7, 0.9)), made_scores((0.5, 0.5), task="cola", metric="matthews")])
    published = {"Known": {("sst2", "accuracy"): 0.9, ("cola", "matthews"): 0.4, ("rte", "accuracy"): 1.0}}
    assert figures.behind_published(table, published) == "0.0 points behind Known (from −10 to 10, by task)"
    assert figures.behind_published(table, {}).startswith("beside no published encoder")


def test_a_bag_of_words_that_is_ahead_is_named_with_its_lead():
    table = pd.concat([made_scores((0.7, 0.9)), made_scores((0.5, 0.5), task="cola", metric="matthews")])
    assert figures.behind_words(table.assign(bag_of_words=0.6)) == "CoLA by 10.0 points"
    assert figures.behind_words(table.assign(bag_of_words=0.4)) == "no task"


def test_published_scores_are_drawn_only_where_they_are_given():
    table = made_scores()
    alone, beside = figures.scores_figure(table, {}), figures.scores_figure(table, figures.PUBLISHED)
    assert "Google" not in alone.caption and "Google" in beside.caption
    assert "BERT-mini" in figures.scores_table(table, "few", figures.PUBLISHED).shown.columns


def test_each_encoder_is_fine_tuned_with_the_seed_of_its_place_and_scratch_with_all():
    chosen = settings(8, "tiny")
    by_encoder = {name: [one.seed for one in chosen.specifications_of("sst2", name)] for name in chosen.encoders_used()}
    assert by_encoder == {"toy-bert/seed-0": [0], "toy-bert/seed-1": [1], "random:toy-bert/seed-0": [0, 1]}
