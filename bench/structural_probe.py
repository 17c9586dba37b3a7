"""One epoch of distance probes against the authors' tensor of all differences: time, memory, agreement, from one run.

    python bench/structural_probe.py [--quick] [--repeats N]

The plain way pads the sentences of a batch, projects them, takes the difference of each pair of words, words × words ×
rank numbers per sentence, and lets autograd go back through them, one probe after another. What is apart is the mean
development loss after the epoch. Sentences have the lengths of a treebank, 5 to 50 words.
"""

import numpy as np
import torch
from measure import HEADER, arguments, compare, report

from fivelenses.lenses import structural_probe
from fivelenses.lenses.structural_probe import START, fit, tree_distances

BATCH = 20


def sentences_of(vectors: np.ndarray, heads: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The parts of vectors (layers, words, d) and heads (words,) of sentences end to end, each with its root first."""
    starts = np.append(np.flatnonzero(heads == 0), len(heads))
    parts = [slice(*both) for both in zip(starts[:-1], starts[1:], strict=True)]
    return [vectors[:, part] for part in parts], [tree_distances(heads[part]) for part in parts]


def our_epoch(vectors: np.ndarray, heads: np.ndarray) -> float:
    sentences, gold = sentences_of(vectors, heads)
    structural_probe.MAX_EPOCHS = 1
    return float(fit("distance", (sentences, gold), (sentences[:BATCH], gold[:BATCH])).losses.mean())


def plain_epoch(vectors: np.ndarray, heads: np.ndarray) -> float:
    layers, gold = sentences_of(vectors, heads)
    losses = []
    for layer in range(len(vectors)):
        sentences = [torch.from_numpy(sentence[layer]) for sentence in layers]
        d = sentences[0].shape[1]
        random = torch.Generator().manual_seed(0)
        projection = torch.empty(d, d).uniform_(-START, START, generator=random).requires_grad_()
        optimizer = torch.optim.Adam([projection], lr=1e-3)
        for places in torch.randperm(len(sentences), generator=random).split(BATCH):
            optimizer.zero_grad()
            _plain_loss(projection, sentences, gold, places.tolist()).backward()
            optimizer.step()
        with torch.no_grad():
            losses.append(_plain_loss(projection, sentences, gold, list(range(BATCH))).item())
    return float(np.mean(losses))


def _plain_loss(
    projection: torch.Tensor, sentences: list[torch.Tensor], gold: list[np.ndarray], places: list[int]
) -> torch.Tensor:
    words = torch.nn.utils.rnn.pad_sequence([sentences[place] for place in places], batch_first=True)
    n = words.shape[1]
    truth = torch.full((len(places), n, n), -1.0)
    for row, place in enumerate(places):
        truth[row, : len(gold[place]), : len(gold[place])] = torch.from_numpy(gold[place])
    projected = (words @ projection)[:, :, None].expand(-1, -1, n, -1)
    predicted = (projected - projected.transpose(1, 2)).pow(2).sum(-1)
    lengths = torch.tensor([len(gold[place]) for place in places])
    return (((predicted - truth).abs() * (truth >= 0)).sum((1, 2)) / lengths**2).mean()


def treebank(sentences: int, layers: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    lengths = np.clip(random.gamma(4, 5, sentences).astype(int), 5, 50)
    heads = np.concatenate([[0] + [random.integers(word) + 1 for word in range(1, n)] for n in lengths])
    return random.standard_normal((layers, len(heads), d), dtype=np.float32), heads


def main() -> None:
    quick, repeats = arguments(__doc__, "few sentences, small widths, once")
    shapes = [(60, 2, 64)] if quick else [(1000, 7, 64), (200, 1, 384), (200, 1, 768)]
    print(HEADER)
    for shape in shapes:
        plain, ours = compare(plain_epoch, our_epoch, treebank(*shape), treebank(40, 1, 8), repeats)
        print(report(f"{shape[0]} × {shape[1]} layers × {shape[2]}", plain, ours), flush=True)


if __name__ == "__main__":
    main()
