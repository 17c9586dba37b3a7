"""Every public function of the lenses, every argument, every kind of bad value; each call's answer is counted.

    python -m tests.hostile.lenses [--verbose]

An answer is good where the call raises a ValueError or TypeError of ours that says what is wrong in one sentence, or
returns a number that is finite. It is bad where another exception comes from elsewhere, where NaN or infinity comes
back without a word, or where the call takes more than `LONGEST` seconds.
"""

import argparse
import contextlib
import copy
import dataclasses
import math
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from fivelenses.lenses import (
    arrays,
    attention,
    basin,
    cca,
    debiased_cka,
    directions,
    directprobe,
    edge_probe,
    hulls,
    landscape,
    mdl,
    mlp_probe,
    neighbours,
    parameter_motion,
    procrustes,
    projection,
    rsa,
    spans,
    structural_probe,
    trees,
    weights,
)
from fivelenses.models import layers, symmetries, twins
from fivelenses.tasks import scores, squad_scores

OURS = str(Path(cca.__file__).parents[1])
LONGEST = 20  # seconds


def _rows(rows: int = 40, columns: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns))


def _maps(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(5), size=(2, 3, 5))


def _point(seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {"w": torch.randn(3, 2, generator=generator), "b": torch.randn(3, generator=generator)}


def _loss(point) -> float:
    return float(sum((values**2).sum() for values in point.values()))


def _measured(point) -> landscape.Measurement:
    return landscape.Measurement(_loss(point), 0.5)


def _model(seed: int = 0) -> torch.nn.Module:
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    shape = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, vocab_size=20)
    return BertModel(BertConfig(**shape))


_LABELS = np.arange(40) % 2
_HEADS = [0, 1, 2, 2, 3]
_SENTENCES = [np.random.default_rng(seed).normal(size=(2, 5, 3)) for seed in range(6)]
_DISTANCES = [trees.tree_distances(_HEADS).astype(float)] * 6
_DEPTHS = [trees.tree_depths(_HEADS).astype(float)] * 6
_WORDS = [np.random.default_rng(seed).normal(size=(5, 3)).astype(np.float32) for seed in range(6)]
_PREDICTED = [np.stack([one, one]) for one in _DISTANCES]
_PAIRED = _WORDS, _DISTANCES
_TARGETS = [spans.Target(sentence, (0, 2), None, {"a" if sentence % 2 else "b"}) for sentence in range(6)]
_SPLIT = [[one.astype(np.float32) for one in _SENTENCES]], _TARGETS
_PROBES = [mlp_probe.Configuration((4, 4), 0.1)]
_PLANE = landscape.surface(_loss, _point(), (_point(1), _point(2)), [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0])
_LINE = ([0.0, 0.5, 1.0, 1.5, 2.0], [1.0, 0.2, 0.0, 0.3, 1.0])

# A call that is right: the function and its arguments by name.
RIGHT: list[tuple[Callable, dict]] = [
    (arrays.as_tensor, {"values": _rows()}),
    (arrays.as_array, {"values": _rows()}),
    (arrays.checked_rows, {"name": "x", "rows": _rows()}),
    (attention.js_divergence, {"p": _maps(0), "q": _maps(1), "mask": np.ones((2, 5))}),
    (basin.half_widths, {"positions": _LINE[0], "losses": _LINE[1], "at": 1.0, "rise": 0.5}),
    (basin.path, {"positions": _LINE[0], "losses": _LINE[1], "start": 0.0, "end": 1.0}),
    (basin.rank_correlation, {"first": np.arange(5.0), "second": np.array([1.0, 0.0, 3.0, 2.0, 4.0])}),
    (landscape.sharpness, {"evaluate": _loss, "point": _point(), "radius": 0.1, "draws": 2, "seed": 0}),
    (cca.correlations, {"x": _rows(), "y": _rows(seed=1), "variance_kept": 0.99}),
    (cca.svcca_distance, {"x": _rows(), "y": _rows(seed=1), "variance_kept": 0.99}),
    (cca.pwcca_distance, {"x": _rows(), "y": _rows(seed=1), "variance_kept": 1.0}),
    (cca.linear_cka, {"x": _rows(), "y": _rows(seed=1)}),
    (cca.permuted_null, {"x": _rows(), "y": _rows(seed=1), "variance_kept": 0.99, "seed": 0}),
    (debiased_cka.debiased_linear_cka, {"x": _rows(), "y": _rows(seed=1)}),
    (directions.vector, {"values": _point()}),
    (directions.difference, {"end": _point(1), "start": _point()}),
    (directions.inner, {"first": _point(), "second": _point(1)}),
    (directions.norm, {"direction": _point()}),
    (directions.angle, {"first": _point(), "second": _point(1)}),
    (directions.rescaled, {"direction": _point(1), "like": _point()}),
    (directions.filter_normalised, {"direction": _point(1), "origin": _point()}),
    (directions.random_direction, {"origin": _point(), "seed": 0}),
    (directprobe.probe, {"points": _rows(20), "labels": _LABELS[:20]}),
    (directprobe.linearly_separable, {"points": _rows(20), "labels": _LABELS[:20]}),
    (directprobe.random_label_control, {"points": _rows(20), "labels": _LABELS[:20], "seed": 0}),
    (hulls.hull_distance, {"a": _rows(8), "b": _rows(8, seed=1) + 9.0}),
    (hulls.separate, {"a": _rows(8), "b": _rows(8, seed=1) + 9.0}),
    (landscape.grid, {"low": -2.0, "high": 2.0, "count": 5}),
    (
        landscape.curve,
        {"evaluate": _measured, "start": _point(), "direction": _point(1), "alphas": [0.0, 0.5, 1.0]},
    ),
    (basin.basin, {"surface": _PLANE, "at": (0.0, 0.0), "rise": 0.5}),
    (basin.share_below, {"surface": _PLANE, "at": (0.0, 0.0), "rise": 0.5, "radius": 1.0}),
    (directions.direction_at, {"direction": _point(1), "origin": _point()}),
    (directions.moved, {"origin": _point(), "directions": [_point(1)], "coefficients": [0.5]}),
    (
        edge_probe.fit,
        {
            "training": _SPLIT,
            "development": _SPLIT,
            "test": _SPLIT,
            "seeds": [0],
            "layers": "mix",
            "projection": 4,
            "hidden": 4,
            "dropout": 0.3,
            "learning_rate": 1e-3,
            "batch_size": 4,
            "validate_every": 2,
            "max_validations": 2,
            "halve_after": 1,
            "stop_after": 1,
            "order_seed": 0,
        },
    ),
    (hulls.hull_distance, {"a": _rows(8), "b": _rows(8, seed=1) + 9.0, "direction": np.ones(4), "tolerance": 1e-6}),
    (
        landscape.surface,
        {
            "evaluate": _measured,
            "origin": _point(),
            "directions": (_point(1), _point(2)),
            "alphas": [0.0, 1.0],
            "betas": [0.0, 1.0],
        },
    ),
    (
        projection.project,
        {"trajectory": [_point(1)], "origin": _point(), "direction": _point(2), "second": _point(3)},
    ),
    (
        mdl.online_code,
        {"x": _rows(), "y": _LABELS, "fractions": [0.5, 1.0], "fit": mdl.Perceptron(), "classes": 2, "seed": 0},
    ),
    (
        mdl.Perceptron,
        {
            "hidden": 4,
            "learning_rate": 0.1,
            "batch_size": 4,
            "held_out": 0.1,
            "patience": 1,
            "max_epochs": 2,
            "seed": 0,
        },
    ),
    (
        mlp_probe.fit,
        {
            "x": _rows(),
            "y": _LABELS,
            "x_test": _rows(),
            "y_test": _LABELS,
            "configurations": _PROBES,
            "max_epochs": 2,
        },
    ),
    (
        mlp_probe.fit_grid,
        {
            "x": _rows(),
            "y": _LABELS,
            "x_test": _rows(),
            "y_test": _LABELS,
            "configurations": _PROBES,
            "seeds": [0, 1],
            "select_on": "held-out",
            "max_epochs": 2,
        },
    ),
    (mlp_probe.grid, {"sizes": [4], "alphas": [0.1]}),
    (neighbours.mutual_neighbours, {"x": _rows(), "y": _rows(seed=1), "k": 5}),
    (parameter_motion.layer_parameters, {"model": _model(), "layers": [1, 2]}),
    (parameter_motion.layer_direction, {"origin": _model(), "target": _model(1), "layers": [1]}),
    (procrustes.procrustes_distance, {"x": _rows(), "y": _rows(seed=1)}),
    (rsa.sample_positions, {"total": 40, "sample": 10, "seed": 0}),
    (rsa.similarity, {"x": _rows(), "y": _rows(seed=1), "sample": 20, "seed": 0}),
    (rsa.permuted_null, {"x": _rows(), "y": _rows(seed=1), "sample": 20, "seed": 0}),
    (trees.tree_depths, {"heads": _HEADS}),
    (trees.tree_distances, {"heads": _HEADS}),
    (
        structural_probe.fit_distance,
        {
            "training": _PAIRED,
            "development": _PAIRED,
            "rank": 2,
            "seed": 0,
            "learning_rate": 1e-3,
            "batch_size": 2,
            "max_epochs": 1,
        },
    ),
    (structural_probe.fit_depth, {"training": (_WORDS, _DEPTHS), "development": (_WORDS, _DEPTHS), "max_epochs": 1}),
    (
        trees.evaluate,
        {"kind": "distance", "predicted": _PREDICTED, "gold": _DISTANCES, "counted": [[True] * 5] * 6},
    ),
    (
        trees.sentence_scores,
        {"kind": "depth", "predicted": [np.stack([one]) for one in _DEPTHS], "gold": _DEPTHS},
    ),
    (weights.distance, {"original": _model(), "tuned": _model(1)}),
    (layers.layer_list, {"model": _model()}),
    (layers.part, {"model": _model(), "layer": 1}),
    (layers.projections, {"model": _model(), "layer": 1}),
    (layers.freeze, {"model": _model(), "layers": [1]}),
    (layers.truncate, {"model": _model(), "kept": 1}),
    (layers.roll_back, {"model": _model(), "original": _model(1), "layers": [1]}),
    (layers.reinitialise, {"model": _model(), "layers": [1], "seed": 0, "biases_and_norms": "kept"}),
    (symmetries.permuted_heads, {"model": _model(), "seed": 0}),
    (symmetries.permuted_neurons, {"model": _model(), "seed": 0}),
    (symmetries.rotated_values, {"model": _model(), "seed": 0}),
    (symmetries.rescaled_queries, {"model": _model(), "seed": 0}),
    (twins.moved_at_random, {"tuned": _model(1), "original": _model(), "seed": 0}),
    (squad_scores.squad_scores, {"predicted": ["a cat"], "gold": [["cat"]]}),
    (squad_scores.exact_match, {"predicted": "a cat", "gold": ["cat"]}),
    (squad_scores.f1, {"predicted": "a cat", "gold": ["cat"]}),
    (scores.score, {"metric": "accuracy", "predicted": _LABELS, "gold": _LABELS}),
    (scores.majority_rate, {"gold": _LABELS}),
]


def _arrays(value) -> Iterator[tuple[str, object]]:
    """Bad kinds of an array of numbers."""
    right = np.asarray(value)
    floating = right.astype(float)
    flat = floating.copy()
    flat[...] = 1.0
    yield "empty", right[:0]
    yield "one row", right[:1]
    yield "two rows", right[:2]
    yield "fewer rows", right[:-1]
    yield "more rows", np.concatenate([right, right[:1]])
    yield "one dimension less", right[0]
    yield "one dimension more", right[None]
    yield "a column less", right[..., :-1]
    yield "constant", flat
    yield "zeros", np.zeros_like(floating)
    yield "huge", floating * 1e200
    yield "tiny", floating * 1e-200
    yield "negative", -np.abs(floating) - 1.0
    yield "ties", np.round(floating)
    yield "whole numbers", floating.astype(int)
    yield "booleans", floating > 0
    yield "texts", floating.astype(str)
    yield "objects", floating.astype(object)
    yield "complex", floating + 1j
    yield "half precision", torch.as_tensor(floating).to(torch.bfloat16)
    yield "ragged", [[1.0, 2.0], [3.0]]
    for name, bad in (("NaN", math.nan), ("infinity", math.inf), ("minus infinity", -math.inf)):
        broken = floating.copy()
        broken.reshape(-1)[0] = bad
        yield name, broken


def _points(value: dict) -> Iterator[tuple[str, object]]:
    """Bad kinds of a point in parameter space."""
    first = next(iter(value))
    yield "no parameters", {}
    yield "one parameter less", {name: one for name, one in value.items() if name != first}
    yield "another shape", value | {first: torch.ones(7)}
    yield "a list", [1.0, 2.0]
    for name, bad in {"NaN": math.nan, "infinity": math.inf, "zero": 0.0, "huge": 1e30, "a number": None}.items():
        yield name, value | {first: 1.0 if bad is None else torch.full_like(value[first], bad)}


def _numbers(value) -> Iterator[tuple[str, object]]:
    yield from {
        "zero": 0,
        "negative": -1,
        "a fraction": 0.5,
        "NaN": math.nan,
        "infinity": math.inf,
        "minus infinity": -math.inf,
        "huge": 10**12,
        "a list": [value],
        "true": True,
    }.items()


def _members(value) -> Iterator[tuple[str, object]]:
    """Bad kinds of a list of other things than numbers, or of a pair."""
    kind = type(value)
    yield "empty", kind()
    yield "one too few", value[:-1]
    yield "one too many", value + value[:1]
    for name, bad in EVERYTHING.items():
        yield f"a member that is {name}", kind([bad, *value[1:]])
    if isinstance(value[0], str):
        yield "a member that is a number", kind([3, *value[1:]])
    if isinstance(value[0], np.ndarray):
        yield "a member with NaN", kind([value[0] * math.nan, *value[1:]])
        yield "a member without rows", kind([value[0][:0], *value[1:]])
        yield "a member of texts", kind([value[0].astype(str), *value[1:]])


EVERYTHING = {"None": None, "a text": "x", "an object": object()}


def bad_values(value) -> Iterator[tuple[str, object]]:
    """Bad values in the place of a right one."""
    yield from EVERYTHING.items()
    if isinstance(value, dict):
        yield from _points(value)
    elif isinstance(value, np.ndarray) or (isinstance(value, list) and isinstance(value[0], int | float)):
        yield from _arrays(value)
        if isinstance(value, list):
            yield from ((f"a member that is {name}", [bad, *value[1:]]) for name, bad in EVERYTHING.items())
    elif isinstance(value, list | tuple):
        yield from _members(value)
    elif isinstance(value, int | float):
        yield from _numbers(value)
    elif isinstance(value, torch.nn.Module):
        yield "another model", torch.nn.Linear(2, 2)
    else:
        yield "a number", 1.0


def attempts() -> Iterator[tuple[str, Callable, dict]]:
    """Each bad call with its name; the last of all, those whose arguments are bad together."""
    for function, right in RIGHT:
        for argument, value in right.items():
            for kind, bad in bad_values(value):
                yield f"{_name(function)}({argument}: {kind})", function, right | {argument: bad}
        if {"x", "y"} <= set(right) and function is not mdl.online_code:
            for kind, bad in _arrays(right["x"]):
                yield f"{_name(function)}(both: {kind})", function, right | {"x": bad, "y": bad}


def _name(function: Callable) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def _finite(result) -> bool:
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return all(_finite(getattr(result, field.name)) for field in dataclasses.fields(result))
    if isinstance(result, dict):
        return all(map(_finite, result.values()))
    if isinstance(result, tuple | list):
        return all(map(_finite, result))
    if isinstance(result, torch.Tensor):
        return bool(result.isfinite().all()) if result.is_floating_point() else True
    if isinstance(result, np.ndarray):
        return bool(np.isfinite(result).all()) if result.dtype.kind == "f" else True
    return math.isfinite(result) if isinstance(result, float) else True


class _Hung(BaseException):
    pass


def _end(*_):
    raise _Hung


# These say in their docstrings when they give infinity or NaN, or hold a matrix with an empty diagonal; the first two
# give back what they were given.
SAID = (
    "as_tensor",
    "as_array",
    "half_widths",
    "rank_correlation",
    "path",
    "basin",
    "curve",
    "surface",
    "probe",
    "hull_distance",
    "separate",
)


def answer(function: Callable, arguments: dict) -> tuple[str, str]:
    """Whether a call is answered well, and by what."""
    signal.signal(signal.SIGALRM, _end)
    signal.alarm(LONGEST)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(None):
            warnings.simplefilter("ignore")
            result = function(**copy.deepcopy(arguments))
    except _Hung:
        return "hung", f"more than {LONGEST} s"
    except (ValueError, TypeError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
        ours = where.startswith(OURS) and "\n" not in str(error) and str(error).endswith(".")
        return ("refused" if ours else "foreign"), said
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
    finally:
        signal.alarm(0)
    if function.__name__ in SAID or _finite(result):
        return "a number", str(result)[:80].replace("\n", " ")
    return "not finite", str(result)[:80].replace("\n", " ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verbose", action="store_true", help="list good answers, too")
    verbose = parser.parse_args().verbose
    counts: Counter = Counter()
    for name, function, arguments in attempts():
        kind, said = answer(function, arguments)
        counts[kind] += 1
        if verbose or kind in ("foreign", "not finite", "hung"):
            print(f"{kind:>10}  {name}: {said}", flush=True)
    total = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(f"{sum(counts.values())} bad calls, {counts['refused'] + counts['a number']} answered well: {total}")


if __name__ == "__main__":
    main()
