"""What pre-trained encoders of one's own are worth: their language modelling, their scores after fine-tuning, and what
a linear probe reads from their layers.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from transformers import AutoModelForPreTraining, DataCollatorWithPadding

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints import Checkpoint
from fivelenses.checkpoints.evaluation import flat_labels, predictions
from fivelenses.models import encoders
from fivelenses.papers import toy_world
from fivelenses.tasks.examples import TaskData, encode, subset
from fivelenses.tasks.running_text import wikipedia_text
from pretraining import RECORD, held_out_loss, tokenise

ITERATIONS = 1000
LONGEST = 128  # pieces of a sentence that a probe reads


def record(name: str) -> dict:
    """What pre-training wrote beside an encoder's weights.

    Raises:
        ValueError: the encoder was not made by `fivelenses pretrain`.

    Example:
        >>> record("toy-bert/seed-0")["identity"]["specification"]["layers"]
        6
    """
    file = Path(encoders.locate(name).place) / RECORD
    if not file.is_file():
        raise ValueError(f"{name} has no {RECORD}: name an encoder that `fivelenses pretrain` made.")
    return json.loads(file.read_text(encoding="utf-8"))


def loss_curves(names: Sequence[str]) -> pd.DataFrame:
    """The losses along pre-training, nats, each the mean over the steps since the row before.

    Returns:
        Columns `encoder`, `step`, `masked`, `next_sentence`.
    """
    return pd.concat([pd.DataFrame(record(name)["loss_curve"]).assign(encoder=name) for name in names])[
        ["encoder", "step", "masked", "next_sentence"]
    ].reset_index(drop=True)


def language_modelling(names: Sequence[str], source: str, device: str | None = None) -> pd.DataFrame:
    """How well encoders do BERT's two tasks: on text held out of their own corpus, and on text from elsewhere.

    Two rows without pre-training stand beside: `random`, the first encoder's shape with random weights, and
    `frequency`, which knows how often each piece occurs in the text itself, in whatever place, and no more.

    Args:
        names: encoders that `fivelenses pretrain` made.
        source: of the text from elsewhere, see :func:`fivelenses.tasks.running_text.wikipedia_text`.
        device: of torch; None for the CPU.

    Returns:
        One row an encoder and text (`held out`, `elsewhere`): `encoder`, `text`, `masked_loss` (nats a piece),
            `masked_accuracy`, `next_sentence_accuracy` (not a number for `frequency`), `pieces_read`, `hours`.
    """
    documents = wikipedia_text(source)
    rows = []
    for name in names:
        made = record(name)
        spent = {"pieces_read": made["pieces_seen"], "hours": made["seconds"] / 3600}
        rows.append({"encoder": name, "text": "held out", **_losses(made["held_out"]), **spent})
        rows.append({"encoder": name, "text": "elsewhere", **_elsewhere(name, documents, device), **spent})
    untrained = {"text": "elsewhere", "pieces_read": 0, "hours": 0.0}
    torch.manual_seed(0)
    rows.append({"encoder": "random", **_elsewhere(f"random:{names[0]}", documents, device), **untrained})
    rows.append({"encoder": "frequency", **_frequencies(names[0], documents), **untrained})
    return pd.DataFrame(rows)


def _elsewhere(name: str, documents: list[list[str]], device: str | None) -> dict[str, float]:
    encoder = encoders.locate(name)
    model = encoders.load(encoder, AutoModelForPreTraining).to(device or "cpu")
    return _losses(vars(held_out_loss(model, encoders.tokenizer(encoder), documents)))


def _losses(found: Mapping[str, float]) -> dict[str, float]:
    return {name: float(found[name]) for name in ("masked_loss", "masked_accuracy", "next_sentence_accuracy")}


def _frequencies(name: str, documents: list[list[str]]) -> dict[str, float]:
    """Entropy of the pieces of a text, and the share of the most frequent one: what frequencies alone would reach."""
    tokenizer = encoders.tokenizer(encoders.locate(name))
    counts = Counter(tokenise(documents, tokenizer, LONGEST).pieces.tolist())
    shares = np.array(list(counts.values())) / counts.total()
    entropy = float(-(shares * np.log(shares)).sum())
    return {"masked_loss": entropy, "masked_accuracy": float(shares.max()), "next_sentence_accuracy": np.nan}


def training_part(task: str, source: str, examples: int | None) -> TaskData:
    """A task whose training split is what models were fine-tuned on, for baselines that see no more than they.

    Args:
        task: a task of one or two texts.
        source: `toyworld` or `hub`.
        examples: the specification's; None for all.
    """
    data = tasks.load(task, source)
    if examples is None:
        return data
    table = data.splits["train"]
    kept = table.select(subset(np.array(table[data.task.label]), examples, seed=0))
    return TaskData(data.task, source, {**data.splits, "train": kept}, data.labels)


def scores(checkpoints: Mapping[tuple[str, str, int], Checkpoint], data: Mapping[str, TaskData]) -> pd.DataFrame:
    """Development scores of fine-tuned models beside what needs no reading, in the measures of the GLUE benchmark.

    Args:
        checkpoints: (task, `pre-trained` or `scratch`, seed) to model.
        data: task to its splits.

    Returns:
        The columns of `toy_world.worth`, where `metric` is `F1` in MRPC's second set of rows; there `majority` is the
            score of answering always that the sentences say the same.
    """
    table = toy_world.worth(checkpoints, data)
    paraphrase = [_f1(key, checkpoint, data["mrpc"]) for key, checkpoint in checkpoints.items() if key[0] == "mrpc"]
    return pd.concat([table, pd.DataFrame(paraphrase)], ignore_index=True) if paraphrase else table


def _f1(key: tuple[str, str, int], checkpoint: Checkpoint, data: TaskData) -> dict:
    tokenizer = checkpoint.tokenizer()
    encoded = encode(data, "validation", tokenizer, checkpoint.manifest["specification"]["schedule"]["max_length"])
    gold = flat_labels(encoded)
    predicted = predictions(checkpoint.model(), encoded, DataCollatorWithPadding(tokenizer))
    task, start, seed = key
    found = {"task": task, "start": start, "seed": seed, "score": float(f1_score(gold, predicted, zero_division=0.0))}
    return found | {"majority": float(f1_score(gold, np.ones_like(gold))), "metric": "F1"}


def parts_of_speech(
    names: Sequence[str],
    source: str,
    sentences: int,
    device: str | None = None,
    notify: Callable[[str], None] = lambda line: None,
) -> pd.DataFrame:
    """The accuracy of a linear probe for parts of speech on each layer, words being the means of their pieces.

    The probe is multinomial logistic regression on standardised features (penalty 1), trained on sentences drawn from
    the English Web Treebank and scored on its development set. `words alone` answers with the tag that a word had most
    often in those sentences, and with the most frequent tag where it did not occur.

    Args:
        names: encoders; the first one's shape with random weights is probed too, as `random`.
        source: `toyworld` or `hub`.
        sentences: of the training split that are used, at most.
        device: of torch; None for the CPU.
        notify: takes a line of progress.

    Returns:
        One row an encoder and layer (0, the embeddings, to the last): `encoder`, `layer`, `accuracy`; `words alone`
            has the layer 0 only.
    """
    data = tasks.load("pos-ewt", source)
    table = data.splits["train"]
    # Drawn, not the first ones: a treebank stands in the order of its genres.
    kept = table.select(subset(np.zeros(table.num_rows), sentences, seed=0))
    data = TaskData(data.task, source, {**data.splits, "train": kept}, data.labels)
    rows = [{"encoder": "words alone", "layer": 0, "accuracy": _most_frequent_tags(data)}]
    torch.manual_seed(0)
    for name in (*names, f"random:{names[0]}"):
        encoder = encoders.locate(name)
        model, tokenizer = encoders.load_weights(encoder), encoders.tokenizer(encoder)
        layers = range(encoders.config(encoder).num_hidden_layers + 1)
        seen = {split: _read(model, tokenizer, data, split, layers, device) for split in ("train", "validation")}
        for layer in layers:
            (x, y), (held_out, gold) = ((vectors[layer], labels) for vectors, labels in seen.values())
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS)).fit(x, y)
            accuracy = float(probe.score(held_out, gold))
            rows.append({"encoder": "random" if encoder.random else name, "layer": layer, "accuracy": accuracy})
        notify(f"parts of speech read from {name}: {max(row['accuracy'] for row in rows[-len(layers) :]):.3f} at best")
    return pd.DataFrame(rows)


def _read(model, tokenizer, data: TaskData, split: str, layers: range, device: str | None):
    encoded: datasets.Dataset = encode(data, split, tokenizer, LONGEST)
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
