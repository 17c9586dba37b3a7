"""Dry runs: what a run, or a sweep, would read and train, and about how long that takes; nothing is done.

Time is that of the chapter's published run, scaled by work: the parameters in the layers × the training and development
examples that pass through them, summed over models.
"""

import contextlib
import json
import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING

import pandas as pd

from fivelenses import records, tasks
from fivelenses.chapters import ChapterParameters, settings
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.exhibits import counted
from fivelenses.models import encoders
from fivelenses.tasks.own import description
from fivelenses.tasks.sources import SourceError, mirror

if TYPE_CHECKING:
    from fivelenses.sweep import Point

# Layers and width of encoders that may not be at hand, by a part of their names; those of Turc et al. say theirs.
SHAPES = {"bert-base": (12, 768), "bert-large": (24, 1024), "multiberts": (12, 768), "mpnet-base": (12, 768)}
SHAPES |= {"MiniLM-L6": (6, 384), "MiniLM-L3": (3, 384)}
MINIATURE = re.compile(r"_L-(\d+)_H-(\d+)_")
VOCABULARY = 30_522


def dry_run(number: int, profile: str, overrides: dict | None = None) -> list[str]:
    """The lines that `--dry-run` prints for a chapter; a parameter that does not exist or fit is refused."""
    parameters = settings(number, profile, **(overrides or {}))
    of_run = f"{', '.join(parameters.encoders_used())}, tasks {', '.join(parameters.tasks)}, seeds {parameters.seeds}"
    lines, work = _models(parameters, set())
    return [f"chapter {number}, profile {profile}: {of_run}", *_inputs(parameters), *lines, *_time(number, work)]


def dry_sweep(number: int, profile: str, points: "Sequence[Point]", current: Collection[str]) -> list[str]:
    """The lines that `sweep --dry-run` prints: what is read, each point's models, and about how long all take.

    A model that several points share is counted at the first of them.

    Args:
        number, profile: the chapter, and the profile that its parameters come from.
        points: of the sweep.
        current: the names of those whose run is current.
    """
    chosen = {point.name: settings(number, profile, **point.overrides) for point in points if point.name not in current}
    amounts = f"{counted(len(points), 'point')}, {len(points) - len(chosen)} current, {len(chosen)} to run"
    lines, counted_models, work = [f"chapter {number}, profile {profile}: {amounts}"], set(), 0.0
    lines += dict.fromkeys(line for parameters in chosen.values() for line in _inputs(parameters))
    for name, parameters in chosen.items():
        of_point, added = _models(parameters, counted_models)
        lines += [f"{name}: {line}" for line in of_point]
        work += added
    return lines + (_time(number, work) if chosen else [])


def _inputs(parameters: ChapterParameters) -> list[str]:
    """What a run reads, a line each."""
    lines = []
    for name in parameters.encoders_used():
        try:
            encoder = encoders.locate(name)
            place = "on this machine" if encoder.revision is None else f"from the hub, revision {encoder.revision}"
        except SourceError:
            place = "from the hub, which cannot be read now"
        lines.append(f"{name}: {place}")
    return lines + [_data(parameters, tasks.find(name)) for name in parameters.tables_read()]


def _data(parameters: ChapterParameters, task: tasks.Task) -> str:
    if task.own:
        return f"data: {description(task.name)}"
    if parameters.source == "toyworld":
        return f"data: {task.title} from the toy world, generated"
    # Running text has no training examples: it is measured on alone.
    split = "train" if "train" in task.sizes else next(iter(task.sizes))
    if not mirror():
        where = " ".join(filter(None, (task.repository, task.config)))
        amount = f"{task.sizes[split]:,} {'training' if split == 'train' else split} examples"
        return f"data: {task.title} from the hub, {where}, revision {task.revision}, {amount}"
    try:
        return f"data: {task.title} from the mirror: {tasks.load(task.name, parameters.source).provenance(split)}"
    except SourceError as error:
        return f"data: {task.title} from the mirror: missing ({error})"


@cache
def _layers(encoder: str) -> tuple[int, int] | None:
    """The number and the width of an encoder's layers, None where they are not known and cannot be read."""
    if miniature := MINIATURE.search(encoder):
        return int(miniature[1]), int(miniature[2])
    for part, shape in SHAPES.items():
        if part in encoder:
            return shape
    try:
        config = encoders.config(encoders.locate(encoder))
    except SourceError:
        return None
    return config.num_hidden_layers, config.hidden_size


def _size(encoder: str) -> int:
    """The parameters of an encoder's layers, without biases and norms: 12 times the square of the width in each."""
    layers, width = _layers(encoder)
    return 12 * layers * width**2


def _models(parameters: ChapterParameters, before: set[str]) -> tuple[list[str], float]:
    """A line for each encoder and task with the models that are not among those before, which they join; their work."""
    lines, work = [], 0.0
    for encoder in parameters.encoders_used():
        if _layers(encoder) is None:
            lines.append(f"{encoder}: its models can be counted when its configuration can be read")
            continue
        layers, width = _layers(encoder)
        for name in parameters.tasks_trained():
            rows, development = _rows(parameters, name)
            trainings = parameters.trainings(name, encoder, rows, layers)
            new = [one for one in trainings if f"{encoder} {name} {one}" not in before]
            before.update(f"{encoder} {name} {one}" for one in new)
            missing = sum(not _is_stored(parameters, encoder, name, one) for one in new)
            examples = [min(rows, one["examples"] or rows) for one in trainings]
            epochs = [one["schedule"].all_epochs for one in trainings]
            read = sum(min(rows, one["examples"] or rows) * one["schedule"].all_epochs + development for one in new)
            work += _size(encoder) * read
            gigabytes = 4 * (_size(encoder) + VOCABULARY * width) * missing / 1e9
            lines.append(
                f"{encoder}, {tasks.find(name).title}: {counted(missing, 'model')} to train ({len(new) - missing} in "
                f"the store) on {_range(examples)} examples, {_range(epochs)} epochs, {gigabytes:.1f} GB of disk"
            )
    return lines, work


def _rows(parameters: ChapterParameters, name: str) -> tuple[int, int]:
    """Training and development examples of a task, counted where its data can be read, and as on the hub otherwise."""
    sizes = tasks.find(name).sizes
    if not tasks.find(name).own and (parameters.source == "toyworld" or mirror()):
        with contextlib.suppress(SourceError):  # `_data` has named what the mirror lacks.
            sizes = {split: data.num_rows for split, data in tasks.load(name, parameters.source).splits.items()}
    return sizes["train"], sizes["validation"]


def _is_stored(parameters: ChapterParameters, encoder: str, task: str, training: dict) -> bool:
    # A checkpoint's address needs the data, which a dry run does not fetch from the hub.
    if parameters.source == "hub" and mirror() is None:
        return False
    try:
        return Store().place(specify(encoder, task, parameters.source, **training)).is_dir()
    except SourceError:
        return False


def _time(number: int, work: float) -> list[str]:
    """What the published run took, times the work of this one over its own."""
    for file in sorted(records.committed_folder().glob(f"*/{number}-*/run.json")):
        facts = json.loads(file.read_text("utf-8"))
        if facts["leads"]:
            took = facts["seconds"] + facts["training_seconds"]
            times = work / _published_work(pd.read_parquet(file.with_name("models.parquet")))
            return [
                f"about {times:.2g} times the published run's {duration(took)} ({facts['device']}), so "
                f"{duration(times * took)} on such a machine, within a factor of two; less on a GPU"
            ]
    return ["no published run of this chapter says how long it takes"]


def _published_work(models: pd.DataFrame) -> float:
    """The work of a published run, from its table of models."""
    examples = models["examples"] * models["epochs"] + models["evaluation_examples"]
    return float((models["encoder"].map(_size) * examples).sum())


def _range(values: list) -> str:
    return f"{min(values):,g}" if min(values) == max(values) else f"{min(values):,g} to {max(values):,g}"


def duration(seconds: float) -> str:
    """A time as a reader takes it in.

    Example:
        >>> duration(70), duration(600), duration(9000), duration(9e6)
        ('70 s', '10 min', '2.5 h', '2,500 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 3600:,.0f} h"
