"""What a run reads, checked before its notebook starts: encoders that cannot be studied, and examples too few to be
compared.
"""

import dataclasses
from collections.abc import Callable, Sequence

import datasets
import numpy as np

from fivelenses import tasks
from fivelenses.checkpoints import soundness
from fivelenses.comparison import check_tokens
from fivelenses.models import encoders
from fivelenses.runs.parameters import FineTuningParameters, ParameterError
from fivelenses.tasks.examples import encode
from fivelenses.tasks.own import described
from fivelenses.tasks.subsets import folds, subset


def check_inputs(parameters: FineTuningParameters, log: Callable[[str], None] = print) -> None:
    """Refuse what a run could not read or compare, before its notebook starts.

    Args:
        parameters: of the run.
        log: called with one line on each table of the reader's own, with the examples of each class.

    Raises:
        SourceError, ValueError: in one sentence.
    """
    for task in map(tasks.find, parameters.tasks_trained()):
        if task.own:
            log(described(task.name))
    check_encoders(parameters)
    for name in parameters.encoders_used():
        for compared, limit in parameters.sets_compared():
            _check_compared(name, compared, limit, parameters)


def check_encoders(parameters: FineTuningParameters) -> None:
    """Refuse encoders of a run that cannot be studied, or read fewer tokens than it asks for.

    Raises:
        SourceError, ValueError: in one sentence.
    """
    for name in dict.fromkeys(parameters.encoders_read()):
        most = encoders.positions(soundness.check_encoder(name, parameters.six_projections, parameters.fewest_layers))
        if most is not None and most < getattr(parameters, "max_tokens", 0):
            raise ParameterError(
                f"max_tokens is {parameters.max_tokens} and {name} reads {most} tokens at most: "
                f"pass -p max_tokens={most}."
            )


def _check_compared(name: str, compared: Sequence[str], limit: int | None, parameters: FineTuningParameters) -> None:
    """Refuse development examples of these tasks, at most `limit` of each, with too few tokens to compare layers on."""
    encoder = encoders.locate(name)
    width, tokenizer = encoders.config(encoder).hidden_size, encoders.tokenizer(encoder)
    labels, sets = [], []
    for place, task in enumerate(compared):
        data = tasks.load(task, parameters.source, ("validation",))
        rows = np.array(data.splits["validation"][data.task.label])
        chosen = np.arange(len(rows)) if limit is None else subset(rows, limit, seed=0)
        if len(chosen) > 2 * width:
            return  # each example has several tokens
        part = dataclasses.replace(data, splits={"validation": data.splits["validation"].select(chosen)})
        sets.append(encode(part, "validation", tokenizer, parameters.schedule_of(task, name).max_length))
        labels += [f"{place} {label}" for label in sets[-1]["labels"]]
    check_tokens(datasets.concatenate_datasets(sets), width, folds(np.array(labels)))
