"""The parameters of chapter 1, after Hao et al. (2020)."""

from typing import Annotated

from pydantic import Field

from fivelenses.runs.parameters import EncodersBeside, Positive


class Hao2020(EncodersBeside):
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

    def passes(self, task: str, encoder: str, depth: int) -> int:
        # Layers are put back in the models of `encoder` alone.
        return super().passes(task, encoder, depth if encoder == self.encoder else 0)

    def compared_pairs(self) -> list[tuple[str, str]]:
        """The pairs of data sets of which both tasks are run."""
        return [pair for pair in self.dataset_pairs if set(pair) <= set(self.tasks)]
