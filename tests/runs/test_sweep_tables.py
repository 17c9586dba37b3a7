import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from tests.book.judged import in_turn

from fivelenses import judging
from fivelenses.book import sweeps
from fivelenses.checkpoints.specification import Schedule, specify
from fivelenses.execution import RunError
from fivelenses.judging import Claim
from fivelenses.sweep import Point, collect, gather, run_folder


def test_a_table_can_be_taken_out_again_as_it_was_put_in():
    first = pd.DataFrame({"layer": [1, 2], "js": [0.1, 0.2]})
    second = pd.DataFrame({"task": ["rte"], "score": [0.9]})
    whole = gather([({"point": "p", "keep": 0.5}, "figure", first), ({"point": "q", "keep": 0.9}, "table", second)])
    assert list(whole.columns) == ["point", "keep", "exhibit", "row", "layer", "js", "task", "score"]
    back = whole[whole["exhibit"] == "figure"].dropna(axis=1).sort_values("row")
    pd.testing.assert_frame_equal(back[["layer", "js"]], first, check_dtype=False)
    assert whole["keep"].tolist() == [0.5, 0.5, 0.9]
    assert whole.loc[2, "layer":"js"].isna().all()


def test_a_column_is_a_number_where_it_always_is_and_a_text_otherwise(tmp_path):
    tables = [
        ({"point": "p"}, "a", pd.DataFrame({"seed": [3], "diverged": True, "steps": [[1, 2]], "mixed": 1.5})),
        (
            {"point": "p"},
            "b",
            pd.DataFrame({"seed": ["0–1"], "diverged": [2], "steps": [np.array([3])], "mixed": ["few"]}),
        ),
    ]
    whole = gather(tables)
    whole.to_parquet(tmp_path / "whole.parquet", index=False)
    read = pd.read_parquet(tmp_path / "whole.parquet")
    assert read["seed"].tolist() == ["3", "0–1"]
    assert read["diverged"].tolist() == [1, 2]
    assert read["steps"].tolist() == ["[1, 2]", "[3]"]
    assert read["mixed"].tolist() == ["1.5", "few"]


def test_a_parameter_that_some_points_leave_open_stays_a_number():
    layer = pd.DataFrame({"layer": [1]})
    whole = gather([({"point": name, "rate": rate}, "a", layer) for name, rate in (("p", 0.1), ("q", None))])
    assert whole["rate"].tolist()[0] == 0.1 and np.isnan(whole["rate"][1])
    assert pd.api.types.is_float_dtype(whole["rate"])


def test_a_tables_column_does_not_hide_a_swept_parameter():
    whole = gather([({"point": "p", "seed": 5}, "figure", pd.DataFrame({"seed": ["0–1"], "row": [7]}))])
    assert whole.to_dict("records") == [
        {"point": "p", "seed": 5, "exhibit": "figure", "row": 0, "table_seed": "0–1", "table_row": 7}
    ]


RISES = Claim("rises", "p", "It rises.", "§1", "change", "rise", above={"growth": 0.0})


@pytest.fixture
def collected(tmp_path, monkeypatch, capsys):
    """A sweep of two points whose runs were written by hand, one with a model that has left the store."""
    for variable in ("RUNS", "STORE"):
        monkeypatch.setenv(f"FIVELENSES_{variable}", str(tmp_path / variable.lower()))
    specification = specify("toy-bert/seed-0", "rte", "toyworld", 0, Schedule(1e-3, 16, 1))
    manifest = {"specification": specification.as_dict(), "provenance": {"train": "by hand"}, "training_examples": 32}
    manifest |= {"metric": "accuracy", "null_rate": 0.5, "evaluation_examples": 8, "diverged": False}
    manifest |= {"steps": 2, "seconds": 1.0}
    points = []
    for place, rate in enumerate((0.001, 0.002)):
        name = f"learning_rate={rate:g}"
        points.append(Point(name, {"learning_rate": rate}, {"learning_rate": rate}))
        run = run_folder(1, "tiny", points[-1].overrides)
        run.mkdir(parents=True)
        pd.DataFrame({"layer": [1, 2], "js": [rate, 2 * rate]}).to_parquet(run / "figure.parquet")
        facts = {"exhibits": ["figure"], "specifications": [f"model-{place}", "gone"][: 2 - place]}
        (run / "run.json").write_text(json.dumps(facts))
        declared = [RISES, replace(RISES, key="falls")][: 2 - place]
        judging.save(in_turn(declared), run)
        model = tmp_path / "store" / f"model-{place}"
        model.mkdir(parents=True)
        (model / "manifest.json").write_text(json.dumps(manifest | {"score": 0.6 + place / 10}))
    folder = tmp_path / "runs" / "sweeps" / "by-hand"
    folder.mkdir(parents=True)
    content = {"chapter": 1, "profile": "tiny", "swept": ["learning_rate"]}
    content["points"] = {point.name: point.overrides for point in points}
    (folder / "sweep.yaml").write_text(yaml.safe_dump(content))
    collect(1, "tiny", points, folder)
    return folder, capsys.readouterr().out


def test_the_scores_of_a_runs_models_are_in_the_table(collected):
    folder, printed = collected
    models = pd.read_parquet(folder / "sweep.parquet").query("exhibit == 'models'")
    assert models[["learning_rate", "table_learning_rate", "score"]].values.tolist() == [
        [0.001, 0.001, 0.6],
        [0.002, 0.001, 0.7],
    ]
    assert printed == "learning_rate=0.001: 1 of its models are no longer in the store\n"


def test_claims_have_a_row_per_point_group_and_part(collected):
    table = pd.read_parquet(collected[0] / "claims.parquet")
    assert table[["learning_rate", "claim", "verdict", "group", "outcome"]].values.tolist() == [
        [0.001, "rises", "reproduced", "mrpc", "holds"],
        [0.001, "rises", "reproduced", "sst2", "holds"],
        [0.001, "falls", "contradicted", "mrpc", "fails"],
        [0.001, "falls", "contradicted", "sst2", "fails"],
        [0.002, "rises", "reproduced", "mrpc", "holds"],
        [0.002, "rises", "reproduced", "sst2", "holds"],
    ]
    assert (table["low"] < table["estimate"]).all() and (table["estimate"] < table["high"]).all()


def test_the_page_shows_every_sweep_with_picture_alternative_text_and_claims(collected, tmp_path):
    sweeps.write_page(tmp_path / "book")
    page = (tmp_path / "book" / "here" / "sweeps.md").read_text()
    assert "## Chapter 1 against learning_rate\n\nThe sweep `by-hand`" in page
    assert "Verdicts by learning_rate, in brackets at how many points." in page
    table = BeautifulSoup(page, "html.parser")
    picture = table.select_one("figure#by-hand-learning_rate img")
    assert "RTE: 0.600 at 0.001, 0.700 at 0.002." in picture["alt"]
    assert [cell.text for cell in table.select("thead th")] == ["claim", "learning_rate 0.001", "learning_rate 0.002"]
    verdicts = [[cell.text for cell in row.select("td")] for row in table.select("tbody tr")]
    assert verdicts == [["rises", "reproduced (1)", "reproduced (1)"], ["falls", "contradicted (1)", "–"]]


def test_several_points_at_one_value_have_their_verdicts_counted():
    points = [(0.1, 0, "open"), (0.1, 1, "mixed"), (0.2, 0, "open"), (0.2, 1, "open")]
    rows = [
        dict(point=f"{rate} {seed}", rate=rate, seed=seed, claim="rises", verdict=one) for rate, seed, one in points
    ]
    table = BeautifulSoup(sweeps.verdicts_by(pd.DataFrame(rows), "rate"), "html.parser")
    assert [cell.text for cell in table.select("tbody td")] == ["rises", "open (1), mixed (1)", "open (2)"]


def test_without_a_sweep_there_is_no_page(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    sweeps.write_page(tmp_path / "book")
    assert not (tmp_path / "book" / "here" / "sweeps.md").exists()


@pytest.mark.parametrize("name", ["sweep.parquet", "claims.parquet", "sweep.yaml"])
def test_a_damaged_sweep_is_named(collected, name, tmp_path):
    folder, _ = collected
    (folder / name).write_bytes(b"{damaged")
    with pytest.raises(RunError, match="by-hand is damaged .*make it again, or remove the folder"):
        sweeps.write_page(tmp_path / "book")
