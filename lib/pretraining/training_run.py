"""One pre-training run: its specification, its loop over batches, the state it saves and the checkpoint it writes.

Nothing depends on how often the run was interrupted: the pairs and order of a pass are drawn from the seed and the
pass, masks and dropout from the seed and the step, and the state holds the rest (weights, optimiser, place, losses).
"""

import json
import math
import pickle
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import torch
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerFast

from pretraining.masking import SpecialPieces, make_batch
from pretraining.objective import held_out_loss, masked_losses
from pretraining.text_blocks import (
    SHORTEST_SEQUENCE,
    SPECIAL_TOKENS_PER_PAIR,
    PairPlan,
    TokenisedText,
    derived_seed,
    plan_pass,
)

LOSSES_KEPT = 200
SAVE_EVERY = 200  # steps
SECONDS_BETWEEN_LINES = 30.0
RECORD = "pretraining.json"


@dataclass(frozen=True)
class PretrainingSpecification:
    """What is trained and how; equal specifications on equal text give equal encoders.

    `batch_tokens` counts the pieces of a batch, padding included, so a batch has `batch_tokens / length` pairs.
    `short_sequence_rate` is the share of pairs of a random shorter length. The first `first_share` of the steps read
    pairs of at most `first_length` pieces, as BERT's own first steps did, since short pairs teach more per second.
    `warm_up` is the share of `steps` over which the learning rate rises to `learning_rate`, before it falls to 0, both
    linearly. `dropout` is that of pre-training; the checkpoint names `fine_tuning_dropout` for what comes after.
    `initial_deviation` is the standard deviation of the first weights; BERT's 0.02 is meant for 768 dimensions.
    Raises ValueError for values out of range.
    """

    layers: int = 6
    hidden: int = 64
    heads: int = 4
    intermediate: int = 256
    vocabulary_size: int = 1000
    sequence_length: int = 128
    batch_tokens: int = 8192
    steps: int = 1000
    learning_rate: float = 1e-3
    warm_up: float = 0.1
    weight_decay: float = 0.01
    gradient_norm: float = 1.0
    masking_rate: float = 0.15
    short_sequence_rate: float = 0.1
    first_length: int | None = None
    first_share: float = 0.0
    dropout: float = 0.1
    fine_tuning_dropout: float = 0.1
    initial_deviation: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "intermediate", "vocabulary_size", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: set it to 1 or more")
        for name in ("warm_up", "first_share", "masking_rate", "short_sequence_rate", "dropout", "fine_tuning_dropout"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it is a share, set it between 0 and 1")
        for name in ("learning_rate", "gradient_norm", "initial_deviation"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}: set it above 0")
        if self.hidden % self.heads:
            raise ValueError(
                f"hidden size {self.hidden} is not divisible by {self.heads} heads: choose a multiple of {self.heads}"
            )
        if self.sequence_length < SHORTEST_SEQUENCE:
            raise ValueError(f"sequence_length is {self.sequence_length}: set it to {SHORTEST_SEQUENCE} or more")
        if self.first_length is not None and not SHORTEST_SEQUENCE <= self.first_length <= self.sequence_length:
            raise ValueError(
                f"first_length is {self.first_length}: set it between {SHORTEST_SEQUENCE} and sequence_length, "
                f"{self.sequence_length}"
            )
        if self.batch_tokens < self.sequence_length:
            raise ValueError(
                f"batch_tokens is {self.batch_tokens}, less than one sequence of {self.sequence_length}: raise it"
            )

    def length_at(self, step: int) -> int:
        """The longest pair of the pass that begins with a step, in pieces, special tokens included."""
        first = self.first_length is not None and step < round(self.first_share * self.steps)
        return self.first_length if first else self.sequence_length

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0.

        >>> specification = PretrainingSpecification(steps=10, warm_up=0.5, learning_rate=1.0)
        >>> [round(specification.learning_rate_at(step), 1) for step in (0, 4, 5, 9)]
        [0.2, 1.0, 1.0, 0.2]
        """
        rising = max(1, round(self.warm_up * self.steps))
        if step < rising:
            return self.learning_rate * (step + 1) / rising
        return self.learning_rate * (self.steps - step) / (self.steps - rising)


@dataclass
class _Progress:
    """Where a run stands, as it is saved: all that is needed to go on besides weights and optimiser."""

    step: int = 0
    passes: int = 0
    batch: int = 0
    pieces_seen: int = 0
    seconds: float = 0.0
    loss_curve: list[dict[str, float]] = field(default_factory=list)


class PretrainingRun:
    """A run on `text`, resumed from `state_path` where that file is the state of this very run (`identity`)."""

    def __init__(
        self,
        text: TokenisedText,
        specification: PretrainingSpecification,
        tokenizer: PreTrainedTokenizerFast,
        state_path: Path,
        identity: dict,
        log: Callable[[str], None],
    ) -> None:
        self.text, self.specification, self.tokenizer = text, specification, tokenizer
        self.state_path, self.identity, self.log = state_path, identity, log
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.progress = _Progress()
        torch.manual_seed(derived_seed(specification.seed, "weights"))
        self.model = BertForPreTraining(configuration(specification, tokenizer)).to(self.device)
        decayed = [weights for weights in self.model.parameters() if weights.ndim > 1]
        other = [weights for weights in self.model.parameters() if weights.ndim <= 1]
        self.optimiser = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": specification.weight_decay}, {"params": other, "weight_decay": 0.0}],
            lr=specification.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-6,
            fused=True,
        )
        if state_path.exists():
            self._resume()

    def train(self) -> None:
        """Take the steps that are left, saving the state every 200 steps.

        Raises FloatingPointError, before anything is saved, where the loss is no longer finite.
        """
        progress, steps = self.progress, self.specification.steps
        pieces, special = self.text.pieces.to(self.device), SpecialPieces.of(self.tokenizer, self.device)
        generator = torch.Generator(self.device)
        interval = max(1, steps // LOSSES_KEPT)
        sums, summed = torch.zeros(2, device=self.device), 0
        lengthens = round(self.specification.first_share * steps)
        plan: PairPlan | None = None
        self.model.train()
        line, first = time.monotonic(), replace(progress)
        began = line - progress.seconds
        while progress.step < steps:
            if plan is None:
                plan = plan_text(self.text, self.specification, progress.passes, progress.step - progress.batch)
            pairs = plan.pairs[plan.batches[progress.batch]]
            sums += self._step(pieces, pairs, special, generator)
            summed += 1
            progress.step += 1
            progress.batch += 1
            progress.pieces_seen += int(pairs[:, [1, 3]].sum()) + SPECIAL_TOKENS_PER_PAIR * len(pairs)
            if progress.batch == len(plan.batches) or progress.step == lengthens:
                plan, progress.batch, progress.passes = None, 0, progress.passes + 1
            saving = progress.step % SAVE_EVERY == 0 and progress.step < steps
            if progress.step % interval == 0 or saving or progress.step == steps:
                self._keep_loss(sums, summed)
                sums, summed = torch.zeros_like(sums), 0
            now = time.monotonic()
            progress.seconds = now - began
            if saving:
                self._save()
            if now - line >= SECONDS_BETWEEN_LINES and progress.loss_curve:
                line = now
                self._say_where_it_is(first)

    def _say_where_it_is(self, first: _Progress) -> None:
        """Log the losses, the speed since `first` and the time that is left."""
        progress, steps = self.progress, self.specification.steps
        seconds = progress.seconds - first.seconds
        left = seconds / (progress.step - first.step) * (steps - progress.step) / 60
        self.log(
            f"step {progress.step} of {steps}, loss {progress.loss_curve[-1]['masked']:.3f} masked words "
            f"and {progress.loss_curve[-1]['next_sentence']:.3f} next sentence, "
            f"{(progress.pieces_seen - first.pieces_seen) / seconds:,.0f} tokens a second, {left:.1f} minutes left"
        )

    def write(self, folder: Path, held_out: Sequence[Sequence[str]] | None, half_precision: bool) -> None:
        """Write weights, configuration, tokenizer and `pretraining.json`; the record measures the weights as stored."""
        model = self.model
        model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = (
            self.specification.fine_tuning_dropout
        )
        state = model.state_dict()
        # Tensors that are tied stay one tensor, so that the file holds them once.
        stored = {value.data_ptr(): value.half() if half_precision else value for value in state.values()}
        weights = {name: stored[value.data_ptr()] for name, value in state.items()}
        model.load_state_dict(weights)
        model.save_pretrained(folder, state_dict=weights)
        self.tokenizer.model_max_length = self.specification.sequence_length
        self.tokenizer.save_pretrained(folder)
        measured = None if held_out is None else asdict(held_out_loss(model, self.tokenizer, held_out))
        record = {
            "identity": self.identity,
            "text": {
                "documents": len(self.text.document_offsets) - 1,
                "sentences": len(self.text.sentence_offsets) - 1,
                "pieces": len(self.text.pieces),
            },
            "passes": self.progress.passes + (self.progress.batch > 0),
            "pieces_seen": self.progress.pieces_seen,
            "seconds": round(self.progress.seconds, 1),
            "device": str(self.device.type),
            "threads": torch.get_num_threads(),
            "stored": "float16" if half_precision else "float32",
            "parameters": sum(weights.numel() for weights in model.parameters()),
            "held_out": measured,
            "loss_curve": self.progress.loss_curve,
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in ("torch", "transformers", "tokenizers")},
        }
        (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def _step(
        self, pieces: torch.Tensor, pairs: torch.Tensor, special: SpecialPieces, generator: torch.Generator
    ) -> torch.Tensor:
        """One step of the optimiser; the two losses, left on the device so that nothing waits for it."""
        specification, step = self.specification, self.progress.step
        generator.manual_seed(derived_seed(specification.seed, "masks", step))
        torch.manual_seed(derived_seed(specification.seed, "dropout", step))
        batch = make_batch(pieces, pairs, special, specification.masking_rate, generator)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            masked, following, _, _ = masked_losses(self.model, batch)
        (masked + following).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), specification.gradient_norm)
        for group in self.optimiser.param_groups:
            group["lr"] = specification.learning_rate_at(step)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return torch.stack([masked.detach(), following.detach()])

    def _keep_loss(self, sums: torch.Tensor, summed: int) -> None:
        masked, following = (sums / summed).tolist()
        if not math.isfinite(masked + following):
            raise FloatingPointError(
                f"the loss is no longer finite at step {self.progress.step} of {self.specification.steps}: the run "
                f"diverged, lower learning_rate (now {self.specification.learning_rate:g}) or lengthen warm_up"
            )
        self.progress.loss_curve.append({"step": self.progress.step, "masked": masked, "next_sentence": following})

    def _save(self) -> None:
        """Write the state beside and rename it, so that a kill leaves the last whole one."""
        beside = self.state_path.with_suffix(".beside")
        torch.save(
            {
                "identity": json.dumps(self.identity),
                "progress": asdict(self.progress),
                "model": self.model.state_dict(),
                "optimiser": self.optimiser.state_dict(),
            },
            beside,
        )
        beside.replace(self.state_path)

    def _resume(self) -> None:
        try:
            state = torch.load(self.state_path, map_location=self.device, weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError):
            self.log(f"the saved state {self.state_path} is damaged: starting from the beginning")
            return
        if state["identity"] != json.dumps(self.identity):
            raise FileExistsError(
                f"{self.state_path.parent} holds the state of another run (other text or specification): remove it or "
                "name another folder"
            )
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.progress = _Progress(**state["progress"])
        self.log(f"resuming from step {self.progress.step} of {self.specification.steps}")


def plan_text(text: TokenisedText, specification: PretrainingSpecification, number: int, step: int) -> PairPlan:
    """The pairs and batches of pass `number`, which begins with `step`, both counted from 0."""
    return plan_pass(
        text,
        specification.length_at(step),
        specification.batch_tokens,
        specification.short_sequence_rate,
        derived_seed(specification.seed, "pass", number),
    )


def configuration(specification: PretrainingSpecification, tokenizer: PreTrainedTokenizerFast) -> BertConfig:
    """The configuration of the encoder that a specification asks for."""
    return BertConfig(
        vocab_size=specification.vocabulary_size,
        num_hidden_layers=specification.layers,
        hidden_size=specification.hidden,
        num_attention_heads=specification.heads,
        intermediate_size=specification.intermediate,
        max_position_embeddings=specification.sequence_length,
        hidden_dropout_prob=specification.dropout,
        attention_probs_dropout_prob=specification.dropout,
        initializer_range=specification.initial_deviation,
        pad_token_id=tokenizer.pad_token_id,
        attn_implementation="sdpa",
        dtype=torch.float32,
    )
