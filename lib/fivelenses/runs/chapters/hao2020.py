"""The parameters of chapter 1, after Hao et al. (2020)."""

from typing import Annotated

from pydantic import Field, PositiveInt

from fivelenses.runs.parameters import EncoderParameters


class Hao2020(EncoderParameters):
    """Chapter 1, after Hao et al. (2020).

    Attributes:
        dataset_pairs: pairs of tasks whose models are compared (Figures 6 and 7); pairs outside `tasks` are left out.
        evaluation_examples: development examples on which models are compared, at most; None for all.
        mixed_examples: development examples of each data set in Figures 6 and 7.
        variance_kept: the share of variance that SVCCA keeps in the figures.
        batch_rows: examples per batch in the measuring pass.
    """

    dataset_pairs: tuple[tuple[str, str], ...]
    evaluation_examples: PositiveInt | None = None
    mixed_examples: PositiveInt = 200
    variance_kept: Annotated[float, Field(gt=0, le=1)] = 0.99
    batch_rows: PositiveInt = 32

    def compared_pairs(self) -> list[tuple[str, str]]:
        """The pairs of data sets of which both tasks are run."""
        return [pair for pair in self.dataset_pairs if set(pair) <= set(self.tasks)]
