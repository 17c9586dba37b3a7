"""The parameters of chapter 3, after Hao et al. (2019)."""

import dataclasses
import math
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from fivelenses import catalogue
from fivelenses.checkpoints.schedule import Schedule
from fivelenses.runs.parameters import EncoderParameters

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification


class Hao2019(EncoderParameters):
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
        long_task, long_epochs: the task whose training of a first number of epochs is continued for a second, the
            paper's 5 + 20 (Figure 4). A separate training of their sum is compared with a finished one of the first
            number, or the usual one if that is as long or longer.
        curvature_examples: training examples whose loss the curvature is of; as many as `grid_examples` when None.
        grouped: tasks whose thirds of layers are moved (Figure 7).
    """

    fewest_layers: ClassVar[int] = 3  # thirds of them are moved and rolled back

    scratch_epochs: dict[str, PositiveFloat]
    second: dict[str, str]
    # So far out nothing but overflow is left to see, and so many cells take years.
    low: Annotated[float, Field(ge=-1000, le=-1)] = -4
    high: Annotated[float, Field(gt=1, le=1000)] = 4
    points: Annotated[int, Field(ge=4, le=1000)] = 40
    line_points: Annotated[int, Field(ge=4, le=100_000)] = 40
    grid_examples: Annotated[int, Field(ge=2)] | None = None
    bfloat16: bool = False
    followed: tuple[str, ...]
    states: PositiveInt = 1
    long_task: str
    long_epochs: tuple[PositiveInt, PositiveInt] = (5, 20)
    curvature_examples: Annotated[int, Field(ge=2)] | None = None
    grouped: tuple[str, ...]

    @model_validator(mode="after")
    def _paired(self):
        for task in self.tasks:
            if task not in self.scratch_epochs:
                raise ValueError(f"scratch_epochs has none for {task}")
            other = self.second.get(task)
            if other == task or other not in self.tasks:
                title = catalogue.find(task).title if catalogue.is_task(task) else task
                raise ValueError(
                    f"second gives {other} for {task}: name another of the tasks that are run (a surface is spanned by "
                    f"the models of two tasks, so {title} needs another beside it)"
                )
        return self

    @model_validator(mode="after")
    def _longer(self):
        if self.long_task in self.tasks and sum(self.long_epochs) <= self.schedule(self.long_task).epochs:
            raise ValueError(f"long_epochs are no more than the usual epochs of {self.long_task}")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return (self.encoder, f"random:{self.encoder}")

    def followed_tasks(self) -> list[str]:
        """The tasks of this run whose trajectories are drawn."""
        return [task for task in self.tasks if task in self.followed]

    def grouped_tasks(self) -> list[str]:
        """The tasks of this run whose thirds of layers are moved."""
        return [task for task in self.tasks if task in self.grouped]

    def examples_of_curvature(self) -> int | None:
        """How many training examples the curvature is measured on; None for all."""
        return self.grid_examples if self.curvature_examples is None else self.curvature_examples

    def ordinary_models(self) -> "list[Specification]":
        """The fine-tuned models of the tasks: not from scratch, and not trained for longer."""
        usual = {task: self.schedule_of(task, self.encoder) for task in self.tasks}
        fine_tuned = [one for one in self.specifications() if one.encoder == self.encoder]
        return [one for one in fine_tuned if one.schedule == usual[one.task]]

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        schedule = super().schedule_of(task, self.encoder)
        if encoder == self.encoder or self.epochs:
            return schedule
        return dataclasses.replace(schedule, epochs=self.scratch_epochs[task])

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        examples, usual = min(rows, self.examples_of(task) or rows), self.schedule_of(task, encoder)
        schedules = [(usual, self.states if task in self.followed else 0)]
        if task == self.long_task and encoder == self.encoder:
            finished, long = (dataclasses.replace(usual, epochs=count) for count in accumulate(self.long_epochs))
            continued = dataclasses.replace(finished, further_epochs=self.long_epochs[1])
            schedules += [(finished, 0)] if finished.epochs > usual.epochs else []
            schedules += [(long, self.states), (continued, self.states)]
        return [
            {
                "seed": seed,
                "schedule": schedule,
                "examples": self.examples_of(task),
                "saved_steps": _steps_kept(schedule, examples, states),
            }
            for schedule, states in schedules
            for seed in self.seeds
        ]


def _steps_kept(schedule: Schedule, examples: int, states: int) -> tuple[int, ...]:
    """The first step, and the steps at which each of so many equal parts of an epoch ends, the last one included."""
    last = schedule.steps(examples)
    if not states:
        return (0,)
    parts = math.ceil(schedule.all_epochs * states)
    an_epoch = math.ceil(examples / schedule.batch_size)
    return tuple(sorted({0, last, *(round(an_epoch * part / states) for part in range(parts))}))
