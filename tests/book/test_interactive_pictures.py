"""The picture of each chapter that a reader can turn or ask: its data are those of its exhibit's table."""

import json

import numpy as np
import pytest
from bs4 import BeautifulSoup

from fivelenses import records
from fivelenses.exhibits import style
from fivelenses.exhibits.interactive import DIGITS
from fivelenses.papers.five_lenses import figures as five_lenses
from fivelenses.papers.hao2019 import figures as hao2019
from fivelenses.papers.hao2020 import figures as hao2020
from fivelenses.papers.known_truth import figures as known_truth
from fivelenses.papers.merchant2020 import figures as merchant2020
from fivelenses.papers.own_encoders import figures as own_encoders
from fivelenses.papers.singh2020 import figures as singh2020
from fivelenses.papers.toy_world import figures as toy_world
from fivelenses.papers.zhou2022 import figures as zhou2022
from fivelenses.runs.pages import published_runs

LARGEST = 150_000  # bytes of a piece: a page is read on a phone
LEADING = {run.chapter.number: run for run in published_runs() if run.leads}


def record(chapter, name):
    return records.read(LEADING[chapter].committed / f"{name}.parquet").table


def reinitialised():
    models = record(4, "models")
    task, sizes = models["task"].iloc[0], sorted(models["examples"].unique())
    return singh2020.reinitialisation(models, task, sizes, asked=True)


# The exhibit of each chapter, from its published records, and the columns of its table that can be read off.
ASKED = {
    0: (
        lambda: toy_world.worth_figure(toy_world.scores(record(0, "models"), record(0, "without_reading"))),
        ("score", "bag_of_words", "length"),
    ),
    1: (lambda: hao2020.figure_1(record(1, "changes_by_layer")), ("js", "layer")),
    2: (
        lambda: zhou2022.figure_3({"paths": record(2, "along_training.paths")}, "all-MiniLM-L6-v2"),
        ("x", "y", "z"),
    ),
    3: (lambda: hao2019.figure_1({"surfaces": record(3, "landscapes.surfaces")}), ("alpha", "beta")),
    4: (reinitialised, ("score", "examples")),
    5: (lambda: merchant2020.table_1(record(5, "edge_probing")), ()),
    6: (lambda: five_lenses.overview(record(6, "changes_by_layer")), ("layer",)),
    7: (lambda: known_truth.summary(record(7, "changes_seen"), record(7, "seconds")), ("score", "seconds")),
    8: (
        lambda: own_encoders.loss_figure(record(8, "loss_curves"), record(8, "language_modelling")),
        ("masked", "next_sentence", "step"),
    ),
}


@pytest.fixture(scope="module", params=sorted(LEADING), ids=lambda number: LEADING[number].chapter.slug)
def asked(request):
    """A chapter's exhibit, the columns that its piece shows, and the piece's views."""
    make, columns = ASKED[request.param]
    exhibit = make()
    if exhibit.figure is not None:
        style.close(exhibit.figure)
    piece = BeautifulSoup(exhibit.interactive, "html.parser")
    return exhibit, columns, piece, json.loads(piece.select_one("script").string)


def read_off(views, axes="xyz"):
    """All numbers along the axes of all views."""
    found = [np.ravel(trace[axis]) for view in views for trace in view["data"] for axis in axes if axis in trace]
    return {float(one) for part in found for one in part if str(one).replace(".", "", 1).lstrip("-").isdigit()}


def test_it_is_one_described_piece_small_enough_for_a_phone(asked):
    exhibit, _, piece, views = asked
    assert len(piece.select("details.interactive")) == 1 and piece.details["id"] == f"{exhibit.key}-interactive"
    assert len(piece.select_one("[role=img]")["aria-label"]) > 60
    assert len(piece.select("option")) == (len(views) if len(views) > 1 else 0)
    assert len(exhibit.interactive.encode()) < LARGEST
    assert not [sign for sign in ("NaN", "bdata", "://") if sign in exhibit.interactive]


def test_the_numbers_of_its_table_can_be_read_off(asked):
    exhibit, columns, _, views = asked
    table = exhibit.table
    if exhibit.key == "hao2019-figure-1":  # it shows the first seed
        table = table[table["seed"] == table["seed"].min()]
    seen = read_off(views)
    for column in columns:
        shown = {one if one % 1 == 0 else float(f"{one:.{DIGITS}g}") for one in table[column].dropna()}
        assert shown <= seen, column


def test_every_point_and_cell_says_what_it_is(asked):
    for view in asked[-1]:
        for trace in view["data"]:
            said, shown = np.array(trace["text"], dtype=object), np.array(trace.get("z", trace["x"]), dtype=object)
            assert said.size == shown.size and all(said[shown != None])  # noqa: E711, by element


@pytest.mark.parametrize("chapter", [5, 6])
def test_a_map_says_the_numbers_of_its_table(chapter):
    exhibit = ASKED[chapter][0]()
    piece = BeautifulSoup(exhibit.interactive, "html.parser")
    told = " ".join(np.ravel([view["data"][0]["text"] for view in json.loads(piece.script.string)]))
    if chapter == 5:
        # Of the rows with a control, the base belongs to all.
        tuned = exhibit.table[exhibit.table["control"] == ""]
        means = 100 * tuned.groupby(["task", "model"])["micro_f1"].mean()
        assert all(f": {value:.1f}<br>" in told for value in means)
    else:
        means = exhibit.table.groupby(["task", "measure", "layer"])["value"].mean()
        assert all(f": {value:.3g}<br>".replace("-", "−") in told for value in means)
        style.close(exhibit.figure)
