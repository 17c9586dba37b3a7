"""Part 5: a property is planted, by training on a task that asks for one kind of annotation alone; what do probes, the
geometry of labels and structural probes see of it, and of the kinds that were not asked for?
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from torch import nn

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints.evaluation import flat_labels
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directprobe, mlp_probe
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.merchant2020.measure import structural_probes
from fivelenses.records import TREES
from fivelenses.tasks import TaskData
from fivelenses.tasks.examples import encode
from fivelenses.tasks.subsets import subset
from fivelenses.tasks.treebanks import treebank_of

HEADS = ("token", "token-pair")  # of tasks on words
PROBES = [mlp_probe.Configuration((64, 64), 1e-4, seed) for seed in range(2)]
PROBE_EPOCHS = 60
MAX_LENGTH = 128


def properties_read(
    checkpoints: Sequence[Checkpoint],
    planted: Sequence[str],
    probe_points: int = 300,
    structural_sentences: int = 60,
    device: str | None = None,
    log: Callable[[str], None] = print,
) -> pd.DataFrame:
    """What is read of each kind of annotation in the pre-trained encoder and in models that were trained on one kind.

    Args:
        checkpoints: models of one planted task, one per seed; one whose training diverged is left out.
        planted: the kinds of annotation that are read in each.
        probe_points: words (or pairs) that a probe learns from, and that it is scored on, at most.
        structural_sentences: training sentences of the structural probes, at most.
        device: a GPU when there is one, by default.
        log: takes a line of progress.

    Returns:
        One row per model, property and layer: `trained_on` (a task), `seed`, `property` (a task, or `trees`), `measure`
        (`probe`: accuracy; `labels`: mean distance of a label to its nearest; `structure`: rank correlation), `layer`
        (1…L), `before` (pre-trained encoder), `after`.
    """
    made = checkpoints[0].specification
    located = encoders.locate(made.encoder)
    pretrained, tokenizer = encoders.load_weights(located), encoders.tokenizer(located)
    examples = {task: _examples(task, made.source, tokenizer, probe_points) for task in planted}
    treebank = treebank_of(made.source)

    def read(model: nn.Module) -> pd.DataFrame:
        layers = range(1, len(layer_list(model)) + 1)
        parts = [_of_words(model, task, *of_task, layers, device) for task, of_task in examples.items()]
        table = structural_probes({"": model}, tokenizer, treebank, structural_sentences, device=device)
        of_trees = table.groupby("layer")["spearman"].mean().iloc[1:].to_numpy()
        parts.append(pd.DataFrame({"property": TREES, "measure": "structure", "layer": layers, "value": of_trees}))
        return pd.concat(parts, ignore_index=True)

    before = read(pretrained).rename(columns={"value": "before"})
    tables = []
    for one in checkpoints:
        if not one.manifest["diverged"]:
            after = read(one.model())["value"]
            tables.append(before.assign(after=after, trained_on=made.task, seed=one.specification.seed))
    log(f"{made.task}: {len(tables)} models read")
    columns = ["trained_on", "seed", "property", "measure", "layer", "before", "after"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def _examples(task: str, source: str, tokenizer, points: int) -> tuple:
    """Encoded training and development sentences, and which of their words are read."""
    data = tasks.load(task, source, ("train", "validation"))
    splits = []
    for split in ("train", "validation"):
        table = data.splits[split]
        kept = table.select(subset(np.zeros(table.num_rows), min(points, table.num_rows), seed=0))
        encoded = encode(TaskData(data.task, source, {split: kept}, data.labels), split, tokenizer, MAX_LENGTH)
        gold = flat_labels(encoded)
        splits.append((encoded, gold, subset(gold, points, seed=0)))
    return tuple(splits)


def _of_words(model: nn.Module, task: str, training, held_out, layers: range, device) -> pd.DataFrame:
    (x, y), (test, gold) = (
        (represent(model, encoded, layers, device=device), labels) for encoded, labels, _ in (training, held_out)
    )
    drawn, scored = training[2], held_out[2]
    # As many points as the encoder is wide are separable whatever their labels are: every layer has a distance.
    points = scored[subset(gold[scored], test[layers[0]].shape[1], seed=0)]
    rows = []
    for layer in layers:
        splits = (x[layer][drawn], y[drawn], test[layer][scored], gold[scored])
        accuracy = mlp_probe.fit(*splits, PROBES, PROBE_EPOCHS).test_accuracy.mean()
        distance = directprobe.probe(test[layer][points], gold[points]).min_distances.mean()
        rows += [(task, "probe", layer, accuracy), (task, "labels", layer, distance)]
    return pd.DataFrame(rows, columns=["property", "measure", "layer", "value"])
