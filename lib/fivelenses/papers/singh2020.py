"""What Singh and Giovanardi (2020) measure, as records: the tasks' data, frozen probes, and weights that moved.

The scores of the fine-tuned models, with and without re-initialised layers, are in `checkpoints.tables.models`.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.checkpoints.tables import example_rows
from fivelenses.lenses import weights
from fivelenses.models import encoders
from fivelenses.models.layers import PARTS, layer_list
from fivelenses.papers.models import converged, pretrained
from fivelenses.records import FINE_TUNED, SHUFFLED
from fivelenses.tasks import subset
from fivelenses.tasks.examples import TaskData, encode
from fivelenses.tasks.scores import score

MAX_ITERATIONS = 2_000  # enough for every regression to converge
DISTANCES = ["task", "examples", "seed", "layer", "part", "absolute", "relative", "steps", "control"]


def sizes(task: str, source: str) -> pd.DataFrame:
    """Table 1: `task`, `training_examples` (all that there are), `training_data` and `evaluation_data` (where they come
    from, in words), `labels` (their names), in one row.
    """
    data = tasks.load(task, source)
    row = {"task": task, "training_examples": data.splits["train"].num_rows}
    row |= {"training_data": data.provenance("train"), "evaluation_data": data.provenance("validation")}
    return pd.DataFrame([row | {"labels": ", ".join(data.labels)}])


def frozen_probes(
    encoder: str,
    task: str,
    source: str,
    sizes: Sequence[int],
    seeds: Sequence[int],
    max_length: int,
    device: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Figures 2 and 5a: a logistic regression on [CLS] of each layer of the frozen encoder.

    The first m layers of the encoder are the encoder truncated to m layers, so one pass gives the features of all
    truncations. Features are standardised by the training examples, and the regression has penalty 1.

    Args:
        sizes: numbers of training examples; of all but the most, the subsets are those on which the models of the same
            seeds are fine-tuned.
        seeds: of the subsets; a subset that is the whole is measured for the first alone.
        max_length: tokens that a text is cut to.

    Returns:
        `scores`: one row per size, draw and number of layers removed, with `task`, `examples`, `seed` (of the draw),
        `removed` (0…L - 1), `layers`, `score`, `null_rate`. `by_example`: one row per probe and development example,
        with `task`, `examples`, `seed`, `removed`, and the columns of `checkpoints.tables.by_example`.
    """
    data, located = tasks.load(task, source), encoders.locate(encoder)
    model, tokenizer = encoders.load_weights(located), encoders.tokenizer(located)
    depth, labels = len(layer_list(model)), np.array(data.splits["train"][data.task.label])
    draws = [(size, seed) for size in sizes for seed in (seeds if size < len(labels) else seeds[:1])]
    subsets = {(size, seed): subset(labels, size, seed) for size, seed in draws}
    used = np.unique(np.concatenate(list(subsets.values())))
    needed = TaskData(data.task, data.source, {**data.splits, "train": data.splits["train"].select(used)}, data.labels)
    kept = range(1, depth + 1)
    training, evaluation = (
        represent(model, encode(needed, split, tokenizer, max_length), kept, device=device)
        for split in ("train", "validation")
    )
    gold = np.array(data.splits["validation"][data.task.label])
    null = gold == np.bincount(gold).argmax()
    rows, examples = [], []
    for (_, seed), numbers in subsets.items():
        places = np.searchsorted(used, numbers)
        for layer in kept:
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITERATIONS))
            predicted = probe.fit(training[layer][places], labels[numbers]).predict(evaluation[layer])
            row = {"task": task, "examples": len(numbers), "seed": seed, "removed": depth - layer}
            scored = (predicted == gold, np.ones(gold.size), null, gold, predicted)
            examples.append(example_rows(row | {"metric": data.task.metric}, *scored))
            row |= {"layers": depth, "score": score(data.task.metric, predicted, gold)}
            rows.append(row | {"null_rate": null.mean() if data.task.metric == "accuracy" else 0.0})
    return {"scores": pd.DataFrame(rows), "by_example": pd.concat(examples, ignore_index=True)}


def weight_distances(checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """Figures 3 and 5b: how far each projection moved in the models of one encoder without re-initialised layers.

    Args:
        checkpoints: a model with re-initialised layers, or whose training diverged, is left out.

    Returns:
        One row per model, layer and projection, with `task`, `examples`, `seed`, `layer`, `part`, `absolute`,
        `relative`, `steps` (of its training), `control` (`shuffled labels` where it was trained on such).
    """
    original, rows = pretrained(checkpoints[0]), []
    for checkpoint in converged(checkpoints):
        made, manifest = checkpoint.specification, checkpoint.manifest
        if made.reinitialised:
            continue
        moved = weights.distance(original, checkpoint.model())
        model = (made.task, manifest["training_examples"], made.seed)
        how = (manifest["steps"], SHUFFLED if made.shuffled_labels else FINE_TUNED)
        for (row, place), absolute in np.ndenumerate(moved.absolute):
            rows.append((*model, row + 1, PARTS[place], absolute, moved.relative[row, place], *how))
    return pd.DataFrame(rows, columns=DISTANCES)
