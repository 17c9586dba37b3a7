"""The page of a run outside the book: every number is in its place, and nothing is left for Sphinx to read."""

import json
import re

import nbformat
import pytest

from fivelenses.runs import run_page
from fivelenses.runs.execution import EXECUTED
from fivelenses.runs.settings import CHAPTERS

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def glued(name, value):
    data = {run_page.GLUED: repr(value)}
    return nbformat.v4.new_output("display_data", data, metadata={"scrapbook": {"name": name}})


@pytest.fixture
def run_folder(tmp_path, monkeypatch):
    """A finished run of a chapter of two figures' worth of cells."""
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    folder = tmp_path / "tiny" / "run"
    folder.mkdir(parents=True)
    written = f'<figure class="exhibit" id="hao2020-figure-1"><img src="data:image/png;base64,{PIXEL}"></figure>'
    picture = nbformat.v4.new_output("display_data", {"text/html": written})
    turning = nbformat.v4.new_output("display_data", {"text/html": '<details class="turnable" id="turned">'})
    head = "# A question?\n\nIt is {glue:text}`rise` (see [the end](#claims)), $a < b$."
    cells = [
        nbformat.v4.new_markdown_cell(head),
        nbformat.v4.new_code_cell("draw(a < b)", outputs=[picture, turning, glued("rise", "2.1")]),
        nbformat.v4.new_code_cell("1 + 1", metadata={"tags": ["method"]}),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / EXECUTED)
    facts = {"profile": "tiny", "parameters": {"encoder": "own", "source": "toyworld", "tasks": ["rte"], "seeds": [0]}}
    facts |= {"device": "CPU", "seconds": 1.0, "training_seconds": 2.0, "peak_memory": 10**9, "versions": {}}
    facts |= {"not_measured": {}, "outdated": [], "files": {}}
    (folder / "run.json").write_text(json.dumps(facts))
    (folder / "claims.json").write_text("[]")
    return folder


def test_numbers_pictures_and_the_papers_results_are_in_one_file(run_folder):
    page = run_page.write(CHAPTERS[1], run_folder).read_text()
    assert (
        "<h1>A question?</h1>" in page
        and 'It is 2.1 (see the end), <span class="math inline">\\(a &lt; b\\)</span>.' in page
    )
    assert f'src="data:image/png;base64,{PIXEL}"' in page
    assert "<em>In the paper</em>: Attention of BERT-large" in page and "Profile <code>tiny</code>" in page
    assert "draw(a &lt; b)" in page and '<details class="code" open><summary>Code</summary><pre>1 + 1' in page
    assert "turned" not in page


def test_mathematics_is_drawn_by_a_script_that_lies_once_among_the_runs(run_folder):
    page = run_page.write(CHAPTERS[1], run_folder)
    (script,) = re.findall(r'<script defer src="([^"]+)"', page.read_text())
    assert (run_folder / script).resolve() == (run_folder.parents[1] / "mathjax" / run_page.MATHJAX).resolve()
    assert (run_folder / script).stat().st_size > 10**6


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=lambda chapter: chapter.slug)
def test_no_chapter_leaves_a_role_or_a_directive(chapter):
    notebook = nbformat.read(chapter.notebook, as_version=4)
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    read = "\n\n".join(run_page.markdown(run_page.in_words(source, {})) for source in prose)
    assert not re.findall(r"\{[a-z:]+\}<code>|:::|```|\.ipynb|\{cite", read)


def test_references_are_given_by_author_and_year():
    assert run_page.cited(["hao2020", "singh2020"], in_text=True).startswith("Hao et al. (2020), ")
    assert run_page.cited(["lin1991"], in_text=False) == "(Lin, 1991)"
