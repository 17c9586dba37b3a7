"""The parameters of chapter 6, on whether the lenses agree."""

from typing import Annotated, ClassVar

from pydantic import Field, PositiveInt, model_validator

from fivelenses.runs.parameters import EncoderParameters


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

    independent: str
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
