"""Dry runs: what a run, or a sweep, would fetch, train and measure, with estimates of time and memory; nothing is done.

Training takes about 6 × (parameters in the layers) × (tokens) floating-point operations, a forward pass a third of
that; the rate is this machine's, measured on a matrix product, times the share of it that training reaches. SVCCA takes
matrices apart, which is timed on one of the encoder's width. `bench/rehearsals.py` compares estimates with short runs
in the papers' shapes.
"""

import contextlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from transformers import BertConfig

from fivelenses import tasks
from fivelenses.checkpoints.schedule import Schedule
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.exhibits.exhibit import counted
from fivelenses.memory import memory_at_hand
from fivelenses.models import encoders
from fivelenses.records import FOLDS
from fivelenses.runs.machine_speed import EFFICIENCY, Machine, decomposition_seconds
from fivelenses.runs.parameters import FineTuningParameters
from fivelenses.runs.settings import settings
from fivelenses.runs.sweep_points import Point
from fivelenses.tasks.own import described
from fivelenses.tasks.sources import SourceError, mirror

# How many tokens a batch has for one of its texts' where it is not made of texts of about one length: seen with the
# papers' batches (`bench/rehearsals.py`), 1.2 to 3.
PADDING = 1.6
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


@dataclass
class _Cost:
    """What has been counted so far, of one run or of several that share a store."""

    operations: float = 0.0
    launches: float = 0.0
    svcca: float = 0.0  # in seconds
    memory: float = 0.0
    disk: float = 0.0
    trained: set[str] = field(default_factory=set)


def dry_run(number: int, profile: str, overrides: dict | None = None) -> list[str]:
    """The lines that `--dry-run` prints for a chapter.

    Raises:
        ParameterError: a parameter that does not exist or fit.
    """
    parameters = settings(number, profile, **(overrides or {}))
    of_run = f"{', '.join(parameters.encoders_used())}, tasks {', '.join(parameters.tasks)}, seeds {parameters.seeds}"
    lines, shapes = _inputs(parameters)
    lines = [f"chapter {number}, profile {profile}: {of_run}", *lines]
    if not shapes:
        return lines
    machine, cost = Machine(parameters.device), _Cost()
    return lines + _estimate(parameters, shapes, machine, cost) + _altogether(cost, machine)


def estimated_cost(number: int, profile: str, overrides: dict | None = None) -> tuple[float, float]:
    """What `dry_run` says of a run altogether: seconds on this machine, and the most memory in GB.

    Raises:
        ParameterError: a parameter that does not exist or fit.

    Example:
        >>> seconds, memory = estimated_cost(1, "tiny")
        >>> seconds > 1, 0 < memory < 4
        (True, True)
    """
    parameters = settings(number, profile, **(overrides or {}))
    machine, cost = Machine(parameters.device), _Cost()
    _estimate(parameters, _inputs(parameters)[1], machine, cost)
    return cost.operations / machine.rate + cost.svcca, cost.memory


def dry_sweep(number: int, profile: str, points: Sequence[Point], current: Collection[str]) -> list[str]:
    """The lines that `sweep --dry-run` prints: what is read, each point's work, and the sum over all that would run.

    A model that several points share is counted at the first of them.

    Args:
        number, profile: the chapter, and the profile that its parameters come from.
        points: of the sweep.
        current: the names of those whose run is current.
    """
    chosen = {point.name: settings(number, profile, **point.overrides) for point in points if point.name not in current}
    amounts = f"{counted(len(points), 'point')}, {len(points) - len(chosen)} current, {len(chosen)} to run"
    lines = [f"chapter {number}, profile {profile}: {amounts}"]
    if not chosen:
        return lines
    inputs = {name: _inputs(parameters) for name, parameters in chosen.items()}
    lines += dict.fromkeys(line for read, _ in inputs.values() for line in read)
    machine, cost = Machine(next(iter(chosen.values())).device), _Cost()
    for name, parameters in chosen.items():
        lines += [f"{name}: {line}" for line in _estimate(parameters, inputs[name][1], machine, cost)]
    return lines + [f"one after another, {line}" for line in _altogether(cost, machine)]


def _inputs(parameters: FineTuningParameters) -> tuple[list[str], dict[str, BertConfig]]:
    """What a run reads, a line each, and the configurations of its encoders as far as they can be read."""
    lines, shapes = [], {}
    for name in parameters.encoders_used():
        shape = known_shape(name)
        try:
            encoder = encoders.locate(name)
            place = "on this machine" if encoder.revision is None else f"from the hub, revision {encoder.revision}"
            shape = shape or encoders.config(encoder)
        except SourceError:
            place = "from the hub, which cannot be read now"
        lines.append(f"{name}: {place}")
        if shape is None:
            lines.append(f"estimate for {name}: not possible before its configuration can be read")
        else:
            shapes[name] = shape
    return lines + [_data(parameters, tasks.find(name)) for name in parameters.tables_read()], shapes


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


def in_layers(shape: BertConfig) -> int:
    """The parameters of an encoder's layers, without embeddings, biases and norms."""
    width = shape.hidden_size
    return shape.num_hidden_layers * (4 * width**2 + 2 * width * shape.intermediate_size)


def step_operations(shape: BertConfig, tokens: float) -> float:
    """Floating-point operations of one training step on a batch of so many tokens."""
    return 6 * in_layers(shape) * tokens


def tokens_read(task: tasks.Task, schedule: Schedule) -> float:
    """Tokens per training example, padding included."""
    return min(task.mean_tokens, schedule.max_length) * (1 if schedule.by_length else PADDING)


def longest_batch(task: tasks.Task, schedule: Schedule) -> int:
    """The tokens of a task's longest batch, padding included: three times the mean per example, or what texts are cut
    to.
    """
    return schedule.batch_size * min(3 * task.mean_tokens, schedule.max_length)


def training_memory(shape: BertConfig, tokens: float) -> float:
    """Bytes that training needs where its longest batch has so many tokens: weights, gradients and Adam's two moments,
    and what the layers keep for the way back.
    """
    weights = in_layers(shape) + shape.vocab_size * shape.hidden_size
    return 16 * weights + 34 * 4 * tokens * shape.hidden_size * shape.num_hidden_layers


def comparing_memory(shape: BertConfig, models: int, matrices: int, at_hand: float) -> float:
    """Bytes of so many models in memory at once, and of what a comparison gathers of them: so many matrices of moments
    for each layer and fold, of as many layers at once as fit into what is at hand.

    >>> f"{comparing_memory(known_shape('bert-large-uncased'), models=8, matrices=34, at_hand=8e9) / 1e9:.1f} GB"
    '18.7 GB'
    """
    width, depth = shape.hidden_size, shape.num_hidden_layers
    weights = in_layers(shape) + shape.vocab_size * width
    of_layer = 8 * matrices * width**2 * (FOLDS + 2)
    gathered = min(depth * of_layer, max(of_layer, at_hand))
    return 4 * weights * models + gathered


def _data(parameters: FineTuningParameters, task: tasks.Task) -> str:
    if task.own:
        return f"data: {described(task.name)}"
    if parameters.source == "toyworld":
        return f"data: {task.title} from the toy world, generated"
    # Running text has no training examples: it is measured on alone.
    split = "train" if "train" in task.sizes else next(iter(task.sizes))
    if not mirror():
        where = " ".join(filter(None, (task.repository, task.config)))
        amount = f"{task.sizes[split]:,} {'training' if split == 'train' else split} examples"
        return f"data: {task.title} from the hub, {where}, revision {task.revision}, {amount}"
    try:
        return f"data: {task.title} from the mirror: {tasks.load(task.name, parameters.source).provenance(split)}"
    except SourceError as error:
        return f"data: {task.title} from the mirror: missing ({error})"


def _rows(parameters: FineTuningParameters, name: str) -> tuple[int, int, int]:
    """Training and development examples of a task, and how many of the latter are measured; counted where its data can
    be read, and as on the hub otherwise.
    """
    sizes = tasks.find(name).sizes
    if not tasks.find(name).own and (parameters.source == "toyworld" or mirror()):
        with contextlib.suppress(SourceError):  # `_data` has named what the mirror lacks.
            sizes = {split: data.num_rows for split, data in tasks.load(name, parameters.source).splits.items()}
    training, development = sizes["train"], sizes["validation"]
    measured = getattr(parameters, "evaluation_examples", None) or development
    return min(training, parameters.examples_of(name) or training), development, min(development, measured)


def _is_stored(parameters: FineTuningParameters, encoder: str, task: str, training: dict) -> bool:
    if parameters.source == "hub" and mirror() is None:
        return False
    try:
        return Store().place(specify(encoder, task, parameters.source, **training)).is_dir()
    except SourceError:
        return False


def _estimate(parameters: FineTuningParameters, shapes: dict, machine: Machine, cost: _Cost) -> list[str]:
    """A line for each encoder and task; what they take is added to the cost."""
    lines = []
    # A checkpoint's address needs the data, which a dry run does not fetch from the hub.
    known = parameters.source != "hub" or mirror() is not None
    for encoder, shape in shapes.items():
        weights, depth = in_layers(shape) + shape.vocab_size * shape.hidden_size, shape.num_hidden_layers
        for name in parameters.tasks_trained():
            task, (rows, development, evaluation) = tasks.find(name), _rows(parameters, name)
            trainings = parameters.trainings(name, encoder, rows, depth)
            new = [one for one in trainings if f"{encoder} {name} {one}" not in cost.trained]
            cost.trained.update(f"{encoder} {name} {one}" for one in new)
            missing = [one for one in new if not _is_stored(parameters, encoder, name, one)]
            examples = [min(rows, one["examples"] or rows) for one in trainings]
            schedule = parameters.schedule_of(name, encoder)
            tokens = min(task.mean_tokens, schedule.max_length)
            read = sum(min(rows, one["examples"] or rows) * one["schedule"].all_epochs for one in missing)
            passes = parameters.passes(name, encoder, depth, {"train": rows, "validation": development})
            # Each model answers the development examples when it is trained.
            answered = len(missing) * development / 3 * tokens
            train = step_operations(shape, read * tokens_read(task, schedule) + answered)
            measure = step_operations(shape, passes * evaluation / 3 * tokens)
            matrices = parameters.decompositions(name, depth)
            svcca = matrices * decomposition_seconds(shape.hidden_size, machine.device) if matrices else 0.0
            cost.operations += train + measure
            cost.svcca += svcca
            forward = 3 * read + len(missing) * development + passes * evaluation
            cost.launches += depth * forward / schedule.batch_size * GPU_LAUNCHES
            cost.memory = max(cost.memory, training_memory(shape, longest_batch(task, schedule)) / 1e9)
            states = len(new) * (parameters.states_kept(name, encoder) or 0)
            cost.disk += weights * (4 * len(new) + 2 * states) / 1e9
            stored = f"({len(new) - len(missing)} in the store) " if known else ""
            shared = f"({len(trainings) - len(new)} of another point) " if len(new) < len(trainings) else ""
            lines.append(
                f"{f'{encoder}, ' if len(shapes) > 1 else ''}{task.title}: {counted(len(missing), 'model')} to train "
                f"{stored}{shared}on {_range(examples)} examples, "
                f"{_range([one['schedule'].all_epochs for one in trainings])} epochs, about "
                f"{duration(train / machine.rate)}; "
                f"{passes} {'pass' if passes == 1 else 'passes'} over {evaluation:,} examples, "
                f"about {duration(measure / machine.rate)}" + (f"; SVCCA, about {duration(svcca)}" if svcca else "")
            )
            compared = comparing_memory(shape, *parameters.side_by_side(name), memory_at_hand(machine.device))
            cost.memory = max(cost.memory, compared / 1e9)
    return lines


def _altogether(cost: _Cost, machine: Machine) -> list[str]:
    amounts = f"at most about {cost.memory:.1f} GB of memory, {cost.disk:.1f} GB of disk"
    here = cost.operations / machine.rate + cost.svcca
    lines = [f"altogether about {duration(here)} on {machine}, {amounts}"]
    on_gpu = max(cost.operations / (GPU_RATE * EFFICIENCY), cost.launches) + cost.svcca
    if machine.device == "cpu" and on_gpu > 1:
        lines.append(
            f"on an {GPU} perhaps {duration(on_gpu)}: the longer of its products (by the data sheet, "
            f"{GPU_RATE / 1e12:.0f} TFLOP/s, and the {EFFICIENCY:.0%} that were measured on a CPU) and of its kernels' "
            f"launches (assumed, {1000 * GPU_LAUNCHES:g} ms a layer and batch), and SVCCA as long as here; never run "
            "on a GPU"
        )
    if machine.asked == "cuda" and machine.device == "cpu":
        lines.append("this profile asks for a GPU and there is none here: the run itself would be refused")
    return lines


def _range(values: list) -> str:
    return f"{min(values):,g}" if min(values) == max(values) else f"{min(values):,g} to {max(values):,g}"


def duration(seconds: float) -> str:
    """A time as a reader takes it in.

    Example:
        >>> duration(70), duration(600), duration(9000), duration(9e6)
        ('70 s', '10 min', '2.5 h', '2,500 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 3600:,.0f} h"
