"""Exhibits: pictures with words from their tables, tables as a page prints them, and what is said where one is not."""

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from fivelenses import run as running
from fivelenses.chapters import CHAPTERS, settings
from fivelenses.exhibits import (
    TASKS,
    Cells,
    Exhibit,
    Layout,
    controls_in_words,
    curves,
    dots,
    heat_maps,
    in_words,
    label_ends,
    table_html,
)
from fivelenses.records import Missing
from fivelenses.run import Run


def rows(**columns) -> pd.DataFrame:
    usual = {"task": ["rte"] * 4 + ["mrpc"] * 4, "layer": [1, 2] * 4, "seed": [0, 0, 1, 1] * 2}
    return pd.DataFrame(usual | {"js": [0.1, 0.4, 0.2, 0.6, 0.1, 0.2, 0.1, 0.2]} | columns)


def read(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def texts(drawing) -> list[str]:
    return [text.get_text() for axes in drawing.figure.axes for text in axes.texts]


def test_a_curve_is_the_mean_of_its_seeds_in_its_tasks_colour_with_its_name_at_its_end():
    drawing = curves(rows(), "js", "task", y_label="nats")
    of_tasks = {to_hex(line.get_color()).upper(): line.get_ydata() for line in drawing.figure.axes[0].lines}
    assert of_tasks[TASKS["rte"][0]] == pytest.approx([0.15, 0.5]) and set(texts(drawing)) == {"RTE", "MRPC"}
    assert drawing.alt == ("Curves of nats over layer. RTE: 0.150 at 1, 0.500 at 2. MRPC: 0.100 at 1, 0.200 at 2.")


def test_a_caption_says_which_models_and_controls_are_drawn():
    table = rows(js_twin=0.1, js_shuffled=[0.2] * 4 + [None] * 4)
    assert in_words(table) == "RTE and MRPC; 2 seeds per task"
    assert controls_in_words(table, "js") == " Controls: moved at random, shuffled labels (RTE)."


def test_nulls_and_controls_are_drawn_and_said():
    drawing = curves(rows(null=0.9, js_twin=0.01), "js", "task", y_label="nats", nulls={"null": "untrained"})
    assert {"untrained", "moved at random"} < set(texts(drawing))
    assert "Untrained: 0.900 at 1, 0.900 at 2. Moved at random: 0.010 at 1, 0.010 at 2." in drawing.alt


def test_panels_are_named_and_what_has_its_own_is_not_in_the_legend():
    layout, nulls = Layout(panels="task", dashes="how"), {"null": "chance", "other": "chance"}
    table = rows(how=["a", "b"] * 4, null=0.9, other=0.8)
    drawing = curves(table, "js", "task", y_label="nats", nulls=nulls, layout=layout)
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes] == ["RTE", "MRPC"]
    assert [text.get_text() for text in drawing.figure.legends[0].get_texts()] == ["a", "b", "chance", "chance"]


def test_a_missing_value_is_refused_unless_its_panel_says_so():
    table = rows(js=[np.nan] * 4 + [0.1] * 4)
    with pytest.raises(ValueError, match="a curve would hide it"):
        curves(table, "js", "task", y_label="nats")
    drawing = curves(table, "js", "task", y_label="nats", layout=Layout(panels="task", missing="not separable"))
    assert "not separable" in texts(drawing)


@pytest.mark.parametrize("ends", [(0.0, 0.5, 1.0), (0.0, 0.0, 0.01), (0.97, 0.98, 1.0), (0.0,)])
def test_names_beside_curves_keep_clear_of_each_other_and_of_the_axis(ends):
    figure, axes = plt.subplots()
    axes.set_ylim(0, 1)
    label_ends(axes, 6, {f"curve {place}": (end, "black") for place, end in enumerate(ends)}, 3.6)
    heights, least = [text.xyann[1] for text in axes.texts], 0.17 / 2.7  # a line of text
    assert min(heights) >= least / 2 - 1e-9
    assert [text.xy[1] for text in axes.texts] == sorted(ends), "a name belongs to the end of its curve"
    assert (np.diff(sorted(heights)) >= least - 1e-9).all()
    plt.close(figure)


def test_dots_and_shades_say_what_they_show():
    table = pd.DataFrame({"task": "rte", "start": ["scratch", "fine-tuned"], "score": [0.5, 0.7]})
    drawing = dots(table, "score", "task", "start", label="accuracy", line=0.5)
    assert [text.get_text() for text in drawing.figure.legends[0].get_texts()] == ["scratch", "fine-tuned"]
    assert drawing.alt == "Dots of accuracy. RTE: scratch 0.500, fine-tuned 0.700."
    matrix = pd.DataFrame([[0.9, None], [-0.2, 0.8]], ["JS", "RSA"], ["JS", "RSA"])
    drawing = heat_maps({"": matrix}, matrix, label="correlation", limits=(-1, 1), cells=Cells(written="{:.1f}"))
    assert texts(drawing) == ["0.9", "−0.2", "0.8"]
    assert drawing.alt == "A shaded table of correlation. JS most at JS (0.90); RSA most at RSA (0.80)."


@pytest.mark.parametrize(("values", "ends"), [([0.2, 0.9], ("0", "1")), ([-0.2, 4.5], ("≤ 0", "≥ 1"))])
def test_a_bar_says_where_values_lie_beyond_its_ends(values, ends):
    drawing = heat_maps({"": pd.DataFrame([values])}, rows(), label="share")
    labels = [text.get_text() for text in drawing.figure.axes[-1].get_xticklabels()]
    assert (labels[0], labels[-1]) == ends


@pytest.mark.parametrize("kind", ["lines", "shades"])
def test_a_picture_is_one_figure_with_caption_and_words(kind, tmp_path):
    matrix = pd.DataFrame([[0.1]])
    drawing = (
        curves(rows(), "js", "task", y_label="nats") if kind == "lines" else heat_maps({"": matrix}, rows(), label="x")
    )
    exhibit = Exhibit("p-figure-1", "Figure 1", "What <moves>.", drawing.table, drawing)
    shown = read(exhibit.html).select_one("figure#p-figure-1")
    assert kind in shown.div["class"] and shown.img["alt"] == drawing.alt
    assert shown.figcaption.text == "Figure 1. What <moves>."
    exhibit.save(tmp_path)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "p-figure-1.parquet"), rows())
    assert {file.suffix for file in tmp_path.iterdir()} == {".parquet", ".png"}


def test_a_table_is_printed_by_its_formats_in_the_order_of_its_columns_with_numbers_to_the_right():
    table = pd.DataFrame({"task": ["rte", "rte", None], "gain": [-0.25, 1.0, None], "null": [0.5, 0.5, None]})
    formats = {"gain": "{gain:.1f} ({null:.1f} ± {null:.1f})"}
    page = read(table_html(table, "A caption.", {"gain": "change", "task": "task"}, formats))
    assert [cell.text for cell in page.select("thead th")] == ["change", "task"]
    cells = [cell.text.replace("\xa0", " ") for cell in page.select("tbody td")]
    assert cells == ["−0.2 (0.5 ± 0.5)", "rte", "1.0 (0.5 ± 0.5)", "rte", "–", "–"]
    assert page.select(".number") == page.select("th:first-child, td:first-child")
    assert len(read(table_html(table, "")).select('th[scope="rowgroup"][rowspan="2"]')) == 1


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run whose page is a list of texts."""
    run, page = Run(CHAPTERS[1], "tiny", settings(1, "tiny"), tmp_path), []
    monkeypatch.setattr(running, "display", lambda shown: page.append(shown.data))
    run.page = page
    return run


def test_what_a_run_cannot_show_it_says(run):
    missing = Missing("rollbacks", "it is old")
    run.figure("Figure 3", curves(missing, "js", "task", y_label="nats"), f"Of {missing['js'].max():.2f}.")
    run.figure("Figure 4", curves(rows()[:0], "js", "task", y_label="nats"), "", if_empty="it compares seeds")
    run.table("Table 2", rows()[:0], "")
    assert run.page == [
        "Figure 3 is not here: this run has not measured rollbacks, because it is old.",
        "Figure 4 is not here: it compares seeds.",
        "Table 2 is not here: there is nothing to measure.",
    ]
    assert not run.exhibits and not list(run.folder.glob("*.parquet"))


def test_a_claim_is_judged_below_its_figure_and_listed_at_the_end(run):
    run.figure("Figure 1", curves(rows(), "js", "task", y_label="nats"), "What moves.")

    @run.claim("rises", "It <rises>.", "§1", rows(), by="task")
    def rise(of_model):
        """The last layer minus the first."""
        return of_model["js"].iloc[1] - of_model["js"].iloc[0]

    claim, verdict = run.claims[0]
    assert claim.exhibits == ("hao2020-figure-1",) and len(verdict.groups) == 2
    card = read(run.page[1])
    assert card.select_one("#claim-rises") and "Computed per task: the last layer minus the first" in card.text
    run.finish()
    assert read(run.page[-1]).select_one('a[href="#claim-rises"]') and "It <rises>." in read(run.page[-1]).text
    assert {"claims.json", "run.json"} < {file.name for file in run.folder.iterdir()}
