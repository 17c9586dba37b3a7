"""Table 1 of Hao et al. (2019), and how its trainings begin, for an encoder beside the one that the chapter follows."""

import pandas as pd

from fivelenses.exhibits import claims
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.papers.hao2019.claims import CLAIMS, angle_after_one_epoch
from fivelenses.papers.hao2019.planes import WAYS
from fivelenses.papers.hao2019.tables import put_back


def another_encoder(models: Exhibit, rolled_back: pd.DataFrame, paths: pd.DataFrame, encoder: str) -> Exhibit:
    """What is cheap to ask of another encoder, with the verdicts on the claims that are read from it.

    Args:
        models: of `table_of_models`, for this encoder.
        rolled_back: of `rollbacks`, for this encoder.
        paths: of `trajectories`, for this encoder; empty where none was followed.
        encoder: its name.
    """
    shown, words = put_back(rolled_back)
    table, read, begins = rolled_back.assign(encoder=encoder), {"hao2019-table-1": rolled_back}, ""
    if not paths.empty:
        read["hao2019-figure-3"] = paths
        angles = _first_angles(paths)
        table = table.merge(angles.reset_index(), on=["task", "seed"], how="left")
        means = angles.groupby("task").mean().reindex(rolled_back["task"].unique())
        # Tasks whose trajectories were not followed have none.
        shown = shown.assign(
            **{
                f"first epoch, {way}": ["–" if pd.isna(angle) else f"{angle:.0f}°" for angle in means[f"angle_{way}"]]
                for way in WAYS
            }
        )
        begins = " The last two columns: the angle between the way of the first epoch and the whole way."
    caption = (
        f"{words} This is Table 1 for {encoder}.{begins} Scores beside the null rate: {_scores(models.table)}. Of the "
        f"claims that are read from this, {claims.in_words(CLAIMS, read)}."
    )
    key = f"hao2019-table-1-{encoder.replace('/', '-')}"
    return Exhibit(key, "Table 1, another encoder", table, caption, shown=shown)


def _scores(models: pd.DataFrame) -> str:
    said = []
    for task, rows in models.groupby("task", sort=False):
        means = rows.groupby("start")["score"].mean()
        said.append(
            f"{task} {means['pre-trained']:.3f}, from scratch {means['random']:.3f} ({rows['null rate'].iloc[0]:.3f})"
        )
    return "; ".join(said)


def _first_angles(paths: pd.DataFrame) -> pd.DataFrame:
    """By task and seed, the angles of both ways after an epoch, in degrees: columns `angle_scratch`, `angle_tuned`."""
    rows = [
        {"task": task, "seed": seed, "way": f"angle_{way}", "angle": angle_after_one_epoch(path)}
        for (task, seed, way), path in paths.groupby(["task", "seed", "way"], sort=False)
    ]
    return pd.DataFrame(rows).pivot(index=["task", "seed"], columns="way", values="angle").rename_axis(columns=None)
