r"""The curvature of a classifier's loss at its parameters: the largest eigenvalue of the Hessian, and its trace.

The Hessian :math:`H` of the mean loss :math:`\mathcal{J}` over n examples has a row and a column per parameter, too
many to write down. Its product with a vector costs about as much as two gradients (Pearlmutter 1994),

.. math::

    H v = \nabla_\theta \bigl(\nabla_\theta \mathcal{J}^\top v\bigr),

and products are all that Lanczos' method (SciPy's ``eigsh``) needs for the largest eigenvalue :math:`\lambda_1`, and
Hutchinson's for the trace: for signs :math:`z` drawn by lot, :math:`\mathrm{E}[z^\top H z] = \operatorname{tr} H`. The
part of that sum that belongs to a group of parameters estimates the trace of the group's own block, so all groups share
the draws.

Both are in nats per squared unit of the parameters: they are large where the loss bends within a short way. Multiplied
with the squared length of a direction they are in the unit in which the widths of a basin along it are measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import datasets
import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import PreTrainedModel

from fivelenses.lenses.classifier_loss import evaluating
from fivelenses.models.batches import labelled_batches

TOKENS_AT_ONCE = 2**11  # per batch, padding included: what the two backward passes keep of a batch stays small
LANCZOS_VECTORS = 6  # each as long as the parameters
TOLERANCE = 1e-3  # of the eigenvalue, relative
LARGEST = 2**31 - 1  # ARPACK counts in 32 bits


@dataclass(frozen=True)
class Curvature:
    """The curvature of the loss in the space of some parameters.

    Attributes:
        top: the largest eigenvalue of their block of the Hessian, in nats per squared unit.
        trace: of the block, the mean over draws.
        trace_standard_error: of that mean; NaN for a single draw.
    """

    top: float
    trace: float
    trace_standard_error: float


def curvatures(
    model: PreTrainedModel,
    examples: datasets.Dataset,
    groups: Mapping[str, Sequence[nn.Parameter]],
    draws: int = 10,
) -> dict[str, Curvature]:
    """The curvature of the mean cross-entropy of a sequence classifier, without dropout, in each group of parameters.

    Args:
        model: on the device of the computation; left as it was.
        examples: encoded, with `labels`; at least one.
        groups: name to parameters of the model; the first group holds the parameters of all others.
        draws: vectors of signs for the traces.
    """
    if examples.num_rows == 0:
        raise ValueError("There are no examples to measure: check the split and its cap.")
    whole = list(next(iter(groups.values())))
    with _twice_differentiable(model):
        products = _Products(model, examples, whole)
        signs = torch.Generator().manual_seed(0)
        parts = np.array([products.signs(whole, signs) for _ in range(draws)])
        curvature_of = {}
        for number, (name, parameters) in enumerate(groups.items()):
            inside = [place for place, one in enumerate(whole) if any(one is other for other in parameters)]
            traces = parts[:, inside].sum(axis=1)
            error = traces.std(ddof=1) / np.sqrt(draws) if draws > 1 else np.nan
            top = _top(products, list(parameters), number)
            curvature_of[name] = Curvature(top, float(traces.mean()), float(error))
    return curvature_of


class _Products:
    """Products of the Hessian of the mean loss with vectors in the space of some of `whole`."""

    def __init__(self, model: PreTrainedModel, examples: datasets.Dataset, whole: Sequence[nn.Parameter]) -> None:
        self._model, self._examples = model, examples.num_rows
        self._batches = batches = [batch for _, *batch in labelled_batches(examples, model, TOKENS_AT_ONCE)]
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
            for sum_of, part in zip(total, parts, strict=True):
                sum_of += part
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
    # SciPy's own limit of iterations, ten for each parameter, overflows from 215 million parameters on.
    limits = {"ncv": min(LANCZOS_VECTORS, sum(sizes)), "maxiter": min(10 * sum(sizes), LARGEST)}
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False, **limits)[0])


@contextmanager
def _twice_differentiable(model: nn.Module) -> Iterator[None]:
    """No dropout, and attention as plain products: the fused kernels have no second derivative."""
    wanted = {parameter: parameter.requires_grad for parameter in model.parameters()}
    try:
        model.requires_grad_(True)
        with evaluating(model), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        for parameter, mode in wanted.items():
            parameter.requires_grad_(mode)
