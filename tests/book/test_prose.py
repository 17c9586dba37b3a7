"""The book's prose: numbers that a run found are glued, not typed; the page of methods knows every lens."""

import doctest
import re

import jupytext
import pytest

from fivelenses import project
from fivelenses.runs import book
from fivelenses.runs.settings import CHAPTERS

# A decimal number that is typed is a setting, and settings stand in mathematics or code.
NOT_PROSE = re.compile(r"```.*?```|\$[^$]*\$|\{[a-z:]+\}`[^`]*`|`[^`]*`|\{\{[^}]*\}\}", re.DOTALL)
DECIMAL = re.compile(r"\b\d+\.\d+\b(?! of the| \()")
PAGES = ("introduction.md", "claims.md")


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=lambda chapter: chapter.slug)
def test_no_decimal_number_is_typed_into_a_chapters_prose(chapter):
    notebook = jupytext.read(chapter.notebook.with_suffix(".py"))
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert DECIMAL.findall(NOT_PROSE.sub("", prose)) == []


@pytest.mark.parametrize("page", PAGES)
def test_no_decimal_number_is_typed_into_a_page_that_tells_of_results(page):
    assert DECIMAL.findall(NOT_PROSE.sub("", (project.root() / "book" / page).read_text(encoding="utf-8"))) == []


def test_the_page_of_methods_names_every_lens_that_measures_something():
    methods = (project.root() / "book" / "methods.md").read_text(encoding="utf-8")
    named = set(re.findall(r"fivelenses\.lenses\.(\w+)\.", methods))
    # What lenses are made of.
    parts = {"arrays", "classifier_loss", "cluster_merging", "moments", "parameter_motion", "training", "trees"}
    lenses = {file.stem for file in (project.root() / "lib" / "fivelenses" / "lenses").glob("[!_]*.py")}
    assert named == lenses - parts


@pytest.mark.parametrize("page", ["primer.md", "toy-world.md"])
def test_what_a_page_shows_is_what_python_says(page):
    outcome = doctest.testfile(str(project.root() / "book" / page), module_relative=False)
    assert outcome.attempted > 10 and outcome.failed == 0


def test_pages_print_only_numbers_that_the_build_gives_them():
    given = set(book.substitutions([]))
    for page in (project.root() / "book").glob("*.md"):
        asked = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", page.read_text(encoding="utf-8")))
        assert asked <= given, f"{page.name} asks for {sorted(asked - given)}"
