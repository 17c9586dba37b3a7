r"""The loss and the error rate of a sequence classifier at any point of its parameter space, and the loss's curvature.

For n examples :math:`(x_i, y_i)` and a model that predicts :math:`p(y \mid x)` with parameters :math:`\theta`,

.. math::

    \mathcal{J}(\theta) = -\frac1n \sum_i \ln p_\theta(y_i \mid x_i), \qquad
    E(\theta) = \frac1n \sum_i [\arg\max_y p_\theta(y \mid x_i) \ne y_i],

in nats and in [0, 1], from one pass without dropout, each with its standard error over the examples. The means without
each fold of the examples, the same ones at every point, give the interval of what is made of many points (a width, a
correlation).

A surface takes more than a thousand passes over the same examples, so all that stays the same is computed once.
Batches of examples of like length are stored on the device, with the hidden states that enter the lowest layer that
moves, as far as memory reaches; other batches are run in full. In the last layer only the first token, which is all
that the head reads, goes through the feed-forward part. All this changes results only by rounding.

The Hessian :math:`H` of :math:`\mathcal{J}` is too large to write down. Its product with a vector,
:math:`H v = \nabla_\theta (\nabla_\theta \mathcal{J}^\top v)`, costs about two gradients (Pearlmutter 1994). Products
are all that Lanczos' method (SciPy's ``eigsh``) needs for the largest eigenvalue :math:`\lambda_1`, and Hutchinson's
for the trace: for signs :math:`z` drawn by lot, :math:`\mathrm{E}[z^\top H z] = \operatorname{tr} H`. The part of that
sum that belongs to a group of parameters estimates the trace of the group's own block, so all groups share the draws.
Both are in nats per squared unit of the parameters; times the squared length of a direction, they are in the unit in
which the widths of a basin along it are measured.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import datasets
import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import PreTrainedModel

from fivelenses.activations import Reached, first_of, labelled_batches, states_entering
from fivelenses.lenses.directions import Parameters, layer_parameters, placed
from fivelenses.lenses.landscape import Measurement, fingerprint
from fivelenses.models.layers import layer_list, part

# Tokens per batch: a processor keeps their activations in its cache, a GPU needs more to be busy; two backward passes
# keep much of a batch.
TOKENS_AT_ONCE = {"cpu": 2**11, "cuda": 2**15}
TOKENS_FORTH_AND_BACK = 2**11

STORED_MB = 1000  # that stored states may take

# The module after a layer's attention, which takes only states: from here on a token needs no other token.
AFTER_ATTENTION = dict.fromkeys(("bert", "roberta", "electra"), "attention.output") | {"distilbert": "sa_layer_norm"}
# Architectures of which it is known how the head reads the states that leave the last layer.
KNOWN_HEADS = (*AFTER_ATTENTION, "mpnet")

LANCZOS_VECTORS = 6  # each as long as the parameters
TOLERANCE = 1e-3  # of the eigenvalue, relative


@dataclass(frozen=True, eq=False)
class _Batch:
    """Places of the examples, inputs and labels on the device, and what enters the lowest moving layer if stored."""

    rows: np.ndarray
    inputs: dict[str, torch.Tensor]
    labels: torch.Tensor
    entering: tuple[torch.Tensor, list, dict] | None


class ClassifierLoss:
    """The loss of a sequence classifier as a function of some of its layers: from a point to a
    :class:`~fivelenses.lenses.landscape.Measurement`. A call leaves the model as it was.

    Args:
        model: for sequence classification, on the device of the evaluation. What lies below the layers that move is
            read here: do not change it later.
        examples: encoded, with `labels`; ``n_examples`` of them are measured.
        layers: 0…L, those that move; 0 is the embeddings.
        limit: examples drawn without replacement; all by default. A smaller draw is part of a larger one.
        autocast: a lower precision for matrix products, such as ``torch.bfloat16`` on a GPU.
        folds: gives each example's fold, ``fold_of`` (examples,), from their labels; none is left out by default.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        examples: datasets.Dataset,
        layers: Iterable[int],
        *,
        limit: int | None = None,
        autocast: torch.dtype | None = None,
        folds: Callable[[Sequence[int]], np.ndarray] | None = None,
    ) -> None:
        layers = sorted(set(layers))
        self._model, self._kind, self._autocast = model, model.config.model_type, autocast
        self._moving = frozenset(layer_parameters(model, layers))
        examples = examples.select(np.sort(np.random.default_rng(0).permutation(examples.num_rows)[:limit]))
        self.n_examples = examples.num_rows
        self._batches, room = [], STORED_MB * 2**20
        for rows, inputs, labels in labelled_batches(examples, model, TOKENS_AT_ONCE.get(model.device.type, 2**15)):
            entering = None
            if layers[0] > 0 and room > 0 and self._kind in KNOWN_HEADS:
                with suppress(Reached), self._measuring(), states_entering(model, [layers[0] - 1], True) as recorded:
                    model(**inputs)
                states, others, named = entering = recorded[layers[0] - 1]
                room -= sum(one.nbytes for one in (states, *others, *named.values()) if isinstance(one, torch.Tensor))
            # The states of the batch that exceeds the memory are not stored, and neither are those of later batches.
            self._batches.append(_Batch(rows, inputs, labels, entering if room >= 0 else None))
        self.fold_of = folds(examples["labels"]) if folds else None
        self._upper = [part(model, layer) for layer in range(max(layers[0], 1), len(layer_list(model)) + 1)]

    def __call__(self, point: Parameters) -> Measurement:
        """Measure the model with a point in place of its parameters, which names parameters of the moving layers."""
        losses, wrong = self.by_example(point)
        (loss, of_loss), (error, of_error) = _mean(losses), _mean(wrong)
        return Measurement(loss, error, of_loss, of_error, self._left_out(losses), self._left_out(wrong))

    def by_example(self, point: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each example in nats, and whether it is classified wrongly (0 or 1), in the examples' order."""
        if still := sorted(set(point) - self._moving):
            raise ValueError(f"{still[0]!r} is not of the layers that move: name those layers, or leave it out.")
        losses, wrong = [], []
        with placed(self._model, point), self._measuring():
            for batch in self._batches:
                logits = self._logits(batch).float()
                losses.append(nn.functional.cross_entropy(logits, batch.labels, reduction="none"))
                wrong.append(logits.argmax(-1) != batch.labels)
        order = np.argsort(np.concatenate([batch.rows for batch in self._batches]))
        return tuple(torch.cat(values).double().cpu().numpy()[order] for values in (losses, wrong))

    def _left_out(self, values: np.ndarray) -> tuple[float, ...]:
        """The mean without each fold; NaN where a fold is all."""
        if self.fold_of is None:
            return ()
        sums, sizes = np.bincount(self.fold_of, values), np.bincount(self.fold_of)
        with np.errstate(invalid="ignore"):
            return tuple(((values.sum() - sums) / (len(values) - sizes)).tolist())

    @property
    def identity(self) -> str:
        """A hash of the examples, the precision and the parameters that do not move."""
        batches = [batch.inputs | {"labels": batch.labels} for batch in self._batches]
        inside = {id(tensor): name for name, tensor in self._model.base_model.named_parameters()}
        state = self._model.state_dict(keep_vars=True).items()
        still = {name: tensor for name, tensor in state if inside.get(id(tensor)) not in self._moving}
        folds = None if self.fold_of is None else self.fold_of.tolist()
        return fingerprint((self._autocast, folds), *batches, still)

    def _logits(self, batch: _Batch) -> torch.Tensor:
        if batch.entering is None:
            return self._model(**batch.inputs).logits
        states, others, named = batch.entering
        for layer in self._upper:
            states = first_of(layer(states, *others, **named))
        if self._kind == "bert":
            states = self._model.base_model.pooler(states)
        elif self._kind == "distilbert":
            states = self._model.pre_classifier(states[:, 0]).relu()
        return self._model.classifier(states)

    @contextmanager
    def _measuring(self) -> Iterator[None]:
        """No gradients, no dropout, the given precision, and after the last attention the one token that heads read."""
        lower = torch.autocast(self._model.device.type, self._autocast, enabled=self._autocast is not None)
        with _evaluating(self._model, gradients=False), lower, ExitStack() as hooks:
            if self._kind in AFTER_ATTENTION:
                module = layer_list(self._model)[-1].get_submodule(AFTER_ATTENTION[self._kind])
                hook = module.register_forward_pre_hook(lambda _, states: tuple(state[:, :1] for state in states))
                hooks.callback(hook.remove)
            yield


@contextmanager
def _evaluating(model: nn.Module, gradients: bool) -> Iterator[None]:
    """No dropout, and `gradients` of all parameters or none, within a ``with`` block; modes are restored."""
    modes = {module: module.training for module in model.modules()}
    wanted = {parameter: parameter.requires_grad for parameter in model.parameters()}
    try:
        model.eval()
        if gradients:
            model.requires_grad_()
        with torch.set_grad_enabled(gradients):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
        for parameter, mode in wanted.items():
            parameter.requires_grad_(mode)


def _mean(values: np.ndarray) -> tuple[float, float]:
    """The mean of the examples' values and its standard error; NaN for a single example."""
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return float(values.mean()), deviation / math.sqrt(len(values))


@dataclass(frozen=True)
class Curvature:
    """The largest eigenvalue, ``top``, and the trace, a mean over draws, of a block of H, in nats per squared unit."""

    top: float
    trace: float
    trace_standard_error: float


def curvatures(
    model: PreTrainedModel, examples: datasets.Dataset, groups: Mapping[str, Sequence[nn.Parameter]], draws: int = 10
) -> dict[str, Curvature]:
    """The curvature of the mean cross-entropy of a sequence classifier, without dropout, in each group of parameters.

    Args:
        model: on the device of the computation; left as it was.
        examples: encoded, with `labels`.
        groups: name to parameters of the model; the first group holds the parameters of all others.
        draws: vectors of signs for the traces, at least two.

    Refused: a loss that is not finite.
    """
    whole = list(next(iter(groups.values())))
    # Attention as plain products, since the fused kernels have no second derivative.
    with _evaluating(model, gradients=True), sdpa_kernel(SDPBackend.MATH):
        products = _Products(model, examples, whole)
        signs = torch.Generator().manual_seed(0)
        parts = np.array([products.signs(whole, signs) for _ in range(draws)])
        curvature_of = {}
        for number, (name, parameters) in enumerate(groups.items()):
            ours = set(map(id, parameters))
            traces = parts[:, [id(one) in ours for one in whole]].sum(axis=1)
            error = traces.std(ddof=1) / np.sqrt(draws)
            curvature_of[name] = Curvature(_top(products, list(parameters), number), float(traces.mean()), float(error))
    return curvature_of


class _Products:
    """Products of the Hessian of the mean loss with vectors in the space of some of `whole`."""

    def __init__(self, model: PreTrainedModel, examples: datasets.Dataset, whole: Sequence[nn.Parameter]) -> None:
        self._model, self._examples = model, examples.num_rows
        self._batches = batches = [batch for _, *batch in labelled_batches(examples, model, TOKENS_FORTH_AND_BACK)]
        # The gradient of a single batch is kept for all products: one product needs as much memory in any case.
        self._kept = None
        if len(batches) == 1:
            self._kept = dict(zip(map(id, whole), self._gradients(*batches[0], whole), strict=True))

    def __call__(self, parameters: Sequence[nn.Parameter], vectors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        total = [torch.zeros_like(one) for one in parameters]
        kept = self._kept is not None
        for batch in self._batches:
            gradients = [self._kept[id(one)] for one in parameters] if kept else self._gradients(*batch, parameters)
            product = sum((gradient * vector).sum() for gradient, vector in zip(gradients, vectors, strict=True))
            parts = torch.autograd.grad(product, parameters, retain_graph=kept, materialize_grads=True)
            for sum_of, part_of in zip(total, parts, strict=True):
                sum_of += part_of
        return total

    def _gradients(self, inputs: dict, labels: torch.Tensor, parameters: Sequence[nn.Parameter]) -> tuple:
        logits = self._model(**inputs).logits
        loss = nn.functional.cross_entropy(logits, labels, reduction="sum") / self._examples
        if not loss.isfinite():
            raise ValueError("The loss is not finite at the model's parameters: a diverged model has no curvature.")
        return torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)

    def signs(self, parameters: Sequence[nn.Parameter], generator: torch.Generator) -> list[float]:
        """What each parameter adds to zᵀHz, for signs z drawn by lot."""
        drawn = [(2.0 * torch.randint(2, one.shape, generator=generator) - 1).to(one) for one in parameters]
        pairs = zip(drawn, self(parameters, drawn), strict=True)
        return [float((one.double() * product.double()).sum()) for one, product in pairs]


def _top(products: _Products, parameters: list[nn.Parameter], seed: int) -> float:
    sizes = [one.numel() for one in parameters]

    def product(vector: np.ndarray) -> np.ndarray:
        parts = torch.from_numpy(np.ascontiguousarray(vector.ravel(), dtype=np.float32)).split(sizes)
        parts = [part.view(one.shape).to(one) for part, one in zip(parts, parameters, strict=True)]
        return torch.cat([part.detach().flatten().cpu() for part in products(parameters, parts)]).numpy()

    operator = LinearOperator((sum(sizes), sum(sizes)), matvec=product, dtype=np.float32)
    start = np.random.default_rng(seed).standard_normal(sum(sizes)).astype(np.float32)
    # SciPy's own limit of iterations, ten for each parameter, exceeds ARPACK's 32 bits from 215 million parameters on.
    limits = {"ncv": min(LANCZOS_VECTORS, sum(sizes)), "maxiter": min(10 * sum(sizes), 2**31 - 1)}
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False, **limits)[0])
