"""Chapter 5's claims on records made for the purpose: the paper's own numbers, the contrary, and trivial shapes."""

import sys

import numpy as np
import pandas as pd
import pytest

from fivelenses.first_exhibits.claims import judge
from fivelenses.first_exhibits.verdicts import (
    CANNOT_BE_TESTED,
    CONTRADICTED,
    FAILS,
    HOLDS,
    MIXED,
    OPEN,
    REPRODUCED,
)
from fivelenses.papers.merchant2020 import ablations, probed
from fivelenses.papers.merchant2020.claims import CLAIMS, gains
from fivelenses.papers.merchant2020.probe_claims import PAPER_COLUMNS, PAPER_TABLE_1, SYNTAX, structure_kept
from fivelenses.records import FUNCTIONAL_TWIN, SHARED, TWIN

ENCODER, OTHERS = "one", ("one", "two", "three")
DEPTH = 12
BY_KEY = {claim.key: claim for claim in CLAIMS}
TUNED = ("mnli", "squad", "parsing")
UNLEARNED = {task: f"{task} was not learned" for task in TUNED}


def with_folds(rows: list[dict], value: str, noise: float = 0.0) -> pd.DataFrame:
    """The same value, or one with noise, without each of ten folds."""
    random, table = np.random.default_rng(0), pd.DataFrame(rows).assign(examples=100)
    parts = [table.assign(fold=fold) for fold in range(-1, 10)]
    for part in parts[1:]:
        part[value] += noise * random.standard_normal(len(part))
    return pd.concat(parts, ignore_index=True)


def edge(change, seeds=(0, 1), noise=0.0) -> dict:
    """Micro-F1 of 0.9 in the encoder, and so much more or less in the others."""
    named = [(task, model, seed) for task in PAPER_TABLE_1 for model in PAPER_COLUMNS for seed in seeds]
    rows = [{"task": t, "model": m, "seed": s, "layers": "mix", "micro_f1": 0.9 + change(t, m)} for t, m, s in named]
    return {"edge_probing": with_folds(rows, "micro_f1", noise)}


def as_printed(task, model):
    base, *changes = PAPER_TABLE_1[task]
    return base / 100 - 0.9 + dict(zip(PAPER_COLUMNS[1:], changes, strict=True)).get(model, 0) / 100


def baselines(task, model):
    return {"lexical": -0.1, "randomised": -0.2}.get(model, 0.0)


def structure(change, noise=0.0) -> dict:
    named = [(kind, m, layer) for kind in ("distance", "depth") for m in ("base", *TUNED) for layer in range(DEPTH + 1)]
    rows = [
        {"kind": kind, "model": m, "layer": layer, "spearman": (0.8 if layer else 0.6) + change(m, layer)}
        for kind, m, layer in named
    ]
    return {"structure": with_folds(rows, "spearman", noise)}


def codes(share, noise=0.0) -> dict:
    named = [(task, model) for task in ("pos", "dependencies", "srl") for model in ("base", "randomised", *TUNED)]
    rows = [
        {"task": task, "model": model, "seed": 0, "bits": 1000.0 * (1 + share(task, model))} for task, model in named
    ]
    return {"codelengths": with_folds(rows, "bits", 1000 * noise)}


def similar(loss, depth=DEPTH, noise=0.0) -> dict:
    named = [(run, model, layer) for run in OTHERS for model in TUNED for layer in range(depth + 1)]
    rows = [{"pretrained": run, "model": m, "layer": n, "similarity": 1 - loss(m, n / depth)} for run, m, n in named]
    return {"similarities": with_folds(rows, "similarity", noise).assign(input="wikipedia")}


def ablated(column: str, loss, depth=DEPTH, places=None) -> dict:
    """Scores of 0.8 over a null rate of 0.3, less so much of the gain."""
    places = places or (range(-1, depth + 1) if column == "frozen" else range(1, depth + 1))
    rows = [
        {"encoder": ENCODER, "task": task, "seed": seed, "frozen": -1, "truncated": -1, "null_rate": 0.3}
        | {column: -1 if column == "truncated" and place == depth else place, "address": f"{task} {seed} {place}"}
        | {"score": 0.8 - 0.5 * loss(task, place / depth)}
        for task in TUNED
        for seed in (0, 1)
        for place in places
    ]
    return {"models": pd.DataFrame(rows)} | similar(lambda model, layer: 0.0, depth)


def by_input(more, noise=0.0) -> dict:
    """Similarity of 0.9, and so much less on an input."""

    def table(inputs):
        named = [(model, text, layer) for model in ("mnli", "squad") for text in inputs for layer in range(DEPTH + 1)]
        rows = [{"model": m, "input": t, "layer": n, "similarity": 0.9 - more(m, t, n / DEPTH)} for m, t, n in named]
        return with_folds(rows, "similarity", noise).assign(pretrained=ENCODER)

    text = table(["wikipedia"])
    # The parser's encoder is measured on running text alone.
    text = pd.concat([text, text[text["model"] == "mnli"].assign(model="parsing")])
    return {"similarities": text, "similarities_by_input": table(["mnli", "mnli, alone", "squad"])}


def parser_rises(model, layer):
    return 0.05 if model == "parsing" and layer >= 5 else -0.05 if model != "base" and layer > 10 else 0.0


def falls_on_top(model, layer):
    return {"mnli": 0.1, "squad": 0.2, "parsing": 0.5}[model] * layer**4


def loses_from(mnli, squad, parser):
    return lambda task, place: 0.0 if place < {"mnli": mnli, "squad": squad, "parsing": parser}[task] else 0.5


def needs(mnli, squad, parser):
    return lambda task, place: 0.0 if place >= {"mnli": mnli, "squad": squad, "parsing": parser}[task] else 0.5


HOLDING = {
    "no-forgetting": edge(as_printed),
    "dep-helps-syntax": edge(as_printed),
    "structure-kept": structure(parser_rises),
    "mdl-same": codes(
        lambda task, model: (
            0.5 if model == "randomised" else -0.3 if (task, model) == ("dependencies", "parsing") else 0
        )
    ),
    "top-layers-change": similar(falls_on_top),
    "few-layers-suffice": ablated("frozen", loses_from(0.9, 0.7, 0.3)),
    "shallow-truncation": ablated("truncated", needs(0.25, 0.4, 0.9)),
    "in-domain-changes-more": by_input(lambda model, text, layer: 0.3 * layer * (text == model)),
}
CONTRARY = {
    "no-forgetting": edge(lambda task, model: -0.1 if model in TUNED else baselines(task, model)),
    "dep-helps-syntax": edge(
        lambda task, model: baselines(task, model) + 0.05 * (model == "parsing") * (-1 if task in SYNTAX else 1)
    ),
    "structure-kept": structure(lambda model, layer: 0.0 if model == "base" else -0.1),
    "mdl-same": codes(lambda task, model: 0.0 if model == "base" else 0.5),
    "top-layers-change": similar(
        lambda model, layer: {"mnli": 0.6, "squad": 0.4, "parsing": 0.2}[model] * (1 - layer) ** 0.5
    ),
    "few-layers-suffice": ablated("frozen", lambda task, place: 0.0 if place < 0 or task == "parsing" else 0.3),
    "shallow-truncation": ablated("truncated", lambda task, place: 0.3 if place < 1 and task != "parsing" else 0.0),
    "in-domain-changes-more": by_input(lambda model, text, layer: -0.2 * (text == model)),
}
FLAT = {
    "no-forgetting": edge(lambda task, model: 0.0),
    "dep-helps-syntax": edge(baselines),
    "structure-kept": structure(lambda model, layer: 0.0),
    "mdl-same": codes(lambda task, model: 0.5 * (model == "randomised")),
    "top-layers-change": similar(lambda model, layer: 0.2),
    "few-layers-suffice": ablated("frozen", lambda task, place: 0.0),
    "shallow-truncation": ablated("truncated", lambda task, place: 0.0),
    "in-domain-changes-more": by_input(lambda model, text, layer: 0.2),
}
TRIVIAL = {
    "all fall by as much as without context": ("no-forgetting", edge(lambda t, m: -0.1 * (m != "base"))),
    "one probe forgets": ("no-forgetting", edge(lambda t, m: as_printed(t, m) - 0.1 * ((t, m) == ("srl", "squad")))),
    "noise between runs": ("dep-helps-syntax", edge(baselines, noise=0.01)),
    "all gain": ("dep-helps-syntax", edge(lambda t, m: baselines(t, m) + 0.02 * (m == "parsing"))),
    "the parser's structure is kept, too": ("structure-kept", structure(lambda m, n: -0.1 * (m != "base" and n == 12))),
    "all correlations fall with the layer": ("structure-kept", structure(lambda m, n: -0.01 * n * (m != "base"))),
    "the parser rises on top alone": ("structure-kept", structure(lambda m, n: 0.1 * (m == "parsing" and n > 9))),
    "noise of correlations": ("structure-kept", structure(lambda m, n: 0.0, noise=0.02)),
    "all codes get cheaper": ("mdl-same", codes(lambda t, m: -0.3 if m in TUNED else 0.5 * (m == "randomised"))),
    "noise of bits": ("mdl-same", codes(lambda t, m: 0.5 * (m == "randomised"), noise=0.2)),
    "a straight line": ("top-layers-change", similar(lambda m, x: {"mnli": 0.2, "squad": 0.4, "parsing": 0.8}[m] * x)),
    "a line with a little bend": ("top-layers-change", similar(lambda m, x: 0.2 * (1 + TUNED.index(m)) * x**1.2)),
    "a straight line of 8 layers": ("top-layers-change", similar(lambda m, x: 0.1 * (1 + TUNED.index(m)) * x, 8)),
    "the reverse": ("top-layers-change", similar(lambda m, x: falls_on_top(m, 1 - x))),
    "all alike": ("top-layers-change", similar(lambda m, x: 0.5 * x**4)),
    "one layer in the middle": ("top-layers-change", similar(lambda m, x: 0.1 * (1 + TUNED.index(m)) * (x == 0.5))),
    "the last layer alone": ("top-layers-change", similar(lambda m, x: 0.1 * (1 + TUNED.index(m)) * (x == 1))),
    "noise of similarity": ("top-layers-change", similar(lambda m, x: 0.0, noise=0.1)),
    "every layer costs as much": ("few-layers-suffice", ablated("frozen", lambda t, x: max(x, 0.0))),
    "freezing helps": ("few-layers-suffice", ablated("frozen", lambda t, x: -0.2 * (x >= 0))),
    "each layer adds as much": ("shallow-truncation", ablated("truncated", lambda t, x: 1 - x)),
    "fewer layers are better": ("shallow-truncation", ablated("truncated", lambda t, x: x - 1)),
    "the parser loses nothing": (
        "shallow-truncation",
        ablated("truncated", lambda t, x: -0.2 * (x < 1) * (t != "parsing")),
    ),
    "pairs of texts change more": ("in-domain-changes-more", by_input(lambda m, t, x: 0.2 * (t != "wikipedia"))),
    "noise on inputs": ("in-domain-changes-more", by_input(lambda m, t, x: 0.0, noise=0.05)),
}


@pytest.mark.parametrize("key", BY_KEY)
def test_a_record_that_shows_the_claim_reproduces_it(key):
    judged = judge(BY_KEY[key], HOLDING[key])
    assert judged.verdict.outcome == REPRODUCED, judged.verdict
    assert not judged.verdict.of(FAILS)


@pytest.mark.parametrize("key", BY_KEY)
def test_a_record_that_shows_the_contrary_contradicts_it(key):
    judged = judge(BY_KEY[key], CONTRARY[key])
    assert judged.verdict.outcome == CONTRADICTED, judged.verdict


@pytest.mark.parametrize("key", BY_KEY)
def test_no_difference_at_all_reproduces_nothing(key):
    assert judge(BY_KEY[key], FLAT[key]).verdict.outcome != REPRODUCED


@pytest.mark.parametrize("shape", TRIVIAL)
def test_a_trivial_shape_reproduces_nothing(shape):
    key, records = TRIVIAL[shape]
    judged = judge(BY_KEY[key], records)
    assert judged.verdict.groups and judged.verdict.outcome in (OPEN, CONTRADICTED, MIXED), judged.verdict


@pytest.mark.parametrize("key", BY_KEY)
def test_tasks_that_were_not_learned_take_no_part_in_any_claim(key):
    verdict = judge(BY_KEY[key], HOLDING[key], UNLEARNED).verdict
    assert verdict.outcome == CANNOT_BE_TESTED and "not learned" in verdict.reason
    without_squad = judge(BY_KEY[key], HOLDING[key], {"squad": "SQuAD was not learned"}).verdict
    assert without_squad.outcome == REPRODUCED
    assert not any("SQuAD" in group.name for group in without_squad.groups)


def test_the_papers_own_table_holds():
    """Single numbers, as it prints them."""
    one = {"edge_probing": edge(as_printed, [0])["edge_probing"].query("fold == -1").drop(columns=["fold", "examples"])}
    kept = judge(BY_KEY["no-forgetting"], one).verdict
    assert kept.outcome == REPRODUCED and len(kept.of(HOLDS)) == 24
    helped = judge(BY_KEY["dep-helps-syntax"], one).verdict
    # Its 0.2 points on dependencies lie within its own half a point between probing runs.
    assert helped.outcome == REPRODUCED and [group.name for group in helped.of(OPEN)] == ["Dependencies"]


def test_with_one_run_of_each_probe_a_change_within_the_papers_spread_decides_nothing():
    def small(task, model):
        return baselines(task, model) - 0.004 * (model == "parsing") * (-1 if task == "constituents" else 1)

    one, two = (judge(BY_KEY["dep-helps-syntax"], edge(small, seeds)).verdict for seeds in ([0], [0, 1]))
    assert {group.outcome for group in one.groups} == {OPEN}
    assert {group.name: group.outcome for group in two.groups}["Dependencies"] == FAILS


def test_probing_seeds_say_nothing_about_other_fine_tunings():
    for key in ("no-forgetting", "mdl-same", "structure-kept"):
        assert all(group.of_this_model for group in judge(BY_KEY[key], HOLDING[key]).verdict.groups)
    of_pretrainings = judge(BY_KEY["top-layers-change"], HOLDING["top-layers-change"]).verdict
    assert not any(group.of_this_model for group in of_pretrainings.groups)


def test_a_probe_whose_lexical_baseline_is_near_takes_no_part():
    near = edge(lambda task, model: as_printed(task, model) + 0.1 * (task == "pos" and model == "lexical"))
    verdict = judge(BY_KEY["no-forgetting"], near).verdict
    assert "on POS the encoder is −0.010 above its lexical baseline" in verdict.left_out["POS after MNLI"]
    assert len(verdict.groups) == 21 and verdict.outcome == REPRODUCED


def test_a_probe_that_the_paper_lacks_takes_no_part():
    table = HOLDING["no-forgetting"]["edge_probing"]
    more = pd.concat([table, table[table["task"] == "coreference"].assign(task="coreference-dpr", micro_f1=0.1)])
    assert len(judge(BY_KEY["no-forgetting"], {"edge_probing": more}).verdict.groups) == 24


@pytest.mark.parametrize("key", ["dep-helps-syntax", "structure-kept", "mdl-same", "top-layers-change"])
def test_without_a_parser_there_is_nothing_to_compare_with(key):
    records = {name: table[table["model"] != "parsing"] for name, table in HOLDING[key].items()}
    verdict = judge(BY_KEY[key], records).verdict
    assert verdict.outcome == CANNOT_BE_TESTED and "parsing" in verdict.reason


@pytest.mark.parametrize("key", ["few-layers-suffice", "shallow-truncation"])
@pytest.mark.parametrize("alone", [("mnli", "squad"), ("parsing",)])
def test_ablations_need_the_parser_and_another_task(key, alone):
    records = HOLDING[key] | {"models": HOLDING[key]["models"].query("task in @alone")}
    assert judge(BY_KEY[key], records).verdict.outcome == CANNOT_BE_TESTED


@pytest.mark.parametrize(
    ("key", "column", "places"),
    [("few-layers-suffice", "frozen", [-1, 0, 3, 9])] + [("shallow-truncation", "truncated", [3, 9, 12])],
)
def test_only_half_of_the_layers_says_what_half_of_the_layers_is_worth(key, column, places):
    """A quarter bounds it on one side alone, and such a part could not fail."""
    few = ablated(column, lambda task, place: 0.0, places=places)
    assert "half of their layers" in judge(BY_KEY[key], few).verdict.reason


def predicted(models: pd.DataFrame, noise: float) -> pd.DataFrame:
    """1,000 examples per model, right as often as the model's score says; the same difficulty for all models."""
    random, parts = np.random.default_rng(0), []
    difficulty = {task: random.permutation(1000) + 0.5 for task in TUNED}
    for row in models.itertuples():
        right = difficulty[row.task] < 1000 * row.score + noise * random.standard_normal(1000)
        table = pd.DataFrame(
            {"example": np.arange(1000), "label": 0, "score": right.astype(float), "weight": 1.0, "null": 0.3}
        )
        parts.append(table.assign(task=row.task, seed=row.seed, address=row.address, metric="accuracy"))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("key", ["few-layers-suffice", "shallow-truncation"])
def test_predictions_give_intervals_to_ablations(key):
    records = HOLDING[key] | {"by_example": predicted(HOLDING[key]["models"], 5)}
    verdict = judge(BY_KEY[key], records).verdict
    assert verdict.outcome == REPRODUCED and all(group.measured for group in verdict.groups)
    assert not all(group.measured for group in judge(BY_KEY[key], HOLDING[key]).verdict.groups)


def test_what_is_lost_is_a_share_of_the_gain():
    records = HOLDING["few-layers-suffice"]
    table = ablations.varied(records["models"], records["similarities"], ENCODER, "frozen")
    lost = ablations.losses(table, None, "frozen").query("task == 'mnli' and seed == 0").set_index("frozen")["lost"]
    assert lost[10] == pytest.approx(0) and lost[11] == pytest.approx(0.5)
    folds = ablations.losses(table, predicted(table, 0), "frozen")
    assert sorted(folds["fold"].unique()) == list(range(-1, 10)) and set(folds["examples"]) == {1000}
    whole = folds.query("task == 'mnli' and seed == 0 and fold == -1").set_index("frozen")["lost"]
    np.testing.assert_allclose(whole.loc[[10, 11]], [0, 0.5])
    with pytest.raises(ValueError, match="no scores of examples"):
        ablations.losses(table, predicted(table[table["task"] != "mnli"], 0), "frozen")


def test_similarities_that_count_special_tokens_cannot_say_where_more_changes():
    old = {
        name: table.query("fold == -1").drop(columns="fold")
        for name, table in HOLDING["in-domain-changes-more"].items()
    }
    assert "[CLS]" in judge(BY_KEY["in-domain-changes-more"], old).verdict.reason


def test_a_task_without_gain_is_left_out_and_an_ablation_has_no_twin():
    records = ablated("frozen", lambda task, place: 1.2 * (task == "mnli") + 0.2 * (task == "parsing") * (place > 0))
    twins = records["similarities"].assign(control=TWIN)
    records["similarities"] = pd.concat([records["similarities"].assign(control=""), twins])
    judged = judge(BY_KEY["few-layers-suffice"], records)
    assert judged.verdict.outcome == REPRODUCED and judged.controls == {}
    groups = ("MNLI", "Parsing beside MNLI")
    assert judged.verdict.left_out == dict.fromkeys(groups, "no gain over the null rate in MNLI")
    gated = judge(BY_KEY["few-layers-suffice"], records, {"mnli": "MNLI was not learned"}).verdict
    assert gated.left_out == dict.fromkeys(groups, "MNLI was not learned")


@pytest.mark.parametrize("control", [TWIN, FUNCTIONAL_TWIN])
@pytest.mark.parametrize("key", [key for key in BY_KEY if not BY_KEY[key].untwinned])
def test_both_twins_are_judged_by_the_same_rule(key, control):
    both = {}
    for name, table in HOLDING[key].items():
        shared = table["model"].isin([probed.BASE, probed.LEXICAL, probed.RANDOMISED])
        twins = CONTRARY[key][name].query("model in @TUNED").assign(control=control)
        both[name] = pd.concat([table.assign(control=np.where(shared, SHARED, "")), twins], ignore_index=True)
    judged = judge(BY_KEY[key], both)
    assert judged.verdict.outcome == REPRODUCED and set(judged.controls) == {control}
    assert judged.controls[control].verdict.outcome in (CONTRADICTED, MIXED)


def test_a_half_without_a_group_leaves_a_sentence_open_and_is_named():
    syntax = {"edge_probing": HOLDING["dep-helps-syntax"]["edge_probing"].query("task in @SYNTAX")}
    verdict = judge(BY_KEY["dep-helps-syntax"], syntax).verdict
    assert verdict.outcome == OPEN and verdict.untested == ("loses elsewhere",) and len(verdict.of(HOLDS)) == 2


def test_what_context_does_not_add_cannot_be_lost():
    small = structure(lambda model, layer: parser_rises(model, layer) - 0.17 * (layer > 0))
    verdict = judge(BY_KEY["structure-kept"], small).verdict
    assert "context adds 0.030 to the correlation of distances" in verdict.left_out["MNLI, distance"]
    assert {group.name for group in verdict.groups} == {"Parsing, distance", "Parsing, depth"}


def test_no_two_groups_share_an_effect():
    for key, records in HOLDING.items():
        if key in ("top-layers-change", "few-layers-suffice", "shallow-truncation", "structure-kept", "mdl-same"):
            judged = judge(BY_KEY[key], records)
            parts = {part.name: part.groups for part in BY_KEY[key].parts}
            assert all(effect.group in parts[effect.part] for effect in judged.effects)
            assert len({(effect.group, effect.part) for effect in judged.effects}) == len(judged.effects)


def test_one_seed_that_hardly_gains_does_not_blow_up_a_loss():
    records = ablated("frozen", loses_from(0.9, 0.7, 0.3))
    weak = (records["models"]["task"] == "mnli") & (records["models"]["seed"] == 1)
    records["models"].loc[weak, "score"] = np.where(records["models"].loc[weak, "frozen"] == 6, 0.28, 0.301)
    table = ablations.varied(records["models"], records["similarities"], ENCODER, "frozen")
    lost = ablations.losses(table, None, "frozen").query("task == 'mnli' and frozen == 6")["lost"]
    assert lost.mean() == pytest.approx(0.021 / 0.501) and lost.abs().max() < 0.2


def test_models_of_several_seeds_are_the_models_of_an_interval():
    """The pre-trained encoder and its baselines are measured once for all of them."""
    for key in ("no-forgetting", "dep-helps-syntax", "structure-kept", "mdl-same"):
        [(name, table)] = HOLDING[key].items()
        table = table.query("seed == 0") if "seed" in table else table
        tuned = table["model"].isin(TUNED)
        parts = [table[tuned].assign(tuned_seed=seed) for seed in range(3)]
        several = pd.concat([table[~tuned].assign(tuned_seed=-1), *parts], ignore_index=True)
        verdict = judge(BY_KEY[key], {name: several}).verdict
        assert verdict.outcome == REPRODUCED and {group.models for group in verdict.groups} == {3}
        assert not any(group.of_this_model for group in verdict.groups)


def test_seeds_of_one_pre_training_are_models_and_of_several_are_parts_of_one():
    table = HOLDING["top-layers-change"]["similarities"]
    of_seeds = pd.concat([table.assign(tuned_seed=seed) for seed in range(2)], ignore_index=True)
    for rows, models in ((of_seeds, 3), (of_seeds.query("pretrained == @ENCODER"), 2)):
        verdict = judge(BY_KEY["top-layers-change"], {"similarities": rows}).verdict
        assert verdict.outcome == REPRODUCED and {group.models for group in verdict.groups} == {models}


def test_the_gate_asks_for_a_tenth_of_what_the_papers_models_gain():
    models = pd.DataFrame({"task": ["mnli", "parsing"], "null_rate": [0.353, 0.043]})
    assert gains(models) == {"mnli": pytest.approx(0.48), "parsing": pytest.approx(0.92)}


def test_an_encoder_of_one_layer_has_no_structure_below_its_last(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "DEPTH", 1)
    (claim,) = [one for one in CLAIMS if one.effects is structure_kept]
    verdict = judge(claim, structure(lambda model, layer: 0.0)).verdict
    assert verdict.outcome == CANNOT_BE_TESTED and "one layer" in verdict.reason
