"""Chapter 3: each predicate on tables made to pass and to fail, measures with known answers, the measurements on models
of seconds, and every figure from a small table.
"""

import copy
import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from tests.conftest import ENCODER, short_schedule
from transformers import set_seed

from fivelenses import tasks
from fivelenses.checkpoints import Store, prepare, specify
from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, REPRODUCED, judge
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.parameter_motion import layer_parameters, thirds
from fivelenses.models import encoders, heads, layers
from fivelenses.papers import hao2019
from fivelenses.papers.hao2019.drawing import loss_levels
from fivelenses.papers.hao2019.measure import BETWEEN, CELL, OPTIMISATION, RANDOM, STATE, Landscapes
from fivelenses.papers.hao2019.measures import as_surface, width
from fivelenses.papers.hao2019.planes import SCRATCH, TUNED, WAYS, encoded
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import settings

BY_KEY = {claim.key: claim for claim in hao2019.CLAIMS}
TASKS = ("mnli", "mrpc")
POSITIONS = np.linspace(-2, 3, 11)


def bowl(curvature: float, missing: bool = False) -> pd.DataFrame:
    """The cells of a bowl around the end, whose error follows its loss."""
    alphas, betas = (axis.ravel() for axis in np.meshgrid(POSITIONS, POSITIONS))
    loss = 0.05 + curvature / 2 * ((alphas - 1) ** 2 + betas**2)
    if missing:
        loss[0] = np.nan
    table = pd.DataFrame({"alpha": alphas, "beta": betas, "loss": loss, "error": loss / (1 + loss)})
    return table.assign(loss_standard_error=0.01, error_standard_error=0.02)


def measured(tuned: dict, scratch: dict, learned: bool = True) -> pd.DataFrame:
    """The table of measures: both models of two tasks, the first with more examples."""
    rows = []
    for task, examples in zip(TASKS, (9_000, 900), strict=True):
        for way, values in ((SCRATCH, scratch), (TUNED, tuned)):
            row = {"task": task, "way": way, "seed": 0, "examples": examples, "learned": learned, "climb": 0.0}
            rows.append(
                row | {name: value[task] if isinstance(value, dict) else value for name, value in values.items()}
            )
    return pd.DataFrame(rows)


def history(tuned_half: int, scratch_half: int) -> pd.DataFrame:
    """Losses that fall by half in so many steps."""
    rows = []
    for task in TASKS:
        for way, half, last in ((SCRATCH, scratch_half, 400), (TUNED, tuned_half, 100)):
            for step in range(20, last + 1, 20):
                rows.append(
                    {
                        "task": task,
                        "way": way,
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
        for way, first, epochs in ((SCRATCH, scratch_angle, 9), (TUNED, tuned_angle, 3)):
            for epoch in range(epochs + 1):
                share = epoch / epochs
                angle = np.nan if epoch == 0 else first * (1 - share)
                row = {"task": task, "way": way, "seed": 0, "step": 10 * epoch, "epoch": epoch, "share": share}
                row |= {"angle": angle, "alpha": share, "beta": 0.3 * np.sin(np.pi * share)}
                row |= {"plane_alpha": share, "plane_beta": -0.05, "in_plane": np.nan if epoch == 0 else 0.5}
                rows.append(row)
    return pd.DataFrame(rows)


def long_training(last_error: float, barrier: float) -> pd.DataFrame:
    cells = bowl(1.0).assign(kind=CELL)
    state = paths(40.0, 80.0)
    state = state[(state["task"] == "mrpc") & (state["way"] == SCRATCH)].drop(columns=["task", "way", "seed"])
    state = state.assign(kind=STATE, loss=0.5, error=np.linspace(0.5, last_error, len(state)), alpha=state["epoch"] / 5)
    state.loc[state["epoch"] == 5, "error"] = 0.2
    share = np.linspace(0, 1, 5)
    between = pd.DataFrame(
        {"kind": BETWEEN, "share": share, "loss": 0.3 + 4 * barrier * share * (1 - share), "error": 0.2}
    )
    return pd.concat([cells, state, between], ignore_index=True).assign(task="mrpc", seed=0)


def groups(widths: tuple, accuracies: tuple, whole: tuple = (True, True, True)) -> pd.DataFrame:
    rows = [
        {"task": task, "seed": 0, "group": group, "width": across, "width_whole": ends, "accuracy": accuracy}
        for task in TASKS
        for group, across, ends, accuracy in zip(("low", "middle", "high"), widths, whole, accuracies, strict=True)
    ]
    facts = {"area": 1.0, "whole": True, "rise": 0.2, "tuned": 0.8, "random": 0.75, "norm": 2.0, "relative_norm": 0.1}
    return pd.DataFrame(rows).assign(**facts)


WHOLE, CUT = {"whole": True, "half_whole": True}, {"whole": False, "half_whole": False}
WIDE = {"area": 3.0, "half_area": 4.0, "end_loss": 0.1} | WHOLE
NARROW = {"area": 1.0, "half_area": 2.0, "end_loss": 0.3} | WHOLE
PASSING = {
    "hao2019-measures": measured(WIDE | {"correlation": 0.9}, NARROW | {"correlation": {"mnli": 0.6, "mrpc": 0.3}}),
    "hao2019-figure-2": history(30, 300),
    "hao2019-figure-3": paths(40.0, 80.0),
    "hao2019-figure-4": long_training(0.2, 0.02),
    "hao2019-groups": groups((3.0, 2.0, 1.0), (0.8, 0.7, 0.5)),
    "hao2019-table-1": groups((3.0, 2.0, 1.0), (0.8, 0.7, 0.5)),
}
FAILING = {
    "hao2019-measures": measured(NARROW | {"correlation": 0.4}, WIDE | {"correlation": {"mnli": 0.6, "mrpc": 0.7}}),
    "hao2019-figure-2": history(300, 30),
    "hao2019-figure-3": paths(80.0, 40.0),
    "hao2019-figure-4": long_training(0.3, 0.02),
    "hao2019-groups": groups((1.0, 2.0, 3.0), (0.5, 0.7, 0.8)),
    "hao2019-table-1": groups((1.0, 2.0, 3.0), (0.5, 0.7, 0.8)),
}


@pytest.mark.parametrize("key", BY_KEY)
def test_a_table_that_shows_the_claim_passes(key):
    assert judge(BY_KEY[key], PASSING).verdict == REPRODUCED


@pytest.mark.parametrize("key", BY_KEY)
def test_a_table_that_shows_the_contrary_fails(key):
    assert judge(BY_KEY[key], FAILING).verdict == NOT_REPRODUCED


def test_a_barrier_on_the_way_is_another_basin_though_the_error_is_the_same():
    assert judge(BY_KEY["robust-overfitting"], {"hao2019-figure-4": long_training(0.2, 0.5)}).verdict == NOT_REPRODUCED


def test_models_that_learned_nothing_have_no_optimum_to_compare():
    table = measured(WIDE, NARROW, learned=False)
    assert judge(BY_KEY["wider-optima"], {"hao2019-measures": table}).verdict == CANNOT_BE_TESTED


@pytest.mark.parametrize(
    ("tuned", "scratch", "verdict"),
    [
        (WIDE | CUT, NARROW, REPRODUCED),
        (WIDE | CUT, NARROW | CUT, CANNOT_BE_TESTED),
        (WIDE, NARROW | CUT, CANNOT_BE_TESTED),
        (WIDE | {"half_whole": False}, NARROW | {"half_whole": False}, CANNOT_BE_TESTED),
        (NARROW, WIDE | CUT, NOT_REPRODUCED),
        (NARROW | CUT, WIDE, CANNOT_BE_TESTED),
        # At half of the drop the tuned basin is smaller for sure, whatever the other level leaves open.
        (WIDE | CUT | {"half_area": 1.0, "half_whole": True}, NARROW | CUT, NOT_REPRODUCED),
    ],
)
def test_areas_cut_by_the_grid_are_compared_only_where_the_cut_decides_nothing(tuned, scratch, verdict):
    assert judge(BY_KEY["wider-optima"], {"hao2019-measures": measured(tuned, scratch)}).verdict == verdict


@pytest.mark.parametrize(
    ("widths", "whole", "verdict"),
    [
        ((4.0, 4.0, 4.0), (False, False, False), CANNOT_BE_TESTED),
        ((4.0, 2.0, 1.0), (False, True, True), REPRODUCED),
        ((4.0, 2.0, 1.0), (False, False, True), CANNOT_BE_TESTED),
        ((4.0, 2.0, 1.0), (True, True, False), CANNOT_BE_TESTED),
        # High layers whose basin goes on are wider than the middle ones', and that settles it.
        ((4.0, 2.0, 3.0), (False, True, False), NOT_REPRODUCED),
        ((2.0, 2.0, 1.0), (True, True, True), REPRODUCED),
    ],
)
def test_widths_cut_by_the_grid_are_ranked_only_where_the_cut_decides_nothing(widths, whole, verdict):
    table = groups(widths, (0.8, 0.7, 0.5), whole)
    assert judge(BY_KEY["low-invariant"], {"hao2019-groups": table}).verdict == verdict


CURVATURES = {TUNED: 1.0, SCRATCH: 4.0}


@pytest.fixture(scope="module")
def bowls():
    surfaces, lines, rows = [], [], []
    fine = np.linspace(-2, 3, 51).round(9)
    for task in TASKS:
        for way, curvature in CURVATURES.items():
            which = {"task": task, "way": way, "seed": 0}
            for split in ("train", "validation"):
                surfaces.append(bowl(curvature, missing=way == SCRATCH).assign(**which, split=split))
            for direction, steepness in ((OPTIMISATION, curvature), (RANDOM, 0.0)):
                loss = 0.05 + steepness / 2 * (fine - 1) ** 2
                line = pd.DataFrame({"direction": direction, "alpha": fine, "loss": loss})
                lines.append(line.assign(**which, loss_standard_error=0.01))
            facts = {"examples": 100, "null_loss": 0.69, "norm": 2.0, "relative_norm": 0.1, "angle": 80.0}
            rows.append(which | facts | {"sharpness": 0.1, "sharpness_standard_error": 0.01})
    return Landscapes(pd.concat(surfaces), pd.concat(lines), pd.DataFrame(rows))


def test_a_bowl_has_the_width_and_the_area_of_its_curvature(bowls):
    table = hao2019.measures(bowls).set_index(["task", "way"])
    for way, curvature in CURVATURES.items():
        row, radius = table.loc["mrpc", way], np.sqrt(2 * 0.1 / curvature)
        assert row["width"] == pytest.approx(2 * radius, rel=0.05) and row["width_whole"]
        assert row["drop"] == pytest.approx(curvature / 2) and row["climb"] == 0 and row["falling"] == 1
        # Half of the drop is a circle of radius 1/√2 whatever the curvature; the grid is coarse.
        assert row["half_area"] == pytest.approx(np.pi / 2, rel=0.2) and row["half_whole"]
        assert row["correlation"] > 0.9
    assert (table["random_width"] == 5).all() and not table["random_width_whole"].any()


def test_a_width_that_reaches_the_edge_is_at_least_that():
    assert width((0.5, 1.0), at=0.0, low=-4, high=4) == (1.5, True)
    assert width((np.inf, 1.0), at=1.0, low=-4, high=4) == (6.0, False)


def test_contours_hold_all_values_and_are_enough():
    for values in ([0.6, 0.9], [0.001, 30.0], [0.5, 0.5]):
        levels = loss_levels(np.array([*values, np.nan]))
        assert levels[0] <= max(values[0], levels[0]) and levels[-1] >= values[1]
        assert np.allclose(np.diff(np.log(levels)), np.log(levels[1] / levels[0]))
    assert len(loss_levels(np.array([0.2, 0.9]))) >= 12


def test_every_figure_and_table_is_drawn_from_small_tables(bowls, tmp_path):
    of_groups = pd.concat(
        bowl(1.0).assign(task=task, seed=0, group=group) for task in TASKS for group in ("low", "middle", "high")
    )
    made = [
        hao2019.figure_1(bowls.surfaces),
        hao2019.figure_2(history(30, 300)),
        hao2019.figure_3(bowls.surfaces, paths(40.0, 80.0)),
        hao2019.figure_4(long_training(0.2, 0.02), 5),
        hao2019.figure_5(bowls.lines),
        hao2019.figure_6(bowls.surfaces),
        hao2019.figure_7(of_groups),
        hao2019.table_1(PASSING["hao2019-table-1"]),
        hao2019.table_of_measures(hao2019.measures(bowls)),
        hao2019.table_of_groups(PASSING["hao2019-groups"]),
    ]
    made[6].save(tmp_path)
    assert len(list(tmp_path.glob("hao2019-figure-7.*"))) == 4
    assert len({exhibit.key for exhibit in made}) == len(made)
    assert "<details" in made[0].interactive and "NaN" not in made[0].interactive


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two tasks, both ways, and one that is trained for longer."""
    wanted = [
        specify(encoder, task, "toyworld", 0, short_schedule(epochs=epochs), examples=48, saved_steps=steps)
        for encoder, task, epochs, steps in (
            (ENCODER, "rte", 1, (0, 3)),
            (ENCODER, "mrpc", 1, (0, 3)),
            (ENCODER, "mrpc", 2, (0, 3, 6)),
            (f"random:{ENCODER}", "rte", 2, (0, 3, 6)),
            (f"random:{ENCODER}", "mrpc", 2, (0, 3, 6)),
        )
    ]
    made = prepare(wanted, Store(tmp_path_factory.mktemp("models")), workers=1, log=lambda line: None)
    return hao2019.Models(made, SECOND, "cpu")


@pytest.fixture
def with_diverged(models):
    """The same models, and beside them those of a second seed, of which some have diverged."""

    def found(*which):
        again = []
        for one in (models._models[key] for key in models.trained()):
            for checkpoint in one:
                made = checkpoint.manifest["specification"] | {"seed": 1}
                key = made["task"], SCRATCH if made["encoder"].startswith("random:") else TUNED
                gone = (*key, made["schedule"]["epochs"]) in which or key in which
                manifest = checkpoint.manifest | {"specification": made, "diverged": gone}
                again.append(dataclasses.replace(checkpoint, manifest=manifest))
        return again

    return found


@pytest.fixture(scope="module")
def data():
    few = {}
    for task in ("rte", "mrpc"):
        whole = tasks.load(task, "toyworld")
        splits = {"train": whole.splits["train"], "validation": whole.splits["validation"].select(range(40))}
        few[task] = tasks.TaskData(whole.task, whole.source, splits, whole.labels)
    return few


SECOND = {"rte": "mrpc", "mrpc": "rte"}
SAMPLING = hao2019.Sampling(low=-1, high=2, points=4, line_points=7, examples=20)


def quiet(line: str) -> None:
    """Takes a line of progress."""


def test_models_are_told_apart(models):
    assert set(models) == {(task, way, 0) for task in ("rte", "mrpc") for way in WAYS}
    assert models.usual("mrpc", TUNED, 0).manifest["steps"] == 3 and models.long("mrpc", 0).manifest["steps"] == 6


def test_the_start_from_scratch_is_the_drawn_one_to_half_precision(models, toy_data):
    set_seed(0)
    drawn = heads.build(encoders.locate(f"random:{ENCODER}"), "sequence", toy_data.labels)
    kept = models.start("rte", SCRATCH, 0, range(7))
    for name, tensor in layer_parameters(drawn, range(7)).items():
        assert torch.allclose(kept[name], tensor, rtol=2**-11, atol=1e-7), name


def test_both_directions_begin_at_one_point_and_are_of_one_length(models):
    plane = models.plane("rte", TUNED, 0)
    lengths = [sum(float(part.square().sum()) for part in one.values()) for one in (plane.first, plane.second)]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-4)
    starts = [models.start(task, SCRATCH, 0, range(7)) for task in ("rte", "mrpc")]
    assert all(torch.equal(starts[0][name], starts[1][name]) for name in starts[0])


def test_start_and_end_of_a_surface_are_the_models_themselves(models, data, tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    tuned = [models.usual(task, TUNED, 0) for task in ("rte", "mrpc")]
    models = hao2019.Models(tuned, SECOND, "cpu")
    found = hao2019.landscapes(models, data, SAMPLING, quiet)
    assert len(found.surfaces) == 2 * 2 * 16 and len(found.models) == 2
    cells = found.surfaces[(found.surfaces[["task", "way", "split"]] == ["mrpc", TUNED, "train"]).all(axis=1)]
    model = models.usual("mrpc", TUNED, 0).model()
    examples = encoded(models.usual("mrpc", TUNED, 0), data["mrpc"], "train")
    assert examples.num_rows == 48
    evaluate = ClassifierLoss(model, examples, range(7), limit=20)
    surface, pretrained = as_surface(cells), encoders.load_weights(encoders.locate(ENCODER))
    row = np.flatnonzero(surface.betas == 0)[0]
    for alpha, there in ((0, pretrained), (1, model)):
        column = np.flatnonzero(surface.alphas == alpha)[0]
        direct = evaluate(layer_parameters(there, range(7)))
        assert surface.losses[row, column] == pytest.approx(direct.loss, abs=1e-5)
        assert surface.errors[row, column] == pytest.approx(direct.error)
    table = hao2019.measures(found)
    assert table["angle"].between(1, 179).all() and (table["norm"] > 0).all()

    told = []
    again = hao2019.landscapes(models, data, SAMPLING, told.append)
    assert told == [], "a finished surface is read, not measured again"
    pd.testing.assert_frame_equal(again.surfaces, found.surfaces)
    assert len(list((tmp_path / "surfaces").glob("*.npz"))) == 4


def test_trajectories_end_at_the_end(models):
    table = hao2019.trajectories(models, ["mrpc"])
    ends = table.groupby("way").last()
    assert ends["alpha"].between(0.99, 1.01).all() and (ends["beta"] < 0.05).all() and (ends["share"] == 1).all()
    starts = table.groupby("way").first()
    assert (starts["alpha"] == 0).all() and table[table["step"] == 0]["angle"].isna().all()


def test_a_long_training_passes_through_the_end_of_its_plane(models, data, tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    table = hao2019.long_training(models, data["mrpc"], [0], 1, SAMPLING, quiet)
    states = table[table["kind"] == STATE]
    assert states["epoch"].tolist() == [0, 1, 2]
    assert states["alpha"].iloc[1] == pytest.approx(1) and states["beta"].iloc[1] == pytest.approx(0, abs=1e-4)
    between = table[table["kind"] == BETWEEN]
    assert between["loss"].iloc[0] == pytest.approx(states["loss"].iloc[1], abs=1e-5)
    assert between["error"].iloc[0] == pytest.approx(states["error"].iloc[1])


@torch.no_grad()
def accuracy(model, examples) -> float:
    """The share of right answers, one example at a time."""
    right = []
    for row in examples:
        inputs = {name: torch.tensor([row[name]]) for name in ("input_ids", "attention_mask", "token_type_ids")}
        right.append(int(model(**inputs).logits.argmax()) == row["labels"])
    return float(np.mean(right))


def test_rollback_is_the_accuracy_of_a_model_with_these_layers_put_back(models, data):
    table = hao2019.rollbacks(models, data, [0], SAMPLING).set_index(["task", "group"])
    checkpoint = models.usual("mrpc", TUNED, 0)
    examples = encoded(checkpoint, data["mrpc"], "validation")
    tuned, pretrained = checkpoint.model(), encoders.load_weights(encoders.locate(ENCODER))
    for group, of_group in thirds(6).items():
        rolled = copy.deepcopy(tuned)
        layers.roll_back(rolled, pretrained, of_group)
        assert table.loc["mrpc", group]["accuracy"] == pytest.approx(accuracy(rolled, examples))
    assert table.loc["mrpc", "low"]["tuned"] == pytest.approx(accuracy(tuned, examples))


def test_a_group_put_back_is_the_same_on_its_surface_and_in_its_measures(models, data, tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    cells = hao2019.group_surfaces(models, data, ["mrpc"], [0], SAMPLING, quiet)
    table = hao2019.group_measures(cells, hao2019.rollbacks(models, data, [0], SAMPLING))
    assert table["group"].tolist() == ["low", "middle", "high"]
    at_end = cells[(cells["alpha"] == 0) & (cells["beta"] == 0)]["loss"]
    assert np.ptp(at_end) < 1e-5
    back = cells[(cells["alpha"] == -1) & (cells["beta"] == 0)]["loss"].to_numpy()
    assert table["rise"].to_numpy() == pytest.approx(back - at_end.to_numpy())


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


def test_the_states_of_followed_trainings_are_kept_by_epoch():
    chosen = settings(3, "tiny", states=2)
    task, encoder = chosen.followed[0], chosen.encoder
    usual = chosen.trainings(task, encoder, 10_000, 6)[0]
    an_epoch = -(-chosen.training_examples // usual["schedule"].batch_size)
    assert {0, round(an_epoch / 2), an_epoch, 2 * an_epoch} <= set(usual["saved_steps"])
    assert max(usual["saved_steps"]) == usual["schedule"].steps(chosen.training_examples)
    scratch = chosen.trainings(task, chosen.encoders_used()[1], 10_000, 6)[0]
    assert scratch["schedule"].epochs == chosen.scratch_epochs[task] and 0 in scratch["saved_steps"]


def test_a_task_is_left_out_where_a_training_or_that_of_its_second_task_diverged(models, with_diverged, data):
    whole = [one for key in models.trained() for one in models._models[key]]
    both = hao2019.Models([*whole, *with_diverged(("rte", SCRATCH))], SECOND, "cpu")
    assert set(both) == set(models) and len(both.trained()) == 2 * len(models.trained())
    assert both.finite("rte", 0) and not both.finite("rte", 1) and not both.finite("mrpc", 1)
    assert set(hao2019.rollbacks(both, data, [0, 1], SAMPLING)["seed"]) == {0}
    assert set(hao2019.trajectories(both, ["rte", "mrpc"])["seed"]) == {0}
    exhibit = hao2019.table_of_models(both)
    assert exhibit.table.groupby("seed")["diverged"].sum().tolist() == [0, 1]
    assert exhibit.caption.endswith("second direction: RTE (seed 1), MRPC (seed 1).")
    assert "Left out" not in hao2019.table_of_models(models).caption


def test_a_long_training_that_diverged_leaves_one_figure_out_alone(with_diverged, data):
    found = hao2019.Models(with_diverged(("mrpc", TUNED, 2)), SECOND, "cpu")
    assert len(list(found)) == 4
    table = hao2019.long_training(found, data["mrpc"], [1], 1, SAMPLING, quiet)
    assert "a training diverged" in hao2019.figure_4(table, 1).sentence


def test_exhibits_without_a_finite_training_are_absent_and_their_claims_cannot_be_tested():
    nothing = pd.DataFrame()
    absent = [
        hao2019.figure_3(nothing, nothing),
        hao2019.figure_4(nothing, 1),
        hao2019.figure_7(nothing),
        hao2019.table_of_groups(hao2019.group_measures(nothing, nothing)),
    ]
    assert {one.key for one in absent} == {f"hao2019-{name}" for name in ("figure-3", "figure-4", "figure-7", "groups")}
    assert judge(BY_KEY["straighter"], {}).verdict == CANNOT_BE_TESTED


def test_a_run_in_which_all_diverged_is_refused_with_what_to_do(with_diverged):
    with pytest.raises(ValueError, match="lower learning_rate"):
        hao2019.Models(with_diverged(("rte", SCRATCH), ("mrpc", TUNED)), SECOND, "cpu")
