"""What chapters take: the parameters that all of them share, and those of all that fine-tune.

Each chapter's own are in `chapters`; `settings` fills them in from a profile.
"""

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from fivelenses import catalogue
from fivelenses.checkpoints.schedule import Schedule
from fivelenses.tasks import own

# What parameters are checked with takes seconds to load where it is not needed for a refusal: it is imported late.
if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification

Seed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(gt=0, lt=1)]


def number_of(value: float, whole: int) -> int:
    """A number of things, given as a whole number, or as a share of all.

    Example:
        >>> number_of(3, 12), number_of(0.25, 12), number_of(0.25, 6), number_of(1.0, 12)
        (3, 3, 2, 12)
    """
    return round(value * whole) if isinstance(value, float) else value


class ParameterError(ValueError):
    """A parameter, profile or chapter that does not exist or does not fit; the message says which and what to do."""


def in_full(name: str) -> str:
    """An encoder's name; of a folder its whole path, since a notebook runs in another folder than its caller.

    Example:
        >>> in_full("toy-bert/seed-0"), in_full("random:bert-base-uncased")
        ('toy-bert/seed-0', 'random:bert-base-uncased')
    """
    plain = name.removeprefix("random:")
    folder = Path(plain).expanduser()
    return name.removesuffix(plain) + str(folder.resolve()) if plain and (folder / "config.json").is_file() else name


def task_name(named: str) -> str:
    """A task's name; of a table of the reader's own the name of the task that it becomes, which is read for it.

    Raises:
        ParameterError: there is no such task.
        SourceError: a table that cannot be read or learned from.

    Example:
        >>> task_name("rte")
        'rte'
    """
    name = own.name_of(named)
    if not catalogue.is_task(name):
        raise ParameterError(f"{named!r} is no task: choose among {', '.join(sorted(catalogue.TASKS))}")
    return name


TaskName = Annotated[str, AfterValidator(task_name)]
EncoderName = Annotated[str, AfterValidator(in_full)]


class _Loader(yaml.SafeLoader):
    """YAML with the numbers of version 1.2, where 010 is ten and 1:30 is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in kinds if not tag.endswith((":int", ":float"))]
    for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+$"), [*"-+0123456789"])
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"),
    [*"-+.0123456789"],
)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))


def read_yaml(text: str):
    """What a reader wrote in YAML, with the numbers of version 1.2.

    Raises:
        yaml.YAMLError: it is not YAML.

    Example:
        >>> read_yaml("[010, 1e-4, 1:30]")
        [10, 0.0001, '1:30']
    """
    return yaml.load(text, Loader=_Loader)


def parse_parameters(pairs: list[str]) -> dict:
    """``name=value`` pairs, values read as YAML.

    Raises:
        ValueError: not of that form, not YAML, or empty.

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
            parsed[name.strip()] = read_yaml(value)
        except yaml.YAMLError as error:
            raise ValueError(f"The value of {name} is not YAML: {value!r}; quote it as '[a, b]' or 'text'.") from error
        if parsed[name.strip()] is None:
            raise ValueError(f"The parameter {name} has no value: give it one, or leave it to the profile.")
    return parsed


class ChapterParameters(BaseModel):
    """What every chapter takes.

    Attributes:
        source: `toyworld` or `hub` (which FIVELENSES_MIRROR turns to a folder).
        seeds: fine-tuning seeds, at least two where the chapter compares seeds.
        device: `auto`, `cpu` or `cuda`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    source: Literal["toyworld", "hub"]
    seeds: tuple[Seed, ...] = Field(min_length=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, values):
        # Python counts true as 1, and so would a seed, a rate or a number of examples.
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if name in cls.model_fields and cls.model_fields[name].annotation is not bool and _has_truth(value):
                raise ValueError(f"{name} has true or false where a number or a name belongs: {value!r}")
        return values

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
        schedules: task to schedule; a task of the reader's own that has none takes the first of a task of texts.
        learning_rate, batch_size, epochs: when given, instead of every schedule's own.
        learning_rate_by_encoder: encoder to its own learning rate, or to its own by task, instead of its schedules'.
        training_examples: per task, at most, or task to its own; None, or a task that is not named, for all.
        precision: of training, `auto` for bfloat16 where the machine multiplies in it.
    """

    heads: ClassVar[tuple[str, ...]] = ("sequence",)
    also_read: ClassVar[tuple[str, ...]] = ()  # of the hub's tables, beside those of the tasks
    fewest_layers: ClassVar[int] = 1
    six_projections: ClassVar[bool] = False  # whether the six of each layer are needed
    counting_layers: ClassVar[tuple[str, ...]] = ()  # parameters whose values are numbers of layers

    tasks: tuple[TaskName, ...] = Field(min_length=1)
    schedules: dict[TaskName, Schedule]
    learning_rate: PositiveFloat | None = None
    batch_size: PositiveInt | None = None
    epochs: PositiveFloat | None = None
    learning_rate_by_encoder: dict[EncoderName, PositiveFloat | dict[TaskName, PositiveFloat]] = {}
    training_examples: PositiveInt | dict[TaskName, PositiveInt] | None = None
    precision: Literal["float32", "bfloat16", "auto"] = "auto"

    @field_validator("tasks")
    @classmethod
    def _known(cls, value):
        for name in value:
            if catalogue.find(name).head not in cls.heads:
                raise ValueError(
                    f"{name} has a {catalogue.find(name).head} head, which this chapter does not fine-tune"
                )
        return value

    @model_validator(mode="after")
    def _scheduled(self):
        lacking = [name for name in self.tasks if self.scheduled_as(name) is None]
        if lacking:
            raise ValueError(f"schedules has none for {', '.join(lacking)}")
        negative = [name for name, schedule in self.schedules.items() if schedule.weight_decay < 0]
        if negative:
            raise ValueError(f"the weight_decay of {negative[0]} is negative")
        return self

    def scheduled_as(self, task: str) -> str | None:
        """The task whose schedule a task has: itself, or for one of the reader's own that has none the first task of
        texts that has one.
        """
        if task in self.schedules or not catalogue.find(task).own:
            return task if task in self.schedules else None
        return next((name for name in self.schedules if catalogue.find(name).head == "sequence"), None)

    def schedule(self, task: str) -> Schedule:
        """The schedule of a task, with `learning_rate`, `batch_size` and `epochs` where they are given."""
        overrides = {name: getattr(self, name) for name in ("learning_rate", "batch_size", "epochs")}
        overrides = {name: value for name, value in overrides.items() if value is not None}
        return dataclasses.replace(self.schedules[self.scheduled_as(task)], **overrides)

    def examples_of(self, task: str) -> int | None:
        """How many of a task's training examples are read at most; None for all."""
        most = self.training_examples
        return most.get(task) if isinstance(most, Mapping) else most

    def tables_read(self) -> tuple[str, ...]:
        """The tables that a run reads: those of its tasks, and of the hub's what its chapter measures on besides."""
        return tuple(dict.fromkeys((*self.tasks_trained(), *(self.also_read if self.source == "hub" else ()))))

    def tasks_trained(self) -> tuple[str, ...]:
        """The tasks on which models are fine-tuned."""
        return self.tasks

    def encoders_used(self) -> tuple[str, ...]:
        """The encoders that are fine-tuned."""
        raise TypeError(f"{type(self).__name__} has to name the encoders that it fine-tunes.")

    def encoders_read(self) -> tuple[str, ...]:
        """The encoders whose weights are read, fine-tuned or not."""
        return self.encoders_used()

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        """The schedule of a task for one of the encoders; texts are cut to what the encoder reads at most."""
        rate = None if self.learning_rate else self.learning_rate_by_encoder.get(encoder)
        if isinstance(rate, Mapping):
            rate = rate.get(task) or rate.get(self.scheduled_as(task))
        schedule = self.schedule(task)
        most = positions(encoder)
        if most is not None and most < schedule.max_length:
            schedule = dataclasses.replace(schedule, max_length=most)
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
            "examples": self.examples_of(task),
            "states": self.states_kept(task, encoder),
        }
        return [{"seed": seed} | shared for seed in self.seeds]

    def specification(self, task: str, seed: int, encoder: str) -> "Specification":
        """The specification of one model of this run, where one seed is one model."""
        return next(one for one in self.specifications_of(task, encoder) if one.seed == seed)

    def specifications_of(self, task: str, encoder: str) -> "list[Specification]":
        """The specifications of the models of one task and encoder."""
        from fivelenses.checkpoints.finetuning import resolved_precision
        from fivelenses.checkpoints.specification import specify, training_rows
        from fivelenses.models import encoders

        precision = resolved_precision(self.precision, self.device)
        depth = encoders.config(encoders.locate(encoder)).num_hidden_layers
        trainings = self.trainings(task, encoder, training_rows(task, self.source), depth)
        return [specify(encoder, task, self.source, precision=precision, **training) for training in trainings]

    def specifications(self) -> "list[Specification]":
        """The specifications of all models of this run, each once."""
        every = (self.specifications_of(task, name) for name in self.encoders_used() for task in self.tasks_trained())
        return list(dict.fromkeys(one for some in every for one in some))

    def training_sets(self) -> dict[str, list[dict]]:
        """The sets of training examples of this run's tasks of texts with one label each, in whatever way models are
        fine-tuned on them: values of `training_set` for `checkpoints.bag_of_words.words_by_example`.
        """
        fields = ("task", "source", "data_digest", "examples", "examples_seed")
        of_texts = (one for one in self.specifications() if catalogue.find(one.task).head == "sequence")
        distinct = dict.fromkeys(tuple(getattr(one, name) for name in fields) for one in of_texts)
        return {"training_set": [dict(zip(fields, values, strict=True)) for values in distinct]}

    def sets_compared(self) -> list[tuple[tuple[str, ...], int | None]]:
        """The sets of development examples on whose tokens models are compared by canonical correlations: tasks, and
        how many examples of each at most.
        """
        return []


@functools.cache
def _configuration(encoder: str):
    """The configuration of an encoder; None where it cannot be read, as on the page of a published run."""
    from fivelenses.models import encoders
    from fivelenses.tasks.sources import SourceError

    shape = encoder.removeprefix("random:").removeprefix("google-bert/")
    try:
        # A shape that is known is not asked for at the hub.
        return encoders.config(encoders.locate(f"random:{shape}" if shape in encoders.SHAPES else encoder))
    except SourceError:
        return None  # whoever reads the encoder says what is wrong


def positions(encoder: str) -> int | None:
    """The tokens that an encoder reads at most; None where there is no limit, or it cannot be known yet.

    Example:
        >>> positions("toy-bert/seed-0")
        128
    """
    from fivelenses.models import encoders

    known = _configuration(encoder)
    return None if known is None else encoders.positions(known)


def depth(encoder: str) -> int | None:
    """The layers of an encoder; None where they cannot be known yet.

    Example:
        >>> depth("toy-bert/seed-0")
        6
    """
    known = _configuration(encoder)
    return None if known is None else known.num_hidden_layers


def _has_truth(value) -> bool:
    """Whether a value holds a truth value, but for a schedule's `by_length`."""
    if isinstance(value, Mapping):
        return any(_has_truth(one) for name, one in value.items() if name != "by_length")
    if isinstance(value, list | tuple):
        return any(map(_has_truth, value))
    return isinstance(value, bool)


def check_layers(parameters: FineTuningParameters, overridden: Collection[str]) -> None:
    """Refuse numbers of layers that an encoder does not have, among those that a caller set; a profile's are for
    encoders of several depths.

    Raises:
        ParameterError: in one sentence.
    """
    for field in (field for field in parameters.counting_layers if field in overridden):
        value = getattr(parameters, field)
        largest = max(value, default=0) if isinstance(value, tuple) else value or 0
        for name in parameters.encoders_used():
            layers = depth(name)
            if layers is not None and largest > layers:
                raise ParameterError(f"{field} names {largest} and {name} has {layers} layers: name at most {layers}.")


class EncoderParameters(FineTuningParameters):
    """What every chapter takes that follows one encoder.

    Attributes:
        encoder: a name as `models.encoders` understands it.
    """

    encoder: EncoderName

    def encoders_used(self) -> tuple[str, ...]:
        return (self.encoder,)


def check_device(parameters: ChapterParameters, profile: str) -> None:
    """Refuse a run that asks for a GPU on a machine without one.

    Raises:
        ParameterError: in one sentence.
    """
    if parameters.device != "cuda":
        return
    import torch

    if not torch.cuda.is_available():
        raise ParameterError(
            f"The profile {profile!r} asks for a GPU and there is none here: run it on a machine with one, "
            "see what it would take with --dry-run, or pass -p device=cpu to run it all the same."
        )
