"""The one fine-tuning routine: from a specification to a checkpoint, with the Hugging Face Trainer.

A run that was killed goes on from its last saved state. A loss that is not finite ends the run and is recorded as what
it is, a run that diverged; it is not tried again in silence.
"""

import contextlib
import gc
import json
import math
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import datasets
import joblib
import numpy as np
import torch
from filelock import Timeout
from safetensors.torch import save_file
from torch import nn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint

from fivelenses import processes, tasks
from fivelenses.checkpoints.specification import Schedule, Specification
from fivelenses.checkpoints.store import PREDICTIONS, Checkpoint, DamagedCheckpoint, Store
from fivelenses.checkpoints.tables import flat_labels, predict, scored
from fivelenses.files import disk_named, written_beside
from fivelenses.models import encoders, heads, layers
from fivelenses.tasks.examples import TaskData, encode, with_examples

LAST_RATE = 32  # Howard and Ruder's ratio of the peak learning rate to the last one.
CONTINUED = 0.1  # of the peak, where further epochs follow
PACKAGES = ("torch", "transformers", "datasets", "numpy", "scipy", "scikit-learn")
SMALL_WIDTH = 256  # of an encoder that one core feeds
SAVES, SECONDS_BETWEEN_SAVES = 5, 10.0  # States saved along a training, for resuming after a kill, and no sooner.
ORDER = "order.pt"  # in a saved state, see `_OrderSaver`
PROGRESS = "progress.json"  # in a training's folder: its steps so far and in all, and the seconds that are left
SECONDS_BETWEEN_STATES, OLD_PROGRESS = 5.0, 120.0  # seconds, of that file
# The Trainer collects all garbage before it trains: half a second a model, were the libraries looked through each time.
gc.freeze()


def prepare(
    specifications: Sequence[Specification],
    store: Store | None = None,
    workers: int | None = None,
    log: Callable[[str], None] = print,
    device: str = "auto",
) -> list[Checkpoint]:
    """The checkpoints of these specifications, in order; those that are missing or damaged are trained first.

    Equal specifications are trained once. Several processes, on one machine or on several that share the store, may
    be given the same list at the same time: each takes what no other is training, and waits at the end for the rest.

    Args:
        store: the project's when None.
        workers: processes that train side by side; by default one, for small encoders without a GPU one per core.
        log: called with one line of plain text for each event, and every half minute.
        device: `auto` (a GPU when there is one), `cpu` or `cuda`.

    Refused: an encoder with broken weights or a tokeniser that is not its own.
    """
    store, wanted, ready = store or Store(), dict.fromkeys(specifications), {}
    for one in wanted:
        try:
            if (stored := store.find(one)) is not None:
                ready[one] = stored
        except DamagedCheckpoint as damage:
            log(str(damage))
    missing = [one for one in wanted if one not in ready]
    shapes = [encoders.check_encoder(one.encoder, projections=bool(one.reinitialised)) for one in missing]
    if workers is None:
        # By default a GPU is not shared.
        small = all(shape.hidden_size <= SMALL_WIDTH for shape in shapes) and not on_gpu(device)
        workers = joblib.cpu_count() if small else 1
    started, total = time.monotonic(), len(missing)
    with processes.repeated(lambda: log(_progress([one for one in missing if one not in ready], store))):
        for wait in (False, True):
            waiting = [one for one in missing if one not in ready]
            if wait and waiting:
                log(f"{len(waiting)} more are being fine-tuned by another process: waiting")
            # Closed at once when this process is interrupted, and its workers with it.
            with contextlib.closing(_trained(waiting, store, device, wait, min(workers, total))) as trained:
                for count, (one, checkpoint) in enumerate(trained, total - len(waiting) + 1):
                    ready[one] = checkpoint
                    log(_outcome(one, checkpoint, f"{count} of {total}", time.monotonic() - started))
    return [ready[specification] for specification in specifications]


def _progress(waiting: Sequence[Specification], store: Store) -> str:
    """How far the trainings are that are under way, whichever process makes them."""
    under_way = []
    for one in waiting:
        file = store.partial(one) / PROGRESS
        # Absent before the first step and after the last one; old where a training was killed.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime < OLD_PROGRESS:
                step, steps, left = json.loads(file.read_text(encoding="utf-8"))
                under_way.append(f"{one.describe()}, step {step:,} of {steps:,}, about {left:,.0f} s left")
    return f"{len(waiting)} to be fine-tuned; now {'; '.join(under_way) or 'examples are read'}"


def _outcome(specification: Specification, checkpoint: Checkpoint, count: str, seconds: float) -> str:
    ended = "DIVERGED (its loss is not a number: lower its rate)" if checkpoint.manifest["diverged"] else "fine-tuned"
    score = f"score {checkpoint.manifest['score']:.3f} (null {checkpoint.manifest['null_rate']:.3f})"
    return f"{ended} {count}: {specification.describe()}, {score}, {seconds:.0f} s so far"


def _trained(
    missing: Sequence[Specification], store: Store, device: str, wait: bool, workers: int
) -> Iterator[tuple[Specification, Checkpoint]]:
    """Each specification as it is done, with its checkpoint; without `wait`, those that no other process holds."""
    if workers <= 1 or not missing:
        made = ((one, fine_tune(one, store, device, wait)) for one in missing)
        yield from ((one, checkpoint) for one, checkpoint in made if checkpoint is not None)
        return
    from distributed import as_completed

    with processes.workers(workers) as client:
        running = {client.submit(fine_tune, one, store, device, wait, pure=False): one for one in missing}
        for future in as_completed(running):
            if future.result() is not None:
                yield running[future], future.result()


def fine_tune(specification: Specification, store: Store, device: str = "auto", wait: bool = True) -> Checkpoint | None:
    """Make one checkpoint; when another process is making it, wait for that process or, without `wait`, return None."""
    try:
        held = store.lock(specification.address).acquire(blocking=wait)
    except Timeout:
        return None
    with held:
        # Another process may have made it before this one had the lock.
        with contextlib.suppress(DamagedCheckpoint):
            if (stored := store.find(specification)) is not None:
                return stored
        partial = store.partial(specification)
        partial.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        with disk_named(partial):
            manifest = _train(specification, partial, device)
            manifest |= {"seconds": round(time.monotonic() - started, 1), **environment(device)}
            checkpoint = store.publish(specification, partial / "finished", manifest)
        shutil.rmtree(partial)
        return checkpoint


def _train(specification: Specification, partial: Path, device: str) -> dict:
    """Train a model and write it to the folder `finished`; what its manifest says of it."""
    encoder = encoders.locate(specification.encoder)
    tokenizer = encoders.tokenizer(encoder)
    data = tasks.load(specification.task, specification.source)
    collate = heads.collator(data.task.head, tokenizer)
    evaluation = encode(data, "validation", tokenizer, specification.schedule.max_length)
    training = _training_examples(data, specification, tokenizer)
    # One seed for the head (and random weights), then the Trainer sets it anew for the order of examples and dropout.
    set_seed(specification.seed)
    model = heads.build(encoder, data.task.head, data.labels)
    if specification.truncated is not None:
        layers.truncate(model, specification.truncated)
    layers.reinitialise(model, specification.reinitialised, specification.seed, specification.biases_and_norms)
    layers.freeze(model, specification.frozen)
    trainer = _run_trainer(specification, model, training, collate, partial, device)
    losses = [(entry["step"], entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    scores, rows = scored(specification, data, evaluation, predict(model, data, evaluation, collate))
    finished, steps = partial / "finished", partial / "steps"
    shutil.rmtree(finished, ignore_errors=True)
    finished.mkdir()
    model.save_pretrained(finished)
    tokenizer.save_pretrained(finished)
    rows.to_parquet(finished / PREDICTIONS, index=False)
    if steps.is_dir():
        shutil.copytree(steps, finished / "steps")
    # The last step can spoil the weights, which no loss tells.
    finite = all(weights.square().isfinite().all() for weights in model.parameters())
    return {
        "metric": data.task.metric,
        **scores,
        "diverged": not (finite and all(math.isfinite(loss) for _, loss in losses)),
        "history": losses,
        "steps": trainer.state.global_step,
        "training_examples": _count(training),
        "evaluation_examples": _count(evaluation),
        "provenance": {split: data.provenance(split) for split in ("train", "validation")},
    }


def _run_trainer(
    specification: Specification, model: nn.Module, training: datasets.Dataset, collate, partial: Path, device: str
) -> Trainer:
    """Train a model in place, from its last saved state where there is one."""
    schedule, resumed = specification.schedule, _last_whole_state(partial / "trainer")
    saver, progress = _StepSaver(specification.saved_steps, partial / "steps"), _Progress(partial / PROGRESS)
    trainer = Trainer(
        model=model,
        args=_arguments(specification, schedule.steps(training.num_rows), partial / "trainer", device),
        train_dataset=training,
        data_collator=collate,
        callbacks=[saver, _OrderSaver(resumed), _StopOnDivergence(), progress],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.create_optimizer()
    falling = schedule.steps(training.num_rows, further=False)
    trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(trainer.optimizer, rate_multiplier(schedule, falling))
    if trainer.args.max_steps:
        trainer.train(resume_from_checkpoint=resumed)
    return trainer


def _training_examples(data: TaskData, specification: Specification, tokenizer) -> datasets.Dataset:
    """The encoded training examples: all, or a subset that is stratified by label where an example has one."""
    wanted, seed = specification.examples, specification.examples_seed
    on_words = data.task.head not in heads.LIBRARY
    # Chosen before they are encoded: a hundred examples of a large task cost no more than a hundred. On words they are
    # chosen afterwards: a sentence without a labelled word left is no example.
    chosen = data if on_words else with_examples(data, wanted, seed)
    encoded = encode(chosen, "train", tokenizer, specification.schedule.max_length)
    if on_words and wanted is not None:
        encoded = encoded.select(tasks.subset(np.zeros(encoded.num_rows, dtype=int), wanted, seed))
    return shuffled(encoded, specification.seed) if specification.shuffled_labels else encoded


def shuffled(encoded: datasets.Dataset, seed: int) -> datasets.Dataset:
    """Encoded examples whose labels are permuted among them, or among all their labelled words: the same counts.

    Example:
        >>> rows = datasets.Dataset.from_dict({"text": ["a b c", "d"], "labels": [[0, 1, 2], [3]]})
        >>> list(shuffled(rows, seed=0)["labels"])
        [[2, 0, 1], [3]]
    """
    labels, column = encoded["labels"], np.random.default_rng(seed).permutation(flat_labels(encoded))
    if isinstance(labels[0], list):
        column = np.split(column, np.cumsum([len(of_row) for of_row in labels])[:-1])
    return encoded.remove_columns("labels").add_column("labels", [part.tolist() for part in column])


def _count(encoded: datasets.Dataset) -> int:
    """Examples, of which several windows may be one."""
    return len(set(encoded["row"][:])) if "row" in encoded.column_names else encoded.num_rows


def on_gpu(device: str) -> bool:
    """Whether `auto`, `cpu` or `cuda` means a GPU on this machine."""
    return device != "cpu" and torch.cuda.is_available()


def resolved_precision(precision: str, device: str) -> str:
    """What `auto` stands for: bfloat16 where the device has instructions for it, elsewhere float32, faster there."""
    if precision != "auto":
        return precision
    if on_gpu(device):
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    capabilities = torch.cpu.get_capabilities()
    return "bfloat16" if capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") else "float32"


def _arguments(specification: Specification, steps: int, folder: Path, device: str) -> TrainingArguments:
    schedule, seed, gpu = specification.schedule, specification.seed, on_gpu(device)
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=schedule.batch_size,
        learning_rate=schedule.learning_rate,
        weight_decay=schedule.weight_decay,
        train_sampling_strategy="group_by_length" if schedule.by_length else "random",
        seed=seed,
        data_seed=seed,
        save_steps=max(1, math.ceil(steps / SAVES)),
        save_total_limit=1,
        logging_steps=max(1, steps // 50),
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        log_level="error",
        bf16=specification.precision == "bfloat16",
        use_cpu=not gpu,
        dataloader_pin_memory=gpu,
    )


def rate_multiplier(schedule: Schedule, steps: int) -> Callable[[int], float]:
    """The learning rate as a fraction of its peak, by step, as `Schedule` says; it stays what it is after `steps`.

    Example:
        >>> rate = rate_multiplier(Schedule(1e-5, 32, 5, warmup=0.1), 100)
        >>> rate(10), rate(100)
        (1.0, 0.03125)
        >>> rate = rate_multiplier(Schedule(1e-5, 32, 5, further_epochs=20), 100)
        >>> round(rate(100), 6), round(rate(500), 6)
        (0.1, 0.1)
    """
    rising = math.floor(steps * schedule.warmup)
    last = 1 / LAST_RATE if schedule.shape == "slanted-triangular" else 0.0
    last = CONTINUED if schedule.further_epochs else last

    def multiplier(step: int) -> float:
        if step < rising:
            return last + (1 - last) * step / rising
        return 1 - (1 - last) * (min(step, steps) - rising) / max(1, steps - rising)

    return multiplier


def _last_whole_state(folder: Path) -> str | None:
    """The newest state that was saved whole; one that a kill cut short is removed, and the one before it taken."""
    # The Trainer writes `trainer_state.json` last, so a state whose file is JSON has all its others; ours follows.
    while folder.is_dir() and (newest := get_last_checkpoint(folder)):
        try:
            json.loads((Path(newest) / TRAINER_STATE_NAME).read_text())
            (Path(newest) / ORDER).stat()
        except (FileNotFoundError, ValueError):
            shutil.rmtree(newest)
        else:
            return newest
    return None


class _StepSaver(TrainerCallback):
    """Writes the weights (no optimiser state) at the steps that a specification names, in half precision."""

    def __init__(self, steps: tuple[int, ...], folder: Path):
        self.steps, self.folder = frozenset(steps), folder

    def on_step_end(self, args, state, control, model, **_):
        if state.global_step in self.steps:
            weights = {name: tensor.to("cpu", torch.float16) for name, tensor in model.state_dict().items()}
            with written_beside(self.folder / f"{state.global_step}.safetensors") as place:
                save_file(weights, place)

    on_train_begin = on_step_end  # step 0; a training that goes on writes a state as it is once more


class _OrderSaver(TrainerCallback):
    """Keeps with each saved state what the order of its epoch's examples was drawn from."""

    # The Trainer draws an epoch's order from the global generator as the epoch begins, and a training that goes on
    # within an epoch gives it the generator of the saved step: after the first epoch that would be another order.
    def __init__(self, resumed: str | None):
        self.resumed, self.saved = resumed, time.monotonic()

    def on_epoch_begin(self, args, state, control, **_):
        if self.resumed:
            torch.set_rng_state(torch.load(Path(self.resumed) / ORDER, weights_only=True))
            self.resumed = None
        self.epoch_began = torch.get_rng_state()

    def on_step_end(self, args, state, control, **_):
        # From its last step, a training that ends within an epoch would go on with one more.
        due = time.monotonic() - self.saved >= SECONDS_BETWEEN_SAVES
        control.should_save &= due and state.global_step < state.max_steps

    def on_save(self, args, state, control, **_):
        next_begins = float(state.epoch).is_integer()
        with written_beside(Path(args.output_dir) / f"checkpoint-{state.global_step}" / ORDER) as place:
            torch.save(torch.get_rng_state() if next_begins else self.epoch_began, place)
        self.saved = time.monotonic()


class _StopOnDivergence(TrainerCallback):
    """Ends a training whose loss is not finite: more steps would not bring it back."""

    def on_log(self, args, state, control, logs, **_):
        control.should_training_stop |= not math.isfinite(logs.get("loss", 0.0))


class _Progress(TrainerCallback):
    """Writes a file that says how far the training is."""

    def __init__(self, file: Path):
        self.file, self.written = file, 0.0

    def on_train_begin(self, args, state, control, **_):
        self.first, self.began = state.global_step, time.monotonic()

    def on_step_end(self, args, state, control, **_):
        now = time.monotonic()
        if now - self.written >= SECONDS_BETWEEN_STATES:
            seconds_per_step = (now - self.began) / (state.global_step - self.first)
            left = seconds_per_step * (state.max_steps - state.global_step)
            with written_beside(self.file) as place:
                place.write_text(json.dumps([state.global_step, state.max_steps, left]), encoding="utf-8")
            self.written = now


def environment(device: str) -> dict:
    """What something was made on: a GPU or so many cores, and the versions of Python and of what computes."""
    cores = f"CPU, {torch.get_num_threads()} of {os.cpu_count()} cores"
    return {
        "device": torch.cuda.get_device_name() if on_gpu(device) else cores,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }
