"""BERT's pre-training objective, and how well a model meets it on text that it has not seen.

The objective is that of Devlin et al. 2019 (section 3.1): for a batch with the set M of pieces to predict and B pairs
of segments,

    loss = - 1/|M| Σ_{i in M} log p(piece_i | masked row)  -  1/B Σ_pairs log p(the second follows the first or not),

both terms in nats. The output layer is computed at the pieces of M only, which changes nothing in the loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertForPreTraining, PreTrainedTokenizerFast

from pretraining.masking import IGNORED, Batch, SpecialPieces, make_batch
from pretraining.text_blocks import derived_seed, plan_pass, tokenise

BATCH_TOKENS = 8192
MASKING_RATE = 0.15


@dataclass(frozen=True)
class HeldOutLoss:
    """How well a model does BERT's two tasks on text that it has not seen; the loss is in nats per masked piece."""

    masked_loss: float
    masked_accuracy: float
    next_sentence_accuracy: float
    masked_pieces: int
    pairs: int


def masked_losses(model: BertForPreTraining, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Masked-word and next-sentence loss of a batch (means, in nats), and the logits (B, K, vocabulary) and (B, 2).

    The sum of the two losses is `BertForPreTraining`'s own loss, with the output layer at predicted pieces only.
    """
    encoded = model.bert(
        input_ids=batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
    )
    states = encoded.last_hidden_state
    places = batch.masked_positions[..., None].expand(-1, -1, states.shape[-1])
    words = model.cls.predictions(states.gather(1, places))
    following = model.cls.seq_relationship(encoded.pooler_output)
    masked = cross_entropy(words.flatten(0, 1).float(), batch.masked_labels.flatten(), ignore_index=IGNORED)
    return masked, cross_entropy(following.float(), batch.random_next), words, following


@torch.no_grad()
def held_out_loss(
    model: BertForPreTraining,
    tokenizer: PreTrainedTokenizerFast,
    documents: Sequence[Sequence[str]],
    seed: int = 0,
    sequence_length: int | None = None,
) -> HeldOutLoss:
    """Measure `model` on `documents` (lists of sentences) with pairs and masks that `seed` fixes.

    Pairs fill `sequence_length`, the model's longest by default, and 15 % of the pieces are masked; masks are drawn on
    the CPU, so every device sees the same. The model's mode is left as it was.
    """
    length = sequence_length or model.config.max_position_embeddings
    text = tokenise(documents, tokenizer, length)
    plan = plan_pass(text, length, max(BATCH_TOKENS, length), 0.0, derived_seed(seed, "held out"))
    special = SpecialPieces.of(tokenizer, torch.device("cpu"))
    generator = torch.Generator().manual_seed(derived_seed(seed, "held-out masks"))
    training = model.training
    model.eval()
    loss, right, masked, right_pairs = 0.0, 0, 0, 0
    for rows in plan.batches:
        batch = make_batch(text.pieces, plan.pairs[rows], special, MASKING_RATE, generator).to(model.device)
        mean, _, words, following = masked_losses(model, batch)
        count = int((batch.masked_labels != IGNORED).sum())
        loss += float(mean) * count if count else 0.0
        masked += count
        right += int((words.argmax(-1) == batch.masked_labels).sum())
        right_pairs += int((following.argmax(-1) == batch.random_next).sum())
    model.train(training)
    pairs = len(plan.pairs)
    return HeldOutLoss(loss / max(masked, 1), right / max(masked, 1), right_pairs / pairs, masked, pairs)
