"""The claims of chapter 3 on made records: each is reproduced on one and contradicted on another, none on a trivial
shape, and the paper's own table holds.
"""

import numpy as np
import pandas as pd
import pytest

from fivelenses.first_exhibits.claims import Judged, judge, of_all
from fivelenses.first_exhibits.verdicts import (
    AT_LEAST,
    AT_MOST,
    CANNOT_BE_TESTED,
    CONTRADICTED,
    OPEN,
    REPRODUCED,
    UNBOUNDED,
)
from fivelenses.papers.hao2019.claims import CLAIMS
from fivelenses.papers.hao2019.tables import GROUPS, PAPER_TABLE_1
from fivelenses.records import BETWEEN, CONTINUED, OPTIMISATION, PRETRAINED, RANDOM, SCRATCH, SEPARATE, TWIN

BY_KEY = {claim.key: claim for claim in CLAIMS}
TASKS = {"mnli": 9_000, "mrpc": 900}
SEEDS, FOLDS = (0, 1, 2), (-1, 0, 1, 2)
POSITIONS = np.linspace(-4, 4, 17)
ON_LINES = np.union1d(POSITIONS, np.linspace(0, 1, 41))
TUNED = {"power": 4.0, "end": 0.05, "bump": 0.0, "half": 30, "angle": 40.0, "noise": {"mnli": 0.0, "mrpc": 0.0}}
FROM_SCRATCH = {"power": 1.0, "end": 0.2, "bump": 0.9, "half": 300, "angle": 80.0, "noise": {"mnli": 0.3, "mrpc": 0.95}}


def chance(*key: int) -> np.random.Generator:
    """The same numbers for the same seed, fold and so on."""
    return np.random.default_rng([2019, *(number + 1 for number in key)])


def repeated(of_one, **names) -> pd.DataFrame:
    """What a function of task, seed and fold gives, for all of them, a little different for each."""
    rows = []
    for place, task in enumerate(TASKS):
        for seed in SEEDS:
            for fold in FOLDS:
                near = (
                    1 + 0.01 * chance(place, seed).normal() + (fold >= 0) * 0.001 * chance(place, seed, fold).normal()
                )
                rows.append(of_one(task, seed, fold, near).assign(task=task, seed=seed, fold=fold, **names))
    return pd.concat(rows, ignore_index=True).assign(examples=80)


def shape(like: dict, radius: np.ndarray) -> np.ndarray:
    """A loss that rises to 1 above the end at the distance 1."""
    return like["end"] + radius ** like["power"]


def landscapes(tuned: dict = TUNED, scratch: dict = FROM_SCRATCH, loss=shape) -> dict[str, pd.DataFrame]:
    """Surfaces, lines, ends and models in which both kinds of model have the given shapes."""
    alphas, betas = (axis.ravel() for axis in np.meshgrid(POSITIONS, POSITIONS))
    radius, away, parts = np.hypot(alphas - 1, betas), np.abs(ON_LINES - 1), {"surfaces": [], "lines": [], "ends": []}
    facts, models = {"null_loss": 1.1, "norm": 2.0, "relative_norm": 0.1, "angle": 80.0, "sharpness": 0.1}, []
    for init, like in ((PRETRAINED, tuned), (SCRATCH, scratch)):

        def train(task, seed, fold, near, like=like):
            return pd.DataFrame({"alpha": alphas, "beta": betas, "loss": near * loss(like, radius), "error": 0.1})

        def validation(task, seed, fold, near, like=like):
            noise, ranks = like["noise"][task], loss(like, radius).argsort().argsort() / len(radius)
            error = (1 - noise) * ranks + noise * chance(seed).uniform(size=len(radius))
            error += (fold >= 0) * 0.01 * chance(seed, fold).uniform(size=len(radius))
            return pd.DataFrame({"alpha": alphas, "beta": betas, "loss": np.nan, "error": error})

        def along(task, seed, fold, near, like=like):
            hill = like["bump"] * np.exp(-(((ON_LINES - 0.4) / 0.03) ** 2))
            return pd.DataFrame({"alpha": ON_LINES, "loss": near * (loss(like, away) + hill)})

        def at_random(task, seed, fold, near):
            return pd.DataFrame({"alpha": ON_LINES, "loss": near * (0.1 + away)})

        def end(task, seed, fold, near, like=like):
            return pd.DataFrame({"loss": [near * like["end"]], "error": [0.1]})

        parts["surfaces"] += [repeated(of, init=init, split=of.__name__) for of in (train, validation)]
        parts["lines"] += [
            repeated(along, init=init, direction=OPTIMISATION, control=""),
            repeated(at_random, init=init, direction=RANDOM, control=TWIN),
        ]
        parts["ends"].append(repeated(end, init=init, split="train"))
        models += [
            facts | {"task": task, "init": init, "seed": seed, "examples": TASKS[task]}
            for task in TASKS
            for seed in SEEDS
        ]
    record = {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}
    record["surfaces"] = record["surfaces"].assign(loss_standard_error=0.01, error_standard_error=0.02)
    return record | {"models": pd.DataFrame(models).assign(sharpness_standard_error=0.01)}


def histories(tuned: dict = TUNED, scratch: dict = FROM_SCRATCH) -> pd.DataFrame:
    """Losses that fall by half in so many steps."""
    rows = []
    for encoder, like, epochs, last in (("toy", tuned, 3, 100), ("random:toy", scratch, 6, 200)):
        steps = np.arange(20, last + 1, 20)
        for task in TASKS:
            for seed in SEEDS:
                curve = (1 + 0.01 * seed) * 0.5 ** (steps / like["half"])
                rows.append(
                    pd.DataFrame({"step": steps, "loss": curve}).assign(
                        encoder=encoder, task=task, seed=seed, epochs=epochs
                    )
                )
    return pd.concat(rows, ignore_index=True)


def trajectories(tuned: dict = TUNED, scratch: dict = FROM_SCRATCH) -> pd.DataFrame:
    """Angles that fall evenly to 0, and random walks that are the same for both."""
    rows = []
    for init, like, epochs in ((PRETRAINED, tuned, 3), (SCRATCH, scratch, 6)):
        share = np.arange(epochs + 1) / epochs
        for task in TASKS:
            for seed in SEEDS:
                of_training = np.where(share > 0, (like["angle"] + seed) * (1 - share), np.nan)
                walk = np.degrees(np.arccos(np.sqrt(share))) + 0.1 * chance(seed, epochs).normal()
                for control, angle in (("", of_training), (TWIN, walk)):
                    path = {"step": 10 * np.arange(epochs + 1), "share": share, "angle": angle, "control": control}
                    rows.append(pd.DataFrame(path).assign(init=init, task=task, seed=seed))
    return pd.concat(rows, ignore_index=True)


def long_training(last: float = 0.2, between: float = 0.0, spread: float = 0.0, separate: float = 0.3) -> pd.DataFrame:
    """Ways from an error of 0.2 to the last one of a continued and of a separate training, with a hill between, on one
    task.
    """
    share = np.linspace(0, 1, 5)

    def way(task, seed, fold, near, end=last):
        error = 0.2 + (end - 0.2) * share + 4 * between * share * (1 - share)
        return pd.DataFrame({"share": share, "error": near * error + spread * chance(seed, fold).normal(size=5)})

    common = {"kind": BETWEEN, "control": "", "epoch": 3.0}
    parts = [
        repeated(way, training=CONTINUED, **common),
        repeated(lambda *key: way(*key, end=separate), training=SEPARATE, **common),
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[table["task"] == "mrpc"].reset_index(drop=True)


def group_surfaces(*steepness: float, noise: float = 0.0) -> pd.DataFrame:
    """Losses that rise evenly from the fine-tuned model, steep or less so for each third; training had gained 1."""

    def line(task, seed, fold, near, steep=0.0):
        loss = 0.1 + near * steep * np.abs(POSITIONS) + noise * chance(seed, fold).normal(size=len(POSITIONS))
        return pd.DataFrame({"alpha": POSITIONS, "beta": 0.0, "loss": loss})

    return pd.concat(
        [
            repeated(lambda *key, steep=steep: line(*key, steep=steep), group=group, control="")
            for group, steep in zip(GROUPS, steepness, strict=True)
        ],
        ignore_index=True,
    )


def rollbacks(*accuracies: float, noise: float = 0.0) -> pd.DataFrame:
    """Right and wrong answers of 300 examples, the same for all groups but for so many."""
    rows = []
    for group, accuracy in zip(("tuned", *GROUPS), (0.9, *accuracies), strict=True):
        for task in TASKS:
            for seed in SEEDS:
                level = accuracy + noise * chance(seed, GROUPS.index(group) if group in GROUPS else 9).normal()
                right = (np.arange(300) < 300 * level).astype(float)
                rows.append(
                    pd.DataFrame({"example": np.arange(300), "score": right}).assign(group=group, task=task, seed=seed)
                )
    table = pd.concat(rows, ignore_index=True)
    return table.assign(control=np.where(table["group"] == "tuned", "all", ""))


def records(**changed) -> dict:
    """A record on which every claim is reproduced, but for what is given."""
    given = {
        "landscapes": landscapes,
        "histories": histories,
        "trajectories": trajectories,
        "long_training": long_training,
    }
    made = {name: changed.pop(name, None) for name in given}
    made = {name: given[name]() if record is None else record for name, record in made.items()}
    made["group_surfaces"] = changed.pop("group_surfaces", None)
    if made["group_surfaces"] is None:
        made["group_surfaces"] = group_surfaces(0.05, 0.5, 1.0)
    made["rollbacks"] = changed.pop("rollbacks", None)
    if made["rollbacks"] is None:
        made["rollbacks"] = rollbacks(0.85, 0.7, 0.4)
    return made


@pytest.fixture(scope="module")
def passing():
    return records()


@pytest.fixture(scope="module")
def failing():
    swapped = {
        "tuned": FROM_SCRATCH | {"noise": {"mnli": 0.95, "mrpc": 0.9}},
        "scratch": TUNED | {"noise": {"mnli": 0.8, "mrpc": 0.0}},
    }
    return records(
        landscapes=landscapes(**swapped),
        histories=histories(**swapped),
        trajectories=trajectories(**swapped),
        long_training=long_training(0.3),
        group_surfaces=group_surfaces(1.0, 0.5, 0.05),
        rollbacks=rollbacks(0.4, 0.7, 0.85),
    )


@pytest.mark.parametrize("key", BY_KEY)
def test_a_record_that_shows_the_claim_reproduces_it(key, passing):
    assert judge(BY_KEY[key], passing).verdict.outcome == REPRODUCED


@pytest.mark.parametrize("key", BY_KEY)
def test_a_record_that_shows_the_contrary_contradicts_it(key, failing):
    assert judge(BY_KEY[key], failing).verdict.outcome == CONTRADICTED


def flat(like: dict, radius: np.ndarray) -> np.ndarray:
    return np.full(len(radius), 0.1)


def ramp(like: dict, radius: np.ndarray) -> np.ndarray:
    return 0.1 + radius


def noise(like: dict, radius: np.ndarray) -> np.ndarray:
    return chance(int(1000 * like["end"]), len(radius)).uniform(0.1, 1.5, size=len(radius))


ON_LANDSCAPES = ("wider-optima", "easier", "sharper-from-scratch", "error-follows-loss", "scratch-needs-data")
SAME = {"tuned": TUNED, "scratch": TUNED}


@pytest.mark.parametrize("of_shape", [flat, ramp, noise])
def test_no_trivial_landscape_reproduces_a_claim(of_shape):
    # The ends are alike, too, so that nothing tells the models apart but the shape.
    alike = {"landscapes": landscapes(TUNED, TUNED | {"end": 0.06}, of_shape), "histories": histories(**SAME)}
    outcomes = {key: judge(BY_KEY[key], alike).verdict.outcome for key in ON_LANDSCAPES}
    assert REPRODUCED not in outcomes.values(), outcomes


def test_models_that_are_alike_reproduce_no_claim():
    alike = {"landscapes": landscapes(**SAME), "histories": histories(**SAME), "trajectories": trajectories(**SAME)}
    outcomes = {key: judge(BY_KEY[key], alike).verdict.outcome for key in (*ON_LANDSCAPES, "straighter")}
    # Where no line has an obstacle, that from scratch is not the rougher one.
    assert outcomes.pop("easier") == CONTRADICTED
    assert set(outcomes.values()) == {OPEN}, outcomes


@pytest.mark.parametrize(
    ("key", "record"),
    [
        ("low-invariant", group_surfaces(0.0, 0.0, 0.0)),
        ("low-invariant", group_surfaces(0.5, 0.5, 0.5)),
        ("low-invariant", group_surfaces(0.5, 0.5, 0.5, noise=0.3)),
        # A curvature that is a fiftieth higher is no high loss, and half of the drop is not little.
        ("low-invariant", group_surfaces(0.5, 0.51, 0.51)),
        ("low-invariant", group_surfaces(0.05, 0.1, 0.15)),
        ("low-invariant", group_surfaces(0.5, 0.6, 1.0)),
        # The low third is not the widest, but the high one's loss is high.
        ("low-invariant", group_surfaces(0.1, 0.05, 1.0)),
        ("rollback", rollbacks(0.7, 0.7, 0.7)),
        ("rollback", rollbacks(0.7, 0.7, 0.7, noise=0.2)),
        # A single third that differs does not order all three.
        ("rollback", rollbacks(0.9, 0.9, 0.4)),
        ("robust-overfitting", long_training(0.3)),
        ("robust-overfitting", long_training(between=0.1)),
        ("robust-overfitting", long_training(spread=0.1)),
    ],
)
def test_no_trivial_shape_reproduces_a_claim(key, record):
    name = BY_KEY[key].records[0]
    assert judge(BY_KEY[key], {"landscapes": landscapes(), name: record}).verdict.outcome != REPRODUCED


def test_one_seed_that_stands_out_does_not_decide():
    table = trajectories(**SAME)
    table.loc[(table["init"] == SCRATCH) & (table["seed"] == 0), "angle"] += 60
    assert judge(BY_KEY["straighter"], {"trajectories": table}).verdict.outcome == OPEN


def test_an_error_that_stays_when_training_is_continued_is_what_the_claim_says():
    def outcome(**given):
        return judge(BY_KEY["robust-overfitting"], {"long_training": long_training(**given)}).verdict.outcome

    assert outcome(separate=0.4) == REPRODUCED and outcome(last=0.3, separate=0.2) == CONTRADICTED
    unknown = {"long_training": long_training().drop(columns="training")}
    assert "only a separate one" in judge(BY_KEY["robust-overfitting"], unknown).verdict.reason


def smoother(record: dict) -> list[tuple[str, str, float]]:
    judged = judge(BY_KEY["easier"], {"landscapes": record, "histories": histories()})
    parts = [effect for effect in judged.effects if effect.part == "smoother"]
    return [(one.bound, judged.verdict.outcome, one.interval.estimate) for one in parts]


def test_an_obstacle_between_the_points_of_a_coarse_line_decides_only_where_it_is_seen():
    fine = landscapes()
    assert [(bound, outcome) for bound, outcome, _ in smoother(fine)] == 2 * [("exact", REPRODUCED)]
    assert all(climb > 0.5 for *_, climb in smoother(fine))
    coarse = fine | {"lines": fine["lines"][fine["lines"]["alpha"].isin(POSITIONS)]}
    assert [(bound, outcome) for bound, outcome, _ in smoother(coarse)] == 2 * [(UNBOUNDED, OPEN)]
    assert all(climb < 0.1 for *_, climb in smoother(coarse))


def test_agreement_is_judged_near_the_way_where_no_plateau_is():
    def far(surfaces: pd.DataFrame) -> pd.Series:
        return (surfaces["alpha"] - 0.5).abs().gt(1.5) | surfaces["beta"].abs().gt(1.5)

    record = landscapes()
    table = record["surfaces"].copy()
    beyond = far(table) & (table["split"] == "validation")
    table.loc[beyond, "error"] = chance(7).uniform(2, 3, size=beyond.sum())
    judged = [
        judge(BY_KEY["error-follows-loss"], {"landscapes": record | {"surfaces": one}})
        for one in (record["surfaces"], table)
    ]
    assert [one.verdict.outcome for one in judged] == [REPRODUCED, REPRODUCED]
    assert [one.changed.get("the whole grid", REPRODUCED) for one in judged] == [REPRODUCED, OPEN]
    assert judged[0].effects[0].interval == judged[1].effects[0].interval


def test_what_is_paired_with_a_random_walk_says_nothing_of_training(passing):
    judged = judge(BY_KEY["straighter"], passing)
    assert judged.controls[TWIN].verdict.outcome == OPEN
    assert judge(BY_KEY["wider-optima"], passing).controls == {}, "its records have a control, which is not its own"


def test_a_random_direction_is_judged_like_the_optimisation_direction(passing):
    judged = judge(BY_KEY["sharper-from-scratch"], passing)
    assert judged.verdict.outcome == REPRODUCED and judged.controls[TWIN].verdict.outcome == OPEN


def around(record: dict, key: str, cut: dict[str, bool]) -> Judged:
    """Judged with losses that stay at the end's level beyond it in the models that are cut: no rim up to the edge."""
    changed = dict(record)
    for name in ("surfaces", "lines"):
        table = record[name].copy()
        for init, is_cut in cut.items():
            low = is_cut & (table["init"] == init) & (table["alpha"] > 1)
            table.loc[low, "loss"] = 0.01
        changed[name] = table
    return judge(BY_KEY[key], {"landscapes": changed})


@pytest.mark.parametrize(
    ("cut", "bound"),
    [
        ({PRETRAINED: True, SCRATCH: False}, AT_LEAST),
        ({PRETRAINED: False, SCRATCH: True}, AT_MOST),
        ({PRETRAINED: True, SCRATCH: True}, UNBOUNDED),
    ],
)
def test_a_width_cut_by_the_grid_decides_on_one_side_only_and_a_share_of_a_disc_on_both(cut, bound):
    record = landscapes()
    widths = around(record, "sharper-from-scratch", cut)
    assert {effect.bound for effect in widths.effects} == {bound}
    shares = around(record, "wider-optima", cut)
    assert {effect.bound for effect in shares.effects} == {"exact"}
    assert all(-1 <= effect.interval.estimate <= 1 for effect in shares.effects)


def test_the_largest_disc_that_the_grid_holds_is_compared():
    record = landscapes()
    table = record["surfaces"]
    small = record | {"surfaces": table[table["alpha"].le(3) & table["beta"].abs().le(3)]}
    narrow = judge(BY_KEY["wider-optima"], {"landscapes": small})
    assert narrow.verdict.outcome == REPRODUCED
    assert {"radius 1", "radius 2", "0.1 nats above the end"} <= set(narrow.settings)
    wide = judge(BY_KEY["wider-optima"], {"landscapes": record})
    # Discs of radius 1 around the end, four in an area of radius 2 and nine in one of radius 3.
    assert narrow.effects[0].interval.estimate > wide.effects[0].interval.estimate > 0


def test_a_model_from_scratch_without_an_optimum_is_named_and_left_out():
    record = landscapes()
    table = record["ends"]
    table.loc[(table["task"] == "mrpc") & (table["init"] == SCRATCH), "loss"] = 1.05
    verdict = judge(BY_KEY["wider-optima"], {"landscapes": record}).verdict
    assert [group.name for group in verdict.groups] == ["MNLI"] and "no optimum" in verdict.left_out["MRPC"]
    table.loc[table["init"] == SCRATCH, "loss"] = 1.05
    assert judge(BY_KEY["wider-optima"], {"landscapes": record}).verdict.outcome == CANNOT_BE_TESTED


def test_tasks_that_were_not_learned_take_no_part(passing):
    unlearned = {"mrpc": "MRPC was not learned"}
    for key, claim in BY_KEY.items():
        verdict = judge(claim, passing, unlearned).verdict
        assert not any("MRPC" in group.name for group in verdict.groups), key
        assert list(verdict.left_out.values()) == ["MRPC was not learned"]


def test_without_a_large_data_set_that_half_cannot_be_tested():
    record = landscapes()
    record["models"] = record["models"].assign(examples=2_000)
    verdict = judge(BY_KEY["scratch-needs-data"], {"landscapes": record}).verdict
    assert verdict.outcome == CANNOT_BE_TESTED and "10 times as many" in verdict.reason


def test_an_error_that_is_the_same_everywhere_is_left_out():
    record = landscapes()
    record["surfaces"] = record["surfaces"].assign(error=0.3)
    verdict = judge(BY_KEY["error-follows-loss"], {"landscapes": record}).verdict
    assert verdict.outcome == CANNOT_BE_TESTED and len(verdict.left_out) == 2


def test_no_interval_goes_beyond_what_its_measure_can_be():
    _, barrier = judge(BY_KEY["robust-overfitting"], {"long_training": long_training(spread=0.05)}).effects
    reach = barrier.interval
    assert barrier.part == "no barrier" and reach.low < reach.estimate < reach.high == 0


def test_states_too_few_for_a_third_of_the_way_are_named():
    table = trajectories()
    table = table[(table["share"] == 0) | (table["share"] > 0.4)]
    assert "raise `states`" in judge(BY_KEY["straighter"], {"trajectories": table}).verdict.reason


def test_the_papers_own_table_holds():
    rows = [
        {"task": task, "seed": 0, "group": group, "tuned": tuned / 100, "accuracy": put_back / 100}
        for task, (tuned, *of_groups) in PAPER_TABLE_1.items()
        for group, put_back in zip(GROUPS, of_groups, strict=True)
    ]
    verdict = judge(BY_KEY["rollback"], {"rollbacks": pd.DataFrame(rows)}).verdict
    assert verdict.outcome == REPRODUCED and len(verdict.groups) == 4


def test_records_without_folds_have_effects_without_intervals(passing):
    old = {name: of_all(table) for name, table in passing["landscapes"].items() if name != "ends"}
    for key in ("wider-optima", "sharper-from-scratch", "error-follows-loss"):
        judged = judge(BY_KEY[key], {"landscapes": old})
        assert judged.effects and not any(effect.interval.measured for effect in judged.effects), key
