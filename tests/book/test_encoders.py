"""The page on encoders: scores from the records of published runs, and every encoder that a chapter reads."""

import runpy
from types import SimpleNamespace

import pandas as pd
import pytest

from fivelenses import records
from fivelenses.book import pages
from fivelenses.chapters import PROFILES, chapters_on, settings
from fivelenses.files import project_folder
from fivelenses.records import Identity, Record

MODEL = {"task": "sst2", "examples": 100, "epochs": 1.0, "null_rate": 0.5, "shuffled_labels": False}
MODEL |= {"frozen": -1, "truncated": -1, "reinitialised": 0}
WORDS = {"task": "sst2", "examples": 100, "seed": 0, "metric": "accuracy", "weight": 1.0}

# The names of encoders that the page has one row for.
FAMILIES = {"toy-bert/": "toy BERT", "english-bert/": "English BERT", "google/bert_uncased_": "BERT miniatures"}
FAMILIES |= {"multiberts": "MultiBERTs", "bert-large-": "BERT {cite}", "bert-base-": "BERT {cite}"}


@pytest.fixture(scope="module")
def script():
    return SimpleNamespace(**runpy.run_path(str(project_folder() / "bench" / "encoder_scores.py")))


def published(folder, **tables):
    """The folder of a run with these records."""
    for name, rows in tables.items():
        records.write(folder / f"{name}.parquet", Record(pd.DataFrame(rows), Identity(name, "code", {}, ()), {}))
    return folder


def model(score, encoder="owner/small", **other):
    return MODEL | {"encoder": encoder, "score": score, "address": f"{encoder} {score} {other}"} | other


@pytest.fixture
def runs(tmp_path):
    words = [WORDS | {"example": place, "score": right} for place, right in enumerate((1.0, 1.0, 0.0, 1.0))]
    ordinary = [model(0.8), model(0.6), model(0.9, examples=10), model(0.9, epochs=5.0), model(0.9, "random:small")]
    changed = [model(0.9, **{name: 1}) for name in ("frozen", "truncated", "reinitialised")]
    changed += [model(0.9, shuffled_labels=True)]
    first = published(tmp_path / "1", models=ordinary + changed, words_by_example=words)
    own = [model(0.52, "own/seed-0"), model(0.54, "own/seed-1"), model(0.1, "own/seed-0", task="cola", null_rate=0.0)]
    # The models of chapter 1 again, as chapter 6 has them, and its bag of words.
    again = published(tmp_path / "6", models=[*ordinary[:2], *own], words_by_example=words)
    return [first, again, published(tmp_path / "7", models=[model(0.2)])]


def test_an_encoder_s_score_is_the_mean_of_its_ordinary_models_on_its_largest_training_set(runs, script):
    table = script.scores(runs).set_index("task")
    assert table.loc["SST-2", ["small", "own"]].tolist() == pytest.approx([0.7, 0.53])
    assert table.loc["SST-2", ["score (null rate)", "examples", "epochs"]].tolist() == ["accuracy (0.500)", "100", "1"]
    assert table.loc["CoLA", "own"] == pytest.approx(0.1) and pd.isna(table.loc["CoLA", "small"])
    # The bag of words lies beside the task that it was measured on.
    assert table.loc["SST-2", "bag of words"] == 0.75 and pd.isna(table.loc["CoLA", "bag of words"])


def test_the_table_of_the_page_is_what_the_script_prints(script):
    printed = script.printed(script.scores(records.committed_folder().glob("*/[0-9]-*")))
    assert (project_folder() / "book" / "encoder-scores.csv").read_text(encoding="utf-8") == printed


def test_the_page_names_every_encoder_of_the_book():
    page = (project_folder() / "book" / "encoders.md").read_text(encoding="utf-8")
    chosen = [settings(one.number, profile) for profile in PROFILES for one in chapters_on(profile)]
    read = {name for one in chosen for name in one.encoders_read()}
    for run in pages.published_runs():
        read |= {*records.read(run.committed / "models.parquet").table["encoder"]}
    for name in {name.removeprefix("random:") for name in read}:
        said = next((said for part, said in FAMILIES.items() if part in name), name.rpartition("/")[2])
        assert f"| {said}" in page, name
