"""Dry runs: what a run, or a sweep, would read and train, and about how long that takes; nothing is done.

Time is that of the chapter's published run, scaled by work: the parameters in the layers × the training and development
examples that pass through them, summed over models.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache
from itertools import product, repeat

import pandas as pd

from fivelenses import records, tasks
from fivelenses.chapters import ChapterParameters
from fivelenses.checkpoints.store import Store
from fivelenses.exhibits import counted
from fivelenses.models import encoders
from fivelenses.tasks.own import description
from fivelenses.tasks.sources import SourceError, mirror

# Layers and width of encoders that may not be at hand, by a part of their names; those of Turc et al. say theirs.
SHAPES = {"bert-base": (12, 768), "bert-large": (24, 1024), "multiberts": (12, 768)}
SHAPES |= {"mpnet-base": (12, 768), "MiniLM-L6": (6, 384), "MiniLM-L3": (3, 384)}
MINIATURE = re.compile(r"_L-(\d+)_H-(\d+)_")
VOCABULARY = 30_522


def dry_run(number: int, runs: Sequence[ChapterParameters]) -> list[str]:
    """The lines that `--dry-run` prints of a chapter's run with these parameters, or of several runs together."""
    lines = {}
    for parameters in runs:
        lines |= dict.fromkeys(f"encoder: {_encoder(name)}" for name in parameters.encoders_read())
        also = parameters.also_read if parameters.source == "hub" else ()
        lines |= dict.fromkeys(f"data: {_data(parameters, name)}" for name in (*parameters.tasks_trained(), *also))
    unknown = {name for one in runs for name in one.encoders_used() if _shape(name) is None}
    if unknown:
        return [*lines, f"{', '.join(sorted(unknown))} is not at hand, so the models and their time are not known"]
    models = pd.DataFrame(row for parameters in runs for row in _models(parameters))
    models = models.drop_duplicates(["encoder", "task", "training"])
    described = []
    for (encoder, task), rows in models.groupby(["encoder", "task"], sort=False):
        stored, (_, width) = int(rows["stored"].sum()), _shape(encoder)
        gigabytes = 4 * (_size(encoder) + VOCABULARY * width) * (len(rows) - stored) / 1e9
        described.append(
            f"{encoder}, {tasks.find(task).title}: {counted(len(rows) - stored, 'model')} to train ({stored} in "
            f"the store) on {_range(rows['examples'])} examples, {_range(rows['epochs'])} epochs, "
            f"{gigabytes:.1f} GB of disk"
        )
    return [*lines, *described, _time(number, _work(models))]


def _encoder(name: str) -> str:
    try:
        encoder = encoders.locate(name)
    except SourceError:
        return f"{name}, from the hub, which cannot be read now"
    return f"{name}, " + ("on this machine" if encoder.revision is None else f"from the hub, {encoder.revision}")


def _data(parameters: ChapterParameters, name: str) -> str:
    task = tasks.find(name)
    if task.own:
        return description(name)
    if parameters.source == "toyworld":
        return f"{task.title} from the toy world, generated"
    # Running text has no training examples: it is measured on alone.
    split = "train" if "train" in task.sizes else next(iter(task.sizes))
    if not mirror():
        place = " ".join(filter(None, (task.repository, task.config)))
        return f"{task.title} from the hub, {place}, revision {task.revision}, {task.sizes[split]:,} examples ({split})"
    try:
        return f"{task.title} from the mirror: {tasks.load(name, parameters.source).provenance(split)}"
    except SourceError as error:
        return f"{task.title} from the mirror: missing ({error})"


@cache
def _shape(encoder: str) -> tuple[int, int] | None:
    """The number and the width of an encoder's layers; None where they are not known and cannot be read."""
    if miniature := MINIATURE.search(encoder):
        return int(miniature[1]), int(miniature[2])
    if known := [shape for part, shape in SHAPES.items() if part in encoder]:
        return known[0]
    with contextlib.suppress(SourceError):
        config = encoders.config(encoders.locate(encoder))
        return config.num_hidden_layers, config.hidden_size


def _size(encoder: str) -> int:
    """The parameters of an encoder's layers, without biases and norms: 12 times the square of the width in each."""
    layers, width = _shape(encoder)
    return 12 * layers * width**2


def _models(parameters: ChapterParameters) -> Iterator[dict]:
    """Each model of a run: what it is trained on, and whether the store has it."""
    for encoder, name in product(parameters.encoders_used(), parameters.tasks_trained()):
        sizes, stored = tasks.find(name).sizes, repeat(False)
        # Elsewhere the table is on the hub, from which a dry run fetches nothing.
        if tasks.find(name).own or parameters.source == "toyworld" or mirror():
            with contextlib.suppress(SourceError):  # `_data` has named what the mirror lacks
                sizes = {split: data.num_rows for split, data in tasks.load(name, parameters.source).splits.items()}
                stored = [Store().place(one).is_dir() for one in parameters.specifications_of(name, encoder)]
        trainings = parameters.trainings(name, encoder, sizes["train"], _shape(encoder)[0])
        for training, is_stored in zip(trainings, stored, strict=False):
            yield {
                "encoder": encoder,
                "task": name,
                "training": str(training),
                "examples": min(sizes["train"], training["examples"] or sizes["train"]),
                "epochs": training["schedule"].all_epochs,
                "evaluation_examples": sizes["validation"],
                "stored": is_stored,
            }


def _work(models: pd.DataFrame) -> float:
    """The parameters in the layers × the examples that pass through them, summed over models."""
    read = models["examples"] * models["epochs"] + models["evaluation_examples"]
    return float((models["encoder"].map(_size) * read).sum())


def _time(number: int, work: float) -> str:
    """What the published run took, times the work of this one over its own."""
    files = sorted(records.committed_folder().glob(f"*/{number}-*/run.json"))
    leading = [file for file in files if json.loads(file.read_text("utf-8"))["leads"]]
    if not leading:
        return "no published run of this chapter says how long it takes"
    facts = json.loads(leading[0].read_text("utf-8"))
    times = work / _work(pd.read_parquet(leading[0].with_name("models.parquet")))
    took = timedelta(seconds=facts["seconds"] + facts["training_seconds"])
    here = timedelta(minutes=round(times * took.total_seconds() / 60))
    return (
        f"about {times:.2g} times the published run's {timedelta(seconds=round(took.total_seconds()))} "
        f"({facts['device']}), so {here} (h:mm:ss) on such a machine, within a factor of two; less on a GPU"
    )


def _range(values: pd.Series) -> str:
    return f"{values.min():,g}" if values.nunique() == 1 else f"{values.min():,g} to {values.max():,g}"
