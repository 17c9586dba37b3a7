"""Cards of claims: plots whose marks lie where the numbers are, numbers as text beside them, and what is said."""

from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.judged import in_turn, verdict_on

from fivelenses.judging import (
    CANNOT_BE_TESTED,
    FAILS,
    HOLDS,
    OPEN,
    OURS,
    Statement,
    Threshold,
    Verdict,
    crossed,
    over_seeds,
)
from fivelenses.runs.cards import cards, sentence
from fivelenses.runs.intervals_drawn import EDGE, drawn, plots, printed, scale

GROWTH = Threshold("growth", unit="nats")
LIMIT = Threshold("size", 0.5, "half a layer matters", "layers")
NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))


def judged(*intervals, part=GROWTH, names=()) -> Verdict:
    """The verdict on one part, of a group for each interval."""
    names = names or [f"g{place}" for place in range(len(intervals))]
    return verdict_on([part], {name: {part.name: one} for name, one in zip(names, intervals, strict=True)})


def claim(**changes) -> Statement:
    usual = dict(key="rises", paper="p", says="It rises.", place="section 1", exhibits=("p-figure-1", "p-table-2"))
    usual |= dict(measure="change", parts=(GROWTH, LIMIT), per="pair of tasks", code="notebook.growth")
    return Statement(**usual | changes)


# Plots


def row(*intervals):
    return drawn(GROWTH, judged(*intervals), scale(GROWTH, intervals)).rows[0]


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=4), min_size=1, max_size=4), NUMBERS)
def test_every_dot_and_the_threshold_lie_inside_in_order(values, threshold):
    part = Threshold("growth", threshold, "a matter of the test")
    intervals = list(map(over_seeds, values))
    plot = drawn(part, judged(*intervals, part=part), scale(part, intervals))
    for interval, of_row in zip(intervals, plot.rows, strict=True):
        assert EDGE <= of_row.low <= of_row.at <= of_row.high <= 100 - EDGE
        if interval.estimate > threshold:
            assert of_row.at >= plot.threshold
    assert EDGE <= plot.threshold <= 100 - EDGE
    assert all(EDGE <= at <= 100 - EDGE for at, _ in plot.scale.marks)


def test_a_bar_ends_where_the_interval_does():
    interval = over_seeds([1.0, 1.1, 0.9])
    one, axis = row(interval), scale(GROWTH, [interval])
    assert (one.goes_on_left, one.goes_on_right, one.outcome) == (False, False, "holds")
    assert (one.low, one.high) == tuple(map(axis.at, interval.bounds()))


@pytest.mark.parametrize("bounded", [(True, False), (False, True), (False, False)])
def test_a_censored_end_has_an_arrow_at_the_edge(bounded):
    one = row(replace(over_seeds([1.0, 1.1, 0.9]), bounded=bounded), over_seeds([-1.0, -1.1, -0.9]))
    assert (one.goes_on_left, one.goes_on_right) == (not bounded[0], not bounded[1])
    assert (one.low == EDGE or bounded[0]) and (one.high == 100 - EDGE or bounded[1])


def test_one_model_has_arrows():
    one = row(over_seeds([2.0]))
    assert one.goes_on_left and one.goes_on_right and one.outcome == "open"


def test_one_wide_interval_does_not_hide_the_others():
    found = [over_seeds([0.1, 0.11, 0.09])] * 4 + [over_seeds([900.0, -900.0])]
    rows = drawn(GROWTH, judged(*found), scale(GROWTH, found)).rows
    assert rows[-1].goes_on_left and rows[-1].goes_on_right
    assert rows[0].high - rows[0].low > 5


def test_a_part_has_one_axis_in_all_runs():
    first, second = judged(over_seeds([1.0, 1.1, 0.9])), judged(over_seeds([9.0, 9.1, 8.9]))
    (one,), (two,) = plots([GROWTH], [first, second])
    assert one.scale == two.scale and one.threshold == two.threshold and one.rows[0].at < two.rows[0].at
    assert plots([GROWTH], [Verdict(CANNOT_BE_TESTED)]) == [[]]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (over_seeds([1.0, 1.1, 0.9]), "1.00 [0.75, 1.25]"),
        (over_seeds([1.0, 1.1, 0.9]).at_most(), "at most 1.00 [−∞, 1.25]"),
        (over_seeds([-1000.0, -3000.0, 200.0]), "−1,300 [−5,300, 2,700]"),
        (over_seeds([0.0, 0.0]), "0 [0, 0]"),
        (crossed([[1.0, 1.0], [1.0, 1.0]]), "1.00 [1.00, 1.00]"),
    ],
)
def test_a_number_is_said_as_exactly_as_its_interval_allows(one, text):
    assert printed(one) == text


@given(st.lists(NUMBERS, min_size=2, max_size=4))
def test_what_is_said_can_be_read_back(values):
    one = over_seeds(values)
    text = printed(one).replace("−", "-").replace(",", "")
    half = (one.high - one.low) / 2
    assert float(text.split(" ")[0]) == pytest.approx(one.estimate, abs=max(half / 10, abs(one.estimate) / 100, 1e-9))


# What a verdict says

SEEDS = {HOLDS: [1.0, 1.1, 0.9], FAILS: [-1.0, -1.1, -0.9], OPEN: [-1.0, 1.5, 0.2]}


def on(*outcomes, left_out=None) -> Verdict:
    intervals = {f"g{place}": {"growth": over_seeds(SEEDS[outcome])} for place, outcome in enumerate(outcomes)}
    return verdict_on([GROWTH], intervals, left_out)


@pytest.mark.parametrize(("lacking", "alone"), [(1, False), (2, False), (3, True)])
def test_where_fewer_than_half_of_the_groups_are_left_they_are_named(lacking, alone):
    verdict = on(HOLDS, HOLDS, left_out={f"task {number}": "it was not learned" for number in range(lacking)})
    said = "Reproduced on g0 and g1 alone: it holds in both tasks" if alone else "Reproduced: it holds in both tasks"
    assert sentence(verdict, "task") == f"{said}, with 3 models each."


def test_a_half_without_a_group_and_one_that_rests_on_one_are_named():
    large, small = Threshold("late", groups=("a", "b"), half="late"), Threshold("early", groups=("c",), half="early")
    verdict = verdict_on([large, small], {"a": {"late": over_seeds(SEEDS[HOLDS])}}, {"b": "it was not learned"})
    assert "No group is about the half “early”. The half “late” rests on a alone." in sentence(verdict)


def test_a_sentence_counts_groups_and_names_those_in_which_it_does_not_hold():
    assert sentence(on(HOLDS), "task") == "Reproduced on g0 alone, with 3 models."
    assert sentence(on(HOLDS, FAILS, OPEN), "task") == (
        "Mixed: it holds in 1 of 3 tasks, fails in 1 (g1) and is open in 1 (g2), with 3 models each."
    )
    assert sentence(on(FAILS, FAILS), "pair of tasks") == (
        "Contradicted: it fails in both pairs of tasks, with 3 models each."
    )


def test_an_open_verdict_on_one_model_says_that_more_are_needed():
    of_one = judged(over_seeds([1.0]), names=["MRPC"])
    assert sentence(of_one) == "Open on MRPC alone. More than one model is needed to decide MRPC."
    assert sentence(on(OPEN, OPEN)) == "Open: it is open in both groups, with 3 models each."


# Cards


@pytest.fixture
def card():
    """The card of a claim of two parts: one group holds, one fails by its second part."""
    high, low = over_seeds([1.0, 1.1, 0.9]), over_seeds([0.3, 0.31, 0.29])
    found = {"mrpc": {"growth": high, "size": high}, "rte": {"growth": high, "size": low}}
    html = cards([claim(printed="0.42")], [verdict_on((GROWTH, LIMIT), found)], ["p-figure-1", "another"])
    return BeautifulSoup(html, "html.parser").select_one("details.claim")


def test_a_card_names_claim_place_measure_thresholds_and_code(card):
    text = " ".join(card.text.split())
    assert card["id"] == "claim-rises" and "rises It rises." in text
    assert "The paper, section 1. It prints 0.42. Measured as change, per pair of tasks" in text
    assert [" ".join(one.text.split()) for one in card.select(".thresholds li")] == [
        "growth above 0 nats",
        "size above 0.5 layers: half a layer matters",
    ]
    assert "Code: notebook.growth." in text
    assert [link["href"] for link in card.select("a")] == ["#p-figure-1"]


def test_the_first_line_says_the_verdict_with_the_part_that_failed(card):
    assert "mixed (1 of 2)" in " ".join(card.select_one("summary").text.split())
    said = " ".join(card.select_one(".said").text.split())
    assert "Mixed: it holds in 1 of 2 pairs of tasks and fails in 1 (rte), with 3 models each." in said


def test_numbers_and_outcomes_stand_beside_each_plot_as_text(card):
    tables = card.select("table.intervals")
    assert [table.caption.text for table in tables] == ["growth, nats", "size, layers"]
    cells = [[cell.text for cell in row.select("th, td")] for row in tables[1].select("tbody tr")]
    assert [[one[0], one[2], one[3]] for one in cells] == [
        ["mrpc", "1.00 [0.75, 1.25]", "holds"],
        ["rte", "0.300 [0.275, 0.325]", "fails"],
    ]
    assert all(picture["aria-hidden"] == "true" for picture in card.select("tbody td > svg"))
    assert len(card.select("circle")) == len(card.select("line.threshold")) == 4


def test_a_statement_of_ours_is_called_so_and_a_twin_that_cannot_be_is_explained():
    ours = claim(place=OURS, parts=(GROWTH,), no_twin="it is about a head")
    text = BeautifulSoup(cards([ours], [judged(over_seeds([1.0, 1.1, 0.9]))]), "html.parser").text
    assert "Our statement." in text and "No twin: it is about a head." in text and "prints" not in text


def test_every_outcome_has_a_sign_of_its_own():
    of_each = [claim(key=f"c{place}") for place in range(5)]
    page = BeautifulSoup(cards(*zip(*in_turn(of_each), strict=True)), "html.parser")
    signs = page.select("summary .sign")
    assert len({sign.text for sign in signs}) == len({sign["class"][1] for sign in signs}) == 5
