"""What chapter 7 measures, on toy BERTs whose change is known to the layer; refusals."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests import chapters
from tests.conftest import ENCODER

from fivelenses.comparison import CCA, compare_with
from fivelenses.lenses import weights
from fivelenses.models import encoders, heads
from fivelenses.models.layers import layer_list
from fivelenses.models.symmetries import SYMMETRIES
from fivelenses.papers.hao2020 import evaluation_part
from fivelenses.papers.known_truth import changes
from fivelenses.papers.known_truth.changes import Alignment, Neighbours
from fivelenses.papers.known_truth.properties import properties_read
from fivelenses.papers.measures import BY_KEY
from fivelenses.records import SHUFFLED, TWIN

LIMITS = dict(evaluation_examples=30, similarity_tokens=60, probe_points=20, device="cpu", log=lambda line: None)
DOSES = (0.0, 1.0)


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
    return changes.changes_seen(trainings, DOSES, 8, **LIMITS)


def curve(table, kind, key, dose=1.0):
    rows = table[(table["kind"] == kind) & (table["measure"] == key) & np.isclose(table["dose"], dose)]
    return rows.set_index("layer")["value"].to_numpy()


def test_every_model_has_every_measure_at_every_layer(seen):
    models = seen[["kind", "trained", "dose"]].drop_duplicates()
    expected = [("tuned", "all", 0.0), ("tuned", "all", 1.0), ("frozen", "4", 1.0), (SHUFFLED, "all", 1.0)]
    assert set(models.itertuples(index=False, name=None)) == {
        *expected,
        *((kind, "all", 1.0) for kind in (TWIN, *SYMMETRIES)),
    }
    counts = seen.groupby(["kind", "dose", "measure"])["layer"].apply(list)
    assert all(layers == [1, 2, 3, 4, 5, 6] for layers in counts) and set(seen["measure"]) == set(BY_KEY)
    assert np.isfinite(seen["value"]).all()


def test_an_encoder_before_training_has_not_changed(seen):
    for key in BY_KEY:
        assert np.abs(curve(seen, "tuned", key, 0.0)).max() < 1e-5, key


@pytest.mark.parametrize("key", [key for key, one in BY_KEY.items() if one.reads_activations])
def test_nothing_is_seen_below_the_layer_that_changed(seen, key):
    assert np.abs(curve(seen, "frozen", key)[:3]).max() < 1e-5


@pytest.mark.parametrize("key", [key for key, one in BY_KEY.items() if not one.reads_activations])
def test_measures_of_parameters_see_the_layer_that_changed_and_no_other(seen, key):
    found = curve(seen, "frozen", key)
    assert abs(found[3]) > 1e-3 and np.abs(np.delete(found, 3)).max() < 1e-5


def test_a_relative_weight_distance_is_what_the_weights_were_scaled_by(seen):
    assert curve(seen, "frozen", "weights")[3] == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("kind", SYMMETRIES)
def test_a_change_without_effect_is_seen_by_those_that_compare_places_alone(seen, kind):
    for key, one in BY_KEY.items():
        found = np.abs(curve(seen, kind, key)).max()
        if key == "weights" or (key == "js" and kind == "heads permuted"):
            assert found > 0.01
        elif one.invariances != frozenset():
            assert found < 2e-4, (kind, key)


def test_a_twin_has_the_models_weight_distances(seen):
    np.testing.assert_allclose(curve(seen, TWIN, "weights"), curve(seen, "tuned", "weights"), rtol=1e-4)


def test_features_are_those_of_the_comparison(seen, trainings):
    examples = evaluation_part(trainings[0], 30)
    models = {"before": encoders.load_weights(encoders.locate(ENCODER)), "after": trainings[1].model()}
    lenses = [CCA(("svcca", "cka")), Alignment("procrustes")]
    table = compare_with(lenses, models, [("before", "after")], examples, device="cpu")
    np.testing.assert_allclose(curve(seen, "tuned", "svcca"), table["svcca"], atol=1e-6)
    np.testing.assert_allclose(curve(seen, "tuned", "cka"), 1 - table["cka"], atol=1e-6)
    np.testing.assert_allclose(curve(seen, "tuned", "procrustes"), table["procrustes"], atol=1e-6)
    distance = weights.distance(*models.values()).relative.mean(axis=1)
    np.testing.assert_allclose(curve(seen, "tuned", "weights"), distance, rtol=1e-5)


def test_what_was_measured_names_the_layer(seen, tmp_path):
    cases = chapters.executed(7, {"changes_seen": seen}, tmp_path, only="none")[1]["cases"]
    found = cases(seen).set_index(["measure", "reading"])["right"]
    assert found["weights", "value"] == found["last", "value"] == found["procrustes", "adds"] == 1


def test_streamed_neighbours_are_those_of_all_rows_at_once():
    from fivelenses.lenses.similarities import mutual_neighbours

    random = torch.Generator().manual_seed(0)
    hidden = [torch.randn(2, 9, 5, generator=random) for _ in range(2)]
    mask = torch.ones(2, 9, dtype=torch.bool)
    positions = np.array([0, 3, 4, 8, 9, 17])
    lens = Neighbours(positions, 2)
    lens.begin([(0, 1)], [1], 4, np.zeros(2, dtype=int))
    for row in range(2):
        batches = [
            SimpleNamespace(mask=mask[[row]], tokens=lambda layer, side=side, row=row: side[row]) for side in hidden
        ]
        lens.update(batches)
    expected = mutual_neighbours(*(side.reshape(18, 5)[positions] for side in hidden), k=2)
    assert lens.row((0, 1), 1) == {"neighbours": expected}


@pytest.mark.parametrize(
    ("frozen", "name"),
    [((), "all"), ((0, 1, 2, 4, 5, 6), "3"), ((0, 1, 4, 5, 6), "2-3")],
)
def test_trained_layers_are_named(toy_checkpoint, frozen, name):
    assert changes.trained_layers(replace(toy_checkpoint.specification, frozen=frozen), 6) == name


def test_layers_apart_have_no_place(toy_checkpoint):
    apart = replace(toy_checkpoint.specification, frozen=(0, 2, 4, 5, 6))
    with pytest.raises(ValueError, match="leaves no neighbouring layers free"):
        changes.trained_layers(apart, 6)


def test_models_of_two_seeds_are_not_measured_together(trainings):
    other = SimpleNamespace(specification=replace(trainings[0].specification, seed=9), manifest={"diverged": False})
    with pytest.raises(ValueError, match="of one alone"):
        changes.changes_seen([trainings[0], other], DOSES, 8, **LIMITS)


def test_doses_that_were_not_trained_are_refused(trainings):
    with pytest.raises(ValueError, match="2 lengths of training are not the 3 doses"):
        changes.changes_seen(trainings, (0.0, 0.5, 1.0), 8, **LIMITS)


def test_without_the_usual_training_there_is_nothing_to_compare(trainings):
    diverged = [SimpleNamespace(**vars(one)) for one in trainings]
    diverged[1].manifest = {"diverged": True}
    assert changes.changes_seen(diverged, DOSES, 8, **LIMITS).empty


def test_folds_are_refused_where_there_are_none():
    for lens in (Alignment("procrustes"), Neighbours(np.arange(5), 2)):
        with pytest.raises(ValueError, match="have no folds"):
            lens.begin([(0, 1)], [1], 4, np.arange(10))
    with pytest.raises(ValueError, match="choose cka_debiased or procrustes"):
        Alignment("cca")


def test_properties_of_an_encoder_that_did_not_change_are_as_before(toy_checkpoint):
    same = made(toy_checkpoint, 1)
    lines = []
    table = properties_read([same], ["pos", "ps-role"], 70, 8, device="cpu", log=lines.append)
    assert lines == ["rte: 1 models read"]
    assert (table["before"] == table["after"]).all() and set(table["property"]) == {"pos", "ps-role", "trees"}
    assert table.groupby(["property", "measure"])["layer"].apply(list).map(lambda one: one == [1, 2, 3, 4, 5, 6]).all()
    probes = table[table["measure"] == "probe"]["before"]
    assert probes.between(0, 1).all() and probes.max() > 0.4
