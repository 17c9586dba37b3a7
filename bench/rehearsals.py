"""How near a dry run's estimates come: each chapter's models of `paper`, with random weights of the paper's shapes, for
a few steps on a CPU, or with `--measuring` chapters 3 and 6 from beginning to end on a few examples.

    FIVELENSES_MIRROR=FOLDER python bench/rehearsals.py [--steps N] [--measuring] [--chapter N …]

A line per chapter, shape, task and batch: what a step is estimated to take from this machine's rate of matrix products
and what it takes, and the memory at most, estimated and measured. Each model is trained by the one routine for it, in
a process of its own; it answers 16 development examples, which no step counts. `random:bert-large-uncased` takes the
place of the cased one, and `random:bert-base-uncased` that of the encoders of its shape. A batch whose estimate does
not fit into this machine's memory is halved until it does.

What a chapter measures is rehearsed on BERT-large, in a folder, as chapter 3 needs another random one beside it. The
first number is what the whole run takes, its training included.
"""

import argparse
import dataclasses
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import torch
from transformers import AutoModel

from fivelenses import tasks
from fivelenses.models import encoders
from fivelenses.runs import dry_run
from fivelenses.runs.machine_speed import Machine
from fivelenses.runs.settings import settings

BASE, LARGE = "random:bert-base-uncased", "random:bert-large-uncased"
DEVELOPMENT = 16
# The papers' encoders by chapter; chapter 6 has the models of chapter 1.
SHAPES = {1: LARGE, 2: BASE, 3: LARGE, 4: BASE, 5: BASE}
# As little as these two can be measured on: a plane of 4 × 4 cells; more tokens than SVCCA has dimensions.
SHORT = {"device": "cpu", "seeds": [0], "epochs": 1, "batch_size": 8, "training_examples": 16}
PLANE = {"points": 4, "line_points": 4, "low": -1, "high": 2, "grid_examples": 4, "curvature_examples": 4}
MEASURED = {
    3: {"tasks": ["sst2", "mrpc"], "long_task": "sst2", "long_epochs": [1, 1], **PLANE},
    6: {"tasks": ["mrpc"], "probe_points": 16, "structural_sentences": 8, "random_directions": 1},
}
DEVELOPMENT_MEASURED = {3: 10, 6: 60}


def short_mirror(whole: Path, short: Path, development: int) -> None:
    """A mirror with the first development examples alone; all else is linked."""
    for file in (whole / "datasets").rglob("*.parquet"):
        place = short / file.relative_to(whole)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.stem.startswith("validation"):
            pq.write_table(pq.read_table(file).slice(0, development), place)
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


def measured(number: int, encoder: Path, folder: Path) -> tuple[float, float]:
    """Seconds of a whole short run of a chapter and the most memory in bytes, in processes of its own."""
    given = chosen(number, encoder)
    parameters = [word for name, value in given.items() for word in ("-p", f"{name}={json.dumps(value)}")]
    environment = os.environ | {"FIVELENSES_STORE": str(folder / "store"), "FIVELENSES_RUNS": str(folder / "runs")}
    command = [sys.executable, "-m", "fivelenses", "run", str(number), "--profile", "small", *parameters]
    subprocess.run(command, env=environment, check=True)
    facts = json.loads(next((folder / "runs" / "small").glob("*/run.json")).read_text(encoding="utf-8"))
    return facts["seconds"] + facts["training_seconds"], facts["peak_memory"]


def chosen(number: int, encoder: Path) -> dict:
    """The parameters of a chapter's short run."""
    independent = {"independent": f"random:{encoder}"} if number == 6 else {}
    return {"encoder": str(encoder), **SHORT, **MEASURED[number], **independent}


def rehearse_measuring(numbers: Sequence[int], whole: Path, folder: Path) -> None:
    """A line for each of these chapters, run from beginning to end on a short mirror."""
    encoder, source = folder / "bert-large", encoders.locate(LARGE)
    torch.manual_seed(0)
    encoders.load(source, AutoModel).save_pretrained(encoder)
    encoders.tokenizer(source).save_pretrained(encoder)
    for number in numbers:
        mirror = folder / f"mirror-{number}"
        short_mirror(whole, mirror, DEVELOPMENT_MEASURED[number])
        os.environ["FIVELENSES_MIRROR"] = str(mirror)
        seconds, memory = dry_run.estimated_cost(number, "small", chosen(number, encoder))
        took, needed = measured(number, encoder, folder / f"run-{number}")
        print_row(f"{number}, measured", SHORT["batch_size"], seconds, took, memory * 1e9, needed)


def print_row(what: str, batch: int, seconds: float, took: float, memory: float, needed: float) -> None:
    """Estimated and measured: seconds, and bytes as GB."""
    print(f"{what:<24}{batch:>6}{seconds:>23.1f}{took:>10.1f}{took / seconds:>7.2f}", end="")
    print(f"{memory / 1e9:>15.1f}{needed / 1e9:>10.1f}{needed / memory:>7.2f}", flush=True)


def rehearse_training(numbers: Sequence[int], steps: int, whole: Path, folder: Path) -> None:
    """A line for each kind of model of these chapters, trained for so many steps."""
    short_mirror(whole, folder / "mirror", DEVELOPMENT)
    os.environ["FIVELENSES_MIRROR"] = str(folder / "mirror")
    seen = set()
    for number in numbers:
        for one in trainings(number, steps, 0.8 * psutil.virtual_memory().available):
            shape, schedule = encoders.config(encoders.locate(one.encoder)), one.schedule
            kind = (one.encoder, one.task, schedule.batch_size, schedule.max_length)
            if kind in seen:
                continue
            seen.add(kind)
            tokens = schedule.batch_size * dry_run.tokens_read(tasks.find(one.task), schedule)
            rate = Machine("cpu").rate
            seconds = dry_run.step_operations(shape, tokens) / rate
            memory = dry_run.training_memory(shape, dry_run.longest_batch(tasks.find(one.task), schedule))
            with ProcessPoolExecutor(1, get_context("spawn")) as alone:
                took, needed = alone.submit(train, one, str(folder)).result()
            print_row(f"{number}, {one.task}", schedule.batch_size, seconds, took, memory, needed)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=3, help="of each model")
    options.add_argument("--measuring", action="store_true", help="whole short runs of chapters 3 and 6")
    options.add_argument("--chapter", type=int, action="append", choices=[*SHAPES, 6])
    given = options.parse_args()
    rehearsed = MEASURED if given.measuring else SHAPES
    numbers = given.chapter or list(rehearsed)
    if unknown := [one for one in numbers if one not in rehearsed]:
        what = "measuring" if given.measuring else "training"
        options.error(f"the {what} of chapter {unknown[0]} is not rehearsed")
    if "FIVELENSES_MIRROR" not in os.environ:
        options.error("FIVELENSES_MIRROR has to name a mirror of the data")
    whole, folder = Path(os.environ["FIVELENSES_MIRROR"]).resolve(), Path(tempfile.mkdtemp(prefix="rehearsals-"))
    unit = "s" if given.measuring else "s per step"
    try:
        print(f"{'chapter, task':<24}{'batch':>6}{f'{unit}, estimated':>23}{'measured':>10}{'ratio':>7}", end="")
        print(f"{'GB, estimated':>15}{'measured':>10}{'ratio':>7}")
        if given.measuring:
            rehearse_measuring(numbers, whole, folder)
        else:
            rehearse_training(numbers, given.steps, whole, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
