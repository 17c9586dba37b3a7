"""Chapter 3 measures models of seconds, and says what it cannot measure."""

import copy
import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from tests.conftest import ENCODER, short_schedule
from transformers import set_seed

from fivelenses import tasks
from fivelenses.chapters import ParameterError, settings
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import layer_parameters, project
from fivelenses.models import encoders, heads, layers, thirds
from fivelenses.papers.hao2019 import surfaces, training_paths
from fivelenses.papers.hao2019.curvature import end_curvature
from fivelenses.papers.hao2019.planes import Models, encoded
from fivelenses.records import (
    ALL,
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
    STATE,
    TWIN,
    WHOLE,
    select,
)


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
    assert models.ordinary("mrpc", PRETRAINED, 0).manifest["steps"] == 3
    assert models.ordinary("mrpc", SCRATCH, 0).manifest["steps"] == 6
    longest = models.finished_and_long("mrpc", 0)
    assert [one.manifest["steps"] for one in longest] == [6, 9]
    assert {one.specification.encoder for one in longest} == {ENCODER}
    continued = models.continued("mrpc", 0)
    assert continued.specification.schedule.further_epochs == 1 and continued.manifest["steps"] == 9


def test_a_long_training_is_compared_with_the_tasks_model_where_this_has_its_first_epochs(checkpoints):
    two = Models([one for one in checkpoints if one.specification.schedule.epochs < 3], SECOND, "cpu")
    finished, long = two.finished_and_long("mrpc", 0)
    assert finished == two.ordinary("mrpc", PRETRAINED, 0) and long.manifest["steps"] == 6


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
    landscapes = surfaces.landscapes(checkpoints, **one, log=quiet)
    assert len(select(landscapes["surfaces"])) == 2 * 16 and len(landscapes["models"]) == 1
    cells = select(landscapes["surfaces"]).query("split == 'train'")
    model = models.ordinary("mrpc", PRETRAINED, 0).model()
    examples = encoded(models.ordinary("mrpc", PRETRAINED, 0), "train")
    assert examples.num_rows == 48
    evaluate = ClassifierLoss(model, examples, range(7), limit=20)
    pretrained, axis = encoders.load_weights(encoders.locate(ENCODER)), cells[cells["beta"] == 0].set_index("alpha")
    for alpha, there in ((0, pretrained), (1, model)):
        direct = evaluate(layer_parameters(there, range(7)))
        assert axis.loc[alpha, "loss"] == pytest.approx(direct.loss, abs=1e-5)
        assert axis.loc[alpha, "error"] == pytest.approx(direct.error)
    table = landscapes["models"]
    assert table["angle"].between(1, 179).all() and (table["norm"] > 0).all()
    everything = ClassifierLoss(model, examples, range(7))(layer_parameters(model, range(7)))
    end = select(landscapes["ends"]).query("split == 'train'")
    assert end["loss"].item() == pytest.approx(everything.loss, abs=1e-5)
    # Twenty examples in ten folds: each is left out once, so that the replicates have the mean of all.
    for split, value in (("train", "loss"), ("validation", "error")):
        cells = landscapes["surfaces"]
        by_fold = cells[cells["split"] == split].pivot(index=["alpha", "beta"], columns="fold", values=value)
        assert by_fold.columns.tolist() == [WHOLE, *range(10)]
        assert by_fold.drop(columns=WHOLE).mean(axis=1).to_numpy() == pytest.approx(by_fold[WHOLE].to_numpy(), abs=1e-5)

    logged = []
    again = surfaces.landscapes(checkpoints, **one, log=logged.append)
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
    record = surfaces.landscapes(checkpoints, "mrpc", PRETRAINED, 0, line_points=7, **GRID, log=quiet)
    lines = record["lines"][record["lines"]["fold"] == WHOLE]
    along = lines[lines["direction"] == OPTIMISATION]["alpha"]
    assert along.between(0, 1).sum() >= 41 and along.is_unique and {-1.0, 0.0, 1.0, 2.0} <= set(along)
    assert lines[lines["direction"] == RANDOM]["alpha"].between(0, 1).sum() < 5


def test_the_way_to_a_long_training_leads_from_the_state_after_its_first_part_or_from_a_finished_one(
    models, checkpoints, tmp_path, monkeypatch
):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    loss_of, limits = training_paths.loss_of, []
    monkeypatch.setattr(training_paths, "loss_of", lambda *given: limits.append(given[2]) or loss_of(*given))
    whole = training_paths.long_training(checkpoints, "mrpc", 0, **GRID, log=quiet)
    assert limits == [GRID["grid_examples"]] + 2 * [None] * (4 + 2 * 11), "four states and two ways are on all, twice"
    assert whole[whole["kind"] == CELL]["training"].eq(CONTINUED).all()
    continued, (finished, _) = models.continued("mrpc", 0), models.finished_and_long("mrpc", 0)
    references = {CONTINUED: continued.model_at(6), SEPARATE: finished.model()}
    for training, reference in references.items():
        rows = whole[whole["training"] == training]
        table = select(rows)
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
    record = surfaces.rollbacks(checkpoints, "mrpc", 0, SECOND, device="cpu")
    means = record.groupby(["group", "control"])["score"].mean()
    checkpoint = models.ordinary("mrpc", PRETRAINED, 0)
    examples = encoded(checkpoint, "validation")
    tuned, pretrained = checkpoint.model(), encoders.load_weights(encoders.locate(ENCODER))
    for group, of_group in thirds(6).items():
        rolled = copy.deepcopy(tuned)
        layers.roll_back(rolled, pretrained, of_group)
        assert means[group, ""] == pytest.approx(accuracy(rolled, examples))
    right = record[record["group"] == FULL].sort_values("example")
    assert right["score"].tolist() == [accuracy(tuned, examples.select([row])) for row in range(40)]


def test_the_surfaces_of_all_groups_pass_through_the_model(checkpoints, tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    record = surfaces.group_surfaces(checkpoints, "mrpc", 0, **GRID, log=quiet)
    cells = select(record)
    assert cells["group"].unique().tolist() == ["low", "middle", "high"]
    at_end = cells[(cells["alpha"] == 0) & (cells["beta"] == 0)]["loss"]
    assert np.ptp(at_end) < 1e-5
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
    assert found.converged("rte", 0) and not found.converged("rte", 1) and not found.converged("mrpc", 1)
    assert surfaces.rollbacks(both, "mrpc", 1, SECOND, device="cpu").empty
    assert training_paths.trajectories(both, "mrpc", 1, SECOND, "cpu").empty
    assert surfaces.group_surfaces(both, "rte", 1, **GRID).empty
    landscapes = surfaces.landscapes(both, "rte", PRETRAINED, 1, line_points=7, **GRID)
    assert set(landscapes) == {"surfaces", "lines", "ends", "models"} and all(
        table.empty for table in landscapes.values()
    )


@pytest.mark.parametrize("epochs", [2, 3])
def test_a_long_training_or_a_finished_one_that_diverged_leaves_itself_out_alone(epochs, with_diverged):
    again = with_diverged(("mrpc", PRETRAINED, epochs))
    assert Models(again, SECOND, "cpu").converged("mrpc", 1)
    assert training_paths.long_training(again, "mrpc", 1, **GRID).empty


def test_a_run_in_which_all_diverged_is_refused_with_what_to_do(with_diverged):
    with pytest.raises(ValueError, match="lower learning_rate"):
        Models(with_diverged(("rte", SCRATCH), ("mrpc", PRETRAINED)), SECOND, "cpu")


def test_every_group_of_a_model_has_the_curvature_of_the_examples_of_a_cell(checkpoints):
    table = end_curvature(checkpoints, "rte", PRETRAINED, 0, SECOND, grid_examples=12, device="cpu")
    assert table["group"].tolist() == [ALL, "low", "middle", "high"] and (table["examples"] == 12).all()
    measured = table.set_index("group")
    assert (measured["top"] > 0).all() and (measured["top"][1:] <= measured["top"][ALL] * 1.01).all()
    # A length over all layers is that of its parts, the embeddings among them.
    assert np.sqrt((measured["norm"][1:] ** 2).sum()) < measured["norm"][ALL]
