"""The book: pages and runs are gathered in one folder and built with jupyter-book, warnings as errors."""

import hashlib
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from html import escape
from pathlib import Path

import nbformat
import pandas as pd
import yaml
from bs4 import BeautifulSoup

from fivelenses import catalogue, judging, project, records
from fivelenses.book import ledger, sweeps
from fivelenses.book.pages import HERE, LOCAL_PROFILE, PUBLISHED, BookRun, assemble, local_runs, published_runs
from fivelenses.chapters import CHAPTERS, settings
from fivelenses.execution import RunError, run_all, state
from fivelenses.files import folder_beside
from fivelenses.lenses.checks import invariance_table

KNOWN_TRUTH = 7  # the chapter whose counts other pages quote
FEATURES = ("svcca", "pwcca", "cka", "rsa", "cka_debiased", "procrustes", "neighbours")
MATHJAX = "tex-svg.js"  # one file that draws without fonts: all that a page needs of MathJax
# The builder, which ends with this process.
BUILDER = """
from fivelenses.processes import end_with_caller
from jupyter_book.cli.main import main
end_with_caller()
main()
"""
OTHER_RUNS = """## The same chapter on other encoders

```{{raw}} html
{matrix}
```"""
WAITING = """# Chapter {number} on this machine

Not measured yet: `make` measures it on the toy world, and builds the book again when it is done.
"""


def first_page() -> Path:
    """Where the first page of the built book is."""
    return project.root() / "build" / "book" / "html" / "index.html"


def build(log: Callable[[str], None] = print, published_alone: bool = False, measure: bool = False) -> Path:
    """Build the book and return its first page; a book of the same content is left as it is.

    Args:
        log: called with one line for each event.
        published_alone: show each chapter's leading run alone, for a first look before this machine's own are made.
        measure: make this machine's own runs first.

    Raises:
        RunError: a chapter is missing or out of step, or the build gave a warning.
    """
    # A first look, which is there a minute sooner, has one run per chapter, and all of that which other pages quote.
    published = [
        run for run in published_runs() if run.leads or run.chapter.number == KNOWN_TRUTH or not published_alone
    ]
    run_all(LOCAL_PROFILE if measure else None, committed=[run.committed for run in published])
    runs = published + ([] if published_alone else local_runs())
    page, stamp = first_page(), first_page().parents[1] / "made-from.sha256"
    digest = _made_from(runs)
    if page.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
        log("book: current")
        return page
    log("book: building")
    work = page.parents[1] / "work"
    shutil.rmtree(work, ignore_errors=True)
    stage(work / "source", runs)
    html = jupyter_book(work / "source", work, "-W", "-n", "--keep-going")
    ledger.verdict_table(published).to_csv(html / "verdicts.csv", index=False)
    stamp.unlink(missing_ok=True)
    with folder_beside(page.parent) as partial:
        shutil.copytree(html, partial, dirs_exist_ok=True)
    stamp.write_text(digest, encoding="utf-8")
    return page


def build_page(run: BookRun) -> Path:
    """A run's page as a book of one page, with the glossary and the references; links to the rest of the book are plain
    text. It goes into the run's folder.
    """
    root, work = project.root(), run.folder / ".page"
    shutil.rmtree(work, ignore_errors=True)
    source = work / "source"
    shutil.copytree(root / "book" / "_static", source / "_static")
    for file in ("_config.yml", "book/glossary.md", "book/references.md", "book/references.bib"):
        shutil.copy(root / file, source)
    page = assemble(run, source / "_static")
    for cell in (cell for cell in page.cells if cell.cell_type == "markdown"):
        # The builder takes a link from the book's first folder for one within the page.
        cell.source = re.sub(r"\[([^\]]+)\]\(/[^)]*\)", r"\1", cell.source)
    write_notebook(page, source / f"{run.page}.ipynb")
    contents = {"format": "jb-book", "root": run.page, "chapters": [{"file": "glossary"}, {"file": "references"}]}
    (source / "_toc.yml").write_text(yaml.safe_dump(contents), encoding="utf-8")
    with folder_beside(run.folder / "page") as partial:
        shutil.copytree(jupyter_book(source, work), partial, dirs_exist_ok=True)
    shutil.rmtree(work)
    return run.folder / "page" / f"{run.page}.html"


def jupyter_book(source: Path, output: Path, *options: str) -> Path:
    """Build the pages of a folder and return the folder of their HTML.

    Refused with the first warning; the builder's log lies in the output folder.
    """
    arguments = ["build", str(source), "--path-output", str(output), *options]
    ended = subprocess.run([sys.executable, "-c", BUILDER, *arguments], capture_output=True, text=True)
    if ended.returncode:
        log = output / "build.log"
        log.write_text(ended.stdout + ended.stderr, encoding="utf-8")
        lines = [line for line in log.read_text().splitlines() if "WARNING" in line or "ERROR" in line]
        first = (lines or ended.stderr.strip().splitlines()[-1:] or ["it printed nothing"])[0]
        raise RunError(
            f"The book did not build: {first.replace(str(source), 'book')} ({len(lines)} such lines in {log})."
        )
    html = output / "_build" / "html"
    add_meanings_of_terms(html)
    # Beside the pages when they are built: each would load a script that is staged with them, a second time.
    (html / "_static" / "mathjax").mkdir(parents=True, exist_ok=True)
    for file in importlib.metadata.files("sphinx-mathjax-offline"):
        if file.name == MATHJAX:
            shutil.copy(file.locate(), html / "_static" / "mathjax" / MATHJAX)
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


def stage(folder: Path, runs: Sequence[BookRun]) -> None:
    """Gather configuration, pages, chapters and generated tables in one folder, which is made.

    A chapter that this machine has not run has a page that says so if no local run is among the runs of the book.
    """
    for run in (run for run in runs if run.part == HERE):
        reason = state(run.chapter, run.folder, settings(run.chapter.number, run.profile).model_dump(mode="json"))
        if reason:
            raise RunError(
                f"Chapter {run.chapter.number} cannot be shown on profile {run.profile} ({reason}): "
                f"run `fivelenses run {run.chapter.number} --profile {run.profile}`."
            )
    root = project.root()
    shutil.copytree(root / "book", folder, ignore=shutil.ignore_patterns("records"))
    for run in runs:
        page = linked(assemble(run, folder / "_static"), run, {run.page for run in runs})
        same = [other for other in runs if other.chapter == run.chapter]
        if len(same) > 1:
            matrix = ledger.matrix_html(same, None, run.up)
            page.cells.append(nbformat.v4.new_markdown_cell(OTHER_RUNS.format(matrix=matrix), id="other-runs"))
        write_notebook(page, folder / f"{run.page}.ipynb")
    for run in local_runs() if all(run.part == PUBLISHED for run in runs) else ():
        waiting = nbformat.v4.new_markdown_cell(WAITING.format(number=run.chapter.number), id="waiting")
        write_notebook(nbformat.v4.new_notebook(cells=[waiting]), folder / f"{run.page}.ipynb")
    sweeps.write_page(folder)
    write_generated(folder / "_generated", runs)
    configuration = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    configuration["parse"]["myst_substitutions"] = cases_of_lenses(runs, "known", "toy-bert") | cases_of_lenses(
        runs, "real", "all-MiniLM"
    )
    configuration["sphinx"]["config"]["version"] = importlib.metadata.version("fivelenses")
    (folder / "_config.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    contents = table_of_contents(contents, runs, folder)
    (folder / "_toc.yml").write_text(yaml.safe_dump(contents), encoding="utf-8")


def write_generated(folder: Path, runs: Sequence[BookRun]) -> None:
    """The tables and pieces of pages that are made from runs and from the library."""
    folder.mkdir()
    generated = {
        "ledger.html": ledger.ledger_html(runs),
        "matrix.html": ledger.matrix_html(ledger.of_papers(runs)),
        "findings.html": ledger.findings_html(runs),
        "encoder-scores.csv": encoder_scores(runs).to_csv(index=False, float_format="%.3f", na_rep="–"),
        "invariances.csv": invariance_table().to_csv(index=False),
        "comparison.html": comparison_html(),
    }
    for name, text in generated.items():
        (folder / name).write_text(text, encoding="utf-8")


def comparison_html() -> str:
    """The comparison of two checkpoints that a page shows, from the file that the command wrote."""
    from fivelenses.two_checkpoints import Comparison  # its libraries take seconds, and only a whole book needs them

    read = json.loads((project.root() / "book" / "comparison.json").read_text(encoding="utf-8"))
    return Comparison(**read | {"measures": pd.DataFrame(read["measures"])}).html


def write_notebook(page: nbformat.NotebookNode, place: Path) -> None:
    """A page, in a folder that is made."""
    place.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(page, place)


def linked(page: nbformat.NotebookNode, run: BookRun, pages: Collection[str]) -> nbformat.NotebookNode:
    """The page of another encoder, where a link to a chapter that this encoder has not run leads to the run that leads;
    `pages` are the addresses of the book's pages, without suffix.
    """
    folder = run.page.rpartition("/")[0]
    others = [one.slug for one in CHAPTERS.values() if not run.leads and f"{folder}/{one.slug}" not in pages]
    for cell in (cell for cell in page.cells if cell.cell_type == "markdown"):
        for slug in others:
            cell.source = cell.source.replace(f"]({slug}.ipynb", f"](../{slug}.ipynb")
    return page


def table_of_contents(contents: dict, runs: Sequence[BookRun], folder: Path) -> dict:
    """The project's table of contents, with the pages of other encoders under their chapter's, and without the page of
    sweeps where there are none.
    """
    for part in contents["parts"]:
        part["chapters"] = [entry for entry in part["chapters"] if list(folder.glob(f"{entry['file']}.*"))]
        for entry in part["chapters"]:
            where, _, slug = entry["file"].rpartition("/")
            others = [run for run in runs if (run.part, run.chapter.slug) == (where, slug) and not run.leads]
            entry |= {"sections": [{"file": run.page, "title": run.title} for run in others]} if others else {}
    return contents


def cases_of_lenses(runs: Sequence[BookRun], prefix: str, encoder: str) -> dict[str, str]:
    """What pages that are no notebooks print of chapter 7: in how many cases lenses name a trained layer of an encoder,
    by their value and by what a layer adds; dashes where no run is published.
    """
    published = [run for run in runs if run.chapter.number == KNOWN_TRUTH and encoder in run.name and run.committed]
    quoted = {measure: ((measure,), "value") for measure in ("weights", "last", "rollback", "js")}
    quoted |= {"features": (FEATURES, "value"), "features_added": (FEATURES, "adds")}
    if not published:
        return {f"{prefix}_{name}": "–" for name in quoted}
    table, words = pd.read_parquet(published[0].folder / "known-truth-places.parquet"), {}
    for name, (measures, reading) in quoted.items():
        rows = table[table["measure"].isin(measures) & (table["reading"] == reading)]
        ends = dict.fromkeys([rows["right"].min(), rows["right"].max()])
        words[f"{prefix}_{name}"] = f"in {' to '.join(map(str, ends))} of {rows['of'].max()} cases"
    return words


def encoder_scores(runs: Iterable[BookRun]) -> pd.DataFrame:
    """One row per task, training set and number of epochs, with a column per encoder: the mean score of its models
    that were fine-tuned as usual on the largest training set that it has of the task. Chapter 7, whose trainings differ
    in length by design, is left out.
    """
    places = [run.committed for run in runs if run.committed and run.chapter.number != KNOWN_TRUTH]
    models = every_record(places, "models").drop_duplicates("address")
    models = models[~models["encoder"].str.startswith("random:")]
    # One name for all pre-trainings of an encoder, and without its owner.
    names = models["encoder"].str.replace(r"/seed-\d+$", "", regex=True).str.rpartition("/")[2]
    models = judging.ordinary(models.assign(encoder=names))
    models = models[models["examples"] == models.groupby(["encoder", "task"])["examples"].transform("max")]
    alike = ["task", "examples", "epochs"]
    table = models.pivot_table("score", alike, "encoder").reset_index()
    words = every_record(places, "words_by_example")
    if len(words):
        words = words.drop_duplicates(["task", "examples", "seed", "example"]).groupby(["task", "examples"])
        scores = {key: judging.score(rows).estimate for key, rows in words}
        keys = zip(table["task"], table["examples"], strict=True)
        table.insert(3, "bag of words", [scores.get(key) for key in keys])
    nulls = models.groupby("task")["null_rate"].first()
    known = [(catalogue.find(task), nulls[task]) for task in table["task"]]
    table["task"] = [task.title for task, _ in known]
    table.insert(1, "score (null rate)", [f"{task.score_name} ({null:.3f})" for task, null in known])
    return table.assign(examples=table["examples"].map("{:,}".format), epochs=table["epochs"].map("{:g}".format))


def every_record(places: Iterable[Path], name: str) -> pd.DataFrame:
    """The records of that name of several runs as one table; empty where no run has it."""
    files = [place / f"{name}.parquet" for place in places]
    return pd.concat([pd.DataFrame(), *(records.read(file).table for file in files if file.is_file())])


def _made_from(runs: Sequence[BookRun]) -> str:
    """A digest of all that a book is made from: pages, notebooks, runs, sweeps, and the library that it documents."""
    root = project.root()
    files = [file for file in (root / "book").rglob("*") if file.suffix != ".parquet"]
    files += [root / "_config.yml", root / "_toc.yml", *(root / "notebooks").glob("*.ipynb")]
    files += [file for package in records.PACKAGES for file in (records.LIBRARY / package).rglob("*.*")]
    # A run's facts hold the checksums of its other files.
    files += [run.folder / "run.json" for run in runs] + list(project.runs_folder().glob("sweeps/*/*"))
    content = hashlib.sha256(repr([run.page for run in runs]).encode())
    for file in sorted(file for file in files if file.is_file() and file.suffix != ".pyc"):
        content.update(file.name.encode() + b"\0" + file.read_bytes())
    return content.hexdigest()
