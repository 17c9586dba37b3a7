"""What Hao et al. (2020) measure, as tidy tables: tuned against pre-trained, layer put back, seed against seed,
data set against data set.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn

from fivelenses import tasks
from fivelenses.checkpoints import Checkpoint, finite
from fivelenses.comparison import compare, layers_rolled_back
from fivelenses.models import encoders
from fivelenses.tasks.examples import encode, subset

PRETRAINED, UNTRAINED = "pre-trained", "untrained"


def evaluation_examples(task: str, source: str, tokenizer, max_length: int, limit: int | None) -> datasets.Dataset:
    """Development examples of a task, encoded; a stratified subset of `limit` when there are more."""
    encoded = encode(tasks.load(task, source, ("validation",)), "validation", tokenizer, max_length)
    return encoded if limit is None else encoded.select(subset(np.array(encoded["labels"]), limit, seed=0))


def untrained(encoder: str) -> nn.Module:
    """The encoder's shape with random weights: what attention that learned nothing looks like, for the null of
    JS divergence.
    """
    torch.manual_seed(0)
    return encoders.load_weights(encoders.locate(encoder if encoder.startswith("random:") else f"random:{encoder}"))


def changes_by_layer(
    checkpoints: Mapping[tuple[str, int], Checkpoint], encoder: str, source: str, limit: int | None, **measuring
) -> pd.DataFrame:
    """Figures 1, 2, 4 and 5: on each task's development set, pre-trained against tuned and against untrained, and
    seed against seed.

    Args:
        checkpoints: (task, seed) to fine-tuned model; one whose training diverged is left out.
        encoder: the pre-trained encoder's name.
        source: of the examples.
        limit: development examples at most.
        measuring: `variance_kept`, `batch_rows`, `device` of `comparison.compare`.

    Returns:
        The columns of `comparison.compare` with `task` before them; `first` and `second` are `pre-trained`,
        `untrained`, or a seed.
    """
    checkpoints = finite(checkpoints)
    found = encoders.locate(encoder)
    original, blank = encoders.load_weights(found), untrained(encoder)
    parts = []
    for task in dict.fromkeys(task for task, _ in checkpoints):
        tuned = {str(seed): checkpoint for (name, seed), checkpoint in checkpoints.items() if name == task}
        length = next(iter(tuned.values())).manifest["specification"]["schedule"]["max_length"]
        examples = evaluation_examples(task, source, encoders.tokenizer(found), length, limit)
        models = {PRETRAINED: original, UNTRAINED: blank} | {seed: one.model() for seed, one in tuned.items()}
        pairs = [(PRETRAINED, seed) for seed in tuned] + list(combinations(tuned, 2)) + [(PRETRAINED, UNTRAINED)]
        parts.append(compare(models, pairs, examples, **measuring).assign(task=task))
    table = pd.concat(parts, ignore_index=True)
    return table[["task", *table.columns.drop("task")]]


def rollbacks(
    checkpoints: Mapping[tuple[str, int], Checkpoint], encoder: str, source: str, limit: int | None, **measuring
) -> pd.DataFrame:
    """Figure 3: the last layer of each tuned model against itself with one layer put back; arguments as
    `changes_by_layer`.
    """
    found = encoders.locate(encoder)
    original, parts = encoders.load_weights(found), []
    for (task, seed), checkpoint in finite(checkpoints).items():
        length = checkpoint.manifest["specification"]["schedule"]["max_length"]
        examples = evaluation_examples(task, source, encoders.tokenizer(found), length, limit)
        measured = layers_rolled_back(checkpoint.model(), original, examples, **measuring)
        parts.append(measured.assign(task=task, seed=seed))
    return pd.concat(parts, ignore_index=True)


def between_datasets(
    checkpoints: Mapping[tuple[str, int], Checkpoint],
    pairs: Sequence[tuple[str, str]],
    encoder: str,
    source: str,
    each: int,
    **measuring,
) -> pd.DataFrame:
    """Figures 6 and 7: models of two data sets compared on `each` development examples of either, mixed.

    Returns:
        The columns of `comparison.compare` with `pair` (`rte–mnli`) and `seed` before them; no row where one of the two
        trainings diverged.
    """
    checkpoints = finite(checkpoints)
    tokenizer, parts = encoders.tokenizer(encoders.locate(encoder)), []
    for pair in pairs:
        for seed in dict.fromkeys(seed for _, seed in checkpoints):
            if any((task, seed) not in checkpoints for task in pair):
                continue
            models = {task: checkpoints[task, seed].model() for task in pair}
            length = checkpoints[pair[0], seed].manifest["specification"]["schedule"]["max_length"]
            mixed = [evaluation_examples(task, source, tokenizer, length, each) for task in pair]
            measured = compare(models, [pair], datasets.concatenate_datasets(mixed), **measuring)
            parts.append(measured.assign(pair="–".join(pair), seed=seed))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
