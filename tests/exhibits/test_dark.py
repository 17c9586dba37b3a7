"""Pictures for dark pages: shades keep their colours, what is written around them turns light, lines have none."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from fivelenses.exhibits import dark, style
from fivelenses.exhibits.exhibit import DRAWN_IN, IN_THE_DARK, SHADES, Exhibit
from fivelenses.exhibits.heat_maps import heat_maps

VALUES = pd.DataFrame([[0.9, np.nan], [0.4, 0.8]], ["low", "high"], ["one", "two"])


@pytest.fixture
def shaded():
    figure = heat_maps({"": VALUES}, "share", limits=(0, 1), written="{:.1f}", breaks=(1,))
    yield Exhibit("paper-table-1", "Table 1", VALUES, "A caption.", "Shades of a share.", figure)
    style.close(figure)


def pixels(drawn: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(drawn)).convert("RGB")).astype(int)


def share_of(colour: str, picture: np.ndarray) -> float:
    return (np.abs(picture - 255 * np.array(to_rgb(colour))).sum(-1) < 6).mean()


def test_the_ground_is_dark_and_the_shades_stay(shaded):
    light, dark_one = pixels(shaded.png), pixels(shaded.dark_png)
    assert share_of("white", light) > 0.25 and share_of("white", dark_one) < 0.01
    assert share_of(dark.GROUND, dark_one) > 0.25
    cells = shaded.figure.axes[0].collections[0].get_facecolors()
    for cell in cells[[0, 2, 3]]:
        assert (
            share_of(cell, dark_one) == pytest.approx(share_of(cell, light), abs=0.01) and share_of(cell, light) > 0.05
        )


def test_words_on_shades_keep_their_colour_and_those_around_them_turn_light(shaded):
    (axes, *_) = shaded.figure.axes
    on_shades = {text.get_text(): text.get_color() for text in axes.texts}
    with dark.on_dark_ground(shaded.figure):
        for text in axes.texts:
            # A dash stands in a cell that has no shade.
            expected = dark.INK if text.get_text() == "–" else on_shades[text.get_text()]
            assert text.get_color() == expected
        assert {label.get_color() for label in axes.get_yticklabels()} == {dark.INK}
    assert {text.get_text(): text.get_color() for text in axes.texts} == on_shades


def test_a_figure_is_afterwards_as_it_was(shaded):
    shaded.figure.canvas.draw()
    before = shaded._drawn("white")
    assert shaded.dark_png and shaded._drawn("white") == before


def test_only_shades_are_saved_twice(shaded, tmp_path):
    shaded.save(tmp_path)
    saved = (tmp_path / f"paper-table-1{IN_THE_DARK}").read_bytes()
    assert saved == shaded.dark_png and Image.open(io.BytesIO(saved)).info[DRAWN_IN] == SHADES
    lines = Figure()
    lines.subplots().plot([0, 1])
    exhibit = Exhibit("paper-figure-1", "Figure 1", VALUES, "A caption.", "A line.", lines)
    exhibit.save(tmp_path)
    assert exhibit.dark_png == b"" and not (tmp_path / f"paper-figure-1{IN_THE_DARK}").exists()


def test_the_grid_beside_shades_is_quiet_in_the_dark():
    figure = Figure()
    curve, shades = figure.subplots(1, 2)
    curve.plot([0, 1], color="black")
    curve.grid(True, color="#E5E5E5")
    shades.pcolormesh([[0, 1]])
    with dark.on_dark_ground(figure):
        assert {line.get_color() for line in curve.get_xgridlines()} == {dark.GRID}
        assert curve.lines[0].get_color() == dark.INK
    assert {line.get_color() for line in curve.get_xgridlines()} == {"#E5E5E5"}
