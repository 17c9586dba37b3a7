"""What the five lenses show of the same fine-tuned models, as one tidy table with a row per model, layer and measure.

Measures compare a model with its pre-trained encoder (`readings`). For intervals, examples are dealt into ten folds by
label, and attention, features, similarity, the probe's accuracy and the loss are taken again without each. The distance
of labels hangs on single points, weights on no example, and the sentences of the trees count as given. As controls, all
measures are taken of each model's twins, but for the loss, whose head was trained for the model.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
from torch import nn

from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import CCA, RSA, AttentionJS, check_tokens, compare_with
from fivelenses.models import encoders
from fivelenses.papers.merchant2020 import random_positions
from fivelenses.papers.models import Log, converged, model_of, randomly_initialised
from fivelenses.papers.readings import (
    Setting,
    label_reading,
    rollback,
    setting,
    tree_correlations,
    weight_distances,
)
from fivelenses.records import FINE_TUNED, FOLDS, PRETRAINED, TWINS, WHOLE
from fivelenses.tasks import folds

MEASURES = ("js", "svcca", "labels", "probe", "rollback", "weights", "rsa", "structure")
COLUMNS = ["task", "seed", "control", "measure", "fold", "layer", "value", "null", "entering"]
INDEPENDENT = "independent"
PROBE_SEEDS, PROBE_EPOCHS = range(3), 100

Models = Mapping[tuple[str, int], nn.Module]  # by control and seed


def changes_by_layer(
    checkpoints: Sequence[Checkpoint],
    independent: str,
    limits: Mapping[str, float | None],
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """All measures of the models of one task.

    Args:
        checkpoints: the models of one task and encoder, one per seed; one whose training diverged is left out.
        independent: of `independent_encoder`.
        limits: `evaluation_examples`, development examples, and training examples of the loss, at most (None for all);
            `variance_kept`, the share of variance that SVCCA keeps; `similarity_tokens`, tokens of words on which RSA
            is taken, at most; `probe_points`, training examples of a classifier probe and of the loss, at most;
            `structural_sentences`, training sentences of a structural probe, at most; `random_directions`, in which a
            layer is moved as far as fine-tuning moved it, to be averaged.

    Returns:
        One row per model, measure, fold and layer, with `task`, `seed`, `control` (empty, `twin` or `functional twin`),
        `measure`, `fold` (the one left out, −1 for none), `layer` (1…L), `value` (larger is more change), `null`, and
        `entering` (the same measure of what enters the layer, where it is taken). No row when every training diverged.

    Refused before any model runs: encoders that cannot be compared, or too few tokens for SVCCA.
    """
    finite = converged(checkpoints)
    if not finite:
        return pd.DataFrame(columns=COLUMNS)
    made = checkpoints[0].specification
    examples, sentences = limits["evaluation_examples"], limits["structural_sentences"]
    of_task = setting(checkpoints[0], examples, limits["probe_points"], sentences, device)
    other = independent_encoder(made.encoder, independent)
    check_tokens(of_task.examples, of_task.pretrained.config.hidden_size, folds(of_task.examples["labels"]))
    tried = {
        (control, one.specification.seed): model_of(one, control, of_task.pretrained, device, log)
        for control, one in product((FINE_TUNED, *TWINS), finite)
    }
    models = {name: model for name, model in tried.items() if model is not None}
    words = random_positions(of_task.examples, of_task.tokenizer, limits["similarity_tokens"])
    lenses = [AttentionJS(), CCA(("svcca",), limits["variance_kept"]), RSA(words)]
    table = pd.concat(
        [
            _outputs(models, of_task, other, lenses),
            _labels(models, of_task, randomly_initialised(made.encoder)),
            _rollbacks(models, of_task, examples, limits["random_directions"]),
            _weights(models, of_task, other),
            _syntax(models, of_task, made.encoder),
        ]
    )
    log(f"{made.task}: {len(finite)} models and their twins measured")
    orders = {"control": [FINE_TUNED, *TWINS], "seed": [one.specification.seed for one in finite], "measure": MEASURES}
    table = table.sort_values(list(orders), key=lambda column: column.map(orders[column.name].index), kind="stable")
    table = table.assign(task=made.task)[COLUMNS].reset_index(drop=True)
    return table.astype(dict.fromkeys(["value", "null", "entering"], np.float32) | {"fold": np.int8, "layer": np.int8})


def independent_encoder(encoder: str, independent: str) -> nn.Module:
    """The encoder of the name `independent` (`random:` and a name for random weights), which was not trained from the
    same weights; refused where shape or vocabulary differ.
    """
    located = [encoders.locate(name) for name in (encoder, independent)]
    first, second = map(encoders.config, located)
    shape = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
    alike = all(getattr(first, name) == getattr(second, name) for name in shape)
    if alike and not located[1].random:
        alike = encoders.tokenizer(located[0]).get_vocab() == encoders.tokenizer(located[1]).get_vocab()
    if not alike:
        raise ValueError(
            f"{encoder} and {independent} differ in layers, width, heads or vocabulary: name an independent encoder of "
            f"the same shape and vocabulary, or random:{encoder}."
        )
    return randomly_initialised(independent) if located[1].random else encoders.load_weights(located[1])


def _rows(measure: str, model: tuple[str, int], values, null, entering=np.nan, fold=WHOLE) -> pd.DataFrame:
    """Rows of one measure of one model, from values (L,)."""
    columns = {"measure": measure, "control": model[0], "seed": model[1], "fold": fold}
    return pd.DataFrame(
        columns | {"layer": range(1, len(values) + 1), "value": values, "null": null, "entering": entering}
    )


def _in_folds(measure: str, model: tuple[str, int], values: np.ndarray, null, fold_of: np.ndarray) -> pd.DataFrame:
    """Rows of a measure that is a mean over examples, (examples, L): of all of them, and without each fold."""
    means = {fold: values[fold_of != fold].mean(0) for fold in range(WHOLE, FOLDS)}
    return pd.concat(_rows(measure, model, mean, null, fold=fold) for fold, mean in means.items())


def _outputs(models: Models, of_task: Setting, independent: nn.Module, lenses: Sequence) -> pd.DataFrame:
    """Attention and features of all models against the pre-trained encoder's."""
    fold_of = folds(of_task.examples["labels"])
    how = dict(layers=range(len(of_task.layers) + 1), device=of_task.device, fold_of=fold_of)
    tables = []
    # One control at a time: what is gathered of all of them takes several times the memory.
    for control in dict.fromkeys(control for control, _ in models):
        others = {str(name): model for name, model in models.items() if name[0] == control}
        others |= {INDEPENDENT: independent} if control == FINE_TUNED else {}
        pairs = [(PRETRAINED, name) for name in others]
        tables.append(compare_with(lenses, {PRETRAINED: of_task.pretrained, **others}, pairs, of_task.examples, **how))
    table = pd.concat(tables)
    table["rsa"] = 1 - table["rsa"]
    curves, parts = dict(list(table.groupby(["second", "fold"]))), []
    for model, fold, measure in product(models, range(WHOLE, FOLDS), ("js", "svcca", "rsa")):
        curve, null = (curves[one, fold][measure].to_numpy() for one in (str(model), INDEPENDENT))
        # Attention has no layer 0, which is NaN there; what is read of outputs begins with the embeddings'.
        entering = np.nan if measure == "js" else curve[:-1]
        parts.append(_rows(measure, model, curve[1:], null[1:], entering, fold))
    return pd.concat(parts)


def _labels(models: Models, of_task: Setting, random_encoder: nn.Module) -> pd.DataFrame:
    """How much further apart labels lie than in the pre-trained encoder, and how much better a probe reads them."""
    how = (of_task, PROBE_SEEDS, PROBE_EPOCHS)
    before, fold_of = label_reading(of_task.pretrained, *how, permuted=True), folds(of_task.examples["labels"])
    null, parts = (label_reading(random_encoder, *how).right - before.right).mean(0), []
    for name, model in models.items():
        after = label_reading(model, *how, permuted=True)
        parts.append(_rows("labels", name, *np.log(after.distances / before.distances)))
        parts.append(_in_folds("probe", name, after.right - before.right, null, fold_of))
    return pd.concat(parts)


def _rollbacks(models: Models, of_task: Setting, examples: int | None, random_directions: int) -> pd.DataFrame:
    """The rise of the training loss with each layer rolled back, and with it moved as far in random directions."""
    own = {name: model for name, model in models.items() if name[0] == FINE_TUNED}
    found = {name: rollback(model, of_task, examples, random_directions) for name, model in own.items()}
    return pd.concat(_in_folds("rollback", name, *one) for name, one in found.items())


def _weights(models: Models, of_task: Setting, independent: nn.Module) -> pd.DataFrame:
    """How far each layer's projections moved, relative to what they were."""
    null = weight_distances(independent, of_task)
    return pd.concat(_rows("weights", name, weight_distances(model, of_task), null) for name, model in models.items())


def _syntax(models: Models, of_task: Setting, encoder: str) -> pd.DataFrame:
    """How much of the syntax trees a structural probe no longer reads."""
    how = (of_task.source, of_task.sentences, of_task.device)
    before, without_training = _syntax_of_references(encoder, *how)
    return pd.concat(
        _rows("structure", name, before - tree_correlations(model, of_task.tokenizer, *how), before - without_training)
        for name, model in models.items()
    )


@cache
def _syntax_of_references(encoder: str, source: str, sentences: int, device: str | None) -> tuple[np.ndarray, ...]:
    """What the probes read from the pre-trained and the untrained encoder: the same for all tasks of a run."""
    located = encoders.locate(encoder)
    how = (encoders.tokenizer(located), source, sentences, device)
    models = encoders.load_weights(located), randomly_initialised(encoder)
    return tuple(tree_correlations(model, *how) for model in models)
