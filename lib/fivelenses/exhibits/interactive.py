"""Pictures that a reader can turn or ask, folded under their still ones; they work with the network off.

A page holds the data; `_static/interactive.js` draws them with plotly, which lies once beside the book
(`_static/plotly.min.js`) and is loaded when the first picture is unfolded. Where they are not available, as in a bare
notebook, the still picture above says the same.
"""

import html
import json
from collections.abc import Mapping

import pandas as pd
from plotly import colors, graph_objects

from fivelenses.exhibits import style
from fivelenses.exhibits.exhibit import filled

SCRIPT = "plotly.min.js"
HEIGHT = 460  # pixels
DIGITS = 4  # significant, of every number in a page
GREY, PALE = "rgba(128,128,128,0.7)", "rgba(128,128,128,0.25)"
SHADES, SIGNED = colors.sequential.YlGnBu, colors.diverging.PuOr_r  # those of `heat_maps`
# The markers of `style` in plotly's words.
SYMBOLS = {"o": "circle", "s": "square", "D": "diamond", "d": "diamond-tall", "P": "cross", "X": "x", "*": "star"}
SYMBOLS |= {"p": "pentagon", "h": "hexagon"}
SYMBOLS |= {mark: f"triangle-{way}" for mark, way in zip("^v<>", ("up", "down", "left", "right"), strict=True)}
SHADED = {"heatmap", "surface"}

_PAGE = """<details class="interactive" id="{key}"><summary>{summary}</summary>
{choice}<div class="interactive-picture {kind}" style="height:{height}px" role="img" aria-label="{label}"></div>
<script type="application/json">{content}</script></details>"""
_CHOICE = '<label class="interactive-choice">Show <select>{options}</select></label>\n'


def folded(
    figures: graph_objects.Figure | Mapping[str, graph_objects.Figure], key: str, summary: str, label: str
) -> str:
    """Plotly figures as one folded piece of a page, of which one is seen at a time.

    Args:
        figures: one, or several by the words that choose them.
        key: the exhibit's key: the piece's name on its page.
        summary, label: the line that unfolds it, and what is to be seen for readers who cannot see it.

    Example:
        >>> figure = graph_objects.Figure(graph_objects.Scatter(x=[0, 1], y=[1, 0]))
        >>> page = folded({"one": figure, "other": figure}, "some-key", "Turn it", "A line that falls.")
        >>> "<details" in page, page.count("<option")
        (True, 2)
    """
    views = figures if isinstance(figures, Mapping) else {"": figures}
    drawn = [_plain(figure) for figure in views.values()]
    kinds = {trace["type"] for view in drawn for trace in view["data"]}
    options = "".join(f"<option>{html.escape(words)}</option>" for words in views)
    # A page may not hold the end of a script inside a script.
    written = json.dumps(drawn, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return _PAGE.format(
        key=f"{key}-interactive",
        summary=html.escape(summary),
        choice=_CHOICE.format(options=options) if len(views) > 1 else "",
        kind="shades" if kinds & SHADED else "lines",
        label=html.escape(label),
        height=HEIGHT,
        content=written,
    )


def _plain(figure: graph_objects.Figure) -> dict:
    """A figure in the house style as what a page holds."""
    # In the dark, lines on white are shown inverted, as in still pictures, and shades on the page's own ground.
    ground = "rgba(0,0,0,0)"
    figure.update_layout(
        template="none", margin=dict(l=10, r=10, t=30, b=10), paper_bgcolor=ground, plot_bgcolor=ground
    )
    legend = dict(orientation="h", y=1.02, yanchor="bottom")
    figure.update_layout(font=dict(size=12, color="#222222"), hoverlabel=dict(align="left"), legend=legend)
    axes = dict(gridcolor=PALE, zerolinecolor=GREY, automargin=True, fixedrange=True)
    figure.update_xaxes(**axes).update_yaxes(**axes)
    content = json.loads(figure.to_json())
    return {"data": _rounded(content["data"]), "layout": content["layout"]}


def _rounded(value):
    """The numbers of nested lists and dictionaries with as many digits as a reader can see."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def points(
    rows: pd.DataFrame, x: str, y: str, hover: str, look: tuple[str, str], name: str, *, mode: str = "markers", **more
) -> graph_objects.Scatter:
    """Rows of a table as points, or a curve, that say what they are.

    Args:
        x, y: columns.
        hover: what a point says, filled from its row: `"{task}, seed {seed}: {score:.3f}"`.
        look: colour and marker, of `style.Looks`.
        name: in the legend.
        mode, more: as plotly has them.

    Example:
        >>> scores = pd.DataFrame({"seed": [0, 1], "score": [0.7, 0.8]})
        >>> points(scores, "seed", "score", "seed {seed}: {score:.2f}", ("black", "o"), "RTE").text
        ('seed 0: 0.70', 'seed 1: 0.80')
    """
    colour, marker = look
    marks = dict(color=colour, symbol=SYMBOLS[marker], size=8) | more.pop("marker", {})
    return graph_objects.Scatter(
        x=rows[x].tolist(), y=rows[y].tolist(), text=filled(rows, hover), hoverinfo="text", name=name, mode=mode,
        marker=marks, line=dict(color=colour, width=1.5), **more,
    )  # fmt: skip


def heat_map(
    rows: pd.DataFrame, value: str, row: str, column: str, hover: str, signed: bool = False
) -> graph_objects.Figure:
    """Rows of a table as shaded cells that say what they are, in the order in which they come, from the top down.

    Args:
        value, row, column: columns of the table, one row per cell.
        hover: what a cell says, filled from its row.
        signed: shades to both sides of 0.
    """
    order = dict(index=row, columns=column, sort=False)
    wide = rows.pivot_table(value, **order, dropna=False, aggfunc="first")
    texts = rows.assign(told=filled(rows, hover)).pivot_table("told", **order, aggfunc="first").reindex_like(wide)
    most = wide.abs().max(axis=None)
    limits = dict(zmin=-most, zmax=most, colorscale=SIGNED) if signed else dict(colorscale=SHADES)
    cells = wide.astype(object).where(wide.notna(), None).to_numpy().tolist()
    shades = graph_objects.Heatmap(
        z=cells, x=list(map(str, wide.columns)), y=list(map(str, wide.index)), text=texts.to_numpy().tolist(),
        hoverinfo="text", xgap=1, ygap=1, colorbar=dict(thickness=12, outlinewidth=0), **limits,
    )  # fmt: skip
    figure = graph_objects.Figure(shades)
    figure.update_xaxes(type="category", showgrid=False)
    return figure.update_yaxes(type="category", autorange="reversed", showgrid=False)


def level(y: float, words: str) -> dict:
    """A dashed grey line with its name, for `update_layout(shapes=…)`."""
    label = dict(text=words, textposition="end", yanchor="bottom", font=dict(color=style.NULL_COLOUR))
    line = dict(color=style.NULL_COLOUR, dash="dash", width=1.4)
    return dict(type="line", xref="paper", x0=0, x1=1, y0=y, y1=y, line=line, label=label)
