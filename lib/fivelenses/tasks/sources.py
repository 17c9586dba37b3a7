"""Where tables and raw files come from: the toy world, the hub, or a folder laid out like the hub (FIVELENSES_MIRROR).

The mirror only changes where the files are; what it lacks is an error, never a guess.
"""

import hashlib
import lzma
import os
import socket
import urllib.request
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from fivelenses.catalogue import CORPORA
from fivelenses.files import RunError, cache_folder, written_beside


class SourceError(RunError):
    """A table or file could not be read; the message says which, from where, and what to do."""


def mirror() -> Path | None:
    """The folder that FIVELENSES_MIRROR names, or None when it is unset; what is no folder is refused."""
    named = os.environ.get("FIVELENSES_MIRROR")
    if not named:
        return None
    folder = Path(named).expanduser().resolve()
    if not folder.is_dir():
        raise SourceError(f"FIVELENSES_MIRROR names {folder}, which is not a folder: correct it or unset it.")
    return folder


@cache
def ask_hub_once() -> None:
    """Where the hub does not answer, have its client, which would ask for half a minute for each file, take what its
    cache holds and fail at once for the rest, in this process and those that it starts.
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


@cache
def read_hub(folder: Path | None, repository: str, configuration: str | None, revision: str | None, split=None):
    """A split of a data set, or all of its splits by name, from the hub or from its mirror in a folder."""
    # They take seconds to load, and a file of the reader's own is read without them.
    import datasets
    import httpx2

    try:
        if folder is None:
            ask_hub_once()
            return datasets.load_dataset(repository, configuration, revision=revision, split=split)
        files = (folder / "datasets" / repository / (configuration or "")).glob(f"{split or '*'}.parquet")
        return datasets.load_dataset("parquet", data_files={file.stem: str(file) for file in files}, split=split)
    # What the hub's client raises; a split or a configuration that is not there is a ValueError.
    except (OSError, ValueError, httpx2.HTTPError, datasets.exceptions.DatasetsError) as error:
        named = ", ".join(filter(None, (repository, configuration, split)))
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
        raise SourceError(
            f"{named} could not be read from {folder or 'the hub'} ({reason}): correct its name and configuration, "
            "connect to the network, or set FIVELENSES_MIRROR to a folder laid out like the hub."
        ) from error


def raw_bytes(corpus: str, split: str = "all") -> bytes:
    """The content of a file of the catalogue's `corpora`, from the mirror's ``raw/`` folder or from its repository.

    Refused: the file is missing, cannot be fetched, or has another hash.
    """
    facts, folder = CORPORA[corpus], mirror()
    name, *hashes = facts["splits"][split]
    repository, tag, path = facts["repository"], facts.get("tag", ""), facts["path"].format(name)
    place = (folder or cache_folder()) / "raw" / repository / tag / path
    try:
        if folder:
            place = place.with_name(f"{place.name}.xz")
            content = lzma.decompress(place.read_bytes())
        else:
            if not place.is_file():
                address = f"https://raw.githubusercontent.com/{repository}/{tag or 'HEAD'}/{path}"
                with urllib.request.urlopen(address, timeout=60) as answer, written_beside(place) as partial:
                    partial.write_bytes(answer.read())
            content = place.read_bytes()
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise SourceError(
            f"{path} of {repository} could not be read from {place} or fetched ({error}): connect to the network, or "
            "set FIVELENSES_MIRROR to a folder that holds it."
        ) from error
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    if not any(own.hexdigest().startswith(one) for own in (hashlib.sha256(content), blob) for one in hashes):
        if not folder:
            place.unlink()
        raise SourceError(f"{place} is not {path} of {repository} {tag} (its hash differs): fetch it again.")
    return content


def raw_text(corpus: str, split: str = "all") -> str:
    """`raw_bytes` as text."""
    return raw_bytes(corpus, split).decode("utf-8")
