"""What Hao et al. (2020) measure, as records: tuned against pre-trained, layer rolled back, seed against seed, data set
against data set.

Rows are told apart by `control`: empty for the fine-tuned models, `twin` for what moved as far at random
(`models.twins`), `shuffled labels` for models that were trained on shuffled labels, `all` for what belongs to all. Each
comparison is made on all examples (`fold` −1) and without each of ten folds of them, where only SVCCA and JS divergence
are measured; see `comparison`.
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
from fivelenses.models.twins import moved_at_random
from fivelenses.records import SHARED, SHUFFLED, TWIN
from fivelenses.tasks.examples import encode
from fivelenses.tasks.subsets import folds, subset

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


def _kinds(checkpoint: Checkpoint, original: nn.Module) -> dict[str, nn.Module]:
    """A model by its control; beside one with true labels, its twin, whose noise no other twin shares."""
    model, made = checkpoint.model(), checkpoint.specification
    if made.shuffled_labels:
        return {SHUFFLED: model}
    return {"": model, TWIN: moved_at_random(model, original, int(made.address[:12], 16))}


def changes_by_layer(
    checkpoints: Sequence[Checkpoint],
    evaluation_examples: int | None = None,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Figures 1, 2, 4 and 5: on a task's development set, pre-trained against tuned and against untrained, and seed
    against seed; the same of the models' twins.

    Args:
        checkpoints: the models of one task and encoder, all with true or all with shuffled labels, one per seed; one
            whose training diverged is left out. The untrained encoder is measured beside true labels.
        evaluation_examples: development examples, at most.
        variance_kept, batch_rows, device: of `comparison.compare`.

    Returns:
        The columns of `comparison.compare` with `task` before them and `control`; `first` and `second` are
        `pre-trained`, `untrained`, or a seed.
    """
    made = checkpoints[0].specification
    original, kinds = encoders.load_weights(encoders.locate(made.encoder)), {}
    for one in checkpoints:
        if not one.manifest["diverged"]:
            for control, model in _kinds(one, original).items():
                kinds.setdefault(control, {})[str(one.specification.seed)] = model
    models, compared = {PRETRAINED: original}, {}
    for control, of_seed in kinds.items():
        models |= {f"{seed} {control}": model for seed, model in of_seed.items()}
        for pair in [(PRETRAINED, seed) for seed in of_seed] + list(combinations(of_seed, 2)):
            compared[tuple(one if one in models else f"{one} {control}" for one in pair)] = (*pair, control)
    if not made.shuffled_labels:
        models[UNTRAINED] = untrained(made.encoder)
        compared[PRETRAINED, UNTRAINED] = (PRETRAINED, UNTRAINED, SHARED)
    if not compared:
        return pd.DataFrame()
    examples = evaluation_part(checkpoints[0], evaluation_examples)
    how = dict(batch_rows=batch_rows, device=device, fold_of=folds(examples["labels"]))
    table = compare(models, list(compared), examples, variance_kept, **how)
    of_pair = [compared[pair] for pair in zip(table["first"], table["second"], strict=True)]
    table[["first", "second", "control"]] = of_pair
    table.insert(0, "task", made.task)
    return table


def rollbacks(
    checkpoints: Sequence[Checkpoint],
    evaluation_examples: int | None = None,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Figure 3: the last layer of each tuned model, and of its twin, against itself with one layer rolled back;
    arguments as `changes_by_layer`.
    """
    parts = []
    for checkpoint in checkpoints:
        if checkpoint.manifest["diverged"]:
            continue
        made = checkpoint.specification
        original = encoders.load_weights(encoders.locate(made.encoder))
        examples = evaluation_part(checkpoint, evaluation_examples)
        fold_of = folds(examples["labels"])
        for control, model in _kinds(checkpoint, original).items():
            measured = layers_rolled_back(model, original, examples, variance_kept, batch_rows, device, fold_of)
            parts.append(measured.assign(task=made.task, seed=made.seed, control=control))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _labels_of_sets(of_sets: Sequence[datasets.Dataset]) -> list[str]:
    """Labels of a mixture, those of each data set apart."""
    return [f"{place} {label}" for place, of_set in enumerate(of_sets) for label in of_set["labels"]]


def between_datasets(
    checkpoints: Sequence[Checkpoint],
    pairs: Sequence[tuple[str, str]],
    mixed_examples: int,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
) -> pd.DataFrame:
    """Figures 6 and 7: models of two data sets compared on development examples of both, and their twins.

    Args:
        checkpoints: the models of all tasks, with true labels.
        pairs: of tasks.
        mixed_examples: of each of the two data sets, at most.

    Returns:
        The columns of `comparison.compare` with `pair` (`rte–mnli`), `seed` and `control`; no row where one of the two
        trainings diverged.
    """
    by_name = {
        (one.specification.task, one.specification.seed): one for one in checkpoints if not one.manifest["diverged"]
    }
    parts = []
    for pair in pairs:
        for seed in dict.fromkeys(seed for _, seed in by_name):
            if any((task, seed) not in by_name for task in pair):
                continue
            of_pair = {task: by_name[task, seed] for task in pair}
            original = encoders.load_weights(encoders.locate(of_pair[pair[0]].specification.encoder))
            models = {
                (task, control): model
                for task, checkpoint in of_pair.items()
                for control, model in _kinds(checkpoint, original).items()
            }
            of_sets = [evaluation_part(one, mixed_examples) for one in of_pair.values()]
            mixed, labels = datasets.concatenate_datasets(of_sets), _labels_of_sets(of_sets)
            compared = [tuple((task, control) for task in pair) for control in ("", TWIN)]
            how = dict(batch_rows=batch_rows, device=device, fold_of=folds(labels))
            measured = compare(models, compared, mixed, variance_kept, **how)
            control = [name for _, name in measured["first"]]
            measured[["first", "second"]] = [pair] * len(measured)
            parts.append(measured.assign(pair="–".join(pair), seed=seed, control=control))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
