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

Source: Tenney et al. 2019, with the architecture and training of their suite: the sizes and rates that
:class:`Configuration` has by default, dropout 0.3, initial weights uniform in ± 1/√(inputs), Adam on batches of
sentences with all their targets, gradients clipped to a norm of 5. The rate is halved after every 5 validations by
micro-F1 in a row that were not 1e-4 above the best; training ends after 20, and the best state is kept. Their attention
also adds a constant, which changes no softmax.

Shapes: a sentence (layers, words, d), a span [start, end) in words. Range: probabilities in [0, 1]. Probes of several
models and seeds are trained side by side on the same batches.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product, repeat
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, embedding_bag, layer_norm

from fivelenses.lenses.arrays import Array, as_tensor, check_sentence
from fivelenses.lenses.training import Batches, Plan, Stack, by_autograd, train

DROPOUT, MAX_GRADIENT_NORM = 0.3, 5.0
TOLERANCE, HALVE_AFTER, STOP_AFTER = 1e-4, 5, 20
SENTENCES_AT_ONCE = 64  # that are classified, outside training


@dataclass(frozen=True)
class Target:
    """One or two spans of a sentence to classify, [start, end) in words, with the correct labels."""

    sentence: int
    span1: tuple[int, int]
    span2: tuple[int, int] | None
    labels: Collection[str]


# Per model the vectors of the same sentences; and the targets in them.
Split = tuple[Sequence[Sequence[Array]], Sequence[Target]]


@dataclass(frozen=True)
class Configuration:
    """What a probe is and how it is trained.

    Attributes:
        layers: "mix" learns a mixture of all given layers, "top" reads the last.
        projection, hidden: features after the projection, units of the hidden layer.
        learning_rate, batch_size: of Adam, and sentences per batch.
        validate_every, max_validations: batches between two validations, and how many of these there are at most.
    """

    layers: Literal["mix", "top"] = "mix"
    projection: int = 256
    hidden: int = 256
    learning_rate: float = 1e-4
    batch_size: int = 32
    validate_every: int = 500
    max_validations: int = 200


@dataclass(frozen=True, eq=False)
class EdgeProbe:
    """A trained probe.

    Attributes:
        model, seed: the number of the model that it reads, and the seed of its initial weights and its dropout.
        labels: of its outputs, sorted.
        score: micro-F1 on the development targets, in [0, 1].
        parameters: by name, float32; the mixture of layers is softmax(``mix``).
    """

    model: int
    seed: int
    labels: tuple[str, ...]
    score: float
    parameters: dict[str, torch.Tensor]

    @torch.no_grad()
    def predict(self, sentences: Sequence[Array], targets: Sequence[Target]) -> np.ndarray:
        """The probability of each label for each target, (targets, labels)."""
        split = SpanTargets(([sentences], targets), self.labels, top="mix" not in self.parameters)
        stacked = {name: values[None] for name, values in self.parameters.items()}
        batches = split.batches(SENTENCES_AT_ONCE, [0], self.parameters["project"].device)
        ordered = torch.cat([logits(stacked, [0], batch)[0] for batch in batches])
        return ordered.sigmoid().cpu().numpy()[np.argsort(split.order)]


def fit(
    training: Split,
    development: Split,
    seeds: Sequence[int] = (0,),
    device: str | torch.device | None = None,
    **how: object,
) -> list[EdgeProbe]:
    """Probes for each model and seed, model by model, those of one model in the order of the seeds.

    Args:
        training: per model its vectors, (layers, words, d) per sentence, of any floating precision; and the targets.
            Vectors are converted batch by batch, so they may lie in memory maps.
        development: decides which state is kept.
        device: where to compute, by default that of the first vectors.
        how: the fields of :class:`Configuration`.

    Refused: a training split without a label, spans outside their sentence, vectors that do not fit each other or are
    not finite, and a training that diverged.

    Example:
        >>> vectors = [np.eye(4, dtype=np.float32)[None, [i % 4, 3]] for i in range(40)]
        >>> targets = [Target(i, (0, 1), None, {"even" if i % 2 == 0 else "odd"}) for i in range(40)]
        >>> split = ([vectors], targets)
        >>> probe, = fit(split, split, learning_rate=0.01, validate_every=10, max_validations=10)
        >>> probe.labels, probe.predict(vectors, targets[:2]).argmax(1)
        (('even', 'odd'), array([0, 1]))
    """
    how = Configuration(**how)
    labels = tuple(sorted({label for target in training[1] for label in target.labels}))
    if not labels:
        raise ValueError("No target of the training split has a label: give at least one.")
    named = ((training, "training"), (development, "development"))
    train_on, held_out = (SpanTargets(split, labels, name, how.layers == "top") for split, name in named)
    if train_on.shape != held_out.shape:
        raise ValueError(f"The splits differ in (models, layers, features, spans): {train_on.shape}, {held_out.shape}.")
    device = torch.device(train_on.device if device is None else device)
    of_model, of_seed = zip(*product(range(train_on.shape[0]), seeds), strict=True)
    random = {seed: torch.Generator().manual_seed(seed) for seed in seeds}
    initial = {seed: first_parameters(train_on.shape[1:], len(labels), how, own) for seed, own in random.items()}
    stack = {name: torch.stack([initial[seed][name] for seed in of_seed]).to(device) for name in initial[seeds[0]]}

    def score(stack: Stack, running: np.ndarray) -> np.ndarray:
        return -_micro_f1(stack, [of_model[probe] for probe in running], held_out, device)

    plan = Plan(how.learning_rate, how.max_validations, STOP_AFTER, TOLERANCE, 0.5, HALVE_AFTER)
    batches = _batches(train_on, of_model, how, device)
    gradient = by_autograd(_loss(of_model, of_seed, random), MAX_GRADIENT_NORM)
    best, scores = train(stack, batches, gradient, score, plan)
    return [
        EdgeProbe(model, seed, labels, -float(score), {name: values[number].clone() for name, values in best.items()})
        for number, (model, seed, score) in enumerate(zip(of_model, of_seed, scores, strict=True))
    ]


def _batches(split: "SpanTargets", of_model: Sequence[int], how: Configuration, device: torch.device) -> Batches:
    """The batches up to a validation, of a stream of all sentences, in a new order each time."""
    order, read = torch.Generator().manual_seed(0), []
    stream = chain.from_iterable(split.batches(how.batch_size, read, device, order) for _ in repeat(None))

    def until_validation(running: np.ndarray) -> Iterator["SpanBatch"]:
        # The stream reads the words of the models whose probes still train.
        read[:] = sorted({of_model[probe] for probe in running})
        return islice(stream, how.validate_every)

    return until_validation


def _loss(of_model: Sequence[int], of_seed: Sequence[int], random: dict[int, torch.Generator]):
    """The mean binary cross-entropy of each probe, (probes,), whose dropout is the same for all probes of a seed."""

    def loss(stack: Stack, running: np.ndarray, batch: SpanBatch) -> torch.Tensor:
        seeds = [of_seed[probe] for probe in running]
        shape = len(batch.truth), stack["hidden"].shape[-1]
        kept = {seed: torch.rand(shape, generator=random[seed]) >= DROPOUT for seed in sorted(set(seeds))}
        dropout = torch.stack([kept[seed] / (1 - DROPOUT) for seed in seeds]).to(batch.truth.device)
        outputs = logits(stack, [of_model[probe] for probe in running], batch, dropout)
        truth = batch.truth.expand_as(outputs)
        return binary_cross_entropy_with_logits(outputs, truth, reduction="none").mean((1, 2))

    return loss


def _micro_f1(stack: Stack, models: list[int], split: "SpanTargets", device: torch.device) -> np.ndarray:
    """The micro-averaged F1 of each probe, (probes,)."""
    correct = predicted = 0
    for batch in split.batches(SENTENCES_AT_ONCE, sorted(set(models)), device):
        positive = logits(stack, models, batch) >= 0
        correct = correct + (positive & batch.truth.bool()).sum((1, 2))
        predicted = predicted + positive.sum((1, 2))
    return (2 * correct.double() / (predicted + split.wanted).clamp(min=1)).cpu().numpy()


def first_parameters(
    shape: tuple[int, int, int], labels: int, how: Configuration, random: torch.Generator
) -> dict[str, torch.Tensor]:
    """The initial parameters of a probe of (layers, features, spans): w (mix), γ (scale), P (project), v (attend), W₁
    (hidden), the gain and shift of LayerNorm, W₂ (output); the projections of both spans stand side by side.
    """
    layers, d, spans = shape

    def uniform(inputs: int, *shape: int) -> torch.Tensor:
        return torch.empty(shape).uniform_(-(inputs**-0.5), inputs**-0.5, generator=random)

    mixture = {"mix": torch.zeros(layers), "scale": torch.ones(1)} if how.layers == "mix" else {}
    pooled, hidden = spans * how.projection, how.hidden
    return mixture | {
        "project": uniform(d, d, pooled),
        "project_bias": uniform(d, 1, pooled),
        "attend": uniform(how.projection, spans, how.projection),
        "hidden": uniform(pooled, pooled, hidden),
        "hidden_bias": uniform(pooled, 1, hidden),
        "gain": torch.ones(1, hidden),
        "shift": torch.zeros(1, hidden),
        "output": uniform(hidden, hidden, labels),
        "output_bias": uniform(hidden, 1, labels),
    }


def logits(stack: Stack, models: list[int], batch: "SpanBatch", dropout: torch.Tensor | None = None) -> torch.Tensor:
    """The logit of each probe for each target and label, (probes, targets, labels), from parameters of
    :func:`first_parameters`, the model that each probe reads (probes of one model are neighbours), and factors of the
    hidden units, (probes, targets, hidden).
    """
    words = torch.baddbmm(stack["project_bias"], _mixed(stack, models, batch), stack["project"])
    spans = _pooled(words.unflatten(-1, stack["attend"].shape[1:]), stack["attend"], batch)
    units = torch.baddbmm(stack["hidden_bias"], spans, stack["hidden"]).tanh()
    units = layer_norm(units, units.shape[-1:]) * stack["gain"] + stack["shift"]
    if dropout is not None:
        units = units * dropout
    return torch.baddbmm(stack["output_bias"], units, stack["output"])


def _mixed(stack: Stack, models: list[int], batch: "SpanBatch") -> torch.Tensor:
    """The mixture of layers that each probe reads, (probes, U, d)."""
    if "mix" not in stack:
        return torch.cat([batch.words[model][-1:] for model in models])
    weights = stack["mix"].softmax(1) * stack["scale"]
    # One product reads a model's words once for all its probes.
    of_models = weights.split([models.count(model) for model in batch.words])
    read = zip(of_models, batch.words.values(), strict=True)
    return torch.cat([(own @ words.flatten(1)).unflatten(1, words.shape[1:]) for own, words in read])


def _pooled(words: torch.Tensor, attend: torch.Tensor, batch: "SpanBatch") -> torch.Tensor:
    """Self-attentive pooling of words (probes, U, spans, features): (probes, targets, spans × features)."""
    probes, count, spans, features = words.shape
    scores = torch.cat([words[:, :, place] @ attend[:, place, :, None] for place in range(spans)], -1)
    slot = torch.arange(spans, device=words.device)[:, None]
    attention = scores[:, batch.places, slot].masked_fill(~batch.inside, -torch.inf).softmax(-1)
    widths = batch.inside.sum(-1).flatten()
    rows = (batch.places * spans + slot)[batch.inside]
    rows = (torch.arange(probes, device=words.device)[:, None] * (count * spans) + rows).flatten()
    starts = widths.repeat(probes).cumsum(0) - widths.repeat(probes)
    weights = attention[:, batch.inside].flatten()
    pooled = embedding_bag(rows, words.reshape(-1, features), starts, mode="sum", per_sample_weights=weights)
    return pooled.reshape(probes, -1, spans * features)


class SpanBatch(NamedTuple):
    """Targets of a few sentences: per model the words of their spans, (layers, U, d); their places among these, and
    which are inside a span, (targets, spans, widest); and 1 for the correct labels, (targets, labels).
    """

    words: dict[int, torch.Tensor]
    places: torch.Tensor
    inside: torch.Tensor
    truth: torch.Tensor


class SpanTargets:
    """The targets of one split, and the vectors of one or several models; of the last layer alone with ``top``.

    Its ``shape`` is (models, layers, features, spans), ``order`` (targets,) that of :meth:`batches` without ``random``,
    and ``wanted`` the number of correct labels, with those that are not among ``labels`` and cannot be predicted.
    """

    def __init__(self, split: Split, labels: Sequence[str], name: str = "given", top: bool = False) -> None:
        models, targets = split
        self._models, self._top = [[as_tensor(one) for one in sentences] for sentences in models], top
        first, spans = self._models[0], 1 if targets[0].span2 is None else 2
        self._bounds = np.array([_bounds(place, one, spans, first, name) for place, one in enumerate(targets)])
        self._truth = np.array([[label in target.labels for label in labels] for target in targets], dtype=np.float32)
        self.wanted = sum(len(set(target.labels)) for target in targets)
        of_target = np.array([target.sentence for target in targets])
        self.order = np.argsort(of_target, kind="stable")
        numbers, starts = np.unique(of_target[self.order], return_index=True)
        # Each sentence with the rows of its targets.
        self._sentences = list(zip(numbers.tolist(), np.split(self.order, starts[1:]), strict=True))
        for number, (model, sentences) in product(numbers.tolist(), enumerate(self._models)):
            check_sentence(f"Sentence {number} of model {model} in the {name} split", sentences[number], first[0])
        layers, _, d = first[0].shape
        self.shape = len(models), 1 if top else layers, d, spans
        self.device = first[0].device

    def batches(
        self, size: int, models: Sequence[int], device: torch.device, random: torch.Generator | None = None
    ) -> Iterator[SpanBatch]:
        """All targets once with the words of some models, by ``size`` sentences, in a random order or as given."""
        count = len(self._sentences)
        order = torch.arange(count) if random is None else torch.randperm(count, generator=random)
        for places in order.split(size):
            yield self._batch([self._sentences[place] for place in places.tolist()], models, device)

    def _batch(self, sentences: list[tuple[int, np.ndarray]], models: Sequence[int], device: torch.device) -> SpanBatch:
        numbers, rows_of = zip(*sentences, strict=True)
        rows, lengths = np.concatenate(rows_of), [self._models[0][number].shape[1] for number in numbers]
        before = np.cumsum([0, *lengths[:-1]]).repeat(list(map(len, rows_of)))
        bounds = self._bounds[rows] + before[:, None, None]
        places = bounds[..., :1] + np.arange((bounds[..., 1] - bounds[..., 0]).max())
        inside = places < bounds[..., 1:]
        used, positions = np.unique(places[inside], return_inverse=True)
        places[:] = 0
        places[inside] = positions
        words = {}
        for model in models:
            vectors = [self._models[model][number] for number in numbers]
            joined = torch.cat([one[-1:] for one in vectors] if self._top else vectors, 1)
            words[model] = joined[:, torch.from_numpy(used).to(joined.device)].to(device, torch.float32)
        return SpanBatch(words, *(torch.from_numpy(part).to(device) for part in (places, inside, self._truth[rows])))


def _bounds(place: int, target: Target, spans: int, sentences: list[torch.Tensor], name: str) -> list[tuple[int, int]]:
    """Start and end of each span; refused where one is no part of its sentence, or is missing or one too many."""
    words = sentences[target.sentence].shape[-2] if 0 <= target.sentence < len(sentences) else 0
    bounds = [tuple(span) for span in (target.span1, target.span2) if span is not None]
    if len(bounds) != spans or not all(0 <= start < end <= words for start, end in bounds):
        raise ValueError(
            f"Target {place} of the {name} split has the spans {bounds} in sentence {target.sentence} of {words} "
            f"words: give each target of a split {spans} inside its sentence."
        )
    return bounds
