"""The evidence of the profile `small`, unit by unit: `python bench/evidence.py [UNIT ...]`, started again at any time.

A unit is what one machine finishes in an hour or two: a task with its seeds, trained and measured for each chapter
that reads its models, or pairs of tasks. Its records are copied into `book/records/units`, from which a run of the
whole chapter takes them on any machine; its checkpoints are removed as soon as no unit that is left needs them. Units
that are done are skipped. With `--list`, what is left is printed and nothing is run.
"""

import argparse
import json
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import joblib

from fivelenses import execution, records
from fivelenses.chapters import CHAPTERS, parse_parameters
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import Store
from fivelenses.files import records_folder, written_beside
from fivelenses.models.encoders import MINILM, MPNET

MINILM_RUN = (f"encoder={MINILM}",)
MINILM_LENSES = (*MINILM_RUN, f"independent=random:{MINILM}")
MINILM_PROBES = (*MINILM_RUN, f"pretrained=[{MINILM}]")


@dataclass(frozen=True)
class Unit:
    """Runs whose models are trained and measured together.

    Attributes:
        name: on the command line.
        runs: of chapters, each with its parameters as `-p` has them.
    """

    name: str
    runs: tuple[tuple[int, tuple[str, ...]], ...]

    def jobs(self) -> list[execution.Job]:
        """The runs as notebooks to be executed."""
        return [execution.of_chapter(number, "small", parse_parameters(list(given))) for number, given in self.runs]

    def specifications(self) -> dict[str, Specification]:
        """Of the models that the unit reads, by address."""
        return {one.address: one for job in self.jobs() for one in job.parameters.specifications()}


def _of_task(name: str, task: str, *runs: tuple[int, tuple[str, ...]]) -> Unit:
    return Unit(name, tuple((number, (f"tasks=[{task}]", *given)) for number, given in runs))


PAIRED = ("tasks=[mnli,rte,sst2,mrpc]", "shuffled=[]")
RATES = ("2.0e-5", "1.0e-4", "3.0e-4")  # beside the profile's own
UNITS = (  # the most valuable first
    *(_of_task(task, task, (1, ()), (6, ())) for task in ("sst2", "mnli", "rte", "mrpc")),
    Unit("pairs", ((1, PAIRED),)),
    *(_of_task(f"{task}-reinitialised", task, (4, ())) for task in ("sst2", "qnli", "cola")),
    *(_of_task(f"{task}-probes", task, (5, ())) for task in ("mnli", "parsing", "squad")),
    _of_task("sst2-large", "sst2", (1, ("training_examples=36680", "shuffled=[]"))),
    # Followed on two of the five tasks, since every state of a training is read like a model.
    Unit("directprobe", ((2, (f"encoder={MPNET}", f"encoders=[{MPNET}]", "followed=[pos,ps-fxn]")),)),
    *(_of_task(f"{task}-minilm", task, (1, MINILM_RUN), (6, MINILM_LENSES)) for task in ("sst2", "mnli", "mrpc")),
    *(_of_task(f"{task}-probes-minilm", task, (5, MINILM_PROBES)) for task in ("mnli", "parsing", "squad")),
    Unit("known-truth", ((7, ()),)),
    *(
        _of_task(f"{task}-minilm-{rate}", task, (1, (*MINILM_RUN, f"learning_rate={rate}", "shuffled=[]")))
        for task in ("mnli", "mrpc", "sst2")
        for rate in RATES
    ),
    # A surface is spanned by the models of two tasks.
    Unit("landscape", ((3, (f"encoder={MPNET}", "tasks=[mrpc,sst2]", "seeds=[20]", "points=13")),)),
)


def folder() -> Path:
    """Where the records of units are committed."""
    return records.committed_folder() / "units"


def finished() -> dict[str, dict]:
    """What the units that are done took, by their names."""
    file = folder() / "units.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def copy_records(source: Path, target: Path) -> int:
    """Copy the records of all chapters that the target lacks, and return how many these were."""
    copied = 0
    for chapter in CHAPTERS.values():
        for file in sorted((source / chapter.slug).glob("*.parquet")):
            place = target / chapter.slug / file.name
            if not place.exists():
                with written_beside(place) as beside:
                    shutil.copy(file, beside)
                copied += 1
    return copied


def run(unit: Unit) -> None:
    """Train a unit's models side by side, one per core, and then measure its chapters likewise; copy its records into
    the repository, and note what it took.
    """
    started = time.monotonic()
    prepare(list(unit.specifications().values()), workers=joblib.cpu_count(), log=partial(print, flush=True))
    execution.execute_all(unit.jobs())
    copied = copy_records(records_folder(), folder())
    took = {"hours": round((time.monotonic() - started) / 3600, 2), "records": copied}
    with written_beside(folder() / "units.json") as place:
        place.write_text(json.dumps(finished() | {unit.name: took}, indent=1) + "\n", encoding="utf-8")
    print(f"{unit.name}: {took['hours']} h, {copied} records", flush=True)


def discard(unit: Unit, left: list[Unit]) -> None:
    """Remove the checkpoints of a unit that no unit that is left needs."""
    needed = set().union(*(one.specifications() for one in left))
    store = Store()
    for address in unit.specifications().keys() - needed:
        shutil.rmtree(store.folder / address, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("units", nargs="*", metavar="UNIT", help="all that are left when none is named")
    parser.add_argument("--list", action="store_true", help="print what is left")
    chosen = parser.parse_args()
    unknown = set(chosen.units) - {unit.name for unit in UNITS}
    if unknown:
        parser.error(f"there is no unit {min(unknown)}: there is {', '.join(unit.name for unit in UNITS)}")
    left = [unit for unit in UNITS if unit.name not in finished() and unit.name in (chosen.units or {unit.name})]
    copy_records(folder(), records_folder())
    while left:
        unit = left.pop(0)
        print(f"{unit.name}: {len(unit.specifications())} models", flush=True)
        if not chosen.list:
            run(unit)
            discard(unit, [one for one in UNITS if one.name not in finished()])


if __name__ == "__main__":
    main()
