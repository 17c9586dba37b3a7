"""From the records of a run to what became of a claim: groups left out, controls, the disk, a table."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from fivelenses.first_exhibits import claims, verdicts
from fivelenses.first_exhibits.claims import CannotTest, Claim, Judged, judge, judge_all, seen_as
from fivelenses.first_exhibits.effects import over_models, without_interval
from fivelenses.first_exhibits.verdicts import CONTRADICTED, OPEN, REPRODUCED, Effect, Part

PARTS = (Part("growth"), Part("size", 0.5, "half a layer matters", "layers"))
UP, DOWN, UNCLEAR = (1.0, 1.1, 0.9), (-1.0, -1.1, -0.9), (-1.0, 1.5, 0.2)


def change(table: pd.DataFrame) -> list[Effect]:
    return [
        Effect(task, part.name, over_models(rows["x"]), stands_on=(task,))
        for task, rows in table.groupby("task")
        for part in PARTS
    ]


CLAIM = Claim("rises", "paper", "It rises.", "section 1", ("figure",), "change", PARTS, ("changes",), change)


def record(control: str | None = None, **by_task) -> pd.DataFrame:
    rows = [{"task": task, "seed": seed, "x": x} for task, of in by_task.items() for seed, x in enumerate(of)]
    return pd.DataFrame(rows) if control is None else pd.DataFrame(rows).assign(control=control)


def test_records_make_a_verdict():
    judged = judge(CLAIM, {"changes": record(rte=UP, mrpc=UP, sst2=UNCLEAR), "others": record(rte=DOWN)})
    assert judged.verdict.outcome == REPRODUCED and len(judged.effects) == 6 and judged.controls == {}
    assert judge(CLAIM, {"changes": record(rte=DOWN)}).verdict.outcome == CONTRADICTED
    assert judge(CLAIM, {"changes": record(rte=UNCLEAR)}).verdict.outcome == OPEN


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "this run has not measured changes"),
        ({"changes": None}, "this run has not measured changes"),
        ({"changes": "it is of before"}, "this run has not measured changes, because it is of before"),
        ({"changes": record(rte=UP)[:0]}, "there is nothing to compare"),
    ],
)
def test_what_a_run_lacks_cannot_be_tested(given, said):
    verdict = judge(CLAIM, given).verdict
    assert (verdict.outcome, verdict.reason) == (verdicts.CANNOT_BE_TESTED, said)


def test_a_claim_may_say_why_it_cannot_test():
    def refuse(table):
        raise CannotTest("there is one task")

    claim = Claim("rises", "paper", "It rises.", "§1", (), "change", PARTS, ("changes",), refuse)
    assert judge(claim, {"changes": record(rte=UP)}).verdict.reason == "there is one task"


def test_groups_on_what_was_not_learned_take_no_part():
    judged = judge(CLAIM, {"changes": record(rte=UP, mrpc=DOWN)}, {"rte": "RTE was not learned", "sst2": "nor this"})
    assert judged.verdict.outcome == CONTRADICTED
    assert dict(judged.verdict.left_out) == {"rte": "RTE was not learned"}
    assert {effect.group for effect in judged.effects} == {"mrpc"}


def test_a_pair_stands_on_both_tasks_and_one_reason_is_said_once():
    def pairs(table):
        return [
            Effect(f"{first}-{second}", part.name, over_models(UP), stands_on=(first, second))
            for first, second in (("rte", "mrpc"), ("rte", "sst2"))
            for part in PARTS
        ]

    claim = Claim("rises", "paper", "It rises.", "§1", (), "change", PARTS, ("changes",), pairs, "pair of tasks")
    records = {"changes": record(rte=UP)}
    both = judge(claim, records, {"rte": "RTE was not learned", "mrpc": "MRPC was not learned"}).verdict
    assert both.left_out["rte-mrpc"] == "RTE was not learned; MRPC was not learned"
    assert judge(claim, records, {"sst2": "no"}).verdict.outcome == REPRODUCED
    none = judge(claim, records, {"rte": "RTE was not learned"}).verdict
    assert (none.outcome, none.reason) == (verdicts.CANNOT_BE_TESTED, "RTE was not learned")
    assert verdicts.sentence(judge(claim, records).verdict, claim.unit).endswith(
        "it holds in both pairs of tasks, with 3 models each."
    )


def test_each_control_is_judged_by_itself_with_what_belongs_to_all():
    table = pd.concat(
        [record("", rte=UP), record("twin", rte=DOWN), record("shuffled labels", rte=UNCLEAR), record("all", mrpc=UP)]
    )
    judged = judge(CLAIM, {"changes": table}, {"mrpc": "MRPC was not learned"})
    assert judged.verdict.outcome == REPRODUCED
    assert {name: one.verdict.outcome for name, one in judged.controls.items()} == {
        "twin": CONTRADICTED,
        "shuffled labels": OPEN,
    }
    assert all(one.verdict.left_out and not one.controls for one in judged.controls.values())


def test_both_kinds_of_twin_are_judged_and_neither_where_there_can_be_none():
    table = pd.concat([record("", rte=UP), record("twin", rte=DOWN), record("functional twin", rte=UP)])
    judged = judge(CLAIM, {"changes": table})
    assert {name: one.verdict.outcome for name, one in judged.controls.items()} == {
        "twin": CONTRADICTED,
        "functional twin": REPRODUCED,
    }
    assert judge(replace(CLAIM, untwinned="it is about a head"), {"changes": table}).controls == {}


@pytest.mark.parametrize(
    ("further", "said"),
    [
        ({}, "this run has not measured changes.y"),
        ({"changes.y": "it was measured later"}, "this run has not measured changes.y, because it was measured later"),
    ],
)
def test_a_column_that_a_record_lacks_leaves_out_the_claims_that_read_it(further, said):
    reads = replace(CLAIM, columns=("changes.y",))
    verdict = judge(reads, {"changes": record(rte=UP)} | further).verdict
    assert (verdict.outcome, verdict.reason) == (verdicts.CANNOT_BE_TESTED, said)
    assert judge(reads, {"changes": record(rte=UP).assign(y=1)}).verdict.outcome == REPRODUCED


def test_the_multiverse_has_the_outcome_in_each_setting():
    def of_column(changes, *, column="x"):
        return change(changes.assign(x=changes[column]))

    settings = {"another column": {"column": "y"}}
    claim = replace(CLAIM, effects=of_column, variants=settings)
    judged = judge(claim, {"changes": record(rte=UP, mrpc=UP).assign(y=0.0)})
    assert judged.settings["thresholds × 0.75"] == REPRODUCED and judged.settings["99 % intervals"] == OPEN
    assert (len(judged.settings), judged.stays) == (5, "3/5")
    assert judged.changed == {"99 % intervals": OPEN, "another column": CONTRADICTED}
    assert judge(CLAIM, {}).settings == {} and judge(CLAIM, {}).stays == ""


def test_settings_of_a_claim_are_not_its_records():
    claims_of = claims.Claims("p", place="§1", exhibits=(), unit="task")

    @claims_of.add("up", "It rises.", "change", *PARTS, variants={"another": {"column": "y"}})
    def rises(changes, models=None, *, column="x"):
        return change(changes)

    assert (claims_of[0].records, claims_of[0].spare) == (("changes",), ("models",))


def test_rows_are_seen_as_of_one_control():
    table = pd.concat([record("", rte=UP), record("twin", rte=DOWN), record("all", mrpc=UP)])
    assert seen_as(table)["task"].tolist() == ["rte"] * 3 + ["mrpc"] * 3 and "control" not in seen_as(table)
    assert seen_as(table, "twin")["x"].tolist() == [*DOWN, *UP]
    of_before = record(rte=UP)
    assert seen_as(of_before, "twin") is of_before


def test_a_measurement_of_several_tables_is_seen_table_by_table():
    def second(tables):
        return change(tables["b"])

    claim = Claim("rises", "paper", "It rises.", "§1", (), "change", PARTS, ("both",), second)
    tables = {"a": record(rte=DOWN), "b": pd.concat([record("", rte=UP), record("twin", rte=DOWN)])}
    judged = judge(claim, {"both": tables})
    assert (judged.verdict.outcome, judged.controls["twin"].verdict.outcome) == (REPRODUCED, CONTRADICTED)


def test_a_run_without_replicates_is_judged_by_its_estimates_and_says_so():
    def estimates(table):
        return [Effect("rte", part.name, without_interval(1.0)) for part in PARTS]

    claim = Claim("rises", "paper", "It rises.", "§1", (), "change", PARTS, ("changes",), estimates)
    verdict = judge(claim, {"changes": record(rte=UP)}).verdict
    assert verdict.outcome == REPRODUCED and verdicts.sentence(verdict).endswith("the interval was not measured.")
    assert verdicts.multiplicity([verdict]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0.12345,), "0.123"),
        ((-0.5, 12.0, 3.0), "−0.5 to 12"),
        ((2.0, 2.0), "2"),
        ((-1e-300, 0.0), "−1e−300 to 0"),
        ((), "–"),
    ],
)
def test_the_range_over_groups_is_said(numbers, said):
    found = tuple(Effect(f"g{place}", "growth", without_interval(number)) for place, number in enumerate(numbers))
    other = Effect("g0", "size", without_interval(99.0))
    assert Judged("rises", verdicts.Verdict(OPEN, ()), (*found, other)).spread(PARTS[0]) == said


def everything() -> list[Judged]:
    table = pd.concat([record("", rte=UP, mrpc=(5.0,), sst2=DOWN), record("twin", rte=DOWN)])
    return [*judge_all([CLAIM], {"changes": table}, {"sst2": "SST-2 was not learned"}), judge(CLAIM, {})]


def test_what_became_of_claims_survives_the_disk(tmp_path):
    claims.save(everything(), tmp_path)
    assert claims.load(tmp_path) == everything()


@pytest.mark.parametrize("content", ["{", '[{"claim": "rises", "verdict": "partly", "value": 1.0}]', "[1]"])
def test_a_file_of_before_or_a_damaged_one_is_refused(tmp_path, content):
    (tmp_path / "claims.json").write_text(content)
    with pytest.raises(ValueError, match=r"claims.json holds no verdicts of this version .*run its chapter again"):
        claims.load(tmp_path)


def test_a_table_has_a_row_per_claim_group_and_part(tmp_path):
    table = claims.as_table(everything())
    table.to_parquet(tmp_path / "table.parquet")
    read = pd.read_parquet(tmp_path / "table.parquet")
    assert read[["group", "part", "group_outcome", "outcome"]][:4].values.tolist() == [
        ["mrpc", "growth", "open", "open"],
        ["mrpc", "size", "open", "open"],
        ["rte", "growth", "holds", "holds"],
        ["rte", "size", "holds", "holds"],
    ]
    assert read["estimate"][0] == 5 and read["low"][0] == -math.inf
    last = read.iloc[-1]
    assert last["verdict"] == "cannot be tested" and last["reason"].startswith("this run has not measured changes")
    assert last["group":].isna().all() and claims.as_table([]).empty
