"""Chapter 7: scores by hand, claims and exhibits, and measures of toy BERTs whose change is known to the layer."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from tests import chapters
from tests.conftest import ENCODER

from fivelenses.chapters import settings
from fivelenses.judging import CONTRADICTED, FAILS, HOLDS, REPRODUCED
from fivelenses.models import encoders, heads
from fivelenses.models.layers import layer_list
from fivelenses.papers import models
from fivelenses.papers.known_truth import changes_seen, properties_read
from fivelenses.papers.measures import BY_KEY
from fivelenses.records import ALL, FROZEN, FULL, FUNCTIONAL_TWIN, SHUFFLED, SYMMETRIES, TWIN, TWINS

LAYERS = np.arange(1, 7)
DOSES = (0.0, 0.5, 1.0)
PLACES = {"1": [1], "3": [3], "6": [6], "3-4": [3, 4]}
LIMITS = dict(evaluation_examples=30, similarity_tokens=60, probe_points=20, device="cpu", log=lambda line: None)
TRAINED = (0.0, 1.0)  # doses that are measured


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


def test_a_named_place_worked_by_hand(page):
    def curve(measure, kind, trained, dose, seed):
        return [0, 0, 0.5, -0.9, 0.8, 0.8] if trained == "3" else truth(measure, kind, trained, dose, seed)

    table = changes(curve, seeds=(0,), measures=("svcca",))
    found = page(table)["cases"](table).query("trained == '3'").set_index("reading")
    # The greatest departure is at layer 4, one above the trained one; layer 3 adds most, 0.5 of 0.5 + 0.4.
    by_value, by_addition = found.loc["value"], found.loc["adds"]
    assert (by_value["right"], by_value["error"]) == (0, 1)
    assert (by_addition["right"], by_addition["error"]) == (1, 0)
    assert by_value["own"] == pytest.approx(0.5 / 3) and by_addition["own"] == pytest.approx(0.5 / 0.9)
    # At random: one of six, and 2, 1, 0, 1, 2, 3 layers away.
    assert (by_value["right_at_random"], by_value["error_at_random"]) == (1 / 6, 9 / 6)


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


def test_every_exhibit_is_made_of_one_seed_of_an_encoder_whose_heads_cannot_change_places(tmp_path, monkeypatch):
    monkeypatch.setattr(chapters.OnTables, "gate", lambda *_, **__: None)
    trained = pd.DataFrame({"task": "cola", "seed": [0, 1, 2], "score": [0.6, 0.7, np.nan], "null_rate": 0.0})
    tables = {"models": trained.assign(diverged=[False, False, True], examples=1000)}
    tables["changes_seen"] = changes(seeds=(0,)).query("kind != 'heads permuted'")
    tables["seconds"] = pd.DataFrame({"measure": list(BY_KEY), "seconds": np.linspace(0.02, 9, len(BY_KEY))})
    run, names = chapters.executed(7, tables, tmp_path, tag="")
    assert len(run.exhibits) == 9 and len(run.claims) == 4
    assert not any("nan" in exhibit.html for exhibit in run.exhibits if exhibit.drawing is None)
    assert names["in_cases"](["svcca"], "value") == "in 1 of 4 cases"


@pytest.mark.parametrize("profile", ["tiny", "small"])
def test_a_chapter_trains_every_layer_alone_and_every_dose_once(profile):
    chosen = settings(7, profile)
    of_one = [one for one in chosen.models(task=chosen.tasks) if one.seed == chosen.seeds[0]]
    places = [one.frozen for one in of_one if one.frozen]
    alone = [tuple(layer for layer in range(7) if layer != free) for free in range(1, 7)]
    assert set(alone) <= set(places) and len(places) == (11 if chosen.neighbours else 6)
    lengths = [one.schedule.epochs for one in of_one if not one.frozen and not one.shuffled_labels]
    assert [length / 3 for length in lengths] == list(chosen.doses)


def made(checkpoint, scale, layer=4, **changes):
    """A model as if it came from a training: the pre-trained encoder, one layer of which was scaled."""
    torch.manual_seed(0)
    model = heads.build(encoders.locate(ENCODER), "sequence", ("no", "yes")).eval()
    with torch.no_grad():
        for parameter in layer_list(model)[layer - 1].parameters():
            parameter.mul_(scale)
    return SimpleNamespace(
        specification=replace(checkpoint.specification, **changes), manifest={"diverged": False}, model=lambda: model
    )


@pytest.fixture(scope="module")
def trainings(toy_checkpoint):
    usual = toy_checkpoint.specification.schedule
    alone = tuple(layer for layer in range(7) if layer != 4)
    return [
        made(toy_checkpoint, 1, schedule=replace(usual, epochs=0)),
        made(toy_checkpoint, 1.5),
        made(toy_checkpoint, 1.5, frozen=alone),
        made(toy_checkpoint, 1.2, shuffled_labels=True),
    ]


@pytest.fixture(scope="module")
def seen(trainings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "_scales", {})  # by the address, which the real checkpoint has, too
        return changes_seen(trainings, TRAINED, 8, **LIMITS)


def curve(table, kind, key, dose=1.0):
    rows = table[(table["kind"] == kind) & (table["measure"] == key) & np.isclose(table["dose"], dose)]
    return rows.set_index("layer")["value"].to_numpy()


def test_every_model_has_every_measure_at_every_layer(seen):
    assert set(seen["kind"]) == {"tuned", "frozen", SHUFFLED, *TWINS, *SYMMETRIES}
    counts = seen.groupby(["kind", "dose", "measure"])["layer"].apply(list)
    assert all(layers == [1, 2, 3, 4, 5, 6] for layers in counts) and set(seen["measure"]) == set(BY_KEY)
    assert np.isfinite(seen["value"]).all()


def test_the_functional_twin_moves_the_last_layer_as_far_as_the_model(seen):
    # On other sentences than those on which its scale was found.
    assert curve(seen, FUNCTIONAL_TWIN, "rsa")[-1] == pytest.approx(curve(seen, "tuned", "rsa")[-1], rel=0.3)


@pytest.mark.parametrize("key", BY_KEY)
def test_a_change_of_one_layer_is_seen_there_or_above_and_nowhere_else_nor_before_training(seen, key):
    assert np.abs(curve(seen, "tuned", key, 0.0)).max() < 1e-5
    found = np.abs(curve(seen, "frozen", key))
    unchanged = slice(3) if BY_KEY[key].reads_activations else [0, 1, 2, 4, 5]
    assert found[unchanged].max() < 1e-5 and found[3:].max() > 1e-3
    assert key != "weights" or found[3] == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("kind", SYMMETRIES)
def test_a_change_without_effect_is_seen_by_those_that_compare_places_alone(seen, kind):
    for key, one in BY_KEY.items():
        found = np.abs(curve(seen, kind, key)).max()
        if key == "weights" or (key == "js" and kind == "heads permuted"):
            assert found > 0.01
        elif one.invariances != frozenset():
            assert found < 2e-4, (kind, key)


def test_properties_of_an_encoder_that_did_not_change_are_as_before(toy_checkpoint):
    same = made(toy_checkpoint, 1)
    lines = []
    table = properties_read([same], ["pos", "ps-role"], 70, 8, device="cpu", log=lines.append)
    assert lines == ["rte: 1 models read"]
    assert (table["before"] == table["after"]).all() and set(table["property"]) == {"pos", "ps-role", "trees"}
    assert table.groupby(["property", "measure"])["layer"].apply(list).map(lambda one: one == [1, 2, 3, 4, 5, 6]).all()
    probes = table[table["measure"] == "probe"]["before"]
    assert probes.between(0, 1).all() and probes.max() > 0.4
