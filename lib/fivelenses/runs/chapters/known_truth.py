"""The parameters of chapter 7, on encoders of which it is known where, how much and what changed."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, NonNegativeFloat, PositiveInt, field_validator, model_validator

from fivelenses import catalogue
from fivelenses.runs.parameters import EncoderParameters

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification

OF_WORDS = ("token", "token-pair")  # the heads that a planted task may have


class KnownTruth(EncoderParameters):
    """Chapter 7, on what each lens can see.

    Attributes:
        doses: lengths of training as shares of the schedule's; 1 is among them.
        neighbours: whether two neighbouring layers are also trained, and not single ones alone.
        planted: tasks on words, each of which asks for one kind of annotation.
        planted_examples: training examples of a planted task, at most.
        evaluation_examples: development examples on which models are compared, at most; None for all.
        similarity_tokens: of words, on which RSA and neighbours are taken, at most.
        probe_points: training examples of a classifier probe and of the loss, at most.
        structural_sentences: training sentences of the structural probes, at most.
    """

    also_read: ClassVar[tuple[str, ...]] = ("parsing",)  # the trees of structural probes

    doses: tuple[NonNegativeFloat, ...] = (0.0, 0.25, 0.5, 1.0, 2.0)
    neighbours: bool = True
    planted: tuple[str, ...] = ()
    planted_examples: PositiveInt | None = None
    evaluation_examples: PositiveInt | None = None
    similarity_tokens: Annotated[int, Field(ge=20)] = 500
    probe_points: Annotated[int, Field(ge=10)] = 300
    structural_sentences: Annotated[int, Field(ge=4)]

    @field_validator("doses")
    @classmethod
    def _usual_dose(cls, value):
        if 1.0 not in value or list(value) != sorted(set(value)) or len(value) < 3:
            raise ValueError("doses are at least three, from the least to the greatest, and 1 is among them")
        return value

    @model_validator(mode="after")
    def _planted_in_words(self):
        for task in self.planted:
            if catalogue.find(task).head not in OF_WORDS:
                raise ValueError(f"{task} is no task on words, and planted takes no other")
            if task not in self.schedules:
                raise ValueError(f"schedules has none for {task}, which is planted")
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
        kinds = [{"schedule": dataclasses.replace(schedule, epochs=dose * schedule.epochs)} for dose in self.doses]
        kinds += [{"schedule": schedule, "frozen": layers} for layers in frozen]
        kinds += [{"schedule": schedule, "shuffled_labels": True}]
        return [{"seed": seed, "examples": self.examples_of(task)} | kind for seed in self.seeds for kind in kinds]

    def classifiers(self) -> "list[Specification]":
        """The specifications of all models but those with a planted property."""
        return list(dict.fromkeys(one for task in self.tasks for one in self.specifications_of(task, self.encoder)))

    def ordinary(self) -> "list[Specification]":
        """The specifications of the models that are fine-tuned as usual."""
        lengths = {task: self.schedule_of(task, self.encoder).epochs for task in self.tasks}
        return [
            one
            for one in self.classifiers()
            if not one.frozen and not one.shuffled_labels and one.schedule.epochs == lengths[one.task]
        ]

    def first(self) -> "list[Specification]":
        """The specification of one model, on which costs are measured."""
        return self.ordinary()[:1]

    def with_property(self) -> "list[Specification]":
        """The specifications of the models with a planted property."""
        return [one for task in self.planted for one in self.specifications_of(task, self.encoder)]

    def sets_compared(self) -> list[tuple[tuple[str, ...], int | None]]:
        return [((task,), self.evaluation_examples) for task in self.tasks]
