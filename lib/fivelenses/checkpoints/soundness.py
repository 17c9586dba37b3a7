"""Whether an encoder can be studied: its layers can be addressed, its weights are numbers, its tokeniser knows words.

What the libraries say of files and of the hub, `models.encoders` has put into a sentence by then.
"""

import functools
import math

import torch
from torch import nn
from transformers import AutoModel, PretrainedConfig, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from fivelenses import tasks
from fivelenses.models import encoders, layers
from fivelenses.tasks.encoding import for_words
from fivelenses.tasks.sources import SourceError

ADDRESSED = ("BERT", "DistilBERT", "ELECTRA", "MPNet", "RoBERTa", "XLM-R")
MOST_UNKNOWN = 0.5  # of the tokens of a task's text; a tokeniser of its language has hardly any
ROWS_READ = 200


@functools.cache
def check_encoder(name: str, projections: bool = False, fewest_layers: int = 1) -> PretrainedConfig:
    """Refuse an encoder that is not there, whose layers cannot be addressed, or whose weights are damaged.

    Args:
        name: as `models.encoders` understands it.
        projections: whether the six projections of each layer are needed.
        fewest_layers: that it has to have.

    Returns:
        Its configuration.

    Example:
        >>> check_encoder("toy-bert/seed-0", projections=True).num_hidden_layers
        6
    """
    encoder = encoders.locate(name)
    shape = encoders.config(encoder)
    kind, count = shape.model_type, getattr(shape, "num_hidden_layers", 0)
    continues = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if shape.is_encoder_decoder:
        reason = "it has an encoder and a decoder"
    elif continues or getattr(shape, "is_decoder", False):
        reason = "it is a decoder, whose tokens do not read those after them"
    else:
        reason = _not_addressed(shape, projections)
    if reason:
        raise ValueError(
            f"The encoder {name!r} is of the architecture {kind!r}, which cannot be studied layer by layer: {reason}. "
            f"Take one of {', '.join(ADDRESSED)}."
        )
    if count < fewest_layers:
        raise ValueError(
            f"This chapter compares parts of an encoder that {name}, of {count} layer{'' if count == 1 else 's'}, "
            f"does not have: give it one of at least {fewest_layers}."
        )
    encoders.tokenizer(encoder)
    _check_finite(name, encoders.load_weights(encoder))
    return shape


def _check_finite(name: str, model: nn.Module) -> None:
    for weight, values in model.named_parameters():
        bad = values.numel() - int(torch.isfinite(values).sum())
        if bad:
            raise SourceError(
                f"The weights of the encoder {name!r} are not finite ({weight} has {bad:,} bad values of "
                f"{values.numel():,}): its training diverged or the file is damaged, so take another copy."
            )


def _not_addressed(shape: PretrainedConfig, projections: bool) -> str:
    """Why the layers of an encoder of this shape, or their projections, cannot be addressed; empty where they can."""
    try:
        with torch.device("meta"):
            model = AutoModel.from_config(shape)
        count = len(layers.layer_list(model))
        for layer in range(1, count + 1 if projections else 1):
            layers.projections(model, layer)
    except ValueError as error:
        return str(error).rstrip(".")
    return ""


@functools.cache
def check_tokenizer(name: str, task: str, source: str) -> None:
    """Refuse an encoder whose tokeniser does not know most of a task's text.

    Example:
        >>> check_tokenizer("toy-bert/seed-0", "rte", "toyworld")
    """
    unknown = _unknown_share(encoders.tokenizer(encoders.locate(name)), task, source)
    if unknown > MOST_UNKNOWN:
        where = "a table of your own" if tasks.find(task).own else source
        raise SourceError(
            f"The tokeniser of the encoder {name!r} does not know {unknown:.0%} of the tokens of {task} ({where}): it "
            "is of another language or belongs to another encoder."
        )


def _unknown_share(tokenizer: PreTrainedTokenizerBase, task: str, source: str) -> float:
    """The share of unknown tokens in the first training rows of a task, special tokens left out; NaN without text."""
    if tokenizer.unk_token_id is None:
        return 0.0
    data = tasks.load(task, source, ("train",))
    rows = data.splits["train"]
    texts = list(rows.select(range(min(ROWS_READ, rows.num_rows)))[data.task.inputs[0]])
    if words := not isinstance(texts[0], str):
        tokenizer = for_words(tokenizer)
    encoded = tokenizer(texts, is_split_into_words=words, add_special_tokens=False)
    tokens = [token for row in encoded["input_ids"] for token in row]
    return tokens.count(tokenizer.unk_token_id) / len(tokens) if tokens else math.nan
