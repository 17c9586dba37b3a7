r"""Edge probes: what a small classifier reads about one or two spans of words from a frozen encoder's vectors.

For a sentence's vectors :math:`x^l` (words, d) in the layers l = 0…L, and for one or two spans, each with its own
parameters,

.. math::

    h_i = \Big(\gamma \sum_l s_l\, x^l_i\Big) P + b, \quad s = \operatorname{softmax}(w); \qquad
    r = \sum_{i \in \mathrm{span}} a_i h_i, \quad a = \operatorname{softmax}_{i \in \mathrm{span}}(h_i \cdot v);

.. math::

    p = \sigma\big(\operatorname{dropout}(\operatorname{LayerNorm}(\tanh([r_1; r_2]\, W_1 + b_1)))\, W_2 + b_2\big),

one probability per label; the loss is the mean binary cross-entropy over targets and labels, in nats. A label is
predicted if its probability is at least 0.5. Only the given spans are classified.

Source: Tenney et al. 2019, with the architecture and training of their suite: 256 features after the projection and in
the hidden layer, dropout 0.3, initial weights uniform in ± 1/√(inputs), Adam at 1e-4, gradients clipped to a norm of 5,
batches of 32 sentences with all their targets, a validation by micro-F1 every 500 batches. The rate is halved after
every 5 validations in a row that were not 1e-4 above the best; training ends after 20. The best state is kept.

Shapes: a sentence (layers, words, d), a span [start, end) in words. Range: micro-F1 in [0, 1]; mixing weights are
positive and sum to 1.

Probes of several models and seeds are trained side by side, with their parameters stacked, each as it would be alone.
All read the same batches (:mod:`~fivelenses.lenses.spans`); a seed decides the initial weights and the dropout of its
probes. Probes that stopped leave the stack.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from fivelenses.lenses.adam import adam_step
from fivelenses.lenses.arrays import Array, checked_list, checked_positive, checked_real, checked_whole
from fivelenses.lenses.span_classifier import first_parameters, logits
from fivelenses.lenses.spans import SpanBatch, SpanTargets, Split, Target, checked_split

MAX_GRADIENT_NORM, TOLERANCE = 5.0, 1e-4

# Sentences classified at once.
SENTENCES_AT_ONCE = 64
MOST = 1_000_000  # of units, batches and validations; far more than any probe has


@dataclass(frozen=True, eq=False)
class EdgeProbe:
    """A trained probe.

    Attributes:
        model: the number of the model that it reads.
        seed: of its initial weights and its dropout.
        micro_f1: on the test targets, in [0, 1].
        precision: micro-averaged, 0 if no label was predicted.
        recall: micro-averaged. A label that does not occur in training counts as missed.
        labels: of its outputs, sorted.
        mixing: (layers,) the weights s of the layers; (1,) for a probe of the top layer.
        scale: γ, by which the mixture is multiplied; 1 for a probe of the top layer.
        history: a row per validation with the columns batches, learning_rate, training_loss, development_f1.
        parameters: by name, float32.
    """

    model: int
    seed: int
    micro_f1: float
    precision: float
    recall: float
    labels: tuple[str, ...]
    mixing: np.ndarray
    scale: float
    history: pd.DataFrame
    parameters: dict[str, torch.Tensor]

    def predict(self, sentences: Sequence[Array], targets: Sequence[Target]) -> np.ndarray:
        """The probability of each label for each target, (targets, labels).

        Raises:
            ValueError: targets or vectors that :func:`fit` would refuse, or whose shape differs from training.
        """
        top = "mix" not in self.parameters
        given = SpanTargets(([sentences], targets), self.labels, top=top)
        spans, d = len(self.parameters["attend"]), len(self.parameters["project"])
        if given.shape != (1, len(self.mixing), d, spans):
            raise ValueError(
                f"The probe reads {len(self.mixing)} layers of {d} features and {spans} spans, and was given "
                f"{given.shape[1]} of {given.shape[2]} and {given.shape[3]}."
            )
        stacked = {name: values[None] for name, values in self.parameters.items()}
        batches = given.batches(SENTENCES_AT_ONCE, [0], device=self.parameters["project"].device)
        with torch.no_grad():
            ordered = torch.cat([logits(stacked, [0], batch)[0] for batch in batches])
        probabilities = np.empty((len(given), len(self.labels)), dtype=np.float32)
        probabilities[given.order] = ordered.sigmoid().cpu().numpy()
        return probabilities


class _Stack:
    """Probes in training: parameters and Adam's moments stacked, (probes, …), with the model and seed of each."""

    def __init__(
        self, initial: list[dict[str, torch.Tensor]], models: list[int], seeds: list[int], device: torch.device
    ) -> None:
        self.parameters = {name: torch.stack([one[name] for one in initial]).to(device) for name in initial[0]}
        self.moments = [{name: torch.zeros_like(v) for name, v in self.parameters.items()} for _ in range(2)]
        self.models, self.seeds = models, seeds
        self.steps = 0

    def keep(self, mask: np.ndarray) -> None:
        """Drop the probes for which the mask is False."""
        stay = np.flatnonzero(mask).tolist()
        self.parameters, *self.moments = (
            {name: values[stay] for name, values in stacked.items()} for stacked in (self.parameters, *self.moments)
        )
        self.models, self.seeds = ([values[probe] for probe in stay] for values in (self.models, self.seeds))

    def step(self, batch: SpanBatch, dropout: torch.Tensor | None, rates: np.ndarray) -> torch.Tensor:
        """Train on a batch with the dropout's factors (probes, targets, hidden); returns the losses, (probes,)."""
        for values in self.parameters.values():
            values.requires_grad_()
        outputs = logits(self.parameters, self.models, batch, dropout)
        truth = batch.truth.expand_as(outputs)
        losses = binary_cross_entropy_with_logits(outputs, truth, reduction="none").mean((1, 2))
        gradients = dict(zip(self.parameters, torch.autograd.grad(losses.sum(), self.parameters.values()), strict=True))
        self.steps += 1
        with torch.no_grad():
            for values in self.parameters.values():
                values.requires_grad_(False)
            squares = sum(torch.linalg.vector_norm(v.flatten(1), dim=1).square() for v in gradients.values())
            factors = (MAX_GRADIENT_NORM / squares.sqrt()).clamp(max=1)
            for values in gradients.values():
                values.mul_(factors.reshape(-1, *[1] * (values.ndim - 1)))
            self._adam(gradients, rates)
        return losses.detach()

    def _adam(self, gradients: dict[str, torch.Tensor], rates: np.ndarray) -> None:
        """A step of Adam in place: one for all probes while their rates are equal."""
        equal = len(set(rates.tolist())) == 1
        for probe in [slice(None)] if equal else range(len(rates)):
            values, own_gradients, *moments = (
                [tensor[probe] for tensor in stacked.values()]
                for stacked in (self.parameters, gradients, *self.moments)
            )
            steps = [one.new_full((), self.steps - 1) for one in values]
            adam_step(values, own_gradients, moments, steps, rates[0] if equal else rates[probe])


@torch.enable_grad()
def fit(
    training: Split,
    development: Split,
    test: Split,
    seeds: Sequence[int] = (0,),
    *,
    layers: Literal["mix", "top"] = "mix",
    projection: int = 256,
    hidden: int = 256,
    dropout: float = 0.3,
    learning_rate: float = 1e-4,
    batch_size: int = 32,
    validate_every: int = 500,
    max_validations: int = 200,
    halve_after: int = 5,
    stop_after: int = 20,
    order_seed: int = 0,
    device: str | torch.device | None = None,
) -> list[EdgeProbe]:
    """Train a probe for each model and seed, side by side.

    Args:
        training: per model its vectors, (layers, words, d) per sentence, of any floating precision; and the targets.
            Vectors are converted batch by batch, so they may lie in memory maps.
        development: decides which state is kept.
        test: what the probes are measured on.
        seeds: one probe per model is trained from each.
        layers: "mix" learns a mixture of all given layers, "top" reads the last.
        projection: features after the projection.
        hidden: units of the hidden layer.
        dropout: the share of hidden units left out in training, in [0, 1).
        learning_rate: of Adam.
        batch_size: sentences per batch.
        validate_every: batches between two validations.
        max_validations: training ends after this number of validations at the latest.
        halve_after: validations without improvement after which the rate is halved.
        stop_after: validations without improvement after which training ends.
        order_seed: of the order of sentences.
        device: where to compute, by default that of the first vectors.

    Returns:
        The probes, model by model, those of one model in the order of the seeds.

    Raises:
        ValueError: no target, a span that is empty or leaves its sentence, targets of which only some have a second
            span, no label in training, vectors that do not fit each other, NaN or infinity, numbers below 1, or a
            training that diverged.

    Example:
        >>> vectors = [np.eye(4, dtype=np.float32)[None, [i % 4, 3]] for i in range(40)]
        >>> targets = [Target(i, (0, 1), None, {"even" if i % 2 == 0 else "odd"}) for i in range(40)]
        >>> split = ([vectors], targets)
        >>> probe, = fit(split, split, split, learning_rate=0.01, validate_every=10, max_validations=10)
        >>> probe.micro_f1, probe.predict(vectors, targets[:2]).argmax(1)
        (1.0, array([0, 1]))
    """
    if layers not in ("mix", "top"):
        raise ValueError(f"layers = {layers!r}: mix all of them with 'mix', or read the last with 'top'.")
    counts = {"projection": projection, "hidden": hidden, "batch_size": batch_size, "validate_every": validate_every}
    counts |= {"max_validations": max_validations, "halve_after": halve_after, "stop_after": stop_after}
    for name, count in counts.items():
        checked_whole(name, count, 1, MOST)
    seeds = [checked_whole("A seed", seed) for seed in checked_list("seeds", seeds)]
    if not seeds:
        raise ValueError("There is no seed: give at least one.")
    order_seed = checked_whole("order_seed", order_seed)
    if not 0 <= checked_real("dropout", dropout) < 1:
        raise ValueError(f"dropout = {dropout}: give a share in [0, 1).")
    learning_rate = checked_positive("learning_rate", learning_rate)
    labels = tuple(sorted({label for target in checked_split(training, "training")[1] for label in target.labels}))
    if not labels:
        raise ValueError("No training target has a label: there is nothing to learn.")
    top = layers == "top"
    splits = [
        SpanTargets(split, labels, name, top)
        for split, name in ((training, "training"), (development, "development"), (test, "test"))
    ]
    if len({split.shape for split in splits}) > 1:
        raise ValueError(
            f"The splits differ in (models, layers, features, spans): {[split.shape for split in splits]}."
        )
    models, depth, d, spans = splits[0].shape
    device = torch.device(splits[0].device if device is None else device)
    random = {seed: torch.Generator().manual_seed(seed) for seed in seeds}
    widths = None if top else depth, d, spans, projection, hidden, len(labels)
    initial = {seed: first_parameters(*widths, own) for seed, own in random.items()}
    of_model = [model for model in range(models) for _ in seeds]
    of_seed = seeds * models
    stack = _Stack([initial[seed] for seed in of_seed], of_model, of_seed, device)
    best = {name: values.clone() for name, values in stack.parameters.items()}
    running = np.arange(len(of_seed))
    rates, best_f1 = np.full(len(running), float(learning_rate)), np.full(len(running), -np.inf)
    waited = np.zeros(len(running), dtype=int)
    rows = []
    stream = _endless(splits[0], batch_size, stack, torch.Generator().manual_seed(order_seed), device)
    for validation in range(1, max_validations + 1):
        total = 0.0
        for _ in range(validate_every):
            batch = next(stream)
            factors = _dropout_factors(stack.seeds, random, (len(batch.truth), hidden), dropout, device)
            total = total + stack.step(batch, factors, rates[running])
        losses = (total / validate_every).cpu().numpy()
        if not np.isfinite(losses).all():
            raise ValueError(f"Training diverged before validation {validation}: scale the vectors or the rate down.")
        f1 = _scores(stack.parameters, stack.models, splits[1], device)[:, 0]
        batches = [validation * validate_every] * len(running)
        rows += zip(running.tolist(), batches, rates[running], losses, f1, strict=True)
        improved = f1 > best_f1[running] + TOLERANCE
        for name, values in stack.parameters.items():
            best[name][running[improved]] = values[np.flatnonzero(improved).tolist()]
        best_f1[running[improved]] = f1[improved]
        waited[running] = np.where(improved, 0, waited[running] + 1)
        rates[running] *= np.where((waited[running] > 0) & (waited[running] % halve_after == 0), 0.5, 1)
        going = waited[running] < stop_after
        if not going.any():
            break
        if not going.all():
            stack.keep(going)
            running = running[going]
    columns = ["probe", "batches", "learning_rate", "training_loss", "development_f1"]
    history = pd.DataFrame(rows, columns=columns)
    scores = _scores(best, of_model, splits[2], device)
    probes = []
    for probe, (model, seed) in enumerate(zip(of_model, of_seed, strict=True)):
        own = {name: values[probe].clone() for name, values in best.items()}
        mixing = own["mix"].softmax(0).cpu().numpy() if "mix" in own else np.ones(1, dtype=np.float32)
        scale = float(own["scale"]) if "scale" in own else 1.0
        of_probe = history[history.probe == probe].drop(columns="probe").reset_index(drop=True)
        probes.append(EdgeProbe(model, seed, *scores[probe].tolist(), labels, mixing, scale, of_probe, own))
    return probes


def _endless(
    split: SpanTargets, size: int, stack: _Stack, order: torch.Generator, device: torch.device
) -> Iterator[SpanBatch]:
    """Batches of all sentences, in a new order each time, with the words of the models that are still probed."""
    while True:
        yield from split.batches(size, sorted(set(stack.models)), order, device)


def _dropout_factors(
    seeds: list[int], random: dict[int, torch.Generator], shape: tuple[int, int], dropout: float, device: torch.device
) -> torch.Tensor | None:
    """The factors of the hidden units, (probes, targets, hidden), the same for all probes of a seed."""
    if not dropout:
        return None
    drawn = {
        seed: (torch.rand(shape, generator=random[seed]) >= dropout) / (1 - dropout) for seed in sorted(set(seeds))
    }
    return torch.stack([drawn[seed] for seed in seeds]).to(device)


@torch.no_grad()
def _scores(
    parameters: dict[str, torch.Tensor], models: list[int], split: SpanTargets, device: torch.device
) -> np.ndarray:
    """Micro-averaged F1, precision and recall of each probe, (probes, 3), 0 where there was no label to predict."""
    correct = predicted = wanted = 0
    for batch in split.batches(SENTENCES_AT_ONCE, sorted(set(models)), device=device):
        positive = logits(parameters, models, batch) >= 0
        correct = correct + (positive & batch.truth.bool()).sum((1, 2))
        predicted = predicted + positive.sum((1, 2))
        wanted = wanted + int(batch.truth.sum())
    correct, predicted = (counts.cpu().numpy().astype(float) for counts in (correct, predicted))
    wanted += split.unknown
    f1 = 2 * correct / np.maximum(predicted + wanted, 1)
    return np.stack([f1, correct / np.maximum(predicted, 1), correct / max(wanted, 1)], 1)
