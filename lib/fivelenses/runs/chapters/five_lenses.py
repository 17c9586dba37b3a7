"""The parameters of chapter 6, on whether the lenses agree."""

from typing import Annotated

from pydantic import Field, model_validator

from fivelenses.papers.five_lenses import Measuring
from fivelenses.runs.parameters import EncodersBeside, Positive


class FiveLenses(EncodersBeside):
    """Chapter 6, on whether the lenses agree.

    Attributes:
        independent: an encoder of the same shape and pieces that was not trained from the same weights, for the nulls
            of attention, features, weights and similarity; `random:` and the encoder's name where there is none.
        independent_by_encoder: the same for encoders of `beside`; `random:` and the encoder's name by default.
        keep: the share of variance that SVCCA keeps.
        similarity_tokens: on which RSA is taken, at most.
        probe_points: training examples of a classifier probe and of the loss, at most.
        structural_sentences: training sentences of the structural probes, at most.
        random_directions: in which a layer is moved beside its own.
    """

    independent: str
    independent_by_encoder: dict[str, str] = {}
    keep: Annotated[float, Field(gt=0, le=1)] = 0.99
    similarity_tokens: Annotated[int, Field(ge=3)] = 5000
    probe_points: Annotated[int, Field(ge=10)] = 600
    structural_sentences: Annotated[int, Field(ge=4)]
    random_directions: Positive = 3

    @model_validator(mode="after")
    def _two_encoders(self):
        for name in self.encoders_used():
            if self.independent_of(name) == name:
                raise ValueError(f"independent is the encoder itself, {name}: name another or random:{name}")
        return self

    def independent_of(self, encoder: str) -> str:
        """The encoder that was not trained from the same weights."""
        if encoder == self.encoder:
            return self.independent
        return self.independent_by_encoder.get(encoder, f"random:{encoder}")

    def encoders_read(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(read for name in self.encoders_used() for read in (name, self.independent_of(name))))

    def measuring(self) -> Measuring:
        """How the lenses are set."""
        return Measuring(
            self.evaluation_examples,
            self.keep,
            self.similarity_tokens,
            self.probe_points,
            self.structural_sentences,
            self.random_directions,
            None if self.device == "auto" else self.device,
        )

    def passes(self, task: str, encoder: str, depth: int) -> int:
        # The pre-trained, the independent and the untrained encoder, and of each tuned model its activations twice, its
        # loss, and its loss with one layer after another put back or moved at random.
        return 4 + len(self.seeds) * (3 + depth * (1 + self.random_directions))
