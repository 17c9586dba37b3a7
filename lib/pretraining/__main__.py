"""Pre-train a BERT: `python -m pretraining --folder FOLDER --toy`, or `--text FILE` with fields of the specification.

The toy world's text has a recipe of its own, of which the seed alone can be set. Text of one's own is read once unless
`--steps` says otherwise. A killed run continues from its last saved state.
"""

import argparse
import dataclasses
import lzma
import sys
from pathlib import Path

import torch

from pretraining import (
    TOY_BERT,
    PretrainingSpecification,
    pretrain,
    steps_per_pass,
    text_files,
    toy_text,
    train_wordpiece,
)

FIELDS = {field.name: field.default for field in dataclasses.fields(PretrainingSpecification)}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pretraining", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the checkpoint goes; it holds no other")
    text = parser.add_mutually_exclusive_group(required=True)
    text.add_argument("--toy", action="store_true", help="the toy world's text and the toy BERT's recipe")
    text.add_argument("--text", type=Path, action="append", help="one paragraph per line, an empty line per document")
    parser.add_argument("--held-out", type=Path, action="append", help="not trained on; the loss on it is recorded")
    parser.add_argument("--half-precision", action="store_true", help="store the weights in float16")
    for name, default in FIELDS.items():
        kind = int if default is None else type(default)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=argparse.SUPPRESS)
    return parser.parse_args()


def _pretrain_toy(arguments: argparse.Namespace, chosen: dict) -> None:
    given = {name for name in ("held_out", "half_precision") if getattr(arguments, name)}
    if others := sorted({*chosen, *given} - {"seed"}):
        raise ValueError(f"--toy has a recipe of its own, which {others[0]} would not change: leave it out.")
    # One thread, so that the weights do not depend on the number of cores; run two seeds side by side instead.
    torch.set_num_threads(1)
    specification = dataclasses.replace(TOY_BERT, **chosen)
    pretrain(toy_text("train"), specification, arguments.folder, held_out=toy_text("validation"))


def _pretrain_text(arguments: argparse.Namespace, chosen: dict) -> None:
    usual = {"layers": 12, "hidden": 128, "vocabulary_size": 8000} | chosen
    usual.setdefault("intermediate", 4 * usual["hidden"])
    usual.setdefault("initial_deviation", 0.02 * (768 / usual["hidden"]) ** 0.5)  # BERT's, scaled to the width
    usual.setdefault("first_share", 0.5 if "first_length" in usual else 0.0)
    specification = PretrainingSpecification(**usual)
    documents = text_files(arguments.text)
    tokenizer = train_wordpiece(documents, specification.vocabulary_size)
    if "steps" not in chosen:
        specification = dataclasses.replace(specification, steps=steps_per_pass(documents, specification, tokenizer))
    held_out = text_files(arguments.held_out) if arguments.held_out else None
    half = arguments.half_precision
    pretrain(documents, specification, arguments.folder, tokenizer, held_out=held_out, half_precision=half)


def main() -> None:
    """Pre-train as the command line says; what cannot be done is said in one sentence."""
    arguments = _arguments()
    chosen = {name: value for name, value in vars(arguments).items() if name in FIELDS}
    try:
        if arguments.toy:
            _pretrain_toy(arguments, chosen)
        else:
            _pretrain_text(arguments, chosen)
    except (ValueError, OSError, RuntimeError, FloatingPointError, lzma.LZMAError) as error:
        sys.exit(f"pretraining: {error}")
    print(f"pre-trained, in {arguments.folder}")


if __name__ == "__main__":
    main()
