"""The page's script judges the cases as the library does: in a browser, where there is one."""

import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from tests.book.judged import CLAIMS, in_turn, verdict_on

from fivelenses.book.cards import View, as_cards
from fivelenses.files import project_folder
from fivelenses.judging import over_seeds

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
MOVE = """<script>document.addEventListener("DOMContentLoaded", () => {
  const moved = new URLSearchParams(location.search).get("to");
  if (moved) for (const input of document.querySelectorAll("input[type=range]")) {
    Object.assign(input, { min: -1e6, max: 1e6, valueAsNumber: Number(moved) });
    input.dispatchEvent(new Event("input"));
  }
});</script>"""


def verdicts_on_page(folder, judged, to=""):
    cards = as_cards([[View(claim, verdict, "toy")] for claim, verdict in judged])
    script = (project_folder() / "book" / "_static" / "thresholds.js").read_text(encoding="utf-8")
    page = folder / "cards.html"
    written = f"<!doctype html><meta charset='utf-8'><script>{script}</script>{MOVE}{cards}"
    page.write_text(written, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"{page.as_uri()}?to={to}"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = BeautifulSoup(shown.stdout, "html.parser").select(".thresholds-moved li")
    return [line["data-verdict"] for line in lines]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
def test_the_script_gives_the_librarys_verdicts_and_follows_the_threshold(tmp_path):
    judged = in_turn(CLAIMS)
    expected = [verdict.outcome for _, verdict in judged if verdict.groups]
    assert len(set(expected)) == 4
    assert verdicts_on_page(tmp_path, judged) == expected
    assert set(verdicts_on_page(tmp_path, judged, "-100000")) == {"reproduced"}
    assert set(verdicts_on_page(tmp_path, judged, "100000")) <= {"contradicted", "open"}


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
def test_the_script_knows_halves(tmp_path):
    claim = replace(CLAIMS[0], above=0.0, halves={"large": ["MNLI", "SST-2"], "small": ["MRPC"]})
    up, down = over_seeds([1.0, 1.1, 0.9]), over_seeds([-1.0, 1.5, 0.2])
    judged = []
    for of_mrpc in (up, down, None):
        found = {name: {"late": up} for name in claim.halves["large"]}
        found |= {"MRPC": {"early": of_mrpc}} if of_mrpc else {}
        judged.append((claim, verdict_on(claim, found)))
    assert [verdict.outcome for _, verdict in judged] == ["reproduced", "open", "open"]
    assert verdicts_on_page(tmp_path, judged) == ["reproduced", "open", "open"]
