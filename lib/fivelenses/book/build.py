"""The build: pages and the tables made from runs are gathered in one folder, and built with warnings as errors."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import nbformat
import pandas as pd
import yaml
from bs4 import BeautifulSoup

from fivelenses.book import ledger
from fivelenses.book.cards import render
from fivelenses.book.compared import Comparison
from fivelenses.book.pages import BookRun, assemble, local_runs, published_runs
from fivelenses.execution import Job, execute_all, of_chapter, of_records
from fivelenses.exhibits import Exhibit, dots, in_words, table_html
from fivelenses.files import RunError, folder_beside, project_folder, runs_folder
from fivelenses.judging import ORDINARY
from fivelenses.lenses.checks import invariance_table

# The builder, which ends with this process.
BUILDER = """
from fivelenses.processes import end_with_caller
from jupyter_book.cli.main import main
end_with_caller()
main()
"""


def build(log: Callable[[str], None] = print, measure: bool = False) -> Path:
    """Build the book of the published runs and of those of this machine that are current, which `measure` makes first,
    and return its first page; a book that is newer than all that it is made from stays as it is. A chapter that fails,
    or a warning of the build, is a `RunError`. Where there is no book yet, the first published chapter is shown before
    the others are measured.
    """
    published, folder = published_runs(), project_folder() / "build" / "book"
    page, work = folder / "html" / "index.html", folder / "work"
    # The last chapters take longest: begun last, one of them would run alone.
    jobs = [of_chapter(run.chapter.number, run.profile) for run in reversed(local_runs()) if measure]
    pages = [of_records(run.committed) for run in published]

    def show(job: Job) -> None:
        if measure and job in pages[:1] and not page.is_file():
            log(f"A first page, chapter 1 as it is published, is at {build_page(published[0])}")

    execute_all([*pages[:1], *jobs, *pages[1:]], done=show)
    if page.is_file() and page.stat().st_mtime > last_change():
        log("book: current")
        return page
    log("book: building")
    began = time.time()
    shutil.rmtree(work, ignore_errors=True)
    stage(work / "source", published)
    html = jupyter_book(work / "source", work, "-W", "-n", "--keep-going")
    ledger.verdict_table(published).to_csv(html / "verdicts.csv", index=False)
    with folder_beside(page.parent) as partial:
        shutil.copytree(html, partial, dirs_exist_ok=True)
    os.utime(page, (began, began))  # a page that was saved while the book was built is not in it
    return page


def last_change() -> float:
    """When a page, a notebook, the library or a run was last changed."""
    root = project_folder()
    folders = (root / "book", root / "notebooks", root / "lib" / "fivelenses", runs_folder())
    files = [root / "_config.yml", root / "_toc.yml", *(file for folder in folders for file in folder.rglob("*.*"))]
    return max(file.stat().st_mtime for file in files if file.suffix != ".pyc" and file.is_file())


def build_page(run: BookRun) -> Path:
    """A run's page as a book of one page, with the glossary and the references; links to the rest of the book are plain
    text. It goes into the run's folder.
    """
    root, work = project_folder(), run.folder / ".page"
    shutil.rmtree(work, ignore_errors=True)
    source = work / "source"
    shutil.copytree(root / "book" / "_static", source / "_static")
    for file in ("_config.yml", "book/glossary.md", "book/references.md", "book/references.bib"):
        shutil.copy(root / file, source)
    page = assemble(run, source / "_static")
    for cell in (cell for cell in page.cells if cell.cell_type == "markdown"):
        # The builder takes a link from the book's first folder for one within the page.
        cell.source = re.sub(r"\[([^\]]+)\]\(/[^)]*\)", r"\1", cell.source)
    _write_page(page, source / f"{run.page}.ipynb")
    contents = {"format": "jb-book", "root": run.page, "chapters": [{"file": "glossary"}, {"file": "references"}]}
    (source / "_toc.yml").write_text(yaml.safe_dump(contents), encoding="utf-8")
    with folder_beside(run.folder / "page") as partial:
        shutil.copytree(jupyter_book(source, work), partial, dirs_exist_ok=True)
    shutil.rmtree(work)
    return run.folder / "page" / f"{run.page}.html"


def jupyter_book(source: Path, output: Path, *options: str) -> Path:
    """Build the pages of a folder and return the folder of their HTML; refused with the first warning."""
    arguments = ["build", str(source), "--path-output", str(output), *options]
    ended = subprocess.run([sys.executable, "-c", BUILDER, *arguments], capture_output=True, text=True)
    if ended.returncode:
        log, said = output / "build.log", ended.stdout + ended.stderr
        log.write_text(said, encoding="utf-8")
        lines = [line for line in said.splitlines() if "WARNING" in line or "ERROR" in line]
        first = (lines or ["it stopped"])[0].replace(str(source), "book")
        raise RunError(f"The book did not build: {first} ({len(lines)} such lines in {log}).")
    html = output / "_build" / "html"
    add_meanings_of_terms(html)
    # One file that draws without fonts is all that a page needs of MathJax. It is not staged with the pages: each would
    # load it a second time.
    (html / "_static" / "mathjax").mkdir(parents=True, exist_ok=True)
    mathjax = (file for file in importlib.metadata.files("sphinx-mathjax-offline") if file.name == "tex-svg.js")
    shutil.copy(next(mathjax).locate(), html / "_static" / "mathjax")
    return html


def add_meanings_of_terms(html: Path) -> None:
    """Put the glossary's meaning of a term on every link to it, where a browser shows it under the pointer."""
    glossary = BeautifulSoup((html / "glossary.html").read_text(encoding="utf-8"), "html.parser")
    for page in html.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for name in glossary.select("dl.glossary > dt[id]"):
            meaning = escape(" ".join(name.find_next_sibling("dd").get_text().split()))
            text = text.replace(f'glossary.html#{name["id"]}"', f'glossary.html#{name["id"]}" title="{meaning}"')
        page.write_text(text, encoding="utf-8")


def stage(folder: Path, published: Sequence[BookRun]) -> None:
    """Gather configuration, pages, chapters and generated tables in one folder, which is made. A chapter without a
    current run of this machine has a page that says so; pages of other encoders come under their chapter's.
    """
    root, runs = project_folder(), list(published)
    shutil.copytree(root / "book", folder, ignore=shutil.ignore_patterns("records"))
    for run in local_runs():
        if reason := of_chapter(run.chapter.number, run.profile).reason:
            waiting = render("waiting.md", number=run.chapter.number, reason=reason)
            cell = nbformat.v4.new_markdown_cell(waiting, id="waiting")
            _write_page(nbformat.v4.new_notebook(cells=[cell]), folder / f"{run.page}.ipynb")
        else:
            runs.append(run)
    for run in runs:
        others = published if run.committed else ()
        _write_page(assemble(run, folder / "_static", others), folder / f"{run.page}.ipynb")
    write_page_of_sweeps(folder)
    write_generated(folder / "_generated", runs)
    configuration = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    configuration["sphinx"]["config"]["version"] = importlib.metadata.version("fivelenses")
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    for part in contents["parts"]:
        # There is no page of sweeps where there are none.
        part["chapters"] = [entry for entry in part["chapters"] if list(folder.glob(f"{entry['file']}.*"))]
        for entry in part["chapters"]:
            others = [run for run in runs if f"{run.part}/{run.chapter.slug}" == entry["file"] != run.page]
            if others:
                entry["sections"] = [{"file": run.page, "title": run.title} for run in others]
    for name, content in (("_config.yml", configuration), ("_toc.yml", contents)):
        (folder / name).write_text(yaml.safe_dump(content), encoding="utf-8")


def _write_page(page: nbformat.NotebookNode, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(page, place)


def write_generated(folder: Path, runs: Sequence[BookRun]) -> None:
    """The tables and pieces of pages that pages include."""
    folder.mkdir()
    of_papers = [run for run in runs if run.chapter.paper]
    compared = json.loads((project_folder() / "book" / "comparison.json").read_text(encoding="utf-8"))
    generated = {
        "ledger.html": ledger.ledger_html(of_papers),
        "matrix.html": ledger.matrix_html(of_papers),
        "findings.html": ledger.findings_html(runs),
        "invariances.csv": invariance_table().to_csv(index=False),
        "comparison.html": Comparison(**compared | {"measures": pd.DataFrame(compared["measures"])}).html,
    }
    for name, text in generated.items():
        (folder / name).write_text(text, encoding="utf-8")


def write_page_of_sweeps(folder: Path) -> None:
    """Scores and verdicts against every swept parameter, as a page of the folder that the book is built from; nothing
    where there is no sweep.
    """
    sweeps = [_sweep(file.parent) for file in sorted((runs_folder() / "sweeps").glob("*/sweep.parquet"))]
    if sweeps:
        (folder / "here").mkdir(exist_ok=True)
        (folder / "here" / "sweeps.md").write_text(render("sweeps.md", sweeps=sweeps), encoding="utf-8")


def _sweep(folder: Path) -> dict:
    content = yaml.safe_load((folder / "sweep.yaml").read_text(encoding="utf-8"))
    table, verdicts = pd.read_parquet(folder / "sweep.parquet"), pd.read_parquet(folder / "claims.parquet")
    models, values = table[table["exhibit"] == "models"], {name: table[name].unique() for name in content["swept"]}
    varied = [name for name, several in values.items() if len(several) > 1]
    shown = [score_against(models, name, folder.name).html for name in varied if len(models)]
    shown += [verdicts_by(verdicts, name) for name in varied if len(verdicts)]
    return content | {"name": folder.name, "swept": values, "shown": shown}


def verdicts_by(verdicts: pd.DataFrame, parameter: str) -> str:
    """The verdicts over one parameter: a row per claim and verdict, a column per value, with numbers of points."""
    judged = verdicts.drop_duplicates(["point", "claim"])
    counts = pd.crosstab([judged["claim"], judged["verdict"]], judged[parameter]).add_prefix(f"{parameter} ")
    return table_html(counts.reset_index(), f"At how many points each claim has which verdict, by {parameter}.")


def score_against(models: pd.DataFrame, parameter: str, sweep: str) -> Exhibit:
    """The scores of a sweep's models that were fine-tuned as usual, a dot each, by task and by a swept parameter.

    Args:
        models: the rows of the exhibit `models` of a sweep's table, where the model's own column is called
            ``table_<name>`` if it has the name of a swept parameter.
    """
    own = {name: models.get(f"table_{name}", models.get(name)) for name in ("task", "seed", *ORDINARY)}
    usual = [pd.to_numeric(own[name]) == value for name, value in ORDINARY.items()]
    drawn = pd.DataFrame({"task": own["task"], "seed": own["seed"], "score": pd.to_numeric(models["score"])})
    drawn = drawn.assign(value=f"{parameter} " + models[parameter].astype(str))[pd.concat(usual, axis=1).all(axis=1)]
    drawing = dots(drawn, "score", "task", "value", label="score")
    caption = f"Development score of the fine-tuned models against {parameter}: {in_words(drawn)}."
    return Exhibit(f"{sweep}-{parameter}", f"Score against {parameter}", caption, drawn, drawing)
