"""An uncased WordPiece vocabulary from plain text, the same on every run.

The trainer of `tokenizers` numbers the pieces that continue a word (``##a``) in the order of a hash map, and breaks
ties between equally frequent merges by those numbers, so two runs can give two vocabularies. Here the continuing
characters are numbered beforehand, which leaves the trainer nothing to choose.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import BertTokenizerFast

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"
OCCURRENCES_PER_LINE = 10_000


def train_wordpiece(
    documents: Sequence[Sequence[str]], vocabulary_size: int, largest_alphabet: int | None = None
) -> BertTokenizerFast:
    """Learn an uncased BERT WordPiece vocabulary of exactly `vocabulary_size` pieces, special tokens included.

    Words are lower-cased, stripped of accents and split at white space and punctuation as BERT does it. Characters
    beyond the `largest_alphabet` most frequent (a tenth of the vocabulary by default), and words written with them,
    become [UNK]. Equal text gives an equal vocabulary, on every machine.

    Raises ValueError where there is no text, and where the text does not yield that many pieces.

    >>> tokenizer = train_wordpiece([["the cat sees the dog", "the dog sees the cat"]], 30, largest_alphabet=26)
    >>> tokenizer.tokenize("The cats")
    ['the', 'cat', '##s']
    """
    words = _word_counts(documents)
    if not words:
        raise ValueError("the documents hold no words: give at least one sentence of text to train WordPiece on")
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    by_frequency = sorted(characters, key=lambda character: (-characters[character], character))
    alphabet = set(by_frequency[: largest_alphabet or max(40, vocabulary_size // 10)])
    words = {word: count for word, count in sorted(words.items()) if alphabet.issuperset(word)}
    continuing = sorted({CONTINUATION + character for word in words for character in word[1:]})

    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        min_frequency=2,
        special_tokens=[*SPECIAL_TOKENS, *continuing],
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    learner.train_from_iterator(_lines(words), trainer)
    vocabulary = learner.get_vocab(with_added_tokens=True)
    if len(vocabulary) < vocabulary_size:
        raise ValueError(
            f"the text yields only {len(vocabulary)} WordPieces, fewer than the {vocabulary_size} asked for: "
            f"set vocabulary_size to {len(vocabulary)} or less, or give more text"
        )
    if len(vocabulary) > vocabulary_size:
        raise ValueError(
            f"{vocabulary_size} WordPieces cannot hold the special tokens and the characters of the text, which are "
            f"{len(vocabulary)}: set vocabulary_size to more than that"
        )
    return BertTokenizerFast(vocab=dict(sorted(vocabulary.items(), key=lambda item: item[1])), do_lower_case=True)


def _word_counts(documents: Sequence[Sequence[str]]) -> Counter[str]:
    """How often each word occurs, as BERT normalises and splits it."""
    chunks: Counter[str] = Counter()
    for sentences in documents:
        for sentence in sentences:
            chunks.update(sentence.split())
    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    words: Counter[str] = Counter()
    for chunk, count in chunks.items():
        for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(chunk)):
            words[word] += count
    return words


def _lines(words: dict[str, int]) -> Iterator[str]:
    """Every word as often as it occurs, in lines of bounded length."""
    for word, count in words.items():
        for first in range(0, count, OCCURRENCES_PER_LINE):
            yield " ".join([word] * min(OCCURRENCES_PER_LINE, count - first))
