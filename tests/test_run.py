"""What was not learned is said on a page and takes no part in its claims; a page is known by what makes its cards."""

import json

import pandas as pd
import pytest
import torch

from fivelenses import execution
from fivelenses import run as running
from fivelenses.chapters import CHAPTERS, settings
from fivelenses.run import Run

MODELS = pd.DataFrame({"encoder": "toy-bert/seed-0", "task": ["rte", "sst2"], "seed": 0, "examples": 9, "epochs": 1.0})
MODELS = MODELS.assign(frozen=-1, truncated=-1, reinitialised=0, shuffled_labels=False)
MODELS = MODELS.assign(score=[0.51, 0.9], null_rate=0.5, address=["a", "b"])
RIGHT = [("rte", "a", example, example < 51) for example in range(100)]
RIGHT += [("sst2", "b", example, example < 90) for example in range(100)]
PREDICTED = pd.DataFrame(RIGHT, columns=["task", "address", "example", "score"])
PREDICTED = PREDICTED.assign(seed=0, metric="accuracy", weight=1.0, null=0.5, examples=9)


@pytest.fixture
def shown(monkeypatch):
    """What is displayed and glued, instead of a notebook."""
    said, glued = [], {}
    monkeypatch.setattr(running, "display", lambda content: said.append(content.data))
    monkeypatch.setattr(running, "glue", lambda name, value, display: glued.update({name: value}))
    return said, glued


@pytest.fixture
def run(tmp_path):
    return Run(CHAPTERS[1], "tiny", settings(1, "tiny"), tmp_path)


def test_what_was_not_learned_is_said_and_takes_no_part(run, shown):
    said, glued = shown
    run.gate(MODELS, PREDICTED)
    assert {"rte", "rte on toy-bert/seed-0"} < set(run.excluded)
    assert all(name.startswith("rte") for name in run.excluded)
    assert said[0].startswith("*Not clearly learned, so left out of the claims*: RTE was not learned: its score of")
    rows = [("rte", x) for x in (-1.0, -1.1, -0.9)] + [("sst2", x) for x in (1.0, 1.1, 0.9)]
    table = pd.DataFrame(rows, columns=["task", "x"]).assign(seed=[0, 1, 2] * 2)

    @run.claim("it-rises", "It rises.", "§1", table, by="task")
    def change(of_model):
        """The change."""
        return of_model["x"].mean()

    assert {name: glued[f"it_rises_{name}"] for name in ("verdict", "value", "held")} == {
        "verdict": "reproduced",
        "value": "1",
        "held": "1 of 1",
    }
    assert "Left out: RTE, because RTE was not learned" in said[1]


def test_what_automatic_precision_was_here_is_kept(tmp_path, shown, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    Run(CHAPTERS[1], "tiny", settings(1, "tiny", precision="auto"), tmp_path).finish()
    assert json.loads((tmp_path / "run.json").read_text())["parameters"]["precision"] == "bfloat16"


def test_a_run_in_which_all_was_learned_says_so_unless_a_bag_of_words_learned_as_much(run, shown):
    run.gate(MODELS[1:], PREDICTED)
    assert shown[0] == ["All tasks were learned, so all are judged."] and run.excluded == {}
    run.gate(MODELS[1:], PREDICTED, words=PREDICTED)
    assert "sst2" in run.excluded and "minus that of a bag of words" in shown[0][1]


def test_a_card_that_looks_otherwise_is_another_page(monkeypatch, tmp_path):
    card = tmp_path / "cards.html"
    card.write_bytes(execution.CARDS[0].read_bytes())
    monkeypatch.setattr(execution, "CARDS", [card, *execution.CARDS[1:]])
    before = execution.of_chapter(1, "tiny").digest
    assert execution.of_chapter(1, "tiny").digest == before
    card.write_text("another")
    assert execution.of_chapter(1, "tiny").digest != before


def test_a_notebook_run_by_hand_never_writes_into_a_finished_run(monkeypatch, tmp_path):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))
    monkeypatch.delenv("FIVELENSES_RUN_FOLDER", raising=False)
    begun = running.begin(1, {"profile": "tiny", "tasks": None, "pd": pd})
    # All cells run again: they have left names.
    running.begin(1, {"profile": "tiny", "tasks": "rte", "run": begun, "paper": {}, "place": 3})
    assert begun.folder == tmp_path / "by-hand" / "tiny" / "1-attention-svcca"
