"""Tasks of the reader's own among a chapter's parameters: their tables become names, and they take roles.

A task of the reader's own stands where a task of the profile stands: the chapter's first one that reads as many texts
(one or two), or else its first one that labels texts. It has that task's schedule, and is in every list that it is in.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from fivelenses import catalogue
from fivelenses.runs import encoder_names
from fivelenses.runs.hub import offline_if_silent
from fivelenses.runs.parameters import FineTuningParameters, ParameterError

FILES = (".csv", ".tsv", ".parquet", ".yaml", ".yml")
# The parameters whose values name tasks.
NAMING = ("tasks", *FineTuningParameters.naming_tasks)


def resolved(overrides: Mapping[str, object]) -> dict:
    """Parameters whose tables of the reader's own are read and replaced by the names of their tasks, and whose folders
    of encoders are named in full.

    Raises:
        SourceError: a table that cannot be read or learned from.

    Example:
        >>> resolved({"tasks": ["rte"], "seeds": [0]})
        {'tasks': ['rte'], 'seeds': [0]}
    """
    kinds = dict.fromkeys(NAMING, name_of) | dict.fromkeys(encoder_names.NAMING, encoder_names.in_full)
    return {name: _renamed(value, kinds[name]) if name in kinds else value for name, value in overrides.items()}


def _renamed(value, new: Callable[[str], str]):
    if isinstance(value, Mapping):
        return {_renamed(name, new): _renamed(one, new) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(one, new) for one in value]
    return new(value) if isinstance(value, str) else value


def name_of(named: str) -> str:
    """The name of a task: itself, or that of the task whose table it names.

    Raises:
        ParameterError: there is no such file.
        SourceError: a table that cannot be read or learned from.

    Example:
        >>> name_of("rte")
        'rte'
    """
    if catalogue.is_task(named) or not is_data(named):
        return named
    if not named.startswith("hub:") and not Path(named).expanduser().is_file():
        raise ParameterError(f"There is no file {Path(named).expanduser().absolute()}, which tasks names: correct it.")
    if named.startswith("hub:") and "FIVELENSES_MIRROR" not in os.environ:
        offline_if_silent()
    # What reads tables takes a second to load.
    from fivelenses.tasks import own

    return own.register(named).name


def is_data(named: str) -> bool:
    """Whether a task's name is that of a table or of a declaration.

    Example:
        >>> is_data("./reviews.csv"), is_data("hub:owner/name"), is_data("rte")
        (True, True, False)
    """
    return named.startswith("hub:") or named.lower().endswith(FILES)


def with_roles(number: int, parameters: type[FineTuningParameters], values: dict, overrides: Mapping) -> dict:
    """A profile's values with the roles of the tasks of the reader's own among the overrides.

    Args:
        number: the chapter.
        parameters: what it takes.
        values: the profile's.
        overrides: names for tables, see `resolved`; what is overridden stays as it is.

    Raises:
        ParameterError: the chapter takes no such tasks.
    """
    named = overrides.get("tasks")
    own = [name for name in named if _is_own(name)] if isinstance(named, list | tuple) else []
    if not own:
        return values
    if parameters.own_tasks_refused:
        raise ParameterError(
            f"Chapter {number} {parameters.own_tasks_refused}, so it does not take {catalogue.find(own[0]).title}."
        )
    values = dict(values)
    # One after another, so that the second finds the first in every list.
    for name in own:
        like = stands_for(name, values["tasks"])
        for field in FineTuningParameters.naming_tasks:
            if field == "schedules" or (field in values and field not in overrides):
                values[field] = _beside(values.get(field), like, name, field, [*named])
        for field in {"followed", "tuned_on"} & {*values} - {*overrides}:
            # These need one of the tasks that are run.
            if not {*values[field]} & {*named}:
                values[field] = [*values[field], name]
        if "second" in values and "second" not in overrides:
            # And these pairs of them.
            lacking = [one for one in named if one != name and values["second"].get(one) not in named]
            values["second"] = values["second"] | dict.fromkeys(lacking, name)
        if isinstance(overrides.get("schedules"), dict):
            overrides["schedules"].setdefault(name, values["schedules"][name])
    return values


def stands_for(name: str, tasks: tuple[str, ...]) -> str:
    """The task of a chapter in whose place a task of the reader's own stands.

    Example:
        >>> stands_for("rte", ["parsing", "cola", "mnli"])
        'mnli'
    """
    of_texts = [one for one in tasks if catalogue.find(one).head == "sequence"]
    alike = [one for one in of_texts if len(catalogue.find(one).inputs) == len(catalogue.find(name).inputs)]
    return (alike or of_texts)[0]


def _is_own(name: object) -> bool:
    return isinstance(name, str) and name not in catalogue.TASKS and catalogue.is_task(name)


def _beside(value, like: str, name: str, field: str, run: list[str]):
    """A value that names tasks, with a task of the reader's own wherever the one that it stands for is named."""
    if isinstance(value, dict):
        if like not in value:
            return value
        given = value[like]
        if field == "second":
            # Its partner has to be run beside it.
            others = [other for other in run if other != name]
            given = given if given in others else others[0] if others else given
        return value | {name: given}
    if isinstance(value, list):
        pairs = [[name if one == like else one for one in pair] for pair in value if isinstance(pair, list)]
        pairs = [pair for pair in pairs if name in pair and len(set(pair)) == len(pair)]
        return [*value, *pairs, *([name] if like in value and name not in value else [])]
    return name if value == like and like not in run else value
