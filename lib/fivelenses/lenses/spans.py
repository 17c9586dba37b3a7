r"""Spans of words to classify, checked and cut into batches that hold only the words they need.

A batch is a few sentences with all their targets. It lists the U words that occur in its spans, each once, across
sentences; a span is a row of positions in this list. So no word is padded, and no word outside the spans is read.

Shapes: a sentence's vectors (layers, words, d); a span [start, end) in words; a batch's words (layers, U, d), its
positions and the mask of the real ones (targets, spans, widest).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fivelenses.lenses.arrays import Array, as_tensor, checked_list, checked_sentence


@dataclass(frozen=True)
class Target:
    """One or two spans of a sentence to classify, [start, end) in words, with the correct labels."""

    sentence: int
    span1: tuple[int, int]
    span2: tuple[int, int] | None
    labels: Collection[str]


# Per model the vectors of the same sentences; and the targets in them.
Split = tuple[Sequence[Sequence[Array]], Sequence[Target]]


@dataclass(frozen=True, eq=False)
class SpanBatch:
    """Targets of a few sentences.

    Attributes:
        words: model to (layers, U, d) float32, the words of the spans.
        places: (targets, spans, widest) positions in these words; 0 beyond the end of a narrower span.
        inside: (targets, spans, widest) True for the words of the span.
        truth: (targets, labels) float32, 1 for the correct labels.
    """

    words: dict[int, torch.Tensor]
    places: torch.Tensor
    inside: torch.Tensor
    truth: torch.Tensor


class SpanTargets:
    """The targets of one split, and the vectors of one or several models.

    Args:
        split: per model its vectors, of any floating precision, converted batch by batch; and the targets.
        labels: those that can be predicted; other labels of a target are only counted.
        name: of the split, for errors.
        top: whether to read the last layer only.

    Attributes:
        shape: (models, layers, features, spans).
        device: of the vectors of the first model.
        order: (targets,) the targets in the order of :meth:`batches` without ``random``.
        unknown: number of correct labels that are not among ``labels``.

    Raises:
        ValueError: no target or model, vectors that do not fit each other, NaN or infinity, a span that is empty or
            leaves its sentence, or targets of which only some have a second span.

    Example:
        >>> split = [[np.zeros((2, 5, 3), dtype=np.float32)]], [Target(0, (0, 1), (2, 4), {"agent"})]
        >>> targets = SpanTargets(split, ["agent"])
        >>> batch = next(targets.batches(32, [0]))
        >>> targets.shape, batch.words[0].shape, batch.places.tolist()
        ((1, 2, 3, 2), torch.Size([2, 3, 3]), [[[0, 0], [1, 2]]])
    """

    def __init__(self, split: Split, labels: Sequence[str], name: str = "given", top: bool = False) -> None:
        models, targets = checked_split(split, name)
        self._models = [[as_tensor(one) for one in sentences] for sentences in models]
        self._top = top
        lengths = _checked_vectors(self._models, {target.sentence for target in targets}, name)
        bounds = np.array([_checked_bounds(place, one, lengths, name) for place, one in enumerate(targets)])
        if bounds[:, 1].any() and not bounds[:, 1, 1].all():
            raise ValueError(f"Some targets of the {name} split have a second span and some have none: split them.")
        self.device = self._models[0][0].device
        layers, _, d = self._models[0][0].shape
        spans = 2 if bounds[0, 1, 1] else 1
        self.shape = len(models), 1 if top else layers, d, spans
        column_of = {label: column for column, label in enumerate(labels)}
        truth = np.zeros((len(targets), len(labels)), dtype=np.float32)
        self.unknown = 0
        for row, target in enumerate(targets):
            correct = {column_of.get(label, -1) for label in target.labels}
            truth[row, sorted(correct - {-1})] = 1
            self.unknown += sum(label not in column_of for label in set(target.labels))
        self.order = np.argsort([target.sentence for target in targets], kind="stable")
        self._bounds, self._truth = bounds[self.order, :spans], truth[self.order]
        sentences, starts = np.unique([targets[row].sentence for row in self.order], return_index=True)
        ends = np.append(starts[1:], len(targets))
        self._sentences = list(zip(sentences.tolist(), starts.tolist(), ends.tolist(), strict=True))

    def __len__(self) -> int:
        """The number of targets."""
        return len(self.order)

    def batches(
        self,
        size: int,
        models: Iterable[int],
        random: torch.Generator | None = None,
        device: str | torch.device | None = None,
    ) -> Iterator[SpanBatch]:
        """All targets once, those of ``size`` sentences at a time.

        Args:
            size: sentences per batch; sentences without targets are left out.
            models: those whose words the batches hold.
            random: of the order of sentences; by default their own order.
            device: of the batches, by default that of the vectors.
        """
        models = list(models)
        count = len(self._sentences)
        order = torch.arange(count) if random is None else torch.randperm(count, generator=random)
        for places in order.split(size):
            yield self._batch([self._sentences[place] for place in places.tolist()], models, device)

    def _batch(
        self, sentences: list[tuple[int, int, int]], models: list[int], device: str | torch.device | None
    ) -> SpanBatch:
        rows = np.concatenate([np.arange(first, last) for _, first, last in sentences])
        lengths = [self._models[0][sentence].shape[1] for sentence, _, _ in sentences]
        before = np.cumsum([0, *lengths[:-1]]).repeat([last - first for _, first, last in sentences])
        bounds = self._bounds[rows] + before[:, None, None]
        places = bounds[..., :1] + np.arange((bounds[..., 1] - bounds[..., 0]).max())
        inside = places < bounds[..., 1:]
        used, positions = np.unique(places[inside], return_inverse=True)
        places[:] = 0
        places[inside] = positions
        words = {}
        for model in models:
            vectors = [self._models[model][sentence] for sentence, _, _ in sentences]
            joined = torch.cat([one[-1:] for one in vectors] if self._top else vectors, 1)
            words[model] = joined[:, torch.from_numpy(used).to(joined.device)].to(device, torch.float32)
        device = words[models[0]].device
        tensors = (torch.from_numpy(values).to(device) for values in (places, inside, self._truth[rows]))
        return SpanBatch(words, *tensors)


def checked_split(split: Split, name: str) -> tuple[list[list], list[Target]]:
    """The vectors and the targets of a split, refused where it is none; their values are checked elsewhere."""
    parts = [checked_list(f"A part of the {name} split", part) for part in checked_list(f"The {name} split", split)]
    if len(parts) != 2:
        raise ValueError(f"The {name} split has {len(parts)} parts: give the vectors of its models, and its targets.")
    models, targets = parts
    if not models or not targets:
        raise ValueError(f"The {name} split has {len(models)} models and {len(targets)} targets: give at least one.")
    for place, target in enumerate(targets):
        if not isinstance(target, Target):
            raise ValueError(f"Target {place} of the {name} split is of type {type(target).__name__}: give a Target.")
        if isinstance(target.labels, str) or not isinstance(target.labels, Collection):
            raise ValueError(
                f"Target {place} of the {name} split has {target.labels!r} for labels: give a collection of labels."
            )
    return [checked_list(f"The vectors of a model in the {name} split", one) for one in models], targets


def _checked_vectors(models: list[list[torch.Tensor]], read: set[int], name: str) -> list[int]:
    """The number of words in each sentence; those that no target reads are not checked, and may have no word."""
    if not models[0]:
        raise ValueError(f"The {name} split has no sentence.")
    lengths = [sentence.shape[1] if sentence.ndim == 3 else -1 for sentence in models[0]]
    for model, sentences in enumerate(models):
        if len(sentences) != len(lengths):
            raise ValueError(f"Model {model} has {len(sentences)} {name} sentences and model 0 has {len(lengths)}.")
        for number, (sentence, words) in enumerate(zip(sentences, lengths, strict=True)):
            if number not in read:
                continue
            where = f"Sentence {number} of model {model} in the {name} split"
            checked_sentence(where, sentence, models[0][0])
            if sentence.shape[1] != words:
                raise ValueError(f"{where} has {sentence.shape[1]} words and that of model 0 has {words}.")
    return lengths


def _checked_bounds(place: int, target: Target, lengths: list[int], name: str) -> list[tuple[int, int]]:
    """Start and end of both spans, 0 and 0 for a missing second one."""
    where = f"Target {place} of the {name} split"
    if not 0 <= target.sentence < len(lengths):
        raise ValueError(f"{where} is in sentence {target.sentence}, and there are {len(lengths)}.")
    words = lengths[target.sentence]
    for span in (target.span1, target.span2):
        if span is not None and not 0 <= span[0] < span[1] <= words:
            raise ValueError(f"{where} has the span {tuple(span)}, which is no part of its {words} words.")
    return [tuple(target.span1), (0, 0) if target.span2 is None else tuple(target.span2)]
