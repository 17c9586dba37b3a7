"""Dry runs: what a run, or a sweep, would read and train, and about how long that takes; nothing is done.

Time is that of the chapter's published run, scaled by work: the parameters in the layers × the training and development
examples that pass through them, summed over models.
"""

import contextlib
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import cache

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


def dry_run(number: int, runs: Mapping[str, ChapterParameters]) -> list[str]:
    """The lines that `--dry-run` prints.

    Args:
        number: the chapter.
        runs: its parameters in each run, by the name of the point; a model that two of them share is counted once.
    """
    lines, counted_models, work = {}, set(), 0.0
    for parameters in runs.values():
        lines |= dict.fromkeys(f"encoder: {_encoder(name)}" for name in parameters.encoders_read())
        also = parameters.also_read if parameters.source == "hub" else ()
        lines |= dict.fromkeys(f"data: {_data(parameters, name)}" for name in (*parameters.tasks_trained(), *also))
    lines = list(lines)
    unknown = {name for one in runs.values() for name in one.encoders_used() if _layers(name) is None}
    for point, parameters in runs.items():
        for encoder in (name for name in parameters.encoders_used() if name not in unknown):
            for task in parameters.tasks_trained():
                line, added = _models(parameters, encoder, task, counted_models)
                lines.append(f"{point}: {line}" if point else line)
                work += added
    if unknown:
        return [*lines, f"{', '.join(sorted(unknown))} is not at hand, so its models and their time are not known"]
    return [*lines, _time(number, work)]


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
def _layers(encoder: str) -> tuple[int, int] | None:
    """The number and the width of an encoder's layers; None where they are not known and cannot be read."""
    if miniature := MINIATURE.search(encoder):
        return int(miniature[1]), int(miniature[2])
    if known := [shape for part, shape in SHAPES.items() if part in encoder]:
        return known[0]
    try:
        config = encoders.config(encoders.locate(encoder))
    except SourceError:
        return None
    return config.num_hidden_layers, config.hidden_size


def _size(encoder: str) -> int:
    """The parameters of an encoder's layers, without biases and norms: 12 times the square of the width in each."""
    layers, width = _layers(encoder)
    return 12 * layers * width**2


def _models(parameters: ChapterParameters, encoder: str, task: str, before: set[str]) -> tuple[str, float]:
    """The models of one encoder and task that are not among those before, which they join, in words; their work."""
    layers, width = _layers(encoder)
    rows, development = _rows(parameters, task)
    trainings = parameters.trainings(task, encoder, rows, layers)
    new = [one for one in trainings if f"{encoder} {task} {one}" not in before]
    before.update(f"{encoder} {task} {one}" for one in new)
    stored = 0
    # A checkpoint's address needs the data, which a dry run does not fetch from the hub.
    if tasks.find(task).own or parameters.source == "toyworld" or mirror():
        with contextlib.suppress(SourceError):
            made = zip(trainings, parameters.specifications_of(task, encoder), strict=True)
            stored = sum(Store().place(one).is_dir() for training, one in made if training in new)
    examples = [min(rows, one["examples"] or rows) for one in trainings]
    epochs = [one["schedule"].all_epochs for one in trainings]
    read = sum(min(rows, one["examples"] or rows) * one["schedule"].all_epochs + development for one in new)
    gigabytes = 4 * (_size(encoder) + VOCABULARY * width) * (len(new) - stored) / 1e9
    line = (
        f"{encoder}, {tasks.find(task).title}: {counted(len(new) - stored, 'model')} to train ({stored} in the store) "
        f"on {_range(examples)} examples, {_range(epochs)} epochs, {gigabytes:.1f} GB of disk"
    )
    return line, _size(encoder) * read


def _rows(parameters: ChapterParameters, task: str) -> tuple[int, int]:
    """Training and development examples of a task, counted where its data can be read, and as on the hub otherwise."""
    sizes = tasks.find(task).sizes
    if not tasks.find(task).own and (parameters.source == "toyworld" or mirror()):
        with contextlib.suppress(SourceError):  # `_data` has named what the mirror lacks.
            sizes = {split: data.num_rows for split, data in tasks.load(task, parameters.source).splits.items()}
    return sizes["train"], sizes["validation"]


def _time(number: int, work: float) -> str:
    """What the published run took, times the work of this one over its own."""
    files = sorted(records.committed_folder().glob(f"*/{number}-*/run.json"))
    leading = [file for file in files if json.loads(file.read_text("utf-8"))["leads"]]
    if not leading:
        return "no published run of this chapter says how long it takes"
    facts = json.loads(leading[0].read_text("utf-8"))
    models = pd.read_parquet(leading[0].with_name("models.parquet"))
    examples = models["examples"] * models["epochs"] + models["evaluation_examples"]
    times = work / float((models["encoder"].map(_size) * examples).sum())
    took = timedelta(seconds=facts["seconds"] + facts["training_seconds"])
    here = timedelta(minutes=round(times * took.total_seconds() / 60))
    return (
        f"about {times:.2g} times the published run's {timedelta(seconds=round(took.total_seconds()))} "
        f"({facts['device']}), so {here} (h:mm:ss) on such a machine, within a factor of two; less on a GPU"
    )


def _range(values: list) -> str:
    return f"{min(values):,g}" if min(values) == max(values) else f"{min(values):,g} to {max(values):,g}"
