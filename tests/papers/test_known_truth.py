"""Chapter 7: its scores on curves that are known, worked by hand, and its pictures and statements on few models."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.first_exhibits import style
from fivelenses.first_exhibits.claims import judge_all
from fivelenses.first_exhibits.verdicts import CONTRADICTED, FAILS, HOLDS
from fivelenses.lenses.checks import INVARIANCES
from fivelenses.papers.five_lenses import instruments as of_chapter_6
from fivelenses.papers.known_truth import claims, figures, scores, statement
from fivelenses.papers.known_truth.instruments import BY_KEY, MEASURES
from fivelenses.records import ALL, FROZEN, FULL, SHUFFLED, SYMMETRIES, TREES, TWIN
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import settings as parameters

LAYERS = np.arange(1, 7)
DOSES = (0.0, 0.5, 1.0)
PLACES = ("1", "3", "6", "3-4")


def truth(measure, kind, trained, dose, seed):
    """A measure of own parameters that is right about everything, and features that inherit and are right otherwise."""
    if kind == FROZEN:
        free = scores.trained_of(trained)
        if BY_KEY[measure].reads_activations:
            # Each trained layer adds 2, and each layer above passes on a little more than it takes in.
            return np.where(free[0] > LAYERS, 0, 2.0 + 0.1 * (LAYERS - free[0])) + (0.01 * seed) * (free[0] <= LAYERS)
        return np.isin(LAYERS, free) * (1.0 + 0.01 * seed)
    if kind in SYMMETRIES:
        return np.full(6, 3.0) if measure == "weights" else np.zeros(6)
    size = {FULL: dose, TWIN: 0.1, SHUFFLED: 0.2}[kind]
    if measure == "weights" and kind == TWIN:
        size = dose
    return size * (LAYERS + 0.01 * seed)


def changes(curve=truth, seeds=(0, 1, 2), measures=tuple(BY_KEY)):
    kinds = [(FULL, ALL, dose) for dose in DOSES] + [(FROZEN, place, 1.0) for place in PLACES]
    kinds += [(kind, ALL, 1.0) for kind in (SHUFFLED, TWIN, *SYMMETRIES)]
    names = ["layer", "value", "task", "seed", "kind", "trained", "dose", "measure"]
    rows = [
        (layer, value, "cola", seed, *kind, measure)
        for seed in seeds
        for kind in kinds
        for measure in measures
        for layer, value in zip(LAYERS, np.asarray(curve(measure, *kind, seed), dtype=float), strict=True)
    ]
    return pd.DataFrame(rows, columns=names)


def only(curve, **how):
    """A record of one measure, whose frozen models have this curve."""

    def of(measure, kind, trained, dose, seed):
        return curve if kind == FROZEN and trained == "3" else truth(measure, kind, trained, dose, seed)

    return changes(of, seeds=(0,), **how)


def of_place(table, reading):
    return table[(table["trained"] == "3") & (table["reading"] == reading)].iloc[0]


def test_all_measures_of_chapter_6_take_part_and_keep_their_names():
    assert set(of_chapter_6.BY_KEY) < set(BY_KEY)
    for key, known in of_chapter_6.BY_KEY.items():
        assert (BY_KEY[key].name, BY_KEY[key].reads_activations) == (known.name, known.reads_activations)
    assert all(measure.invariances is None or measure.invariances <= set(INVARIANCES) for measure in MEASURES)


def test_a_named_place_worked_by_hand():
    found = scores.where(only([0, 0, 0.5, -0.9, 0.8, 0.8], measures=("svcca",)))
    # The greatest departure is at layer 4, one above the trained one; layer 3 adds most, 0.5 of 0.5 + 0.4.
    by_value, by_addition = of_place(found, "value"), of_place(found, "adds")
    assert (by_value["right"], by_value["error"]) == (0, 1)
    assert (by_addition["right"], by_addition["error"]) == (1, 0)
    assert by_value["own"] == pytest.approx(0.5 / 3) and by_addition["own"] == pytest.approx(0.5 / 0.9)
    # By lot: one of six, and 2, 1, 0, 1, 2, 3 layers away.
    assert (by_value["right_by_lot"], by_value["error_by_lot"]) == (1 / 6, 9 / 6)


def test_equal_layers_share_the_vote():
    found = of_place(scores.where(only([0, 0, 1, 1, 0, 1], measures=("svcca",))), "value")
    assert found["right"] == pytest.approx(1 / 3) and found["error"] == pytest.approx((0 + 1 + 3) / 3)
    silent = of_place(scores.where(only(np.zeros(6), measures=("svcca",))), "value")
    assert silent["right"] == pytest.approx(1 / 6) and np.isnan(silent["own"])


def test_two_trained_layers_are_both_right():
    found = scores.where(changes(seeds=(0,), measures=("weights",)))
    pair = found[found["trained"] == "3-4"]
    assert (pair["right"] == 1).all() and (pair["right_by_lot"] == 2 / 6).all()
    assert (pair["error_by_lot"] == (2 + 1 + 0 + 0 + 1 + 2) / 6).all()


def test_parameters_are_right_by_value_and_features_by_what_they_add():
    found = scores.where(changes()).groupby(["measure", "reading"])["right"].mean()
    assert found["weights", "value"] == found["weights", "adds"] == found["rollback", "adds"] == 1
    # Of features, the last layer departs most, which is right where it was the trained one.
    assert found["svcca", "value"] == 1 / 4 and found["svcca", "adds"] == 1
    assert scores.cases(changes()).loc["svcca"].tolist() == [3, 12]


@settings(max_examples=12)
@given(scale=st.floats(1e-3, 1e3), measure=st.sampled_from(list(BY_KEY)))
def test_no_score_depends_on_the_unit_of_a_measure(scale, measure):
    table = changes(measures=(measure,))
    other = table.assign(value=scale * table["value"])
    pd.testing.assert_frame_equal(scores.summary(table), scores.summary(other))


def test_doses_are_ordered_layer_by_layer():
    rises = scores.doses(changes(seeds=(0,), measures=("js",)))
    assert rises["correlation"].tolist() == [1]

    def half(measure, kind, trained, dose, seed):
        # Three layers rise, one falls, two stay as they are and count as 0.
        return dose * np.array([1, 1, 1, -1, 0, 0]) if kind == FULL else truth(measure, kind, trained, dose, seed)

    assert scores.doses(changes(half, seeds=(0,), measures=("js",)))["correlation"].tolist() == [pytest.approx(2 / 6)]


def test_what_is_reported_of_nothing_is_a_share_of_fine_tuning():
    found = scores.nothing(changes(seeds=(0,))).groupby("measure")["share"].max()
    assert found["weights"] == pytest.approx(3 / 3.5) and found["js"] == 0


def test_noise_is_the_deviation_between_seeds():
    found = scores.noise(changes(measures=("js",))).iloc[0]
    # The mean of 1…6 with 0.01 more per seed, whose deviation is 0.01 at each layer.
    assert found["signal"] == pytest.approx(3.51) and found["noise"] == pytest.approx(0.01)
    assert scores.noise(changes(seeds=(0,))).empty


def test_learning_is_told_from_walking_and_equal_values_are_half():
    found = scores.learning(changes()).groupby(["measure", "walk"])["area"].mean()
    assert found["js", TWIN] == found["js", SHUFFLED] == found["weights", SHUFFLED] == 1
    assert found["weights", TWIN] == pytest.approx(0.5)


def test_areas_worked_by_hand():
    learned, walked = np.array([[1.0, 1], [3, 3]]), np.array([[0.0, 2], [3, 4]])
    # Of the first, one layer of two is larger, then none; of the second both, then one is equal and one less.
    assert scores._wins(learned, walked).tolist() == [[0.5, 0], [1, 0.25]]


def test_rounding_makes_no_winner():
    same = np.array([[1.0, 2.0]])
    assert scores._wins(same, same * (1 + 1e-7)).tolist() == [[0.5]]


def test_the_scores_of_one_model_have_no_interval():
    found = scores.summary(changes(seeds=(0,)))
    assert found[["low", "high"]].isna().all(axis=None) and found["score"].between(-1, 1).all()
    several = scores.summary(changes())
    assert (several["low"] <= several["score"]).all() and (several["score"] <= several["high"]).all()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda table: table.drop(index=table.index[table["kind"] == FROZEN][2]), "lacks a layer or is not finite"),
        (lambda table: table.assign(value=np.nan), "lacks a layer or is not finite"),
        (lambda table: pd.concat([table, table]), "has a layer twice"),
    ],
    ids=["missing", "NaN", "twice"],
)
def test_a_damaged_record_is_refused(damage, message):
    with pytest.raises(ValueError, match=message):
        scores.where(damage(changes(seeds=(0,), measures=("js",))))


def test_a_count_that_is_the_same_in_all_models_varies_by_rounding():
    rows = pd.DataFrame({"task": "a", "seed": np.repeat([0, 1, 2], 4), "right": [1, 0, 0, 0] * 3})
    counted, exact = (scores.over_seeds(rows, "right", counted=one) for one in (True, False))
    assert exact.low == 0.25 and counted.standard_error == pytest.approx(np.sqrt(1 / 12 / 3) / 4)


def test_statements_are_judged_per_measure():
    judged = {one.claim: one.verdict for one in judge_all(claims.CLAIMS, {"changes_seen": changes()}, {})}
    named = {group.name: group.outcome for group in judged["lens-names-layer"].groups}
    assert named["weights"] == named["rollback"] == HOLDS and named["features"] == FAILS
    silent = {group.name: group.outcome for group in judged["lens-silent-at-nothing"].groups}
    assert silent["weights"] == FAILS and silent["features"] == HOLDS
    assert judged["lens-rises-with-dose"].outcome == "reproduced"

    def deaf(measure, kind, trained, dose, seed):
        return np.zeros(6) + 1e-9 * seed if kind == FULL else np.ones(6)

    walking = {one.claim: one.verdict for one in judge_all(claims.CLAIMS, {"changes_seen": changes(deaf)}, {})}
    assert walking["lens-tells-learning"].outcome == CONTRADICTED


def seconds():
    return pd.DataFrame({"measure": list(BY_KEY), "seconds": np.linspace(0.02, 9, len(BY_KEY))})


def properties():
    keys = [("pos", "probe"), ("pos", "labels"), ("ps-role", "probe"), ("ps-role", "labels"), (TREES, "structure")]
    return pd.DataFrame(
        [
            (trained, seed, read, measure, layer, 0.5, 0.9 if read == trained else 0.5)
            for trained in ("pos", "ps-role")
            for seed in (0, 1)
            for read, measure in keys
            for layer in LAYERS
        ],
        columns=["trained_on", "seed", "property", "measure", "layer", "before", "after"],
    )


# As for an encoder whose heads cannot change places.
HEADS_KEPT = changes()[lambda rows: rows["kind"] != "heads permuted"]


@pytest.mark.parametrize(
    "table", [changes(), changes(seeds=(0,)), HEADS_KEPT], ids=["three seeds", "one seed", "heads kept"]
)
def test_every_exhibit_stands(table):
    drawn = [
        figures.summary(table, seconds()),
        figures.named_places(table),
        figures.dose_curves(table),
        figures.seen_of_nothing(table),
        figures.learned_or_walked(table),
        figures.planted(properties()),
        figures.table_of_places(table),
        figures.table_of_scores(table),
        figures.table_of_invariances(),
    ]
    assert len({exhibit.key for exhibit in drawn}) == len(drawn)
    for exhibit in drawn:
        shown = "" if exhibit.shown is None else exhibit.shown.to_string()
        assert "nan" not in f"{shown} {exhibit.caption} {exhibit.alt}"
        if exhibit.figure is not None:
            exhibit.figure.canvas.draw()
            style.close(exhibit.figure)
    found = statement.findings(table)
    assert all(isinstance(words, str) and words and "nan" not in words for words in found.values())


def test_what_is_quoted_is_counted():
    found = statement.findings(changes())
    assert found["weights_names"] == "in 12 of 12 cases" and found["svcca_names"] == "in 3 of 12 cases"
    assert found["features_names"] == "in 3 of 12 cases" and found["features_adds"] == "in 12 of 12 cases"
    assert found["weights_seen"] == "0.9 to 0.9"


def test_the_summary_is_sorted_and_bold_where_chance_is_left_behind():
    exhibit = figures.summary(changes(), seconds())
    rows = [label.get_text() for label in exhibit.figure.axes[0].get_yticklabels()]
    assert rows[0].startswith(("rollback", "last layer")) and len(rows) == len(BY_KEY)
    bold = {text.get_text() for text in exhibit.figure.axes[0].texts if text.get_fontweight() == "bold"}
    assert "1.00" in bold and "0.00" not in bold
    style.close(exhibit.figure)


def test_what_no_lens_reads_of_a_property_is_not_told_as_a_number():
    exhibit = figures.planted(properties())
    assert "label distances, POS after POS 0.59" in exhibit.alt and "label distances, syntax trees" not in exhibit.alt
    assert "PS-role" in exhibit.alt
    style.close(exhibit.figure)


def test_without_planted_properties_the_page_says_so():
    assert "no property was planted" in figures.planted(properties().iloc[:0]).sentence


@pytest.mark.parametrize("profile", ["tiny", "small"])
def test_a_chapter_trains_every_layer_alone_and_every_dose_once(profile):
    chosen = parameters(7, profile)
    of_one = [one for one in chosen.classifiers() if one.seed == chosen.seeds[0]]
    places = [one.frozen for one in of_one if one.frozen]
    alone = [tuple(layer for layer in range(7) if layer != free) for free in range(1, 7)]
    assert set(alone) <= set(places) and len(places) == (11 if chosen.neighbours else 6)
    lengths = [one.schedule.epochs for one in of_one if not one.frozen and not one.shuffled_labels]
    assert [length / 3 for length in lengths] == list(chosen.doses)
    assert len(chosen.ordinary()) == len(chosen.seeds) and sum(one.shuffled_labels for one in of_one) == 1
    assert len(chosen.with_property()) == len(chosen.planted) * len(chosen.seeds)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"doses": [0.5, 2.0, 3.0]}, "1 is among them"),
        ({"doses": [0.0, 1.0]}, "at least three"),
        ({"planted": ["sst2"]}, "sst2 is no task on words"),
        ({"planted": ["dep"]}, "schedules has none for dep"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        parameters(7, "tiny", **given)
