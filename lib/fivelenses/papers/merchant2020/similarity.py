"""Similarity to the pre-trained encoder (Figures 2 and 5 of Merchant et al. 2020), as records.

Special tokens do not count: every text has two or three of them, of which short texts have a larger share.
"""

from collections.abc import Iterable, Mapping, Sequence

import datasets
import numpy as np
import pandas as pd
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import stream_order
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import RSA, compare_with
from fivelenses.lenses.rsa import sample_positions
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.merchant2020 import SIDES
from fivelenses.papers.merchant2020.probed import (
    FUNCTIONAL_TWIN_OF,
    TWIN_OF,
    Log,
    probed_models,
    tuned_seed,
    with_control,
)
from fivelenses.records import BASE, RUNNING_TEXT
from fivelenses.tasks.running_text import wikipedia_text
from fivelenses.tasks.subsets import folds

DRAW_SEED = 0  # of texts, tokens and permuted tokens
COLUMNS = ["input", "model", "control", "layer", "fold", "similarity", "null", "tokens", "examples"]


def similarity_to_base(
    models: Mapping[str, nn.Module],
    texts: Mapping[str, Sequence[Sequence[str]]],
    tokenizer: PreTrainedTokenizerBase,
    tokens: int,
    device: str | None = None,
) -> pd.DataFrame:
    """RSA of each model to the first, the pre-trained encoder, layer by layer, on several inputs.

    Texts and pairs are cut only at what the encoder can read.

    Args:
        models: name to model.
        texts: name of an input to its texts, or to the first and the second texts of its pairs.
        tokens: drawn from each input, at most, none of them special.

    Returns:
        One row per input, model, layer (0…L) and fold of texts left out (-1: none), with `control`, `similarity`,
        `null` (rows of one side permuted; missing without a fold), `tokens`, `examples` (texts).
    """
    base, *others = models
    longest = min(tokenizer.model_max_length, encoders.positions(models[base].config) or tokenizer.model_max_length)
    parts = []
    for name, sides in texts.items():
        examples = datasets.Dataset.from_dict(dict(tokenizer(*map(list, sides), truncation=True, max_length=longest)))
        lens = RSA(drawn_positions(examples, tokenizer, tokens), null_seed=DRAW_SEED)
        layers, pairs = range(len(layer_list(models[base])) + 1), [(base, model) for model in others]
        in_turn = folds(np.zeros(examples.num_rows))
        measured = compare_with([lens], models, pairs, examples, layers, device=device, fold_of=in_turn)
        parts.append(measured.assign(input=name))
    names = {"second": "model", "rsa": "similarity", "rsa_null": "null", "rsa_tokens": "tokens"}
    return with_control(pd.concat(parts, ignore_index=True).rename(columns=names))[COLUMNS]


def drawn_positions(examples: datasets.Dataset, tokenizer: PreTrainedTokenizerBase, tokens: int) -> np.ndarray:
    """Positions, in the stream of all tokens, of a random sample of those that the tokenizer did not add.

    Args:
        examples: with their `input_ids`.
        tokens: drawn, at most.

    Example:
        >>> from types import SimpleNamespace
        >>> examples = datasets.Dataset.from_dict({"input_ids": [[1, 7, 2], [1, 7, 8, 9, 2]]})
        >>> drawn_positions(examples, SimpleNamespace(cls_token_id=1, sep_token_id=2), 100)
        array([1, 2, 3, 6])
    """
    rows = examples["input_ids"]
    stream = np.concatenate([rows[row] for row in stream_order(examples).tolist()])
    words = np.flatnonzero((stream != tokenizer.cls_token_id) & (stream != tokenizer.sep_token_id))
    return words[sample_positions(len(words), tokens, DRAW_SEED)]


def inputs(source: str, names: Iterable[str], examples: int) -> dict[str, tuple[list[str], ...]]:
    """Texts for `similarity_to_base`, drawn at random: sentences of running text, or the pairs of a task and their
    first sides alone.

    Args:
        names: `RUNNING_TEXT`, or of `SIDES`.
        examples: sentences or pairs, at most.
    """
    texts = {}
    for name in names:
        if name == RUNNING_TEXT:
            texts[name] = (_drawn([one for document in wikipedia_text(source) for one in document], examples),)
        else:
            table = tasks.load(name, source, ("validation",)).splits["validation"]
            sides = tuple(_drawn(list(table[side]), examples) for side in SIDES[name])
            texts |= {name: sides, f"{name}, {SIDES[name][0]} alone": sides[:1]}
    return texts


def _drawn(texts: list[str], most: int) -> list[str]:
    """The same rows of every column of one table."""
    return [texts[row] for row in np.random.default_rng(DRAW_SEED).permutation(len(texts))[:most]]


def similarities(
    checkpoints: Sequence[Checkpoint],
    similarity_tokens: int = 5000,
    similarity_examples: int = 1000,
    device: str | None = None,
    names: Sequence[str] = (RUNNING_TEXT,),
    log: Log = print,
) -> pd.DataFrame:
    """Figure 2: similarity of the encoders of one pre-training that were tuned with one seed, and of their twins, to it
    on running text.

    Args:
        similarity_tokens, similarity_examples: of each input, at most.
        names: of `inputs`.

    Returns:
        `pretrained` (the encoder), the columns of `similarity_to_base` and `tuned_seed`; no rows where every training
        diverged.
    """
    if all(checkpoint.manifest["diverged"] for checkpoint in checkpoints):
        return pd.DataFrame()
    made = checkpoints[0].specification
    tuned = [checkpoint.specification.task for checkpoint in checkpoints]
    wanted = {BASE, *tuned, *(prefix + task for prefix in (TWIN_OF, FUNCTIONAL_TWIN_OF) for task in tuned)}
    models = probed_models(made.encoder, checkpoints, wanted, device, log)
    texts = inputs(made.source, names, similarity_examples)
    tokenizer = encoders.tokenizer(encoders.locate(made.encoder))
    table = similarity_to_base(models, texts, tokenizer, similarity_tokens, device)
    table.insert(0, "pretrained", made.encoder)
    return table.assign(tuned_seed=tuned_seed(checkpoints))


def similarities_by_input(
    checkpoints: Sequence[Checkpoint],
    similarity_tokens: int = 5000,
    similarity_examples: int = 1000,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figure 5: as `similarities` on the inputs of MNLI and SQuAD, for the models of these two tasks."""
    of_inputs = [checkpoint for checkpoint in checkpoints if checkpoint.specification.task in SIDES]
    return similarities(of_inputs, similarity_tokens, similarity_examples, device, tuple(SIDES), log)
