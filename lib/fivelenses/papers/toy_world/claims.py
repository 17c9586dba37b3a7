"""What this project says of its toy world, from scores by example; chapter 8 says the same of its own encoders."""

from collections.abc import Iterator

import pandas as pd

from fivelenses.exhibits import effects, intervals
from fivelenses.exhibits.claims import OURS, Claims
from fivelenses.exhibits.effects import Interval
from fivelenses.exhibits.exhibit import title
from fivelenses.exhibits.verdicts import Effect, Part
from fivelenses.papers.toy_world.figures import PRETRAINED, SCRATCH, by_start

Rows = pd.DataFrame | None
NEEDS_HEAD = "a score needs the head that was trained with the model"
CLAIMS = Claims("", place=OURS, exhibits=("toy-world-worth",), untwinned=NEEDS_HEAD)
PAYS = Part("gain over scratch", unit="score")
STRUCTURE = Part("gain over a bag of words", 0.03, "three points: less, and word order hardly matters", "score")
IMPERFECT = Part("errors left", 0.005, "five in a thousand: with fewer, all models look alike", "score")


def difference(scores: pd.Series, reference: pd.Series, rows: Rows, reference_rows: Rows, paired: bool) -> Interval:
    """The mean score of models less that of others, with an interval where there are predictions by example."""
    if rows is None or reference_rows is None:
        return effects.without_interval(scores.mean() - reference.mean())
    return intervals.of_scores(rows, reference_rows, paired)


@CLAIMS.add(
    "toy-pretraining-pays",
    "A pre-trained toy BERT beats the same network from scratch at equal steps.",
    "score with pre-training less score from scratch",
    PAYS,
)
def pretraining_pays(models: pd.DataFrame, by_example: Rows = None) -> Iterator[Effect]:
    """The seeds of the models with pre-training have nothing to do with those of the models without.

    A task takes part that the pre-trained models learned, and one on which they are behind in any case: the gate must
    not hide a loss.
    """
    for task, of_task in by_start(models).groupby("task", sort=False):
        sides = [of_task[of_task["start"] == start] for start in (PRETRAINED, SCRATCH)]
        scores = [side["score"] for side in sides]
        rows = [_of(by_example, side) for side in sides]
        gain = difference(*scores, *rows, paired=False)
        yield Effect(title(task), PAYS.name, gain, stands_on=(task,) if gain.estimate >= 0 else ())


@CLAIMS.add(
    "toy-structure-needed",
    "A fine-tuned toy BERT is above the bag of words and below a perfect score.",
    "score with pre-training less the bag of words', and how far it stays below a perfect score",
    STRUCTURE,
    IMPERFECT,
)
def structure_is_needed(
    models: pd.DataFrame, without_reading: pd.DataFrame, by_example: Rows = None, words_by_example: Rows = None
) -> Iterator[Effect]:
    """The bag of words is one model for all of the pre-trained ones."""
    models = by_start(models)
    for task, of_task in models[models["start"] == PRETRAINED].groupby("task", sort=False):
        rows = _of(by_example, of_task)
        words = None if words_by_example is None else words_by_example[words_by_example["task"] == task]
        bag = without_reading.loc[without_reading["task"] == task, "bag_of_words"]
        gain = difference(of_task["score"], bag, rows, words, paired=True)
        perfect = None if rows is None else rows.assign(score=rows["weight"], predicted=rows["label"])
        left = difference(pd.Series([1.0]), of_task["score"], perfect, rows, paired=True)
        yield Effect(title(task), STRUCTURE.name, gain, stands_on=(task,))
        yield Effect(title(task), IMPERFECT.name, left, stands_on=(task,))


def _of(predictions: Rows, models: pd.DataFrame) -> Rows:
    return None if predictions is None else predictions[predictions["address"].isin(models["address"])]
