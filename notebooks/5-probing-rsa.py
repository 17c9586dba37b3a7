# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What is kept, and where it changes
#
# **The question.** Does an encoder that is fine-tuned on inference or on questions forget the syntax and the semantic
# roles that it learned in pre-training? And which of its layers change? {cite:t}`merchant2020` ask with
# {term}`probes <probe>`, with representational similarity, and by freezing or removing layers.
#
# **The answer in numbers.** The paper claims that probes lose little by fine-tuning (`no-forgetting`:
# {glue:text}`no_forgetting_verdict`, in {glue:text}`no_forgetting_held` cases), that mainly the top layers change
# (`top-layers-change`: {glue:text}`top_layers_change_verdict`), and that few need to (`few-layers-suffice`:
# {glue:text}`few_layers_suffice_verdict`). [The last section](#the-claims) has all claims;
# {glue:text}`claims_reproduced` are reproduced here.
#
# *You need* the {doc}`primer </primer>` and dependency trees. *Reading*: 20 minutes. *Running*: about 5 minutes on the
# toy world with two cores.

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

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.merchant2020 import claims, figures

run = runs.begin(5, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# One pre-trained encoder learns three tasks: inference (MNLI, a label for a pair of sentences), question answering
# (SQuAD, a span of a passage, read in overlapping windows) and dependency parsing (a tree by a biaffine parser, scored
# by {term}`LAS`). Encoders are also tuned with their bottom layers {term}`frozen`, and with their top layers removed.
# Of several pre-trainings, similarity is measured in all, the rest in the first.

# %% tags=["hide-input"]
models = run.measure("models", each=("encoder", "task"))
run.exhibit(figures.appendix_c, models)

# %% [markdown]
# A task takes part in the claims only if its score is above the {term}`null rate` by clearly more than a tenth of what
# the paper's models gain, and, where a run has one, above a bag of words.

# %% tags=["hide-input"]
words = run.measure("words_by_example", over=settings.training_sets)
scores = run.measure("by_example", each=("task", "seed"))
run.gate(models, scores, gains=claims.gains(models), words=words)

# %% [markdown]
# ## What can be read: edge probes
#
# An {term}`edge probe` {cite:p}`tenney2019` predicts the label of one or two spans from a frozen encoder. It mixes the
# layers with learned weights, pools a span by attention, and has one hidden layer
# ({py:func}`fivelenses.lenses.edge_probe.fit`). Two baselines show how much comes from the encoder: its embeddings
# without context (lexical), and the same network with random weights (randomised). Where a run has it, the
# {term}`twin` of the parser's encoder shows the effect of distance alone. SRL are semantic roles, SPR asks what holds
# of a role's filler (such as being aware), and DPR to which noun a pronoun refers. A probe whose lexical baseline is
# within four points of the encoder cannot show forgetting.

# %% tags=["hide-input"]
each_model = {"model": ("base", *settings.tasks)}
over = {"edge_task": settings.edge_tasks} | each_model
probes = run.measure("edge_probing", of=settings.tuned_on, each="seed", over=over)
run.exhibit(figures.table_1, probes)

# %% [markdown]
# The same probes on the top layer alone, which the task's own head reads:

# %% tags=["hide-input"]
run.exhibit(figures.appendix_a, probes)

# %% [markdown]
# A {term}`codelength` {cite:p}`voita2020` also counts how much data a probe needs
# ({py:func}`fivelenses.lenses.mdl.online_code`). Labels are sent in growing blocks, each coded by a probe that was
# trained on all blocks before it.

# %% tags=["hide-input"]
over = {"edge_task": settings.codelength_tasks} | each_model
codes = run.measure("codelengths", of=settings.tuned_on, each="seed", over=over)
run.exhibit(figures.appendix_b, codes)

# %% [markdown]
# ## Is the tree still there? Structural probes
#
# A {term}`structural probe` {cite:p}`hewitt2019` is a linear map $B$, trained so that $\lVert B(h_i - h_j) \rVert^2$ is
# the distance of words $i$ and $j$ in the syntax tree, or $\lVert B h_i + b \rVert^2$ the depth of word $i$
# ({py:func}`fivelenses.lenses.structural_probe.fit_distance`). The offset $b$ is ours: a length depends on where the
# origin lies, a distance does not. Depths of the published runs were still measured without it. Each layer of each
# encoder has its own probe; its {term}`UUAS` says how much of the tree it finds.

# %% tags=["hide-input"]
structure = run.measure("structure", of=settings.tuned_on, each="seed", over=each_model)
run.exhibit(figures.figure_1, structure, kind="distance")

# %% tags=["hide-input"]
run.exhibit(figures.figure_1, structure, kind="depth")

# %% [markdown]
# ## Where it changes: representational similarity
#
# {term}`Representational similarity <RSA>` {cite:p}`kriegeskorte2008` trains nothing: do two encoders find the same
# pairs of tokens alike? It is Pearson's correlation of their two matrices of cosines, in ten lines:

# %% tags=["method"]
import numpy as np

from fivelenses.lenses.rsa import similarity as rsa

chance = np.random.default_rng(0)
x = chance.normal(size=(40, 8))  # forty tokens in one encoder
y = x + chance.normal(size=(40, 8))  # and in another
of_x, of_y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
pairs = np.triu_indices(40, k=1)
by_hand = np.corrcoef((of_x @ of_x.T)[pairs], (of_y @ of_y.T)[pairs])[0, 1]
{"by hand": round(float(by_hand), 6), "library": round(rsa(x, y), 6)}

# %% [markdown]
# We compare each encoder with the one that it was tuned from, on tokens of random sentences.
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
similarities = run.measure("similarities", of=settings.whole, each=("encoder", "task", "seed"))
run.exhibit(figures.figure_2, similarities)

# %% [markdown]
# Do the encoders change more on their own task's input?

# %% tags=["hide-input"]
by_input = run.measure("similarities_by_input", of=settings.probed, each=("task", "seed"))
for task in ("mnli", "squad"):
    if task in settings.tasks:
        run.exhibit(figures.figure_5, similarities, by_input, model=task)

# %% [markdown]
# ## How many layers have to change? Freezing
#
# If a layer hardly changes, freezing it should cost little.

# %% tags=["hide-input"]
run.exhibit(figures.figure_3, models, similarities, encoder=settings.encoder)

# %% [markdown]
# ## How many layers are needed? Truncation

# %% tags=["hide-input"]
run.exhibit(figures.figure_4, models, similarities, encoder=settings.encoder)

# %% [markdown]
# ## The claims
#
# The thresholds are ours; {doc}`the ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# **Limits.** The published runs probed one model per task; other seeds of a probe say nothing about other fine-tunings.
# In the paper, probes of one model differ by about half a point.
#
# Three [exercises](/exercises.md#chapter-5-what-is-kept-and-where-it-changes) go with this chapter.
