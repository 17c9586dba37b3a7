import io
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.first_exhibits import effects, verdicts
from fivelenses.first_exhibits.effects import over_models
from fivelenses.first_exhibits.verdicts import (
    AT_LEAST,
    AT_MOST,
    EXACT,
    FAILS,
    HOLDS,
    OPEN,
    UNBOUNDED,
    Effect,
    Part,
    from_table,
    judge,
    judge_group,
    multiplicity,
    sentence,
)

GROWTH = Part("growth")
THREE = [Part("first"), Part("second"), Part("third")]
SEEDS = {HOLDS: [1.0, 1.1, 0.9], FAILS: [-1.0, -1.1, -0.9], OPEN: [-1.0, 1.5, 0.2]}
OUTCOMES = st.lists(st.sampled_from([HOLDS, FAILS, OPEN]), min_size=1, max_size=7)
SEED_VALUES = st.lists(st.integers(-30, 30).map(lambda number: number / 10), min_size=2, max_size=5)


def effect(seeds, group: str = "MRPC", part: str = "growth", bound: str = EXACT, level: float = 0.95) -> Effect:
    return Effect(group, part, over_models(seeds, level), bound)


def in_groups(outcomes) -> list[Effect]:
    """One effect per group that has the outcome."""
    return [effect(SEEDS[outcome], f"g{index}") for index, outcome in enumerate(outcomes)]


def verdict_on(outcomes) -> verdicts.Verdict:
    return judge([GROWTH], in_groups(outcomes))


def flipped(one: Effect) -> Effect:
    interval = replace(one.interval, estimate=-one.interval.estimate, low=-one.interval.high, high=-one.interval.low)
    return replace(one, interval=interval, bound={AT_LEAST: AT_MOST, AT_MOST: AT_LEAST}.get(one.bound, one.bound))


# Groups


@pytest.mark.parametrize("outcome", [HOLDS, FAILS, OPEN])
def test_one_part_decides_its_group(outcome):
    group = judge_group([GROWTH], [effect(SEEDS[outcome])])
    assert group.outcome == outcome
    assert group.failed == (("growth",) if outcome == FAILS else ())
    assert group.undecided == (("growth",) if outcome == OPEN else ())


def test_an_effect_must_pass_its_threshold_not_zero():
    assert judge_group([Part("growth", 0.5, "half a layer matters")], [effect(SEEDS[HOLDS])]).outcome == HOLDS
    assert judge_group([Part("growth", 1.0, "a layer matters")], [effect(SEEDS[HOLDS])]).outcome == OPEN
    assert judge_group([Part("growth", 2.0, "two layers matter")], [effect(SEEDS[HOLDS])]).outcome == FAILS


def test_the_failed_part_among_three_is_named():
    values = [effect(SEEDS[outcome], part=part.name) for part, outcome in zip(THREE, (HOLDS, FAILS, OPEN), strict=True)]
    group = judge_group(THREE, values)
    assert (group.outcome, group.failed, group.undecided) == (FAILS, ("second",), ("third",))


def test_all_parts_must_hold():
    values = [effect(SEEDS[outcome], part=part.name) for part, outcome in zip(THREE, (HOLDS, OPEN, HOLDS), strict=True)]
    assert judge_group(THREE, values).outcome == OPEN


def test_holding_has_the_level_of_the_interval_and_failing_the_corrected_one():
    # With three models t is 4.303 at 95 % and 7.649 at 98.33 %, so 1 ± 0.3 excludes 0 at the first alone.
    seeds = 1 + 0.3 * np.sqrt(3) / 2 * np.array([-1, 0, 1])
    margin = over_models(seeds)
    assert margin.low > 0 > effects.at_level(margin, 1 - 0.05 / 3).low
    up = [effect(seeds, part=part.name) for part in THREE]
    assert judge_group(THREE, up).outcome == HOLDS
    down = [effect(-seeds, part="first"), *up[1:]]
    assert judge_group(THREE, down).outcome == OPEN
    assert judge_group(THREE[:1], down[:1]).outcome == FAILS


def test_the_corrected_level_is_that_of_an_interval_at_another_level_too():
    values = [effect(SEEDS[FAILS], part="first", level=0.9), effect(SEEDS[HOLDS], part="second", level=0.9)]
    high = effects.at_level(values[0].interval, 0.95).high
    between = [Part("first", high + step, "a matter of the test") for step in (-1e-6, 1e-6)]
    assert [judge_group([part, THREE[1]], values).outcome for part in between] == [OPEN, FAILS]


@pytest.mark.parametrize(
    ("bound", "up", "down"),
    [(EXACT, HOLDS, FAILS), (AT_LEAST, HOLDS, OPEN), (AT_MOST, OPEN, FAILS), (UNBOUNDED, OPEN, OPEN)],
)
def test_a_censored_effect_decides_only_in_the_direction_that_is_known(bound, up, down):
    assert judge_group([GROWTH], [effect(SEEDS[HOLDS], bound=bound)]).outcome == up
    assert judge_group([GROWTH], [effect(SEEDS[FAILS], bound=bound)]).outcome == down


def test_all_models_at_the_edge_of_the_grid_hold_if_the_edge_lies_above_the_threshold():
    part = Part("width", 3.0, "a quarter of the grid")
    at_edge = effect([4.0, 4.0, 4.0], part="width", bound=AT_LEAST)
    assert judge_group([part], [at_edge]).outcome == HOLDS
    assert judge_group([Part("width", 5.0, "more than the grid")], [at_edge]).outcome == OPEN
    assert judge_group([part], [replace(at_edge, bound=AT_MOST)]).outcome == OPEN


def test_what_a_censored_effect_cannot_decide_no_number_of_models_decides():
    assert judge_group([GROWTH], [effect([-1.0, -3.0, 1.0])]).models_needed is not None
    group = judge_group([GROWTH], [effect([-1.0, -3.0, 1.0], bound=AT_LEAST)])
    assert (group.outcome, group.models_needed) == (OPEN, None)


def test_one_model_is_flagged_and_said():
    interval = effects.interval([[1.0, 1.2, 0.9, 1.1]])
    verdict = judge([GROWTH], [Effect("MRPC", "growth", interval), effect(SEEDS[HOLDS], "RTE")])
    assert [group.of_this_model for group in verdict.groups] == [True, False]
    assert sentence(verdict).endswith(" The result for MRPC is of this model and says nothing about other seeds.")
    both = judge([GROWTH], [Effect(name, "growth", interval) for name in ("MRPC", "RTE")])
    assert sentence(both).endswith(" Each result is of this model and says nothing about other seeds.")


def test_one_model_without_an_interval_over_examples_decides_nothing():
    group = judge_group([GROWTH], [effect([5.0])])
    assert (group.outcome, group.models_needed, group.examples_needed, group.chance) == (OPEN, None, None, 0)


# What an open group would take


def test_an_open_group_needs_what_its_effect_needs():
    scores = np.random.default_rng(0).normal(0.1, 1, (3, 40))
    interval = effects.interval(scores)
    group = judge_group([GROWTH], [Effect("MRPC", "growth", interval)])
    assert group.outcome == OPEN
    assert group.models_needed == effects.needed(interval, 0)
    assert group.examples_needed == effects.needed(interval, 0, "examples")


def test_all_open_parts_must_rise_and_one_falling_part_suffices():
    up = [effect(seeds, part=part.name) for seeds, part in zip(([1, 3, -1], [1, 6, -4]), THREE, strict=False)]
    counts = [effects.needed(one.interval, 0) for one in up]
    assert counts[0] < counts[1] == judge_group(THREE[:2], up).models_needed
    corrected = effects.at_level(over_models([-1, -3, 1]), 0.975)
    assert judge_group(THREE[:2], [effect([-1, -3, 1], part="first"), up[1]]).models_needed == effects.needed(
        corrected, 0
    )
    both_fall = [effect([-1, -3, 1], part="first"), effect([-1, -6, 4], part="second")]
    assert judge_group(THREE[:2], both_fall).models_needed == effects.needed(corrected, 0)


@pytest.mark.parametrize("seeds", [[1.0, 3.0, -1.0], [0.5, 2.0, 0.2, 1.9]])
def test_as_many_models_as_are_needed_decide_four_times_in_five(seeds):
    models = judge_group([GROWTH], [effect(seeds)]).models_needed
    values = np.random.default_rng(0).normal(np.mean(seeds), np.std(seeds, ddof=1), size=(4000, models))
    assert 0.78 < np.mean(over_models(values).low > 0) < 0.88  # models are whole


# Verdicts


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([HOLDS, HOLDS, HOLDS], verdicts.REPRODUCED),
        ([HOLDS, HOLDS, OPEN], verdicts.REPRODUCED),
        ([HOLDS, OPEN], verdicts.OPEN),
        ([HOLDS, HOLDS, HOLDS, FAILS], verdicts.MIXED),
        ([HOLDS, FAILS, OPEN, OPEN], verdicts.MIXED),
        ([FAILS, FAILS, OPEN], verdicts.CONTRADICTED),
        ([FAILS, OPEN], verdicts.OPEN),
        ([OPEN, OPEN], verdicts.OPEN),
        ([HOLDS], verdicts.REPRODUCED),
        ([FAILS], verdicts.CONTRADICTED),
        ([OPEN], verdicts.OPEN),
    ],
)
def test_groups_make_the_verdict(outcomes, expected):
    assert verdict_on(outcomes).outcome == expected


@given(OUTCOMES, st.randoms())
def test_the_order_of_effects_changes_nothing(outcomes, random):
    values = in_groups(outcomes)
    shuffled = random.sample(values, len(values))
    assert judge([GROWTH], shuffled) == judge([GROWTH], values)


@given(OUTCOMES)
def test_a_further_group_that_holds_leaves_reproduced_as_it_is(outcomes):
    if verdict_on(outcomes).outcome == verdicts.REPRODUCED:
        assert verdict_on([*outcomes, HOLDS]).outcome == verdicts.REPRODUCED


@given(st.lists(st.tuples(SEED_VALUES, st.sampled_from(list(verdicts.BOUNDS))), min_size=1, max_size=5))
def test_flipped_signs_swap_reproduced_and_contradicted(drawn):
    values = [effect(seeds, f"g{index}", bound=bound) for index, (seeds, bound) in enumerate(drawn)]
    swapped = {verdicts.REPRODUCED: verdicts.CONTRADICTED, verdicts.CONTRADICTED: verdicts.REPRODUCED}
    outcome = judge([GROWTH], values).outcome
    assert judge([GROWTH], map(flipped, values)).outcome == swapped.get(outcome, outcome)


@settings(max_examples=30)
@given(st.lists(st.tuples(SEED_VALUES, SEED_VALUES), min_size=1, max_size=4))
def test_a_claim_of_several_parts_is_not_reproduced_both_ways(drawn):
    """All parts must hold but one suffices to fail, so flipped signs need not contradict what was reproduced."""
    names = ["first", "second"]
    cells = [(seeds, f"g{i}", name) for i, pair in enumerate(drawn) for seeds, name in zip(pair, names, strict=True)]
    outcomes = [
        judge(THREE[:2], [effect([sign * seed for seed in seeds], *cell) for seeds, *cell in cells]).outcome
        for sign in (1, -1)
    ]
    assert outcomes.count(verdicts.REPRODUCED) < 2


def test_one_group_alone_is_said():
    assert sentence(judge([GROWTH], [effect(SEEDS[HOLDS])])) == "Reproduced on MRPC alone, with 3 models."
    assert sentence(judge([GROWTH], [effect(SEEDS[FAILS])])) == "Contradicted on MRPC alone, with 3 models."
    left_out = {"RTE": "RTE was not learned"}
    assert "on MRPC alone" in sentence(judge([GROWTH], [effect(SEEDS[HOLDS])], left_out))


@pytest.mark.parametrize(("lacking", "alone"), [(1, False), (2, False), (3, True)])
def test_where_fewer_than_half_of_the_groups_are_left_they_are_named(lacking, alone):
    left_out = {f"task {number}": "it was not learned" for number in range(lacking)}
    verdict = judge([GROWTH], in_groups([HOLDS, HOLDS]), left_out)
    said = "Reproduced on g0 and g1 alone: it holds in both tasks" if alone else "Reproduced: it holds in both tasks"
    assert sentence(verdict, "task") == f"{said}, with 3 models each."


# Halves of a sentence

LATE, EARLY = Part("late", groups=("MNLI", "SST-2"), half="large sets late"), Part("early", half="MRPC early")
EARLY = replace(EARLY, groups=("MRPC",))


def of_halves(**outcomes) -> verdicts.Verdict:
    parts = {"mnli": LATE, "sst": LATE, "mrpc": EARLY}
    names = {"mnli": "MNLI", "sst": "SST-2", "mrpc": "MRPC"}
    return judge([LATE, EARLY], [effect(SEEDS[one], names[key], parts[key].name) for key, one in outcomes.items()])


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({"mnli": HOLDS, "sst": HOLDS, "mrpc": HOLDS}, verdicts.REPRODUCED),
        ({"mnli": HOLDS, "sst": OPEN, "mrpc": HOLDS}, verdicts.REPRODUCED),
        ({"mnli": HOLDS, "sst": HOLDS, "mrpc": OPEN}, verdicts.OPEN),
        ({"mnli": HOLDS, "sst": HOLDS}, verdicts.OPEN),
        ({"mrpc": FAILS}, verdicts.OPEN),
        ({"mnli": HOLDS, "sst": HOLDS, "mrpc": FAILS}, verdicts.MIXED),
        ({"mnli": FAILS, "sst": FAILS, "mrpc": OPEN}, verdicts.CONTRADICTED),
    ],
)
def test_a_sentence_of_two_halves_needs_both(outcomes, expected):
    assert of_halves(**outcomes).outcome == expected


def test_a_half_without_a_group_is_named():
    verdict = of_halves(mnli=HOLDS, sst=HOLDS)
    assert verdict.untested == ("MRPC early",)
    assert sentence(verdict, "task") == (
        "Open: it holds in both tasks, with 3 models each. No group is about the half “MRPC early”."
    )


# The multiverse


def test_thresholds_of_size_and_levels_vary_and_those_of_order_do_not():
    size, order = Part("size", 1.0, "a layer matters"), Part("order")
    ratio = Part("ratio", 1, "the same", verdicts.RATIO)
    values = [effect([1.3, 1.4, 1.2], part=part.name) for part in (size, order)]
    values.append(Effect("MRPC", "ratio", over_models([2.0, 2.1, 1.9], log=True)))
    varied = {name: (parts, moved) for name, parts, moved in verdicts.varied([size, order, ratio], values)}
    thresholds = {name: [part.threshold for part in parts] for name, (parts, _) in varied.items()}
    assert thresholds["thresholds × 0.75"] == [0.75, 0, 1] and thresholds["thresholds × 1.25"] == [1.25, 0, 1]
    assert thresholds["99 % intervals"] == [1.0, 0, 1]
    assert [one.interval.level for one in varied["99 % intervals"][1]] == [pytest.approx(0.99)] * 3
    assert judge([size, order, ratio], values).outcome == verdicts.REPRODUCED
    assert {name: judge(*settings).outcome for name, settings in varied.items()} == {
        "thresholds × 0.75": verdicts.REPRODUCED,
        "thresholds × 1.25": verdicts.OPEN,
        "90 % intervals": verdicts.REPRODUCED,
        "99 % intervals": verdicts.OPEN,
    }
    assert [name for name, *_ in verdicts.varied([order], values[1:2])] == ["90 % intervals", "99 % intervals"]


def test_a_bound_on_a_ratio_comes_nearer_to_one_on_either_side():
    bounds = [Part(name, bound, "a tenth", verdicts.RATIO) for name, bound in (("cost", 1.1), ("saving", 1 / 1.1))]
    values = [Effect("MRPC", part.name, over_models([1.0, 1.01, 0.99], log=True)) for part in bounds]
    nearer = {name: [part.threshold for part in parts] for name, parts, _ in verdicts.varied(bounds, values)}
    assert nearer["thresholds × 0.75"] == [pytest.approx(1.1**0.75), pytest.approx(1.1**-0.75)]


def test_a_sentence_counts_groups_and_names_those_in_which_it_does_not_hold():
    assert sentence(verdict_on([HOLDS, FAILS, OPEN]), "task") == (
        "Mixed: it holds in 1 of 3 tasks, fails in 1 (g1) and is open in 1 (g2), with 3 models each."
    )
    assert sentence(verdict_on([FAILS, FAILS]), "pair of tasks") == (
        "Contradicted: it fails in both pairs of tasks, with 3 models each."
    )


def test_an_open_verdict_says_what_it_would_take():
    assert judge_group([GROWTH], [effect(SEEDS[OPEN])]).models_needed == 228
    wanting = " If the effect is as large as seen, about 230 models would decide g1 with a power of 80 %."
    assert sentence(verdict_on([HOLDS, OPEN])).endswith(wanting)
    wanting = (
        " If effects are as large as seen, about 230 models would decide g0 and about 230 models g1 with a power of"
        " 80 %."
    )
    assert sentence(verdict_on([OPEN, OPEN])).endswith(wanting)
    tie = effect([0.0, 0.0, 0.0])
    assert sentence(judge([GROWTH], [tie])).endswith("How many models or examples would decide MRPC cannot be told.")
    one_model = Effect("MRPC", "growth", effects.interval([[1.0, -1.2, 0.9, -1.1]]))
    assert sentence(judge([GROWTH], [one_model])) == (
        "Open on MRPC alone. More than one model is needed to decide MRPC."
    )


def test_without_groups_a_claim_cannot_be_tested_for_a_reason():
    verdict = judge([GROWTH], [], reason="the run has no MNLI")
    assert (verdict.outcome, verdict.groups) == (verdicts.CANNOT_BE_TESTED, ())
    assert sentence(verdict) == "Cannot be tested: the run has no MNLI."
    assert sentence(judge([GROWTH], [], {"RTE": "RTE was not learned"})) == "Cannot be tested: RTE was not learned."
    assert judge([GROWTH], [effect(SEEDS[HOLDS])], reason="unused").reason == ""


# Trivial shapes


@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("groups", [1, 3])
def test_nothing_with_a_width_is_open(groups, threshold):
    values = [effect([-1.0, 0.0, 1.0], f"g{index}") for index in range(groups)]
    assert judge([Part("growth", threshold, "what would matter")], values).outcome == verdicts.OPEN


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1e6])
@pytest.mark.parametrize("bound", list(verdicts.BOUNDS))
def test_ties_at_the_threshold_decide_nothing(threshold, bound):
    for rounding in (0.0, 1e-16, -1e-16):
        values = [effect([threshold * (1 + rounding) + rounding] * 3, group, bound=bound) for group in "abc"]
        verdict = judge([Part("growth", threshold, "what would matter")], values)
        assert verdict.outcome == verdicts.OPEN
        assert all(group.models_needed is None for group in verdict.groups)


def test_one_outlier_among_seeds_decides_nothing():
    assert judge([GROWTH], [effect([0.0, 0.0, 0.0, 0.0, 9.0])]).outcome == verdicts.OPEN


def test_noise_is_decided_as_often_as_multiplicity_says():
    rng = np.random.default_rng(1)
    values = [effect(rng.normal(size=5), f"g{index}") for index in range(400)]
    tests, decided, by_chance = multiplicity([judge([GROWTH], values)])
    assert (tests, by_chance) == (400, pytest.approx(20))
    assert abs(decided - 20) < 3 * math.sqrt(19)


# Multiplicity


def test_multiplicity_counts_groups_of_all_verdicts():
    some = [verdict_on([HOLDS, OPEN, FAILS]), verdict_on([HOLDS]), judge([GROWTH], [], reason="no run")]
    assert multiplicity(some) == (4, 3, pytest.approx(0.2))
    assert multiplicity([]) == (0, 0, 0)


@pytest.mark.parametrize(("bound", "chance"), [(EXACT, 0.05), (AT_LEAST, 0.025), (AT_MOST, 0.025), (UNBOUNDED, 0)])
def test_a_censored_side_decides_nothing_by_chance(bound, chance):
    assert judge_group([GROWTH], [effect(SEEDS[OPEN], bound=bound)]).chance == pytest.approx(chance)


def test_the_chance_of_several_parts_is_bounded_by_that_of_one():
    rng, decided = np.random.default_rng(2), 0
    for _ in range(200):
        group = judge_group(THREE, [effect(rng.normal(size=4), part=part.name) for part in THREE])
        assert group.chance == pytest.approx(0.05)
        decided += group.outcome != OPEN
    assert decided / 200 < 0.05


# Tables


def test_effects_survive_a_table_and_a_file():
    values = [effect(SEEDS[HOLDS], bound=AT_LEAST), effect([2.0]), Effect("a", "b", effects.interval(np.eye(3, 5)))]
    table = verdicts.as_table(values)
    assert list(table.columns) == verdicts.COLUMNS
    assert from_table(table) == values
    file = io.StringIO(table.to_csv(index=False))
    assert from_table(pd.read_csv(file)) == values
    assert from_table(verdicts.as_table([])) == []


def test_a_percentile_interval_survives_a_table_and_judges_one_part_alone():
    drawn = effects.multibootstrap([[1.0, 1.2, 0.9], [1.1, 0.9, 1.3]], resamples=50)
    (again,) = from_table(verdicts.as_table([Effect("MRPC", "growth", drawn)]))
    assert replace(again.interval, degrees=0) == replace(drawn, degrees=0) and math.isnan(again.interval.degrees)
    assert judge_group([GROWTH], [again]).outcome == HOLDS
    with pytest.raises(ValueError, match="A percentile interval has no parts of variance"):
        judge_group(THREE[:2], [replace(again, part="first"), replace(again, part="second")])


def test_a_table_without_a_column_is_refused():
    with pytest.raises(ValueError, match="A table of effects lacks low, bound|lacks bound, low"):
        from_table(verdicts.as_table([effect(SEEDS[HOLDS])]).drop(columns=["low", "bound"]))


# Refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimate": math.nan}, "'growth' for MRPC is nan"),
        ({"estimate": math.inf}, "'growth' for MRPC is inf"),
        ({"low": math.nan}, "which is no interval"),
        ({"high": math.nan}, "which is no interval"),
        ({"low": 2.0, "high": 1.0}, "which is no interval"),
        ({"estimate": np.zeros(2)}, "holds many numbers"),
    ],
)
def test_an_effect_that_is_no_number_with_an_interval_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Effect("MRPC", "growth", replace(over_models(SEEDS[HOLDS]), **changes))


def test_an_unknown_bound_is_refused():
    with pytest.raises(ValueError, match="bounded by 'above', which is none of exact, at least, at most, unbounded"):
        effect(SEEDS[HOLDS], bound="above")


def test_a_threshold_needs_a_reason_and_a_number():
    with pytest.raises(ValueError, match="The threshold 0.3 of 'growth' .* lacks its reason"):
        Part("growth", 0.3)
    with pytest.raises(ValueError, match="is not finite"):
        Part("growth", math.nan, "why not")


@pytest.mark.parametrize("parts", [["first"], ["first", "other"], ["first", "first"], ["first", "second", "other"]])
def test_a_group_needs_one_effect_for_each_part(parts):
    with pytest.raises(ValueError, match="RTE needs one effect for each of the parts .'first', 'second'., but has"):
        judge_group(THREE[:2], [effect(SEEDS[HOLDS], "RTE", part) for part in parts])


def test_a_group_that_lacks_a_part_is_refused_among_others():
    values = [effect(SEEDS[HOLDS], group, part.name) for group in ("MRPC", "RTE") for part in THREE]
    with pytest.raises(ValueError, match="RTE needs one effect for each"):
        judge(THREE, values[:-1])


def test_parts_of_one_name_groups_of_two_and_levels_of_two_are_refused():
    with pytest.raises(ValueError, match="needs one effect for each"):
        judge_group([GROWTH, GROWTH], [effect(SEEDS[HOLDS])] * 2)
    with pytest.raises(ValueError, match="not 2 at 1"):
        judge_group([GROWTH], in_groups([HOLDS, HOLDS]))
    with pytest.raises(ValueError, match="not 0 at 0"):
        judge_group([GROWTH], [])
    with pytest.raises(ValueError, match="not 1 at 2"):
        judge_group(THREE[:2], [effect([1, 2], part="first"), effect([1, 2], part="second", level=0.9)])
    with pytest.raises(ValueError, match="needs one effect for each"):
        judge_group([], [effect(SEEDS[HOLDS])])


def test_no_effects_need_a_reason():
    with pytest.raises(ValueError, match="no effects to judge, and no reason"):
        judge([GROWTH], [])
