"""How near a cell of a landscape comes to the device's rate of matrix products, and what bfloat16 costs in accuracy.

    python bench/evaluation_rate.py [--quick]

First the loss of a sequence classifier of the shapes of BERT-base and BERT-large, with random weights, on examples of
128 pieces: of the whole encoder, and of its top third, where the states that enter it are kept. An evaluation's
operations are those of its matrix products, 24nh² + 4n²h a layer and example of n pieces and width h. Its rate stands
beside that of the largest of these products alone, measured in the same precision.

Then the training loss of a fine-tuned toy BERT along the way from its start through its end, in both precisions: the
largest difference in any of the cells, beside the standard error that a cell has anyway.
"""

import sys
import time
from collections.abc import Callable

import datasets
import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification

from fivelenses import tasks
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import Schedule, specify
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import difference, layer_parameters
from fivelenses.lenses.landscape import curve, grid
from fivelenses.models import encoders, thirds
from fivelenses.models.layers import layer_list
from fivelenses.tasks.examples import encode

SHAPES = {
    "BERT-base": BertConfig(),
    "BERT-large": BertConfig(num_hidden_layers=24, hidden_size=1024, num_attention_heads=16, intermediate_size=4096),
}
PIECES, COUNTS = 128, {"cpu": 8, "cuda": 1024}  # of an example, and examples of an evaluation
REPEATS = 3
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
ENCODER, TASK = "toy-bert/seed-0", "mrpc"
CELL = 200  # examples, as chapter 3 takes for a cell on real data


def seconds(compute: Callable[[], object], device: str) -> float:
    """The least of a few calls after a first one, which a busy neighbour lengthens least."""
    taken = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        compute()
        if device == "cuda":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return min(taken[1:])


def matrix_rate(width: int, rows: int, precision: torch.dtype | None, device: str) -> float:
    """Operations a second of the product that widens hidden states fourfold."""
    left = torch.randn(rows, width, dtype=precision or torch.float32, device=device)
    right = torch.randn(width, 4 * width, dtype=left.dtype, device=device)
    return 2 * rows * width * 4 * width / seconds(lambda: left @ right, device)


def random_examples(count: int, vocabulary: int) -> datasets.Dataset:
    pieces = np.random.default_rng(0).integers(0, vocabulary, (count, PIECES))
    return datasets.Dataset.from_dict(
        {"input_ids": pieces, "attention_mask": np.ones_like(pieces), "labels": np.arange(count) % 2}
    )


def rates(shape: str, count: int, device: str) -> None:
    torch.manual_seed(0)
    model = BertForSequenceClassification(SHAPES[shape]).eval().to(device)
    examples, width, depth = random_examples(count, 30_000), model.config.hidden_size, len(layer_list(model))
    for name, layers in (("whole", range(1, depth + 1)), ("top third", thirds(depth)["high"])):
        operations = len(layers) * count * (24 * PIECES * width**2 + 4 * PIECES**2 * width)
        for precision, lower in PRECISIONS.items():
            loss = ClassifierLoss(model, examples, layers, autocast=lower)
            point = layer_parameters(model, layers)
            taken = seconds(lambda loss=loss, point=point: loss(point), device)
            rate, most = operations / taken, matrix_rate(width, count * PIECES, lower, device)
            print(
                f"{shape:<20}{name:<11}{precision:<9}{1000 * taken / count:>9.2f} ms{rate / 1e12:>9.2f}"
                f"{most / 1e12:>11.2f}{rate / most:>8.0%}",
                flush=True,
            )


def error_of_bfloat16(device: str) -> None:
    specification = specify(ENCODER, TASK, "toyworld", 0, Schedule(7e-4, 32, 1), examples=320)
    checkpoint = prepare([specification])[0]
    model, layers = checkpoint.model().to(device), range(1, 7)
    start = layer_parameters(encoders.load_weights(encoders.locate(ENCODER)).to(device), layers)
    tokenizer = encoders.tokenizer(encoders.locate(ENCODER))
    examples = encode(tasks.load(TASK, "toyworld"), "validation", tokenizer, PIECES).select(range(CELL))
    direction = difference(layer_parameters(model, layers), start)
    found = [
        curve(ClassifierLoss(model, examples, layers, autocast=lower), start, direction, grid(-1, 2, 13))
        for lower in PRECISIONS.values()
    ]
    loss, error = (np.abs(getattr(found[1], name) - getattr(found[0], name)).max() for name in ("loss", "error"))
    cells = found[0]
    print(
        f"{len(cells.loss)} cells, losses from {cells.loss.min():.3f} to {cells.loss.max():.3f} nats: bfloat16 "
        f"moves a loss by at most {loss:.4f} nats and an error rate by at most {error:.4f}; the standard errors of a "
        f"cell of {examples.num_rows} examples are {np.median(cells.loss_standard_error):.4f} and "
        f"{np.median(cells.error_standard_error):.4f}."
    )


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"{torch.cuda.get_device_name() if device == 'cuda' else 'CPU'}, {torch.get_num_threads()} threads")
    print(f"{'':<40}{'an example':>12}{'TFLOP/s':>9}{'product':>11}{'share':>8}")
    for shape in list(SHAPES)[:1] if "--quick" in sys.argv else SHAPES:
        rates(shape, COUNTS[device], device)
    error_of_bfloat16(device)


if __name__ == "__main__":
    main()
