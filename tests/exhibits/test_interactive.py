import json

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from plotly import graph_objects

from fivelenses.exhibits.interactive import SYMBOLS, folded, heat_map, points
from fivelenses.exhibits.style import OWN_MARKERS, SEQUENCE_MARKERS, TASK_MARKERS


def piece_of(*arguments):
    piece = BeautifulSoup(folded(*arguments), "html.parser")
    return piece, json.loads(piece.script.string)


def test_the_data_come_back_rounded_and_no_name_ends_the_script():
    name = "</script><b>"
    figure = graph_objects.Figure(graph_objects.Scatter(x=[0, 1], y=[1 / 3, 0], name=name))
    _, [view] = piece_of(figure, "key", "Turn it", 'A "line".')
    assert view["data"][0]["name"] == name and view["data"][0]["y"] == [0.3333, 0.0]


def test_one_of_several_views_is_chosen_by_its_words():
    figure = graph_objects.Figure(graph_objects.Scatter(x=[0], y=[1]))
    piece, views = piece_of({"a < b": figure, "other": figure}, "key", "Ask it", "A point.")
    assert [option.text for option in piece.select("label option")] == ["a < b", "other"] and len(views) == 2
    assert not piece_of(figure, "key", "Turn it", "A point.")[0].select("select")


@pytest.mark.parametrize(("trace", "kind"), [("Heatmap", "shades"), ("Surface", "shades"), ("Scatter3d", "lines")])
def test_shades_are_told_from_lines(trace, kind):
    figure = graph_objects.Figure({"Scatter3d": graph_objects.Scatter3d}.get(trace, getattr(graph_objects, trace))())
    assert kind in piece_of(figure, "key", "Turn it", "Nothing.")[0].select_one("[role=img]")["class"]


def test_every_marker_of_the_book_has_its_symbol():
    assert set(SYMBOLS) >= {*TASK_MARKERS.values(), *OWN_MARKERS, *SEQUENCE_MARKERS}
    assert points(pd.DataFrame({"x": [1]}), "x", "x", "{x}", ("red", "^"), "RTE").marker.symbol == "triangle-up"


def test_a_map_keeps_the_order_of_its_rows_and_a_hole_stays_empty():
    rows = pd.DataFrame({"task": ["b", "b", "a"], "layer": [1, 2, 1], "js": [0.5, -0.25, 1.0]})
    _, [view] = piece_of(heat_map(rows, "js", "task", "layer", "{task}, {layer}: {js:.2f}"), "key", "Ask it", "A map.")
    cells = view["data"][0]
    assert cells["y"] == ["b", "a"] and cells["x"] == ["1", "2"] and cells["z"] == [[0.5, -0.25], [1.0, None]]
    assert cells["text"][0] == ["b, 1: 0.50", "b, 2: −0.25"]
