"""Several runs next to one another: claims by runs, and the pictures of one exhibit, for chapters, ledger and report.

Pages are filled from the templates beside this file (Jinja); what they hold is read from the runs' ``claims.json`` and
exhibits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markdown_it import MarkdownIt
from markupsafe import Markup

from fivelenses.judging import CANNOT_BE_TESTED, CONTRADICTED, MIXED, OPEN, REPRODUCED

# A sign beside the colour, for readers to whom colours look alike.
SIGNS = {REPRODUCED: "●", CONTRADICTED: "✕", MIXED: "◐", OPEN: "○", CANNOT_BE_TESTED: "–"}


@dataclass(frozen=True)
class Picture:
    """A picture of one run with its caption, and the run in a reader's words."""

    figure: Markup
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


def picture(key: str, folder: Path, whose: str) -> Picture | None:
    """The picture of an exhibit in a run's folder, None where there is none."""
    if not (folder / f"{key}.png").is_file():
        return None
    # Several on one page cannot have one address.
    figure = (folder / f"{key}.html").read_text(encoding="utf-8").replace(f' id="{key}"', "", 1)
    return Picture(Markup(figure), whose)


def pictures(key: str, runs: Iterable[tuple[Path, str]]) -> list[Picture]:
    """The pictures of one exhibit in several runs, (folder, whose) each; runs that lack it are left out."""
    return [one for one in (picture(key, folder, whose) for folder, whose in runs) if one is not None]
