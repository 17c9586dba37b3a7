"""Chapter 4: shapes with known answers, each predicate on tables made to pass and to fail, and the measurements."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import ENCODER, short_schedule

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, REPRODUCED, judge
from fivelenses.models import layers
from fivelenses.papers.singh2020 import figures, measure
from fivelenses.papers.singh2020.claims import CLAIMS, layers_needed
from fivelenses.papers.singh2020.shapes import concavity, fit_shape
from fivelenses.runs.settings import settings as chapter_settings
from fivelenses.tasks.examples import encode, subset

DEPTH = 12
BY_KEY = {claim.key: claim for claim in CLAIMS}
PLACES = np.repeat(np.arange(DEPTH + 1) / DEPTH, 3)
NOISE = np.tile([-0.002, 0.0, 0.002], DEPTH + 1)


def line(share):
    return 0.9 - 0.3 * share


def late(share):
    return 0.9 - 0.3 * share**4


def early(share):
    return 0.9 - 0.3 * (1 - (1 - share) ** 3)


def flat(share):
    return 0.6 + 0.0 * share


def step(share):
    return np.where(share < 0.7, 0.9, 0.6)


@pytest.mark.parametrize(("form", "best"), [(line, "line"), (lambda x: 0.9 - 0.3 * x**2, "parabola"), (step, "step")])
def test_the_form_that_made_the_points_fits_them_best(form, best):
    assert fit_shape(PLACES, form(PLACES) + NOISE).best == best


def test_a_straight_line_is_not_bent_and_a_late_fall_is_concave():
    straight, bent = (fit_shape(PLACES, form(PLACES) + NOISE) for form in (line, late))
    assert straight.line_r2 > 0.99 and straight.curvature_p > 0.05 and abs(straight.curvature) < 0.05
    assert bent.curvature < 0 and bent.curvature_p < 1e-6
    assert fit_shape(PLACES, early(PLACES) + NOISE).curvature > 0
    assert fit_shape(PLACES, step(PLACES) + NOISE).step_centre == pytest.approx(0.7, abs=0.05)


@settings(max_examples=20, deadline=None)
@given(scale=st.floats(0.1, 10), shift=st.floats(-3, 3))
def test_a_shape_does_not_depend_on_the_unit_of_the_score(scale, shift):
    before, after = fit_shape(PLACES, late(PLACES) + NOISE), fit_shape(PLACES, scale * (late(PLACES) + NOISE) + shift)
    assert after.curvature == pytest.approx(before.curvature, rel=1e-5)
    assert after.line_r2 == pytest.approx(before.line_r2, rel=1e-5)
    assert after.best == before.best


def test_concavity_of_curves_worked_by_hand():
    place = np.array([0.0, 0.5, 1.0])
    assert concavity(place, np.array([1.0, 0.5, 0.0])) == pytest.approx(0.0)
    assert concavity(place, np.array([1.0, 1.0, 0.0])) == pytest.approx(0.25)
    assert concavity(place, np.array([1.0, 0.0, 0.0])) == pytest.approx(-0.25)


@pytest.mark.parametrize(
    ("place", "score", "message"),
    [
        (PLACES, flat(PLACES), "does not fall"),
        (PLACES, np.where(PLACES == 0.5, np.nan, line(PLACES)), "not finite"),
        (PLACES[:6], line(PLACES[:6]), "seven points at four places, not 6 at 2"),
        (PLACES, line(PLACES)[:-1], "as many scores as places"),
    ],
)
def test_a_curve_without_a_shape_is_refused(place, score, message):
    with pytest.raises(ValueError, match=message):
        fit_shape(place, score)


def test_concavity_wants_the_whole_range():
    with pytest.raises(ValueError, match="increase from 0 to 1"):
        concavity(np.array([0.0, 0.5]), np.array([1.0, 0.0]))


def test_layers_needed_are_interpolated():
    kept = np.array([0, 1, 2, 3])
    # Half of the rise over 0.5 is 0.7: half way from 0.6 at one layer to 0.8 at two.
    assert layers_needed(kept, np.array([0.5, 0.6, 0.8, 0.9]), 0.5) == pytest.approx(1.5)
    assert layers_needed(kept, np.array([0.9, 0.6, 0.8, 0.9]), 0.5) == 0


def scores(task: str, forms: dict, column: str = "reinitialised", null: float = 0.5) -> pd.DataFrame:
    """A table of one task with a curve for each number of examples."""
    counts = range(DEPTH + 1) if column == "reinitialised" else range(DEPTH)
    rows = [
        {
            "task": task,
            "examples": examples,
            "seed": seed,
            column: count,
            "layers": DEPTH,
            "score": float(form(count / DEPTH)) + 0.001 * (seed - 1),
            "null_rate": null,
        }
        for examples, form in forms.items()
        for seed in range(3)
        for count in counts
    ]
    return pd.DataFrame(rows)


def distances(task: str, slopes: dict) -> pd.DataFrame:
    rows = [
        {"task": task, "examples": examples, "seed": seed, "layer": layer, "part": "output", "absolute": slope * layer}
        for examples, slope in slopes.items()
        for seed in range(3)
        for layer in range(1, DEPTH + 1)
    ]
    return pd.DataFrame(rows)


def below(form, by):
    return lambda share: form(share) - by


def probe(form):
    # The score of a probe on the layers that are left, which falls sooner and peaks without the top two.
    return lambda share: float(form(min(1.0, share * 1.5))) - (0.05 if 0.1 < share < 0.2 else 0.2)


PASSING = {
    "singh2020-figure-1a": scores("sst2", {1000: below(line, 0.0), 10: below(early, 0.05)}),
    "singh2020-figure-1b": scores("qnli", {1000: late, 10: below(line, 0.05)}),
    "singh2020-figure-1d": scores("cola", {1000: below(line, 0.4)}, null=0.0),
    "singh2020-figure-2a": scores("sst2", {1000: probe(line)}, "removed"),
    "singh2020-figure-2b": scores("qnli", {1000: probe(late)}, "removed"),
    "singh2020-figure-3a": distances("sst2", {1000: 0.3, 10: 0.1}),
    "singh2020-figure-3b": distances("qnli", {1000: 0.3, 10: 0.1}),
}
FAILING = {
    "singh2020-figure-1a": scores("sst2", {1000: early, 10: below(line, 0.05)}),
    "singh2020-figure-1b": scores("qnli", {1000: early, 10: below(line, 0.05)}),
    "singh2020-figure-1d": scores("cola", {1000: below(late, 0.4)}, null=0.0),
    "singh2020-figure-2a": scores("sst2", {1000: below(late, -0.05)}, "removed"),
    "singh2020-figure-2b": scores("qnli", {1000: below(late, -0.05)}, "removed"),
    "singh2020-figure-3a": distances("sst2", {1000: 0.1, 10: 0.3}),
    "singh2020-figure-3b": distances("qnli", {1000: -0.1, 10: -0.3}),
}


@pytest.mark.parametrize("key", BY_KEY)
def test_a_table_that_shows_the_claim_passes(key):
    assert judge(BY_KEY[key], PASSING).verdict == REPRODUCED


@pytest.mark.parametrize("key", BY_KEY)
def test_a_table_that_shows_the_contrary_fails(key):
    assert judge(BY_KEY[key], FAILING).verdict == NOT_REPRODUCED


@pytest.mark.parametrize(
    "key", ["less-data-more-reliance", "qnli-concave-sst-linear", "cola-linear", "probing-needs-more"]
)
def test_curves_that_do_not_fall_cannot_be_tested(key):
    unchanging = {name: table.assign(score=0.6) if "figure-1" in name else table for name, table in PASSING.items()}
    verdict = judge(BY_KEY[key], unchanging)
    assert verdict.verdict == CANNOT_BE_TESTED and "0.03" in verdict.reason


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two sizes without, and one with re-initialised layers."""
    plain = short_schedule()
    wanted = [
        specify(ENCODER, "sst2", "toyworld", 0, plain, examples=size, reinitialised=drawn)
        for size, drawn in ((48, ()), (96, ()), (96, (1, 2, 3, 4, 5, 6)))
    ]
    return prepare(wanted, Store(tmp_path_factory.mktemp("models")), workers=1, log=lambda line: None)


def test_the_tables_say_what_the_models_are(models):
    table = figures.scores(tables.models(models))
    assert table["examples"].tolist() == [48, 96, 96] and table["reinitialised"].tolist() == [0, 0, 6]
    assert (table["layers"] == 6).all() and table["score"].between(0, 1).all()
    moved = measure.weight_distances(models)
    # The model with re-initialised layers has moved before it was trained, so it is left out.
    assert moved.groupby(["examples", "layer"])["part"].count().tolist() == [6] * 12
    assert (moved["absolute"] > 0).all() and (moved["relative"] < 1).all()


def test_no_reinitialised_layer_is_plain_fine_tuning():
    plain = specify(ENCODER, "sst2", "toyworld", 0, short_schedule(), examples=48)
    none = specify(ENCODER, "sst2", "toyworld", 0, short_schedule(), examples=48, reinitialised=[])
    assert none == plain and none.address == plain.address


def test_all_layers_reinitialised_keep_embeddings_biases_and_norms(tmp_path, toy_model):
    untrained = short_schedule(epochs=0)
    wanted = specify(ENCODER, "sst2", "toyworld", 0, untrained, examples=48, reinitialised=tuple(range(1, 7)))
    made = prepare([wanted], Store(tmp_path), workers=1, log=lambda line: None)[0].model().base_model
    before = toy_model.state_dict()
    changed = {
        name
        for name, tensor in made.state_dict().items()
        if not name.startswith("pooler") and not tensor.equal(before[name])
    }
    drawn = {id(map.weight) for layer in range(1, 7) for map in layers.projections(made, layer).values()}
    assert changed == {name for name, tensor in made.named_parameters() if id(tensor) in drawn}
    assert len(changed) == 36


def test_the_plan_of_the_chapter_is_one_list_without_repetition():
    chosen = chapter_settings(4, "tiny")
    specifications = chosen.specifications()
    assert len(specifications) == len({one.address for one in specifications})
    sizes = chosen.sizes(4_000)
    counts = {(one.examples, len(one.reinitialised), one.seed) for one in specifications if one.task == "sst2"}
    assert counts == {(size, count, seed) for size in sizes for count in (0, 2, 4, 6) for seed in (0, 1, 2)}
    # What is re-initialised is the top of the encoder.
    assert {one.reinitialised for one in specifications} == {(), (5, 6), (3, 4, 5, 6), (1, 2, 3, 4, 5, 6)}
    assert all(one.examples_seed == one.seed for one in specifications)


def test_few_examples_are_read_more_often_where_steps_are_asked_for():
    chosen = chapter_settings(4, "tiny", min_steps=60)
    by_size = {one.examples: one.schedule for one in chosen.specifications() if one.task == "cola"}
    assert by_size[3000].epochs == 1.5
    assert by_size[900].steps(900) >= 60


@pytest.fixture
def sst2(monkeypatch):
    """The first examples of SST-2, which are then all that can be loaded."""
    data = tasks.load("sst2", "toyworld")
    few = {split: table.select(range(200)) for split, table in data.splits.items()}
    some = tasks.TaskData(data.task, data.source, few, data.labels)
    monkeypatch.setattr(tasks, "load", lambda name, source: some)
    return some


def test_features_of_all_truncations_equal_those_of_truncated_encoders(toy_model, toy_tokenizer, sst2):
    examples = encode(sst2, "validation", toy_tokenizer, 64)
    at_once = represent(toy_model, examples, range(1, 7))
    for kept in (1, 3, 6):
        truncated = copy.deepcopy(toy_model)
        layers.truncate(truncated, kept)
        np.testing.assert_allclose(represent(truncated, examples, [kept])[kept], at_once[kept], rtol=1e-5, atol=1e-5)


def test_frozen_probes_read_the_examples_of_the_tuned_models(sst2):
    table = measure.frozen_probes(ENCODER, "sst2", "toyworld", {"sst2": [50, 200]}, [0, 1], {"sst2": 64})
    assert len(table) == 2 * 2 * 6 and sorted(table["removed"].unique()) == list(range(6))
    assert table["score"].between(0, 1).all()
    # All examples are the same ones for every seed.
    whole = table[table["examples"] == 200].pivot(index="removed", columns="seed", values="score")
    assert (whole[0] == whole[1]).all()


def test_smaller_parts_of_the_data_are_parts_of_the_larger():
    labels = np.array(tasks.load("sst2", "toyworld").splits["train"]["label"])
    for seed in (0, 1):
        parts = [set(subset(labels, size, seed)) for size in (40, 400, 4000)]
        assert parts[0] < parts[1] < parts[2]
        shares = [np.mean([labels[row] for row in part]) for part in parts]
        assert np.ptp(shares) < 0.03
    assert set(subset(labels, 40, 0)) != set(subset(labels, 40, 1))


def models_table(task: str, counts, seeds=range(3)) -> pd.DataFrame:
    """A record of models whose score falls with the number of re-initialised layers."""
    rows = [
        {"task": task, "examples": 90, "seed": seed, "reinitialised": count, "score": 0.9 - 0.1 * count + 0.01 * seed}
        for count in counts
        for seed in seeds
    ]
    return pd.DataFrame(rows).assign(null_rate=0.5, diverged=False)


@pytest.mark.parametrize(("counts", "seeds"), [((0, 2, 4), range(3)), ((0, 1, 2, 4), range(1))])
def test_curves_of_too_few_points_have_no_table_of_shapes_and_the_page_says_why(counts, seeds):
    absent = figures.table_of_shapes(models_table("sst2", counts, seeds))
    assert "because a shape needs 7 scores at 4 numbers of re-initialised layers" in absent.sentence
    table = figures.reinitialisation(models_table("cola", counts, seeds), "cola", [90]).table
    verdict = judge(BY_KEY["cola-linear"], {"singh2020-figure-1d": table})
    assert verdict.verdict == CANNOT_BE_TESTED and "7 scores at 4 numbers" in verdict.reason


def test_shapes_are_tabled_where_curves_have_enough_points():
    table = figures.table_of_shapes(models_table("sst2", range(5))).table
    assert table["line_r2"].item() > 0.99 and table["none"].item() == pytest.approx(0.51)


def test_a_figure_has_a_row_per_model_and_the_null_that_it_draws():
    models = pd.concat([models_table("sst2", range(5)), models_table("qnli", range(5))])
    exhibit = figures.reinitialisation(models, "sst2", [90])
    assert exhibit.key == "singh2020-figure-1a" and len(exhibit.table) == 15
    assert (exhibit.table["layers"] == 4).all() and (exhibit.table["null_rate"] == 0.5).all()
    matched = figures.figure_1c(models, ["sst2", "qnli"], 90)
    assert set(matched.table["task"]) == {"sst2", "qnli"} and matched.table["rise"].max() == pytest.approx(0.42)
    assert figures.reinitialisation(models.replace("sst2", "rte"), "rte", [90]).key == "singh2020-re-initialised-rte"


def test_sublayers_need_more_than_the_output_projections():
    outputs = distances("sst2", {1000: 0.3}).assign(relative=0.1, steps=5)
    assert "output projections alone" in figures.table_of_sublayers(outputs).sentence
    both = pd.concat([outputs, outputs.assign(part="query", relative=0.2)])
    assert figures.table_of_sublayers(both).table.groupby("part")["relative"].mean().to_dict() == {
        "output": pytest.approx(0.1),
        "query": pytest.approx(0.2),
    }


def test_the_sizes_of_a_task_are_measured_in_words_and_numbers():
    data = pd.concat([measure.sizes(task, "toyworld") for task in ("sst2", "trec")])
    assert data["training_examples"].tolist()[0] == 4_000
    table = figures.table_1(data, {"sst2": [3000, 900], "trec": [3000]}).table
    assert table["sizes"].tolist() == ["3,000, 900", "3,000"] and table["paper_training"].fillna("").tolist() == [
        "67k",
        "",
    ]


def test_another_encoder_has_the_same_plan_at_its_own_rate():
    other = "toy-bert/seed-1"
    chosen = chapter_settings(4, "tiny", encoder=other, learning_rate_by_encoder={other: 1e-4}, min_steps=60)
    assert {one.encoder for one in chosen.specifications()} == {other}
    assert {one.schedule.learning_rate for one in chosen.specifications()} == {1e-4}
    few = [one.schedule for one in chosen.specifications() if one.examples == 900]
    assert few and all(one.steps(900) >= 60 for one in few)
    assert {one.reinitialised for one in chosen.with_all_layers()} == {()}
