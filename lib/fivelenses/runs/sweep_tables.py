"""The tables of a sweep: all exhibits of all its runs in one, and the verdicts on all claims in another.

``sweep.parquet`` has one row for each row of each exhibit of each point:

- ``chapter``, ``profile``, ``point``: which run it is from;
- one column for each swept parameter, under the name that it was given;
- ``exhibit``: the exhibit's key, and ``row``: the number of the row in that exhibit's table, from 0;
- the columns of all exhibits' tables, missing where an exhibit has no such column. One that bears the name of a column
  above is called ``table_<name>``. A column is a number where it is one in every exhibit that has it (true and false
  are 1 and 0), and a text otherwise.

The exhibit `MODELS` is not the chapter's: it has one row for each fine-tuned model that a run used, with its score.

``claims.parquet`` has the same first columns and one row for each claim and point.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from fivelenses.checkpoints.store import MANIFEST, Store
from fivelenses.exhibits import claims
from fivelenses.files import written_beside
from fivelenses.runs.sweep_points import Point

TABLE, CLAIMS = "sweep.parquet", "claims.parquet"
MODELS = "models"


def collect(
    number: int,
    profile: str,
    chosen: Sequence[Point],
    runs: Mapping[str, Path],
    folder: Path,
    log: Callable[[str], None] = print,
) -> Path:
    """Write a sweep's tables from the runs of its points, each beside and renamed.

    Args:
        number, profile: the chapter, and the profile of the sweep.
        chosen: the points whose runs stand.
        runs: by the name of a point, its run's folder.
        folder: the sweep's.
        log: called with one line for each run whose models are no longer in the store.

    Returns:
        The path of the exhibits' table.
    """
    tables, verdicts = [], []
    for point in chosen:
        run = runs[point.name]
        here = {"chapter": number, "profile": profile, "point": point.name, **point.values}
        facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
        for key in facts["exhibits"]:
            tables.append((here, key, pd.read_parquet(run / f"{key}.parquet")))
        fine_tuned = models(facts["specifications"])
        if len(fine_tuned) < len(facts["specifications"]):
            gone = len(facts["specifications"]) - len(fine_tuned)
            log(f"{point.name}: {gone} of its models have left the store, so the table lacks their scores")
        if not fine_tuned.empty:
            tables.append((here, MODELS, fine_tuned))
        for verdict in claims.load(run):
            verdicts.append(here | asdict(verdict) | {"by_group": json.dumps(verdict.by_group)})
    _write(gather(tables), folder / TABLE)
    numbers = {"value": "float64", "spread": "float64"}
    _write(pd.DataFrame(verdicts).astype(numbers if verdicts else {}), folder / CLAIMS)
    return folder / TABLE


def gather(tables: Iterable[tuple[Mapping, str, pd.DataFrame]]) -> pd.DataFrame:
    """Tables of many shapes as one, see the head of this module.

    Args:
        tables: for each, the columns that say where it is from, the exhibit's key, and the table.

    Example:
        >>> table = pd.DataFrame({"seed": ["0–1"], "js": [0.2]})
        >>> gather([({"seed": 3}, "figure-4", table)]).to_dict("records")
        [{'seed': 3, 'exhibit': 'figure-4', 'row': 0, 'table_seed': '0–1', 'js': 0.2}]
    """
    parts = []
    for here, key, table in tables:
        first = {**here, "exhibit": key, "row": range(len(table))}
        renamed = table.rename(columns={name: f"table_{name}" for name in first})
        parts.append(pd.concat([pd.DataFrame(first, index=table.index), renamed], axis=1))
    columns = list(dict.fromkeys(name for part in parts for name in part.columns))
    for name in columns:
        having = [part for part in parts if name in part.columns]
        # A column without a value is neither: it goes with the others of its name.
        filled = [part[name] for part in having if part[name].notna().any()]
        number = bool(filled) and all(pd.api.types.is_numeric_dtype(column) for column in filled)
        for part in having:
            part[name] = _number(part[name]) if number else part[name].map(_text).astype("object")
    return pd.concat(parts, ignore_index=True)[columns]


def _number(column: pd.Series) -> pd.Series:
    """A column as numbers, whole ones where nothing is missing."""
    if column.isna().any():
        return column.astype("float64")
    return column.astype("int64") if pd.api.types.is_bool_dtype(column) else column


def _text(value):
    """A cell as text; a missing one stays missing."""
    if isinstance(value, str):
        return value
    if not pd.api.types.is_scalar(value):
        return json.dumps(value, default=lambda array: array.tolist())
    return None if pd.isna(value) else str(value)


def models(addresses: Iterable[str]) -> pd.DataFrame:
    """The fine-tuned models of these addresses that are in the store, one a row.

    Returns:
        What sets them apart (`encoder`, `task`, `seed`, `training_examples`, `learning_rate`, `batch_size`, `epochs`,
        `frozen`, `truncated`, `reinitialised`), and `score`, `metric`, `null_rate`, `diverged`, `training_seconds`,
        `address`. `frozen` and `reinitialised` count layers, `truncated` is the layers kept, missing for all.
    """
    folder, rows = Store().folder, []
    for address in addresses:
        file = folder / address / MANIFEST
        if not file.is_file():
            continue
        manifest = json.loads(file.read_text(encoding="utf-8"))
        one = manifest["specification"]
        schedule = {name: one["schedule"][name] for name in ("learning_rate", "batch_size", "epochs")}
        rows.append(
            {name: one[name] for name in ("encoder", "task", "seed")}
            | {"training_examples": manifest["training_examples"]}
            | schedule
            | {"frozen": len(one["frozen"]), "truncated": one["truncated"], "reinitialised": len(one["reinitialised"])}
            | {name: manifest[name] for name in ("score", "metric", "null_rate", "diverged")}
            | {"training_seconds": manifest["seconds"], "address": address}
        )
    table = pd.DataFrame(rows)
    return table if table.empty else table.astype({"truncated": "float64"})


def _write(table: pd.DataFrame, place: Path) -> None:
    with written_beside(place) as partial:
        table.to_parquet(partial, index=False)
