"""What the five lenses see of the same fine-tuned models, as one tidy table with a row per model, layer and measure.

Activations are read on the same development examples by all measures but the structural probes, which need trees.
Classifier probes learn from training examples, and the loss with a layer rolled back is that of training examples, as
in the landscapes of its paper: on development examples, a model that has memorised its training examples gains when a
layer is rolled back.

For intervals, examples are dealt into ten folds by label, and attention, features, similarity, the probe's accuracy and
the loss are taken again without each. The distance of labels hangs on single points, and weights on no example; of
these, and of the trees, the sentences count as given. As controls, all measures are taken of each model's twins, which
moved as far in random directions, but for the loss, whose head was trained for the model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import CCA, RSA, AttentionJS, check_tokens, compare_with
from fivelenses.lenses import directions, directprobe, mlp_probe, weights
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.parameter_motion import layer_direction, layer_parameters
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.five_lenses.instruments import MIN_LAYERS
from fivelenses.papers.hao2020.measure import evaluation_part, untrained
from fivelenses.papers.merchant2020.measure import structural_probes
from fivelenses.papers.merchant2020.similarity import drawn_positions
from fivelenses.papers.twins import model_of
from fivelenses.records import FOLDS, PRETRAINED, TUNED, TWINS, WHOLE
from fivelenses.tasks import TaskData
from fivelenses.tasks.examples import encode
from fivelenses.tasks.subsets import folds, subset
from fivelenses.tasks.treebanks import treebank_of

MEASURES = ("js", "svcca", "labels", "probe", "rollback", "weights", "rsa", "structure")
COLUMNS = ["task", "seed", "control", "measure", "fold", "layer", "value", "null", "entering"]
NUMBERS = ["value", "null", "entering"]
INDEPENDENT = "independent"
CONTROL_SEED = 0
PROBE_HIDDEN, PROBE_REGULARISER, PROBE_SEEDS, PROBE_EPOCHS = (64, 64), 1e-4, range(3), 100

Models = Mapping[tuple[str, int], nn.Module]  # by control and seed


@dataclass(frozen=True)
class References:
    """The encoders that fine-tuned ones are compared with: their own start, one independent of it, random weights."""

    pretrained: nn.Module
    independent: nn.Module
    untrained: nn.Module
    tokenizer: PreTrainedTokenizerBase

    @property
    def layers(self) -> range:
        """1…L."""
        return range(1, len(layer_list(self.pretrained)) + 1)


def references(encoder: str, independent: str) -> References:
    """Load the pre-trained encoder, and what tuned ones are compared with besides.

    Args:
        encoder: its name.
        independent: the name of an encoder of the same shape and tokenizer that was not trained from the same weights.

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
            f"{encoder} and {independent} have layers, width, heads and vocabulary {shapes[0]} and {shapes[1]}: name "
            f"an independent encoder of the same shape, or random:{encoder}."
        )
    if shapes[0][0] < MIN_LAYERS:
        raise ValueError(f"{encoder} has {shapes[0][0]} layers: an order of layers needs at least {MIN_LAYERS}.")
    tokenizer, random = encoders.tokenizer(located[0]), located[1].random
    if not random and encoders.tokenizer(located[1]).get_vocab() != tokenizer.get_vocab():
        raise ValueError(
            f"{encoder} and {independent} have different vocabularies: name an independent encoder with the same."
        )
    other = untrained(independent) if random else encoders.load_weights(located[1])
    return References(encoders.load_weights(located[0]), other, untrained(encoder), tokenizer)


def changes_by_layer(
    checkpoints: Sequence[Checkpoint],
    independent: str,
    structural_sentences: int,
    evaluation_examples: int | None = None,
    variance_kept: float = 0.99,
    similarity_tokens: int = 5000,
    probe_points: int = 600,
    random_directions: int = 3,
    device: str | None = None,
    log: Callable[[str], None] = print,
) -> pd.DataFrame:
    """All measures of the models of one task.

    Args:
        checkpoints: the models of one task and encoder, one per seed; one whose training diverged is left out.
        independent: see `references`.
        structural_sentences: training sentences of a structural probe, at most.
        evaluation_examples: development examples, and training examples of the loss, at most; None for all.
        variance_kept: the share of variance that SVCCA keeps.
        similarity_tokens: tokens of words on which RSA is taken, at most.
        probe_points: training examples of a classifier probe and of the loss, at most.
        random_directions: in which a layer is moved as far as fine-tuning moved it, to be averaged.
        device: a GPU when there is one, by default.
        log: takes a line of progress.

    Returns:
        One row per model, measure, fold and layer, with `task`, `seed`, `control` (empty, `twin` or `functional twin`),
        `measure`, `fold` (the one left out, −1 for none), `layer` (1…L), `value` (larger is more change, as its
        instrument says), `null`, and `entering` (the same measure of what enters the layer, where it is taken). No row
        when every training diverged.

    Raises:
        ValueError: encoders that cannot be compared, or too few tokens for SVCCA, reported before any model runs.
    """
    made = checkpoints[0].specification
    tuned = {(TUNED, one.specification.seed): one.model() for one in checkpoints if not one.manifest["diverged"]}
    if not tuned:
        return pd.DataFrame(columns=COLUMNS)
    reference = references(made.encoder, independent)
    examples = evaluation_part(checkpoints[0], evaluation_examples)
    check_tokens(examples, reference.pretrained.config.hidden_size, folds(examples["labels"]))
    finite = [one for one in checkpoints if not one.manifest["diverged"]]
    twins = {
        (control, one.specification.seed): model_of(one, control, reference.pretrained, device, log)
        for control, one in product(TWINS, finite)
    }
    every = tuned | {name: model for name, model in twins.items() if model is not None}
    training = _training_part(checkpoints[0], reference.tokenizer, probe_points)
    table = pd.concat(
        [
            _outputs(every, reference, examples, variance_kept, similarity_tokens, device),
            _labels(every, reference, training, examples, device),
            _rollbacks(tuned, reference, training, evaluation_examples, random_directions, device),
            _weights(every, reference),
            _syntax(every, reference, made.encoder, made.source, structural_sentences, device),
        ]
    )
    log(f"{made.task}: {len(tuned)} models and their twins measured")
    orders = {"control": [TUNED, *TWINS], "seed": [seed for _, seed in tuned], "measure": MEASURES}
    table = table.sort_values(list(orders), key=lambda column: column.map(orders[column.name].index), kind="stable")
    table = table.assign(task=made.task)[COLUMNS].reset_index(drop=True)
    return table.astype(dict.fromkeys(NUMBERS, np.float32) | {"fold": np.int8, "layer": np.int8})


def _training_part(checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase, points: int) -> datasets.Dataset:
    """A stratified part of the training examples, encoded: a part of those that smaller models were tuned on too."""
    made = checkpoint.specification
    data = tasks.load(made.task, made.source, ("train",))
    rows = subset(np.array(data.splits["train"][data.task.label]), points, seed=0)
    part = TaskData(data.task, data.source, {"train": data.splits["train"].select(rows)}, data.labels)
    return encode(part, "train", tokenizer, made.schedule.max_length)


def _rows(measure: str, model: tuple[str, int], layers: range, values, null, entering=np.nan, fold=WHOLE):
    columns = {"measure": measure, "control": model[0], "seed": model[1], "fold": fold, "layer": layers}
    return pd.DataFrame(columns | {"value": values, "null": null, "entering": entering})


def _in_folds(measure: str, model: tuple[str, int], layers: range, values: np.ndarray, null, fold_of) -> pd.DataFrame:
    """Rows of a measure that is a mean over examples, (examples, L): of all of them, and without each fold."""
    means = ((fold, values[fold_of != fold].mean(0)) for fold in range(WHOLE, FOLDS))
    return pd.concat(_rows(measure, model, layers, mean, null, fold=fold) for fold, mean in means)


def _outputs(
    every: Models,
    reference: References,
    examples: datasets.Dataset,
    variance_kept: float,
    similarity_tokens: int,
    device: str | None,
) -> pd.DataFrame:
    """Attention and features of all models against the pre-trained encoder's."""
    names = {f"{control} {seed}": (control, seed) for control, seed in every}
    words = drawn_positions(examples, reference.tokenizer, similarity_tokens)
    lenses = [AttentionJS(), CCA(("svcca",), variance_kept), RSA(words)]
    how = dict(layers=range(len(reference.layers) + 1), device=device, fold_of=folds(examples["labels"]))
    tables = []
    # One control at a time: what is gathered of all of them takes several times the memory.
    for control in dict.fromkeys(control for control, _ in every):
        models = {name: every[of] for name, of in names.items() if of[0] == control}
        models |= {INDEPENDENT: reference.independent} if control == TUNED else {}
        pairs = [(PRETRAINED, name) for name in models]
        models = {PRETRAINED: reference.pretrained, **models}
        tables.append(compare_with(lenses, models, pairs, examples, **how))
    table = pd.concat(tables)
    table["rsa"] = 1 - table["rsa"]
    curves, parts = dict(list(table.groupby(["second", "fold"]))), []
    for (name, model), fold in product(names.items(), range(WHOLE, FOLDS)):
        for measure in ("js", "svcca", "rsa"):
            curve, null = (curves[one, fold][measure].to_numpy() for one in (name, INDEPENDENT))
            # Attention has no layer 0, which is NaN there; what is read of outputs begins with the embeddings'.
            entering = np.nan if measure == "js" else curve[:-1]
            parts.append(_rows(measure, model, reference.layers, curve[1:], null[1:], entering, fold))
    return pd.concat(parts)


def _labels(
    every: Models, reference: References, training: datasets.Dataset, examples: datasets.Dataset, device: str | None
) -> pd.DataFrame:
    """What a layer's [CLS] says of the labels: how far apart they lie, and how well a probe reads them."""
    layers, gold = reference.layers, np.array(examples["labels"])
    # As many points as the encoder is wide are separable whatever their labels are, so that every layer of every
    # model has distances; what of them is due to the labels is what permuted ones do not show.
    distinct = pd.Series(list(map(tuple, examples["input_ids"]))).drop_duplicates().index.to_numpy()
    points = distinct[subset(gold[distinct], reference.pretrained.config.hidden_size, seed=0)]
    labelled = [gold[points], np.random.default_rng(CONTROL_SEED).permutation(gold[points])]
    probe = mlp_probe.Configuration(PROBE_HIDDEN, PROBE_REGULARISER)

    def read(model: nn.Module) -> tuple[np.ndarray, np.ndarray]:
        """(2, L) mean distance of a label to its nearest, with true and permuted labels; (examples, L) how often the
        probes are right.
        """
        learned, held_out = (represent(model, split, layers, device=device) for split in (training, examples))
        distances = [
            [directprobe.probe(held_out[layer][points], labels).min_distances.mean() for layer in layers]
            for labels in labelled
        ]
        right = []
        for layer in layers:
            splits = (learned[layer], np.array(training["labels"]), held_out[layer], gold)
            how = dict(select_on="test", max_epochs=PROBE_EPOCHS)
            right.append(mlp_probe.fit_grid(*splits, [probe], PROBE_SEEDS, **how).right.mean(0))
        return np.array(distances), np.stack(right, axis=1)

    distances, right = read(reference.pretrained)
    floor, parts = (read(reference.untrained)[1] - right).mean(0), []
    for name, model in every.items():
        of_model, read_from_model = read(model)
        growth = np.log(of_model / distances)
        parts.append(_rows("labels", name, layers, growth[0], growth[1]))
        parts.append(_in_folds("probe", name, layers, read_from_model - right, floor, folds(gold)))
    return pd.concat(parts)


def _rollbacks(
    tuned: Models,
    reference: References,
    training: datasets.Dataset,
    examples: int | None,
    random_directions: int,
    device: str | None,
) -> pd.DataFrame:
    """The rise of the training loss with each layer rolled back, and with it moved as far in random directions."""
    parts = []
    for name, model in tuned.items():
        model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        before, rises, null = None, [], []
        for layer in reference.layers:
            # One object per layer: what lies below it is computed once, and not for each of its directions.
            measured = ClassifierLoss(model, training, [layer], limit=examples, folds=folds)
            before = measured.by_example({})[0] if before is None else before
            here, back = layer_parameters(model, [layer]), layer_direction(model, reference.pretrained, [layer])
            rises.append(measured.by_example(directions.moved(here, [back], [1.0]))[0] - before)
            # A layer that did not move has no distance by which to move it elsewhere.
            seeds = range(CONTROL_SEED, CONTROL_SEED + random_directions if directions.norm(back) else 0)
            drawn = [directions.rescaled(directions.random_direction(here, one), back) for one in seeds]
            elsewhere = [measured(directions.moved(here, [random], [1.0])).loss for random in drawn]
            null.append(np.mean(elsewhere) - before.mean() if elsewhere else 0.0)
        parts.append(_in_folds("rollback", name, reference.layers, np.stack(rises, axis=1), null, measured.fold_of))
    return pd.concat(parts)


def _weights(every: Models, reference: References) -> pd.DataFrame:
    """How far each layer's projections moved, relative to what they were."""

    def moved(other: nn.Module) -> np.ndarray:
        return weights.distance(reference.pretrained, other).relative.mean(axis=1)

    null = moved(reference.independent)
    return pd.concat(_rows("weights", name, reference.layers, moved(model), null) for name, model in every.items())


def _syntax(
    every: Models, reference: References, encoder: str, source: str, sentences: int, device: str | None
) -> pd.DataFrame:
    """How much of the syntax trees a structural probe no longer reads."""
    kept, floor = _syntax_of_references(encoder, source, sentences, device)
    treebank, layers, parts = treebank_of(source), reference.layers, []
    for name, model in every.items():
        read = _trees(model, reference.tokenizer, treebank, sentences, device)
        parts.append(_rows("structure", name, layers, kept - read, kept - floor))
    return pd.concat(parts)


@cache
def _syntax_of_references(encoder: str, source: str, sentences: int, device: str | None) -> tuple[np.ndarray, ...]:
    """What the probes read from the pre-trained and the untrained encoder: the same for all tasks of a run."""
    located = encoders.locate(encoder)
    settings = (encoders.tokenizer(located), treebank_of(source), sentences, device)
    return tuple(_trees(model, *settings) for model in (encoders.load_weights(located), untrained(encoder)))


def _trees(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, treebank: Mapping, sentences: int, device: str | None
) -> np.ndarray:
    """(L,) mean of the rank correlations of a probe's distances and depths with those of the trees."""
    table = structural_probes({"": model}, tokenizer, treebank, sentences, device=device)
    return table.groupby("layer")["spearman"].mean().iloc[1:].to_numpy()
