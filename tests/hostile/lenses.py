"""Every public function of the lenses, every argument, every kind of bad value; each call's answer is counted.

    python -m tests.hostile.lenses [--verbose]

An answer is good where the call raises a ValueError or TypeError of ours that says what is wrong in one sentence, or
returns a number that is finite. It is bad where another exception comes from elsewhere, where NaN or infinity comes
back without a word, or where the call takes more than `LONGEST` seconds.
"""

import argparse
import contextlib
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
    hulls,
    landscape,
    mdl,
    neighbours,
    parameter_motion,
    procrustes,
    rsa,
    trees,
    weights,
)

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
    (basin.sharpness, {"evaluate": _loss, "point": _point(), "radius": 0.1, "draws": 2, "seed": 0}),
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
    (mdl.online_code, {"x": _rows(), "y": _LABELS}),
    (neighbours.mutual_neighbours, {"x": _rows(), "y": _rows(seed=1), "k": 5}),
    (parameter_motion.thirds, {"depth": 6}),
    (parameter_motion.layer_parameters, {"model": _model(), "layers": [1, 2]}),
    (parameter_motion.layer_direction, {"origin": _model(), "target": _model(1), "layers": [1]}),
    (procrustes.procrustes_distance, {"x": _rows(), "y": _rows(seed=1)}),
    (rsa.sample_positions, {"total": 40, "sample": 10, "seed": 0}),
    (rsa.similarity, {"x": _rows(), "y": _rows(seed=1), "sample": 20, "seed": 0}),
    (rsa.permuted_null, {"x": _rows(), "y": _rows(seed=1), "sample": 20, "seed": 0}),
    (trees.tree_depths, {"heads": _HEADS}),
    (trees.tree_distances, {"heads": _HEADS}),
    (weights.distance, {"original": _model(), "tuned": _model(1)}),
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


EVERYTHING = {"None": None, "a text": "x", "an object": object()}


def bad_values(value) -> Iterator[tuple[str, object]]:
    """Bad values in the place of a right one."""
    yield from EVERYTHING.items()
    if isinstance(value, dict):
        yield from _points(value)
    elif isinstance(value, np.ndarray | list):
        yield from _arrays(value)
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
    "curve",
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
            result = function(**arguments)
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
