import pandas as pd
import pytest

from fivelenses.exhibits.sweep import fine_tuned, score_against


def models(rows: list[dict]) -> pd.DataFrame:
    """The exhibit `models` of a sweep's table, with what the rows leave open filled in."""
    usual = {"point": "p", "task": "rte", "encoder": "toy-bert/seed-0", "seed": 0, "training_examples": 100.0}
    usual |= {"frozen": 0.0, "truncated": float("nan"), "reinitialised": 0.0, "metric": "accuracy", "null_rate": 0.5}
    return pd.DataFrame([usual | {"score": 0.6} | row for row in rows])


def drawn(figure):
    """The curves of a picture that are not dashed: abscissae and ordinates."""
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "-"]
    return [(list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))) for line in lines]


def test_only_whole_models_on_all_their_examples_are_drawn():
    table = models(
        [
            {"score": 0.9, "keep": 1},
            {"frozen": 1.0, "keep": 1},
            {"truncated": 3.0, "keep": 1},
            {"reinitialised": 2.0, "keep": 1},
            {"training_examples": 10.0, "keep": 1},
            {"encoder": "random:toy-bert/seed-0", "keep": 1},
            # Another point may have fewer.
            {"point": "q", "training_examples": 10.0, "score": 0.7, "keep": 2},
        ]
    )
    assert fine_tuned(table, "keep")["score"].tolist() == [0.9, 0.7]
    scratch = table[table["encoder"].str.startswith("random:")]
    assert len(fine_tuned(scratch, "keep")) == 1


def test_a_swept_name_does_not_hide_the_models_own():
    table = models([{"score": 0.8}]).rename(columns={"task": "table_task", "frozen": "table_frozen"})
    chosen = fine_tuned(table.assign(task='["rte", "mrpc"]', frozen="[3]"), "frozen")
    assert chosen[["task", "frozen", "value"]].values.tolist() == [["rte", 0.0, "[3]"]]


def test_a_quantity_is_a_curve_of_means_with_a_band_over_the_other_parameters():
    table = models(
        [
            {"rate": rate, "seed": seed, "task": task, "score": 0.5 + place / 10 + seed / 20}
            for task in ("rte", "mrpc")
            for place, rate in enumerate((1e-2, 1e-4, 1e-3))
            for seed in (0, 1)
        ]
    )
    exhibit = score_against(table, "rate", "a sweep")
    curves = drawn(exhibit.figure)
    assert len(curves) == 2
    for places, scores in curves:
        assert places == [1e-4, 1e-3, 1e-2]
        assert scores == pytest.approx([0.625, 0.725, 0.525])
    assert exhibit.figure.axes[0].get_xscale() == "log"
    assert exhibit.table[["least", "greatest", "models"]].iloc[0].tolist() == pytest.approx([0.5, 0.55, 2])
    assert "rte at 0.01 0.525; rte at 0.0001 0.625" in exhibit.alt


@pytest.mark.parametrize(
    ("parameter", "column"), [("task", "table_task"), ("biases_and_norms", "task"), ("seed", "task")]
)
def test_what_is_no_quantity_is_drawn_as_points(parameter, column):
    rows = models([{"task": task, "score": score} for task, score in (("rte", 0.6), ("mrpc", 0.7), ("rte", 0.8))])
    rows = rows.rename(columns={"task": column, "seed": "table_seed"})
    values = {"task": ["rte", "mrpc", "rte"], "biases_and_norms": ["kept", "kept", "reset"], "seed": [0, 0, 1]}
    exhibit = score_against(rows.assign(**{parameter: values[parameter]}), parameter, "a sweep")
    marks = [line for line in exhibit.figure.axes[0].lines if line.get_linestyle() == "None"]
    assert sorted(float(score) for line in marks for score in line.get_ydata()) == [0.6, 0.7, 0.8]
    ticks = [tick.get_text() for tick in exhibit.figure.axes[0].get_xticklabels()]
    assert ticks == list(dict.fromkeys(map(str, values[parameter])))


def test_a_sweep_without_a_whole_model_has_no_picture():
    with pytest.raises(ValueError, match="No model of a sweep was fine-tuned as a whole"):
        score_against(models([{"frozen": 3.0, "keep": 1}]), "keep", "a sweep")
