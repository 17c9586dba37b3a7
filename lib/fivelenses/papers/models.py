"""The models that chapters measure, fine-tuned ones and their twins (`models.controls`), and the examples they read.

A functional twin has moved as far as the model in its last layer, on sentences of the model's own task.
"""

from collections.abc import Callable, Iterable, Iterator

import datasets
import numpy as np
import torch
from torch import nn

from fivelenses import tasks
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import last_layer_movement
from fivelenses.models import encoders
from fivelenses.models.controls import moved_at_random, scale_of_equal_movement
from fivelenses.records import FINE_TUNED, FUNCTIONAL_TWIN, RANDOM_ENCODER, SHUFFLED, TWINS
from fivelenses.tasks import subset
from fivelenses.tasks.examples import encode, with_examples

TEXTS, TOKENS = 64, 4096  # on which a movement is measured, at most

Log = Callable[[str], None]

# What was found in this process, by the address of the model: a search takes half a dozen passes.
_scales: dict[str, float | None] = {}


def converged(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Those whose training did not diverge."""
    return [one for one in checkpoints if not one.manifest["diverged"]]


def pretrained(checkpoint: Checkpoint) -> nn.Module:
    """The encoder that a model was fine-tuned from."""
    return encoders.load_weights(encoders.locate(checkpoint.specification.encoder))


def randomly_initialised(encoder: str) -> nn.Module:
    """The shape of an encoder, random or not, with random weights, always the same: a model that learned nothing."""
    torch.manual_seed(0)
    return encoders.load_weights(encoders.locate(f"{RANDOM_ENCODER}{encoder}"))


def controls(checkpoint: Checkpoint) -> tuple[str, ...]:
    """What is measured of a checkpoint, as a record's `control` has it; a model of shuffled labels has no twins."""
    return (SHUFFLED,) if checkpoint.specification.shuffled_labels else (FINE_TUNED, *TWINS)


def model_of(
    checkpoint: Checkpoint, control: str, original: nn.Module, device: str | None = None, log: Log = print
) -> nn.Module | None:
    """The fine-tuned model, or a twin of it; None where noise of no scale moves the last layer as far as training did.

    Both twins have the same noise, which no other model's twins have. The `original` is the pre-trained encoder.
    """
    fine_tuned, made = checkpoint.model(), checkpoint.specification
    if control not in TWINS:
        return fine_tuned
    seed = int(made.address[:12], 16)
    if control != FUNCTIONAL_TWIN:
        return moved_at_random(fine_tuned, original, seed)
    if made.address not in _scales:
        movement = last_layer_movement(original, _own_texts(checkpoint), device=device)
        _scales[made.address] = scale_of_equal_movement(fine_tuned, original, seed, movement)
    scale = _scales[made.address]
    if scale is None:
        log(f"{made.task}, seed {made.seed}: no functional twin: no noise moves the last layer as far as training did")
        return None
    return moved_at_random(fine_tuned, original, seed, scale)


def models_of(
    checkpoints: Iterable[Checkpoint], control: str, original: nn.Module, device: str | None = None, log: Log = print
) -> Iterator[tuple[Specification, nn.Module]]:
    """Specification and `model_of` of each checkpoint whose training did not diverge, where it has such a model."""
    for checkpoint in converged(checkpoints):
        model = model_of(checkpoint, control, original, device, log)
        if model is not None:
            yield checkpoint.specification, model


def encoded(checkpoint: Checkpoint, split: str) -> datasets.Dataset:
    """A split of a model's task as the model reads it; of the training examples those that it was trained on."""
    made = checkpoint.specification
    data = tasks.load(made.task, made.source, (split,))
    if split == "train":
        data = with_examples(data, made.examples, made.examples_seed)
    return encode(data, split, encoders.tokenizer(encoders.locate(made.encoder)), made.schedule.max_length)


def development_examples(checkpoint: Checkpoint, limit: int | None = None) -> datasets.Dataset:
    """Development examples of a model's task, `limit` at most, drawn by label where they have one."""
    examples = encoded(checkpoint, "validation")
    has_label = tasks.find(checkpoint.specification.task).head == "sequence"
    labels = examples["labels"] if has_label else np.zeros(examples.num_rows)
    return examples.select(subset(np.array(labels), limit, seed=0))


def _own_texts(checkpoint: Checkpoint) -> datasets.Dataset:
    """A few of the development examples."""
    examples = development_examples(checkpoint, TEXTS)
    drawn = examples.select(np.random.default_rng(0).permutation(examples.num_rows))
    lengths = np.cumsum([len(tokens) for tokens in drawn["input_ids"]])
    return drawn.select(range(max(1, int((lengths <= TOKENS).sum()))))
