"""Extractive questions as windows: a question with as much of its passage as fits, and answers found in windows.

A passage that is too long for one window is read in several, which overlap, so that an answer that one of them cuts
stands whole in the next (Devlin et al. 2019's code, and Transformers' example for SQuAD).
"""

from collections.abc import Iterator, Sequence

import datasets
import numpy as np
from transformers import BatchEncoding, PreTrainedTokenizerBase

# An answer's most pieces, as in BERT's code.
LONGEST_ANSWER = 30
# Questions that are encoded at once; offsets are large while they are Python's numbers.
_AT_ONCE = 1_000


def encode_windows(
    table: datasets.Dataset,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    overlap: int | None = None,
    words: bool = False,
) -> datasets.Dataset:
    """Questions with their passages as windows, a row a window.

    A row has `input_ids`, `attention_mask`, `token_type_ids` where used; `row`, the question's row in the table;
    `offsets`, for each piece of the passage its first character and the one after its last, (-1, -1) for other pieces;
    `start_positions` and `end_positions`, the first and last piece of the first gold answer, 0 and 0 (the piece
    [CLS]) where the window does not hold all of it.

    Args:
        table: the columns `question`, `context` and `answers` (`text` and `answer_start`).
        max_length: pieces of a window. A question has at most a third of them and is cut there.
        overlap: pieces of the passage that neighbouring windows share; a third of `max_length` when None (128 of
            384, as in Transformers' example).
        words: add `word_ids` as :func:`fivelenses.tasks.examples.encode` does.

    Raises:
        ValueError: windows that are too short for their overlap, a question without answer, or an answer that does
            not stand where its row says.
    """
    longest_question = max_length // 3
    overlap = max_length // 3 if overlap is None else overlap
    room = max_length - longest_question - tokenizer.num_special_tokens_to_add(pair=True)
    if not 0 <= overlap < room:
        raise ValueError(
            f"Windows of {max_length} pieces have room for {room} pieces of a passage beside a question, too few for "
            f"an overlap of {overlap}: raise max_length or choose an overlap from 0 to {room - 1}."
        )
    parts = []
    for first in range(0, table.num_rows, _AT_ONCE):
        rows = table.select(range(first, min(first + _AT_ONCE, table.num_rows)))
        encoded = tokenizer(
            _cut(rows["question"], tokenizer, longest_question),
            list(rows["context"]),
            truncation="only_second",
            max_length=max_length,
            stride=overlap,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        parts.append(datasets.Dataset.from_dict(_columns(encoded, rows, first, words)))
    return datasets.concatenate_datasets(parts)


def _cut(questions: Sequence[str], tokenizer: PreTrainedTokenizerBase, longest: int) -> list[str]:
    encoded = tokenizer(list(questions), add_special_tokens=False, return_offsets_mapping=True)
    ends = [offsets[:longest][-1][1] if offsets else 0 for offsets in encoded["offset_mapping"]]
    return [question[:end] for question, end in zip(questions, ends, strict=True)]


def _columns(encoded: BatchEncoding, rows: datasets.Dataset, first: int, words: bool) -> dict[str, list]:
    samples = encoded["overflow_to_sample_mapping"]
    columns = {name: encoded[name] for name in encoded if name not in ("offset_mapping", "overflow_to_sample_mapping")}
    columns["row"] = [first + sample for sample in samples]
    columns["offsets"] = [
        [pair if which == 1 else (-1, -1) for pair, which in zip(pairs, encoded.sequence_ids(window), strict=True)]
        for window, pairs in enumerate(encoded["offset_mapping"])
    ]
    answers = list(_first_answers(rows, first))
    spans = [_pieces(np.array(offsets), *answers[s]) for offsets, s in zip(columns["offsets"], samples, strict=True)]
    columns["start_positions"], columns["end_positions"] = (list(places) for places in zip(*spans, strict=True))
    if words:
        columns["word_ids"] = [word_ids(encoded, window) for window in range(len(samples))]
    return columns


def _first_answers(rows: datasets.Dataset, first: int) -> Iterator[tuple[int, int]]:
    """The characters of each question's first answer: the first, and the one after the last."""
    for row, (answers, passage) in enumerate(zip(rows["answers"], rows["context"], strict=True), start=first):
        if not answers["text"]:
            raise ValueError(f"The question in row {row} has no answer: an extractive question has one in its passage.")
        text, start = answers["text"][0], answers["answer_start"][0]
        if start < 0 or not text or not passage.startswith(text, start):
            raise ValueError(
                f"The answer {text!r} of row {row} does not stand at character {start} of its passage: correct its "
                "answer_start."
            )
        yield start, start + len(text)


def _pieces(offsets: np.ndarray, first: int, end: int) -> tuple[int, int]:
    """First and last piece of the characters from `first` to before `end`; (0, 0) where the window cuts them."""
    passage = np.flatnonzero(offsets[:, 0] >= 0)
    if not len(passage) or offsets[passage[0], 0] > first or offsets[passage[-1], 1] < end:
        return 0, 0
    inside = passage[(offsets[passage, 0] < end) & (offsets[passage, 1] > first)]
    return (int(inside[0]), int(inside[-1])) if len(inside) else (0, 0)


def word_ids(encoded: BatchEncoding, row: int) -> list[int]:
    """The word that each piece of an encoded row belongs to, -1 for special pieces; a second input's count on."""
    words, inputs = encoded.word_ids(row), encoded.sequence_ids(row)
    first = 1 + max((word for word, which in zip(words, inputs, strict=True) if which == 0), default=-1)
    return [-1 if word is None else word + first * which for word, which in zip(words, inputs, strict=True)]


def best_span(
    start: np.ndarray, end: np.ndarray, passage: np.ndarray, longest: int = LONGEST_ANSWER
) -> tuple[float, int, int]:
    """The span of a window's passage with the highest sum of logits that ends where it starts or later.

    Args:
        start, end: (pieces,) logits of an answer's first and last piece.
        passage: (pieces,) True for pieces of the passage.
        longest: most pieces of a span.

    Returns:
        The sum of its two logits, its first piece and its last piece.

    Raises:
        ValueError: no piece of the window is of the passage.

    Example:
        >>> start, end = np.array([9.0, 0.0, 2.0, 1.0]), np.array([9.0, 2.0, 0.0, 1.0])
        >>> best_span(start, end, np.array([False, True, True, True]))
        (3.0, 2, 3)
    """
    places = np.flatnonzero(passage)
    if not len(places):
        raise ValueError("A window holds nothing of its passage, so no answer: its passage is empty.")
    sums = start[places][:, None] + end[places][None, :]
    widths = places[None, :] - places[:, None]
    sums = np.where((widths >= 0) & (widths < longest), sums, -np.inf)
    first, last = np.unravel_index(sums.argmax(), sums.shape)
    return float(sums[first, last]), int(places[first]), int(places[last])
