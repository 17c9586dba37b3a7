"""What the five lenses show of the same fine-tuned models, as one tidy table with a row per model, layer and measure.

Each lens is measured for itself, as all of them together take hours on a CPU. Measures compare a model with its
pre-trained encoder (`readings`). For intervals, attention, features, similarity, the probe's accuracy and the loss are
taken again without each of ten folds of the examples. The distance of labels hangs on single points, weights on no
example, and the sentences of the trees count as given. All but the loss are also measured of each model's twins.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
from torch import nn

from fivelenses.checkpoints.store import Checkpoint
from fivelenses.comparison import CCA, RSA, AttentionJS, PairLens, compare_with
from fivelenses.models import encoders
from fivelenses.papers.measures import LENSES
from fivelenses.papers.merchant2020 import random_positions
from fivelenses.papers.models import Log, converged, models_of, randomly_initialised
from fivelenses.papers.readings import Setting, label_reading, rollback, setting, tree_correlations, weight_distances
from fivelenses.records import FINE_TUNED, PRETRAINED, TWINS, WHOLE
from fivelenses.tasks import FOLDS, folds

COLUMNS = ["task", "seed", "control", "measure", "fold", "layer", "value", "null", "entering"]
INDEPENDENT = "independent"
PROBE_SEEDS, PROBE_EPOCHS = range(3), 100

Models = Mapping[tuple[str, int], nn.Module]  # by control and seed
Limits = Mapping[str, float | None]
# Measure, name of the model, fold left out, and (L,) values, null, and the values of what enters, NaN where not taken.
Rows = Iterator[tuple]


def changes_by_layer(
    checkpoints: Sequence[Checkpoint],
    lens: str,
    independent: str,
    limits: Limits,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """All measures of one lens, of the models of one task.

    Args:
        checkpoints: the models of one task and encoder, one per seed; one whose training diverged is left out.
        lens: the paper that the measures are from, a key of `measures.LENSES`.
        independent: of `independent_encoder`.
        limits: `evaluation_examples` (None for all), `variance_kept`, `similarity_tokens`, `probe_points`,
            `structural_sentences` and `random_directions`, as `chapters.FiveLenses` has them; the loss is that of
            `evaluation_examples` of the `probe_points` training examples.

    Returns:
        One row per model, measure, fold and layer, with `task`, `seed`, `control` (empty, `twin` or `functional twin`),
        `measure`, `fold` (the one left out, −1 for none), `layer` (1…L), `value` (larger is more change), `null`, and
        `entering` (the same measure of what enters the layer, where it is taken). No row when every training diverged.

    Refused: an independent encoder of another shape or vocabulary.
    """
    if not converged(checkpoints):
        return pd.DataFrame(columns=COLUMNS)
    made = checkpoints[0].specification
    sizes = (limits[name] for name in ("evaluation_examples", "probe_points", "structural_sentences"))
    of_task, other = setting(checkpoints[0], *sizes, device), independent_encoder(made.encoder, independent)
    # The head of a model was trained for it, and for no twin.
    controls = (FINE_TUNED,) if lens == "hao2019" else (FINE_TUNED, *TWINS)
    models = {
        (control, one.seed): model
        for control in controls
        for one, model in models_of(checkpoints, control, of_task.pretrained, device, log)
    }
    parts = []
    for measure, (control, seed), fold, *curves in READERS[lens](models, of_task, limits, made.encoder, other):
        columns = (made.task, seed, control, measure, fold, of_task.layers, *curves)
        parts.append(pd.DataFrame(dict(zip(COLUMNS, columns, strict=True))))
    log(f"{made.task}, {LENSES[lens]}: {len(models)} models measured")
    types = dict.fromkeys(["value", "null", "entering"], np.float32) | {"fold": np.int8, "layer": np.int8}
    return pd.concat(parts, ignore_index=True).astype(types)


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


def _in_folds(measure: str, model: tuple[str, int], values: np.ndarray, null, fold_of: np.ndarray) -> Rows:
    """Rows of a measure that is a mean over examples, (examples, L): of all of them, and without each fold."""
    for fold in range(WHOLE, FOLDS):
        yield measure, model, fold, values[fold_of != fold].mean(0), null, np.nan


def _outputs(models: Models, of_task: Setting, independent: nn.Module, lenses: Mapping[str, PairLens]) -> Rows:
    """Attention or features of all models against the pre-trained encoder's, with a lens for each measure."""
    fold_of = folds(of_task.examples["labels"])
    how = dict(layers=range(len(of_task.layers) + 1), device=of_task.device, fold_of=fold_of)
    tables = []
    # One control at a time: what is gathered of all of them takes several times the memory.
    for control in dict.fromkeys(control for control, _ in models):
        others = {str(name): model for name, model in models.items() if name[0] == control}
        others |= {INDEPENDENT: independent} if control == FINE_TUNED else {}
        pairs, every = [(PRETRAINED, name) for name in others], {PRETRAINED: of_task.pretrained, **others}
        tables.append(compare_with(list(lenses.values()), every, pairs, of_task.examples, **how))
    curves = dict(list(pd.concat(tables).groupby(["second", "fold"])))
    for model, fold, measure in product(models, range(WHOLE, FOLDS), lenses):
        curve, null = (curves[one, fold][measure].to_numpy() for one in (str(model), INDEPENDENT))
        # Attention has no layer 0, which is NaN there; what is read of outputs begins with the embeddings'.
        yield measure, model, fold, curve[1:], null[1:], np.nan if measure == "js" else curve[:-1]


def _attention_and_features(models: Models, of_task: Setting, limits: Limits, _, independent: nn.Module) -> Rows:
    lenses = {"js": AttentionJS(), "svcca": CCA(("svcca",), limits["variance_kept"])}
    return _outputs(models, of_task, independent, lenses)


def _labels(models: Models, of_task: Setting, _, encoder: str, __) -> Rows:
    """How much further apart labels lie than in the pre-trained encoder, and how much better a probe reads them."""
    how = (of_task, PROBE_SEEDS, PROBE_EPOCHS)
    before, fold_of = label_reading(of_task.pretrained, *how, permuted=True), folds(of_task.examples["labels"])
    null = (label_reading(randomly_initialised(encoder), *how).right - before.right).mean(0)
    for name, model in models.items():
        after = label_reading(model, *how, permuted=True)
        yield "labels", name, WHOLE, *np.log(after.distances / before.distances), np.nan
        yield from _in_folds("probe", name, after.right - before.right, null, fold_of)


def _rollbacks(models: Models, of_task: Setting, limits: Limits, *_) -> Rows:
    """The rise of the training loss with each layer rolled back, and with it moved as far in random directions."""
    how = (of_task, limits["evaluation_examples"], limits["random_directions"])
    for name, model in models.items():
        yield from _in_folds("rollback", name, *rollback(model, *how))


def _weights(models: Models, of_task: Setting, _, __, independent: nn.Module) -> Rows:
    """How far each layer's projections moved, relative to what they were."""
    null = weight_distances(independent, of_task)
    for name, model in models.items():
        yield "weights", name, WHOLE, weight_distances(model, of_task), null, np.nan


def _similarity_and_syntax(models: Models, of_task: Setting, limits: Limits, encoder: str, independent) -> Rows:
    """How little the similarities of words are the same, and how much of the syntax trees a probe no longer reads."""
    words = random_positions(of_task.examples, of_task.tokenizer, limits["similarity_tokens"])
    for measure, name, fold, *alike in _outputs(models, of_task, independent, {"rsa": RSA(words)}):
        yield measure, name, fold, *(1 - curve for curve in alike)
    how = (of_task.source, of_task.sentences, of_task.device)
    before, without_training = _syntax_of_references(encoder, *how)
    for name, model in models.items():
        lost = before - tree_correlations(model, of_task.tokenizer, *how)
        yield "structure", name, WHOLE, lost, before - without_training, np.nan


# What measures each lens.
READERS = {
    "hao2020": _attention_and_features,
    "zhou2022": _labels,
    "hao2019": _rollbacks,
    "singh2020": _weights,
    "merchant2020": _similarity_and_syntax,
}


@cache
def _syntax_of_references(encoder: str, source: str, sentences: int, device: str | None) -> tuple[np.ndarray, ...]:
    """What the probes read from the pre-trained and the untrained encoder: the same for all tasks of a run."""
    located = encoders.locate(encoder)
    how = (encoders.tokenizer(located), source, sentences, device)
    models = encoders.load_weights(located), randomly_initialised(encoder)
    return tuple(tree_correlations(model, *how) for model in models)
