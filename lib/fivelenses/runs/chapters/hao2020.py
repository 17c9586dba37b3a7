"""The parameters of chapter 1, after Hao et al. (2020)."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, PositiveInt, field_validator

from fivelenses.runs.parameters import EncoderParameters

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification


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

    dataset_pairs: tuple[tuple[str, str], ...]
    evaluation_examples: PositiveInt | None = None
    mixed_examples: PositiveInt = 200
    variance_kept: Annotated[float, Field(gt=0, le=1)] = 0.99
    batch_rows: PositiveInt = 32
    shuffled: tuple[str, ...] = ()

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
