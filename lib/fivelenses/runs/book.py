"""The book: pages and runs are gathered in one folder, checked, and built with jupyter-book, warnings as errors.

A run that is missing, failed, unfinished or out of step stops the build with a sentence that names the command to run.
"""

import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import nbformat
import plotly.offline
import yaml

from fivelenses import project, records
from fivelenses.exhibits import claims, interactive
from fivelenses.exhibits.verdicts import OUTCOMES
from fivelenses.runs import ledger, sweep_page
from fivelenses.runs.execution import RunError, run_all_committed, state
from fivelenses.runs.pages import HERE, PUBLISHED, Shown, assemble, local_runs, published_runs, telling_picture
from fivelenses.runs.settings import CHAPTERS, settings
from fivelenses.runs.sweeps import sweeps_folder
from fivelenses.runs.unchanged import first_page

OTHER_RUNS = "## The same chapter on other encoders"
AWAITED = """# Chapter {number} on this machine

Not measured yet: `make` measures it on the toy world, and builds the book again when it is done.
"""
MATHJAX = "tex-svg.js"  # one file that draws without fonts: all that the book needs of MathJax


def stage(folder: Path, runs: Sequence[Shown]) -> None:
    """Gather configuration, pages, chapters and generated tables in one folder.

    Args:
        folder: is made.
        runs: the runs that the book shows.

    Raises:
        RunError: a chapter's run is missing, failed, unfinished or out of step.
    """
    root, static = project.root(), folder / "_static"
    shutil.copytree(root / "book", folder, ignore=shutil.ignore_patterns("records"))
    configuration = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    repository = configuration.get("repository", {}).get("url", "")
    for shown in runs:
        if shown.part == HERE:
            parameters = settings(shown.chapter.number, shown.profile).model_dump(mode="json")
            reason = state(shown.chapter, shown.folder, parameters)
            if reason:
                raise RunError(
                    f"Chapter {shown.chapter.number} cannot be shown on profile {shown.profile} ({reason}): "
                    f"run `fivelenses run {shown.chapter.number} --profile {shown.profile}`."
                )
        page = assemble(shown, static, repository)
        same = [run for run in runs if run.chapter == shown.chapter]
        views = [view for view in (telling_picture(run, static, shown.up) for run in same) if view is not None]
        others = ledger.other_runs(shown, runs, views)
        if others:
            text = f"{OTHER_RUNS}\n\n```{{raw}} html\n{others}\n```"
            page.cells.append(nbformat.v4.new_markdown_cell(text, id="other-runs"))
        place = folder / f"{shown.page}.ipynb"
        place.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(page, place)
    for awaited in local_runs():
        if awaited not in runs:
            # Other pages lead here; the first look comes before these chapters have been measured.
            place = folder / f"{awaited.page}.ipynb"
            place.parent.mkdir(parents=True, exist_ok=True)
            text = AWAITED.format(number=awaited.chapter.number)
            nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text, id="awaited")]), place)
    sweep_page.stage(folder)
    (folder / "_generated").mkdir()
    (folder / "_generated" / "ledger.html").write_text(ledger.page(runs), encoding="utf-8")
    configuration.setdefault("parse", {})["myst_substitutions"] = substitutions(runs)
    (folder / "_config.yml").write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    (folder / "_toc.yml").write_text(
        yaml.safe_dump(_table_of_contents(contents, runs), sort_keys=False), encoding="utf-8"
    )


def _table_of_contents(contents: dict, runs: Sequence[Shown]) -> dict:
    """The project's table of contents, with the pages of other encoders under their chapter's."""
    pages = {shown.page: shown for shown in runs}
    parts = []
    for part in contents["parts"]:
        chapters = []
        for entry in part["chapters"]:
            shown = pages.get(entry["file"])
            others = [
                run
                for run in runs
                if shown and run.chapter == shown.chapter and run.part == shown.part and not run.leads
            ]
            sections = [{"file": run.page, "title": run.title} for run in others]
            chapters.append(entry | ({"sections": sections} if sections else {}))
        parts.append(part | {"chapters": chapters})
    return contents | {"parts": parts}


def substitutions(runs: Sequence[Shown]) -> dict[str, str]:
    """What pages that are no notebooks print of the runs: counts of verdicts."""
    counts = {}
    for number, part in ((chapter.number, part) for chapter in CHAPTERS.values() for part in (PUBLISHED, HERE)):
        leading = [run for run in runs if run.chapter.number == number and run.part == part and run.leads]
        outcomes = [one.verdict.outcome for run in leading for one in claims.load(run.folder)]
        prefix = f"chapter{number}_{part}"
        for outcome in OUTCOMES:
            counts[f"{prefix}_{outcome.replace(' ', '_')}"] = str(outcomes.count(outcome)) if leading else "–"
        counts[f"{prefix}_claims"] = str(len(outcomes)) if leading else "–"
    return counts


def _gather_scripts(folder: Path) -> None:
    """MathJax and plotly, which are put beside the pages when they are built.

    They are not staged with the pages: the builder would have every page load every script of its folder of static
    files, MathJax a second time and plotly's megabytes where nothing is drawn.
    """
    (folder / "mathjax").mkdir(parents=True)
    shutil.copy(_mathjax(), folder / "mathjax" / MATHJAX)
    (folder / interactive.SCRIPT).write_text(plotly.offline.get_plotlyjs(), encoding="utf-8")


def _mend_bibliography(html: Path) -> None:
    """Name the entries of the bibliography what the list around them asks for; screen readers take them for none."""
    page = html / "references.html"
    written = page.read_text(encoding="utf-8")
    page.write_text(written.replace('role="doc-biblioentry"', 'role="listitem"'), encoding="utf-8")


def _mathjax() -> Path:
    for file in importlib.metadata.files("sphinx-mathjax-offline") or []:
        if file.name == MATHJAX:
            return Path(file.locate())
    raise RunError(f"The package sphinx-mathjax-offline holds no {MATHJAX}: reinstall the environment with `make`.")


def build(log: Callable[[str], None] = print, published_alone: bool = False) -> Path:
    """Build the book and return its first page; a book of the same content is left as it is.

    Pages are built anew where they have changed: the builder keeps what it has read of the others, unless a build
    fails.

    Args:
        log: called with one line for each event.
        published_alone: show each chapter's leading run alone, for a first look before this machine's own are made.

    Raises:
        RunError: a chapter is missing or out of step, or the build gave a warning.
    """
    # A first look has one run per chapter: it is there a minute sooner.
    published = [run for run in published_runs() if run.leads or not published_alone]
    run_all_committed([run.committed for run in published], log)
    runs = published + ([] if published_alone else local_runs())
    page, folder = first_page(), first_page().parents[1]
    work, staged, stamp = folder / "work", folder / "staged", folder / "made-from.sha256"
    digest = _made_from(runs)
    if page.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
        log("book: current")
        return page
    log("book: building")
    shutil.rmtree(staged, ignore_errors=True)
    stage(staged, runs)
    _take_over(staged, work / "source")
    shutil.rmtree(staged)
    program = Path(sys.executable).with_name("jupyter-book")
    command = [str(program), "build", str(work / "source"), "--path-output", str(work)]
    result = subprocess.run([*command, "-W", "-n", "--keep-going"], capture_output=True, text=True)
    if result.returncode:
        lines = [line for line in (result.stdout + result.stderr).splitlines() if "WARNING" in line or "ERROR" in line]
        complaints = folder / "build.log"
        complaints.write_text(result.stdout + result.stderr, encoding="utf-8")
        first = (lines or ["no line of its log says why"])[0].replace(str(work / "source"), "book")
        # A page whose warning was seen would pass as built the next time.
        shutil.rmtree(work)
        raise RunError(f"The book did not build: {first} ({len(lines)} such lines in {complaints}).")
    finished = folder / "finished"
    shutil.rmtree(finished, ignore_errors=True)
    shutil.copytree(work / "_build" / "html", finished)
    _gather_scripts(finished / "_static")
    _mend_bibliography(finished)
    stamp.unlink(missing_ok=True)
    (folder / "build.log").unlink(missing_ok=True)
    shutil.rmtree(folder / "html", ignore_errors=True)
    finished.rename(folder / "html")
    stamp.write_text(digest, encoding="utf-8")
    return page


def _take_over(staged: Path, source: Path) -> None:
    """Bring a folder of sources up to what was staged; files of the same content keep their time of change."""
    new = {file.relative_to(staged): file for file in staged.rglob("*") if file.is_file()}
    for old in [file for file in source.rglob("*") if file.is_file()]:
        if old.relative_to(source) not in new:
            old.unlink()
    for name, file in new.items():
        place = source / name
        if not place.is_file() or place.read_bytes() != file.read_bytes():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)


def _made_from(runs: Sequence[Shown]) -> str:
    """A digest of all that a book is made from: pages, notebooks, runs, sweeps, and the library that it documents."""
    root = project.root()
    files = [file for file in (root / "book").rglob("*") if file.is_file() and file.suffix != ".parquet"]
    files += [root / "_config.yml", root / "_toc.yml", *(root / "notebooks").glob("*.ipynb")]
    files += [file for package in records.PACKAGES for file in (records.LIBRARY / package).rglob("*.*")]
    # A run's facts hold the checksums of its other files.
    files += [run.folder / "run.json" for run in runs] + list(sweeps_folder().glob("*/*"))
    content = hashlib.sha256(repr([run.page for run in runs]).encode())
    for file in sorted(file for file in files if file.suffix != ".pyc"):
        content.update(file.name.encode() + b"\0" + (file.read_bytes() if file.is_file() else b""))
    return content.hexdigest()
