"""What was not learned takes no part: on the ordinary models, by the interval where there is one."""

import numpy as np
import pandas as pd
import pytest

from fivelenses.first_exhibits import gate, intervals

E = "bert"


def models(*rows: dict) -> pd.DataFrame:
    usual = {"encoder": E, "task": "rte", "seed": 0, "examples": 100, "epochs": 3.0, "frozen": -1, "truncated": -1}
    usual |= {"reinitialised": 0, "shuffled_labels": False, "score": 0.8, "null_rate": 0.5, "address": "a"}
    return pd.DataFrame([usual | row for row in rows])


def predicted(share: float, null: float = 0.5, seeds=(0, 1, 2), task: str = "rte", examples: int = 100) -> pd.DataFrame:
    """Accuracy `share` for each seed, each with other mistakes."""
    rows = []
    for seed in seeds:
        right = np.roll(np.arange(examples) < round(share * examples), 17 * seed)
        rows.append(
            pd.DataFrame(
                {"encoder": E, "task": task, "seed": seed, "address": f"{task}-{seed}", "metric": "accuracy"}
                | {"example": np.arange(examples), "score": right * 1.0, "weight": 1.0}
                | {"null": (np.arange(examples) >= round((1 - null) * examples)) * 1.0}
            )
        )
    return pd.concat(rows, ignore_index=True)


def of(rows: pd.DataFrame, **changes) -> pd.DataFrame:
    """The models that made these predictions."""
    means = rows.groupby(["task", "seed", "address"])[["score", "null"]].mean().reset_index()
    return models(
        *[
            {"task": one.task, "seed": one.seed, "address": one.address, "score": one.score, "null_rate": one.null}
            | changes
            for one in means.itertuples()
        ]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"frozen": 3},
        {"truncated": 2},
        {"reinitialised": 1},
        {"shuffled_labels": True},
        {"epochs": 9.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_interventions_and_longer_trainings_are_not_ordinary(change):
    table = models({}, {"seed": 1} | change)
    assert gate.ordinary(table)["seed"].tolist() == [0]


def test_each_size_of_the_training_set_is_gated_by_itself():
    few = predicted(0.55).assign(address=lambda rows: rows["address"] + "-few")
    rows = pd.concat([predicted(0.9), few])
    table = gate.learned(gate.ordinary(pd.concat([of(predicted(0.9)), of(few, examples=20)])), rows)
    assert table[["examples", "largest", "learned"]].values.tolist() == [[100, True, True], [20, False, False]]
    reasons = gate.unlearned(table, E)
    assert sorted(reasons) == ["rte from 20 examples", f"rte from 20 examples on {E}"]
    assert reasons["rte from 20 examples"].startswith(
        "RTE from 20 examples was not clearly learned: its score of 0.550"
    )


@pytest.mark.parametrize(("gain", "learned"), [(None, True), (0.3, True), (0.9, False)])
def test_a_tenth_of_the_papers_gain_is_the_margin_where_the_paper_has_one(gain, learned):
    rows = predicted(0.6, examples=2000)
    table = gate.learned(of(rows), rows, {} if gain is None else {"rte": gain})
    assert table["learned"].tolist() == [learned]
    assert table["margin"].tolist() == [pytest.approx(0.02 if gain is None else gain / 10)]
    reasons = gate.unlearned(table, E)
    assert learned or reasons["rte"].endswith("above the null rate, and the interval reaches below 0.09")


def bag(share: float, seeds=(0,), **columns) -> pd.DataFrame:
    """A bag of words for each of the seeds of training examples."""
    return predicted(share, seeds=seeds).drop(columns=["encoder", "address"]).assign(**{"examples": 100} | columns)


@pytest.mark.parametrize(("share", "learned"), [(0.6, True), (0.85, False), (0.95, False)])
def test_what_a_bag_of_words_reads_as_well_was_not_learned(share, learned):
    rows = predicted(0.85)
    table = gate.learned(of(rows), rows, words=bag(share))
    assert table["learned"].tolist() == [learned]
    assert table["over_words"].tolist() == [pytest.approx(0.85 - share)]
    reasons = gate.unlearned(table, E)
    assert learned or "] above that of a bag of words" in reasons["rte"]


def test_the_reason_names_the_task_as_it_is_written_and_a_shortfall_with_a_minus():
    rows = predicted(0.85, task="sst2")
    reasons = gate.unlearned(gate.learned(of(rows), rows, words=bag(0.95, task="sst2")), E)
    assert reasons["sst2"].startswith("SST-2 was not clearly learned: its score of 0.850 is −0.1")


def test_a_bag_of_another_task_or_size_does_not_count():
    rows = predicted(0.85)
    words = pd.concat([bag(0.95, task="mrpc"), bag(0.95, examples=50), bag(0.5)])
    assert gate.learned(of(rows), rows, words=words)["learned"].all()
    without = gate.learned(of(rows), rows, words=bag(0.95, task="mrpc"))
    assert without["learned"].all() and without["over_words"].isna().all()
    assert gate.learned(of(rows), rows, words=pd.DataFrame()).equals(gate.learned(of(rows), rows))


def test_models_on_examples_of_their_own_are_compared_with_bags_on_these():
    rows = predicted(0.85)
    table = gate.learned(of(rows), rows, words=bag(0.6, seeds=(0, 1, 2)))
    assert table["over_words"].tolist() == [pytest.approx(0.25)] and table["learned"].all()


def test_a_bag_of_words_has_a_matthews_correlation():
    rng, labels = np.random.default_rng(0), np.arange(200) % 2
    one = {"encoder": E, "task": "cola", "metric": "matthews", "example": np.arange(200), "weight": 1.0, "null": 0.0}
    tables = []
    for seed in (0, 1, 2):
        guessed = np.where(rng.random(200) < 0.9, labels, 1 - labels)
        right = {"score": (guessed == labels) * 1.0, "label": labels, "predicted": guessed}
        tables.append(pd.DataFrame(one | {"seed": seed, "address": f"cola-{seed}"} | right))
    rows = pd.concat(tables)
    perfect = tables[0].assign(score=1.0, predicted=labels, examples=100)
    made = models(*[{"task": "cola", "seed": seed, "address": f"cola-{seed}", "null_rate": 0.0} for seed in (0, 1, 2)])
    table = gate.learned(made, rows, words=perfect)
    assert table["over_words"].tolist() == [pytest.approx(table["above"][0] - 1)]
    assert not table["learned"].any()


def test_a_task_is_learned_where_the_interval_lies_two_points_above_the_null_rate():
    rows = pd.concat([predicted(0.9), predicted(0.55, task="mrpc")])
    table = gate.learned(of(rows), rows).set_index("task")
    assert table.loc["rte", "learned"] and not table.loc["mrpc", "learned"]
    assert table.loc["mrpc", "low"] < 0.02 < table.loc["mrpc", "above"] == pytest.approx(0.05)
    assert table["measured"].all()


def test_without_predictions_the_mean_score_decides():
    table = gate.learned(models({"score": 0.53}, {"task": "mrpc", "score": 0.52}))
    assert table.set_index("task")["learned"].to_dict() == {"rte": True, "mrpc": False}
    assert not table["measured"].any()


def test_predictions_of_other_models_do_not_count():
    rows = predicted(0.9)
    others = predicted(0.1).assign(address="frozen")
    assert gate.learned(of(rows), pd.concat([rows, others])).equals(gate.learned(of(rows), rows))


def test_a_model_without_predictions_is_refused():
    rows = predicted(0.9)
    with pytest.raises(ValueError, match=r"Predictions of rte with bert lack the seeds \[1\]"):
        gate.learned(of(rows), rows[rows["seed"] != 1])
    with pytest.raises(ValueError, match="several predictions of one seed"):
        gate.learned(
            pd.concat([of(rows), of(rows).assign(address="again")]), pd.concat([rows, rows.assign(address="again")])
        )


def test_reasons_are_by_key_with_names_and_numbers():
    rows = predicted(0.55)
    table = gate.learned(of(rows), rows)
    reasons = gate.unlearned(table, E)
    assert sorted(reasons) == ["rte", "rte from 100 examples", f"rte from 100 examples on {E}", f"rte on {E}"]
    (reason,) = set(reasons.values())
    assert reason.startswith("RTE was not clearly learned: its score of 0.550 is 0.050 [−0.")
    assert reason.endswith("] above the null rate, and the interval reaches below 0.02")
    assert list(gate.unlearned(table, "another")) == ["rte on bert", "rte from 100 examples on bert"]
    (reason,) = set(gate.unlearned(gate.learned(models({"score": 0.45})), "another").values())
    assert reason == "RTE on bert was not learned: its score of 0.450 is −0.050 above the null rate, not above 0.02"
    assert gate.unlearned(gate.learned(models({})), E) == {}


def test_pooled_over_seeds_one_bad_seed_does_not_leave_a_task_out_but_three_do():
    good, bad = predicted(0.95, seeds=(0, 1, 2, 3)), predicted(0.9, seeds=(4,))
    rows = pd.concat([good, bad])
    assert gate.learned(of(rows), rows)["learned"].all()
    assert intervals.of_scores(rows, over_null=True).models == 5
    rows = pd.concat([predicted(0.95, seeds=(0, 1)), predicted(0.5, seeds=(2, 3, 4))])
    assert not gate.learned(of(rows), rows)["learned"].any()
