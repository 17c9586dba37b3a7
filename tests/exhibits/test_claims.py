import dataclasses

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivelenses.exhibits import claims
from fivelenses.exhibits.claims import CannotTest, Claim, judge


def claim_on(predicate) -> Claim:
    return Claim("key", "paper", "It holds.", "section 1", ("table",), "number", "above 0", predicate)


POSITIVE = claim_on(lambda table: table.assign(holds=table["value"] > 0))


def cases(*values: float) -> dict[str, pd.DataFrame]:
    """One group a value, two seeds each."""
    rows = [{"group": f"g{i}", "seed": seed, "value": value} for i, value in enumerate(values) for seed in (0, 1)]
    return {"table": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((1, 2, 3), claims.REPRODUCED),
        ((1, 2, -3), claims.PARTLY),
        ((1, -2), claims.PARTLY),
        ((1, -2, -3), claims.NOT_REPRODUCED),
        ((-1,), claims.NOT_REPRODUCED),
    ],
)
def test_the_verdict_counts_groups(values, verdict):
    assert judge(POSITIVE, cases(*values)).verdict == verdict


def test_within_a_group_more_than_half_of_the_seeds_must_hold():
    table = pd.DataFrame({"group": ["g", "g"], "seed": [0, 1], "value": [1.0, -1.0]})
    assert judge(POSITIVE, {"table": table}).verdict == claims.NOT_REPRODUCED


def test_the_number_is_the_mean_with_its_deviation():
    verdict = judge(POSITIVE, cases(1, 3))
    assert verdict.value == 2
    assert verdict.spread == pytest.approx((4 / 3) ** 0.5)
    assert verdict.by_group == {"g0": 1.0, "g1": 3.0}


def test_the_reason_names_where_it_fails():
    assert judge(POSITIVE, cases(1, -1)).reason == "does not hold for g1"


def test_a_missing_exhibit_cannot_be_tested():
    verdict = judge(POSITIVE, {})
    assert verdict.verdict == claims.CANNOT_BE_TESTED and "table" in verdict.reason


def test_a_predicate_may_say_why_it_cannot_test():
    def refuse(table):
        raise CannotTest("one seed only")

    assert judge(claim_on(refuse), cases(1)).reason == "one seed only"


def test_a_number_that_is_not_finite_is_an_error():
    with pytest.raises(ValueError, match="without a finite number"):
        judge(POSITIVE, cases(float("nan")))


@given(st.lists(st.sampled_from([-1.0, 1.0]), min_size=1, max_size=6))
def test_one_more_group_that_holds_never_worsens_a_verdict(values):
    rank = {claims.NOT_REPRODUCED: 0, claims.PARTLY: 1, claims.REPRODUCED: 2}
    before, after = judge(POSITIVE, cases(*values)), judge(POSITIVE, cases(*values, 1.0))
    assert (after.held, after.groups) == (before.held + 1, before.groups + 1)
    assert after.held / after.groups >= before.held / before.groups
    assert rank[after.verdict] >= rank[before.verdict]
    # A group in which it fails is never outweighed.
    assert (after.verdict == claims.REPRODUCED) == (before.verdict == claims.REPRODUCED)


def test_verdicts_survive_the_disk(tmp_path):
    verdict = judge(POSITIVE, cases(1, -1))
    claims.save([verdict], tmp_path)
    assert claims.load(tmp_path) == [verdict]


@pytest.mark.parametrize(
    ("value", "spread", "said"),
    [
        (-0.00259, 0.02156, "−0.003 ± 0.022"),
        (-0.0004, 0.12, "0.00 ± 0.12"),
        (12.345, 45.67, "12 ± 46"),
        (0.5, 0.0, "0.5 ± 0"),
        (-0.1234, None, "−0.123"),
        (None, None, "–"),
    ],
)
def test_a_number_is_said_as_exactly_as_its_spread_allows(value, spread, said):
    assert claims.Verdict("deeper", claims.PARTLY, value, spread, 1, 1, {}, "").number == said


def test_the_ledger_prints_sentence_criterion_number_groups_and_reason():
    verdicts = [judge(POSITIVE, cases(1, 3)), judge(POSITIVE, cases(1, -1)), judge(POSITIVE, {})]
    table = claims.ledger([POSITIVE] * 3, verdicts)
    assert set(table["the paper says"]) == {"It holds. (section 1)"}
    assert set(table["our measure"]) == {"number; holds if above 0"}
    assert table[["ours", "holds in", "verdict"]].values.tolist() == [
        ["2.0 ± 1.2", "2 of 2", "reproduced"],
        ["0.0 ± 1.2", "1 of 2", "partly: does not hold for g1"],
        ["–", "–", "cannot be tested: this run has no table"],
    ]
    own = dataclasses.replace(POSITIVE, place=claims.OURS)
    assert claims.ledger([own], verdicts[:1])["the statement"].tolist() == ["It holds. (this project)"]
