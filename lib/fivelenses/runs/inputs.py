"""What a run reads, looked at before its notebook starts: encoders on this machine, and the tables of a mirror."""

import dataclasses
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fivelenses.catalogue import Task, find
from fivelenses.checkpoints import architectures
from fivelenses.comparison import check_tokens
from fivelenses.models import encoders
from fivelenses.runs import encoder_files
from fivelenses.runs.encoder_names import check_depth
from fivelenses.runs.parameters import FineTuningParameters, ParameterError, depth, positions
from fivelenses.tasks.examples import encode, load
from fivelenses.tasks.own import MIN_ROWS, described
from fivelenses.tasks.sources import SourceError, hub_table, mirror, raw_bytes
from fivelenses.tasks.subsets import folds, subset
from fivelenses.tasks.treebanks import STREUSLE, TREEBANKS

MAX_BLANK = 0.01  # the share of a table's texts that may be blank


def check_inputs(parameters: FineTuningParameters, log: Callable[[str], None] = print) -> None:
    """Refuse encoders and tables that a run could not read, in a sentence that names the file, and examples too few to
    be compared.

    Args:
        parameters: of the run.
        log: called with one line on each table of the reader's own, with the examples of each class.

    Raises:
        SourceError: an encoder that is not there or whose files are damaged, or a table of the mirror that is.
        ValueError: an encoder whose layers cannot be addressed, or too few examples.
    """
    for task in map(find, parameters.tasks_trained()):
        if task.own:
            log(described(task.name))
    for name in dict.fromkeys(parameters.encoders_read()):
        check_encoder_files(name, parameters.six_projections)
        check_depth(name, depth(name), parameters.fewest_layers)
        most, asked = positions(name), getattr(parameters, "max_tokens", None)
        if most is not None and asked is not None and asked > most:
            raise ParameterError(
                f"max_tokens is {asked} and {name} reads {most} tokens at most: pass -p max_tokens={most}."
            )
    folder = mirror()
    if parameters.source == "hub" and folder is not None:
        for task in map(find, parameters.tables_read()):
            if not task.own:
                check_task(task, folder)
    for name in parameters.encoders_used():
        for compared, limit in parameters.sets_compared():
            check_compared(name, compared, limit, parameters)


def check_compared(name: str, compared: Sequence[str], limit: int | None, parameters: FineTuningParameters) -> None:
    """Refuse development examples with too few tokens to compare an encoder's layers on.

    Args:
        name: the encoder's.
        compared: the tasks whose development examples are read together.
        limit: how many of each, at most; None for all.
        parameters: of the run.

    Raises:
        ValueError: in one sentence.
    """
    encoder = encoders.locate(name)
    width, tokenizer = encoders.config(encoder).hidden_size, encoders.tokenizer(encoder)
    labels, sets = [], []
    for place, task in enumerate(compared):
        data = load(task, parameters.source, ("validation",))
        rows = np.array(data.splits["validation"][data.task.label])
        chosen = np.arange(len(rows)) if limit is None else subset(rows, limit, seed=0)
        if len(chosen) > 2 * width:
            return  # each example has several tokens
        part = dataclasses.replace(data, splits={"validation": data.splits["validation"].select(chosen)})
        sets.append(encode(part, "validation", tokenizer, parameters.schedule_of(task, name).max_length))
        labels += [f"{place} {label}" for label in sets[-1]["labels"]]
    check_tokens(datasets.concatenate_datasets(sets), width, folds(np.array(labels)))


def check_encoder_files(name: str, projections: bool = False) -> None:
    """Refuse an encoder that is not there, cannot be addressed, or whose files are damaged or do not fit.

    Args:
        name: as `models.encoders` understands it.
        projections: whether the six projections of each layer are needed.

    Raises:
        SourceError, ValueError: in one sentence.

    Example:
        >>> check_encoder_files("toy-bert/seed-0")
    """
    encoder = encoders.locate(name)
    config = encoders.config(encoder)
    architectures.check(name, config, projections)
    if encoder.revision is None and Path(encoder.place).is_dir():
        encoder_files.check(Path(encoder.place), config.to_dict(), encoder.random)


def check_task(task: Task, folder: Path) -> None:
    """Refuse files of a task in a mirror that are missing, damaged, or hold what cannot be learned from.

    Raises:
        SourceError: the file, what is wrong with it, and what to do.
    """
    if task.treebank:
        for file in (TREEBANKS | {"streusle": STREUSLE})[task.treebank].values():
            try:
                raw_bytes(file)
            except (lzma.LZMAError, EOFError) as error:
                place = folder / "raw" / file.repository / file.tag / f"{file.path}.xz"
                raise SourceError(f"{place} is damaged or cut short ({error}): copy it again.") from error
        return
    for split, name in task.splits.items():
        file = folder / "datasets" / task.repository / task.config / f"{name}.parquet"
        if not file.is_file():
            hub_table(task, split)  # says what is missing and where it belongs
        _check_table(task, file)


def _check_table(task: Task, file: Path) -> None:
    columns = [*task.inputs, *([task.label] if task.label else [])]
    try:
        missing = set(columns) - set(pq.read_schema(file).names)
        if missing:
            there = f"it is not the hub's table of {task.title}"
            raise SourceError(f"{file} has no column {', '.join(sorted(missing))}: {there}.")
        table = pq.read_table(file, columns=columns)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0][:120]
        raise SourceError(f"{file} is damaged or cut short ({reason}): copy it again.") from error
    if table.num_rows < MIN_ROWS:
        there = f"{table.num_rows} of the {MIN_ROWS} rows" if table.num_rows else f"none of the {MIN_ROWS} rows"
        raise SourceError(f"{file} has {there} that {task.title} needs at least: copy the whole table.")
    for name in columns:
        if table[name].null_count:
            row = pc.index(table[name].is_null(), True).as_py()
            what = f"no {name} in {table[name].null_count:,} of its {table.num_rows:,} rows, first in row {row:,}"
            raise SourceError(f"{file} has {what}: remove these rows, or copy the table again.")
    if task.head == "sequence":
        _check_labels(task, file, table[task.label])
    if task.head in ("sequence", "span"):
        for name in task.inputs:
            blank = pc.equal(pc.utf8_trim_whitespace(table[name]), "")
            count = pc.sum(blank).as_py()
            if count > MAX_BLANK * table.num_rows:
                first = pc.index(blank, True).as_py()
                what = f"a blank {name} in {count:,} of its {table.num_rows:,} rows, first in row {first:,}"
                raise SourceError(f"{file} has {what}: copy the table again.")


def _check_labels(task: Task, file: Path, labels: pa.ChunkedArray) -> None:
    if not pa.types.is_integer(labels.type):
        raise SourceError(f"{file} has labels of the type {labels.type}: number them from 0, as the hub's table does.")
    least, greatest = pc.min_max(labels).as_py().values()
    if least < 0 or (task.labels and greatest >= len(task.labels)):
        meant = f"0 to {len(task.labels) - 1}" if task.labels else "0 and above"
        raise SourceError(
            f"{file} has labels from {least} to {greatest} where {task.title} has {meant}: rows without a label (-1) "
            "or of another task cannot be learned from, so copy the table again."
        )
    if least == greatest:
        raise SourceError(f"{file} has the label {least} alone, where there is nothing to tell apart: copy it again.")
