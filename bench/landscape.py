"""Loss surfaces against one evaluation of the whole model per cell: time, peak memory, agreement, from one run.

    python bench/landscape.py [--quick] [--repeats N]

The toy BERT with a head, on the toy world's RTE; 16 points of the plane from it through two others, which differ from
it by noise in the layers that move. All sides have the same points, examples and pieces, tokenised before. The plain
side copies the model for every cell, moves the copy's parameters, and runs it over batches of 32 in the order of the
table, padded to their longest. The package loss-landscapes, if it can be imported, moves all parameters of one copy and
is given that same pass as its metric. Its plane never holds the origin, and alternate rows are one cell apart: the
points are those that it does evaluate.
"""

import argparse
import copy
import importlib.util
from collections.abc import Callable
from functools import cache

import datasets
import numpy as np
import torch
from measure import HEADER, compare, report
from torch import nn
from transformers import DataCollatorWithPadding, PreTrainedModel

from fivelenses import tasks
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import difference, layer_parameters, moved
from fivelenses.lenses.landscape import curve
from fivelenses.models import encoders, heads, thirds
from fivelenses.models.layers import layer_list
from fivelenses.tasks.examples import encode

ENCODER, TASK, STEPS, BATCH = "toy-bert/seed-0", "rte", 4, 32
NOISE = 0.03
PACKAGE = "loss_landscapes"


@cache
def examples(limit: int) -> datasets.Dataset:
    data = tasks.load(TASK, "toyworld")
    return encode(data, "train", encoders.tokenizer(encoders.locate(ENCODER)), 128).select(range(limit))


@cache
def models(lowest: int) -> tuple[PreTrainedModel, PreTrainedModel, PreTrainedModel]:
    """A start and two ends, which differ from it from a layer on."""
    torch.manual_seed(0)
    start = heads.build(encoders.locate(ENCODER), "sequence", tasks.load(TASK, "toyworld").labels).eval()
    ends = copy.deepcopy(start), copy.deepcopy(start)
    for end in ends:
        for parameter in layer_parameters(end, moving(start, lowest)).values():
            parameter.add_(NOISE * torch.randn(parameter.shape))
    return start, *ends


def moving(model: PreTrainedModel, lowest: int) -> range:
    return range(lowest, len(layer_list(model)) + 1)


def points() -> list[tuple[float, np.ndarray]]:
    """Rows of the package's plane: the first coordinate, and the second ones as they are reached."""
    along = np.arange(STEPS + 1) / STEPS
    return [(row / STEPS, along[:-1] if row % 2 else along[1:]) for row in range(STEPS)]


def summary(losses: np.ndarray) -> float:
    """A mean whose weights differ, so that exchanged cells show."""
    return float(np.average(losses, weights=np.arange(1, losses.size + 1).reshape(losses.shape)))


def plain_pass(limit: int) -> Callable[[Callable], float]:
    """The mean loss over batches of 32 in the order of the table."""
    collate = DataCollatorWithPadding(encoders.tokenizer(encoders.locate(ENCODER)))
    rows = examples(limit).to_list()
    batches = [dict(collate(rows[first : first + BATCH])) for first in range(0, len(rows), BATCH)]
    labels = [batch.pop("labels") for batch in batches]

    @torch.no_grad()
    def measure(model: Callable) -> float:
        losses = [
            nn.functional.cross_entropy(model(batch).logits, label, reduction="sum").item()
            for batch, label in zip(batches, labels, strict=True)
        ]
        return sum(losses) / len(rows)

    return measure


def plain_surface(limit: np.ndarray, lowest: np.ndarray) -> float:
    start, one, other = models(int(lowest))
    measure, losses = plain_pass(int(limit)), []
    for first, seconds in points():
        for second in seconds:
            model = copy.deepcopy(start)
            state = model.state_dict()
            for name, tensor in start.state_dict().items():
                along_one, along_other = (end.state_dict()[name] - tensor for end in (one, other))
                state[name] = tensor + first * along_one + second * along_other
            model.load_state_dict(state)
            losses.append(measure(lambda batch, model=model: model(**batch)))
    return summary(np.reshape(losses, (STEPS, STEPS)))


def package_surface(limit: np.ndarray, lowest: np.ndarray) -> float:
    from loss_landscapes import GeneralModelWrapper, planar_interpolation

    measure = plain_pass(int(limit))
    wrapped = [
        GeneralModelWrapper(model, [model], lambda model, batch: model(**batch)) for model in models(int(lowest))
    ]
    losses = planar_interpolation(
        *wrapped, metric=lambda wrapper: measure(wrapper.forward), steps=STEPS, deepcopy_model=True
    )
    return summary(losses)


def our_surface(limit: np.ndarray, lowest: np.ndarray) -> float:
    start, one, other = models(int(lowest))
    layers = moving(start, int(lowest))
    loss = ClassifierLoss(start, examples(int(limit)), layers)
    origin, *ends = (layer_parameters(model, layers) for model in (start, one, other))
    first, second = (difference(end, origin) for end in ends)
    rows = [curve(loss, moved(origin, first, place), second, along).loss for place, along in points()]
    return summary(np.stack(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="256 examples, once")
    parser.add_argument("--repeats", type=int, default=3, help="how often each side is measured (default 3)")
    arguments = parser.parse_args()
    limit, repeats = (256, 1) if arguments.quick else (1500, arguments.repeats)
    sides = [("plain", plain_surface)]
    if importlib.util.find_spec(PACKAGE):
        sides.append(("package", package_surface))
    else:
        print(f"The package {PACKAGE} cannot be imported: only the plain side is compared.")
    high = thirds(len(layer_list(models(1)[0])))["high"]
    print(HEADER)
    for name, lowest in (("whole encoder", 1), ("top third", high[0])):
        for side, surface in sides:
            inputs, warm = (np.array(limit), np.array(lowest)), (np.array(32), np.array(lowest))
            other, ours = compare(surface, our_surface, inputs, warm, repeats)
            print(report(f"{name}, {side}", other, ours), flush=True)


if __name__ == "__main__":
    main()
