"""Prediction heads on an encoder, and the batches that they read: one label per sequence, word or pair of words; a span
of a passage; a tree.

Transformers provides the first and the span. The others read words, each the mean of its tokens in the last layer, so
that what is fine-tuned is what is measured later.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.modeling_outputs import TokenClassifierOutput

from fivelenses.models.biaffine import BiaffineHead, ParserOutput, parsing_loss
from fivelenses.models.encoders import Encoder, config, load_weights
from fivelenses.tasks.encoding import IGNORED, NO_WORD

# The number of words in a unit that a head labels.
WORDS_PER_UNIT = {"token": 1, "token-pair": 2}
# The heads that transformers provides.
LIBRARY = {
    "sequence": transformers.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    "span": transformers.MODEL_FOR_QUESTION_ANSWERING_MAPPING,
}
# What a configuration may hold of a head or a run that its weights came from, and what it is without them.
OF_OLD_HEADS = dict.fromkeys(("problem_type", "classifier_dropout", "finetuning_task"))
OF_OLD_HEADS |= {"output_attentions": False, "output_hidden_states": False}
HEAD_FILE = "head.safetensors"
TOKEN_COLUMNS = ("input_ids", "attention_mask", "token_type_ids", "word_ids")
# Widths of batches are rounded up to a multiple of this, which suits a GPU's matrix units.
WIDTH_MULTIPLE = 8


def word_means(states: torch.Tensor, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean state of each word's tokens, (batch, max words, width), 0 for a word without any, and their number.

    Args:
        states: (batch, tokens, width).
        words: (batch, tokens) the word that a token belongs to, counted from 0 in each row; -1 for none.

    Example:
        >>> word_means(torch.tensor([[[1.0], [3.0], [7.0]]]), torch.tensor([[0, 0, -1]]))
        (tensor([[[2.]]]), tensor([[2.]]))
    """
    batch, _, width = states.shape
    max_words = int(words.max()) + 1
    # Tokens of no word are added up in a last place that is cut off again.
    place = torch.where(words >= 0, words, max_words)
    sums = states.new_zeros(batch, max_words + 1, width).scatter_add_(1, place[..., None].expand_as(states), states)
    counts = states.new_zeros(batch, max_words + 1).scatter_add_(1, place, torch.ones_like(place, dtype=states.dtype))
    return (sums / counts.clamp(min=1)[..., None])[:, :max_words], counts[:, :max_words]


class WordModel(nn.Module):
    """An encoder whose head, the attribute `head_name`, reads words; with attributes of transformers' own models."""

    head_name: str

    def __init__(self, encoder: transformers.PreTrainedModel):
        super().__init__()
        self.encoder, self.config = encoder, encoder.config

    @property
    def base_model(self) -> transformers.PreTrainedModel:
        return self.encoder

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    def words(self, word_ids: torch.Tensor, input_ids, attention_mask, token_type_ids) -> tuple[torch.Tensor, ...]:
        """The means of the last layer's words and their token counts, see `word_means`."""
        tokens = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        output = self.encoder(**{name: values for name, values in tokens.items() if values is not None})
        return word_means(output.last_hidden_state, word_ids)

    def save_pretrained(self, folder: Path) -> None:
        """Write the encoder as a Hugging Face folder, and a file for the head beside it."""
        self.encoder.save_pretrained(folder)
        save_file(self.get_submodule(self.head_name).state_dict(), folder / HEAD_FILE)


class WordClassifier(WordModel):
    """An encoder with a linear classifier on words, or on pairs of words, concatenated."""

    head_name = "classifier"

    def __init__(self, encoder: transformers.PreTrainedModel, words_per_unit: int, labels: int):
        super().__init__(encoder)
        self.dropout = nn.Dropout(getattr(encoder.config, "hidden_dropout_prob", 0.1))
        self.classifier = nn.Linear(words_per_unit * encoder.config.hidden_size, labels)
        nn.init.normal_(self.classifier.weight, std=encoder.config.initializer_range)
        nn.init.zeros_(self.classifier.bias)

    # The Trainer reads from a signature which columns a model takes.
    def forward(
        self, input_ids, word_ids, units, attention_mask=None, token_type_ids=None, labels=None
    ) -> TokenClassifierOutput:
        """Logits (k, labels) of the k `units` (k, 1 + words), each a row of the batch and one or two words in it."""
        means, _ = self.words(word_ids, input_ids, attention_mask, token_type_ids)
        of_units = torch.cat([means[units[:, 0], units[:, place]] for place in range(1, units.shape[1])], dim=-1)
        logits = self.classifier(self.dropout(of_units))
        loss = None if labels is None else nn.functional.cross_entropy(logits.float(), labels)
        return TokenClassifierOutput(loss=loss, logits=logits)


class Parser(WordModel):
    """An encoder with a biaffine parser on words, see :mod:`fivelenses.models.biaffine`."""

    head_name = "biaffine"

    def __init__(self, encoder: transformers.PreTrainedModel, relations: int):
        super().__init__(encoder)
        self.biaffine = BiaffineHead(encoder.config.hidden_size, relations)

    def forward(
        self, input_ids, word_ids, attention_mask=None, token_type_ids=None, heads=None, labels=None
    ) -> ParserOutput:
        """Scores of all arcs and their relations, and the loss where `heads` and `labels` (batch, words) are given."""
        means, counts = self.words(word_ids, input_ids, attention_mask, token_type_ids)
        arcs, relations = self.biaffine(means, counts > 0)
        loss = None if heads is None else parsing_loss(arcs, relations, heads, labels)
        return ParserOutput(loss=loss, arcs=arcs, relations=relations)


def build(encoder: Encoder, head: str, labels: tuple[str, ...]) -> nn.Module:
    """An encoder with a new head (`sequence`, `span`, `token`, `token-pair` or `biaffine`) for these labels, drawn from
    torch's global generator: set a seed before. Of a head that it was fine-tuned with, nothing is taken.
    """
    if head not in LIBRARY:
        model = load_weights(encoder)
        _remove_old_head(model.config)  # in place, since it also holds which attention reads the padding's mask
        return _on_words(head, model, len(labels))
    shape = config(encoder)
    _remove_old_head(shape)
    if head == "sequence":
        shape.num_labels = len(labels)
    kind = LIBRARY[head][type(shape)]
    if encoder.random:
        return kind(shape)
    weights = load_weights(encoder)
    prefixed = {f"{weights.base_model_prefix}.{name}": tensor for name, tensor in weights.state_dict().items()}
    return kind.from_pretrained(None, config=shape, state_dict=prefixed, dtype=torch.float32)


def _remove_old_head(shape: transformers.PretrainedConfig) -> None:
    for name, value in OF_OLD_HEADS.items():
        if hasattr(shape, name):
            setattr(shape, name, value)
    shape.num_labels, shape.dtype = 2, torch.float32


def _on_words(head: str, encoder: transformers.PreTrainedModel, labels: int) -> WordModel:
    return Parser(encoder, labels) if head == "biaffine" else WordClassifier(encoder, WORDS_PER_UNIT[head], labels)


def read(folder: Path, head: str) -> nn.Module:
    """A model that its `save_pretrained` wrote, in evaluation mode."""
    shape = transformers.AutoConfig.from_pretrained(folder)
    if head in LIBRARY:
        return LIBRARY[head][type(shape)].from_pretrained(folder)
    weights = load_file(folder / HEAD_FILE)
    # Where the first axis is that of the labels.
    labels = weights["relation_scores" if head == "biaffine" else "bias"].shape[0]
    model = _on_words(head, transformers.AutoModel.from_pretrained(folder, config=shape), labels)
    model.get_submodule(model.head_name).load_state_dict(weights)
    return model.eval()


def padded_tokens(
    columns: Mapping[str, Sequence[Sequence[int]]], pad_token_id: int | None, multiple: int = 1
) -> dict[str, torch.Tensor]:
    """The columns of `TOKEN_COLUMNS` that are there, each as a tensor (examples, tokens) whose width is a `multiple`;
    word numbers are padded with -1, the rest with 0.

    Example:
        >>> batch = padded_tokens({"input_ids": [[2, 9, 3], [2, 3]], "word_ids": [[-1, 0, -1], [-1, -1]]}, 1, 4)
        >>> batch["input_ids"].tolist(), batch["word_ids"].tolist()
        ([[2, 9, 3, 1], [2, 3, 1, 1]], [[-1, 0, -1, -1], [-1, -1, -1, -1]])
    """
    longest = max(map(len, columns["input_ids"]))
    width, values = -(-longest // multiple) * multiple, {"input_ids": pad_token_id or 0, "word_ids": NO_WORD}
    return {name: _padded(columns[name], values.get(name, 0), width) for name in TOKEN_COLUMNS if name in columns}


def _padded(rows: Sequence[Sequence[int]], value: int, width: int) -> torch.Tensor:
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


def collator(head: str, tokenizer: transformers.PreTrainedTokenizerBase) -> Callable:
    """What turns encoded examples, a list of dictionaries, into a batch for a kind of head."""
    if head in LIBRARY:
        return transformers.DataCollatorWithPadding(tokenizer, pad_to_multiple_of=WIDTH_MULTIPLE)
    return functools.partial(_batch_of_words, tokenizer.pad_token_id)


def _batch_of_words(pad_token_id: int | None, rows: list[dict]) -> transformers.BatchEncoding:
    """Tokens, their words and the targets: `labels` of `units` (units, 1 + words), or `labels` and `heads` of words."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    batch = padded_tokens(columns, pad_token_id, WIDTH_MULTIPLE)
    if "units" in columns:
        # Those of all sentences come one below the other: the sentence, then its words.
        units = [[sentence, *unit] for sentence, of_row in enumerate(columns["units"]) for unit in of_row]
        batch["units"] = torch.tensor(units)
        if "labels" in columns:
            batch["labels"] = torch.tensor(list(chain.from_iterable(columns["labels"])))
    else:
        # Words that were cut off are the last ones and have no place.
        words = 1 + int(batch["word_ids"].max())
        for name in {"heads", "labels"} & {*columns}:
            batch[name] = _padded([of_row[:words] for of_row in columns[name]], IGNORED, words)
    return transformers.BatchEncoding(batch)
