"""Chapter 3: measures with known answers, measurements on models of seconds, every figure from a small table."""

import copy
import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch
from bs4 import BeautifulSoup
from tests.conftest import ENCODER, short_schedule
from transformers import set_seed

from fivelenses import tasks
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.checkpoints.tables import models as table_of
from fivelenses.first_exhibits.claims import judge, of_all
from fivelenses.first_exhibits.verdicts import CANNOT_BE_TESTED
from fivelenses.lenses.basin import Surface
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import project
from fivelenses.lenses.parameter_motion import layer_parameters
from fivelenses.models import encoders, heads, layers, thirds
from fivelenses.papers.hao2019 import drawing, figures, layer_groups, measure, tables, training_paths
from fivelenses.papers.hao2019.basins import as_surface, group_measures, measures, rolled_back, width
from fivelenses.papers.hao2019.claims import CLAIMS
from fivelenses.papers.hao2019.drawing import FLOOR, bar_ticks, error_levels, loss_levels
from fivelenses.papers.hao2019.planes import Models, encoded
from fivelenses.records import (
    BETWEEN,
    CELL,
    CONTINUED,
    FULL,
    INITS,
    OPTIMISATION,
    PRETRAINED,
    RANDOM,
    SCRATCH,
    SEPARATE,
    SHARED,
    STATE,
    TWIN,
    WHOLE,
)
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import settings

TASKS = ("mnli", "mrpc")
POSITIONS = np.linspace(-2, 3, 11)


def bowl(curvature: float, missing: bool = False) -> pd.DataFrame:
    """The cells of a bowl around the end, whose error follows its loss."""
    alphas, betas = (axis.ravel() for axis in np.meshgrid(POSITIONS, POSITIONS))
    loss = 0.05 + curvature / 2 * ((alphas - 1) ** 2 + betas**2)
    if missing:
        loss[0] = np.nan
    table = pd.DataFrame({"alpha": alphas, "beta": betas, "loss": loss, "error": loss / (1 + loss)})
    return table.assign(examples=80, loss_standard_error=0.01, error_standard_error=0.02)


def history(tuned_half: int, scratch_half: int) -> pd.DataFrame:
    """Losses that fall by half in so many steps."""
    rows = []
    for task in TASKS:
        for init, half, last in ((SCRATCH, scratch_half, 400), (PRETRAINED, tuned_half, 100)):
            for step in range(20, last + 1, 20):
                rows.append(
                    {
                        "task": task,
                        "init": init,
                        "seed": 0,
                        "step": step,
                        "epoch": step / 20,
                        "loss": 0.5 ** (step / half),
                    }
                )
    return pd.DataFrame(rows)


def paths(tuned_angle: float, scratch_angle: float) -> pd.DataFrame:
    """Trainings whose angle to the final direction falls evenly to 0."""
    rows = []
    for task in TASKS:
        for init, first, epochs in ((SCRATCH, scratch_angle, 9), (PRETRAINED, tuned_angle, 3)):
            for epoch in range(epochs + 1):
                share = epoch / epochs
                angle = np.nan if epoch == 0 else first * (1 - share)
                row = {"task": task, "init": init, "seed": 0, "step": 10 * epoch, "epoch": epoch, "share": share}
                row |= {"angle": angle, "alpha": share, "beta": 0.3 * np.sin(np.pi * share)}
                row |= {"plane_alpha": share, "plane_beta": -0.05, "in_plane": np.nan if epoch == 0 else 0.5}
                rows.append(row)
    return pd.DataFrame(rows)


def long_training(last_error: float, barrier: float) -> pd.DataFrame:
    cells = bowl(1.0).assign(kind=CELL)
    state = paths(40.0, 80.0)
    state = state[(state["task"] == "mrpc") & (state["init"] == SCRATCH)].drop(columns=["task", "init", "seed"])
    state = state.assign(kind=STATE, loss=0.5, error=np.linspace(0.5, last_error, len(state)), alpha=state["epoch"] / 5)
    share = np.linspace(0, 1, 5)
    between = pd.DataFrame({"kind": BETWEEN, "share": share, "epoch": 5, "error": 0.2 + barrier * share * (1 - share)})
    of_one = pd.concat([cells, state, between], ignore_index=True).assign(task="mrpc", seed=0)
    separate = of_one[of_one["kind"] != CELL].assign(training=SEPARATE)
    return pd.concat([of_one.assign(training=CONTINUED), separate], ignore_index=True)


ROLLED_BACK = pd.DataFrame(
    [
        {"task": task, "seed": 0, "group": group, "accuracy": accuracy}
        for task in TASKS
        for group, accuracy in zip(("low", "middle", "high"), (0.8, 0.7, 0.5), strict=True)
    ]
).assign(tuned=0.8, random=0.75, norm=2.0, relative_norm=0.1)
CURVATURES = {PRETRAINED: 1.0, SCRATCH: 4.0}


@pytest.fixture(scope="module")
def bowls():
    surfaces, lines, rows = [], [], []
    fine = np.linspace(-2, 3, 51).round(9)
    for task in TASKS:
        for init, curvature in CURVATURES.items():
            which = {"task": task, "init": init, "seed": 0}
            for split in ("train", "validation"):
                surfaces.append(bowl(curvature, missing=init == SCRATCH).assign(**which, split=split))
            for direction, steepness in ((OPTIMISATION, curvature), (RANDOM, 0.0)):
                loss = 0.05 + steepness / 2 * (fine - 1) ** 2
                line = pd.DataFrame({"direction": direction, "alpha": fine, "loss": loss})
                lines.append(line.assign(**which, loss_standard_error=0.01))
            facts = {"examples": 100, "null_loss": 0.69, "norm": 2.0, "relative_norm": 0.1, "angle": 80.0}
            rows.append(which | facts | {"sharpness": 0.1, "sharpness_standard_error": 0.01})
    return {
        "surfaces": pd.concat(surfaces, ignore_index=True),
        "lines": pd.concat(lines, ignore_index=True),
        "models": pd.DataFrame(rows),
    }


@pytest.fixture(scope="module")
def trained():
    """Both models of two tasks as `checkpoints.tables.models` has them, and a long training, with their histories."""
    kinds = (("toy-bert", PRETRAINED, 5.0), ("random:toy-bert", SCRATCH, 20.0), ("toy-bert", "long", 25.0))
    rows = [
        {"encoder": encoder, "task": task, "seed": 0, "examples": 100, "epochs": epochs, "address": f"{task} {init}"}
        for task in TASKS
        for encoder, init, epochs in kinds
    ]
    facts = {"steps": 400, "metric": "accuracy", "score": 0.7, "null_rate": 0.5, "diverged": False}
    losses = history(30, 300)
    losses = losses.assign(address=losses["task"] + " " + losses["init"], steps=losses["step"].max())
    return pd.DataFrame(rows).assign(**facts), losses.drop(columns=["task", "init", "seed", "epoch"])


def test_a_bowl_has_the_width_and_the_area_of_its_curvature(bowls):
    table = measures(bowls).set_index(["task", "init"])
    for init, curvature in CURVATURES.items():
        row, radius = table.loc["mrpc", init], np.sqrt(2 * 0.1 / curvature)
        assert row["width"] == pytest.approx(2 * radius, rel=0.05) and row["width_whole"]
        assert row["drop"] == pytest.approx(curvature / 2) and row["climb"] == 0 and row["falling"] == 1
        # Half of the drop is a circle of radius 1/√2 whatever the curvature, half of the unit disc; the grid is coarse.
        assert row["half_share_1"] == pytest.approx(1 / 2, abs=0.2)
        assert row["half_share_2"] == pytest.approx(1 / 8, abs=0.1) and np.isnan(row["half_share_3"])
        assert row["share_1"] == pytest.approx(radius**2, abs=0.2)
        assert row["correlation"] > 0.9 and row["near_correlation"] > 0.9
    assert (table["random_width"] == 5).all() and not table["random_width_whole"].any()


def test_a_width_that_reaches_the_edge_is_at_least_that():
    assert width((0.5, 1.0), at=0.0, low=-4, high=4) == (1.5, True)
    assert width((np.inf, 1.0), at=1.0, low=-4, high=4) == (6.0, False)


@pytest.mark.parametrize("values", [[0.6, 0.9], [0.001, 30.0], [0.5, 0.5], [0.0, 0.001]])
def test_contours_hold_all_values_in_equal_ratios(values):
    levels = loss_levels(np.array([*values, np.nan]))
    assert levels[0] == pytest.approx(max(values[0], FLOOR)) and levels[-1] >= values[1] * (1 - 1e-9)
    ratios = levels[1:] / levels[:-1]
    assert ratios.min() > 1 and np.allclose(ratios, ratios[0]) and len(levels) >= 12


@pytest.mark.parametrize("low, high", [(0.0903, 1.92), (0.0125, 30.0), (0.6, 0.68), (0.3, 4.0)])
def test_the_ticks_of_a_colour_bar_lie_within_it_and_need_two_digits_at_most(low, high):
    for levels in (loss_levels(np.array([low, high])), error_levels(np.array([min(low, 0.4), min(high, 0.9)]))):
        ticks = bar_ticks(levels)
        assert 2 <= len(ticks) <= 12 and levels[0] <= ticks[0] and ticks[-1] <= levels[-1]
    wide = bar_ticks(loss_levels(np.array([low, 10 * high])))
    assert all(float(f"{tick:.1g}") == pytest.approx(tick) for tick in wide)


def test_every_figure_and_table_is_drawn_from_small_tables(bowls, trained, tmp_path):
    of_groups = pd.concat(
        bowl(1.0).assign(task=task, seed=0, group=group) for task in TASKS for group in ("low", "middle", "high")
    )
    models, histories = trained
    second = {"mnli": "mrpc", "mrpc": "mnli"}
    with_walks = pd.concat([paths(40.0, 80.0).assign(control=control) for control in ("", TWIN)], ignore_index=True)
    # Ends lie in their plane, which the median must not count.
    ended = paths(40.0, 80.0)
    ended.loc[ended["share"] == 1, "in_plane"] = 1.0
    made = [
        figures.figure_1(bowls),
        figures.figure_2(histories, models, second),
        figures.figure_3(bowls, ended),
        figures.figure_4(long_training(0.2, 0.02)),
        figures.figure_5(bowls),
        figures.figure_6(bowls),
        figures.figure_7(of_groups),
        tables.table_1(ROLLED_BACK),
        tables.table_of_measures(bowls),
        tables.table_of_groups(of_groups, ROLLED_BACK),
        tables.table_of_models(models, second),
    ]
    separate = long_training(0.2, 0.02).query("training == 'continued'").drop(columns="training")
    assert "the separate training on the surface" in figures.figure_4(separate).caption
    made[6].save(tmp_path)
    assert len(list(tmp_path.glob("hao2019-figure-7.*"))) == 4
    assert len({exhibit.key for exhibit in made}) == len(made)
    assert all("a mean over 80 examples" in made[place].caption for place in (0, 3, 5, 6))
    assert "holds 50%" in made[2].caption and "random walk" not in made[2].caption
    assert "random walk" in figures.figure_3(bowls, with_walks).caption
    assert made[7].shown["task"].tolist() == ["MNLI", "MRPC", "RTE", "SST-2"]
    assert made[7].shown["paper, high"].tolist()[0] == "32.85 (−53.69)" and "−53.88" in made[7].caption
    curves = made[1].table.groupby(["task", "init"])["step"].max()
    assert curves["mnli"].to_dict() == {PRETRAINED: 100, SCRATCH: 400}, "the long training is not a task's model"


def test_a_surface_to_turn_has_the_losses_of_its_grid_and_a_hole_where_one_is_not_finite():
    losses = np.array([[0.1, 1.0, 10.0], [np.nan, 0.001, 10.0]])
    surface = Surface(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0]), losses, losses, losses, losses)
    piece = BeautifulSoup(drawing.turnable({"a < b": surface, "other": surface}, "Two bowls."), "html.parser")
    assert [option.text for option in piece.select("option")] == ["a < b", "other"]
    shown = json.loads(piece.script.string)["surfaces"][0]
    assert shown["marks"] == {"start": [0, 0], "end": [0, 1]} and shown["alphas"] == [0, 1, 2]
    reach = np.log10(10 / FLOOR)  # what is lower than the least that is told apart lies on the ground
    expected = [[np.log10(value / FLOOR) / reach for value in row] for row in ([0.1, 1, 10], [FLOOR, 10])]
    assert shown["heights"][0] == pytest.approx(expected[0], abs=1e-3)
    assert shown["heights"][1][0] is None and shown["heights"][1][1:] == pytest.approx(expected[1], abs=1e-3)


def test_a_loss_that_does_not_fall_is_named_and_not_scaled(bowls):
    flat = bowls["lines"].assign(loss=0.7)
    flat = flat.where((flat["task"] == "mrpc") & (flat["init"] == SCRATCH), bowls["lines"])
    exhibit = figures.figure_5(bowls | {"lines": flat})
    assert exhibit.caption.endswith("falls by less than 0.01 nats: MRPC from scratch.")
    missing = exhibit.table[exhibit.table["height"].isna()]
    assert set(zip(missing["task"], missing["init"], strict=True)) == {("mrpc", SCRATCH)}
    assert exhibit.table.query("direction == 'optimisation' and alpha == 0")["height"].dropna().eq(1).all()


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Two tasks, both inits, and one task that is also trained for longer, twice, and continued after two epochs."""
    wanted = [
        specify(encoder, task, "toyworld", 0, short_schedule(epochs=epochs), examples=48, saved_steps=steps)
        for encoder, task, epochs, steps in (
            (ENCODER, "rte", 1, (0, 3)),
            (ENCODER, "mrpc", 1, (0, 3)),
            (ENCODER, "mrpc", 2, (0,)),
            (ENCODER, "mrpc", 3, (0, 3, 6, 9)),
            (f"random:{ENCODER}", "rte", 2, (0, 3, 6)),
            (f"random:{ENCODER}", "mrpc", 2, (0, 3, 6)),
        )
    ]
    further = short_schedule(epochs=2, further_epochs=1)
    wanted.append(specify(ENCODER, "mrpc", "toyworld", 0, further, examples=48, saved_steps=(0, 3, 6, 9)))
    return prepare(wanted, Store(tmp_path_factory.mktemp("models")), workers=1, log=lambda line: None)


@pytest.fixture(scope="module")
def models(checkpoints):
    return Models(checkpoints, SECOND, "cpu")


@pytest.fixture
def with_diverged(checkpoints):
    """The models of a second seed, of which some have diverged: task, encoder, and epochs where these matter."""

    def second_seed(*which):
        again = []
        for one in checkpoints:
            made = one.manifest["specification"] | {"seed": 1}
            key = made["task"], SCRATCH if made["encoder"].startswith("random:") else PRETRAINED
            diverged = (*key, made["schedule"]["epochs"]) in which or key in which
            manifest = one.manifest | {"specification": made, "diverged": diverged}
            again.append(dataclasses.replace(one, manifest=manifest))
        return again

    return second_seed


@pytest.fixture(autouse=True)
def forty_development_examples(monkeypatch):
    load = tasks.load

    def few(name, source, splits=None):
        data = load(name, source, splits)
        validation = {split: table.select(range(40)) for split, table in data.splits.items() if split == "validation"}
        return dataclasses.replace(data, splits=data.splits | validation)

    monkeypatch.setattr(tasks, "load", few)


SECOND = {"rte": "mrpc", "mrpc": "rte"}
GRID = {"second": SECOND, "low": -1, "high": 2, "points": 4, "grid_examples": 20, "device": "cpu"}


def quiet(line: str) -> None:
    """Takes a line of progress."""


def test_models_are_told_apart(models):
    assert models.usual("mrpc", PRETRAINED, 0).manifest["steps"] == 3
    assert models.usual("mrpc", SCRATCH, 0).manifest["steps"] == 6
    longest = models.finished_and_long("mrpc", 0)
    assert [one.manifest["steps"] for one in longest] == [6, 9]
    assert {one.specification.encoder for one in longest} == {ENCODER}
    continued = models.continued("mrpc", 0)
    assert continued.specification.schedule.further_epochs == 1 and continued.manifest["steps"] == 9
    assert tables.fine_tuned(table_of([*longest, continued]), SECOND)["steps"].tolist() == [6]


def test_a_long_training_is_compared_with_the_tasks_model_where_this_has_its_first_epochs(checkpoints):
    two = Models([one for one in checkpoints if one.specification.schedule.epochs < 3], SECOND, "cpu")
    finished, long = two.finished_and_long("mrpc", 0)
    assert finished == two.usual("mrpc", PRETRAINED, 0) and long.manifest["steps"] == 6


def test_the_start_from_scratch_is_the_drawn_one_to_half_precision(models, toy_data):
    set_seed(0)
    drawn = heads.build(encoders.locate(f"random:{ENCODER}"), "sequence", toy_data.labels)
    kept = models.start("rte", SCRATCH, 0, range(7))
    for name, tensor in layer_parameters(drawn, range(7)).items():
        assert torch.allclose(kept[name], tensor, rtol=2**-11, atol=1e-7), name


def test_both_directions_begin_at_one_point_and_are_of_one_length(models):
    plane = models.plane("rte", PRETRAINED, 0)
    lengths = [sum(float(part.square().sum()) for part in one.values()) for one in (plane.first, plane.second)]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-4)
    starts = [models.start(task, SCRATCH, 0, range(7)) for task in ("rte", "mrpc")]
    assert all(torch.equal(starts[0][name], starts[1][name]) for name in starts[0])


def test_start_and_end_of_a_surface_are_the_models_themselves(models, checkpoints, tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    one = {"task": "mrpc", "init": PRETRAINED, "seed": 0, "line_points": 7} | GRID
    landscapes = measure.landscapes(checkpoints, **one, log=quiet)
    assert len(of_all(landscapes["surfaces"])) == 2 * 16 and len(landscapes["models"]) == 1
    cells = of_all(landscapes["surfaces"]).query("split == 'train'")
    model = models.usual("mrpc", PRETRAINED, 0).model()
    examples = encoded(models.usual("mrpc", PRETRAINED, 0), "train")
    assert examples.num_rows == 48
    evaluate = ClassifierLoss(model, examples, range(7), limit=20)
    surface, pretrained = as_surface(cells), encoders.load_weights(encoders.locate(ENCODER))
    row = np.flatnonzero(surface.betas == 0)[0]
    for alpha, there in ((0, pretrained), (1, model)):
        column = np.flatnonzero(surface.alphas == alpha)[0]
        direct = evaluate(layer_parameters(there, range(7)))
        assert surface.losses[row, column] == pytest.approx(direct.loss, abs=1e-5)
        assert surface.errors[row, column] == pytest.approx(direct.error)
    table = measures(landscapes)
    assert table["angle"].between(1, 179).all() and (table["norm"] > 0).all()
    everything = ClassifierLoss(model, examples, range(7))(layer_parameters(model, range(7)))
    assert table["train_loss"].item() == pytest.approx(everything.loss, abs=1e-5)
    # Twenty examples in ten folds: each is left out once, so that the replicates have the mean of all.
    for split, value in (("train", "loss"), ("validation", "error")):
        cells = landscapes["surfaces"]
        by_fold = cells[cells["split"] == split].pivot(index=["alpha", "beta"], columns="fold", values=value)
        assert by_fold.columns.tolist() == [WHOLE, *range(10)]
        assert by_fold.drop(columns=WHOLE).mean(axis=1).to_numpy() == pytest.approx(by_fold[WHOLE].to_numpy(), abs=1e-5)

    logged = []
    again = measure.landscapes(checkpoints, **one, log=logged.append)
    assert logged == [], "a finished surface is read, not measured again"
    pd.testing.assert_frame_equal(again["surfaces"], landscapes["surfaces"])
    assert len(list((tmp_path / "surfaces").glob("*.npz"))) == 2


def test_trajectories_end_at_the_end(checkpoints):
    both = training_paths.trajectories(checkpoints, "mrpc", 0, SECOND, "cpu")
    table, walk = both[both["control"] == ""], both[both["control"] == TWIN]
    assert walk["step"].tolist() == table["step"].tolist()
    assert walk.groupby("init")["alpha"].last().eq(1).all() and walk["beta"].between(0, 0.5).all()
    ends = table.groupby("init").last()
    assert set(ends.index) == set(INITS)
    assert ends["alpha"].between(0.99, 1.01).all() and (ends["beta"] < 0.05).all() and (ends["share"] == 1).all()
    starts = table.groupby("init").first()
    assert (starts["alpha"] == 0).all() and table[table["step"] == 0]["angle"].isna().all()


def test_a_line_has_forty_steps_from_start_to_end_beside_those_of_the_grid(checkpoints, tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    record = measure.landscapes(checkpoints, "mrpc", PRETRAINED, 0, line_points=7, **GRID, log=quiet)
    lines = record["lines"][record["lines"]["fold"] == WHOLE]
    along = lines[lines["direction"] == OPTIMISATION]["alpha"]
    assert along.between(0, 1).sum() >= 41 and along.is_unique and {-1.0, 0.0, 1.0, 2.0} <= set(along)
    assert lines[lines["direction"] == RANDOM]["alpha"].between(0, 1).sum() < 5


def test_the_way_to_a_long_training_leads_from_the_state_after_its_first_part_or_from_a_finished_one(
    models, checkpoints, tmp_path, monkeypatch
):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    loss_of, limits = training_paths.loss_of, []
    monkeypatch.setattr(training_paths, "loss_of", lambda *given: limits.append(given[3]) or loss_of(*given))
    whole = training_paths.long_training(checkpoints, "mrpc", 0, **GRID, log=quiet)
    assert limits == [GRID["grid_examples"]] + 2 * [None] * (4 + 2 * 11), "four states and two ways are on all, twice"
    assert whole[whole["kind"] == CELL]["training"].eq(CONTINUED).all()
    continued, (finished, _) = models.continued("mrpc", 0), models.finished_and_long("mrpc", 0)
    references = {CONTINUED: continued.model_at(6), SEPARATE: finished.model()}
    for training, reference in references.items():
        rows = whole[whole["training"] == training]
        table = of_all(rows)
        states, between = table[table["kind"] == STATE], table[table["kind"] == BETWEEN]
        assert states["epoch"].tolist() == [0, 1, 2, 3] and between["epoch"].eq(2).all()
        assert between["error"].iloc[0] == pytest.approx(1 - accuracy(reference, encoded(finished, "validation")))
        assert between["error"].iloc[-1] == pytest.approx(states["error"].iloc[-1]), "heads are on the way, too"
        at_random = rows[(rows["kind"] == BETWEEN) & (rows["control"] == TWIN) & (rows["fold"] == WHOLE)]
        assert at_random["error"].iloc[0] == between["error"].iloc[0] and len(at_random) == len(between)


def test_a_continued_training_goes_on_from_the_state_after_its_first_part(models):
    continued = models.continued("mrpc", 0)
    after, end = (layer_parameters(continued.model_at(step), range(7)) for step in (6, 9))
    moved = sum(float((end[name] - after[name]).square().sum()) for name in end) ** 0.5
    before = layer_parameters(continued.model_at(3), range(7))
    earlier = sum(float((after[name] - before[name]).square().sum()) for name in end) ** 0.5
    assert 0 < moved < earlier, "at a tenth of the rate it goes on less far"


@torch.no_grad()
def accuracy(model, examples) -> float:
    """The share of right answers, one example at a time."""
    right = []
    for row in examples:
        inputs = {name: torch.tensor([row[name]]) for name in ("input_ids", "attention_mask", "token_type_ids")}
        right.append(int(model(**inputs).logits.argmax()) == row["labels"])
    return float(np.mean(right))


def test_rollback_is_the_accuracy_of_a_model_with_these_layers_rolled_back(models, checkpoints):
    record = layer_groups.rollbacks(checkpoints, "mrpc", 0, SECOND, device="cpu")
    table = rolled_back(record).set_index("group")
    checkpoint = models.usual("mrpc", PRETRAINED, 0)
    examples = encoded(checkpoint, "validation")
    tuned, pretrained = checkpoint.model(), encoders.load_weights(encoders.locate(ENCODER))
    for group, of_group in thirds(6).items():
        rolled = copy.deepcopy(tuned)
        layers.roll_back(rolled, pretrained, of_group)
        assert table.loc[group]["accuracy"] == pytest.approx(accuracy(rolled, examples))
    assert table["tuned"].to_numpy() == pytest.approx(accuracy(tuned, examples))
    right = record[record["group"] == FULL].sort_values("example")
    assert right["score"].tolist() == [accuracy(tuned, examples.select([row])) for row in range(40)]


def test_table_1_has_the_standard_errors_of_accuracies_and_of_what_changes():
    right = {FULL: [1, 1, 1, 1], "low": [1, 1, 1, 0], "middle": [1, 0, 1, 0], "high": [0, 0, 0, 0]}
    record = pd.concat(
        [
            pd.DataFrame({"group": group, "example": range(4), "score": scores, "seed": seed, "control": control})
            for group, scores in right.items()
            for seed in (0, 1)
            for control in ([SHARED] if group == FULL else ["", TWIN])
        ]
    ).assign(task="mrpc", norm=1.0, relative_norm=0.1)
    exhibit = tables.table_1(record)
    row = exhibit.shown.set_index("task").loc["MRPC"]
    # Two seeds that agree have the variance of their examples alone: 1/4 and 1/3 over four.
    assert row["tuned"] == "100.0% ± 0.0" and row["high rolled back"] == "0.0% (−100.0 ± 0.0)"
    assert row["low rolled back"] == "75.0% (−25.0 ± 25.0)" and row["middle rolled back"] == "50.0% (−50.0 ± 28.9)"
    assert "±: standard error, over seeds and examples." in exhibit.caption
    assert exhibit.shown.set_index("task").loc["RTE", "tuned"] == "–"
    assert exhibit.table.query("group == 'middle'")["change_error"].to_numpy() == pytest.approx((1 / 12) ** 0.5)
    one_seed, without = tables.table_1(record[record["seed"] == 0]), tables.table_1(ROLLED_BACK)
    assert "±: standard error, over examples." in one_seed.caption and "±" not in without.caption


def test_a_group_put_back_is_the_same_on_its_surface_and_in_its_measures(checkpoints, tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    record = layer_groups.group_surfaces(checkpoints, "mrpc", 0, **GRID, log=quiet)
    table = group_measures(record, layer_groups.rollbacks(checkpoints, "mrpc", 0, SECOND, device="cpu"))
    assert table["group"].tolist() == ["low", "middle", "high"]
    cells = of_all(record)
    at_end = cells[(cells["alpha"] == 0) & (cells["beta"] == 0)]["loss"]
    assert np.ptp(at_end) < 1e-5
    back = cells[(cells["alpha"] == -1) & (cells["beta"] == 0)]["loss"].to_numpy()
    assert table["rise"].to_numpy() == pytest.approx(back - at_end.to_numpy())
    at_random = record[(record["control"] == TWIN) & (record["fold"] == WHOLE)]
    assert (at_random["beta"] == 0).all() and len(at_random) == 3 * 4
    assert at_random[at_random["alpha"] == 0]["loss"].to_numpy() == pytest.approx(at_end.to_numpy(), abs=1e-5)


def test_a_random_walk_lies_where_steps_in_many_dimensions_lead():
    steps = np.random.default_rng(0).normal(size=(4, 200_000)) * np.array([[3.0], [1.0], [2.0], [1.0]])
    points = np.vstack([np.zeros(200_000), steps.cumsum(axis=0)])
    trajectory = [{"x": torch.from_numpy(point)} for point in points]
    walk = training_paths.random_walk(np.array([0.0, *np.linalg.norm(steps, axis=1)]))
    found = project(trajectory, trajectory[0], trajectory[-1])
    assert found.alphas == pytest.approx(walk["alpha"], abs=0.01)
    assert found.betas == pytest.approx(walk["beta"], abs=0.01)
    assert np.degrees(np.arccos(found.cosines))[1:] == pytest.approx(walk["angle"][1:], abs=0.5)


def test_a_long_random_walk_ends_at_its_end():
    for seed in range(20):
        walk = training_paths.random_walk(np.append(0.0, np.random.default_rng(seed).exponential(size=300)))
        assert {name: walk[name][-1] for name in walk} == {"angle": 0.0, "alpha": 1.0, "beta": 0.0}
        assert np.isfinite(walk["beta"]).all()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"tasks": ["cola"]}, "second gives"),
        ({"second": {"cola": "cola", "trec": "cola"}}, "name another of the tasks"),
        ({"scratch_epochs": {}}, "scratch_epochs has none for"),
        ({"high": 1}, "high"),
        ({"low": 0}, "low"),
        ({"long_epochs": [1, 1]}, "long_epochs are no more than"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(overrides, message):
    with pytest.raises(ParameterError) as refusal:
        settings(3, "tiny", **overrides)
    assert message in str(refusal.value)


def test_a_finished_training_of_its_own_is_made_where_the_usual_one_has_fewer_epochs():
    def epochs(**overrides):
        chosen = settings(3, "tiny", **overrides)
        long, other = (chosen.trainings(task, chosen.encoder, 10_000, 6) for task in ("cola", "trec"))
        assert [one["schedule"].epochs for one in other] == [chosen.schedule("trec").epochs]
        *schedules, continued = [one["schedule"] for one in long]
        assert (continued.epochs, continued.further_epochs) == tuple(chosen.long_epochs)
        assert chosen.schedule("cola") in schedules and continued.all_epochs == schedules[-1].epochs
        an_epoch = -(-chosen.training_examples // continued.batch_size)
        assert an_epoch * chosen.long_epochs[0] in long[-1]["saved_steps"], "the state that it is compared with"
        return [schedule.epochs for schedule in schedules]

    assert epochs() == [3, 9], "the usual one has the first of long_epochs"
    assert epochs(long_epochs=[5, 20]) == [3, 5, 25]
    assert epochs(epochs=2) == [2, 3, 9]
    assert epochs(epochs=4) == [4, 9], "the usual one has more"


def test_the_states_of_followed_trainings_are_kept_by_epoch():
    chosen = settings(3, "tiny", states=2)
    task, encoder = chosen.followed[0], chosen.encoder
    usual = chosen.trainings(task, encoder, 10_000, 6)[0]
    an_epoch = -(-chosen.training_examples // usual["schedule"].batch_size)
    assert {0, round(an_epoch / 2), an_epoch, 2 * an_epoch} <= set(usual["saved_steps"])
    assert max(usual["saved_steps"]) == usual["schedule"].steps(chosen.training_examples)
    scratch = chosen.trainings(task, chosen.encoders_used()[1], 10_000, 6)[0]
    assert scratch["schedule"].epochs == chosen.scratch_epochs[task] and 0 in scratch["saved_steps"]


def test_a_task_is_left_out_where_a_training_or_that_of_its_second_task_diverged(checkpoints, with_diverged):
    both = [*checkpoints, *with_diverged(("rte", SCRATCH))]
    found = Models(both, SECOND, "cpu")
    assert found.finite("rte", 0) and not found.finite("rte", 1) and not found.finite("mrpc", 1)
    assert layer_groups.rollbacks(both, "mrpc", 1, SECOND, device="cpu").empty
    assert training_paths.trajectories(both, "mrpc", 1, SECOND, "cpu").empty
    assert layer_groups.group_surfaces(both, "rte", 1, **GRID).empty
    landscapes = measure.landscapes(both, "rte", PRETRAINED, 1, line_points=7, **GRID)
    assert set(landscapes) == {"surfaces", "lines", "ends", "models"} and all(
        table.empty for table in landscapes.values()
    )
    exhibit = tables.table_of_models(table_of(both), SECOND)
    assert exhibit.table.groupby("seed")["diverged"].sum().tolist() == [0, 1]
    assert exhibit.caption.endswith("second direction: RTE (seed 1), MRPC (seed 1).")
    assert "Left out" not in tables.table_of_models(table_of(checkpoints), SECOND).caption


@pytest.mark.parametrize("epochs", [2, 3])
def test_a_long_training_or_a_finished_one_that_diverged_leaves_one_figure_out_alone(epochs, with_diverged):
    again = with_diverged(("mrpc", PRETRAINED, epochs))
    assert (
        Models(again, SECOND, "cpu").finite("mrpc", 1)
        and not tables.task_models(table_of(again), SECOND)["left_out"].any()
    )
    table = training_paths.long_training(again, "mrpc", 1, **GRID)
    assert "a training diverged" in figures.figure_4(table).sentence


def test_exhibits_without_a_finite_training_are_absent_and_their_claims_cannot_be_tested():
    nothing = pd.DataFrame()
    absent = [
        figures.figure_3({"surfaces": nothing}, nothing),
        figures.figure_4(nothing),
        figures.figure_7(nothing),
        tables.table_1(nothing),
        tables.table_of_groups(nothing, nothing),
    ]
    names = ("figure-3", "figure-4", "figure-7", "table-1", "groups")
    assert {one.key for one in absent} == {f"hao2019-{name}" for name in names}
    records = dict.fromkeys(("histories", "trajectories", "long_training", "group_surfaces", "rollbacks"), nothing)
    records["landscapes"] = dict.fromkeys(("surfaces", "lines", "ends", "models"), nothing)
    for claim in CLAIMS:
        verdict = judge(claim, records).verdict
        assert verdict.outcome == CANNOT_BE_TESTED and "diverged" in verdict.reason, claim.key


def test_a_run_in_which_all_diverged_is_refused_with_what_to_do(with_diverged):
    with pytest.raises(ValueError, match="lower learning_rate"):
        Models(with_diverged(("rte", SCRATCH), ("mrpc", PRETRAINED)), SECOND, "cpu")
