"""Where tables and raw files come from: the toy world, the hub, or a folder laid out like the hub (FIVELENSES_MIRROR).

The hub and its mirror share one code path: the mirror only changes where the Parquet files are. What a mirror lacks is
an error, never a guess; `tasks.examples` reports a split with fewer rows than the hub's as a sample.
"""

import hashlib
import lzma
import os
import socket
import urllib.request
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fivelenses.catalogue import Task
from fivelenses.files import written_beside

# A refusal does not wait for the library.
if TYPE_CHECKING:
    import datasets

RAW_HOST = "https://raw.githubusercontent.com"


class SourceError(RuntimeError):
    """A table or file could not be read; the message says which, from where, and what to do."""


def cache_folder() -> Path:
    """The folder for what was fetched or converted, shared by all projects of a user."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fivelenses"


def mirror() -> Path | None:
    """The folder that FIVELENSES_MIRROR names, or None when it is unset.

    Refused: it names something that is not a folder.
    """
    named = os.environ.get("FIVELENSES_MIRROR")
    if not named:
        return None
    folder = Path(named).expanduser().resolve()
    if not folder.is_dir():
        raise SourceError(f"FIVELENSES_MIRROR names {folder}, which is not a folder: correct it or unset it.")
    return folder


# --- tables of the hub ------------------------------------------------------------------------------------------------


@cache
def quiet_datasets() -> ModuleType:
    """The library `datasets`, which draws no bars, and whose client of the hub says nothing of each retry."""
    import datasets
    import huggingface_hub

    datasets.disable_progress_bars()
    huggingface_hub.utils.logging.set_verbosity_error()
    return datasets


def hub_errors() -> tuple[type[Exception], ...]:
    """What the hub's client raises; a split or a configuration that is not there is a ValueError."""
    import httpx2

    return (OSError, ValueError, httpx2.HTTPError, quiet_datasets().exceptions.DatasetsError)


@cache
def ask_hub_once() -> None:
    """Where the hub does not answer, have its client take what its cache holds and fail at once for the rest, in this
    process and those that it starts; it would ask again and again, half a minute for each file.
    """
    from huggingface_hub import constants

    if os.environ.get("HF_HUB_OFFLINE") or {"http", "https", "all"} & set(urllib.request.getproxies()):
        return
    address = urlsplit(constants.ENDPOINT)
    try:
        port = address.port or (80 if address.scheme == "http" else 443)
        socket.create_connection((address.hostname, port), timeout=3).close()
    except OSError:
        os.environ["HF_HUB_OFFLINE"] = "1"
        constants.HF_HUB_OFFLINE = True


def hub_table(task: Task, split: str) -> "datasets.Dataset":
    """One split of a task, by our name for it, from the mirror where one is named and from the hub otherwise.

    Refused: the mirror lacks it or holds it damaged, or the hub cannot be reached.
    """
    name, folder, where = task.splits[split], mirror(), "the hub"
    arguments = dict(path=task.repository, name=task.config, revision=task.revision, split=name)
    if folder is not None:
        where = str(folder / "datasets" / task.repository / task.config / f"{name}.parquet")
        arguments = dict(path="parquet", data_files={split: where}, split=split)
    else:
        ask_hub_once()
    try:
        return quiet_datasets().load_dataset(**arguments)
    except hub_errors() as error:
        raise SourceError(
            f"{task.title} ({task.repository}, {task.config}, {name}) could not be read from {where} "
            f"({type(error).__name__}): connect to the network, or set FIVELENSES_MIRROR to a folder laid out "
            "like the hub, or choose the source toyworld."
        ) from error


# --- raw files --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RawFile:
    """One file of a public repository at a tag, known by the hash of its content.

    Attributes:
        repository: owner/name.
        tag: the release; empty for a file of a repository without releases, which its hash pins alone.
        path: the file inside the repository.
        sha256: of the uncompressed content.
        git_blob: first characters of the content's git blob id, where the hash is that of a mirror's rebuilt file.
    """

    repository: str
    tag: str
    path: str
    sha256: str
    git_blob: str = ""


def raw_splits(repository: str, tag: str, path: str, **splits: tuple[str, ...]) -> dict[str, RawFile]:
    """The raw files of a corpus by our names of its splits, each with the corpus's name, the hash and, where needed,
    `git_blob`; `path` has `{}` where the corpus names the split.

    Example:
        >>> raw_splits("owner/bank", "v1", "bank-{}.conllu", validation=("dev", "53aa"))["validation"].path
        'bank-dev.conllu'
    """
    return {split: RawFile(repository, tag, path.format(name), *hashes) for split, (name, *hashes) in splits.items()}


def raw_bytes(file: RawFile) -> bytes:
    """The content of a raw file, its hash checked; from the mirror's ``raw/`` folder or from the repository.

    Refused: the file is missing, cannot be fetched, or has another hash.
    """
    folder = mirror()
    place = (folder or cache_folder()) / "raw" / file.repository / file.tag / file.path
    try:
        if folder:
            place = place.with_name(f"{place.name}.xz")
            content = lzma.decompress(place.read_bytes())
        else:
            content = _fetched(file, place)
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise SourceError(
            f"{file.path} of {file.repository} could not be read from {place} or fetched ({error}): connect to the "
            "network, or set FIVELENSES_MIRROR to a folder that holds it."
        ) from error
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if hashlib.sha256(content).hexdigest() != file.sha256 and not (file.git_blob and blob.startswith(file.git_blob)):
        raise SourceError(
            f"{place} is not {file.path} of {file.repository} {file.tag} (its hash differs): fetch it again, or set "
            "FIVELENSES_MIRROR to a folder that holds it."
        )
    return content


def _fetched(file: RawFile, place: Path) -> bytes:
    if not place.is_file():
        address = f"{RAW_HOST}/{file.repository}/{file.tag or 'HEAD'}/{file.path}"
        with urllib.request.urlopen(address, timeout=60) as answer, written_beside(place) as partial:
            partial.write_bytes(answer.read())
    return place.read_bytes()


def raw_text(file: RawFile) -> str:
    """`raw_bytes` as text."""
    return raw_bytes(file).decode("utf-8")
