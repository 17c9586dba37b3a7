r"""Edge probes: what a small classifier reads about one or two spans of words from a frozen encoder's vectors.

Of a sentence's vectors :math:`x^l` (words, d) in the layers l = 0…L, for each of one or two spans, and with their own
parameters for each,

.. math::

    h_i = \Big(\gamma \sum_l s_l\, x^l_i\Big) P + b, \quad s = \operatorname{softmax}(w); \qquad
    r = \sum_{i \in \mathrm{span}} a_i h_i, \quad a = \operatorname{softmax}_{i \in \mathrm{span}}(h_i \cdot v);

.. math::

    p = \sigma\big(\operatorname{dropout}(\operatorname{LayerNorm}(\tanh([r_1; r_2]\, W_1 + b_1)))\, W_2 + b_2\big),

one probability for each label, and the loss is the mean binary cross-entropy over targets and labels, in nats. A label
is given where its probability is at least 0.5. Only the spans that are given are classified.

Source: Tenney et al. 2019, with the architecture and training of their suite: 256 features after the projection and in
the hidden layer, dropout 0.3, first weights uniform in ± 1/√(inputs), Adam at 1e-4, gradients cut to a norm of 5,
batches of 32 sentences with all their targets, a validation every 500 batches by micro-F1, the rate halved when 5 in a
row were not 1e-4 above the best, the end when 20 were. The best state is kept.

Shapes: a sentence (layers, words, d), a span [start, end) in words. Range: micro-F1 in [0, 1]; mixing weights are
positive and sum to 1.

Probes of several models and seeds are trained side by side, with their parameters stacked, each as it would be alone.
All meet the same batches; a seed decides the first weights and the dropout of its probes. Probes that stopped leave the
stack. What a batch is, :mod:`~fivelenses.lenses.spans` says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim.adam import adam

from fivelenses.lenses.arrays import Array
from fivelenses.lenses.span_classifier import first_parameters, logits
from fivelenses.lenses.spans import SpanBatch, SpanTargets, Split, Target

LARGEST_GRADIENT, TOLERANCE = 5.0, 1e-4

# Sentences classified at once.
SENTENCES_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class EdgeProbe:
    """A trained probe.

    Attributes:
        model: which of the models it reads.
        seed: of its first weights and its dropout.
        micro_f1: on the test targets, in [0, 1].
        precision: micro-averaged, 0 where no label was given.
        recall: micro-averaged. A label that training never showed is missed.
        labels: what its outputs stand for, sorted.
        mixing: (layers,) the weights s of the layers; (1,) for the top layer only.
        scale: γ, by which the mixture is multiplied; 1 for the top layer only.
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
            ValueError: targets or vectors that :func:`fit` would refuse, or of another shape than in training.
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
            said = torch.cat([logits(stacked, [0], batch)[0] for batch in batches])
        probabilities = np.empty((len(given), len(self.labels)), dtype=np.float32)
        probabilities[given.order] = said.sigmoid().cpu().numpy()
        return probabilities


class _Stack:
    """Probes in training: their parameters and Adam's moments stacked, (probes, …), and where each is from."""

    def __init__(
        self, first: list[dict[str, torch.Tensor]], models: list[int], seeds: list[int], device: torch.device
    ) -> None:
        self.parameters = {name: torch.stack([one[name] for one in first]).to(device) for name in first[0]}
        self.moments = [{name: torch.zeros_like(v) for name, v in self.parameters.items()} for _ in range(2)]
        self.models, self.seeds = models, seeds
        self.steps = 0

    def keep(self, chosen: np.ndarray) -> None:
        """Leave all but the chosen probes, a mask, out."""
        places = np.flatnonzero(chosen).tolist()
        self.parameters, *self.moments = (
            {name: values[places] for name, values in stacked.items()} for stacked in (self.parameters, *self.moments)
        )
        self.models, self.seeds = ([values[place] for place in places] for values in (self.models, self.seeds))

    def step(self, batch: SpanBatch, kept: torch.Tensor | None, rates: np.ndarray) -> torch.Tensor:
        """Train on a batch, ``kept`` (probes, targets, hidden) the dropout's factors; the loss of each, (probes,)."""
        for values in self.parameters.values():
            values.requires_grad_()
        said = logits(self.parameters, self.models, batch, kept)
        truth = batch.truth.expand_as(said)
        losses = binary_cross_entropy_with_logits(said, truth, reduction="none").mean((1, 2))
        gradients = dict(zip(self.parameters, torch.autograd.grad(losses.sum(), self.parameters.values()), strict=True))
        self.steps += 1
        with torch.no_grad():
            for values in self.parameters.values():
                values.requires_grad_(False)
            squares = sum(torch.linalg.vector_norm(v.flatten(1), dim=1).square() for v in gradients.values())
            cut = (LARGEST_GRADIENT / squares.sqrt()).clamp(max=1)
            for values in gradients.values():
                values.mul_(cut.reshape(-1, *[1] * (values.ndim - 1)))
            self._adam(gradients, rates)
        return losses.detach()

    def _adam(self, gradients: dict[str, torch.Tensor], rates: np.ndarray) -> None:
        """A step of Adam in place by torch's fused kernel: one for all probes while their rates are equal."""
        equal = len(set(rates.tolist())) == 1
        for place in [slice(None)] if equal else range(len(rates)):
            lists = [
                [values[place] for values in stacked.values()]
                for stacked in (self.parameters, gradients, *self.moments)
            ]
            counted = [values.new_full((), self.steps - 1) for values in lists[0]]
            rate = float(rates[0] if equal else rates[place])
            adam(
                *lists,
                [],
                counted,
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=rate,
                weight_decay=0,
                eps=1e-8,
                maximize=False,
            )


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
        training: for each model its vectors, (layers, words, d) for each sentence, of any floating precision; and the
            targets. Vectors are converted batch by batch, so they may lie in memory maps.
        development: chooses the state that is kept.
        test: what the probes are measured on.
        seeds: a probe of each model is trained from each.
        layers: "mix" learns a mixture of all layers given, "top" reads the last.
        projection: features after the projection.
        hidden: units of the hidden layer.
        dropout: the share of hidden units left out in training, in [0, 1).
        learning_rate: of Adam.
        batch_size: sentences of a batch.
        validate_every: batches between two validations.
        max_validations: after how many training ends at the latest.
        halve_after: validations without improvement after which the rate is halved.
        stop_after: validations without improvement after which training ends.
        order_seed: of the order of sentences.
        device: where to compute, by default where the first vectors are.

    Returns:
        The probes, model by model, and of each model in the order of the seeds.

    Raises:
        ValueError: no target, a span that is empty or leaves its sentence, targets of which only some have a second
            span, no label in training, vectors that do not fit each other, NaN or infinity, numbers below 1, or
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
    counts = (projection, hidden, batch_size, validate_every, max_validations, halve_after, stop_after, len(seeds))
    if min(counts) < 1 or not 0 <= dropout < 1:
        raise ValueError(f"Widths, batches, validations and seeds {counts} must be at least 1, dropout in [0, 1).")
    labels = tuple(sorted({label for target in training[1] for label in target.labels}))
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
    random = {int(seed): torch.Generator().manual_seed(int(seed)) for seed in seeds}
    widths = None if top else depth, d, spans, projection, hidden, len(labels)
    first = {seed: first_parameters(*widths, own) for seed, own in random.items()}
    of_model = [model for model in range(models) for _ in seeds]
    of_seed = [int(seed) for seed in seeds] * models
    stack = _Stack([first[seed] for seed in of_seed], of_model, of_seed, device)
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
            kept = _kept(stack.seeds, random, (len(batch.truth), hidden), dropout, device)
            total = total + stack.step(batch, kept, rates[running])
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
    return _results(rows, best, of_model, of_seed, labels, splits[2], device)


def _results(
    rows: list[tuple],
    best: dict[str, torch.Tensor],
    of_model: list[int],
    of_seed: list[int],
    labels: tuple[str, ...],
    test: SpanTargets,
    device: torch.device,
) -> list[EdgeProbe]:
    columns = ["probe", "batches", "learning_rate", "training_loss", "development_f1"]
    history = pd.DataFrame(rows, columns=columns)
    scores = _scores(best, of_model, test, device)
    probes = []
    for place, (model, seed) in enumerate(zip(of_model, of_seed, strict=True)):
        own = {name: values[place].clone() for name, values in best.items()}
        mixing = own["mix"].softmax(0).cpu().numpy() if "mix" in own else np.ones(1, dtype=np.float32)
        scale = float(own["scale"]) if "scale" in own else 1.0
        of_probe = history[history.probe == place].drop(columns="probe").reset_index(drop=True)
        probes.append(EdgeProbe(model, seed, *scores[place].tolist(), labels, mixing, scale, of_probe, own))
    return probes


def _endless(
    split: SpanTargets, size: int, stack: _Stack, order: torch.Generator, device: torch.device
) -> Iterator[SpanBatch]:
    """Batches of all sentences in a new order each time, with the words of the models that are still probed."""
    while True:
        yield from split.batches(size, sorted(set(stack.models)), order, device)


def _kept(
    seeds: list[int], random: dict[int, torch.Generator], shape: tuple[int, int], dropout: float, device: torch.device
) -> torch.Tensor | None:
    """What dropout multiplies hidden units by, (probes, targets, hidden), the same for all probes of a seed."""
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
    """Micro-averaged F1, precision and recall of each probe, (probes, 3), 0 where nothing was or could be found."""
    right = given = wanted = 0
    for batch in split.batches(SENTENCES_AT_ONCE, sorted(set(models)), device=device):
        said = logits(parameters, models, batch) >= 0
        right = right + (said & batch.truth.bool()).sum((1, 2))
        given = given + said.sum((1, 2))
        wanted = wanted + int(batch.truth.sum())
    right, given = (counts.cpu().numpy().astype(float) for counts in (right, given))
    wanted += split.unknown
    return np.stack(
        [2 * right / np.maximum(given + wanted, 1), right / np.maximum(given, 1), right / max(wanted, 1)], 1
    )
