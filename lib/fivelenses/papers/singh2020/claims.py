"""The six claims of Singh and Giovanardi (2020) as predicates on its exhibits' tables.

The report argues from the shapes of its curves and gives no thresholds. Those here are ours, stated in each claim and
fixed before any run on real data, but for one: that `probing-needs-more` leaves out a task whose curve hardly falls was
added after the first such run, in which it held for want of anything to lose. Numbers of layers are taken relative to
the depth: the top two of twelve are the top sixth.
"""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from fivelenses import tasks
from fivelenses.exhibits.claims import CannotTest, Claim, as_cases
from fivelenses.papers.singh2020.shapes import MIN_PLACES, MIN_POINTS, concavity, fit_shape

PAPER = "singh2020"
MIN_DROP = 0.03  # a curve that falls by less has no shape to speak of
LINEAR = 0.9  # share of the variance that a straight line explains
SIGNIFICANT = 0.05
HALF = 0.5
RISING = 0.5  # rank correlation with depth
TOP = 2 / 12


def curves(table: pd.DataFrame, column: str = "reinitialised") -> dict[tuple[int, int], pd.Series]:
    """(examples, seed) to the score by the number of layers re-initialised or removed."""
    return {
        (int(examples), int(seed)): rows.set_index(column)["score"].sort_index()
        for (examples, seed), rows in table.groupby(["examples", "seed"])
    }


def mean_drop(table: pd.DataFrame) -> float:
    """Score without re-initialised layers minus that with all of them, mean over seeds."""
    means = table.groupby("reinitialised")["score"].mean()
    return float(means.iloc[0] - means.iloc[-1])


def _falling(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of those data sizes at which the mean curve falls by enough to have a shape."""
    kept = [rows for _, rows in table.groupby("examples") if mean_drop(rows) >= MIN_DROP]
    return pd.concat(kept) if kept else table.iloc[:0]


def mean_concavity(table: pd.DataFrame) -> float:
    """Concavity of the mean curve of one data size."""
    means = table.groupby("reinitialised")["score"].mean()
    return concavity(means.index / table["layers"].iloc[0], means.to_numpy())


def _title(table: pd.DataFrame) -> str:
    return tasks.find(table["task"].iloc[0]).title


def less_data_more_reliance(*tables: pd.DataFrame) -> pd.DataFrame:
    """Concavity with the least data minus that with the most; and the least data with all layers kept against the
    most with all re-initialised.
    """
    rows = []
    for table in tables:
        falling = _falling(table)
        sizes = sorted(falling["examples"].unique())
        if len(sizes) < 2:
            continue
        least, most = (falling[falling["examples"] == size] for size in (sizes[0], sizes[-1]))
        kept = least[least["reinitialised"] == 0]["score"].mean()
        scratch = most[most["reinitialised"] == most["layers"]]["score"].mean()
        change = mean_concavity(least) - mean_concavity(most)
        rows.append((_title(table), "all", change, bool(change < 0 and kept > scratch)))
    if not rows:
        raise CannotTest(f"no task's curve falls by {MIN_DROP:g} or more at two data sizes")
    return as_cases(rows)


def _largest(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["examples"] == table["examples"].max()]


def _shape(table: pd.DataFrame):
    if mean_drop(table) < MIN_DROP:
        raise CannotTest(
            f"the curve of {_title(table)} falls by {mean_drop(table):.3f} from none to all layers re-initialised, "
            f"less than {MIN_DROP:g}: it has no shape"
        )
    if table["reinitialised"].nunique() < MIN_PLACES or len(table) < MIN_POINTS:
        raise CannotTest(f"a shape needs {MIN_POINTS} scores at {MIN_PLACES} numbers of re-initialised layers")
    return fit_shape(table["reinitialised"].to_numpy() / table["layers"].iloc[0], table["score"].to_numpy())


def qnli_concave_sst_linear(sst2: pd.DataFrame, qnli: pd.DataFrame) -> pd.DataFrame:
    """Curvature with the most data: QNLI's negative beyond chance, SST-2's closer to 0."""
    gradual, late = _shape(_largest(sst2)), _shape(_largest(qnli))
    falls_late = late.curvature < 0 and late.curvature_p < SIGNIFICANT
    is_line = abs(gradual.curvature) < abs(late.curvature) and gradual.line_r2 >= LINEAR
    return as_cases([("QNLI", "all", late.curvature, falls_late), ("SST-2", "all", gradual.curvature, is_line)])


def cola_linear(table: pd.DataFrame) -> pd.DataFrame:
    """Share of the variance that a straight line explains, with the most data."""
    shape = _shape(_largest(table))
    return as_cases([("CoLA", "all", shape.line_r2, shape.line_r2 >= LINEAR and shape.curvature_p >= SIGNIFICANT)])


def layers_needed(kept: np.ndarray, score: np.ndarray, null: float) -> float:
    """The number of layers with which a curve first has half of its rise over the null rate, interpolated.

    Args:
        kept: (n,) increasing numbers of layers.
        score: (n,).
        null: the score of an answer without reading.
    """
    wanted = null + HALF * (score.max() - null)
    first = int(np.argmax(score >= wanted))
    if first == 0:
        return float(kept[0])
    rise = (wanted - score[first - 1]) / (score[first] - score[first - 1])
    return float(kept[first - 1] + rise * (kept[first] - kept[first - 1]))


def probing_needs_more(*tables: pd.DataFrame) -> pd.DataFrame:
    """Layers needed by frozen probes minus those by re-initialised models, as a share of the depth.

    Args:
        tables: re-initialised scores of each task, then probes of each task in the same order.
    """
    rows = []
    for tuned, frozen in zip(tables[: len(tables) // 2], tables[len(tables) // 2 :], strict=True):
        if mean_drop(_largest(tuned)) < MIN_DROP:
            # Where no layer's pre-training is needed, a probe, which has one layer at least, would need more for sure.
            continue
        size = tuned["examples"].max()
        by_seed = curves(frozen, "removed")
        for (examples, seed), curve in curves(tuned).items():
            if examples != size:
                continue
            depth, probe = tuned["layers"].iloc[0], by_seed[size, seed]
            by_tuning, by_probing = (
                layers_needed(depth - of.index.to_numpy()[::-1], of.to_numpy()[::-1], tuned["null_rate"].iloc[0])
                for of in (curve, probe)
            )
            more = (by_probing - by_tuning) / depth
            rows.append((_title(tuned), str(seed), more, bool(more > 0 and probe.max() < curve.max())))
    if not rows:
        raise CannotTest(f"no task's curve falls by {MIN_DROP:g} or more when all layers are re-initialised")
    return as_cases(rows)


def top_hurts_probing(*tables: pd.DataFrame) -> pd.DataFrame:
    """Probing score without the top sixth of the layers minus that with all, with the most data."""
    rows = []
    for table in tables:
        largest, removed = _largest(table), max(1, round(TOP * table["layers"].iloc[0]))
        for (_, seed), curve in curves(largest, "removed").items():
            gain = float(curve[removed] - curve[0])
            rows.append((_title(table), str(seed), gain, gain > 0))
    return as_cases(rows)


def weights_move_up(*tables: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of the distance with the layer, with the most data; mean and slope also grow with the data."""
    rows = []
    for table in tables:
        for seed, of_seed in table.groupby("seed"):
            # One line per number of training examples, the least first.
            lines = [rows.set_index("layer")["absolute"].sort_index() for _, rows in of_seed.groupby("examples")]
            depth = float(spearmanr(lines[-1].index, lines[-1]).statistic)
            means, slopes = ([line.mean() for line in lines], [np.polyfit(line.index, line, 1)[0] for line in lines])
            grows = bool((np.diff(means) > 0).all() and (np.diff(slopes) > 0).all())
            rows.append((_title(table), str(seed), depth, bool(depth >= RISING and grows)))
    return as_cases(rows)


CLAIMS = (
    Claim(
        "less-data-more-reliance",
        PAPER,
        "With less data, more layers' pre-training is needed: the score drops sooner, and 1 % of the data with the "
        "pre-trained layers beats all of it without them.",
        "section 6.1, Figures 1a and 1b",
        ("singh2020-figure-1a", "singh2020-figure-1b"),
        "concavity of the curve with the least data minus that with the most (-1 to 1)",
        "negative, and the least data with all layers kept beats the most with all re-initialised; a size at which "
        f"the curve falls by less than {MIN_DROP:g} is left out",
        less_data_more_reliance,
        "QNLI: the rapid drop begins at the first three (100 %), four (10 %), five (1 %) layers",
    ),
    Claim(
        "qnli-concave-sst-linear",
        PAPER,
        "QNLI drops late and steeply, SST-2 gradually.",
        "section 6.1.3, Figure 1",
        ("singh2020-figure-1a", "singh2020-figure-1b"),
        "curvature of a parabola through all seeds' points, over the drop (0 is a line, negative falls late)",
        f"QNLI's is negative (F-test, p < {SIGNIFICANT:g}); SST-2's is closer to 0 and a line explains "
        f"{LINEAR:.0%} of its variance",
        qnli_concave_sst_linear,
    ),
    Claim(
        "cola-linear",
        PAPER,
        "CoLA drops about linearly.",
        "section 6.1.4, Figure 1d",
        ("singh2020-figure-1d",),
        "share of the variance that a straight line explains",
        f"at least {LINEAR:g}, and a parabola fits no better (F-test, p ≥ {SIGNIFICANT:g})",
        cola_linear,
    ),
    Claim(
        "probing-needs-more",
        PAPER,
        "Frozen probing peaks lower and needs more layers than re-initialisation.",
        "section 6.2, Figure 2",
        ("singh2020-figure-1a", "singh2020-figure-1b", "singh2020-figure-2a", "singh2020-figure-2b"),
        "layers needed for half of the rise over the null rate, probing minus re-initialisation, over the depth",
        "positive, and the best probe scores lower than the best tuned model; a task whose re-initialised curve falls "
        f"by less than {MIN_DROP:g} is left out",
        probing_needs_more,
    ),
    Claim(
        "top-two-hurt-probing",
        PAPER,
        "Removing the top two of twelve layers raises the accuracy of frozen probing.",
        "section 6.2, Figure 2",
        ("singh2020-figure-2a", "singh2020-figure-2b"),
        "probing score without the top sixth of the layers minus that with all",
        "positive",
        top_hurts_probing,
        "the highest two of 12 layers",
    ),
    Claim(
        "weights-move-up",
        PAPER,
        "Weights move further in higher layers, and all layers further, and more steeply, with more data.",
        "section 6.3, Figure 3",
        ("singh2020-figure-3a", "singh2020-figure-3b"),
        "rank correlation of the distance of the output projection with the layer, with the most data",
        f"at least {RISING:g}, and both the mean distance and its slope grow with the data",
        weights_move_up,
    ),
)
