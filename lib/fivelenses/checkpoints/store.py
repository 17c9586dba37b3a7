"""The store: one folder a specification, written beside and renamed when whole, its hashes checked when read; a list
of what lies there.

Layout under the root::

    <address>/            manifest.json, config.json, model.safetensors, tokenizer files, steps/<step>.safetensors
    partial/<address>/    a training that has not finished; a later call goes on from it
    locks/<address>.lock  held by the process that trains it
"""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from filelock import FileLock, Timeout
from safetensors.torch import load_file
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from fivelenses import project, tasks
from fivelenses.checkpoints.specification import Specification
from fivelenses.files import sha256
from fivelenses.models import heads

MANIFEST = "manifest.json"
ADDRESS = re.compile("[0-9a-f]{20}")  # as `Specification.address` writes it
Name = TypeVar("Name")


class DamagedCheckpoint(RuntimeError):
    """A checkpoint whose files are not what its manifest says."""


@dataclass(frozen=True)
class Checkpoint:
    """A fine-tuned model in the store.

    Attributes:
        folder: where it lies.
        manifest: specification, scores, loss history, seconds, device, versions and the hash of every file.
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

    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The tokeniser that the model was trained with."""
        return AutoTokenizer.from_pretrained(self.folder)

    def steps(self) -> tuple[int, ...]:
        """Optimiser steps whose weights were kept, in order."""
        return tuple(sorted(int(file.stem) for file in (self.folder / "steps").glob("*.safetensors")))

    def model_at(self, step: int) -> nn.Module:
        """The model as it was after `step` optimiser steps (0: before training)."""
        if step not in self.steps():
            raise ValueError(f"Step {step} of {self.folder.name} was not kept: there are {self.steps()}.")
        model = self.model()
        weights = load_file(self.folder / "steps" / f"{step}.safetensors")
        model.load_state_dict({name: tensor.to(torch.float32) for name, tensor in weights.items()}, strict=False)
        return model

    @property
    def score(self) -> float:
        """The task's metric on the evaluation split."""
        return self.manifest["score"]


def finite(checkpoints: Mapping[Name, Checkpoint]) -> dict[Name, Checkpoint]:
    """The checkpoints whose training did not diverge, the only ones that a lens can look at, by the same names."""
    finite = {name: one for name, one in checkpoints.items() if not one.manifest["diverged"]}
    if not finite:
        raise ValueError("The training of every model diverged, so none can be compared: lower learning_rate.")
    return finite


def check_finite(checkpoints: Mapping[Name, Checkpoint], where: str) -> None:
    """Refuse checkpoints of which one has diverged, where none can be left out; `where` is the parameter that names
    them.
    """
    for name, one in checkpoints.items():
        if one.manifest["diverged"]:
            raise ValueError(f"The training of {name} diverged: lower its learning rate, or leave it out of {where}.")


class Store:
    """Checkpoints by the address of their specification.

    Args:
        folder: where they are kept; FIVELENSES_STORE or ``store/`` in the project when None.
    """

    def __init__(self, folder: Path | None = None):
        self.folder = folder or project.store_folder()

    def place(self, specification: Specification) -> Path:
        """The folder of a finished checkpoint."""
        return self.folder / specification.address

    def partial(self, specification: Specification) -> Path:
        """The folder in which a checkpoint is made."""
        return self.folder / "partial" / specification.address

    def lock(self, made: Specification | str) -> FileLock:
        """Held by the one process that makes this checkpoint, of a specification or its address."""
        folder = self.folder / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"{made if isinstance(made, str) else made.address}.lock")

    def find(self, specification: Specification) -> Checkpoint | None:
        """The finished checkpoint, its hashes checked; None when there is none."""
        folder = self.place(specification)
        return read(folder) if folder.is_dir() else None

    def publish(self, specification: Specification, finished: Path, manifest: dict) -> Checkpoint:
        """Write the manifest into a finished folder and rename it to its place."""
        files = sorted(file for file in finished.rglob("*") if file.is_file() and file.name != MANIFEST)
        hashes = {str(file.relative_to(finished)): sha256(file) for file in files}
        whole = {"specification": specification.as_dict(), **manifest, "files": hashes}
        (finished / MANIFEST).write_text(json.dumps(whole, indent=1), encoding="utf-8")
        place = self.place(specification)
        place.parent.mkdir(parents=True, exist_ok=True)
        finished.rename(place)
        return Checkpoint(place, whole)

    def discard(self, specification: Specification) -> None:
        """Remove a damaged checkpoint, so that it is made anew."""
        shutil.rmtree(self.place(specification))

    def addresses(self) -> list[str]:
        """The addresses of all finished checkpoints, also damaged ones."""
        return [name for name in _folders(self.folder) if ADDRESS.fullmatch(name)]

    def unfinished(self) -> list[str]:
        """The addresses of trainings that were begun and did not finish."""
        return [name for name in _folders(self.folder / "partial") if ADDRESS.fullmatch(name)]

    def other_names(self) -> list[str]:
        """The folders in the store that are no checkpoints: somebody else's, never to be removed."""
        own = (*self.addresses(), "partial", "locks", "tasks")
        partial = (f"partial/{name}" for name in _folders(self.folder / "partial") if not ADDRESS.fullmatch(name))
        return [name for name in _folders(self.folder) if name not in own] + list(partial)


def _folders(place: Path) -> list[str]:
    return sorted(entry.name for entry in place.iterdir() if entry.is_dir()) if place.is_dir() else []


def read(folder: Path) -> Checkpoint:
    """A checkpoint from its folder, every file's hash checked; the sentence of a `DamagedCheckpoint` names the file."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
    except (OSError, ValueError, KeyError) as error:
        raise DamagedCheckpoint(
            f"The checkpoint {folder.name} has no readable manifest: it has to be made anew."
        ) from error
    for name, digest in files.items():
        file = folder / name
        if not file.is_file() or sha256(file) != digest:
            raise DamagedCheckpoint(
                f"The file {name} of checkpoint {folder.name} is missing or changed: it has to be made anew."
            )
    return Checkpoint(folder, manifest)


def inspect(remove: Sequence[str], prune: bool, log: Callable[[str], None]) -> int:
    """List and verify the store, and count the damaged checkpoints that are left in it.

    Args:
        remove: addresses of checkpoints that are removed first.
        prune: whether damaged and unfinished checkpoints are removed; a folder whose name is no address stays.
        log: called with one line per checkpoint, and a last one with their number and size.
    """
    store = Store()
    for address in remove:
        if address not in store.addresses():
            raise ValueError(f"There is no checkpoint {address!r} in {store.folder}.")
        shutil.rmtree(store.folder / address)
        log(f"{address}  removed")
    damaged = 0
    for address in store.addresses():
        try:
            made = read(store.folder / address).manifest["specification"]
            log(f"{address}  whole    {made['encoder']}, {made['task']}, seed {made['seed']}")
        except DamagedCheckpoint as damage:
            damaged += 1
            log(f"{address}  damaged  {damage}")
            if prune:
                shutil.rmtree(store.folder / address)
    for address in store.unfinished():
        try:
            with store.lock(address).acquire(blocking=False):
                log(f"{address}  unfinished: the next run that needs it goes on from where it stopped")
                if prune:
                    shutil.rmtree(store.folder / "partial" / address)
        except Timeout:
            log(f"{address}  being fine-tuned: left alone")
    for name in store.other_names():
        log(f"{name}  no checkpoint: left alone")
    size = sum(file.stat().st_size for file in store.folder.rglob("*") if file.is_file())
    count = len(store.addresses())
    whole = f"{count} {'checkpoint' if count == 1 else 'checkpoints'}"
    log(f"{whole}, {damaged} damaged, {size / 1e6:.0f} MB in {store.folder}")
    return 0 if prune else damaged
