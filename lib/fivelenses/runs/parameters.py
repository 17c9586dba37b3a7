"""Chapters and their parameters: names and types are checked, with one sentence for what is wrong, before a run starts.

A parameter's value lives in one profile file (``notebooks/profiles/<profile>.yaml``); a caller may override it by name.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from fivelenses import project, tasks
from fivelenses.checkpoints import Schedule, Specification, specify

Positive = Annotated[int, Field(gt=0)]


class ParameterError(ValueError):
    """A parameter, profile or chapter that does not exist or does not fit; the message says which and what to do."""


class ScheduleParameters(BaseModel):
    """A fine-tuning schedule as a profile writes it; see `checkpoints.Schedule`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    learning_rate: Annotated[float, Field(gt=0)]
    batch_size: Positive
    epochs: Annotated[float, Field(ge=0)]
    shape: Literal["slanted-triangular", "linear"] = "slanted-triangular"
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.1
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    max_length: Annotated[int, Field(ge=4)] = 128
    by_length: bool = False


class ChapterParameters(BaseModel):
    """What every chapter takes.

    Attributes:
        encoder: a name as `models.encoders` understands it.
        source: `toyworld` or `hub` (which FIVELENSES_MIRROR turns to a folder).
        seeds: fine-tuning seeds, at least two where the chapter compares seeds.
        device: `auto`, `cpu` or `cuda`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    encoder: str
    source: Literal["toyworld", "hub"]
    seeds: tuple[int, ...] = Field(min_length=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value):
        if len(set(value)) != len(value):
            raise ValueError("a seed is named twice")
        return value


class FineTuningParameters(ChapterParameters):
    """What every chapter takes that fine-tunes encoders on tasks.

    Attributes:
        tasks: tasks fine-tuned and compared.
        schedules: task to schedule.
        learning_rate, batch_size, epochs: when given, in place of every schedule's own.
        training_examples: at most so many a task; None for all.
        evaluation_examples: development examples on which models are compared, at most; None for all.
    """

    heads: ClassVar[tuple[str, ...]] = ("sequence",)

    tasks: tuple[str, ...] = Field(min_length=1)
    schedules: dict[str, ScheduleParameters]
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    batch_size: Positive | None = None
    epochs: Annotated[float, Field(gt=0)] | None = None
    training_examples: Positive | None = None
    evaluation_examples: Positive | None = None

    @field_validator("tasks")
    @classmethod
    def _known(cls, value):
        for name in value:
            if tasks.find(name).head not in cls.heads:
                raise ValueError(f"{name} has a {tasks.find(name).head} head, which this chapter does not fine-tune")
        if len(set(value)) != len(value):
            raise ValueError("a task is named twice")
        return value

    @model_validator(mode="after")
    def _scheduled(self):
        lacking = [name for name in self.tasks if name not in self.schedules]
        if lacking:
            raise ValueError(f"schedules has none for {', '.join(lacking)}")
        return self

    def schedule(self, task: str) -> Schedule:
        """The schedule of a task, with `learning_rate`, `batch_size` and `epochs` in their places."""
        overrides = {"learning_rate": self.learning_rate, "batch_size": self.batch_size, "epochs": self.epochs}
        given = {key: value for key, value in overrides.items() if value is not None}
        return Schedule(**self.schedules[task].model_dump() | given)

    def encoders_used(self) -> tuple[str, ...]:
        """The encoders that are fine-tuned."""
        return (self.encoder,)

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        """The schedule of a task for one of the encoders."""
        return self.schedule(task)

    def states_kept(self, task: str, encoder: str) -> int | None:
        """How many states along training are kept, None for the last alone."""
        return None

    def specification(self, task: str, seed: int, encoder: str) -> Specification:
        """What a model of this run is made from."""
        return specify(
            encoder,
            task,
            self.source,
            seed,
            self.schedule_of(task, encoder),
            examples=self.training_examples,
            states=self.states_kept(task, encoder),
        )

    def passes(self, task: str, encoder: str, depth: int) -> int:
        """Passes over a task's measured examples, for an estimate of time."""
        # The pre-trained and an untrained encoder, each tuned model, and each of those with one layer after another
        # put back.
        return 2 + len(self.seeds) * (2 + depth)


class ToyWorld(FineTuningParameters):
    """Chapter 0: what the toy world's tasks ask for, and what pre-training is worth on them.

    Attributes:
        pretrained: encoders that differ in their pre-training seed; each is fine-tuned with the seed of its place
            in `seeds`.
    """

    pretrained: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_seed_each(self):
        if len(self.pretrained) != len(self.seeds):
            raise ValueError("pretrained needs one encoder a seed")
        return self


class AttentionSvcca(FineTuningParameters):
    """Chapter 1, after Hao et al. (2020).

    Attributes:
        dataset_pairs: pairs of tasks whose models are compared (Figures 6 and 7); pairs outside `tasks` are left out.
        mixed_examples: development examples of each data set in Figures 6 and 7.
        keep: the share of variance that SVCCA keeps in the figures.
        batch_rows: examples a batch in the measuring pass.
    """

    dataset_pairs: tuple[tuple[str, str], ...]
    mixed_examples: Positive = 200
    keep: Annotated[float, Field(gt=0, le=1)] = 0.99
    batch_rows: Positive = 32

    def compared_pairs(self) -> list[tuple[str, str]]:
        """The pairs of data sets of which both tasks are run."""
        return [pair for pair in self.dataset_pairs if set(pair) <= set(self.tasks)]


class Geometry(FineTuningParameters):
    """Chapter 2, after Zhou and Srikumar (2022).

    Attributes:
        encoders: the family that is compared, the smallest first; `encoder` is the one that is followed along training.
        epochs_by_encoder: epochs of an encoder that is trained for another number than its schedules say.
        followed: tasks whose states along training are kept for `encoder`.
        states: how many.
        target, tuned_on: the task that is measured after tuning on each of these (Table 5).
        points: labelled points of a training split in the geometry, at most; a stratified subset of one seed.
        followed_points: the same along training and across tasks, where many states are measured.
        least_examples: labels with fewer points in either split are left out of the geometry.
        probe_points: training points of the classifier probes, at most.
        probe_sizes, probe_regularisers, probe_initialisations: the grid of the classifier probes, and the fits of the
            best of it.
        probe_epochs: of a classifier probe, at most.
    """

    heads: ClassVar[tuple[str, ...]] = ("sequence", "token", "token-pair")

    encoders: tuple[str, ...] = Field(min_length=1)
    epochs_by_encoder: dict[str, Annotated[float, Field(gt=0)]] = {}
    followed: tuple[str, ...]
    states: Annotated[int, Field(ge=3)]
    target: str
    tuned_on: tuple[str, ...]
    points: Positive | None = None
    followed_points: Positive | None = None
    least_examples: Positive = 3
    probe_points: Positive | None = None
    probe_sizes: tuple[Positive, ...] = Field(min_length=1)
    probe_regularisers: tuple[Annotated[float, Field(gt=0)], ...] = Field(min_length=1)
    probe_initialisations: Annotated[int, Field(ge=2)] = 5
    probe_epochs: Positive = 1000

    @model_validator(mode="after")
    def _consistent(self):
        if self.encoder not in self.encoders:
            raise ValueError(f"encoders does not hold encoder, {self.encoder}, which is followed along training")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return self.encoders

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        epochs = None if self.epochs else self.epochs_by_encoder.get(encoder)
        return self.schedule(task) if epochs is None else dataclasses.replace(self.schedule(task), epochs=epochs)

    def states_kept(self, task: str, encoder: str) -> int | None:
        return self.states if encoder == self.encoder and task in self.followed else None

    def passes(self, task: str, encoder: str, depth: int) -> int:
        # Before and after, for the geometry and for the probes, and every state that is kept.
        return len(self.seeds) * (4 + (self.states_kept(task, encoder) or 0))

    def followed_tasks(self) -> list[str]:
        """The followed tasks among those that are run."""
        return [task for task in self.followed if task in self.tasks]


@dataclass(frozen=True)
class Chapter:
    """A chapter of the book.

    Attributes:
        number, slug: its place, and its notebook's name without suffix.
        paper: its paper's key, empty for a chapter without one.
        parameters: what it takes.
        profiles: the profiles it has.
        published: the profile whose run is committed and shown by the book.
        local: whether `make` runs it on this machine's own, on the profile `tiny`.
    """

    number: int
    slug: str
    paper: str
    parameters: type[ChapterParameters]
    profiles: tuple[str, ...] = ("tiny", "small", "paper")
    published: str = "small"
    local: bool = True

    @property
    def notebook(self) -> Path:
        """The paired notebook (``.ipynb``; the ``.py`` beside it is the same in percent format)."""
        return project.root() / "notebooks" / f"{self.slug}.ipynb"


CHAPTERS = {
    chapter.number: chapter
    for chapter in (
        # Three dozen models: minutes, so its run is published and not made anew by every `make`.
        Chapter(0, "0-toy-world", "", ToyWorld, profiles=("tiny",), published="tiny", local=False),
        Chapter(1, "1-attention-svcca", "hao2020", AttentionSvcca),
        Chapter(2, "2-directprobe", "zhou2022", Geometry),
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


def settings(number: int, profile: str, **overrides) -> ChapterParameters:
    """A chapter's parameters: the profile's values, with those overrides that are not None in their places.

    Raises:
        ParameterError: an unknown chapter, profile or parameter, or a value of the wrong type; one sentence.

    Example:
        >>> settings(1, "tiny", seeds=[7, 8]).seeds
        (7, 8)
    """
    chapter = find_chapter(number)
    if profile not in profiles():
        raise ParameterError(f"There is no profile {profile!r}: choose among {', '.join(profiles())}.")
    if profile not in chapter.profiles:
        raise ParameterError(f"Chapter {number} has no profile {profile!r}: it has {', '.join(chapter.profiles)}.")
    unknown = [name for name in overrides if name not in chapter.parameters.model_fields]
    if unknown:
        known = ", ".join(sorted(chapter.parameters.model_fields))
        raise ParameterError(f"Chapter {number} has no parameter {unknown[0]!r}: it has {known}.")
    file = project.root() / "notebooks" / "profiles" / f"{profile}.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    values = {**content["all"], **content["chapters"][number]}
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return chapter.parameters(**values | given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(place) for place in first["loc"]) or "the parameters"
        where = "overridden" if first["loc"] and first["loc"][0] in given else f"in profile {profile}"
        message = first["msg"].removeprefix("Value error, ")
        raise ParameterError(f"Chapter {number}, {name} ({where}): {message}, got {first['input']!r}."[:600]) from error
