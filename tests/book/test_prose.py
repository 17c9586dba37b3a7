"""The book's prose: numbers that a run found are glued, not typed; the page of methods knows every lens."""

import doctest
import json
import re

import jupytext
import pytest
import yaml

from fivelenses import records
from fivelenses.chapters import CHAPTERS
from fivelenses.files import project_folder

# A decimal number that is typed is a setting, and settings stand in mathematics or code.
NOT_PROSE = re.compile(r"```.*?```|\$[^$]*\$|\{[a-z:]+\}`[^`]*`|`[^`]*`", re.DOTALL)
DECIMAL = re.compile(r"\b\d+\.\d+\b(?! of the| \()")
PROSE = [chapter.notebook.with_suffix(".py") for chapter in CHAPTERS.values()]
PROSE += [project_folder() / "book" / name for name in ("introduction.md", "claims.md")]


@pytest.mark.parametrize("file", PROSE, ids=lambda file: file.stem)
def test_no_decimal_number_is_typed_into_a_text_that_tells_of_results(file):
    prose = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        prose = "\n\n".join(cell.source for cell in jupytext.read(file).cells if cell.cell_type == "markdown")
    assert prose and DECIMAL.findall(NOT_PROSE.sub("", prose)) == []


def test_the_page_of_methods_names_every_lens_that_measures_something():
    methods = (project_folder() / "book" / "methods.md").read_text(encoding="utf-8")
    named = set(re.findall(r"fivelenses\.lenses\.(\w+)\.", methods))
    # What lenses are made of.
    parts = {"arrays", "moments", "training"}
    lenses = {file.stem for file in (project_folder() / "lib" / "fivelenses" / "lenses").glob("[!_]*.py")}
    assert named == lenses - parts


def test_what_the_primer_shows_is_what_python_says():
    outcome = doctest.testfile(str(project_folder() / "book" / "primer.md"), module_relative=False)
    assert outcome.attempted > 10 and outcome.failed == 0


def test_the_table_of_what_a_chapter_takes_has_every_published_run_as_it_was():
    page = (project_folder() / "book" / "rerun.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| \d \|", line)]
    printed = {(row[1], row[0]): row[2:6] for row in rows}
    took = {}
    for file in records.committed_folder().glob("*/*/run.json"):
        facts = json.loads(file.read_text(encoding="utf-8"))
        hours = (facts[name] / 3600 for name in ("training_seconds", "seconds"))
        numbers = [*hours, facts["peak_memory"] / 1e9]
        run = file.parent.parent.name.removeprefix("small-"), str(facts["chapter"])
        took[run] = [str(len(facts["specifications"])), *(f"{number:.1f}" for number in numbers)]
    assert printed == took


def test_the_entry_to_cite_has_the_version_that_the_citation_file_has():
    cited = yaml.safe_load((project_folder() / "CITATION.cff").read_text(encoding="utf-8"))
    page = (project_folder() / "book" / "references.md").read_text(encoding="utf-8")
    assert f"version = {{{cited['version']}}}" in page and f"year    = {{{cited['date-released'][:4]}}}" in page
