import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.special import expit, roots_hermitenorm

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.effects import (
    from_replicates,
    independent_difference,
    interval,
    multibootstrap,
    over_models,
)

HUNDREDTHS = st.integers(-300, 300).map(lambda number: number / 100)


def matrices(count: int = 1):
    shape = st.tuples(st.integers(2, 5), st.integers(2, 7))
    return shape.flatmap(lambda size: st.tuples(*[arrays(float, size, elements=HUNDREDTHS)] * count))


def numbers(effect: effects.Interval) -> list[float]:
    return [effect.estimate, effect.low, effect.high, effect.standard_error, effect.degrees]


def bounds(effect: effects.Interval) -> list[float]:
    return [effect.estimate, effect.low, effect.high]


def close(first, second) -> bool:
    return np.allclose(first, second, rtol=1e-6, atol=1e-7)


def crossed(rng, simulations, models, examples, model_sd, binary=False, effect=0.0):
    """Scores (simulations, models, examples) of two methods on the same examples and the effect that they differ by."""
    example = rng.normal(size=(simulations, 1, examples))
    sides = []
    for shift in (effect, 0.0):
        model = model_sd * rng.normal(size=(simulations, models, 1))
        own = 0.5 * rng.normal(size=(simulations, 1, examples))
        latent = shift + model + example + own
        draw = rng.random if binary else rng.normal
        noise = draw(size=(simulations, models, examples))
        sides.append((noise < expit(latent)).astype(float) if binary else latent + noise)
    if not binary:
        return *sides, effect
    points, weights = roots_hermitenorm(60)
    total_sd = np.sqrt(model_sd**2 + 1.25)
    rates = [weights @ expit(shift + total_sd * points) / weights.sum() for shift in (effect, 0.0)]
    return *sides, rates[0] - rates[1]


def covered(effect: effects.Interval, truth: float) -> float:
    return float(np.mean((effect.low <= truth) & (truth <= effect.high)))


# One interval


def test_two_models_on_four_examples_by_hand():
    effect = interval([[1, 2, 3, 4], [2, 3, 4, 7]])
    # Models' means 2.5 and 4, examples' means 1.5, 2.5, 3.5 and 5.5; what is left is ±(1/4, 1/4, 1/4, −3/4).
    models, examples, interaction = 1.125 / 2, (8.75 / 3) / 4, 1.5 / 3 / 8
    variance = models + examples - interaction
    degrees = variance**2 / (models**2 / 1 + examples**2 / 3 + interaction**2 / 3)
    reach = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    assert numbers(effect) == pytest.approx([3.25, 3.25 - reach, 3.25 + reach, np.sqrt(variance), degrees])
    assert effect.parts == ((models, 1), pytest.approx((examples, 3)), pytest.approx((interaction, 3)))
    assert (effect.models, effect.examples, effect.of_this_model, effect.level) == (2, 4, False, 0.95)


def slow_variance_and_degrees(sides: list[list[list[float]]]) -> tuple[float, float, float]:
    """The mean difference, its variance and degrees by loops, from a table of analysis of variance for each side."""
    terms, mean_of_example, estimate = [], [], 0.0
    models_part = interaction_part = 0.0
    for side, sign in zip(sides, (1, -1), strict=False):
        m, n = len(side), len(side[0])
        grand = sum(map(sum, side)) / (m * n)
        estimate += sign * grand
        rows, columns = [sum(row) / n for row in side], [sum(row[j] for row in side) / m for j in range(n)]
        mean_of_example.append([sign * column for column in columns])
        total = sum((score - grand) ** 2 for row in side for score in row)
        between_models, between_examples = (
            size * sum((mean - grand) ** 2 for mean in means) for size, means in ((n, rows), (m, columns))
        )
        rest = total - between_models - between_examples
        model_term, rest_term = between_models / (m - 1) / (m * n), rest / ((m - 1) * (n - 1)) / (m * n)
        models_part, interaction_part = models_part + model_term, interaction_part + rest_term
        terms += [("models", model_term, m - 1), ("rest", rest_term, (m - 1) * (n - 1))]
    differences = [sum(pair) for pair in zip(*mean_of_example, strict=True)]
    n = len(differences)
    examples_part = sum((d - sum(differences) / n) ** 2 for d in differences) / (n - 1) / n
    terms.append(("examples", examples_part, n - 1))
    used = {"models"} if models_part > interaction_part else set()
    used |= {"examples"} if examples_part > interaction_part else set()
    used |= {"rest"} if len(used) != 1 else set()
    signs = {"models": 1, "examples": 1, "rest": -1 if len(used) == 3 else 1}
    variance = sum(signs[name] * term for name, term, _ in terms if name in used)
    return estimate, variance, variance**2 / sum(term**2 / degrees for name, term, degrees in terms if name in used)


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
        for given_sides, effect in (
            (sides[:1], interval(sides[0])),
            (sides, interval(*sides, paired_models=False)),
        ):
            estimate, variance, degrees = slow_variance_and_degrees([side.tolist() for side in given_sides])
            assert numbers(effect)[3:] == pytest.approx([np.sqrt(variance), degrees])
            assert effect.estimate == pytest.approx(estimate)


@given(matrices(), st.integers(-5, 5), st.sampled_from([-3.0, 0.25, 7.0]))
def test_a_shift_shifts_and_a_scale_scales(drawn, shift, scale):
    (scores,) = drawn
    effect, moved, scaled = interval(scores), interval(scores + shift), interval(scale * scores)
    assert close(np.add(bounds(effect), shift), bounds(moved))
    assert close(np.multiply(bounds(effect), scale), np.array(bounds(scaled))[[0, 1, 2] if scale > 0 else [0, 2, 1]])


@given(matrices(), st.randoms())
def test_the_order_of_models_and_of_examples_does_not_matter(drawn, random):
    (scores,) = drawn
    rows, columns = list(range(scores.shape[0])), list(range(scores.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    assert close(bounds(interval(scores)), bounds(interval(scores[rows][:, columns])))


@given(matrices())
def test_a_paired_difference_from_itself_is_zero_without_width(drawn):
    assert bounds(interval(*drawn, *drawn)) == bounds(multibootstrap(*drawn, *drawn, resamples=5)) == [0, 0, 0]


@given(matrices(count=2))
def test_swapping_the_sides_changes_the_sign(drawn):
    first, second = drawn
    for paired in (True, False):
        effect, swapped = interval(first, second, paired), interval(second, first, paired)
        assert close(bounds(effect), np.negative([swapped.estimate, swapped.high, swapped.low]))


@given(matrices(count=2))
def test_the_variance_is_never_below_a_part_of_it(drawn):
    for effect in (interval(drawn[0]), interval(*drawn, paired_models=False)):
        assert effect.standard_error**2 >= max(part.variance for part in effect.parts) * (1 - 1e-9)
        assert effect.degrees >= 1 - 1e-9


def test_one_model_gives_an_interval_of_this_model():
    scores = np.random.default_rng(0).normal(size=(1, 30))
    effect = interval(scores)
    low, high = stats.t.interval(0.95, 29, scores.mean(), stats.sem(scores[0]))
    assert effect.of_this_model and bounds(effect) == pytest.approx([scores.mean(), low, high])
    assert multibootstrap(scores).of_this_model
    assert interval(np.repeat(scores, 3, 0), scores, paired_models=False).of_this_model


def test_a_reference_that_is_given_is_common_to_all_models():
    rng = np.random.default_rng(0)
    scores, reference = rng.normal(size=(3, 20)), rng.normal(size=(1, 20))
    effect = interval(scores, reference)
    assert effect == interval(scores - reference) and not effect.of_this_model
    assert numbers(interval(scores, reference, paired_models=False)) == pytest.approx(numbers(effect))


def test_leading_dimensions_are_many_intervals():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 3, 4, 6)), rng.normal(size=(2, 3, 5, 6))
    for measure in (interval, multibootstrap):
        many = measure(first, second, paired_models=False)
        one = measure(first[1, 2], second[1, 2], paired_models=False)
        assert many.low.shape == (2, 3)
        assert np.allclose([number[1, 2] for number in numbers(many)], numbers(one), equal_nan=True)


# The check and the simulated coverage


@pytest.mark.parametrize("case", ["scores", "paired", "unpaired"])
def test_the_multibootstrap_agrees_where_there_are_many_models(case):
    rng = np.random.default_rng(2)
    first, second, _ = (side[0] if np.ndim(side) else side for side in crossed(rng, 1, 60, 300, 0.2))
    arguments = {"scores": (first,), "paired": (first, second), "unpaired": (first, second, False)}[case]
    effect, check = interval(*arguments), multibootstrap(*arguments, resamples=4000)
    assert check.estimate == pytest.approx(effect.estimate)
    width = effect.high - effect.low
    assert check.high - check.low == pytest.approx(width, rel=0.07)
    assert abs(check.low - effect.low) < 0.05 * width and abs(check.high - effect.high) < 0.05 * width


# Right or not: five models of one method, four of another, on sixty examples, with what multibootstrap.py of
# google-research/language (commit 865fae65, 20,000 resamples, RandomState(0)) gives for the difference of accuracies:
# mean, ends and standard deviation. The example of its own notebooks needs predictions that are not in the repository.
FIRST = """
011111111111101111111101111110110011111001101111011111111001
111110010111010111110100101110111011111011101111101111111101
111111001111111011111101100010111011111011101111111111111101
111101110111010110111111101000111011101011101111011111111101
111111100111100011000100100110111011111001100101001110110110"""
SECOND = """
101100000110001101001101101110111011100011100101001111101001
011101000110000011000101100010100011100011101101010101101001
011111010111111011010111101110011011110011101111101111111001
011100011110100111010111100110011011100001101101011111101101"""
PUBLISHED = {False: (0.14790, -0.00167, 0.29333, 0.07492), True: (0.18304, 0.05833, 0.31250, 0.06410)}


@pytest.mark.parametrize("paired", PUBLISHED)
def test_the_multibootstrap_gives_what_the_published_code_gives(paired):
    first, second = ([[int(right) for right in model] for model in side.split()] for side in (FIRST, SECOND))
    ours = multibootstrap(first[: 4 if paired else 5], second, paired, resamples=20_000)
    mean, low, high, deviation = PUBLISHED[paired]
    # Accuracies are multiples of 1/240 and so are most percentiles: an end may lie one step aside.
    assert bounds(ours) == pytest.approx([mean, low, high], abs=1 / 240 + 1e-4)
    assert ours.standard_error == pytest.approx(deviation, rel=0.02)


LIMITS = {2: (0.85, 0.99), 3: (0.90, 0.98), 5: (0.93, 0.97)}


@pytest.mark.parametrize("models", LIMITS)
@pytest.mark.parametrize("model_sd", [0.02, 0.3], ids=["small", "large"])
@pytest.mark.parametrize("paired", [True, False], ids=["paired", "unpaired"])
@pytest.mark.parametrize("binary", [False, True], ids=["normal", "binary"])
def test_95_percent_intervals_cover(models, model_sd, paired, binary):
    rng = np.random.default_rng(5)
    first, second, truth = crossed(rng, 1500, models, 200, model_sd, binary, effect=0.4)
    low, high = LIMITS[models]
    assert low <= covered(interval(first, second, paired), truth) <= high


def test_a_percentile_bootstrap_of_three_models_covers_less():
    scores, _, truth = crossed(np.random.default_rng(5), 400, 3, 100, 1.0)
    assert covered(multibootstrap(scores, resamples=400), truth) < 0.88 < covered(interval(scores), truth)


# Folds


def left_out(scores: np.ndarray, folds: int, statistic) -> np.ndarray:
    """(…, models, folds): the statistic of (…, models, examples) without each fold."""
    parts = np.array_split(np.arange(scores.shape[-1]), folds)
    return np.stack([statistic(np.delete(scores, part, -1)) for part in parts], -1)


def mean(scores):
    return scores.mean(-1)


@pytest.mark.parametrize("paired", [True, False])
def test_folds_of_a_mean_are_the_means_of_folds(paired):
    first, second, _ = crossed(np.random.default_rng(0), 1, 4, 60, 0.2)
    effect = from_replicates(
        mean(first), left_out(first, 6, mean), (mean(second), left_out(second, 6, mean)), paired, examples=60
    )
    of_folds = interval(*(mean(side.reshape(1, 4, 6, 10)) for side in (first, second)), paired)
    assert np.allclose(numbers(effect), numbers(of_folds))
    assert (effect.models, effect.examples) == (4, 60)


def test_folds_that_move_all_models_alike_do_not_average_out():
    replicates = np.array([0.4, 0.5, 0.6, 0.3])
    jackknife = 3 / 4 * np.square(replicates - replicates.mean()).sum()
    for models in (1, 2, 20):
        effect = from_replicates(np.full(models, 0.45), np.tile(replicates, (models, 1)))
        assert effect.standard_error == pytest.approx(np.sqrt(jackknife))
        assert effect.degrees == pytest.approx(3) and effect.of_this_model == (models == 1)


def test_intervals_of_a_correlation_cover():
    rng = np.random.default_rng(3)
    simulations, models, examples, slope_sd, noise = 600, 5, 300, 0.1, 1.0
    x, common = rng.normal(size=(2, simulations, 1, examples))
    slopes = 1 + slope_sd * rng.normal(size=(simulations, models, 1))
    y = slopes * x + noise * common + 0.5 * rng.normal(size=(simulations, models, examples))

    def correlation(pairs):
        centred = pairs - pairs.mean(-1, keepdims=True)
        (a, b), norms = centred, np.sqrt(np.square(centred).sum(-1))
        return (a * b).sum(-1) / (norms[0] * norms[1])

    pairs = np.stack([np.broadcast_to(x, y.shape), y])
    effect = from_replicates(correlation(pairs), left_out(pairs, 10, correlation))
    points, weights = roots_hermitenorm(40)
    slope = 1 + slope_sd * points
    truth = weights @ (slope / np.sqrt(slope**2 + noise**2 + 0.25)) / weights.sum()
    assert 0.92 <= covered(effect, truth) <= 0.98


# What an interval is used for


def test_seeds_alone_give_students_interval():
    values = [0.1, 0.4, 0.2, 0.6]
    low, high = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    effect = over_models(values, level=0.9)
    assert bounds(effect) == pytest.approx([0.325, low, high]) and (effect.degrees, effect.examples) == (3, 0)
    alone = over_models([0.3])
    assert (alone.estimate, alone.low, alone.high, alone.of_this_model) == (0.3, -np.inf, np.inf, True)
    assert over_models([[0.3], [0.4]]).low.tolist() == [-np.inf, -np.inf]


def test_an_independent_difference_of_seeds_is_welchs():
    first, second = [1.0, 4.0, 2.0], [3.0, 3.5, 5.0, 9.0]
    effect = independent_difference(over_models(first), over_models(second))
    test = stats.ttest_ind(first, second, equal_var=False)
    welch = test.confidence_interval()
    assert numbers(effect)[1:3] == pytest.approx([welch.low, welch.high]) and effect.degrees == pytest.approx(test.df)
    assert effect.models == 3 and independent_difference(effect, over_models([2.0])).of_this_model


def test_an_independent_difference_of_tasks_adds_variances():
    rng = np.random.default_rng(0)
    first, second = interval(rng.normal(size=(3, 50)) + [[0], [2], [1]]), interval(rng.normal(size=(4, 40)))
    effect = independent_difference(first, second)
    assert [part.variance for part in effect.parts] == pytest.approx(
        [one.variance + other.variance for one, other in zip(first.parts, second.parts, strict=True)]
    )
    assert (effect.models, effect.examples) == (3, 40)


def test_ratios_are_judged_by_their_logarithms():
    ratios = np.array([2.0, 8.0, 4.0])
    effect, of_logs = over_models(ratios, log=True), over_models(np.log(ratios))
    assert effect.estimate == pytest.approx(4.0) and effect.standard_error == of_logs.standard_error
    assert (effect.low, effect.high) == pytest.approx((np.exp(of_logs.low), np.exp(of_logs.high)))
    assert effects.at_level(effect, 0.9).high == pytest.approx(np.exp(effects.at_level(of_logs, 0.9).high))
    assert effects.needed(effect, 3.0) == effects.needed(of_logs, np.log(3.0))
    quotient = effects.independent_difference(effect, over_models([2.0, 2.0], log=True))
    assert quotient.estimate == pytest.approx(2.0) and quotient.log
    with pytest.raises(ValueError, match="A ratio is judged by its logarithm, so each has to be positive"):
        over_models([1.0, 0.0], log=True)


def test_a_ratio_and_its_inverse_say_the_same():
    rng = np.random.default_rng(1)
    whole, left_out = np.exp(rng.normal(size=3)), np.exp(rng.normal(size=(3, 10)) / 20)
    left_out = left_out * whole[:, None]
    effect = effects.from_replicates(whole, left_out, log=True)
    inverse = effects.from_replicates(1 / whole, 1 / left_out, log=True)
    assert (inverse.estimate, inverse.low) == pytest.approx((1 / effect.estimate, 1 / effect.high))


def test_ratios_of_seeds_that_differ_by_a_factor_are_covered():
    logs = np.random.default_rng(0).normal(np.log(3), 1.0, size=(4000, 3))
    effect = over_models(np.exp(logs), log=True)
    assert np.mean((effect.low < 3) & (effect.high > 3)) == pytest.approx(0.95, abs=0.015)


def test_counts_without_spread_have_that_of_rounding():
    assert over_models([2, 2, 2]).low == 2
    effect = over_models([2, 2, 2], unit=1)
    assert effect.standard_error == pytest.approx(np.sqrt(1 / 36))
    assert effect.low == pytest.approx(2 - stats.t.ppf(0.975, 2) / 6)
    assert over_models([0, 0, 0], unit=1).low < 0 < over_models([0, 0, 0], unit=1).high
    assert over_models([1, 2, 5], unit=1) == over_models([1, 2, 5])  # what varies more has rounding in it


def test_another_level_is_the_interval_made_at_that_level():
    scores, reference, _ = crossed(np.random.default_rng(0), 4, 3, 20, 0.2)
    for arguments in ((scores,), (scores, reference, False), (scores[0],)):
        wide, again = effects.at_level(interval(*arguments), 0.99), interval(*arguments, level=0.99)
        assert np.allclose(numbers(wide), numbers(again)) and wide.level == 0.99


def test_a_decided_effect_needs_what_it_has():
    effect = over_models([4, 6, 5])
    assert [effects.needed(effect, threshold) for threshold in (2, 8)] == [3, 3]


@pytest.mark.parametrize(("model_sd", "sources"), [(0.05, ["models", "examples"]), (1.0, ["models"])])
def test_needed_counts_are_the_smallest_that_decide(model_sd, sources):
    rng = np.random.default_rng(4)
    effect = interval(model_sd * rng.normal(size=(3, 1)) + rng.normal(size=(3, 40)))
    threshold = effect.estimate - 0.9 * (effect.estimate - effect.low)
    for of in sources:
        size = effects.needed(effect, threshold, of)
        assert size > (3 if of == "models" else 40)
        (models, _), (examples, _), (both, rest) = effect.parts

        distance = effect.estimate - threshold

        def power(size, of=of, distance=distance, models=models, examples=examples, both=both):
            f, h = (size / 3, 1) if of == "models" else (1, size / 40)
            at = [max(models - both, 0) / f + both / f / h, max(examples - both, 0) / h + both / f / h, both / f / h]
            if models <= both:
                at[0], at[2] = 0, 0
            variance = at[0] + at[1] - at[2]
            degrees = variance**2 / (at[0] ** 2 / (3 * f - 1) + at[1] ** 2 / 39 + at[2] ** 2 / 78)
            return stats.nct.sf(stats.t.ppf(0.975, degrees), degrees, distance / np.sqrt(variance))

        assert power(size) >= 0.8 > power(size - 1)


def test_no_number_of_models_decides_what_the_examples_leave_open():
    example = np.random.default_rng(0).normal(size=(1, 40))
    effect = interval(np.repeat(example, 3, 0) + [[0.0], [0.001], [-0.001]])
    assert effects.needed(effect, effect.estimate - 0.01) is None
    assert effects.needed(effect, effect.estimate, "examples") is None
    assert effects.needed(effect, effect.estimate - 0.01, "examples") > 40
    assert effects.needed(over_models([4, 6, 5]), 4, limit=6) is None
    assert effects.needed(over_models([4, 6, 5]), 4, limit=2) is None


# Refusals

SCORES = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: interval([[1, np.nan], [1, 2]]), "not finite"),
        (lambda: interval(SCORES, SCORES + np.inf, paired_models=False), "not finite"),
        (lambda: interval([1, 2, 3]), "2 dimensions"),
        (lambda: interval(np.zeros((0, 4))), "values in each"),
        (lambda: interval(SCORES[:, :1]), "two examples"),
        (lambda: interval(SCORES, SCORES[:2]), "not paired with"),
        (lambda: interval(SCORES, SCORES[:, :3], paired_models=False), "not on the same examples"),
        (lambda: interval(SCORES, SCORES[None]), "not paired with"),
        (lambda: interval(SCORES, level=95), "between 0 and 1"),
        (lambda: multibootstrap(SCORES, level=0), "between 0 and 1"),
        (lambda: multibootstrap(SCORES, resamples=1), "two resamples"),
        (lambda: multibootstrap(SCORES[:, :1]), "two examples"),
        (lambda: from_replicates([1, 2], SCORES), "no folds"),
        (lambda: from_replicates([1, 2, 3], SCORES[:, :1]), "no folds"),
        (lambda: from_replicates([1, 2, 3], SCORES, ([1, 2, 3], SCORES[:, :3])), "not paired with"),
        (lambda: from_replicates([1, 2, np.inf], SCORES), "not finite"),
        (lambda: over_models([]), "values in each"),
        (lambda: over_models([1, np.nan]), "not finite"),
        (lambda: effects.at_level(interval(SCORES), 1), "between 0 and 1"),
        (lambda: effects.at_level(multibootstrap(SCORES), 0.9), "percentile"),
        (lambda: independent_difference(interval(SCORES), multibootstrap(SCORES)), "percentile"),
        (lambda: effects.needed(multibootstrap(SCORES), 0), "percentile"),
        (lambda: effects.needed(interval(SCORES), 0, "layers"), "layers"),
        (lambda: effects.needed(over_models([1, 2]), 0, "examples"), "examples"),
        (lambda: effects.needed(interval(SCORES[:1]), 0), "One model"),
        (lambda: effects.needed(interval(SCORES[None]), 0), "not for many"),
    ],
)
def test_refusals(measure, message):
    with pytest.raises(ValueError, match=message):
        measure()


def test_an_interval_is_plain_numbers():
    for effect in (interval(SCORES), multibootstrap(SCORES), over_models([1, 2])):
        assert all(type(number) in (float, int, bool, tuple) for number in vars(effect).values())
        with pytest.raises(dataclasses.FrozenInstanceError):
            effect.low = 0
