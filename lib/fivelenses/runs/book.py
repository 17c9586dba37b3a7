"""The book: pages and runs are gathered in one folder, checked, and built with jupyter-book, warnings as errors.

A run that is missing, failed, unfinished or out of step stops the build with a sentence that names the command to run.
"""

import hashlib
import importlib.metadata
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
from fivelenses.runs import ledger, sweep_page
from fivelenses.runs.execution import EXECUTED, RunError, state
from fivelenses.runs.page_checks import faults
from fivelenses.runs.pages import HERE, assemble, facts_of, shown_runs
from fivelenses.runs.settings import settings

MATHJAX = "tex-svg.js"  # one file that draws without fonts: all that the book needs of MathJax


def stage(folder: Path) -> None:
    """Gather configuration, pages, chapters and generated tables in one folder.

    Raises:
        RunError: a chapter's run is missing, failed, unfinished or out of step.
    """
    root = project.root()
    shutil.copytree(root / "book", folder, ignore=shutil.ignore_patterns("published"))
    configuration = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    repository = configuration.get("repository", {}).get("url", "")
    for shown in shown_runs():
        if shown.part == HERE:
            parameters = settings(shown.chapter.number, shown.profile).model_dump(mode="json")
            why = state(shown.chapter, shown.folder, parameters)
            if why:
                raise RunError(
                    f"Chapter {shown.chapter.number} cannot be shown on profile {shown.profile} ({why}): "
                    f"run `fivelenses run {shown.chapter.number} --profile {shown.profile}`."
                )
        facts = facts_of(shown.folder, shown.chapter, shown.profile)
        page = assemble(shown.chapter, shown.folder / EXECUTED, facts, folder / "_static", repository)
        place = folder / f"{shown.page}.ipynb"
        place.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(page, place)
    sweep_page.stage(folder)
    (folder / "_generated").mkdir()
    (folder / "_generated" / "ledger.html").write_text(ledger.page(shown_runs()), encoding="utf-8")
    configuration.setdefault("parse", {})["myst_substitutions"] = substitutions()
    (folder / "_config.yml").write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    shutil.copy(root / "_toc.yml", folder / "_toc.yml")


def substitutions() -> dict[str, str]:
    """What pages that are no notebooks print of the runs: counts of verdicts."""
    found = {}
    for shown in shown_runs():
        verdicts = [verdict.verdict for verdict in claims.load(shown.folder)]
        prefix = f"chapter{shown.chapter.number}_{shown.part}"
        for kind in claims.VERDICTS:
            found[f"{prefix}_{kind.replace(' ', '_')}"] = str(verdicts.count(kind))
        found[f"{prefix}_claims"] = str(len(verdicts))
    return found


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


def build(log: Callable[[str], None] = print) -> Path:
    """Build the book and return its first page; a book of the same content is left as it is.

    Raises:
        RunError: a chapter is missing or out of step, the build gave a warning, or a page has a fault.
    """
    folder = project.root() / "build" / "book"
    work = folder / "partial"
    shutil.rmtree(work, ignore_errors=True)
    stage(work / "source")
    _gather_scripts(work / "scripts")
    digest = _content_digest(work)
    page, stamp = folder / "html" / "index.html", folder / "content.sha256"
    if page.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
        shutil.rmtree(work)
        log("book: current")
        return page
    log("book: building")
    program = Path(sys.executable).with_name("jupyter-book")
    command = [str(program), "build", str(work / "source"), "--path-output", str(work)]
    result = subprocess.run([*command, "-W", "-n", "--keep-going"], capture_output=True, text=True)
    if result.returncode:
        lines = [line for line in (result.stdout + result.stderr).splitlines() if "WARNING" in line or "ERROR" in line]
        log = folder / "build.log"
        log.write_text(result.stdout + result.stderr, encoding="utf-8")
        first = (lines or ["no line of its log says why"])[0].replace(str(work / "source"), "book")
        raise RunError(f"The book did not build: {first} ({len(lines)} such lines in {log}).")
    shutil.copytree(work / "scripts", work / "_build" / "html" / "_static", dirs_exist_ok=True)
    _mend_bibliography(work / "_build" / "html")
    found = faults(work / "_build" / "html")
    if found:
        log = folder / "faults.log"
        log.write_text("\n".join(found) + "\n", encoding="utf-8")
        raise RunError(f"The book was built but cannot be shown: {found[0]} ({len(found)} such lines in {log}).")
    stamp.unlink(missing_ok=True)
    for log in ("build.log", "faults.log"):
        (folder / log).unlink(missing_ok=True)
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
