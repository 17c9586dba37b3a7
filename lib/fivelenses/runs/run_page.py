"""The page of a run that the book does not show: its notebook as one HTML file, with its numbers in their places.

The book's pages are built by Sphinx, which knows their roles and directives. A run on other tasks, seeds or encoders
than the book's is read by one person, now: here the few roles that the chapters use become plain text, and what they
lead to stays in the book.
"""

import ast
import html
import importlib.metadata
import os
import re
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pybtex.database import BibliographyData, Person, parse_file

from fivelenses import project
from fivelenses.files import written_beside
from fivelenses.runs.execution import EXECUTED, RunError
from fivelenses.runs.pages import Shown, beside_exhibits, facts_of, the_run, with_words_beside
from fivelenses.runs.settings import Chapter
from fivelenses.runs.side_by_side import render

PAGE = "page.html"
MATHJAX = "tex-svg.js"  # one file that draws without fonts: all that a page needs of MathJax
GLUED = "application/papermill.record/text/plain"
ROLE = re.compile(r"\{(?P<role>[a-z:]+)\}`(?P<text>[^`]+)`")
TARGET = re.compile(r"\s*<[^>]*>$")
# Links lead to the book's own pages; what is on the web stays a link.
OWN_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?!https?:)[^)]*\)")
FENCE = re.compile(
    r"^(?P<marks>:{3,}|`{3,})\{(?P<kind>[a-z-]+)\}(?P<title>[^\n]*)\n(?P<body>.*?)^(?P=marks)$", re.M | re.S
)
TURNABLE = '<details class="turnable"'
OPTION = re.compile(r"^:[a-z-]+:.*\n", re.MULTILINE)


def write(chapter: Chapter, folder: Path) -> Path:
    """Write the page of a finished run into its folder.

    Args:
        chapter: the run's.
        folder: of the run.

    Returns:
        The file, which holds its pictures; mathematics is drawn by a script that lies once among the runs.

    Raises:
        RunError: the run is unfinished or damaged.
    """
    facts = facts_of(Shown(chapter, "", "", folder))
    notebook = nbformat.read(folder / EXECUTED, as_version=4)
    numbers = glued(notebook)
    beside = beside_exhibits([])
    title, blocks = chapter.slug, []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            blocks.append({"text": markdown(in_words(cell.source, numbers))})
            if len(blocks) == 1:
                title = cell.source.splitlines()[0].removeprefix("# ")
                blocks.append({"text": markdown(in_words(the_run(facts), numbers))})
        elif cell.source:
            shown = "method" in cell.metadata.get("tags", [])
            outputs = with_words_beside(cell.outputs, beside)
            blocks.append({"code": cell.source, "open": shown, "outputs": [*filter(None, map(_as_html, outputs))]})
    script = os.path.relpath(_script(), folder)
    page = render("run.html", title=title, blocks=blocks, script=script)
    with written_beside(folder / PAGE) as place:
        place.write_text(page, encoding="utf-8")
    return folder / PAGE


def glued(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """The numbers that a notebook makes available to its prose, by name."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    marked = [output for output in outputs if "scrapbook" in output.get("metadata", {})]
    return {one.metadata["scrapbook"]["name"]: str(ast.literal_eval(one.data[GLUED])) for one in marked}


def in_words(source: str, numbers: Mapping[str, str]) -> str:
    """A cell's Markdown without the roles and directives that Sphinx would read.

    Args:
        source: of the cell.
        numbers: by name, for the places that are kept for them; a name without a number is an en dash.

    Example:
        >>> in_words("It is {glue:text}`rise`, a {term}`null rate` of {py:func}`~a.b.c`.", {"rise": "2.1"})
        'It is 2.1, a null rate of `c`.'
        >>> in_words(":::{admonition} Predict\\n:class: tip\\nOne of two.\\n:::", {})
        '> **Predict**\\n> \\n> One of two.'
        >>> in_words("[The last section](#claims) and [this](https://example.org).", {})
        'The last section and [this](https://example.org).'
    """

    def said(match: re.Match) -> str:
        role, text = match["role"], match["text"]
        if role == "glue:text":
            return numbers.get(text.split(":")[0], "–")
        if role.startswith("py:"):
            return f"`{text.rpartition('.')[2] if text.startswith('~') else text}`"
        if role.startswith("cite"):
            return cited(text.split(","), in_text=role == "cite:t")
        return TARGET.sub("", text) or text

    def fenced(match: re.Match) -> str:
        body = OPTION.sub("", match["body"]).strip()
        if match["kind"] == "div":  # its title is a class
            return body
        titled = f"**{match['title'].strip()}**\n\n{body}"
        return re.sub("^", "> ", titled, flags=re.MULTILINE) if match["kind"] == "admonition" else titled

    return FENCE.sub(fenced, OWN_LINK.sub(lambda match: match["text"], ROLE.sub(said, source)))


def cited(keys: list[str], in_text: bool) -> str:
    """References by author and year, as prose has them.

    Example:
        >>> cited(["hao2019"], in_text=True), cited(["zhou2022"], in_text=False)
        ('Hao et al. (2019)', '(Zhou and Srikumar, 2022)')
    """
    entries = [_bibliography().entries[key.strip()] for key in keys]
    named = [(_authors(entry.persons["author"]), entry.fields["year"]) for entry in entries]
    if in_text:
        return ", ".join(f"{authors} ({year})" for authors, year in named)
    return f"({'; '.join(f'{authors}, {year}' for authors, year in named)})"


def _authors(people: list[Person]) -> str:
    names = [" ".join([*one.prelast_names, *one.last_names]).strip("{}") for one in people]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)


@cache
def _bibliography() -> BibliographyData:
    return parse_file(project.root() / "book" / "references.bib", bib_format="bibtex")


def markdown(text: str) -> str:
    """Markdown as HTML, its mathematics between the marks that MathJax looks for."""

    def mathematics(content: str, options: dict) -> str:
        opening, closing = (r"\[", r"\]") if options["display_mode"] else (r"\(", r"\)")
        return f"{opening}{html.escape(content)}{closing}"

    reader = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, renderer=mathematics)
    return reader.render(text)


def _as_html(output: nbformat.NotebookNode) -> str:
    data = output.get("data", {})
    # What a reader can turn needs the book's scripts; its still picture is here.
    if "scrapbook" in output.get("metadata", {}) or data.get("text/html", "").startswith(TURNABLE):
        return ""
    if "text/html" in data:
        return data["text/html"]
    if "text/markdown" in data:
        return markdown(in_words(data["text/markdown"], {}))
    return f"<pre>{html.escape(data['text/plain'])}</pre>" if "text/plain" in data else ""


def mathjax() -> Path:
    """Where the script of mathematics is installed.

    Raises:
        RunError: its package holds none.
    """
    for file in importlib.metadata.files("sphinx-mathjax-offline") or []:
        if file.name == MATHJAX:
            return Path(file.locate())
    raise RunError(f"The package sphinx-mathjax-offline holds no {MATHJAX}: reinstall the environment with `make`.")


def _script() -> Path:
    place = project.runs_folder() / "mathjax" / MATHJAX
    if not place.is_file():
        with written_beside(place) as partial:
            shutil.copy(mathjax(), partial)
    return place
