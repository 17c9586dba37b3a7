"""The book: pages and runs are gathered in one folder, checked, and built with jupyter-book, warnings as errors.

A chapter's page is the notebook as it stands (prose and code) with the outputs of an executed copy whose code is
the same; a copy that is
missing, failed, unfinished or out of step stops the build with a sentence that names the command to run.
"""

import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import plotly.offline
import yaml

from fivelenses import project
from fivelenses.exhibits import claims, interactive
from fivelenses.runs.execution import EXECUTED, RunError, code_digest, state
from fivelenses.runs.run import folder_name
from fivelenses.runs.settings import CHAPTERS, Chapter, find_chapter, settings

LOCAL_PROFILE = "tiny"
LARGEST_PUBLISHED = 3 * 10**6  # bytes of a published notebook
MATHJAX = "tex-svg.js"  # one file that draws without fonts: all that the book needs of MathJax


def published_folder(chapter: Chapter) -> Path:
    """Where the run that the book shows is committed."""
    return project.root() / "book" / "published" / chapter.slug


def assemble(chapter: Chapter, executed: Path, facts: dict) -> nbformat.NotebookNode:
    """The notebook as it stands with the outputs of an executed copy, and a line at its head that says what run
    this is.

    Raises:
        RunError: the copy failed, has other code, or holds a traceback; the message names the command that mends it.
    """
    again = f"run `fivelenses run {chapter.number} --profile {facts['profile']} --force`"
    page = nbformat.read(chapter.notebook, as_version=4)
    copy = nbformat.read(executed, as_version=4)
    if code_digest(page) != code_digest(copy):
        raise RunError(
            f"The page of chapter {chapter.number} ({facts['profile']}) is out of step with its notebook: {again}."
        )
    outputs = [
        cell
        for cell in copy.cells
        if cell.cell_type == "code" and "injected-parameters" not in cell.metadata.get("tags", [])
    ]
    for cell, run in zip((cell for cell in page.cells if cell.cell_type == "code"), outputs, strict=True):
        if run.execution_count is None or any(output.output_type in ("error", "stream") for output in run.outputs):
            raise RunError(
                f"The page of chapter {chapter.number} ({facts['profile']}) holds a cell that failed, did not "
                "run, or printed "
                f"a warning: {again}."
            )
        cell.outputs, cell.execution_count = run.outputs, run.execution_count
        for output in run.outputs:
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt:
                cell.metadata.setdefault("mystnb", {})["image"] = {"alt": alt}
    # A name of its own for the cell, not one from chance: equal content is an equal page.
    page.cells.insert(1, nbformat.v4.new_markdown_cell(_run_line(facts), id="the-run"))
    return page


def _run_line(facts: dict) -> str:
    parameters = facts["parameters"]
    encoders = ", ".join(f"`{name}`" for name in parameters.get("encoders") or [parameters["encoder"]])
    chosen = ", ".join(parameters["tasks"]) if "tasks" in parameters else ""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return (
        f":::{{admonition}} The run on this page\n:class: note\n"
        f"Profile `{facts['profile']}`: {encoders}, source `{parameters['source']}`, tasks "
        f"{chosen}, seeds {', '.join(map(str, parameters['seeds']))}; {facts['device']}; this run "
        f"{facts['seconds'] / 60:.1f} min, its models {facts['training_seconds'] / 60:.0f} min of training; "
        f"{facts['peak_memory'] / 1e9:.1f} GB. {versions}.\n:::"
    )


def _facts(folder: Path, chapter: Chapter, profile: str) -> dict:
    for name in ("run.json", "claims.json", EXECUTED):
        if not (folder / name).is_file():
            raise RunError(
                f"Chapter {chapter.number} has no finished run on profile {profile} ({folder} lacks {name}): "
                f"run `fivelenses run {chapter.number} --profile {profile}`."
            )
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def publish(number: int) -> Path:
    """Copy a chapter's run, on the profile that the book shows, into ``book/published``.

    Raises:
        RunError: there is no current run, or its notebook is too large to commit.
    """
    chapter = find_chapter(number)
    if chapter.published is None:
        raise RunError(f"The book shows no committed run of chapter {number}: its entry in CHAPTERS names no profile.")
    run = project.runs_folder() / folder_name(chapter, chapter.published, {})
    _facts(run, chapter, chapter.published)
    size = (run / EXECUTED).stat().st_size
    if size > LARGEST_PUBLISHED:
        raise RunError(
            f"The executed notebook of chapter {number} has {size / 1e6:.1f} MB; the book takes at most 3 MB."
        )
    place = published_folder(chapter)
    beside = place.with_name(f".{place.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(run, beside, ignore=shutil.ignore_patterns("*.svg"))
    shutil.rmtree(place, ignore_errors=True)
    beside.rename(place)
    return place


def stage(folder: Path) -> None:
    """Gather configuration, pages, chapters, generated tables and MathJax in one folder.

    Raises:
        RunError: a chapter's run is missing, failed, unfinished or out of step.
    """
    root = project.root()
    shutil.copytree(root / "book", folder, ignore=shutil.ignore_patterns("published"))
    for chapter in CHAPTERS.values():
        if chapter.published is not None:
            published = published_folder(chapter)
            facts = _facts(published, chapter, chapter.published)
            _write(assemble(chapter, published / EXECUTED, facts), folder / "published" / chapter.notebook.name)
        if not chapter.local:
            continue
        local = project.runs_folder() / folder_name(chapter, LOCAL_PROFILE, {})
        why = state(chapter, local, settings(chapter.number, LOCAL_PROFILE).model_dump(mode="json"))
        if why:
            raise RunError(
                f"Chapter {chapter.number} cannot be shown on profile {LOCAL_PROFILE} ({why}): "
                f"run `fivelenses run {chapter.number} --profile {LOCAL_PROFILE}`."
            )
        facts = _facts(local, chapter, LOCAL_PROFILE)
        _write(assemble(chapter, local / EXECUTED, facts), folder / "here" / chapter.notebook.name)
    configuration = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    configuration.setdefault("parse", {})["myst_substitutions"] = substitutions()
    (folder / "_config.yml").write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    shutil.copy(root / "_toc.yml", folder / "_toc.yml")
    mathjax = folder / "_static" / "mathjax"
    mathjax.mkdir(parents=True)
    shutil.copy(_mathjax(), mathjax / MATHJAX)
    (folder / "_static" / interactive.SCRIPT).write_text(plotly.offline.get_plotlyjs(), encoding="utf-8")


def substitutions() -> dict[str, str]:
    """What pages that are no notebooks print of the runs: counts of verdicts."""
    found = {}
    for chapter in CHAPTERS.values():
        places = {} if chapter.published is None else {"published": published_folder(chapter)}
        if chapter.local:
            places["here"] = project.runs_folder() / folder_name(chapter, LOCAL_PROFILE, {})
        for name, folder in places.items():
            verdicts = [verdict.verdict for verdict in claims.load(folder)]
            for kind in claims.VERDICTS:
                found[f"chapter{chapter.number}_{name}_{kind.replace(' ', '_')}"] = str(verdicts.count(kind))
            found[f"chapter{chapter.number}_{name}_claims"] = str(len(verdicts))
    return found


def _write(notebook: nbformat.NotebookNode, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, place)


def _mathjax() -> Path:
    for file in importlib.metadata.files("sphinx-mathjax-offline") or []:
        if file.name == MATHJAX:
            return Path(file.locate())
    raise RunError(f"The package sphinx-mathjax-offline holds no {MATHJAX}: reinstall the environment with `make`.")


def build(notify: Callable[[str], None] = print) -> Path:
    """Build the book and return its first page; a book of the same content is left as it is.

    Raises:
        RunError: a chapter is missing or out of step, or the build gave a warning.
    """
    folder = project.root() / "build" / "book"
    work = folder / "partial"
    shutil.rmtree(work, ignore_errors=True)
    stage(work / "source")
    digest = _content_digest(work / "source")
    page, stamp = folder / "html" / "index.html", folder / "content.sha256"
    if page.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
        shutil.rmtree(work)
        notify("book: current")
        return page
    notify("book: building")
    program = Path(sys.executable).with_name("jupyter-book")
    command = [str(program), "build", str(work / "source"), "--path-output", str(work)]
    result = subprocess.run([*command, "-W", "-n", "--keep-going"], capture_output=True, text=True)
    if result.returncode:
        lines = [line for line in (result.stdout + result.stderr).splitlines() if "WARNING" in line or "ERROR" in line]
        log = folder / "build.log"
        log.write_text(result.stdout + result.stderr, encoding="utf-8")
        first = (lines or ["no line of its log says why"])[0].replace(str(work / "source"), "book")
        raise RunError(f"The book did not build: {first} ({len(lines)} such lines in {log}).")
    stamp.unlink(missing_ok=True)
    (folder / "build.log").unlink(missing_ok=True)
    shutil.rmtree(folder / "html", ignore_errors=True)
    (work / "_build" / "html").rename(folder / "html")
    stamp.write_text(digest, encoding="utf-8")
    shutil.rmtree(work)
    return page


def _content_digest(folder: Path) -> str:
    content = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return content.hexdigest()
