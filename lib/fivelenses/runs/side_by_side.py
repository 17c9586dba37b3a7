"""Several runs next to one another: claims by runs, and the pictures of one exhibit, for chapters, ledger and report.

Pages are filled from the templates beside this file (Jinja); what they hold is read from the runs' ``claims.json`` and
exhibits.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markdown_it import MarkdownIt
from markupsafe import Markup

from fivelenses.exhibits.exhibit import read_words
from fivelenses.exhibits.verdicts import CANNOT_BE_TESTED, CONTRADICTED, MIXED, OPEN, REPRODUCED
from fivelenses.runs.pictures import element, within

# A sign beside the colour, for readers to whom colours look alike.
SIGNS = {REPRODUCED: "●", CONTRADICTED: "✕", MIXED: "◐", OPEN: "○", CANNOT_BE_TESTED: "–"}


@dataclass(frozen=True)
class Picture:
    """A picture of one run: its element of the page, a caption in Markdown, and the run in a reader's words."""

    element: Markup
    caption: str
    whose: str


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).with_name("templates"))
    # What ends in .html is escaped; Markdown is not.
    environment = Environment(loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined)
    environment.filters["kind"] = lambda outcome: outcome.replace(" ", "-")
    environment.filters["minus"] = lambda number: number.replace("-", "−")
    environment.filters["markdown"] = lambda text: Markup(MarkdownIt("commonmark").render(text))
    return environment


def render(template: str, **content) -> str:
    """A template of this package, filled; it is refused where it asks for something that was not given."""
    return _environment().get_template(template).render(signs=SIGNS, **content)


def picture(key: str, folder: Path, whose: str, address: Callable[[bytes], str] = within) -> Picture | None:
    """The picture of an exhibit in a run's folder, None where there is none; the page holds it, or `address` says where
    it is.
    """
    file = folder / f"{key}.png"
    if not file.is_file():
        return None
    words = read_words(folder / f"{key}.md")
    return Picture(Markup(element(file.read_bytes(), words.alt, address)), words.caption, whose)


def pictures(key: str, runs: Iterable[tuple[Path, str]]) -> list[Picture]:
    """The pictures of one exhibit in several runs, (folder, whose) each; runs that lack it are left out."""
    return [one for one in (picture(key, folder, whose) for folder, whose in runs) if one is not None]
