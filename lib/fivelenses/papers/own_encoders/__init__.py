"""Whether encoders of one's own are any good: their pre-training, their scores, and what their layers hold."""

from fivelenses.papers.own_encoders.claims import CLAIMS
from fivelenses.papers.own_encoders.figures import (
    PUBLISHED,
    behind_published,
    language_table,
    loss_figure,
    parts_of_speech_figure,
    scores_figure,
    scores_table,
)
from fivelenses.papers.own_encoders.measure import (
    language_modelling,
    loss_curves,
    parts_of_speech,
    scores,
    training_part,
)

__all__ = [
    "CLAIMS",
    "PUBLISHED",
    "behind_published",
    "language_modelling",
    "language_table",
    "loss_curves",
    "loss_figure",
    "parts_of_speech",
    "parts_of_speech_figure",
    "scores",
    "scores_figure",
    "scores_table",
    "training_part",
]
