r"""A fine-tuned model's twin: moved from the pre-trained model as far as training moved it, in random directions.

For a parameter :math:`\theta_0` before and :math:`\theta_1` after fine-tuning, the twin's is

.. math:: \theta_0 + \lVert \theta_1 - \theta_0 \rVert \, \frac{\varepsilon}{\lVert \varepsilon \rVert},
    \qquad \varepsilon_i \sim N(0, 1) ,

tensor by tensor, with Frobenius norms. What a lens sees in the model and in its twin alike is due to the distance and
not to what was learnt.
"""

import copy
import hashlib

import torch
from torch import nn

from fivelenses.models.layers import checked_seed, layer_list


@torch.no_grad()
def moved_at_random(tuned: nn.Module, original: nn.Module, seed: int) -> nn.Module:
    """A copy of a fine-tuned model whose encoder has moved from the pre-trained one by noise of the same norm.

    Every matrix and every vector of embeddings and layers moves by its own norm; one that training left alone stays.
    The head is kept as tuned, and so is the pooler, which is part of a head here, as are buffers. The noise is spread
    over a whole tensor: rows of the embeddings that no training example used move like the others.

    Norms are equal up to the rounding of the weights' precision, which counts where a move is hardly larger.

    Args:
        tuned: a fine-tuned transformers model, with or without a head.
        original: the pre-trained model that it came from, with or without a head.
        seed: of the noise; the draw for a parameter depends on the seed and the parameter's name alone, and is the
            same on every device.

    Returns:
        The twin, in the mode and on the device of `tuned`, which is unchanged.

    Raises:
        ValueError: encoders with different parameters or shapes, or a value that is NaN or infinite.

    Example:
        >>> from transformers import BertConfig, BertModel
        >>> shape = BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
        >>> tuned, original = BertModel(shape), BertModel(shape)
        >>> twin = moved_at_random(tuned, original, seed=0)
        >>> before, after, other = (model.encoder.layer[0].output.dense.weight for model in (original, tuned, twin))
        >>> torch.allclose((other - before).norm(), (after - before).norm()), torch.equal(other, after)
        (True, False)
    """
    seed = checked_seed(seed)
    for model in (tuned, original):
        layer_list(model)
    twin = copy.deepcopy(tuned)
    targets, origins = _encoder_parameters(twin), _encoder_parameters(original)
    unshared = sorted(set(targets) ^ set(origins))
    if unshared:
        raise ValueError(f"The models are not of one architecture: {unshared[0]!r} is in one only.")
    for name, target in targets.items():
        origin = origins[name]
        if target.shape != origin.shape:
            raise ValueError(
                f"The models are not of one architecture: {name!r} is {tuple(target.shape)} in the fine-tuned one and "
                f"{tuple(origin.shape)} in the pre-trained one."
            )
        end, start = target.double().cpu(), origin.double().cpu()
        if not (end.isfinite().all() and start.isfinite().all()):
            raise ValueError(f"{name!r} holds a weight that is not finite: take a training that did not diverge.")
        distance = torch.linalg.vector_norm(end - start)
        if distance > 0:
            noise = torch.randn(end.shape, generator=_generator(seed, name), dtype=torch.float64)
            target.copy_(start + noise * (distance / torch.linalg.vector_norm(noise)))
    return twin


def _encoder_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of embeddings and layers, named as in the base model."""
    return {name: parameter for name, parameter in model.base_model.named_parameters() if "pooler" not in name}


def _generator(seed: int, name: str) -> torch.Generator:
    # Python's own hash of a string differs from one process to the next.
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big", signed=True))
