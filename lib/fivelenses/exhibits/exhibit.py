"""An exhibit: one tidy table, one picture, a caption, an alternative text, and what the paper prints."""

import io
import os
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Image, Markdown, display
from matplotlib.figure import Figure

from fivelenses.exhibits import style

ALT_BEGINS = "\nAlternative text: "


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
        shown: what the page prints for a table, when it is not the tidy table itself.
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

    def __post_init__(self):
        if self.table.empty:
            raise ValueError(f"The exhibit {self.key} has an empty table: nothing was measured.")
        if not self.caption or (self.figure is not None and not self.alt):
            raise ValueError(f"The exhibit {self.key} needs a caption, and its picture an alternative text.")

    def save(self, folder: Path) -> None:
        """Write ``<key>.parquet``, ``.png``, ``.svg`` and ``.md`` (the caption and alternative text), each
        beside and renamed.
        """
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / f"{self.key}.parquet", lambda path: self.table.to_parquet(path, index=False))
        text = f"**{self.title}.** {self.caption}\n" + (f"{ALT_BEGINS}{self.alt}\n" if self.alt else "")
        _replace(folder / f"{self.key}.md", lambda path: path.write_text(text, encoding="utf-8"))
        if self.figure is not None:
            _replace(folder / f"{self.key}.png", lambda path: path.write_bytes(self.png()))
            _replace(
                folder / f"{self.key}.svg",
                lambda path: self.figure.savefig(path, format="svg", metadata={"Date": None}),
            )

    def png(self) -> bytes:
        """The picture as a PNG with at most 256 colours, a third of its size and no difference to the eye."""
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
            display(HTML(as_html(self.table if self.shown is None else self.shown, f"{self.title}. {self.caption}")))


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


def as_html(table: pd.DataFrame, caption: str) -> str:
    """A table as HTML with a caption; it scrolls in its own box where the page is narrow."""
    styled = table.style.set_caption(caption).hide(axis="index").set_table_attributes('class="table exhibit"')
    # Names from the content, not from chance: the same run gives the same page.
    return f'<div class="exhibit-table" tabindex="0">{styled.set_uuid("exhibit").to_html(exclude_styles=True)}</div>'


def _replace(path: Path, write) -> None:
    beside = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    write(beside)
    beside.replace(path)
