"""What Singh and Giovanardi (2020) measure, as tidy tables: re-initialised models, frozen probes, moved weights."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints import Checkpoint
from fivelenses.lenses import weights
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.tasks import TaskData
from fivelenses.tasks.examples import encode, subset
from fivelenses.tasks.scores import majority_rate

MOST_ITERATIONS = 2_000


def reinitialised_scores(checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """Figure 1: the score of each fine-tuned model.

    Returns:
        One row a model: `task`, `examples` (it was trained on), `seed`, `reinitialised` (layers, from the top),
        `layers` (of the encoder), `score`, `null_rate` (of the majority; 0 for a correlation), `diverged`.
    """
    rows = []
    for checkpoint in checkpoints:
        made = checkpoint.manifest["specification"]
        rows.append(
            {
                "task": made["task"],
                "examples": checkpoint.manifest["training_examples"],
                "seed": made["seed"],
                "reinitialised": len(made["reinitialised"]),
                "layers": encoders.config(encoders.locate(made["encoder"])).num_hidden_layers,
                "score": checkpoint.score,
                "null_rate": checkpoint.manifest["null_rate"],
                "diverged": checkpoint.manifest["diverged"],
            }
        )
    return pd.DataFrame(rows)


def frozen_probes(
    encoder: str, data: TaskData, sizes: Sequence[int], seeds: Sequence[int], max_length: int, device: str | None = None
) -> pd.DataFrame:
    """Figures 2 and 5a: a logistic regression on [CLS] of each layer of the frozen encoder.

    The first m layers of the encoder are the encoder truncated to m layers, so one pass over the examples gives the
    features of all truncations. Features are standardised by the training examples, and the regression (penalty 1) is
    fitted until it has converged.

    Args:
        encoder: its name.
        data: a task with one label a text, splits `train` and `validation`.
        sizes: numbers of training examples; the subsets are those on which the models of the same seeds are tuned.
        seeds: of the subsets.
        max_length: pieces that a text is cut to.
        device: a GPU when there is one, by default.

    Returns:
        One row a size, seed and number of layers removed: `task`, `examples`, `seed`, `removed` (0…L - 1), `layers`,
        `score`, `null_rate`.
    """
    found = encoders.locate(encoder)
    model, tokenizer = encoders.load_weights(found), encoders.tokenizer(found)
    depth, labels = len(layer_list(model)), np.array(data.splits["train"][data.task.label])
    chosen = {(size, seed): subset(labels, size, seed) for size in sizes for seed in seeds}
    used = np.unique(np.concatenate(list(chosen.values())))
    needed = TaskData(data.task, data.source, {**data.splits, "train": data.splits["train"].select(used)}, data.labels)
    kept = range(1, depth + 1)
    training, evaluation = (
        represent(model, encode(needed, split, tokenizer, max_length), kept, device=device)
        for split in ("train", "validation")
    )
    gold = np.array(data.splits["validation"][data.task.label])
    rows = []
    for (_, seed), numbers in chosen.items():
        places = np.searchsorted(used, numbers)
        for layer in kept:
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MOST_ITERATIONS))
            probe.fit(training[layer][places], labels[numbers])
            rows.append(
                {
                    "task": data.task.name,
                    "examples": len(numbers),
                    "seed": seed,
                    "removed": depth - layer,
                    "layers": depth,
                    "score": tasks.score(data.task.metric, probe.predict(evaluation[layer]), gold),
                    "null_rate": majority_rate(gold) if data.task.metric == "accuracy" else 0.0,
                }
            )
    return pd.DataFrame(rows)


def weight_distances(encoder: str, checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """Figures 3 and 5b: how far each projection moved in the models without re-initialised layers.

    Returns:
        One row a model, layer and projection: `task`, `examples`, `seed`, `layer`, `part`, `absolute`, `relative`,
        `steps` (of its training).
    """
    original, rows = encoders.load_weights(encoders.locate(encoder)), []
    for checkpoint in checkpoints:
        made = checkpoint.manifest["specification"]
        if made["reinitialised"] or checkpoint.manifest["diverged"]:
            continue
        moved = weights.distance(original, checkpoint.model())
        for (row, place), absolute in np.ndenumerate(moved.absolute):
            rows.append(
                {
                    "task": made["task"],
                    "examples": checkpoint.manifest["training_examples"],
                    "seed": made["seed"],
                    "layer": row + 1,
                    "part": moved.parts[place],
                    "absolute": absolute,
                    "relative": moved.relative[row, place],
                    "steps": checkpoint.manifest["steps"],
                }
            )
    return pd.DataFrame(rows)
