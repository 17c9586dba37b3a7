"""The parameters of chapter 1, after Hao et al. (2020)."""

import dataclasses
from typing import Annotated

from pydantic import Field

from fivelenses.checkpoints import Schedule
from fivelenses.runs.parameters import FineTuningParameters, Positive


class AttentionSvcca(FineTuningParameters):
    """Chapter 1, after Hao et al. (2020).

    Attributes:
        beside: other encoders, fine-tuned on the same tasks, for which Figures 1 and 2 are drawn too; `encoder` itself
            is left out of them.
        learning_rate_by_encoder: of an encoder that is trained at another rate than its schedules say.
        dataset_pairs: pairs of tasks whose models are compared (Figures 6 and 7); pairs outside `tasks` are left out.
        mixed_examples: development examples of each data set in Figures 6 and 7.
        keep: the share of variance that SVCCA keeps in the figures.
        batch_rows: examples a batch in the measuring pass.
    """

    beside: tuple[str, ...] = ()
    learning_rate_by_encoder: dict[str, Annotated[float, Field(gt=0)]] = {}
    dataset_pairs: tuple[tuple[str, str], ...]
    mixed_examples: Positive = 200
    keep: Annotated[float, Field(gt=0, le=1)] = 0.99
    batch_rows: Positive = 32

    def others(self) -> tuple[str, ...]:
        """The encoders beside `encoder`, each once."""
        return tuple(name for name in dict.fromkeys(self.beside) if name != self.encoder)

    def encoders_used(self) -> tuple[str, ...]:
        return (self.encoder, *self.others())

    def schedule_of(self, task: str, encoder: str) -> Schedule:
        rate = None if self.learning_rate else self.learning_rate_by_encoder.get(encoder)
        schedule = self.schedule(task)
        return schedule if rate is None else dataclasses.replace(schedule, learning_rate=rate)

    def passes(self, task: str, encoder: str, depth: int) -> int:
        # Layers are put back in the models of `encoder` alone.
        return super().passes(task, encoder, depth if encoder == self.encoder else 0)

    def compared_pairs(self) -> list[tuple[str, str]]:
        """The pairs of data sets of which both tasks are run."""
        return [pair for pair in self.dataset_pairs if set(pair) <= set(self.tasks)]
