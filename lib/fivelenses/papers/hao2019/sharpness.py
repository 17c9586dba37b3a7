"""Beyond the paper: the widths of the basins beside the curvature at their bottom."""

from collections.abc import Mapping

import pandas as pd
from scipy.stats import spearmanr

from fivelenses.first_exhibits.exhibit import Absent, Exhibit, printed, title
from fivelenses.papers.hao2019.basins import RISE, measures
from fivelenses.papers.hao2019.tables import DIVERGED, GROUPS, at_least
from fivelenses.records import ALL

MODEL = ["task", "init", "seed"]
KEY, LABEL = "hao2019-curvature", "Width and curvature"


def beside_widths(landscapes: Mapping[str, pd.DataFrame], curvature: pd.DataFrame) -> pd.DataFrame:
    """One row per model: its basin, and the curvature of the loss at its end.

    Args:
        landscapes: of `measure.landscapes`.
        curvature: of `curvature.end_curvature`.

    Returns:
        `task`, `init`, `seed`, `width` (half widths along the direction of training, in its lengths) with
        `width_whole`, `sharpness`; `top` and `trace` (nats per squared unit) with `trace_standard_error`;
        `top_in_lengths` and `trace_in_lengths`, the same times the squared length of the direction; and the largest
        eigenvalue of each third of the layers, `top_low`, `top_middle`, `top_high`.
    """
    whole = curvature[curvature["group"] == ALL].drop(columns=["group", "examples"])
    for name in ("top", "trace"):
        whole = whole.assign(**{f"{name}_in_lengths": whole[name] * whole["norm"] ** 2})
    thirds = curvature[curvature["group"] != ALL].pivot(index=MODEL, columns="group", values="top")
    seen = measures(landscapes)[[*MODEL, "width", "width_whole", "sharpness"]]
    return seen.merge(whole.drop(columns="norm"), on=MODEL).merge(thirds.add_prefix("top_").reset_index(), on=MODEL)


def table_of_curvature(landscapes: Mapping[str, pd.DataFrame], curvature: pd.DataFrame) -> Exhibit | Absent:
    """Width and curvature of each model, and whether they agree."""
    if curvature.empty:
        return Absent(KEY, LABEL, DIVERGED)
    table = beside_widths(landscapes, curvature).sort_values(MODEL, ascending=[True, False, True], ignore_index=True)
    columns = {
        "task": ("task", title),
        "init": "start",
        "seed": "seed",
        "width": "width along δ₁",
        "sharpness": ("sharpness", "{:.3f}"),
        "top": ("λ₁", _eigenvalue),
        "trace": ("trace", "{trace:,.0f} ± {trace_standard_error:,.0f}"),
        "top_in_lengths": ("λ₁ ‖δ₁‖²", "{:,.0f}"),
    }
    columns |= {f"top_{group}": (f"λ₁, {group}", _eigenvalue) for group in GROUPS}
    caption = (
        f"The width of the basin along δ₁ at {RISE:g} nats, in lengths of δ₁ (≥: it reaches the "
        "edge of the grid), and the sharpness of the table above; the largest eigenvalue λ₁ and the trace of the "
        f"Hessian of the training loss at the end ({curvature['examples'].max():,} examples; nats per squared unit of "
        "the parameters; the trace ± its standard error over draws); λ₁ in squared lengths of δ₁; and λ₁ of the low, "
        f"middle and high third of the layers. {_agreement(table)}"
    )
    shown = at_least(table, {"width": "width_whole"})
    return Exhibit(KEY, LABEL, table, caption, shown=shown, columns=columns)


def _eigenvalue(value: float) -> str:
    return printed(value, ",.0f" if abs(value) >= 100 else ".3g")


def agreement(table: pd.DataFrame) -> dict[str, float]:
    """Rank correlations over models of the width with each measure of curvature, NaN for fewer than three models, and
    where one of the two is the same for all.
    """
    names = {"sharpness": "sharpness", "top_in_lengths": "λ₁ ‖δ₁‖²", "top": "λ₁"}
    correlations = dict.fromkeys(names.values(), float("nan"))
    for name, shown in names.items():
        if len(table) >= 3 and table[["width", name]].nunique().min() > 1:
            correlations[shown] = float(spearmanr(table["width"], table[name]).statistic)
    return correlations


def _agreement(table: pd.DataFrame) -> str:
    correlations = {name: value for name, value in agreement(table).items() if pd.notna(value)}
    if not correlations:
        return "Too few models for a rank correlation."
    told = ", ".join(f"{value:+.2f} with {name}" for name, value in correlations.items()).replace("-", "−")
    return f"Rank correlation of the width over {len(table)} models: {told}; −1 if wide basins are always flat."
