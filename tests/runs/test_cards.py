"""Cards of claims: plots whose marks lie where the numbers are, numbers as text beside them, and what is said."""

import math

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.judged import in_turn

from fivelenses.first_exhibits.claims import OURS, Claim, Judged
from fivelenses.first_exhibits.effects import interval, over_models, without_interval
from fivelenses.first_exhibits.verdicts import AT_LEAST, AT_MOST, UNBOUNDED, Effect, Part, judge
from fivelenses.runs.cards import cards
from fivelenses.runs.intervals_drawn import EDGE, drawn, plots, printed, scale

GROWTH = Part("growth", unit="nats")
LIMIT = Part("size", 0.5, "half a layer matters", "layers")
NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))


def effect(values, group: str = "mrpc", part: Part = GROWTH, bound: str = "exact") -> Effect:
    return Effect(group, part.name, over_models(values), bound)


def judged(*found: Effect, parts=(GROWTH,)) -> Judged:
    return Judged("rises", judge(parts, found), found)


def claim(**changes) -> Claim:
    usual = dict(key="rises", paper="p", sentence="It rises.", place="section 1", exhibits=("p-figure-1", "p-table-2"))
    usual |= dict(measure="change", parts=(GROWTH, LIMIT), records=("changes",), effects=plots, unit="pair of tasks")
    return Claim(**usual | changes)


# Plots


def row(*found: Effect, part: Part = GROWTH):
    return drawn(part, judged(*found, parts=(part,)), scale(part, found)).rows[0]


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=4), min_size=1, max_size=4), NUMBERS)
def test_every_dot_and_the_threshold_lie_inside_in_order(values, threshold):
    part = Part("growth", threshold, "a matter of the test")
    found = [Effect(f"g{place}", "growth", over_models(of_group)) for place, of_group in enumerate(values)]
    plot = drawn(part, judged(*found, parts=(part,)), scale(part, found))
    for one, of_row in zip(found, plot.rows, strict=True):
        assert EDGE <= of_row.low <= of_row.at <= of_row.high <= 100 - EDGE
        if one.interval.estimate > threshold:
            assert of_row.at >= plot.threshold
    assert EDGE <= plot.threshold <= 100 - EDGE
    assert all(EDGE <= at <= 100 - EDGE for at, _ in plot.scale.marks)


def test_a_bar_ends_where_the_interval_does():
    one = row(effect([1.0, 1.1, 0.9]))
    assert (one.goes_on_left, one.goes_on_right, one.outcome, one.measured) == (False, False, "holds", True)
    axis = scale(GROWTH, [effect([1.0, 1.1, 0.9])])
    found = over_models([1.0, 1.1, 0.9])
    assert (one.low, one.high) == (axis.at(found.low), axis.at(found.high))


@pytest.mark.parametrize(
    ("bound", "left", "right"), [(AT_LEAST, False, True), (AT_MOST, True, False), (UNBOUNDED, True, True)]
)
def test_a_censored_end_has_an_arrow_at_the_edge(bound, left, right):
    one = row(effect([1.0, 1.1, 0.9], bound=bound), effect([-1.0, -1.1, -0.9], "rte"))
    assert (one.goes_on_left, one.goes_on_right) == (left, right)
    assert (one.low == EDGE or not left) and (one.high == 100 - EDGE or not right)


def test_one_model_has_arrows_and_no_interval_has_none():
    one, bare = row(effect([2.0])), row(Effect("mrpc", "growth", without_interval(2.0)))
    assert one.goes_on_left and one.goes_on_right and one.measured and one.outcome == "open"
    assert not (bare.goes_on_left or bare.goes_on_right or bare.measured) and bare.low == bare.at == bare.high


def test_one_wide_interval_does_not_hide_the_others():
    found = [effect([0.1, 0.11, 0.09], f"g{place}") for place in range(4)] + [effect([900.0, -900.0], "wide")]
    rows = drawn(GROWTH, judged(*found), scale(GROWTH, found)).rows
    assert rows[-1].goes_on_left and rows[-1].goes_on_right
    assert rows[0].high - rows[0].low > 5


def test_a_part_has_one_axis_in_all_runs():
    first, second = judged(effect([1.0, 1.1, 0.9])), judged(effect([9.0, 9.1, 8.9]))
    (one,), (two,) = plots([GROWTH], [first, second])
    assert one.scale == two.scale and one.threshold == two.threshold and one.rows[0].at < two.rows[0].at
    assert plots([GROWTH], [Judged("rises", in_turn([claim()] * 5)[4].verdict)]) == [[]]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (effect([1.0, 1.1, 0.9]), "1.00 [0.75, 1.25]"),
        (effect([1.0, 1.1, 0.9], bound=AT_MOST), "at most 1.00 [−∞, 1.25]"),
        (effect([-1000.0, -3000.0, 200.0]), "−1,300 [−5,300, 2,700]"),
        (effect([0.0, 0.0]), "0 [0, 0]"),
        (Effect("a", "b", interval([[1.0, 1.0], [1.0, 1.0]])), "1.00 [1.00, 1.00]"),
        (Effect("a", "b", without_interval(-0.0001234)), "−0.000123"),
    ],
)
def test_a_number_is_said_as_exactly_as_its_interval_allows(one, text):
    assert printed(one) == text


@given(st.lists(NUMBERS, min_size=2, max_size=4))
def test_what_is_said_can_be_read_back(values):
    one = over_models(values)
    text = printed(Effect("a", "b", one)).replace("−", "-").replace(",", "") if math.isfinite(one.low) else ""
    half = (one.high - one.low) / 2
    assert float(text.split(" ")[0]) == pytest.approx(one.estimate, abs=max(half / 10, abs(one.estimate) / 100, 1e-9))


# Cards


@pytest.fixture
def card():
    """The card of a claim of two parts: one group holds, one fails by its second part."""
    found = [effect([1.0, 1.1, 0.9], group, part) for group in ("mrpc", "rte") for part in (GROWTH, LIMIT)]
    found[3] = effect([0.3, 0.31, 0.29], "rte", LIMIT)
    html = cards([claim(printed="0.42")], [judged(*found, parts=(GROWTH, LIMIT))], ["p-figure-1", "another"])
    return BeautifulSoup(html, "html.parser").select_one("details.claim")


def test_a_card_names_claim_place_measure_thresholds_and_code(card):
    text = " ".join(card.text.split())
    assert card["id"] == "claim-rises" and "rises It rises." in text
    assert "The paper, section 1. It prints 0.42. Measured as change, per pair of tasks" in text
    assert [" ".join(one.text.split()) for one in card.select(".thresholds li")] == [
        "growth above 0 nats",
        "size above 0.5 layers: half a layer matters",
    ]
    assert "Code: fivelenses.runs.intervals_drawn.plots." in text
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
    ours = claim(place=OURS, parts=(GROWTH,), untwinned="it is about a head")
    text = BeautifulSoup(cards([ours], [judged(effect([1.0, 1.1, 0.9]))]), "html.parser").text
    assert "Our statement." in text and "No twin: it is about a head." in text and "prints" not in text


def test_every_outcome_has_a_sign_of_its_own():
    of_each = [claim(key=f"c{place}") for place in range(5)]
    page = BeautifulSoup(cards(of_each, in_turn(of_each)), "html.parser")
    signs = page.select("summary .sign")
    assert len({sign.text for sign in signs}) == len({sign["class"][1] for sign in signs}) == 5
