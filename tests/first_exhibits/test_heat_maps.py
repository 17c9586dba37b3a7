"""Heat maps: what is written in their cells, and what is marked."""

import pandas as pd

from fivelenses.first_exhibits.heat_maps import heat_maps


def test_a_heat_map_writes_what_is_missing_and_leaves_an_empty_triangle_blank():
    matrix = pd.DataFrame([[1, None, None], [None, 1, None], [-0.5, 0.2, 1]], list("abc"), list("abc"))
    bold = matrix == -0.5
    figure = heat_maps({"": matrix}, "rank correlation", limits=(-1, 1), written="{:.1f}", bold=bold)
    axes = figure.axes[0]
    written = {tuple(int(place) for place in text.get_position()[::-1]): text for text in axes.texts}
    assert {place: text.get_text() for place, text in written.items()} == {
        (0, 0): "1.0",
        (1, 0): "–",
        (1, 1): "1.0",
        (2, 0): "−0.5",
        (2, 1): "0.2",
        (2, 2): "1.0",
    }
    assert [place for place, text in written.items() if text.get_fontweight() == "bold"] == [(2, 0)]


def test_the_peak_of_each_whole_row_is_marked():
    matrix = pd.DataFrame([[0.0, 1.0], [None, 1.0], [1.0, 0.0]], list("abc"), [1, 2])
    axes = heat_maps({"RTE": matrix}, "change", peaks=True).axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[1.5, 0.5], [0.5, 2.5]]
