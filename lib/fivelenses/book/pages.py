"""A chapter's page: the notebook as it stands (prose and code) with the outputs of an executed copy whose code is the
same.

After each exhibit come what the paper's own shows (``papers/in_the_papers.yaml``) and what this run shows (the findings
beside a published run's records).
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import nbformat
import pandas as pd
import yaml

from fivelenses import papers, records
from fivelenses.book.cards import by_value
from fivelenses.book.findings import Finding, findings
from fivelenses.chapters import CHAPTERS, Chapter, folder_name, settings
from fivelenses.execution import EXECUTED, RunError, code_cells, committed_page
from fivelenses.exhibits import table_html
from fivelenses.files import runs_folder

LOCAL_PROFILE, LOCAL_RUN = "tiny", "tiny-toy-bert-seed-0"
TOY_ENCODERS = "toy-bert"  # encoders that have read nothing but the toy world, whatever the profile
EXHIBIT = re.compile(r'<(?:figure|div) class="exhibit" id="([^"]+)">')
# A chapter's head has a paragraph that fits any run.
OF_ANY_RUN = re.compile(r"\*\*The answer (?:in numbers|here)\.\*\*.*?(?=\n\n|\Z)", re.DOTALL)
COUNTED = " [The last section](#the-claims) has all claims; {glue:text}`claims_reproduced` are reproduced here."


@dataclass(frozen=True)
class BookRun:
    """A run that the book has a page of.

    Attributes:
        chapter, profile: what was run.
        folder: of the executed page, its exhibits and verdicts.
        name: of the run, `small-all-MiniLM-L6-v2`.
        leads: whether it is the run that its chapter's page shows; other encoders have pages of their own.
        committed: the folder of its committed records, None for a run of this machine.
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
    def up(self) -> str:
        """The way from its page to the folder of the book's first page."""
        return "../" * self.page.count("/")

    @property
    def title(self) -> str:
        """The run in a reader's words."""
        encoder = self.name.removeprefix(f"{self.profile}-")
        world = "toy world" if self.profile == LOCAL_PROFILE or encoder.startswith(TOY_ENCODERS) else "real data"
        return f"{encoder}, {world}{'' if self.committed else ', this machine'}"


def published_runs() -> list[BookRun]:
    """The runs whose records are committed: by chapter, the leading run of each first."""
    chapters, runs = {chapter.slug: chapter for chapter in CHAPTERS.values()}, []
    for file in records.committed_folder().glob("*/[!.]*/run.json"):
        facts, folder = json.loads(file.read_text(encoding="utf-8")), file.parent
        of_run = chapters[folder.name], facts["profile"], committed_page(folder)
        runs.append(BookRun(*of_run, folder.parent.name, facts["leads"], folder))
    return sorted(runs, key=lambda run: (run.chapter.number, not run.leads, run.name))


def local_runs() -> list[BookRun]:
    """This machine's own runs on the toy world, whether they have been made or not."""
    places = {chapter: runs_folder() / folder_name(chapter, LOCAL_PROFILE, {}) for chapter in CHAPTERS.values()}
    return [BookRun(chapter, LOCAL_PROFILE, place, LOCAL_RUN) for chapter, place in places.items()]


def run_here(chapter: Chapter, folder: Path) -> BookRun:
    """A run of this machine that the book does not show."""
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    encoder = facts["parameters"]["encoder"].replace("/", "-")
    return BookRun(chapter, facts["profile"], folder, f"{facts['profile']}-{encoder}")


def assemble(run: BookRun, static: Path) -> nbformat.NotebookNode:
    """The page of a finished run: the notebook with outputs, the run in its title, what the run shows at its head with
    the facts of the run, and after each exhibit what the paper and what this run show. The notebook without outputs is
    written to the folder `notebooks` of the book's static files.

    Raises:
        RunError: a cell printed a warning.
    """
    page = nbformat.read(run.chapter.notebook, as_version=4)
    (static / "notebooks").mkdir(parents=True, exist_ok=True)
    nbformat.write(page, static / "notebooks" / run.chapter.notebook.name)
    said = findings_of(run)
    below = below_exhibits(said)
    copy = nbformat.read(run.folder / EXECUTED, as_version=4)
    for cell, executed in zip(code_cells(page), code_cells(copy), strict=True):
        if any(output.output_type == "stream" for output in executed.outputs):
            raise RunError(
                f"A cell of chapter {run.chapter.number} ({run.profile}) printed a warning: "
                f"run `fivelenses run {run.chapter.number} --profile {run.profile} --force`."
            )
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


def findings_of(run: BookRun) -> list[Finding]:
    """The findings of a published run; none of a run of this machine."""
    return findings(run.committed, run.folder) if run.committed else []


def in_the_papers() -> dict[str, str]:
    """What the exhibits of the papers show, by our exhibit's key."""
    return yaml.safe_load(Path(papers.__file__).with_name("in_the_papers.yaml").read_text(encoding="utf-8"))


def below_exhibits(said: Iterable[Finding]) -> dict[str, str]:
    """What is printed below each exhibit, by its key, in Markdown."""
    below = {key: f"*In the paper*: {sentence}" for key, sentence in in_the_papers().items()}
    for key, sentences in by_value({one.says: one.exhibit for one in said if one.exhibit}).items():
        paragraph = f'<span id="finding-{key}" class="finding"></span>*In this run*: {" ".join(sentences)}'
        below[key] = f"{below[key]}\n\n{paragraph}" if key in below else paragraph
    return below


def with_words(output: nbformat.NotebookNode, below: Mapping[str, str]) -> list[nbformat.NotebookNode]:
    """An output, and what is said below the exhibit that it shows."""
    exhibit = EXHIBIT.match(output.get("data", {}).get("text/html", ""))
    if exhibit is None or exhibit[1] not in below:
        return [output]
    return [output, nbformat.v4.new_output("display_data", {"text/markdown": below[exhibit[1]]})]


def the_run(run: BookRun) -> str:
    """What a page says of its run: one paragraph, and the settings beside the paper's, folded below."""
    facts = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    trained, measured = (timedelta(seconds=round(facts[name])) for name in ("training_seconds", "seconds"))
    took = f"training took {trained}, measuring {measured} (h:mm:ss)"
    took = took if trained or measured else "its times are unknown"
    said = [f"*This run*: {took}, on {facts['device']}, with {facts['peak_memory'] / 1e9:.1f} GB."]
    for reason, names in by_value(facts["not_measured"]).items():
        said.append(f"It has not measured {' and '.join(f'`{name}`' for name in names)}, because {reason}.")
    if facts["outdated"]:
        outdated = ", ".join(f"`{name}`" for name in facts["outdated"])
        said.append(f"The code that measures {outdated} has changed since; these numbers come from the earlier code.")
    notebook = f"{run.up}_static/notebooks/{run.chapter.notebook.name}"
    said.append(f'<a href="{notebook}" download>The notebook without outputs</a>, for students.')
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    table = settings_table(run.chapter, facts["parameters"])
    return f"{' '.join(said)}\n\n:::{{dropdown}} Settings and versions\n{table}\n\n{versions}.\n:::"


def settings_table(chapter: Chapter, parameters: Mapping) -> str:
    """All settings of a run beside the paper's (the profile `paper`), as a table; those of a mapping one by one."""
    columns = {"this run": parameters}
    if "paper" in chapter.profiles:
        columns["profile paper"] = settings(chapter.number, "paper").model_dump(mode="json")
    table = pd.concat([pd.json_normalize(one, sep=", ", max_level=1).T for one in columns.values()], axis=1)
    table = table.dropna(how="all").map(json.dumps, na_action="ignore").set_axis(list(columns), axis=1)
    caption = f"The settings of this run{', and the paper’s' * (len(columns) > 1)}."
    if parameters.get("frozen"):
        caption += " Of frozen and truncated, layers that the encoder does not have are left out."
    return table_html(table.rename_axis("setting").reset_index(), caption)
