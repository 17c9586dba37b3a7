# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What is kept, and where it changes (Merchant et al., 2020)
#
# **The question.** Does an encoder that is fine-tuned on inference or on questions forget the
# syntax and the semantic roles that it learned in pre-training? And which of its layers change?
# {cite:t}`merchant2020` ask with {term}`probes <probe>`, with representational similarity, and by
# freezing or removing layers.
#
# **The answer in numbers.** The paper claims that probes lose little to fine-tuning
# (`no-forgetting`: {glue:text}`no_forgetting_verdict`), that mainly the top layers change
# (`top-layers-change`: {glue:text}`top_layers_change_verdict`), and that few need to
# (`few-layers-suffice`: {glue:text}`few_layers_suffice_verdict`). [The last section](#the-claims)
# has all claims; reproduced here: {glue:text}`claims_reproduced`.
#
# *You need* the {doc}`primer </primer>` and dependency trees. *Reading*: 15 minutes. *Running*:
# about 3 minutes on the toy world with two cores.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny, small or paper: the files in notebooks/profiles
# Everything below is as the profile says unless it is given here.
encoder = None
source = None
tasks = None
pretrained = None
seeds = None
schedules = None
learning_rate = None
learning_rate_by_encoder = None
batch_size = None
epochs = None
training_examples = None
precision = None
frozen = None
truncated = None
ablated = None
halved = None
edge_tasks = None
probe_targets = None
probe_learning_rate = None
probe_validate_every = None
probe_validate_every_of = None
probe_validations = None
probe_width = None
probe_seeds = None
codelength_tasks = None
structural_sentences = None
similarity_tokens = None
similarity_examples = None
max_tokens = None
device = None

# %% tags=["hide-input", "claim"]
import math
from dataclasses import replace
from itertools import combinations, product

import pandas as pd

from fivelenses import catalogue
from fivelenses.exhibits import Layout, controls_in_words, counted, curves, printed, table_of_models
from fivelenses.judging import CannotTest, estimate, jackknife, of_size, scores_by_fold, title
from fivelenses.records import (
    BASE,
    LEXICAL,
    PARSER,
    PRETRAINED,
    RANDOMISED,
    RUNNING_TEXT,
    TWIN,
    WHOLE,
    Missing,
    select,
    with_controls,
)
from fivelenses.run import begin

run = begin(5, globals())
settings = run.settings
models = run.measure("models", each=("encoder", "task"))
PAIRS = ("mnli", "squad")  # the tasks whose examples are two texts
TASKS = (*PAIRS, PARSER)

# %% [markdown]
# ## The setting
#
# In the paper a pre-trained encoder learns three tasks: inference (MNLI, a label for a pair of
# sentences), question answering (SQuAD, a span of a passage) and dependency parsing (a tree by a
# biaffine parser, scored by {term}`LAS`). Encoders are also fine-tuned with their bottom layers
# {term}`frozen`, and with their top layers removed. A run may have fewer of these. With several
# pre-trained encoders, similarity is measured on all of them, everything else on the first. Figures
# and tables are numbered as in the paper.

# %% tags=["hide-input"]
whole = models.query("frozen == -1 and truncated == -1")
table = table_of_models(whole, ["task", "encoder"])
of_models = whole.groupby(["task", "encoder"], sort=False)
table["seeds"] = of_models["seed"].nunique().to_numpy()
table["steps"] = of_models["steps"].first().to_numpy()
table["metric"] = [catalogue.find(task).score_name for task in table["task"]]
columns = ["task", "encoder", "training_data", "steps", "seeds", "metric", "score", "null_rate"]
run.table(
    "Appendix C",
    table,
    "The fine-tuned models: mean score over seeds and half the range.",
    columns={one: one for one in columns}
    | {"training_data": "trained on", "null_rate": "null rate"},
    formats={"task": title, "steps": "{:,.0f}", "null_rate": "{:.3f}"}
    | {"score": "{score:.3f} ± {score_spread:.3f}"},
    key="models",
)

# %% [markdown]
# A task takes part in the claims only if its score is above the {term}`null rate` by clearly more
# than a tenth of what the paper's models gain, and, where a run has one, above a bag of words.

# %% tags=["hide-input", "claim"]
words = run.measure("words_by_example", over=settings.training_sets)
by_example = run.measure("by_example", each=("task", "seed"))

# %% tags=["hide-input"]
scores = {"mnli": 0.833, "squad": 0.892, "parsing": 0.963}  # section 3: accuracy, F1, LAS
nulls = models.groupby("task")["null_rate"].first().items()
gains = {task: scores[task] - null for task, null in nulls if task in scores}
run.gate(models, by_example, gains, words)

# %% [markdown]
# Tables show means over the models of a task. Intervals count pre-trainings, else seeds of
# fine-tuning (with one model, examples alone); a probe of the pre-trained encoder counts as given.

# %% tags=["hide-input", "claim"]
SHARED_BY_ALL = [BASE, LEXICAL, RANDOMISED]


def side_by_side(record, value, *by):
    """A column per encoder; the pre-trained one and its baselines are the same for all seeds."""
    rows = record.assign(tuned_seed=record.get("tuned_seed", 0))
    shared = rows["model"].isin(SHARED_BY_ALL)
    seeds = rows.loc[~shared, "tuned_seed"].unique()
    copies = [rows[shared].assign(tuned_seed=seed) for seed in seeds]
    index = [name for name in (*by, "tuned_seed", "fold") if name in rows]
    wide = pd.concat([rows[~shared], *copies]).pivot(index=index, columns="model", values=value)
    return wide.reset_index()


def over_models(rows, function):
    """The interval of a function of one model's rows, over pre-trainings or seeds."""
    rows = rows.assign(tuned_seed=rows.get("tuned_seed", 0))
    several = "pretrained" in rows and rows["pretrained"].nunique() > 1
    return estimate(rows, function, "pretrained" if several else "tuned_seed")


def of_probes(rows, x, log=False):
    """The interval of the mean of x per model, probe and fold; of a ratio by its logarithm."""
    wide = rows.assign(x=x.map(math.log) if log else x).dropna(subset=["x"])
    wide = wide.pivot(index=["tuned_seed", "seed"], columns="fold", values="x")
    of_models = wide.groupby("tuned_seed").mean()
    several = len(of_models) > 1  # probes of one model are no models
    wide = of_models if several else wide
    found = jackknife(wide[WHOLE].to_numpy(), wide.drop(columns=WHOLE).to_numpy(), log)
    return found if several else replace(found, models=1)


def check_present(found, wanted, what):
    if missing := [name for name in wanted if name not in set(found)]:
        raise CannotTest(f"this run has no {what} {', '.join(missing)}")


# %% [markdown]
# ## What can be read: edge probes
#
# An {term}`edge probe` {cite:p}`tenney2019` predicts the label of one or two spans from a frozen
# encoder. It mixes the layers with learned weights, pools a span by attention, and has one hidden
# layer ({py:func}`fivelenses.lenses.edge_probe.fit`). Two baselines show what the encoder adds: its
# embeddings without context (lexical), and random weights (randomised). Where a run has it, the
# {term}`twin` of the parser's encoder shows the effect of distance alone. SRL are semantic roles,
# SPR asks what holds of a role's filler (such as being aware), and DPR to which noun a pronoun
# refers. A probe that is not clearly more than four points above its lexical baseline cannot show
# forgetting.

# %% tags=["hide-input", "claim"]
all_layers = {"frozen": (), "truncated": None}
probed = all_layers | {"encoder": settings.encoder}


def fine_tuned_on(model):
    """The probed models of a task; none for the name of the pre-trained encoder."""
    return settings.models(task=model, **probed)


names = ("base", *settings.tasks)
each = product(settings.edge_tasks, names)
over = [{"edge_task": one, "model": name, "probe": settings.probe_of(one)} for one, name in each]
probes = run.measure("edge_probing", of=fine_tuned_on, each="seed", over=over)
mixed = probes.query("layers == 'mix'")
# Table 1, page 4: micro-F1 of the pre-trained encoder, and differences to it in points.
COLUMNS = (BASE, LEXICAL, RANDOMISED, *TASKS)
PAPER = {
    "pos": (97.5, -9.0, -13.6, -0.2, -1.5, -0.2),
    "constituents": (84.4, -12.9, -24.1, -2.2, 0.1, 4.4),
    "dependencies": (95.5, -15.6, -18.2, -0.5, -2.5, 0.2),
    "entities": (96.2, -6.6, -10.0, -0.3, -0.9, -0.6),
    "srl": (92.9, -13.6, -15.0, -0.4, -2.9, -0.5),
    "coreference": (95.7, -5.8, -6.2, -0.5, -0.8, -1.2),
    "spr": (84.6, -6.6, -12.2, -0.7, -0.4, -1.2),
    "relations": (79.5, -20.7, -40.5, -0.8, -0.4, -2.5),
}


def edge_title(task):
    return catalogue.EDGE_TASKS[task]["title"]


# %% tags=["hide-input"]
def table_of_probes(rows):
    """Micro-F1 of each encoder, its difference to the pre-trained one, and the paper's."""
    if isinstance(rows, Missing):
        return rows
    twins = select(rows[rows["control"] == TWIN], TWIN).assign(model="twin")
    every = pd.concat([select(rows), twins])
    table = every.pivot_table(index="task", columns="model", values="micro_f1", sort=False)
    points = 100 * table.sub(table[BASE], axis=0).assign(base=table[BASE])
    theirs = pd.DataFrame(PAPER, COLUMNS).T.reindex(table.index)
    table = table.join(points.add_suffix("_points")).join(theirs.add_suffix("_paper"))
    return table.join(every.groupby("task")["data"].first()).reset_index()


# %% tags=["hide-input"]
def show_probes(name, key, read, rows, with_paper=""):
    """A table of probes; `with_paper` is the format of the paper's numbers beside ours."""
    table = table_of_probes(rows)
    shown = [one for one in COLUMNS if one in table]
    forms = {one: f"{{{one}_points:+z.1f}}" + with_paper.replace("model", one) for one in shown}
    forms |= {BASE: forms.get(BASE, "").replace("+", ""), "twin": "{twin_points:+z.1f}"}
    shown += ["twin"] * ("twin" in table)
    headers = {one: title(one) for one in shown}
    headers |= {BASE: PRETRAINED, "twin": f"{title(PARSER)}, moved at random"}
    run.table(
        name,
        table,
        f"Edge probes that read {read}: micro-F1 (%) of the pre-trained encoder, and how far the "
        f"others differ from it ({counted(rows['seed'].nunique(), 'probing seed')} of each model; "
        f"at most {rows['targets'].max():,} training targets)"
        + (", with the paper's in brackets." if with_paper else "."),
        columns={"task": "task", "data": "data"} | {one: headers[one] for one in shown},
        formats={"task": edge_title} | {one: forms[one] for one in shown},
        key=key,
    )


show_probes("Table 1", "table-1", "a mixture of all layers", mixed, " ({model_paper:+.1f})")


# %% tags=["hide-input", "claim"]
F1, ROOM = "micro-F1 in [0, 1]", 0.04  # four points: less leaves nothing to lose


def edge_probes(rows):
    """Each edge-probing task of the paper with its scores, and why it leaves no room, if so."""
    for task in PAPER:
        scores = side_by_side(rows[rows["task"] == task], "micro_f1", "seed")
        if scores.empty:
            continue
        room = of_probes(scores, scores[BASE] - scores[LEXICAL])
        lead = f"the encoder's lead over its lexical baseline is {printed(room.estimate, '.3f')}"
        why = f"on {edge_title(task)} {lead}, not clearly more than {ROOM}"
        yield task, scores, "" if room.low > ROOM else why


# %% tags=["hide-input", "claim"]
@run.claim(
    "no-forgetting",
    says="Fine-tuning costs edge probes little, and far less than taking context or pre-training "
    "away does.",
    place="section 4.1, Table 1",
    printed="−2.9 to +4.4 points; lexical −20.7 to −5.8, randomised −40.5 to −6.2",
    record=mixed,
    above={"change of F1": -0.03},
    because={"change of F1": "the paper counts falls of up to 3 points as small (section 4.1)"},
    unit=F1,
    per="case",
)
def what_fine_tuning_costs_probes(rows):
    """Change of micro-F1 in a fine-tuned encoder; half of the smaller fall of the two baselines
    minus the fall.
    """
    groups = {}
    for task, scores, no_room in edge_probes(rows):
        for model in [name for name in TASKS if name in scores]:
            change = scores[model] - scores[BASE]
            fall = scores[BASE] - scores[[LEXICAL, RANDOMISED]].max(axis=1)
            groups[f"{edge_title(task)} after {title(model)}", model] = no_room or {
                "change of F1": of_probes(scores, change),
                "half of the baselines' fall, minus the fall": of_probes(scores, fall / 2 + change),
            }
    return groups


# %% tags=["hide-input", "claim"]
SYNTAX, NOT_SYNTAX = ("constituents", "dependencies"), ("coreference", "spr", "relations")
PROBING_NOISE = 0.005  # Table 1's caption: half a point between probing runs


@run.claim(
    "dep-helps-syntax",
    says="The parser's encoder gains on constituents and dependencies and loses on coreference, "
    "proto-roles and relations.",
    place="section 4.1, Table 1",
    printed="+0.2 to +4.4 points; the others −2.5 to −1.2",
    record=mixed,
    unit=F1,
    per="probe",
    halves={
        "gains on syntax": [edge_title(task) for task in SYNTAX],
        "loses elsewhere": [edge_title(task) for task in NOT_SYNTAX],
    },
)
def what_parsing_does_to_probes(rows):
    """Change of micro-F1 in the parser's encoder: up for the two syntactic tasks, down for the
    others. One run of each probe decides nothing that lies within the paper's own spread between
    probing runs.
    """
    check_present(rows["model"], [PARSER], "model of")
    groups = {}
    for task, scores, no_room in edge_probes(rows[rows["task"].isin(SYNTAX + NOT_SYNTAX)]):
        sign = 1 if task in SYNTAX else -1
        change = of_probes(scores, sign * (scores[PARSER] - scores[BASE]))
        if scores["seed"].nunique() == 1 and abs(change.estimate) <= PROBING_NOISE:
            change = change.at_least().at_most()
        part = "change of F1" if task in SYNTAX else "minus the change of F1"
        groups[edge_title(task), PARSER] = no_room or {part: change}
    return groups


# %% [markdown]
# The same probes on the top layer alone, which the task's own head reads:

# %% tags=["hide-input"]
show_probes("Appendix A", "top", "the top layer alone", probes.query("layers == 'top'"))

# %% [markdown]
# A {term}`codelength` {cite:p}`voita2020` also counts how much data a probe needs
# ({py:func}`fivelenses.lenses.mdl.online_code`). Labels are sent in growing blocks, each coded by a
# probe that was trained on all blocks before it.

# %% tags=["hide-input", "claim"]
over = {"edge_task": settings.codelength_tasks, "model": names}
sample = {"targets": settings.probe_targets, "seeds": settings.probe_seeds}
codes = run.measure("codelengths", of=fine_tuned_on, each="seed", over=over, probe=sample)

# %% tags=["hide-input"]
rows = select(codes)
rows = rows.assign(bits=rows["bits"] / 1000, uniform=rows["uniform"] / 1000)
table = rows.pivot_table(index=["task", "uniform"], columns="model", values="bits", sort=False)
table = table.reset_index()
headers = {BASE: PRETRAINED, "uniform": "uniform code"}
run.table(
    "Appendix B",
    table,
    "Codelengths of the labels, in thousands of bits (uniform: as many for each label): an online "
    "code by a perceptron that reads the mean vector of each span, averaged over all layers.",
    columns={one: headers.get(one, title(one)) for one in table.columns},
    formats={one: edge_title if one == "task" else "{:.2f}" for one in table.columns},
    key="codelengths",
)

# %% tags=["hide-input", "claim"]
CHEAPER = f"{edge_title('dependencies')} after {title(PARSER)}"
OTHER_CODES = [f"{edge_title(task)} after {title(model)}" for task in PAPER for model in TASKS]
OTHER_CODES.remove(CHEAPER)
LONGER, SHORTER = "bits before over bits after", "bits after over bits before"
SAVED = f"{LONGER}, dependencies after parsing"
A_TENTH = "a tenth: the paper speaks of minimal differences and draws them"


# %% tags=["hide-input", "claim"]
@run.claim(
    "mdl-same",
    says="Codelengths hardly change, except that the parser makes dependencies, and only them, "
    "cheaper.",
    place="section 4.1, appendix B",
    record=codes,
    above={LONGER: 1 / 1.1, SHORTER: 1 / 1.1, SAVED: 1.1},
    because={LONGER: A_TENTH, SHORTER: A_TENTH, SAVED: "more than what counts as no difference"},
    unit="ratio",
    per="code",
    halves={
        "codelengths hardly change": OTHER_CODES,
        "parsing makes dependencies cheaper": [CHEAPER],
    },
)
def how_codelengths_change(rows):
    """Bits before fine-tuning over bits after, and the other way round; the former for dependencies
    after parsing.
    """
    check_present(rows["model"], [PARSER], "model of")
    groups = {}
    for task, of_task in rows[rows["task"].isin(PAPER)].groupby("task", sort=False):
        bits = side_by_side(of_task, "bits", "seed")
        for model in [name for name in TASKS if name in bits]:
            parts = {LONGER: of_probes(bits, bits[BASE] / bits[model], log=True)}
            if (name := f"{edge_title(task)} after {title(model)}") == CHEAPER:
                parts = {SAVED: parts[LONGER]}
            elif of_probes(bits, bits[RANDOMISED] / bits[BASE], log=True).estimate <= 1.1:
                parts = f"random weights make {edge_title(task)} no dearer than by a tenth"
            else:
                parts |= {SHORTER: of_probes(bits, bits[model] / bits[BASE], log=True)}
            groups[name, model] = parts
    return groups


# %% [markdown]
# ## Is the tree still there? Structural probes
#
# A {term}`structural probe` {cite:p}`hewitt2019` is a linear map $B$, trained so that
# $\lVert B(h_i - h_j) \rVert^2$ is the distance of words $i$ and $j$ in the syntax tree, or
# $\lVert B h_i + b \rVert^2$ the depth of word $i$ (see
# {py:func}`fivelenses.lenses.structural_probe.fit`). The offset $b$ is ours: a length depends on
# the origin, a distance does not. Depths of the published runs were still measured without it. Each
# layer of each encoder has its own probe; its {term}`UUAS` says how much of the tree it finds.

# %% tags=["hide-input", "claim"]
over = {"model": names if settings.structural_sentences else ()}
structure = run.measure("structure", of=fine_tuned_on, each="seed", over=over)


# %% tags=["hide-input"]
def best(rows, value):
    """The best layer of each encoder, in words."""
    greatest = rows.groupby("model", sort=False)[value].max()
    return "; ".join(f"{title(model)} {one:.2f}" for model, one in greatest.items())


def draw_structure(kind, name, tree):
    rows = with_controls(structure.query("kind == @kind"), "spearman", by="model")
    rows = rows.replace({"model": {BASE: PRETRAINED}})
    axes = dict(y_label=f"Spearman, {kind}", layout=Layout(bottom=None))
    run.figure(
        name,
        curves(rows, "spearman", by="model", **axes),
        f"Spearman's correlation of predicted and true {kind}s in the syntax tree, by layer (0: "
        f"embeddings), mean over sentence lengths from 5 to 50. Best {tree} of a layer: "
        f"{best(rows, 'tree')}.{controls_in_words(rows, 'spearman', 'model')}",
    )


draw_structure("distance", "Figure 1a", "UUAS")
draw_structure("depth", "Figure 1b", "root accuracy")


# %% tags=["hide-input", "claim"]
KEPT = ("change of the correlation", "minus the change of the correlation")
HALVES_OF_CURVES = {
    "hardly changes after MNLI and SQuAD": [
        f"{title(model)}, {kind}" for model in PAIRS for kind in ("distance", "depth")
    ],
    "improves after parsing": [f"{title(PARSER)}, {kind}" for kind in ("distance", "depth")],
}


def context(rows):
    """What context adds: the best layer of the pre-trained encoder minus its embeddings."""
    words_alone = rows["layer"] == 0
    return rows.loc[~words_alone, BASE].max() - rows.loc[words_alone, BASE].mean()


def share_of_context(change):
    return dict(zip(KEPT, (change, -change), strict=True))


def structure_changes(rows, model, last):
    """The parts of one encoder's change `x` of the correlation."""
    if model != PARSER:
        inner = rows.assign(x=rows["x"].where(rows["layer"].between(1, last * 5 / 6)))
        return over_models(inner, lambda one: share_of_context(one["x"].mean() / context(one)))
    upper = rows[rows["layer"] >= last * 5 / 12]
    early = upper[upper["layer"] <= max(last / 2, upper["layer"].min())]
    return {
        "rise from 5/12 of the depth on": over_models(upper, lambda one: one["x"].mean()),
        "rise from 5/12 to half of the depth": over_models(early, lambda one: one["x"].mean()),
    }


# %% tags=["hide-input", "claim"]
@run.claim(
    "structure-kept",
    says="Structural probes hardly change for MNLI and SQuAD, except at the top, and improve for "
    "the parser from about layer 5 of 12.",
    place="section 4.1, Figure 1",
    printed="the parser improves from layer 5 of 12",
    exhibits=("Figure 1a", "Figure 1b"),
    record=structure,
    above=dict.fromkeys(KEPT, -0.1),
    because=dict.fromkeys(KEPT, A_TENTH),
    unit=dict.fromkeys(KEPT, "share of what context adds to the correlation"),
    per="curve",
    halves=HALVES_OF_CURVES,
)
def how_structure_changes(rows):
    """Mean change of Spearman's correlation below the last sixth of the layers, as a share of what
    context adds (the best layer of the pre-trained encoder minus its embeddings); for the parser,
    from 5/12 of the depth on.
    """
    check_present(rows["model"], [PARSER], "model of")
    last, groups = rows["layer"].max(), {}
    if last < 2:
        raise CannotTest("an encoder of one layer has none below its last")
    for kind, of_kind in rows.groupby("kind", sort=False):
        wide = side_by_side(of_kind, "spearman", "layer")
        adds = over_models(wide, context)
        too_little = f"context adds {printed(adds.estimate, '.3f')} to the correlation of {kind}s"
        too_little += f", not clearly more than {ROOM}"
        for model in [name for name in TASKS if name in wide]:
            changed = wide.assign(x=wide[model] - wide[BASE]).dropna(subset=["x"])
            judged = model == PARSER or adds.low > ROOM
            parts = structure_changes(changed, model, last) if judged else too_little
            groups[f"{title(model)}, {kind}", model] = parts
    return groups


# %% [markdown]
# ## Where it changes: representational similarity
#
# {term}`Representational similarity <RSA>` {cite:p}`kriegeskorte2008` trains nothing: do two
# encoders find the same pairs of tokens alike? It is Pearson's correlation of their two matrices of
# cosines, in ten lines:

# %% tags=["method"]
import numpy as np

from fivelenses.lenses.similarities import rsa

chance = np.random.default_rng(0)
x = chance.normal(size=(40, 8))  # forty tokens in one encoder
y = x + chance.normal(size=(40, 8))  # and in another
of_x, of_y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
pairs = np.triu_indices(40, k=1)
by_hand = np.corrcoef((of_x @ of_x.T)[pairs], (of_y @ of_y.T)[pairs])[0, 1]
{"by hand": round(float(by_hand), 6), "library": round(rsa(x, y), 6)}

# %% tags=["hide-input", "claim"]
similarities = run.measure("similarities", of=all_layers, each=("encoder", "task", "seed"))

# %% [markdown]
# We compare each encoder with the one that it was fine-tuned from, on tokens of random sentences.
#
# :::{admonition} Predict, then look
# :class: tip
# Which task changes the encoder in the most layers?
#
# - **a** Inference, which needs the meaning of two sentences.
# - **b** Question answering, which marks a span in a long passage.
# - **c** Parsing, which needs a decision for every word.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
rows = with_controls(similarities, "similarity", by="model")
axes = dict(y_label="RSA to pre-trained", nulls={"null": "permuted"})
# A record from before there were several seeds has no `tuned_seed`.
of_models = rows.filter(["model", "pretrained", "tuned_seed"]).drop_duplicates()
number = of_models.groupby("model").size().max()
run.figure(
    "Figure 2",
    curves(rows, "similarity", by="model", **axes),
    "RSA of each fine-tuned encoder to its pre-trained one, per layer (0: embeddings), on "
    f"{rows['tokens'].max():,} tokens of running text, special ones left out "
    f"({'' if number == 1 else 'mean and range over '}{counted(number, 'model')} per task, from "
    f"{counted(len(set(rows['pretrained'])), 'pre-training')}). Dashed: the same with tokens "
    f"permuted.{controls_in_words(rows, 'similarity', 'model')}",
)


# %% tags=["hide-cell", "claim"] mystnb={"code_prompt_show": "Show how the claim is measured"}
def thirds(rows, model):
    """Mean loss of similarity, and mean layer over the depth, in each third of the layers."""
    layers, loss = rows["layer"].to_numpy(), 1 - rows[model].to_numpy()
    depth = layers.max()
    third = (layers > depth / 3).astype(int) + (layers > depth * 2 / 3)
    inside = [third == number for number in range(3)]
    return [loss[one].mean() for one in inside], [layers[one].mean() / depth for one in inside]


def gathers_on_top(rows, model):
    """One slope minus twice the other, as thirds of 8 layers are not equally far apart."""
    (low, middle, top), places = thirds(rows, model)
    upper = (top - middle) / (places[2] - places[1])
    lower = (middle - low) / (places[1] - places[0])
    return (upper - 2 * lower) / 3


def losses_of_similarity(rows, model):
    (low, _, top), _ = thirds(rows, model)
    grows = {"loss in the top third minus the bottom third": top - low}
    if model == PARSER:
        return grows
    part = "rise of the loss towards the top third, minus twice that towards the middle third"
    return {part: gathers_on_top(rows, model)} | grows


# %% tags=["hide-input", "claim"]
def before(first, second):
    return f"{title(first)} before {title(second)}"


ORDER = {before(*pair): pair for pair in combinations(TASKS, 2)}


def one_before_other(rows, first, second):
    """How much more the other loses below the last layer, which depends on the output's form."""
    layers = rows["layer"].to_numpy()
    difference = (rows[first].to_numpy() - rows[second].to_numpy())[layers < layers.max()].mean()
    return {"the other's loss minus this one's, without the last layer": difference}


# %% tags=["hide-cell", "claim"] mystnb={"code_prompt_show": "Show what the paper claims"}
@run.claim(
    "top-layers-change",
    says="Similarity to the pre-trained encoder falls in the top layers: least for MNLI, then "
    "SQuAD, most for the parser.",
    place="section 5.1, Figure 2",
    printed="0.84 ± 0.02 in MNLI's last layer but one; the parser departs at layers 4 and 5 of 12",
    record=similarities,
    unit="loss of RSA similarity",
    per="case",
    halves={
        "in the top layers": list(map(title, TASKS)),
        "least for MNLI, then SQuAD, most for the parser": list(ORDER),
    },
)
def where_similarity_is_lost(rows):
    """Loss of similarity between thirds of the layers: the rise from the middle to the top minus
    twice that from the bottom to the middle (MNLI and SQuAD; 0 where the upper rise is twice the
    lower, less on a straight line), and top minus bottom; difference of two tasks.
    """
    check_present(rows["model"], [PARSER], "model of")
    if rows["layer"].max() < 3:
        raise CannotTest("an encoder of one or two layers has no bottom, middle and top third")
    leading, groups = rows["pretrained"].iloc[0], {}
    wide = side_by_side(rows[rows["layer"] > 0], "similarity", "pretrained", "layer")
    cases = {title(task): ((task,), losses_of_similarity) for task in TASKS}
    cases |= {name: (pair, one_before_other) for name, pair in ORDER.items()}
    for name, (on, measure) in cases.items():
        curves_of = wide.dropna(subset=list(on)) if set(on) <= set(wide) else wide[:0]
        if curves_of.empty:
            continue
        encoders = ["" if one == leading else one for one in curves_of["pretrained"].unique()]
        tasks_needed = [of_size(task, None, encoder) for encoder in encoders for task in on]
        lost = over_models(curves_of, lambda one, on=on, measure=measure: measure(one, *on))
        groups[name, *tasks_needed] = lost
    return groups


# %% [markdown]
# Do the encoders change more on their own task's input?

# %% tags=["hide-input", "claim"]
by_input = run.measure("similarities_by_input", of=probed, each=("task", "seed"))
# On running text the same encoders were measured above.
both = [similarities[similarities["pretrained"].isin(by_input["pretrained"])], by_input]
on_inputs = next((one for one in both if isinstance(one, Missing)), None)
on_inputs = pd.concat(both) if on_inputs is None else on_inputs

# %% tags=["hide-input"]
INPUTS = {RUNNING_TEXT: "running text", "mnli, premise alone": "MNLI, premise alone"}
INPUTS |= {"squad, question alone": "SQuAD, question alone"}
for task in [one for one in PAIRS if one in settings.tasks]:
    rows = with_controls(on_inputs.query("model == @task"), "similarity", by="input")
    rows, axes = rows.replace({"input": INPUTS}), axes | dict(nulls={}, layout=Layout(bottom=None))
    run.figure(
        f"Figure 5, {title(task)}",
        curves(rows, "similarity", by="input", **axes),
        f"RSA of the {title(task)} model to its pre-trained encoder, by input (at most "
        f"{rows['tokens'].max():,} tokens of each)."
        f"{controls_in_words(rows, 'similarity', 'input')}",
        if_empty=f"no encoder that was fine-tuned on {title(task)} was measured on its input",
    )


# %% tags=["hide-input", "claim"]
THAN_TEXT = "similarity on running text minus that on the task's own input"
THAN_OTHER = "similarity on the other task's input minus that on the task's own"


def less_on_own(rows, own):
    """How much less similar a model is on its own input."""
    similarity, of_own = rows["similarity"].to_numpy(), (rows["input"] == own).to_numpy()
    return similarity[~of_own].mean() - similarity[of_own].mean()


# %% tags=["hide-input", "claim"]
@run.claim(
    "in-domain-changes-more",
    says="Representations change more on the task's own kind of input than on running text or on "
    "another task's.",
    place="section 6, Figure 5",
    exhibits=("Figure 5, MNLI", "Figure 5, SQuAD"),
    record=on_inputs,
    unit="RSA in [-1, 1]",
    per="task",
    if_empty="no encoder was fine-tuned on a task whose input is a pair of texts",
    variants={"top third of the layers": {"share": 1 / 3}, "all layers": {"share": 1}},
)
def how_much_more_changes_on_own_input(rows, share=1 / 2):
    """Similarity in the upper half of the layers on other input minus that on the task's own."""
    upper, groups = rows[rows["layer"] > rows["layer"].max() * (1 - share)], {}
    for model in rows.loc[rows["input"] != RUNNING_TEXT, "model"].unique():
        of_model = upper[upper["model"] == model]
        other_task = next(name for name in PAIRS if name != model)
        what = f"similarity of the encoder of {title(model)} on"
        check_present(of_model["input"], [RUNNING_TEXT, other_task, model], what)
        parts = {}
        for other, part in ((RUNNING_TEXT, THAN_TEXT), (other_task, THAN_OTHER)):
            inputs = of_model[of_model["input"].isin([other, model])]
            parts[part] = over_models(inputs, lambda one, own=model: less_on_own(one, own))
        groups[model] = parts
    return groups


# %% [markdown]
# ## How many layers have to change? Freezing
#
# If a layer hardly changes, freezing it should cost little.


# %% tags=["hide-input", "claim"]
def varied(position):
    """The models of the run's encoder that differ from a whole one in this alone."""
    if isinstance(similarities, Missing):
        return similarities  # which have a row for every layer
    rows = models[models["encoder"] == settings.encoder]
    layers = int(similarities.loc[similarities["pretrained"] == settings.encoder, "layer"].max())
    rows = rows.assign(layers=layers, kept=rows["truncated"].where(rows["truncated"] != -1, layers))
    rows = rows[rows["kept"] == layers] if position == "frozen" else rows[rows["frozen"] == -1]
    return rows.groupby("task").filter(lambda of_task: of_task[position].nunique() > 1)


def half_lost(position):
    """With half of the layers frozen or kept, the share lost of the gain over the null rate: a
    ratio of means, linearised, so that a seed that hardly gains does not blow it up.
    """
    rows = varied(position)
    if lacking := [one for one in (rows, by_example) if isinstance(one, Missing)]:
        return lacking[0]
    rows["whole"] = rows[position] == (-1 if position == "frozen" else rows["layers"])
    half = (rows[position] - rows["layers"] / 2).abs() < 1
    rows = rows[rows["task"].isin(TASKS) & (rows["whole"] | half)]
    if rows.empty:
        return rows
    predicted = by_example[by_example["address"].isin(rows["address"])]
    scored = scores_by_fold(predicted, ["address"])
    scored["null"] = scores_by_fold(predicted.assign(score=predicted["null"]), ["address"])["score"]
    rows = rows[["task", "seed", position, "whole", "address"]].merge(scored, on="address")
    whole, half = rows[rows["whole"]], rows[~rows["whole"]]
    lost = half.merge(whole, on=["task", "seed", "fold"], suffixes=("", "_whole"))
    lost["drop"] = lost["score_whole"] - lost["score"]
    lost["gain"] = lost["score_whole"] - lost["null_whole"]
    means = lost[lost["fold"] == WHOLE].groupby(["task", position])[["drop", "gain"]].mean()
    mean = lost[["task", position]].join(means, on=["task", position])
    share, gain = mean["drop"] / mean["gain"], mean["gain"].where(mean["gain"] > 0)
    return lost.assign(lost=share + (lost["drop"] - share * lost["gain"]) / gain)


# %% tags=["hide-input"]
def draw_ablated(name, position, label, caption):
    rows = varied(position)
    metrics = []
    for task, null in rows.groupby("task", sort=False)["null_rate"].first().items():
        metrics.append(f"{title(task)} {catalogue.find(task).score_name} (null {null:.2f})")
    layout = Layout(panels="task", bottom=None)  # each task has a score of its own kind
    seeds = len(set(rows["seed"]))
    drawn = dict(x=position, x_label=label, y_label="score", layout=layout)
    run.figure(
        name,
        curves(rows, "score", by="task", **drawn),
        f"{caption} {', '.join(metrics)}; {'mean and range of ' * (seeds > 1)}"
        f"{counted(seeds, 'seed')}.",
        if_empty="only whole encoders were fine-tuned",
    )


FROZEN = (
    "Score with embeddings and bottom layers frozen, by the highest frozen layer k (−1: none; 0: "
    "embeddings alone; the paper counts its layers from 0)."
)
draw_ablated("Figure 3", "frozen", "highest frozen layer", FROZEN)

# %% tags=["hide-input", "claim"]
NOT_HALVED = "no encoders of the parser and another task were fine-tuned with half of their layers"
MORE = "the parser's loss minus this task's, or minus nothing where this task gains"
AT_HALF = dict(
    above={"minus the loss": -0.1},
    because={"minus the loss": "a tenth of what fine-tuning gains over the null rate"},
    unit="share of the gain over the null rate",
    per="case",
    no_twin="each ablated model is trained by itself, and a model moved at random is not trained",
    halves={
        "little for MNLI and SQuAD": list(map(title, PAIRS)),
        "more for the parser": [f"{title(PARSER)} beside {title(task)}" for task in PAIRS],
    },
)


# %% tags=["hide-input", "claim"]
def loss(rows, sign=1):
    return estimate(rows, lambda one: sign * one["lost"].mean())


def lost_at_half(rows, position):
    """Minus the loss of MNLI and of SQuAD, and the parser's loss minus theirs where they lose."""
    lost, groups = {task: of_task for task, of_task in rows.groupby("task")}, {}
    others = [task for task in PAIRS if task in lost]
    if PARSER not in lost or not others:
        raise CannotTest(f"{NOT_HALVED} {position}")
    for task in others:
        both = f"{title(PARSER)} beside {title(task)}"
        for name, on in ((title(task), [task]), (both, [task, PARSER])):
            if idle := [title(one) for one in on if lost[one]["lost"].isna().any()]:
                groups[name, *on] = f"no gain over the null rate in {' and '.join(idle)}"
            elif on == [task]:
                groups[name, *on] = {"minus the loss": loss(lost[task], -1)}
            else:
                own, parser = loss(lost[task]), loss(lost[PARSER])
                groups[name, *on] = {MORE: parser - own if own.estimate > 0 else parser}
    return groups


# %% tags=["hide-input", "claim"]
@run.claim(
    "few-layers-suffice",
    says="Freezing most of the bottom layers costs MNLI and SQuAD little, and the parser more.",
    place="section 5.2, Figure 3",
    printed="MNLI drops with the last two of 12 layers frozen, SQuAD with three or fewer free",
    record=half_lost("frozen"),
    exhibits=("Figure 3",),
    if_empty=f"{NOT_HALVED} frozen",
    **AT_HALF,
)
def lost_with_half_frozen(rows):
    """Share of the gain over the null rate that is lost with half of the layers frozen, and the
    parser's minus that.
    """
    return lost_at_half(rows, "frozen")


# %% [markdown]
# ## How many layers are needed? Truncation

# %% tags=["hide-input"]
draw_ablated("Figure 4", "kept", "layers kept", "Score with the first k layers alone.")


# %% tags=["hide-input", "claim"]
@run.claim(
    "shallow-truncation",
    says="Half of the layers come near the full score on MNLI and SQuAD; the parser needs more of "
    "them.",
    place="section 5.2, Figure 4",
    printed="near the full score by layer 6 of 12; three layers suffice for MNLI, five for SQuAD",
    record=half_lost("kept"),
    exhibits=("Figure 4",),
    if_empty=f"{NOT_HALVED} kept",
    **AT_HALF,
)
def lost_with_half_kept(rows):
    """Share of the gain over the null rate that is lost with half of the layers, and the parser's
    minus that.
    """
    return lost_at_half(rows, "kept")


# %% [markdown]
# ## The claims
#
# The thresholds are ours; {doc}`the ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.finish()

# %% [markdown]
# **Limits.** The published runs of all-MiniLM and English BERT probed one model per task; other
# seeds of a probe say nothing about other fine-tunings.
#
# Three [exercises](/exercises.md#chapter-5-what-is-kept-and-where-it-changes) go with this chapter.
