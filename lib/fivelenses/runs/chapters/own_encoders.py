"""The parameters of chapter 8, on encoders of one's own."""

from typing import Annotated, ClassVar

from pydantic import Field

from fivelenses.runs.chapters.toy_world import ToyWorld


class OwnEncoders(ToyWorld):
    """Chapter 8, on what encoders that `fivelenses pretrain` made are worth.

    Attributes:
        probe_sentences: training sentences of the probe for parts of speech, at most.
    """

    also_read: ClassVar[tuple[str, ...]] = ("wikitext", "pos-ewt")  # held-out text, and the probe's words

    probe_sentences: Annotated[int, Field(ge=20)]
