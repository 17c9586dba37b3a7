"""Chapters by number, and their parameters from a profile: names and types are checked before a run starts, and one
sentence says what is wrong.

A parameter's value lives in one profile file (``notebooks/profiles/<profile>.yaml``); a caller may override it by name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ValidationError

from fivelenses import project
from fivelenses.chapters import FiveLenses, Hao2019, Hao2020, KnownTruth, Merchant2020, Singh2020, Zhou2022
from fivelenses.runs.parameters import ChapterParameters, ParameterError, check_layers

# What pydantic names besides the place of a value, where it may be of several kinds.
KIND = re.compile(r"(constrained-)?(int|float|str)$|(dict|tuple|function-after)\[")


@dataclass(frozen=True)
class Chapter:
    """A chapter of the book.

    Attributes:
        number, slug: its place, and its notebook's name without suffix.
        paper: its paper's key, empty for a chapter without one.
        parameters: what it takes.
        measures: the modules whose functions it measures with, by name, see :meth:`fivelenses.run.Run.measure`.
        profiles: the profiles it has.
        telling: the key of its headline exhibit, which other runs of the chapter are compared by.
    """

    number: int
    slug: str
    paper: str
    parameters: type[ChapterParameters]
    measures: tuple[str, ...]
    profiles: tuple[str, ...] = ("tiny", "small", "paper")
    telling: str = ""

    @property
    def notebook(self) -> Path:
        """The paired notebook (``.ipynb``; the ``.py`` beside it is the same in percent format)."""
        return project.root() / "notebooks" / f"{self.slug}.ipynb"


_SHARED = tuple(f"fivelenses.checkpoints.{name}" for name in ("tables", "predictions", "bag_of_words"))


def _measures(paper: str, *modules: str) -> tuple[str, ...]:
    """What every chapter measures with, and a paper's module, or these modules of its package."""
    package = f"fivelenses.papers.{paper}"
    return *_SHARED, *([f"{package}.{name}" for name in modules] or [package])


MEASURES = {
    1: _measures("hao2020"),
    2: _measures("zhou2022", "points", "geometry", "probes"),
    3: _measures("hao2019", "surfaces", "curvature", "training_paths"),
    4: _measures("singh2020"),
    5: _measures("merchant2020", "probes", "similarity"),
    6: _measures("five_lenses"),
    7: _measures("known_truth", "changes", "properties"),
}
CHAPTERS = {
    chapter.number: chapter
    for chapter in (
        Chapter(1, "1-attention-svcca", "hao2020", Hao2020, MEASURES[1], telling="hao2020-figure-1"),
        Chapter(2, "2-directprobe", "zhou2022", Zhou2022, MEASURES[2], telling="zhou2022-figure-4"),
        Chapter(3, "3-landscapes", "hao2019", Hao2019, MEASURES[3], telling="hao2019-figure-1"),
        Chapter(4, "4-reinitialisation", "singh2020", Singh2020, MEASURES[4], telling="singh2020-figure-1a"),
        Chapter(5, "5-probing-rsa", "merchant2020", Merchant2020, MEASURES[5], telling="merchant2020-figure-2"),
        Chapter(6, "6-five-lenses", "", FiveLenses, MEASURES[6], telling="five-lenses-overview"),
        Chapter(7, "7-known-truth", "", KnownTruth, MEASURES[7], ("tiny", "small"), telling="known-truth-summary"),
    )
}


def find_chapter(number: int) -> Chapter:
    """The chapter of that number.

    Raises:
        ParameterError: there is none.

    Example:
        >>> find_chapter(1).slug
        '1-attention-svcca'
    """
    if number not in CHAPTERS:
        raise ParameterError(f"There is no chapter {number!r}: there is {', '.join(map(str, CHAPTERS))}.")
    return CHAPTERS[number]


def profiles() -> list[str]:
    """The names of the profiles."""
    return sorted(file.stem for file in (project.root() / "notebooks" / "profiles").glob("*.yaml"))


def check_profile(profile: str) -> None:
    """Refuse a profile that does not exist.

    Raises:
        ParameterError: in one sentence.
    """
    if profile not in profiles():
        raise ParameterError(f"There is no profile {profile!r}: choose among {', '.join(profiles())}.")


def settings(number: int, profile: str, /, **overrides) -> ChapterParameters:
    """A chapter's parameters: the profile's values, with those overrides that are not None instead.

    Raises:
        ParameterError: an unknown chapter, profile or parameter, or a value of the wrong type; one sentence.
        SourceError: a table of the reader's own that cannot be read or learned from.

    Example:
        >>> settings(1, "tiny", seeds=[7, 8]).seeds
        (7, 8)
    """
    chapter = find_chapter(number)
    check_profile(profile)
    if profile not in chapter.profiles:
        raise ParameterError(f"Chapter {number} has no profile {profile!r}: it has {', '.join(chapter.profiles)}.")
    unknown = [name for name in overrides if name not in chapter.parameters.model_fields]
    if unknown:
        known = ", ".join(sorted(chapter.parameters.model_fields))
        raise ParameterError(f"Chapter {number} has no parameter {unknown[0]!r}: it has {known}.")
    file = project.root() / "notebooks" / "profiles" / f"{profile}.yaml"
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        shared = {name: value for name, value in content["all"].items() if name in chapter.parameters.model_fields}
        values = {**shared, **content["chapters"][number]}
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise ParameterError(
            f"The profile {file} cannot be read: it needs `all`, and a mapping for chapter {number} under `chapters`."
        ) from error
    overrides = {name: value for name, value in overrides.items() if value is not None}
    try:
        chosen = chapter.parameters(**values | following_encoder(chapter, overrides) | overrides)
    except ValidationError as error:
        raise ParameterError(f"Chapter {number}{_words(error, profile, overrides)}") from error
    check_layers(chosen, overrides)
    return chosen


def _words(error: ValidationError, profile: str, overrides: Mapping[str, object]) -> str:
    """The rest of a sentence that begins with the chapter: which value does not fit, and why."""
    # Of a value that may be of several kinds, what is deepest in it is what is wrong.
    of_field = [one for one in error.errors() if one["loc"][:1] == error.errors()[0]["loc"][:1]]
    first = max(of_field, key=lambda one: len(one["loc"]))
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    if not first["loc"]:  # parameters that do not go together: the message names them
        return f": {message}."
    name = ".".join(str(place) for place in first["loc"] if not KIND.match(str(place)))
    where = "overridden" if first["loc"][0] in overrides else f"in profile {profile}"
    return f", {name} ({where}): {message}, got {first['input']!r}."[:600]


def following_encoder(chapter: Chapter, overrides: Mapping[str, object]) -> dict:
    """What goes with another `encoder`: it alone is compared; its independent one has its shape and random weights."""
    name = overrides.get("encoder")
    follows = {"encoders": [name], "pretrained": [name], "independent": f"random:{name}"} if name else {}
    return {field: value for field, value in follows.items() if field in chapter.parameters.model_fields}


def resolved(number: int, profile: str, overrides: Mapping[str, object]) -> dict:
    """Overrides as the chapter has read them: tables of the reader's own by the names of their tasks, folders of
    encoders in full; those that are None are left out.

    Raises:
        ParameterError, SourceError: as `settings`.

    Example:
        >>> resolved(1, "tiny", {"tasks": ["rte"], "epochs": 3, "seeds": None})
        {'tasks': ['rte'], 'epochs': 3.0}
    """
    chosen = settings(number, profile, **overrides).model_dump(mode="json")
    return {name: chosen[name] for name, value in overrides.items() if value is not None}
