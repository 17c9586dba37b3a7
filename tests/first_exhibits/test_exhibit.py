import re

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from matplotlib.figure import Figure

from fivelenses.first_exhibits.exhibit import Exhibit, as_html


@pytest.mark.parametrize("kind", ["lines", "shades"])
def test_a_page_knows_which_pictures_it_may_invert_in_the_dark(kind):
    figure = Figure()
    figure.subplots().plot([0, 1]) if kind == "lines" else figure.subplots().pcolormesh([[0, 1]])
    exhibit = Exhibit("key", "Title", pd.DataFrame({"x": [1]}), "A caption.", "A picture.", figure)
    shown = BeautifulSoup(exhibit.html, "html.parser").select_one("figure#key")
    assert kind in shown.div["class"] and shown.img["alt"] == "A picture."
    assert shown.figcaption.text == "Title. A caption."


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
    headers, cells = (re.findall(rf"<{tag}\b[^>]*>([^<]*)<", page) for tag in ("th", "td"))
    assert headers == ["examples", "task", "rate (paper)"]
    assert cells == ["−1,200", "RTE", "1e−05 (−2.5)", "3", "–", "– (1.0)"]


def test_rows_in_turn_with_one_first_cell_share_it():
    table = pd.DataFrame({"encoder": list("aaba"), "task": ["rte", "mrpc", "rte", "rte"], "score": [1, 2, 3, 4]})
    body = BeautifulSoup(as_html(table, "A caption."), "html.parser").tbody
    rows = [[(cell.text, int(cell.get("rowspan", 1))) for cell in row.find_all(["th", "td"])] for row in body("tr")]
    assert rows == [
        [("a", 2), ("rte", 1), ("1", 1)],
        [("mrpc", 1), ("2", 1)],
        [("b", 1), ("rte", 1), ("3", 1)],
        [("a", 1), ("rte", 1), ("4", 1)],
    ]


def test_a_table_of_one_column_has_a_row_for_each_of_its_values():
    body = BeautifulSoup(as_html(pd.DataFrame({"task": ["rte", "rte", "mrpc"]}), "A caption."), "html.parser").tbody
    assert len(body("tr")) == 3 and body.get_text(" ", strip=True) == "rte mrpc"


def test_signs_of_markup_in_cells_and_captions_are_printed_as_they_are():
    page = BeautifulSoup(as_html(pd.DataFrame({"label": ["<b>&"]}), "Where p < 0.05 & more."), "html.parser")
    assert page.td.text == "<b>&" and page.caption.text == "Where p < 0.05 & more."


def test_a_spread_stays_on_the_line_of_its_number():
    table = pd.DataFrame({"score": [0.5], "spread": [0.1]})
    assert "0.5\xa0±\xa00.1" in as_html(table, "Scores.", {"score": ("score", "{score} ± {spread}")})


def test_hyphens_in_words_stay_and_columns_that_are_not_there_are_refused():
    table = pd.DataFrame({"encoder": ["toy-bert"], "score": [0.5]})
    assert ">toy-bert<" in as_html(table, "A caption.") and ">0.500000<" in as_html(table, "A caption.")
    with pytest.raises(KeyError, match="no column 'accuracy'"):
        as_html(table, "A caption.", {"accuracy": ("accuracy", "{:.2f}")})
