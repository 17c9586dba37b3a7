"""Chapter 7: its scores on curves that are known, worked by hand; its claims and exhibits on few models."""

import numpy as np
import pandas as pd
import pytest
from tests import chapters

from fivelenses.chapters import ParameterError
from fivelenses.chapters import settings as parameters
from fivelenses.judging import CONTRADICTED, FAILS, HOLDS, REPRODUCED
from fivelenses.lenses.checks import INVARIANCES
from fivelenses.papers.measures import BY_KEY, MEASURES
from fivelenses.records import ALL, FROZEN, FULL, SHUFFLED, SYMMETRIES, TREES, TWIN

LAYERS = np.arange(1, 7)
DOSES = (0.0, 0.5, 1.0)
PLACES = {"1": [1], "3": [3], "6": [6], "3-4": [3, 4]}


def truth(measure, kind, trained, dose, seed):
    """A measure of own parameters that is right about everything, and features that inherit and are right otherwise."""
    if kind == FROZEN:
        free = PLACES[trained]
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


@pytest.fixture
def page(tmp_path):
    """The names that the cells of claims define, on a record."""
    return lambda table: chapters.executed(7, {"changes_seen": table}, tmp_path, only="none")[1]


def only(curve):
    """A record of features, whose encoder with the third layer free has this curve."""

    def of(measure, kind, trained, dose, seed):
        return curve if kind == FROZEN and trained == "3" else truth(measure, kind, trained, dose, seed)

    return changes(of, seeds=(0,), measures=("svcca",))


def of_place(page, table, reading):
    found = page(table)["cases"](table)
    return found[(found["trained"] == "3") & (found["reading"] == reading)].iloc[0]


def test_measures_keep_to_the_lenses_and_invariances_there_are():
    assert len(BY_KEY) == len(MEASURES) == len({measure.name for measure in MEASURES})
    assert all(measure.invariances is None or measure.invariances <= set(INVARIANCES) for measure in MEASURES)


def test_a_named_place_worked_by_hand(page):
    table = only([0, 0, 0.5, -0.9, 0.8, 0.8])
    # The greatest departure is at layer 4, one above the trained one; layer 3 adds most, 0.5 of 0.5 + 0.4.
    by_value, by_addition = of_place(page, table, "value"), of_place(page, table, "adds")
    assert (by_value["right"], by_value["error"]) == (0, 1)
    assert (by_addition["right"], by_addition["error"]) == (1, 0)
    assert by_value["own"] == pytest.approx(0.5 / 3) and by_addition["own"] == pytest.approx(0.5 / 0.9)
    # At random: one of six, and 2, 1, 0, 1, 2, 3 layers away.
    assert (by_value["right_at_random"], by_value["error_at_random"]) == (1 / 6, 9 / 6)


def test_equal_layers_share_the_vote(page):
    found = of_place(page, only([0, 0, 1, 1, 0, 1]), "value")
    assert found["right"] == pytest.approx(1 / 3) and found["error"] == pytest.approx((0 + 1 + 3) / 3)
    silent = of_place(page, only(np.zeros(6)), "value")
    assert silent["right"] == pytest.approx(1 / 6) and np.isnan(silent["own"])


def test_two_trained_layers_are_both_right(page):
    table = changes(seeds=(0,), measures=("weights",))
    found = page(table)["cases"](table)
    pair = found[found["trained"] == "3-4"]
    assert (pair["right"] == 1).all() and (pair["right_at_random"] == 2 / 6).all()
    assert (pair["error_at_random"] == (2 + 1 + 0 + 0 + 1 + 2) / 6).all()


def test_parameters_are_right_by_value_and_features_by_what_they_add(page):
    table = changes(measures=("weights", "svcca"))
    found = page(table)["cases"](table).groupby(["measure", "reading"])["right"].mean()
    assert found["weights", "value"] == found["weights", "adds"] == 1
    # Of features, the last layer departs most, which is right where it was the trained one.
    assert found["svcca", "value"] == 1 / 4 and found["svcca", "adds"] == 1


def test_doses_are_ordered_layer_by_layer(page):
    def half(measure, kind, trained, dose, seed):
        # Three layers rise, one falls, two stay as they are and count as 0.
        return dose * np.array([1, 1, 1, -1, 0, 0]) if kind == FULL else truth(measure, kind, trained, dose, seed)

    for curve, expected in ((truth, 1), (half, 2 / 6)):
        table = changes(curve, seeds=(0,), measures=("js",))
        assert page(table)["dose_correlations"](table)["correlation"].tolist() == [pytest.approx(expected)]


def test_what_is_reported_of_nothing_is_a_share_of_fine_tuning(page):
    table = changes(seeds=(0,), measures=("js", "weights"))
    found = page(table)["without_effect"](table).groupby("measure")["share"].max()
    assert found["weights"] == pytest.approx(3 / 3.5) and found["js"] == 0


def test_learning_is_told_from_moving_and_equal_values_are_half(page):
    table = changes(measures=("js", "weights"))
    names = page(table)
    found = names["learning"](table).groupby(["measure", "walk"])["area"].mean()
    assert found["js", TWIN] == found["js", SHUFFLED] == found["weights", SHUFFLED] == 1
    assert found["weights", TWIN] == pytest.approx(0.5)
    # Of the first model, one layer of two is larger, then none; of the second both, then one is equal and one less.
    assert names["wins"](np.array([[1.0, 1], [3, 3]]), np.array([[0.0, 2], [3, 4]])).tolist() == [[0.5, 0], [1, 0.25]]
    same = np.array([[1.0, 2.0]])
    assert names["wins"](same, same * (1 + 1e-7)).tolist() == [[0.5]]


def test_a_count_that_is_the_same_in_all_models_varies_by_rounding(page):
    over_models = page(changes(measures=("js",)))["over_models"]
    rows = pd.DataFrame({"task": "a", "seed": np.repeat([0, 1, 2], 4), "right": [1, 0, 0, 0] * 3})
    assert over_models(rows, "right").low == 0.25
    assert over_models(rows, "right", of_counts=True).variance.variance == pytest.approx(1 / 12 / 3 / 16)


def test_claims_are_judged_per_measure(tmp_path):
    judged = chapters.verdicts(7, {"changes_seen": changes()}, tmp_path)
    named = {group.name: group.outcome for group in judged["lens-names-layer"].groups}
    assert named["weights"] == named["rollback"] == HOLDS and named["features"] == FAILS
    silent = {group.name: group.outcome for group in judged["lens-silent-at-nothing"].groups}
    assert silent["weights"] == FAILS and silent["features"] == HOLDS
    assert judged["lens-rises-with-dose"].outcome == REPRODUCED

    def deaf(measure, kind, trained, dose, seed):
        return np.zeros(6) + 1e-9 * seed if kind == FULL else np.ones(6)

    moved = chapters.verdicts(7, {"changes_seen": changes(deaf)}, tmp_path)
    assert moved["lens-tells-learning"].outcome == CONTRADICTED


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


MODELS = pd.DataFrame({"task": "cola", "seed": [0, 1, 2], "score": [0.6, 0.7, np.nan], "null_rate": 0.0})
MODELS = MODELS.assign(diverged=[False, False, True], examples=1000)
SECONDS = pd.DataFrame({"measure": list(BY_KEY), "seconds": np.linspace(0.02, 9, len(BY_KEY))})


# The second as for an encoder whose heads cannot change places, and one seed.
@pytest.mark.parametrize(
    "table", [changes(), changes(seeds=(0,)).query("kind != 'heads permuted'")], ids=["three", "one"]
)
def test_every_exhibit_is_made(table, tmp_path, monkeypatch):
    monkeypatch.setattr(chapters.OnTables, "gate", lambda *_, **__: None)
    tables = {"models": MODELS, "changes_seen": table, "seconds": SECONDS, "properties_read": properties()}
    run, names = chapters.executed(7, tables, tmp_path, tag="")
    exhibits = {exhibit.key.removeprefix("known-truth-"): exhibit for exhibit in run.exhibits}
    several = table["seed"].nunique() > 1
    assert len(exhibits) == len(run.exhibits) == 10 + several and ("noise" in exhibits) == several
    assert not any("nan" in exhibit.html for exhibit in run.exhibits if exhibit.drawing is None)
    assert names["in_cases"](["svcca"], "value") == f"in {3 if several else 1} of {12 if several else 4} cases"
    if several:
        noise = exhibits["noise"].table.set_index("measure").loc["js"]
        # The mean of 1…6 with 0.01 more per seed, whose deviation is 0.01 at each layer.
        assert noise["signal"] == pytest.approx(3.51) and noise["noise"] == pytest.approx(0.01)
        rows = [label.get_text() for label in exhibits["summary"].drawing.figure.axes[0].get_yticklabels()]
        assert rows[0].startswith(("rollback", "last layer")) and len(rows) == len(BY_KEY)


def test_what_was_not_measured_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(chapters.OnTables, "gate", lambda *_, **__: None)
    run, _ = chapters.executed(7, {"models": MODELS, "changes_seen": changes()}, tmp_path, tag="")
    keys = {exhibit.key for exhibit in run.exhibits}
    assert "known-truth-scores" in keys and not keys & {"known-truth-summary", "known-truth-planted"}


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
