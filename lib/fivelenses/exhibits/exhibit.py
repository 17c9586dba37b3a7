"""An exhibit: one tidy table, one picture, a caption, an alternative text, and what the paper prints."""

import functools
import io
import numbers
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Image, Markdown, display
from matplotlib.figure import Figure

from fivelenses.exhibits import style
from fivelenses.files import written_beside

ALT_BEGINS = "\nAlternative text: "
MISSING = "–"

Format = str | Callable[[object], object]


def counted(number: int, noun: str) -> str:
    """A number of things, in words for a caption.

    Example:
        >>> counted(1, "seed"), counted(3, "pair")
        ('1 seed', '3 pairs')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper, made anew.

    Attributes:
        key: paper and number, `hao2020-figure-1`.
        title: `Figure 1`.
        table: tidy, one observation a row.
        caption: what is shown, with how many tasks and seeds.
        alt: what a reader who cannot see the picture should know; empty for a table without a picture.
        figure: the picture, None for a table.
        shown: what the page prints for a table of another shape than the tidy one.
        columns, formats: which columns a page prints, under which headers, and how, see `as_html`.
        interactive: the same as a piece of a page that a reader can turn, see `interactive.folded`; or empty.
    """

    key: str
    title: str
    table: pd.DataFrame
    caption: str
    alt: str = ""
    figure: Figure | None = None
    shown: pd.DataFrame | None = field(default=None)
    interactive: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, Format] = field(default_factory=dict)

    def __post_init__(self):
        if self.table.empty:
            raise ValueError(f"The exhibit {self.key} has an empty table: nothing was measured.")
        if not self.caption or (self.figure is not None and not self.alt):
            raise ValueError(f"The exhibit {self.key} needs a caption, and its picture an alternative text.")

    def save(self, folder: Path) -> None:
        """Write ``<key>.parquet``, ``.png``, ``.svg`` and ``.md`` (the caption and alternative text), each
        beside and renamed.
        """
        with written_beside(folder / f"{self.key}.parquet") as place:
            self.table.to_parquet(place, index=False)
        text = f"**{self.title}.** {self.caption}\n" + (f"{ALT_BEGINS}{self.alt}\n" if self.alt else "")
        with written_beside(folder / f"{self.key}.md") as place:
            place.write_text(text, encoding="utf-8")
        if self.figure is not None:
            with written_beside(folder / f"{self.key}.png") as place:
                place.write_bytes(self.png())
            with written_beside(folder / f"{self.key}.svg") as place:
                self.figure.savefig(place, format="svg", metadata={"Date": None})

    def png(self) -> bytes:
        """The picture as a PNG with at most 256 colours, a third of its size and no difference to the eye."""
        return self._png

    @functools.cached_property
    def _png(self) -> bytes:
        from PIL import Image as Picture

        drawn, packed = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, format="png", metadata={"Software": None})
        Picture.open(drawn).convert("RGB").quantize(256).save(packed, format="png", optimize=True)
        return packed.getvalue()

    def show(self) -> None:
        """Display the picture or table with its caption in a notebook."""
        if self.figure is not None:
            display(Image(self.png(), alt=self.alt), metadata={"image/png": {"alt": self.alt}})
            display(Markdown(f"**{self.title}.** {self.caption}"))
            if self.interactive:
                display(HTML(self.interactive))
            style.close(self.figure)
        else:
            table = self.table if self.shown is None else self.shown
            display(HTML(as_html(table, f"{self.title}. {self.caption}", self.formats, self.columns)))


@dataclass(frozen=True)
class Absent:
    """An exhibit that a run cannot have: nothing is saved, the page says why, and claims on it cannot be tested.

    Attributes:
        key, title: as an `Exhibit`'s.
        reason: the rest of a sentence that begins with "because".

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


@dataclass(frozen=True)
class Words:
    """What ``<key>.md`` says of an exhibit: its title, its caption with the title in front (Markdown), and what a
    reader should know who cannot see the picture.
    """

    title: str
    caption: str
    alt: str


def read_words(file: Path) -> Words:
    """The words that `Exhibit.save` left beside a table or picture."""
    caption, _, alt = file.read_text(encoding="utf-8").partition(ALT_BEGINS)
    title, _, _ = caption.removeprefix("**").partition(".** ")
    return Words(title, caption.strip(), alt.strip())


def as_html(
    table: pd.DataFrame,
    caption: str,
    formats: Mapping[str, Format] | None = None,
    columns: Mapping[str, str] | None = None,
) -> str:
    """A table as HTML with a caption; it scrolls in its own box where the page is narrow.

    Args:
        table: what is printed; missing values as dashes, minus signs of numbers as such.
        caption: above it.
        formats: column to a format of its values (`"{:.3f}"`), a format filled from the row by the names of its
            columns (`"{score:.3f} ± {spread:.3f}"`), or a function of a value that is not missing.
        columns: those printed, in this order, with their headers; all when empty.

    Raises:
        KeyError: a format or header of a column that the table does not have.

    Example:
        >>> scores = pd.DataFrame({"task": ["rte"], "gain": [-0.25], "null": [float("nan")]})
        >>> formats = {"gain": "{gain:.2f} ({null:.2f})", "task": str.upper}
        >>> page = as_html(scores, "Scores.", formats, {"task": "task", "gain": "change"})
        >>> "−0.25 (–)" in page, ">change<" in page, "RTE" in page, ">null<" in page
        (True, True, True, False)
    """
    formats, columns = dict(formats or {}), dict(columns or {name: name for name in table.columns})
    unknown = [name for name in (*formats, *columns) if name not in table.columns]
    if unknown:
        raise KeyError(f"The table has no column {unknown[0]!r}; it has {', '.join(map(str, table.columns))}.")
    printed = pd.DataFrame({name: _cells(table, name, formats.get(name)) for name in columns}, index=table.index)
    styled = printed.set_axis(list(columns.values()), axis="columns").style.set_caption(caption).hide(axis="index")
    styled = styled.set_table_attributes('class="table exhibit"')
    # Names from the content, not from chance: the same run gives the same page.
    return f'<div class="exhibit-table" tabindex="0">{styled.set_uuid("exhibit").to_html(exclude_styles=True)}</div>'


class _Typographic(string.Formatter):
    """Formats numbers with minus signs, and missing values as dashes."""

    def format_field(self, value: object, format_spec: str) -> str:
        if _is_missing(value):
            return MISSING
        text = format(value, format_spec)
        return text.replace("-", "−") if isinstance(value, numbers.Number) else text


def _cells(table: pd.DataFrame, column: str, form: Format | None) -> list[str]:
    """One column as a page prints it."""
    values, formatter = table[column].tolist(), _Typographic()
    if callable(form):
        return [formatter.format("{}", value if _is_missing(value) else form(value)) for value in values]
    if form is not None and any(field for _, field, _, _ in formatter.parse(form)):
        return [formatter.vformat(form, (), row) for row in table.to_dict("records")]
    return [formatter.format(form or ("{:.6f}" if isinstance(value, float) else "{}"), value) for value in values]


def _is_missing(value: object) -> bool:
    return pd.api.types.is_scalar(value) and pd.isna(value)
