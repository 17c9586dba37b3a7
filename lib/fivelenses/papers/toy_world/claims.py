"""What this project says of its toy world, as predicates on the table of scores."""

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.claims import OURS, Claim, as_cases
from fivelenses.papers.toy_world.figures import PRETRAINED, SCRATCH

MIN_GAIN, MAX_SCORE = 0.03, 0.995


def pretraining_pays(table: pd.DataFrame) -> pd.DataFrame:
    """The worst pre-trained seed less the best one from scratch, per task."""
    rows = []
    for task, group in table.groupby("task", sort=False):
        pretrained, scratch = (group[group["start"] == start]["score"] for start in (PRETRAINED, SCRATCH))
        margin = float(pretrained.min() - scratch.max())
        rows.append((tasks.find(task).title, "all", margin, margin > 0))
    return as_cases(rows)


def structure_is_needed(table: pd.DataFrame) -> pd.DataFrame:
    """Each pre-trained seed less the bag of words; it must not reach 1 either, or there would be nothing left
    to see.
    """
    rows = []
    for row in table[table["start"] == PRETRAINED].itertuples():
        margin = float(row.score - row.bag_of_words)
        rows.append((tasks.find(row.task).title, row.seed, margin, margin > MIN_GAIN and row.score < MAX_SCORE))
    return as_cases(rows)


CLAIMS = (
    Claim(
        "toy-pretraining-pays",
        "",
        "A pre-trained toy BERT beats the same network from scratch at equal steps.",
        OURS,
        ("toy-world-worth",),
        "the worst pre-trained seed less the best from scratch",
        "above 0",
        pretraining_pays,
    ),
    Claim(
        "toy-structure-needed",
        "",
        "A fine-tuned toy BERT is above the bag of words and below a perfect score.",
        OURS,
        ("toy-world-worth",),
        "each pre-trained seed less the bag of words",
        f"above {MIN_GAIN:g} with a score below {MAX_SCORE:g}",
        structure_is_needed,
    ),
)
