"""Sentences as tokens that know their words.

Tokens are a tokeniser's WordPieces everywhere, except in a treebank's table, whose column ``tokens`` holds words.
"""

import copy
from collections.abc import Mapping, Sequence

from tokenizers import normalizers
from transformers import BatchEncoding, PreTrainedTokenizerBase

# The word of a token that belongs to none, such as [CLS].
NO_WORD = -1


def word_ids(encoded: BatchEncoding, row: int) -> list[int]:
    """The word of each token of an encoded row, -1 for special tokens; words of a second input are counted on."""
    words, inputs = encoded.word_ids(row), encoded.sequence_ids(row)
    first = 1 + max((word for word, which in zip(words, inputs, strict=True) if which == 0), default=-1)
    return [NO_WORD if word is None else word + first * which for word, which in zip(words, inputs, strict=True)]


def for_words(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """The tokeniser for sentences that are split into words: where a list of words has other tokens than their text, a
    copy that puts a space before each.

    RoBERTa's begins a word with the space before it, which a list of words does not have: *teacher* would become
    *t* and *eacher*, of which its texts have few.

    Example:
        >>> from fivelenses.models import encoders
        >>> tokenizer = encoders.tokenizer(encoders.locate("toy-bert/seed-0"))
        >>> for_words(tokenizer) is tokenizer
        True
    """
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
    """Sentences that are split into words, as the tokeniser's columns and `word_ids`.

    Args:
        max_length: tokens that a sentence is cut to, special tokens included.
    """
    encoded = for_words(tokenizer)(
        [list(words) for words in sentences], is_split_into_words=True, truncation=True, max_length=max_length
    )
    return {**encoded, "word_ids": [word_ids(encoded, row) for row in range(len(sentences))]}


def select(columns: Mapping[str, list], rows: Sequence[int]) -> dict[str, list]:
    """The given rows of some columns."""
    return {name: [values[row] for row in rows] for name, values in columns.items()}
