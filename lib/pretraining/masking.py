"""Batches for BERT's pre-training: two segments laid out as one row, and pieces masked afresh each time.

Of the pieces of a row, `round(rate * pieces)`, at least one, are to be predicted; of those 80 % are replaced by
[MASK], 10 % by a random piece, and 10 % are left as they are (Devlin et al. 2019, section 3.1). Special tokens, [UNK]
among them, are neither predicted nor put in.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from pretraining.text_blocks import SPECIAL_TOKENS_PER_PAIR

IGNORED = -100


@dataclass(frozen=True)
class SpecialPieces:
    """The numbers of the special tokens in a vocabulary of `vocabulary_size` pieces, and which pieces are ordinary."""

    pad: int
    unknown: int
    begin: int
    separator: int
    mask: int
    ordinary: Tensor

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast, device: torch.device) -> "SpecialPieces":
        """Read them from a tokenizer."""
        ordinary = sorted(set(range(len(tokenizer))) - set(tokenizer.all_special_ids))
        return cls(
            tokenizer.pad_token_id,
            tokenizer.unk_token_id,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
            tokenizer.mask_token_id,
            torch.tensor(ordinary, device=device),
        )


@dataclass(frozen=True)
class Batch:
    """B rows of width W with at most K predicted pieces each.

    `input_ids`, `token_type_ids`: (B, W); `attention_mask`: (B, W) bool, or None where no row is padded;
    `masked_positions`: (B, K) places in the row; `masked_labels`: (B, K) the true pieces, -100 in unused places;
    `random_next`: (B,) 1 where the second segment is a random one.
    """

    input_ids: Tensor
    token_type_ids: Tensor
    attention_mask: Tensor | None
    masked_positions: Tensor
    masked_labels: Tensor
    random_next: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return Batch(**{name: value if value is None else value.to(device) for name, value in vars(self).items()})


def lay_out(pieces: Tensor, pairs: Tensor, special: SpecialPieces) -> tuple[Tensor, Tensor, Tensor | None]:
    """[CLS] A [SEP] B [SEP] [PAD]… for each row of `pairs` (B, 5): input_ids and token_type_ids (B, W), attention mask.

    `pairs` lies on the CPU, so that widths are known without waiting for an accelerator; the result lies where
    `pieces` does.
    """
    lengths = pairs[:, 1] + pairs[:, 3] + SPECIAL_TOKENS_PER_PAIR
    width, padded = int(lengths.max()), bool((lengths != lengths.max()).any())
    start_a, length_a, start_b, length_b, _ = pairs.to(pieces.device, non_blocking=True)[:, :, None].unbind(1)
    place = torch.arange(width, device=pieces.device)[None]
    second = place > length_a + 1
    source = torch.where(second, start_b + place - length_a - 2, start_a + place - 1)
    ids = pieces[source.clamp(0, len(pieces) - 1)].long()
    ids = ids.masked_fill(place == 0, special.begin)
    total = length_a + length_b + SPECIAL_TOKENS_PER_PAIR
    ids = ids.masked_fill((place == length_a + 1) | (place == total - 1), special.separator)
    ids = ids.masked_fill(place >= total, special.pad)
    return ids, (second & (place < total)).long(), (place < total) if padded else None


def mask_pieces(
    ids: Tensor, special: SpecialPieces, rate: float, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Choose the pieces to predict: the masked rows (B, W), their places (B, K) and labels (B, K), -100 where unused.

    `generator` lies on the device of `ids`.
    """
    candidates = torch.ones_like(ids, dtype=torch.bool)
    for piece in (special.pad, special.unknown, special.begin, special.separator, special.mask):
        candidates &= ids != piece
    count = candidates.sum(1, keepdim=True)
    wanted = torch.minimum((rate * count).round().long().clamp(min=1), count)
    width = ids.shape[1] - SPECIAL_TOKENS_PER_PAIR
    most = max(1, round(rate * width))
    scores = torch.rand(ids.shape, generator=generator, device=ids.device).masked_fill(~candidates, 2.0)
    places = scores.topk(most, dim=1, largest=False).indices
    used = torch.arange(most, device=ids.device)[None] < wanted
    original = ids.gather(1, places)

    fate = torch.rand(places.shape, generator=generator, device=ids.device)
    choice = torch.randint(len(special.ordinary), places.shape, generator=generator, device=ids.device)
    replaced = torch.where(fate < 0.8, special.mask, torch.where(fate < 0.9, special.ordinary[choice], original))
    masked = ids.scatter(1, places, torch.where(used, replaced, original))
    return masked, places, original.masked_fill(~used, IGNORED)


def make_batch(pieces: Tensor, pairs: Tensor, special: SpecialPieces, rate: float, generator: torch.Generator) -> Batch:
    """Lay out the rows of `pairs` (B, 5) and mask them; everything lies on the device of `pieces`."""
    ids, types, attention_mask = lay_out(pieces, pairs, special)
    masked, places, labels = mask_pieces(ids, special, rate, generator)
    return Batch(masked, types, attention_mask, places, labels, pairs[:, 4].to(pieces.device, non_blocking=True))
