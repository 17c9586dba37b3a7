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
"""

import copy
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import datasets
import numpy as np
import pandas as pd
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import comparison, tasks
from fivelenses.activations import Activations, represent
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.checkpoints.tables import flat_labels
from fivelenses.lenses.similarities import DebiasedCKA, mutual_neighbours
from fivelenses.models import encoders
from fivelenses.models.controls import moved_at_random, symmetries_of
from fivelenses.models.layers import layer_list, roll_back
from fivelenses.papers import readings
from fivelenses.papers.merchant2020 import random_positions
from fivelenses.papers.models import Log, converged, model_of, pretrained
from fivelenses.records import ALL, FROZEN, FULL, FUNCTIONAL_TWIN, PRETRAINED, SHUFFLED, TREES, TWIN
from fivelenses.tasks import subset
from fivelenses.tasks.examples import encode

CHANGES = ["task", "seed", "kind", "trained", "dose", "measure", "layer", "value"]
PROPERTIES = ["trained_on", "seed", "property", "measure", "layer", "before", "after"]
SIMILARITIES = ("cka", "rsa", "cka_debiased", "neighbours")  # 1 minus which is a change
# Those that one pass over two models gives, in the order of the record.
COMPARED = ("js", "svcca", "pwcca", "cka", "rsa", "cka_debiased", "procrustes", "neighbours")
PROBE_SEEDS, PROBE_EPOCHS = range(2), 60
MAX_LENGTH = 128  # tokens of a sentence whose annotation is read
PRIME = 10_007  # keeps the noise of one seed's twin apart from that of another's symmetries

Models = Mapping[tuple[str, str, float], nn.Module]  # by kind, trained layers and dose
Changes = Iterator[tuple[str, tuple[str, str, float], np.ndarray]]  # measure, name of the model, and values (L,)


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
        structural_sentences, evaluation_examples, similarity_tokens, probe_points: as `chapters.KnownTruth` has them.

    Returns:
        One row per model, measure and layer, with `task`, `seed`, `kind`, `trained` (`all`, `3` or `3-4`), `dose` (1 as
        usual), `measure`, `layer` (1…L), `value` (larger departs more from the pre-trained encoder). No row when the
        usual training diverged.
    """
    of_task = readings.setting(checkpoints[0], evaluation_examples, probe_points, structural_sentences, device)
    models = _models_with_controls(checkpoints, doses, of_task, log)
    if (FULL, ALL, 1.0) not in models:
        return pd.DataFrame(columns=CHANGES)
    made, parts = checkpoints[0].specification, []
    compared = _compared(models, of_task, similarity_tokens)
    for measure, name, values in chain(compared, *(read(models, of_task) for read in READERS)):
        columns = (made.task, made.seed, *name, measure, of_task.layers, values)
        parts.append(pd.DataFrame(dict(zip(CHANGES, columns, strict=True))))
    log(f"{made.task}, seed {made.seed}: {len(models)} models measured")
    return pd.concat(parts, ignore_index=True).astype({"value": np.float32, "dose": np.float32, "layer": np.int8})


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
    of_task = readings.setting(checkpoints[0], evaluation_examples, probe_points, structural_sentences, device)
    model = {(FULL, ALL, 1.0): checkpoints[0].model()}
    rows = [(key, _time(_compared, model, of_task, similarity_tokens, [key])) for key in COMPARED]
    for read, measures in READERS.items():
        taken = _time(read, model, of_task)
        rows += [(measure, taken) for measure in measures]
    return pd.DataFrame(rows, columns=["measure", "seconds"])


def _time(read: Callable, *arguments) -> float:
    """The shorter of two times that a reader takes."""
    return min(timeit.repeat(lambda: list(read(*arguments)), repeat=2, number=1))


def _models_with_controls(
    checkpoints: Sequence[Checkpoint], doses: Sequence[float], of_task: readings.Setting, log: Log
) -> Models:
    """The models of the trainings, and those that no training made."""
    ordinary = [one for one in checkpoints if not one.specification.frozen and not one.specification.shuffled_labels]
    lengths = sorted({one.specification.schedule.epochs for one in ordinary})
    dose_of, depth, trained = dict(zip(lengths, sorted(doses), strict=True)), len(of_task.layers), {}
    for one in converged(checkpoints):
        made = one.specification
        kind = SHUFFLED if made.shuffled_labels else FROZEN if made.frozen else FULL
        dose = dose_of[made.schedule.epochs] if kind == FULL else 1.0
        free = [layer for layer in range(depth + 1) if layer not in made.frozen]
        # Neighbours: `3`, or `3-4`.
        layers = "-".join(map(str, dict.fromkeys((free[0], free[-1])))) if made.frozen else ALL
        trained[kind, layers, float(dose)] = one
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


def _lens(key: str, of_task: readings.Setting, tokens: int) -> comparison.PairLens:
    """What compares two models as they read, and gives the column of that name."""
    if key == "js":
        return comparison.AttentionJS()
    if key == "cka_debiased":
        return Debiased()
    if key in ("rsa", "neighbours"):
        words = random_positions(of_task.examples, of_task.tokenizer, tokens)
        return comparison.RSA(words) if key == "rsa" else comparison.Sampled({key: mutual_neighbours}, words)
    return comparison.CCA((key,), variance_kept=1.0 if key == "pwcca" else 0.99)


def _compared(models: Models, of_task: readings.Setting, tokens: int, keys: Sequence[str] = COMPARED) -> Changes:
    """Attention and features of all models against the pre-trained encoder's, from one pass."""
    lenses = [_lens(key, of_task, tokens) for key in keys]
    every, pairs = {PRETRAINED: of_task.pretrained, **models}, [(PRETRAINED, name) for name in models]
    table = comparison.compare_with(lenses, every, pairs, of_task.examples, of_task.layers, device=of_task.device)
    for name, rows in table.groupby("second", sort=False):
        for key in keys:
            values = rows[key].to_numpy()
            yield key, name, 1 - values if key in SIMILARITIES else values


def _labels_and_probe(models: Models, of_task: readings.Setting) -> Changes:
    """How far apart the labels lie in a layer's [CLS], and how well a probe reads them, against the pre-trained one."""
    before = readings.label_reading(of_task.pretrained, of_task, PROBE_SEEDS, PROBE_EPOCHS)
    for name, model in models.items():
        after = readings.label_reading(model, of_task, PROBE_SEEDS, PROBE_EPOCHS)
        yield "labels", name, np.log(after.distances[0] / before.distances[0])
        yield "probe", name, after.right.mean(0) - before.right.mean(0)


def _rolled_back(models: Models, of_task: readings.Setting) -> Changes:
    """The rise of the training loss with each layer alone reset to its pre-trained parameters, nats."""
    for name, model in models.items():
        rises, *_ = readings.rollback(model, of_task)
        yield "rollback", name, rises.mean(0)


def _last_layer(models: Models, of_task: readings.Setting) -> Changes:
    """How far the last layer's output moves (SVCCA) with each layer alone reset to its pre-trained parameters."""
    how = {"pretrained": of_task.pretrained, "examples": of_task.examples, "device": of_task.device}
    for name, model in models.items():
        yield "last", name, comparison.layers_rolled_back(model, **how)["svcca"]


def _weights(models: Models, of_task: readings.Setting) -> Changes:
    """How far each layer's projections moved, relative to what they were, mean of the six."""
    for name, model in models.items():
        yield "weights", name, readings.weight_distances(model, of_task)


def _structure(models: Models, of_task: readings.Setting) -> Changes:
    """How much of the trees' distances and depths a structural probe no longer reads."""
    how = (of_task.tokenizer, of_task.source, of_task.sentences, of_task.device)
    before = readings.tree_correlations(of_task.pretrained, *how)
    for name, model in models.items():
        yield "structure", name, before - readings.tree_correlations(model, *how)


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
        correlations = readings.tree_correlations(model, *trees)
        rows += [(TREES, "structure", layer, value) for layer, value in enumerate(correlations, 1)]
        return pd.DataFrame(rows, columns=["property", "measure", "layer", "value"])

    before = read(pretrained(checkpoints[0])).rename(columns={"value": "before"})
    tables = [
        before.assign(after=read(one.model())["value"], trained_on=made.task, seed=one.specification.seed)
        for one in converged(checkpoints)
    ]
    log(f"{made.task}: {len(tables)} models read")
    return pd.concat(tables, ignore_index=True)[PROPERTIES] if tables else pd.DataFrame(columns=PROPERTIES)


def _words(task: str, source: str, tokenizer: PreTrainedTokenizerBase, points: int) -> list[Words]:
    """The training and the development words of a task."""
    data, splits = tasks.load(task, source, ("train", "validation")), []
    for split, table in data.splits.items():
        part = table.select(subset(np.zeros(table.num_rows), points, seed=0))
        encoded = encode(replace(data, splits={split: part}), split, tokenizer, MAX_LENGTH)
        labels = flat_labels(encoded)
        rows = subset(labels, points, seed=0)
        splits.append(Words(encoded, rows, labels[rows]))
    return splits


def _of_words(model: nn.Module, task: str, training: Words, held_out: Words, device: str | None) -> list[tuple]:
    """Rows of (property, measure, layer, value): what probes and distances say of a task's words at each layer."""
    layers = range(1, len(layer_list(model)) + 1)
    x, y = (represent(model, words.sentences, layers, device=device) for words in (training, held_out))
    gold, rows = held_out.labels, []
    points = subset(gold, y[1].shape[1], seed=0)  # which planes separate, as in `readings`
    for layer in layers:
        learned, states = x[layer][training.rows], y[layer][held_out.rows]
        right = readings.probe(learned, training.labels, states, gold, PROBE_SEEDS, PROBE_EPOCHS)
        rows.append((task, "probe", layer, right.mean()))
        rows.append((task, "labels", layer, readings.label_distance(states[points], gold[points])))
    return rows


class Debiased(comparison.PairLens):
    """Debiased CKA of hidden states, without folds; column `cka_debiased`, a similarity in [−1, 1]."""

    def begin(self, pairs: Sequence[comparison.Pair], layers: Sequence[int], fold_of: np.ndarray) -> None:
        self._of_layers = {layer: DebiasedCKA(pairs) for layer in layers}

    def update(self, batches: Sequence[Activations]) -> None:
        for layer, gathered in self._of_layers.items():
            gathered.update(*(batch.tokens(layer) for batch in batches))

    def row(self, pair: comparison.Pair, layer: int, left_out: int | None = None) -> dict[str, float]:
        return {"cka_debiased": self._of_layers[layer].similarity(*pair)}
