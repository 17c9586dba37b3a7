"""What a run, or a sweep, reads and trains: checked before it starts, or printed by a dry run, with the time of the
chapter's published run scaled by the parameters in the layers × the examples that pass through, summed over models.
"""

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import product, repeat
from pathlib import Path

import datasets
import numpy as np
import pandas as pd

from fivelenses import records, tasks
from fivelenses.chapters import CHAPTERS, ChapterParameters, ParameterError
from fivelenses.checkpoints.store import Store
from fivelenses.comparison import check_tokens
from fivelenses.exhibits import counted
from fivelenses.files import RunError, store_folder
from fivelenses.judging import listed
from fivelenses.models import encoders
from fivelenses.tasks import folds, subset
from fivelenses.tasks.examples import encode
from fivelenses.tasks.sources import SourceError, mirror

FINE_TUNED = ("Classification", "QuestionAnswering", "MultipleChoice")  # ends of names of models with such heads
MIN_DISK = 2 * 10**9  # bytes that must be free before a run starts
# Layers and width of encoders that may not be at hand, by a part of their names; those of Turc et al. say theirs.
SHAPES = {"distilbert": (6, 768), "bert-base": (12, 768), "bert-large": (24, 1024), "multiberts": (12, 768)}
SHAPES |= {"mpnet-base": (12, 768), "MiniLM-L6": (6, 384), "MiniLM-L3": (3, 384)}
VOCABULARY = 30_522


def check_inputs(parameters: ChapterParameters, log: Callable[[str], None] = print) -> None:
    """Refuse, before anything is trained or measured, encoders that cannot be studied or read fewer tokens than a run
    asks for, examples too few to be compared, and a disk that is nearly full.
    `log` gets a line on each table of the reader's own, each encoder that was fine-tuned before, and layers left out.
    """
    folder = next(place for place in (store_folder(), *store_folder().parents) if place.exists())
    if (free := shutil.disk_usage(folder).free) < MIN_DISK:
        raise RunError(f"Only {free / 1e9:.1f} GB are free at {folder} and a run needs {MIN_DISK / 1e9:.0f}: make room")
    for task in map(tasks.find, parameters.tasks_trained()):
        if task.own:
            log(task.read)
    for name in dict.fromkeys(parameters.encoders_read()):
        shape = encoders.check_encoder(name, parameters.six_projections, parameters.fewest_layers)
        if heads := [one for one in shape.architectures or () if one.endswith(FINE_TUNED)]:
            log(f"{name}: its old head ({heads[0]}) is left out, and each model's new one is drawn by its seed")
        most, asked = encoders.positions(shape), getattr(parameters, "max_tokens", 0)
        if most is not None and most < asked:
            raise ParameterError(f"{name} reads {most} tokens at most: pass -p max_tokens={most}, not {asked}.")
    for line in _layers_left_out(parameters):
        log(line)
    for name, (compared, limit) in product(parameters.encoders_used(), parameters.sets_compared()):
        _check_compared(name, compared, limit, parameters)


def _layers_left_out(parameters: ChapterParameters) -> Iterator[str]:
    """A sentence on each parameter with numbers of layers that are more than the encoder has."""
    for name in parameters.numbers_of_layers:
        value, (layers, _) = getattr(parameters, name), _shape(parameters.encoder)
        numbers = value if isinstance(value, tuple) else (value,)
        if more := [str(one) for one in numbers if isinstance(one, int) and one > layers]:
            yield f"left out: {name} {listed(more)}, as {parameters.encoder} has {counted(layers, 'layer')}"


def _check_compared(name: str, compared: Sequence[str], limit: int | None, parameters: ChapterParameters) -> None:
    """Refuse development examples of these tasks, at most `limit` of each, with too few tokens to compare layers on."""
    encoder = encoders.locate(name)
    width, tokenizer = encoders.config(encoder).hidden_size, encoders.tokenizer(encoder)
    sets, labels = [], []
    for place, task in enumerate(compared):
        data = tasks.load(task, parameters.source, ("validation",))
        table = data.splits["validation"]
        chosen = subset(np.array(table[data.task.label]), limit or table.num_rows, seed=0)
        if len(chosen) > 2 * width:
            return  # each example has several tokens
        part = replace(data, splits={"validation": table.select(chosen)})
        sets.append(encode(part, "validation", tokenizer, parameters.schedule_of(task, name).max_length))
        labels += [f"{place} {label}" for label in sets[-1]["labels"]]
    check_tokens(datasets.concatenate_datasets(sets), width, folds(np.array(labels)))


def dry_run(number: int, runs: Sequence[ChapterParameters]) -> list[str]:
    """The lines that `--dry-run` prints of a chapter's run with these parameters, or of several runs together."""
    lines = {}
    for parameters in runs:
        lines |= dict.fromkeys(f"encoder: {_encoder(name)}" for name in parameters.encoders_read())
        also = parameters.also_read if parameters.source == "hub" else ()
        lines |= dict.fromkeys(f"data: {_data(parameters, name)}" for name in (*parameters.tasks_trained(), *also))
    try:
        lines |= dict.fromkeys(line for parameters in runs for line in _layers_left_out(parameters))
        models = pd.DataFrame(row for parameters in runs for row in _models(parameters))
    except SourceError:
        return [*lines, "an encoder is not at hand, so the models and their time are not known"]
    models = models.drop_duplicates(["encoder", "task", "training"])
    for (encoder, task), rows in models.groupby(["encoder", "task"], sort=False):
        missing, known = rows[rows["stored"].ne(True)], rows["stored"].notna().all()
        stored = f"{len(rows) - len(missing)} in" if known else "less those in"
        trained = f"{counted(len(missing), 'model')} to train ({stored} the store)"
        read = f"{_range(rows['examples'])} examples, {_range(rows['epochs'])} epochs"
        disk = f"{missing['bytes'].sum() / 1e9:.1f} GB of disk"
        lines[f"{encoder}, {tasks.find(task).title}: {trained} on {read}, {disk}"] = None
    return [*lines, _time(number, models["work"].sum())]


def _encoder(name: str) -> str:
    try:
        revision = encoders.locate(name).revision
    except SourceError:
        if not encoders.HUB_NAME.fullmatch(name):
            raise
        return f"{name}, from the hub, which cannot be read now"
    return f"{name}, " + ("on this machine" if revision is None else f"from the hub, {revision}")


def _data(parameters: ChapterParameters, name: str) -> str:
    task = tasks.find(name)
    if task.own:
        return task.read
    if parameters.source == "toyworld":
        return f"{task.title} from the toy world, generated"
    # Running text has no training examples: it is measured on alone.
    split = "train" if "train" in task.sizes else next(iter(task.sizes))
    if not mirror():
        place = f"{task.repository} {task.config}".strip()
        return f"{task.title} from the hub, {place}, revision {task.revision}, {task.sizes[split]:,} examples ({split})"
    try:
        return f"{task.title} from the mirror: {tasks.load(name, parameters.source).provenance(split)}"
    except SourceError as error:
        return f"{task.title} from the mirror: missing ({error})"


@cache
def _shape(encoder: str) -> tuple[int, int]:
    """The number and the width of an encoder's layers."""
    if not Path(encoder.removeprefix("random:")).is_absolute():  # a folder has its own configuration
        if miniature := re.search(r"_L-(\d+)_H-(\d+)_", encoder):
            return int(miniature[1]), int(miniature[2])
        if known := [shape for part, shape in SHAPES.items() if part in encoder]:
            return known[0]
    config = encoders.config(encoders.locate(encoder))
    return config.num_hidden_layers, config.hidden_size


def _models(parameters: ChapterParameters) -> Iterator[dict]:
    """Each model of a run: what it is trained on, how much work and disk it takes, and whether the store has it."""
    for encoder, name in product(parameters.encoders_used(), parameters.tasks_trained()):
        layers, width = _shape(encoder)
        size = 12 * layers * width**2  # parameters of the layers, without biases and norms
        sizes, stored = tasks.find(name).sizes, repeat(None)
        # Elsewhere the table is on the hub, from which a dry run fetches nothing: it cannot know the models' addresses.
        if tasks.find(name).own or parameters.source == "toyworld" or mirror():
            # `_data` names a table that the mirror lacks, and an encoder whose shape is known need not be at hand.
            with contextlib.suppress(SourceError):
                sizes = {split: data.num_rows for split, data in tasks.load(name, parameters.source).splits.items()}
                stored = [Store().place(one).is_dir() for one in parameters.specifications_of(name, encoder)]
        trainings = parameters.trainings(name, encoder, sizes["train"], layers)
        for training, is_stored in zip(trainings, stored, strict=False):
            examples = min(sizes["train"], training["examples"] or sizes["train"])
            row = {"encoder": encoder, "task": name, "training": str(training), "stored": is_stored}
            row |= {"examples": examples, "epochs": training["schedule"].all_epochs}
            row["work"] = size * (examples * row["epochs"] + sizes["validation"])
            # Saved states are whole models in half precision.
            states = len(training.get("saved_steps", ())) or training.get("states", 0)
            yield row | {"bytes": (4 + 2 * states) * (size + VOCABULARY * width)}


def _time(number: int, work: float) -> str:
    """What the published run took, times this work over its own."""
    files = sorted(records.committed_folder().glob(f"*/{number}-*/run.json"))
    leading = [facts for file in files if (facts := json.loads(file.read_text("utf-8")))["leads"]]
    if not leading:
        return "no published run of this chapter says how long it takes"
    published = CHAPTERS[number].parameters(**leading[0]["parameters"])
    times = work / sum(row["work"] for row in _models(published))
    took = timedelta(seconds=round(leading[0]["seconds"] + leading[0]["training_seconds"]))
    here = timedelta(minutes=max(1, round(times * took / timedelta(minutes=1))))
    return (
        f"about {times:.2g} times the published run's {took} ({leading[0]['device']}), "
        f"so {here} (h:mm:ss) on such a machine, within a factor of two; less on a GPU"
    )


def _range(values: pd.Series) -> str:
    return f"{values.min():,g}" if values.nunique() == 1 else f"{values.min():,g} to {values.max():,g}"
