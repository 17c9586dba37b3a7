"""Dry runs: what a run, or a sweep, would read and train, and about how long that takes; nothing is done.

Time is that of the chapter's published run, scaled by work: the parameters in the layers × the tokens that training
and one reading of the development examples pass through them, summed over models.
"""

import contextlib
import json
import re
from collections.abc import Collection, Sequence
from functools import cache

import pandas as pd
from transformers import BertConfig

from fivelenses import records, tasks
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.exhibits import counted
from fivelenses.models import encoders
from fivelenses.runs.parameters import FineTuningParameters
from fivelenses.runs.settings import settings
from fivelenses.runs.sweep import Point
from fivelenses.tasks.own import described
from fivelenses.tasks.sources import SourceError, mirror

# Layers, width and vocabulary of encoders that may not be at hand; the names of Turc et al.'s say theirs.
KNOWN = {
    "bert-base-uncased": (12, 768, 30_522),
    "bert-base-cased": (12, 768, 28_996),
    "bert-large-uncased": (24, 1024, 30_522),
    "bert-large-cased": (24, 1024, 28_996),
    encoders.MPNET: (12, 768, 30_527),
    encoders.MINILM: (6, 384, 30_522),
    "sentence-transformers/paraphrase-MiniLM-L3-v2": (3, 384, 30_522),
}
MINIATURE = re.compile(r"bert_uncased_L-(?P<layers>\d+)_H-(?P<width>\d+)_A-\d+")


def dry_run(number: int, profile: str, overrides: dict | None = None) -> list[str]:
    """The lines that `--dry-run` prints for a chapter.

    Raises:
        ParameterError: a parameter that does not exist or fit.
    """
    parameters = settings(number, profile, **(overrides or {}))
    of_run = f"{', '.join(parameters.encoders_used())}, tasks {', '.join(parameters.tasks)}, seeds {parameters.seeds}"
    lines, work = _models(parameters, set())
    return [f"chapter {number}, profile {profile}: {of_run}", *_inputs(parameters), *lines, *_time(number, work)]


def dry_sweep(number: int, profile: str, points: Sequence[Point], current: Collection[str]) -> list[str]:
    """The lines that `sweep --dry-run` prints: what is read, each point's models, and about how long all take.

    A model that several points share is counted at the first of them.

    Args:
        number, profile: the chapter, and the profile that its parameters come from.
        points: of the sweep.
        current: the names of those whose run is current.
    """
    chosen = {point.name: settings(number, profile, **point.overrides) for point in points if point.name not in current}
    amounts = f"{counted(len(points), 'point')}, {len(points) - len(chosen)} current, {len(chosen)} to run"
    lines, trained, work = [f"chapter {number}, profile {profile}: {amounts}"], set(), 0.0
    lines += dict.fromkeys(line for parameters in chosen.values() for line in _inputs(parameters))
    for name, parameters in chosen.items():
        of_point, added = _models(parameters, trained)
        lines += [f"{name}: {line}" for line in of_point]
        work += added
    return lines + (_time(number, work) if chosen else [])


def _inputs(parameters: FineTuningParameters) -> list[str]:
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


@cache
def shape(name: str) -> BertConfig | None:
    """The layers, width and vocabulary of an encoder, None where they are not known and cannot be read.

    Example:
        >>> shape("google/bert_uncased_L-4_H-256_A-4").num_hidden_layers, shape("toy-bert/seed-0").hidden_size
        (4, 64)
    """
    plain = name.removeprefix("random:").removeprefix("google-bert/").removeprefix("google/")
    plain = "bert-base-uncased" if plain.startswith("multiberts-seed_") else plain
    if plain in KNOWN:
        layers, width, vocabulary = KNOWN[plain]
    elif miniature := MINIATURE.fullmatch(plain):
        layers, width, vocabulary = int(miniature["layers"]), int(miniature["width"]), 30_522
    else:
        try:
            return encoders.config(encoders.locate(name))
        except SourceError:
            return None
    return BertConfig(num_hidden_layers=layers, hidden_size=width, intermediate_size=4 * width, vocab_size=vocabulary)


def in_layers(config: BertConfig) -> int:
    """The parameters of an encoder's layers, without biases and norms.

    Example:
        >>> in_layers(shape("bert-base-uncased"))
        84934656
    """
    width = config.hidden_size
    return config.num_hidden_layers * (4 * width**2 + 2 * width * config.intermediate_size)


def _data(parameters: FineTuningParameters, task: tasks.Task) -> str:
    if task.own:
        return f"data: {described(task.name)}"
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


def _rows(parameters: FineTuningParameters, name: str) -> tuple[int, int]:
    """Training and development examples of a task, counted where its data can be read, and as on the hub otherwise."""
    sizes = tasks.find(name).sizes
    if not tasks.find(name).own and (parameters.source == "toyworld" or mirror()):
        with contextlib.suppress(SourceError):  # `_data` has named what the mirror lacks.
            sizes = {split: data.num_rows for split, data in tasks.load(name, parameters.source).splits.items()}
    return sizes["train"], sizes["validation"]


def _is_stored(parameters: FineTuningParameters, encoder: str, task: str, training: dict) -> bool:
    # A checkpoint's address needs the data, which a dry run does not fetch from the hub.
    if parameters.source == "hub" and mirror() is None:
        return False
    try:
        return Store().place(specify(encoder, task, parameters.source, **training)).is_dir()
    except SourceError:
        return False


def _models(parameters: FineTuningParameters, trained: set[str]) -> tuple[list[str], float]:
    """A line for each encoder and task with the models that are not among `trained`, which they join, and the work."""
    lines, work, several = [], 0.0, len(parameters.encoders_used()) > 1
    for encoder in parameters.encoders_used():
        config = shape(encoder)
        if config is None:
            lines.append(f"{encoder}: its models can be counted when its configuration can be read")
            continue
        for name in parameters.tasks_trained():
            rows, development = _rows(parameters, name)
            trainings = parameters.trainings(name, encoder, rows, config.num_hidden_layers)
            new = [one for one in trainings if f"{encoder} {name} {one}" not in trained]
            trained.update(f"{encoder} {name} {one}" for one in new)
            missing = [one for one in new if not _is_stored(parameters, encoder, name, one)]
            examples = [min(rows, one["examples"] or rows) for one in trainings]
            epochs = [one["schedule"].all_epochs for one in trainings]
            for one in new:
                read = min(rows, one["examples"] or rows) * one["schedule"].all_epochs + development
                work += in_layers(config) * read * tasks.find(name).mean_tokens
            gigabytes = 4 * (in_layers(config) + config.vocab_size * config.hidden_size) * len(missing) / 1e9
            lines.append(
                f"{f'{encoder}, ' if several else ''}{tasks.find(name).title}: {counted(len(missing), 'model')} to "
                f"train ({len(new) - len(missing)} in the store) on {_range(examples)} examples, {_range(epochs)} "
                f"epochs, {gigabytes:.1f} GB of disk"
            )
    return lines, work


def _time(number: int, work: float) -> list[str]:
    """What the published run took, times the work of this one over its own."""
    every = [json.loads(file.read_text("utf-8")) | {"folder": file.parent} for file in _published(number)]
    published = next((one for one in every if one["leads"]), None)
    models = pd.read_parquet(published["folder"] / "models.parquet") if published else pd.DataFrame()
    done = sum(_work(one) for one in models.itertuples())
    if not done:
        return ["no published run of this chapter says how long it takes"]
    took, times = published["seconds"] + published["training_seconds"], work / done
    return [
        f"about {times:.2g} times the published run's {duration(took)} ({published['device']}), so "
        f"{duration(times * took)} on such a machine, within a factor of two; less on a GPU"
    ]


def _published(number: int) -> list:
    return sorted(records.committed_folder().glob(f"*/{number}-*/run.json"))


def _work(model) -> float:
    """The work of one row of a table of models."""
    config = shape(model.encoder)
    if config is None:
        return 0.0
    return (
        in_layers(config)
        * (model.examples * model.epochs + model.evaluation_examples)
        * tasks.find(model.task).mean_tokens
    )


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
