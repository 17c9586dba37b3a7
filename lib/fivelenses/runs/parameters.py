"""What chapters take: the parameters that all of them share, and those of all that fine-tune.

Each chapter's own are in `chapters`; `settings` fills them in from a profile.
"""

import dataclasses
from typing import ClassVar, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, field_validator, model_validator

from fivelenses import tasks
from fivelenses.checkpoints.specification import Schedule, Specification, specify, training_rows
from fivelenses.models import encoders


class ParameterError(ValueError):
    """A parameter, profile or chapter that does not exist or does not fit; the message says which and what to do."""


def parse_parameters(pairs: list[str]) -> dict:
    """``name=value`` pairs, values read as YAML.

    Raises:
        ValueError: not of that form, or not YAML.

    Example:
        >>> parse_parameters(["tasks=[rte, mrpc]", "epochs=3"])
        {'tasks': ['rte', 'mrpc'], 'epochs': 3}
    """
    parsed = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"A parameter is written name=value, not {pair!r}.")
        try:
            parsed[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"The value of {name} is not YAML: {value!r}; quote it as '[a, b]' or 'text'.") from error
    return parsed


class ChapterParameters(BaseModel):
    """What every chapter takes.

    Attributes:
        source: `toyworld` or `hub` (which FIVELENSES_MIRROR turns to a folder).
        seeds: fine-tuning seeds, at least two where the chapter compares seeds.
        device: `auto`, `cpu` or `cuda`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Literal["toyworld", "hub"]
    seeds: tuple[int, ...] = Field(min_length=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @field_validator("seeds", "tasks", check_fields=False)
    @classmethod
    def _distinct(cls, value, info):
        if len(set(value)) != len(value):
            raise ValueError(f"a {info.field_name.removesuffix('s')} is named twice")
        return value


class FineTuningParameters(ChapterParameters):
    """What every chapter takes that fine-tunes encoders on tasks.

    Attributes:
        tasks: tasks fine-tuned and compared.
        schedules: task to schedule.
        learning_rate, batch_size, epochs: when given, instead of every schedule's own.
        learning_rate_by_encoder: encoder to its own learning rate, instead of its schedules'.
        training_examples: per task, at most; None for all.
    """

    heads: ClassVar[tuple[str, ...]] = ("sequence",)

    tasks: tuple[str, ...] = Field(min_length=1)
    schedules: dict[str, Schedule]
    learning_rate: PositiveFloat | None = None
    batch_size: PositiveInt | None = None
    epochs: PositiveFloat | None = None
    learning_rate_by_encoder: dict[str, PositiveFloat] = {}
    training_examples: PositiveInt | None = None

    @field_validator("tasks")
    @classmethod
    def _known(cls, value):
        for name in value:
            if tasks.find(name).head not in cls.heads:
                raise ValueError(f"{name} has a {tasks.find(name).head} head, which this chapter does not fine-tune")
        return value

    @model_validator(mode="after")
    def _scheduled(self):
        lacking = [name for name in self.tasks if name not in self.schedules]
        if lacking:
            raise ValueError(f"schedules has none for {', '.join(lacking)}")
        negative = [name for name, schedule in self.schedules.items() if schedule.weight_decay < 0]
        if negative:
            raise ValueError(f"the weight_decay of {negative[0]} is negative")
        return self

    def schedule(self, task: str) -> Schedule:
        """The schedule of a task, with `learning_rate`, `batch_size` and `epochs` where they are given."""
        overrides = {name: getattr(self, name) for name in ("learning_rate", "batch_size", "epochs")}
        overrides = {name: value for name, value in overrides.items() if value is not None}
        return dataclasses.replace(self.schedules[task], **overrides)

    def encoders_used(self) -> tuple[str, ...]:
        """The encoders that are fine-tuned."""
        raise TypeError(f"{type(self).__name__} has to name the encoders that it fine-tunes.")

    def encoders_read(self) -> tuple[str, ...]:
        """The encoders whose weights are read, fine-tuned or not."""
        return self.encoders_used()

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        """The schedule of a task for one of the encoders."""
        rate = None if self.learning_rate else self.learning_rate_by_encoder.get(encoder)
        schedule = self.schedule(task)
        return schedule if rate is None else dataclasses.replace(schedule, learning_rate=rate)

    def states_kept(self, task: str, encoder: str) -> int | None:
        """How many states along training are kept, None for the last alone."""
        return None

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        """What sets apart the models of one task and encoder: arguments of `checkpoints.specify`, one set per model.

        Args:
            rows: training examples of the task.
            depth: layers of the encoder.
        """
        shared = {
            "schedule": self.schedule_of(task, encoder),
            "examples": self.training_examples,
            "states": self.states_kept(task, encoder),
        }
        return [{"seed": seed} | shared for seed in self.seeds]

    def specification(self, task: str, seed: int, encoder: str) -> Specification:
        """The specification of one model of this run, where one seed is one model."""
        return next(one for one in self.specifications_of(task, encoder) if one.seed == seed)

    def specifications_of(self, task: str, encoder: str) -> list[Specification]:
        """The specifications of the models of one task and encoder."""
        depth = encoders.config(encoders.locate(encoder)).num_hidden_layers
        trainings = self.trainings(task, encoder, training_rows(task, self.source), depth)
        return [specify(encoder, task, self.source, **training) for training in trainings]

    def specifications(self) -> list[Specification]:
        """The specifications of all models of this run, each once."""
        every = (self.specifications_of(task, encoder) for encoder in self.encoders_used() for task in self.tasks)
        return list(dict.fromkeys(one for some in every for one in some))

    def passes(self, task: str, encoder: str, depth: int) -> int:
        """Passes over a task's measured examples, for an estimate of time."""
        # The pre-trained and an untrained encoder, each tuned model, and each of those with one layer after another
        # rolled back.
        return 2 + len(self.seeds) * (2 + depth)


class EncoderParameters(FineTuningParameters):
    """What every chapter takes that follows one encoder.

    Attributes:
        encoder: a name as `models.encoders` understands it.
    """

    encoder: str

    def encoders_used(self) -> tuple[str, ...]:
        return (self.encoder,)
