"""How a model is fine-tuned; nothing that takes seconds to load is imported for it."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """How a model is fine-tuned.

    Attributes:
        learning_rate: the peak.
        batch_size: examples a step.
        epochs: passes over the training examples (the subset, when there is one), until the rate is down.
        shape: `slanted-triangular` (up over `warmup` of the steps, then linearly down to 1/32 of the peak) or
            `linear` (down to 0); down to a tenth where more epochs follow.
        warmup: fraction of the steps.
        weight_decay: AdamW's, not on biases and LayerNorms.
        max_length: pieces a sequence is cut to.
        by_length: batches of similar length (faster on a CPU; the paper's order is random).
        further_epochs: passes that follow at that tenth of the peak, with the optimiser's state as it is.
    """

    learning_rate: float
    batch_size: int
    epochs: float
    shape: str = "slanted-triangular"
    warmup: float = 0.1
    weight_decay: float = 0.01
    max_length: int = 128
    by_length: bool = False
    further_epochs: float = 0.0

    def __post_init__(self):
        # 3 and 3.0 epochs are one schedule and have to be written alike.
        for name in ("learning_rate", "epochs", "warmup", "weight_decay", "further_epochs"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.shape not in ("slanted-triangular", "linear"):
            raise ValueError(f"A schedule's shape is 'slanted-triangular' or 'linear', not {self.shape!r}.")
        if (
            not all(map(math.isfinite, (self.learning_rate, self.epochs, self.weight_decay, self.further_epochs)))
            or self.learning_rate <= 0
            or self.batch_size < 1
            or min(self.epochs, self.further_epochs, self.weight_decay) < 0
            or not 0 <= self.warmup < 1
            or self.max_length < 4
        ):
            raise ValueError(
                f"A schedule needs a positive rate and batch size, epochs, decay >= 0, 0 <= warmup < 1, length >= 4, "
                f"and no infinite number: {self}."
            )

    @property
    def all_epochs(self) -> float:
        """Passes over the training examples, those included that follow."""
        return self.epochs + self.further_epochs

    def steps(self, examples: int, further: bool = True) -> int:
        """Optimiser steps of this schedule on so many training examples; those until the rate is down if not `further`.

        Example:
            >>> one = Schedule(1e-3, 32, 3, further_epochs=2)
            >>> one.steps(100), one.steps(100, further=False)
            (20, 12)
        """
        return math.ceil(math.ceil(examples / self.batch_size) * (self.all_epochs if further else self.epochs))
