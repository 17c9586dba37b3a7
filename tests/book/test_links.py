"""Links from chapter to chapter lead to a page, whichever encoder's page they stand on."""

import re
from posixpath import dirname, normpath

import nbformat
import pytest

from fivelenses.book.build import linked
from fivelenses.book.pages import published_runs

RUNS = published_runs()
PAGES = {run.page for run in RUNS}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.page)
def test_every_link_of_a_published_page_leads_to_a_published_page(run):
    page = linked(nbformat.read(run.chapter.notebook, as_version=4), run, PAGES)
    text = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    for link in re.findall(r"\]\(([^):]+)\.ipynb", text):
        assert normpath(f"{dirname(run.page)}/{link}") in PAGES, f"{link} on {run.page}"


def test_a_chapter_of_the_same_encoder_is_preferred():
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("[one](1-attention-svcca.ipynb)")])
    other = next(run for run in RUNS if not run.leads)
    here = linked(page, other, {*PAGES, f"published/{other.name}/1-attention-svcca"}).cells[0].source
    assert here == "[one](1-attention-svcca.ipynb)"
    assert linked(page, other, {other.page}).cells[0].source == "[one](../1-attention-svcca.ipynb)"
