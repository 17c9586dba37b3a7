"""The encoders that chapter 5 measures, by the task that they were fine-tuned on and by control."""

from collections.abc import Callable, Sequence
from itertools import product

import torch
from torch import nn

from fivelenses.checkpoints.store import Checkpoint
from fivelenses.models import encoders
from fivelenses.papers.twins import model_of
from fivelenses.records import BASE, RANDOMISED, SHARED, TUNED

Models = dict[tuple[str, str], nn.Module]
RANDOM_SEED = 0  # of the randomised baseline


def pretrained_and_fine_tuned(
    encoder: str,
    checkpoints: Sequence[Checkpoint],
    controls: Sequence[str] = (TUNED,),
    device: str | None = None,
    log: Callable[[str], None] = print,
) -> Models:
    """The pre-trained encoder, and what was fine-tuned from it with its twins, by task and control.

    Args:
        checkpoints: at most one per task; one whose training diverged is left out, as is a twin that does not exist.
        controls: TUNED, and of TWINS.
    """
    pretrained = encoders.load_weights(encoders.locate(encoder))
    models = {(BASE, SHARED): pretrained}
    for control, checkpoint in product(controls, converged(checkpoints)):
        model = model_of(checkpoint, control, pretrained, device, log)
        if model is not None:
            models[checkpoint.specification.task, control] = model
    return models


def randomised(encoder: str) -> Models:
    """The baseline that was never trained: the encoder's shape with random weights."""
    torch.manual_seed(RANDOM_SEED)
    name = encoder if encoder.startswith("random:") else f"random:{encoder}"
    return {(RANDOMISED, SHARED): encoders.load_weights(encoders.locate(name))}


def converged(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Those whose training did not diverge."""
    return [one for one in checkpoints if not one.manifest["diverged"]]


def tuned_seed(checkpoints: Sequence[Checkpoint]) -> int:
    """The seed of the fine-tuning that is measured; −1 for what all seeds share, such as the pre-trained encoder."""
    return checkpoints[0].specification.seed if checkpoints else -1
