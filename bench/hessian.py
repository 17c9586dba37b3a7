"""The top curvature of a classifier's loss against power iteration: time, peak memory, and agreement, from one run.

    python bench/hessian.py [--quick] [--repeats N]

The plain way differentiates the gradient's product with a vector again, in PyTorch alone, until the eigenvalue moves by
less than one part in a million. Ours is SciPy's Lanczos. Both estimate the trace besides, from as many draws.
"""

import datasets
import numpy as np
import torch
from measure import HEADER, arguments, compare, report
from transformers import BertConfig, BertForSequenceClassification

from fivelenses.lenses.classifier_loss import curvatures

LAYERS, HEADS = 2, 4
PRECISION, MOST = 1e-6, 3000
DRAWS = 10  # for the trace


def classifier(width: int) -> BertForSequenceClassification:
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=1000, hidden_size=width, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=4 * width, attn_implementation="eager",
    )  # fmt: skip
    return BertForSequenceClassification(shape).eval()


def plain_top(tokens: np.ndarray, labels: np.ndarray, width: np.ndarray) -> float:
    model = classifier(int(width[0]))
    parameters = list(model.bert.encoder.parameters())
    loss = model(torch.from_numpy(tokens), labels=torch.from_numpy(labels)).loss
    gradient = torch.autograd.grad(loss, parameters, create_graph=True)
    for _ in range(DRAWS):
        signs = [2.0 * torch.randint(2, one.shape) - 1 for one in parameters]
        product = torch.autograd.grad(gradient, parameters, signs, retain_graph=True)
        sum((one * other).sum() for one, other in zip(signs, product, strict=True))
    top = shift = _power(gradient, parameters, 0.0)
    # Of the largest size may be the smallest eigenvalue; from there the largest is furthest away.
    return top if top > 0 else _power(gradient, parameters, shift) + shift


def _power(gradient: list[torch.Tensor], parameters: list[torch.Tensor], shift: float) -> float:
    vector, top, before = [torch.randn_like(one) for one in parameters], 0.0, 0.0
    for _ in range(MOST):
        length = torch.sqrt(sum((one**2).sum() for one in vector))
        vector = [(one / length).detach() for one in vector]
        product = torch.autograd.grad(gradient, parameters, vector, retain_graph=True)
        product = [one - shift * other for one, other in zip(product, vector, strict=True)]
        top = float(sum((one * other).sum() for one, other in zip(vector, product, strict=True)))
        if abs(top - before) < PRECISION * abs(top):
            break
        before, vector = top, product
    return top


def ours_top(tokens: np.ndarray, labels: np.ndarray, width: np.ndarray) -> float:
    model = classifier(int(width[0]))
    examples = datasets.Dataset.from_dict(
        {"input_ids": tokens.tolist(), "attention_mask": np.ones_like(tokens).tolist(), "labels": labels.tolist()}
    )
    return curvatures(model, examples, {"encoder": list(model.bert.encoder.parameters())}, DRAWS)["encoder"].top


def batch(examples: int, length: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.integers(1, 1000, (examples, length)), np.arange(examples) % 2, np.array([width])


def main() -> None:
    quick, repeats = arguments(__doc__, "a quarter of the examples, one width, once", repeats=1)
    shapes = [(8, 16, 32)] if quick else [(32, 32, 64), (32, 32, 128)]
    print(HEADER)
    for shape in shapes:
        plain, ours = compare(plain_top, ours_top, batch(*shape), batch(4, 8, 16), repeats)
        print(report(f"top curvature {shape}", plain, ours), flush=True)


if __name__ == "__main__":
    main()
