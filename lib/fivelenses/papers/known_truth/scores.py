r"""Whether each measure was right, from the record of `measure.changes_seen`.

- **Where.** A measure *names* the layer at which it departs most from the pre-trained encoder, in either direction;
  several equal ones share the vote. Its error is the distance of that layer from the nearest one that was trained. It
  is read in two ways: by its `value` at a layer, and by what the layer `adds`,
  :math:`\lvert v_l \rvert - \lvert v_{l-1} \rvert` with :math:`v_0 = 0`, since the embeddings were frozen. A measure of
  a layer's own parameters inherits nothing, and both readings of it are one.
- **How much.** Spearman's correlation of a measure with the dose at a layer, mean over the layers; a layer at which the
  measure is the same for all doses counts as 0.
- **Nothing.** The mean size of a measure over the layers under a change that changes no output, as a share of its mean
  size after fine-tuning; and its signal, the mean size after fine-tuning, over the noise, the root of the mean variance
  between seeds.
- **Anything.** The probability that a measure is larger at a layer of a fine-tuned model than at that of one that moved
  without learning (the area under the curve), mean over the layers; equal values count one half.

Intervals are over models, which seeds tell apart; examples count as given.
"""

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.effects import Interval
from fivelenses.first_exhibits.plots import AT_RANDOM, SHUFFLED_LABELS
from fivelenses.papers.five_lenses.rank_statistics import rank_correlations
from fivelenses.papers.known_truth.instruments import BY_KEY
from fivelenses.records import ALL, FROZEN, FULL, SHUFFLED, SYMMETRIES, TWIN

MODEL = ["task", "seed"]
VALUE, ADDED = "value", "adds"
READINGS = {VALUE: "by its value", ADDED: "by what the layer adds"}
WALKS = {TWIN: AT_RANDOM, SHUFFLED: SHUFFLED_LABELS}
TIE = 1e-5  # of the larger of two values: what differs by less was equal before it was rounded


def curves(changes: pd.DataFrame, kind: str) -> pd.DataFrame:
    """(models × measures, layers) the values of one kind of model, indexed by task, seed, trained, dose and measure;
    refused where a measure lacks a layer, has it twice, or is not finite.
    """
    rows = changes[changes["kind"] == kind]
    keys = [*MODEL, "trained", "dose", "measure"]
    if rows.duplicated([*keys, "layer"]).any():
        raise ValueError(f"A measure of the models {kind!r} has a layer twice: the table was joined to itself.")
    table = rows.set_index([*keys, "layer"])["value"].astype(float).unstack("layer")
    broken = table.index[~np.isfinite(table).all(axis=1)]
    if len(broken):
        raise ValueError(
            f"The measure {broken[0][-1]} of {kind!r}, seed {broken[0][1]}, lacks a layer or is not finite."
        )
    return table


def sizes(curve: pd.Series, reading: str, measure: str) -> np.ndarray:
    """How far a curve departs from 0 at each layer, or how much further than at the layer below.

    Example:
        >>> curve = pd.Series([0.0, -2.0, 3.0], [1, 2, 3])
        >>> sizes(curve, "value", "svcca"), sizes(curve, "adds", "svcca"), sizes(curve, "adds", "weights")
        (array([0., 2., 3.]), array([0., 2., 1.]), array([0., 2., 3.]))
    """
    values = np.abs(curve.to_numpy(dtype=float))
    return np.diff(values, prepend=0.0) if reading == ADDED and BY_KEY[measure].reads_activations else values


def trained_of(name: str) -> tuple[int, ...]:
    """The layers that a name says were trained.

    Example:
        >>> trained_of("3"), trained_of("3-4")
        ((3,), (3, 4))
    """
    ends = [int(one) for one in name.split("-")]
    return tuple(range(ends[0], ends[-1] + 1))


def places(changes: pd.DataFrame) -> pd.DataFrame:
    """Which layer each measure names, of each model with frozen layers: one row per model, measure, reading and named
    layer, with `task`, `seed`, `trained`, `measure`, `reading`, `named`, `share` (of the vote), `off` (named minus
    the nearest trained layer).
    """
    rows = []
    for (task, seed, trained, _, measure), curve in curves(changes, FROZEN).iterrows():
        layers = curve.index.to_numpy()
        for reading in READINGS:
            departs = sizes(curve, reading, measure)
            top = layers[departs >= departs.max() - TIE * np.abs(departs).max()]
            for named in top:
                off = min((named - one for one in trained_of(trained)), key=abs)
                rows.append((task, seed, trained, measure, reading, int(named), 1 / len(top), int(off)))
    return pd.DataFrame(rows, columns=[*MODEL, "trained", "measure", "reading", "named", "share", "off"])


def where(changes: pd.DataFrame) -> pd.DataFrame:
    """How often, and how far from it, each measure names a layer that was trained: one row per model, measure and
    reading, with `task`, `seed`, `trained`, `measure`, `reading`, `right` (0 to 1), `error` (layers), `own` (the
    trained layers' share of all that the measure reports), and what naming at random gives, `right_by_lot` and
    `error_by_lot`.
    """
    named = places(changes)
    votes = named.assign(right=named["share"] * (named["off"] == 0), error=named["share"] * named["off"].abs())
    keys = [*MODEL, "trained", "measure", "reading"]
    table = votes.groupby(keys, sort=False)[["right", "error"]].sum()
    lots, own = {}, {}
    for (task, seed, trained, _, measure), curve in curves(changes, FROZEN).iterrows():
        layers, free = curve.index.to_numpy(), list(trained_of(trained))
        far = np.abs(layers[:, None] - free).min(axis=1)
        lots[trained] = (float((far == 0).mean()), float(far.mean()))
        for reading in READINGS:
            departs = sizes(curve, reading, measure).clip(0)
            share = departs[far == 0].sum() / departs.sum() if departs.sum() > 0 else np.nan
            own[task, seed, trained, measure, reading] = float(share)
    table["own"] = pd.Series(own)
    table = table.reset_index()
    table[["right_by_lot", "error_by_lot"]] = [lots[trained] for trained in table["trained"]]
    return table


def doses(changes: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of each measure with the dose: `task`, `seed`, `measure`, `correlation` (mean over layers)."""
    rows = []
    for (task, seed, measure), table in curves(changes, FULL).groupby([*MODEL, "measure"], sort=False):
        given = table.index.get_level_values("dose").to_numpy()
        correlations = rank_correlations(pd.DataFrame(np.vstack([given, table.to_numpy().T]))).to_numpy()[0, 1:]
        rows.append((task, seed, measure, float(np.nan_to_num(correlations).mean())))
    return pd.DataFrame(rows, columns=[*MODEL, "measure", "correlation"])


def nothing(changes: pd.DataFrame) -> pd.DataFrame:
    """What each measure reports of changes that change no output: `task`, `seed`, `measure`, `kind`, `share`.

    Of a measure that reports nothing of fine-tuning, the share is 1 where it reports anything here, and 0 otherwise.
    """
    usual, parts = _mean_size(changes, FULL), []
    for kind in (kind for kind in SYMMETRIES if kind in set(changes["kind"])):
        here = _mean_size(changes, kind)
        share = (here / usual).where(usual > 0, (here > 0).astype(float))
        parts.append(share.rename("share").reset_index().assign(kind=kind))
    return pd.concat(parts, ignore_index=True)[[*MODEL, "measure", "kind", "share"]]


def _mean_size(changes: pd.DataFrame, kind: str) -> pd.Series:
    """Mean over layers of the size of each measure in the models of a kind at the usual dose."""
    return _usual(changes, kind).abs().mean(axis=1)


def _usual(changes: pd.DataFrame, kind: str) -> pd.DataFrame:
    """(models × measures, layers) the values of a kind at the usual dose, indexed by task, seed and measure."""
    table = curves(changes, kind)
    return table.xs((ALL, 1.0), level=("trained", "dose"))


def noise(changes: pd.DataFrame) -> pd.DataFrame:
    """Signal and noise of each measure between the seeds of a task: `task`, `measure`, `signal`, `noise`, `ratio`.

    No row where a task has one seed. A measure that is the same in all seeds has an infinite ratio.
    """
    rows = []
    for (task, measure), table in _usual(changes, FULL).groupby(["task", "measure"], sort=False):
        if len(table) > 1:
            signal, spread = table.mean().abs().mean(), float(np.sqrt(table.var().mean()))
            rows.append((task, measure, signal, spread, signal / spread if spread else np.inf))
    return pd.DataFrame(rows, columns=["task", "measure", "signal", "noise", "ratio"])


def learning(changes: pd.DataFrame) -> pd.DataFrame:
    """How well each measure tells models that learned from those that only moved: one row per task, measure, walk and
    seed, with `area` (of all models together, in [0, 1]) and `pseudo` (the jackknife's pseudo-value of that seed,
    whose mean is nearly `area`).
    """
    learned, rows = _usual(changes, FULL), []
    for walk in WALKS:
        walked = _usual(changes, walk)
        for (task, measure), table in learned.groupby(["task", "measure"], sort=False):
            first = table.droplevel(["task", "measure"])
            second = walked.xs((task, measure), level=("task", "measure"))
            second = second.reindex(first.index).dropna()
            first = first.loc[second.index]
            wins = _wins(first.to_numpy(), second.to_numpy())
            area, count = wins.mean(), len(first)
            for place, seed in enumerate(first.index):
                rest = np.delete(np.delete(wins, place, 0), place, 1)
                pseudo = count * area - (count - 1) * rest.mean() if count > 1 else area
                rows.append((task, measure, walk, seed, float(area), float(pseudo)))
    return pd.DataFrame(rows, columns=["task", "measure", "walk", "seed", "area", "pseudo"])


def _wins(learned: np.ndarray, walked: np.ndarray) -> np.ndarray:
    """(m, k) the share of layers at which model i of m has a larger value than model j of k, ties as one half."""
    gap = learned[:, None] - walked[None]
    scale = np.maximum(np.abs(learned[:, None]), np.abs(walked[None]))
    return np.where(np.abs(gap) <= TIE * scale, 0.5, gap > 0).mean(axis=-1)


# --- intervals, and the five questions in one table -------------------------------------------------------------------


def over_seeds(rows: pd.DataFrame, column: str, counted: bool = False) -> Interval:
    """The mean of a column over models, each the mean of its own rows, with its interval; `counted` of cases that are
    right or wrong.
    """
    of_models = rows.groupby(MODEL)[column]
    return effects.over_models(of_models.mean(), unit=1 / of_models.size().min() if counted else 0.0)


QUESTIONS = {
    "where": "names the layer",
    "added": "names it by what it adds",
    "dose": "rises with the dose",
    "ignores": "ignores what changes nothing",
    "learning": "tells learning from moving",
}
BY_CHANCE = {"dose": 0.0, "ignores": 0.0, "learning": 0.5}


def summary(changes: pd.DataFrame) -> pd.DataFrame:
    """The score of each measure on each question: 1 is right in all cases.

    The scores are the share of models with frozen layers of which it names the layer, by its value and by what a
    layer adds; the rank correlation with the dose; 1 less the share that it reports of the change without effect
    that it reports most of, at least 0; and the area under the curve against the walk that it tells less well. `low`
    and `high` are cut to the score's range, and NaN for one model; `by_chance` is what no knowledge gives.
    """
    named = where(changes)
    ignored = nothing(changes).groupby([*MODEL, "measure"], sort=False)["share"].max()
    ignored = (1 - ignored.clip(0, 1)).rename("ignores").reset_index()
    told = learning(changes)
    hardest = told.groupby(["measure", "walk"])["area"].mean().unstack().idxmin(axis=1)
    told = told[told["walk"] == told["measure"].map(hardest)]
    tables: dict[str, tuple[pd.DataFrame, str]] = {
        "where": (named[named["reading"] == VALUE], "right"),
        "added": (named[named["reading"] == ADDED], "right"),
        "dose": (doses(changes), "correlation"),
        "ignores": (ignored, "ignores"),
        "learning": (told, "pseudo"),
    }
    by_chance = BY_CHANCE | dict.fromkeys(("where", "added"), float(named["right_by_lot"].mean()))
    rows = []
    for measure in (key for key in BY_KEY if key in set(changes["measure"])):
        for question, (table, column) in tables.items():
            of_measure = table[table["measure"] == measure]
            interval = over_seeds(of_measure, column, counted=column == "right")
            score = of_measure["area"].mean() if question == "learning" else interval.estimate
            least = -1.0 if question == "dose" else 0.0
            ends = np.clip([interval.low, interval.high], least, 1) if np.isfinite(interval.low) else [np.nan] * 2
            low, high = np.minimum(score, ends[0]), np.maximum(score, ends[1])
            rows.append((measure, question, float(score), float(low), float(high), by_chance[question]))
    return pd.DataFrame(rows, columns=["measure", "question", "score", "low", "high", "by_chance"])


def cases(changes: pd.DataFrame, reading: str = VALUE) -> pd.DataFrame:
    """In how many cases each measure names a layer that was trained: `right` and `of`, by measure.

    Equally named layers count as right in their share, rounded down to whole cases.
    """
    named = where(changes)
    named = named[named["reading"] == reading].groupby("measure", sort=False)["right"]
    return pd.DataFrame({"right": np.floor(named.sum() + 1e-9).astype(int), "of": named.size()})
