"""The store: one folder a specification, written beside and renamed when whole, its hashes checked when read.

Layout under the root::

    <address>/            manifest.json, config.json, model.safetensors, tokenizer files, predictions.parquet,
                          steps/<step>.safetensors
    partial/<address>/    a training that has not finished; a later call goes on from it
    locks/<address>.lock  held by the process that trains it
"""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from safetensors.torch import load_file
from torch import nn

from fivelenses import tasks
from fivelenses.checkpoints.specification import Specification
from fivelenses.files import RunError, sha256, store_folder
from fivelenses.models import heads

MANIFEST, PREDICTIONS = "manifest.json", "predictions.parquet"  # in a checkpoint's folder
ADDRESS = re.compile("[0-9a-f]{20}")  # as `Specification.address` writes it


class DamagedCheckpoint(RunError):
    """A checkpoint whose files are not what its manifest says."""


@dataclass(frozen=True)
class Checkpoint:
    """A fine-tuned model in the store: its `folder`, and the `manifest` in it with the specification, scores and null
    rate, whether it diverged, the history of its loss, seconds, device, versions and the hash of every file.
    """

    folder: Path
    manifest: dict

    @property
    def specification(self) -> Specification:
        """What the model was made from."""
        return Specification.from_dict(self.manifest["specification"])

    def model(self) -> nn.Module:
        """The fine-tuned model with its head, in evaluation mode."""
        return heads.read(self.folder, tasks.find(self.specification.task).head)

    def steps(self) -> tuple[int, ...]:
        """Optimiser steps whose weights were kept, in order."""
        return tuple(sorted(int(file.stem) for file in (self.folder / "steps").glob("[0-9]*.safetensors")))

    def model_at(self, step: int) -> nn.Module:
        """The model as it was after `step` optimiser steps (0: before training)."""
        model = self.model()
        # They are in half precision, and are copied into weights in single precision.
        model.load_state_dict(load_file(self.folder / "steps" / f"{step}.safetensors"), strict=False)
        return model


def check_finite(checkpoints: Mapping[str, Checkpoint], where: str) -> None:
    """Refuse checkpoints of which one has diverged, where none can be left out; the parameter `where` names them."""
    for name, one in checkpoints.items():
        if one.manifest["diverged"]:
            raise ValueError(f"The training of {name} diverged: lower its learning rate, or leave it out of {where}.")


class Store:
    """Checkpoints by the address of their specification; in FIVELENSES_STORE or the project's ``store/`` by default."""

    def __init__(self, folder: Path | None = None):
        self.folder = folder or store_folder()

    def place(self, specification: Specification) -> Path:
        """The folder of a finished checkpoint."""
        return self.folder / specification.address

    def partial(self, specification: Specification) -> Path:
        """The folder in which a checkpoint is made."""
        return self.folder / "partial" / specification.address

    def lock(self, address: str) -> FileLock:
        """Held by the one process that makes the checkpoint of this address."""
        return FileLock(self.folder / "locks" / f"{address}.lock")

    def find(self, specification: Specification) -> Checkpoint | None:
        """The finished checkpoint, its hashes checked; None when there is none."""
        folder = self.place(specification)
        return read(folder) if folder.is_dir() else None

    def publish(self, specification: Specification, finished: Path, manifest: dict) -> Checkpoint:
        """Write the manifest into a finished folder and move it to its place, instead of a damaged one."""
        files = sorted(file for file in finished.rglob("*") if file.is_file())
        hashes = {str(file.relative_to(finished)): sha256(file) for file in files}
        whole = {"specification": specification.as_dict(), **manifest, "files": hashes}
        (finished / MANIFEST).write_text(json.dumps(whole, indent=1), encoding="utf-8")
        place = self.place(specification)
        shutil.rmtree(place, ignore_errors=True)
        finished.rename(place)
        return Checkpoint(place, whole)

    def addresses(self, unfinished: bool = False) -> list[str]:
        """The addresses of all finished checkpoints, also damaged ones, or of trainings that were begun and did not
        finish; other folders are not ours.
        """
        folder = self.folder / "partial" if unfinished else self.folder
        return sorted(one.name for one in folder.glob("*") if ADDRESS.fullmatch(one.name))


def read(folder: Path) -> Checkpoint:
    """A checkpoint from its folder, every file's hash checked; the sentence of a `DamagedCheckpoint` names the file."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
    except (OSError, ValueError, KeyError) as error:
        raise DamagedCheckpoint(f"The checkpoint {folder.name} has no readable manifest: it is made anew.") from error
    for name, digest in files.items():
        file = folder / name
        if not file.is_file() or sha256(file) != digest:
            raise DamagedCheckpoint(f"The file {name} of {folder.name} is missing or changed: it is made anew.")
    return Checkpoint(folder, manifest)


def inspect(prune: bool, log: Callable[[str], None]) -> int:
    """List and verify the store, a line each; with `prune`, remove what is damaged or unfinished. Returns how many
    damaged checkpoints are left.
    """
    store, damaged, whole = Store(), 0, {}
    for address in store.addresses():
        try:
            whole[address] = read(store.folder / address).specification
        except DamagedCheckpoint as damage:
            damaged += 1
            log(f"{address}  damaged  {damage}")
            if prune:
                shutil.rmtree(store.folder / address)
    for address, name in _names(whole).items():
        log(f"{address}  whole    {name}")
    for address in store.addresses(unfinished=True):
        try:
            with store.lock(address).acquire(blocking=False):
                log(f"{address}  unfinished: the next run that needs it goes on from where it stopped")
                if prune:
                    shutil.rmtree(store.folder / "partial" / address)
        except Timeout:
            log(f"{address}  being fine-tuned: left alone")
    size = sum(file.stat().st_size for file in store.folder.rglob("*") if file.is_file())
    count = len(store.addresses())
    log(f"{count} checkpoint{'s' * (count != 1)}, {damaged} damaged, {size / 1e6:.0f} MB in {store.folder}")
    return 0 if prune else damaged


def _names(specifications: Mapping[str, Specification]) -> dict[str, str]:
    """What each address holds in words: its description, and the fields in which those of one description differ."""
    described = {address: one.describe() for address, one in specifications.items()}
    fields = {address: vars(one) | {"schedule": None} | vars(one.schedule) for address, one in specifications.items()}
    names = {}
    for address, words in described.items():
        alike = [fields[other] for other, same in described.items() if same == words]
        several = [name for name, value in fields[address].items() if any(one[name] != value for one in alike)]
        names[address] = ", ".join([words, *(f"{name} {fields[address][name]}" for name in several)])
    return names
