"""The tables of a sweep: all exhibits of all its runs in one, and the verdicts on all claims in another.

``sweep.parquet`` has one row for each row of each exhibit of each point:

- ``chapter``, ``profile``, ``point``: which run it is from;
- one column for each swept parameter, under the name that it was given;
- ``exhibit``: the exhibit's key, and ``row``: the number of the row in that exhibit's table, from 0;
- the columns of all exhibits' tables, missing where an exhibit has no such column. One that has the name of a column
  above is called ``table_<name>``. A column is a number where it is one in every exhibit that has it (true and false
  are 1 and 0), and a text otherwise.

The exhibit `MODELS` is not the chapter's: it has one row for each fine-tuned model that a run used, with its score.

``claims.parquet`` has the same first columns and one row for each claim, point, group and part, with the columns of
`exhibits.claims.as_table`; a claim that cannot be tested at a point has one row there.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fivelenses.checkpoints import tables
from fivelenses.checkpoints.store import MANIFEST, Checkpoint, Store
from fivelenses.files import written_beside
from fivelenses.first_exhibits import claims
from fivelenses.runs.sweep_points import Point

TABLE, CLAIMS = "sweep.parquet", "claims.parquet"
MODELS = "models"


def collect(
    number: int,
    profile: str,
    points: Sequence[Point],
    runs: Mapping[str, Path],
    folder: Path,
    log: Callable[[str], None] = print,
) -> Path:
    """Write a sweep's tables from the runs of its points, and return the path of the exhibits' table.

    Args:
        points: those that have a run.
        runs: by the name of a point, its run's folder.
        folder: the sweep's.
        log: called with one line for each run whose models are no longer in the store.
    """
    parts, verdicts = [], []
    for point in points:
        run = runs[point.name]
        origin = {"chapter": number, "profile": profile, "point": point.name, **point.values}
        facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
        parts += [(origin, key, pd.read_parquet(run / f"{key}.parquet")) for key in facts["exhibits"]]
        fine_tuned = models(facts["specifications"])
        missing = len(facts["specifications"]) - len(fine_tuned)
        if missing:
            log(f"{point.name}: {missing} of its models are no longer in the store, so the table lacks their scores")
        if not fine_tuned.empty:
            parts.append((origin, MODELS, fine_tuned))
        judged = claims.as_table(claims.load(run))
        verdicts.append(pd.concat([pd.DataFrame([origin] * len(judged), columns=list(origin)), judged], axis=1))
    for name, table in ((TABLE, gather(parts)), (CLAIMS, pd.concat(verdicts, ignore_index=True))):
        with written_beside(folder / name) as place:
            table.to_parquet(place, index=False)
    return folder / TABLE


def gather(parts: Iterable[tuple[Mapping, str, pd.DataFrame]]) -> pd.DataFrame:
    """Tables of many shapes as one, see the head of this module: of each the columns that say where it is from, the
    exhibit's key, and the table.

    Example:
        >>> table = pd.DataFrame({"seed": ["0–1"], "js": [0.2]})
        >>> gather([({"seed": 3}, "figure-4", table)]).to_dict("records")
        [{'seed': 3, 'exhibit': 'figure-4', 'row': 0, 'table_seed': '0–1', 'js': 0.2}]
    """
    whole = []
    for origin, key, table in parts:
        first = {**origin, "exhibit": key, "row": range(len(table))}
        renamed = table.rename(columns={name: f"table_{name}" for name in first})
        whole.append(pd.concat([pd.DataFrame(first, index=table.index), renamed], axis=1))
    columns = list(dict.fromkeys(name for part in whole for name in part.columns))
    for name in columns:
        having = [part for part in whole if name in part.columns]
        # A column without a value is neither: it goes with the others of its name.
        filled = [part[name] for part in having if part[name].notna().any()]
        number = bool(filled) and all(pd.api.types.is_numeric_dtype(column) for column in filled)
        for part in having:
            part[name] = _number(part[name]) if number else part[name].map(_text).astype("object")
    return pd.concat(whole, ignore_index=True)[columns]


def _number(column: pd.Series) -> pd.Series:
    """A column as numbers, whole ones where nothing is missing."""
    if column.isna().any():
        return column.astype("float64")
    return column.astype("int64") if pd.api.types.is_bool_dtype(column) else column


def _text(value):
    """A cell as text; a missing one stays missing."""
    if not pd.api.types.is_scalar(value):
        return json.dumps(value, default=lambda array: array.tolist())
    return None if pd.isna(value) else str(value)


def models(addresses: Iterable[str]) -> pd.DataFrame:
    """The fine-tuned models of these addresses that are in the store, one per row, see `checkpoints.tables.models`."""
    manifests = [Store().folder / address / MANIFEST for address in addresses]
    return tables.models(
        [Checkpoint(file.parent, json.loads(file.read_text(encoding="utf-8"))) for file in manifests if file.is_file()]
    )
