"""What Merchant, Rahimtoroghi, Pavlick and Tenney (2020), "What Happens To BERT Embeddings During Fine-tuning?",
measure: similarity to the pre-trained encoder (Figures 2 and 5). Probes are in `merchant2020_probes`.

Special tokens do not count: every text has two or three of them, of which short texts have a larger share.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import datasets
import numpy as np
import pandas as pd
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import stream_order
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import RSA, compare_with
from fivelenses.lenses.similarities import sample_positions
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.models import Log, converged, models_of
from fivelenses.records import BASE, FINE_TUNED, RUNNING_TEXT, SHARED, TWINS
from fivelenses.tasks import folds
from fivelenses.tasks.examples import wikipedia_text

SAMPLE_SEED = 0  # of texts, sentences, tokens and permuted tokens
SIDES = {"mnli": ("premise", "hypothesis"), "squad": ("question", "context")}  # tasks whose examples are two texts
COLUMNS = ["pretrained", "input", "model", "control", "tuned_seed", "layer", "fold", "similarity", "null", "tokens"]
COLUMNS += ["examples"]

Models = dict[tuple[str, str], nn.Module]  # by the task that they were fine-tuned on, and by control


def pretrained_and_fine_tuned(
    encoder: str,
    checkpoints: Sequence[Checkpoint],
    controls: Sequence[str] = (FINE_TUNED,),
    device: str | None = None,
    log: Log = print,
) -> Models:
    """The pre-trained encoder, and what was fine-tuned from it, at most one per task, with its twins; a training that
    diverged is left out, as is a twin that does not exist.
    """
    original = encoders.load_weights(encoders.locate(encoder))
    models = {(BASE, SHARED): original}
    for control in controls:
        models |= {(one.task, control): model for one, model in models_of(checkpoints, control, original, device, log)}
    return models


def tuned_seed(checkpoints: Sequence[Checkpoint]) -> int:
    """The seed of the fine-tuning that is measured; −1 for what all seeds share, such as the pre-trained encoder."""
    return checkpoints[0].specification.seed if checkpoints else -1


def similarities(
    checkpoints: Sequence[Checkpoint],
    similarity_tokens: int = 5000,
    similarity_examples: int = 1000,
    device: str | None = None,
    names: Sequence[str] = (RUNNING_TEXT,),
    log: Log = print,
) -> pd.DataFrame:
    """Figure 2: similarity of encoders to the one that they were fine-tuned from, and of their twins, on running text.

    Args:
        checkpoints: of one pre-training and seed, one per task.
        similarity_tokens, similarity_examples: of each input, at most.
        names: of `inputs`.

    Returns:
        COLUMNS: `pretrained` is the encoder; no rows where every training diverged.
    """
    if not converged(checkpoints):
        return pd.DataFrame(columns=COLUMNS)
    made = checkpoints[0].specification
    models = pretrained_and_fine_tuned(made.encoder, checkpoints, (FINE_TUNED, *TWINS), device, log)
    texts = inputs(made.source, names, similarity_examples)
    tokenizer = encoders.tokenizer(encoders.locate(made.encoder))
    table = similarity_to_first(models, texts, tokenizer, similarity_tokens, device)
    return table.assign(pretrained=made.encoder, tuned_seed=tuned_seed(checkpoints))[COLUMNS]


def similarities_by_input(
    checkpoints: Sequence[Checkpoint],
    similarity_tokens: int = 5000,
    similarity_examples: int = 1000,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figure 5: as `similarities` on the inputs of MNLI and SQuAD, for the models of these two tasks."""
    of_pairs = [one for one in checkpoints if one.specification.task in SIDES]
    return similarities(of_pairs, similarity_tokens, similarity_examples, device, tuple(SIDES), log)


def similarity_to_first(
    models: Models,
    texts: dict[str, Sequence[Sequence[str]]],
    tokenizer: PreTrainedTokenizerBase,
    tokens: int,
    device: str | None = None,
) -> pd.DataFrame:
    """RSA of each model to the first, the pre-trained encoder, layer by layer, on several inputs.

    Args:
        texts: name of an input to its texts, or to the first and the second texts of its pairs, which are cut only at
            what the encoder can read.
        tokens: drawn from each input, at most, none of them special.

    Returns:
        One row per input, model, control, layer (0…L) and fold of texts left out (−1: none), with `similarity`, `null`
        (rows of one side permuted; missing without a fold), `tokens`, `examples` (texts).
    """
    base, *others = models
    layers, pairs = range(len(layer_list(models[base])) + 1), [(base, name) for name in others]
    longest = min(tokenizer.model_max_length, encoders.positions(models[base].config) or tokenizer.model_max_length)
    parts = []
    for name, sides in texts.items():
        examples = datasets.Dataset.from_dict(dict(tokenizer(*map(list, sides), truncation=True, max_length=longest)))
        lens = RSA(random_positions(examples, tokenizer, tokens), null_seed=SAMPLE_SEED)
        in_turn = folds(np.zeros(examples.num_rows))
        table = compare_with([lens], models, pairs, examples, layers, device=device, fold_of=in_turn)
        parts.append(table.assign(input=name))
    table = pd.concat(parts, ignore_index=True)
    table["model"], table["control"] = zip(*table["second"], strict=True)
    return table.rename(columns={"rsa": "similarity", "rsa_null": "null", "rsa_tokens": "tokens"})


def random_positions(examples: datasets.Dataset, tokenizer: PreTrainedTokenizerBase, tokens: int) -> np.ndarray:
    """Positions, in the stream of all tokens, of a random sample of those that the tokenizer did not add.

    Example:
        >>> from types import SimpleNamespace
        >>> examples = datasets.Dataset.from_dict({"input_ids": [[1, 7, 2], [1, 7, 8, 9, 2]]})
        >>> random_positions(examples, SimpleNamespace(cls_token_id=1, sep_token_id=2), 100)
        array([1, 2, 3, 6])
    """
    rows = examples["input_ids"]
    stream = np.concatenate([rows[row] for row in stream_order(examples).tolist()])
    words = np.flatnonzero((stream != tokenizer.cls_token_id) & (stream != tokenizer.sep_token_id))
    return words[sample_positions(len(words), tokens, SAMPLE_SEED)]


def inputs(source: str, names: Iterable[str], examples: int) -> dict[str, tuple[list[str], ...]]:
    """Random texts by input: sentences of `RUNNING_TEXT`, or pairs of a task of SIDES, and their first sides alone."""

    def drawn(sides: Sequence[Sequence[str]]) -> tuple[list[str], ...]:
        rows = np.random.default_rng(SAMPLE_SEED).permutation(len(sides[0]))[:examples]
        return tuple([side[row] for row in rows] for side in sides)

    texts = {}
    for name in names:
        if name == RUNNING_TEXT:
            texts[name] = drawn([list(chain.from_iterable(wikipedia_text(source)))])
        else:
            table = tasks.load(name, source, ("validation",)).splits["validation"]
            texts[name] = drawn([list(table[side]) for side in SIDES[name]])
            texts[f"{name}, {SIDES[name][0]} alone"] = texts[name][:1]
    return texts
