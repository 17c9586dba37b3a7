"""The book: pages and runs are gathered in one folder, checked, and built with jupyter-book, warnings as errors.

A run that is missing, failed, unfinished or out of step stops the build with a sentence that names the command to run.
"""

import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from html import escape
from pathlib import Path

import nbformat
import pandas as pd
import yaml
from bs4 import BeautifulSoup

from fivelenses import catalogue, judging, project, records
from fivelenses.chapters import CHAPTERS, settings
from fivelenses.execution import RunError, run_all, state
from fivelenses.files import folder_beside
from fivelenses.lenses.checks import invariance_table
from fivelenses.runs import ledger, sweep_page
from fivelenses.runs.pages import HERE, PUBLISHED, Shown, assemble, local_runs, published_runs, telling_picture
from fivelenses.runs.unchanged import first_page
from fivelenses.sweep import sweeps_folder

SWEEPS = sweep_page.PAGE.removesuffix(".md")
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
OTHER_RUNS = "## The same chapter on other encoders"
AWAITED = """# Chapter {number} on this machine

Not measured yet: `make` measures it on the toy world, and builds the book again when it is done.
"""


def stage(folder: Path, runs: Sequence[Shown]) -> None:
    """Gather configuration, pages, chapters and generated tables in one folder.

    Args:
        folder: is made.
        runs: the runs that the book shows.

    Raises:
        RunError: a chapter's run is missing, failed, unfinished or out of step.
    """
    # All of them first: the page of a published run shows what became of the same chapter here.
    for shown in (run for run in runs if run.part == HERE):
        parameters = settings(shown.chapter.number, shown.profile).model_dump(mode="json")
        reason = state(shown.chapter, shown.folder, parameters)
        if reason:
            raise RunError(
                f"Chapter {shown.chapter.number} cannot be shown on profile {shown.profile} ({reason}): "
                f"run `fivelenses run {shown.chapter.number} --profile {shown.profile}`."
            )
    root, static = project.root(), folder / "_static"
    shutil.copytree(root / "book", folder, ignore=shutil.ignore_patterns("records"))
    configuration = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    repository = configuration.get("repository", {}).get("url", "")
    for shown in runs:
        page = linked(assemble(shown, static, repository), shown, {run.page for run in runs})
        # Its own picture stands above.
        same = [run for run in runs if run.chapter == shown.chapter and run != shown]
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
    generated = {"ledger": ledger.page, "matrix": ledger.matrix, "findings": ledger.told_first}
    for name, made in generated.items():
        (folder / "_generated" / f"{name}.html").write_text(made(runs), encoding="utf-8")
    scores = encoder_scores(runs).to_csv(index=False, float_format="%.3f", na_rep="–")
    (folder / "_generated" / "encoder-scores.csv").write_text(scores, encoding="utf-8")
    (folder / "_generated" / "invariances.csv").write_text(invariance_table().to_csv(index=False), encoding="utf-8")
    configuration.setdefault("parse", {})["myst_substitutions"] = substitutions(runs)
    (folder / "_config.yml").write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    (folder / "_toc.yml").write_text(
        yaml.safe_dump(_table_of_contents(contents, runs, folder), sort_keys=False), encoding="utf-8"
    )


def linked(page: nbformat.NotebookNode, shown: Shown, pages: Collection[str]) -> nbformat.NotebookNode:
    """The page of another encoder, where a link to a chapter that this encoder has not run leads to the run that leads.

    Args:
        page: the assembled page; its cells are changed.
        shown: its run; the pages of leading runs lie side by side, and their links stay as they are.
        pages: the addresses of the book's pages, without suffix.
    """
    if shown.leads:
        return page
    folder = shown.page.rpartition("/")[0]
    for cell in page.cells:
        for chapter in CHAPTERS.values():
            if cell.cell_type == "markdown" and f"{folder}/{chapter.slug}" not in pages:
                cell.source = cell.source.replace(f"]({chapter.slug}.ipynb", f"](../{chapter.slug}.ipynb")
    return page


def _table_of_contents(contents: dict, runs: Sequence[Shown], folder: Path) -> dict:
    """The project's table of contents, with the pages of other encoders under their chapter's, and without the page of
    sweeps where there are none.
    """
    pages = {shown.page: shown for shown in runs}
    parts = []
    for part in contents["parts"]:
        chapters = []
        for entry in part["chapters"]:
            if entry["file"] == SWEEPS and not (folder / sweep_page.PAGE).is_file():
                continue
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
    """What pages that are no notebooks print of the runs: counts of verdicts, and how often lenses were right."""
    counts = {}
    for number, part in ((chapter.number, part) for chapter in CHAPTERS.values() for part in (PUBLISHED, HERE)):
        leading = [run for run in runs if run.chapter.number == number and run.part == part and run.leads]
        outcomes = [verdict.outcome for run in leading for _, verdict in judging.load(run.folder)]
        prefix = f"chapter{number}_{part}"
        for outcome in judging.OUTCOMES:
            counts[f"{prefix}_{outcome.replace(' ', '_')}"] = str(outcomes.count(outcome)) if leading else "–"
        counts[f"{prefix}_claims"] = str(len(outcomes)) if leading else "–"
    for prefix, encoder in (("known", "toy-bert"), ("real", "all-MiniLM")):
        counts |= {f"{prefix}_{key}": words for key, words in cases_of_lenses(runs, encoder).items()}
    return counts


def cases_of_lenses(runs: Sequence[Shown], encoder: str) -> dict[str, str]:
    """In how many cases of chapter 7 lenses name a trained layer of an encoder, by their value and by what a layer
    adds; dashes where no run is published.
    """
    published = [run for run in runs if run.chapter.number == KNOWN_TRUTH and run.part == PUBLISHED]
    folder = next((run.folder for run in published if encoder in run.name), None)
    table = pd.DataFrame() if folder is None else pd.read_parquet(folder / "known-truth-places.parquet")
    quoted = {measure: ([measure], "value") for measure in ("weights", "last", "rollback", "js")}
    quoted |= {"features": (FEATURES, "value"), "features_added": (FEATURES, "adds")}
    words = {}
    for key, (measures, reading) in quoted.items():
        rows = table if table.empty else table[table["measure"].isin(measures) & (table["reading"] == reading)]
        ends = [] if rows.empty else dict.fromkeys([rows["right"].min(), rows["right"].max()])
        words[key] = f"in {' to '.join(map(str, ends))} of {rows['of'].max()} cases" if ends else "–"
    return words


def encoder_scores(runs: Iterable[Shown]) -> pd.DataFrame:
    """How well the encoders of published runs learn each task, for the page on encoders.

    Returns:
        One row per task, training set and number of epochs, with a column per encoder: the mean score of its models
        that were fine-tuned as usual on the largest training set that it has of the task. Chapter 7, whose trainings
        differ in length by design, is left out.
    """
    places = [run.committed for run in runs if run.committed and run.chapter.number != KNOWN_TRUTH]
    models = _every(places, "models").drop_duplicates("address")
    models = models[~models["encoder"].str.startswith("random:")]
    models = judging.ordinary(models.assign(encoder=[_without_owner(name) for name in models["encoder"]]))
    models = models[models["examples"] == models.groupby(["encoder", "task"])["examples"].transform("max")]
    words = _every(places, "words_by_example")
    words = words if words.empty else words.drop_duplicates(["task", "examples", "seed", "example"])
    rows = []
    for (task, examples, epochs), of_task in models.groupby(["task", "examples", "epochs"]):
        known, null = catalogue.find(task), of_task["null_rate"].iloc[0]
        row = {"task": known.title, "score (null rate)": f"{known.score_name} ({null:.3f})"}
        row |= {"examples": f"{examples:,}", "epochs": f"{epochs:g}"}
        if not words.empty:
            alike = words[(words["task"] == task) & (words["examples"] == examples)]
            row["bag of words"] = None if alike.empty else judging.score(alike).estimate
        rows.append(row | of_task.groupby("encoder")["score"].mean().to_dict())
    return pd.DataFrame(rows)


def _every(places: Iterable[Path], name: str) -> pd.DataFrame:
    """The records of that name of several runs as one table; empty where no run has it."""
    files = [place / f"{name}.parquet" for place in places]
    return pd.concat([pd.DataFrame(), *(records.read(file).table for file in files if file.is_file())])


def _without_owner(encoder: str) -> str:
    """The name of an encoder without its owner, and one name for all pre-trainings of an encoder.

    Example:
        >>> _without_owner("sentence-transformers/all-MiniLM-L6-v2"), _without_owner("english-bert/seed-0")
        ('all-MiniLM-L6-v2', 'english-bert')
    """
    owner, _, name = encoder.rpartition("/")
    return owner if name.startswith("seed-") else name


def _gather_mathjax(folder: Path) -> None:
    """MathJax, put beside the pages when they are built: a script that is staged with them is loaded by each, a second
    time.
    """
    (folder / "mathjax").mkdir(parents=True)
    for file in importlib.metadata.files("sphinx-mathjax-offline") or []:
        if file.name == MATHJAX:
            shutil.copy(file.locate(), folder / "mathjax" / MATHJAX)
            return
    raise RunError(f"The package sphinx-mathjax-offline holds no {MATHJAX}: reinstall the environment with `make`.")


def _mend_bibliography(html: Path) -> None:
    """Name the entries of the bibliography what the list around them asks for; screen readers take them for none."""
    page = html / "references.html"
    written = page.read_text(encoding="utf-8")
    page.write_text(written.replace('role="doc-biblioentry"', 'role="listitem"'), encoding="utf-8")


def _hover_over_terms(html: Path) -> None:
    """Put the glossary's meaning of a term on every link to it, where a browser shows it under the pointer."""
    glossary = BeautifulSoup((html / "glossary.html").read_text(encoding="utf-8"), "html.parser")
    names = glossary.select("dl.glossary > dt[id]")
    meanings = {name["id"]: " ".join(name.find_next_sibling("dd").get_text().split()) for name in names}

    def with_meaning(link: re.Match) -> str:
        return f'{link[0]} title="{escape(meanings[link[1]])}"'

    for page in html.rglob("*.html"):
        written = page.read_text(encoding="utf-8")
        linked = re.sub(
            r'<a class="reference internal" href="[^"#]*glossary\.html#(term-[^"]+)"', with_meaning, written
        )
        if linked != written:
            page.write_text(linked, encoding="utf-8")


def _complete(html: Path) -> None:
    """What built pages need that the builder does not put there."""
    _gather_mathjax(html / "_static")
    _mend_bibliography(html)
    _hover_over_terms(html)


def _jupyter_book(source: Path, output: Path, *options: str) -> tuple[bool, str]:
    """Build the pages of a folder; whether that failed, and what the builder printed."""
    arguments = ["build", str(source), "--path-output", str(output), *options]
    ended = subprocess.run([sys.executable, "-c", BUILDER, *arguments], capture_output=True, text=True)
    return bool(ended.returncode), ended.stdout + ended.stderr


def build_page(shown: Shown) -> Path:
    """A run's page as a book of one page, with the glossary and the references; links to the rest of the book are plain
    text. It goes into the run's folder.

    Raises:
        RunError: the run is unfinished or damaged, or the page did not build.
    """
    root, place = project.root(), shown.folder / "page"
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        source, html = work / "source", work / "_build" / "html"
        shutil.copytree(root / "book" / "_static", source / "_static")
        for file in ("_config.yml", "book/glossary.md", "book/references.md", "book/references.bib"):
            shutil.copy(root / file, source)
        (source / shown.page).parent.mkdir()
        page = assemble(shown, source / "_static")
        for cell in (cell for cell in page.cells if cell.cell_type == "markdown"):
            # The builder takes a link from the book's first folder for one within the page.
            cell.source = re.sub(r"\[([^\]]+)\]\(/[^)]*\)", r"\1", cell.source)
        nbformat.write(page, source / f"{shown.page}.ipynb")
        contents = {"format": "jb-book", "root": shown.page, "chapters": [{"file": "glossary"}, {"file": "references"}]}
        (source / "_toc.yml").write_text(yaml.safe_dump(contents), encoding="utf-8")
        failed, printed = _jupyter_book(source, work)
        if failed:
            last = (printed.strip().splitlines() or ["it printed nothing"])[-1]
            raise RunError(f"The page of chapter {shown.chapter.number} ({shown.profile}) did not build: {last}")
        _complete(html)
        with folder_beside(place) as partial:
            shutil.copytree(html, partial, dirs_exist_ok=True)
    return place / f"{shown.page}.html"


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
    run_all(committed=[run.committed for run in published])
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
    for gone in _take_over(staged, work / "source"):
        # The builder would leave the page of a source that is no more.
        (work / "_build" / "html" / gone).with_suffix(".html").unlink(missing_ok=True)
    shutil.rmtree(staged)
    failed, output = _jupyter_book(work / "source", work, "-W", "-n", "--keep-going")
    if failed:
        lines = [line for line in output.splitlines() if "WARNING" in line or "ERROR" in line]
        complaints = folder / "build.log"
        complaints.write_text(output, encoding="utf-8")
        first = (lines or ["no line of its log says why"])[0].replace(str(work / "source"), "book")
        # A page whose warning was seen would pass as built the next time.
        shutil.rmtree(work)
        raise RunError(f"The book did not build: {first} ({len(lines)} such lines in {complaints}).")
    finished = folder / "finished"
    shutil.rmtree(finished, ignore_errors=True)
    shutil.copytree(work / "_build" / "html", finished)
    # The builder takes over a changed style or script only where a page has changed, too.
    shutil.copytree(work / "source" / "_static", finished / "_static", dirs_exist_ok=True)
    _complete(finished)
    ledger.verdict_table(published).to_csv(finished / "verdicts.csv", index=False)
    stamp.unlink(missing_ok=True)
    (folder / "build.log").unlink(missing_ok=True)
    shutil.rmtree(folder / "html", ignore_errors=True)
    finished.rename(folder / "html")
    stamp.write_text(digest, encoding="utf-8")
    return page


def _take_over(staged: Path, source: Path) -> list[Path]:
    """Bring a folder of sources up to what was staged, and say which files are gone from it; files of the same content
    keep their time of change.
    """
    new = {file.relative_to(staged): file for file in staged.rglob("*") if file.is_file()}
    gone = [file.relative_to(source) for file in source.rglob("*") if file.is_file()]
    gone = [name for name in gone if name not in new]
    for name in gone:
        (source / name).unlink()
    for name, file in new.items():
        place = source / name
        if not place.is_file() or place.read_bytes() != file.read_bytes():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
    return gone


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
