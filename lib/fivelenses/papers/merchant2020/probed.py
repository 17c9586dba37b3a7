"""The models that chapter 5 reads: the pre-trained encoder, the fine-tuned ones, their twins, and baselines, by name.

A model is named by what it was tuned on; `base` is the pre-trained encoder. Twins moved as far as the fine-tuned model,
in random directions (`models.twins`).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product

import pandas as pd
import torch
from torch import nn

from fivelenses.checkpoints.store import Checkpoint
from fivelenses.models import encoders
from fivelenses.papers.twins import model_of
from fivelenses.records import BASE, LEXICAL, RANDOMISED, SHARED, TUNED, TWINS

TWIN_OF, FUNCTIONAL_TWIN_OF = (f"{control} of " for control in TWINS)
RANDOM_SEED = 0  # of the randomised baseline

Log = Callable[[str], None]


def first_models(checkpoints: Sequence[Checkpoint]) -> dict[str, Checkpoint]:
    """Task to the first of its models whose training did not diverge."""
    models: dict[str, Checkpoint] = {}
    for checkpoint in checkpoints:
        if not checkpoint.manifest["diverged"]:
            models.setdefault(checkpoint.specification.task, checkpoint)
    return models


def _randomised(encoder: str) -> nn.Module:
    torch.manual_seed(RANDOM_SEED)
    return encoders.load_weights(encoders.locate(encoder if encoder.startswith("random:") else f"random:{encoder}"))


def probed_models(
    encoder: str,
    checkpoints: Sequence[Checkpoint],
    wanted: Iterable[str],
    device: str | None = None,
    log: Log = print,
) -> dict[str, nn.Module]:
    """Those that are wanted, by name, of the pre-trained encoder, the same with random weights, the encoders tuned from
    it, and their twins. A functional twin is left out where there is none.
    """
    pretrained = encoders.load_weights(encoders.locate(encoder))
    load = {BASE: lambda: pretrained, RANDOMISED: lambda: _randomised(encoder)}
    for control, (task, checkpoint) in product((TUNED, *TWINS), first_models(checkpoints).items()):
        name = f"{control} of {task}" if control else task
        load[name] = partial(model_of, checkpoint, control, pretrained, device, log)
    models = {name: read() for name, read in load.items() if name in wanted}
    return {name: model for name, model in models.items() if model is not None}


def tuned_seed(checkpoints: Sequence[Checkpoint]) -> int:
    """The seed of the fine-tuning that is measured; -1 for what is shared by all, such as the pre-trained encoder."""
    return checkpoints[0].specification.seed if checkpoints else -1


def with_control(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose `model` is the name that claims know, with `control`: empty for the fine-tuned models.

    Example:
        >>> with_control(pd.DataFrame({"model": ["base", "mnli", "twin of mnli"]})).to_numpy().tolist()
        [['base', 'all'], ['mnli', ''], ['mnli', 'twin']]
    """
    control = table["model"].str.extract(f"^({'|'.join(TWINS)}) of ", expand=False).fillna("")
    control = control.mask(table["model"].isin([BASE, LEXICAL, RANDOMISED]), SHARED)
    model = table["model"].str.removeprefix(FUNCTIONAL_TWIN_OF).str.removeprefix(TWIN_OF)
    return table.assign(model=model, control=control)
