"""Encoded examples as batches: lists of unequal length, padded to a tensor."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import torch
from datasets import Dataset
from transformers import BatchEncoding, DataCollatorWithPadding, PreTrainedModel, PreTrainedTokenizerBase

from fivelenses.tasks.encoding import IGNORED, NO_WORD

TOKEN_COLUMNS = ("input_ids", "attention_mask", "token_type_ids", "word_ids")
# Widths are rounded up to a multiple of this, which suits a GPU's matrix units.
WIDTH_MULTIPLE = 8


def padded(rows: Sequence[Sequence[int]], value: int = 0, width: int = 0) -> torch.Tensor:
    """(rows, tokens) integers, each row filled up with `value` to the longest row, or to `width` if that is more."""
    width = max(width, max(len(row) for row in rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


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
    longest = max(len(row) for row in columns["input_ids"])
    width = -(-longest // multiple) * multiple
    values = {"input_ids": pad_token_id or 0, "word_ids": NO_WORD}
    return {name: padded(columns[name], values.get(name, 0), width) for name in TOKEN_COLUMNS if name in columns}


def labelled_batches(
    examples: Dataset, model: PreTrainedModel, tokens: int
) -> Iterator[tuple[np.ndarray, dict[str, torch.Tensor], torch.Tensor]]:
    """Places, inputs and labels of classified examples in batches of so many tokens, on the model's device.

    The longest come first, so that too large a batch fails at once. Labels that the head does not have are refused.
    """
    labels = np.asarray(examples["labels"])
    if labels.ndim != 1 or not len(labels) or labels.min() < 0 or labels.max() >= model.config.num_labels:
        most = model.config.num_labels - 1
        raise ValueError(f"{len(labels)} labels are not one integer from 0 to {most} per example, of one or more.")
    lengths = np.array([len(row) for row in examples["input_ids"]])
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        rows, order = np.split(order, [max(1, tokens // lengths[order[0]])])
        inputs = padded_tokens(examples[rows], model.config.pad_token_id)
        on_device = {name: values.to(model.device) for name, values in inputs.items()}
        yield rows, on_device, torch.from_numpy(labels[rows]).to(model.device)


def collator(head: str, tokenizer: PreTrainedTokenizerBase) -> Callable[[list[dict]], BatchEncoding]:
    """What turns encoded examples into a batch for a kind of head."""
    if head in ("sequence", "span"):
        return DataCollatorWithPadding(tokenizer, pad_to_multiple_of=WIDTH_MULTIPLE)
    return functools.partial(collate_words, pad_token_id=tokenizer.pad_token_id)


def collate_words(rows: list[dict], pad_token_id: int | None) -> BatchEncoding:
    """A batch for a head that reads words: the tokens, the word of each token and the targets.

    The `units` of all sentences come one below the other, (units, 1 + words): the sentence, then its words; their
    `labels` follow in the same order. Without units, `heads` and `labels` are those of every word, (sentences, words).
    """
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    batch = padded_tokens(columns, pad_token_id, WIDTH_MULTIPLE)
    if "units" in columns:
        units = [[sentence, *unit] for sentence, of_row in enumerate(columns["units"]) for unit in of_row]
        batch["units"] = torch.tensor(units)
        if "labels" in columns:
            batch["labels"] = torch.tensor(list(chain.from_iterable(columns["labels"])))
    else:
        # Words that were cut off are the last ones and have no place.
        words = 1 + int(batch["word_ids"].max())
        for name in {"heads", "labels"} & {*columns}:
            batch[name] = padded([of_row[:words] for of_row in columns[name]], IGNORED, words)
    return BatchEncoding(batch)
