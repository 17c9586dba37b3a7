"""What pre-trained encoders of one's own are worth: their language modelling, their scores after fine-tuning, and what
a linear probe reads from their layers.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import datasets
import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from transformers import AutoModelForPreTraining, DataCollatorWithPadding

from fivelenses.activations import represent
from fivelenses.checkpoints.evaluation import flat_labels, predictions
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.models import encoders
from fivelenses.papers.toy_world.measure import record
from fivelenses.records import FOLDS, WHOLE
from fivelenses.tasks import TaskData, load
from fivelenses.tasks.examples import encode
from fivelenses.tasks.running_text import wikipedia_text
from fivelenses.tasks.subsets import subset
from pretraining import held_out_loss, tokenise

ITERATIONS = 1000
MAX_LENGTH = 128  # tokens of a sentence that a probe reads
LOSSES = ("masked_loss", "masked_accuracy", "next_sentence_accuracy")
PARAPHRASE = "mrpc"  # the task that GLUE scores by F1, too


def loss_curves(pretrained: Sequence[str]) -> pd.DataFrame:
    """The losses along pre-training, nats, each the mean over the steps since the row before.

    Returns:
        `encoder`, `step`, `masked`, `next_sentence`.

    Raises:
        ValueError: an encoder that `fivelenses pretrain` did not make.
    """
    curves = [pd.DataFrame(record(name)["loss_curve"]).assign(encoder=name) for name in pretrained]
    return pd.concat(curves, ignore_index=True)[["encoder", "step", "masked", "next_sentence"]]


def language_modelling(pretrained: Sequence[str], source: str, device: str | None = None) -> pd.DataFrame:
    """How well encoders do BERT's two tasks: on text held out of their own corpus, and on text from elsewhere.

    Two more rows are without pre-training: `random`, the first encoder's shape with random weights, and `frequency`,
    which knows how often each token occurs in the text itself, in whatever place, and no more.

    Args:
        pretrained: encoders that `fivelenses pretrain` made.
        source: of the text from elsewhere, see :func:`fivelenses.tasks.running_text.wikipedia_text`.
        device: a GPU when there is one, by default.

    Returns:
        One row per encoder, text (`held out`, `elsewhere`) and fold: `encoder`, `text`, `fold` (of the documents that
        are left out; −1 for none, and for held-out text none is), `masked_loss` (nats per token), `masked_accuracy`,
        `next_sentence_accuracy` (not a number for `frequency`), `pieces_read`, `hours`.
    """
    documents = wikipedia_text(source)
    # Next sentences are drawn from other documents, so that a fold has two at least.
    folds = [documents[fold :: min(FOLDS, len(documents) // 2)] for fold in range(min(FOLDS, len(documents) // 2))]
    rows = []
    for name in pretrained:
        made = record(name)
        spent = {"pieces_read": made["pieces_seen"], "hours": made["seconds"] / 3600}
        losses = {name: float(made["held_out"][name]) for name in LOSSES}
        rows.append({"encoder": name, "text": "held out", "fold": WHOLE, **losses, **spent})
        rows += [row | {"encoder": name} | spent for row in _elsewhere(name, folds, device)]
    untrained = {"pieces_read": 0, "hours": 0.0}
    torch.manual_seed(0)
    rows += [row | {"encoder": "random"} | untrained for row in _elsewhere(f"random:{pretrained[0]}", folds, device)]
    rows += [row | {"encoder": "frequency"} | untrained for row in _frequencies(pretrained[0], folds)]
    return pd.DataFrame(rows)


def _elsewhere(name: str, folds: list[list[list[str]]], device: str | None) -> list[dict]:
    """The losses on all documents, and without each fold of them."""
    encoder = encoders.locate(name)
    model, tokenizer = encoders.load(encoder, AutoModelForPreTraining), encoders.tokenizer(encoder)
    model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    measured = [held_out_loss(model, tokenizer, documents) for documents in folds]
    values = np.array([[getattr(one, name) for name in LOSSES] for one in measured])
    sizes = np.array([[one.masked_pieces, one.masked_pieces, one.pairs] for one in measured])
    rows = []
    for fold in range(WHOLE, len(folds)):
        kept = np.arange(len(folds)) != fold
        means = (values * sizes)[kept].sum(0) / sizes[kept].sum(0)
        rows.append({"text": "elsewhere", "fold": fold, **dict(zip(LOSSES, means.tolist(), strict=True))})
    return rows


def _frequencies(name: str, folds: list[list[list[str]]]) -> list[dict]:
    """What frequencies alone would reach, on all documents and without each fold."""
    tokenizer = encoders.tokenizer(encoders.locate(name))
    counts = [Counter(tokenise(documents, tokenizer, MAX_LENGTH).pieces.tolist()) for documents in folds]
    kept = {fold: [one for place, one in enumerate(counts) if place != fold] for fold in range(WHOLE, len(folds))}
    return [{"text": "elsewhere", "fold": fold, **_of_counts(sum(of, Counter()))} for fold, of in kept.items()]


def _of_counts(counts: Counter) -> dict[str, float]:
    """Entropy of the tokens of a text, and the share of the most frequent one."""
    shares = np.array(list(counts.values())) / counts.total()
    entropy = float(-(shares * np.log(shares)).sum())
    return {"masked_loss": entropy, "masked_accuracy": float(shares.max()), "next_sentence_accuracy": np.nan}


def paraphrase_f1(checkpoints: Sequence[Checkpoint], device: str | None = None) -> pd.DataFrame:
    """F1 on MRPC's development set, the benchmark's second measure of it, of each model of MRPC, loaded again.

    Args:
        checkpoints: models of any tasks; those of others are left out.
        device: a GPU when there is one, by default.

    Returns:
        `encoder`, `task`, `seed`, `score`, `majority` (of answering always that the sentences say the same).
    """
    rows = []
    for checkpoint in checkpoints:
        made = checkpoint.specification
        if made.task != PARAPHRASE:
            continue
        tokenizer = checkpoint.tokenizer()
        data = load(made.task, made.source, ("validation",))
        encoded = encode(data, "validation", tokenizer, made.schedule.max_length)
        gold, model = flat_labels(encoded), checkpoint.model()
        model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        predicted = predictions(model, encoded, DataCollatorWithPadding(tokenizer))
        row = {"encoder": made.encoder, "task": made.task, "seed": made.seed}
        row |= {"score": float(f1_score(gold, predicted, zero_division=0.0))}
        rows.append(row | {"majority": float(f1_score(gold, np.ones_like(gold)))})
    return pd.DataFrame(rows, columns=["encoder", "task", "seed", "score", "majority"])


def parts_of_speech(
    pretrained: Sequence[str],
    source: str,
    probe_sentences: int,
    device: str | None = None,
    log: Callable[[str], None] = print,
) -> pd.DataFrame:
    """The accuracy of a linear probe for parts of speech on each layer, words being the means of their tokens.

    The probe is multinomial logistic regression on standardised features (penalty 1), trained on sentences drawn from
    the English Web Treebank and scored on its development set. `words alone` answers with the tag that a word had most
    often in those sentences, and with the most frequent tag where it did not occur.

    Args:
        pretrained: encoders; the first one's shape with random weights is probed too, as `random`.
        source: `toyworld` or `hub`.
        probe_sentences: of the training split that are used, at most.
        device: a GPU when there is one, by default.
        log: takes a line of progress.

    Returns:
        One row per encoder, layer (0, the embeddings, to the last) and fold, with `encoder`, `layer`, `fold` (of the
        sentences that are left out of the score, −1 for none), `accuracy`; `words alone` has layer 0 only.
    """
    data = load("pos-ewt", source)
    table = data.splits["train"]
    # Drawn, not the first ones: a treebank stands in the order of its genres.
    kept = table.select(subset(np.zeros(table.num_rows), probe_sentences, seed=0))
    data = TaskData(data.task, source, {**data.splits, "train": kept}, data.labels)
    lengths = [len(tokens) for tokens in data.splits["validation"]["tokens"]]
    fold_of = np.repeat(np.arange(len(lengths)) % FOLDS, lengths)
    rows = _in_folds("words alone", 0, _right_by_word(data), fold_of)
    torch.manual_seed(0)
    for name in (*pretrained, f"random:{pretrained[0]}"):
        encoder = encoders.locate(name)
        model, tokenizer = encoders.load_weights(encoder), encoders.tokenizer(encoder)
        layers = range(encoders.config(encoder).num_hidden_layers + 1)
        seen = {split: _read(model, tokenizer, data, split, layers, device) for split in ("train", "validation")}
        for layer in layers:
            (x, y), (held_out, gold) = ((vectors[layer], labels) for vectors, labels in seen.values())
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS)).fit(x, y)
            rows += _in_folds("random" if encoder.random else name, layer, probe.predict(held_out) == gold, fold_of)
        best = max(row["accuracy"] for row in rows[-len(layers) * (FOLDS + 1) :])
        log(f"parts of speech read from {name}: {best:.3f} at best")
    return pd.DataFrame(rows)


def _in_folds(encoder: str, layer: int, right: np.ndarray, fold_of: np.ndarray) -> list[dict]:
    """The share of words that are right, of all sentences and without each fold."""
    row = {"encoder": encoder, "layer": layer}
    return [row | {"fold": fold, "accuracy": float(right[fold_of != fold].mean())} for fold in range(WHOLE, FOLDS)]


def _read(model, tokenizer, data: TaskData, split: str, layers: range, device: str | None):
    encoded: datasets.Dataset = encode(data, split, tokenizer, MAX_LENGTH)
    return represent(model, encoded, layers, device=device), flat_labels(encoded)


def _right_by_word(data: TaskData) -> np.ndarray:
    """(words,) whether a word's most frequent tag in the training split is its tag in the development split."""
    tags: dict[str, Counter] = {}
    for row in data.splits["train"]:
        for word, tag in zip(row["tokens"], row["names"], strict=True):
            tags.setdefault(word.lower(), Counter())[tag] += 1
    unseen = sum(tags.values(), Counter()).most_common(1)[0][0]
    known = {word: counts.most_common(1)[0][0] for word, counts in tags.items()}
    return np.array(
        [
            known.get(word.lower(), unseen) == tag
            for row in data.splits["validation"]
            for word, tag in zip(row["tokens"], row["names"], strict=True)
        ]
    )
