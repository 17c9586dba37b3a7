"""A run judges claims on the records that it has measured, and leaves out what was not learned."""

import pandas as pd
import pytest

from fivelenses.first_exhibits import claims
from fivelenses.first_exhibits.claims import Claim
from fivelenses.first_exhibits.effects import over_models
from fivelenses.first_exhibits.verdicts import Effect, Part
from fivelenses.records import Missing
from fivelenses.runs import execution
from fivelenses.runs import run as runs
from fivelenses.runs.run import Run
from fivelenses.runs.settings import find_chapter, settings

MODELS = pd.DataFrame({"encoder": "toy-bert/seed-0", "task": ["rte", "sst2"], "seed": 0, "examples": 9, "epochs": 1.0})
MODELS = MODELS.assign(frozen=-1, truncated=-1, reinitialised=0, shuffled_labels=False)
MODELS = MODELS.assign(score=[0.51, 0.9], null_rate=0.5, address=["a", "b"])


def changes(table: pd.DataFrame) -> list[Effect]:
    return [Effect(task, "growth", over_models(rows["x"]), stands_on=(task,)) for task, rows in table.groupby("task")]


def claim(key: str, record: str) -> Claim:
    return Claim(key, "p", "It rises.", "§1", ("p-figure-1",), "change", (Part("growth"),), (record,), changes)


@pytest.fixture
def shown(monkeypatch):
    """What is displayed and glued, instead of a notebook."""
    said, glued = [], {}
    monkeypatch.setattr(runs, "display", lambda content: said.append(content.data))
    monkeypatch.setattr(runs, "glue", lambda name, value, display: glued.update({name: value}))
    return said, glued


@pytest.fixture
def run(tmp_path):
    made = Run(find_chapter(1), "tiny", settings(1, "tiny"), tmp_path)
    rows = [("rte", x) for x in (-1.0, -1.1, -0.9)] + [("sst2", x) for x in (1.0, 1.1, 0.9)]
    made.measurements.tables = {
        "changes": pd.DataFrame(rows, columns=["task", "x"]),
        "codes": Missing("codes", "it is old"),
    }
    return made


def test_claims_are_judged_on_records_saved_shown_and_glued(run, shown):
    said, glued = shown
    run.tables["p-figure-1"] = pd.DataFrame()
    run.judge([claim("it-rises", "changes"), claim("codes-rise", "codes")])
    assert [one.verdict.outcome for one in claims.load(run.folder)] == ["mixed", "cannot be tested"]
    assert claims.load(run.folder)[1].verdict.reason == "this run has not measured codes, because it is old"
    assert {name: glued[f"it_rises_{name}"] for name in ("verdict", "value", "held")} == {
        "verdict": "mixed",
        "value": "−1 to 1",
        "held": "1 of 2",
    }
    assert (glued["codes_rise_value"], glued["claims_reproduced"]) == ("–", "0 of 2")
    assert said[0].count('<details class="claim"') == 2 and 'href="#p-figure-1"' in said[0]


def test_what_was_not_learned_is_said_and_takes_no_part(run, shown):
    said, glued = shown
    run.gate(MODELS, Missing("by_example", "it is old"))
    assert {"rte", "rte on toy-bert/seed-0"} < set(run.unlearned)
    assert all(name.startswith("rte") for name in run.unlearned)
    (line,) = said
    assert line.startswith(
        "*Not clearly learned, so left out of the claims*: RTE was not learned: its score of 0.510 is 0.010 above"
    )
    run.judge([claim("it-rises", "changes")])
    assert (glued["it_rises_verdict"], glued["it_rises_held"]) == ("reproduced", "1 of 1")
    assert "Left out: rte, because RTE was not learned" in said[1]


def test_a_run_in_which_all_was_learned_says_so(run, shown):
    run.gate(MODELS[1:], Missing("by_example", "it is old"))
    assert shown[0] == ["*Every task was learned*: all take part."] and run.unlearned == {}


def test_a_bag_of_words_of_the_run_decides_too(run, shown):
    rows = [("sst2", "b", example, example < 90) for example in range(100)]
    predicted = pd.DataFrame(rows, columns=["task", "address", "example", "score"])
    predicted = predicted.assign(seed=0, metric="accuracy", weight=1.0, null=0.5, examples=9)
    run.gate(MODELS[1:], predicted, words=predicted)
    assert "sst2" in run.unlearned and "above that of a bag of words" in shown[0][0]


def test_what_stands_under_an_encoders_name_is_measured_on_it(run, shown):
    table = run.measurements.tables["changes"]
    run.measurements.tables["changes"] = table.assign(encoder=(table["task"] == "rte").map({True: "a", False: "b"}))
    run.judge([claim("it-rises", "changes")], "b")
    assert [group.name for group in claims.load(run.folder)[0].verdict.groups] == ["sst2"]


def test_a_card_that_looks_otherwise_is_another_page(monkeypatch, tmp_path):
    notebook = execution.nbformat.v4.new_notebook(cells=[])
    before = execution.page_digest(find_chapter(1), notebook)
    for name in execution.CARDS:
        (tmp_path / name).write_bytes((execution.TEMPLATES / name).read_bytes())
    monkeypatch.setattr(execution, "TEMPLATES", tmp_path)
    assert execution.page_digest(find_chapter(1), notebook) == before
    (tmp_path / execution.CARDS[0]).write_text("another")
    assert execution.page_digest(find_chapter(1), notebook) != before
