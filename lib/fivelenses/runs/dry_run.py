"""A dry run: what a run would fetch, train and measure, with estimates of time and memory, without doing any of it.

Training takes about 6 × (parameters in the layers) × (pieces) floating-point operations, a forward pass a third of
that; the rate is
this machine's, measured on a matrix product, times the share of it that training reaches.
"""

import time

import torch

from fivelenses import tasks
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.models import encoders
from fivelenses.runs.parameters import ChapterParameters
from fivelenses.runs.settings import settings
from fivelenses.tasks.sources import SourceError, mirror

# The share of the matrix rate that fine-tuning reaches: padding, small products, the optimiser. Measured on a CPU
# at 6 × 384.
EFFICIENCY = 0.35


def matrix_rate(device: str, size: int = 1024) -> float:
    """Floating-point operations a second of a square matrix product on this machine, the best of five."""
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    left = torch.randn(size, size, device=device, dtype=kind)
    best = float("inf")
    for _ in range(5):
        if device == "cuda":
            torch.cuda.synchronize()
        started = time.perf_counter()
        left @ left
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best


def dry_run(number: int, profile: str, overrides: dict | None = None) -> list[str]:
    """The lines that `--dry-run` prints for a chapter.

    Raises:
        ParameterError: a parameter that does not exist or fit.
    """
    chosen = settings(number, profile, **(overrides or {}))
    lines = [
        f"chapter {number}, profile {profile}: {', '.join(chosen.encoders_used())}, tasks {', '.join(chosen.tasks)}, "
        f"seeds {chosen.seeds}"
    ]
    shapes = {}
    for name in chosen.encoders_used():
        encoder = encoders.locate(name)
        local = encoder.revision is None
        lines.append(f"{name}: {'on this machine' if local else f'from the hub, revision {encoder.revision}'}")
        # A shape that is known is not asked for: a dry run needs no network.
        known = name.removeprefix("google-bert/")
        try:
            shapes[name] = encoders.config(encoders.locate(f"random:{known}") if known in encoders.SHAPES else encoder)
        except SourceError:
            lines.append(f"estimate for {name}: not possible before its configuration can be read")
    return lines + _fetched(chosen) + _estimated(chosen, shapes)


def _fetched(chosen: ChapterParameters) -> list[str]:
    lines = []
    for name in chosen.tasks:
        task = tasks.find(name)
        if chosen.source == "toyworld":
            lines.append(f"data: {task.title} from the toy world, generated")
        elif mirror():
            try:
                there = tasks.load(name, chosen.source).provenance("train")
            except SourceError as error:
                there = f"lacking ({error})"
            lines.append(f"data: {task.title} from the mirror: {there}")
        else:
            place = f"the hub, {task.repository} {task.config}, revision {task.revision}"
            lines.append(f"data: {task.title} from {place}, {task.sizes['train']:,} training examples")
    return lines


def _rows(chosen: ChapterParameters, name: str) -> tuple[int, int]:
    """Training and development examples of a task, counted where its data can be read, and as on the hub otherwise."""
    sizes = tasks.find(name).sizes
    training, evaluation = sizes["train"], sizes["validation"]
    if chosen.source == "toyworld" or mirror():
        try:
            splits = tasks.load(name, chosen.source).splits
            training, evaluation = splits["train"].num_rows, splits["validation"].num_rows
        except SourceError:
            pass  # `_fetched` has named what the mirror lacks.
    return min(training, chosen.training_examples or training), min(
        evaluation, chosen.evaluation_examples or evaluation
    )


def _trained_already(chosen: ChapterParameters, encoder: str, name: str, training: dict) -> bool:
    if chosen.source == "hub" and mirror() is None:
        return False
    try:
        one = specify(encoder, name, chosen.source, **training)
    except SourceError:
        return False
    return Store().place(one).is_dir()


def _estimated(chosen: ChapterParameters, shapes: dict) -> list[str]:
    device = "cuda" if torch.cuda.is_available() and chosen.device != "cpu" else "cpu"
    rate = matrix_rate(device) * EFFICIENCY
    lines, total, memory, disk = [], 0.0, 0.0, 0.0
    for encoder, shape in shapes.items():
        width, depth = shape.hidden_size, shape.num_hidden_layers
        in_layers = depth * (4 * width**2 + 2 * width * shape.intermediate_size)
        parameters = in_layers + shape.vocab_size * width
        for name in chosen.tasks:
            rows, evaluation = _rows(chosen, name)
            trainings = chosen.trainings(name, encoder, rows, depth)
            tokens = min(tasks.find(name).mean_tokens, chosen.schedule_of(name, encoder).max_length)
            missing = [one for one in trainings if not _trained_already(chosen, encoder, name, one)]
            read = [min(rows, one["examples"] or rows) * one["schedule"].epochs for one in missing]
            train = 6 * in_layers * sum(read) * tokens / rate
            passes = chosen.passes(name, encoder, depth)
            measure = passes * 2 * in_layers * evaluation * tokens / rate
            total += train + measure
            states = len(trainings) * (chosen.states_kept(name, encoder) or 0)
            disk += parameters * (4 * len(trainings) + 2 * states) / 1e9
            of_encoder, there = f"{encoder}, " if len(shapes) > 1 else "", len(trainings) - len(missing)
            lines.append(
                f"{of_encoder}{tasks.find(name).title}: {len(missing)} models to train ({there} in the store) "
                f"on {_range([min(rows, one['examples'] or rows) for one in trainings])} examples, "
                f"{_range([one['schedule'].epochs for one in trainings])} epochs, about {_duration(train)}; "
                f"{passes} {'pass' if passes == 1 else 'passes'} over {evaluation:,} examples, "
                f"about {_duration(measure)}"
            )
        # Weights, gradients and Adam's two moments in training; all models of a task and two sets of moment matrices
        # in measuring.
        training_memory = 16 * parameters + 34 * 4 * 32 * 128 * width * depth
        measuring_memory = 4 * parameters * (2 + len(chosen.seeds)) + 8 * 4 * width**2 * depth * (len(chosen.seeds) + 2)
        memory = max(memory, training_memory / 1e9, measuring_memory / 1e9)
    what = torch.cuda.get_device_name() if device == "cuda" else f"this CPU ({rate / EFFICIENCY / 1e9:.0f} GFLOP/s)"
    if shapes:
        lines.append(
            f"altogether about {_duration(total)} on {what}, at most about {memory:.1f} GB of memory, {disk:.1f} GB of "
            "disk"
        )
    if chosen.device == "cuda" and device == "cpu":
        lines.append("this profile asks for a GPU and there is none here: the run itself would be refused")
    return lines


def _range(values: list) -> str:
    return f"{min(values):,g}" if min(values) == max(values) else f"{min(values):,g} to {max(values):,g}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
