"""Loss surfaces against one evaluation of the whole model per cell: time, peak memory, agreement, from one run.

    python bench/landscape.py [--quick] [--repeats N]

The toy BERT with a head, on the toy world's RTE; 16 points of the plane from it through two others, which differ from
it by noise in the layers that move. Both sides have the same points, examples and pieces, tokenised before. The plain
side copies the model for every cell, moves the copy's parameters, and runs it over batches of 32 in the order of the
table, padded to their longest.
"""

import copy
from collections.abc import Callable
from functools import cache
from itertools import product

import datasets
import numpy as np
import torch
from measure import HEADER, arguments, compare, report
from torch import nn
from transformers import DataCollatorWithPadding, PreTrainedModel

from fivelenses import tasks
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import difference, layer_parameters, moved
from fivelenses.lenses.landscape import curve
from fivelenses.models import encoders, heads, thirds
from fivelenses.models.layers import layer_list
from fivelenses.tasks.examples import encode

ENCODER, TASK, BATCH = "toy-bert/seed-0", "rte", 32
ALONG = np.arange(1, 5) / 4  # each direction
NOISE = 0.03


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


def summary(losses: np.ndarray) -> float:
    """A mean whose weights differ, so that exchanged cells show."""
    return float(np.average(losses, weights=np.arange(1, losses.size + 1).reshape(losses.shape)))


def plain_pass(limit: int) -> Callable[[PreTrainedModel], float]:
    """The mean loss over batches of 32 in the order of the table."""
    collate = DataCollatorWithPadding(encoders.tokenizer(encoders.locate(ENCODER)))
    rows = examples(limit).to_list()
    batches = [dict(collate(rows[first : first + BATCH])) for first in range(0, len(rows), BATCH)]
    labels = [batch.pop("labels") for batch in batches]

    @torch.no_grad()
    def measure(model: PreTrainedModel) -> float:
        losses = [
            nn.functional.cross_entropy(model(**batch).logits, label, reduction="sum").item()
            for batch, label in zip(batches, labels, strict=True)
        ]
        return sum(losses) / len(rows)

    return measure


def plain_surface(limit: np.ndarray, lowest: np.ndarray) -> float:
    start, one, other = (model.state_dict() for model in models(int(lowest)))
    measure, losses = plain_pass(int(limit)), []
    for first, second in product(ALONG, ALONG):
        model = copy.deepcopy(models(int(lowest))[0])
        along = {name: first * (one[name] - at) + second * (other[name] - at) for name, at in start.items()}
        model.load_state_dict({name: at + along[name] for name, at in start.items()})
        losses.append(measure(model))
    return summary(np.reshape(losses, (len(ALONG), len(ALONG))))


def our_surface(limit: np.ndarray, lowest: np.ndarray) -> float:
    start, one, other = models(int(lowest))
    layers = moving(start, int(lowest))
    loss = ClassifierLoss(start, examples(int(limit)), layers)
    origin, *ends = (layer_parameters(model, layers) for model in (start, one, other))
    first, second = (difference(end, origin) for end in ends)
    rows = [curve(loss, moved(origin, first, place), second, ALONG).loss for place in ALONG]
    return summary(np.stack(rows))


def main() -> None:
    quick, repeats = arguments(__doc__, "256 examples, once")
    high = thirds(len(layer_list(models(1)[0])))["high"]
    print(HEADER)
    for name, lowest in (("whole encoder", 1), ("top third", high[0])):
        inputs, warm = (np.array(256 if quick else 1500), np.array(lowest)), (np.array(32), np.array(lowest))
        plain, ours = compare(plain_surface, our_surface, inputs, warm, repeats)
        print(report(name, plain, ours), flush=True)


if __name__ == "__main__":
    main()
