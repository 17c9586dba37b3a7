"""One encoder under all lenses: every chapter run on it, and the ledger of these runs next to the book's."""

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fivelenses import judging
from fivelenses.book import ledger
from fivelenses.book.cards import render
from fivelenses.book.pages import BookRun, local_runs, published_runs
from fivelenses.catalogue import find
from fivelenses.chapters import Chapter, ParameterError, chapters_on
from fivelenses.execution import EXECUTED, Job, execute, of_chapter
from fivelenses.exhibits import counted
from fivelenses.files import RunError, folder_beside, project_folder, runs_folder
from fivelenses.models.encoders import check_encoder
from fivelenses.tasks import own


def plan(encoder: str, profile: str = "tiny", tasks: Sequence[str] = (), given: Mapping = {}) -> list[Job]:
    """The runs of a report on an encoder (a name as `models.encoders` understands it) with the data, schedules and
    sizes of a profile, and other parameters that all chapters share (`given`), every parameter checked.

    Of the tasks of interest, which may be tables of the reader's own, a chapter runs those among its own, and such
    tables where it takes them; one that has none of them, or cannot be run on so few, keeps its own, since its paper's
    claims are about those. Refused: a task that no chapter runs.
    """
    overrides, jobs = {"encoder": encoder, **given}, []
    names = [own.name_of(task) for task in tasks]
    for number in (chapter.number for chapter in chapters_on(profile)):
        jobs.append(of_chapter(number, profile, overrides))
        narrowed = [name for name in names if name in jobs[-1].parameters.tasks or find(name).own]
        with contextlib.suppress(ParameterError):  # of a chapter that has none of them, or needs more
            jobs[-1] = of_chapter(number, profile, overrides | {"tasks": narrowed})
    if unused := {*names} - {name for job in jobs for name in job.parameters.tasks}:
        raise ParameterError(f"No chapter runs the task {unused.pop()!r} on {profile}: leave it out.")
    return jobs


def report(
    encoder: str, profile: str = "tiny", tasks: Sequence[str] = (), given: Mapping = {}, log: Callable = print
) -> tuple[Path, list[str]]:
    """Run all chapters on an encoder and write the page, with the verdicts as a table beside it; runs that are current
    are not made again. Returns the page, and a sentence for each chapter that failed. Arguments as `plan`.

    Refused: what cannot be run, before anything is; and where every chapter failed.
    """
    jobs = plan(encoder, profile, tasks, given)
    read = check_encoder(encoder, projections=True)
    shape = f"{counted(read.num_hidden_layers, 'layer')} of width {read.hidden_size}"
    deep = [job for job in jobs if read.num_hidden_layers >= job.parameters.fewest_layers]
    notes = [f"Chapter {job.chapter.number} is left out: it needs more layers." for job in jobs if job not in deep]
    own_tasks = [job.chapter.number for job in deep if tasks and "tasks" not in job.overrides]
    notes += [f"Chapter {number} keeps its own tasks." for number in own_tasks]
    runs, failures, name = [], [], f"{profile}-{encoder.replace('/', '-')}"
    for line in (f"{encoder}: {shape}", *notes):
        log(line)
    for job in deep:
        try:
            runs.append(BookRun(job.chapter, profile, execute(job, log=log), name, leads=False))
        except (RunError, ValueError) as error:
            # What a notebook says names its chapter.
            chapter = f"Chapter {job.chapter.number}, {profile}: "
            failures.append(chapter + str(error).removeprefix(chapter))
            log(failures[-1])
    if not runs:
        raise RunError(f"No chapter could be run on {encoder}: {failures[0]}")
    place = runs_folder() / "reports" / (re.sub(r"[^\w.-]|_", "-", encoder).strip("-.") + f"-{profile}")
    with folder_beside(place) as partial:
        page = report_page(encoder, shape, profile, runs, [*notes, *failures])
        (partial / "index.html").write_text(page, encoding="utf-8")
        claims = {run.chapter.number: judging.as_table(judging.load(run.folder)) for run in runs}
        table = pd.concat(claims, names=["chapter"]).reset_index("chapter").assign(encoder=encoder, profile=profile)
        table.to_parquet(partial / "claims.parquet", index=False)
    return place / "index.html", failures


def report_page(encoder: str, shape: str, profile: str, runs: Sequence[BookRun], notes: Sequence[str]) -> str:
    """The matrix and the cards of these runs next to the book's of the same chapters, as one HTML file with its style
    inside, that can be sent as it is; `notes` has a sentence for each chapter that failed or was left out.
    """
    of_book = [book_run(run.chapter, profile) for run in runs]
    compared = [*runs, *(run for run in of_book if run and run.title not in {one.title for one in runs})]
    style = (project_folder() / "book" / "_static" / "house.css").read_text(encoding="utf-8")
    tables = dict(matrix=ledger.matrix_html(compared, ledger=""), ledger=ledger.ledger_html(compared, figures=False))
    return render("report.html", encoder=encoder, shape=shape, profile=profile, notes=notes, style=style, **tables)


def book_run(chapter: Chapter, profile: str) -> BookRun | None:
    """The run of a chapter that the book shows: one of the same profile where there is one, else the published one."""
    runs = [run for run in (*published_runs(), *local_runs()) if run.chapter == chapter and run.leads]
    runs = [run for run in runs if (run.folder / EXECUTED).is_file()]
    return min(runs, key=lambda run: (run.profile != profile, run.committed is None), default=None)
