"""The command line: `fivelenses run | train | sweep | report | compare | book | publish | doctor`."""

import os
import re
import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

from fivelenses.files import RunError

try:
    import typer
    from typer import Argument, Option

    from fivelenses.chapters import CHAPTERS, chapters_on, check_device, parse_parameters, settings
except ModuleNotFoundError:
    sys.exit("fivelenses: the command needs `pip install 'fivelenses[book]'`; without it there are the lenses alone.")

Chapter = Annotated[int, Argument(min=min(CHAPTERS), max=max(CHAPTERS), help="The chapter's number.")]
Profile = Annotated[str, Option(help="tiny (toy world, CPU), small (real encoders) or paper (theirs, GPU).")]
VALUES = "name=value, as often as you like; tasks=./own.csv reads a table of your own."
Parameters = Annotated[list[str], Option("-p", "--parameter", help=VALUES)]
DryRun = Annotated[bool, Option("--dry-run", help="Print what would be fetched and trained, and start nothing.")]
Workers = Annotated[int | None, Option(min=1, help="Processes (or Slurm jobs) side by side; by default what suits.")]


class _OneSentence(typer.core.TyperGroup):
    """Commands whose errors, as far as a user can cause them, are one sentence and the exit status 2."""

    def invoke(self, context):
        try:
            return super().invoke(context)
        except (RunError, ValueError, OSError) as error:
            typer.echo(f"fivelenses: {error}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(cls=_OneSentence, no_args_is_help=True)


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, Option("--version", help="Print the version and end.")] = False) -> None:
    """Five papers on what fine-tuning does to BERT, rerun."""
    if version:
        typer.echo(f"fivelenses {metadata.version('fivelenses')}")
        raise typer.Exit
    for name in ("HOME", "STORE", "RUNS", "MIRROR"):  # a notebook runs in another folder
        if folder := os.environ.get(f"FIVELENSES_{name}"):
            os.environ[f"FIVELENSES_{name}"] = str(Path(folder).expanduser().resolve())
    # A request to end unwinds the program, so that what it started ends with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if os.environ.pop("FIVELENSES_ENDS_WITH_CALLER", ""):
        from fivelenses.processes import end_with_caller

        end_with_caller()


@app.command()
def run(
    chapter: Annotated[Literal["all", *map(str, CHAPTERS)], Argument(help="A chapter's number, or `all`.")],
    profile: Profile = "tiny",
    parameter: Parameters = (),
    dry_run: DryRun = False,
    force: Annotated[bool, Option("--force", help="Run also when nothing has changed.")] = False,
    page: Annotated[bool, Option("--page", help="Build the run's page, too, as a book of one page.")] = False,
) -> None:
    """Run a chapter's notebook with papermill, unless its last run is current."""
    from fivelenses import execution

    overrides = parse_parameters(parameter)
    if chapter == "all":
        if overrides or dry_run or page:
            raise ValueError("Parameters, --dry-run and --page go with one chapter: name its number.")
        execution.execute_all([execution.of_chapter(one.number, profile) for one in chapters_on(profile)], force)
        return
    number = int(chapter)
    if dry_run:
        from fivelenses import inputs

        typer.echo("\n".join(inputs.dry_run(number, [settings(number, profile, **overrides)])))
        return
    folder = execution.execute(execution.of_chapter(number, profile, overrides), force, typer.echo)
    if page:
        from fivelenses.book import build, pages

        typer.echo(f"Its page: {build.build_page(pages.run_here(folder))}")


@app.command()
def train(chapter: Chapter, profile: Profile = "tiny", parameter: Parameters = (), workers: Workers = None) -> None:
    """Fine-tune a chapter's models without measuring them.

    Several processes or machines that share the store may do so at once: each takes what no other has begun.
    """
    from fivelenses.checkpoints.finetuning import prepare
    from fivelenses.inputs import check_inputs

    parameters = settings(chapter, profile, **parse_parameters(parameter))
    check_device(parameters)
    check_inputs(parameters, typer.echo)
    models = prepare(parameters.specifications(), workers=workers, log=typer.echo, device=parameters.device)
    typer.echo(f"{len(models)} models are in the store")


@app.command()
def sweep(
    chapter: Chapter,
    more: Annotated[list[str], Argument(metavar="[NAME=VALUE,VALUE]...", help="More names of the grid.")] = (),
    profile: Profile = "tiny",
    grid: Annotated[list[str], Option(help="name=value,value; every combination is a point.")] = (),
    parameter: Parameters = (),
    name: Annotated[str, Option(help="Of its folder under runs/sweeps; made from the points.")] = "",
    workers: Workers = None,
    scheduler: Annotated[str | None, Option(help="The address of a running dask scheduler.")] = None,
    slurm: Annotated[str | None, Option(help="Run as Slurm jobs: queue=gpu,cores=8,memory=32GB,…")] = None,
    retries: Annotated[int, Option(min=0, help="How often a point that failed is tried again.")] = 1,
    dry_run: DryRun = False,
) -> None:
    """Run a chapter at many points of its parameters, side by side, and gather all exhibits in one table.

    Points whose run is current are not run again: the same command continues where it was interrupted.
    """
    from fivelenses import inputs
    from fivelenses import sweep as sweeps

    if scheduler and (workers or slurm):
        raise ValueError("A running cluster has its own workers: give --scheduler without --workers and --slurm.")
    # A list can be one of the values.
    values = (text.partition("=") for text in (*grid, *more))
    named = parse_parameters([f"{name}=[{several}]" for name, _, several in values])
    points = sweeps.points(chapter, profile, named, parse_parameters(parameter))
    if dry_run:
        pending = [point.job.parameters for point in points if point.job.reason]
        typer.echo(f"{len(points)} points, {len(points) - len(pending)} current, {len(pending)} to run")
        if pending:
            typer.echo("\n".join(inputs.dry_run(chapter, pending)))
        return
    folder, missing = sweeps.sweep(points, name, retries, workers=workers, scheduler=scheduler, slurm=slurm)
    for point in missing:
        typer.echo(f"fivelenses: {point} has no run; its log is {folder / point}.log", err=True)
    raise typer.Exit(int(bool(missing)))


@app.command()
def report(
    encoder: Annotated[str, Argument(help="A name of the hub, a folder, or an entry of the mirror.")],
    tasks: Annotated[str, Option(help="Tasks of interest, rte,./reviews.csv; by default each chapter's own.")] = "",
    profile: Profile = "tiny",
    parameter: Parameters = (),
) -> None:
    """Run every chapter on an encoder, and write one page that says which of the claims hold for it."""
    from fivelenses.report import report as run_report

    # A table may name its columns, FILE:text=…,label=….
    named = [task.strip() for task in re.split(r",(?!\w+=)", tasks) if task.strip()]
    page, failures = run_report(encoder, profile, named, parse_parameters(parameter), typer.echo)
    typer.echo(f"The report is at {page}")
    raise typer.Exit(int(bool(failures)))


@app.command()
def compare(
    before: Annotated[str, Argument(help="A folder, a name of the hub, or an entry of the mirror.")],
    after: Annotated[str, Argument(help="What became of it; likewise.")],
    texts: Annotated[Path, Option(help="A text in each line, or a table with a column `text`.")],
    other: Annotated[str | None, Option(help="A pre-trained encoder of another seed, as a yardstick.")] = None,
    folder: Annotated[Path, Option(help="Where the page and the numbers go.")] = Path("comparison"),
) -> None:
    """Compare two checkpoints without training: what changed, in which layers, and whether it is more than chance."""
    from fivelenses.two_checkpoints import compare as compared

    found = compared(before, after, texts, other, log=typer.echo)
    typer.echo("\n".join([*found.facts, found.summary, f"The page: {found.save(folder)}"]))


@app.command()
def book(run: Annotated[bool, Option("--run", help="Run this machine's own chapters first.")] = False) -> None:
    """Build the book from the published records and this machine's own, and print where it is."""
    from fivelenses.book.build import build

    typer.echo(f"The book is at {build(typer.echo, measure=run)}")


@app.command()
def publish(
    chapter: Chapter,
    profile: Profile = "small",
    parameter: Parameters = (),
    stamp: Annotated[bool, Option("--stamp", help="Only mark all that is published of it as of today's code.")] = False,
) -> None:
    """Copy the records of a chapter's run into book/records, from which the book's published pages are made."""
    from fivelenses.book import pages

    if stamp:
        for folder in pages.stamp(chapter):
            typer.echo(f"stamped {folder}")
    else:
        typer.echo(f"published in {pages.publish(chapter, profile, parse_parameters(parameter))}")


@app.command()
def doctor(prune: Annotated[bool, Option("--prune", help="Remove damaged and unfinished ones.")] = False) -> None:
    """List and verify the store of checkpoints; the exit status is 1 where one is damaged."""
    from fivelenses.checkpoints.store import inspect

    if inspect(prune, typer.echo):
        typer.echo("fivelenses: the damaged ones are made anew when needed; --prune removes them.", err=True)
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
