"""Four statements of this project on what each lens can see, judged per measure; models, told apart by seeds, are the
draws, and the examples count as given.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.claims import OURS, CannotTest, Claims
from fivelenses.first_exhibits.verdicts import Effect, Part
from fivelenses.papers.known_truth import scores
from fivelenses.papers.known_truth.instruments import MEASURES, name

CLAIMS = Claims(
    "known-truth",
    place=OURS,
    exhibits=("known-truth-summary",),
    unit="measure",
    untwinned="its twins are part of what it measures",
    pools_tasks=True,
)
NAMES = Part(
    "share of cases in which it names a trained layer", 0.5, "below, it points elsewhere more often than not", "1"
)
RISES = Part("rank correlation with the dose", 0.5, "below, three quarters of the order are not the dose's", "1")
SILENT = Part(
    "share of fine-tuning's change that it reports where nothing changed, negative",
    -0.1,
    "a tenth: what is more would be read as a change",
    "1",
)
TELLS = {walk: Part(f"area under the curve over one half, {words}", unit="1") for walk, words in scores.WALKS.items()}


def _per_measure(rows: pd.DataFrame, column: str, part: Part, least: float, most: float) -> Iterator[Effect]:
    """One effect per measure, its interval within what the number can be."""
    for measure in MEASURES:
        of_measure = rows[rows["measure"] == measure.key]
        if len(of_measure) and np.isfinite(of_measure[column]).any():
            score = scores.over_seeds(of_measure, column, counted=part is NAMES)
            yield Effect(name(measure.key), part.name, effects.cut(score, least, most))


def _learned(changes: pd.DataFrame) -> pd.DataFrame:
    if changes.empty:
        raise CannotTest("no task was learned")
    return changes


@CLAIMS.add(
    "lens-names-layer",
    "Whatever the lens, the layer at which it sees most is one that was trained.",
    "share of models with frozen layers of which a measure names a layer that was trained",
    NAMES,
)
def names_the_layer(changes_seen: pd.DataFrame) -> Iterator[Effect]:
    rows = scores.where(_learned(changes_seen))
    return _per_measure(rows[rows["reading"] == scores.VALUE], "right", NAMES, 0, 1)


@CLAIMS.add(
    "lens-rises-with-dose",
    "Whatever the lens, it sees more the longer an encoder was trained.",
    "rank correlation of a measure with the length of training, mean over layers",
    RISES,
)
def rises_with_dose(changes_seen: pd.DataFrame) -> Iterator[Effect]:
    return _per_measure(scores.doses(_learned(changes_seen)), "correlation", RISES, -1, 1)


@CLAIMS.add(
    "lens-silent-at-nothing",
    "Whatever the lens, it sees nothing where the weights changed and the function did not.",
    "largest share of fine-tuning's change that a measure reports of four changes without effect, negative",
    SILENT,
)
def silent_at_nothing(changes_seen: pd.DataFrame) -> Iterator[Effect]:
    rows = scores.nothing(_learned(changes_seen)).groupby([*scores.MODEL, "measure"], sort=False)["share"].max()
    return _per_measure((-rows).rename("silence").reset_index(), "silence", SILENT, -np.inf, 0)


@CLAIMS.add(
    "lens-tells-learning",
    "Whatever the lens, it sees more where something was learned than where weights only moved.",
    "area under the curve of a measure, models that learned against models that only moved, less one half",
    *TELLS.values(),
)
def tells_learning(changes_seen: pd.DataFrame) -> Iterator[Effect]:
    rows = scores.learning(_learned(changes_seen))
    rows = rows.assign(gain=rows["pseudo"] - 0.5)
    for walk, part in TELLS.items():
        yield from _per_measure(rows[rows["walk"] == walk], "gain", part, -0.5, 0.5)
