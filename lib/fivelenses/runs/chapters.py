"""The parameters of each chapter."""

import dataclasses
import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from fivelenses import tasks
from fivelenses.checkpoints import Schedule
from fivelenses.lenses.landscape import grid
from fivelenses.runs.parameters import FineTuningParameters, Positive


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


class Landscapes(FineTuningParameters):
    """Chapter 3, after Hao et al. (2019).

    Attributes:
        scratch_epochs: task to the epochs of its training from random weights.
        second: task to the task whose model gives the second direction.
        low, high, points: of each axis of a surface, in lengths of the first direction; -1, 0 and 1 are added.
        line_points: of a curve, on the same range.
        grid_examples: of each split at a cell of a grid; None for all.
        bfloat16: whether landscapes are measured with matrix products in that precision.
        followed: tasks whose trajectories are drawn (Figure 3).
        states: along each epoch of these trainings and of the long one.
        long_task, long_epochs: the task that is also trained for the sum of two numbers of epochs (Figure 4).
        grouped: tasks whose thirds of layers are moved (Figure 7).
    """

    scratch_epochs: dict[str, Annotated[float, Field(gt=0)]]
    second: dict[str, str]
    low: Annotated[float, Field(le=-1)] = -4
    high: Annotated[float, Field(gt=1)] = 4
    points: Annotated[int, Field(ge=4)] = 40
    line_points: Annotated[int, Field(ge=4)] = 40
    grid_examples: Annotated[int, Field(ge=2)] | None = None
    bfloat16: bool = False
    followed: tuple[str, ...]
    states: Positive = 1
    long_task: str
    long_epochs: tuple[Positive, Positive] = (5, 20)
    grouped: tuple[str, ...]

    @model_validator(mode="after")
    def _paired(self):
        for task in self.tasks:
            if task not in self.scratch_epochs:
                raise ValueError(f"scratch_epochs has none for {task}")
            other = self.second.get(task)
            if other == task or other not in self.tasks:
                raise ValueError(f"second gives {other} for {task}: name another of the tasks that are run")
        return self

    @model_validator(mode="after")
    def _longer(self):
        if self.long_task in self.tasks and sum(self.long_epochs) <= self.schedule(self.long_task).epochs:
            raise ValueError(f"long_epochs are no more than the usual epochs of {self.long_task}")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        # Its random twin is the same network without pre-training.
        return (self.encoder, f"random:{self.encoder}")

    def followed_tasks(self) -> list[str]:
        """The tasks of this run whose trajectories are drawn."""
        return [task for task in self.tasks if task in self.followed]

    def grouped_tasks(self) -> list[str]:
        """The tasks of this run whose thirds of layers are moved."""
        return [task for task in self.tasks if task in self.grouped]

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        schedule = self.schedule(task)
        if encoder == self.encoder or self.epochs:
            return schedule
        return dataclasses.replace(schedule, epochs=self.scratch_epochs[task])

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        examples, usual = min(rows, self.training_examples or rows), self.schedule_of(task, encoder)
        schedules = [(usual, self.states if task in self.followed else 0)]
        if task == self.long_task and encoder == self.encoder:
            schedules.append((dataclasses.replace(usual, epochs=sum(self.long_epochs)), self.states))
        return [
            {
                "seed": seed,
                "schedule": schedule,
                "examples": self.training_examples,
                "saved_steps": _steps_kept(schedule, examples, states),
            }
            for schedule, states in schedules
            for seed in self.seeds
        ]

    def states_kept(self, task: str, encoder: str) -> int | None:
        if task not in self.followed:
            return None
        return 1 + math.ceil(self.states * self.schedule_of(task, encoder).epochs)

    def passes(self, task: str, encoder: str, depth: int) -> int:
        # A cell reads a part of two splits, in whole passes over the development examples that the catalogue states.
        sizes = tasks.find(task).sizes
        read = [min(sizes[split], self.grid_examples or sizes[split]) / sizes["validation"] for split in sizes]
        cells, line = (len(grid(self.low, self.high, count)) for count in (self.points, self.line_points))
        cells **= 2
        surfaces = cells * sum(read) + 2 * line * read[0]
        if encoder == self.encoder and task in self.grouped:
            # Of a third of the layers, what lies below is kept: a third, two thirds and the whole.
            surfaces += 2 * cells * read[0]
        if encoder == self.encoder and task == self.long_task:
            surfaces += cells * read[1]
        return len(self.seeds) * math.ceil(surfaces)


def _steps_kept(schedule: Schedule, examples: int, states: int) -> tuple[int, ...]:
    """The first step, and the steps at which each of so many equal parts of an epoch ends, the last one included."""
    last = schedule.steps(examples)
    if not states:
        return (0,)
    parts = math.ceil(schedule.epochs * states)
    an_epoch = math.ceil(examples / schedule.batch_size)
    return tuple(sorted({0, last, *(round(an_epoch * part / states) for part in range(parts))}))


class Reinitialisation(FineTuningParameters):
    """Chapter 4, after Singh and Giovanardi (2020).

    Attributes:
        fractions: of the training examples (of `training_examples`, where that is given), the greatest first.
        sized: tasks whose layers are re-initialised at every fraction; the others' at the first alone.
        matched, matched_examples: tasks that are also compared at this equal number of examples (Figure 1c).
        depths: how many layers are re-initialised from the top; every number from 0 to all when None.
        least_steps: optimiser steps that a model is trained for at least; few examples are then read more often.
        biases_and_norms: whether a re-initialised layer's biases and LayerNorms are `kept` or `reset`.
    """

    fractions: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field(min_length=1)
    sized: tuple[str, ...]
    matched: tuple[str, ...] = ()
    matched_examples: Positive = 673
    depths: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    least_steps: Annotated[int, Field(ge=0)] = 0
    biases_and_norms: Literal["kept", "reset"] = "kept"

    @field_validator("fractions")
    @classmethod
    def _falling(cls, value):
        if list(value) != sorted(set(value), reverse=True):
            raise ValueError("fractions are written from the greatest to the least, each once")
        return value

    def sizes(self, rows: int) -> list[int]:
        """The numbers of training examples that the fractions ask for, of a task with so many."""
        whole = min(rows, self.training_examples or rows)
        return [max(1, round(fraction * whole)) for fraction in self.fractions]

    def sized_tasks(self) -> list[str]:
        """The tasks of this run whose layers are re-initialised at every size."""
        return [task for task in self.tasks if task in self.sized]

    def matched_tasks(self) -> list[str]:
        """The tasks of this run that are compared at an equal number of examples."""
        return [task for task in self.tasks if task in self.matched]

    def reinitialised(self, depth: int) -> list[int]:
        """The numbers of layers re-initialised from the top of an encoder of this depth, 0 and all among them."""
        return sorted({0, depth, *(range(depth) if self.depths is None else self.depths)} & {*range(depth + 1)})

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        counts = {size: {0} for size in self.sizes(rows)}
        every = set(self.reinitialised(depth))
        for number, size in enumerate(self.sizes(rows)):
            if number == 0 or task in self.sized:
                counts[size] |= every
        if task in self.matched:
            counts.setdefault(min(self.matched_examples, self.sizes(rows)[0]), set()).update(every)
        return [
            {
                "seed": seed,
                "schedule": self._lengthened(task, size),
                "examples": size,
                "examples_seed": seed,
                "reinitialised": tuple(range(depth - count + 1, depth + 1)),
                "biases_and_norms": self.biases_and_norms if count else "kept",
            }
            for size, of_size in counts.items()
            for count in sorted(of_size)
            for seed in self.seeds
        ]

    def _lengthened(self, task: str, examples: int) -> Schedule:
        schedule = self.schedule(task)
        if schedule.steps(examples) >= self.least_steps:
            return schedule
        return dataclasses.replace(
            schedule, epochs=math.ceil(self.least_steps / math.ceil(examples / schedule.batch_size))
        )

    def passes(self, task: str, encoder: str, depth: int) -> int:
        # Frozen features come from one pass; the tuned models' scores come with their training.
        return 1
