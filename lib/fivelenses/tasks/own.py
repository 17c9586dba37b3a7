"""A reader's own task: a table with a label and one or two texts in each row, from a file or a data set of the hub.

``reviews.csv`` (or `.tsv`, `.jsonl`, `.parquet`) and ``hub:owner/name/configuration@revision`` (the last two can be
left out) have columns `text` and `label`, and `text2` where two texts are read together;
``reviews.csv:text=review,label=stars`` names others. Every other column is left out, and `described` lists it.

Development examples are those of the file beside it whose name has `dev` for `train` (`train.tsv`, `dev.tsv`), of the
hub those of the split `validation`, `dev` or `test`; else a fifth of the distinct texts of each label.

What was read is kept in the store under the task's name, which ends in a digest of it: other rows are another task.
"""

import csv
import hashlib
import io
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from fivelenses.catalogue import Task, is_task, own_folder, read_own, slug
from fivelenses.files import folder_beside, written_beside
from fivelenses.tasks.sources import SourceError, ask_hub_once, hub_errors, mirror, quiet_datasets
from fivelenses.tasks.subsets import subset

# The library takes seconds to load, and a file of the reader's own is read without it.
if TYPE_CHECKING:
    import datasets

COLUMNS, FILES = ("text", "text2", "label"), (".csv", ".tsv", ".jsonl", ".parquet")
NAMED = re.compile(r"(?P<place>.+?)(:(?P<columns>\w+=.*))?")
HUB = re.compile(r"hub:(?P<name>[\w.-]+/[\w.-]+)(/(?P<configuration>[\w.-]+))?(@(?P<revision>\S+))?")
TRAIN = re.compile(r"(?<![A-Za-z])train(?![A-Za-z])")
DEVELOPMENT_SPLITS = ("validation", "dev", "test")  # of a data set of the hub, the first there is
DEVELOPMENT_SHARE, SPLIT_SEED = 0.2, 0
MAX_CLASSES, MIN_ROWS, CLASSES_LISTED = 100, 10, 12
MAX_CHARACTERS = 1_000_000  # of a field; a quotation mark that is never closed swallows the rest of the file


def name_of(named: str) -> str:
    """The name of a task: itself, or that of the task whose table it names.

    Refused: a table that cannot be read or learned from.

    Example:
        >>> name_of("rte")
        'rte'
    """
    if is_task(named):
        return named
    if named.startswith(tuple(f"{column}=" for column in COLUMNS)):
        raise SourceError(f"{named} names a column without its table: quote both, '[\"FILE:text=…,{named}\"]'.")
    place = NAMED.fullmatch(named)["place"] if named else ""
    is_table = place.startswith("hub:") or place.lower().endswith(FILES)
    return register(named).name if is_table else named


def register(named: str) -> Task:
    """The task of a file or a data set of the hub; it is kept in the store for whoever names it next."""
    place, columns = _parse(named)
    title, tables = _hub_tables(place, mirror()) if place.startswith("hub:") else _file_tables(Path(place).expanduser())
    parts = [_examples(table, columns, where) for where, table in tables.items()]
    split = f"from {list(tables)[1]}" if len(parts) == 2 else "a fifth of the distinct texts, split by label"
    frames = dict(zip(("train", "validation"), parts if len(parts) == 2 else _divided(parts[0]), strict=True))
    counts = pd.DataFrame({name: frame["label"].value_counts() for name, frame in frames.items()})
    counts = counts.fillna(0).astype(int)
    _check_learnable(counts, place)
    labels = _in_order(counts.index)
    for frame in frames.values():
        frame["label"] = frame["label"].map(labels.index)
    texts = [name for name in parts[0] if name != "label"]
    read = [columns.get(name, name) for name in (*texts, "label")]
    ignored = [str(name) for name in next(iter(tables.values())) if name not in read]
    facts = {
        "title": title,
        "inputs": texts,
        "label": "label",
        "labels": labels,
        "sizes": {name: len(frame) for name, frame in frames.items()},
        "mean_tokens": round(1.3 * sum(frames["train"][name].str.split().str.len().mean() for name in texts)) + 2,
        "read": (
            f"{title}, columns {', '.join(read)} of {place}: training + development examples {_listed(counts)} "
            f"(development: {split}); null rate {counts['validation'].max() / counts['validation'].sum():.3f}"
            f"{'; not read: ' if ignored else ''}{', '.join(ignored)}."
        ),
    }
    return _keep(facts, frames)


def _parse(named: str) -> tuple[str, dict[str, str]]:
    """The place of a table, and the names of its columns where they are named."""
    parsed = NAMED.fullmatch(named)
    pairs = [pair.partition("=") for pair in (parsed["columns"] or "").split(",") if pair]
    unknown = [role for role, _, column in pairs if role not in COLUMNS or not column]
    if unknown:
        raise SourceError(f"{named} has no meaning for {unknown[0]!r}: name columns as FILE:text=…,text2=…,label=….")
    return parsed["place"], {role: column for role, _, column in pairs}


@cache
def _hub_tables(place: str, folder: Path | None) -> tuple[str, dict[str, pd.DataFrame]]:
    """The title of a data set of the hub, or of the mirror in a folder, and its rows by where they come from."""
    parsed = HUB.fullmatch(place)
    if parsed is None:
        raise SourceError(f"{place!r} is no data set of the hub: write hub:owner/name/configuration@revision.")
    name, configuration = parsed["name"], parsed["configuration"]
    try:
        if folder is None:
            ask_hub_once()
            splits = quiet_datasets().load_dataset(name, configuration, revision=parsed["revision"])
        else:
            files = (folder / "datasets" / name / (configuration or "")).glob("*.parquet")
            splits = quiet_datasets().load_dataset("parquet", data_files={file.stem: str(file) for file in files})
    except hub_errors() as error:
        raise SourceError(
            f"{place} could not be read from {folder or 'the hub'} ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:150]}): correct its name, or add its configuration, hub:{name}/…."
        ) from error
    if "train" not in splits:
        raise SourceError(f"{place} has no split `train` but {', '.join(splits)}: choose another data set.")
    chosen = ["train", *[one for one in DEVELOPMENT_SPLITS if one in splits][:1]]
    title = configuration or name.split("/")[1]
    return title, {f"{place}, split {one}": _with_class_names(splits[one]) for one in chosen}


def _with_class_names(split: "datasets.Dataset") -> pd.DataFrame:
    table = split.to_pandas()
    for column, feature in split.features.items():
        if isinstance(feature, quiet_datasets().ClassLabel):
            names = dict(enumerate(feature.names))
            table[column] = [names.get(label) for label in table[column]]
    return table


def _file_tables(file: Path) -> tuple[str, dict[str, pd.DataFrame]]:
    """The title of a file, and its training and development rows by where they come from."""
    title = TRAIN.sub("", file.stem).strip("-_. ") or file.resolve().parent.name
    development = file.with_name(TRAIN.sub("dev", file.name))
    files = [file, *([development] if development != file and development.is_file() else [])]
    return title, {str(one): read_table(one) for one in files}


def read_table(file: Path) -> pd.DataFrame:
    """The rows of a file, texts as they are (`NA`, too); its index is the line where a row begins, of Parquet the row.

    Tab-separated values have no quoting, as in GLUE's files; comma-separated ones have double quotes.

    Refused: the file is missing, of another kind, not in UTF-8, damaged or empty, has two columns of one name, or a row
    that is broken, named by its line.
    """
    if not file.is_file():
        raise SourceError(f"There is no file {file.absolute()}: correct its path.")
    if file.suffix.lower() == ".parquet":
        table = _read_parquet(file)
    else:
        content = file.read_bytes()
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            raise SourceError(f"{file} is not text in UTF-8 (line {line:,}): save it in this encoding.") from error
        table = _read_jsonl(text, file) if file.suffix.lower() == ".jsonl" else _read_separated(text, file)
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise SourceError(f"{file} has two columns named {twice[0]!r}: give each a name of its own.")
    if table.empty:
        raise SourceError(f"{file} has no examples: give it the names of its columns and an example in each row.")
    return table


def _read_parquet(file: Path) -> pd.DataFrame:
    try:
        table = pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0][:120]
        raise SourceError(f"{file} is damaged or no Parquet file ({reason}): save it again.") from error
    # As Python's values: a missing label would turn whole numbers into fractions.
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    index = pd.RangeIndex(1, table.num_rows + 1, name="row")
    return pd.DataFrame(list(rows), index, table.column_names, dtype=object)


def _read_jsonl(text: str, file: Path) -> pd.DataFrame:
    rows: dict[int, dict] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows[number] = {**json.loads(line)}
        except (ValueError, TypeError) as error:
            raise SourceError(f"{file} has no JSON object in line {number:,} ({error}): correct it.") from error
    return pd.DataFrame(list(rows.values()), pd.Index(rows, name="line"), dtype=object)


def _read_separated(text: str, file: Path) -> pd.DataFrame:
    tabs = file.suffix.lower() == ".tsv"
    form = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"strict": True}
    csv.field_size_limit(MAX_CHARACTERS)
    reader, rows, line = csv.reader(io.StringIO(text, newline=""), **form), {}, 1
    try:
        for row in reader:
            if row:
                rows[line] = row
            line = reader.line_num + 1
    except csv.Error as error:
        raise SourceError(f"{file} has a broken row that begins in line {line:,} ({error}): correct it.") from error
    header = [name.strip() for name in next(iter(rows.values()), [])]
    for line, row in rows.items():
        if len(row) != len(header):
            advice = "texts hold no tab" if tabs else "put a text that holds a comma between double quotes"
            amounts = f"{len(row)} fields in line {line:,} and {len(header)} in its first"
            raise SourceError(f"{file} has {amounts}: {advice}.")
    return pd.DataFrame(list(rows.values())[1:], pd.Index(list(rows)[1:], name="line"), header, dtype=object)


def _examples(table: pd.DataFrame, columns: dict[str, str], where: str) -> pd.DataFrame:
    """The columns `text`, `text2` where there is one, and `label`, labels as texts."""
    columns = {role: columns.get(role, role) for role in COLUMNS if role in columns or role != "text2" or role in table}
    for role, column in columns.items():
        if column not in table:
            there = ", ".join(map(repr, table))
            raise SourceError(f"{where} has no column {column!r}: it has {there}; name yours by FILE:{role}=….")
    if len(set(columns.values())) < len(columns):
        raise SourceError(f"{where} is to give one column for two of {', '.join(columns)}: name different ones.")
    examples = pd.DataFrame({role: table[column].tolist() for role, column in columns.items()}, dtype=object)
    for role, values in examples.items():
        readable = [_label(value) if role == "label" else value for value in values]
        bad = [row for row, value in enumerate(readable) if not isinstance(value, str) or not value.strip()]
        if bad:
            kind = "a text or a whole number" if role == "label" else "a text"
            raise SourceError(
                f"{where} has {values[bad[0]]!r} as {columns[role]} in {table.index.name or 'row'} "
                f"{table.index[bad[0]]:,} (of {len(bad):,} such rows the first): give {kind}, or remove them."
            )
        examples[role] = readable
    return examples


def _label(value) -> str | None:
    """A label as text; None for what is no label."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int) else None


def _divided(examples: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and development rows; rows with equal texts stay together."""
    group = examples.groupby([name for name in examples if name != "label"], sort=False).ngroup()
    distinct = examples["label"][~group.duplicated()].to_numpy()
    held_out = group.isin(subset(distinct, max(1, round(DEVELOPMENT_SHARE * len(distinct))), SPLIT_SEED))
    return examples[~held_out].reset_index(drop=True), examples[held_out].reset_index(drop=True)


def _check_learnable(counts: pd.DataFrame, where: str) -> None:
    """Refuse what cannot be learned: `counts` are the examples of each class in training and development."""
    if len(counts) > MAX_CLASSES:
        raise SourceError(f"{where} has {len(counts):,} different labels: a task has at most {MAX_CLASSES}.")
    if len(counts) == 1:
        raise SourceError(f"{where} has the label {counts.index[0]!r} alone: there is nothing to tell apart.")
    training, development = counts.sum()
    if min(training, development) < MIN_ROWS:
        sizes = f"{training:,} training and {development:,} development examples (equal texts stay together)"
        raise SourceError(f"{where} gives {sizes}: a task needs {MIN_ROWS} of each.")
    rare = counts[counts["train"] < 2]
    if len(rare):
        amounts = f"{rare['train'].iloc[0]} in training, {rare['validation'].iloc[0]} in development"
        raise SourceError(
            f"{where} has too few examples of the label {rare.index[0]!r} ({amounts}): correct or add some."
        )
    if (counts["validation"] > 0).sum() == 1:
        raise SourceError(f"The development examples of {where} have one label alone: give more of them.")


def _in_order(labels: pd.Index) -> list[str]:
    """Whole numbers by size, anything else by the alphabet."""
    numeric = all(re.fullmatch(r"-?\d+", label) for label in labels)
    return sorted(labels, key=int if numeric else None)


def _listed(counts: pd.DataFrame) -> str:
    """The training and development examples of each class, the most frequent and the rarest of many."""
    ordered = counts.sort_values("train", ascending=False, kind="stable")
    listed = [f"{label} {row['train']:,} + {row['validation']:,}" for label, row in ordered.iterrows()]
    half = CLASSES_LISTED // 2
    return ", ".join(listed if len(listed) <= CLASSES_LISTED else [*listed[:half], "…", *listed[-half:]])


def _keep(facts: dict, frames: dict[str, pd.DataFrame]) -> Task:
    content = hashlib.sha256(json.dumps([facts["title"], facts["labels"]]).encode())
    for frame in frames.values():
        content.update(json.dumps(frame.to_dict("list"), ensure_ascii=False).encode("utf-8", "surrogatepass"))
    place = own_folder() / f"{slug(facts['title'])}-{content.hexdigest()[:8]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.parent / ".lock"):
        if place.is_dir():
            facts["place"] = read_own(place.name).place
            _write(facts, place)  # the same rows may now come from another file
        else:
            others = (read_own(other.name) for other in place.parent.iterdir())
            facts["place"] = 1 + max((other.place for other in others if other is not None), default=-1)
            with folder_beside(place) as partial:
                for split, frame in frames.items():
                    frame.to_parquet(partial / f"{split}.parquet", index=False)
                _write(facts, partial)
    return read_own(place.name)


def _write(facts: dict, folder: Path) -> None:
    with written_beside(folder / "task.json") as place:
        place.write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")


def described(name: str) -> str:
    """One sentence on how a task's table was read, with the examples of each class."""
    return json.loads((own_folder() / name / "task.json").read_text(encoding="utf-8"))["read"]


def table(task: Task, split: str) -> "datasets.Dataset":
    """One split of a task of the reader's own.

    Refused: its table is no longer in the store.
    """
    file = own_folder() / task.name / f"{split}.parquet"
    try:
        return quiet_datasets().Dataset.from_pandas(pd.read_parquet(file), preserve_index=False)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{file} is missing or damaged: remove its folder and name the task's table again."
        ) from error
