"""What all lenses see of models of which it is known where, how much and what changed, as one tidy table.

For one task and seed there are these models, told apart by `kind`, `trained` and `dose`:

- `tuned`: fine-tuned as usual; and with 0, ¼, ½ and 2 times its steps (`dose`);
- `frozen`: fine-tuned with all layers frozen but those of `trained` (`3`, or `3-4`), embeddings included;
- `shuffled labels`: fine-tuned on permuted labels;
- `twin`: moved from the pre-trained encoder as far as `tuned`, in random directions;
- `heads permuted` and so on: the pre-trained encoder under a change of weights that changes nothing that it computes,
  with the head of `tuned`.

All are compared with the pre-trained encoder, on the same development examples; probes and the loss use training
examples. A structural probe reads the toy world's trees.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import CCA, RSA, AttentionJS, PairLens, check_tokens, compare_with, layers_rolled_back
from fivelenses.lenses import directprobe, mlp_probe, weights
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.parameter_motion import layer_parameters
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list, roll_back
from fivelenses.models.symmetries import symmetries_of
from fivelenses.models.twins import moved_at_random
from fivelenses.papers.hao2020.measure import evaluation_part
from fivelenses.papers.known_truth.alignment import Alignment, Neighbours
from fivelenses.papers.merchant2020.measure import structural_probes
from fivelenses.papers.merchant2020.similarity import drawn_positions
from fivelenses.records import ALL, FROZEN, FULL, PRETRAINED, SHUFFLED, TWIN
from fivelenses.tasks import TaskData
from fivelenses.tasks.examples import encode
from fivelenses.tasks.subsets import subset
from fivelenses.tasks.treebanks import treebank_of

COLUMNS = ["task", "seed", "kind", "trained", "dose", "measure", "layer", "value"]
PROBES = [mlp_probe.Configuration((64, 64), 1e-4, seed) for seed in range(2)]
PROBE_EPOCHS = 60
NEIGHBOURS = 10
PRIME = 10_007  # keeps the noise of one seed's twin apart from that of another's symmetries


@dataclass(frozen=True)
class Setting:
    """What all models of one task are measured with.

    Attributes:
        pretrained, tokenizer: the encoder that they come from.
        examples, training: development and training examples, encoded.
        treebank: splits to sentences with trees.
        sentences, tokens: training sentences of a structural probe, and tokens of RSA and of neighbours, at most.
        device: a GPU when there is one, by default.
    """

    pretrained: nn.Module
    tokenizer: PreTrainedTokenizerBase
    examples: datasets.Dataset
    training: datasets.Dataset
    treebank: Mapping[str, pd.DataFrame]
    sentences: int
    tokens: int
    device: str | None

    @property
    def layers(self) -> range:
        """1…L."""
        return range(1, len(layer_list(self.pretrained)) + 1)


def changes_seen(
    checkpoints: Sequence[Checkpoint],
    doses: Sequence[float],
    structural_sentences: int,
    evaluation_examples: int | None = None,
    similarity_tokens: int = 500,
    probe_points: int = 300,
    device: str | None = None,
    log: Callable[[str], None] = print,
) -> pd.DataFrame:
    """All measures of the models of one task and seed.

    Args:
        checkpoints: one that was fine-tuned as usual, with those of other doses, with frozen layers, and on shuffled
            labels; one whose training diverged is left out.
        doses: the steps of the trainings of all layers on true labels, as shares of the usual.
        structural_sentences: training sentences of a structural probe, at most.
        evaluation_examples: development examples, and training examples of the loss, at most; None for all.
        similarity_tokens: tokens of words on which RSA and neighbours are taken, at most.
        probe_points: training examples of a classifier probe and of the loss, at most.
        device: a GPU when there is one, by default.
        log: takes a line of progress.

    Returns:
        One row per model, measure and layer, with `task`, `seed`, `kind`, `trained` (`all`, `3` or `3-4`), `dose` (1 as
        usual), `measure`, `layer` (1…L), `value` (larger departs more from the pre-trained encoder). No row when the
        usual training diverged.

    Raises:
        ValueError: two tasks or seeds at once, no usual training, or too few tokens for SVCCA.
    """
    if len({(one.specification.task, one.specification.seed) for one in checkpoints}) > 1:
        raise ValueError("The models of one task and seed are measured together: give those of one alone.")
    setting = setting_of(
        checkpoints[0], structural_sentences, evaluation_examples, similarity_tokens, probe_points, device
    )
    models = made_models(checkpoints, doses, setting)
    if (FULL, ALL, 1.0) not in models:
        return pd.DataFrame(columns=COLUMNS)
    named = {f"{place}": model for place, model in enumerate(models.values())}
    table = pd.concat([read(named, setting) for read in READERS.values()], ignore_index=True)
    kinds = pd.DataFrame(list(models), list(named), ["kind", "trained", "dose"])
    made = checkpoints[0].specification
    table = table.join(kinds, on="model").assign(task=made.task, seed=made.seed)[COLUMNS]
    log(f"{made.task}, seed {made.seed}: {len(models)} models measured")
    return table.astype({"value": np.float32, "dose": np.float32, "layer": np.int8})


def seconds(
    checkpoints: Sequence[Checkpoint],
    structural_sentences: int,
    evaluation_examples: int | None = None,
    similarity_tokens: int = 500,
    probe_points: int = 300,
    device: str | None = None,
) -> pd.DataFrame:
    """What each measure costs: the time that it takes alone for all layers of one model, with the passes it needs.

    Returns:
        `measure`, `seconds`: the shorter of two measurements. What is read of the pre-trained encoder counts too.
    """
    one = checkpoints[0]
    setting = setting_of(one, structural_sentences, evaluation_examples, similarity_tokens, probe_points, device)
    model, rows = {"0": one.model()}, []
    alone = {key: lambda models, setting, key=key: _compared(models, setting, [key]) for key in _PAIR_LENSES}
    for key, read in (alone | {key: READERS[key] for key in READERS if key != "compared"}).items():
        taken = []
        for _ in range(2):
            started = time.perf_counter()
            read(model, setting)
            taken.append(time.perf_counter() - started)
        rows += [(measure, min(taken)) for measure in (("labels", "probe") if key == "read" else (key,))]
    return pd.DataFrame(rows, columns=["measure", "seconds"])


# --- the models -------------------------------------------------------------------------------------------------------


def setting_of(
    checkpoint: Checkpoint, sentences: int, examples: int | None, tokens: int, points: int, device: str | None
) -> Setting:
    """What the models of a checkpoint's task are measured with."""
    made = checkpoint.specification
    located = encoders.locate(made.encoder)
    pretrained, tokenizer = encoders.load_weights(located), encoders.tokenizer(located)
    held_out = evaluation_part(checkpoint, examples)
    check_tokens(held_out, pretrained.config.hidden_size)
    data = tasks.load(made.task, made.source, ("train",))
    rows = subset(np.array(data.splits["train"][data.task.label]), points, seed=0)
    part = TaskData(data.task, data.source, {"train": data.splits["train"].select(rows)}, data.labels)
    training = encode(part, "train", tokenizer, made.schedule.max_length)
    return Setting(pretrained, tokenizer, held_out, training, treebank_of(made.source), sentences, tokens, device)


def trained_layers(made: Specification, depth: int) -> str:
    """The layers that a training changes: `all`, `3`, or `3-4`.

    Raises:
        ValueError: free layers that are not neighbours.
    """
    free = [layer for layer in range(depth + 1) if layer not in made.frozen]
    if not made.frozen:
        return ALL
    if not free or free != list(range(free[0], free[-1] + 1)):
        raise ValueError(f"The training of {made.describe()} leaves no neighbouring layers free: it has no place.")
    return "-".join(map(str, dict.fromkeys((free[0], free[-1]))))


def made_models(
    checkpoints: Sequence[Checkpoint], doses: Sequence[float], setting: Setting
) -> dict[tuple[str, str, float], nn.Module]:
    """Models by kind, trained layers and dose; those that no training made are made here.

    Raises:
        ValueError: a training of all layers whose steps are none of the doses.
    """
    ordinary = [one for one in checkpoints if not one.specification.frozen and not one.specification.shuffled_labels]
    lengths = sorted({one.specification.schedule.epochs for one in ordinary})
    if len(lengths) != len(doses):
        raise ValueError(f"{len(lengths)} lengths of training are not the {len(doses)} doses: train each dose once.")
    dose_of = dict(zip(lengths, sorted(doses), strict=True))
    models = {}
    for one in checkpoints:
        made = one.specification
        if one.manifest["diverged"]:
            continue
        kind = SHUFFLED if made.shuffled_labels else FROZEN if made.frozen else FULL
        dose = dose_of[made.schedule.epochs] if kind == FULL else 1.0
        models[kind, trained_layers(made, len(setting.layers)), float(dose)] = one.model()
    tuned = models.get((FULL, ALL, 1.0))
    if tuned is None:
        return models
    seed = checkpoints[0].specification.seed
    models[TWIN, ALL, 1.0] = moved_at_random(tuned, setting.pretrained, seed)
    unchanged = copy.deepcopy(tuned)
    roll_back(unchanged, setting.pretrained, range(len(setting.layers) + 1))
    for kind, change in symmetries_of(unchanged).items():
        models[kind, ALL, 1.0] = change(unchanged, seed + PRIME)
    return models


# --- the measures -----------------------------------------------------------------------------------------------------

# Measures of pairs of models: the lens that gives it, and how its column becomes one that grows with the change.
_PAIR_LENSES: dict[str, tuple[Callable[[Setting], PairLens], Callable]] = {
    "js": (lambda setting: AttentionJS(), lambda value: value),
    "svcca": (lambda setting: CCA(("svcca",)), lambda value: value),
    "pwcca": (lambda setting: CCA(("pwcca",), variance_kept=1.0), lambda value: value),
    "cka": (lambda setting: CCA(("cka",)), lambda value: 1 - value),
    "rsa": (lambda setting: RSA(_sampled(setting)), lambda value: 1 - value),
    "cka_debiased": (lambda setting: Alignment("cka_debiased"), lambda value: 1 - value),
    "procrustes": (lambda setting: Alignment("procrustes"), lambda value: value),
    "neighbours": (lambda setting: Neighbours(_sampled(setting), NEIGHBOURS), lambda value: 1 - value),
}


def _sampled(setting: Setting) -> np.ndarray:
    return drawn_positions(setting.examples, setting.tokenizer, setting.tokens)


def _table(measure: str, model: str, layers: range, values) -> pd.DataFrame:
    return pd.DataFrame({"measure": measure, "model": model, "layer": layers, "value": values})


def _compared(models: Mapping[str, nn.Module], setting: Setting, keys: Sequence[str] = tuple(_PAIR_LENSES)):
    """Attention and features of all models against the pre-trained encoder's, from one pass."""
    lenses = [_PAIR_LENSES[key][0](setting) for key in keys]
    pairs = [(PRETRAINED, name) for name in models]
    every = {PRETRAINED: setting.pretrained, **models}
    table = compare_with(lenses, every, pairs, setting.examples, setting.layers, device=setting.device)
    return pd.concat(
        _table(key, name, setting.layers, _PAIR_LENSES[key][1](rows[key]).to_numpy())
        for name, rows in table.groupby("second", sort=False)
        for key in keys
    )


def _labels_and_probe(models: Mapping[str, nn.Module], setting: Setting) -> pd.DataFrame:
    """How far apart the labels lie in a layer's [CLS], and how well a probe reads them, against the pre-trained one."""
    before, parts = _read_labels(setting.pretrained, setting), []
    for name, model in models.items():
        after = _read_labels(model, setting)
        parts.append(_table("labels", name, setting.layers, np.log(after[0] / before[0])))
        parts.append(_table("probe", name, setting.layers, after[1] - before[1]))
    return pd.concat(parts)


def _read_labels(model: nn.Module, setting: Setting) -> np.ndarray:
    """(2, L) mean distance of a label to its nearest, and accuracy of the probes."""
    gold, layers = np.array(setting.examples["labels"]), setting.layers
    distinct = pd.Series(list(map(tuple, setting.examples["input_ids"]))).drop_duplicates().index.to_numpy()
    # As many points as the encoder is wide are separable whatever their labels are: every layer has a distance.
    points = distinct[subset(gold[distinct], setting.pretrained.config.hidden_size, seed=0)]
    learned, held_out = (
        represent(model, split, layers, device=setting.device) for split in (setting.training, setting.examples)
    )
    labels = np.array(setting.training["labels"])
    return np.array(
        [
            [directprobe.probe(held_out[layer][points], gold[points]).min_distances.mean() for layer in layers],
            [
                mlp_probe.fit(learned[layer], labels, held_out[layer], gold, PROBES, PROBE_EPOCHS).test_accuracy.mean()
                for layer in layers
            ],
        ]
    )


def _rolled_back(models: Mapping[str, nn.Module], setting: Setting) -> pd.DataFrame:
    """The rise of the training loss with each layer alone reset to its pre-trained parameters, nats."""
    parts = []
    for name, model in models.items():
        model.to(setting.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        before, rises = None, []
        for layer in setting.layers:
            # One object per layer: what lies below it is computed once.
            loss = ClassifierLoss(model, setting.training, [layer])
            before = loss({}).loss if before is None else before
            rises.append(loss(layer_parameters(setting.pretrained, [layer])).loss - before)
        parts.append(_table("rollback", name, setting.layers, rises))
    return pd.concat(parts)


def _last_layer(models: Mapping[str, nn.Module], setting: Setting) -> pd.DataFrame:
    """How far the last layer's output moves (SVCCA) with each layer alone reset to its pre-trained parameters."""
    parts = []
    for name, model in models.items():
        table = layers_rolled_back(model, setting.pretrained, setting.examples, device=setting.device)
        parts.append(_table("last", name, setting.layers, table["svcca"].to_numpy()))
    return pd.concat(parts)


def _weights(models: Mapping[str, nn.Module], setting: Setting) -> pd.DataFrame:
    """How far each layer's projections moved, relative to what they were, mean of the six."""
    return pd.concat(
        _table("weights", name, setting.layers, weights.distance(setting.pretrained, model).relative.mean(axis=1))
        for name, model in models.items()
    )


def _structure(models: Mapping[str, nn.Module], setting: Setting) -> pd.DataFrame:
    """How much of the trees' distances and depths a structural probe no longer reads."""
    before = _trees(setting.pretrained, setting)
    return pd.concat(
        _table("structure", name, setting.layers, before - _trees(model, setting)) for name, model in models.items()
    )


def _trees(model: nn.Module, setting: Setting) -> np.ndarray:
    arguments = (setting.tokenizer, setting.treebank, setting.sentences)
    table = structural_probes({"": model}, *arguments, device=setting.device)
    return table.groupby("layer")["spearman"].mean().iloc[1:].to_numpy()


READERS: dict[str, Callable[[Mapping[str, nn.Module], Setting], pd.DataFrame]] = {
    "compared": _compared,
    "read": _labels_and_probe,
    "rollback": _rolled_back,
    "last": _last_layer,
    "weights": _weights,
    "structure": _structure,
}
