"""The parameters of chapter 1, after Hao et al. (2020)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, PositiveInt, field_validator

from fivelenses.records import FOLDS
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

    def passes(self, task: str, encoder: str, depth: int, sizes: Mapping[str, int]) -> int:
        # Each tuned model has two twins, and models with shuffled labels have none. A model with a layer rolled back is
        # computed from that layer up.
        kinds = 4 if task in self.shuffled else 3
        return 1 + kinds * (1 + len(self.seeds) * (2 + (depth + 1) // 2))

    def decompositions(self, task: str, depth: int) -> int:
        seeds = len(self.seeds)
        kinds, pairs = 4 if task in self.shuffled else 3, seeds * (seeds + 1) // 2
        # The untrained encoder stands beside the tuned models.
        by_layer = _of_a_layer(2 + seeds, 1 + pairs) + (kinds - 1) * _of_a_layer(1 + seeds, pairs)
        # Of two tasks' models and their twins, counted at the first task.
        between = sum(task == first for first, _ in self.compared_pairs()) * seeds * 3 * _of_a_layer(2, 1)
        # The last layer alone, with one layer after another rolled back.
        rolled_back = kinds * seeds * (FOLDS + 1) * (1 + 2 * depth)
        return depth * (by_layer + between) + rolled_back

    def side_by_side(self, task: str) -> tuple[int, int]:
        # The pre-trained and an untrained encoder and all seeds; of a pair, permuted rows, too.
        seeds = len(self.seeds)
        models, pairs = 2 + seeds, 1 + seeds * (seeds + 1) // 2
        return models, models + 2 * pairs


def _of_a_layer(models: int, pairs: int) -> int:
    """How many matrices a comparison of these models takes apart in one layer: for SVCCA each model's and each pair's,
    on all examples and without each fold; for two other measures of a pair and its null one each, on all examples.

    >>> _of_a_layer(models=2, pairs=1)
    36
    """
    return (FOLDS + 1) * (models + pairs) + 3 * pairs
