"""What the five lenses see of the same fine-tuned models, as one tidy table with a row a model, layer and measure.

Activations are read of the same development examples by all measures but the structural probes, which need trees.
Classifier probes learn from training examples, and the loss with a layer put back is that of training examples, as in
the landscapes of its paper: on development examples, a model that knows its training examples by heart gains when a
layer is put back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import represent, stream
from fivelenses.checkpoints import Checkpoint, finite
from fivelenses.comparison import check_tokens
from fivelenses.lenses import attention, cca, directions, directprobe, mlp_probe, weights
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.parameter_motion import layer_direction, layer_parameters
from fivelenses.lenses.rsa import RSAAccumulator, sample_positions
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.five_lenses.instruments import BY_KEY
from fivelenses.papers.five_lenses.rank_statistics import LEAST_LAYERS
from fivelenses.papers.hao2020.measure import evaluation_examples, untrained
from fivelenses.papers.merchant2020 import structural_probes
from fivelenses.papers.zhou2022.measure import first_occurrences, max_length
from fivelenses.tasks import TaskData
from fivelenses.tasks.examples import encode, subset
from fivelenses.tasks.treebanks import treebank_of

PRETRAINED, INDEPENDENT = "pre-trained", "independent"
CONTROL_SEED = 0
PROBE_HIDDEN, PROBE_REGULARISER, PROBE_SEEDS, PROBE_EPOCHS = (64, 64), 1e-4, range(3), 100

Checkpoints = Mapping[tuple[str, int], Checkpoint]


@dataclass(frozen=True)
class Measuring:
    """How the lenses are set.

    Attributes:
        examples: development examples of a task, and training examples of its loss, at most; None for all.
        keep: the share of variance that SVCCA keeps.
        similarity_tokens: tokens on which RSA is taken, at most.
        probe_points: training examples of a classifier probe and of the loss, at most.
        structural_sentences: training sentences of a structural probe, at most.
        random_directions: in which a layer is moved beside its own, to be averaged.
        device: a GPU when there is one, by default.
    """

    examples: int | None
    keep: float
    similarity_tokens: int
    probe_points: int
    structural_sentences: int
    random_directions: int
    device: str | None = None


@dataclass(frozen=True)
class References:
    """The encoders beside which fine-tuned ones are put: their own start, one independent of it, and random weights."""

    encoder: str
    pretrained: nn.Module
    independent: nn.Module
    untrained: nn.Module
    tokenizer: PreTrainedTokenizerBase

    @property
    def layers(self) -> range:
        return range(1, len(layer_list(self.pretrained)) + 1)


def references(encoder: str, independent: str) -> References:
    """Load the pre-trained encoder, and what tuned ones are compared with beside it.

    Args:
        encoder: its name.
        independent: the name of an encoder of the same shape and tokeniser that was not trained from the same weights.

    Raises:
        ValueError: encoders that cannot be compared, or too few layers for an order of layers.
    """
    located = [encoders.locate(name) for name in (encoder, independent)]
    shapes = [
        (config.num_hidden_layers, config.hidden_size, config.num_attention_heads, config.vocab_size)
        for config in map(encoders.config, located)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{encoder} and {independent} have layers, width, heads and pieces {shapes[0]} and {shapes[1]}: name an "
            f"independent encoder of the same shape, or random:{encoder}."
        )
    if shapes[0][0] < LEAST_LAYERS:
        raise ValueError(f"{encoder} has {shapes[0][0]} layers: an order of layers needs at least {LEAST_LAYERS}.")
    tokenizer, random = encoders.tokenizer(located[0]), located[1].random
    if not random and encoders.tokenizer(located[1]).get_vocab() != tokenizer.get_vocab():
        raise ValueError(f"{encoder} and {independent} have other pieces: name an independent encoder with the same.")
    other = untrained(independent) if random else encoders.load_weights(located[1])
    return References(encoder, encoders.load_weights(located[0]), other, untrained(encoder), tokenizer)


def changes_by_layer(
    checkpoints: Checkpoints, beside: References, source: str, how: Measuring, tell: Callable[[str], None] = print
) -> pd.DataFrame:
    """All measures of all models.

    Args:
        checkpoints: (task, seed) to fine-tuned model; one whose training diverged is left out.
        beside: of `references`.
        source: of the examples.
        how: how the lenses are set.
        tell: takes a line of progress.

    Returns:
        One row a model, measure and layer: `task`, `seed`, `measure`, `layer` (1…L), `value` (larger is more change, as
        its instrument says), `null`, and `entering` (the same measure of what enters the layer, where it is
        taken).

    Raises:
        ValueError: no model that did not diverge, or too few tokens for SVCCA, said before any model runs.
    """
    checkpoints = finite(checkpoints)
    of_task = {}
    for task in dict.fromkeys(task for task, _ in checkpoints):
        length = max_length(next(one for (name, _), one in checkpoints.items() if name == task))
        of_task[task] = evaluation_examples(task, source, beside.tokenizer, length, how.examples)
        check_tokens(of_task[task], beside.pretrained.config.hidden_size)
    trees = _Trees(beside, source, how)
    parts = []
    for task, examples in of_task.items():
        tuned = {seed: one.model() for (name, seed), one in checkpoints.items() if name == task}
        parts.append(_outputs(tuned, beside, examples, how).assign(task=task))
        training = _training_part(task, source, beside, max_length(checkpoints[task, next(iter(tuned))]), how)
        read = _Labels(training, examples, beside, how)
        for seed, model in tuned.items():
            of_model = [read.changes(model), _put_back(model, beside, training, how), _moved(model, beside)]
            parts.append(pd.concat([*of_model, trees.changes(model)]).assign(task=task, seed=seed))
        tell(f"{task}: {len(tuned)} models measured")
    names, seeds = zip(*checkpoints, strict=True)
    orders = {"task": names, "seed": seeds, "measure": tuple(BY_KEY)}
    table = pd.concat(parts).sort_values(
        list(orders), key=lambda column: column.map(orders[column.name].index), kind="stable"
    )
    return table[[*orders, "layer", "value", "null", "entering"]].reset_index(drop=True)


def _training_part(task: str, source: str, beside: References, length: int, how: Measuring) -> datasets.Dataset:
    """A stratified part of the training examples, encoded: a part of those that smaller models were tuned on too."""
    data = tasks.load(task, source, ("train",))
    rows = subset(np.array(data.splits["train"][data.task.label]), how.probe_points, seed=0)
    part = TaskData(data.task, data.source, {"train": data.splits["train"].select(rows)}, data.labels)
    return encode(part, "train", beside.tokenizer, length)


def _rows(measure: str, layers, values, null) -> pd.DataFrame:
    return pd.DataFrame({"measure": measure, "layer": layers, "value": values, "null": null, "entering": np.nan})


def _outputs(tuned: Mapping[int, nn.Module], beside: References, examples: datasets.Dataset, how: Measuring):
    """Attention and features of all models of one task against the pre-trained encoder's, from one pass."""
    models = {PRETRAINED: beside.pretrained, INDEPENDENT: beside.independent} | dict(tuned)
    layers, pairs = range(len(beside.layers) + 1), [(0, side) for side in range(1, len(models))]
    positions = sample_positions(sum(map(len, examples["input_ids"])), how.similarity_tokens)
    moments = {layer: Moments(pairs) for layer in layers}
    similar = {layer: RSAAccumulator(pairs, positions) for layer in layers}
    heads = beside.pretrained.config.num_attention_heads
    divergences = [attention.JSAccumulator(len(beside.layers), heads) for _ in pairs]
    streams = [stream(model, examples, layers, beside.layers, device=how.device) for model in models.values()]
    for batches in zip(*streams, strict=True):
        for layer in layers:
            tokens = [batch.tokens(layer) for batch in batches]
            moments[layer].update(*tokens)
            similar[layer].update(*tokens)
        for divergence, (first, second) in zip(divergences, pairs, strict=True):
            sides = ([batches[side].attention[layer] for layer in beside.layers] for side in (first, second))
            divergence.update(*sides, batches[first].mask)
    curves = {
        name: {
            "js": divergence.result().layers,
            "svcca": np.array([cca.svcca_distance(moments[layer].pair(*pair), None, how.keep) for layer in layers]),
            "rsa": np.array([1 - similar[layer].similarity(*pair) for layer in layers]),
        }
        for name, pair, divergence in zip(list(models)[1:], pairs, divergences, strict=True)
    }
    null, parts = curves.pop(INDEPENDENT), []
    for seed, of_model in curves.items():
        for measure, curve in of_model.items():
            # Attention has no layer 0; what is read of outputs begins with the embeddings'.
            whole = len(curve) > len(beside.layers)
            values, floor = (curve[1:], null[measure][1:]) if whole else (curve, null[measure])
            rows = _rows(measure, beside.layers, values, floor).assign(seed=seed)
            parts.append(rows.assign(entering=curve[:-1]) if whole else rows)
    return pd.concat(parts)


class _Labels:
    """What a layer's [CLS] says of one task's labels: how far apart they lie, and how well a probe reads them.

    What concerns the pre-trained and the untrained encoder is measured once for all models of the task.
    """

    def __init__(
        self, training: datasets.Dataset, examples: datasets.Dataset, beside: References, how: Measuring
    ) -> None:
        self.layers, self.how = beside.layers, how
        self.splits = [(split, np.array(split["labels"])) for split in (training, examples)]
        # As many points as the encoder is wide are separable whatever their labels are, so that every layer of every
        # model has distances; what of them is due to the labels is what permuted ones do not show.
        gold, distinct = np.array(examples["labels"]), np.array(first_occurrences(examples))
        self.points = distinct[subset(gold[distinct], beside.pretrained.config.hidden_size, seed=0)]
        self.named = [gold[self.points], np.random.default_rng(CONTROL_SEED).permutation(gold[self.points])]
        self.distances, self.accuracy = self._read(beside.pretrained)
        self.floor = self._read(beside.untrained)[1] - self.accuracy

    def _read(self, model: nn.Module) -> tuple[np.ndarray, np.ndarray]:
        """(2, L) mean distance of a label to its nearest, with true and permuted labels; (L,) accuracy of the probe."""
        training, held_out = (represent(model, split, self.layers, device=self.how.device) for split, _ in self.splits)
        distances = [
            [directprobe.probe(held_out[layer][self.points], names).min_distances.mean() for layer in self.layers]
            for names in self.named
        ]
        probes = [mlp_probe.Configuration(PROBE_HIDDEN, PROBE_REGULARISER, seed) for seed in PROBE_SEEDS]
        accuracy = []
        for layer in self.layers:
            splits = (training[layer], self.splits[0][1], held_out[layer], self.splits[1][1])
            fits = mlp_probe.fit(*splits, probes, max_epochs=PROBE_EPOCHS, device=self.how.device)
            accuracy.append(fits["test_accuracy"].mean())
        return np.array(distances), np.array(accuracy)

    def changes(self, model: nn.Module) -> pd.DataFrame:
        distances, accuracy = self._read(model)
        growth = np.log(distances / self.distances)
        return pd.concat(
            [
                _rows("labels", self.layers, growth[0], growth[1]),
                _rows("probe", self.layers, accuracy - self.accuracy, self.floor),
            ]
        )


def _put_back(model: nn.Module, beside: References, training: datasets.Dataset, how: Measuring) -> pd.DataFrame:
    """The rise of the training loss with each layer put back alone, and with it moved as far in random directions."""
    model.to(how.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    before, rises, null = None, [], []
    for layer in beside.layers:
        # One object a layer: what lies below it is computed once, and not for each of its directions.
        loss = ClassifierLoss(model, training, [layer], limit=how.examples)
        before = loss({}).loss if before is None else before
        here, back = layer_parameters(model, [layer]), layer_direction(model, beside.pretrained, [layer])
        rises.append(loss(directions.moved(here, [back], [1.0])).loss - before)
        # A layer that did not move has no distance by which to move it elsewhere.
        numbers = range(how.random_directions if directions.norm(back) else 0)
        drawn = [directions.rescaled(directions.random_direction(here, CONTROL_SEED + one), back) for one in numbers]
        elsewhere = [loss(directions.moved(here, [random], [1.0])).loss for random in drawn]
        null.append(np.mean(elsewhere) - before if elsewhere else 0.0)
    return _rows("rollback", beside.layers, rises, null)


def _moved(model: nn.Module, beside: References) -> pd.DataFrame:
    """How far each layer's projections moved, relative to what they were."""
    values, null = (
        weights.distance(beside.pretrained, other).relative.mean(axis=1) for other in (model, beside.independent)
    )
    return _rows("weights", beside.layers, values, null)


class _Trees:
    """How well structural probes read trees; the pre-trained and the untrained encoder are probed once."""

    def __init__(self, beside: References, source: str, how: Measuring) -> None:
        self.beside, self.how, self.treebank = beside, how, treebank_of(source)
        self.kept = self._read(beside.pretrained)
        self.floor = self.kept - self._read(beside.untrained)

    def _read(self, model: nn.Module) -> np.ndarray:
        """(L,) mean of the rank correlations of distances and depths."""
        table = structural_probes(
            {"": model},
            self.beside.tokenizer,
            self.treebank,
            self.how.structural_sentences,
            device=self.how.device,
        )
        return table.groupby("layer")["spearman"].mean().loc[self.beside.layers].to_numpy()

    def changes(self, model: nn.Module) -> pd.DataFrame:
        return _rows("structure", self.beside.layers, self.kept - self._read(model), self.floor)
