"""What the claims of chapter 5 share in reading its records."""

from collections.abc import Iterable

import pandas as pd

from fivelenses.first_exhibits.claims import CannotTest
from fivelenses.records import BASE, LEXICAL, RANDOMISED


def check_present(present: Iterable, wanted: Iterable[str], what: str) -> None:
    missing = [name for name in wanted if name not in set(present)]
    if missing:
        raise CannotTest(f"this run has no {what} {', '.join(missing)}")


def models_of(table: pd.DataFrame) -> list[str]:
    """The column that tells the models of one task apart: their pre-trainings where there are several, or else the
    seeds of their fine-tuning. Records of one model have neither.
    """
    several = [name for name in ("pretrained", "tuned_seed") if name in table.columns and table[name].nunique() > 1]
    return several[:1] or [name for name in ("pretrained", "tuned_seed") if name in table.columns][:1]


def wide(table: pd.DataFrame, by: list[str], values: str) -> pd.DataFrame:
    """One column per model, and a row per seed of fine-tuning, probe, fold and whatever else the record has of `by`;
    the pre-trained encoder and its baselines are the same for all seeds.
    """
    table = table.assign(seed=table.get("seed", 0))
    if "tuned_seed" in table.columns:
        shared = table["model"].isin([BASE, LEXICAL, RANDOMISED])
        seeds = table.loc[~shared, "tuned_seed"].unique()
        table = pd.concat([table[~shared], *(table[shared].assign(tuned_seed=seed) for seed in seeds)])
    index = list(dict.fromkeys(name for name in ("tuned_seed", *by, "fold") if name in table.columns))
    return table.pivot(index=index, columns="model", values=values).reset_index()


def sentences_of(table: pd.DataFrame) -> int | None:
    """How many examples the folds of a record hold together, where it says so."""
    return int(table["examples"].max()) if "examples" in table.columns else None
