"""Heat maps in the house style, on seaborn: tables whose cells are shaded by their values."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fivelenses.first_exhibits import style

SHADES = "YlGnBu"  # its lightness falls evenly: it reads the same in grey and to colour-blind readers
SIGNED = "PuOr_r"  # safe for colour-blind readers, light at 0
MISSING = "#BBBBBB"


def heat_maps(
    matrices: Mapping[str, pd.DataFrame],
    bar_label: str,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    signed: bool = False,
    written: str | None = None,
    bold: pd.DataFrame | None = None,
    framed: pd.DataFrame | None = None,
    peaks: bool = False,
    breaks: Sequence[int] = (),
    ticks: Mapping[float, str] | None = None,
    x_label: str = "",
    col_wrap: int = 2,
    width: float = style.WIDTH,
    height: float | None = None,
) -> Figure:
    """Draw one shaded table per matrix, all with the same shades, which the bar above explains.

    Args:
        matrices: title to values; the names of rows and columns are those drawn, rows from the top down, and the same
            rows in all.
        bar_label: what the shades are.
        limits: of the shades.
        signed: light in the middle and dark at both ends.
        written: the format of the number in each cell; a missing value is a dash, or blank in an empty upper triangle.
        bold, framed: which numbers are bold, which cells framed; in one matrix.
        peaks: a white dot in the greatest cell of each row without missing values.
        breaks: numbers of the rows above which a gap parts them.
        ticks: of the bar, with their words.
        x_label: the words under all panels.
        width, height: inches; the height is that of one panel.

    Example:
        >>> matrix = pd.DataFrame([[0.9, None], [-0.2, 0.8]], ["JS", "RSA"], ["JS", "RSA"])
        >>> figure = heat_maps({"": matrix}, "rank correlation", limits=(-1, 1), signed=True, written="{:.1f}")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['0.9', '−0.2', '0.8']
        >>> style.close(figure)
    """
    import seaborn as sns

    columns, height = min(col_wrap, len(matrices)), height or 0.33 * len(next(iter(matrices.values()))) + 0.6
    rows = -(-len(matrices) // columns)
    sized = dict(figsize=(width, height * rows + 0.8), layout="constrained", squeeze=False, sharey=True)
    figure, grid = plt.subplots(rows, columns, **sized)
    shades = dict(vmin=limits[0], vmax=limits[1], cmap=SIGNED if signed else SHADES, cbar=False)
    for axes, (title, matrix) in zip(grid.flat, matrices.items(), strict=False):
        matrix = matrix.astype(float)
        texts = matrix.map(lambda value: written.format(value).replace("-", "−")) if written else None
        cells = dict(annot=texts, fmt="", annot_kws=dict(fontsize=10), linewidths=0.8, linecolor="white")
        axes.set_facecolor("white" if written else MISSING)
        sns.heatmap(matrix, ax=axes, **shades, **cells)
        missing, above = matrix.isna().to_numpy(), np.triu(np.ones(matrix.shape, dtype=bool), 1)
        blank = above & missing[above].all()
        for row, column in np.argwhere(missing & ~blank) if written else ():
            axes.text(column + 0.5, row + 0.5, "–", ha="center", va="center", fontsize=10)
        for text in axes.texts if bold is not None else ():
            column, row = map(int, text.get_position())
            text.set_fontweight("bold" if bold.iloc[row, column] else "normal")
        for row, column in np.argwhere(framed.to_numpy()) if framed is not None else ():
            axes.add_patch(Rectangle((column + 0.06, row + 0.06), 0.88, 0.88, fill=False, color="black"))
        if peaks:
            whole = np.flatnonzero(~missing.any(axis=1))
            axes.plot(matrix.to_numpy()[whole].argmax(axis=1) + 0.5, whole + 0.5, "o", color="white", markersize=5.5)
        for place in breaks:
            axes.axhline(place, color="white", linewidth=5)
        axes.set(xlabel="", ylabel="")
        axes.set_title(title, fontweight="bold")
        axes.grid(False)
        axes.tick_params(length=0, labelrotation=0)
        if not pd.api.types.is_numeric_dtype(matrix.columns):
            plt.setp(axes.get_xticklabels(), rotation=45, ha="right", rotation_mode="anchor")
    for axes in grid.flat[len(matrices) :]:
        axes.set_visible(False)
    figure.supxlabel(x_label, fontsize="medium")
    placed = dict(ax=list(grid.flat), location="top", shrink=0.6, aspect=30, label=bar_label)
    bar = figure.colorbar(grid.flat[0].collections[0], **placed)
    if ticks:
        bar.set_ticks(list(ticks), labels=list(ticks.values()))
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    return figure
