"""What the measures of chapters 6 and 7 read of a model at each of its layers.

Labels lie in the first token's states on development examples. Probes learn from training examples, and so is the loss
that of training examples, as in the landscapes of its paper: on development examples, a model that has memorised its
training examples gains when a layer is rolled back. Structural probes read a treebank.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directions, directprobe, mlp_probe, weights
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import layer_parameters
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.merchant2020_probes import structural_probes
from fivelenses.papers.models import development_examples
from fivelenses.records import WHOLE
from fivelenses.tasks import folds, subset
from fivelenses.tasks.examples import encode, with_examples

PROBE = mlp_probe.Configuration((64, 64), 1e-4)


@dataclass(frozen=True)
class Setting:
    """What all models of one task are read with: the encoder that they come from, encoded development and training
    examples, and the source of trees, so many sentences of which train a structural probe at most.
    """

    pretrained: nn.Module
    tokenizer: PreTrainedTokenizerBase
    examples: datasets.Dataset
    training: datasets.Dataset
    source: str
    sentences: int
    device: str | None

    @property
    def layers(self) -> range:
        """1…L."""
        return range(1, len(layer_list(self.pretrained)) + 1)


def setting(
    checkpoint: Checkpoint, examples: int | None, training_examples: int, sentences: int, device: str | None
) -> Setting:
    """The setting of a checkpoint's task, with so many development (None for all) and training examples at most."""
    made = checkpoint.specification
    located = encoders.locate(made.encoder)
    pretrained, tokenizer = encoders.load_weights(located), encoders.tokenizer(located)
    data = tasks.load(made.task, made.source, ("train",))
    training = encode(with_examples(data, training_examples, 0), "train", tokenizer, made.schedule.max_length)
    held_out = development_examples(checkpoint, examples)
    return Setting(pretrained, tokenizer, held_out, training, made.source, sentences, device)


class LabelReading(NamedTuple):
    """`distances` (labellings, L), the mean distance of a label's hull to its nearest, and `right` (examples, L), how
    often probes are right about each example.
    """

    distances: np.ndarray
    right: np.ndarray


def label_reading(
    model: nn.Module, setting: Setting, seeds: Sequence[int], epochs: int, permuted: bool = False
) -> LabelReading:
    """Distances of labels in [CLS], with `permuted` also of permuted ones as a second labelling, and classifier probes
    from several initialisations (`seeds`).
    """
    gold, width = np.array(setting.examples["labels"]), setting.pretrained.config.hidden_size
    distinct = pd.Series(list(map(tuple, setting.examples["input_ids"]))).drop_duplicates().index.to_numpy()
    # Planes separate as many points as the states are wide, so that every layer of every model has distances.
    points = distinct[subset(gold[distinct], width, seed=0)]
    labellings = [gold[points]] + ([np.random.default_rng(0).permutation(gold[points])] if permuted else [])
    learned, states = (
        represent(model, split, setting.layers, device=setting.device) for split in (setting.training, setting.examples)
    )
    labels = np.array(setting.training["labels"])
    distances = [label_distance(states[layer][points], one) for one, layer in product(labellings, setting.layers)]
    right = [probe(learned[layer], labels, states[layer], gold, seeds, epochs) for layer in setting.layers]
    return LabelReading(np.reshape(distances, (len(labellings), -1)), np.stack(right, axis=1))


def label_distance(states: np.ndarray, labels: np.ndarray) -> float:
    """Mean over labels of the distance between the convex hulls of a label and of its nearest, at least 0."""
    return directprobe.probe(states, labels).min_distances.mean()


def probe(
    learned: np.ndarray, labels: np.ndarray, states: np.ndarray, gold: np.ndarray, seeds: Sequence[int], epochs: int
) -> np.ndarray:
    """(n,) how often classifier probes from several initialisations are right about each row of `states`."""
    return mlp_probe.fit_grid(learned, labels, states, gold, [PROBE], seeds, epochs).right.mean(0)


def rollback(
    model: nn.Module, setting: Setting, examples: int | None = None, random_directions: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(examples, L) the rise of the training loss in nats with each layer alone reset to its pre-trained parameters, on
    so many examples at most; (L,) the mean rise with it moved as far in so many random directions; (examples,) folds.
    """
    model.to(setting.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    before, rises, elsewhere = None, [], []
    for layer in setting.layers:
        # One object per layer: what lies below it is computed once, and not for each of its directions.
        loss = ClassifierLoss(model, setting.training, [layer], limit=examples, folds=folds)
        before = loss.by_example({})[0] if before is None else before
        here, there = (layer_parameters(one, [layer]) for one in (model, setting.pretrained))
        back = directions.difference(there, here)
        rises.append(loss.by_example(there)[0] - before)
        # A layer that did not move has no distance by which to move it elsewhere.
        seeds = range(random_directions if directions.norm(back) else 0)
        steps = [directions.rescaled(directions.random_direction(here, seed), back) for seed in seeds]
        losses = [loss(directions.moved(here, step)).loss for step in steps]
        elsewhere.append(np.mean(losses) - before.mean() if losses else 0.0)
    return np.stack(rises, axis=1), np.array(elsewhere), loss.fold_of


def weight_distances(model: nn.Module, setting: Setting) -> np.ndarray:
    """(L,) the relative Frobenius distance of each layer from its pre-trained weights, mean of its six projections."""
    return weights.distance(setting.pretrained, model).relative.mean(axis=1)


def tree_correlations(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, source: str, sentences: int, device: str | None
) -> np.ndarray:
    """(L,) the mean rank correlation of a structural probe's distances and depths with those of a source's trees."""
    table = structural_probes({"": model}, tokenizer, source, sentences, device=device)
    return table[table["fold"] == WHOLE].groupby("layer")["spearman"].mean().iloc[1:].to_numpy()
