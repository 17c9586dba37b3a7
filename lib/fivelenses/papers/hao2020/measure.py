"""What Hao et al. (2020) measure, as records: tuned against pre-trained, layer rolled back, seed against seed, data set
against data set.
"""

from collections.abc import Sequence
from itertools import combinations

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn

from fivelenses import tasks
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import compare, layers_rolled_back
from fivelenses.models import encoders
from fivelenses.tasks.examples import encode, subset

PRETRAINED, UNTRAINED = "pre-trained", "untrained"


def evaluation_part(checkpoint: Checkpoint, limit: int | None) -> datasets.Dataset:
    """Development examples of a model's task, encoded; a stratified subset of `limit` when there are more."""
    made = checkpoint.specification
    tokenizer = encoders.tokenizer(encoders.locate(made.encoder))
    data = tasks.load(made.task, made.source, ("validation",))
    encoded = encode(data, "validation", tokenizer, made.schedule.max_length)
    return encoded if limit is None else encoded.select(subset(np.array(encoded["labels"]), limit, seed=0))


def untrained(encoder: str) -> nn.Module:
    """The encoder's shape with random weights: what attention that learned nothing looks like, for the null of
    JS divergence.
    """
    torch.manual_seed(0)
    return encoders.load_weights(encoders.locate(encoder if encoder.startswith("random:") else f"random:{encoder}"))


def changes_by_layer(
    checkpoints: Sequence[Checkpoint],
    evaluation_examples: int | None = None,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Figures 1, 2, 4 and 5: on a task's development set, pre-trained against tuned and against untrained, and seed
    against seed.

    Args:
        checkpoints: the models of one task and encoder, one per seed; one whose training diverged is left out.
        evaluation_examples: development examples, at most.
        variance_kept, batch_rows, device: of `comparison.compare`.

    Returns:
        The columns of `comparison.compare` with `task` before them; `first` and `second` are `pre-trained`,
        `untrained`, or a seed.
    """
    made = checkpoints[0].specification
    tuned = {str(one.specification.seed): one for one in checkpoints if not one.manifest["diverged"]}
    original = encoders.load_weights(encoders.locate(made.encoder))
    models = {PRETRAINED: original, UNTRAINED: untrained(made.encoder)}
    models |= {seed: one.model() for seed, one in tuned.items()}
    pairs = [(PRETRAINED, seed) for seed in tuned] + list(combinations(tuned, 2)) + [(PRETRAINED, UNTRAINED)]
    examples = evaluation_part(checkpoints[0], evaluation_examples)
    table = compare(models, pairs, examples, variance_kept=variance_kept, batch_rows=batch_rows, device=device)
    table.insert(0, "task", made.task)
    return table


def rollbacks(
    checkpoints: Sequence[Checkpoint],
    evaluation_examples: int | None = None,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Figure 3: the last layer of each tuned model against itself with one layer rolled back; arguments as
    `changes_by_layer`.
    """
    parts = []
    for checkpoint in checkpoints:
        if checkpoint.manifest["diverged"]:
            continue
        made = checkpoint.specification
        original = encoders.load_weights(encoders.locate(made.encoder))
        examples = evaluation_part(checkpoint, evaluation_examples)
        measured = layers_rolled_back(checkpoint.model(), original, examples, variance_kept, batch_rows, device)
        parts.append(measured.assign(task=made.task, seed=made.seed))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def between_datasets(
    checkpoints: Sequence[Checkpoint],
    pairs: Sequence[tuple[str, str]],
    mixed_examples: int,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Figures 6 and 7: models of two data sets compared on development examples of both.

    Args:
        checkpoints: the models of all tasks.
        pairs: of tasks.
        mixed_examples: of each of the two data sets, at most.

    Returns:
        The columns of `comparison.compare` with `pair` (`rte–mnli`) and `seed`; no row where one of the two trainings
        diverged.
    """
    models = {
        (one.specification.task, one.specification.seed): one for one in checkpoints if not one.manifest["diverged"]
    }
    parts = []
    for pair in pairs:
        for seed in dict.fromkeys(seed for _, seed in models):
            if any((task, seed) not in models for task in pair):
                continue
            of_pair = {task: models[task, seed].model() for task in pair}
            mixed = datasets.concatenate_datasets(
                [evaluation_part(models[task, seed], mixed_examples) for task in pair]
            )
            measured = compare(
                of_pair, [pair], mixed, variance_kept=variance_kept, batch_rows=batch_rows, device=device
            )
            parts.append(measured.assign(pair="–".join(pair), seed=seed))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
