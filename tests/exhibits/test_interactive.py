import json
import re

from plotly import graph_objects

from fivelenses.exhibits.interactive import SCRIPT, folded


def test_the_data_come_back_and_no_name_ends_the_script():
    name = "</script><b>"
    page = folded(
        graph_objects.Figure(graph_objects.Scatter(x=[0, 1], y=[1, 0], name=name)), "key", "Turn it", "A line."
    )
    content = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(content)["data"][0]["name"] == name


def test_nothing_is_loaded_from_elsewhere():
    page = folded(graph_objects.Figure(), "key", "Turn it", "Nothing.")
    assert "://" not in page and f"_static/{SCRIPT}" in page
