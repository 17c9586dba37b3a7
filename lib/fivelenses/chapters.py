"""The parameters of the chapters: a pydantic model for each, whose values a profile (``notebooks/profiles``) holds."""

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.types import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from ruamel.yaml import YAML, YAMLError

from fivelenses import catalogue
from fivelenses.checkpoints.specification import Schedule, Specification, specify, training_split
from fivelenses.files import project_folder
from fivelenses.tasks import own
from fivelenses.tasks.sources import SourceError

PROFILES = ("tiny", "small", "paper")


class ParameterError(ValueError):
    """A parameter or profile that does not exist or does not fit."""


# --- kinds of values --------------------------------------------------------------------------------------------------


def _task_name(value: str) -> str:
    """A table of the reader's own has the name of the task that it becomes."""
    return catalogue.find(own.name_of(value)).name


def _encoder_name(value: str) -> str:
    """A folder has its whole path, since a notebook runs in another folder than its caller."""
    plain = value.removeprefix("random:")
    if plain.startswith("random:"):
        raise ValueError(f"it is random twice: write {plain}")
    folder = Path(plain).expanduser()
    return value.removesuffix(plain) + str(folder.resolve()) if plain and (folder / "config.json").is_file() else value


def _among_tasks(value: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
    return value and tuple(task for task in value if task in info.data.get("tasks", value))


def _check_pretrained(encoder: str) -> None:
    if encoder.startswith("random:"):
        raise ValueError(f"encoder is {encoder}, and the chapter compares with random weights: name a pre-trained one")


TaskName = Annotated[str, AfterValidator(_task_name)]
EncoderName = Annotated[str, AfterValidator(_encoder_name)]
SomeTasks = Annotated[tuple[TaskName, ...], AfterValidator(_among_tasks)]  # those outside `tasks` are left out
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Variance = Annotated[float, Field(gt=0, le=1)]
Layers = Annotated[float, Field(ge=0, le=1)] | NonNegativeInt  # a share of an encoder's layers, or a number of them
EdgeTask = Literal[tuple(catalogue.EDGE_TASKS)]


def _number(value: float, whole: int) -> int:
    """A number, or a share of all as a number."""
    return round(value * whole) if isinstance(value, float) else value


@functools.cache
def _positions(encoder: str) -> float:
    """The tokens that an encoder reads at most; infinite where there is no limit, or the encoder is not at hand."""
    from fivelenses.models import encoders

    try:
        return encoders.positions(encoders.config(encoders.locate(encoder))) or math.inf
    except SourceError:
        return math.inf  # whoever reads the encoder says what is wrong


# --- all chapters -----------------------------------------------------------------------------------------------------


class ChapterParameters(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """What every chapter takes. A plain value of a parameter that holds several is its one entry: ``tasks=rte``."""

    profiles: ClassVar[tuple[str, ...]] = PROFILES
    heads: ClassVar[tuple[str, ...]] = ("sequence",)
    also_read: ClassVar[tuple[str, ...]] = ()  # of the hub's tables, beside those of the tasks
    fewest_layers: ClassVar[int] = 1
    six_projections: ClassVar[bool] = False  # whether the six of each layer are needed
    numbers_of_layers: ClassVar[tuple[str, ...]] = ()  # parameters; more than `encoder` has is left out

    encoder: EncoderName
    source: Literal["toyworld", "hub"]  # FIVELENSES_MIRROR turns the hub to a folder
    tasks: tuple[TaskName, ...] = Field(min_length=1)  # fine-tuned and compared
    seeds: tuple[Seed, ...] = Field(min_length=1)  # at least two where the chapter compares seeds
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["float32", "bfloat16", "auto"] = "auto"  # of training; bfloat16 where a machine has it
    schedules: dict[TaskName, Schedule]  # a table of the reader's own takes the first of a task of texts
    learning_rate: PositiveFloat | None = None  # these three instead of every schedule's own
    batch_size: PositiveInt | None = None
    epochs: PositiveFloat | None = None
    # An encoder's rate, or its rates by task, instead of its schedules'.
    learning_rate_by_encoder: dict[EncoderName, PositiveFloat | dict[TaskName, PositiveFloat]] = {}
    training_examples: PositiveInt | dict[TaskName, PositiveInt] | None = None  # at most, of every task or by task

    @field_validator("*", mode="before")
    @classmethod
    def _one_entry(cls, value, info):
        kind = cls.model_fields[info.field_name].annotation
        if isinstance(value, bool) and kind is not bool:
            raise ValueError("true and false are no values of it")  # pydantic reads them as 1 and 0
        several = tuple in map(get_origin, (kind, *get_args(kind)))
        return (value,) if several and isinstance(value, str | int | float) else value

    @field_validator("tasks", "seeds")
    @classmethod
    def _distinct(cls, value, info):
        if len(set(value)) != len(value):
            raise ValueError(f"a {info.field_name.removesuffix('s')} is named twice")
        return value

    @field_validator("tasks", "target", check_fields=False)
    @classmethod
    def _has_a_head_of_the_chapter(cls, value):
        for name in (value,) if isinstance(value, str) else value:
            if (head := catalogue.find(name).head) not in cls.heads:
                raise ValueError(f"{name} has a {head} head, which this chapter does not fine-tune")
        return value

    @model_validator(mode="after")
    def _scheduled(self):
        if missing := [name for name in self.tasks_trained() if self._scheduled_as(name) is None]:
            raise ValueError(f"schedules has none for {', '.join(missing)}")
        return self

    def _scheduled_as(self, task: str) -> str | None:
        """The task whose schedule a task has: its own, or the first of texts for a table of the reader's own."""
        if task in self.schedules or not catalogue.find(task).own:
            return task if task in self.schedules else None
        return next((name for name in self.schedules if catalogue.find(name).head == "sequence"), None)

    def sets_compared(self) -> list[tuple[tuple[str, ...], int | None]]:
        """On whose development examples layers are compared by canonical correlations: tasks, and how many of each."""
        compared = self.tasks if "evaluation_examples" in type(self).model_fields else ()
        return [((task,), self.evaluation_examples) for task in compared]

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        """How an encoder is fine-tuned on a task, its texts cut to what the encoder reads at most."""
        usual = self._scheduled_as(task)
        rate = self.learning_rate_by_encoder.get(encoder)
        if isinstance(rate, Mapping):
            rate = rate.get(task) or rate.get(usual)
        given = {"learning_rate": self.learning_rate or rate, "batch_size": self.batch_size, "epochs": self.epochs}
        schedule = replace(self.schedules[usual], **{name: one for name, one in given.items() if one})
        return replace(schedule, max_length=min(schedule.max_length, _positions(encoder)))

    def examples_of(self, task: str) -> int | None:
        """How many training examples are read at most; None for all."""
        most = self.training_examples
        return most.get(task) if isinstance(most, Mapping) else most

    def tasks_trained(self) -> tuple[str, ...]:
        """The tasks on which models are fine-tuned."""
        return self.tasks

    def encoders_used(self) -> tuple[str, ...]:
        """The encoders that are fine-tuned."""
        return (self.encoder,)

    def encoders_read(self) -> tuple[str, ...]:
        """The encoders whose weights are read, fine-tuned or not."""
        return self.encoders_used()

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        """What `specify` takes for each model: of a task of `rows` training examples, an encoder of `depth` layers."""
        shared = {"schedule": self.schedule_of(task, encoder), "examples": self.examples_of(task)}
        ordinary = [{"seed": seed} | shared for seed in self.seeds]
        shuffled = encoder == self.encoder and task in getattr(self, "shuffled", ())
        return ordinary + [one | {"shuffled_labels": True} for one in ordinary if shuffled]

    def specifications_of(self, task: str, encoder: str) -> list[Specification]:
        """Of the models of a task that begin with an encoder."""
        from fivelenses.checkpoints.finetuning import resolved_precision
        from fivelenses.models import encoders

        precision = resolved_precision(self.precision, self.device)
        depth = encoders.config(encoders.locate(encoder)).num_hidden_layers
        trainings = self.trainings(task, encoder, training_split(task, self.source)[1], depth)
        return [specify(encoder, task, self.source, precision=precision, **training) for training in trainings]

    def specifications(self) -> list[Specification]:
        """Of all models of this run, each once."""
        every = (self.specifications_of(task, name) for name in self.encoders_used() for task in self.tasks_trained())
        return list(dict.fromkeys(chain(*every)))

    def models(self, **values) -> list[Specification]:
        """Of models whose fields have these values, or one of these: ``models(task=("rte", "sst2"), frozen=())``."""
        chosen = self.specifications()
        for name, value in values.items():
            several = value if isinstance(value, tuple) else ()
            chosen = [one for one in chosen if getattr(one, name) == value or getattr(one, name) in several]
        return chosen

    def ordinary_models(self) -> list[Specification]:
        """Of models of `encoder` on `tasks` without frozen layers, with their schedule's epochs, on the true labels."""
        whole = self.models(encoder=self.encoder, task=self.tasks, frozen=(), shuffled_labels=False)
        return [one for one in whole if one.schedule == self.schedule_of(one.task, self.encoder)]

    def training_sets(self) -> dict[str, list[dict]]:
        """The distinct sets of training examples of texts, as `checkpoints.tables.words_by_example` takes them."""
        fields = ("task", "source", "data_digest", "examples", "examples_seed")
        of_texts = (one for one in self.specifications() if catalogue.find(one.task).head == "sequence")
        distinct = dict.fromkeys(tuple(getattr(one, name) for name in fields) for one in of_texts)
        return {"training_set": [dict(zip(fields, values, strict=True)) for values in distinct]}


# --- the chapters -----------------------------------------------------------------------------------------------------


class Hao2020(ChapterParameters):
    """Chapter 1, after Hao et al. (2020)."""

    dataset_pairs: tuple[tuple[TaskName, TaskName], ...]  # of two of `tasks`; others are left out (Figures 6 and 7)
    evaluation_examples: PositiveInt | None = None  # of development, at most, on which models are compared
    mixed_examples: PositiveInt = 200  # of each data set in Figures 6 and 7
    variance_kept: Variance = 0.99  # by SVCCA in the figures
    batch_rows: PositiveInt = 32  # of the measuring pass
    shuffled: SomeTasks = ()  # also learned with shuffled labels, as a control

    @field_validator("dataset_pairs")
    @classmethod
    def _two_of_the_tasks(cls, value, info):
        return tuple(pair for pair in value if len({*pair} & {*info.data.get("tasks", pair)}) == 2)

    def sets_compared(self) -> list[tuple[tuple[str, ...], int | None]]:
        return [*super().sets_compared(), *((pair, self.mixed_examples) for pair in self.dataset_pairs)]


class Zhou2022(ChapterParameters):
    """Chapter 2, after Zhou and Srikumar (2022)."""

    heads: ClassVar[tuple[str, ...]] = ("sequence", "token", "token-pair")

    encoders: tuple[EncoderName, ...] = Field(min_length=1)  # compared, the smallest first; `encoder` is one of them
    epochs_by_encoder: dict[EncoderName, PositiveFloat] = {}  # instead of its schedules'
    followed: SomeTasks  # along the training of `encoder`
    states: Annotated[int, Field(ge=3)]  # that are kept of it
    target: TaskName  # measured after fine-tuning on each of the next (Table 5)
    tuned_on: SomeTasks
    # Labelled points of a training split in the geometry, at most, but for those of rare labels: a stratified subset.
    points: PositiveInt | None = None
    followed_points: PositiveInt | None = None  # the same along training and across tasks, where states are many
    min_examples: PositiveInt = 3  # of a label in either split, where the two splits are compared
    shuffled: SomeTasks = ()  # `encoder` also learns these with labels permuted, as a control
    # Of the classifier probes: training points at most, the grid, fits of the best of it, epochs at most.
    probe_points: PositiveInt | None = None
    probe_sizes: tuple[PositiveInt, ...] = Field(min_length=1)
    probe_regularisers: tuple[PositiveFloat, ...] = Field(min_length=1)
    probe_initialisations: Annotated[int, Field(ge=2)] = 5
    probe_epochs: PositiveInt = 1000

    @model_validator(mode="after")
    def _consistent(self):
        if self.encoder not in self.encoders:
            raise ValueError(f"encoders does not hold encoder, {self.encoder}, which is followed along training")
        for name in ("followed", "tuned_on"):
            if not getattr(self, name):
                raise ValueError(f"{name} has none of the tasks, {', '.join(self.tasks)}: name one of them")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return self.encoders

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        schedule = super().schedule_of(task, encoder)
        return replace(schedule, epochs=self.epochs or self.epochs_by_encoder.get(encoder, schedule.epochs))

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        states = {"states": self.states} if encoder == self.encoder and task in self.followed else {}
        return [one | states for one in super().trainings(task, encoder, rows, depth)]

    def models_for_target(self) -> list[Specification]:
        """The models in which `target` is measured."""
        every = (self.models(task=task, encoder=self.encoder, shuffled_labels=False) for task in self.tuned_on)
        return list(chain(*every))


class Hao2019(ChapterParameters):
    """Chapter 3, after Hao et al. (2019)."""

    fewest_layers: ClassVar[int] = 3  # thirds of them are moved and rolled back

    scratch_epochs: dict[TaskName, PositiveFloat]  # of a training from random weights
    second: dict[TaskName, TaskName]  # the task whose model gives the second direction
    # Of each axis of a surface, in lengths of the first direction; -1, 0 and 1 are added.
    low: Annotated[float, Field(ge=-1000, le=-1)] = -4
    high: Annotated[float, Field(gt=1, le=1000)] = 4
    points: Annotated[int, Field(ge=4, le=1000)] = 40
    line_points: Annotated[int, Field(ge=4, le=100_000)] = 40  # of a curve, on the same range
    grid_examples: Annotated[int, Field(ge=2)] | None = None  # of each split at a cell of a grid
    bfloat16: bool = False  # in the matrix products of landscapes
    followed: SomeTasks  # whose trajectories are drawn (Figure 3)
    states: PositiveInt = 1  # along each epoch of these trainings and of the long one
    # The task whose training of a first number of epochs is continued for a second (Figure 4), beside one of their sum
    # and a finished one of the first number, or the usual one if that is as long or longer.
    long_task: TaskName
    long_epochs: tuple[PositiveInt, PositiveInt] = (5, 20)
    curvature_examples: Annotated[int, Field(ge=2)] | None = None  # of training; as many as `grid_examples` when None
    grouped: SomeTasks  # whose thirds of layers are moved (Figure 7)

    @model_validator(mode="after")
    def _consistent(self):
        _check_pretrained(self.encoder)
        for task in self.tasks:
            if task not in self.scratch_epochs:
                raise ValueError(f"scratch_epochs has none for {task}")
            other = self.second.get(task)
            if other == task or other not in self.tasks:
                raise ValueError(f"second gives {other} for {task}: name another of the tasks")
        usual = self.schedules.get(self._scheduled_as(self.long_task))
        if self.long_task in self.tasks and sum(self.long_epochs) <= (self.epochs or usual.epochs):
            raise ValueError(f"long_epochs are no more than the usual epochs of {self.long_task}")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return (self.encoder, f"random:{self.encoder}")

    def grid(self) -> dict:
        """Where losses are measured, as `papers.hao2019` takes it."""
        kept = {"low", "high", "points", "line_points", "bfloat16"}
        return self.model_dump(include=kept) | {"examples": self.grid_examples}

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        schedule = super().schedule_of(task, self.encoder)
        if encoder == self.encoder or self.epochs:
            return schedule
        return replace(schedule, epochs=self.scratch_epochs[task])

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        most = self.examples_of(task)
        examples, usual = min(rows, most or rows), self.schedule_of(task, encoder)
        schedules = [(usual, self.states if task in self.followed else 0)]
        if task == self.long_task and encoder == self.encoder:
            finished, long = (replace(usual, epochs=count) for count in accumulate(self.long_epochs))
            continued = replace(finished, further_epochs=self.long_epochs[1])
            schedules += [(finished, 0)] if finished.epochs > usual.epochs else []
            schedules += [(long, self.states), (continued, self.states)]
        trainings = []
        for schedule, states in schedules:
            shared = {"schedule": schedule, "examples": most, "saved_steps": _saved_steps(schedule, examples, states)}
            trainings += [{"seed": seed} | shared for seed in self.seeds]
        return trainings


def _saved_steps(schedule: Schedule, examples: int, states: int) -> tuple[int, ...]:
    """The first step, and the steps at which each of so many equal parts of an epoch ends, the last one included."""
    if not states:
        return (0,)
    parts = math.ceil(schedule.all_epochs * states)
    an_epoch = math.ceil(examples / schedule.batch_size)
    return tuple(sorted({0, schedule.steps(examples), *(round(an_epoch * part / states) for part in range(parts))}))


class Singh2020(ChapterParameters):
    """Chapter 4, after Singh and Giovanardi (2020)."""

    six_projections: ClassVar[bool] = True  # these are what is re-initialised
    numbers_of_layers: ClassVar[tuple[str, ...]] = ("depths", "equal_steps_depth")

    # Of the training examples that are read, or numbers of them.
    fractions: tuple[Annotated[float, Field(gt=0, le=1)] | Annotated[int, Field(gt=1)], ...] = Field(min_length=1)
    sized: SomeTasks  # re-initialised with every number of examples; the others with the most alone
    # Also compared at an equal number of examples (Figure 1c).
    matched: SomeTasks = ()
    matched_examples: PositiveInt = 673
    # How many layers are re-initialised from the top, or what share, beside none and all; every number when None.
    depths: tuple[Layers, ...] | None = None
    min_steps: NonNegativeInt = 0  # of a training: few examples are read more often
    # The smaller sizes of `sized` tasks again, with as many steps as the most examples have, and no layer, so many and
    # all layers re-initialised.
    equal_steps_depth: NonNegativeInt | None = None
    shuffled: SomeTasks = ()  # models with all layers also learn shuffled labels, as a control of how far weights move
    biases_and_norms: Literal["kept", "reset"] = "kept"  # of a re-initialised layer

    def sizes(self, task: str, rows: int) -> list[int]:
        """The numbers of training examples that the fractions ask for, of a task with so many; the most first."""
        whole = min(rows, self.examples_of(task) or rows)
        return sorted({min(whole, max(1, _number(one, whole))) for one in self.fractions}, reverse=True)

    def probed(self, sizes: Mapping[str, list[int]]) -> list[dict]:
        """What is probed of each task: its sizes, and the tokens that its texts are cut to."""
        lengths = {task: self.schedule_of(task, self.encoder).max_length for task in self.tasks}
        return [{"task": task, "sizes": sizes[task], "max_length": length} for task, length in lengths.items()]

    def reinitialised(self, depth: int) -> list[int]:
        """The numbers of layers re-initialised from the top of an encoder of this depth, 0 and all among them."""
        counts = range(depth) if self.depths is None else (_number(one, depth) for one in self.depths)
        return sorted({0, depth, *counts} & {*range(depth + 1)})

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        schedule, sizes, every = self.schedule_of(task, encoder), self.sizes(task, rows), self.reinitialised(depth)
        counts = {size: every if task in self.sized else [0] for size in sizes} | {sizes[0]: every}
        if task in self.matched:
            counts[min(self.matched_examples, sizes[0])] = every
        models = [(size, count, self.min_steps, False) for size, some in counts.items() for count in some]
        if self.equal_steps_depth is not None and task in self.sized:
            most = _lengthened(schedule, sizes[0], self.min_steps).steps(sizes[0])
            again = sorted({0, self.equal_steps_depth, depth} & {*range(depth + 1)})
            models += [(size, count, most, False) for size in sizes[1:] for count in again]
        if task in self.shuffled:
            models += [(size, 0, self.min_steps, True) for size in sizes]
        return [
            {
                "seed": seed,
                "schedule": _lengthened(schedule, size, steps),
                "examples": size,
                # The most examples are those of the other chapters; smaller sets differ by seed.
                "examples_seed": 0 if size == sizes[0] else seed,
                "reinitialised": tuple(range(depth - count + 1, depth + 1)),
                "biases_and_norms": self.biases_and_norms if count else "kept",
                "shuffled_labels": shuffled,
            }
            for size, count, steps, shuffled in models
            for seed in self.seeds
        ]


def _lengthened(schedule: Schedule, examples: int, steps: int) -> Schedule:
    """The schedule with as many whole epochs as so many steps need, where it has fewer."""
    if schedule.steps(examples) >= steps:
        return schedule
    return replace(schedule, epochs=math.ceil(steps / math.ceil(examples / schedule.batch_size)))


class Merchant2020(ChapterParameters):
    """Chapter 5, after Merchant et al. (2020)."""

    heads: ClassVar[tuple[str, ...]] = ("sequence", "span", "biaffine")
    also_read: ClassVar[tuple[str, ...]] = ("wikitext", "parsing")  # running text, and the trees of structural probes
    numbers_of_layers: ClassVar[tuple[str, ...]] = ("frozen", "truncated")

    # They differ in their pre-training seed; the first is `encoder`, which is also probed, frozen and truncated.
    pretrained: tuple[EncoderName, ...] = Field(min_length=1)
    # The highest frozen layers (Figure 3; 0: the embeddings alone) and the numbers of layers kept (Figure 4), or shares
    # of the layers, beside nothing frozen and all kept.
    frozen: tuple[Layers, ...] = ()
    truncated: tuple[Annotated[float, Field(gt=0, lt=1)] | PositiveInt, ...] = ()
    # For which encoders are frozen and truncated; all when None.
    ablated: Annotated[tuple[TaskName, ...] | None, AfterValidator(_among_tasks)] = None
    halved: SomeTasks = ()  # other tasks, for which they are at half of the layers alone
    edge_tasks: tuple[EdgeTask, ...] = Field(min_length=1)
    # Of the edge probes: training targets at most, and how they are trained.
    probe_targets: Annotated[int, Field(ge=20)]
    probe_learning_rate: PositiveFloat = 1e-4
    probe_validate_every: PositiveInt = 500
    probe_validate_every_of: dict[EdgeTask, PositiveInt] = {}  # edge-probing task to its own
    probe_validations: PositiveInt = 200
    probe_width: PositiveInt = 256
    probe_seeds: tuple[Seed, ...] = Field(min_length=1, default=(0,))
    codelength_tasks: tuple[EdgeTask, ...] = Field(min_length=1)  # of `edge_tasks`
    structural_sentences: NonNegativeInt  # on which structural probes are trained, at most; 0: no such probes
    # Of each input on which similarity is measured, at most.
    similarity_tokens: Annotated[int, Field(ge=3)] = 5000
    similarity_examples: PositiveInt = 1000
    max_tokens: Annotated[int, Field(ge=4)] = 128  # a sentence that probes read is cut to

    @model_validator(mode="after")
    def _consistent(self):
        if self.pretrained[0] != self.encoder:
            raise ValueError(f"pretrained has to begin with encoder, {self.encoder}")
        for name in self.codelength_tasks:
            if name not in self.edge_tasks:
                raise ValueError(f"codelength_tasks names {name}, which is not among edge_tasks")
        if 0 < self.structural_sentences < 4:
            raise ValueError(f"structural_sentences: expected 0 or at least 4, got {self.structural_sentences}")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return self.pretrained

    def probe_of(self, edge_task: str) -> dict:
        """The settings of an edge probe, as `papers.merchant2020_probes.edge_probing` takes them."""
        often = self.probe_validate_every_of.get(edge_task, self.probe_validate_every)
        training = {"learning_rate": self.probe_learning_rate, "validate_every": often, "seeds": self.probe_seeds}
        limits = {"targets": self.probe_targets, "max_validations": self.probe_validations}
        return limits | training | {"projection": self.probe_width, "hidden": self.probe_width}

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        shared = {"schedule": self.schedule_of(task, encoder), "examples": self.examples_of(task)}
        if encoder in self.pretrained[1:]:
            return [{"seed": self.seeds[0]} | shared]
        frozen, truncated = self.frozen, self.truncated
        if self.ablated is not None and task not in self.ablated:
            frozen = truncated = (0.5,) if task in self.halved else ()
        tops, keeps = ([_number(one, depth) for one in values] for values in (frozen, truncated))
        changes = [{}]
        changes += [{"frozen": tuple(range(top + 1))} for top in dict.fromkeys(tops) if top <= depth]
        changes += [{"truncated": kept} for kept in dict.fromkeys(keeps) if 0 < kept < depth]
        return [{"seed": seed} | shared | change for change in changes for seed in self.seeds]


class FiveLenses(ChapterParameters):
    """Chapter 6, on whether the lenses agree."""

    fewest_layers: ClassVar[int] = 3  # of which an order can be compared with another
    six_projections: ClassVar[bool] = True  # whose weights are compared
    also_read: ClassVar[tuple[str, ...]] = ("parsing",)  # the trees of structural probes

    # Of the same shape and vocabulary and trained from other weights, for the nulls of attention, features, weights and
    # similarity; `random:` and the encoder's name where there is none.
    independent: EncoderName
    evaluation_examples: PositiveInt | None = None  # of development, at most, on which models are compared
    variance_kept: Variance = 0.99  # by SVCCA
    similarity_tokens: Annotated[int, Field(ge=3)] = 5000  # of words, at most, on which RSA is taken
    probe_points: Annotated[int, Field(ge=10)] = 600  # training examples of a classifier probe and of the loss, at most
    structural_sentences: Annotated[int, Field(ge=4)]  # on which structural probes are trained, at most
    random_directions: PositiveInt = 3  # in which a layer is moved as far as fine-tuning moved it

    @model_validator(mode="after")
    def _two_encoders(self):
        _check_pretrained(self.encoder)
        if self.independent == self.encoder:
            raise ValueError(f"independent is the encoder itself: name another, or random:{self.encoder}")
        return self

    def limits(self) -> dict:
        """How much is read, as `papers.five_lenses.changes_by_layer` takes it."""
        names = {"evaluation_examples", "variance_kept", "similarity_tokens"}
        return self.model_dump(include=names | {"probe_points", "structural_sentences", "random_directions"})

    def encoders_read(self) -> tuple[str, ...]:
        return (self.encoder, self.independent)


class KnownTruth(ChapterParameters):
    """Chapter 7, on what each lens can see."""

    profiles: ClassVar[tuple[str, ...]] = ("tiny", "small")
    six_projections: ClassVar[bool] = True  # whose weights are compared
    also_read: ClassVar[tuple[str, ...]] = ("parsing",)  # the trees of structural probes

    doses: tuple[NonNegativeFloat, ...] = (0.0, 0.25, 0.5, 1.0, 2.0)  # lengths of training, as shares of the schedule's
    neighbours: bool = True  # whether two neighbouring layers are also trained, and not single ones alone
    planted: tuple[TaskName, ...] = ()  # tasks on words, each of which asks for one kind of annotation
    planted_examples: PositiveInt | None = None  # of training, at most
    evaluation_examples: PositiveInt | None = None  # of development, at most, on which models are compared
    similarity_tokens: Annotated[int, Field(ge=20)] = 500  # of words, at most, on which RSA and neighbours are taken
    probe_points: Annotated[int, Field(ge=10)] = 300  # training examples of a classifier probe and of the loss, at most
    structural_sentences: Annotated[int, Field(ge=4)]  # on which structural probes are trained, at most

    @field_validator("doses")
    @classmethod
    def _usual_dose(cls, value):
        if 1.0 not in value or list(value) != sorted(set(value)) or len(value) < 3:
            raise ValueError("doses are at least three, from the least to the greatest, and 1 is among them")
        return value

    @model_validator(mode="after")
    def _planted_in_words(self):
        for task in self.planted:
            if catalogue.find(task).head not in ("token", "token-pair"):
                raise ValueError(f"{task} is no task on words, and planted takes no other")
        return self

    def tasks_trained(self) -> tuple[str, ...]:
        return (*self.tasks, *self.planted)

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        schedule = self.schedule_of(task, encoder)
        if task in self.planted:
            return [{"seed": seed, "schedule": schedule, "examples": self.planted_examples} for seed in self.seeds]
        spans = [(layer, layer) for layer in range(1, depth + 1)]
        spans += [(layer, layer + 1) for layer in range(1, depth)] if self.neighbours else []
        frozen = [tuple(one for one in range(depth + 1) if not low <= one <= high) for low, high in spans]
        kinds = [{"schedule": replace(schedule, epochs=dose * schedule.epochs)} for dose in self.doses]
        kinds += [{"schedule": schedule, "frozen": layers} for layers in frozen]
        kinds += [{"schedule": schedule, "shuffled_labels": True}]
        return [{"seed": seed, "examples": self.examples_of(task)} | kind for seed in self.seeds for kind in kinds]


# --- chapters by number, and profiles ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chapter:
    """A chapter of the book: its notebook's name without suffix (`slug`), its paper's key (empty without one), what it
    takes, and the modules whose functions it measures with, by name (:meth:`fivelenses.run.Run.measure`).
    """

    number: int
    slug: str
    paper: str
    parameters: type[ChapterParameters]
    measures: tuple[str, ...]

    @property
    def notebook(self) -> Path:
        """The paired notebook (``.ipynb``; the ``.py`` beside it is the same in percent format)."""
        return project_folder() / "notebooks" / f"{self.slug}.ipynb"


MODULE = "fivelenses.papers.{}"
CHAPTERS = {
    number: Chapter(number, slug, paper, parameters, ("fivelenses.checkpoints.tables", *map(MODULE.format, modules)))
    for number, slug, paper, parameters, *modules in (
        (1, "1-attention-svcca", "hao2020", Hao2020, "hao2020"),
        (2, "2-directprobe", "zhou2022", Zhou2022, "zhou2022", "zhou2022_geometry"),
        (3, "3-landscapes", "hao2019", Hao2019, "hao2019", "hao2019_paths"),
        (4, "4-reinitialisation", "singh2020", Singh2020, "singh2020"),
        (5, "5-probing-rsa", "merchant2020", Merchant2020, "merchant2020", "merchant2020_probes"),
        (6, "6-five-lenses", "", FiveLenses, "five_lenses"),
        (7, "7-known-truth", "", KnownTruth, "known_truth"),
    )
}


def chapters_on(profile: str) -> list[Chapter]:
    """The chapters that have a profile; one that does not exist is refused."""
    if profile not in PROFILES:
        raise ParameterError(f"There is no profile {profile!r}: choose among {', '.join(PROFILES)}.")
    return [chapter for chapter in CHAPTERS.values() if profile in chapter.parameters.profiles]


def settings(number: int, profile: str, /, **overrides) -> ChapterParameters:
    """A chapter's parameters: the profile's values, with those overrides that are not None instead.

    Another `encoder` alone is compared, and its independent one has its shape and random weights, unless the overrides
    name others. Refused: a profile or parameter that does not exist, or a value that does not fit.
    """
    overrides = {name: one for name, one in overrides.items() if one is not None}
    parameters = CHAPTERS[number].parameters
    if CHAPTERS[number] not in chapters_on(profile):
        raise ParameterError(f"Chapter {number} has no profile {profile!r}: it has {', '.join(parameters.profiles)}.")
    file, fields = project_folder() / "notebooks" / "profiles" / f"{profile}.yaml", parameters.model_fields
    try:
        content = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
        values = {name: value for name, value in content["all"].items() if name in fields} | content["chapters"][number]
    except (YAMLError, KeyError, TypeError) as error:
        why = getattr(error, "problem", None) or f"it needs `all`, and chapter {number} under `chapters`"
        raise ParameterError(f"{file} cannot be read: {why}.") from error
    if encoder := overrides.get("encoder"):
        following = {"encoders": [encoder], "pretrained": [encoder]}
        following["independent"] = f"random:{str(encoder).removeprefix('random:')}"
        values |= {name: value for name, value in following.items() if name in fields}
    try:
        return parameters(**values | overrides)
    except ValidationError as error:
        raise ParameterError(f"Chapter {number}{_reason(error, sorted(fields))}") from error


def _reason(error: ValidationError, known: list[str]) -> str:
    """Which value does not fit, and why: of the first that pydantic names, what is wrong furthest inside."""
    where = error.errors()[0]["loc"][:1]
    first = max((one for one in error.errors() if one["loc"][:1] == where), key=lambda one: len(one["loc"]))
    if first["type"] == "extra_forbidden":
        return f" has no parameter {where[0]!r}: it has {', '.join(known)}."
    message, last = first["msg"].removeprefix("Value error, ").removesuffix("."), first["loc"][-1] if where else ""
    missing = f"{last + 1} values" if isinstance(last, int) else last
    expected = {"missing": f"expected {missing}", "unexpected_keyword_argument": f"expected no {last}"}
    message = expected.get(first["type"], message)
    # What is said of the value is said by the value itself.
    message = re.sub(r"(, (got a|unable to)| after validation).*", "", message)
    # Without a place, parameters do not go together: the message names them.
    return f", {where[0]}: {message}, got {first['input']!r}."[:600] if where else f": {message}."


def check_device(parameters: ChapterParameters) -> None:
    """Refuse a run that asks for a GPU on a machine without one."""
    if parameters.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            where = "run it on a machine with one, or pass -p device=cpu"
            raise ParameterError(f"This run asks for a GPU and there is none here (--dry-run says how long): {where}.")


def parse_parameters(pairs: list[str]) -> dict:
    """``name=value`` pairs, values read as YAML, of which a list needs no brackets; half a pair is refused."""
    parsed = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name in parsed:
            raise ValueError(f"{name} is named twice: write all its values after one name.")
        if re.match(r"[^\[{'\"].*,(?!\w+=)", value):
            value = f"[{value}]"
        try:
            # Of version 1.2, in which 010 is ten, 1e-4 a number and 1:30 a text.
            parsed[name] = YAML(typ="safe", pure=True).load(value)
        except YAMLError as error:
            why = f"{value!r}, {getattr(error, 'problem', error)}"
            raise ValueError(f"The value of {name} is not YAML: {why}; quote it as '[a, b]' or 'text'.") from error
        if not name or parsed[name] is None:
            raise ValueError(f"A parameter is written name=value, with a value that is not null: not {pair!r}.")
    return parsed
