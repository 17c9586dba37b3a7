"""What a claim can do without, and groups that the record itself leaves out."""

import pandas as pd
import pytest

from fivelenses.first_exhibits.claims import Claim, LeftOut, judge
from fivelenses.first_exhibits.effects import over_models
from fivelenses.first_exhibits.verdicts import CANNOT_BE_TESTED, REPRODUCED, Effect, Part
from fivelenses.records import TWIN

RECORD = pd.DataFrame({"task": ["a"] * 3 + ["b"] * 3, "x": [4.0, 5, 6, 1, 2, 3]})


def effects_of(table, finer):
    for task, rows in table.groupby("task"):
        if rows["x"].mean() < 3:
            yield LeftOut(task, f"{task} has no room", (task,))
        else:
            yield Effect(task, "x", over_models(rows["x"] if finer is None else rows["x"] * 10), stands_on=(task,))


def claim(**given) -> Claim:
    parts = ("key", "paper", "It is.", "section 1", (), "x", (Part("x"),), ("records",), effects_of)
    return Claim(*parts, spare=("finer",), **given)


def test_a_group_that_the_record_leaves_out_is_named_with_its_reason():
    verdict = judge(claim(), {"records": RECORD}).verdict
    assert verdict.outcome == REPRODUCED and verdict.left_out == {"b": "b has no room"}
    nothing = judge(claim(), {"records": RECORD[RECORD["task"] == "b"]}).verdict
    assert (nothing.outcome, nothing.reason) == (CANNOT_BE_TESTED, "b has no room")


def test_that_a_task_was_not_learned_is_the_reason_before_others():
    verdict = judge(claim(), {"records": RECORD}, {"b": "b was not learned"}).verdict
    assert verdict.left_out == {"b": "b was not learned"}


@pytest.mark.parametrize(("finer", "estimate"), [({}, 5), ({"finer": "it was not kept"}, 5), ({"finer": RECORD}, 50)])
def test_a_spare_record_may_be_lacking(finer, estimate):
    judged = judge(claim(), {"records": RECORD, **finer})
    assert [effect.interval.estimate for effect in judged.effects] == [estimate]


def test_a_claim_without_twins_is_not_judged_on_those_of_its_records():
    both = pd.concat([RECORD.assign(control=""), RECORD.assign(control=TWIN)])
    assert set(judge(claim(), {"records": both}).controls) == {TWIN}
    assert judge(claim(untwinned="nothing is trained"), {"records": both}).controls == {}
