"""Chapter 6: statistics by hand, claims on made records, exhibits, and measures beside the other chapters' numbers."""

import numpy as np
import pandas as pd
import pytest
from tests import chapters
from tests.conftest import ENCODER
from tests.papers.test_known_truth import made

from fivelenses.judging import CANNOT_BE_TESTED, CONTRADICTED, REPRODUCED
from fivelenses.papers import five_lenses
from fivelenses.papers.five_lenses import changes_by_layer, independent_encoder
from fivelenses.papers.measures import BY_KEY, LENSES, lens
from fivelenses.records import TWIN, TWINS, WHOLE

LAYERS = np.arange(1, 7)
TASKS, SEEDS = ("mnli", "rte", "sst2", "mrpc"), (0, 1)
FOLDED, OWN = ("js", "svcca", "probe", "rollback", "rsa"), ("rollback", "weights")
MEASURES = ("js", "svcca", "labels", "probe", "rollback", "weights", "rsa", "structure")
INDEPENDENT = "toy-bert/seed-1"
ADDED = ("svcca", "rsa")
LIMITS = dict(evaluation_examples=40, variance_kept=0.99, similarity_tokens=300, probe_points=40)
LIMITS |= dict(structural_sentences=12, random_directions=1)


def changes(curve, entering=lambda measure: np.zeros(6), noise=1e-3, folds=3, control="", tasks=TASKS) -> pd.DataFrame:
    """A record with the same curves for all models, but for a little noise of models and of folds."""
    random, rows = np.random.default_rng(0), []
    for task in tasks:
        for seed in SEEDS:
            for measure in MEASURES:
                values = np.asarray(curve(measure), dtype=float)
                values = values + noise * random.normal(size=6) * (np.ptp(values) > 0)
                for fold in range(WHOLE, folds if measure in FOLDED else 0):
                    left_out = noise / 10 * random.normal(size=6) * (fold >= 0) * (np.ptp(values) > 0)
                    for layer, value, below in zip(LAYERS, values + left_out, entering(measure), strict=True):
                        rows.append((task, seed, control, measure, fold, layer, value, 0.0, float(below)))
    names = ["task", "seed", "control", "measure", "fold", "layer", "value", "null", "entering"]
    return pd.DataFrame(rows, columns=names)


def verdict(key: str, table: pd.DataFrame, excluded=None):
    return chapters.judge(6)(key, {"changes_by_layer": table}, excluded)


@pytest.fixture
def names(tmp_path):
    """The names that the cells of claims define."""
    return chapters.executed(6, {"changes_by_layer": changes(rising)}, tmp_path, only="none")[1]


def in_all(values):
    """One curve, whatever the measure."""
    return lambda measure: values


def all_but(one):
    """Curves that rise, but for one measure's."""
    return lambda measure: -LAYERS if measure == one else LAYERS


rising, falling, outlier = map(in_all, (LAYERS, LAYERS[::-1], [0, 0, 9, 0, 0, 0]))


def own_steps(measure):
    """Parameters that go down and up, and activations that add them up."""
    steps = np.array([6.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    return steps if measure in OWN else np.cumsum(steps)


def in_their_own_ways(measure):
    """Every lens begins elsewhere."""
    return np.roll(LAYERS, list(LENSES).index(lens(measure)))


# A record that shows the statement, and one that shows the contrary.
RECORDS = {
    "all-rise-with-depth": (changes(rising), changes(falling)),
    "lenses-agree": (changes(falling), changes(in_their_own_ways)),
    "top-is-high": (changes(in_all([1, 2, 0, 1, 5, 6])), changes(falling)),
    "outputs-agree-more": (changes(all_but("weights")), changes(all_but("js"))),
    "layers-inherit": (
        changes(own_steps, in_all(own_steps("js") - own_steps("weights"))),
        changes(rising, in_all(np.cumsum(LAYERS))),
    ),
}
# A shape that is what the sentence says.
SAID = {("all-rise-with-depth", rising), ("top-is-high", rising)}
SAID |= {("lenses-agree", shape) for shape in (rising, falling, outlier)}


@pytest.mark.parametrize("key", RECORDS)
def test_a_record_that_shows_the_statement_reproduces_it_and_one_that_shows_the_contrary_contradicts_it(key):
    assert [verdict(key, record).outcome for record in RECORDS[key]] == [REPRODUCED, CONTRADICTED]


@pytest.mark.parametrize("key", RECORDS)
def test_a_trivial_shape_reproduces_nothing_but_what_it_is(key):
    for shape in (rising, falling, outlier):
        assert (verdict(key, changes(shape, noise=0)).outcome == REPRODUCED) == ((key, shape) in SAID), shape
    found = verdict(key, changes(in_all(np.ones(6)), in_all(np.ones(6))))
    assert found.outcome == CANNOT_BE_TESTED and "same at all layers" in found.reason
    assert verdict(key, changes(in_all([0, 0, 0, 0, 0, 1e-9]), noise=1.0)).outcome != REPRODUCED


def test_the_wider_of_the_intervals_over_tasks_and_over_models_is_taken(names):
    def found(values, most=np.inf):
        rows = pd.DataFrame(values, columns=["task", "seed", "x"])
        return names["over_models"](rows, "x", most)

    # Tasks that agree by chance do not narrow it; models of a task that are alike do not, either.
    by_chance = found([(task, seed, value) for task in "ab" for seed, value in enumerate((0.2, 0.6))])
    assert by_chance.models == 4 and by_chance.low < 0.2
    assert found([(task, seed, value) for task, value in (("a", 0.2), ("b", 0.6)) for seed in range(5)]).high > 2
    cut = found([(task, seed, value) for task, value in (("a", -0.9), ("b", 1.0)) for seed in range(3)], 1)
    assert (cut.low, cut.high) == (-1, 1) and cut.estimate == pytest.approx(0.05)
    assert found([("a", 0, np.nan)]) is None


def of_one_model(curves):
    """Rows of one model from measure to values."""
    parts = [pd.DataFrame({"measure": key, "layer": LAYERS, "value": values}) for key, values in curves.items()]
    return pd.concat(parts).assign(task="rte", seed=0, entering=np.nan)


def test_rank_correlations_worked_by_hand(names):
    # Two measures that agree only in that higher layers change more, and one that is constant.
    rows = of_one_model({"js": [1, 2, 3, 4, 6, 5], "svcca": [2, 1, 3, 4, 5, 6], "weights": np.ones(6)})
    found = names["correlations"](rows).set_index(["first", "second"])
    assert found.loc["js", "svcca"]["correlation"] == pytest.approx(1 - 6 * 4 / 210)
    one = other = 1 - 6 * 2 / 210
    left = (1 - 6 * 4 / 210 - one * other) / (1 - one**2)
    assert found.loc["js", "svcca"]["given_depth"] == pytest.approx(left)
    assert found.loc["js", "weights"][["correlation", "given_depth"]].isna().all()
    # A measure that rises at every layer leaves nothing beside depth.
    assert np.isnan(names["correlations"](of_one_model({"js": LAYERS, "svcca": LAYERS[::-1]}))["given_depth"][0])


def test_what_a_layer_adds_is_its_output_less_its_input(names):
    steps = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 6.0])
    rows = of_one_model({"svcca": np.cumsum(steps), "weights": steps})
    rows["entering"] = np.where(rows["measure"] == "svcca", np.tile(np.cumsum(steps) - steps, 2), np.nan)
    found = names["added"](rows).iloc[0]
    assert found["added"] == 1 and found["output"] == pytest.approx(1 - 6 * 8 / 210)


def test_every_exhibit_is_made_of_one_task(tmp_path, monkeypatch):
    monkeypatch.setattr(chapters.OnTables, "gate", lambda *_, **__: None)
    models = pd.DataFrame({"task": TASKS[0], "seed": SEEDS, "score": 0.8, "null_rate": 0.5, "diverged": False})
    tables = [changes(in_their_own_ways, tasks=TASKS[:1]), changes(falling, control=TWIN, tasks=TASKS[:1])]
    record = {"models": models.assign(examples=96), "changes_by_layer": pd.concat(tables)}
    run, names = chapters.executed(6, record, tmp_path, tag="")
    assert len(run.exhibits) == 10 and len(run.claims) == 5
    assert not any("nan" in exhibit.html for exhibit in run.exhibits if exhibit.drawing is None)
    centre = names["centres"](of_one_model({"js": [1, 2, 3, 3, 3, 3], "svcca": [5, -1, 5, 5, 5, 5]}))
    # Scaled: 0, 0.5, 1, 1, 1, 1; and 1, 0, 1, 1, 1, 1 with the lowest of the tops.
    assert centre["centre"].tolist() == pytest.approx([(1 + 3 + 4 + 5 + 6) / 4.5, (1 + 3 + 4 + 5 + 6) / 5])
    assert centre["top"].tolist() == [3, 1]


@pytest.fixture(scope="module")
def measured(toy_checkpoint):
    """Seed 0 was fine-tuned; of seed 1 only the fifth layer's weights were doubled."""
    changed = made(toy_checkpoint, 2, layer=5, seed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(five_lenses, "PROBE_SEEDS", range(1))
        how = (INDEPENDENT, LIMITS, "cpu", lambda line: None)
        return pd.concat(changes_by_layer([toy_checkpoint, changed], key, *how) for key in five_lenses.READERS)


def curve(table, measure, seed, column="value", control="", fold=-1):
    rows = table[(table["control"] == control) & (table["fold"] == fold)]
    rows = rows[(rows["measure"] == measure) & (rows["seed"] == seed)]
    return rows.set_index("layer")[column].to_numpy()


def test_every_measure_has_every_layer_of_every_model(measured):
    assert [*five_lenses.READERS] == [key for key in LENSES if key]
    counts = measured.groupby(["control", "seed", "measure", "fold"])["layer"].apply(list)
    of_models = {(control, measure) for control in TWINS for measure in MEASURES if measure != "rollback"}
    assert set(counts.index.droplevel(["seed", "fold"])) == of_models | {("", measure) for measure in MEASURES}
    assert set(measured[measured["fold"] >= 0]["measure"]) == set(FOLDED)
    assert all(layers == [1, 2, 3, 4, 5, 6] for layers in counts)
    assert np.isfinite(measured[["value", "null"]]).all(axis=None)
    assert set(measured.dropna(subset=["entering"])["measure"]) == set(ADDED)


@pytest.mark.parametrize("measure", MEASURES)
def test_only_what_is_read_at_or_above_the_layer_that_changed_differs(measured, measure):
    found = curve(measured, measure, 1)
    unchanged = slice(4) if BY_KEY[measure].reads_activations else [0, 1, 2, 3, 5]
    np.testing.assert_allclose(found[unchanged], 0, atol=1e-5)
    assert np.abs(found[4:]).max() > 1e-4
    assert measure != "weights" or found[4] == pytest.approx(1.0), "weights were doubled"


def test_an_encoder_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="name an independent encoder of the same shape"):
        independent_encoder(ENCODER, "random:english-bert/seed-0")
