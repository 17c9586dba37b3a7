"""How near a dry run's estimates of training come: each chapter's models of `paper`, with random weights of the paper's
shapes, for a few steps on a CPU.

    FIVELENSES_MIRROR=FOLDER python bench/rehearsals.py [--steps N] [--chapter N …]

A line per chapter, shape, task and batch: what a step is estimated to take from this machine's rate of matrix products
and what it takes, and the memory at most, estimated and measured. Each model is trained by the one routine for it, in
a process of its own; it answers 16 development examples, which no step counts. `random:bert-large-uncased` takes the
place of the cased one, and `random:bert-base-uncased` that of the encoders of its shape. A batch whose estimate does
not fit into this machine's memory is halved until it does.
"""

import argparse
import dataclasses
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from fivelenses import tasks
from fivelenses.models import encoders
from fivelenses.runs import dry_run
from fivelenses.runs.settings import settings

BASE, LARGE = "random:bert-base-uncased", "random:bert-large-uncased"
DEVELOPMENT = 16
# The papers' encoders by chapter; chapter 6 has the models of chapter 1.
SHAPES = {1: LARGE, 2: BASE, 3: LARGE, 4: BASE, 5: BASE}


def short_mirror(whole: Path, short: Path) -> None:
    """A mirror with the first development examples alone; all else is linked."""
    for file in (whole / "datasets").rglob("*.parquet"):
        place = short / file.relative_to(whole)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.stem.startswith("validation"):
            pq.write_table(pq.read_table(file).slice(0, DEVELOPMENT), place)
        else:
            place.symlink_to(file)
    (short / "raw").symlink_to(whole / "raw")


def trainings(number: int, steps: int, memory: float) -> Iterator:
    """One model per task of a chapter, for so many steps, within so many bytes."""
    encoder = SHAPES[number]
    shape = encoders.config(encoders.locate(encoder))
    shared = {"encoder": encoder, "device": "cpu", "epochs": 1, "seeds": [0, 1]}
    shared |= {2: {"encoders": [encoder]}, 3: {"long_epochs": [1, 1]}, 5: {"pretrained": [encoder]}}.get(number, {})
    usual = settings(number, "paper", **shared)
    for task in usual.tasks:
        schedule = usual.schedule(task)
        batch = schedule.batch_size
        while batch > 1 and dry_run.training_memory(shape, dry_run.longest_batch(tasks.find(task), schedule)) > memory:
            batch //= 2
            schedule = dataclasses.replace(schedule, batch_size=batch)
        short = settings(number, "paper", **shared, batch_size=batch, training_examples=steps * batch)
        yield short.specifications_of(task, encoder)[0]


def train(specification, folder: str) -> tuple[float, float]:
    """Seconds per step and the most memory in bytes, in a process of its own."""
    from fivelenses.checkpoints.finetuning import fine_tune
    from fivelenses.checkpoints.store import Store

    with tempfile.TemporaryDirectory(dir=folder) as store:
        made = fine_tune(specification, Store(Path(store)), device="cpu")
        return made.manifest["seconds_per_step"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=3, help="of each model")
    options.add_argument("--chapter", type=int, action="append", choices=SHAPES)
    given = options.parse_args()
    if "FIVELENSES_MIRROR" not in os.environ:
        options.error("FIVELENSES_MIRROR has to name a mirror of the data")
    folder = tempfile.mkdtemp(prefix="rehearsals-")
    try:
        short_mirror(Path(os.environ["FIVELENSES_MIRROR"]), Path(folder) / "mirror")
        os.environ["FIVELENSES_MIRROR"] = str(Path(folder) / "mirror")
        print(f"{'chapter, task':<24}{'batch':>6}{'s per step, estimated':>23}{'measured':>10}{'ratio':>7}", end="")
        print(f"{'GB, estimated':>15}{'measured':>10}{'ratio':>7}")
        seen = set()
        for number in given.chapter or SHAPES:
            for one in trainings(number, given.steps, 0.8 * psutil.virtual_memory().available):
                shape, schedule = encoders.config(encoders.locate(one.encoder)), one.schedule
                kind = (one.encoder, one.task, schedule.batch_size, schedule.max_length)
                if kind in seen:
                    continue
                seen.add(kind)
                tokens = schedule.batch_size * dry_run.tokens_read(tasks.find(one.task), schedule)
                rate = dry_run.matrix_rate("cpu") * dry_run.EFFICIENCY
                seconds = dry_run.step_operations(shape, tokens) / rate
                memory = dry_run.training_memory(shape, dry_run.longest_batch(tasks.find(one.task), schedule))
                with ProcessPoolExecutor(1, get_context("spawn")) as alone:
                    took, needed = alone.submit(train, one, folder).result()
                print(f"{f'{number}, {one.task}':<24}{schedule.batch_size:>6}{seconds:>23.1f}{took:>10.1f}", end="")
                print(
                    f"{took / seconds:>7.2f}{memory / 1e9:>15.1f}{needed / 1e9:>10.1f}{needed / memory:>7.2f}",
                    flush=True,
                )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
