"""Eight edge probes side by side against one after another: time, peak memory, and agreement, from one run.

    python bench/edge_probe.py [--quick] [--repeats N]

Both train the same probes for the same number of batches with the same code, once with eight models or seeds in a stack
and once with one at a time. Each sentence has four targets. What is apart is the mean size of the last weights. On one
core the arithmetic of eight probes takes eight times that of one, and only what surrounds it is saved.
"""

from collections.abc import Sequence

import numpy as np
from measure import HEADER, arguments, compare, report

from fivelenses.lenses.edge_probe import EdgeProbe, Split, Target, fit

PROBES, BATCHES = 8, 20


def split_of(vectors: np.ndarray, lengths: np.ndarray, shape: np.ndarray) -> Split:
    """Sentences of these lengths, (layers, words, d) each, end to end in each model; four pairs of words in each."""
    random = np.random.default_rng(1)
    layers, d = shape.tolist()
    cuts = np.cumsum(lengths)[:-1] * layers * d
    models = [[one.reshape(layers, -1, d) for one in np.split(of_model, cuts)] for of_model in vectors]
    targets = []
    for place, n in enumerate(lengths.tolist()):
        for first, second in random.integers(0, n, (4, 2)).tolist():
            targets.append(Target(place, (first, first + 1), (second, second + 1), {str(random.integers(40))}))
    return models, targets


def _size(probes: Sequence[EdgeProbe]) -> float:
    return float(np.mean([probe.parameters["output"].abs().mean() for probe in probes]))


def _trained(models: list[list[np.ndarray]], targets: list[Target], seeds: Sequence[int]) -> list[EdgeProbe]:
    return fit((models, targets), (models, targets[:50]), seeds, validate_every=BATCHES, max_validations=1)


def one_after_another(*inputs: np.ndarray) -> float:
    models, targets = split_of(*inputs)
    seeds = range(PROBES // len(models))
    return _size([probe for model in models for seed in seeds for probe in _trained([model], targets, [seed])])


def side_by_side(*inputs: np.ndarray) -> float:
    models, targets = split_of(*inputs)
    return _size(_trained(models, targets, range(PROBES // len(models))))


def treebank(sentences: int, models: int, layers: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    lengths = np.clip(random.gamma(4, 4, sentences).astype(int), 3, 40)
    vectors = random.standard_normal((models, lengths.sum() * layers * d), dtype=np.float32)
    return vectors, lengths, np.array([layers, d])


def main() -> None:
    quick, repeats = arguments(__doc__, "a small encoder only, once")
    shapes = [(100, 1, 7, 64), (100, 8, 7, 64)]
    if not quick:
        shapes += [(100, 1, 7, 384), (100, 1, 13, 768), (100, 8, 13, 768)]
    print("plain: one after another; names are models × layers × features")
    print(HEADER)
    for sentences, *shape in shapes:
        inputs = treebank(sentences, *shape)
        plain, ours = compare(one_after_another, side_by_side, inputs, treebank(20, 1, 2, 8), repeats)
        print(report(" × ".join(map(str, shape)), plain, ours), flush=True)


if __name__ == "__main__":
    main()
