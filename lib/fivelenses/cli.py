"""The command line: `fivelenses run | train | sweep | report | book | publish | pretrain | doctor`.

Every error that a user can cause ends in one sentence and exit status 2.
"""

import contextlib
import dataclasses
import math
import os
import re
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from fivelenses import project

app = typer.Typer(no_args_is_help=True, add_completion=False)

Profile = Annotated[
    str, Option("--profile", help="tiny (toy world), small (real encoder, mirror) or paper (hub, GPU).")
]
Parameters = Annotated[
    list[str],
    Option(
        "-p", "--parameter", help="name=value, as often as you like; tasks='[./reviews.csv]' reads a table of your own."
    ),
]
Files = list[Path]
CALLER_VARIABLE = "FIVELENSES_ENDS_WITH_CALLER"  # set by the Makefile
# Errors of our own, by name: a refusal does not wait for the libraries that their modules load.
WORDED = ("DamagedCheckpoint", "RecordError", "RunError", "SourceError")


@contextlib.contextmanager
def _one_sentence():
    """Turn an error that the library words itself into one line and an exit status, without a traceback."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if isinstance(error, ValueError | FileNotFoundError) or not kinds.isdisjoint(WORDED):
            typer.echo(f"fivelenses: {error}", err=True)
        elif isinstance(error, OSError):
            typer.echo(f"fivelenses: {error.strerror or error} ({error.filename or 'no file named'}).", err=True)
        else:
            raise
        raise typer.Exit(2) from None


@app.callback()
@_one_sentence()
def main() -> None:
    """Five papers on what fine-tuning does to BERT, rerun."""
    # A request to end unwinds the program, so that what it started ends with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if os.environ.pop(CALLER_VARIABLE, ""):
        from fivelenses.processes import end_with_caller

        end_with_caller()
    project.check_environment()


@app.command()
@_one_sentence()
def run(
    chapter: Annotated[str, Argument(help="A chapter's number, or `all`.")],
    profile: Profile = "tiny",
    parameter: Parameters = [],  # noqa: B006
    dry_run: Annotated[bool, Option("--dry-run", help="Print what would be fetched, trained and measured.")] = False,
    force: Annotated[bool, Option("--force", help="Run also when nothing has changed.")] = False,
    page: Annotated[bool, Option("--page", help="Build the run's page, too, as a book of one page.")] = False,
) -> None:
    """Run a chapter's notebook with papermill, unless its last run is current."""
    from fivelenses.runs import all_chapters, execution
    from fivelenses.runs.dry_run import dry_run as describe
    from fivelenses.runs.parameters import parse_parameters
    from fivelenses.runs.settings import find_chapter

    overrides = parse_parameters(parameter)
    if chapter == "all":
        if overrides or dry_run or page:
            raise ValueError("Parameters, --dry-run and --page go with one chapter: name its number.")
        all_chapters.run_all(profile, force)
    elif not chapter.isdecimal():
        raise ValueError(f"A chapter is a number or `all`, not {chapter!r}.")
    elif dry_run:
        typer.echo("\n".join(describe(int(chapter), profile, overrides)))
    else:
        finished = execution.run(int(chapter), profile, overrides, force, typer.echo)
        if page:
            from fivelenses.runs.book import build_page
            from fivelenses.runs.pages import run_here

            typer.echo(f"Its page: {build_page(run_here(find_chapter(int(chapter)), finished.folder))}")


@app.command()
@_one_sentence()
def train(
    chapter: Annotated[int, Argument(help="The chapter whose models are fine-tuned.")],
    profile: Profile = "tiny",
    parameter: Parameters = [],  # noqa: B006
    workers: Annotated[int | None, Option(help="Trainings side by side; as the cores allow by default.")] = None,
) -> None:
    """Fine-tune a chapter's models without measuring them.

    Several processes or machines that share the store may do so at once: each takes what no other has begun.
    """
    from fivelenses.checkpoints.finetuning import prepare
    from fivelenses.runs.inputs import check_inputs
    from fivelenses.runs.parameters import check_device, parse_parameters
    from fivelenses.runs.settings import settings

    if workers is not None and workers < 1:
        raise ValueError(f"Training needs at least one worker, not {workers}.")
    parameters = settings(chapter, profile, **parse_parameters(parameter))
    check_device(parameters, profile)
    check_inputs(parameters, typer.echo)
    models = prepare(parameters.specifications(), workers=workers, log=typer.echo, device=parameters.device)
    typer.echo(f"{len(models)} models are in the store")


@app.command()
@_one_sentence()
def sweep(
    chapter: Annotated[int, Argument(help="The chapter that is run at every point.")],
    more: Annotated[list[str] | None, Argument(metavar="[NAME=VALUE,VALUE]...", help="More names of the grid.")] = None,
    profile: Profile = "tiny",
    grid: Annotated[list[str], Option("--grid", help="name=value,value; every combination is a point.")] = [],  # noqa: B006
    points_file: Annotated[
        Path | None, Option("--list", help="Instead of a grid: a YAML list of mappings, one per point.")
    ] = None,
    parameter: Annotated[list[str], Option("-p", "--parameter", help="name=value, the same at all points.")] = [],  # noqa: B006
    name: Annotated[str | None, Option(help="Of its folder under runs/sweeps; made from the points.")] = None,
    workers: Annotated[
        int | None, Option(help="Processes of this machine, or Slurm jobs; as its GPUs or cores allow.")
    ] = None,
    scheduler: Annotated[str | None, Option(help="The address of a running dask scheduler.")] = None,
    slurm: Annotated[str | None, Option(help="Run as Slurm jobs: queue=gpu,cores=8,memory=32GB,…")] = None,
    retries: Annotated[int, Option(min=0, help="How often a point that failed is tried again.")] = 1,
    dry_run: Annotated[bool, Option("--dry-run", help="Print what each point would fetch, train and measure.")] = False,
) -> None:
    """Run a chapter at many points of its parameters, side by side, and gather all exhibits in one table.

    Points whose run is current are not run again: the same command continues where it was interrupted.
    """
    from fivelenses.runs import sweep as sweeps
    from fivelenses.runs.dry_run import dry_sweep
    from fivelenses.runs.parameters import parse_parameters

    named = [*grid, *(more or [])]
    if bool(named) == (points_file is not None):
        raise ValueError("Give the points of a sweep either as --grid name=value,value or as --list FILE.")
    entries = sweeps.expand(sweeps.read_grid(named)) if named else sweeps.read_list(points_file)
    points = sweeps.points(chapter, profile, entries, parse_parameters(parameter))
    if dry_run:
        current = [point.name for point in points if not sweeps.reason_to_run(chapter, profile, point.overrides)]
        typer.echo("\n".join(dry_sweep(chapter, profile, points, current)))
        return
    swept = sweeps.sweep(chapter, profile, points, name, sweeps.Cluster(workers, scheduler, slurm), retries)
    if swept.missing:
        typer.echo(sweeps.complaint(swept), err=True)
        raise typer.Exit(1)


@app.command()
@_one_sentence()
def report(
    encoder: Annotated[str, Argument(help="A name of the hub, a folder, or an entry of the mirror.")],
    tasks: Annotated[
        str, Option("--tasks", help="Tasks of interest, rte,./reviews.csv; by default each chapter's own.")
    ] = "",
    profile: Profile = "tiny",
    seeds: Annotated[str, Option("--seeds", help="Fine-tuning seeds, 0,1; by default the profile's.")] = "",
    examples: Annotated[int | None, Option("--examples", help="Training examples per task, at most.")] = None,
) -> None:
    """Run every chapter on an encoder, and write one page that says which of the claims hold for it."""
    from fivelenses.runs.report import report as run_report

    try:
        numbers = [int(seed) for seed in seeds.split(",") if seed.strip()]
    except ValueError:
        raise ValueError(f"Seeds are whole numbers with commas between them, not {seeds!r}.") from None
    # A table may name its columns, FILE:text=…,label=….
    named = [task.strip() for task in re.split(r",(?!\w+=)", tasks) if task.strip()]
    for option, value, read in (("--tasks", tasks, named), ("--seeds", seeds, numbers)):
        if value and not read:
            raise ValueError(f"{option} is {value!r}, which names none: name some, or leave {option} out.")
    page, failures = run_report(encoder, profile, named, numbers, examples, typer.echo)
    typer.echo(f"The report is at {page}")
    if failures:
        failed = "1 chapter" if len(failures) == 1 else f"{len(failures)} chapters"
        typer.echo(f"fivelenses: {failed} failed; the page says which.", err=True)
        raise typer.Exit(1)


@app.command()
@_one_sentence()
def book(
    run: Annotated[
        bool, Option("--run", help="Run this machine's own chapters first; a book without them comes before.")
    ] = False,
) -> None:
    """Build the book from the published records and this machine's own, and print where it is."""
    from fivelenses.runs import unchanged

    if run and unchanged.is_unchanged():
        typer.echo(f"Nothing has changed. The book is at {unchanged.first_page()}")
        return
    from fivelenses.runs.all_chapters import run_all
    from fivelenses.runs.book import build
    from fivelenses.runs.pages import LOCAL_PROFILE, published_runs

    if run:
        if not unchanged.first_page().is_file():
            typer.echo(f"A first look, the published chapters, is at {build(typer.echo, published_alone=True)}")
        run_all(LOCAL_PROFILE, committed=[shown.committed for shown in published_runs()])
    page = build(typer.echo)
    if run:
        unchanged.remember()
    typer.echo(f"The book is at {page}")


@app.command()
@_one_sentence()
def publish(
    chapter: Annotated[int, Argument(help="The chapter whose run is published.")],
    profile: Profile = "small",
    parameter: Parameters = [],  # noqa: B006
    stamp: Annotated[
        bool, Option("--stamp", help="Only mark what is published as of today's code, which gives equal numbers.")
    ] = False,
) -> None:
    """Copy the records of a chapter's run into book/records, from which the book's published pages are made."""
    from fivelenses.runs.folders import find_run
    from fivelenses.runs.parameters import parse_parameters
    from fivelenses.runs.settings import find_chapter, resolved

    find_chapter(chapter)
    overrides = parse_parameters(parameter)
    if not stamp:
        find_run(find_chapter(chapter), profile, resolved(chapter, profile, overrides))
    from fivelenses.runs import publishing

    if stamp:
        for folder in publishing.stamp(chapter, typer.echo):
            typer.echo(f"stamped {folder}")
        return
    typer.echo(f"published in {publishing.publish(chapter, profile, overrides)}")


@app.command()
@_one_sentence()
def pretrain(
    context: typer.Context,
    folder: Annotated[Path, Option("--folder", help="Where the checkpoint goes; it must not hold another.")],
    text: Annotated[Files, Option("--text", help="Files: one paragraph per line, empty lines between documents.")] = [],  # noqa: B006
    toy: Annotated[bool, Option("--toy", help="The toy world's text and the toy BERT's recipe.")] = False,
    seed: Annotated[int, Option("--seed")] = 0,
    layers: Annotated[int, Option("--layers")] = 12,
    hidden: Annotated[int, Option("--hidden")] = 128,
    heads: Annotated[int, Option("--heads")] = 4,
    vocabulary: Annotated[int, Option("--vocabulary", help="WordPieces.")] = 8_000,
    length: Annotated[int, Option("--length", help="Tokens per sequence.")] = 128,
    steps: Annotated[int | None, Option("--steps", help="Optimiser steps, instead of --passes.")] = None,
    passes: Annotated[float, Option("--passes", help="How often the text is read.")] = 1.0,
    batch_tokens: Annotated[int, Option("--batch-tokens", help="Tokens per batch, padding included.")] = 8192,
    first_length: Annotated[
        int | None, Option("--first-length", help="Tokens per sequence in the first half of the steps.")
    ] = None,
    learning_rate: Annotated[float, Option("--learning-rate")] = 1e-3,
    warm_up: Annotated[float, Option("--warm-up", help="Share of the steps.")] = 0.1,
    dropout: Annotated[float, Option("--dropout", help="0 where no text is read twice.")] = 0.1,
    deviation: Annotated[
        float | None, Option("--deviation", help="Of the initial weights; BERT's 0.02, scaled to the width.")
    ] = None,
    held_out: Annotated[
        Files, Option("--held-out", help="Files that are not trained on; the loss on them is recorded.")
    ] = [],  # noqa: B006
    half_precision: Annotated[bool, Option("--half-precision", help="Store the weights in float16.")] = False,
) -> None:
    """Pre-train a BERT on the toy world's text, or on your own; a killed run continues from its last saved state."""
    if toy == bool(text):
        raise ValueError("Name either --toy or the files to read with --text.")
    given = [name for name in context.params if context.get_parameter_source(name).name == "COMMANDLINE"]
    others = [name for name in given if name not in ("folder", "toy", "seed")]
    if toy and others:
        option = f"--{others[0].replace('_', '-')}"
        raise ValueError(
            f"--toy has a recipe of its own, which {option} would not change: leave it out, or name --text."
        )
    if not 0 < passes < math.inf:
        raise ValueError(f"passes is {passes}: set it above 0, to a number of times that the text is read.")
    if seed < 0:
        raise ValueError(f"seed is {seed}: set it to 0 or more.")
    if folder.is_file():
        raise ValueError(f"{folder} is a file: name a folder, in which the encoder is written.")
    for name in ("layers", "hidden", "heads", "vocabulary", "length", "batch_tokens"):
        if context.params[name] < 1:
            raise ValueError(f"{name} is {context.params[name]}: set it to 1 or more.")
    import torch

    import pretraining

    if toy:
        # One thread, so that the weights do not depend on the number of cores; run two seeds side by side instead.
        torch.set_num_threads(1)
        toy_bert = dataclasses.replace(pretraining.TOY_BERT, seed=seed)
        held_out_text = pretraining.toy_text("validation")
        pretraining.pretrain(pretraining.toy_text("train"), toy_bert, folder, held_out=held_out_text)
    else:
        shape = dict(layers=layers, hidden=hidden, heads=heads, intermediate=4 * hidden, vocabulary_size=vocabulary)
        lengths = dict(first_length=first_length, first_share=0.5 if first_length else 0.0, sequence_length=length)
        training = dict(learning_rate=learning_rate, warm_up=warm_up, dropout=dropout, batch_tokens=batch_tokens)
        training["initial_deviation"] = 0.02 * (768 / hidden) ** 0.5 if deviation is None else deviation
        training |= dict(steps=1 if steps is None else steps, seed=seed)
        specification = pretraining.PretrainingSpecification(**shape, **lengths, **training)
        documents = pretraining.text_files(text)
        tokenizer = pretraining.train_wordpiece(documents, vocabulary)
        if steps is None:
            steps = max(1, round(passes * pretraining.steps_per_pass(documents, specification, tokenizer)))
            specification = dataclasses.replace(specification, steps=steps)
        held_out_text = pretraining.text_files(held_out) if held_out else None
        options = dict(held_out=held_out_text, half_precision=half_precision, seconds_between_lines=60.0)
        pretraining.pretrain(documents, specification, folder, tokenizer, **options)
    typer.echo(f"pre-trained, in {folder}")


@app.command()
@_one_sentence()
def doctor(
    prune: Annotated[bool, Option("--prune", help="Remove damaged and unfinished checkpoints.")] = False,
    remove: Annotated[list[str], Option("--remove", help="Remove the checkpoint of this address.")] = [],  # noqa: B006
) -> None:
    """List and verify the store of checkpoints; the exit status is 1 where one is damaged."""
    from fivelenses.checkpoints.inspection import inspect

    if inspect(remove, prune, typer.echo):
        typer.echo("fivelenses: the damaged ones are made anew when needed; --prune removes them.", err=True)
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
