"""The command line: `fivelenses run | train | sweep | report | book | publish | fetch | pretrain | doctor`.

Every error that a user can cause ends in one sentence and exit status 2.
"""

import contextlib
import dataclasses
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False)

Profile = Annotated[
    str, typer.Option("--profile", help="tiny (toy world), small (real encoder, mirror) or paper (hub, GPU).")
]


@contextlib.contextmanager
def _one_sentence():
    """Turn an error that the library words itself into one line and an exit status, without a traceback."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        # Imported here, since these modules take seconds and most calls end without an error.
        from fivelenses.records import RecordError
        from fivelenses.runs.execution import RunError
        from fivelenses.tasks import SourceError

        if isinstance(error, ValueError | RunError | RecordError | SourceError | FileNotFoundError):
            typer.echo(f"fivelenses: {error}", err=True)
        elif isinstance(error, OSError):
            typer.echo(f"fivelenses: {error.strerror or error} ({error.filename or 'no file named'}).", err=True)
        else:
            raise
        raise typer.Exit(2) from None


@app.callback()
def main() -> None:
    """Five papers on what fine-tuning does to BERT, rerun."""
    # A request to end unwinds the program, so that what it started ends with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


@app.command()
def run(
    chapter: Annotated[str, typer.Argument(help="A chapter's number, or `all`.")],
    profile: Profile = "tiny",
    parameter: Annotated[list[str], typer.Option("-p", "--parameter", help="name=value, as often as you like.")] = [],  # noqa: B006
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be fetched, trained and measured.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Run also when nothing has changed.")] = False,
) -> None:
    """Run a chapter's notebook with papermill, unless its last run is current."""
    with _one_sentence():
        from fivelenses.runs import execution
        from fivelenses.runs.dry_run import dry_run as describe
        from fivelenses.runs.parameters import parse_parameters

        overrides = parse_parameters(parameter)
        if chapter == "all":
            if overrides or dry_run:
                raise ValueError("Parameters and --dry-run go with one chapter: name its number.")
            execution.run_all(profile, force, typer.echo)
            return
        if not chapter.isdigit():
            raise ValueError(f"A chapter is a number or `all`, not {chapter!r}.")
        if dry_run:
            for line in describe(int(chapter), profile, overrides):
                typer.echo(line)
            return
        execution.run(int(chapter), profile, overrides, force, typer.echo)


@app.command()
def train(
    chapter: Annotated[int, typer.Argument(help="The chapter whose models are wanted.")],
    profile: Profile = "tiny",
    parameter: Annotated[list[str], typer.Option("-p", "--parameter", help="name=value, as often as you like.")] = [],  # noqa: B006
    workers: Annotated[int | None, typer.Option(help="Trainings side by side; as the cores allow by default.")] = None,
) -> None:
    """Fine-tune a chapter's models without measuring them.

    Several processes or machines that share the store may do so at once: each takes what no other has begun.
    """
    with _one_sentence():
        from fivelenses.checkpoints.finetuning import prepare
        from fivelenses.runs.parameters import parse_parameters
        from fivelenses.runs.run import check_device
        from fivelenses.runs.settings import settings

        chosen = settings(chapter, profile, **parse_parameters(parameter))
        check_device(chosen, profile)
        made = prepare(chosen.specifications(), workers=workers, log=typer.echo, device=chosen.device)
        typer.echo(f"{len(made)} models stand")


@app.command()
def sweep(
    chapter: Annotated[int, typer.Argument(help="The chapter that is run at every point.")],
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE,VALUE]...", help="More names of the grid.")
    ] = None,
    profile: Profile = "tiny",
    grid: Annotated[list[str], typer.Option("--grid", help="name=value,value; every combination is a point.")] = [],  # noqa: B006
    points_file: Annotated[
        Path | None, typer.Option("--list", help="Instead of a grid: a YAML list of mappings, one a point.")
    ] = None,
    parameter: Annotated[list[str], typer.Option("-p", "--parameter", help="name=value, the same at all points.")] = [],  # noqa: B006
    name: Annotated[str | None, typer.Option(help="Of its folder under runs/sweeps; made from the points.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes of this machine, or jobs of Slurm; as its GPUs or cores allow.")
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="The address of a dask scheduler that is up.")] = None,
    slurm: Annotated[
        str | None, typer.Option(help="Jobs of Slurm: queue=gpu,cores=8,memory=32GB, or a YAML file of such options.")
    ] = None,
    retries: Annotated[int, typer.Option(help="How often a point that failed is tried again.")] = 1,
) -> None:
    """Run a chapter at many points of its parameters, side by side, and gather all exhibits in one table.

    Points whose run is current are not run again: the same command goes on where it was interrupted.
    """
    with _one_sentence():
        from fivelenses.runs import sweep_points
        from fivelenses.runs.clusters import Where
        from fivelenses.runs.parameters import parse_parameters
        from fivelenses.runs.sweeps import sweep as run_sweep

        wanted = sweep_points.read([*grid, *(more or [])], points_file)
        chosen = sweep_points.points(chapter, profile, wanted, parse_parameters(parameter))
        outcome = run_sweep(chapter, profile, chosen, name, Where(workers, scheduler, slurm), retries, typer.echo)
    if outcome.failed:
        typer.echo(outcome.complaint(), err=True)
        raise typer.Exit(1)


@app.command()
def report(
    encoder: Annotated[str, typer.Argument(help="A name of the hub, a folder, or an entry of the mirror.")],
    tasks: Annotated[str, typer.Option("--tasks", help="Tasks of interest, rte,mrpc; each chapter's own else.")] = "",
    profile: Profile = "tiny",
    seeds: Annotated[str, typer.Option("--seeds", help="Fine-tuning seeds, 0,1; the profile's else.")] = "",
    examples: Annotated[int | None, typer.Option("--examples", help="Training examples of a task, at most.")] = None,
) -> None:
    """Run every chapter on an encoder, and leave one page that says which of the claims hold for it."""
    with _one_sentence():
        from fivelenses.runs.report import report as run_report

        named = [task.strip() for task in tasks.split(",") if task.strip()]
        try:
            numbers = [int(seed) for seed in seeds.split(",") if seed.strip()]
        except ValueError:
            raise ValueError(f"Seeds are whole numbers with commas between them, not {seeds!r}.") from None
        page, failures = run_report(encoder, profile, named, numbers, examples, typer.echo)
        typer.echo(f"The report is at {page}")
    if failures:
        typer.echo(f"fivelenses: {len(failures)} chapters failed; the page says which.", err=True)
        raise typer.Exit(1)


@app.command()
def book(
    run: Annotated[
        bool, typer.Option("--run", help="Run this machine's own chapters first; a book without them comes before.")
    ] = False,
) -> None:
    """Build the book from the published records and this machine's own, and say where it is."""
    with _one_sentence():
        from fivelenses.runs import unchanged

        if run and unchanged.is_unchanged():
            typer.echo(f"Nothing has changed. The book is at {unchanged.first_page()}")
            return
        from fivelenses.runs.book import build
        from fivelenses.runs.execution import run_all
        from fivelenses.runs.pages import LOCAL_PROFILE

        if run:
            if not unchanged.first_page().is_file():
                typer.echo(f"A first look, the published chapters, is at {build(typer.echo, published_alone=True)}")
            run_all(LOCAL_PROFILE, log=typer.echo)
        page = build(typer.echo)
        if run:
            unchanged.remember()
        typer.echo(f"The book is at {page}")


@app.command()
def publish(
    chapter: Annotated[int, typer.Argument(help="The chapter whose run is published.")],
    profile: Profile = "small",
    parameter: Annotated[list[str], typer.Option("-p", "--parameter", help="name=value, as the run was given.")] = [],  # noqa: B006
) -> None:
    """Copy the records of a chapter's run into book/records, from which the book's published pages are made."""
    with _one_sentence():
        from fivelenses.runs.parameters import parse_parameters
        from fivelenses.runs.publishing import publish as publish_run

        typer.echo(f"published in {publish_run(chapter, profile, parse_parameters(parameter))}")


@app.command()
def fetch(
    chapter: Annotated[int, typer.Argument(help="The chapter whose encoders and data are wanted.")],
    profile: Profile = "paper",
) -> None:
    """Fetch what a chapter needs from the hub (or check it in the mirror), for a machine that will have no network."""
    with _one_sentence():
        from fivelenses.runs.fetching import fetch as fetch_all

        fetch_all(chapter, profile, typer.echo)


@app.command()
def pretrain(
    folder: Annotated[Path, typer.Option("--folder", help="Where the checkpoint goes; it must not hold another.")],
    text: Annotated[
        list[Path], typer.Option("--text", help="Files: a paragraph a line, documents split by empty lines.")
    ] = [],  # noqa: B006
    toy: Annotated[bool, typer.Option("--toy", help="The toy world's text and the toy BERT's recipe.")] = False,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    layers: Annotated[int, typer.Option("--layers")] = 12,
    hidden: Annotated[int, typer.Option("--hidden")] = 128,
    heads: Annotated[int, typer.Option("--heads")] = 4,
    vocabulary: Annotated[int, typer.Option("--vocabulary", help="WordPieces.")] = 8_000,
    length: Annotated[int, typer.Option("--length", help="Pieces of a sequence.")] = 128,
    steps: Annotated[int | None, typer.Option("--steps", help="Steps of the optimiser, instead of --passes.")] = None,
    passes: Annotated[float, typer.Option("--passes", help="How often the text is read.")] = 1.0,
    batch_tokens: Annotated[int, typer.Option("--batch-tokens", help="Pieces of a batch, padding included.")] = 8192,
    first_length: Annotated[
        int | None, typer.Option("--first-length", help="Pieces of a sequence in the first half of the steps.")
    ] = None,
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 1e-3,
    warm_up: Annotated[float, typer.Option("--warm-up", help="Share of the steps.")] = 0.1,
    dropout: Annotated[float, typer.Option("--dropout", help="0 where no text is read twice.")] = 0.1,
    deviation: Annotated[
        float | None, typer.Option("--deviation", help="Of the first weights; BERT's 0.02, scaled to the width.")
    ] = None,
    held_out: Annotated[
        list[Path], typer.Option("--held-out", help="Files that are not trained on; the loss on them is recorded.")
    ] = [],  # noqa: B006
    half_precision: Annotated[bool, typer.Option("--half-precision", help="Store the weights in float16.")] = False,
) -> None:
    """Pre-train a BERT on the toy world's text, or on your own; a killed run goes on from its last saved state."""
    with _one_sentence():
        import torch

        import pretraining

        if toy == bool(text):
            raise ValueError("Name either --toy or the files to read with --text.")
        if toy:
            # One thread, so that the weights do not depend on the number of cores; run two seeds side by side instead.
            torch.set_num_threads(1)
            specification = dataclasses.replace(pretraining.TOY_BERT, seed=seed)
            pretraining.pretrain(
                pretraining.toy_text("train"), specification, folder, held_out=pretraining.toy_text("validation")
            )
        else:
            documents = pretraining.text_files(text)
            specification = pretraining.PretrainingSpecification(
                layers=layers,
                hidden=hidden,
                heads=heads,
                intermediate=4 * hidden,
                vocabulary_size=vocabulary,
                sequence_length=length,
                batch_tokens=batch_tokens,
                first_length=first_length,
                first_share=0.5 if first_length else 0.0,
                steps=1 if steps is None else steps,
                learning_rate=learning_rate,
                warm_up=warm_up,
                dropout=dropout,
                initial_deviation=0.02 * (768 / hidden) ** 0.5 if deviation is None else deviation,
                seed=seed,
            )
            tokenizer = pretraining.train_wordpiece(documents, vocabulary)
            if steps is None:
                a_pass = pretraining.steps_per_pass(documents, specification, tokenizer)
                specification = dataclasses.replace(specification, steps=max(1, round(passes * a_pass)))
            pretraining.pretrain(
                documents,
                specification,
                folder,
                tokenizer,
                held_out=pretraining.text_files(held_out) if held_out else None,
                half_precision=half_precision,
                seconds_between_lines=60.0,
            )
        typer.echo(f"pre-trained, in {folder}")


@app.command()
def doctor(
    prune: Annotated[bool, typer.Option("--prune", help="Remove damaged and unfinished checkpoints.")] = False,
    remove: Annotated[list[str], typer.Option("--remove", help="Remove the checkpoint of this address.")] = [],  # noqa: B006
) -> None:
    """List and verify the store of checkpoints."""
    with _one_sentence():
        from fivelenses.checkpoints.inspection import inspect

        inspect(remove, prune, typer.echo)


if __name__ == "__main__":
    app()
