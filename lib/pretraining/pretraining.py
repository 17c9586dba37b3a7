"""BERT's own pre-training, from lists of sentences to a Hugging Face checkpoint.

Masked words and next sentence (see `objective`), WordPiece (see `wordpiece`), one run (see `training_run`).

Everything is drawn from the specification's seed. On a CPU, equal text, specification, versions and number of threads
give equal weights, bit for bit, also for a run that was killed and resumed; on a GPU, and between machines, they agree
up to rounding.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from transformers import PreTrainedTokenizerFast

from pretraining.text_blocks import tokenise
from pretraining.training_run import RECORD, PretrainingRun, PretrainingSpecification, plan_text
from pretraining.wordpiece import train_wordpiece

TOY_BERT = PretrainingSpecification(
    batch_tokens=1024,
    steps=3906,
    learning_rate=2e-3,
    short_sequence_rate=0.7,
    first_length=36,
    first_share=0.5,
    # 64 dimensions are too few to lose a tenth of: with dropout the pair tasks are not learned.
    dropout=0.0,
    fine_tuning_dropout=0.0,
    initial_deviation=0.06,
)


def steps_per_pass(
    documents: Sequence[Sequence[str]], specification: PretrainingSpecification, tokenizer: PreTrainedTokenizerFast
) -> int:
    """How many steps read the text once, beside the random second segments, which are some half as much again.

    Passes differ a little in length, since each cuts the text afresh; this is the length of the first.
    """
    text = tokenise(documents, tokenizer, specification.length_at(0))
    return len(plan_text(text, specification, 0, 0).batches)


def pretrain(
    documents: Sequence[Sequence[str]],
    specification: PretrainingSpecification,
    folder: Path | str,
    tokenizer: PreTrainedTokenizerFast | None = None,
    *,
    held_out: Sequence[Sequence[str]] | None = None,
    half_precision: bool = False,
    log: Callable[[str], None] = print,
) -> Path:
    """Pre-train a BERT on `documents` (lists of sentences) and write it to `folder`, which is returned.

    Without a `tokenizer`, WordPiece is trained on the same text. Computed in float32 on a CPU, and on a GPU, which is
    taken where there is one, in bfloat16 (autocast). `half_precision` stores the weights in float16; they load as
    float32 all the same. The folder appears when it is whole, with `pretraining.json` beside the weights:
    specification, pieces seen, seconds, loss curve, loss on the `held_out` documents, versions. Until then the run's
    state lies beside it in `.<name>.partial`, and the same call resumes from it. A folder that already holds this very
    run is returned at once.

    Raises ValueError for text that cannot be used, FileExistsError where the folder or the saved state belongs to
    something else, RuntimeError where another process is at work on it, FloatingPointError where the loss diverged.
    """
    folder = Path(folder)
    tokenizer = tokenizer or train_wordpiece(documents, specification.vocabulary_size)
    if len(tokenizer) != specification.vocabulary_size:
        raise ValueError(
            f"the tokenizer has {len(tokenizer)} pieces and the specification says {specification.vocabulary_size}: "
            "make vocabulary_size equal to the tokenizer's"
        )
    text = tokenise(documents, tokenizer, specification.length_at(0))
    vocabulary = sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()
    identity = {"specification": asdict(specification), "text": text.fingerprint(), "vocabulary": vocabulary}
    partial = folder.with_name(f".{folder.name}.partial")
    if not _is_there(folder, identity):
        with _alone_in(partial, folder):
            if not _is_there(folder, identity):
                run = PretrainingRun(text, specification, tokenizer, partial / "state.pt", identity, log)
                run.train()
                run.write(partial / "whole", held_out, half_precision)
                (partial / "whole").replace(folder)
    shutil.rmtree(partial, ignore_errors=True)
    return folder


@contextmanager
def _alone_in(partial: Path, folder: Path) -> Iterator[None]:
    """Hold the folder of an unfinished run, and leave the caller's random numbers alone."""
    partial.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(partial / "lock", timeout=0), torch.random.fork_rng():
            shutil.rmtree(partial / "whole", ignore_errors=True)
            yield
    except Timeout:
        raise RuntimeError(f"another process is pre-training into {folder}: wait for it, or name another") from None
    except FloatingPointError:
        # Resumed, a run that diverged would only diverge again.
        shutil.rmtree(partial)
        raise


def _is_there(folder: Path, identity: dict) -> bool:
    """Whether `folder` holds the finished run `identity`; FileExistsError where it holds something else."""
    if not folder.exists() or not any(folder.iterdir()):
        return False
    record = folder / RECORD
    if not record.is_file() or json.loads(record.read_text(encoding="utf-8")).get("identity") != identity:
        raise FileExistsError(f"{folder} holds something other than this run: remove it or name another folder")
    return True
