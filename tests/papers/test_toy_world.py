"""Chapter 0: its records on the toy world's own data, and its statements on predictions made to pass and to fail."""

import numpy as np
import pandas as pd
import pytest
from tests.conftest import ENCODER

from fivelenses.checkpoints.bag_of_words import words_by_example
from fivelenses.exhibits import intervals, verdicts
from fivelenses.exhibits.claims import judge
from fivelenses.exhibits.verdicts import CONTRADICTED, OPEN, REPRODUCED
from fivelenses.papers.toy_world import claims, figures, measure
from fivelenses.runs.settings import settings

CLAIMS = {claim.key: claim for claim in claims.CLAIMS}
EXAMPLES = 300


def test_every_task_is_shown_by_two_examples_of_different_labels():
    chosen = settings(0, "tiny")
    table = measure.examples_of_tasks(chosen.tasks)
    assert table.groupby("task", sort=False)["label"].nunique().to_dict() == dict.fromkeys(chosen.tasks, 2)
    assert (table[table["task"] == "rte"]["input"].str.count("‖") == 1).all()


def test_each_word_of_the_sentence_has_its_head_in_the_sentence():
    table = measure.sentence_with_tree()
    assert (table["head"] == "(root)").sum() == 1
    assert set(table["head"]) - {"(root)"} <= set(table["word"])


def test_pretraining_is_what_the_encoders_carry_and_others_are_refused():
    table = measure.pretraining([ENCODER])
    assert table["masked_loss"].item() == measure.record(ENCODER)["held_out"]["masked_loss"]
    with pytest.raises(ValueError, match="fivelenses pretrain"):
        measure.pretraining(["random:bert-base-uncased"])


@pytest.mark.parametrize("task", ["mrpc", "cola"])
def test_the_bag_of_words_by_example_has_the_score_of_the_bag_of_words(task):
    training_set = {"task": task, "source": "toyworld", "examples": 200, "examples_seed": 0}
    whole = measure.without_reading([task], "toyworld", 200)["bag_of_words"].item()
    assert intervals.of_scores(words_by_example(training_set)).estimate == pytest.approx(whole)


def records(pretrained, scratch, words=0.7, task="sst2", metric="accuracy"):
    """Records in which a model of accuracy a is right on a share a of the examples, drawn for each model."""
    random, models, rows = np.random.default_rng(0), [], []
    for encoder, accuracies in ((ENCODER, pretrained), (f"random:{ENCODER}", scratch)):
        for seed, accuracy in enumerate(accuracies):
            address = f"{encoder} {seed}"
            rows.append(predictions(random, accuracy, metric).assign(address=address, seed=seed, task=task))
            model = {"encoder": encoder, "task": task, "seed": seed, "address": address, "score": accuracy}
            models.append(model | {"examples": 10})
    baselines = pd.DataFrame({"task": [task], "metric": metric, "majority": 0.5, "length": 0.5, "bag_of_words": words})
    return {
        "models": pd.DataFrame(models),
        "without_reading": baselines,
        "by_example": pd.concat(rows, ignore_index=True),
        "words_by_example": predictions(random, words, metric).assign(seed=0, task=task),
    }


def predictions(random, accuracy, metric):
    gold = np.arange(EXAMPLES) % 2
    right = np.arange(EXAMPLES) < round(accuracy * EXAMPLES)
    right = random.permutation(right)
    columns = {"example": np.arange(EXAMPLES), "score": right.astype(float), "weight": 1.0, "null": 0.5}
    return pd.DataFrame(columns | {"metric": metric, "label": gold, "predicted": np.where(right, gold, 1 - gold)})


def outcome(key, given, unlearned=None):
    return judge(CLAIMS[key], given, unlearned).verdict.outcome


PAYS, NEEDED = "toy-pretraining-pays", "toy-structure-needed"
HIGH, LOW = (0.85, 0.86, 0.87), (0.55, 0.56, 0.57)


@pytest.mark.parametrize("metric", ["accuracy", "matthews"])
@pytest.mark.parametrize(
    ("pretrained", "scratch", "pays", "needed"),
    [
        (HIGH, LOW, REPRODUCED, REPRODUCED),
        (LOW, HIGH, CONTRADICTED, CONTRADICTED),
        ((0.73, 0.73, 0.73), (0.73, 0.73, 0.73), OPEN, OPEN),
        ((0.4, 0.9, 0.7), (0.6, 0.6, 0.6), OPEN, OPEN),
        ((1.0, 1.0, 1.0), LOW, REPRODUCED, CONTRADICTED),
    ],
    ids=["better", "worse", "flat", "noise", "perfect"],
)
def test_statements_on_predictions(pretrained, scratch, pays, needed, metric):
    given = records(pretrained, scratch, metric=metric)
    assert (outcome(PAYS, given), outcome(NEEDED, given)) == (pays, needed)


def test_seeds_with_and_without_pretraining_are_not_paired():
    given, turned = records(HIGH, LOW), records(HIGH, LOW[::-1])
    first, second = (judge(CLAIMS[PAYS], one).effects[0].interval for one in (given, turned))
    assert first.estimate == pytest.approx(second.estimate) and first.models == 3


def test_a_task_that_was_not_learned_takes_no_part_unless_pretraining_loses_there():
    not_learned = {"sst2": "SST-2 was not learned"}
    found = judge(CLAIMS[PAYS], records((0.52, 0.53, 0.54), (0.5, 0.5, 0.5)), not_learned).verdict
    assert found.outcome == verdicts.CANNOT_BE_TESTED and found.reason == "SST-2 was not learned"
    assert outcome(PAYS, records(LOW, HIGH), not_learned) == CONTRADICTED


def test_without_predictions_the_scores_decide_and_no_interval_is_measured():
    given = records(HIGH, LOW) | {"by_example": "this run kept no predictions", "words_by_example": None}
    for key in CLAIMS:
        found = judge(CLAIMS[key], given).verdict
        assert found.outcome == REPRODUCED and "interval was not measured" in verdicts.sentence(found)


def test_the_gate_takes_all_pretrained_seeds_for_one_encoder():
    given = records(HIGH, LOW)
    table = figures.pretrained_as_one(given["models"], given["without_reading"])
    assert table["encoder"].unique().tolist() == [figures.PRETRAINED]
    assert len(table) == 3 and (table["null_rate"] == 0.5).all()


def test_scores_stand_beside_the_baselines():
    given = records(HIGH, LOW)
    table = figures.scores(given["models"], given["without_reading"])
    assert "0.500" in figures.worth_table(table).shown.to_string()
