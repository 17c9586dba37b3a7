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
# # The toy world
#
# **The question.** Can a world be small enough to learn in five minutes on one core of a laptop, and still rich
# enough that the methods of five papers have something to find in it? Every chapter of this book also runs here, so
# this page shows what "here" is.
#
# **The answer.** Pre-training on its text is worth {glue:text}`toy_pretraining_pays_value` of score, depending on the
# task, over the same network from scratch; it pays on {glue:text}`toy_pretraining_pays_held` tasks. The fine-tuned
# networks differ from a bag of words by {glue:text}`toy_structure_needed_value`; on
# {glue:text}`toy_structure_needed_held` tasks they are clearly above it and below a perfect score.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # this chapter has no other
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
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.predictions import by_example
from fivelenses.papers.toy_world import claims, figures, measure

run = runs.begin(0, globals())

# %% [markdown]
# ## What it is
#
# A world of people, animals, things and places; events that happen to them, with preconditions and effects (who
# gave a thing away no longer has it); and a grammar that turns an event into an English-like sentence with free
# choices: active or passive, the order of objects, synonyms, modifiers, pronouns, relative clauses, negation,
# tense and number. Stories are short runs of events about the same characters; the toy BERT reads stories.
#
# Every task is made from the meaning, never from a key word: a premise entails what follows from its event, a
# paraphrase says the same event in another way while a non-paraphrase swaps its roles with the same words, and a
# sentence is positive when what happened is good for the one it happened to.

# %%
run.exhibit(figures.examples_of_tasks, run.measure(measure.examples_of_tasks))

# %% [markdown]
# Each sentence carries all its annotation from its derivation: parts of speech, dependencies, constituents,
# entities, predicate and arguments, coreference, the roles of prepositions.

# %%
run.exhibit(figures.sentence_with_tree, run.measure(measure.sentence_with_tree))

# %% [markdown]
# ## The toy BERT
#
# Six layers of width 64 with four heads and 1,000 WordPieces, pre-trained as BERT was, on masked words and next
# sentences, with three seeds. `make toy-bert` makes them again: the same weights on the same machine, and on
# another a held-out loss within $0.2$ nats.

# %%
run.exhibit(figures.pretraining, run.measure(measure.pretraining))

# %% [markdown]
# ## Is it worth studying?
#
# Three things could make it worthless. The label could be readable from one word or from the length: then a
# logistic regression on word counts or on lengths would do as well as a network. The tasks could be noise: then
# nothing would rise above the majority. Or pre-training could be pointless: then the same network from random
# weights would do as well in the same number of steps. The table tests all three, over three seeds, each with a
# pre-training of its own.

# %%
models = run.measure(tables.models)
baselines = run.measure(measure.without_reading)
predictions = run.measure(by_example, each=("encoder", "task"))
run.gate(figures.pretrained_as_one(models, baselines), predictions, leading=figures.PRETRAINED)

# %%
run.measure(measure.words_by_example)
scores = figures.scores(models, baselines)
run.exhibit(figures.worth_figure, scores)

# %%
run.exhibit(figures.worth_table, scores)

# %% [markdown]
# The recipe of pre-training, the schedules and the tasks themselves were settled while looking at these same
# development examples, on other seeds or fewer models. Read the scores as what the toy world offers to its lenses, not
# as an estimate of how well such networks do on fresh data.
#
# Both statements are ours. They are judged on the development examples one by one: an interval of 95 % covers other
# seeds, with another pre-training each, and other examples. A task on which the interval lies wholly above the
# threshold *holds*, one on which it lies wholly below *fails*, any other is *open*.

# %%
run.judge(claims.CLAIMS)
run.finish()
