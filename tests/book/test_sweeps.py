"""The page of sweeps: which models its pictures draw, and what it says of claims."""

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup

from fivelenses.book.build import score_against, write_page_of_sweeps

MODEL = {"exhibit": "models", "point": "p", "task": "rte", "seed": 0, "score": 0.6, "frozen": -1, "truncated": -1}
MODEL |= {"reinitialised": 0, "shuffled_labels": 0}


def models(*rows: dict) -> pd.DataFrame:
    """The exhibit `models` of a sweep's table, with what the rows leave open filled in."""
    return pd.DataFrame([MODEL | row for row in rows])


def test_a_picture_has_a_dot_per_ordinary_model_and_a_colour_per_value():
    changed = [{"frozen": 0}, {"truncated": 3}, {"reinitialised": 2}, {"shuffled_labels": 1}]
    rates = [{"rate": 0.1}, {"rate": 0.2, "task": "mrpc", "score": 0.7}, {"rate": 0.2, "seed": 1, "score": 0.8}]
    exhibit = score_against(models(*(one | {"rate": 0.1} for one in changed), *rates), "rate", "s")
    axes = exhibit.drawing.figure.axes[0]
    assert sorted(x for dots in axes.collections for x, _ in dots.get_offsets()) == pytest.approx([0.6, 0.7, 0.8])
    assert [text.get_text() for text in exhibit.drawing.figure.legends[0].get_texts()] == ["rate 0.1", "rate 0.2"]
    assert exhibit.caption.endswith("against rate: RTE and MRPC; 2 seeds per task.")


def test_a_swept_name_does_not_hide_the_models_own():
    table = models({}, {"frozen": 3}).rename(columns={"task": "table_task", "frozen": "table_frozen"})
    exhibit = score_against(table.assign(task='["rte", "mrpc"]', frozen="[3]"), "frozen", "s")
    assert exhibit.table[["task", "value"]].values.tolist() == [["rte", "frozen [3]"]]


def test_the_page_has_a_picture_and_the_verdicts_per_parameter_that_varies(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    write_page_of_sweeps(tmp_path)
    assert not (tmp_path / "here" / "sweeps.md").exists()
    sweep = tmp_path / "runs" / "sweeps" / "rates"
    sweep.mkdir(parents=True)
    models({"rate": 0.1, "epochs": 3}, {"rate": 0.2, "epochs": 3, "point": "q"}).to_parquet(sweep / "sweep.parquet")
    judged = {"claim": "rises", "point": ["p", "q"], "rate": [0.1, 0.2], "epochs": 3, "verdict": ["open", "mixed"]}
    pd.DataFrame(judged).to_parquet(sweep / "claims.parquet")
    (sweep / "sweep.yaml").write_text(yaml.safe_dump({"chapter": 1, "profile": "tiny", "swept": ["rate", "epochs"]}))
    write_page_of_sweeps(tmp_path)
    page = BeautifulSoup((tmp_path / "here" / "sweeps.md").read_text(), "html.parser")
    assert len(page.select("figure")) == len(page.select("table")) == 1
    assert [cell.text for cell in page.select("tbody td")] == ["mixed", "0", "1", "open", "1", "0"]
