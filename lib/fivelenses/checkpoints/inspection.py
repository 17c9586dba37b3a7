"""What lies in the store: each checkpoint read and its hashes checked, and what is damaged or unfinished removed."""

import shutil
from collections.abc import Callable, Sequence

from filelock import Timeout

from fivelenses.checkpoints.store import DamagedCheckpoint, Store, read


def inspect(remove: Sequence[str], prune: bool, log: Callable[[str], None]) -> int:
    """List and verify the store; a folder whose name is no address is named and left alone.

    Args:
        remove: addresses of checkpoints that are removed first.
        prune: whether damaged and unfinished checkpoints are removed.
        log: told one line a checkpoint, and a last one with their number and size.

    Returns:
        How many damaged checkpoints are left.

    Refused: an address to remove is not in the store, or the store is a file.
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
