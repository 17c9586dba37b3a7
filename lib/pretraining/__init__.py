"""Small encoders made from text: a WordPiece vocabulary, blocks of text, masking, and the training run.

This module is the only way in. Nothing here knows `fivelenses`; the toy world is one source of text.
"""

from pretraining.corpora import text_files, toy_text
from pretraining.objective import HeldOutLoss, held_out_loss
from pretraining.pretraining import TOY_BERT, pretrain, steps_per_pass
from pretraining.text_blocks import tokenise
from pretraining.training_run import RECORD, PretrainingSpecification
from pretraining.wordpiece import train_wordpiece

__all__ = [
    "RECORD",
    "TOY_BERT",
    "HeldOutLoss",
    "PretrainingSpecification",
    "held_out_loss",
    "pretrain",
    "steps_per_pass",
    "text_files",
    "tokenise",
    "toy_text",
    "train_wordpiece",
]
