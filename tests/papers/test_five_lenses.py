"""Chapter 6: its statistics on cases worked by hand, and its tables and pictures on curves that are known."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from fivelenses.papers.five_lenses import agreement, figures, instruments, statement
from fivelenses.papers.five_lenses.measure import MEASURES
from fivelenses.papers.five_lenses.rank_statistics import (
    number,
    partial_correlation,
    rank_correlation,
)
from fivelenses.runs.settings import CHAPTERS

LAYERS = np.arange(1, 7)
MODELS = tuple((task, seed) for task in ("mnli", "rte", "mrpc") for seed in (0, 1))
values = st.lists(st.integers(-50, 50), min_size=3, max_size=8)


def changes(curve, models=MODELS, layers=LAYERS, entering=None) -> pd.DataFrame:
    """A table of changes with curve(key, task, seed), and what enters a layer, nothing by default."""
    rows = []
    for task, seed in models:
        for key in instruments.BY_KEY:
            below = np.zeros(len(layers)) if entering is None else entering(key, task, seed)
            for layer, value, under in zip(layers, curve(key, task, seed), below, strict=True):
                rows.append((task, seed, key, layer, float(value), 0.05, float(under)))
    table = pd.DataFrame(rows, columns=["task", "seed", "measure", "layer", "value", "null", "entering"])
    return table.assign(fold=-1, control="")


def random_curves(seed=0):
    random = np.random.default_rng(seed)
    return lambda measure, task, number: random.normal(size=len(LAYERS))


def constant_weights(measure, task, seed):
    return np.ones(6) if measure == "weights" else LAYERS * (1.0 if seed else 2.0)


def test_rank_correlations_worked_by_hand():
    assert rank_correlation([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert rank_correlation([1, 2, 3], [9, 5, -1]) == -1
    # Two of three tied: ranks 1.5, 1.5, 3 beside 1, 2, 3.
    assert rank_correlation([4, 4, 7], [1, 2, 3]) == pytest.approx(np.sqrt(3) / 2)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_rank_correlation_is_symmetric_keeps_under_rising_maps_and_turns_with_its_sign(data):
    first = data.draw(values)
    second = data.draw(st.lists(st.integers(-50, 50), min_size=len(first), max_size=len(first)))
    found = rank_correlation(first, second)
    rising = [value**3 + 2 * value + 7 for value in first]
    opposite = [-value for value in first]
    np.testing.assert_equal(rank_correlation(second, first), found)
    np.testing.assert_equal(rank_correlation(rising, second), found)
    # NaN equals NaN here; adding 0 makes -0 the same as 0.
    np.testing.assert_equal(rank_correlation(opposite, second) + 0.0, 0.0 - found)
    if len(set(first)) > 1 and len(set(second)) > 1:
        assert -1 <= found <= 1 and found == pytest.approx(spearmanr(first, second).statistic)
    else:
        assert np.isnan(found)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 2, np.nan], [1, 2, 3], "NaN or infinity"),
        ([1, 2, 3], [1, np.inf, 3], "NaN or infinity"),
        ([1], [1], "at least 3"),
        ([1, 2], [2, 1], "at least 3"),
        ([], [], "at least 3"),
        ([1, 2, 3], [1, 2, 3, 4], "needs the same layers"),
        ([[1, 2, 3]], [[1, 2, 3]], "needs the same layers"),
    ],
)
def test_curves_without_an_order_are_refused(first, second, message):
    with pytest.raises(ValueError, match=message):
        rank_correlation(first, second)


def test_a_partial_correlation_takes_the_third_away():
    assert partial_correlation(0.5, 0.5, 0.5) == pytest.approx(1 / 3)
    assert partial_correlation(0.25, 0.5, 0.5) == 0
    assert np.isnan(partial_correlation(0.9, 1.0, 0.9)) and np.isnan(partial_correlation(np.nan, np.nan, 0.5))


def test_numbers_are_printed_without_a_negative_zero():
    assert [number(value) for value in (0.304, -0.004, -0.25, np.nan)] == ["0.30", "0.00", "−0.25", "undefined"]


def test_the_measures_come_in_the_order_of_their_lenses_which_is_that_of_the_chapters():
    # A chapter's paper need not bring a lens that ranks layers.
    papers = [chapter.paper for chapter in CHAPTERS.values() if chapter.paper in instruments.LENSES]
    assert list(instruments.LENSES) == papers
    assert [measure.lens for measure in instruments.MEASURES] == sorted(
        (measure.lens for measure in instruments.MEASURES), key=papers.index
    )
    assert tuple(instruments.BY_KEY) == MEASURES
    fields = {field.name for field in dataclasses.fields(instruments.Measure)}
    assert set(instruments.DISTINCTIONS) == set(instruments.DIFFERENCES) <= fields


def test_measures_that_rise_alike_agree_and_have_nothing_left_beside_depth():
    table = changes(lambda measure, task, seed: LAYERS**2 + seed)
    lenses = agreement.between_lenses(table)
    assert (lenses["correlation"] == 1).all() and (lenses["low"] == 1).all() and (lenses["models"] == 6).all()
    assert lenses["given_depth"].isna().all() and (lenses["given_depth_models"] == 0).all()


def test_a_measure_that_is_the_same_at_all_layers_is_said_to_have_no_correlation():
    table = changes(constant_weights)
    pairs = agreement.between_measures(table).set_index(["first", "second"])
    of_weights = pairs[["weights" in pair for pair in pairs.index]]
    assert of_weights["correlation"].isna().all() and (of_weights["undefined"] == 6).all()
    assert (pairs.drop(of_weights.index)["correlation"] == 1).all()
    lenses = agreement.between_lenses(table)
    of_singh = (lenses[["first", "second"]] == "singh2020").any(axis=1)
    assert lenses[of_singh][["correlation", "low"]].isna().all(axis=None)
    # What is undefined counts in no mean.
    assert agreement.overall(table).estimate == 1
    assert agreement.centres(table).query("measure == 'weights'")[["centre", "top", "rises"]].isna().all(axis=None)


@settings(max_examples=10, deadline=None)
@given(scale=st.floats(0.1, 10), shift=st.floats(-5, 5), measure=st.sampled_from(list(instruments.BY_KEY)))
def test_agreement_does_not_depend_on_the_unit_of_a_measure(scale, shift, measure):
    table = changes(random_curves(2), models=MODELS[:2])
    other = table.assign(value=table["value"].where(table["measure"] != measure, scale * table["value"] + shift))
    pd.testing.assert_frame_equal(agreement.by_model(table), agreement.by_model(other))
    first, second = (agreement.centres(one) for one in (table, other))
    pd.testing.assert_frame_equal(first, second)


def test_centres_worked_by_hand():
    def curve(measure, task, seed):
        # Scaled: 0, 0.5, 1; and 1, 0, 1 with the lower of the two tops.
        return [1.0, 2.0, 3.0] if measure == "js" else [5.0, -1.0, 5.0]

    found = agreement.centres(changes(curve, MODELS[:1], np.arange(1, 4))).set_index("measure")
    assert found.loc["js", "centre"] == pytest.approx((2 * 0.5 + 3) / 1.5) and found.loc["js", "top"] == 3
    assert found.loc["svcca", "centre"] == pytest.approx(2) and found.loc["svcca", "top"] == 1
    assert found.loc["js", "rises"] == 1 and found.loc["svcca", "rises"] == 0


def test_lenses_of_two_measures_are_averaged_within_a_model():
    def curve(measure, task, seed):
        return LAYERS if measure in ("js", "weights") else -LAYERS

    found = agreement.lenses_by_model(changes(curve)).set_index(["first", "second"])["correlation"]
    # Of attention and features one goes with the weights and one against them.
    assert (found.loc["hao2020", "singh2020"] == 0).all()
    assert (found.loc["hao2019", "singh2020"] == -1).all()


def test_seeds_are_compared_within_their_task():
    def curve(measure, task, seed):
        return LAYERS if seed == 0 or task == "rte" else -LAYERS

    found = agreement.between_seeds(changes(curve)).groupby("task")["correlation"].mean()
    assert found.to_dict() == {"mnli": -1, "rte": 1, "mrpc": -1}
    assert agreement.between_seeds(changes(curve, MODELS[::2])).empty


def test_what_a_layer_adds_is_its_output_less_its_input():
    steps = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 6.0])

    def curve(measure, task, seed):
        return steps if measure in instruments.OWN else np.cumsum(steps)

    table = changes(curve, entering=lambda measure, task, seed: np.cumsum(steps) - steps)
    found = agreement.added(table)
    assert (found["added"] == 1).all() and (found["output"] == rank_correlation(LAYERS, steps)).all()


def test_measures_that_are_alike_are_told_from_those_that_are_not():
    def curve(measure, task, seed):
        return LAYERS if instruments.BY_KEY[measure].reads_activations else -LAYERS

    found = agreement.apart(changes(curve)).groupby("distinction")[["alike", "different"]].mean()
    assert found.loc["reads_activations"].tolist() == [1, -1]
    assert found.loc["knows_labels", "alike"] > found.loc["knows_labels", "different"] - 1


def test_the_widest_parting_is_named_with_its_layer():
    random = np.random.default_rng(0)
    jitter = {model: random.permutation(6) * 1e-3 for model in MODELS}

    def curve(measure, task, seed):
        straight = LAYERS + jitter[task, seed]
        # The layer of greatest change is the lowest for the weights, and the highest for all others.
        return np.roll(straight, 1) if measure == "weights" else straight

    found = agreement.parting(changes(curve))
    assert "weights" in (found.higher, found.lower) and found.layer == 1
    assert found.higher == "weights" and found.difference == 5
    assert found.correlation == pytest.approx(rank_correlation(LAYERS, np.roll(LAYERS, 1)))


def test_no_parting_is_found_where_nothing_has_a_correlation():
    with pytest.raises(ValueError, match="same at all layers"):
        agreement.parting(changes(lambda measure, task, seed: np.ones(6)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda table: table.drop(index=3), "js of the model mnli, seed 0 lacks a layer"),
        (lambda table: table.assign(value=table["value"].mask(table.index == 3)), "js of the model mnli, seed 0 lacks"),
        (lambda table: table.assign(value=np.inf), "not finite"),
        (lambda table: pd.concat([table, table]), "twice at one layer"),
        (lambda table: table[table["layer"] <= 2], "2 layers: an order of layers needs at least 3"),
        (lambda table: table[table["layer"] == 1], "1 layers: an order of layers needs at least 3"),
    ],
    ids=["missing", "NaN", "infinite", "twice", "two layers", "one layer"],
)
def test_a_damaged_table_is_refused(damage, message):
    with pytest.raises(ValueError, match=message):
        agreement.between_measures(damage(changes(random_curves())))


DRAWN = (
    figures.overview,
    figures.all_curves,
    figures.correlations,
    figures.centres,
    figures.table_of_instruments,
    figures.table_of_lenses,
    figures.greatest_change,
    figures.what_sets_apart,
    figures.what_layers_add,
)
TABLES = {
    "several models": changes(random_curves()),
    "one model": changes(random_curves(), models=MODELS[:1]),
    "a constant measure": changes(constant_weights),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_exhibit_stands_on_few_models_and_constant_measures(table, monkeypatch):
    from fivelenses.first_exhibits import style

    exhibits = [draw(table) for draw in DRAWN]
    assert len({exhibit.title for exhibit in exhibits}) == len(exhibits)
    for exhibit in exhibits:
        shown = "" if exhibit.shown is None else exhibit.shown.to_string()
        assert "nan" not in f"{shown} {exhibit.caption} {exhibit.alt}"
        if exhibit.figure is not None:
            exhibit.figure.canvas.draw()
            style.close(exhibit.figure)
    findings = statement.findings(table)
    assert all(isinstance(value, str) and "nan" not in value for value in findings.values())


def test_the_overview_marks_the_layer_of_greatest_change():
    table = changes(lambda measure, task, seed: -((LAYERS - 4) ** 2) if measure == "js" else LAYERS)
    exhibit = figures.overview(table)
    marks = [
        line.get_xdata()[0] for axes in exhibit.figure.axes[:3] for line in axes.lines if len(line.get_xdata()) > 2
    ]
    # The middle of the fourth cell.
    assert marks == [3.5, 3.5, 3.5]
    assert "attention at layer 4, features at layer 6" in exhibit.alt


def test_undefined_correlations_are_said_in_words():
    exhibit = figures.correlations(TABLES["a constant measure"])
    assert "42 correlations are undefined" in exhibit.caption
    assert "undefined" in figures.table_of_lenses(TABLES["a constant measure"]).shown.to_string()


def test_the_reason_for_a_parting_is_borne_out_only_where_the_run_says_so():
    def kinds(measure, task, seed):
        return LAYERS if instruments.BY_KEY[measure].reads_activations else -LAYERS

    found = agreement.parting(changes(kinds))
    said = statement.reason(changes(kinds), found)
    assert "which bears it out" in said and "noise alone does not set them apart" in said

    def one_of_many(measure, task, seed):
        # Parameters and activations go together on the whole, and attention goes against all.
        return -LAYERS if measure == "js" else LAYERS

    table = changes(one_of_many)
    pair = dataclasses.replace(agreement.parting(table), higher="weights", lower="js")
    assert "a layer's parameters" in statement.reason(table, pair)
    same = dataclasses.replace(pair, higher="rsa", lower="js")
    assert "differ only in what they measure" in statement.reason(table, same)
    assert "a disagreement cannot be told from noise" in statement.reason(changes(one_of_many, MODELS[::2]), pair)


def test_a_measure_that_went_the_other_way_is_also_read_by_its_size():
    def one_downwards(measure, task, seed):
        return -LAYERS if measure == "structure" else LAYERS

    table = changes(one_downwards)
    said = statement.reason(table, agreement.parting(table))
    assert "In 6 of 6 models “syntax” is below 0 there" in said
    assert "by 1.00 (1.00 to 1.00): they see change in the same layers" in said

    alone = table[(table["task"] == "rte") & (table["seed"] == 0)]
    assert "which leaves open" in statement.reason(alone, agreement.parting(alone))

    table["value"] += np.where(table["measure"] == "structure", 10, 0)
    assert "below 0" not in statement.reason(table, agreement.parting(table))


def test_a_correlation_is_of_all_sentences_and_its_interval_of_models():
    table = changes(random_curves())
    turned = table[table["measure"] == "js"].assign(fold=0, value=lambda rows: -rows["value"])
    both = pd.concat([table, turned])
    pd.testing.assert_frame_equal(agreement.by_model(both), agreement.by_model(table))
    assert figures.table_of_lenses(both).shown["rank correlation (95 % interval)"].str.contains(" to ").all()


def test_twins_are_a_third_line_and_take_no_part_in_any_other_number():
    table = changes(random_curves())
    twins = table.assign(control="twin", value=7.0)
    both = pd.concat([table, twins], ignore_index=True)
    exhibit = figures.all_curves(both)
    assert (exhibit.table["twin"] == 7).all() and "moved as far in random directions" in exhibit.caption
    assert "twin" not in figures.all_curves(table).table
    pd.testing.assert_frame_equal(agreement.between_measures(both), agreement.between_measures(table))
    assert statement.findings(both) == statement.findings(table)
