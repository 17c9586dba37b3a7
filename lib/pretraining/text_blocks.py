"""Tokenised documents, and the segment pairs that one pass over them gives to BERT's pre-training.

A pair is two segments of whole sentences, [CLS] A [SEP] B [SEP]. B is the text that follows A, or, half of the time,
a stretch of as many sentences from another document. Pairs are planned pass by pass from a seed, so each pass cuts
the documents differently, and a resumed run plans the very same pass again.
"""

import hashlib
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

SPECIAL_TOKENS_PER_PAIR = 3
SHORTEST_SEQUENCE = 8
SENTENCES_PER_CALL = 10_000


@dataclass(frozen=True)
class TokenisedText:
    """Documents as one row of pieces.

    `pieces`: (number of pieces,) int32; `sentence_offsets`: where each sentence begins in `pieces`, and the end of the
    last; `document_offsets`: which sentence each document begins with, and the end of the last.
    """

    pieces: Tensor
    sentence_offsets: list[int]
    document_offsets: list[int]

    def fingerprint(self) -> str:
        """A hash of the pieces and of where sentences and documents begin."""
        content = hashlib.sha256(self.pieces.cpu().numpy().tobytes())
        content.update(repr((self.sentence_offsets, self.document_offsets)).encode())
        return content.hexdigest()


@dataclass(frozen=True)
class PairPlan:
    """One pass over a text: `pairs` (number of pairs, 5) int64 with the columns start and length of A, start and
    length of B (in pieces), and 1 where B is random, else 0; `batches`: the rows of each batch, in training order."""

    pairs: Tensor
    batches: list[Tensor]


def derived_seed(*parts: object) -> int:
    """A 63-bit seed that depends on all of `parts`, for example the run's seed, a purpose and a step."""
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def tokenise(
    documents: Sequence[Sequence[str]], tokenizer: PreTrainedTokenizerFast, sequence_length: int
) -> TokenisedText:
    """Turn documents (lists of sentences) into pieces.

    A sentence longer than half a sequence is cut, so that two always fit; sentences and documents without a piece are
    left out. Raises ValueError where fewer than two documents remain, since the next-sentence task takes its wrong
    answers from another document.
    """
    if sequence_length < SHORTEST_SEQUENCE:
        raise ValueError(
            f"a sequence of {sequence_length} pieces is too short for two segments and the three special tokens: "
            f"set sequence_length to {SHORTEST_SEQUENCE} or more"
        )
    longest = (sequence_length - SPECIAL_TOKENS_PER_PAIR) // 2
    for position, sentences in enumerate(documents):
        if isinstance(sentences, str):
            raise ValueError(f"document {position} is a string: give each document as a list of its sentences")
    owners = [position for position, sentences in enumerate(documents) for _ in sentences]
    sentences = [sentence for document in documents for sentence in document]

    blocks: list[Tensor] = []
    sentence_offsets, document_offsets, last_owner = [0], [], -1
    for first in range(0, len(sentences), SENTENCES_PER_CALL):
        encodings = tokenizer.backend_tokenizer.encode_batch_fast(
            sentences[first : first + SENTENCES_PER_CALL], add_special_tokens=False
        )
        pieces: list[int] = []
        for owner, encoding in zip(owners[first:], encodings, strict=False):
            for start in range(0, len(encoding.ids), longest):
                part = encoding.ids[start : start + longest]
                if owner != last_owner:
                    document_offsets.append(len(sentence_offsets) - 1)
                    last_owner = owner
                pieces.extend(part)
                sentence_offsets.append(sentence_offsets[-1] + len(part))
        blocks.append(torch.tensor(pieces, dtype=torch.int32))
    if len(document_offsets) < 2:
        raise ValueError(
            f"the text has {len(document_offsets)} documents with words in them, and pre-training needs two or more: "
            "give a list of documents, each a list of sentences"
        )
    document_offsets.append(len(sentence_offsets) - 1)
    return TokenisedText(torch.cat(blocks), sentence_offsets, document_offsets)


def plan_pass(
    text: TokenisedText, sequence_length: int, batch_tokens: int, short_sequence_rate: float, seed: int
) -> PairPlan:
    """Cut the text into segment pairs and batches for one pass.

    Documents are read from their beginning in stretches that fill `sequence_length`, or, at `short_sequence_rate`, a
    length drawn evenly up to it (Devlin et al. 2019 use a tenth, so that short inputs are seen too). A stretch is
    parted at a random sentence into A and B; where B is replaced by a random one, the true B is read again in the
    next stretch. Batches hold pairs of nearly equal length, at most `batch_tokens` pieces with padding, and come
    in random order.
    """
    pairs = torch.tensor(_segment_pairs(text, sequence_length, short_sequence_rate, random.Random(seed)))
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(pairs), generator=generator)
    lengths = pairs[shuffled, 1] + pairs[shuffled, 3] + SPECIAL_TOKENS_PER_PAIR
    order = torch.sort(lengths, stable=True).indices
    by_length, ascending = shuffled[order], lengths[order].tolist()
    batches, first = [], 0
    while first < len(ascending):
        most = batch_tokens // ascending[first]
        width = ascending[min(first + most, len(ascending)) - 1]
        rows = max(1, batch_tokens // width)
        batches.append(by_length[first : first + rows])
        first += rows
    return PairPlan(pairs, [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()])


def _segment_pairs(
    text: TokenisedText, sequence_length: int, short_sequence_rate: float, draw: random.Random
) -> list[tuple[int, int, int, int, int]]:
    budget = sequence_length - SPECIAL_TOKENS_PER_PAIR
    offsets = text.sentence_offsets
    pairs = []
    for first, last in pairwise(text.document_offsets):
        start, at_the_end = first, False
        while start < last and not at_the_end:
            if last - start == 1 and start > first:
                start, at_the_end = start - 1, True
            target = draw.randint(2, budget) if draw.random() < short_sequence_rate else budget
            fitting = bisect_right(offsets, offsets[start] + target, lo=start, hi=last + 1) - 1
            end = max(fitting, min(start + 2, last))
            split = draw.randrange(start + 1, end) if end - start > 1 else end
            length = offsets[split] - offsets[start]
            if last - first == 1 or draw.random() < 0.5:
                begin, stop = _random_segment(text, first, last, max(1, end - split), draw)
                room = min(offsets[stop] - offsets[begin], budget - length)
                pairs.append((offsets[start], length, offsets[begin], room, 1))
                start = split
            else:
                pairs.append((offsets[start], length, offsets[split], offsets[end] - offsets[split], 0))
                start = end
    return pairs


def _random_segment(text: TokenisedText, first: int, last: int, count: int, draw: random.Random) -> tuple[int, int]:
    """`count` sentences, or all there are, of a document other than the one of sentences `first` to `last`."""
    sentence = draw.randrange(len(text.sentence_offsets) - 1 - (last - first))
    if sentence >= first:
        sentence += last - first
    document = bisect_right(text.document_offsets, sentence) - 1
    beginning, ending = (text.document_offsets[document], text.document_offsets[document + 1])
    begin = min(sentence, max(beginning, ending - count))
    return begin, min(begin + count, ending)
