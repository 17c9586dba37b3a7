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
# **The question.** An encoder that was fine-tuned on inference or on questions, does it forget the syntax and the
# roles that pre-training gave it? And which of its layers does it change at all? {cite:t}`merchant2020` ask with
# probes, with representational similarity, and by taking layers away.
#
# **The answer here.** Of the paper's eight claims, {glue:text}`claims_reproduced` are reproduced in this run. Probes
# lose little by fine-tuning (`no-forgetting`): {glue:text}`no_forgetting_verdict`, it holds in
# {glue:text}`no_forgetting_held` cases. Similarity falls in the top layers (`top-layers-change`):
# {glue:text}`top_layers_change_verdict`. Few layers need to change (`few-layers-suffice`):
# {glue:text}`few_layers_suffice_verdict`. [The last section](#the-claims) lists all claims with their numbers.

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
frozen = None
truncated = None
ablated = None
edge_tasks = None
probe_targets = None
probe_learning_rate = None
probe_validate_every = None
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
from fivelenses.checkpoints import predictions, tables
from fivelenses.papers.merchant2020 import claims, figures, measure, similarity

run = runs.begin(5, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# Three tasks of different kinds are learned from one pre-trained encoder: natural language inference (MNLI, a label
# for a pair of sentences), extractive question answering (SQuAD, a span of a passage) and dependency parsing (a tree
# over a sentence, with a biaffine parser on the encoder). A long passage is read in overlapping windows; a tree is the
# best one with a single root. The same encoders are also tuned with their bottom layers frozen and with their top
# layers removed, and the whole is done from several independently pre-trained encoders, so that what one
# pre-training brings about by chance can be told from what fine-tuning does.

# %%
models = run.measure(tables.models)
run.exhibit(figures.appendix_c, models)

# %% [markdown]
# A task that the ordinary fine-tuned models did not learn takes no part in any claim: what its encoder shows is due to
# training and not to the task. A task counts as learned if its score is clearly more than two points above the null
# rate, with a 95 % interval over seeds and development examples.

# %%
run.gate(models, run.measure(predictions.by_example, each=("task", "seed")))

# %% [markdown]
# ## What can be read: edge probes
#
# A probe is shown one span of words or two, as vectors of a frozen encoder, and says what they are: a part of speech, a
# phrase, a relation, a kind of entity, a role, coreferent or not. It mixes the layers with weights that it learns,
# pools a span by attention, and has one hidden layer ({py:func}`fivelenses.lenses.edge_probe.fit`). Two baselines
# say what is the encoder's doing: its embeddings alone, without context (lexical), and the same network with random
# weights (randomised). A control says what mere distance does: a *twin*, the parser's encoder moved as far from the
# pre-trained one as training moved it, in random directions. The tasks are made of open data where OntoNotes is not at
# hand; the table names them.

# %%
probes = run.measure(measure.edge_probing, of=settings.probed, over={"edge_task": settings.edge_tasks})
run.exhibit(figures.table_1, probes)

# %% [markdown]
# The top layer alone is what the task's head reads; there the changes are larger.

# %%
run.exhibit(figures.appendix_a, probes)

# %% [markdown]
# A score says how well a probe does in the end, a codelength also how much it has to see before
# ({py:func}`fivelenses.lenses.mdl.online_code`): labels are sent in growing blocks, each coded by a probe that was
# trained on all blocks before it.

# %%
codes = run.measure(measure.codelengths, of=settings.probed, over={"edge_task": settings.codelength_tasks})
run.exhibit(figures.appendix_b, codes)

# %% [markdown]
# ## Is the tree still there? Structural probes
#
# A linear map $B$ is trained so that $\lVert B(h_i - h_j) \rVert^2$ is the distance of words $i$ and $j$ in the
# syntax tree, or $\lVert B h_i \rVert^2$ the depth of word $i$
# ({py:func}`fivelenses.lenses.structural_probe.fit_distance`), one for each layer and encoder.

# %%
structure = run.measure(measure.structure, of=settings.probed, over={"model": ("base", *settings.tasks)})
run.exhibit(figures.figure_1, structure, kind="distance")

# %%
run.exhibit(figures.figure_1, structure, kind="depth")

# %% [markdown]
# ## Where it changes: representational similarity
#
# Probes see what they are trained to see. Representational similarity asks nothing of the kind: do two encoders find
# the same pairs of tokens alike? It is Pearson's correlation of the two matrices of cosines
# ({py:func}`fivelenses.lenses.rsa.similarity`), each encoder against the one that it was tuned from, on tokens drawn
# from random sentences. [CLS] and [SEP] do not count: short texts have a larger share of them.

# %%
similarities = run.measure(similarity.similarities, of=settings.whole, each="encoder")
run.exhibit(figures.figure_2, similarities)

# %% [markdown]
# Running text is not what these encoders were tuned on. On input of their own kind they change more, or so the paper
# finds.

# %%
by_input = run.measure(similarity.similarities_by_input, of=settings.probed)
for task in ("mnli", "squad"):
    if task in settings.tasks:
        run.exhibit(figures.figure_5, similarities, by_input, model=task)

# %% [markdown]
# ## How many layers have to change? Freezing
#
# If a layer hardly changes, keeping it from changing should cost little.

# %%
run.exhibit(figures.figure_3, models, similarities, encoder=settings.encoder)

# %% [markdown]
# ## How many layers are needed? Truncation

# %%
run.exhibit(figures.figure_4, models, similarities, encoder=settings.encoder)

# %% [markdown]
# ## The claims
#
# Each sentence of the paper is made one or more signed numbers, positive in the paper's direction, with a threshold
# that is ours. A number has a 95 % interval over models and examples where the run kept what that takes. A claim is
# *reproduced* if it fails nowhere and holds in two thirds of the groups, *contradicted* if it holds nowhere and fails
# in two thirds, *mixed* if it holds in some and fails in others, *open* otherwise, and some *cannot be tested*.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Probes.** F1 changes by {glue:text}`no_forgetting_value` (`no-forgetting`: {glue:text}`no_forgetting_verdict`);
#   in the parser's encoder, by {glue:text}`dep_helps_syntax_value` in the paper's direction (`dep-helps-syntax`:
#   {glue:text}`dep_helps_syntax_verdict`). Codelengths shrink by {glue:text}`mdl_same_value` (a share, `mdl-same`:
#   {glue:text}`mdl_same_verdict`), the correlations of structural probes change by {glue:text}`structure_kept_value`
#   (`structure-kept`: {glue:text}`structure_kept_verdict`). One model per task is probed: these results are of that
#   model, and probing seeds say nothing about other fine-tunings.
# - **Room.** A probe whose lexical baseline is within four points of the encoder has nothing to lose and takes no part.
# - **Similarity.** `top-layers-change` ({glue:text}`top_layers_change_verdict`) asks whether the loss rises faster
#   towards the top third of the layers than towards the middle third, which a straight line does not; its models are
#   the pre-trainings. `in-domain-changes-more` ({glue:text}`in_domain_changes_more_verdict`) compares a task's input
#   with running text and with the other task's input.
# - **Layers.** Losses by freezing (`few-layers-suffice`: {glue:text}`few_layers_suffice_verdict`) and truncation
#   (`shallow-truncation`: {glue:text}`shallow_truncation_verdict`) are shares of what fine-tuning gains over the null
#   rate, and at most a tenth counts as little.
#
# A probe's own spread between initialisations is some half a point in the paper; with one probing seed, smaller changes
# decide nothing.
