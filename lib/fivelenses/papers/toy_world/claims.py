"""What this project says of its toy world, from scores by example; chapter 7 says the same of its own encoders."""

from collections.abc import Iterator

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits import effects, intervals
from fivelenses.exhibits.claims import OURS, Claim
from fivelenses.exhibits.effects import Interval
from fivelenses.exhibits.verdicts import Effect, Part
from fivelenses.papers.toy_world.figures import PRETRAINED, SCRATCH, by_start

Rows = pd.DataFrame | None
PAYS = Part("gain over scratch", unit="score")
STRUCTURE = Part("gain over a bag of words", 0.03, "three points: less, and word order hardly matters", "score")
IMPERFECT = Part("errors left", 0.005, "five in a thousand: with fewer, all models look alike", "score")


def difference(scores: pd.Series, reference: pd.Series, rows: Rows, reference_rows: Rows, paired: bool) -> Interval:
    """The mean score of models less that of others, with an interval where there are predictions by example."""
    if rows is None or reference_rows is None:
        return effects.without_interval(scores.mean() - reference.mean())
    return intervals.of_scores(rows, reference_rows, paired)


def pretraining_pays(models: pd.DataFrame, predictions: Rows = None) -> Iterator[Effect]:
    """Models with pre-training less models without, per task; the seeds of one have nothing to do with the other's.

    A task takes part that the pre-trained models learned, and one on which they are behind in any case: the gate must
    not hide a loss.
    """
    for task, of_task in by_start(models).groupby("task", sort=False):
        sides = [of_task[of_task["start"] == start] for start in (PRETRAINED, SCRATCH)]
        scores = [side["score"] for side in sides]
        rows = [_of(predictions, side) for side in sides]
        gain = difference(*scores, *rows, paired=False)
        yield Effect(tasks.find(task).title, PAYS.name, gain, stands_on=(task,) if gain.estimate >= 0 else ())


def structure_is_needed(
    models: pd.DataFrame, baselines: pd.DataFrame, predictions: Rows = None, of_words: Rows = None
) -> Iterator[Effect]:
    """Pre-trained models less the bag of words, which is one model for all of them, and what they leave to be got."""
    models = by_start(models)
    for task, of_task in models[models["start"] == PRETRAINED].groupby("task", sort=False):
        title, rows = tasks.find(task).title, _of(predictions, of_task)
        words = None if of_words is None else of_words[of_words["task"] == task]
        bag = baselines.loc[baselines["task"] == task, "bag_of_words"]
        gain = difference(of_task["score"], bag, rows, words, paired=True)
        perfect = None if rows is None else rows.assign(score=rows["weight"], predicted=rows["label"])
        left = difference(pd.Series([1.0]), of_task["score"], perfect, rows, paired=True)
        yield Effect(title, STRUCTURE.name, gain, stands_on=(task,))
        yield Effect(title, IMPERFECT.name, left, stands_on=(task,))


def _of(predictions: Rows, models: pd.DataFrame) -> Rows:
    return None if predictions is None else predictions[predictions["address"].isin(models["address"])]


CLAIMS = (
    Claim(
        "toy-pretraining-pays",
        "",
        "A pre-trained toy BERT beats the same network from scratch at equal steps.",
        OURS,
        ("toy-world-worth",),
        "score with pre-training less score from scratch",
        (PAYS,),
        ("models",),
        pretraining_pays,
        spare=("by_example",),
        untwinned="a score needs the head that was trained with the model",
    ),
    Claim(
        "toy-structure-needed",
        "",
        "A fine-tuned toy BERT is above the bag of words and below a perfect score.",
        OURS,
        ("toy-world-worth",),
        "score with pre-training less the bag of words', and what it lacks to a perfect one",
        (STRUCTURE, IMPERFECT),
        ("models", "without_reading"),
        structure_is_needed,
        spare=("by_example", "words_by_example"),
        untwinned="a score needs the head that was trained with the model",
    ),
)
