"""A run is judged again by the claims as they are now, and all else of it stays."""

import json

import nbformat
import pytest
from tests.runs.conftest import make_home, write_notebook

from fivelenses.exhibits import claims
from fivelenses.exhibits.claims import NOT_REPRODUCED, REPRODUCED
from fivelenses.runs import execution, judging, seals
from fivelenses.runs.execution import EXECUTED, RunError

CLAIMS = """
from fivelenses.exhibits.claims import OURS, Claim

def low(table):
    return table.assign(holds=table["value"] < {threshold})

LOW = [Claim("low", "", "It is low.", OURS, ("table",), "a number", "below {threshold}", low)]
"""
CELLS = (
    "import pandas as pd\nfrom fivelenses import runs\nfrom fivelenses.exhibits.exhibit import Exhibit\n"
    "from lowness import LOW\nrun = runs.begin(1, profile)",
    'table = pd.DataFrame({"group": ["a"], "seed": [0], "value": [3.0]})\n'
    'run.exhibit(Exhibit("table", "Table", table, "One number."))',
    "run.judge(LOW)\nrun.glue(beside=run.tables['table']['value'][0])\nrun.finish()",
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run with one claim, whose threshold lies in a module of its own."""
    make_home(tmp_path, monkeypatch)
    write_notebook(*CELLS)
    (tmp_path / "lowness.py").write_text(CLAIMS.format(threshold=1))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return execution.run(1, "tiny", notify=lambda line: None).folder


def glue_name(output) -> str:
    """The name that an output is glued under; empty for what is shown."""
    return output.metadata.get("scrapbook", {}).get("name", "")


def glued(folder) -> dict[str, str]:
    outputs = nbformat.read(folder / EXECUTED, as_version=4).cells[-1].outputs
    return {glue_name(output): next(iter(output.data.values())) for output in outputs if glue_name(output)}


def test_a_new_threshold_changes_the_verdict_and_nothing_else(run, tmp_path):
    before, shown = json.loads((run / "run.json").read_text()), glued(run)
    assert claims.load(run)[0].verdict == NOT_REPRODUCED
    (tmp_path / "lowness.py").write_text(CLAIMS.format(threshold=5))
    assert judging.judge_again(1, "tiny") == run
    assert claims.load(run)[0].verdict == REPRODUCED
    after, again = json.loads((run / "run.json").read_text()), glued(run)
    changed = {name for name in before["files"] if before["files"][name] != after["files"][name]}
    assert changed == {"claims.json", EXECUTED} and seals.broken(run, after["files"]) == []
    assert {name: value for name, value in before.items() if name != "files"} == {
        name: value for name, value in after.items() if name != "files"
    }
    assert "not reproduced" in shown["low_verdict"] and "not" not in again["low_verdict"]
    assert again["beside"] == shown["beside"] and again.keys() == shown.keys()
    cells = nbformat.read(run / EXECUTED, as_version=4).cells
    tables = [output for output in cells[-1].outputs if not glue_name(output)]
    assert len(tables) == 1 and "below 5" in tables[0].data["text/html"]
    assert [file.name for file in run.parent.iterdir() if "judging" in file.name] == []


def test_the_cell_that_judges_may_say_more_of_the_same_tables(run):
    write_notebook(*CELLS[:-1], CELLS[-1].replace("beside=", "twice=2 * "))
    judging.judge_again(1, "tiny")
    assert glued(run)["twice"] == "'6'"
    assert execution.run(1, "tiny", notify=lambda line: None).executed is False


def test_a_cell_that_judges_by_what_is_no_table_is_refused(run):
    write_notebook(*CELLS[:-1], CELLS[-1].replace("run.tables['table']", "table"))
    with pytest.raises(RunError, match="NameError"):
        judging.judge_again(1, "tiny")


def test_a_judgement_that_fails_leaves_the_run_as_it_was(run, tmp_path):
    (tmp_path / "lowness.py").write_text(CLAIMS.format(threshold=1).replace('table["value"]', 'table["worth"]'))
    with pytest.raises(RunError, match="KeyError"):
        judging.judge_again(1, "tiny")
    assert seals.broken(run, json.loads((run / "run.json").read_text())["files"]) == []


def test_a_run_of_other_code_is_not_judged(run):
    write_notebook(*CELLS, "pass")
    with pytest.raises(RunError, match="code has changed"):
        judging.judge_again(1, "tiny")


def test_a_run_that_is_not_there_is_named(tmp_path, monkeypatch):
    make_home(tmp_path, monkeypatch)
    with pytest.raises(RunError, match="no finished run"):
        judging.judge_again(1, "tiny")
