"""The parameters of chapter 4, after Singh and Giovanardi (2020)."""

import dataclasses
import math
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, field_validator

from fivelenses.checkpoints.specification import Schedule, Specification
from fivelenses.runs.parameters import EncoderParameters


class Singh2020(EncoderParameters):
    """Chapter 4, after Singh and Giovanardi (2020).

    Attributes:
        fractions: of the training examples (of `training_examples`, where that is given), the greatest first.
        sized: tasks whose layers are re-initialised at every fraction; the others' at the first alone.
        matched, matched_examples: tasks that are also compared at this equal number of examples (Figure 1c).
        depths: how many layers are re-initialised from the top; every number from 0 to all when None.
        min_steps: the least number of optimiser steps of a training; few examples are then read more often.
        biases_and_norms: whether a re-initialised layer's biases and LayerNorms are `kept` or `reset`.
    """

    fractions: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field(min_length=1)
    sized: tuple[str, ...]
    matched: tuple[str, ...] = ()
    matched_examples: PositiveInt = 673
    depths: tuple[NonNegativeInt, ...] | None = None
    min_steps: NonNegativeInt = 0
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

    def with_all_layers(self) -> list[Specification]:
        """The specifications of the models without re-initialised layers."""
        return [one for one in self.specifications() if not one.reinitialised]

    def max_lengths(self) -> dict[str, int]:
        """Task to the tokens that its texts are cut to."""
        return {task: self.schedule(task).max_length for task in self.tasks}

    def reinitialised(self, depth: int) -> list[int]:
        """The numbers of layers re-initialised from the top of an encoder of this depth, 0 and all among them."""
        return sorted({0, depth, *(range(depth) if self.depths is None else self.depths)} & {*range(depth + 1)})

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        schedule, counts = self.schedule_of(task, encoder), {size: {0} for size in self.sizes(rows)}
        every = set(self.reinitialised(depth))
        for number, size in enumerate(self.sizes(rows)):
            if number == 0 or task in self.sized:
                counts[size] |= every
        if task in self.matched:
            counts.setdefault(min(self.matched_examples, self.sizes(rows)[0]), set()).update(every)
        return [
            {
                "seed": seed,
                "schedule": self._lengthened(schedule, size),
                "examples": size,
                "examples_seed": seed,
                "reinitialised": tuple(range(depth - count + 1, depth + 1)),
                "biases_and_norms": self.biases_and_norms if count else "kept",
            }
            for size, of_size in counts.items()
            for count in sorted(of_size)
            for seed in self.seeds
        ]

    def _lengthened(self, schedule: Schedule, examples: int) -> Schedule:
        if schedule.steps(examples) >= self.min_steps:
            return schedule
        return dataclasses.replace(
            schedule, epochs=math.ceil(self.min_steps / math.ceil(examples / schedule.batch_size))
        )

    def passes(self, task: str, encoder: str, depth: int) -> int:
        # Frozen features come from one pass; the tuned models' scores come with their training.
        return 1
