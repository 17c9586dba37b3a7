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
# # Encoders of our own
#
# **The question.** The chapters need a BERT that loads without a network, is cheap enough for a CPU, and exists
# several times, from independent pre-trainings, so that noise can be told from change. So we made one, three times.
# Is it any good?
#
# **The answer.** Pre-training is worth {glue:text}`own_pretraining_pays_value` of score, depending on the task, over
# the same network from scratch (`own-pretraining-pays`: {glue:text}`own_pretraining_pays_verdict`; it pays on
# {glue:text}`own_pretraining_pays_held` tasks that were learned). The encoders predict text that they never read
# {glue:text}`own_reads_elsewhere_value` nats per masked token better than the frequencies of tokens would, and from
# context their best layer tells parts of speech better than their embeddings do, by
# {glue:text}`own_context_is_read_value` of accuracy. Their scores stand {glue:text}`behind_published`; Google's
# smallest encoders read billions of words and were fine-tuned on whole training sets.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny or small: the files in notebooks/profiles
# Everything below is as the profile says unless it is given here.
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
probe_sentences = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.predictions import by_example
from fivelenses.papers.own_encoders import claims, figures, measure
from fivelenses.papers.toy_world import figures as toy_world
from fivelenses.papers.toy_world.measure import without_reading

run = runs.begin(7, globals())
settings = run.settings

# %% [markdown]
# ## Pre-training
#
# BERT's own objective {cite}`devlin2019`: 15 % of the tokens are to be predicted, most of them masked, and of two
# segments it is asked whether the second follows the first. The encoders differ in their random weights and in the
# order in which they read their text, in nothing else. Each has a record, `pretraining.json`, beside its weights, with
# the recipe, the text's hash and the curve below; the card in the folder names the text, its licences and its authors.
#
# A loss that stays at the frequencies of tokens for a while and then leaves them is what masked language modelling
# looks like from the start: the network first learns which tokens are frequent, and only then to read. The jump half
# way is where sequences become twice as long, and half of their places are new to it.

# %%
language = run.measure(measure.language_modelling)
run.exhibit(figures.loss_figure, run.measure(measure.loss_curves), language)

# %% [markdown]
# Losses in nats per token compare encoders that share a vocabulary, and no others: a model with a larger vocabulary has
# a harder choice at each token, and fewer choices to make.

# %%
elsewhere = "articles of WikiText-2" if settings.source == "hub" else "the second domain"
run.exhibit(figures.language_table, language, elsewhere)

# %% [markdown]
# ## After fine-tuning
#
# The GLUE benchmark's tasks {cite}`wang2018` that the chapters use, each encoder with a seed of its own, beside the
# same network from random weights at equal steps, a bag of words trained on the same examples, and the score of one
# answer always. On MRPC that last score is as high as what the miniatures reach: F1 rewards saying that all sentences
# are paraphrases.

# %%
models = run.measure(tables.models)
baselines = run.measure(without_reading, examples=settings.training_examples)
predictions = run.measure(by_example, each=("encoder", "task"))
run.gate(toy_world.pretrained_as_one(models, baselines), predictions, leading=toy_world.PRETRAINED)

# %%
scores = figures.scores(models, baselines, run.measure(measure.paraphrase_f1))
published = figures.PUBLISHED if settings.source == "hub" else {}
run.exhibit(figures.scores_figure, scores, published)
run.glue(behind_published=figures.behind_published(scores, published))

# %%
examples = settings.training_examples
run.exhibit(figures.scores_table, scores, f"at most {examples:,} examples" if examples else "all examples", published)

# %% [markdown]
# ## What the layers hold
#
# A linear probe reads each layer's words. Words alone, without context, give most of the answer; what a layer has above
# them, it has from context. Random weights carry words too, and blur them from layer to layer.

# %%
run.exhibit(figures.parts_of_speech_figure, run.measure(measure.parts_of_speech))

# %% [markdown]
# ## What follows for the chapters
#
# These encoders are weak, and the chapters say so where it matters: a task that they do not learn cannot show what
# learning it does, and where a bag of words does as well (the table says where), what was learned need not be reading.
# What they offer instead is what the published miniatures lack: the same architecture three times from independent
# pre-trainings on the same text, so that a difference between two layers can be held against the difference between
# two encoders.
#
# The three statements are ours. Encoders, each with a fine-tuning of its own, are one source of chance, and examples,
# sentences or documents the other; intervals of 95 % cover both. Where the best layer is named, it was chosen on nine
# tenths of the sentences and read on the last.

# %%
run.judge(claims.CLAIMS)
run.finish()
