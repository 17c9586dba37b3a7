"""Scores with folds left out give the same intervals as predictions by example."""

import numpy as np
import pandas as pd
import pytest

from fivelenses.first_exhibits import intervals


def predictions(metric: str, models: int = 3, examples: int = 97) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, examples)
    parts = []
    for seed in range(models):
        predicted = np.where(rng.random(examples) < 0.8, gold, 1 - gold)
        part = {"seed": seed, "example": range(examples), "metric": metric, "weight": 1.0, "label": gold}
        parts.append(pd.DataFrame(part | {"predicted": predicted, "score": predicted == gold, "null": gold == 0}))
    return pd.concat(parts, ignore_index=True).astype({"score": float})


def test_of_matthews_correlation_they_give_the_interval_of_scores():
    rows = predictions("matthews")
    table = intervals.with_folds(rows, ["seed"])
    one, other = intervals.of_measure(table, lambda of: of["score"].item(), examples=97), intervals.of_scores(rows)
    assert (one.low, one.high) == pytest.approx((other.low, other.high)) and one.examples == other.examples == 97


def test_models_of_several_tasks_keep_their_own_examples():
    rows = pd.concat([predictions("accuracy").assign(task="a"), predictions("matthews", 2, 40).assign(task="b")])
    table = intervals.with_folds(rows.sample(frac=1, random_state=0), ["task", "seed"])
    whole = table[table["fold"] == intervals.WHOLE].set_index(["task", "seed"])
    assert whole["scored_examples"].sort_index().tolist() == [97] * 3 + [40] * 2
    means = rows[rows["task"] == "a"].groupby("seed")["score"].mean()
    assert whole.loc["a", "score"].sort_index().tolist() == pytest.approx(means.tolist())
    assert (table.groupby(["task", "seed"]).size() == 1 + intervals.FOLDS).all()
