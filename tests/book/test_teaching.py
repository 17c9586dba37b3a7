"""What teaches: methods that agree with the library, predictions, exercises that run, a glossary, sources."""

import doctest
import re

import jupytext
import numpy as np
import pytest

from fivelenses.book import build, pages
from fivelenses.chapters import CHAPTERS
from fivelenses.files import project_folder

ROOT = project_folder()
OF_PAPERS = [chapter for chapter in CHAPTERS.values() if chapter.paper]
EXERCISES = (ROOT / "book" / "exercises.md").read_text(encoding="utf-8")
TERM = re.compile(r"\{term\}`([^`<]+?)(?:\s*<([^`>]+)>)?`")


def cells(chapter, kind):
    notebook = jupytext.read(chapter.notebook.with_suffix(".py"))
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def prose(chapter):
    return "\n\n".join(cell.source for cell in cells(chapter, "markdown"))


@pytest.mark.parametrize("chapter", OF_PAPERS, ids=lambda chapter: chapter.slug)
def test_a_chapter_shows_its_method_in_a_few_lines_that_give_what_the_library_gives(chapter):
    shown = [cell for cell in cells(chapter, "code") if "method" in cell.metadata.get("tags", [])]
    assert shown
    names = {"np": np}
    for cell in shown:
        *before, last = cell.source.splitlines()
        exec("\n".join(before), names)
        found = eval(last, names)
        assert found["by hand"] == pytest.approx(found["library"], rel=0.03)


@pytest.mark.parametrize("chapter", OF_PAPERS, ids=lambda chapter: chapter.slug)
def test_a_chapter_asks_for_a_prediction_before_its_headline_figure_which_is_folded(chapter):
    notebook = jupytext.read(chapter.notebook.with_suffix(".py"))
    asked = [number for number, cell in enumerate(notebook.cells) if "Predict, then look" in cell.source]
    assert len(asked) == 1
    assert re.findall(r"^- \*\*(\w)\*\*", notebook.cells[asked[0]].source, re.MULTILINE) == ["a", "b", "c"]
    figures = (cell for cell in notebook.cells[asked[0] + 1 :] if re.search(r"run\.(exhibit|figure)\(", cell.source))
    assert "hide-cell" in next(figures).metadata["tags"]


def test_the_chapters_of_papers_and_all_others_that_lead_to_exercises_have_three_each_in_their_order():
    exercised = [chapter for chapter in CHAPTERS.values() if chapter.paper or "/exercises.md#" in prose(chapter)]
    by_anchor = {}
    for of_chapter in re.split(r"^## ", EXERCISES, flags=re.MULTILINE)[1:]:
        title = of_chapter.splitlines()[0].lower()
        by_anchor[re.sub("[^a-z0-9 -]", "", title).replace(" ", "-")] = of_chapter
    led = [next((name for name in by_anchor if f"/exercises.md#{name}" in prose(one)), one.slug) for one in exercised]
    without = sorted(set(led) - set(by_anchor))
    assert not without, f"{without} have no section of exercises that they link to"
    assert led == list(by_anchor), "the sections of exercises are not one per chapter, in the order of the chapters"
    for name, of_chapter in by_anchor.items():
        asked, solved = (re.findall(pattern, of_chapter) for pattern in (r":label: (\S+)", r"\{solution\} (\S+)"))
        assert len(asked) == 3, f"{name} has {len(asked)} exercises"
        assert asked == solved, f"the solutions under {name} are not those of its exercises, in their order"


def test_the_solutions_say_what_python_says():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    outcome = doctest.testfile(str(ROOT / "book" / "exercises.md"), module_relative=False, optionflags=flags)
    assert outcome.attempted > 50 and outcome.failed == 0


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=lambda chapter: chapter.slug)
def test_a_runs_own_sentences_take_the_place_of_those_that_fit_any_run(chapter):
    head = cells(chapter, "markdown")[0].source
    told = pages.answered(head, ["It is two.", "It is three."])
    assert "- It is two.\n- It is three." in told and pages.answered(head, []) == head
    assert "The question" in told and "The answer in numbers" not in told and "The answer here" not in told
    assert ("`claims_reproduced`" in told) == ("`claims_reproduced`" in head)
    assert told.count("{glue:text}") <= 1


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=lambda chapter: chapter.slug)
def test_every_link_to_a_chapter_leads_to_a_published_page_whichever_page_it_stands_on(chapter):
    published = {run.page for run in pages.published_runs()}
    for link in re.findall(r"\]\(([^):]+)\.ipynb", prose(chapter)):
        assert link.removeprefix("/") in published and link.startswith("/"), link


def test_terms_are_in_the_glossary_and_linked_once_a_chapter_at_most():
    glossary = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    defined = re.findall(r"^(\S.*)\n  \S", glossary, re.MULTILINE)
    assert len(defined) == len(set(defined)) and defined == sorted(defined, key=str.lower)
    for chapter in CHAPTERS.values():
        linked = [(target or said).lower() for said, target in TERM.findall(prose(chapter))]
        assert {term.lower() for term in defined} >= set(linked)
        assert len(linked) == len(set(linked)), chapter.slug


def test_a_link_to_a_term_carries_its_meaning(tmp_path):
    glossary = '<dl class="glossary"><dt id="term-twin">twin</dt><dd><p>Moved as far,\n"at random".</p></dd></dl>'
    (tmp_path / "glossary.html").write_text(glossary)
    link = '<a class="reference internal" href="../glossary.html#term-twin"><span>twin</span></a>'
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "page.html").write_text(f"<p>{link}</p>")
    build.add_meanings_of_terms(tmp_path)
    written = (tmp_path / "published" / "page.html").read_text()
    assert '#term-twin" title="Moved as far, &quot;at random&quot;."><span>' in written
