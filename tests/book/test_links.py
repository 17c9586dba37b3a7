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
