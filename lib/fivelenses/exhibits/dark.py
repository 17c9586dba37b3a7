"""A picture for a dark page. Lines on white are shown inverted there; shades stand for the numbers of their colour bar,
so only what is written around them may turn light.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

GROUND, GRID, INK = "#121212", "#333333", "#d8d8d8"  # as the book's own dark theme has them
GAP = "_gap"  # the label of a line that parts shades as the ground would
GREY = 0.1  # the largest difference between red, green and blue of what counts as grey


def is_shaded(part: Artist) -> bool:
    """Whether a figure, or a part of it, is drawn in shades that stand for numbers.

    Example:
        >>> figure = Figure()
        >>> _ = figure.subplots().plot([0, 1])
        >>> is_shaded(figure)
        False
        >>> _ = figure.axes[0].pcolormesh([[0, 1]])
        >>> is_shaded(figure)
        True
    """
    return bool(part.findobj(lambda one: isinstance(one, ScalarMappable) and one.get_array() is not None))


@contextmanager
def on_dark_ground(figure: Figure) -> Iterator[None]:
    """Draw a figure's ground dark and its dark words and lines light, but for what lies on shades; then as before.

    Example:
        >>> figure = Figure()
        >>> _ = figure.subplots().pcolormesh([[0, 1]])
        >>> with on_dark_ground(figure):
        ...     figure.axes[0].xaxis.label.get_color()
        '#d8d8d8'
        >>> figure.axes[0].xaxis.label.get_color()
        'black'
    """
    figure.canvas.draw()  # labels of ticks are made when they are first drawn
    before: list[tuple[Callable, object]] = []

    def change(getter: Callable, setter: Callable, shade: Callable[[object], str | None]) -> None:
        old = getter()
        new = shade(old)
        if new is not None:
            before.append((setter, old))
            setter(new)

    kept = {id(artist) for axes in figure.axes if is_shaded(axes) for artist in _on_shades(axes)}
    grid = {id(line) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for line in axis.get_gridlines()}
    for artist in figure.findobj():
        if id(artist) in grid:
            change(artist.get_color, artist.set_color, lambda _: GRID)
        elif isinstance(artist, QuadMesh):  # its edges are the gaps between its cells
            change(artist.get_edgecolor, artist.set_edgecolor, lambda old: _as_ground(old[0]) if len(old) else None)
        elif artist.get_label() == GAP:
            change(artist.get_color, artist.set_color, _as_ground)
        elif id(artist) in kept:
            continue
        elif isinstance(artist, Text):
            change(artist.get_color, artist.set_color, _as_ink)
        elif isinstance(artist, Line2D):
            change(artist.get_color, artist.set_color, _as_ink)
            change(artist.get_markeredgecolor, artist.set_markeredgecolor, _as_ink)
        elif isinstance(artist, Patch):
            change(artist.get_edgecolor, artist.set_edgecolor, _as_ink)
            change(artist.get_facecolor, artist.set_facecolor, _as_ground)
    try:
        yield
    finally:
        for setter, old in reversed(before):
            setter(old)


def _on_shades(axes: Axes) -> Iterator[Artist]:
    """What is drawn on the shades of a panel; a dash in a cell without a number is not."""
    yield from (*axes.lines, *axes.patches)
    for text in axes.texts:
        inside = axes.bbox.contains(*text.get_transform().transform(text.get_position()))
        if inside and text.get_text() != "–":
            yield text


def _grey(colour) -> float | None:
    """How light a grey is, in [0, 1]; None for what is no grey, or cannot be seen."""
    red, green, blue, cover = to_rgba(colour)
    return (red + green + blue) / 3 if cover > 0 and max(red, green, blue) - min(red, green, blue) < GREY else None


def _as_ink(colour) -> str | None:
    light = _grey(colour)
    return INK if light is not None and light < 0.6 else None


def _as_ground(colour) -> str | None:
    light = _grey(colour)
    return GROUND if light is not None and light > 0.97 else None
