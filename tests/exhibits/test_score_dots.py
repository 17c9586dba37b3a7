import pandas as pd
import pytest
from matplotlib import pyplot as plt

from fivelenses.exhibits import score_dots

TITLES = {"rte": "RTE", "sst2": "SST-2"}


@pytest.fixture
def table():
    rows = [
        (task, start, score + 0.01 * seed, 0.5, 0.6)
        for task, scores in (("rte", (0.5, 0.7)), ("sst2", (0.6, 0.9)))
        for start, score in zip((score_dots.SCRATCH, score_dots.PRETRAINED), scores, strict=True)
        for seed in range(3)
    ]
    yield pd.DataFrame(rows, columns=["task", "start", "score", "majority", "bag_of_words"])
    plt.close("all")


def drawn(figure) -> dict[str, list[float]]:
    """Marker and face to the scores drawn with it, without the legend's own marks."""
    found = {}
    for line in figure.axes[0].lines:
        face = "open" if line.get_mfc() == "white" else "filled"
        found.setdefault(f"{line.get_marker()} {face}", []).extend(float(value) for value in line.get_xdata())
    return found


def test_every_seed_is_a_dot_filled_with_pretraining_and_open_from_scratch(table):
    marks = drawn(score_dots.beside_baselines(table, "task", TITLES, "score", "majority"))
    assert marks["o filled"] == pytest.approx([0.70, 0.71, 0.72, 0.90, 0.91, 0.92])
    assert marks["o open"] == pytest.approx([0.50, 0.51, 0.52, 0.60, 0.61, 0.62])
    assert marks["x filled"] == [0.5, 0.5] and marks["| filled"] == [0.6, 0.6]


def test_a_published_score_stands_on_the_lines_that_have_one(table):
    published = {"Known": {"sst2": 0.8}}
    figure = score_dots.beside_baselines(table, "task", TITLES, "score", "majority", published)
    assert drawn(figure)["D filled"] == [0.8]
    assert "Known" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_what_cannot_be_drawn_is_refused(table):
    with pytest.raises(ValueError, match="nothing to draw for CoLA"):
        score_dots.beside_baselines(table, "task", TITLES | {"cola": "CoLA"}, "score", "majority")
    with pytest.raises(ValueError, match="5 published encoders"):
        score_dots.beside_baselines(table, "task", TITLES, "score", "majority", dict.fromkeys("abcde", {}))
