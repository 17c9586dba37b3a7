"""Prediction heads on an encoder."""

from torch import nn
from transformers import AutoModelForSequenceClassification

from fivelenses.models.encoders import Encoder, load

HEADS = {"sequence": AutoModelForSequenceClassification}


def build(encoder: Encoder, head: str, labels: tuple[str, ...]) -> nn.Module:
    """An encoder with a fresh head for these labels; the head comes from torch's global generator: set a seed before.

    Raises:
        ValueError: no such kind of head, or fewer than two labels.
    """
    if head not in HEADS:
        raise ValueError(f"There is no {head!r} head to train: there is {', '.join(HEADS)}.")
    if len(labels) < 2:
        raise ValueError(f"A classifier needs at least two labels, not {len(labels)}.")
    return load(encoder, HEADS[head], num_labels=len(labels))
