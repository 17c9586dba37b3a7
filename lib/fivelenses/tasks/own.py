"""A reader's own task: a table with a label and one or two texts in each row, from a file or a data set of the hub.

``reviews.csv`` (or `.tsv`, `.jsonl`, `.parquet`) and ``hub:owner/name/configuration@revision`` (the last two can be
left out) have columns `text` and `label`, and `text2` where two texts are read together;
``reviews.csv:text=review,label=stars`` names others. Every other column is left out, and `description` lists it.

Development examples are those of the file beside it whose name has `dev` for `train` (`train.tsv`, `dev.tsv`), of the
hub those of the split `validation`, `dev` or `test`; else a fifth of the distinct texts of each label.

What was read is kept in the store under the task's name, which ends in a digest of it: other rows are another task.
"""

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fivelenses.catalogue import Task, own_folder, read_own
from fivelenses.files import written_beside
from fivelenses.tasks import subset
from fivelenses.tasks.sources import SourceError, mirror, read_hub

COLUMNS, FILES = ("text", "text2", "label"), (".csv", ".tsv", ".jsonl", ".parquet")
ARGUMENT = re.compile(r"(?P<place>.+?)(:(?P<columns>\w+=.*))?")
HUB = re.compile(r"hub:(?P<name>[\w.-]+/[\w.-]+)(/(?P<configuration>[\w.-]+))?(@(?P<revision>\S+))?")
TRAIN = re.compile(r"(?<![A-Za-z])train(?![A-Za-z])")
DEVELOPMENT_SPLITS = ("validation", "dev", "test")  # of a data set of the hub, the first there is
DEVELOPMENT_SHARE, SPLIT_SEED = 0.2, 0
MAX_CLASSES, MIN_ROWS = 100, 10


def name_of(argument: str) -> str:
    """The name of a task: itself, or that of the task whose table it names."""
    if argument.startswith(tuple(f"{column}=" for column in COLUMNS)):
        raise SourceError(f"{argument} names a column without its table: quote both, '[\"FILE:text=…,{argument}\"]'.")
    place = ARGUMENT.fullmatch(argument)["place"] if argument else ""
    is_table = place.startswith("hub:") or place.lower().endswith(FILES)
    return register(argument).name if is_table else argument


def register(argument: str) -> Task:
    """The task of a file or a data set of the hub; it is kept in the store for whoever names it next."""
    parsed = ARGUMENT.fullmatch(argument)
    place, columns = parsed["place"], dict(re.findall(r"([^,=]+)=([^,]+)", parsed["columns"] or ""))
    title, tables = _hub_tables(place) if place.startswith("hub:") else _file_tables(Path(place).expanduser())
    parts = [_examples(table, columns, where) for where, table in tables.items()]
    texts = [role for role in parts[0] if role != "label"]
    split = f"from {list(tables)[1]}" if len(parts) == 2 else "a fifth of the distinct texts, split by label"
    frames = dict(zip(("train", "validation"), parts if len(parts) == 2 else _split(parts[0], texts), strict=True))
    counts = pd.DataFrame({name: frame["label"].value_counts() for name, frame in frames.items()})
    counts = counts.fillna(0).astype(int)
    _check_learnable(counts, place)
    numeric = all(re.fullmatch(r"-?\d+", label) for label in counts.index)
    labels = sorted(counts.index, key=int if numeric else None)
    frames = {name: frame.assign(label=frame["label"].map(labels.index)) for name, frame in frames.items()}
    read = [columns.get(role, role) for role in (*texts, "label")]
    ignored = [str(column) for column in next(iter(tables.values())) if column not in read]
    counts = counts.sort_values("train", ascending=False, kind="stable")
    classes = [f"{label} {train:,} + {validation:,}" for label, train, validation in counts.itertuples()]
    sentence = (
        f"{title}, columns {', '.join(read)} of {place}: training + development examples {', '.join(classes)} "
        f"(development: {split}); null rate {counts['validation'].max() / counts['validation'].sum():.3f}"
        f"{'; not read: ' if ignored else ''}{', '.join(ignored)}."
    )
    facts = {"title": title, "inputs": texts, "label": "label", "labels": labels}
    facts |= {"sizes": {name: len(frame) for name, frame in frames.items()}, "read": sentence}
    return _store(facts, frames)


def _hub_tables(place: str) -> tuple[str, dict[str, pd.DataFrame]]:
    """The title of a data set of the hub, and its training and development rows by where they come from."""
    parsed = HUB.fullmatch(place)
    if parsed is None:
        raise SourceError(f"{place!r} is no data set of the hub: write hub:owner/name/configuration@revision.")
    splits = read_hub(mirror(), parsed["name"], parsed["configuration"], parsed["revision"])
    if "train" not in splits:
        raise SourceError(f"{place} has no split `train` but {', '.join(splits)}: choose another data set.")
    tables = {}
    for split in ["train", *[one for one in DEVELOPMENT_SPLITS if one in splits][:1]]:
        table = tables[f"{place}, split {split}"] = splits[split].to_pandas()
        for column, feature in splits[split].features.items():
            if names := getattr(feature, "names", None):  # of classes, which the table numbers
                table[column] = table[column].map(dict(enumerate(names)))
    return parsed["configuration"] or parsed["name"].split("/")[1], tables


def _file_tables(file: Path) -> tuple[str, dict[str, pd.DataFrame]]:
    """The title of a file, and its training and development rows by where they come from."""
    title = TRAIN.sub("", file.stem).strip("-_. ") or file.resolve().parent.name
    development = file.with_name(TRAIN.sub("dev", file.name))
    files = [file, *([development] if development != file and development.is_file() else [])]
    return title, {str(one): read_table(one) for one in files}


def read_table(file: Path) -> pd.DataFrame:
    """The rows of a file, values as they are (`NA` is a text), by the line where they end, of Parquet by the row.

    Tab-separated values have no quoting, as in GLUE's files; comma-separated ones have double quotes. Refused: a file
    that is missing, not in UTF-8, damaged or empty, or has a broken row, named by its line.
    """
    kind, rows = file.suffix.lower(), {}
    if not file.is_file():
        raise SourceError(f"There is no file {file.absolute()}: correct its path.")
    try:
        rows.update(_rows(file, kind))  # those before a broken one are kept
    except (OSError, ValueError, TypeError, csv.Error, pa.ArrowException) as error:
        reason = str(error).splitlines()[0][:120]
        line = "" if kind == ".parquet" else f" near line {1 + max(rows, default=1):,}"
        raise SourceError(f"{file} is damaged{line} or no {kind} in UTF-8 ({reason}): correct it.") from error
    if not rows:
        raise SourceError(f"{file} has no examples: give it the names of its columns and an example in each row.")
    # As Python's values: a missing label would turn whole numbers into fractions.
    index = pd.Index(rows, name="row" if kind == ".parquet" else "line")
    return pd.DataFrame(list(rows.values()), index, dtype=object)


def _rows(file: Path, kind: str) -> Iterator[tuple[int, dict]]:
    if kind == ".parquet":
        yield from enumerate(pq.read_table(file).to_pylist(), 1)
        return
    with file.open(encoding="utf-8-sig", newline="") as lines:
        if kind == ".jsonl":
            yield from ((number, {**json.loads(line)}) for number, line in enumerate(lines, 1) if line.strip())
            return
        form = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if kind == ".tsv" else {"strict": True}
        reader = csv.DictReader(lines, **form)
        for row in reader:
            if len(row) < len(reader.fieldnames) or None in (*row, *row.values()):
                raise csv.Error(f"it has not one field for each of {', '.join(reader.fieldnames)}")
            yield reader.line_num, row


def _examples(table: pd.DataFrame, columns: dict[str, str], where: str) -> pd.DataFrame:
    """The columns `text`, `text2` where there is one, and `label`, labels as texts."""
    if unknown := set(columns) - set(COLUMNS):
        raise SourceError(f"{where} has no use for {unknown.pop()!r}: name columns as FILE:text=…,text2=…,label=….")
    columns = {role: columns.get(role, role) for role in COLUMNS if role in columns or role != "text2" or role in table}
    examples = pd.DataFrame(index=table.index)
    for role, column in columns.items():
        if column not in table:
            there = ", ".join(map(repr, table))
            raise SourceError(f"{where} has no column {column!r}: it has {there}; name yours by FILE:{role}=….")
        examples[role] = [_label(value) if role == "label" else value for value in table[column]]
        bad = [not isinstance(value, str) or not value.strip() for value in examples[role]]
        if any(bad):
            kind = "a text or a whole number" if role == "label" else "a text"
            raise SourceError(
                f"{where} has {table[column][bad].iloc[0]!r} as {column} in {table.index.name or 'row'} "
                f"{table.index[bad][0]:,} (of {sum(bad):,} such rows the first): give {kind}, or remove them."
            )
    return examples.reset_index(drop=True)


def _label(value) -> str | None:
    """A label as text; None for what is no label."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int) else None


def _split(examples: pd.DataFrame, texts: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and development rows; rows with equal texts stay together."""
    group = examples.groupby(texts, sort=False).ngroup()
    distinct = examples["label"][~group.duplicated()].to_numpy()
    held_out = group.isin(subset(distinct, max(1, round(DEVELOPMENT_SHARE * len(distinct))), SPLIT_SEED))
    return examples[~held_out].reset_index(drop=True), examples[held_out].reset_index(drop=True)


def _check_learnable(counts: pd.DataFrame, where: str) -> None:
    """Refuse what cannot be learned: `counts` are the examples of each class in training and development."""
    (training, development), rare = counts.sum(), counts["train"].idxmin()
    rarest = f"{counts['train'][rare]} in training, {counts['validation'][rare]} in development"
    sizes = f"{training:,} training and {development:,} development examples (equal texts stay together)"
    for refused, sentence in (
        (len(counts) > MAX_CLASSES, f"{len(counts):,} different labels: a task has at most {MAX_CLASSES}"),
        (len(counts) == 1, f"the label {rare!r} alone: there is nothing to tell apart"),
        (min(training, development) < MIN_ROWS, f"{sizes}: a task needs {MIN_ROWS} of each"),
        (counts["train"].min() < 2, f"too few examples of the label {rare!r} ({rarest}): correct or add some"),
        ((counts["validation"] > 0).sum() == 1, "development examples of one label alone: give more of them"),
    ):
        if refused:
            raise SourceError(f"{where} has {sentence}.")


def _store(facts: dict, frames: dict[str, pd.DataFrame]) -> Task:
    content = hashlib.sha256(json.dumps([facts["title"], facts["labels"]]).encode())
    for frame in frames.values():
        content.update(json.dumps(frame.to_dict("list"), ensure_ascii=False).encode("utf-8", "surrogatepass"))
    slug = re.sub(r"[^a-z0-9]+", "-", facts["title"].lower()).strip("-")[:40].strip("-") or "task"
    folder = own_folder() / f"{slug}-{content.hexdigest()[:8]}"
    # The table first: a task is known by its other file. The same rows may now come from another place.
    for split, frame in frames.items():
        with written_beside(folder / f"{split}.parquet") as file:
            frame.to_parquet(file, index=False)
    with written_beside(folder / "task.json") as file:
        file.write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")
    return read_own(folder.name)


def table(task: Task, split: str) -> pd.DataFrame:
    """One split of a task of the reader's own; refused where the store no longer has it."""
    file = own_folder() / task.name / f"{split}.parquet"
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} is missing or damaged: name the task's table again.") from error
