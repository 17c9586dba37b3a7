"""What all lenses show of models of which it is known where, how much and what changed.

For one task and seed there are these models, told apart by `kind`, `trained` and `dose`:

- `tuned`: fine-tuned as usual; and with 0, ¼, ½ and 2 times its steps (`dose`);
- `frozen`: fine-tuned with all layers frozen but those of `trained` (`3`, or `3-4`), embeddings included;
- `shuffled labels`: fine-tuned on permuted labels;
- `twin`: moved from the pre-trained encoder as far as `tuned`, in random directions; `functional twin`: moved in
  others until its last layer has changed as much;
- `heads permuted` and so on: the pre-trained encoder under a change of weights that changes nothing that it computes,
  with the head of `tuned`.

All are compared with the pre-trained encoder, on the same development examples; `readings` says what else is read.

Other models are trained on one kind of annotation alone (`properties_read`): what do probes, the geometry of labels and
structural probes read of it, and of the kinds that were not asked for?
"""

import copy
import timeit
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import datasets
import numpy as np
import pandas as pd
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import Activations, represent
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.checkpoints.tables import flat_labels
from fivelenses.comparison import (
    CCA,
    RSA,
    AttentionJS,
    Pair,
    PairLens,
    Sampled,
    check_tokens,
    compare_with,
    layers_rolled_back,
)
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.similarities import DebiasedCKA, mutual_neighbours, procrustes_distance
from fivelenses.models import encoders
from fivelenses.models.controls import moved_at_random, symmetries_of
from fivelenses.models.layers import layer_list, roll_back
from fivelenses.papers.merchant2020 import random_positions
from fivelenses.papers.models import Log, converged, model_of, pretrained
from fivelenses.papers.readings import (
    Setting,
    label_distance,
    label_reading,
    probe,
    rollback,
    separable,
    setting,
    tree_correlations,
    weight_distances,
)
from fivelenses.records import ALL, FROZEN, FULL, FUNCTIONAL_TWIN, PRETRAINED, SHUFFLED, TREES, TWIN
from fivelenses.tasks import TaskData, subset
from fivelenses.tasks.examples import encode

CHANGES = ["task", "seed", "kind", "trained", "dose", "measure", "layer", "value"]
PROPERTIES = ["trained_on", "seed", "property", "measure", "layer", "before", "after"]
SIMILARITIES = ("cka", "rsa", "cka_debiased", "neighbours")  # 1 minus which is a change
# Those that one pass over two models gives, in the order of the record.
COMPARED = ("js", "svcca", "pwcca", "cka", "rsa", "cka_debiased", "procrustes", "neighbours")
PROBE_SEEDS, PROBE_EPOCHS = range(2), 60
MAX_LENGTH = 128  # tokens of a sentence whose annotation is read
PRIME = 10_007  # keeps the noise of one seed's twin apart from that of another's symmetries


def changes_seen(
    checkpoints: Sequence[Checkpoint],
    doses: Sequence[float],
    structural_sentences: int,
    evaluation_examples: int | None = None,
    similarity_tokens: int = 500,
    probe_points: int = 300,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """All measures of the models of one task and seed.

    Args:
        checkpoints: one that was fine-tuned as usual, with those of other doses, with frozen layers, and on shuffled
            labels; one whose training diverged is left out.
        doses: the steps of the trainings of all layers on true labels, as shares of the usual.
        structural_sentences: training sentences of a structural probe, at most.
        evaluation_examples: development examples, at most; None for all.
        similarity_tokens: tokens of words on which RSA and neighbours are taken, at most.
        probe_points: training examples of a classifier probe and of the loss, at most.

    Returns:
        One row per model, measure and layer, with `task`, `seed`, `kind`, `trained` (`all`, `3` or `3-4`), `dose` (1 as
        usual), `measure`, `layer` (1…L), `value` (larger departs more from the pre-trained encoder). No row when the
        usual training diverged. Too few tokens for SVCCA are refused.
    """
    of_task = setting(checkpoints[0], evaluation_examples, probe_points, structural_sentences, device)
    check_tokens(of_task.examples, of_task.pretrained.config.hidden_size)
    models = _models_with_controls(checkpoints, doses, of_task, log)
    if (FULL, ALL, 1.0) not in models:
        return pd.DataFrame(columns=CHANGES)
    named = {str(place): model for place, model in enumerate(models.values())}
    table = pd.concat([_compared(named, of_task, similarity_tokens), *(read(named, of_task) for read in READERS)])
    kinds = pd.DataFrame(list(models), list(named), ["kind", "trained", "dose"])
    made = checkpoints[0].specification
    table = table.join(kinds, on="model").assign(task=made.task, seed=made.seed)[CHANGES].reset_index(drop=True)
    log(f"{made.task}, seed {made.seed}: {len(models)} models measured")
    return table.astype({"value": np.float32, "dose": np.float32, "layer": np.int8})


def seconds(
    checkpoints: Sequence[Checkpoint],
    structural_sentences: int,
    evaluation_examples: int | None = None,
    similarity_tokens: int = 500,
    probe_points: int = 300,
    device: str | None = None,
) -> pd.DataFrame:
    """What each measure costs: the time that it takes alone for all layers of one model, with the passes it needs.

    Returns:
        `measure`, `seconds`: the shorter of two measurements. What is read of the pre-trained encoder counts, too.
    """
    of_task = setting(checkpoints[0], evaluation_examples, probe_points, structural_sentences, device)
    model = {"0": checkpoints[0].model()}
    rows = [(key, _time(_compared, model, of_task, similarity_tokens, [key])) for key in COMPARED]
    for read, measures in READERS.items():
        taken = _time(read, model, of_task)
        rows += [(measure, taken) for measure in measures]
    return pd.DataFrame(rows, columns=["measure", "seconds"])


def _time(read: Callable, *arguments) -> float:
    """The shorter of two times that a reader takes."""
    return min(timeit.repeat(partial(read, *arguments), repeat=2, number=1))


def _trained_layers(made: Specification, depth: int) -> str:
    """The layers that a training changes, which are neighbours: `all`, `3`, or `3-4`."""
    free = [layer for layer in range(depth + 1) if layer not in made.frozen]
    return "-".join(map(str, dict.fromkeys((free[0], free[-1])))) if made.frozen else ALL


def _models_with_controls(
    checkpoints: Sequence[Checkpoint], doses: Sequence[float], of_task: Setting, log: Log
) -> dict[tuple[str, str, float], nn.Module]:
    """Models by kind, trained layers and dose; those that no training made are made here."""
    ordinary = [one for one in checkpoints if not one.specification.frozen and not one.specification.shuffled_labels]
    lengths = sorted({one.specification.schedule.epochs for one in ordinary})
    dose_of, depth, trained = dict(zip(lengths, sorted(doses), strict=True)), len(of_task.layers), {}
    for one in converged(checkpoints):
        made = one.specification
        kind = SHUFFLED if made.shuffled_labels else FROZEN if made.frozen else FULL
        dose = dose_of[made.schedule.epochs] if kind == FULL else 1.0
        trained[kind, _trained_layers(made, depth), float(dose)] = one
    models = {name: one.model() for name, one in trained.items()}
    if (FULL, ALL, 1.0) not in models:
        return models
    fine_tuned, seed = models[FULL, ALL, 1.0], checkpoints[0].specification.seed
    models[TWIN, ALL, 1.0] = moved_at_random(fine_tuned, of_task.pretrained, seed)
    functional = model_of(trained[FULL, ALL, 1.0], FUNCTIONAL_TWIN, of_task.pretrained, of_task.device, log)
    models |= {} if functional is None else {(FUNCTIONAL_TWIN, ALL, 1.0): functional}
    unchanged = copy.deepcopy(fine_tuned)
    roll_back(unchanged, of_task.pretrained, range(depth + 1))
    for kind, change in symmetries_of(unchanged).items():
        models[kind, ALL, 1.0] = change(unchanged, seed + PRIME)
    return models


Models = Mapping[str, nn.Module]


def _table(measure: str, model: str, values: np.ndarray) -> pd.DataFrame:
    """Rows of a measure of a model, from values (L,)."""
    return pd.DataFrame({"measure": measure, "model": model, "layer": range(1, len(values) + 1), "value": values})


def _lens(key: str, of_task: Setting, tokens: int) -> PairLens:
    """What compares two models as they read, and gives the column of that name."""
    if key == "js":
        return AttentionJS()
    if key in ("cka_debiased", "procrustes"):
        return Alignment(key)
    if key in ("rsa", "neighbours"):
        words = random_positions(of_task.examples, of_task.tokenizer, tokens)
        return RSA(words) if key == "rsa" else Sampled({key: mutual_neighbours}, words)
    return CCA((key,), variance_kept=1.0 if key == "pwcca" else 0.99)


def _compared(models: Models, of_task: Setting, tokens: int, keys: Sequence[str] = COMPARED) -> pd.DataFrame:
    """Attention and features of all models against the pre-trained encoder's, from one pass."""
    lenses = [_lens(key, of_task, tokens) for key in keys]
    every, pairs = {PRETRAINED: of_task.pretrained, **models}, [(PRETRAINED, name) for name in models]
    table = compare_with(lenses, every, pairs, of_task.examples, of_task.layers, device=of_task.device)
    parts = []
    for name, rows in table.groupby("second", sort=False):
        for key in keys:
            values = rows[key].to_numpy()
            parts.append(_table(key, name, 1 - values if key in SIMILARITIES else values))
    return pd.concat(parts)


def _labels_and_probe(models: Models, of_task: Setting) -> pd.DataFrame:
    """How far apart the labels lie in a layer's [CLS], and how well a probe reads them, against the pre-trained one."""
    before, parts = label_reading(of_task.pretrained, of_task, PROBE_SEEDS, PROBE_EPOCHS), []
    for name, model in models.items():
        after = label_reading(model, of_task, PROBE_SEEDS, PROBE_EPOCHS)
        parts.append(_table("labels", name, np.log(after.distances[0] / before.distances[0])))
        parts.append(_table("probe", name, after.right.mean(0) - before.right.mean(0)))
    return pd.concat(parts)


def _rolled_back(models: Models, of_task: Setting) -> pd.DataFrame:
    """The rise of the training loss with each layer alone reset to its pre-trained parameters, nats."""
    return pd.concat(_table("rollback", name, rollback(model, of_task).rises.mean(0)) for name, model in models.items())


def _last_layer(models: Models, of_task: Setting) -> pd.DataFrame:
    """How far the last layer's output moves (SVCCA) with each layer alone reset to its pre-trained parameters."""
    how = {"pretrained": of_task.pretrained, "examples": of_task.examples, "device": of_task.device}
    return pd.concat(_table("last", name, layers_rolled_back(one, **how)["svcca"]) for name, one in models.items())


def _weights(models: Models, of_task: Setting) -> pd.DataFrame:
    """How far each layer's projections moved, relative to what they were, mean of the six."""
    return pd.concat(_table("weights", name, weight_distances(model, of_task)) for name, model in models.items())


def _structure(models: Models, of_task: Setting) -> pd.DataFrame:
    """How much of the trees' distances and depths a structural probe no longer reads."""
    how = (of_task.tokenizer, of_task.source, of_task.sentences, of_task.device)
    before = tree_correlations(of_task.pretrained, *how)
    return pd.concat(
        _table("structure", name, before - tree_correlations(model, *how)) for name, model in models.items()
    )


# What reads models one by one, to the measures that it gives.
READERS = {
    _labels_and_probe: ("labels", "probe"),
    _rolled_back: ("rollback",),
    _last_layer: ("last",),
    _weights: ("weights",),
    _structure: ("structure",),
}


class Words(NamedTuple):
    """Encoded sentences, which of all their words (or pairs of words) are read, and the labels of these."""

    sentences: datasets.Dataset
    rows: np.ndarray
    labels: np.ndarray


def properties_read(
    checkpoints: Sequence[Checkpoint],
    planted: Sequence[str],
    probe_points: int = 300,
    structural_sentences: int = 60,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """What is read of each kind of annotation in the pre-trained encoder and in models that were trained on one kind.

    Args:
        checkpoints: models of one planted task, one per seed; one whose training diverged is left out.
        planted: the kinds of annotation that are read in each, as tasks on words.
        probe_points: words (or pairs) that a probe learns from, or is scored on, at most.

    Returns:
        One row per model, property and layer: `trained_on` (a task), `seed`, `property` (a task, or `trees`), `measure`
        (`probe`: accuracy; `labels`: mean distance of a label to its nearest; `structure`: rank correlation), `layer`
        (1…L), `before` (pre-trained encoder), `after`.
    """
    made = checkpoints[0].specification
    tokenizer = encoders.tokenizer(encoders.locate(made.encoder))
    words = {task: _words(task, made.source, tokenizer, probe_points) for task in planted}
    trees = (tokenizer, made.source, structural_sentences, device)

    def read(model: nn.Module) -> pd.DataFrame:
        rows = [row for task, of_task in words.items() for row in _of_words(model, task, *of_task, device)]
        correlations = tree_correlations(model, *trees)
        rows += [(TREES, "structure", layer, value) for layer, value in enumerate(correlations, 1)]
        return pd.DataFrame(rows, columns=["property", "measure", "layer", "value"])

    before = read(pretrained(checkpoints[0])).rename(columns={"value": "before"})
    tables = [
        before.assign(after=read(one.model())["value"], trained_on=made.task, seed=one.specification.seed)
        for one in converged(checkpoints)
    ]
    log(f"{made.task}: {len(tables)} models read")
    return pd.concat(tables, ignore_index=True)[PROPERTIES] if tables else pd.DataFrame(columns=PROPERTIES)


def _words(task: str, source: str, tokenizer: PreTrainedTokenizerBase, points: int) -> tuple[Words, Words]:
    """The training and the development words of a task."""
    data = tasks.load(task, source, ("train", "validation"))
    splits = []
    for split in ("train", "validation"):
        table = data.splits[split]
        part = table.select(subset(np.zeros(table.num_rows), min(points, table.num_rows), seed=0))
        encoded = encode(TaskData(data.task, source, {split: part}, data.labels), split, tokenizer, MAX_LENGTH)
        labels = flat_labels(encoded)
        rows = subset(labels, points, seed=0)
        splits.append(Words(encoded, rows, labels[rows]))
    return splits[0], splits[1]


def _of_words(model: nn.Module, task: str, training: Words, held_out: Words, device: str | None) -> list[tuple]:
    """Rows of (property, measure, layer, value): what probes and distances say of a task's words at each layer."""
    layers = range(1, len(layer_list(model)) + 1)
    x, y = (represent(model, words.sentences, layers, device=device) for words in (training, held_out))
    gold, rows = held_out.labels, []
    points = separable(gold, y[1].shape[1])
    for layer in layers:
        learned, states = x[layer][training.rows], y[layer][held_out.rows]
        right = probe(learned, training.labels, states, gold, PROBE_SEEDS, PROBE_EPOCHS)
        rows.append((task, "probe", layer, right.mean()))
        rows.append((task, "labels", layer, label_distance(states[points], gold[points])))
    return rows


class Alignment(PairLens):
    """Hidden states up to rotation and scaling, without folds, in one column: `cka_debiased` (a similarity in [−1, 1])
    or `procrustes` (a distance in [0, √2]).
    """

    def __init__(self, column: str) -> None:
        self._column = column

    def begin(self, pairs: Sequence[Pair], layers: Sequence[int], fold_of: np.ndarray) -> None:
        gathered = DebiasedCKA if self._column == "cka_debiased" else Moments
        self._of_layers = {layer: gathered(pairs) for layer in layers}

    def update(self, batches: Sequence[Activations]) -> None:
        for layer, gathered in self._of_layers.items():
            gathered.update(*(batch.tokens(layer) for batch in batches))

    def row(self, pair: Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        gathered = self._of_layers[layer]
        if isinstance(gathered, DebiasedCKA):
            return {self._column: gathered.similarity(*pair)}
        return {self._column: procrustes_distance(gathered.pair(*pair))}
