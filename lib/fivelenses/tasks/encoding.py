"""Inputs of a task as tokens: sentences that are split into words, with the targets of words, of pairs of words or of
trees; and extractive questions as windows, each a question with as much of its passage as fits.

Tokens are a tokeniser's WordPieces, except in a treebank's table, whose column ``tokens`` holds words. A passage that
is too long for one window is read in several overlapping ones, so that an answer that is cut in one of them is whole in
the next (as in the code of Devlin et al. 2019 and in transformers' example for SQuAD).
"""

import copy
from collections.abc import Sequence

import datasets
import numpy as np
from tokenizers import normalizers
from transformers import BatchEncoding, PreTrainedTokenizerBase

NO_WORD = -1  # the word of a token that belongs to none, such as [CLS]
IGNORED = -100  # the target of a word that is not trained on, as in PyTorch's cross-entropy
_QUESTIONS_PER_CALL = 1_000  # offsets take much memory while they are Python numbers


def _for_words(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """A tokeniser under which a list of words has the tokens of their text."""
    # RoBERTa's begins a word with the space before it, which a list of words does not have: *teacher* would become
    # *t* and *eacher*, of which its texts have few. A copy puts a space before each word.
    in_text, in_list = tokenizer("a a")["input_ids"], tokenizer(["a", "a"], is_split_into_words=True)["input_ids"]
    if in_text == in_list:
        return tokenizer
    spaced = copy.deepcopy(tokenizer)
    # Before all else, so that what splits a word further gives its first part alone a space.
    own = [spaced.backend_tokenizer.normalizer] if spaced.backend_tokenizer.normalizer else []
    spaced.backend_tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(" "), *own])
    return spaced


def encode_words(
    sentences: Sequence[Sequence[str]], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> dict[str, list]:
    """Sentences of words as the tokeniser's columns and `word_ids`, cut to `max_length` with special tokens."""
    encoded = _for_words(tokenizer)(
        [list(words) for words in sentences], is_split_into_words=True, truncation=True, max_length=max_length
    )
    words = [[NO_WORD if word is None else word for word in encoded.word_ids(row)] for row in range(len(sentences))]
    return {**encoded, "word_ids": words}


def encode_units(
    table: datasets.Dataset, labels: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Sentences of a table of words as tokens with `word_ids`, the `units` and their `labels`, numbered as names are in
    `labels`. A unit with a word that was cut off, or that the tokeniser drops, is left out, and so is a sentence
    without units.
    """
    columns, rows = encode_words(table["tokens"], tokenizer, max_length), []
    for row, (units, names) in enumerate(zip(table["units"], table["names"], strict=True)):
        present = set(columns["word_ids"][row])
        whole = [(unit, name) for unit, name in zip(units, names, strict=True) if present.issuperset(unit)]
        if whole:
            units, names = zip(*whole, strict=True)
            tokens = {name: values[row] for name, values in columns.items()}
            rows.append(tokens | {"units": units, "labels": list(map(labels.index, names))})
    return datasets.Dataset.from_list(rows)


def encode_trees(
    table: datasets.Dataset, labels: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Sentences of a table of trees as tokens with `word_ids`; `row`, the sentence's row in the table; and `heads` and
    `labels`, each word's head (0: root) and the number of its relation.

    Both are -100 for a word that was cut off or that the tokeniser drops, and for a word whose head was. A sentence
    without any other word is left out.
    """
    columns, rows = encode_words(table["tokens"], tokenizer, max_length), []
    for row, (heads, names) in enumerate(zip(table["heads"], table["names"], strict=True)):
        present = {0, *(word + 1 for word in columns["word_ids"][row])}
        counted = [word in present and head in present for word, head in enumerate(heads, start=1)]
        if any(counted):
            targets = np.where(counted, [heads, list(map(labels.index, names))], IGNORED).tolist()
            tokens = {name: values[row] for name, values in columns.items()}
            rows.append(tokens | {"row": row, "heads": targets[0], "labels": targets[1]})
    return datasets.Dataset.from_list(rows)


def encode_windows(table: datasets.Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int) -> datasets.Dataset:
    """Questions with their passages as windows of `max_length` tokens. Questions are cut to a third of them, and
    neighbouring windows share a third (128 of 384, as in transformers' example).

    Returns:
        One row per window with the tokeniser's columns; `row`, the question's row in the table; `offsets`, for each
        token of the passage its first character and the one after its last, (-1, -1) for other tokens;
        `start_positions` and `end_positions`, the first and last token of the first gold answer, or 0 and 0 (the token
        [CLS]) where the window does not hold all of it.
    """
    third = max_length // 3
    if max_length - third - tokenizer.num_special_tokens_to_add(pair=True) <= third:
        raise ValueError(f"Windows of {max_length} tokens have no room for a passage: raise max_length.")
    portions = []
    for call, rows in enumerate(table.iter(_QUESTIONS_PER_CALL)):
        encoded = tokenizer(
            _cut(rows["question"], tokenizer, third),
            rows["context"],
            truncation="only_second",
            max_length=max_length,
            stride=third,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        portions.append(datasets.Dataset.from_dict(_columns(encoded, rows["answers"], call * _QUESTIONS_PER_CALL)))
    return datasets.concatenate_datasets(portions)


def _cut(questions: Sequence[str], tokenizer: PreTrainedTokenizerBase, longest: int) -> list[str]:
    encoded = tokenizer(list(questions), add_special_tokens=False, return_offsets_mapping=True)
    ends = [offsets[:longest][-1][1] if offsets else 0 for offsets in encoded["offset_mapping"]]
    return [question[:end] for question, end in zip(questions, ends, strict=True)]


def _columns(encoded: BatchEncoding, gold: list[dict], first: int) -> dict[str, list]:
    columns = dict(encoded)
    samples, every = columns.pop("overflow_to_sample_mapping"), columns.pop("offset_mapping")
    columns["row"] = [first + sample for sample in samples]
    columns["offsets"] = [
        [pair if which == 1 else (-1, -1) for pair, which in zip(pairs, encoded.sequence_ids(window), strict=True)]
        for window, pairs in enumerate(every)
    ]
    answers = [(one["answer_start"][0], one["answer_start"][0] + len(one["text"][0])) for one in gold]
    spans = [_token_span(np.array(pairs), *answers[s]) for pairs, s in zip(columns["offsets"], samples, strict=True)]
    columns["start_positions"], columns["end_positions"] = (list(places) for places in zip(*spans, strict=True))
    return columns


def _token_span(offsets: np.ndarray, first: int, end: int) -> tuple[int, int]:
    """First and last token of the characters from `first` to before `end`; (0, 0) where the window cuts them."""
    passage = np.flatnonzero(offsets[:, 0] >= 0)
    if not len(passage) or offsets[passage[0], 0] > first or offsets[passage[-1], 1] < end:
        return 0, 0
    inside = passage[(offsets[passage, 0] < end) & (offsets[passage, 1] > first)]
    return (int(inside[0]), int(inside[-1])) if len(inside) else (0, 0)


def best_span(start: np.ndarray, end: np.ndarray, passage: np.ndarray, max_tokens: int = 30) -> tuple[float, int, int]:
    """The span of a window's passage (tokens, True inside) with the highest sum of the logits (tokens,) of its first
    and last token, of at most `max_tokens` tokens (30 as in BERT's code): that sum, and the two.

    Example:
        >>> start, end = np.array([9.0, 0.0, 2.0, 1.0]), np.array([9.0, 2.0, 0.0, 1.0])
        >>> best_span(start, end, np.array([False, True, True, True]))
        (3.0, 2, 3)
    """
    places = np.flatnonzero(passage)
    sums = start[places][:, None] + end[places][None, :]
    widths = places[None, :] - places[:, None]
    sums = np.where((widths >= 0) & (widths < max_tokens), sums, -np.inf)
    first, last = np.unravel_index(sums.argmax(), sums.shape)
    return float(sums[first, last]), int(places[first]), int(places[last])
