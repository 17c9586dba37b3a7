"""Chapter 4 asked of another encoder: which models it takes, and its curves judged on its own rows."""

import pandas as pd
import pytest
from tests.papers.test_singh2020 import FAILING, PASSING, distances, probe, scores

from fivelenses.exhibits.claims import judge_all
from fivelenses.papers import singh2020
from fivelenses.runs.settings import settings

OURS = "english-bert/seed-0"
SIZES = {"sst2": [1000, 10], "qnli": [1000, 10], "cola": [1000]}


def shown(tables: dict, sizes: dict = SIZES):
    """The exhibit of another encoder from tables by figure."""
    tuned = pd.concat([tables[f"singh2020-figure-1{one}"] for one in "abd"])
    probes = {"sst2": tables["singh2020-figure-2a"], "qnli": tables["singh2020-figure-2b"]}
    probes["cola"] = scores("cola", {1000: probe(lambda share: 0.5 - 0.3 * share)}, "removed", null=0.0)
    moved = [tables[f"singh2020-figure-3{one}"] for one in "ab"] + [distances("cola", {1000: 0.2})]
    return singh2020.another_encoder(tuned, probes, pd.concat(moved), sizes, OURS)


@pytest.mark.parametrize("tables", [PASSING, FAILING], ids=["passing", "failing"])
def test_every_claim_is_judged_on_this_encoders_rows(tables):
    caption = shown(tables).caption
    for verdict in judge_all(singh2020.CLAIMS, tables):
        assert f"{verdict.claim} is {verdict.verdict} ({verdict.number})" in caption


def test_the_table_holds_what_is_drawn_by_figure():
    exhibit = shown(PASSING)
    assert exhibit.key == "singh2020-figures-1-5-english-bert-seed-0" and set(exhibit.table["encoder"]) == {OURS}
    for name in ("1a", "1b", "1d", "2a", "2b", "3a", "3b"):
        key = f"singh2020-figure-{name}"
        drawn = exhibit.table[exhibit.table["figure"] == key]
        assert len(drawn) == len(PASSING[key])
    assert len(exhibit.figure.axes) == 9
    assert "Matthews" in exhibit.alt and "QNLI, weight distance (L2) by layer: 1000: 0.300 at 1" in exhibit.alt


def test_a_size_at_which_tasks_are_only_matched_is_not_among_the_curves():
    more = PASSING | {"singh2020-figure-1a": scores("sst2", {1000: lambda share: 0.9 - 0.3 * share, 77: lambda _: 0.7})}
    drawn = shown(more, SIZES | {"sst2": [1000]}).table
    assert set(drawn.query("figure == 'singh2020-figure-1a'")["examples"]) == {1000}


def test_sizes_are_named_once_for_all_tasks_or_side_by_side_where_they_differ():
    for sizes, words in ((SIZES, "1,000 examples"), (SIZES | {"cola": [500]}, "1,000 / 500 examples")):
        tables = PASSING | {"singh2020-figure-1d": scores("cola", {sizes["cola"][0]: lambda _: 0.4}, null=0.0)}
        (legend,) = shown(tables, sizes).figure.legends
        assert legend.get_texts()[0].get_text() == words


def test_an_encoder_beside_has_the_same_plan_at_its_own_rate():
    other = "toy-bert/seed-1"
    chosen = settings(4, "tiny", beside=[other], learning_rate_by_encoder={other: 1e-4})
    wanted, first = (chosen.specifications_for(name) for name in (other, chosen.encoder))
    assert {one.encoder for one in wanted} == {other} and {one.schedule.learning_rate for one in wanted} == {1e-4}
    assert set(chosen.specifications()) == {*wanted, *first} and len(wanted) == len(first)
    assert settings(4, "tiny").specifications() == first


def test_few_examples_are_read_more_often_at_that_rate_too():
    other = "toy-bert/seed-1"
    chosen = settings(4, "tiny", beside=[other], learning_rate_by_encoder={other: 1e-4}, least_steps=60)
    few = [one.schedule for one in chosen.specifications_for(other) if one.examples == 900]
    assert few and all(one.learning_rate == 1e-4 and one.steps(900) >= 60 for one in few)
