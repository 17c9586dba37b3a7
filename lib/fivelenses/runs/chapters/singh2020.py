"""The parameters of chapter 4, after Singh and Giovanardi (2020)."""

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from fivelenses.checkpoints.schedule import Schedule
from fivelenses.runs.parameters import EncoderParameters, Share, number_of

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification


class Singh2020(EncoderParameters):
    """Chapter 4, after Singh and Giovanardi (2020).

    Attributes:
        fractions: of the training examples (of `training_examples`, where that is given), or numbers of them.
        sized: tasks whose layers are re-initialised with every number of examples; the others' with the most alone.
        matched, matched_examples: tasks that are also compared at this equal number of examples (Figure 1c).
        depths: how many layers are re-initialised from the top, or what share of them; every number from 0 to all when
            None, and 0 and all are always there.
        min_steps: the least number of optimiser steps of a training; few examples are then read more often.
        equal_steps_depth: when given, the smaller sizes of `sized` tasks are trained again with as many steps as the
            most examples have, with no layer, so many layers and all layers re-initialised.
        shuffled: tasks whose models without re-initialised layers are also trained on shuffled labels, as a control of
            how far weights move.
        biases_and_norms: whether a re-initialised layer's biases and LayerNorms are `kept` or `reset`.
    """

    six_projections: ClassVar[bool] = True  # these are what is re-initialised
    counting_layers: ClassVar[tuple[str, ...]] = ("depths", "equal_steps_depth")

    fractions: tuple[Annotated[float, Field(gt=0, le=1)] | Annotated[int, Field(gt=1)], ...] = Field(min_length=1)
    sized: tuple[str, ...]
    matched: tuple[str, ...] = ()
    matched_examples: PositiveInt = 673
    depths: tuple[NonNegativeInt | Share, ...] | None = None
    min_steps: NonNegativeInt = 0
    equal_steps_depth: NonNegativeInt | None = None
    shuffled: tuple[str, ...] = ()
    biases_and_norms: Literal["kept", "reset"] = "kept"

    def sizes(self, task: str, rows: int) -> list[int]:
        """The numbers of training examples that the fractions ask for, of a task with so many; the most first."""
        whole = min(rows, self.examples_of(task) or rows)
        return sorted({min(whole, max(1, number_of(one, whole))) for one in self.fractions}, reverse=True)

    def sized_tasks(self) -> list[str]:
        """The tasks of this run whose layers are re-initialised at every size."""
        return [task for task in self.tasks if task in self.sized]

    def matched_tasks(self) -> list[str]:
        """The tasks of this run that are compared at an equal number of examples."""
        return [task for task in self.tasks if task in self.matched]

    def with_all_layers(self) -> "list[Specification]":
        """The specifications of the models without re-initialised layers, with those trained on shuffled labels."""
        return [one for one in self.specifications() if not one.reinitialised]

    def on_true_labels(self) -> "list[Specification]":
        """The specifications of the models whose scores mean something."""
        return [one for one in self.specifications() if not one.shuffled_labels]

    def probed(self, sizes: Mapping[str, list[int]]) -> list[dict]:
        """What is probed of each task: its sizes, and the tokens that its texts are cut to."""
        lengths = {task: self.schedule_of(task, self.encoder).max_length for task in self.tasks}
        return [{"task": task, "sizes": sizes[task], "max_length": lengths[task]} for task in self.tasks]

    def reinitialised(self, depth: int) -> list[int]:
        """The numbers of layers re-initialised from the top of an encoder of this depth, 0 and all among them."""
        counts = range(depth) if self.depths is None else (number_of(one, depth) for one in self.depths)
        return sorted({0, depth, *counts} & {*range(depth + 1)})

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        schedule, sizes = self.schedule_of(task, encoder), self.sizes(task, rows)
        counts = {size: {0} for size in sizes}
        every = set(self.reinitialised(depth))
        for number, size in enumerate(sizes):
            if number == 0 or task in self.sized:
                counts[size] |= every
        if task in self.matched:
            counts.setdefault(min(self.matched_examples, sizes[0]), set()).update(every)
        models = [(size, count, self.min_steps, False) for size, some in counts.items() for count in sorted(some)]
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
    return dataclasses.replace(schedule, epochs=math.ceil(steps / math.ceil(examples / schedule.batch_size)))
