"""The first page: its answer and picture are what their script prints; every claim has its words in the matrix."""

import re
import runpy
from types import SimpleNamespace

import pytest

from fivelenses.chapters import CHAPTERS
from fivelenses.files import project_folder

ROOT = project_folder()
WORDS = next(ROOT.glob("lib/fivelenses/**/words.html"))


def test_the_answer_and_the_picture_are_what_the_script_prints_while_the_records_bear_it():
    script = SimpleNamespace(**runpy.run_path(str(ROOT / "bench" / "first_picture.py")))
    table = script.changes()
    printed = f"{script.answer(table)}\n{script.picture(table)}\n"
    assert (ROOT / "book" / "lenses.html").read_text(encoding="utf-8") == printed
    with pytest.raises(ValueError, match="no longer holds"):
        script.answer(table.assign(value=1.0))


def test_every_claim_of_a_paper_has_a_few_words_in_the_matrix():
    words = dict(re.findall(r'^  "([^"]+)": "([^"]+)"', WORDS.read_text(encoding="utf-8"), re.M))
    notebooks = (one.notebook.with_suffix(".py").read_text(encoding="utf-8") for one in CHAPTERS.values() if one.paper)
    claims = {key for code in notebooks for key in re.findall(r'@run\.claim\(\s*"([^"]+)"', code)}
    assert set(words) == claims and max(len(said.split()) for said in words.values()) <= 9
