"""Evidence on a borrowed GPU: a bare machine without a network, for minutes.

    python bench/gpu.py pack FOLDER ENCODER...                  here: encoders, in parts of 52 MiB
    python bench/gpu.py unpack PART... --folder FOLDER          there: the same encoders, bit for bit
    python bench/gpu.py run '1:tasks=[sst2];seeds=[20]' 4: ...  there: chapters, each with its parameters
    python bench/gpu.py take FILE...                            here: records that came back, where a run finds them

Models are trained side by side, a process each, since one process leaves most of a large GPU idle. A measurement begins
as soon as its models are there, in the order of the runs. Records are written out every half minute, so that a machine
that goes away loses little; a run that is started again on the same machine goes on.
"""

import argparse
import ast
import contextlib
import dataclasses
import hashlib
import io
import itertools
import os
import tarfile
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import active_children, get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np

PART_BYTES = 54 * 2**20
# Processes side by side, and how many of them measure while there is something to train.
PROCESSES = (os.cpu_count() or 1) + 1
MEASURERS = max(1, PROCESSES * 3 // 8)
MEMORY = 5e9  # bytes of what a comparison gathers: each process would take what is free
NEEDED_TO_ASK = ("sizes",)  # records that decide what else is measured


# --- encoders in parts ------------------------------------------------------------------------------------------------


def pack(folder: Path, names: list[str]) -> None:
    """Write the encoders' folders as one compressed archive, the bytes of their weights by significance, cut into
    parts.
    """
    from fivelenses.models import encoders

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for name in names:
            place = Path(encoders.locate(name).place)
            for file in sorted(one for pattern in encoders.IDENTIFYING for one in place.glob(pattern)):
                content = file.read_bytes()
                if file.suffix == ".safetensors":
                    # The exponents' bytes compress, beside one another.
                    content = np.frombuffer(content, np.uint8).reshape(-1, 4).T.tobytes()
                entry = tarfile.TarInfo(f"{place.name}/{file.name}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    content = stream.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    for place, start in enumerate(range(0, len(content), PART_BYTES)):
        (folder / f"part-{place}").write_bytes(content[start : start + PART_BYTES])
    print(f"{len(content) / 2**20:.0f} MiB in {place + 1} parts, sha256 {hashlib.sha256(content).hexdigest()[:16]}")


def unpack(parts: list[Path], folder: Path) -> None:
    """Join the parts, and write the encoders' folders as they were."""
    content = b"".join(part.read_bytes() for part in sorted(parts, key=lambda part: int(part.name[5:])))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(folder, filter="data")
        for name in archive.getnames():
            if name.endswith(".safetensors"):
                planes = np.frombuffer((folder / name).read_bytes(), np.uint8)
                (folder / name).write_bytes(planes.reshape(4, -1).T.tobytes())


# --- what is trained and measured -------------------------------------------------------------------------------------


def chosen_settings(run: str):
    """The chapter of `number:name=value;name=value`, and its parameters in the profile `small`."""
    from fivelenses.chapters import find_chapter, parse_parameters, settings

    number, _, given = run.partition(":")
    parameters = parse_parameters([one for one in given.split(";") if one])
    return find_chapter(int(number)), settings(int(number), "small", **parameters)


def train(specification) -> tuple[str, str]:
    """Train one model; its address, and its score and time in words."""
    from fivelenses.checkpoints import finetuning
    from fivelenses.checkpoints.store import Store

    made = finetuning.fine_tune(specification, Store())
    _return_memory()
    took = f"{made.manifest['seconds']} s, {made.manifest['seconds_per_step']} s a step"
    return specification.address, f"{specification.describe()}: {made.score:.3f}, {took}"


def begin(decompose_here: bool) -> None:
    """In each process: one thread, no states for resuming, and decompositions on the processor if it is faster."""
    import torch

    from fivelenses import comparison
    from fivelenses.checkpoints import finetuning

    torch.set_num_threads(1)
    comparison.memory_at_hand = lambda _: MEMORY
    arguments = finetuning._arguments
    finetuning._arguments = lambda *of_training: _without_states(arguments(*of_training))
    for name in ("eigh", "eigvalsh") if decompose_here else ():
        setattr(torch.linalg, name, _on_processor(getattr(torch.linalg, name)))


def _return_memory() -> None:
    """What a process has no use for, others have."""
    import torch

    torch.cuda.empty_cache()


def _without_states(arguments):
    from transformers.trainer_utils import SaveStrategy

    arguments.save_strategy = SaveStrategy.NO
    return arguments


def _on_processor(decompose):
    """A decomposition of a matrix on a GPU as the processor makes it, which takes less time at these sizes."""
    import torch

    def decomposed(matrix, *positional, **named):
        result = decompose(matrix.cpu(), *positional, **named)
        if isinstance(result, torch.Tensor):
            return result.to(matrix.device)
        return type(result)([one.to(matrix.device) for one in result])

    return decomposed


class Measured(Exception):
    """Ends a chapter's notebook as soon as the group that was asked for is measured."""


class MeasuringRun(SimpleNamespace):
    """A run that measures, and draws and judges nothing."""

    def __getattr__(self, name: str):
        return lambda *_, **__: None


@dataclasses.dataclass(frozen=True)
class Job:
    """One group of models under one measurement: the `place`-th that the chapter's notebook asks for."""

    run: str
    function: str
    place: int
    addresses: frozenset[str]


def ask(run: str, part) -> None:
    """Execute what a chapter's notebook measures, each group by `part(measure, place, function, arguments, group)`."""
    from fivelenses.run import Run

    chapter, parameters = chosen_settings(run)
    places = itertools.count()

    class Asked(Run):
        def _part(self, function, arguments, group, groups):
            if function.__name__ in NEEDED_TO_ASK:
                return super()._part(function, arguments, group, groups)
            part(super()._part, next(places), function, arguments, group)
            return {}

        def log(self, line: str) -> None:
            print(f"chapter {run[0]}: {line}", flush=True)

    asked = Asked(chapter, "", parameters, Path())
    names = {"run": MeasuringRun(measure=asked.measure, settings=parameters), "settings": parameters}
    for statement in _statements(chapter.notebook.with_suffix(".py")):
        exec(compile(ast.Module([statement], []), chapter.slug, "exec"), names)


def jobs_of(run: str) -> list[Job]:
    """All that a chapter measures."""
    jobs = []

    def note(_, place, function, __, group) -> None:
        addresses = frozenset(one.address for one in group or ())
        jobs.append(Job(run, function.__name__, place, addresses))

    ask(run, note)
    return jobs


def measure(job: Job) -> str:
    """Measure one group."""
    started = time.monotonic()

    def measured(part, place, function, arguments, group) -> None:
        if place == job.place:
            part(function, arguments, group, [group])
            raise Measured

    with contextlib.suppress(Measured):
        ask(job.run, measured)
    _return_memory()
    return f"{job.function} {job.place} of chapter {job.run[0]}: {time.monotonic() - started:.0f} s"


def _statements(notebook: Path) -> list[ast.stmt]:
    """What a notebook measures, in order, and the assignments and imports that this needs; none of its figures and
    claims.
    """
    needed, chosen = set(), []
    for one in reversed(ast.parse(notebook.read_text(encoding="utf-8")).body):
        targets = {node.id for node in ast.walk(one) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        if isinstance(one, ast.ImportFrom):
            targets = {alias.asname or alias.name for alias in one.names}
        measures = isinstance(one, ast.Assign | ast.Expr | ast.For) and ".measure(" in ast.unparse(one)
        if measures or isinstance(one, ast.Assign | ast.ImportFrom) and targets & needed - {"run", "settings"}:
            # The nearest assignment above is the one that counts.
            needed -= targets
            needed |= {node.id for node in ast.walk(one) if isinstance(node, ast.Name)} - targets
            chosen.append(one)
    return chosen[::-1]


# --- the run ----------------------------------------------------------------------------------------------------------


def write_out(results: Path) -> None:
    """All records so far, a file for each chapter, beside and renamed."""
    from fivelenses.files import records_folder

    for folder in sorted(records_folder().glob("*")):
        place = results / f"records-{folder.name}.tar"
        with tarfile.open(place.with_suffix(".new"), "w") as archive:
            for file in folder.glob("*.parquet"):
                archive.add(file, f"{folder.name}/{file.name}")
        os.replace(place.with_suffix(".new"), place)


def describe_device() -> bool:
    """Print what the device computes, beside which the trainings' rates stand, and return whether a processor's core is
    the better place for decompositions, all processes sharing the GPU.
    """
    import torch

    if not torch.cuda.is_available():
        print("no GPU")
        return True

    def seconds(compute, times: int) -> float:
        compute()
        torch.cuda.synchronize()
        started = time.monotonic()
        for _ in range(times):
            compute()
        torch.cuda.synchronize()
        return (time.monotonic() - started) / times

    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    rate = 2 * 8192**3 / seconds(lambda: matrix @ matrix, 10) / 1e12
    rows = torch.randn(10, 2000, 768, dtype=torch.float64)
    scatters = rows.mT @ rows
    there, here = scatters.cuda(), scatters[0]
    torch.set_num_threads(1)
    on_gpu, on_core = seconds(lambda: torch.linalg.eigh(there), 1) / 10, seconds(lambda: torch.linalg.eigh(here), 1)
    print(f"{torch.cuda.get_device_name()}: {rate:.0f} TFLOP/s in bfloat16; eigenvectors of one of ten 768 × 768 in")
    print(f"{on_gpu * 1e3:.0f} ms, on a core in {on_core * 1e3:.0f} ms", flush=True)
    return on_gpu * PROCESSES / 2 > on_core


def run(runs: list[str], seconds: float, results: Path) -> None:
    """Train and measure until all is done or the time is up."""
    started = written = time.monotonic()
    pool = ProcessPoolExecutor(PROCESSES, get_context("spawn"), begin, (describe_device(),))
    specifications, jobs, trained = {}, [], set()
    for one in runs:
        specifications |= {made.address: made for made in chosen_settings(one)[1].specifications()}
        jobs += jobs_of(one)
    print(f"{len(specifications)} models, {len(jobs)} measurements", flush=True)
    left, running, measuring = list(specifications.values()), set(), set()
    while left or jobs or running:
        while len(running) < PROCESSES:
            ready = next((job for job in jobs if job.addresses <= trained), None)
            if ready and (not left or len(measuring & running) < MEASURERS):
                jobs.remove(ready)
                future = pool.submit(measure, ready)
                measuring.add(future)
                running.add(future)
            elif left:
                running.add(pool.submit(train, left.pop(0)))
            else:
                break
        done, running = wait(running, timeout=5, return_when=FIRST_COMPLETED)
        now = time.monotonic()
        for future in done:
            if (error := future.exception()) is not None:
                print(f"{now - started:.0f} s: {type(error).__name__}: {error}", flush=True)
                continue
            result = future.result()
            if isinstance(result, tuple):
                trained.add(result[0])
                result = f"{len(trained)} of {len(specifications)}, {result[1]}"
            print(f"{now - started:.0f} s: {result}", flush=True)
        if now - written > 30 or now - started > seconds or not running:
            write_out(results)
            written = now
        if now - started > seconds:
            print(f"time is up: {len(jobs)} measurements not begun, {len(running)} tasks open", flush=True)
            for child in active_children():
                child.kill()
            os._exit(0)


def take(files: list[Path]) -> None:
    """Put records that came back where a run finds them."""
    from fivelenses.files import records_folder

    for file in files:
        with tarfile.open(file) as archive:
            archive.extractall(records_folder(), filter="data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("pack", "unpack", "run", "take"))
    parser.add_argument("names", nargs="+", help="what the command takes, see above")
    parser.add_argument("--folder", type=Path, help="where encoders are unpacked")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--results", type=Path)
    chosen = parser.parse_args()
    if chosen.command == "pack":
        pack(Path(chosen.names[0]), chosen.names[1:])
    elif chosen.command == "unpack":
        unpack([Path(name) for name in chosen.names], chosen.folder)
    elif chosen.command == "take":
        take([Path(name) for name in chosen.names])
    else:
        run(chosen.names, chosen.seconds, chosen.results)


if __name__ == "__main__":
    main()
