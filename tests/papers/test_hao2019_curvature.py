"""Chapter 3's curvatures: measured on models of seconds, and beside widths that are known."""

import numpy as np
import pandas as pd
import pytest
from tests.conftest import ENCODER, short_schedule

from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.first_exhibits.exhibit import Absent
from fivelenses.papers.hao2019 import sharpness
from fivelenses.papers.hao2019.curvature import end_curvature
from fivelenses.records import ALL, PRETRAINED, SCRATCH

SECOND = {"rte": "mrpc", "mrpc": "rte"}
NORM = 2.0  # of each direction
FINE, GRID = np.linspace(-4, 4, 81).round(9), np.linspace(-4, 4, 9)


def landscapes(bends):
    """Bowls of a curvature in squared lengths of the direction, by model."""
    surfaces, lines, models = [], [], []
    alphas, betas = (axis.ravel() for axis in np.meshgrid(GRID, GRID))
    for (task, init, seed), bend in bends.items():
        which = {"task": task, "init": init, "seed": seed}
        loss = bend / 2 * ((alphas - 1) ** 2 + betas**2)
        cells = pd.DataFrame({"alpha": alphas, "beta": betas, "loss": loss, "error": loss / (1 + loss)})
        surfaces += [cells.assign(**which, split=split) for split in ("train", "validation")]
        for direction in ("optimisation", "random"):
            line = pd.DataFrame({"alpha": FINE, "loss": bend / 2 * (FINE - 1) ** 2, "direction": direction})
            lines.append(line.assign(**which, loss_standard_error=0.01))
        facts = {"examples": 9, "null_loss": 0.69, "norm": NORM, "relative_norm": 0.1, "angle": 80.0}
        models.append(which | facts | {"sharpness": bend / 10, "sharpness_standard_error": 0.01})
    surfaces = pd.concat(surfaces).assign(loss_standard_error=0.01, error_standard_error=0.01)
    return {"surfaces": surfaces, "lines": pd.concat(lines), "models": pd.DataFrame(models)}


def curvature(bends):
    """What the Hessian of these bowls is, had they one direction only."""
    rows = [
        {"task": task, "init": init, "seed": seed, "group": group, "examples": 9, "norm": NORM}
        | {"top": share * bend / NORM**2, "trace": share * bend / NORM**2, "trace_standard_error": 0.0}
        for (task, init, seed), bend in bends.items()
        for group, share in ((ALL, 1.0), ("low", 0.2), ("middle", 0.3), ("high", 0.5))
    ]
    return pd.DataFrame(rows)


BENDS = {("rte", PRETRAINED, 0): 1.0, ("rte", SCRATCH, 0): 4.0, ("mrpc", PRETRAINED, 0): 2.0, ("mrpc", SCRATCH, 0): 8.0}


def test_width_and_curvature_of_a_bowl_say_the_same():
    table = sharpness.beside_widths(landscapes(BENDS), curvature(BENDS)).set_index(["task", "init", "seed"])
    for model, bend in BENDS.items():
        row = table.loc[model]
        assert row["top_in_lengths"] == pytest.approx(bend) and row["trace_in_lengths"] == pytest.approx(bend)
        # f = c/2 · α² reaches 0.1 at √(0.2 / c) on both sides.
        assert row["width"] == pytest.approx(2 * np.sqrt(0.2 / bend), rel=0.06)
        assert row["top_high"] == pytest.approx(0.5 * bend / NORM**2)
    assert sharpness.agreement(table.reset_index()) == {"sharpness": -1, "λ₁ ‖δ₁‖²": -1, "λ₁": -1}


def test_the_table_says_how_far_they_agree():
    exhibit = sharpness.table_of_curvature(landscapes(BENDS), curvature(BENDS))
    assert "−1.00 with λ₁ ‖δ₁‖²" in exhibit.caption and "over 4 models" in exhibit.caption
    assert exhibit.table["init"].tolist() == [SCRATCH, PRETRAINED] * 2


def test_two_models_have_no_rank_correlation():
    few = {model: bend for model, bend in BENDS.items() if model[0] == "rte"}
    assert "Too few models" in sharpness.table_of_curvature(landscapes(few), curvature(few)).caption


@pytest.mark.filterwarnings("error")
def test_widths_that_are_all_the_same_have_no_rank_correlation():
    table = pd.DataFrame({"width": [1.0] * 4, "sharpness": range(4), "top_in_lengths": range(4), "top": range(4)})
    assert pd.isna(list(sharpness.agreement(table).values())).all()


def test_without_a_finite_training_the_table_is_absent():
    assert isinstance(sharpness.table_of_curvature(landscapes(BENDS), pd.DataFrame()), Absent)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    wanted = [
        specify(encoder, task, "toyworld", 0, short_schedule(), examples=48, saved_steps=(0,))
        for encoder in (ENCODER, f"random:{ENCODER}")
        for task in SECOND
    ]
    return prepare(wanted, Store(tmp_path_factory.mktemp("models")), workers=1, log=lambda line: None)


def test_every_group_of_a_model_is_measured_on_the_examples_of_a_cell(checkpoints):
    table = end_curvature(checkpoints, "rte", PRETRAINED, 0, SECOND, grid_examples=12, device="cpu")
    assert table["group"].tolist() == [ALL, "low", "middle", "high"] and (table["examples"] == 12).all()
    found = table.set_index("group")
    assert (found["top"] > 0).all() and (found["top"][1:] <= found["top"][ALL] * 1.01).all()
    # A length over all layers is that of its parts, the embeddings among them.
    assert np.sqrt((found["norm"][1:] ** 2).sum()) < found["norm"][ALL]
