"""Records: what was measured, raw and tidy, each a Parquet table that knows what it was measured by and from.

Everything to the right of a record (figures, claims, pages) is a pure function of it. A record is known by

- the code that measured it: a digest of the function's module and of all modules of ours that it imports, without
  docstrings and comments, so that a changed sentence never causes a measurement;
- the parameters of the measurement, and the addresses of its checkpoints, which say how they were trained and on what.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from platform import python_version

import joblib
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fivelenses.files import RunError, cache_folder, project_folder, written_beside

LIBRARY = Path(__file__).resolve().parents[1]
PACKAGES = ("fivelenses", "toyworld", "pretraining")
# Modules whose work a record knows by other means than their source: how a checkpoint was made, and on what data, is in
# its address; paths, tables of results and how much memory there is change no number.
NOT_DIGESTED = ("pretraining", "toyworld", "fivelenses.checkpoints", "fivelenses.catalogue", "fivelenses.tasks.own")
NOT_DIGESTED += ("fivelenses.files", "fivelenses.processes", "fivelenses.records")
METADATA = b"fivelenses"

WHOLE = -1  # in the column `fold`: none is left out
# In the column `control`: fine-tuned models; what moved at random, as far in its parameters or in its last layer;
# models of shuffled labels; rows that belong to all of them, such as the pre-trained encoder's.
FINE_TUNED, TWIN, FUNCTIONAL_TWIN, SHUFFLED, SHARED = "", "twin", "functional twin", "shuffled labels", "all"
TWINS = (TWIN, FUNCTIONAL_TWIN)
CONTROLS = {TWIN: "twin", FUNCTIONAL_TWIN: "functional_twin", SHUFFLED: "shuffled"}  # and the suffixes of columns
# Kinds of encoders: where a model starts, and what it is compared with.
PRETRAINED, RANDOMLY_INITIALISED, SCRATCH = "pre-trained", "untrained", "scratch"
INITS = (SCRATCH, PRETRAINED)
BASE, LEXICAL, RANDOMISED = "base", "lexical", "randomised"
RANDOM_ENCODER = "random:"  # begins the name of an encoder that starts from scratch
USUAL_RATE = 5e-5  # in the published runs of the encoder of `learning_rates`
# In the columns `kind` and `group`: an ordinary fine-tuned model, one with layers held fixed, and all layers.
FULL, FROZEN, ALL = "tuned", "frozen", "all"
# In the column `kind`, too: changes of the weights that change nothing that an encoder computes.
SYMMETRIES = ("heads permuted", "neurons permuted", "values rotated", "queries rescaled")
# Directions of a surface, the points of a path through it, and how a longer training is made.
OPTIMISATION, RANDOM = "optimisation", "random"
CELL, STATE, BETWEEN = "cell", "state", "between"
CONTINUED, SEPARATE = "continued", "separate"
BEFORE, AFTER = "before", "after"  # fine-tuning
# The task of trees, its property in a representation, and the input that belongs to no task.
PARSER, TREES, RUNNING_TEXT = "parsing", "trees", "wikipedia"


def _file(module: str) -> Path | None:
    """The source of a module of ours, None for a name that is none."""
    place = LIBRARY.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py") if module.split(".")[0] in PACKAGES else ()
    return next((file for file in files if file.is_file()), None)


def statements(source: str) -> str:
    """Source code without docstrings, comments and layout: what it does, written one way."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    # Which quotes an f-string is written with differs between versions of Python.
    return re.sub("['\"]+", "'", ast.unparse(tree))


def imported_by(source: str) -> set[str]:
    """What a piece of source imports, wherever in it; of `from a import b`, which may be a module, a and a.b."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return named


def _parsed(source: str) -> tuple[str, set[str]]:
    return statements(source), imported_by(source)


@cache
def _module(name: str) -> tuple[str, set[str]]:
    """A module's statements and its imports."""
    # Kept on the machine for this code and this Python: parsing takes a page from records a second.
    made_by = hashlib.sha256(python_version().encode() + Path(__file__).read_bytes()).hexdigest()[:16]
    parsed = joblib.Memory(cache_folder() / "code" / made_by, verbose=0).cache(_parsed)
    return parsed(_file(name).read_text(encoding="utf-8"))


def closure(modules: Iterable[str], left_out: tuple[str, ...] = ()) -> list[str]:
    """These modules of ours and all that they import, directly or not, but for those left out and their parts."""
    reached, waiting = set(), set(filter(_file, modules))
    while waiting:
        name = waiting.pop()
        reached.add(name)
        parents = (".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1))
        for other in {*filter(_file, {*_module(name)[1], *parents})} - reached:
            if not any(f"{other}.".startswith(f"{one}.") for one in left_out):
                waiting.add(other)
    return sorted(reached)


def code_digest(modules: Iterable[str], left_out: tuple[str, ...] = ()) -> str:
    """A digest of what these modules do, with all that they import of ours."""
    content = hashlib.sha256()
    for name in closure(modules, left_out):
        content.update(f"{name}\0{_module(name)[0]}\0".encode())
    return content.hexdigest()[:16]


def measuring_module(function: str, modules: Sequence[str]) -> str:
    """The first of these modules that defines a function of this name; none is imported."""
    for name in modules:
        body = ast.parse(Path(find_spec(name).origin).read_text(encoding="utf-8")).body
        if any(isinstance(node, ast.FunctionDef) and node.name == function for node in body):
            return name
    raise LookupError(f"No function {function!r} measures in this chapter: it is in none of {', '.join(modules)}.")


def measuring_code(module: str) -> str:
    """The digest of the code that measures with the functions of this module."""
    return code_digest([module], NOT_DIGESTED)


@dataclass(frozen=True)
class Missing:
    """In the place of a record that a run does not have: whatever is read from it is missing, too, so that exhibits and
    claims can say why (`reason` is the rest of a sentence that begins with "because").

    >>> rows = Missing("histories", "this run is older").query("step > 0")
    >>> f"{rows['loss'].min() / 2:.2f}", rows.sentence
    ('–', 'this run has not measured histories, because this run is older')
    """

    name: str
    reason: str

    @property
    def sentence(self) -> str:
        """Why it is not there."""
        return f"this run has not measured {self.name}, because {self.reason}"

    def __getattr__(self, name: str) -> "Missing":
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def _itself(self, *_, **__) -> "Missing":
        return self

    __call__ = __getitem__ = __neg__ = __invert__ = __and__ = __or__ = __rand__ = __ror__ = _itself
    __add__ = __sub__ = __mul__ = __truediv__ = __radd__ = __rsub__ = __rmul__ = __rtruediv__ = _itself
    __lt__ = __le__ = __gt__ = __ge__ = __setitem__ = _itself

    def __len__(self) -> int:
        return 0

    def __iter__(self):
        return iter(())

    def __format__(self, form: str) -> str:
        return "–"


def select(record: pd.DataFrame, control: str = FINE_TUNED, folds: bool = False) -> pd.DataFrame:
    """The rows of the fine-tuned models, or of one control, on all examples; with `folds` also those without a fold.

    >>> rows = pd.DataFrame({"fold": [-1, 0, -1], "control": ["", "", "twin"], "js": [0.3, 0.2, 0.1]})
    >>> select(rows)["js"].tolist(), select(rows, "twin")["js"].tolist()
    ([0.3], [0.1])
    """
    if "control" in record:
        record = record[record["control"].isin([control, SHARED])].drop(columns="control")
    if "fold" in record and not folds:
        record = record[record["fold"] == WHOLE].drop(columns="fold")
    return record


def with_controls(record: pd.DataFrame, value: str, by: str = "task", x: str = "layer") -> pd.DataFrame:
    """`select(record)` with a column for each control that was measured: its mean over models, by group and layer.

    >>> rows = pd.DataFrame({"task": "rte", "layer": 1, "control": ["", "twin", "twin"], "js": [0.3, 0.1, 0.3]})
    >>> with_controls(rows, "js")[["js", "js_twin"]].values.tolist()
    [[0.3, 0.2]]
    """
    rows = select(record)
    for control, suffix in CONTROLS.items():
        if "control" in record and len(rows) and (record["control"] == control).any():
            of_control = select(record[record["control"] == control], control)
            rows = rows.join(of_control.groupby([by, x])[value].mean().rename(f"{value}_{suffix}"), on=[by, x])
    return rows


@dataclass(frozen=True)
class Identity:
    """By what a record was measured, and from what: the name of a function, the digest of its code, its parameters as
    JSON has them, and the addresses of its models in order.
    """

    function: str
    code: str
    parameters: Mapping[str, object]
    checkpoints: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The hash of all of it in 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Record:
    """A measured table, one observation per row, and facts of its measurement, such as `device`, `versions`, `seconds`,
    `peak_memory` (the most bytes that the process had held by its end), and `trained`, address to seconds of training.
    """

    table: pd.DataFrame
    identity: Identity
    facts: dict


def write(file: Path, record: Record) -> None:
    """Write a record, whole or not at all."""
    table = pa.Table.from_pandas(record.table, preserve_index=False)
    described = json.dumps({"identity": asdict(record.identity), "facts": record.facts}).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), METADATA: described})
    # Examples are counted up, model by model: their differences take a tenth of the space of a dictionary.
    counted = [name for name in table.column_names if name == "example" and pa.types.is_integer(table[name].type)]
    encodings = dict.fromkeys(counted, "DELTA_BINARY_PACKED") or None
    others = [name for name in table.column_names if name not in counted]
    with written_beside(file) as place:
        pq.write_table(table, place, compression="zstd", use_dictionary=others, column_encoding=encodings)


def read(file: Path) -> Record:
    """Read a record; a file that is missing, damaged or no record is a `RunError`."""
    try:
        table = pq.read_table(file)
        described = json.loads(table.schema.metadata[METADATA])
        identity = Identity(**described["identity"] | {"checkpoints": tuple(described["identity"]["checkpoints"])})
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        place = f"The record {file.name} in {file.parent}"
        raise RunError(f"{place} is missing or damaged: take it from git, or measure it again.") from error
    return Record(table.to_pandas(), identity, described["facts"])


def merge(parts: Iterable[Record]) -> Record:
    """The parts of one measurement (tasks, seeds) as one record, with the parameters that they share."""
    parts = list(parts)
    first, others = parts[0].identity, [part.identity.parameters for part in parts]
    code = "+".join(sorted({part.identity.code for part in parts}))
    shared = {name: value for name, value in first.parameters.items() if all(one.get(name) == value for one in others)}
    addresses = dict.fromkeys(address for part in parts for address in part.identity.checkpoints)
    facts = parts[0].facts | {
        "seconds": round(sum(part.facts["seconds"] for part in parts), 1),
        "trained": {address: took for part in parts for address, took in part.facts["trained"].items()},
        "peak_memory": max(part.facts.get("peak_memory", 0) for part in parts),
    }
    tables = [part.table for part in parts if not part.table.empty] or [parts[0].table]
    return Record(pd.concat(tables, ignore_index=True), Identity(first.function, code, shared, tuple(addresses)), facts)


def committed_folder() -> Path:
    """Where the records of the published runs are committed: ``book/records/<profile>-<encoder>/<chapter>/``."""
    return project_folder() / "book" / "records"


def learning_rates() -> pd.DataFrame:
    """What became of claims at other learning rates, on one encoder: the committed table of claims of a sweep."""
    return pd.read_parquet(committed_folder() / "learning-rates.parquet")


def load(profile: str, chapter: int, encoder: str = "") -> dict[str, pd.DataFrame]:
    """The records of a published run, by the name of the measurement: of that which leads its chapter, unless part of
    the encoder's name says otherwise. Where there is none, a RunError says which there are.
    """
    every = sorted(committed_folder().glob("*/*/run.json"))
    files = [file for file in every if file.match(f"{profile}-*{encoder}*/{chapter}-*/run.json")]
    if not files:
        there = ", ".join("/".join(file.parts[-3:-1]) for file in every)
        raise RunError(f"No run of chapter {chapter} on {profile} is published: there are {there}.")
    leading = [file for file in files if json.loads(file.read_text(encoding="utf-8"))["leads"]]
    return {file.stem: read(file).table for file in sorted((leading or files)[0].parent.glob("*.parquet"))}
