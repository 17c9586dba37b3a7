"""Predictions by example add up to the score and the null rate that the manifest keeps, for every kind of head."""

import numpy as np
import pandas as pd
import pytest
from tests.conftest import ENCODER, short_schedule

from fivelenses import judging, tasks
from fivelenses.checkpoints import specification
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.predictions import by_example
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.tasks.scores import score

HEADS = {"rte": "accuracy", "cola": "matthews", "squad": "answers", "parsing": "trees", "pos": "words"}


@pytest.fixture(scope="module", autouse=True)
def small_tables():
    """Sixty examples to be scored on."""
    whole = tasks.load

    def load(name: str, source: str, splits: tuple[str, ...] | None = None) -> tasks.TaskData:
        data = whole(name, source, splits)
        small = {
            split: rows if split == "train" else rows.select(range(min(60, rows.num_rows)))
            for split, rows in data.splits.items()
        }
        return tasks.TaskData(data.task, data.source, small, data.labels)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "load", load)
        specification._training_split.cache_clear()
        yield
    specification._training_split.cache_clear()


@pytest.fixture(scope="module", params=HEADS, ids=HEADS.values())
def trained(request, tmp_path_factory):
    """A checkpoint of each head and what it predicts."""
    # CoLA takes the longest to be learnt at all.
    examples, epochs, rate = {"rte": (1000, 1, 7e-4), "cola": (1500, 2, 1e-3)}.get(request.param, (200, 1, 2e-3))
    schedule = short_schedule(learning_rate=rate, epochs=epochs, max_length=96, by_length=True)
    made = specify(ENCODER, request.param, "toyworld", 0, schedule, examples=examples)
    checkpoint = prepare([made], Store(tmp_path_factory.mktemp("store")), workers=1, log=lambda line: None)[0]
    return checkpoint, by_example([checkpoint])


def test_they_add_up_to_the_score_and_the_null_rate(trained):
    checkpoint, rows = trained
    manifest = checkpoint.manifest
    if rows["metric"][0] == "matthews":
        assert score("matthews", rows["predicted"], rows["label"]) == pytest.approx(manifest["score"], abs=1e-6)
        assert manifest["score"] != 0 == manifest["null_rate"]
        return
    scored, null = (rows[name].sum() / rows["weight"].sum() for name in ("score", "null"))
    assert (scored, null) == pytest.approx((manifest["score"], manifest["null_rate"]), abs=1e-6)
    assert 0 < scored != null
    of_one_label = (rows["label"] >= 0).all()
    assert of_one_label == (rows["task"][0] in ("rte", "cola"))
    if of_one_label:
        assert np.array_equal(rows["predicted"] == rows["label"], rows["score"] == 1)


def test_the_interval_is_around_the_score_above_the_null_rate(trained):
    checkpoint, rows = trained
    above = judging.score(rows, minus_null=True)
    assert above.estimate == pytest.approx(checkpoint.score - checkpoint.manifest["null_rate"], abs=1e-6)
    assert above.models == 1 and above.examples == len(rows)
    low, high = above.uncensored()
    assert 0 < high - low < 1


def test_models_stand_below_one_another(trained):
    checkpoint, rows = trained
    pd.testing.assert_frame_equal(
        by_example([checkpoint, checkpoint]).iloc[len(rows) :], rows.set_index(rows.index + len(rows))
    )
