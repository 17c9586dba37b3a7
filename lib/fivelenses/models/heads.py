"""Prediction heads on an encoder: one label a sequence, a word, or a pair of words.

Transformers has the first; the others read words, each the mean of its pieces in the last layer, so that what is
fine-tuned is what is measured later.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.modeling_outputs import TokenClassifierOutput

from fivelenses.models.encoders import Encoder, load

# How many words one unit of a head has.
WORDS_PER_UNIT = {"token": 1, "token-pair": 2}
HEADS = ("sequence", *WORDS_PER_UNIT)
HEAD_FILE = "head.safetensors"


def word_means(states: torch.Tensor, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean state of each word's pieces.

    Args:
        states: (batch, tokens, width).
        words: (batch, tokens) the word that a piece belongs to, counted from 0 in each row; -1 for none.

    Returns:
        (batch, most words, width) means, 0 for a word without pieces, and (batch, most words) counts of pieces.

    Example:
        >>> means, counts = word_means(torch.tensor([[[1.0], [3.0], [7.0]]]), torch.tensor([[0, 0, -1]]))
        >>> means.tolist(), counts.tolist()
        ([[[2.0]]], [[2.0]])
    """
    batch, _, width = states.shape
    most = int(words.max()) + 1
    # Pieces of no word are added to a last place that is cut off again.
    place = torch.where(words >= 0, words, most)
    sums = states.new_zeros(batch, most + 1, width).scatter_add_(1, place[..., None].expand_as(states), states)
    counts = states.new_zeros(batch, most + 1).scatter_add_(1, place, torch.ones_like(place, dtype=states.dtype))
    return (sums / counts.clamp(min=1)[..., None])[:, :most], counts[:, :most]


class WordClassifier(nn.Module):
    """An encoder with a linear classifier on words, or on pairs of words laid end to end.

    Attributes:
        encoder: the transformers encoder.
        words_per_unit: 1, or 2 for pairs.
        config, base_model: the encoder's, as transformers' own models have them.
    """

    def __init__(self, encoder: PreTrainedModel, words_per_unit: int, labels: int):
        super().__init__()
        self.encoder = encoder
        self.words_per_unit = words_per_unit
        self.dropout = nn.Dropout(getattr(encoder.config, "hidden_dropout_prob", 0.1))
        self.classifier = nn.Linear(words_per_unit * encoder.config.hidden_size, labels)
        nn.init.normal_(self.classifier.weight, std=encoder.config.initializer_range)
        nn.init.zeros_(self.classifier.bias)

    @property
    def config(self):
        return self.encoder.config

    @property
    def base_model(self) -> PreTrainedModel:
        return self.encoder

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    def set_attn_implementation(self, name: str) -> None:
        """Choose the encoder's attention."""
        self.encoder.set_attn_implementation(name)

    def forward(
        self,
        input_ids: torch.Tensor,
        word_ids: torch.Tensor,
        units: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
    ) -> TokenClassifierOutput:
        """Logits (k, labels) of the k `units` (k, 1 + words): the row in the batch, and a word or two in that row."""
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        means, _ = word_means(states, word_ids)
        chosen = torch.cat([means[units[:, 0], units[:, place]] for place in range(1, units.shape[1])], dim=-1)
        logits = self.classifier(self.dropout(chosen))
        loss = None if labels is None else nn.functional.cross_entropy(logits.float(), labels)
        return TokenClassifierOutput(loss=loss, logits=logits)


class UnitCollator:
    """Batches for a `WordClassifier`: sentences padded, units of all sentences one below the other."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.pad = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)

    def __call__(self, rows: list[dict]) -> dict[str, torch.Tensor]:
        pieces = ("input_ids", "attention_mask", "token_type_ids")
        batch = self.pad([{name: row[name] for name in pieces if name in row} for row in rows])
        width = batch["input_ids"].shape[1]
        batch["word_ids"] = torch.tensor([[*row["word_ids"], *[-1] * (width - len(row["word_ids"]))] for row in rows])
        batch["units"] = torch.tensor([[place, *unit] for place, row in enumerate(rows) for unit in row["units"]])
        if "labels" in rows[0]:
            batch["labels"] = torch.tensor([label for row in rows for label in row["labels"]])
        return batch


def collator(head: str, tokenizer: PreTrainedTokenizerBase) -> Callable:
    """What lays encoded examples out as a batch for a head."""
    return UnitCollator(tokenizer) if head in WORDS_PER_UNIT else DataCollatorWithPadding(tokenizer, "longest", None, 8)


def build(encoder: Encoder, head: str, labels: tuple[str, ...]) -> nn.Module:
    """An encoder with a fresh head for these labels; the head comes from torch's global generator: set a seed before.

    Raises:
        ValueError: no such kind of head, or fewer than two labels.
    """
    if head not in HEADS:
        raise ValueError(f"There is no {head!r} head to train: there is {', '.join(HEADS)}.")
    if len(labels) < 2:
        raise ValueError(f"A classifier needs at least two labels, not {len(labels)}.")
    if head in WORDS_PER_UNIT:
        return WordClassifier(load(encoder, AutoModel), WORDS_PER_UNIT[head], len(labels))
    return load(encoder, AutoModelForSequenceClassification, num_labels=len(labels))


def save(model: nn.Module, folder: Path) -> None:
    """Write a model with its head: a Hugging Face folder of the encoder, and the head of words beside it."""
    if not isinstance(model, WordClassifier):
        model.save_pretrained(folder)
        return
    model.encoder.save_pretrained(folder)
    save_file({name: tensor.contiguous() for name, tensor in model.classifier.state_dict().items()}, folder / HEAD_FILE)


def read(folder: Path, head: str) -> nn.Module:
    """A model that `save` wrote, in evaluation mode.

    Raises:
        ValueError: no such kind of head.
    """
    if head not in HEADS:
        raise ValueError(f"There is no {head!r} head: there is {', '.join(HEADS)}.")
    if head == "sequence":
        return AutoModelForSequenceClassification.from_pretrained(folder).eval()
    weights = load_file(folder / HEAD_FILE)
    encoder = AutoModel.from_pretrained(folder, config=AutoConfig.from_pretrained(folder))
    model = WordClassifier(encoder, WORDS_PER_UNIT[head], len(weights["bias"]))
    model.classifier.load_state_dict(weights)
    return model.eval()
