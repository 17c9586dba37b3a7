r"""The models of Hao et al. (2019), the planes through them, and their losses.

A model has been trained on a task from a start :math:`\theta_0` to an end :math:`\theta_1`: from the *pre-trained*
encoder, or from *scratch*, where the start is random. All parameters of the encoder move, its embeddings too; the
pooler and the classifier keep the values that they learned. The first direction is :math:`\theta_1 - \theta_0`, the
second that of the model that was trained from the same start on another task, in the first one's length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import datasets
import torch
from transformers import PreTrainedModel

from fivelenses import tasks
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directions
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import Parameters, layer_parameters
from fivelenses.models import encoders, thirds
from fivelenses.models.layers import layer_list
from fivelenses.records import INITS, PRETRAINED, RANDOM_ENCODER, SCRATCH
from fivelenses.tasks.examples import encode, with_examples
from fivelenses.tasks.subsets import folds

RANDOM_SEED = 0  # of the first random direction


@dataclass(frozen=True, eq=False)
class Plane:
    """A trained model at its end, with its head; its start θ₀, and two directions of equal length: θ₁ − θ₀, and the one
    towards the model of the second task. `layers` are those that move, 0 for the embeddings.
    """

    model: PreTrainedModel
    layers: tuple[int, ...]
    start: Parameters
    first: Parameters
    second: Parameters

    def end(self) -> dict[str, torch.Tensor]:
        """θ₁."""
        return layer_parameters(self.model, self.layers)

    def random(self, seed: int = RANDOM_SEED) -> dict[str, torch.Tensor]:
        """A random direction of the first one's length, the null of the loss along it."""
        return directions.rescaled(directions.random_direction(self.end(), seed), self.first)


class Models:
    """The models of a run by task, init and seed; refused where on every task a training diverged.

    Args:
        checkpoints: of one encoder and its randomly initialised twin. Of those that differ in their epochs alone the
            one with the fewest is the task's model, the one with the most its long training, and the one before it what
            the long one is compared with: of two, the task's model. One whose schedule has further epochs is continued.
        second: task to the task that gives the second direction.
        device: of the planes; a GPU when there is one, by default.
    """

    def __init__(self, checkpoints: Sequence[Checkpoint], second: Mapping[str, str], device: str | None = None) -> None:
        self._second = dict(second)
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._models: dict[tuple[str, str, int], list[Checkpoint]] = {}
        self._continued: dict[tuple[str, int], Checkpoint] = {}
        for one in sorted(checkpoints, key=lambda one: one.specification.schedule.epochs):
            made = one.specification
            init = SCRATCH if made.encoder.startswith(RANDOM_ENCODER) else PRETRAINED
            if made.schedule.further_epochs:
                self._continued[made.task, made.seed] = one
            else:
                self._models.setdefault((made.task, init, made.seed), []).append(one)
        if not any(self.converged(task, seed) for task, _, seed in self._models):
            raise ValueError(
                "On every task a training diverged, or one of the task that gives the second direction, so that there "
                "is no landscape to look at: lower learning_rate."
            )

    def converged(self, task: str, seed: int) -> bool:
        """Whether no training diverged that the landscapes of a task and seed need: both inits are compared, and both
        take their second direction from another task.
        """
        needed = [(name, init, seed) for name in (task, self._second[task]) for init in INITS]
        return not any(self.ordinary(*key).manifest["diverged"] for key in needed if key in self._models)

    def ordinary(self, task: str, init: str, seed: int) -> Checkpoint:
        """The task's model."""
        return self._models[task, init, seed][0]

    def finished_and_long(self, task: str, seed: int) -> tuple[Checkpoint, Checkpoint]:
        """The two fine-tuned models that were trained for longest."""
        finished, long = self._models[task, PRETRAINED, seed][-2:]
        return finished, long

    def continued(self, task: str, seed: int) -> Checkpoint:
        """The fine-tuned model that was trained on after its first epochs."""
        return self._continued[task, seed]

    def start(self, task: str, init: str, seed: int, layers: Sequence[int]) -> dict[str, torch.Tensor]:
        """The parameters that a model was trained from; a random start was saved in half precision, which moves a
        parameter by at most 1/2048 of itself.
        """
        checkpoint = self.ordinary(task, init, seed)
        if init == SCRATCH:
            return layer_parameters(checkpoint.model_at(0), layers)
        return layer_parameters(encoders.load_weights(encoders.locate(checkpoint.specification.encoder)), layers)

    def plane(
        self, task: str, init: str, seed: int, layers: Sequence[int] | None = None, model: PreTrainedModel | None = None
    ) -> Plane:
        """The plane of the task's model, or of another `model`, and of the one trained from the same start on the
        second task; all layers and the embeddings move by default.
        """
        model = model or self.ordinary(task, init, seed).model()
        layers = tuple(range(len(layer_list(model)) + 1) if layers is None else layers)
        other = layer_parameters(self.ordinary(self._second[task], init, seed).model(), layers)
        start = self.start(task, init, seed, layers)
        first = directions.difference(layer_parameters(model, layers), start)
        second = directions.rescaled(directions.difference(other, start), first)
        moved = ({name: part.to(self._device) for name, part in one.items()} for one in (start, first, second))
        return Plane(model.to(self._device), layers, *moved)

    def planes_of_thirds(self, task: str, seed: int) -> dict[str, Plane]:
        """The planes of the low, middle and high thirds of a fine-tuned model's layers, without its embeddings."""
        groups = thirds(len(layer_list(self.ordinary(task, PRETRAINED, seed).model())))
        return {name: self.plane(task, PRETRAINED, seed, layers) for name, layers in groups.items()}


def encoded(checkpoint: Checkpoint, split: str) -> datasets.Dataset:
    """A split as the model reads it; of the training examples those that it was trained on."""
    made = checkpoint.specification
    data = tasks.load(made.task, made.source, (split,))
    if split == "train":
        data = with_examples(data, made.examples, made.examples_seed)
    return encode(data, split, checkpoint.tokenizer(), made.schedule.max_length)


def loss_of(plane: Plane, examples: datasets.Dataset, limit: int | None = None, bfloat16=False) -> ClassifierLoss:
    """The loss of a plane's model as its layers move, on at most `limit` examples, drawn once, with folds."""
    autocast = torch.bfloat16 if bfloat16 else None
    return ClassifierLoss(plane.model, examples, plane.layers, limit=limit, autocast=autocast, folds=folds)
