"""The parameters of chapter 2, after Zhou and Srikumar (2022)."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from fivelenses import catalogue
from fivelenses.checkpoints.schedule import Schedule
from fivelenses.runs.parameters import EncoderParameters

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification


class Zhou2022(EncoderParameters):
    """Chapter 2, after Zhou and Srikumar (2022).

    Attributes:
        encoders: the family that is compared, the smallest first; `encoder` is the one that is followed along training.
        epochs_by_encoder: epochs of an encoder that is trained for another number than its schedules say.
        followed: tasks whose states along training are kept for `encoder`.
        states: how many.
        target, tuned_on: the task that is measured after tuning on each of these (Table 5).
        points: labelled points of a training split in the geometry, at most, but for those of rare labels; a stratified
            subset of one seed.
        followed_points: the same along training and across tasks, where many states are measured.
        min_examples: labels with fewer points in either split are left out where the two splits are compared.
        shuffled: tasks on which `encoder` is also trained with labels permuted, as a control.
        probe_points: training points of the classifier probes, at most.
        probe_sizes, probe_regularisers, probe_initialisations: the grid of the classifier probes, and the fits of the
            best of it.
        probe_epochs: of a classifier probe, at most.
    """

    heads: ClassVar[tuple[str, ...]] = ("sequence", "token", "token-pair")

    encoders: tuple[str, ...] = Field(min_length=1)
    epochs_by_encoder: dict[str, PositiveFloat] = {}
    followed: tuple[str, ...]
    states: Annotated[int, Field(ge=3)]
    target: str
    tuned_on: tuple[str, ...]
    points: PositiveInt | None = None
    followed_points: PositiveInt | None = None
    min_examples: PositiveInt = 3
    shuffled: tuple[str, ...] = ()
    probe_points: PositiveInt | None = None
    probe_sizes: tuple[PositiveInt, ...] = Field(min_length=1)
    probe_regularisers: tuple[PositiveFloat, ...] = Field(min_length=1)
    probe_initialisations: Annotated[int, Field(ge=2)] = 5
    probe_epochs: PositiveInt = 1000

    @model_validator(mode="after")
    def _consistent(self):
        if self.encoder not in self.encoders:
            raise ValueError(f"encoders does not hold encoder, {self.encoder}, which is followed along training")
        head = catalogue.find(self.target).head
        if head not in self.heads:
            raise ValueError(
                f"target is {self.target}, which has a {head} head, and labels of texts or words are measured"
            )
        for name in ("followed", "tuned_on"):
            if not set(getattr(self, name)) & set(self.tasks):
                raise ValueError(f"{name} has none of the tasks, {', '.join(self.tasks)}: name one of them")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return self.encoders

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        epochs = None if self.epochs else self.epochs_by_encoder.get(encoder)
        schedule = super().schedule_of(task, encoder)
        return schedule if epochs is None else dataclasses.replace(schedule, epochs=epochs)

    def states_kept(self, task: str, encoder: str) -> int | None:
        return self.states if encoder == self.encoder and task in self.followed else None

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        trainings = super().trainings(task, encoder, rows, depth)
        controlled = encoder == self.encoder and task in self.shuffled
        return trainings + [one | {"shuffled_labels": True} for one in trainings if controlled]

    def followed_tasks(self) -> list[str]:
        """The followed tasks among those that are run."""
        return [task for task in self.followed if task in self.tasks]

    def followed_models(self) -> "list[Specification]":
        """The specifications of the models that are followed along training, those on shuffled labels among them."""
        return [one for task in self.followed_tasks() for one in self.specifications_of(task, self.encoder)]

    def ordinary_models(self) -> "list[Specification]":
        """The specifications of the models that are trained on the true labels."""
        return [one for one in self.specifications() if not one.shuffled_labels]

    def models_for_target(self) -> "list[Specification]":
        """The specifications of the models in which `target` is measured."""
        tuned_on = [task for task in self.tuned_on if task in self.tasks]
        return [self.specification(task, seed, self.encoder) for task in tuned_on for seed in self.seeds]
