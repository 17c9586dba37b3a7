"""What the claims of chapter 5 share in reading its records."""

from collections.abc import Iterable

import pandas as pd

from fivelenses.exhibits.claims import CannotTest


def check_present(present: Iterable, wanted: Iterable[str], what: str) -> None:
    missing = [name for name in wanted if name not in set(present)]
    if missing:
        raise CannotTest(f"this run has no {what} {', '.join(missing)}")


def models_of(table: pd.DataFrame) -> list[str]:
    """The columns that tell fine-tuned models of one task apart."""
    return [name for name in ("pretrained", "tuned_seed") if name in table.columns]


def wide(table: pd.DataFrame, by: list[str], values: str) -> pd.DataFrame:
    """One column per model, and a row per probe, fold and whatever else the record has of `by`."""
    table = table.assign(seed=table.get("seed", 0))
    index = list(dict.fromkeys(name for name in (*models_of(table), *by, "fold") if name in table.columns))
    return table.pivot(index=index, columns="model", values=values).reset_index()


def sentences_of(table: pd.DataFrame) -> int | None:
    """How many examples the folds of a record hold together, where it says so."""
    return int(table["examples"].max()) if "examples" in table.columns else None
