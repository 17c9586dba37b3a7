r"""Curves of scores over layers, and the numbers that tell their shape, with intervals.

A curve is the score :math:`s_p` at the places :math:`p` of layers re-initialised or removed, from none to all. Every
number here is a weighted sum of scores, :math:`\sum_p w_p s_p`, or a ratio of two such sums of the mean curve,
:math:`C = \sum_p w_p \bar s_p / \sum_p v_p \bar s_p` (a concavity is a share of the drop). Each model's part in a ratio
is its linearisation (the delta method; Wolter 2007, "Introduction to Variance Estimation", section 6.5),

.. math:: C + \sum_p (w_p - C v_p) \, s_p \Big/ \sum_p v_p \bar s_p ,

whose mean over models is C, so that a model whose own curve hardly falls does not blow up. Places of a maximum are
those of the mean curve.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import intervals
from fivelenses.first_exhibits.effects import Interval
from fivelenses.records import WHOLE

MIN_DROP = 0.03  # a curve that falls by less has no shape to speak of


def scores(models: pd.DataFrame) -> pd.DataFrame:
    """The scores of fine-tuned models by the number of their re-initialised layers, which are all in some of them: that
    tells the encoder's depth.

    Returns:
        One row per model of `checkpoints.tables.models` trained on true labels, with `task`, `examples`, `seed`,
        `reinitialised`, `layers` (of the encoder), `steps`, `equal_steps` (trained longer than the usual epochs, for as
        many steps as the most examples have), `score`, `null_rate`, `diverged`, `address`.
    """
    if "shuffled_labels" in models.columns:
        models = models[~models["shuffled_labels"].astype(bool)]
    of_model = ["task", "examples", "seed", "reinitialised", "steps", "score", "null_rate", "diverged", "address"]
    table = models[of_model].reset_index(drop=True)
    table.insert(4, "layers", table["reinitialised"].max())
    return with_equal_steps(table)


def with_equal_steps(table: pd.DataFrame) -> pd.DataFrame:
    """With `equal_steps`: whether a model was trained for more steps than others of its task and examples."""
    least = table.groupby(["task", "examples"])["steps"].transform("min")
    return table.assign(equal_steps=table["steps"] > least)


def at_equal_steps(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the most examples, and of the smaller sizes trained for as many steps; none where none was."""
    most = table["examples"] == table.groupby("task")["examples"].transform("max")
    again = table["equal_steps"]
    return table[again | (most & table["task"].isin(set(table.loc[again, "task"])))]


def of_models(models: pd.DataFrame, predictions: pd.DataFrame | None = None) -> pd.DataFrame:
    """The curves of re-initialised models: `scores` with `place` (layers re-initialised), one row per model; with
    `checkpoints.predictions.by_example` one per model and `fold` left out, with `scored_examples`.
    """
    table = scores(models).rename(columns={"reinitialised": "place"})
    return table if predictions is None else _folded(table, predictions, ["address"])


def of_probes(probes: pd.DataFrame | Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The curves of frozen probes (`measure.frozen_probes`; its scores alone where a run kept no predictions), one per
    draw of training examples: one row per draw, layers removed (`place`) and `fold`. Draws that are the same
    examples count once.
    """
    table = (probes["scores"] if isinstance(probes, Mapping) else probes).copy()
    wide = table.pivot(index=["task", "examples", "seed"], columns="removed", values="score").reset_index("seed")
    own = wide[~wide.reset_index().drop(columns="seed").duplicated().to_numpy()].set_index("seed", append=True).index
    table = table[pd.MultiIndex.from_frame(table[own.names]).isin(own)]
    if isinstance(probes, Mapping):
        table = _folded(table, probes["by_example"], ["task", "examples", "seed", "removed"])
    return table.rename(columns={"removed": "place"}).reset_index(drop=True)


def _folded(table: pd.DataFrame, predictions: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    return table.drop(columns="score").merge(intervals.with_folds(predictions, by), on=by)


def mean_curve(curve: pd.DataFrame) -> pd.Series:
    """The mean score over models at each place, on all examples."""
    whole = curve[curve["fold"] == WHOLE] if "fold" in curve.columns else curve
    return whole.groupby("place")["score"].mean()


def values(curve: pd.DataFrame, weights: pd.Series, over: pd.Series | None = None) -> pd.DataFrame:
    """A number of each model's curve: a weighted sum, or with `over` a ratio, linearised as said above.

    Args:
        curve: rows of one curve of `of_models` or `of_probes`.
        weights, over: of the scores, by place.

    Returns:
        One row per model (and fold): `seed`, `value`, and `fold` and `scored_examples` where the curve has them.

    Example:
        >>> curve = pd.DataFrame({"seed": [0, 0, 1, 1], "place": [0, 6, 0, 6], "score": [0.9, 0.5, 0.7, 0.5]})
        >>> values(curve, pd.Series({0: 1.0, 6: -1.0}))["value"].round(3).tolist()
        [0.4, 0.2]
    """
    shift = 0.0
    if over is not None:
        mean = mean_curve(curve)
        shift, below = float(weights @ mean / (over @ mean)), float(over @ mean)
        weights = (weights - shift * over) / below
    of_model = [name for name in ("seed", "fold", "scored_examples") if name in curve.columns]
    wide = curve.pivot(index=of_model, columns="place", values="score")[weights.index]
    return (shift + wide @ weights).rename("value").reset_index()


def interval(numbers: pd.DataFrame, reference: pd.DataFrame | None = None) -> Interval:
    """The interval of a number of `values`, or of its difference from that of other curves on the same examples.

    Models of the same seeds are paired: they share their training examples.
    """
    paired = reference is None or set(numbers["seed"]) == set(reference["seed"])
    examples = int(numbers["scored_examples"].iloc[0]) if "scored_examples" in numbers.columns else None
    return intervals.of_measure(numbers, lambda rows: rows["value"].item(), "seed", reference, paired, examples)


# --- weights by place -------------------------------------------------------------------------------------------------


def at(places: Iterable[float], place: float) -> pd.Series:
    """The weights of the score at a place, interpolated between its neighbours.

    Example:
        >>> at([0, 2, 4], 3).tolist()
        [0.0, 0.5, 0.5]
    """
    index = pd.Index(sorted(places))
    return pd.Series([np.interp(place, index, one) for one in np.eye(len(index))], index)


def drop(places: Iterable[float]) -> pd.Series:
    """The score at the first place minus that at the last."""
    index = pd.Index(sorted(places))
    return at(index, index[0]) - at(index, index[-1])


def concavity(places: Iterable[float]) -> pd.Series:
    """The area between a curve and the straight line between its ends, places scaled to [0, 1].

    Over the drop it lies in [-1/2, 1/2] for a curve that only falls: 1/2 falls at the very end, 0 is a line, -1/2 falls
    at once.

    Example:
        >>> curve = pd.Series([0.9, 0.9, 0.5], index=[0, 3, 6])
        >>> round(float(concavity(curve.index) @ curve / (drop(curve.index) @ curve)), 3)
        0.25
    """
    index = pd.Index(sorted(places))
    gaps = np.diff(index) / (index[-1] - index[0])
    area = pd.Series(np.append(gaps, 0) + np.append(0, gaps), index) / 2
    return area - (at(index, index[0]) + at(index, index[-1])) / 2


def departure(curve: pd.DataFrame, side: int = 0) -> tuple[int, pd.Series]:
    """The place where the mean curve lies farthest from the straight line between its ends, and the weights of how far,
    positive on either side of the line; refused for fewer than three places.

    Over the drop, it is 1/4 for a parabola that begins flat and 1 for a curve that falls at one place alone.

    Args:
        side: 1 for how far above the line alone, -1 for below, which is negative where the curve is nowhere on that
            side.
    """
    mean = mean_curve(curve)
    first, last = mean.index[0], mean.index[-1]
    if len(mean) < 3:
        raise ValueError(f"A curve of {len(mean)} places has no place between its ends.")
    lines = {place: (place - first) / (last - first) for place in mean.index[1:-1]}
    off = {
        place: at(mean.index, place) - (1 - share) * at(mean.index, first) - share * at(mean.index, last)
        for place, share in lines.items()
    }
    height = {place: weights @ mean for place, weights in off.items()}
    worst = max(off, key=lambda place: side * height[place] if side else abs(height[place]))
    return int(worst), off[worst] * (side or np.sign(height[worst]))


def rise_kept(curve: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """How much of its rise a curve has with few layers: the best score with so many layers or fewer, meant over them.

    Read from one layer kept to all of them, scores over the null rate, so a curve that has all of its rise with one
    layer is 1; one minus it is the mean number of further layers needed, over all shares of the rise, per layer.
    Returns the weights of that mean, and those of the best score of all, which it is a share of.
    """
    mean, depth = mean_curve(curve), int(curve["layers"].iloc[0])
    by_kept = [at(mean.index, depth - kept) for kept in range(1, depth + 1)]
    reached = np.array([weights @ mean for weights in by_kept])
    best = [int(reached[:kept].argmax()) for kept in range(1, depth + 1)]
    lengths = np.r_[0.5, np.ones(depth - 2), 0.5] / (depth - 1)
    return sum(length * by_kept[place] for length, place in zip(lengths, best, strict=True)), by_kept[best[-1]]


def above_null(curve: pd.DataFrame) -> pd.DataFrame:
    """The same curve as score minus null rate."""
    return curve.assign(score=curve["score"] - curve["null_rate"])


def falls(curve: pd.DataFrame) -> bool:
    """Whether a curve has a shape: it falls by enough from none to all, and clearly falls where that was measured."""
    if curve["place"].nunique() < 2:
        return False
    return clear(interval(values(curve, drop(curve["place"].unique()))))


def clear(difference: Interval) -> bool:
    """Whether a difference of scores is large enough to speak of, and clearly one where that was measured."""
    return difference.estimate >= MIN_DROP and (not difference.measured or difference.low > 0)
