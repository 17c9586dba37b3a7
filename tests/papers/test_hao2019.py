"""Chapter 3: claims and exhibits on made records, and what it measures on models of seconds."""

import copy
import dataclasses
import functools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tests import chapters
from tests.conftest import ENCODER, few_development_examples, one_by_one, short_schedule

from fivelenses import records
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.judging import CANNOT_BE_TESTED, CONTRADICTED, HOLDS, REPRODUCED
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import layer_parameters, project
from fivelenses.models import encoders, layers, thirds
from fivelenses.papers import hao2019, hao2019_paths
from fivelenses.papers.hao2019 import Models
from fivelenses.papers.models import encoded
from fivelenses.records import BETWEEN, CONTINUED, PRETRAINED, SCRATCH, SEPARATE, TWIN, WHOLE, select

TASKS = {"cola": 9_000, "trec": 900}
GROUPS = ("low", "middle", "high")
SEEDS, FOLDS = (0, 1, 2), (-1, 0, 1)
POSITIONS = np.linspace(-4, 4, 17)
ALPHAS, BETAS = (axis.ravel() for axis in np.meshgrid(POSITIONS, POSITIONS))
ON_LINES = np.union1d(POSITIONS, np.linspace(0, 1, 41))
ERRORS = {"loss_standard_error": 0.01, "error_standard_error": 0.02}
TUNED = {"power": 4.0, "end": 0.05, "bump": 0.0, "half": 30, "angle": 40.0, "noise": {"cola": 0.0, "trec": 0.0}}
FROM_SCRATCH = {"power": 1.0, "end": 0.2, "bump": 0.9, "half": 300, "angle": 80.0, "noise": {"cola": 0.3, "trec": 0.95}}
ON_LANDSCAPES = ("wider-optima", "easier", "sharper-from-scratch", "error-follows-loss", "scratch-needs-data")
CLAIMS = (*ON_LANDSCAPES, "straighter", "robust-overfitting", "low-invariant", "rollback")


def chance(*key: int) -> np.random.Generator:
    """The same numbers for the same seed, fold and so on."""
    return np.random.default_rng([2019, *(number + 1 for number in key)])


def replicates(**names):
    """The names of each task's models, of all examples and without each fold, and a factor near 1 for each."""
    for place, task in enumerate(TASKS):
        for seed in SEEDS:
            for fold in FOLDS:
                of_fold = (fold >= 0) * 0.001 * chance(place, seed, fold).normal()
                near = 1 + 0.01 * chance(place, seed).normal() + of_fold
                yield {"task": task, "seed": seed, "fold": fold, "examples": 80} | names, near


def shape(like: dict, radius: np.ndarray) -> np.ndarray:
    """A loss that rises to 1 above the end at the distance 1."""
    return like["end"] + radius ** like["power"]


def landscapes(tuned: dict = TUNED, scratch: dict = FROM_SCRATCH, loss=shape) -> dict[str, pd.DataFrame]:
    """Surfaces, lines, ends and models in which both kinds of model have the given shapes."""
    radius, away = np.hypot(ALPHAS - 1, BETAS), np.abs(ON_LINES - 1)
    surfaces, lines, ends, models = [], [], [], []
    along, at_random = ({"direction": direction} for direction in (records.OPTIMISATION, records.RANDOM))
    facts = {"null_loss": 1.1, "norm": 2.0, "relative_norm": 0.1, "angle": 80.0, "sharpness": 0.1}
    for init, like in ((SCRATCH, scratch), (PRETRAINED, tuned)):
        hill = like["bump"] * np.exp(-(((ON_LINES - 0.4) / 0.03) ** 2))
        for names, near in replicates(init=init):
            noise, ranks = like["noise"][names["task"]], loss(like, radius).argsort().argsort() / len(radius)
            error = (1 - noise) * ranks + noise * chance(names["seed"]).uniform(size=len(radius))
            error += (names["fold"] >= 0) * 0.01 * chance(names["seed"], names["fold"]).uniform(size=len(radius))
            cells = pd.DataFrame({"alpha": ALPHAS, "beta": BETAS} | names | ERRORS)
            surfaces.append(cells.assign(split="train", loss=near * loss(like, radius), error=0.1))
            surfaces.append(cells.assign(split="validation", loss=np.nan, error=error))
            line = pd.DataFrame({"alpha": ON_LINES} | names)
            lines.append(line.assign(loss=near * (loss(like, away) + hill), control="", **along))
            lines.append(line.assign(loss=near * (0.1 + away), control=TWIN, **at_random))
            ends.append(names | {"split": "train", "loss": near * like["end"], "error": 0.1})
            if names["fold"] == WHOLE:
                models.append(names | facts | {"examples": TASKS[names["task"]], "sharpness_standard_error": 0.01})
    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in (("surfaces", surfaces), ("lines", lines))}
    return joined | {"ends": pd.DataFrame(ends), "models": pd.DataFrame(models)}


def trained() -> pd.DataFrame:
    """Both models of each task and a long training of one, as `checkpoints.tables.models` has them."""
    kinds = [("toy", 3, 100), ("random:toy", 6, 200), ("toy", 9, 300)]
    rows = [
        {"encoder": encoder, "task": task, "seed": seed, "epochs": epochs, "steps": steps, "examples": TASKS[task]}
        | {"address": f"{encoder} {task} {seed} {epochs}"}
        for encoder, epochs, steps in kinds
        for task in TASKS
        for seed in SEEDS
    ]
    return pd.DataFrame(rows).assign(metric="accuracy", score=0.7, null_rate=0.5, diverged=False)


def histories(tuned: dict = TUNED, scratch: dict = FROM_SCRATCH) -> pd.DataFrame:
    """Losses that fall by half in so many steps."""
    tables = []
    for row in trained().itertuples():
        steps = np.arange(20, row.steps + 1, 20)
        half = (scratch if row.encoder.startswith("random") else tuned)["half"]
        loss = (1 + 0.01 * row.seed) * 0.5 ** (steps / half)
        tables.append(pd.DataFrame({"step": steps, "loss": loss, "address": row.address, "steps": row.steps}))
    return pd.concat(tables, ignore_index=True)


def trajectories(tuned: dict = TUNED, scratch: dict = FROM_SCRATCH) -> pd.DataFrame:
    """Angles that fall evenly to 0, and random walks that are the same for both."""
    rows = []
    for init, like, epochs in ((SCRATCH, scratch, 6), (PRETRAINED, tuned, 3)):
        share = np.arange(epochs + 1) / epochs
        path = {"alpha": share, "beta": 0.3 * np.sin(np.pi * share), "plane_alpha": share, "plane_beta": 0.0}
        # Ends lie in their plane, which the median does not count.
        path |= {"epoch": np.arange(epochs + 1), "in_plane": np.where(share == 1, 1.0, 0.5)}
        path |= {"step": 10 * np.arange(epochs + 1), "share": share, "init": init}
        for task in TASKS:
            for seed in SEEDS:
                of_training = np.where(share > 0, (like["angle"] + seed) * (1 - share), np.nan)
                walk = np.degrees(np.arccos(np.sqrt(share))) + 0.1 * chance(seed, epochs).normal()
                for control, angle in (("", of_training), (TWIN, walk)):
                    rows.append(pd.DataFrame(path | {"angle": angle, "control": control, "task": task, "seed": seed}))
    return pd.concat(rows, ignore_index=True)


def long_training(last: float = 0.2, between: float = 0.0, spread: float = 0.0, separate: float = 0.3) -> pd.DataFrame:
    """Ways of one task from 0.2 to the last error of two trainings, with a hill between; states; a surface."""
    share, epochs, parts = np.linspace(0, 1, 5), np.arange(10), []
    states = {"kind": records.STATE, "epoch": epochs, "step": 10 * epochs, "alpha": epochs / 5, "beta": 0.1}
    states |= {"plane_alpha": epochs / 5, "plane_beta": 0.0}
    cells = {"kind": records.CELL, "alpha": ALPHAS, "beta": BETAS} | ERRORS
    for names, near in replicates(control=""):
        for training, end in ((CONTINUED, last), (SEPARATE, separate)):
            error = near * (0.2 + (end - 0.2) * share + 4 * between * share * (1 - share))
            error += spread * chance(names["seed"], names["fold"]).normal(size=5)
            way = {"kind": BETWEEN, "epoch": 3.0, "share": share, "error": error}
            tables = (way, states | {"error": near * 0.3})
            parts += [pd.DataFrame(one | names | {"training": training}) for one in tables]
        falling = near * (1 - np.exp(-np.hypot(ALPHAS, BETAS)))
        parts.append(pd.DataFrame(cells | names | {"training": CONTINUED, "error": falling}))
    return pd.concat(parts).query("task == 'cola'").reset_index(drop=True)


def group_surfaces(*steepness: float, noise: float = 0.0) -> pd.DataFrame:
    """Losses that rise evenly from the fine-tuned model, steep or less so for each third; training had gained 1."""
    parts = []
    for group, steep in zip(GROUPS, steepness, strict=True):
        for names, near in replicates(group=group, control=""):
            alphas, betas = (ALPHAS, BETAS) if names["fold"] < 0 else (POSITIONS, 0 * POSITIONS)
            loss = 0.1 + near * steep * np.hypot(alphas, betas)
            loss += noise * chance(names["seed"], names["fold"]).normal(size=len(alphas))
            parts.append(pd.DataFrame({"alpha": alphas, "beta": betas, "loss": loss} | names | ERRORS))
    return pd.concat(parts, ignore_index=True)


def rollbacks(*accuracies: float, noise: float = 0.0, tasks=TASKS, examples: int = 300) -> pd.DataFrame:
    """Right and wrong answers of so many examples, the same for all groups but for a few; the control costs nothing."""
    rows, numbers = [], np.arange(examples)
    for place, (group, accuracy) in enumerate(zip((*GROUPS, "tuned"), (*accuracies, 0.9), strict=True)):
        for task in tasks:
            for seed in SEEDS:
                right = (numbers < examples * (accuracy + noise * chance(seed, place).normal())).astype(float)
                for control, score in (("all", right),) if group == "tuned" else (("", right), (TWIN, 1.0)):
                    row = {"example": numbers, "score": score, "group": group, "task": task, "seed": seed}
                    rows.append(pd.DataFrame(row | {"control": control, "norm": 2.0, "relative_norm": 0.1}))
    return pd.concat(rows, ignore_index=True)


@functools.cache
def usual() -> dict:
    """A record on which every claim is reproduced."""
    return {
        "models": trained(),
        "landscapes": landscapes(),
        "histories": histories(),
        "trajectories": trajectories(),
        "long_training": long_training(),
        "group_surfaces": group_surfaces(0.05, 0.5, 1.0),
        "rollbacks": rollbacks(0.85, 0.7, 0.4),
    }


def of_shapes(tuned: dict, scratch: dict, loss=shape) -> dict:
    """What the shapes of both kinds of model change in it."""
    along = {"histories": histories(tuned, scratch), "trajectories": trajectories(tuned, scratch)}
    return along | {"landscapes": landscapes(tuned, scratch, loss)}


judge = chapters.judge(3)


def verdicts(tables, excluded=None):
    """The verdicts of all claims."""
    return chapters.verdicts(3, tables, Path(), excluded)


def test_records_that_show_the_claims_reproduce_them():
    assert {key: one.outcome for key, one in verdicts(usual()).items()} == dict.fromkeys(CLAIMS, REPRODUCED)


def test_records_that_show_the_contrary_contradict_them():
    tuned = FROM_SCRATCH | {"noise": {"cola": 0.95, "trec": 0.9}}
    contrary = of_shapes(tuned, TUNED | {"noise": {"cola": 0.8, "trec": 0.0}})
    contrary |= {"long_training": long_training(0.3), "group_surfaces": group_surfaces(1.0, 0.5, 0.05)}
    found = verdicts(usual() | contrary | {"rollbacks": rollbacks(0.4, 0.7, 0.85)})
    assert {key: one.outcome for key, one in found.items()} == dict.fromkeys(CLAIMS, CONTRADICTED)


TRIVIAL = {
    "flat": lambda like, radius: np.full(len(radius), 0.1),
    "ramp": lambda like, radius: 0.1 + radius,
    "noise": lambda like, radius: chance(int(1000 * like["end"]), len(radius)).uniform(0.1, 1.5, size=len(radius)),
}


@pytest.mark.parametrize("loss", TRIVIAL)
def test_no_trivial_landscape_reproduces_a_claim(loss):
    # The ends are alike, too, so that nothing tells the models apart but the shape.
    found = verdicts({"models": trained()} | of_shapes(TUNED, TUNED | {"end": 0.06}, TRIVIAL[loss]))
    assert REPRODUCED not in {found[key].outcome for key in ON_LANDSCAPES}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (group_surfaces(0.0, 0.0, 0.0), group_surfaces(0.5, 0.5, 0.5, noise=0.3)),
        # A curvature that is a fiftieth higher is no high loss, and half of the drop is not little.
        (group_surfaces(0.5, 0.51, 0.51), group_surfaces(0.05, 0.1, 0.15)),
        # In the second the low third is not the widest, but the high one's loss is high.
        (group_surfaces(0.5, 0.6, 1.0), group_surfaces(0.1, 0.05, 1.0)),
    ],
)
def test_no_trivial_shape_makes_the_low_layers_invariant(one, other):
    moved = pd.concat([one.query("task == 'cola'"), other.query("task == 'trec'")])
    verdict = judge("low-invariant", {"landscapes": usual()["landscapes"], "group_surfaces": moved})
    assert len(verdict.groups) == 2 and not verdict.of(HOLDS)


@pytest.mark.parametrize(
    ("key", "record"),
    [
        ("rollback", {"rollbacks": rollbacks(0.7, 0.7, 0.7, noise=0.2)}),
        # A single third that differs does not order all three.
        ("rollback", {"rollbacks": rollbacks(0.9, 0.9, 0.4)}),
        ("robust-overfitting", {"long_training": long_training(between=0.1)}),
        ("robust-overfitting", {"long_training": long_training(spread=0.1)}),
    ],
)
def test_no_trivial_shape_reproduces_a_claim(key, record):
    assert judge(key, record).outcome not in (REPRODUCED, CANNOT_BE_TESTED)


def test_only_a_training_that_was_continued_is_judged():
    def verdict(**shapes):
        return judge("robust-overfitting", {"long_training": long_training(**shapes)})

    assert verdict(separate=0.4).outcome == REPRODUCED and verdict(last=0.3, separate=0.2).outcome == CONTRADICTED
    old = {"long_training": long_training().query("training == 'separate'").drop(columns="training")}
    assert "only a separate one" in judge("robust-overfitting", old).reason
    kept, barrier = (part.interval for part in verdict(spread=0.05).groups[0].parts)
    assert barrier.low < barrier.estimate < barrier.high == 0, "no interval goes beyond what its measure can be"


def test_a_model_from_scratch_without_an_optimum_is_named_and_left_out():
    record = landscapes()
    table = record["ends"]
    table.loc[(table["task"] == "trec") & (table["init"] == SCRATCH), "loss"] = 1.05
    verdict = judge("wider-optima", {"landscapes": record})
    assert [group.name for group in verdict.groups] == ["CoLA"] and "no optimum" in verdict.left_out["TREC-50"]


def test_tasks_that_were_not_learned_take_no_part():
    for key, verdict in verdicts(usual(), {"trec": "TREC was not learned"}).items():
        assert not any("TREC" in group.name for group in verdict.groups), key
        assert key == "robust-overfitting" or list(verdict.left_out.values()) == ["TREC was not learned"]


def test_what_a_landscape_does_not_show_is_left_out():
    record = landscapes()
    record["models"] = record["models"].assign(examples=2_000)
    record["surfaces"] = record["surfaces"].assign(error=0.3)
    found = verdicts({"landscapes": record, "trajectories": trajectories().query("share == 0 or share > 0.4")})
    assert "10 times as many" in found["scratch-needs-data"].reason
    assert found["error-follows-loss"].outcome == CANNOT_BE_TESTED, "an error that is the same everywhere"
    assert "raise `states`" in found["straighter"].reason


def test_the_papers_own_table_holds():
    paper = {  # Table 1, page 9
        "mnli": (0.8673, 0.8471, 0.3285),
        "rte": (0.7329, 0.7004, 0.4729),
        "sst2": (0.9369, 0.9312, 0.5929),
        "mrpc": (0.8799, 0.8015, 0.7817),
    }
    tables = [rollbacks(*accuracies, tasks=[task], examples=3000) for task, accuracies in paper.items()]
    verdict = judge("rollback", {"rollbacks": pd.concat(tables)})
    assert verdict.outcome == REPRODUCED and len(verdict.groups) == 4


def test_exhibits_say_what_the_records_do(tmp_path):
    names = chapters.executed(3, usual(), tmp_path, tag="")[1]
    made = {one.key.removeprefix("hao2019-"): one for one in names["run"].exhibits}
    assert {f"figure-{number}" for number in range(1, 8)} < set(made)
    assert "50% of the squared displacement" in made["figure-3"].caption and "continued" in made["figure-4"].caption
    steps = made["figure-2"].table.groupby("init")["step"].max()
    assert steps.to_dict() == {PRETRAINED: 100, SCRATCH: 200}, "the long training is not a task's model"
    shown = made["table-1"].shown.set_index("task")
    assert shown.loc["MNLI", "paper, high"] == "32.85 (−53.69)" and pd.isna(shown.loc["MNLI", "fine-tuned"])
    assert re.fullmatch(r"40\.0% \(−50\.0 ± \d\.\d\)", shown.loc["TREC-50", "high rolled back"])
    row = made["measures"].table.query("init == 'scratch'").iloc[0]
    # |α − 1| reaches 0.1 above the end at 0.1 on both sides; the grid of the lines is a fortieth.
    assert row["width"] == pytest.approx(0.2, abs=0.02) and row["width_whole"] and row["climb"] > 0.5


SECOND = {"rte": "mrpc", "mrpc": "rte"}
GRID = {"low": -1, "high": 2, "points": 4, "line_points": 7, "examples": 20, "bfloat16": False}
HOW = {"second": SECOND, "grid": GRID, "device": "cpu"}


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
    with few_development_examples():
        return prepare(wanted, Store(tmp_path_factory.mktemp("models")), workers=1, log=lambda line: None)


@pytest.fixture(scope="module")
def models(checkpoints):
    return Models(checkpoints, SECOND, "cpu")


@pytest.fixture(autouse=True)
def few_examples_and_a_folder(monkeypatch, tmp_path):
    """Forty development examples, and a runs folder of each test's own."""
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    with few_development_examples():
        yield


def test_start_and_end_of_a_surface_are_the_models_themselves(models, checkpoints, tmp_path):
    one, logged = {"task": "mrpc", "init": PRETRAINED, "seed": 0} | HOW, []
    found = hao2019.landscapes(checkpoints, **one)
    ordinary = models.ordinary("mrpc", PRETRAINED, 0)
    model, examples = ordinary.model(), encoded(ordinary, "train")
    evaluate = ClassifierLoss(model, examples, range(7), limit=20)
    cells = select(found["surfaces"]).query("split == 'train' and beta == 0").set_index("alpha")
    for alpha, there in ((0, encoders.load_weights(encoders.locate(ENCODER))), (1, model)):
        assert cells.loc[alpha, "loss"] == pytest.approx(evaluate(layer_parameters(there, range(7))).loss, abs=1e-5)
    everything = ClassifierLoss(model, examples, range(7))(layer_parameters(model, range(7)))
    end = select(found["ends"]).query("split == 'train'")
    assert end["loss"].item() == pytest.approx(everything.loss, abs=1e-5)
    # Twenty examples in ten folds: each is left out once, so that the replicates have the mean of all.
    for split, value in (("train", "loss"), ("validation", "error")):
        cells = found["surfaces"][found["surfaces"]["split"] == split]
        by_fold = cells.pivot(index=["alpha", "beta"], columns="fold", values=value)
        assert by_fold.columns.tolist() == [WHOLE, *range(10)]
        assert by_fold.drop(columns=WHOLE).mean(axis=1).to_numpy() == pytest.approx(by_fold[WHOLE].to_numpy(), abs=1e-5)
    along = select(found["lines"].assign(control="")).query("direction == @records.OPTIMISATION")["alpha"]
    assert along.between(0, 1).sum() >= 41 and along.is_unique and {-1.0, 0.0, 1.0, 2.0} <= set(along)

    again = hao2019.landscapes(checkpoints, **one, log=logged.append)
    assert logged == [], "a finished surface is read, not measured again"
    pd.testing.assert_frame_equal(again["surfaces"], found["surfaces"])


def test_trajectories_end_at_the_end(checkpoints):
    both = hao2019_paths.trajectories(checkpoints, "mrpc", 0, SECOND, "cpu")
    table, walk = both[both["control"] == ""], both[both["control"] == TWIN]
    assert walk["step"].tolist() == table["step"].tolist()
    assert walk.groupby("init")["angle"].last().eq(0).all() and walk["alpha"].isna().all()
    ends, starts = table.groupby("init").last(), table.groupby("init").first()
    assert set(ends.index) == set(records.INITS)
    assert ends["alpha"].between(0.99, 1.01).all() and (ends["beta"] < 0.05).all() and (ends["share"] == 1).all()
    assert (starts["alpha"] == 0).all() and table[table["step"] == 0]["angle"].isna().all()


def test_the_way_to_a_long_training_begins_at_its_first_part_or_at_a_finished_training(models, checkpoints):
    whole = hao2019_paths.long_training(checkpoints, "mrpc", 0, **HOW)
    assert whole[whole["kind"] == records.CELL]["training"].eq(CONTINUED).all()
    continued, (*_, finished, _) = models.continued["mrpc", 0], models.trained["mrpc", PRETRAINED, 0]
    references = {CONTINUED: continued.model_at(6), SEPARATE: finished.model()}
    for training, reference in references.items():
        rows = whole[whole["training"] == training]
        table = select(rows)
        states, between = table[table["kind"] == records.STATE], table[table["kind"] == BETWEEN]
        assert states["epoch"].tolist() == [0, 1, 2, 3] and between["epoch"].eq(2).all()
        at_first = one_by_one(reference, encoded(finished, "validation"))[1].mean()
        assert between["error"].iloc[0] == pytest.approx(at_first)
        assert between["error"].iloc[-1] == pytest.approx(states["error"].iloc[-1]), "heads are on the way, too"
        at_random = rows[(rows["kind"] == BETWEEN) & (rows["control"] == TWIN) & (rows["fold"] == WHOLE)]
        assert at_random["error"].iloc[0] == between["error"].iloc[0] and len(at_random) == len(between)


def test_rollback_is_the_accuracy_of_a_model_with_these_layers_rolled_back(models, checkpoints):
    record = hao2019.rollbacks(checkpoints, "mrpc", 0, SECOND, device="cpu")
    means = record.groupby(["group", "control"])["score"].mean()
    checkpoint = models.ordinary("mrpc", PRETRAINED, 0)
    examples = encoded(checkpoint, "validation")
    tuned, pretrained = checkpoint.model(), encoders.load_weights(encoders.locate(ENCODER))
    for group, of_group in thirds(6).items():
        rolled = copy.deepcopy(tuned)
        layers.roll_back(rolled, pretrained, of_group)
        assert means[group, ""] == pytest.approx(1 - one_by_one(rolled, examples)[1].mean())
    assert means[records.FULL].item() == pytest.approx(1 - one_by_one(tuned, examples)[1].mean())


def test_the_surfaces_of_all_groups_pass_through_the_model(checkpoints):
    record = hao2019.group_surfaces(checkpoints, "mrpc", 0, **HOW)
    cells = select(record).query("alpha == 0 and beta == 0")
    assert cells["group"].tolist() == ["low", "middle", "high"] and np.ptp(cells["loss"]) < 1e-5
    at_random = record[(record["control"] == TWIN) & (record["fold"] == WHOLE)]
    assert (at_random["beta"] == 0).all() and len(at_random) == 3 * 4
    assert at_random[at_random["alpha"] == 0]["loss"].to_numpy() == pytest.approx(cells["loss"].to_numpy(), abs=1e-5)


def test_a_random_walk_turns_as_steps_in_many_dimensions_do():
    steps = np.random.default_rng(0).normal(size=(4, 200_000)) * np.array([[3.0], [1.0], [2.0], [1.0]])
    points = np.vstack([np.zeros(200_000), steps.cumsum(axis=0)])
    trajectory = [{"x": torch.from_numpy(point)} for point in points]
    angles = hao2019_paths.turn_of_random_walk(np.array([0.0, *np.linalg.norm(steps, axis=1)]))
    cosines = project(trajectory, trajectory[0], trajectory[-1], trajectory[1]).cosines
    assert np.degrees(np.arccos(cosines))[1:] == pytest.approx(angles[1:], abs=0.5)


def test_a_task_is_left_out_where_a_training_or_that_of_its_second_task_diverged(checkpoints):
    again = []
    for one in checkpoints:
        made = one.manifest["specification"] | {"seed": 1}
        diverged = made["task"] == "rte" and made["encoder"].startswith("random:")
        manifest = one.manifest | {"specification": made, "diverged": diverged}
        again.append(dataclasses.replace(one, manifest=manifest))
    both = [*checkpoints, *again]
    assert hao2019.rollbacks(both, "mrpc", 1, SECOND, device="cpu").empty
    assert hao2019_paths.trajectories(both, "mrpc", 1, SECOND, "cpu").empty
    assert hao2019.group_surfaces(both, "rte", 1, **HOW).empty
    assert all(table.empty for table in hao2019.landscapes(both, "rte", PRETRAINED, 1, **HOW).values())
    with pytest.raises(ValueError, match="lower learning_rate"):
        Models(again, SECOND, "cpu")
