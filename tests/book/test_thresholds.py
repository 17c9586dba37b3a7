"""The page's script judges the cases as the library does: in a browser, where there is one."""

import os
import shutil
import subprocess

import pytest
from bs4 import BeautifulSoup
from tests.runs.judged import in_turn

from fivelenses import project
from fivelenses.papers.hao2019.claims import CLAIMS
from fivelenses.runs.cards import Card, View, as_html

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
MOVE = """<script>document.addEventListener("DOMContentLoaded", () => {
  const moved = new URLSearchParams(location.search).get("to");
  if (moved) for (const input of document.querySelectorAll("input[type=range]")) {
    Object.assign(input, { min: -1e6, max: 1e6, valueAsNumber: Number(moved) });
    input.dispatchEvent(new Event("input"));
  }
});</script>"""


def verdicts_on_page(folder, judged, to=""):
    cards = [Card(claim, (View(one, "toy"),), "code") for claim, one in zip(CLAIMS, judged, strict=True)]
    script = (project.root() / "book" / "_static" / "thresholds.js").read_text(encoding="utf-8")
    page = folder / "cards.html"
    written = f"<!doctype html><meta charset='utf-8'><script>{script}</script>{MOVE}{as_html(cards)}"
    page.write_text(written, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"{page.as_uri()}?to={to}"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = BeautifulSoup(shown.stdout, "html.parser").select(".thresholds-moved li")
    return [line["data-verdict"] for line in lines]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
def test_the_script_gives_the_librarys_verdicts_and_follows_the_threshold(tmp_path):
    judged = in_turn(CLAIMS)
    expected = [one.verdict.outcome for one in judged if one.verdict.groups]
    assert len(set(expected)) == 4
    assert verdicts_on_page(tmp_path, judged) == expected
    assert set(verdicts_on_page(tmp_path, judged, "-100000")) == {"reproduced"}
    assert set(verdicts_on_page(tmp_path, judged, "100000")) <= {"contradicted", "open"}
