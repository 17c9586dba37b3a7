"""The parameters of chapter 0, the toy world."""

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
            raise ValueError("pretrained needs one encoder a seed")
        return self
