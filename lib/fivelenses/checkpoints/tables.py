"""What training left behind, as tables: one row per model, and the losses along each training."""

from collections.abc import Sequence

import pandas as pd

from fivelenses.checkpoints.store import Checkpoint


def _name(checkpoint: Checkpoint) -> dict:
    specification = checkpoint.specification
    return {
        "encoder": specification.encoder,
        "task": specification.task,
        "seed": specification.seed,
        "examples": checkpoint.manifest["training_examples"],
        "frozen": max(specification.frozen, default=-1),
        "truncated": -1 if specification.truncated is None else specification.truncated,
        "reinitialised": len(specification.reinitialised),
        "shuffled_labels": specification.shuffled_labels,
        "epochs": specification.schedule.all_epochs,
        "address": specification.address,
    }


def models(checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """One row per model: what was trained, on what, how, and the score that it reached.

    Returns:
        `encoder`, `task`, `seed`, `examples` (training examples), `frozen` (the highest frozen layer, 0 the embeddings,
        -1 none), `truncated` (layers kept, -1 all), `reinitialised` (layers, counted from the top),
        `shuffled_labels` (trained on labels permuted among the examples), `epochs`, `address`; `learning_rate`,
        `batch_size`, `shape`, `max_length`, `steps`; `metric`, `score`, `null_rate` (the score without reading),
        `exact_match` and `uas` where the task has them; `evaluation_examples`, `training_data` (where they came from,
        in words), `diverged`, `seconds` (of training).
    """
    rows = []
    for checkpoint in checkpoints:
        manifest, schedule = checkpoint.manifest, checkpoint.specification.schedule
        row = _name(checkpoint) | {
            "learning_rate": schedule.learning_rate,
            "batch_size": schedule.batch_size,
            "shape": schedule.shape,
            "max_length": schedule.max_length,
            "training_data": manifest["provenance"]["train"],
        }
        measured = ("steps", "metric", "score", "null_rate", "evaluation_examples", "diverged", "seconds")
        row |= {name: manifest[name] for name in measured}
        rows.append(row | {name: manifest[name] for name in ("exact_match", "uas") if name in manifest})
    return pd.DataFrame(rows)


def histories(checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """The training loss along each training: the first columns of `models`, `steps` in all, `step`, `loss` (nats)."""
    return pd.DataFrame(
        [
            _name(checkpoint) | {"steps": checkpoint.manifest["steps"], "step": step, "loss": loss}
            for checkpoint in checkpoints
            for step, loss in checkpoint.manifest["history"]
        ]
    )
