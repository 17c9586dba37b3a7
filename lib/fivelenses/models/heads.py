"""Prediction heads on an encoder: one label per sequence, word or pair of words; a span of a passage; a tree.

Transformers provides the first and the span. The others read words, each the mean of its tokens in the last layer, so
that what is fine-tuned is what is measured later.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    MODEL_FOR_QUESTION_ANSWERING_MAPPING,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AutoConfig,
    AutoModel,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import TokenClassifierOutput

from fivelenses.models.biaffine import BiaffineHead, ParserOutput, parsing_loss
from fivelenses.models.encoders import Encoder, config, load_weights

# The number of words in a unit that a head labels.
WORDS_PER_UNIT = {"token": 1, "token-pair": 2}
# The heads that transformers provides.
LIBRARY = {"sequence": MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING, "span": MODEL_FOR_QUESTION_ANSWERING_MAPPING}
# What a configuration may hold of a head or a run that its weights came from, and what it is without them.
OF_OLD_HEADS = {
    "problem_type": None,
    "output_attentions": False,
    "output_hidden_states": False,
    "classifier_dropout": None,
    "finetuning_task": None,
}
HEAD_FILE = "head.safetensors"


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

    def __init__(self, encoder: PreTrainedModel):
        super().__init__()
        self.encoder, self.config = encoder, encoder.config

    @property
    def base_model(self) -> PreTrainedModel:
        return self.encoder

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    def set_attn_implementation(self, name: str) -> None:
        """Choose the encoder's attention."""
        self.encoder.set_attn_implementation(name)

    def words(
        self,
        input_ids: torch.Tensor,
        word_ids: torch.Tensor,
        attention_mask: torch.Tensor | None,
        token_type_ids: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The means of the last layer's words and their token counts, see `word_means`."""
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        return word_means(states, word_ids)


class WordClassifier(WordModel):
    """An encoder with a linear classifier on words, or on pairs of words, concatenated."""

    head_name = "classifier"

    def __init__(self, encoder: PreTrainedModel, words_per_unit: int, labels: int):
        super().__init__(encoder)
        self.dropout = nn.Dropout(getattr(encoder.config, "hidden_dropout_prob", 0.1))
        self.classifier = nn.Linear(words_per_unit * encoder.config.hidden_size, labels)
        nn.init.normal_(self.classifier.weight, std=encoder.config.initializer_range)
        nn.init.zeros_(self.classifier.bias)

    def forward(
        self,
        input_ids: torch.Tensor,
        word_ids: torch.Tensor,
        units: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
    ) -> TokenClassifierOutput:
        """Logits (k, labels) of the k `units` (k, 1 + words), each a row of the batch and one or two words in it."""
        means, _ = self.words(input_ids, word_ids, attention_mask, token_type_ids)
        of_units = torch.cat([means[units[:, 0], units[:, place]] for place in range(1, units.shape[1])], dim=-1)
        logits = self.classifier(self.dropout(of_units))
        loss = None if labels is None else nn.functional.cross_entropy(logits.float(), labels)
        return TokenClassifierOutput(loss=loss, logits=logits)


class Parser(WordModel):
    """An encoder with a biaffine parser on words, see :mod:`fivelenses.models.biaffine`."""

    head_name = "biaffine"

    def __init__(self, encoder: PreTrainedModel, relations: int):
        super().__init__(encoder)
        self.biaffine = BiaffineHead(encoder.config.hidden_size, relations)

    def forward(
        self,
        input_ids: torch.Tensor,
        word_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        heads: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
    ) -> ParserOutput:
        """Scores of all arcs and their relations, and the loss where `heads` and `labels` (batch, words) are given."""
        means, counts = self.words(input_ids, word_ids, attention_mask, token_type_ids)
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


def _remove_old_head(shape: PretrainedConfig) -> None:
    for name, value in OF_OLD_HEADS.items():
        if hasattr(shape, name):
            setattr(shape, name, value)
    shape.num_labels, shape.dtype = 2, torch.float32


def _on_words(head: str, encoder: PreTrainedModel, labels: int) -> WordModel:
    return Parser(encoder, labels) if head == "biaffine" else WordClassifier(encoder, WORDS_PER_UNIT[head], labels)


def save(model: nn.Module, folder: Path) -> None:
    """Write a model with its head: a Hugging Face folder, with a file for a head that reads words."""
    if not isinstance(model, WordModel):
        model.save_pretrained(folder)
        return
    model.encoder.save_pretrained(folder)
    save_file(model.get_submodule(model.head_name).state_dict(), folder / HEAD_FILE)


def read(folder: Path, head: str) -> nn.Module:
    """A model that `save` wrote, in evaluation mode."""
    shape = AutoConfig.from_pretrained(folder)
    if head in LIBRARY:
        return LIBRARY[head][type(shape)].from_pretrained(folder)
    weights = load_file(folder / HEAD_FILE)
    # Where the first axis is that of the labels.
    labels = weights["relation_scores" if head == "biaffine" else "bias"].shape[0]
    model = _on_words(head, AutoModel.from_pretrained(folder, config=shape), labels)
    model.get_submodule(model.head_name).load_state_dict(weights)
    return model.eval()
