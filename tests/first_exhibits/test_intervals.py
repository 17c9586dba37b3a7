"""From rows of a record to intervals: the same as on the arrays, in whatever order the rows come."""

import numpy as np
import pandas as pd
import pytest

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.intervals import of_measure, of_scores
from fivelenses.records import FOLDS
from fivelenses.tasks.scores import score
from fivelenses.tasks.subsets import folds

RNG = np.random.default_rng(0)


def folded(models: int = 3, folds: int = 5, shift: float = 0.0, first: int = 0) -> pd.DataFrame:
    """A mean over sentences with each fold left out, layers of two."""
    values = shift + RNG.normal(size=(models, 1, 1)) + RNG.normal(size=(models, folds, 2))
    rows = []
    for seed in range(models):
        for fold in range(-1, folds):
            kept = np.delete(values[seed], fold, axis=0) if fold >= 0 else values[seed]
            for layer in (1, 2):
                rows.append({"seed": first + seed, "fold": fold, "layer": layer, "x": kept[:, layer - 1].mean()})
    return pd.DataFrame(rows)


def growth(rows: pd.DataFrame) -> float:
    by_layer = rows.set_index("layer")["x"]
    return by_layer[2] - by_layer[1]


def arrays(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    wide = table.pivot(index=["seed", "fold"], columns="layer", values="x")
    values = (wide[2] - wide[1]).unstack("fold")
    return values[-1].to_numpy(), values.drop(columns=-1).to_numpy()


def test_a_measure_of_rows_is_that_of_arrays():
    table = folded()
    expected = effects.from_replicates(*arrays(table), examples=100)
    assert of_measure(table.sample(frac=1, random_state=0), growth, examples=100) == expected


@pytest.mark.parametrize("paired", [True, False])
def test_a_reference_is_subtracted(paired):
    table, reference = folded(), folded(shift=1, first=0 if paired else 5)
    found = of_measure(table, growth, reference=reference, paired_models=paired)
    assert found == effects.from_replicates(*arrays(table), arrays(reference), paired_models=paired)


def test_one_model_is_common_to_all():
    found = of_measure(folded(), growth, reference=folded(models=1, first=7))
    assert found.models == 3 and not found.of_this_model


def test_models_may_be_told_apart_by_two_columns():
    table = pd.concat([folded().assign(start="a"), folded().assign(start="b")])
    assert of_measure(table, growth, ["seed", "start"]).models == 6


def test_without_folds_the_mean_is_all_there_is():
    table = folded()
    whole = table[table["fold"] == -1]
    for rows in (whole, whole.drop(columns="fold")):
        found = of_measure(rows, growth)
        assert found.estimate == pytest.approx(arrays(table)[0].mean()) and not found.measured
    assert not of_measure(table, growth, reference=whole).measured
    assert of_measure(whole, growth, reference=table).estimate == pytest.approx(0)


def test_what_is_no_replicate_is_refused():
    table = folded()
    with pytest.raises(ValueError, match="no rows"):
        of_measure(table[:0], growth)
    with pytest.raises(ValueError, match="replicates of seed 1 lack fold 3"):
        of_measure(table[(table["seed"] != 1) | (table["fold"] != 3)], growth)
    with pytest.raises(ValueError, match="replicates of seed 2 lack fold -1"):
        of_measure(table[(table["seed"] != 2) | (table["fold"] != -1)], growth)
    with pytest.raises(ValueError, match=r"\(5,\).*are no pairs: say paired_models=False"):
        of_measure(table, growth, reference=folded(first=5))


def predictions(
    models: int = 3, examples: int = 40, metric: str = "accuracy", weight=1, first: int = 0
) -> pd.DataFrame:
    """Predictions of two labels that are right more often than not."""
    label = RNG.integers(0, 2, examples)
    weights = np.broadcast_to(weight, examples)
    rows = []
    for seed in range(first, first + models):
        said = np.where(RNG.random(examples) < 0.8, label, 1 - label)
        of_model = {"seed": seed, "example": np.arange(examples), "metric": metric, "label": label, "predicted": said}
        rows.append(
            pd.DataFrame(of_model | {"score": (said == label) * weights, "weight": weights, "null": label * 1.0})
        )
    return pd.concat(rows, ignore_index=True)


def wide(rows: pd.DataFrame, column: str) -> np.ndarray:
    return rows.pivot(index="seed", columns="example", values=column).to_numpy(float)


def test_accuracy_is_a_mean_over_examples():
    rows = predictions()
    expected = effects.interval(wide(rows, "score"))
    assert of_scores(rows.sample(frac=1, random_state=1)) == expected
    assert of_scores(rows, over_null=True) == effects.interval(wide(rows, "score") - wide(rows, "null"))


@pytest.mark.parametrize("paired", [True, False])
def test_the_difference_of_two_scores(paired):
    rows, other = predictions(), predictions(first=0 if paired else 3)
    expected = effects.interval(wide(rows, "score"), wide(other, "score"), paired)
    assert of_scores(rows, other, paired) == expected


def test_matthews_has_folds_of_examples_by_label():
    rows = predictions(metric="matthews", examples=60)
    found, labels = of_scores(rows), wide(rows, "label")[0]
    said = wide(rows, "predicted")
    whole = [score("matthews", one, labels) for one in said]
    left_out = [
        [score("matthews", one[kept], labels[kept]) for kept in (folds(labels) != f for f in range(FOLDS))]
        for one in said
    ]
    assert found == effects.from_replicates(whole, left_out, examples=60)
    assert of_scores(rows, over_null=True) == found


def test_labels_that_take_turns_in_the_table_do_not_widen_an_interval():
    rows = predictions(metric="matthews", examples=400).sort_values("label", kind="stable")
    place = np.arange(400)
    places = [10 * (place % 40) + place // 40, np.random.default_rng(0).permutation(400)]
    in_turn, shuffled = (
        of_scores(pd.concat(of.assign(example=place) for _, of in rows.groupby("seed"))).standard_error
        for place in places
    )
    assert in_turn == pytest.approx(shuffled, rel=0.3)


def test_scores_of_several_words_weigh_examples_by_their_words():
    weight = RNG.integers(1, 9, 40)
    rows = predictions(weight=weight)
    found = of_scores(rows)
    assert found.estimate == pytest.approx((wide(rows, "score").sum(1) / weight.sum()).mean()) and found.examples == 40
    over = of_scores(rows, over_null=True)
    assert over.estimate == pytest.approx(found.estimate - (wide(rows, "null")[0].sum() / weight.sum()))


def test_folds_of_equal_weights_give_nearly_the_interval_of_the_mean():
    """A jackknife of many examples in ten folds estimates the variance that the mean has."""
    rows = predictions(models=4, examples=2000)
    exact, folds = of_scores(rows), of_scores(rows.assign(weight=2.0, score=rows["score"] * 2))
    assert folds.estimate == pytest.approx(exact.estimate)
    assert folds.standard_error == pytest.approx(exact.standard_error, rel=0.5)


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda rows: (rows[:0],), "There are no predictions"),
        (lambda rows: (pd.concat([rows, rows]),), "several predictions of one seed"),
        (lambda rows: (rows[5:],), "scored on different examples"),
        (lambda rows: (rows, predictions(first=9)), "are no pairs"),
        (lambda rows: (rows.assign(task="rte"), rows.assign(task="mrpc")), "independent_difference"),
    ],
)
def test_what_cannot_be_compared_is_refused(give, message):
    with pytest.raises(ValueError, match=message):
        of_scores(*give(predictions()))


def test_a_difference_has_no_null_rate():
    with pytest.raises(ValueError, match="ask for one or the other"):
        of_scores(predictions(), predictions(), over_null=True)
