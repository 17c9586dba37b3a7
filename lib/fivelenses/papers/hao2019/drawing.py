"""How surfaces are drawn: panels of one figure share their colours, contours and axes; start and end are marked.

Colours are those of viridis, dark where the value is small, as in the paper: their lightness rises evenly, so they read
the same to colour-blind readers and in grey. A cell without a finite loss is a cross.
"""

import html
import json
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fivelenses.first_exhibits import style
from fivelenses.lenses.basin import Surface

MAP = "viridis"
FLOOR = 0.0125  # nats; what is lower has its colour
CONTOURS = 15  # of a loss
ERROR_STEP = 0.05
RIM = dict(colors="white", linestyles="--", linewidths=1.6)
START_MARK = dict(marker="o", color="white", markeredgecolor="black", markersize=8, linestyle="none", zorder=5)
END_MARK = START_MARK | dict(marker="*", markersize=13)
ALPHA, BETA = "α, along δ₁", "β, along δ₂"
# Folded, and drawn by `_static/surface.js`; a bare notebook has the still picture above.
TURNABLE = """<details class="turnable"><summary>Turn it: each surface in three dimensions</summary>
<label>Show <select>{options}</select></label>
<canvas class="shades" width="640" height="420" tabindex="0" role="img" aria-label="{label}"></canvas>
<script type="application/json">{content}</script></details>"""


def loss_levels(values: np.ndarray) -> np.ndarray:
    """Contours of a loss in equal ratios, from the least value or `FLOOR` to the greatest; NaN is left out.

    Example:
        >>> loss_levels(np.array([0.2, np.nan, 1.2])).round(2)
        array([0.2 , 0.23, 0.26, 0.29, 0.33, 0.38, 0.43, 0.49, 0.56, 0.63, 0.72,
               0.82, 0.93, 1.06, 1.2 ])
    """
    low = max(np.nanmin(values), FLOOR)
    return np.geomspace(low, max(np.nanmax(values), 1.05 * low), CONTOURS)


def error_levels(values: np.ndarray) -> np.ndarray:
    """Contours of an error rate in steps of 0.05; NaN is left out.

    Example:
        >>> error_levels(np.array([0.12, 0.24])).round(2)
        array([0.1 , 0.15, 0.2 , 0.25])
    """
    first, last = np.floor(np.nanmin(values) / ERROR_STEP), np.ceil(np.nanmax(values) / ERROR_STEP)
    return ERROR_STEP * np.arange(first, max(last, first + 1) + 1)


def bar_ticks(levels: np.ndarray) -> np.ndarray:
    """Where a colour bar of these levels has ticks: 1, 2 and 5 and their tenfolds for a loss, where three of them lie
    within the levels, and every other level, or fewer, otherwise.

    Example:
        >>> bar_ticks(loss_levels(np.array([0.09, 1.9])))
        array([0.1, 0.2, 0.5, 1. ])
        >>> bar_ticks(error_levels(np.array([0.12, 0.24]))).round(2)
        array([0.1 , 0.15, 0.2 , 0.25])
    """
    if not np.allclose(np.diff(levels), levels[1] - levels[0]):
        rounded = np.outer(10.0 ** np.arange(-2, 4), [1, 2, 5]).ravel()
        within = rounded[(rounded >= levels[0]) & (rounded <= levels[-1])]
        if len(within) >= 3:
            return within
    return levels[:: -(-len(levels) // 9)]


def turnable(surfaces: Mapping[str, Surface], label: str) -> str:
    """A piece of a page in which a reader turns each of some surfaces, all on one scale of the logarithm of the loss.

    Args:
        surfaces: title to surface; a loss that is not finite leaves a hole.
        label: what is to be seen, for readers who cannot see it.
    """
    logs = {name: np.log10(surface.losses.clip(FLOOR)) for name, surface in surfaces.items()}
    low = min(np.nanmin(log) for log in logs.values())
    reach = max(np.nanmax(log) for log in logs.values()) - low or 1.0
    drawn = []
    for name, surface in surfaces.items():
        heights = ((logs[name] - low) / reach).round(3).astype(object)
        heights[~np.isfinite(surface.losses)] = None
        axes = {"alphas": surface.alphas.round(3).tolist(), "betas": surface.betas.round(3).tolist()}
        middle = int(abs(surface.betas).argmin())
        marks = {mark: (middle, int(abs(surface.alphas - at).argmin())) for mark, at in (("start", 0), ("end", 1))}
        drawn.append(axes | {"heights": heights.tolist(), "marks": marks})
    content = {"surfaces": drawn, "shades": [to_hex(shade) for shade in colormaps[MAP](np.linspace(0, 1, 40))]}
    options = "".join(f"<option>{html.escape(name)}</option>" for name in surfaces)
    written = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return TURNABLE.format(options=options, label=html.escape(label), content=written)


def panels(count: int) -> tuple[Figure, list[Axes]]:
    """Square panels in two columns, with the same axes."""
    rows = -(-count // 2)
    sized = dict(figsize=(style.WIDTH, 3.35 * rows + 1.1), layout="constrained", squeeze=False)
    figure, grid = plt.subplots(rows, 2, **sized, sharex=True, sharey=True)
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    return figure, list(grid.flat[:count])


def draw(axes: Axes, surface: Surface, value: str, levels: np.ndarray, rim: float | None = None):
    """One surface of `loss` or `error`: filled contours at the levels of the whole figure, thin lines between them, and
    dashed and white the rim of a basin. Returns what a colour bar is made from.
    """
    values = surface.losses if value == "loss" else surface.errors
    # What has no number is left white and crossed.
    shown = np.ma.masked_invalid(values.clip(levels[0], levels[-1]))
    filled = axes.contourf(
        surface.alphas, surface.betas, shown, levels, norm=BoundaryNorm(levels, colormaps[MAP].N), cmap=MAP
    )
    axes.contour(surface.alphas, surface.betas, shown, levels, colors="white", linewidths=0.4, alpha=0.5)
    if rim is not None:
        axes.contour(surface.alphas, surface.betas, shown, [rim], **RIM)
    rows, columns = np.nonzero(~np.isfinite(values))
    axes.plot(surface.alphas[columns], surface.betas[rows], "x", color="#444444", markersize=4)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.tick_params(labelsize=9)
    return filled


def finish(figure: Figure, shown: Sequence[Axes], filled, label: str, marks: Sequence[tuple[str, dict]]) -> None:
    """Names of the outer axes, one colour bar, and one legend of the marks."""
    for axes in shown:
        place = axes.get_subplotspec()
        if place.is_first_col():
            axes.set_ylabel(BETA, fontsize=10)
        if place.rowspan.stop == place.get_gridspec().nrows or place.colspan.start == len(shown) % 2 == 1:
            axes.set_xlabel(ALPHA, fontsize=10)
    bar = figure.colorbar(filled, ax=list(shown), location="bottom", fraction=0.045, aspect=38, pad=0.015)
    ticks = bar_ticks(np.asarray(filled.levels))
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=9)
    bar.set_label(label, fontsize=10)
    handles = [Line2D([], [], **how) for _, how in marks]
    names = [name for name, _ in marks]
    box = figure.legend(handles, names, loc="outside upper center", ncols=len(names), fontsize=10, frameon=True)
    # White marks would not be seen on white.
    box.get_frame().set(facecolor="#4A5468", edgecolor="none", alpha=1)
    for text in box.get_texts():
        text.set_color("white")
