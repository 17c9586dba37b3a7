"""Intervals, the gate, claims and verdicts: worked by hand, slow references, simulated coverage, and the rules."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.special import expit, roots_hermitenorm

from fivelenses import judging
from fivelenses.judging import CONTRADICTED, FAILS, HOLDS, OPEN, REPRODUCED, Claim, crossed, estimate, judge, over_seeds
from fivelenses.records import Missing

HUNDREDTHS = st.integers(-300, 300).map(lambda number: number / 100)
SHAPES = st.tuples(st.integers(2, 5), st.integers(2, 7))
MATRICES = SHAPES.flatmap(lambda size: arrays(float, size, elements=HUNDREDTHS))
TWO_MATRICES = SHAPES.flatmap(lambda size: st.tuples(*[arrays(float, size, elements=HUNDREDTHS)] * 2))
E = "bert"
POINTS, WEIGHTS = roots_hermitenorm(60)
SEEDS = {HOLDS: [1.0, 1.1, 0.9], FAILS: [-1.0, -1.1, -0.9], OPEN: [-1.0, 1.5, 0.2]}


def ends(interval) -> list[float]:
    return [interval.estimate, *interval.bounds()]


def close(first, second) -> bool:
    return np.allclose(first, second, rtol=1e-6, atol=1e-7)


def test_two_models_on_four_examples_by_hand():
    interval = crossed([[1, 2, 3, 4], [2, 3, 4, 7]])
    # Models' means 2.5 and 4, examples' means 1.5, 2.5, 3.5 and 5.5; what is left is ±(1/4, 1/4, 1/4, −3/4).
    parts = np.array([1.125 / 2, (8.75 / 3) / 4, -1.5 / 3 / 8])
    variance, degrees = parts.sum(), parts.sum() ** 2 / (parts**2 / [1, 3, 3]).sum()
    reach = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    assert ends(interval) == pytest.approx([3.25, 3.25 - reach, 3.25 + reach])
    assert (*interval.variance, interval.models) == (*map(pytest.approx, (variance, degrees)), 2)


def slow_variance_and_degrees(sides: list[list[list[float]]]) -> tuple[float, float, float]:
    """The mean difference, its variance and degrees by loops, from a table of analysis of variance for each side."""
    terms, of_examples, mean = [], [], 0.0
    models_part = rest_part = 0.0
    for side, sign in zip(sides, (1, -1), strict=False):
        m, n = len(side), len(side[0])
        grand = sum(map(sum, side)) / (m * n)
        mean += sign * grand
        rows, columns = [sum(row) / n for row in side], [sum(row[j] for row in side) / m for j in range(n)]
        of_examples.append([sign * column for column in columns])
        total = sum((value - grand) ** 2 for row in side for value in row)
        between = [size * sum((one - grand) ** 2 for one in means) for size, means in ((n, rows), (m, columns))]
        model, rest = between[0] / (m - 1) / (m * n), (total - sum(between)) / ((m - 1) * (n - 1)) / (m * n)
        models_part, rest_part = models_part + model, rest_part + rest
        terms += [("models", model, m - 1), ("rest", rest, (m - 1) * (n - 1))]
    differences = [sum(pair) for pair in zip(*of_examples, strict=True)]
    n = len(differences)
    examples_part = sum((one - sum(differences) / n) ** 2 for one in differences) / (n - 1) / n
    terms.append(("examples", examples_part, n - 1))
    used = {name for name, part in (("models", models_part), ("examples", examples_part)) if part > rest_part}
    used |= {"rest"} if len(used) != 1 else set()
    signs = {"models": 1, "examples": 1, "rest": -1 if len(used) == 3 else 1}
    variance = sum(signs[name] * term for name, term, _ in terms if name in used)
    return mean, variance, variance**2 / sum(term**2 / degrees for name, term, degrees in terms if name in used)


@pytest.mark.parametrize("model_sd", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("example_sd", [0.0, 1.0])
def test_an_analysis_of_variance_in_loops_agrees(model_sd, example_sd):
    rng = np.random.default_rng(1)
    for models, others in ((2, 3), (3, 3), (5, 4)):
        example = example_sd * rng.normal(size=(1, 9))
        sides = [
            model_sd * rng.normal(size=(count, 1)) + sign * example + rng.normal(size=(count, 9))
            for count, sign in ((models, 1), (others, -1))
        ]
        for given_sides, interval in ((sides[:1], crossed(sides[0])), (sides, judging.difference(*sides))):
            mean, variance, degrees = slow_variance_and_degrees([side.tolist() for side in given_sides])
            assert interval.estimate == pytest.approx(mean)
            assert interval.variance == pytest.approx((variance, degrees))


@given(MATRICES, st.integers(-5, 5), st.sampled_from([-3.0, 0.25, 7.0]), st.randoms())
def test_a_shift_shifts_a_scale_scales_and_an_order_does_nothing(scores, shift, scale, random):
    interval, scaled = ends(crossed(scores)), ends(crossed(scale * scores))
    assert close(np.add(interval, shift), ends(crossed(scores + shift)))
    assert close(np.multiply(interval, scale), np.array(scaled)[[0, 1, 2] if scale > 0 else [0, 2, 1]])
    rows, columns = (random.sample(range(count), count) for count in scores.shape)
    assert close(interval, ends(crossed(scores[rows][:, columns])))


@given(TWO_MATRICES)
def test_swapped_sides_change_the_sign_and_no_part_exceeds_the_variance(pair):
    interval, swapped = judging.difference(*pair), judging.difference(*pair[::-1])
    assert close(ends(interval), np.negative([swapped.estimate, swapped.high, swapped.low]))
    for one in (crossed(pair[0]), interval):
        parts = one.by_model, one.by_example, one.interaction
        assert one.variance.variance >= max(part.variance for part in parts) * (1 - 1e-9)
        assert one.variance.degrees >= 1 - 1e-9


def test_one_model_gives_an_interval_of_this_model():
    scores = np.random.default_rng(0).normal(size=(1, 30))
    interval = crossed(scores)
    low, high = stats.t.interval(0.95, 29, scores.mean(), stats.sem(scores[0]))
    assert interval.models == 1 and ends(interval) == pytest.approx([scores.mean(), low, high])
    assert judging.difference(np.repeat(scores, 3, 0), scores).models == 1


def two_methods(rng, models, model_sd):
    """Which of 200 examples the models of two methods have right, and the effect that the methods differ by."""
    example, sides = rng.normal(size=(1, 200)), []
    for shift in (0.4, 0.0):
        latent = shift + model_sd * rng.normal(size=(models, 1)) + example + 0.5 * rng.normal(size=(1, 200))
        sides.append((rng.random(size=(models, 200)) < expit(latent)).astype(float))
    rates = [WEIGHTS @ expit(shift + np.sqrt(model_sd**2 + 1.25) * POINTS) / WEIGHTS.sum() for shift in (0.4, 0.0)]
    return *sides, rates[0] - rates[1]


@pytest.mark.parametrize(("models", "least", "most"), [(2, 0.84, 0.995), (3, 0.90, 0.985), (5, 0.92, 0.975)])
@pytest.mark.parametrize("model_sd", [0.02, 0.3], ids=["small", "large"])
@pytest.mark.parametrize(
    "measure", [judging.difference, lambda one, other: crossed(one - other)], ids=["unpaired", "paired"]
)
def test_95_percent_intervals_cover(models, least, most, model_sd, measure):
    rng, held = np.random.default_rng(5), []
    for _ in range(300):
        first, second, truth = two_methods(rng, models, model_sd)
        low, high = measure(first, second).bounds()
        held.append(low <= truth <= high)
    assert least <= np.mean(held) <= most


def test_folds_of_a_mean_are_the_means_of_folds():
    scores = np.random.default_rng(0).normal(size=(4, 60))
    parts = np.array_split(np.arange(60), 6)
    left_out = np.stack([np.delete(scores, part, 1).mean(axis=1) for part in parts], axis=1)
    interval = judging.jackknife(scores.mean(axis=1), left_out)
    assert np.allclose(ends(interval), ends(crossed(scores.reshape(4, 6, 10).mean(axis=2))))
    assert interval.models == 4


@pytest.mark.parametrize("models", [1, 2, 20])
def test_folds_that_move_all_models_alike_do_not_average_out(models):
    replicates = np.array([0.4, 0.5, 0.6, 0.3])
    interval = judging.jackknife(np.full(models, 0.45), np.tile(replicates, (models, 1)))
    assert interval.variance.variance == pytest.approx(3 / 4 * np.square(replicates - replicates.mean()).sum())
    assert interval.variance.degrees == pytest.approx(3) and interval.models == models


def test_seeds_alone_give_students_interval():
    values = [0.1, 0.4, 0.2, 0.6]
    low, high = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    assert over_seeds(values).bounds(0.9) == pytest.approx((low, high))
    assert over_seeds([0.3]).bounds() == (-math.inf, math.inf)


def test_an_independent_difference_of_seeds_is_welchs():
    first, second = [1.0, 4.0, 2.0], [3.0, 3.5, 5.0, 9.0]
    interval, test = over_seeds(first) - over_seeds(second), stats.ttest_ind(first, second, equal_var=False)
    assert interval.bounds() == pytest.approx((test.confidence_interval().low, test.confidence_interval().high))
    assert interval.models == 3 and (interval - over_seeds([2.0])).models == 1


def test_ratios_are_judged_by_their_logarithms():
    logs = np.log([2.0, 8.0, 4.0])
    ratio = over_seeds(logs, log=True)
    assert ratio.estimate == pytest.approx(4.0) and ratio.bounds() == pytest.approx(np.exp(over_seeds(logs).bounds()))
    rows = pd.DataFrame({"seed": [0, 1, 2], "over": [2.0, 8.0, 4.0]})
    assert ends(estimate(rows, lambda of_model: of_model["over"].item(), unit="ratio")) == pytest.approx(ends(ratio))
    assert judging.jackknife(logs, np.tile(logs[:, None], 3), log=True).estimate == pytest.approx(4.0)
    with pytest.raises(ValueError, match="each has to be positive"):
        estimate(rows, lambda of_model: of_model["over"].item() - 4, unit="ratio")


def test_an_interval_is_cut_opened_and_widened():
    interval = over_seeds([0.97, 0.99, 0.98])
    assert interval.high > 1 == interval.cut(-1, 1).high and interval.cut(-1, 1).low == interval.low
    assert interval.at_least().bounds() == (interval.low, math.inf)
    assert interval.at_most().bounds() == (-math.inf, interval.high)
    assert interval.simultaneous(4).bounds() == pytest.approx(interval.bounds(1 - 0.05 / 4))


def test_a_measure_that_was_not_repeated_without_folds_has_given_examples():
    rows = pd.DataFrame({"seed": [0, 0, 1, 1], "fold": [-1, 0] * 2, "x": [4.0, None, 6.0, None]})
    assert estimate(rows, lambda of_model: of_model["x"].item()) == over_seeds([4.0, 6.0])
    with pytest.raises(ValueError, match="Some models lack folds"):
        estimate(rows.assign(x=[4.0, 3.0, 6.0, None]), lambda of_model: of_model["x"].item())


def test_pairs_of_models_are_counted_by_the_models_in_them():
    names = [(0, 1), (0, 2), (1, 2)]
    rows = pd.DataFrame(names, columns=list(judging.PAIR)).assign(x=[1.0, 2.0, 3.0])
    rows = rows.merge(pd.DataFrame({"fold": [-1, 0, 1]}), how="cross")
    interval = estimate(rows, lambda of_pair: of_pair["x"].iloc[0], judging.PAIR)
    # Pseudo-values 3 · 2 − 2 · (3, 2, 1) = 0, 2, 4: the jackknife over models.
    assert (interval.estimate, interval.models) == (2.0, 3)
    assert interval.by_model.variance == pytest.approx(np.var([0, 2, 4], ddof=1) / 3)
    assert estimate(rows[rows["second"] == 1], lambda of_pair: of_pair["x"].iloc[0], judging.PAIR).models == 1
    with pytest.raises(ValueError, match="2 pairs are not all pairs of 3 models"):
        estimate(rows[rows["second"] == 2], lambda of_pair: of_pair["x"].iloc[0], judging.PAIR)


def test_models_of_the_same_names_are_pairs_and_others_are_not():
    first = pd.DataFrame({"seed": [0, 1, 2], "x": [4.0, 6.0, 5.0]})
    second = first.assign(x=[3.0, 5.5, 4.0])
    of_model = {"function": lambda rows: rows["x"].item()}
    assert estimate(first, **of_model, reference=second) == over_seeds([1.0, 0.5, 1.0])
    unpaired = estimate(first, **of_model, reference=second.assign(seed=[7, 8, 9]))
    assert ends(unpaired) == pytest.approx(ends(over_seeds([4.0, 6.0, 5.0]) - over_seeds([3.0, 5.5, 4.0])))


def test_scores_of_the_same_seeds_are_pairs_and_others_are_not():
    first, second = predicted(0.9), predicted(0.85)
    apart, together = (judging.score(first, second.assign(seed=second["seed"] + by)) for by in (7, 0))
    assert apart.estimate == together.estimate and apart.high > together.high


def predicted(share, null=0.5, seeds=(0, 1, 2), task="rte", examples=100):
    """Accuracy `share` for each seed, each with other mistakes."""
    rows = []
    for seed in seeds:
        right = np.roll(np.arange(examples) < round(share * examples), 17 * seed)
        of_seed = {"task": task, "seed": seed, "address": f"{task}-{seed}", "metric": "accuracy", "weight": 1.0}
        of_seed |= {"example": np.arange(examples), "score": right * 1.0, "label": 0, "predicted": 0}
        of_seed |= {"null": (np.arange(examples) >= round((1 - null) * examples)) * 1.0}
        rows.append(pd.DataFrame(of_seed))
    return pd.concat(rows, ignore_index=True)


def models(rows, **changes):
    """The models that made these predictions."""
    usual = {"encoder": E, "examples": 100, "epochs": 3.0, "frozen": -1, "truncated": -1, "reinitialised": 0}
    usual |= {"shuffled_labels": False, "null_rate": 0.5} | changes
    return rows.groupby(["task", "seed", "address"])["score"].mean().reset_index().assign(**usual)


def unlearned(rows, **options):
    return judging.unlearned(models(rows), rows, E, **options)


@pytest.mark.parametrize(
    "change",
    [{"frozen": 3}, {"truncated": 2}, {"reinitialised": 1}, {"shuffled_labels": True}, {"epochs": 9.0}],
    ids=str,
)
def test_interventions_and_longer_trainings_are_not_ordinary(change):
    usual = models(predicted(0.9, seeds=[0]))
    assert judging.ordinary(pd.concat([usual, models(predicted(0.9, seeds=[1]), **change)]))["seed"].tolist() == [0]


def test_each_size_of_the_training_set_is_gated_by_itself_and_named_with_its_encoder():
    few = predicted(0.55).assign(address=lambda rows: rows["address"] + "-few")
    every = pd.concat([models(predicted(0.9)), models(few, examples=20)])
    reasons = judging.unlearned(every, pd.concat([predicted(0.9), few]), E)
    assert sorted(reasons) == ["rte from 20 examples", f"rte from 20 examples on {E}"]
    assert "was not clearly learned: its score of 0.550 minus" in reasons["rte from 20 examples"]
    names = ["rte", "rte from 100 examples", f"rte from 100 examples on {E}", f"rte on {E}"]
    assert sorted(unlearned(predicted(0.55))) == names and unlearned(predicted(0.9)) == {}
    other = judging.unlearned(models(predicted(0.45)), predicted(0.45), "another")
    assert sorted(other) == ["rte from 100 examples on bert", "rte on bert"]


@pytest.mark.parametrize(("gain", "learned"), [(None, True), (0.3, True), (0.9, False)])
def test_a_tenth_of_the_papers_gain_is_the_margin_where_the_paper_has_one(gain, learned):
    reasons = unlearned(predicted(0.6, examples=2000), gains={} if gain is None else {"rte": gain})
    assert learned == (not reasons)
    assert learned or reasons["rte"].endswith("], and with 3 models the interval reaches below 0.09")


@pytest.mark.parametrize(("share", "learned"), [(0.6, True), (0.83, False), (0.95, False)])
def test_what_a_bag_of_words_reads_as_well_was_not_learned(share, learned):
    words = predicted(share, seeds=[0]).assign(examples=100)
    assert learned == (not unlearned(predicted(0.85), words=words))
    for other in (words.assign(task="mrpc"), words.assign(examples=50)):
        assert not unlearned(predicted(0.85), words=other)


def correlated(seeds, right=0.9):
    """Predictions of models whose score is a Matthews correlation, each with a share of right answers of its own."""
    labels, rng, tables = np.arange(200) % 2, np.random.default_rng(0), []
    for seed, share in zip(seeds, np.broadcast_to(right, len(seeds)), strict=True):
        guessed = np.where(rng.random(200) < share, labels, 1 - labels)
        one = {"task": "cola", "seed": seed, "address": f"{seed}", "example": np.arange(200), "metric": "matthews"}
        one |= {"weight": 1.0, "label": labels, "predicted": guessed, "score": (guessed == labels) * 1.0, "null": 0.0}
        tables.append(pd.DataFrame(one))
    return pd.concat(tables)


def test_a_matthews_correlation_is_scored_by_folds():
    rows = correlated((0, 1, 2))
    interval = judging.score(rows)
    of_seeds = [np.corrcoef(one["label"], one["predicted"])[0, 1] for _, one in rows.groupby("seed")]
    assert interval.estimate == pytest.approx(np.mean(of_seeds))
    assert interval.models == 3 and 0.5 < interval.low < interval.high < 1


def test_no_interval_of_two_models_is_said_to_reach_beyond_what_a_score_can_be():
    rows = correlated((0, 1), right=[0.55, 0.98])
    assert judging.score(rows).high > 1
    said = judging.unlearned(models(rows, null_rate=0.0), rows, E)["cola"]
    assert said.endswith(", 1.000], and with 2 models the interval reaches below 0.02")
    even = predicted(0.9, seeds=[0]).assign(seed=0), predicted(0.52, seeds=[1])
    assert ", 0.500], and with 2 models" in unlearned(pd.concat(even))["rte"]


def growth(rows):
    return rows["x"].mean()


def table(**of_tasks):
    return pd.DataFrame(
        [{"task": task, "seed": seed, "x": x} for task, xs in of_tasks.items() for seed, x in enumerate(xs)]
    )


def claim(**declared):
    return Claim("up", "p", "It rises.", "§1", code="growth", **declared)


def judged(record, excluded=None, function=growth, **declared):
    """The verdict on growth by task, or on another function of all groups."""
    by = {"by": "task"} if function is growth else {}
    return judge(claim(**by | declared), function, record, excluded)


def group_of(parts, **declared):
    """The group MRPC from the values of its parts."""
    found = {"mrpc": {name: over_seeds(values) for name, values in parts.items()}}
    return judged(table(mrpc=[1]), None, lambda rows: found, **declared).groups[0]


@pytest.mark.parametrize("outcome", SEEDS)
def test_one_part_decides_its_group_and_its_size_is_that_of_the_threshold(outcome):
    group = judged(table(mrpc=SEEDS[outcome])).groups[0]
    assert (group.outcome, group.parts[0].name) == (outcome, "growth")
    for above, expected in ((0.5, HOLDS), (1.0, OPEN), (2.0, FAILS)):
        verdict = judged(table(mrpc=SEEDS[HOLDS]), above=above, because="it matters")
        assert verdict.groups[0].outcome == expected


def test_a_threshold_of_a_ratio_is_one_and_moves_by_its_logarithm():
    assert claim(unit="ratio").threshold("") == 1
    assert claim(above=4, unit="ratio", because="so").threshold("", 0.5) == 2


def test_all_parts_must_hold_and_one_fails_at_the_corrected_level():
    group = group_of(dict(zip("abc", SEEDS.values(), strict=True)))
    assert group.outcome == FAILS and [part.outcome for part in group.parts] == [HOLDS, FAILS, OPEN]
    # With three models t is 4.303 at 95% and 7.649 at 98.33%, so 1 ± 0.3 excludes 0 at the first alone.
    seeds = 1 + 0.3 * np.sqrt(3) / 2 * np.array([-1, 0, 1])
    assert group_of(dict.fromkeys("abc", seeds)).outcome == HOLDS
    assert group_of({"a": -seeds, "b": seeds, "c": seeds}).outcome == OPEN and group_of({"a": -seeds}).outcome == FAILS


@pytest.mark.parametrize(("opened", "up", "down"), [("at_least", HOLDS, OPEN), ("at_most", OPEN, FAILS)])
def test_a_censored_effect_decides_only_in_the_direction_that_is_known(opened, up, down):
    for seeds, expected in ((SEEDS[HOLDS], up), (SEEDS[FAILS], down)):
        interval = getattr(over_seeds(seeds), opened)()
        verdict = judged(table(mrpc=[1]), None, lambda rows, one=interval: {"mrpc": one})
        assert verdict.groups[0].outcome == expected


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([HOLDS, HOLDS, OPEN], REPRODUCED),
        ([HOLDS, OPEN], OPEN),
        ([HOLDS, HOLDS, HOLDS, FAILS], judging.MIXED),
        ([FAILS, FAILS, OPEN], CONTRADICTED),
        ([FAILS, OPEN], OPEN),
        ([OPEN, OPEN], OPEN),
    ],
)
def test_groups_make_the_verdict(outcomes, expected):
    rows = table(**{f"g{place}": SEEDS[outcome] for place, outcome in enumerate(outcomes)})
    assert judged(rows).outcome == expected
    assert judged(rows.sample(frac=1, random_state=0)) == judged(rows)


def test_the_range_is_that_of_the_first_part():
    found = {"mrpc": {"a": over_seeds([1, 1]), "b": over_seeds([9, 9])}, "rte": {"a": over_seeds([-2, -2])}}
    assert judged(table(mrpc=[1]), None, lambda rows: found).range == "−2 to 1"


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(-30, 30), min_size=2, max_size=4), min_size=1, max_size=4))
def test_flipped_signs_swap_reproduced_and_contradicted(groups):
    rows = table(**{f"g{place}": seeds for place, seeds in enumerate(groups)})
    swapped = {REPRODUCED: CONTRADICTED, CONTRADICTED: REPRODUCED}
    outcome = judged(rows).outcome
    assert judged(rows.assign(x=-rows["x"])).outcome == swapped.get(outcome, outcome)


def test_a_sentence_of_two_halves_needs_both():
    halves = {"large late": ["MNLI"], "MRPC early": ["MRPC", "RTE"]}
    assert judged(table(mnli=SEEDS[HOLDS], mrpc=SEEDS[HOLDS]), halves=halves).outcome == REPRODUCED
    alone = judged(table(mnli=SEEDS[HOLDS]), halves=halves)
    assert alone.outcome == OPEN and alone.untested == ("MRPC early",)
    left = judged(table(mnli=SEEDS[HOLDS], mrpc=SEEDS[HOLDS], rte=[1, 1]), {"rte": "it is poor"}, halves=halves)
    assert left.left_of_half == {"MRPC early": "MRPC"} and left.outcome == REPRODUCED


def test_what_was_not_learned_takes_no_part():
    excluded = {"rte": "RTE was not learned"}
    verdict = judged(table(mrpc=SEEDS[HOLDS], rte=SEEDS[FAILS]), excluded)
    assert verdict.outcome == REPRODUCED and verdict.left_out == {"RTE": "RTE was not learned"} and verdict.alone
    none = judged(table(rte=SEEDS[FAILS]), excluded)
    assert (none.outcome, none.reason) == (judging.CANNOT_BE_TESTED, "RTE was not learned")
    pairs = table(**{"rte–mnli": SEEDS[HOLDS], "mrpc–sst2": SEEDS[HOLDS]}).rename(columns={"task": "pair"})
    assert set(judged(pairs, excluded, by="pair").left_out) == {"RTE–MNLI"}
    on = judged(table(mrpc=[1]), excluded, lambda rows: {("MRPC first", "mrpc", "rte"): over_seeds([1, 2])})
    assert on.left_out == {"MRPC first": "RTE was not learned"}
    pooled = judged(table(mrpc=[1, 2], rte=[3]), excluded, lambda rows: {"": over_seeds(rows["x"])}, pools_tasks=True)
    assert pooled.groups[0].models == 2 and pooled.left_out == {"RTE": "RTE was not learned"}


def test_encoders_on_tasks_are_groups():
    rows = table(pos=SEEDS[HOLDS]).assign(encoder="google/bert-tiny")
    verdict = judged(pd.concat([rows, rows.assign(encoder="google/bert-base")]), by=("encoder", "task"))
    assert [group.name for group in verdict.groups] == ["bert-base on POS", "bert-tiny on POS"]
    excluded = {"pos on google/bert-tiny": "it learned nothing"}
    assert judged(rows, excluded, by=("encoder", "task")).left_out == {"bert-tiny on POS": "it learned nothing"}


def test_a_claim_that_lacks_what_it_is_about_says_why():
    def lacking(rows):
        raise judging.CannotTest("it has one layer")

    assert judged(table(mrpc=[1]), None, lacking).reason == "it has one layer"
    assert judged(table(mrpc=[1]).iloc[:0], if_empty="there is no pair").reason == "there is no pair"
    two = judged({"a": table(mrpc=[1]), "b": Missing("b", "it is old")}, None, lambda rows: {})
    assert two.reason == "this run has not measured b, because it is old"


def test_controls_are_judged_apart_by_the_same_function():
    rows = table(mrpc=SEEDS[HOLDS], rte=SEEDS[HOLDS]).assign(control="")
    rows = pd.concat([rows, rows.assign(control="twin", x=-rows["x"]), rows.assign(control="shuffled labels")[:3]])
    verdict = judged(rows)
    outcomes = {name: one.outcome for name, one in verdict.controls.items()}
    assert outcomes == {"twin": CONTRADICTED, "shuffled labels": REPRODUCED}
    assert [group.name for group in verdict.controls["shuffled labels"].groups] == ["MRPC"]
    assert list(judged(rows, no_twin="it needs a head").controls) == ["shuffled labels"]


def test_the_multiverse_judges_other_thresholds_levels_and_variants():
    def above(rows, by=0.0):
        return rows["x"].mean() - by

    declared = dict(by="task", above=0.9, because="so", variants={"two less": {"by": 2.0}})
    verdict = judged(table(mrpc=SEEDS[HOLDS]), None, above, **declared)
    assert verdict.stays == "3/5" and verdict.settings == {
        "thresholds × 0.75": REPRODUCED,
        "thresholds × 1.25": OPEN,
        "90% intervals": OPEN,
        "99% intervals": OPEN,
        "two less": CONTRADICTED,
    }
    assert list(judged(table(mrpc=SEEDS[HOLDS])).settings) == ["90% intervals", "99% intervals"]


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1e6])
def test_ties_at_the_threshold_decide_nothing(threshold):
    for rounding in (0.0, 1e-16, -1e-16):
        seeds = [threshold * (1 + rounding) + rounding] * 3
        group = group_of({"a": seeds}, above=threshold, because="so" if threshold else "")
        assert group.outcome == OPEN


def test_noise_is_decided_as_often_as_chance_says():
    noise = np.random.default_rng(1).normal(size=(400, 5))
    groups = [judging.judge_group(claim(), "g", over_seeds(seeds)) for seeds in noise]
    assert sum(group.chance for group in groups) == pytest.approx(20)
    assert abs(sum(group.outcome != OPEN for group in groups) - 20) < 3 * math.sqrt(19)
    assert group_of({"a": SEEDS[OPEN], "b": SEEDS[OPEN]}).chance == pytest.approx(0.05)
    assert group_of({"a": [5.0]}).chance == 0
    assert judging.judge_group(claim(), "g", over_seeds(SEEDS[OPEN]).simultaneous(5)).chance == pytest.approx(0.01)


def test_what_became_of_claims_survives_the_disk_and_is_a_table(tmp_path):
    # All that can become of them: controls, groups left out, ends that do not stand, ratios, halves.
    rows = table(mrpc=SEEDS[HOLDS], rte=[5.0], sst2=SEEDS[FAILS]).assign(control="")
    rows = pd.concat([rows, table(mrpc=SEEDS[OPEN]).assign(control="twin")])
    cut, ratio = crossed([[0.97, 0.99, 1.0], [0.93, 1.0, 0.98]]).cut(-1, 1), over_seeds([2, 3, 4], log=True)
    found = {"mrpc": {"a": cut, "b": ratio}, "rte": {"a": cut.at_least()}, "sst2": {"a": cut.simultaneous(3)}}
    by_task, halves = claim(by="task"), {"large": ["SST-2"], "small": ["MRPC", "RTE"]}
    several = claim(above={"a": 0.9, "b": 2}, because="so", unit={"b": "ratio"}, halves=halves)
    everything = [
        (by_task, judge(by_task, growth, rows, {"sst2": "SST-2 was not learned"})),
        (several, judge(several, lambda rows: found, rows)),
        (by_task, judge(by_task, growth, Missing("changes", "it is old"))),
    ]
    judging.save(everything, tmp_path)
    assert judging.load(tmp_path) == everything
    judging.as_table(everything).to_parquet(tmp_path / "table.parquet")
    read = pd.read_parquet(tmp_path / "table.parquet")
    assert read[["group", "part", "group_outcome", "outcome"]][:3].values.tolist() == [
        ["MRPC", "growth", "holds", "holds"],
        ["RTE", "growth", "open", "open"],
        ["MRPC", "a", "open", "holds"],
    ]
    assert read.loc[0, "estimate":"high"].tolist() == ends(everything[0][1].groups[0].parts[0].interval)
    last = read.iloc[-1]
    assert last["verdict"] == "cannot be tested" and last["group":].isna().all()


@pytest.mark.parametrize("content", ["{", '[{"claim": "rises", "verdict": "partly", "value": 1.0}]'])
def test_a_file_of_before_or_a_damaged_one_is_refused(tmp_path, content):
    (tmp_path / "claims.json").write_text(content)
    with pytest.raises(ValueError, match=r"claims.json holds no verdicts of this version: run its chapter again"):
        judging.load(tmp_path)
