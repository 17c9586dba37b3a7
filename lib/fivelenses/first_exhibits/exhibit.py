"""An exhibit: one tidy table, one picture, a caption, an alternative text, and what the paper prints."""

import base64
import functools
import io
import itertools
import numbers
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Markdown, display
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from PIL import Image

from fivelenses import tasks
from fivelenses.files import written_beside
from fivelenses.first_exhibits import style

MISSING = "–"
ALL_DIVERGED = "The training of every model diverged, so none can be compared: lower learning_rate."
MANY_COLUMNS = 12  # from which a table has no room for a spread on the line of its number

Format = str | Callable[[object], object]
Column = str | tuple[str, Format]  # a header, and how the column's values are printed


LINES, SHADES = "lines", "shades"  # a dark page inverts the first and frames the second
NARROW = 640  # pixels; a phone shows such a picture whole, with letters of 10 pixels


def drawn_in(figure: Figure) -> str:
    """Whether a picture is drawn in lines, or in shades that stand for numbers.

    Example:
        >>> figure = Figure()
        >>> _ = figure.subplots().plot([0, 1])
        >>> drawn_in(figure)
        'lines'
        >>> _ = figure.axes[0].pcolormesh([[0, 1]])
        >>> drawn_in(figure)
        'shades'
    """
    shaded = figure.findobj(lambda part: isinstance(part, ScalarMappable) and part.get_array() is not None)
    return SHADES if shaded else LINES


def counted(number: int, noun: str) -> str:
    """A number of things, in words for a caption.

    Example:
        >>> counted(1, "seed"), counted(3, "pair")
        ('1 seed', '3 pairs')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def first_seed(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows of the first seed, for a figure of one model, and words on the others for its caption.

    Example:
        >>> rows, words = first_seed(pd.DataFrame({"seed": [11, 10, 10], "loss": [0.3, 0.2, 0.1]}))
        >>> rows["loss"].tolist(), words
        ([0.2, 0.1], ' Seed 10 of 2.')
    """
    seeds = sorted(table["seed"].unique())
    words = f" Seed {seeds[0]} of {len(seeds)}." if len(seeds) > 1 else ""
    return table[table["seed"] == seeds[0]], words


def trained_on(examples: int, at_hand: str) -> str:
    """How many examples a model was trained on and where they came from, in words for a table.

    Args:
        examples: how many the model was trained on.
        at_hand: what there was, as `fivelenses.tasks.examples.Data.provenance` says it.

    Example:
        >>> trained_on(8000, "whole, 67,349 examples"), trained_on(3668, "whole, 3,668 examples")
        ('8,000 of 67,349 examples', 'whole, 3,668 examples')
        >>> trained_on(1500, "toy world, 4,000 examples")
        'toy world, 1,500 of 4,000 examples'
    """
    if f"{examples:,} " in at_hand:
        return at_hand
    source, _, size = at_hand.partition(", ")
    of_all = f"{examples:,} of {size.split(' of ')[-1]}"
    return of_all if source in ("whole", "sample") else f"{source}, {of_all}"


def title(name: str) -> str:
    """What a task, or a pair of tasks, is called; what is no task keeps its name.

    Example:
        >>> title("sst2"), title("rte–mnli"), title("lexical")
        ('SST-2', 'RTE–MNLI', 'lexical')
    """
    return "–".join(map(_title, name.split("–")))


def _title(name: str) -> str:
    try:
        return tasks.find(name).title
    except ValueError:
        return name


def printed(value: float, form: str = "g") -> str:
    """A number with a minus sign that is one.

    Example:
        >>> printed(-0.304, "+.2f")
        '−0.30'
    """
    return f"{value:{form}}".replace("-", "−")


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper, made anew.

    Attributes:
        key, title: paper and number, `hao2020-figure-1`, and `Figure 1`.
        table: tidy, one observation per row.
        caption: what is shown, with how many tasks and seeds.
        alt: what a reader who cannot see the picture should know; empty for a table without a picture.
        figure: the picture, None for a table.
        shown: what the page prints for a table of another shape than the tidy one.
        columns: which columns a page prints, under which headers, and how, see `as_html`.
    """

    key: str
    title: str
    table: pd.DataFrame
    caption: str
    alt: str = ""
    figure: Figure | None = None
    shown: pd.DataFrame | None = field(default=None)
    columns: Mapping[str, Column] = field(default_factory=dict)

    def __post_init__(self):
        if self.table.empty:
            raise ValueError(f"The exhibit {self.key} has an empty table: nothing was measured.")
        if not self.caption or (self.figure is not None and not self.alt):
            raise ValueError(f"The exhibit {self.key} needs a caption, and its picture an alternative text.")

    @functools.cached_property
    def png(self) -> bytes:
        """The picture as a PNG with at most 256 colours, a third of its size and no difference to the eye."""
        drawn, packed = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, format="png", facecolor="white", metadata={"Software": None})
        Image.open(drawn).convert("RGB").quantize(256).save(packed, format="png", optimize=True)
        return packed.getvalue()

    @functools.cached_property
    def html(self) -> str:
        """The element of a page, with the key as its address, is a table or a `<figure>` whose class says how the
        picture is drawn.
        """
        if self.figure is None:
            table = self.table if self.shown is None else self.shown
            body = as_html(table, f"{self.title}. {self.caption}", self.columns)
            return f'<div class="exhibit" id="{self.key}">{body}</div>'
        width, height = Image.open(io.BytesIO(self.png)).size
        source = f"data:image/png;base64,{base64.b64encode(self.png).decode()}"
        about = f'alt="{escape(self.alt)}" width="{width}" height="{height}" loading="lazy"'
        kind = drawn_in(self.figure) + " narrow" * (width <= NARROW)
        return (
            f'<figure class="exhibit" id="{self.key}"><div class="picture {kind}" tabindex="0">'
            f'<img src="{source}" {about}></div>'
            f"<figcaption><b>{escape(self.title)}.</b> {escape(self.caption, quote=False)}</figcaption></figure>"
        )

    def save(self, folder: Path) -> None:
        """Write ``<key>.parquet`` and ``<key>.html``, and of a picture ``.png`` and ``.svg``, beside and renamed."""
        with written_beside(folder / f"{self.key}.parquet") as place:
            self.table.to_parquet(place, index=False)
        with written_beside(folder / f"{self.key}.html") as place:
            place.write_text(self.html, encoding="utf-8")
        if self.figure is not None:
            with written_beside(folder / f"{self.key}.png") as place:
                place.write_bytes(self.png)
            with written_beside(folder / f"{self.key}.svg") as place:
                self.figure.savefig(place, format="svg", metadata={"Date": None})

    def show(self) -> None:
        """Display the picture or table with its caption in a notebook."""
        display(HTML(self.html))
        if self.figure is not None:
            style.close(self.figure)


@dataclass(frozen=True)
class Absent:
    """An exhibit that a run cannot have: nothing is saved, the page says why (a `reason` is the rest of a sentence that
    begins with "because"), and claims on it cannot be tested.

    Example:
        >>> Absent("hao2020-figure-4", "Figure 4", "it compares seeds and this run has one").sentence
        'Figure 4 is not here, because it compares seeds and this run has one.'
    """

    key: str
    title: str
    reason: str

    @property
    def sentence(self) -> str:
        """What the page says in its place."""
        return f"{self.title} is not here, because {self.reason}."

    def show(self) -> None:
        """Display the sentence in a notebook."""
        display(Markdown(self.sentence))


def as_html(table: pd.DataFrame, caption: str, columns: Mapping[str, Column] | None = None) -> str:
    """A table as HTML with its caption; it scrolls in its own box where the page is narrow. What the first column says
    in several rows in turn is printed once, beside all of them.

    Args:
        table: what is printed; missing values as dashes, minus signs of numbers as such.
        columns: those printed, in this order, each with its header, or with its header and a format: of its values
            (`"{:.3f}"`), filled from the row by the names of its columns (`"{score:.3f} ± {spread:.3f}"`), or a
            function of a value that is not missing. All when empty.

    Raises:
        KeyError: a column that the table does not have.

    Example:
        >>> scores = pd.DataFrame({"task": ["rte"], "gain": [-0.25], "null": [float("nan")]})
        >>> columns = {"task": ("task", str.upper), "gain": ("change", "{gain:.2f} ({null:.2f})")}
        >>> page = as_html(scores, "Scores.", columns)
        >>> "−0.25 (–)" in page, ">change<" in page, "RTE" in page, ">null<" in page
        (True, True, True, False)
        >>> twice = pd.concat([scores, scores], ignore_index=True)
        >>> as_html(twice, "Scores.", columns).count("RTE")
        1
    """
    columns = columns or {name: name for name in table.columns}
    if unknown := [name for name in columns if name not in table.columns]:
        raise KeyError(f"The table has no column {unknown[0]!r}; it has {', '.join(map(str, table.columns))}.")
    shown = {name: one if isinstance(one, tuple) else (one, None) for name, one in columns.items()}
    head = "".join(f'<th scope="col">{escape(header)}</th>' for header, _ in shown.values())
    kept = escape if len(shown) >= MANY_COLUMNS else _unbroken
    cells = [[kept(cell) for cell in _cells(table, name, form)] for name, (_, form) in shown.items()]
    rows = []
    for name, alike in itertools.groupby(zip(*cells, strict=True), key=lambda row: row[0]):
        rest = ["".join(f"<td>{cell}</td>" for cell in row[1:]) for row in alike]
        first = f'<th scope="rowgroup" rowspan="{len(rest)}">{name}</th>' if len(rest) > 1 else f"<td>{name}</td>"
        rows += [f"<tr>{first}{rest[0]}</tr>", *(f"<tr>{further}</tr>" for further in rest[1:])]
    body = "\n".join(rows)
    return (
        '<div class="exhibit-table" tabindex="0"><table class="table exhibit">'
        f"<caption>{escape(caption, quote=False)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _unbroken(cell: str) -> str:
    """A cell whose spread stays on the line of its number."""
    return escape(cell).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


class _Typographic(string.Formatter):
    """Formats numbers with minus signs, and missing values as dashes."""

    def format_field(self, value: object, format_spec: str) -> str:
        if _is_missing(value):
            return MISSING
        text = format(value, format_spec)
        return text.replace("-", "−") if isinstance(value, numbers.Number) else text


def filled(table: pd.DataFrame, form: str) -> list[str]:
    """A sentence filled from each row, with minus signs of numbers as such and missing values as dashes.

    Example:
        >>> filled(pd.DataFrame({"task": ["rte"], "gain": [-0.25]}), "{task}: {gain:+.1f}")
        ['rte: −0.2']
    """
    return [_Typographic().vformat(form, (), row) for row in table.to_dict("records")]


def _cells(table: pd.DataFrame, column: str, form: Format | None) -> list[str]:
    """One column as a page prints it."""
    values, formatter = table[column].tolist(), _Typographic()
    if callable(form):
        return [formatter.format("{}", value if _is_missing(value) else form(value)) for value in values]
    if form is not None and any(field for _, field, _, _ in formatter.parse(form)):
        return filled(table, form)
    return [formatter.format(form or ("{:.6f}" if isinstance(value, float) else "{}"), value) for value in values]


def _is_missing(value: object) -> bool:
    return pd.api.types.is_scalar(value) and pd.isna(value)
