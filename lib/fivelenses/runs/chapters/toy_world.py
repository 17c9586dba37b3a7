"""The parameters of chapter 0, the toy world, whose encoders are compared with the same network from scratch."""

from pydantic import Field, model_validator

from fivelenses.runs.parameters import FineTuningParameters


class ToyWorld(FineTuningParameters):
    """Chapter 0: what the toy world's tasks ask for, and what pre-training is worth on them.

    Attributes:
        pretrained: encoders that differ in their pre-training seed; each is fine-tuned with the seed of its place
            in `seeds`.
    """

    pretrained: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_seed_each(self):
        if len(self.pretrained) != len(self.seeds):
            raise ValueError("pretrained needs one encoder per seed")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return (*self.pretrained, f"random:{self.pretrained[0]}")

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        every = super().trainings(task, encoder, rows, depth)
        return every if encoder not in self.pretrained else [every[self.pretrained.index(encoder)]]
