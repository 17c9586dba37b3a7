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
# **The question.** The chapters need a BERT that loads without a network, is cheap on a CPU, and comes from several
# independent pre-trainings, so that noise can be separated from change. We made one, three times. Is it any good?
#
# **The answer in numbers.** Pre-training adds {glue:text}`own_pretraining_pays_value` to the score over the same
# network from scratch, depending on the task (`own-pretraining-pays`: {glue:text}`own_pretraining_pays_verdict`, on
# {glue:text}`own_pretraining_pays_held` tasks). On text that they never read, the encoders are
# {glue:text}`own_reads_elsewhere_value` nats per masked token better than the frequencies of tokens; on parts of
# speech, their best layer is ahead of their embeddings by {glue:text}`own_context_is_read_value`. A bag of words is
# ahead of them on {glue:text}`behind_words`; their scores are {glue:text}`behind_published`.

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
precision = None
probe_sentences = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.own_encoders import claims, figures
from fivelenses.papers.toy_world import figures as toy_world

run = runs.begin(8, globals())
settings = run.settings

# %% [markdown]
# ## Pre-training
#
# The objective is BERT's own {cite}`devlin2019`: predict 15 % of the tokens, and say of two segments whether the second
# follows the first. The encoders differ in their random weights and the order of their text alone. Beside the weights,
# `pretraining.json` has the recipe, and a card the text and its licences.
#
# The loss falls fast to about what the tokens' frequencies alone would give, then slowly, and fast again once the
# network uses context. Halfway it jumps, because sequences become twice as long and half of their positions are new.

# %% tags=["hide-input"]
language = run.measure("language_modelling")
run.exhibit(figures.loss_figure, run.measure("loss_curves"), language)

# %% [markdown]
# Losses in nats per token can be compared only between encoders with one vocabulary.

# %% tags=["hide-input"]
elsewhere = "articles of WikiText-2" if settings.source == "hub" else "the second domain"
run.exhibit(figures.language_table, language, elsewhere)

# %% [markdown]
# ## After fine-tuning
#
# The tasks are from the GLUE benchmark {cite}`wang2018`. MRPC's F1 rewards calling every pair a paraphrase, so its null
# rate is high.

# %% tags=["hide-input"]
models = run.measure("models")
baselines = run.measure("without_reading", examples=settings.training_examples)
predictions = run.measure("by_example", each=("encoder", "task"))
run.measure("words_by_example", over=settings.training_sets)
run.gate(toy_world.pretrained_as_one(models, baselines), predictions, leading=toy_world.PRETRAINED)

# %% tags=["hide-input"]
scores = figures.scores(models, baselines, run.measure("paraphrase_f1"))
published = figures.PUBLISHED if settings.source == "hub" else {}
run.exhibit(figures.scores_figure, scores, published)
run.glue(behind_published=figures.behind_published(scores, published), behind_words=figures.behind_words(scores))

# %% tags=["hide-input"]
examples = settings.training_examples
run.exhibit(figures.scores_table, scores, f"at most {examples:,} examples" if examples else "all examples", published)

# %% [markdown]
# ## What the layers hold
#
# A linear probe reads a part of speech from each layer's vector of a word. Words alone give most of the answer; what
# context adds is the gain of the best layer over the embeddings.

# %% tags=["hide-input"]
run.exhibit(figures.parts_of_speech_figure, run.measure("parts_of_speech"))

# %% [markdown]
# ## What follows for the chapters
#
# These encoders are weak: a task that they do not learn cannot show what learning it does, and where a bag of words
# does as well, they need not have learned to read. But with three pre-trainings on the same text, a difference between
# layers can be compared with one between encoders.
#
# The three claims are ours. Intervals cover encoders, each with its own fine-tuning, and examples. The best layer is
# chosen on nine tenths of the sentences and scored on the rest. A task that was not learned still counts if
# pre-training is behind on it.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()
