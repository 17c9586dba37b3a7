"""What Hao, Dong, Wei and Xu (2020), "Investigating Learning Dynamics of BERT Fine-Tuning", measure: fine-tuned against
pre-trained, layer rolled back, seed against seed, data set against data set.

The paper counts 24 layers from 0; here layers are 1…L, so its layers 0–10 are our 1–11, the lower 11/24 of any encoder.

The `control` is empty for the fine-tuned models, `twin` and `functional twin` for what moved as far at random
(`models.controls`), `shuffled labels` for models trained on such, `all` for what belongs to all. Each comparison
is made on all examples (`fold` −1) and without each of ten folds, where only SVCCA and JS divergence are measured.
"""

from collections.abc import Sequence
from itertools import combinations

import datasets
import pandas as pd

from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import CCA, AttentionJS, compare_with, layers_rolled_back
from fivelenses.papers.models import Log, controls, development_examples, models_of, pretrained, randomly_initialised
from fivelenses.records import FINE_TUNED, PRETRAINED, RANDOMLY_INITIALISED, SHARED
from fivelenses.tasks import folds

COLUMNS = ["task", "pair", "seed", "first", "second", "layer", "fold", "control", "examples", "js", "tokens"]


def changes_by_layer(
    checkpoints: Sequence[Checkpoint],
    evaluation_examples: int | None = None,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figures 1, 2, 4 and 5: on a task's development set, pre-trained against fine-tuned and against untrained, and
    seed against seed; the same of the models' twins.

    Args:
        checkpoints: the models of one task and encoder, all with true or all with shuffled labels, one per seed; one
            whose training diverged is left out. The untrained encoder is measured beside true labels.
        evaluation_examples: development examples, at most.
        variance_kept, batch_rows, device: of `comparison.compare_with`.

    Returns:
        The columns of `comparison.AttentionJS` and `CCA` with `task` and `control`; `first` and `second` are
        `pre-trained`, `untrained`, or a seed.
    """
    made, original, parts = checkpoints[0].specification, pretrained(checkpoints[0]), []
    examples = development_examples(checkpoints[0], evaluation_examples)
    how = dict(batch_rows=batch_rows, device=device, fold_of=folds(examples["labels"]))
    # One control at a time: what is gathered of all of them takes several times the memory.
    for control in controls(checkpoints[0]):
        models = {str(one.seed): model for one, model in models_of(checkpoints, control, original, device, log)}
        pairs = [(PRETRAINED, seed) for seed in models] + list(combinations(models, 2))
        models[PRETRAINED] = original
        if control == FINE_TUNED:
            models[RANDOMLY_INITIALISED] = randomly_initialised(made.encoder)
            pairs.append((PRETRAINED, RANDOMLY_INITIALISED))
        if pairs:
            measured = compare_with([AttentionJS(), CCA(variance_kept=variance_kept)], models, pairs, examples, **how)
            parts.append(measured.assign(control=control))
    table = _joined(parts)
    table.loc[table["second"] == RANDOMLY_INITIALISED, "control"] = SHARED
    return table.assign(task=made.task)


def rollbacks(
    checkpoints: Sequence[Checkpoint],
    evaluation_examples: int | None = None,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figure 3: the last layers of models and twins with one layer rolled back; arguments as of `changes_by_layer`."""
    original, parts = pretrained(checkpoints[0]), []
    examples = development_examples(checkpoints[0], evaluation_examples)
    how = dict(batch_rows=batch_rows, device=device, fold_of=folds(examples["labels"]))
    for control in controls(checkpoints[0]):
        for made, model in models_of(checkpoints, control, original, device, log):
            measured = layers_rolled_back(model, original, examples, variance_kept, **how)
            parts.append(measured.assign(task=made.task, seed=made.seed, control=control))
    return _joined(parts)


def between_datasets(
    checkpoints: Sequence[Checkpoint],
    pair: tuple[str, str],
    mixed_examples: int,
    variance_kept: float = 0.99,
    batch_rows: int = 32,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figures 6 and 7: models of two data sets compared on development examples of both, and their twins.

    Args:
        checkpoints: the models of both tasks of one seed, with true labels.
        mixed_examples: of each of the two data sets, at most.

    Returns:
        The columns of `comparison.AttentionJS` and `CCA` with `pair` (`rte–mnli`), `seed` and `control`; no row where
        one of the two trainings diverged.
    """
    original, seed, parts = pretrained(checkpoints[0]), checkpoints[0].specification.seed, []
    of_task = {one.specification.task: one for one in checkpoints}
    of_sets = [development_examples(of_task[task], mixed_examples) for task in pair]
    # Labels of each data set are apart.
    fold_of = folds([f"{place} {label}" for place, one in enumerate(of_sets) for label in one["labels"]])
    examples, how = datasets.concatenate_datasets(of_sets), dict(batch_rows=batch_rows, device=device, fold_of=fold_of)
    for control in controls(checkpoints[0]):
        models = {one.task: model for one, model in models_of(checkpoints, control, original, device, log)}
        if len(models) == 2:
            models = {task: models[task] for task in pair}
            measured = compare_with([AttentionJS(), CCA(variance_kept=variance_kept)], models, [pair], examples, **how)
            parts.append(measured.assign(pair="–".join(pair), seed=seed, control=control))
    return _joined(parts)


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One table; without a row where there is no model to compare."""
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COLUMNS, *CCA.MEASURES])
