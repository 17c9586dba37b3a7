"""A dry run: what a run would fetch, train and measure, with estimates of time and memory, without doing any of it.

Training takes about 6 × (parameters in the layers) × (tokens) floating-point operations, a forward pass a third of
that; the rate is this machine's, measured on a matrix product, times the share of it that training reaches.
"""

import contextlib
import re
import time

import torch
from transformers import BertConfig

from fivelenses import tasks
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.models import encoders
from fivelenses.runs.inputs import COMMIT
from fivelenses.runs.parameters import FineTuningParameters
from fivelenses.runs.settings import settings
from fivelenses.tasks.own import described
from fivelenses.tasks.sources import SourceError, mirror

# The share of the matrix rate that fine-tuning reaches: padding, small products, the optimiser. Measured on a CPU
# at 6 × 384.
EFFICIENCY = 0.35
# Layers, width and vocabulary of Devlin et al.'s; the names of Turc et al.'s say theirs.
LARGE_AND_BASE = {
    f"bert-{size}-{case}": (*shape, vocabulary)
    for size, shape in {"base": (12, 768), "large": (24, 1024)}.items()
    for case, vocabulary in {"uncased": 30_522, "cased": 28_996}.items()
}
MINIATURE = re.compile(r"bert_uncased_L-(?P<layers>\d+)_H-(?P<width>\d+)_A-\d+")
# For machines without a GPU: what its data sheet says of dense products in bfloat16.
GPU, GPU_RATE = "NVIDIA A100", 312e12
# What no GPU goes below on small models, where it waits for the next of some forty kernels a layer: assumed, seconds
# per layer of a forward pass of one batch; a training step has three times as many.
GPU_LAUNCHES = 1e-3


def matrix_rate(device: str, size: int = 1024) -> float:
    """Floating-point operations per second of a square matrix product on this machine, the best of five."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    matrix = torch.randn(size, size, device=device, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
    seconds = []
    for _ in range(5):
        wait()
        started = time.perf_counter()
        matrix @ matrix
        wait()
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / min(seconds)


def dry_run(number: int, profile: str, overrides: dict | None = None) -> list[str]:
    """The lines that `--dry-run` prints for a chapter.

    Raises:
        ParameterError: a parameter that does not exist or fit.
    """
    parameters = settings(number, profile, **(overrides or {}))
    names = parameters.encoders_used()
    of_run = f"{', '.join(names)}, tasks {', '.join(parameters.tasks)}, seeds {parameters.seeds}"
    lines, shapes = [f"chapter {number}, profile {profile}: {of_run}"], {}
    for name in names:
        encoder = encoders.locate(name)
        where = "on this machine" if encoder.revision is None else f"from the hub, revision {encoder.revision}"
        if encoder.revision is not None and not COMMIT.fullmatch(encoder.revision):
            where += ", which may change: the run says and records the commit that it finds there"
        lines.append(f"{name}: {where}")
        try:
            shapes[name] = known_shape(name) or encoders.config(encoder)
        except SourceError:
            lines.append(f"estimate for {name}: not possible before its configuration can be read")
    lines += [_data(parameters, tasks.find(name)) for name in parameters.tasks_trained()]
    return lines + (_estimate(parameters, shapes) if shapes else [])


def known_shape(name: str) -> BertConfig | None:
    """The shape of a BERT of Devlin et al., Sellam et al. or Turc et al., so that a dry run needs no network.

    Example:
        >>> known_shape("google/bert_uncased_L-4_H-256_A-4").num_hidden_layers, known_shape("roberta-base")
        (4, None)
    """
    plain = name.removeprefix("random:").removeprefix("google-bert/").removeprefix("google/")
    plain = "bert-base-uncased" if plain.startswith("multiberts-seed_") else plain
    if plain in LARGE_AND_BASE:
        layers, width, vocabulary = LARGE_AND_BASE[plain]
    elif miniature := MINIATURE.fullmatch(plain):
        layers, width, vocabulary = int(miniature["layers"]), int(miniature["width"]), 30_522
    else:
        return None
    return BertConfig(num_hidden_layers=layers, hidden_size=width, intermediate_size=4 * width, vocab_size=vocabulary)


def _data(parameters: FineTuningParameters, task: tasks.Task) -> str:
    if task.own:
        return f"data: {described(task.name)}"
    if parameters.source == "toyworld":
        return f"data: {task.title} from the toy world, generated"
    if not mirror():
        where = f"{task.repository} {task.config}, revision {task.revision}"
        return f"data: {task.title} from the hub, {where}, {task.sizes['train']:,} training examples"
    try:
        return f"data: {task.title} from the mirror: {tasks.load(task.name, parameters.source).provenance('train')}"
    except SourceError as error:
        return f"data: {task.title} from the mirror: missing ({error})"


def _rows(parameters: FineTuningParameters, name: str) -> tuple[int, int]:
    """Training and development examples of a task, counted where its data can be read, and as on the hub otherwise."""
    sizes = tasks.find(name).sizes
    if not tasks.find(name).own and (parameters.source == "toyworld" or mirror()):
        with contextlib.suppress(SourceError):  # `_data` has named what the mirror lacks.
            sizes = {split: data.num_rows for split, data in tasks.load(name, parameters.source).splits.items()}
    training, evaluation = sizes["train"], sizes["validation"]
    measured = getattr(parameters, "evaluation_examples", None) or evaluation
    return min(training, parameters.training_examples or training), min(evaluation, measured)


def _is_stored(parameters: FineTuningParameters, encoder: str, task: str, training: dict) -> bool:
    if parameters.source == "hub" and mirror() is None:
        return False
    try:
        return Store().place(specify(encoder, task, parameters.source, **training)).is_dir()
    except SourceError:
        return False


def _estimate(parameters: FineTuningParameters, shapes: dict) -> list[str]:
    device = "cuda" if torch.cuda.is_available() and parameters.device != "cpu" else "cpu"
    peak = matrix_rate(device)
    rate, seeds = peak * EFFICIENCY, len(parameters.seeds)
    lines, operations, launches, memory, disk = [], 0.0, 0.0, 0.0, 0.0
    # A checkpoint's address needs the data, which a dry run does not fetch from the hub.
    known = parameters.source != "hub" or mirror() is not None
    for encoder, shape in shapes.items():
        width, depth = shape.hidden_size, shape.num_hidden_layers
        in_layers = depth * (4 * width**2 + 2 * width * shape.intermediate_size)
        weights = in_layers + shape.vocab_size * width
        for name in parameters.tasks_trained():
            task, (rows, evaluation) = tasks.find(name), _rows(parameters, name)
            trainings = parameters.trainings(name, encoder, rows, depth)
            missing = [one for one in trainings if not _is_stored(parameters, encoder, name, one)]
            examples = [min(rows, one["examples"] or rows) for one in trainings]
            tokens = min(task.mean_tokens, parameters.schedule_of(name, encoder).max_length)
            read = sum(min(rows, one["examples"] or rows) * one["schedule"].epochs for one in missing)
            passes = parameters.passes(name, encoder, depth)
            train = 6 * in_layers * read * tokens
            measure = 2 * in_layers * passes * evaluation * tokens
            operations += train + measure
            batch = parameters.schedule_of(name, encoder).batch_size
            launches += depth * (3 * read + passes * evaluation) / batch * GPU_LAUNCHES
            states = len(trainings) * (parameters.states_kept(name, encoder) or 0)
            disk += weights * (4 * len(trainings) + 2 * states) / 1e9
            lines.append(
                f"{f'{encoder}, ' if len(shapes) > 1 else ''}{task.title}: {len(missing)} models to train "
                f"{f'({len(trainings) - len(missing)} in the store) ' if known else ''}on {_range(examples)} examples, "
                f"{_range([one['schedule'].epochs for one in trainings])} epochs, about {duration(train / rate)}; "
                f"{passes} {'pass' if passes == 1 else 'passes'} over {evaluation:,} examples, "
                f"about {duration(measure / rate)}"
            )
        # Weights, gradients and Adam's two moments in training; all models of a task and two sets of moment matrices
        # in measuring.
        training_memory = 16 * weights + 34 * 4 * 32 * 128 * width * depth
        measuring_memory = 4 * weights * (2 + seeds) + 8 * 4 * width**2 * depth * (seeds + 2)
        memory = max(memory, training_memory / 1e9, measuring_memory / 1e9)
    where = torch.cuda.get_device_name() if device == "cuda" else f"this CPU ({peak / 1e9:.0f} GFLOP/s)"
    amounts = f"at most about {memory:.1f} GB of memory, {disk:.1f} GB of disk"
    lines.append(f"altogether about {duration(operations / rate)} on {where}, {amounts}")
    on_gpu = max(operations / (GPU_RATE * EFFICIENCY), launches)
    if device == "cpu" and on_gpu > 1:
        lines.append(
            f"on an {GPU} perhaps {duration(on_gpu)}: the longer of its products (by the data sheet, "
            f"{GPU_RATE / 1e12:.0f} TFLOP/s, and the {EFFICIENCY:.0%} that were measured on a CPU) and of its kernels' "
            f"launches (assumed, {1000 * GPU_LAUNCHES:g} ms a layer and batch); never run on a GPU"
        )
    if parameters.device == "cuda" and device == "cpu":
        lines.append("this profile asks for a GPU and there is none here: the run itself would be refused")
    return lines


def _range(values: list) -> str:
    return f"{min(values):,g}" if min(values) == max(values) else f"{min(values):,g} to {max(values):,g}"


def duration(seconds: float) -> str:
    """A time as a reader takes it in.

    Example:
        >>> duration(70), duration(600), duration(9000)
        ('70 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
