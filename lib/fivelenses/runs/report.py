"""One encoder under all lenses: every chapter run on it, and one page that says which claims hold for it."""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pandas as pd

from fivelenses import execution, judging, project
from fivelenses.catalogue import find, is_task
from fivelenses.chapters import CHAPTERS, Chapter, ParameterError, check_profile, positions, settings
from fivelenses.execution import EXECUTED, RunError
from fivelenses.exhibits import counted
from fivelenses.files import folder_beside
from fivelenses.judging import OUTCOMES, Statement, Verdict
from fivelenses.models.encoders import check_encoder
from fivelenses.models.layers import PARTS
from fivelenses.runs import ledger
from fivelenses.runs.cards import Card, View, as_html, figure_name
from fivelenses.runs.pages import PUBLISHED, Shown, local_runs, published_runs
from fivelenses.runs.side_by_side import pictures, render
from fivelenses.tasks import own
from fivelenses.tasks.sources import SourceError


@dataclass(frozen=True)
class Part:
    """What a report runs of one chapter.

    Attributes:
        chapter: which.
        overrides: its parameters, instead of the profile's.
        tasks: its tasks, as it will run them.
        narrowed: whether these are tasks that were asked for, or the chapter's own because it has none of them.
    """

    chapter: Chapter
    overrides: dict
    tasks: tuple[str, ...]
    narrowed: bool


def plan(
    encoder: str,
    profile: str = "tiny",
    tasks: Sequence[str] = (),
    seeds: Sequence[int] = (),
    examples: int | None = None,
) -> list[Part]:
    """What a report on an encoder would run, every parameter checked.

    Args:
        encoder: a name as `models.encoders` understands it: of the hub, a folder, an entry of the mirror.
        profile: whose data, schedules and sizes are used.
        tasks: the tasks of interest, tables of the reader's own among them (`fivelenses.tasks.own`). A chapter runs
            those among its own, and such tables where it takes them; one that has none of them, or cannot be run on so
            few, keeps its own, since its paper's claims are about those.
        seeds: fine-tuning seeds, instead of the profile's.
        examples: training examples per task, at most.

    Raises:
        ParameterError: an unknown profile, or a task that no chapter has.

    Example:
        >>> parts = plan("toy-bert/seed-1", tasks=["rte", "sst2"])
        >>> parts[0].chapter.number, parts[0].tasks, parts[0].narrowed
        (1, ('rte', 'sst2'), True)
        >>> parts[1].tasks, parts[1].narrowed
        (('pos', 'dep', 'ps-role', 'ps-fxn', 'trec'), False)
    """
    tasks = [own.name_of(task) for task in tasks]
    check_profile(profile)
    chapters = [chapter for chapter in CHAPTERS.values() if profile in chapter.profiles]
    parts = [_part(chapter, encoder, profile, tasks, seeds, examples) for chapter in chapters]
    known = {task for part in parts for task in settings(part.chapter.number, profile).tasks}
    for task in tasks:
        if task not in known and not (is_task(task) and find(task).own):
            raise ParameterError(
                f"No chapter has the task {task!r} on {profile}: name some of {', '.join(sorted(known))}."
            )
    return parts


def _part(chapter: Chapter, encoder: str, profile: str, tasks, seeds, examples) -> Part:
    usual = settings(chapter.number, profile)
    overrides: dict = {"encoder": encoder}
    if seeds:
        overrides["seeds"] = list(seeds)
    if examples is not None:
        of_interest = dict.fromkeys((*usual.tasks_trained(), *tasks))
        overrides["training_examples"] = {one: min(examples, usual.examples_of(one) or examples) for one in of_interest}
    most = positions(encoder)
    if most is not None and most < getattr(usual, "max_tokens", 0):
        overrides["max_tokens"] = most
    own = [task for task in tasks if is_task(task) and find(task).own]
    of_interest = [*own, *(task for task in usual.tasks if task in tasks)]
    with contextlib.suppress(ParameterError):
        if of_interest:
            narrowed = settings(chapter.number, profile, **overrides, tasks=of_interest)
            return Part(chapter, overrides | {"tasks": of_interest}, narrowed.tasks, True)
    return Part(chapter, overrides, settings(chapter.number, profile, **overrides).tasks, False)


def report(
    encoder: str,
    profile: str = "tiny",
    tasks: Sequence[str] = (),
    seeds: Sequence[int] = (),
    examples: int | None = None,
    log: Callable[[str], None] = print,
) -> tuple[Path, list[str]]:
    """Run all chapters on an encoder and write the page, with the verdicts as a table beside it; runs that are current
    are not made again.

    Args:
        encoder, profile, tasks, seeds, examples: see `plan`.
        log: called with one line of plain text for each event.

    Returns:
        The page, and a sentence for each chapter that failed.

    Raises:
        ValueError, RunError: what cannot be run, before anything is; or every chapter failed.
    """
    parts = plan(encoder, profile, tasks, seeds, examples)
    read = check_encoder(encoder, projections=True)
    shape = f"{counted(read.num_hidden_layers, 'layer')} of width {read.hidden_size}, {len(PARTS)} projections each"
    log(f"{encoder}: {shape}")
    deep = [part for part in parts if read.num_hidden_layers >= part.chapter.parameters.fewest_layers]
    left_out = [
        f"Chapter {part.chapter.number} is left out: it needs more layers." for part in parts if part not in deep
    ]
    kept = [part for part in deep if tasks and not part.narrowed]
    for line in (*left_out, *(f"chapter {part.chapter.number} keeps its own tasks" for part in kept)):
        log(line)
    runs, failures = _run(deep, profile, log)
    if not runs:
        raise RunError(f"No chapter could be run on {encoder}: {failures[0]}")
    place = project.runs_folder() / "reports" / f"{_folder_name(encoder)}-{profile}"
    sections = [(part, runs[part.chapter.number]) for part in deep if part.chapter.number in runs]
    page = report_page(encoder, shape, profile, sections, [*left_out, *failures])
    with folder_beside(place) as partial:
        (partial / "index.html").write_text(page, encoding="utf-8")
        _verdicts(encoder, profile, runs).to_parquet(partial / "claims.parquet", index=False)
    return place / "index.html", failures


def _run(parts: Sequence[Part], profile: str, log: Callable[[str], None]) -> tuple[dict[int, Path], list[str]]:
    """The folders of the chapters that ran, by their numbers, and a sentence for each that failed."""
    runs, failures = {}, []
    for part in parts:
        number = part.chapter.number
        try:
            runs[number] = execution.run(number, profile, part.overrides, log=log).folder
        except (RunError, SourceError, ValueError) as error:
            # What a notebook says names its chapter.
            failures.append(str(error) if isinstance(error, RunError) else f"Chapter {number}, {profile}: {error}")
            log(failures[-1])
    return runs, failures


def report_page(
    encoder: str, shape: str, profile: str, sections: Sequence[tuple[Part, Path]], failures: Sequence[str]
) -> str:
    """The report as one HTML file with its pictures and its style inside, that can be sent as it is.

    The claims come first, what this encoder says next to what the book's runs say; then every picture, likewise.

    Args:
        encoder: its name.
        shape: in words.
        profile: whose data and schedules were used.
        sections: the chapters that ran, with their folders.
        failures: a sentence for each that did not, or was left out.
    """
    outcomes, chapters = [], []
    for part, folder in sections:
        number, book = part.chapter.number, _book_run(part.chapter, profile)
        in_book = {} if book is None else _in_book(book)
        judged = judging.load(folder)
        outcomes += [verdict.outcome for _, verdict in judged]
        beside = "" if book is None else f" Next to it the book’s run, {book.title}."
        views = [(folder, "this encoder")] + ([] if book is None else [(book.folder, "the book’s")])
        drawn = [file.stem for file in folder.glob("*.png")]
        shown = [_card(*one, in_book, drawn) for one in judged]
        chapters.append(
            {
                "number": number,
                "cards": as_html(shown),
                "title": nbformat.read(part.chapter.notebook, as_version=4).cells[0].source.splitlines()[0][2:],
                "tasks": (
                    f"Tasks: {', '.join(map(_words, part.tasks))}{'.' if part.narrowed else ', the chapter’s own.'}"
                    f"{beside}"
                ),
                "pictures": {key: pictures(key, views) for key in sorted(drawn, key=_order)},
            }
        )
    counts = {outcome: outcomes.count(outcome) for outcome in OUTCOMES}
    facts = dict(encoder=encoder, shape=shape, profile=profile, failures=failures)
    return render("report.html", **facts, counts=counts, sections=chapters)


def _words(task: str) -> str:
    """A task's name, of a table of the reader's own its title."""
    return find(task).title if find(task).own else task


def _in_book(run: Shown) -> dict[str, Verdict]:
    """What the book's run says, nothing where it was made by other code: a report does not wait for it."""
    try:
        return {key: verdict for key, (_, verdict) in ledger.judged_in(run).items()}
    except RunError:
        return {}


def _card(claim: Statement, verdict: Verdict, in_book: Mapping[str, Verdict], drawn: Iterable[str]) -> Card:
    """A claim with what this encoder says of it, and the book's run where it has one."""
    figures = tuple((figure_name(key), f"#{key}") for key in claim.exhibits if key in drawn)
    views = [View(verdict, "this encoder", figures=figures)]
    if claim.key in in_book:
        views.append(View(in_book[claim.key], "the book’s run"))
    return Card(claim, tuple(views))


def _book_run(chapter: Chapter, profile: str) -> Shown | None:
    """The run of a chapter that the book shows: one of the same profile where there is one, else the published one."""
    runs = [run for run in (*published_runs(), *local_runs()) if run.chapter == chapter and run.leads]
    runs = [run for run in runs if (run.folder / EXECUTED).is_file()]
    return min(runs, key=lambda run: (run.profile != profile, run.part != PUBLISHED), default=None)


def _order(key: str) -> list[tuple[int, str]]:
    """Figures in the order of their numbers: 2 before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in key.split("-")]


def _folder_name(encoder: str) -> str:
    return re.sub(r"[^\w.-]|_", "-", encoder).strip("-.")


def _verdicts(encoder: str, profile: str, runs: dict[int, Path]) -> pd.DataFrame:
    """All verdicts as a table, one row per claim, group and part."""
    tables = []
    for number, folder in runs.items():
        table = judging.as_table(judging.load(folder))
        table.insert(0, "chapter", number)
        tables.append(table)
    whole = pd.concat(tables, ignore_index=True)
    whole.insert(0, "profile", profile)
    whole.insert(0, "encoder", encoder)
    return whole
