"""The page's script judges the cases as the library does: in a browser, where there is one."""

import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from tests.runs.judged import CLAIMS, in_turn

from fivelenses import project
from fivelenses.first_exhibits.claims import Judged
from fivelenses.first_exhibits.effects import over_models
from fivelenses.first_exhibits.verdicts import Effect, Part, judge
from fivelenses.runs.cards import Card, View, as_html

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
MOVE = """<script>document.addEventListener("DOMContentLoaded", () => {
  const moved = new URLSearchParams(location.search).get("to");
  if (moved) for (const input of document.querySelectorAll("input[type=range]")) {
    Object.assign(input, { min: -1e6, max: 1e6, valueAsNumber: Number(moved) });
    input.dispatchEvent(new Event("input"));
  }
});</script>"""


def verdicts_on_page(folder, judged, to="", claims=CLAIMS):
    cards = [Card(claim, (View(one, "toy"),), "code") for claim, one in zip(claims, judged, strict=True)]
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


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
def test_the_script_knows_halves(tmp_path):
    late, early = Part("late", groups=("MNLI", "SST-2"), half="large"), Part("early", groups=("MRPC",), half="small")
    claim = replace(CLAIMS[0], parts=(late, early))
    up, down = [1.0, 1.1, 0.9], [-1.0, 1.5, 0.2]
    judged = []
    for of_mrpc in (up, down, None):
        found = [Effect(name, "late", over_models(up)) for name in late.groups]
        found += [] if of_mrpc is None else [Effect("MRPC", "early", over_models(of_mrpc))]
        judged.append(Judged(claim.key, judge([late, early], found), tuple(found)))
    assert [one.verdict.outcome for one in judged] == ["reproduced", "open", "open"]
    assert verdicts_on_page(tmp_path, judged, claims=[claim] * 3) == ["reproduced", "open", "open"]
