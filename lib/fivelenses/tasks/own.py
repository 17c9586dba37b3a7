"""A reader's own task: a table with one or two texts and a label per row, from a file, or a data set of the hub.

``./reviews.csv`` (or `.tsv`, `.parquet`) and ``hub:owner/name`` are read by the rules of `own_tables`; a YAML file says
what these do not decide::

    file: reviews.csv           # or  hub: owner/name, with config and revision
    text: [title, body]
    label: stars
    development: dev.csv        # or a share, 0.2; of the hub, a split
    seed: 0                     # of the split by a share
    metric: accuracy            # or matthews
    title: Reviews

What was read is kept in the store under the task's name, which ends in a digest of all of it: other rows are another
task. From there on it is a task like those of the catalogue.
"""

import dataclasses
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import yaml
from filelock import FileLock

from fivelenses.catalogue import Task, own_folder, read_own, slug
from fivelenses.files import folder_beside
from fivelenses.tasks import own_hub, own_tables
from fivelenses.tasks.own_tables import Columns
from fivelenses.tasks.sources import SourceError, quiet_datasets
from fivelenses.tasks.subsets import subset

# A refusal does not wait for the library.
if TYPE_CHECKING:
    import datasets

HUB, DECLARATIONS = own_hub.PREFIX, (".yaml", ".yml")
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
DEVELOPMENT_SHARE, SPLIT_SEED = 0.2, 0
DEVELOPMENT_SPLITS = ("validation", "dev", "test")  # of a data set of the hub, the first there is
MAX_LABELS, MIN_ROWS = 100, 10  # labels of a task; rows of either split


@dataclass(frozen=True)
class Declaration:
    """What is said of a task, see the module's docstring; None where the rules decide.

    Attributes:
        file, hub: where the training examples are, one of the two.
        config, revision: of a data set of the hub.
        text, label: columns.
        development: a file, a split of the hub, or a share of the examples.
        seed: of the split by a share.
        metric: `accuracy` or `matthews`.
        title: what pages and pictures call it.
        folder: where the declaration lies, from which its files are named.
    """

    file: str | None = None
    hub: str | None = None
    config: str = ""
    revision: str | None = None
    text: tuple[str, ...] | None = None
    label: str | None = None
    development: str | float | None = None
    seed: int = SPLIT_SEED
    metric: str = "accuracy"
    title: str | None = None
    folder: Path = Path()

    def place(self, name: str) -> Path:
        return (self.folder / Path(name).expanduser()).resolve()


def register(named: str) -> Task:
    """The task of a file, a declaration or a data set of the hub; it is kept in the store for whoever names it next.

    Raises:
        SourceError: in one sentence, what is missing, unreadable or cannot be learned from.
    """
    declaration = declare(named)
    # A file that was changed is read again.
    files = [declaration.file, declaration.development if declaration.file else None]
    changed = tuple(
        place.stat().st_mtime_ns
        for place in (declaration.place(name) for name in files if isinstance(name, str))
        if place.is_file()
    )
    given = (declaration, changed, own_folder())
    task = _registered(*given)
    return task if read_own(task.name) is not None else _registered.__wrapped__(*given)


def declare(named: str) -> Declaration:
    """What a name says, or the YAML file that it names.

    Raises:
        SourceError: the YAML file is missing or says something else.

    Example:
        >>> declare("hub:owner/name").hub
        'owner/name'
    """
    if named.startswith(HUB):
        if not HUB_NAME.fullmatch(named.removeprefix(HUB)):
            raise SourceError(f"{named!r} is no data set of the hub: write {HUB}owner/name.")
        return Declaration(hub=named.removeprefix(HUB))
    file = Path(named).expanduser()
    if file.suffix.lower() not in DECLARATIONS:
        return Declaration(file=named, folder=Path.cwd())
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"The task {file} cannot be read ({error.strerror}): correct its path.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SourceError(f"The task {file} is not YAML ({' '.join(str(error).split())[:120]}).") from error
    return _declared(content, file)


def _declared(content, file: Path) -> Declaration:
    known = {field.name for field in dataclasses.fields(Declaration)} - {"folder"}
    if not isinstance(content, dict) or not set(content) <= known:
        unknown = f"says {sorted(map(str, set(content) - known))[0]!r}" if isinstance(content, dict) else "says nothing"
        raise SourceError(f"The task {file} {unknown}: it takes {', '.join(sorted(known))}, one per line.")
    if (content.get("file") is None) == (content.get("hub") is None):
        raise SourceError(f"The task {file} has to name its examples by one of `file:` and `hub:`.")
    if idle := [name for name in ("config", "revision") if content.get("file") is not None and content.get(name)]:
        raise SourceError(f"The task {file} gives {idle[0]}, which belongs to a data set of the hub: leave it out.")
    text = content.get("text")
    if text is not None:
        text = [text] if isinstance(text, str) else text
        if not isinstance(text, list) or not text or not all(isinstance(name, str) for name in text):
            raise SourceError(
                f"The task {file} gives text the value {text!r}: name one column, or two as [title, body]."
            )
        content["text"] = tuple(text)
    kinds = {"file": str, "hub": str, "config": str, "revision": str, "label": str, "metric": str, "title": str}
    for name, kind in kinds.items():
        if content.get(name) is not None and not isinstance(content[name], kind):
            raise SourceError(f"The task {file} gives {name} the value {content[name]!r}, which is no text: quote it.")
    share, seed, metric = content.get("development"), content.get("seed", SPLIT_SEED), content.get("metric", "accuracy")
    if not (share is None or isinstance(share, str) or (isinstance(share, float) and 0 < share < 1)):
        raise SourceError(f"The task {file} has development {share!r}: give a file, or a share between 0 and 1.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SourceError(f"The task {file} has seed {seed!r}: give a whole number from 0.")
    if metric not in ("accuracy", "matthews"):
        raise SourceError(f"The task {file} has metric {metric!r}: choose accuracy or matthews.")
    given = {name: value for name, value in content.items() if value is not None}
    return Declaration(**given, folder=file.resolve().parent)


@cache
def _registered(declaration: Declaration, changed: tuple[int, ...], folder: Path) -> Task:
    origin = declaration.hub or declaration.file
    title = declaration.title or Path(origin).stem
    training, development, split = _read(declaration)
    where = f"{HUB}{origin}" if declaration.hub else origin
    label = own_tables.label_column(training, declaration.label, where)
    texts = own_tables.text_columns(training, declaration.text, label, where)
    left_out = [name for name in training if name not in (*texts, label)]
    own_tables.check_texts(training, texts, where)
    names = {"train": own_tables.label_names(training[label], label, where)}
    _check_classes(own_tables.in_order(names["train"]), where)
    tables = {"train": {name: training[name] for name in texts}}
    if development is None:
        share = declaration.development or DEVELOPMENT_SHARE
        split = f"{share:.0%} of the distinct texts, drawn by seed {declaration.seed} within each label"
        tables, names = _divided(tables["train"], names["train"], share, declaration.seed)
    else:
        missing = [name for name in (*texts, label) if name not in development]
        if missing:
            raise SourceError(f"{split} has no column {missing[0]!r}, which {where} has: give both the same columns.")
        own_tables.check_texts(development, texts, split)
        tables["validation"] = {name: development[name] for name in texts}
        names["validation"] = own_tables.label_names(development[label], label, split)
    labels = own_tables.in_order(names["train"])
    distinct = len(set(zip(*(training[name] for name in texts), strict=True))) if development is None else None
    _check_learnable(names, labels, where, distinct)
    sizes = {split: len(of_split) for split, of_split in names.items()}
    frames = {split: pd.DataFrame(table) for split, table in tables.items()}
    for name, frame in frames.items():
        # A task's columns are its texts and "label", whatever the label's column was called.
        frame[_free("label", texts)] = [labels.index(one) for one in names[name]]
    most = Counter(names["validation"]).most_common(1)[0][1]
    null = most / sizes["validation"] if declaration.metric == "accuracy" else 0.0
    read = (
        f"{title} is read from {where}: {'texts ' if len(texts) > 1 else 'text '}{', '.join(texts)}; label {label} "
        f"({', '.join(labels[:8])}{', …' if len(labels) > 8 else ''}); {sizes['train']:,} training and "
        f"{sizes['validation']:,} development examples ({split}); null rate {null:.3f}"
    )
    told = {
        "title": title,
        "inputs": list(texts),
        "label": _free("label", texts),
        "labels": list(labels),
        "metric": declaration.metric,
        "sizes": sizes,
        "mean_tokens": _mean_tokens(frames["train"], texts),
        "read": read + (f"; left out: {', '.join(left_out)}" if left_out else "") + ".",
    }
    return _keep(told, frames, folder)


def _read(declaration: Declaration) -> tuple[Columns, Columns | None, str]:
    """Training and development columns (None: to be split off), and where the second come from."""
    given = declaration.development
    if declaration.file:
        training = own_tables.read(declaration.place(declaration.file))
        if not isinstance(given, str):
            return training, None, ""
        return training, own_tables.read(declaration.place(given)), given
    splits = own_hub.splits(declaration.hub, declaration.config, declaration.revision)
    if "train" not in splits:
        raise SourceError(f"{HUB}{declaration.hub} has no split `train` but {', '.join(splits)}: choose another.")
    dev = given if isinstance(given, str) else next((name for name in DEVELOPMENT_SPLITS if name in splits), None)
    names = [name for name in ("train", dev) if name is not None and not (name == dev and isinstance(given, float))]
    read = [own_hub.columns(declaration.hub, declaration.config, declaration.revision, name) for name in names]
    return (*read, f"split {dev}") if len(read) == 2 else (read[0], None, "")


def _divided(texts: Columns, names: list[str], share: float, seed: int) -> tuple[dict[str, Columns], dict[str, list]]:
    """Training and development rows; rows with equal texts stay together."""
    groups: dict[tuple, list[int]] = {}
    for row, text in enumerate(zip(*texts.values(), strict=True)):
        groups.setdefault(text, []).append(row)
    rows = list(groups.values())
    wanted = round(share * len(rows))
    held_out = set(subset(np.array([names[of_text[0]] for of_text in rows]), wanted, seed).tolist()) if wanted else ()
    sides = {
        "train": [row for place, of_text in enumerate(rows) if place not in held_out for row in of_text],
        "validation": [row for place, of_text in enumerate(rows) if place in held_out for row in of_text],
    }
    tables = {
        split: {name: [values[row] for row in of] for name, values in texts.items()} for split, of in sides.items()
    }
    return tables, {split: [names[row] for row in of] for split, of in sides.items()}


def _check_classes(labels: tuple[str, ...], where: str) -> None:
    if len(labels) > MAX_LABELS:
        raise SourceError(
            f"{where} has {len(labels):,} different labels such as {labels[0]!r}, and a task has at most "
            f"{MAX_LABELS}: name another column of labels."
        )
    if len(labels) == 1:
        raise SourceError(f"{where} has the label {labels[0]!r} alone: there is nothing to tell apart.")


def _check_learnable(names: dict[str, list[str]], labels: tuple[str, ...], where: str, distinct: int | None) -> None:
    """Refuse splits that are too small, or whose labels differ.

    Args:
        names: of the labels, by split.
        labels: of the training split.
        where: what an error calls the table.
        distinct: how many distinct texts were divided into the splits; None where both were given.
    """
    rows = {split: len(of_split) for split, of_split in names.items()}
    if min(rows.values()) < MIN_ROWS:
        equal = distinct is not None and distinct < sum(rows.values())
        why = f" (equal texts stay together; distinct: {distinct:,})" if equal else ""
        raise SourceError(
            f"{where} gives {rows['train']:,} training and {rows['validation']:,} development examples{why}: a task "
            f"needs {MIN_ROWS} of each."
        )
    unseen = sorted(set(names["validation"]) - set(labels))
    if unseen:
        raise SourceError(f"The development examples of {where} have the label {unseen[0]!r}, which training lacks.")
    if len(set(names["validation"])) == 1:
        raise SourceError(
            f"The development examples of {where} have the label {names['validation'][0]!r} alone: give more of them."
        )


def _free(name: str, taken: tuple[str, ...]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def _mean_tokens(frame: pd.DataFrame, texts: tuple[str, ...]) -> int:
    words = sum(frame[name].str.split().str.len().mean() for name in texts)
    return round(1.3 * words) + 1 + len(texts)


def _keep(told: dict, frames: dict[str, pd.DataFrame], folder: Path) -> Task:
    content = hashlib.sha256()
    fixed = {name: told[name] for name in ("title", "inputs", "labels", "metric")}
    content.update(json.dumps(fixed, sort_keys=True).encode())
    for frame in frames.values():
        content.update(b"\0" + json.dumps(frame.to_dict("list"), ensure_ascii=False).encode("utf-8", "surrogatepass"))
    name = f"{slug(told['title'])}-{content.hexdigest()[:8]}"
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.parent / ".lock"):
        if not place.is_dir():
            others = (read_own(other.name) for other in place.parent.iterdir())
            told["place"] = 1 + max((other.place for other in others if other is not None), default=-1)
            with folder_beside(place) as partial:
                for split, frame in frames.items():
                    frame.to_parquet(partial / f"{split}.parquet", index=False)
                (partial / "task.json").write_text(json.dumps(told, indent=1, ensure_ascii=False), encoding="utf-8")
    return read_own(name)


def described(name: str) -> str:
    """One sentence on how a task's table was read."""
    return json.loads((own_folder() / name / "task.json").read_text(encoding="utf-8"))["read"]


def table(task: Task, split: str) -> "datasets.Dataset":
    """One split of a task of the reader's own.

    Raises:
        SourceError: there is no such split, or its table is no longer in the store.
    """
    if split not in task.splits:
        raise SourceError(f"{task.title} has no split {split!r}: it has {', '.join(task.splits)}.")
    file = own_folder() / task.name / f"{split}.parquet"
    try:
        return quiet_datasets().Dataset.from_pandas(pd.read_parquet(file), preserve_index=False)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"The examples of {task.title} in {file} are missing or damaged: remove {file.parent} and name the task's "
            "table again."
        ) from error
