"""Links from chapter to chapter lead to a page, whichever encoder's page they stand on: to the published run."""

import re

import nbformat
import pytest

from fivelenses.book.pages import published_runs
from fivelenses.chapters import CHAPTERS

PAGES = {run.page for run in published_runs()}


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=lambda chapter: chapter.slug)
def test_every_link_of_a_chapter_leads_to_a_published_page(chapter):
    cells = nbformat.read(chapter.notebook, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for link in re.findall(r"\]\(([^):]+)\.ipynb", text):
        assert link.removeprefix("/") in PAGES and link.startswith("/"), link
