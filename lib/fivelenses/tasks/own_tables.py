"""A reader's own table: a file or a data set of the hub as columns, and which of them are texts and which the label.

Nothing is guessed beyond these rules, and a table that they do not decide is refused in one sentence:

- the label is the column that its declaration names; else the first there is of `LABELS`, in any case;
- the texts are the one or two columns that it names; else all columns of text but the label and those of `NO_TEXT`,
  which have to be one or two. Columns of numbers are no texts.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fivelenses.tasks.sources import SourceError

Columns = dict[str, list]

SEPARATORS = {".csv": ",", ".tsv": "\t"}
TABLES = (*SEPARATORS, ".parquet")
LABELS = ("label", "class", "target", "category")
NO_TEXT = ("id", "idx", "index", "guid", "")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
MAX_CHARACTERS = 1_000_000  # of one field; a quote that is never closed would swallow the rest of the file


def read(file: Path) -> Columns:
    """The columns of a file: texts as they are, also `NA` and `null`.

    Raises:
        SourceError: the file is missing, of another kind, not text in UTF-8, damaged, empty, or has two columns of one
            name.
    """
    if not file.is_file():
        raise SourceError(f"There is no file {file}: correct its path, which begins in the folder you are in.")
    kind = file.suffix.lower()
    if kind not in TABLES:
        raise SourceError(f"{file} is not read as a table: give it as {', '.join(TABLES)}.")
    columns = _parquet(file) if kind == ".parquet" else _separated(file, SEPARATORS[kind])
    if not any(columns.values()):
        raise SourceError(f"{file} names its columns and has no rows: give it an example per row.")
    return columns


def _separated(file: Path, separator: str) -> Columns:
    csv.field_size_limit(MAX_CHARACTERS)
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            lines = csv.reader(opened, delimiter=separator, strict=True)
            header = [name.strip() for name in next(lines, [])]
            _check_header(header, file)
            rows = []
            for row in lines:
                if row and len(row) != len(header):
                    raise SourceError(
                        f"{file} has {len(row)} fields in line {lines.line_num:,} and {len(header)} in its first line: "
                        "put texts that hold the separator between double quotes."
                    )
                rows += [row] if row else []
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} is not text in UTF-8 (byte {error.start:,}): save it in this encoding.") from error
    except (csv.Error, OSError) as error:
        raise SourceError(f"{file} cannot be read as a table ({error}): save it again.") from error
    return {name: [row[place] for row in rows] for place, name in enumerate(header)}


def _check_header(header: Sequence[str], file: Path) -> None:
    if not any(header):
        raise SourceError(f"{file} is empty: its first line has to name the columns.")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise SourceError(f"{file} has two columns named {twice[0]!r}: give each a name of its own.")


def _parquet(file: Path) -> Columns:
    try:
        header = pq.read_schema(file).names
        _check_header(header, file)
        table = pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0][:120]
        raise SourceError(f"{file} is damaged or no Parquet file ({reason}): save it again.") from error
    return {name: table[name].to_pylist() for name in header}


def label_column(columns: Columns, named: str | None, where: str) -> str:
    """The column of labels, as the module's docstring says.

    Raises:
        SourceError: there is none.

    Example:
        >>> label_column({"text": ["a"], "Label": ["x"]}, None, "reviews.csv")
        'Label'
    """
    if named is not None:
        _check_there(columns, [named], where)
        return named
    by_name = {name.lower(): name for name in reversed(columns)}
    labels = [by_name[name] for name in LABELS if name in by_name]
    if not labels:
        raise SourceError(
            f"{where} has no column named {', '.join(LABELS[:-1])} or {LABELS[-1]} among {_listed(columns)}: rename "
            "the column of labels, or name it in a YAML file (`file:`, `text:`, `label:`)."
        )
    return labels[0]


def text_columns(columns: Columns, named: Sequence[str] | None, label: str, where: str) -> tuple[str, ...]:
    """The one or two columns of texts, as the module's docstring says.

    Raises:
        SourceError: there are none, or more than two.

    Example:
        >>> text_columns({"id": ["a1"], "text": ["so"], "stars": ["4"], "label": ["x"]}, None, "label", "reviews.csv")
        ('text',)
    """
    if named is not None:
        _check_there(columns, named, where)
        if label in named or len(set(named)) != len(named) or not 1 <= len(named) <= 2:
            raise SourceError(f"{where} names {_listed(named)} as texts: name one or two columns besides {label!r}.")
        texts = tuple(named)
    else:
        others = {name: values for name, values in columns.items() if name != label and name.lower() not in NO_TEXT}
        texts = tuple(name for name, values in others.items() if is_text(values))
        if not 1 <= len(texts) <= 2:
            there = f"columns of text {_listed(texts)}" if texts else "no column of text"
            raise SourceError(
                f"{where} has {there} besides {label!r}, and a task reads one or two: name them in a YAML file "
                "(`file:`, `text:`, `label:`)."
            )
    return texts


def is_text(values: Sequence) -> bool:
    """Whether a column holds texts: strings, not all of them numbers.

    Example:
        >>> is_text(["so", "4"]), is_text(["4", "5.5", ""])
        (True, False)
    """
    return any(isinstance(value, str) and value.strip() and not NUMBER.fullmatch(value.strip()) for value in values)


def check_texts(columns: Columns, names: Sequence[str], where: str) -> None:
    """Refuse texts that are missing, blank or no text.

    Raises:
        SourceError: the column, how many, and the first.
    """
    for name in names:
        bad = [row for row, value in enumerate(columns[name]) if not isinstance(value, str) or not value.strip()]
        if bad:
            first = columns[name][bad[0]]
            blank = first is None or isinstance(first, str)
            kind = "no text" if blank else f"{first!r}, which is no text,"
            raise SourceError(
                f"{where} has {kind} in the column {name!r} of {len(bad):,} of its {len(columns[name]):,} rows, first "
                f"in row {bad[0] + 1:,}: fill or remove these rows."
            )


def label_names(values: Sequence, column: str, where: str) -> list[str]:
    """Labels as texts.

    Raises:
        SourceError: labels that are missing, or numbers with fractions.

    Example:
        >>> label_names([1, 0, 1], "label", "reviews.csv"), label_names([True], "label", "reviews.csv")
        (['1', '0', '1'], ['true'])
    """
    names = [_label(value) for value in values]
    bad = [row for row, name in enumerate(names) if not name]
    if bad:
        raise SourceError(
            f"{where} has no label in {len(bad):,} of its {len(names):,} rows, first in row {bad[0] + 1:,}: fill the "
            f"column {column!r} or remove these rows."
        )
    numbers = [name for name in set(names) if NUMBER.fullmatch(name)]
    broken = sorted(name for name in numbers if float(name) % 1)
    if broken:
        raise SourceError(
            f"{where} has the number {broken[0]} in its column of labels {column!r}: a label is one of a few classes, "
            "not a measured value, so put classes in its place."
        )
    return names


def _label(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        # A missing label in a column of whole numbers turns all of them into floating-point numbers.
        return "" if value != value else str(int(value)) if value.is_integer() else str(value)
    return "" if value is None else str(value).strip()


def in_order(names: Sequence[str]) -> tuple[str, ...]:
    """The distinct labels: whole numbers by size, anything else by the alphabet.

    Example:
        >>> in_order(["10", "9", "9"]), in_order(["good", "bad", "10"])
        (('9', '10'), ('10', 'bad', 'good'))
    """
    distinct = set(names)
    numeric = all(NUMBER.fullmatch(name) for name in distinct)
    return tuple(sorted(distinct, key=(lambda name: (float(name), name)) if numeric else None))


def _check_there(columns: Mapping, named: Sequence[str], where: str) -> None:
    missing = [name for name in named if name not in columns]
    if missing:
        raise SourceError(f"{where} has no column {missing[0]!r}: it has {_listed(columns)}.")


def _listed(names) -> str:
    return ", ".join(map(repr, names))
