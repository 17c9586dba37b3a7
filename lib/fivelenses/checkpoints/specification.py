"""What a fine-tuned model is made from, frozen and addressed by its content.

Two specifications with equal content have one checkpoint. What names could hide (a moved folder, a changed table) is in
the specification as a hash: the encoder's identity and the digest of the training split.
"""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from functools import cache

from fivelenses import tasks

# Raise when the training routine changes what it makes of a specification: old checkpoints are then no longer found.
ROUTINE = 1
# Fields that came after the first checkpoints, with the values that those have.
LATER = {"shuffled_labels": False, "precision": "float32"}


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
        finite = all(0 <= one < math.inf for one in (self.epochs, self.further_epochs, self.weight_decay))
        sized = 0 < self.learning_rate < math.inf and 0 <= self.warmup < 1 and self.batch_size > 0
        if not (finite and sized and self.max_length > 3 and self.shape in ("slanted-triangular", "linear")):
            raise ValueError(
                f"A schedule needs a positive rate and batch size, epochs, decay >= 0, 0 <= warmup < 1, length >= 4, "
                f"no infinite number, and the shape 'slanted-triangular' or 'linear': {self}."
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


@dataclass(frozen=True)
class Specification:
    """Everything that a fine-tuned model depends on.

    Attributes:
        encoder, encoder_identity: the encoder's name, and the hash or revision behind it.
        task, source, data_digest: the task, where its table came from, and the hash of its training split.
        seed: of the head, the order of examples, dropout, and random or re-initialised weights.
        schedule: how it is trained.
        examples: training examples used, a stratified subset; None for all.
        examples_seed: of the subset: models of different seeds share their examples unless this differs too.
        frozen: layers kept out of training (0: embeddings).
        truncated: layers kept, None for all.
        reinitialised: layers whose projections are re-initialised, with `biases_and_norms` kept or reset.
        saved_steps: optimiser steps whose weights are kept; 0 is the state before training.
        shuffled_labels: whether the labels of the training examples used (of all their words, in a task on words) are
            permuted by `seed`, so that only their frequencies can be learnt; development examples keep theirs.
        precision: of the products of a training step, `float32` or `bfloat16`; weights are float32 in both.
    """

    encoder: str
    encoder_identity: str
    task: str
    source: str
    data_digest: str
    seed: int
    schedule: Schedule
    examples: int | None = None
    examples_seed: int = 0
    frozen: tuple[int, ...] = ()
    truncated: int | None = None
    reinitialised: tuple[int, ...] = ()
    biases_and_norms: str = "kept"
    saved_steps: tuple[int, ...] = ()
    routine: int = ROUTINE
    shuffled_labels: bool = False
    precision: str = "float32"

    def __post_init__(self):
        for name in ("frozen", "reinitialised", "saved_steps"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def as_dict(self) -> dict:
        """The content as plain JSON values, later fields only if they differ from what came before: addresses stay."""
        content = json.loads(json.dumps(dataclasses.asdict(self)))
        if not self.schedule.further_epochs:
            del content["schedule"]["further_epochs"]
        return {name: value for name, value in content.items() if name not in LATER or value != LATER[name]}

    @classmethod
    def from_dict(cls, content: dict) -> "Specification":
        """The specification that `as_dict` wrote."""
        return cls(**content | {"schedule": Schedule(**content["schedule"])})

    @property
    def address(self) -> str:
        """The hash of the content in 20 hexadecimal digits; of the encoder, its identity counts and not its name."""
        content = {key: value for key, value in self.as_dict().items() if key != "encoder"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    def describe(self) -> str:
        """One short line for progress and listings."""
        parts = [self.encoder, self.task, f"seed {self.seed}"]
        parts += [f"{self.examples:,} examples"] if self.examples else []
        parts += [f"frozen {self.frozen}"] if self.frozen else []
        parts += [f"first {self.truncated} layers"] if self.truncated else []
        parts += [f"re-initialised {self.reinitialised}"] if self.reinitialised else []
        parts += ["shuffled labels"] if self.shuffled_labels else []
        parts += [self.precision] if self.precision != "float32" else []
        return ", ".join(parts)


@cache
def training_split(task: str, source: str) -> tuple[str, int]:
    """The digest of the training examples that a source has of a task, and how many these are."""
    data = tasks.load(task, source, ("train",))
    return data.digest("train"), data.splits["train"].num_rows


def specify(
    encoder: str,
    task: str,
    source: str,
    seed: int,
    schedule: Schedule,
    examples: int | None = None,
    states: int | None = None,
    **rest,
) -> Specification:
    """A specification with the encoder's identity and the training data's digest filled in.

    Args:
        examples: at most so many training examples; a number that all of them fit in counts as all.
        states: two or more, instead of `saved_steps`: at most so many states along training are kept. Steps are counted
            in rows of the task: where passages are read in several windows, the last state comes before the end.
        rest: other fields of a `Specification`.

    Example:
        >>> schedule = Schedule(learning_rate=1e-3, batch_size=32, epochs=1)
        >>> specify("toy-bert/seed-0", "rte", "toyworld", 0, schedule, examples=3200, states=5).saved_steps
        (0, 6, 25, 56, 100)
    """
    from fivelenses.models import encoders

    digest, rows = training_split(task, source)
    if examples is None or examples >= rows:
        # Of all examples there is one choice, whatever the seed.
        examples, rest = None, rest | {"examples_seed": 0}
    if states is not None:
        # Close together at first, where training moves most.
        last = schedule.steps(examples or rows)
        rest["saved_steps"] = sorted({round(last * (place / (states - 1)) ** 2) for place in range(states)})
    identity = encoders.locate(encoder).identity
    return Specification(encoder, identity, task, source, digest, seed, schedule, examples, **rest)
