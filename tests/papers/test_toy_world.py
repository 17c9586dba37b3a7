"""Chapter 0: its records on the toy world's own data, and its claims on tables made to pass and to fail."""

import pandas as pd
import pytest
from tests.conftest import ENCODER

from fivelenses.exhibits.claims import NOT_REPRODUCED, REPRODUCED, judge
from fivelenses.papers.toy_world import claims, figures, measure
from fivelenses.runs.settings import settings

CLAIMS = {claim.key: claim for claim in claims.CLAIMS}


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


@pytest.mark.parametrize(
    ("pretrained", "pays", "needed"),
    [((0.8, 0.9), REPRODUCED, REPRODUCED), ((0.55, 0.6), NOT_REPRODUCED, NOT_REPRODUCED)],
)
def test_the_claims_are_judged_on_scores_beside_the_baselines(pretrained, pays, needed):
    models = pd.DataFrame(
        [
            {"encoder": encoder, "task": "sst2", "seed": seed, "score": score}
            for encoder, scores in ((ENCODER, pretrained), (f"random:{ENCODER}", (0.6, 0.7)))
            for seed, score in enumerate(scores)
        ]
    )
    baselines = pd.DataFrame({"task": ["sst2"], "metric": "accuracy", "majority": 0.5, "length": 0.5})
    table = figures.scores(models, baselines.assign(bag_of_words=0.6))
    tables = {"toy-world-worth": table}
    assert judge(CLAIMS["toy-pretraining-pays"], tables).verdict == pays
    assert judge(CLAIMS["toy-structure-needed"], tables).verdict == needed
    assert "0.500" in figures.worth_table(table).shown.to_string()
