import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from fivelenses.first_exhibits import plots, style

SCORES = plots.looks_of_tasks(["rte", "sst2"])
STARTS = dict(row="task", titles=SCORES.names, value_label="score", hue="start", looks=SCORES, open=["scratch"])


@pytest.fixture
def curves():
    rows = [
        (task, seed, layer, top * layer / 6 + 0.01 * seed, 0.9 - 0.1 * (layer == 6))
        for task, top in (("rte", 0.3), ("sst2", 0.6))
        for seed in range(3)
        for layer in range(1, 7)
    ]
    yield pd.DataFrame(rows, columns=["task", "seed", "layer", "js", "null"])


@pytest.fixture
def scores():
    rows = [
        (task, start, score + 0.01 * seed, 0.5, 0.6)
        for task, pair in (("rte", (0.5, 0.7)), ("sst2", (0.6, 0.9)))
        for start, score in zip(("scratch", "pre-trained"), pair, strict=True)
        for seed in range(3)
    ]
    yield pd.DataFrame(rows, columns=["task", "start", "score", "majority", "bag_of_words"])


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def drawn_dots(figure) -> dict[str, list[float]]:
    """Filled and open dots to their scores."""
    found = {}
    for dots in filter(lambda dots: len(dots.get_offsets()), figure.axes[0].collections):
        face = "open" if to_hex(dots.get_facecolor()[0]) == "#ffffff" else "filled"
        found.setdefault(face, []).extend(dots.get_offsets()[:, 0].tolist())
    return found


def test_a_curve_is_the_mean_over_seeds_in_the_tasks_colour_and_its_band_goes_from_least_to_greatest(curves):
    axes = plots.curves(curves, "js", "task", SCORES, "JS").axes[0]
    line = next(line for line in axes.lines if line.get_color() == style.TASK_COLOURS["sst2"])
    assert line.get_ydata() == pytest.approx(0.1 * np.arange(1, 7) + 0.01)
    bands = {to_hex(band.get_facecolor()): band.get_paths()[0].vertices for band in axes.collections}
    last = bands[style.TASK_COLOURS["sst2"].lower()]
    assert set(last[last[:, 0] == 6][:, 1].round(6)) == {0.6, 0.62}
    assert axes.get_xticks().tolist() == [1, 2, 3, 4, 5, 6]


def test_names_and_the_dashed_null_stand_at_the_ends_of_curves(curves):
    axes = plots.curves(curves, "js", "task", SCORES, "JS", nulls={"null": "untrained"}).axes[0]
    null = next(line for line in axes.lines if line.get_color() == style.NULL_COLOUR)
    assert null.get_linestyle() == "--" and null.get_ydata()[-1] == pytest.approx(0.8)
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    assert heights == pytest.approx({"RTE": 0.31, "SST-2": 0.61, "untrained": 0.8})


def test_panels_share_one_legend_and_a_null_far_above_is_written(curves):
    both = pd.concat([curves.assign(measure="a"), curves.assign(measure="b", null=50.0)])
    titles = {"b": "Second", "a": "First"}
    figure = plots.curves(both, "js", "task", SCORES, "", nulls={"null": "null"}, col="measure", titles=titles, far=2)
    assert [axes.get_title("left") for axes in figure.axes] == ["Second", "First"]
    assert figure.axes[0].get_title("right") == "null: 50.00 to 50.00"
    assert texts(figure) == ["RTE", "SST-2", "null"]


def test_lines_tell_kinds_apart_and_units_are_named_at_their_ends(curves):
    twice = pd.concat([curves.assign(way="scratch"), curves.assign(way="tuned", js=curves["js"] / 2)])
    dashes = {"scratch": ("from scratch", "--"), "tuned": ("fine-tuned", "-")}
    figure = plots.curves(twice, "js", "task", SCORES, "JS", col="task", dash="way", dashes=dashes)
    assert texts(figure) == ["from scratch", "fine-tuned"]
    grown = curves.assign(change="grew")
    looks = plots.looks_in_sequence({"grew": "grows"})
    dashed = dict(dash="change", dashes={"grew": ("grows", "--")})
    axes = plots.curves(grown, "js", "change", looks, "JS", unit="task", **dashed).axes[0]
    assert {line.get_linestyle() for line in axes.lines if len(line.get_xdata())} == {"--"}
    assert {text.get_text() for text in axes.texts} == {"rte", "sst2"}


def test_values_below_the_bottom_are_not_hidden(curves):
    low = curves.assign(js=curves["js"] - 0.5)
    assert plots.curves(low, "js", "task", SCORES, "JS").axes[0].get_ylim()[0] < -0.4
    assert plots.curves(curves, "js", "task", SCORES, "JS").axes[0].get_ylim()[0] == 0


def test_a_panel_without_values_says_so_and_missing_values_are_refused_otherwise(curves):
    gap = curves.assign(js=curves["js"].where(curves["task"] == "rte"))
    figure = plots.curves(gap, "js", "task", SCORES, "JS", col="task", missing="not separable")
    assert [text.get_text() for text in figure.axes[1].texts] == ["not separable"]
    with pytest.raises(ValueError, match="missing value"):
        plots.curves(gap, "js", "task", SCORES, "JS")


def test_groups_without_rows_or_names_and_too_many_groups_are_refused(curves):
    with pytest.raises(ValueError, match="nothing to draw for CoLA"):
        plots.curves(curves, "js", "task", plots.looks_of_tasks(["rte", "sst2", "cola"]), "JS")
    with pytest.raises(ValueError, match="'sst2', which would not be drawn"):
        plots.curves(curves, "js", "task", plots.looks_of_tasks(["rte"]), "JS")
    with pytest.raises(ValueError, match="5 colours in sequence, and 6 groups"):
        plots.looks_in_sequence(range(6))
    with pytest.raises(ValueError, match="4 lines for nulls, and 5"):
        plots.curves(curves, "js", "task", SCORES, "JS", nulls=dict.fromkeys("abcde", "null"))


def test_every_seed_is_a_dot_filled_with_pretraining_and_open_from_scratch(scores):
    marks = {"majority": "majority", "bag_of_words": "bag of words"}
    figure = plots.dots(scores, "score", **STARTS, marks=marks)
    dots = drawn_dots(figure)
    assert dots["filled"] == pytest.approx([0.70, 0.71, 0.72, 0.90, 0.91, 0.92])
    assert dots["open"] == pytest.approx([0.50, 0.51, 0.52, 0.60, 0.61, 0.62])
    lines = {line.get_marker(): list(line.get_xdata()) for line in figure.axes[0].lines if len(line.get_xdata())}
    assert lines["x"] == [0.5, 0.5] and lines["|"] == [0.6, 0.6]
    assert texts(figure) == ["scratch", "pre-trained", "majority", "bag of words"]


def test_dots_of_one_row_stand_in_it(scores):
    axes = plots.dots(scores, "score", **STARTS).axes[0]
    heights = np.concatenate([dots.get_offsets()[:, 1] for dots in axes.collections])
    assert set(heights.round().tolist()) == {0, 1} and (np.abs(heights - heights.round()) < 0.4).all()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["RTE", "SST-2"]


def test_ranges_go_from_the_least_to_the_greatest_and_pairs_are_joined(scores):
    axes = plots.dots(scores, "score", **STARTS, spread=True, joined=True).axes[0]
    bars = {tuple(np.round(line.get_xdata(), 3).tolist()) for line in axes.lines if len(line.get_xdata()) == 2}
    assert {(0.5, 0.52), (0.7, 0.72), (0.6, 0.62), (0.9, 0.92)} <= bars
    ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    assert np.allclose(ends, [[0.51, 0.71], [0.61, 0.91]])


def test_dots_that_cannot_be_drawn_are_refused(scores):
    with pytest.raises(ValueError, match="nothing to draw for CoLA"):
        plots.dots(scores, "score", **STARTS | {"titles": SCORES.names | {"cola": "CoLA"}})
    with pytest.raises(ValueError, match="7 things to mark"):
        plots.dots(scores, "score", **STARTS, marks=dict.fromkeys("abcdefg", ""))
