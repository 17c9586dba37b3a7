"""The picture of a sweep: which models it draws, and how."""

import pandas as pd
import pytest

from fivelenses.book.sweeps import fine_tuned, score_against


def models(rows: list[dict]) -> pd.DataFrame:
    """The exhibit `models` of a sweep's table, with what the rows leave open filled in."""
    usual = {"point": "p", "task": "rte", "encoder": "toy-bert/seed-0", "seed": 0, "examples": 100}
    usual |= {"frozen": -1, "truncated": -1, "reinitialised": 0, "metric": "accuracy", "null_rate": 0.5}
    usual |= {"shuffled_labels": 0}
    return pd.DataFrame([usual | {"score": 0.6} | row for row in rows])


def test_only_whole_models_on_all_their_examples_are_drawn():
    table = models(
        [
            {"score": 0.9, "keep": 1},
            {"frozen": 0, "keep": 1},
            {"truncated": 3, "keep": 1},
            {"reinitialised": 2, "keep": 1},
            {"examples": 10, "keep": 1},
            {"encoder": "random:toy-bert/seed-0", "keep": 1},
            {"shuffled_labels": 1, "keep": 1},
            # Another point may have fewer.
            {"point": "q", "examples": 10, "score": 0.7, "keep": 2},
        ]
    )
    assert fine_tuned(table)["score"].tolist() == [0.9, 0.7]
    scratch = table[table["encoder"].str.startswith("random:")]
    assert len(fine_tuned(scratch)) == 1


def test_a_swept_name_does_not_hide_the_models_own():
    table = models([{"score": 0.8}]).rename(columns={"task": "table_task", "frozen": "table_frozen"})
    chosen = fine_tuned(table.assign(task='["rte", "mrpc"]', frozen="[3]"))
    assert chosen[["of_task", "frozen"]].values.tolist() == [["rte", "[3]"]]


def test_a_quantity_is_a_curve_of_means_with_a_band_over_the_other_parameters():
    table = models(
        [
            {"rate": rate, "seed": seed, "task": task, "score": 0.5 + place / 10 + seed / 20}
            for task in ("rte", "mrpc")
            for place, rate in enumerate((1e-2, 1e-4, 1e-3))
            for seed in (0, 1)
        ]
    )
    exhibit = score_against(fine_tuned(table), "rate", "s")
    assert [axes.get_title("left") for axes in exhibit.drawing.figure.axes] == ["RTE", "MRPC"]
    for axes in exhibit.drawing.figure.axes:
        curve, null = axes.lines
        assert curve.get_xdata() == pytest.approx([1e-4, 1e-3, 1e-2])
        assert curve.get_ydata() == pytest.approx([0.625, 0.725, 0.525])
        assert set(null.get_ydata()) == {0.5}
        low, high = (edge for edge in axes.collections[0].get_datalim(axes.transData).intervaly)
        assert (low, high) == pytest.approx((0.5, 0.75))
        assert axes.get_xscale() == "log"
    assert exhibit.caption.endswith("against rate: RTE and MRPC; 2 models per task.")
    assert "RTE: RTE: 0.625 at 0.0001, 0.525 at 0.01." in exhibit.drawing.alt


@pytest.mark.parametrize(
    ("parameter", "column"), [("task", "table_task"), ("biases_and_norms", "task"), ("seed", "task")]
)
def test_what_is_no_quantity_is_drawn_as_dots(parameter, column):
    rows = models([{"task": task, "score": score} for task, score in (("rte", 0.6), ("mrpc", 0.7), ("rte", 0.8))])
    rows = rows.rename(columns={"task": column, "seed": "table_seed"})
    values = {"task": ["rte", "mrpc", "rte"], "biases_and_norms": ["kept", "kept", "reset"], "seed": [0, 0, 1]}
    exhibit = score_against(fine_tuned(rows.assign(**{parameter: values[parameter]})), parameter, "s")
    axes = exhibit.drawing.figure.axes[0]
    assert sorted(x for dots in axes.collections for x, _ in dots.get_offsets()) == pytest.approx([0.6, 0.7, 0.8])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["RTE", "MRPC"]
    legend = [text.get_text() for text in exhibit.drawing.figure.legends[0].get_texts()]
    named = [f"{parameter} {value}" for value in dict.fromkeys(values[parameter])]
    assert legend == [*named, "null rate"]


def test_a_sweep_without_a_whole_model_has_none_to_draw():
    assert fine_tuned(models([{"frozen": 3, "keep": 1}])).empty
