"""Checkpoints by content: one frozen specification, one fine-tuning, shared by whoever asks."""

from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import Schedule, Specification, specify, training_rows
from fivelenses.checkpoints.store import Checkpoint, Store, check_finite, finite

__all__ = [
    "Checkpoint",
    "Schedule",
    "Specification",
    "Store",
    "check_finite",
    "finite",
    "prepare",
    "specify",
    "training_rows",
]
