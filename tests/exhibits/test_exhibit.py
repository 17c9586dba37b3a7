import re

import pandas as pd
import pytest

from fivelenses.exhibits.exhibit import Absent, as_html
from fivelenses.papers.hao2020 import figures
from fivelenses.runs.run import Run
from fivelenses.runs.settings import find_chapter, settings


def test_an_exhibit_that_a_run_cannot_have_says_why(tmp_path):
    one_seed = pd.DataFrame(
        {"first": ["pre-trained", "pre-trained"], "second": ["0", "untrained"], "layer": 1, "js": 0.1}
    )
    run = Run(find_chapter(1), "tiny", settings(1, "tiny", seeds=[0]), tmp_path)
    for figure in (figures.figure_4, figures.figure_5):
        exhibit = figure(one_seed)
        assert isinstance(exhibit, Absent) and "compares seeds" in exhibit.sentence
        run.exhibit(figure, one_seed)
    assert not run.tables and not list(tmp_path.glob("*.parquet"))


def test_a_table_is_printed_by_its_formats_in_the_order_of_its_columns():
    table = pd.DataFrame({"task": ["rte", None], "rate": [1e-5, None], "paper": [-2.5, 1.0], "examples": [-1200, 3]})
    page = as_html(
        table,
        "A caption.",
        {
            "examples": ("examples", "{:,}"),
            "task": ("task", str.upper),
            "rate": ("rate (paper)", "{rate:g} ({paper:.1f})"),
        },
    )
    headers, cells = (re.findall(rf"<{tag} *>([^<]*)<", page) for tag in ("th", "td"))
    assert headers == ["examples", "task", "rate (paper)"]
    assert cells == ["−1,200", "RTE", "1e−05 (−2.5)", "3", "–", "– (1.0)"]


def test_hyphens_in_words_stay_and_columns_that_are_not_there_are_refused():
    table = pd.DataFrame({"encoder": ["toy-bert"], "score": [0.5]})
    assert ">toy-bert<" in as_html(table, "A caption.") and ">0.500000<" in as_html(table, "A caption.")
    with pytest.raises(KeyError, match="no column 'accuracy'"):
        as_html(table, "A caption.", {"accuracy": ("accuracy", "{:.2f}")})
