"""The runs of the book, how one is published, and their pages: the notebook as it stands (prose and code) with the
outputs of an executed copy whose code is the same, and after each exhibit what the paper's own shows
(``papers/in_the_papers.yaml``) and what this run shows.

The latter are findings: sentences about one published run, written by hand in the ``findings.yaml`` beside its records,
each with a condition that the build checks. CONTRIBUTING.md has an example.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Literal

import nbformat
import pandas as pd
import yaml
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel

from fivelenses import catalogue, judging, papers, records
from fivelenses.book.cards import by_value, render
from fivelenses.chapters import CHAPTERS, Chapter, ParameterError, settings
from fivelenses.execution import EXECUTED, code_cells, committed_page, of_chapter
from fivelenses.exhibits import Typographic, table_html
from fivelenses.files import RunError, checksums, folder_beside, records_folder, runs_folder, written_beside
from fivelenses.judging import CANNOT_BE_TESTED, FAILS, HOLDS, Verdict, short

LOCAL_PROFILE, LOCAL_RUN = "tiny", "tiny-toy-bert-seed-0"
TOY_ENCODERS = "toy-bert"  # encoders that have read nothing but the toy world, whatever the profile
SHOWN = re.compile(r'<(?:figure|div|details) class="(?:exhibit|claim)" id="([^"]+)"')
# A chapter's head has a paragraph that fits any run.
OF_ANY_RUN = re.compile(r"\*\*The answer (?:in numbers|here)\.\*\*.*?(?=\n\n|\Z)", re.DOTALL)
FINDINGS = "findings.yaml"
# Of a run's facts, those that its committed records keep.
PUBLISHED_FACTS = {"chapter", "profile", "parameters", "not_measured", "specifications", "device", "python", "versions"}
PUBLISHED_FACTS |= {"seconds", "training_seconds", "peak_memory"}
EXPRESSIONS = SandboxedEnvironment(undefined=StrictUndefined)
EXPRESSIONS.globals = {"abs": abs, "min": min, "max": max, "round": round}
# What a finding takes of a column, or of a claim and its intervals.
TAKES = ("", "mean", "min", "max", "sum", "count", "outcome", "groups", "holding", "failing", "estimate", "low", "high")
COUNTED = " [The last section](#the-claims) has all claims; reproduced here: {glue:text}`claims_reproduced`."


@dataclass(frozen=True)
class BookRun:
    """A run that the book has a page of: the folder of its executed page, exhibits and verdicts, and that of its
    committed records (None for a run of this machine). The one that leads is what its chapter's page shows; others have
    pages by their name (`small-all-MiniLM-L6-v2`).
    """

    chapter: Chapter
    profile: str
    folder: Path
    name: str
    leads: bool = True
    committed: Path | None = None

    @property
    def part(self) -> str:
        """The book's folder of its page: committed runs, or this machine's own."""
        return "published" if self.committed else "here"

    @property
    def page(self) -> str:
        """The address of its page from the book's first page, without suffix."""
        return f"{self.part}/{self.chapter.slug}" if self.leads else f"{self.part}/{self.name}/{self.chapter.slug}"

    @property
    def title(self) -> str:
        """The run in a reader's words."""
        encoder = self.name.removeprefix(f"{self.profile}-")
        world = "toy world" if self.profile == LOCAL_PROFILE or encoder.startswith(TOY_ENCODERS) else "real data"
        return f"{encoder}, {world}{'' if self.committed else ', this machine'}"


def published_runs() -> list[BookRun]:
    """The runs whose records are committed: by chapter, the leading run of each first."""
    runs = []
    for file in records.committed_folder().glob("*/[!.]*/run.json"):
        facts, folder = json.loads(file.read_text(encoding="utf-8")), file.parent
        of_run = CHAPTERS[facts["chapter"]], facts["profile"], committed_page(folder)
        runs.append(BookRun(*of_run, folder.parent.name, facts["leads"], folder))
    return sorted(runs, key=lambda run: (run.chapter.number, not run.leads, run.name))


def local_runs() -> list[BookRun]:
    """This machine's own runs on the toy world, whether they have been made or not."""
    folder = runs_folder() / LOCAL_PROFILE
    return [BookRun(chapter, LOCAL_PROFILE, folder / chapter.slug, LOCAL_RUN) for chapter in CHAPTERS.values()]


def run_here(folder: Path) -> BookRun:
    """A run of this machine that the book does not show."""
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    name = f"{facts['profile']}-{facts['parameters']['encoder'].replace('/', '-')}"
    return BookRun(CHAPTERS[facts["chapter"]], facts["profile"], folder, name)


def publish(number: int, profile: str = "small", overrides: dict | None = None) -> Path:
    """Copy the records of a chapter's run into ``book/records/<profile>-<encoder>/<chapter>``; a run without overrides
    leads its chapter. Refused: a run that is not current, or on a table of the reader's own.
    """
    job = of_chapter(number, profile, overrides)
    if own := [task.title for task in map(catalogue.find, job.parameters.tasks_trained()) if task.own]:
        instead = "which readers of a published page do not have: send a report instead"
        raise RunError(f"{own[0]} is a table of your own, {instead}.")
    if reason := job.reason:
        raise ParameterError(f"Chapter {number} has no current run on {profile} with these parameters: {reason}.")
    facts, measured = json.loads((job.place / "run.json").read_text(encoding="utf-8")), {}
    for file in (file for files in facts["records"].values() for file in files):
        name = file.removesuffix(".parquet").rpartition(".")[0]
        measured.setdefault(name, []).append(records.read(records_folder() / job.chapter.slug / file))
    merged = {name: records.merge(parts) for name, parts in measured.items()}
    encoder = short(job.parameters.encoder.rstrip("/")).replace("/", "-")
    return commit(number, f"{profile}-{encoder}", merged, facts, leads=not job.overrides)


def commit(number: int, name: str, measured: Mapping[str, records.Record], facts: Mapping, leads: bool) -> Path:
    """Write records, by the names of their files, and their ``run.json`` in the place of the published run of that
    name, whose findings stay. At most one run of a chapter leads; published anew, it goes on leading.
    """
    place = records.committed_folder() / name / CHAPTERS[number].slug
    leads |= any(run.leads and run.committed == place for run in published_runs())
    for led in (run.committed for run in published_runs() if leads and run.leads and run.chapter.number == number):
        _write_facts(led, json.loads((led / "run.json").read_text(encoding="utf-8")) | {"leads": False})
    with folder_beside(place) as partial:
        for measurement, record in measured.items():
            records.write(partial / f"{measurement}.parquet", record)
        _write_facts(partial, {one: facts[one] for one in facts if one in PUBLISHED_FACTS} | {"leads": leads})
        if (place / FINDINGS).is_file():
            shutil.copy(place / FINDINGS, partial)
    return place


def stamp(number: int) -> list[Path]:
    """Write the digest of today's measuring code into a chapter's published records, whose numbers stay; returns the
    folders of their runs. For a change of code that changes no number: the chapter on the toy world has to give equal
    tables before and after, which whoever asks for this has seen.
    """
    chapter = CHAPTERS[number]
    folders = [file.parent for file in sorted(records.committed_folder().glob(f"*/{chapter.slug}/run.json"))]
    for folder in folders:
        for file in sorted(folder.glob("[!.]*.parquet")):
            record = records.read(file)
            code = records.measuring_code(records.measuring_module(record.identity.function, chapter.measures))
            records.write(file, replace(record, identity=replace(record.identity, code=code)))
        _write_facts(folder, json.loads((folder / "run.json").read_text(encoding="utf-8")))
    return folders


def _write_facts(folder: Path, facts: Mapping[str, object]) -> None:
    with written_beside(folder / "run.json") as place:
        place.write_text(json.dumps({**facts, "files": checksums(folder)}, indent=1) + "\n", encoding="utf-8")


class Number(BaseModel, extra="forbid"):
    """Where a number comes from: a table (of an exhibit, or a record), or a claim."""

    exhibit: str = ""
    record: str = ""
    column: str = ""
    where: dict[str, object] = {}
    claim: str = ""
    part: str = ""
    group: str = ""
    take: Literal[TAKES] = ""


class Finding(BaseModel, extra="forbid"):
    """One sentence about a run; with its numbers filled in by `findings_of`."""

    says: str
    exhibit: str = ""
    holds: str = "true"
    numbers: dict[str, str | Number] = {}
    answer: bool = False
    introduction: bool = False


def findings_of(run: BookRun) -> list[Finding]:
    """The findings of a published run, their numbers filled in; none of a run of this machine. An entry that is not
    well formed, or whose condition does not hold, is a `RunError` that names its sentence.
    """
    file = run.committed and run.committed / FINDINGS
    if not file or not file.is_file():
        return []
    verdicts = {claim.key: verdict for claim, verdict in judging.load(run.folder)}
    tables, found = cache(partial(_table, run)), []
    for entry in yaml.safe_load(file.read_text(encoding="utf-8")):
        try:
            found.append(_filled(Finding(**entry), tables, verdicts))
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, OSError, TemplateError) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            said = f"The finding “{entry.get('says')}” in {file} does not hold of the records"
            raise RunError(f"{said}: {why}") from error
    return found


def _table(run: BookRun, record: str, exhibit: str) -> pd.DataFrame:
    """A run's record or exhibit, whichever is named."""
    if record:
        return records.read(run.committed / f"{record}.parquet").table
    return pd.read_parquet(run.folder / f"{exhibit}.parquet")


def _filled(finding: Finding, tables: Callable[[str, str], pd.DataFrame], verdicts: Mapping[str, Verdict]) -> Finding:
    if finding.exhibit:
        tables("", finding.exhibit)  # there has to be one
    names: dict[str, object] = {}
    for name, number in finding.numbers.items():
        if isinstance(number, str):
            names[name] = evaluate(number, names)
        elif number.claim:
            names[name] = _of_claim(number, verdicts[number.claim])
        else:
            names[name] = _of_table(number, tables(number.record, number.exhibit or finding.exhibit))
    if evaluate(finding.holds, names) is not True:
        values = ", ".join(f"{name} = {value}" for name, value in names.items())
        raise ValueError(f"{finding.holds} is not true ({values}): rewrite or remove it.")
    return finding.model_copy(update={"says": Typographic().vformat(finding.says, (), names)})


def evaluate(expression: str, names: Mapping[str, object]) -> object:
    """The value of an expression, as Jinja reads it: arithmetic, comparisons, `and`, `or`, `not`, abs, min, max, round.

    >>> evaluate("0.5 < top / low <= 4 and verdict == 'open'", {"top": 3.0, "low": 1.5, "verdict": "open"})
    True
    """
    return EXPRESSIONS.compile_expression(expression, undefined_to_none=False)(**names)


def _of_table(number: Number, table: pd.DataFrame) -> object:
    for column, values in number.where.items():
        table = table[table[column].isin(values if isinstance(values, list) else [values])]
    return _taken(table[number.column], number.take)


def _of_claim(number: Number, verdict: Verdict) -> object:
    counts = {"outcome": verdict.outcome, "groups": len(verdict.groups)}
    counts |= {"holding": len(verdict.of(HOLDS)), "failing": len(verdict.of(FAILS))}
    if number.take in counts:
        return counts[number.take]
    parts = [part for group in verdict.groups for part in group.parts if number.group in ("", group.name)]
    ends = [(one.interval.estimate, *one.interval.uncensored()) for one in parts if number.part in ("", one.name)]
    table = pd.DataFrame(ends, columns=["estimate", "low", "high"], dtype=float)
    return _taken(table[number.take], "") if number.take in table else _taken(table["estimate"], number.take)


def _taken(values: pd.Series, take: str) -> object:
    """One number of a column; the only one of its values where nothing else is asked for."""
    if not take and values.nunique(dropna=False) != 1:
        raise ValueError(f"{values.nunique()} values are left: narrow `where`, or say what to take")
    taken = getattr(values, take)() if take else values.iloc[0]
    if pd.isna(taken):
        raise ValueError("no row is left, or its value is missing")
    return taken.item() if hasattr(taken, "item") else taken


def assemble(run: BookRun, static: Path, others: Iterable[BookRun] = ()) -> nbformat.NotebookNode:
    """The page of a finished run: the notebook with outputs, what the paper and the run show, and what became otherwise
    of its claims in `others`. The notebook without outputs goes into ``notebooks`` among the `static` files. A cell
    that printed a warning is a `RunError`.
    """
    page, copy = (nbformat.read(file, as_version=4) for file in (run.chapter.notebook, run.folder / EXECUTED))
    (static / "notebooks").mkdir(parents=True, exist_ok=True)
    nbformat.write(page, static / "notebooks" / run.chapter.notebook.name)
    said = findings_of(run)
    below = below_exhibits(said) | below_claims(run, others)
    for cell, executed in zip(code_cells(page), code_cells(copy), strict=True):
        if any(output.output_type == "stream" for output in executed.outputs):
            where = f"A cell of chapter {run.chapter.number} ({run.profile}) printed a warning"
            raise RunError(f"{where}: remove {run.folder} and give the same command again.")
        cell.execution_count = executed.execution_count
        cell.outputs = [one for output in executed.outputs for one in with_words(output, below)]
    heading, _, rest = page.cells[0].source.partition("\n")
    heading = f"{heading}{'' if heading.endswith('?') else ':'} {run.title}"
    page.cells[0].source = f"{heading}\n{answered(rest, [one.says for one in said if one.answer])}"
    # A name of its own for this cell, not one from chance: equal content is an equal page.
    page.cells.insert(1, nbformat.v4.new_markdown_cell(the_run(run), id="the-run"))
    return page


def answered(head: str, sentences: Iterable[str]) -> str:
    """The head of a chapter with sentences about one run in the place of those that fit any run."""
    points = "".join(f"\n- {sentence}" for sentence in sentences)
    counted = COUNTED if "(#the-claims)" in head else ""
    # As a function, whose backslashes are none of a pattern.
    return OF_ANY_RUN.sub(lambda _: f"**What this run shows.**{counted}\n{points}", head) if points else head


def below_exhibits(said: Iterable[Finding]) -> dict[str, str]:
    """What is printed below each exhibit, by its key, in Markdown."""
    of_papers = Path(papers.__file__).with_name("in_the_papers.yaml").read_text(encoding="utf-8")
    below = {key: f"*In the paper*: {sentence}" for key, sentence in yaml.safe_load(of_papers).items()}
    for key, sentences in by_value({one.says: one.exhibit for one in said if one.exhibit}).items():
        paragraph = f'<span id="finding-{key}" class="finding"></span>*In this run*: {" ".join(sentences)}'
        below[key] = f"{below[key]}\n\n{paragraph}" if key in below else paragraph
    return below


def below_claims(run: BookRun, others: Iterable[BookRun]) -> dict[str, str]:
    """What is printed below the card of each claim that other runs of the chapter decide otherwise, by its address."""
    below: dict[str, str] = {}
    for other in (one for one in others if one.chapter == run.chapter and one != run):
        outcomes = {claim.key: verdict.outcome for claim, verdict in judging.load(run.folder)}
        page = os.path.relpath(f"{other.page}.html", Path(run.page).parent)
        for claim, verdict in judging.load(other.folder):
            address, both = f"claim-{claim.key}", {verdict.outcome, outcomes.get(claim.key, CANNOT_BE_TESTED)}
            if len(both) == 2 and CANNOT_BE_TESTED not in both:
                link = f"*{verdict.outcome}* on [{other.title}]({page}#{address})"
                below[address] = f"{below[address]}; {link}" if address in below else f"In other runs: {link}"
    return below


def with_words(output: nbformat.NotebookNode, below: Mapping[str, str]) -> list[nbformat.NotebookNode]:
    """An output, and what is said below the exhibit or the card that it shows."""
    shown = SHOWN.search(output.get("data", {}).get("text/html", ""))
    if shown is None or shown[1] not in below:
        return [output]
    return [output, nbformat.v4.new_output("display_data", {"text/markdown": below[shown[1]]})]


def the_run(run: BookRun) -> str:
    """What a page says of its run: one paragraph, and the settings beside the paper's, folded below."""
    facts = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    trained, measured = (timedelta(seconds=round(facts[name])) for name in ("training_seconds", "seconds"))
    times = f"training took {trained}, measuring {measured} (h:mm:ss)"
    table = settings_table(run.chapter, facts["parameters"])
    return render("run.md", run=run, facts=facts, times=times, table=table, by_value=by_value)


def settings_table(chapter: Chapter, parameters: Mapping) -> str:
    """The settings of a run beside the paper's (the profile `paper`), as a table; those of a mapping one by one.
    Schedules of tasks and rates of encoders that are not trained are left out.
    """
    columns = {"this run": chapter.parameters(**parameters)}
    if "paper" in chapter.parameters.profiles:
        columns["profile paper"] = settings(chapter.number, "paper")
    for name, used in columns.items():
        trained = {"schedules": used.tasks_trained(), "learning_rate_by_encoder": used.encoders_used()}
        columns[name] = used.model_dump(mode="json")
        for mapping, keys in trained.items():
            columns[name][mapping] = {key: one for key, one in columns[name][mapping].items() if key in keys}
    table = pd.concat([pd.json_normalize(one, sep=", ", max_level=1).T for one in columns.values()], axis=1)
    table = table.dropna(how="all").map(json.dumps, na_action="ignore").set_axis(list(columns), axis=1)
    caption = f"The settings of this run{', and the paper’s' * (len(columns) > 1)}."
    if parameters.get("frozen"):
        caption += " Of frozen and truncated, layers that the encoder does not have are left out."
    return table_html(table.rename_axis("setting").reset_index(), caption)
