"""A fine-tuned model and its twins as all chapters measure them, see `models.twins`.

A functional twin has moved as far as the model in its last layer, on sentences of the model's own task.
"""

from collections.abc import Callable

import datasets
import numpy as np
from torch import nn

from fivelenses import tasks
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import last_layer_movement
from fivelenses.models import encoders
from fivelenses.models.twins import moved_at_random, scale_of_equal_movement
from fivelenses.records import FUNCTIONAL_TWIN, SHUFFLED, TUNED, TWINS
from fivelenses.tasks.examples import encode
from fivelenses.tasks.subsets import subset

TEXTS, TOKENS = 64, 4096  # on which a movement is measured, at most

# What was found in this process, by the address of the model: a search takes half a dozen passes.
_scales: dict[str, float | None] = {}


def controls(checkpoint: Checkpoint) -> tuple[str, ...]:
    """What is measured of a checkpoint, as a record's `control` has it; a model of shuffled labels has no twins."""
    return (SHUFFLED,) if checkpoint.specification.shuffled_labels else (TUNED, *TWINS)


def model_of(
    checkpoint: Checkpoint,
    control: str,
    original: nn.Module,
    device: str | None = None,
    log: Callable[[str], None] = print,
) -> nn.Module | None:
    """The fine-tuned model, or a twin of it; both twins have the same noise, which no other model's twins have.

    Args:
        checkpoint: a fine-tuned model.
        control: of `controls`.
        original: the pre-trained encoder that it came from.
        device: where models read, a GPU when there is one by default.
        log: takes a line where there is no functional twin.

    Returns:
        None where noise of no scale moves the last layer as far as training did.
    """
    tuned, made = checkpoint.model(), checkpoint.specification
    if control not in TWINS:
        return tuned
    seed = int(made.address[:12], 16)
    if control != FUNCTIONAL_TWIN:
        return moved_at_random(tuned, original, seed)
    if made.address not in _scales:
        movement = last_layer_movement(original, _own_texts(checkpoint), device=device)
        _scales[made.address] = scale_of_equal_movement(tuned, original, seed, movement)
    scale = _scales[made.address]
    if scale is None:
        log(f"{made.task}, seed {made.seed}: no functional twin: no noise moves the last layer as far as training did")
        return None
    return moved_at_random(tuned, original, seed, scale)


def _own_texts(checkpoint: Checkpoint) -> datasets.Dataset:
    """Development examples of a model's task, encoded, drawn by label where they have one."""
    made = checkpoint.specification
    data = tasks.load(made.task, made.source, ("validation",))
    encoded = encode(data, "validation", encoders.tokenizer(encoders.locate(made.encoder)), made.schedule.max_length)
    labels = encoded["labels"] if data.task.head == "sequence" else np.zeros(encoded.num_rows)
    drawn = encoded.select(np.random.default_rng(0).permutation(subset(np.array(labels), TEXTS, seed=0)))
    lengths = np.cumsum([len(tokens) for tokens in drawn["input_ids"]])
    return drawn.select(range(max(1, int((lengths <= TOKENS).sum()))))
