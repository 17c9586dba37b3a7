from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from fivelenses.papers import hao2020
from fivelenses.papers.hao2020.measure import PRETRAINED, UNTRAINED
from fivelenses.runs import report
from fivelenses.runs.settings import settings

LAYERS = np.arange(1, 7)


@dataclass
class Scored:
    """As much of a checkpoint as a caption reads."""

    score: float
    manifest: dict = field(default_factory=lambda: {"null_rate": 0.5})


def changes(js) -> pd.DataFrame:
    """Two tasks and two seeds: attention moves by `js` of a layer, features the more the higher it is."""
    rows = []
    for task in ("rte", "mrpc"):
        for second in ("0", "1", UNTRAINED):
            moved = 0.3 + 0 * LAYERS if second == UNTRAINED else js(LAYERS)
            rows += [
                (task, PRETRAINED, second, layer, float(value), layer / 10, 0.9)
                for layer, value in zip(LAYERS, moved, strict=True)
            ]
    return pd.DataFrame(rows, columns=["task", "first", "second", "layer", "js", "svcca", "svcca_null"])


@pytest.fixture
def models():
    yield {(task, seed): Scored(0.6 + 0.1 * seed) for task in ("rte", "mrpc") for seed in (0, 1)}
    plt.close("all")


@pytest.mark.parametrize(
    ("js", "verdict"),
    [
        (lambda layer: 0.01 + 0.4 * (layer > 4), "js-last-layers is reproduced"),
        (lambda layer: 0.1 + 0 * layer, "is not"),
    ],
)
def test_the_claims_of_both_figures_are_judged_on_the_other_encoders_own_curves(js, verdict, models):
    caption = hao2020.another_encoder(changes(js), "english-bert/seed-0", models).caption
    assert verdict in caption and "svcca-grows is reproduced (1 ± 0)" in caption
    assert "RTE 0.650 (0.500), MRPC 0.650 (0.500)" in caption and "2 models a task" in caption


def test_each_panel_has_a_curve_a_task_and_its_null(models):
    exhibit = hao2020.another_encoder(changes(lambda layer: layer / 10), "english-bert/seed-0", models)
    assert exhibit.key == "hao2020-figures-1-2-english-bert-seed-0"
    assert set(exhibit.table["encoder"]) == {"english-bert/seed-0"} and len(exhibit.table) == 2 * 2 * 6
    for axes, null in zip(exhibit.figure.axes, (0.3, 0.9), strict=True):
        assert len(axes.lines) == 3 and set(axes.lines[-1].get_ydata()) == {null}


def test_the_other_encoder_has_a_rate_of_its_own_and_the_chapters_own_is_not_beside_itself():
    chosen = settings(1, "small")
    other = "english-bert/seed-0"
    assert chosen.encoders_used() == (chosen.encoder, other)
    assert chosen.schedule_of("rte", other).learning_rate == 5e-4
    assert chosen.schedule_of("rte", chosen.encoder) == chosen.schedule("rte")
    assert settings(1, "small", encoder=other).encoders_used() == (other,)
    assert settings(1, "small", learning_rate=1e-4).schedule_of("rte", other).learning_rate == 1e-4


def test_a_report_is_of_one_encoder_alone():
    assert report.plan("toy-bert/seed-1", "small")[0].overrides["beside"] == []
