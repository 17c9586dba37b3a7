"""Chapter 5 asked of another encoder: its exhibits from small tables, judged on their own rows."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from fivelenses.papers import merchant2020
from fivelenses.runs.settings import settings

LAYERS = range(7)
OTHER = "sentence-transformers/all-MiniLM-L6-v2"
OURS = "english-bert/seed-0"


def probes(parsing: float) -> pd.DataFrame:
    """The parser's encoder gains so much on constituents and dependencies, and loses 0.01 elsewhere."""
    change = {"base": 0.0, "lexical": -0.2, "randomised": -0.3, "mnli": -0.004}
    rows = []
    for task in ("constituents", "dependencies", "relations"):
        gain = parsing if task != "relations" else -0.01
        for model, more in {**change, "parsing": gain}.items():
            rows += [(task, model, 0, layers, 0.7 + more, 400) for layers in ("mix", "top")]
    return pd.DataFrame(rows, columns=["task", "model", "seed", "layers", "micro_f1", "targets"])


def structure() -> pd.DataFrame:
    rows = [
        (model, layer, kind, 0.6 + (0.05 if model == "parsing" and layer > 2 else 0.0), 0.5)
        for model in ("base", "mnli", "parsing")
        for layer in LAYERS
        for kind in ("distance", "depth")
    ]
    return pd.DataFrame(rows, columns=["model", "layer", "kind", "spearman", "tree"])


def similarities() -> pd.DataFrame:
    rows = [
        (OTHER, text, model, layer, 1 - 0.3 * (layer / 6) ** 4, 0.0, 1000)
        for text in ("wikipedia", "mnli")
        for model in ("mnli", "parsing")
        for layer in LAYERS
    ]
    return pd.DataFrame(rows, columns=["pretrained", "input", "model", "layer", "similarity", "null", "tokens"])


def scores(ablated: bool) -> pd.DataFrame:
    rows = []
    for task in ("mnli", "parsing"):
        places = [(-1, 6), (0, 6), (4, 6), (-1, 2), (-1, 3)] if ablated else [(-1, 6)]
        rows += [(task, OTHER, 0, frozen, kept, 6, 0.7 - 0.01 * (6 - kept), 0.35) for frozen, kept in places]
    columns = ["task", "encoder", "seed", "frozen", "kept", "layers", "score", "null_rate"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize(("gain", "verdict"), [(0.05, "is reproduced"), (-0.05, "is not reproduced")])
def test_its_table_is_judged_on_its_own_probes(gain, verdict):
    exhibit = merchant2020.table_of_another_encoder(probes(gain), OTHER, "hub")
    assert exhibit.key == "merchant2020-table-1-sentence-transformers-all-MiniLM-L6-v2"
    assert f"dep-helps-syntax {verdict}" in exhibit.caption and OTHER in exhibit.caption
    assert set(exhibit.table["layers"]) == {"mix"} and set(exhibit.table["encoder"]) == {OTHER}


@pytest.mark.parametrize(("ablated", "panels"), [(True, 5), (False, 3)])
def test_there_is_a_panel_for_each_figure_that_was_measured(ablated, panels):
    exhibit = merchant2020.figures_of_another_encoder(structure(), similarities(), scores(ablated), OTHER)
    drawn = [axes for axes in exhibit.figure.axes if axes.lines]
    assert len(drawn) == panels == exhibit.table["figure"].nunique()
    similarity, distance = drawn[:2]
    assert len(similarity.lines) == 3 and set(similarity.lines[-1].get_ydata()) == {0.0}
    assert [len(axes.lines) for axes in (distance, drawn[2])] == [3, 3]
    np.testing.assert_allclose(distance.lines[0].get_ydata(), 0.6)


def test_only_claims_that_were_measured_are_mentioned():
    caption = merchant2020.figures_of_another_encoder(structure(), similarities(), scores(False), OTHER).caption
    assert "structure-kept is reproduced" in caption and "top-layers-change is reproduced" in caption
    assert "few-layers-suffice" not in caption and "MNLI 0.700 (0.350)" in caption
    caption = merchant2020.figures_of_another_encoder(structure(), similarities(), scores(True), OTHER).caption
    assert "few-layers-suffice" in caption and "shallow-truncation" in caption


def test_the_other_encoder_is_ablated_like_the_first_and_its_sister_pretrainings_are_not():
    beside = {"beside": [OTHER], "learning_rate_by_encoder": {OTHER: 3e-4}}
    chosen = settings(5, "small", frozen=[0, 4], truncated=[2], **beside)
    assert chosen.others() == (OTHER,) and chosen.encoders_used()[0] == OURS
    models = {name: chosen.trainings("mnli", name, 3000, 6) for name in chosen.encoders_used()}
    assert [len(of_encoder) for of_encoder in models.values()] == [4, 1, 1, 4]
    assert models[OTHER][0]["schedule"].learning_rate == 3e-4
    assert models[OURS][0]["schedule"].learning_rate == 5e-4
    assert len(chosen.trainings("squad", OTHER, 3000, 6)) == 1
    assert settings(5, "small", encoder=OTHER, pretrained=[OTHER], **beside).others() == ()
