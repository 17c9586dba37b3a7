"""Cards of claims: plots whose marks lie where the numbers are, numbers as text beside them, and what is said."""

from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from tests.book.judged import STEPS, verdict_on

from fivelenses.book.cards import EDGE, axes, card, printed, sentence
from fivelenses.judging import FAILS, HOLDS, OPEN, OURS, Claim, Verdict, crossed, over_seeds

NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
USUAL = dict(key="rises", paper="p", says="It rises.", place="section 1", exhibits=("p-figure-1", "p-table-2"))
USUAL |= dict(measure="change", code="growth", per="pair of tasks", unit={"growth": "nats", "size": "layers"})
GROWTH = Claim(**USUAL)
TWO = replace(GROWTH, above={"size": 0.5}, because={"size": "half a layer matters"})


def judged(*intervals, claim=GROWTH) -> Verdict:
    """The verdict on one part, of a group for each interval."""
    return verdict_on(claim, {f"g{place}": {"growth": one} for place, one in enumerate(intervals)})


def on(*outcomes, left_out=None) -> Verdict:
    intervals = {f"g{place}": {"growth": over_seeds(STEPS[outcome])} for place, outcome in enumerate(outcomes)}
    return verdict_on(GROWTH, intervals, left_out)


def read(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=4), min_size=1, max_size=4), NUMBERS)
def test_every_dot_and_the_threshold_lie_inside_in_order(values, threshold):
    claim = replace(GROWTH, above=threshold, because="a matter of the test")
    verdict = judged(*map(over_seeds, values), claim=claim)
    (axis,) = axes(claim, [verdict])
    for _, part in axis.rows(verdict):
        low, at, high = (axis.at(end) for end in (part.interval.low, part.interval.estimate, part.interval.high))
        assert EDGE <= low <= at <= high <= 100 - EDGE
        assert at >= axis.at(threshold) or part.interval.estimate <= threshold
    assert EDGE <= axis.at(threshold) <= 100 - EDGE
    assert all(EDGE <= at <= 100 - EDGE for at in axis.ticks.values())


@pytest.mark.parametrize(
    ("interval", "arrows"),
    [(over_seeds([1.0, 1.1, 0.9]), 0), (over_seeds([1.0, 1.1, 0.9]).at_least(), 1), (over_seeds([2.0]), 2)],
)
def test_an_end_that_is_not_known_has_an_arrow_at_the_edge(interval, arrows):
    assert len(read(card(GROWTH, judged(interval))).select(".arrow")) == arrows


def test_one_wide_interval_does_not_hide_the_others():
    narrow, wide = over_seeds([0.1, 0.11, 0.09]), over_seeds([900.0, -900.0])
    (axis,) = axes(GROWTH, [judged(*[narrow] * 4), judged(wide)])
    assert wide.low < axis.low and axis.high < wide.high
    assert axis.at(narrow.high) - axis.at(narrow.low) > 5


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (over_seeds([1.0, 1.1, 0.9]), "1.00 [0.75, 1.25]"),
        (over_seeds([1.0, 1.1, 0.9]).at_most(), "at most 1.00 [−∞, 1.25]"),
        (over_seeds([-1000.0, -3000.0, 200.0]), "−1,300 [−5,300, 2,700]"),
        (over_seeds([0.0, 0.0]), "0 [0, 0]"),
        (over_seeds([-7e-7, -8e-7]), "0.0000 [0.0000, 0.0000]"),
        (crossed([[1.0, 1.0], [1.0, 1.0]]), "1.00 [1.00, 1.00]"),
    ],
)
def test_a_number_is_said_as_exactly_as_its_interval_allows(one, text):
    assert printed(one) == text


def test_a_bar_that_ends_below_its_threshold_in_an_open_group_says_why():
    # 95% intervals of three seeds reach 2.48 standard deviations; one of two parts needs 3.58.
    just_below = over_seeds([-3.0, -2.0, -4.0])
    verdict = verdict_on(TWO, {"g": {"growth": just_below, "size": over_seeds([1.0, 1.1, 0.9])}})
    (cell,) = read(card(TWO, verdict)).select("td.open:not(.plot)")
    assert just_below.high < 0 and cell.text == "open (below it at 95%, not at 97.5%, as one of 2 parts has to be)"
    alone = verdict_on(GROWTH, {"g": {"growth": just_below}})
    assert [cell.text for cell in read(card(GROWTH, alone)).select("td.fails:not(.plot)")] == ["fails"]


@pytest.mark.parametrize(("lacking", "alone"), [(1, False), (2, False), (3, True)])
def test_where_fewer_than_half_of_the_groups_are_left_they_are_counted(lacking, alone):
    verdict = on(HOLDS, HOLDS, left_out={f"task {number}": "it was not learned" for number in range(lacking)})
    said = "Reproduced on 2 of 5 tasks alone: it holds in both tasks" if alone else "Reproduced: it holds in both tasks"
    assert sentence(verdict, "task") == f"{said}, with 3 models each."


def test_a_half_without_a_group_and_one_that_rests_on_one_are_named():
    claim = replace(GROWTH, halves={"late": ["a", "b"], "early": ["c"]})
    verdict = verdict_on(claim, {"a": {"late": over_seeds(STEPS[HOLDS])}}, {"b": "it was not learned"})
    assert "No group tests the half “early”. The half “late” rests on a alone." in sentence(verdict)


def test_a_sentence_counts_groups_and_names_those_in_which_it_does_not_hold():
    assert sentence(on(HOLDS), "task") == "Reproduced on g0 alone, with 3 models."
    mixed = "Mixed: it holds in 1 of 3 tasks, fails in 1 (g1) and is open in 1 (g2), with 3 models each."
    assert sentence(on(HOLDS, FAILS, OPEN), "task") == mixed
    contradicted = sentence(on(FAILS, FAILS), "pair of tasks")
    assert contradicted == "Contradicted: it fails in both pairs of tasks, with 3 models each."
    assert sentence(judged(over_seeds([1.0]))) == "Open on g0 alone. One model says nothing about other seeds."


@pytest.fixture
def one():
    """The card of a claim of two parts: one group holds, one fails by its second part."""
    high, low = over_seeds([1.0, 1.1, 0.9]), over_seeds([0.3, 0.31, 0.29])
    intervals = {"mrpc": {"growth": high, "size": high}, "rte": {"growth": high, "size": low}}
    html = card(replace(TWO, printed="0.42"), verdict_on(TWO, intervals), ["p-figure-1", "another"])
    return read(html).select_one("details.claim")


def test_a_card_names_claim_place_measure_thresholds_and_code(one):
    text = " ".join(one.text.split())
    assert one["id"] == "claim-rises" and "rises It rises." in text
    assert "The paper, section 1. It prints 0.42. Computed per pair of tasks: change. Larger" in text
    growth, size = [" ".join(item.text.split()) for item in one.select(".thresholds li")]
    assert growth == "growth above 0 nats" and size == "size above 0.5 layers: half a layer matters"
    assert "Code: notebook.growth." in text
    assert [link["href"] for link in one.select("a")] == ["#p-figure-1"]


def test_numbers_and_outcomes_stand_beside_each_plot_as_text(one):
    assert "mixed (1 of 2)" in " ".join(one.select_one("summary").text.split())
    tables = one.select("table.intervals")
    assert [table.caption.text for table in tables] == ["growth, nats", "size, layers"]
    cells = [[cell.text for cell in row.select("th, td")] for row in tables[1].select("tbody tr")]
    mrpc, rte = ([row[0], row[2], row[3]] for row in cells)
    assert mrpc == ["mrpc", "1.00 [0.75, 1.25]", "holds"] and rte == ["rte", "0.300 [0.275, 0.325]", "fails"]
    assert all(picture["aria-hidden"] == "true" for picture in one.select("tbody td > svg"))
    assert len(one.select("circle")) == len(one.select("line.threshold")) == 4


def test_a_statement_of_ours_is_called_so_and_a_twin_that_cannot_be_is_explained():
    ours = replace(GROWTH, place=OURS, no_twin="it is about a head")
    text = read(card(ours, on(HOLDS))).text
    assert "Our statement." in text and "No twin: it is about a head." in text and "prints" not in text
