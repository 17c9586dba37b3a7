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
# **The answer here.** Of an edge-probing task, fine-tuning costs {glue:text}`no_forgetting_value` of F1 at most
# (`no-forgetting`: {glue:text}`no_forgetting_verdict`). The loss of similarity in the top third of the layers is
# {glue:text}`top_layers_change_value` times that in the bottom third (`top-layers-change`:
# {glue:text}`top_layers_change_verdict`), and {glue:text}`few_layers_suffice_value` of the layers can be frozen at a
# loss of two points at most (`few-layers-suffice`: {glue:text}`few_layers_suffice_verdict`). Of the paper's eight
# claims, {glue:text}`claims_reproduced` are reproduced in this run; [the last section](#the-claims) lists all of them
# with their numbers.

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
from fivelenses.checkpoints import tables
from fivelenses.papers.merchant2020 import claims, figures, measure

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
# ## What can be read: edge probes
#
# A probe is shown one span of words or two, as vectors of a frozen encoder, and says what they are: a part of speech, a
# phrase, a relation, a kind of entity, a role, coreferent or not. It mixes the layers with weights that it learns,
# pools a span by attention, and has one hidden layer ({py:func}`fivelenses.lenses.edge_probe.fit`). Two baselines
# say what is the encoder's doing: its embeddings alone, without context (lexical), and the same network with random
# weights (randomised). The tasks are made of open data where OntoNotes is not at hand; the table names them.

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
# ({py:func}`fivelenses.lenses.rsa.similarity`), each encoder against the one that it was tuned from.

# %%
similarities = run.measure(measure.similarities, of=settings.whole, each="encoder")
run.exhibit(figures.figure_2, similarities)

# %% [markdown]
# Running text is not what these encoders were tuned on. On input of their own kind they change more, or so the paper
# finds.

# %%
by_input = run.measure(measure.similarities_by_input, of=settings.probed)
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
# Each sentence of the paper is made a predicate on the table behind an exhibit, with a threshold that is ours, fixed
# before any run and printed in the third column.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Probes.** Fine-tuning costs {glue:text}`no_forgetting_value` of F1 at most on a task (`no-forgetting`:
#   {glue:text}`no_forgetting_verdict`); the parser's encoder changes by {glue:text}`dep_helps_syntax_value`
#   (`dep-helps-syntax`: {glue:text}`dep_helps_syntax_verdict`). Codelengths change by {glue:text}`mdl_same_value`
#   (`mdl-same`: {glue:text}`mdl_same_verdict`), structural probes by {glue:text}`structure_kept_value`
#   (`structure-kept`: {glue:text}`structure_kept_verdict`).
# - **Similarity.** The top third of the layers loses {glue:text}`top_layers_change_value` times as much as the
#   bottom third (`top-layers-change`: {glue:text}`top_layers_change_verdict`). On input of the task's own kind,
#   similarity is lower by {glue:text}`in_domain_changes_more_value` (`in-domain-changes-more`:
#   {glue:text}`in_domain_changes_more_verdict`).
# - **Layers.** {glue:text}`few_layers_suffice_value` of the layers can be frozen at a loss of two points
#   (`few-layers-suffice`: {glue:text}`few_layers_suffice_verdict`); half of the layers lose
#   {glue:text}`shallow_truncation_value` (`shallow-truncation`: {glue:text}`shallow_truncation_verdict`).
# - **Learned or not.** Appendix C has each task's score beside that of a model without information. Under a task that
#   is not learned, an encoder changes by what training does to it, not by what the task needs. Freezing and truncation
#   are judged where a task is learned by more than four points, and a profile may leave them out for others
#   (`ablated`).
#
# Spreads are standard deviations over groups and seeds together. A probe's own spread between initialisations is some
# half a point in the paper; differences of that size say nothing.
