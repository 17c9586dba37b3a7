"""The parameters of each chapter: a model per chapter, with the models that it fine-tunes.

What all chapters take is in `runs.parameters`, their values are in ``notebooks/profiles``.
"""

import dataclasses
import math
from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from fivelenses import catalogue
from fivelenses.checkpoints.schedule import Schedule
from fivelenses.runs.parameters import EncoderName, EncoderParameters, Seed, Share, TaskName, number_of

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification

OF_WORDS = ("token", "token-pair")  # the heads that a planted task may have


class Hao2020(EncoderParameters):
    """Chapter 1, after Hao et al. (2020).

    Attributes:
        dataset_pairs: pairs of tasks whose models are compared (Figures 6 and 7); pairs outside `tasks` are left out.
        evaluation_examples: development examples on which models are compared, at most; None for all.
        mixed_examples: development examples of each data set in Figures 6 and 7.
        variance_kept: the share of variance that SVCCA keeps in the figures.
        batch_rows: examples per batch in the measuring pass.
        shuffled: tasks that are also learned with shuffled labels, as a control; those outside `tasks` are left out.
    """

    dataset_pairs: tuple[tuple[TaskName, TaskName], ...]
    evaluation_examples: PositiveInt | None = None
    mixed_examples: PositiveInt = 200
    variance_kept: Annotated[float, Field(gt=0, le=1)] = 0.99
    batch_rows: PositiveInt = 32
    shuffled: tuple[TaskName, ...] = ()

    @field_validator("shuffled")
    @classmethod
    def _shuffled_is_known(cls, value):
        return cls._known(value)

    @field_validator("dataset_pairs")
    @classmethod
    def _two_tasks(cls, value):
        for one, other in value:
            if one == other:
                raise ValueError(f"a pair of {one} with itself has nothing to compare: name two tasks")
        return value

    def compared_pairs(self) -> list[tuple[str, str]]:
        """The pairs of data sets of which both tasks are run."""
        return [pair for pair in self.dataset_pairs if set(pair) <= set(self.tasks)]

    def models_of(self, pair: tuple[str, str]) -> "list[Specification]":
        """The specifications of the ordinary models of two tasks."""
        return [one for one in self.ordinary_models() if one.task in pair]

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        ordinary = super().trainings(task, encoder, rows, depth)
        shuffled = [one | {"shuffled_labels": True} for one in ordinary if task in self.shuffled]
        return ordinary + shuffled

    def specifications(self) -> "list[Specification]":
        """The specifications of all models of this run, those that are trained on shuffled labels at the end."""
        return sorted(super().specifications(), key=lambda one: one.shuffled_labels)

    def ordinary_models(self) -> "list[Specification]":
        """The specifications of the models that are trained on the true labels."""
        return [one for one in self.specifications() if not one.shuffled_labels]

    def sets_compared(self) -> list[tuple[tuple[str, ...], int | None]]:
        alone = [((task,), self.evaluation_examples) for task in self.tasks]
        return alone + [(pair, self.mixed_examples) for pair in self.compared_pairs()]


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

    encoders: tuple[EncoderName, ...] = Field(min_length=1)
    epochs_by_encoder: dict[EncoderName, PositiveFloat] = {}
    followed: tuple[TaskName, ...]
    states: Annotated[int, Field(ge=3)]
    target: TaskName
    tuned_on: tuple[TaskName, ...]
    points: PositiveInt | None = None
    followed_points: PositiveInt | None = None
    min_examples: PositiveInt = 3
    shuffled: tuple[TaskName, ...] = ()
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

    scratch_epochs: dict[TaskName, PositiveFloat]
    second: dict[TaskName, TaskName]
    # So far out nothing but overflow is left to see, and so many cells take years.
    low: Annotated[float, Field(ge=-1000, le=-1)] = -4
    high: Annotated[float, Field(gt=1, le=1000)] = 4
    points: Annotated[int, Field(ge=4, le=1000)] = 40
    line_points: Annotated[int, Field(ge=4, le=100_000)] = 40
    grid_examples: Annotated[int, Field(ge=2)] | None = None
    bfloat16: bool = False
    followed: tuple[TaskName, ...]
    states: PositiveInt = 1
    long_task: TaskName
    long_epochs: tuple[PositiveInt, PositiveInt] = (5, 20)
    curvature_examples: Annotated[int, Field(ge=2)] | None = None
    grouped: tuple[TaskName, ...]

    @model_validator(mode="after")
    def _paired(self):
        for task in self.tasks:
            if task not in self.scratch_epochs:
                raise ValueError(f"scratch_epochs has none for {task}")
            other = self.second.get(task)
            if other == task or other not in self.tasks:
                title = catalogue.find(task).title
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
    sized: tuple[TaskName, ...]
    matched: tuple[TaskName, ...] = ()
    matched_examples: PositiveInt = 673
    depths: tuple[NonNegativeInt | Share, ...] | None = None
    min_steps: NonNegativeInt = 0
    equal_steps_depth: NonNegativeInt | None = None
    shuffled: tuple[TaskName, ...] = ()
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


class Merchant2020(EncoderParameters):
    """Chapter 5, after Merchant et al. (2020).

    Attributes:
        pretrained: encoders that differ in their pre-training seed; the first is `encoder`, which is also probed,
            frozen and truncated.
        frozen: highest frozen layers (Figure 3), or shares of the layers; 0 freezes the embeddings alone, and nothing
            frozen is always there.
        truncated: numbers of layers kept (Figure 4), or shares of them; all of them is always there.
        ablated: the tasks, of those that are run, for which encoders are also frozen and truncated; all when None.
        halved: other tasks, for which they are at half of the layers alone.
        edge_tasks: edge-probing tasks.
        probe_targets: training targets of each, at most.
        probe_learning_rate, probe_validate_every, probe_validations, probe_width, probe_seeds: of the edge probes.
        probe_validate_every_of: edge-probing task to its own `probe_validate_every`.
        codelength_tasks: edge-probing tasks of which codelengths are measured.
        structural_sentences: training sentences of the structural probes, at most.
        similarity_tokens, similarity_examples: of each input on which similarity is measured, at most.
        max_tokens: a sentence that probes read is cut to.
    """

    heads: ClassVar[tuple[str, ...]] = ("sequence", "span", "biaffine")
    also_read: ClassVar[tuple[str, ...]] = ("wikitext", "parsing")  # running text, and the trees of structural probes
    counting_layers: ClassVar[tuple[str, ...]] = ("frozen", "truncated")

    pretrained: tuple[EncoderName, ...] = Field(min_length=1)
    frozen: tuple[NonNegativeInt | Share, ...] = ()
    truncated: tuple[PositiveInt | Share, ...] = ()
    ablated: tuple[TaskName, ...] | None = None
    halved: tuple[TaskName, ...] = ()
    edge_tasks: tuple[str, ...] = Field(min_length=1)
    probe_targets: Annotated[int, Field(ge=20)]
    probe_learning_rate: PositiveFloat = 1e-4
    probe_validate_every: PositiveInt = 500
    probe_validate_every_of: dict[str, PositiveInt] = {}
    probe_validations: PositiveInt = 200
    probe_width: PositiveInt = 256
    probe_seeds: tuple[Seed, ...] = Field(min_length=1, default=(0,))
    codelength_tasks: tuple[str, ...] = Field(min_length=1)
    structural_sentences: Annotated[int, Field(ge=4)]
    similarity_tokens: Annotated[int, Field(ge=3)] = 5000
    similarity_examples: PositiveInt = 1000
    max_tokens: Annotated[int, Field(ge=4)] = 128

    @field_validator("edge_tasks", "codelength_tasks", "probe_validate_every_of")
    @classmethod
    def _known_edge_tasks(cls, value):
        from fivelenses.tasks.edge_tasks import find_edge_task

        for name in value:
            find_edge_task(name)
        return value

    @model_validator(mode="after")
    def _begins_with_the_encoder(self):
        if self.pretrained[0] != self.encoder:
            raise ValueError(f"pretrained has to begin with encoder, {self.encoder}")
        for name in self.codelength_tasks:
            if name not in self.edge_tasks:
                raise ValueError(f"codelength_tasks names {name}, which is not among edge_tasks")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return self.pretrained

    def whole(self) -> "list[Specification]":
        """The specifications of the models without frozen or removed layers."""
        return [one for one in self.specifications() if not one.frozen and one.truncated is None]

    def probed(self) -> "list[Specification]":
        """Those of `whole` that were tuned from `encoder`."""
        return [one for one in self.whole() if one.encoder == self.encoder]

    def tuned_on(self, model: str) -> "list[Specification]":
        """Those of `probed` that are behind the name of a probed model: none for the pre-trained encoder."""
        return [one for one in self.probed() if one.task == model]

    def probe_of(self, edge_task: str) -> dict:
        """The settings of an edge probe, as `papers.merchant2020.probes.edge_probing` takes them."""
        return {
            "targets": self.probe_targets,
            "seeds": self.probe_seeds,
            "learning_rate": self.probe_learning_rate,
            "validate_every": self.probe_validate_every_of.get(edge_task, self.probe_validate_every),
            "max_validations": self.probe_validations,
            "projection": self.probe_width,
            "hidden": self.probe_width,
        }

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        shared = {"schedule": self.schedule_of(task, encoder), "examples": self.examples_of(task)}
        if encoder in self.pretrained[1:]:
            return [{"seed": self.seeds[0]} | shared]
        frozen, truncated = self.frozen, self.truncated
        if self.ablated is not None and task not in self.ablated:
            frozen = truncated = (0.5,) if task in self.halved else ()
        tops, keeps = ([number_of(one, depth) for one in values] for values in (frozen, truncated))
        changes = [{}]
        changes += [{"frozen": tuple(range(top + 1))} for top in dict.fromkeys(tops) if top <= depth]
        changes += [{"truncated": kept} for kept in dict.fromkeys(keeps) if 0 < kept < depth]
        return [{"seed": seed} | shared | change for change in changes for seed in self.seeds]


class FiveLenses(EncoderParameters):
    """Chapter 6, on whether the lenses agree.

    Attributes:
        independent: an encoder of the same shape and vocabulary that was not trained from the same weights, for the
            nulls of attention, features, weights and similarity; `random:` and the encoder's name where there is none.
        evaluation_examples: development examples on which models are compared, at most; None for all.
        variance_kept: the share of variance that SVCCA keeps.
        similarity_tokens: of words, on which RSA is taken, at most.
        probe_points: training examples of a classifier probe and of the loss, at most.
        structural_sentences: training sentences of the structural probes, at most.
        random_directions: in which a layer is moved as far as fine-tuning moved it.
    """

    fewest_layers: ClassVar[int] = 3  # of which an order can be compared with another
    also_read: ClassVar[tuple[str, ...]] = ("parsing",)  # the trees of structural probes

    independent: EncoderName
    evaluation_examples: PositiveInt | None = None
    variance_kept: Annotated[float, Field(gt=0, le=1)] = 0.99
    similarity_tokens: Annotated[int, Field(ge=3)] = 5000
    probe_points: Annotated[int, Field(ge=10)] = 600
    structural_sentences: Annotated[int, Field(ge=4)]
    random_directions: PositiveInt = 3

    @model_validator(mode="after")
    def _two_encoders(self):
        if self.independent == self.encoder:
            raise ValueError(
                f"independent is the encoder itself, {self.encoder}: name another or random:{self.encoder}"
            )
        return self

    def encoders_read(self) -> tuple[str, ...]:
        return (self.encoder, self.independent)

    def sets_compared(self) -> list[tuple[tuple[str, ...], int | None]]:
        return [((task,), self.evaluation_examples) for task in self.tasks]


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
    planted: tuple[TaskName, ...] = ()
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
