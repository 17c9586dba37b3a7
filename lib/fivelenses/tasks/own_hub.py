"""A data set of the hub, or of a mirror of it, that no catalogue describes: its splits and their columns."""

from fivelenses.catalogue import Task
from fivelenses.tasks.own_tables import Columns
from fivelenses.tasks.sources import SourceError, hub_errors, hub_table, mirror, quiet_datasets

PREFIX = "hub:"


def splits(name: str, config: str = "", revision: str | None = None) -> list[str]:
    """The splits of a data set.

    Args:
        name: owner/name.
        config: its configuration; the only one when empty.
        revision: a commit, tag or branch; the newest when None.

    Raises:
        SourceError: it is not in the mirror, or the hub has none of that name or cannot be reached.
    """
    if (folder := mirror()) is not None:
        place = folder / "datasets" / name / config
        splits = sorted(file.stem for file in place.glob("*.parquet"))
        if not splits:
            configs = sorted(one.name for one in place.iterdir() if one.is_dir()) if place.is_dir() else []
            hint = f"name one of its configurations by `config:` ({', '.join(configs)})" if configs else "add it"
            raise SourceError(f"The mirror has no {name} in {place}: {hint}, or unset FIVELENSES_MIRROR.")
        return splits
    try:
        return quiet_datasets().get_dataset_split_names(name, config or None, revision=revision)
    except hub_errors() as error:
        raise SourceError(
            f"{PREFIX}{name} could not be read from the hub ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:120]}): correct its name, name its `config:`, or connect to the network."
        ) from error


def columns(name: str, config: str, revision: str | None, split: str) -> Columns:
    """The columns of a split; numbered labels by their names, None where a row has none.

    Raises:
        SourceError: the split cannot be read.
    """
    of_mirror = mirror() is not None
    task = Task(
        name=name,
        title=f"{PREFIX}{name}",
        inputs=(),
        label="",
        repository=name,
        config=config if of_mirror else config or None,
        revision=revision,
        splits={split: split},
        sizes={},
    )
    table = hub_table(task, split)
    read = {column: list(table[column]) for column in table.column_names}
    for column, feature in table.features.items():
        if isinstance(feature, quiet_datasets().ClassLabel):
            read[column] = [feature.int2str(one) if one is not None and one >= 0 else None for one in read[column]]
    return read
