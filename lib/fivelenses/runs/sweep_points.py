"""The points of a sweep: a grid, or a list of mappings, each point checked against its chapter before anything runs."""

import hashlib
import itertools
import json
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from fivelenses.runs.parameters import ParameterError, read_yaml
from fivelenses.runs.settings import find_chapter, settings

MAX_NAME_LENGTH = 80  # characters of a point's name: it is also the name of a file


def check_sweep(name: str | None, retries: int, workers: int | None = None) -> None:
    """Refuse what a sweep cannot be called or run with.

    Args:
        name: of its folder, None for one that is made from the points.
        retries: how often a point that failed is tried again.
        workers: that it runs on, None for as many as there can be.

    Raises:
        ValueError: in one sentence.
    """
    if retries < 0:
        raise ValueError(f"A point cannot be tried again {retries} times: give --retries 0 or more.")
    if name is not None and not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"A sweep's name is made of letters, digits, dots and dashes, not {name!r}.")
    check_workers(workers)


def check_workers(workers: int | None) -> None:
    """Refuse a sweep without a worker.

    Raises:
        ValueError: in one sentence.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"A sweep needs at least one worker, not {workers}.")


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        name: what is swept and its values here, written so that it can be the name of a file.
        overrides: parameters as the chapter takes them.
        values: each swept parameter, as it was given, and its value here: a number, a text, or JSON.
    """

    name: str
    overrides: Mapping[str, object]
    values: Mapping[str, object]


def read_grid(texts: Iterable[str]) -> dict[str, list]:
    """Names and values of a grid from ``name=value,value``, one or several in a text, separated by spaces.

    Values are YAML, so that a list can be one of them.

    Raises:
        ValueError: not of that form, a name twice, or a name without values.

    Example:
        >>> read_grid(["task=rte,mrpc seed=0,1", "depths=[0, 6],[0, 3, 6]"])
        {'task': ['rte', 'mrpc'], 'seed': [0, 1], 'depths': [[0, 6], [0, 3, 6]]}
    """
    grid: dict[str, list] = {}
    for pair in (pair for text in texts for pair in re.split(r"\s+(?=[^\s=,\[\]]+=)", text.strip())):
        name, equals, values = pair.partition("=")
        if not equals or not re.fullmatch(r"\w+", name):
            raise ValueError(f"A grid is written name=value,value, not {pair!r}.")
        if name in grid:
            raise ValueError(f"The grid names {name} twice: write all its values after one name.")
        try:
            grid[name] = read_yaml(f"[{values}]")
        except yaml.YAMLError as error:
            raise ValueError(
                f"The values of {name} are not YAML: {values!r}; write them as a,b or '[a, b],[c]'."
            ) from error
        if not grid[name]:
            raise ValueError(f"The grid gives {name} no value: write {name}=value,value.")
    if not grid:
        raise ValueError("The grid is empty: write name=value,value.")
    return grid


def expand(grid: Mapping[str, Sequence]) -> list[dict]:
    """Every combination of a grid's values; the last name changes fastest.

    Example:
        >>> expand({"task": ["rte", "mrpc"], "seed": [0, 1]})[1]
        {'task': 'rte', 'seed': 1}
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def read_list(file: Path) -> list[dict]:
    """The points of a YAML file: a list of mappings, parameter to value.

    Raises:
        ValueError: there is no such file, or it holds something else.
    """
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"The list of points cannot be read: {error.strerror} ({file}).") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"The list of points {file} is not YAML: {' '.join(str(error).split())[:200]}.") from error
    if not isinstance(content, list) or not content:
        raise ValueError(f"The list of points {file} has to be a list of mappings, one `- task: rte` per line.")
    for number, entry in enumerate(content, 1):
        if not isinstance(entry, dict) or not entry or not all(isinstance(name, str) for name in entry):
            raise ValueError(f"Entry {number} of {file} is not a mapping of parameters to values: {entry!r}.")
    return content


def read(grid: Sequence[str], file: Path | None) -> list[dict]:
    """The points of a grid or of a file, whichever is given.

    Raises:
        ValueError: both or neither is given, or it cannot be read.
    """
    if bool(grid) == (file is not None):
        raise ValueError("Give the points of a sweep either as --grid name=value,value or as --list FILE.")
    return expand(read_grid(grid)) if file is None else read_list(file)


def points(number: int, profile: str, entries: Sequence[Mapping], fixed: Mapping | None = None) -> list[Point]:
    """The points of a sweep, one per entry, each with what all share (`fixed`), checked against the chapter.

    A name in the singular is a plural parameter with one entry: ``task=rte`` is ``tasks=[rte]``.

    Raises:
        ParameterError: a point that the chapter refuses, named; or two points that are the same run.

    Example:
        >>> [point.overrides for point in points(1, "tiny", expand({"task": ["rte"], "seed": [0, 1]}))]
        [{'tasks': ['rte'], 'seeds': [0]}, {'tasks': ['rte'], 'seeds': [1]}]
    """
    if not entries:
        raise ParameterError("A sweep needs at least one point: give it a grid or a list.")
    swept = list(dict.fromkeys(name for entry in entries for name in entry))
    checked: dict[str, Point] = {}
    for entry in entries:
        overrides: dict[str, object] = {}
        for name, value in [*(fixed or {}).items(), *entry.items()]:
            if value is None:
                raise ParameterError(
                    f"The point {_words(entry)} gives {name} no value: give it one, or leave it to the profile."
                )
            parameter, one_entry = _parameter(number, name)
            if parameter in overrides:
                raise ParameterError(f"The point {_words(entry)} gives {parameter} twice.")
            overrides[parameter] = [value] if one_entry else value
        try:
            content = settings(number, profile, **overrides).model_dump(mode="json")
        except ParameterError as error:
            raise ParameterError(f"The point {_words(entry)} does not fit. {error}") from error
        run = json.dumps(content, sort_keys=True)
        if run in checked:
            raise ParameterError(f"The points {checked[run].name} and {_words(entry)} are the same run: name it once.")
        values = {name: _cell(content, number, name) for name in swept}
        name = _name({name: values[name] for name in entry})
        checked[run] = Point(name, {parameter: content[parameter] for parameter in overrides}, values)
    return list(checked.values())


def _parameter(number: int, name: str) -> tuple[str, bool]:
    """A parameter of the chapter from a name that may be in the singular, and whether it is."""
    fields = find_chapter(number).parameters.model_fields
    plural = fields.get(f"{name}s")
    if name in fields or plural is None:
        return name, False
    kinds = (plural.annotation, *typing.get_args(plural.annotation))
    singular = any(typing.get_origin(kind) is tuple for kind in kinds)
    return (f"{name}s" if singular else name), singular


def _cell(content: Mapping, number: int, name: str):
    """A point's value as a cell of a table."""
    parameter, singular = _parameter(number, name)
    value = content[parameter]
    if singular and len(value) == 1:
        value = value[0]
    return json.dumps(value) if isinstance(value, list | dict) else value


def _words(values: Mapping) -> str:
    return ",".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()
    )


def _name(values: Mapping) -> str:
    words = _words(values).replace('"', "").replace(" ", "")
    safe = re.sub(r"[^\w.,=+\[\]-]+", "-", words)
    if safe == words and len(safe) <= MAX_NAME_LENGTH:
        return safe
    return f"{safe[: MAX_NAME_LENGTH - 9]}-{hashlib.sha256(_words(values).encode()).hexdigest()[:8]}"
