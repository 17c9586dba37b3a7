"""Whether an encoder can be trained on: asked before hours go into broken weights or a foreign tokeniser."""

import math
from collections.abc import Iterable
from functools import cache

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.checkpoints import architectures
from fivelenses.models import encoders
from fivelenses.tasks.encoding import for_words
from fivelenses.tasks.sources import SourceError

MOST_UNKNOWN = 0.5  # of the tokens of a task's text; a tokeniser of its language has hardly any
ROWS_READ = 200


def check(name: str, read: Iterable[tuple[str, str]], projections: bool = False) -> nn.Module:
    """Refuse an encoder whose weights or tokeniser cannot be what they are taken for.

    Args:
        name: as `models.encoders` understands it.
        read: the tasks that it is to read, each with its source.
        projections: whether the six projections of each layer are needed.

    Returns:
        The encoder without a head.

    Raises:
        ValueError: an architecture that cannot be addressed.
        SourceError: weights that are unreadable, do not fit the configuration, or are not finite; a tokeniser with
            tokens that have no embedding, or one that does not know most of a task's text. One sentence.

    Example:
        >>> check("toy-bert/seed-0", [("rte", "toyworld")]).config.num_hidden_layers
        6
    """
    encoder = encoders.locate(name)
    architectures.check(name, encoders.config(encoder), projections)
    model = loaded(encoder)
    check_finite(model, name)
    tokenizer = encoders.tokenizer(encoder)
    rows = model.get_input_embeddings().num_embeddings
    largest = max(tokenizer.get_vocab().values())
    if largest >= rows:
        raise SourceError(
            f"The tokeniser of the encoder {name!r} has a token of number {largest:,} and its embeddings have "
            f"{rows:,} rows: put the files of its own tokeniser beside the weights."
        )
    for task, source in read:
        unknown = unknown_share(tokenizer, task, source)
        if unknown > MOST_UNKNOWN:
            where = "a table of your own" if tasks.find(task).own else source
            raise SourceError(
                f"The tokeniser of the encoder {name!r} does not know {unknown:.0%} of the tokens of {task} "
                f"({where}): it is of another language or belongs to another encoder."
            )
    return model


def loaded(encoder: encoders.Encoder) -> nn.Module:
    """The weights of an encoder; what the library says of files that do not fit becomes one sentence.

    Raises:
        SourceError: naming the encoder and its place.
    """
    try:
        return encoders.load_weights(encoder)
    except RuntimeError as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(
            f"The weights of the encoder {encoder.name!r} in {encoder.place} do not fit its config.json "
            f"({_first_mismatch(str(error))}): take both files from the same encoder."
        ) from error
    except Exception as error:
        # The file formats have errors of their own, with no common class.
        raise SourceError(
            f"The weights of the encoder {encoder.name!r} in {encoder.place} cannot be read "
            f"({type(error).__name__}: {' '.join(str(error).split())[:120]}): copy the encoder's folder again."
        ) from error


def _first_mismatch(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if "mismatch" in line.lower() or "size" in line.lower()]
    return (lines or message.strip().splitlines() or ["no reason given"])[0][:200]


def check_finite(model: nn.Module, name: str) -> None:
    """Refuse weights that hold NaN or infinity.

    Raises:
        SourceError: the first such weight, with the number of its bad values.
    """
    for weight, values in model.named_parameters():
        bad = values.numel() - int(torch.isfinite(values).sum())
        if bad:
            raise SourceError(
                f"The weights of the encoder {name!r} are not finite ({weight} has {bad:,} bad values of "
                f"{values.numel():,}): its training diverged or the file is damaged, so take another copy."
            )


def unknown_share(tokenizer: PreTrainedTokenizerBase, task: str, source: str) -> float:
    """The share of unknown tokens in the first training rows of a task, special tokens left out; NaN without text.

    Example:
        >>> tokenizer = encoders.tokenizer(encoders.locate("toy-bert/seed-0"))
        >>> unknown_share(tokenizer, "rte", "toyworld") < 0.01
        True
    """
    if tokenizer.unk_token_id is None:
        return 0.0
    table = _first_rows(task, source)
    if words := not isinstance(table[0], str):
        tokenizer = for_words(tokenizer)
    encoded = tokenizer(list(table), is_split_into_words=words, add_special_tokens=False)
    tokens = [token for row in encoded["input_ids"] for token in row]
    return tokens.count(tokenizer.unk_token_id) / len(tokens) if tokens else math.nan


@cache
def _first_rows(task: str, source: str) -> list:
    data = tasks.load(task, source, ("train",))
    rows = data.splits["train"]
    return list(rows.select(range(min(ROWS_READ, rows.num_rows)))[data.task.inputs[0]])
