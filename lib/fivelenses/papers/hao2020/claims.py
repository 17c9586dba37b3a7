"""The seven claims of Hao et al. (2020) as predicates on its exhibits' tables.

The paper argues from the shapes of curves and gives no thresholds. Those here are ours, fixed before any run and
stated in each claim.
Layers are taken relative to the depth: the lower third of 24 layers is that of 6.
"""

import pandas as pd
from scipy.stats import spearmanr

from fivelenses import tasks
from fivelenses.exhibits.claims import CannotTest, Claim, as_cases

PAPER = "hao2020"
DRASTIC = 2.0  # "drastically": at least twice as much
HARMLESS = 1 / 3  # "hardly", "consistent": at most a third of what the layers above show
RISING = 0.8  # rank correlation with depth from which a curve counts as rising
LOW_OF_24 = 11 / 24  # the paper's layers 0–10
DATASET_ORDER = ("rte–mnli", "mrpc–rte", "mrpc–sst2")
LARGE, SMALL = ("mnli", "sst2"), "mrpc"


def _curves(table: pd.DataFrame, group: str, value: str) -> dict[tuple[str, str], pd.Series]:
    """(group, seed) to the curve of `value` over layers."""
    return {
        (str(name), str(seed)): rows.set_index("layer")[value].sort_index()
        for (name, seed), rows in table.groupby([group, "seed"], sort=False)
    }


def _parts(curve: pd.Series, border: float) -> tuple[float, float]:
    """The means of a curve up to a relative depth and above it."""
    low = curve.index <= curve.index.max() * border + 1e-9
    if low.all() or not low.any():
        raise CannotTest(f"an encoder of {curve.index.max()} layers has none on one side of {border:.0%} of its depth")
    return float(curve[low].mean()), float(curve[~low].mean())


def _ratio(above: float, below: float) -> float:
    return above / max(below, 1e-12)


def _onset(curve: pd.Series) -> float:
    """The relative depth at which a curve first reaches half of its greatest value."""
    return float(curve.index[curve >= curve.max() / 2][0] / curve.index.max())


def _titled(cases: pd.DataFrame) -> pd.DataFrame:
    """The same cases, their tasks, or pairs of tasks, called by their names."""
    names = ["–".join(tasks.find(task).title for task in group.split("–")) for group in cases["group"]]
    return cases.assign(group=names)


def last_layers_change(table: pd.DataFrame) -> pd.DataFrame:
    """JS divergence of the last third of the layers over that of the two thirds below."""
    return _titled(_last_layers_over_lower(table))


def _last_layers_over_lower(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (task, seed), curve in _curves(table, "task", "js").items():
        below, last = _parts(curve, 2 / 3)
        rows.append((task, seed, _ratio(last, below), _ratio(last, below) >= DRASTIC))
    return as_cases(rows)


def distance_grows(table: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of SVCCA distance with the layer."""
    return _titled(_rising(table))


def _rising(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (task, seed), curve in _curves(table, "task", "svcca").items():
        rising = float(spearmanr(curve.index, curve).statistic)
        rows.append((task, seed, rising, rising >= RISING))
    return as_cases(rows)


def low_layers_harmless(table: pd.DataFrame) -> pd.DataFrame:
    """Movement of the last layer when a low layer is put back, over that when a middle or last layer is."""
    rows = []
    for (task, seed), curve in _curves(table, "task", "svcca").items():
        low, above = _parts(curve, LOW_OF_24)
        rows.append((task, seed, _ratio(low, above), _ratio(low, above) <= HARMLESS))
    return _titled(as_cases(rows))


def _latest_onset_of_large(curves: dict, seed: str) -> float | None:
    onsets = [_onset(curve) for (task, other), curve in curves.items() if task in LARGE and other == seed]
    return max(onsets) if onsets else None


def seeds_agree_in_attention(table: pd.DataFrame) -> pd.DataFrame:
    """As `last_layers_change` between seeds; MRPC's divergence also has to begin no later than that of MNLI and
    SST-2.
    """
    cases, curves = _last_layers_over_lower(table), _curves(table, "task", "js")
    for number, case in cases.iterrows():
        others = _latest_onset_of_large(curves, case["seed"])
        if case["group"] == SMALL and others is not None:
            cases.loc[number, "holds"] &= _onset(curves[SMALL, case["seed"]]) <= others
    return _titled(cases)


def seeds_part_in_features(table: pd.DataFrame) -> pd.DataFrame:
    """As `distance_grows` between seeds; MNLI and SST-2 also rise most in the last third, and MRPC no later
    than they do.
    """
    cases, curves = _rising(table), _curves(table, "task", "svcca")
    for number, case in cases.iterrows():
        curve, task = curves[case["group"], case["seed"]], case["group"]
        if task in LARGE:
            below, last = _parts(curve.diff().dropna(), 2 / 3)
            cases.loc[number, "holds"] &= last > below
        others = _latest_onset_of_large(curves, case["seed"])
        if task == SMALL and others is not None:
            cases.loc[number, "holds"] &= _onset(curve) <= others
    return _titled(cases)


def low_layers_agree_between_datasets(attention: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """Distance in the lower third over that in the last third; the larger of the ratios of JS divergence and
    SVCCA distance.
    """
    rows = []
    by_features = _curves(features, "pair", "svcca")
    for (pair, seed), js in _curves(attention, "pair", "js").items():
        ratios = []
        for curve in (js, by_features[pair, seed]):
            low, _ = _parts(curve, 1 / 3)
            _, last = _parts(curve, 2 / 3)
            ratios.append(_ratio(low, last))
        rows.append((pair, seed, max(ratios), max(ratios) <= HARMLESS))
    return _titled(as_cases(rows))


def distance_orders_datasets(attention: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of the mean distance above the lower third with the paper's order of the three pairs."""
    rows = []
    for measure, table, value in (("JS divergence", attention, "js"), ("SVCCA distance", features, "svcca")):
        curves = _curves(table, "pair", value)
        for seed in dict.fromkeys(seed for _, seed in curves):
            if not all((pair, seed) in curves for pair in DATASET_ORDER):
                raise CannotTest("it needs models of MNLI, RTE, SST-2 and MRPC")
            means = [_parts(curves[pair, seed], 1 / 3)[1] for pair in DATASET_ORDER]
            order = float(spearmanr(range(3), means).statistic)
            rows.append((measure, seed, order, order == 1.0))
    return as_cases(rows)


CLAIMS = (
    Claim(
        "js-last-layers",
        PAPER,
        "Fine-tuning hardly changes the attention of low and middle layers, and changes that of the last layers "
        "drastically.",
        "section 3, Figure 1",
        ("hao2020-figure-1",),
        "mean JS divergence of the last third of the layers over that of the two thirds below",
        f"at least {DRASTIC:g}",
        last_layers_change,
    ),
    Claim(
        "svcca-grows",
        PAPER,
        "SVCCA distance to the pre-trained encoder is larger in higher layers.",
        "section 4, Figure 2",
        ("hao2020-figure-2",),
        "rank correlation of SVCCA distance with the layer",
        f"at least {RISING:g}",
        distance_grows,
    ),
    Claim(
        "rollback-low-harmless",
        PAPER,
        "Putting back any of the lower 11 of 24 layers hardly moves the last layer; putting back a higher one does.",
        "section 4, Figure 3",
        ("hao2020-figure-3",),
        "mean movement for the lower 11/24 of the layers over that for those above",
        f"at most {HARMLESS:.2g}",
        low_layers_harmless,
        "layers 0–10 of 24, counted from 0",
    ),
    Claim(
        "seeds-js",
        PAPER,
        "Between seeds, attention agrees in low and middle layers and diverges in the last; for MRPC from about "
        "layer 10 of 24 on.",
        "section 5.1, Figure 4",
        ("hao2020-figure-4",),
        "mean JS divergence between seeds of the last third over that of the two thirds below",
        f"at least {DRASTIC:g}, and MRPC reaches half of its greatest value no later than MNLI and SST-2",
        seeds_agree_in_attention,
        "MRPC: from layer 9 of 24, counted from 0",
    ),
    Claim(
        "seeds-svcca",
        PAPER,
        "Between seeds, SVCCA distance rises through all layers: for MNLI and SST-2 most in the last, for MRPC "
        "from about layer 14 of 24.",
        "section 5.1, Figure 5",
        ("hao2020-figure-5",),
        "rank correlation of SVCCA distance between seeds with the layer",
        f"at least {RISING:g}; MNLI and SST-2 rise more a layer in the last third than below; MRPC is at half its "
        "height no later",
        seeds_part_in_features,
        "MRPC: from layer 13 of 24, counted from 0",
    ),
    Claim(
        "datasets-low-agree",
        PAPER,
        "The lower third of the layers agrees between models of different data sets, whatever the domain.",
        "section 5.2, Figures 6 and 7",
        ("hao2020-figure-6", "hao2020-figure-7"),
        "mean distance in the lower third over that in the last, the larger of JS and SVCCA",
        f"at most {HARMLESS:.2g}",
        low_layers_agree_between_datasets,
        "layers 0–7 of 24, counted from 0",
    ),
    Claim(
        "datasets-order",
        PAPER,
        "In middle and last layers models differ more the more their data sets do: RTE–MNLI, then MRPC–RTE, then "
        "MRPC–SST-2.",
        "section 5.2, Figures 6 and 7",
        ("hao2020-figure-6", "hao2020-figure-7"),
        "rank correlation of the three pairs' mean distances with that order",
        "1, for every measure",
        distance_orders_datasets,
    ),
)
