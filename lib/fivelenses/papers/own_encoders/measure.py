"""What pre-trained encoders of one's own are worth: their language modelling, their scores after fine-tuning, and what
a linear probe reads from their layers.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

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
from fivelenses.tasks import TaskData, load
from fivelenses.tasks.examples import encode, subset
from fivelenses.tasks.running_text import wikipedia_text
from pretraining import held_out_loss, tokenise

ITERATIONS = 1000
MAX_LENGTH = 128  # tokens of a sentence that a probe reads
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
        One row per encoder and text (`held out`, `elsewhere`): `encoder`, `text`, `masked_loss` (nats per token),
        `masked_accuracy`, `next_sentence_accuracy` (not a number for `frequency`), `pieces_read`, `hours`.
    """
    documents = wikipedia_text(source)
    rows = []
    for name in pretrained:
        made = record(name)
        spent = {"pieces_read": made["pieces_seen"], "hours": made["seconds"] / 3600}
        rows.append({"encoder": name, "text": "held out", **_losses(made["held_out"]), **spent})
        rows.append({"encoder": name, "text": "elsewhere", **_elsewhere(name, documents, device), **spent})
    untrained = {"text": "elsewhere", "pieces_read": 0, "hours": 0.0}
    torch.manual_seed(0)
    rows.append({"encoder": "random", **_elsewhere(f"random:{pretrained[0]}", documents, device), **untrained})
    rows.append({"encoder": "frequency", **_frequencies(pretrained[0], documents), **untrained})
    return pd.DataFrame(rows)


def _elsewhere(name: str, documents: list[list[str]], device: str | None) -> dict[str, float]:
    encoder = encoders.locate(name)
    model = encoders.load(encoder, AutoModelForPreTraining)
    model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    return _losses(vars(held_out_loss(model, encoders.tokenizer(encoder), documents)))


def _losses(measured: Mapping[str, float]) -> dict[str, float]:
    return {name: float(measured[name]) for name in ("masked_loss", "masked_accuracy", "next_sentence_accuracy")}


def _frequencies(name: str, documents: list[list[str]]) -> dict[str, float]:
    """Entropy of the tokens of a text, and the share of the most frequent one: what frequencies alone would reach."""
    tokenizer = encoders.tokenizer(encoders.locate(name))
    counts = Counter(tokenise(documents, tokenizer, MAX_LENGTH).pieces.tolist())
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
        One row per encoder and layer (0, the embeddings, to the last), with `encoder`, `layer`, `accuracy`; `words
        alone` has layer 0 only.
    """
    data = load("pos-ewt", source)
    table = data.splits["train"]
    # Drawn, not the first ones: a treebank stands in the order of its genres.
    kept = table.select(subset(np.zeros(table.num_rows), probe_sentences, seed=0))
    data = TaskData(data.task, source, {**data.splits, "train": kept}, data.labels)
    rows = [{"encoder": "words alone", "layer": 0, "accuracy": _most_frequent_tags(data)}]
    torch.manual_seed(0)
    for name in (*pretrained, f"random:{pretrained[0]}"):
        encoder = encoders.locate(name)
        model, tokenizer = encoders.load_weights(encoder), encoders.tokenizer(encoder)
        layers = range(encoders.config(encoder).num_hidden_layers + 1)
        seen = {split: _read(model, tokenizer, data, split, layers, device) for split in ("train", "validation")}
        for layer in layers:
            (x, y), (held_out, gold) = ((vectors[layer], labels) for vectors, labels in seen.values())
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS)).fit(x, y)
            accuracy = float(probe.score(held_out, gold))
            rows.append({"encoder": "random" if encoder.random else name, "layer": layer, "accuracy": accuracy})
        log(f"parts of speech read from {name}: {max(row['accuracy'] for row in rows[-len(layers) :]):.3f} at best")
    return pd.DataFrame(rows)


def _read(model, tokenizer, data: TaskData, split: str, layers: range, device: str | None):
    encoded: datasets.Dataset = encode(data, split, tokenizer, MAX_LENGTH)
    return represent(model, encoded, layers, device=device), flat_labels(encoded)


def _most_frequent_tags(data: TaskData) -> float:
    """The accuracy of a word's most frequent tag in the training split, on the development split."""
    tags: dict[str, Counter] = {}
    for row in data.splits["train"]:
        for word, tag in zip(row["tokens"], row["names"], strict=True):
            tags.setdefault(word.lower(), Counter())[tag] += 1
    unseen = sum(tags.values(), Counter()).most_common(1)[0][0]
    known = {word: counts.most_common(1)[0][0] for word, counts in tags.items()}
    right = [
        known.get(word.lower(), unseen) == tag
        for row in data.splits["validation"]
        for word, tag in zip(row["tokens"], row["names"], strict=True)
    ]
    return float(np.mean(right))
