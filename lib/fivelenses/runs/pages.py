"""A chapter's page: the notebook as it stands (prose and code) with the outputs of an executed copy whose code is the
same.

After each exhibit come what the paper's own shows (``papers/in_the_papers.yaml``) and what this run shows (the findings
beside a published run's records).
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
import yaml
from markupsafe import Markup

from fivelenses import papers, project, records
from fivelenses.chapters import CHAPTERS, Chapter, folder_name
from fivelenses.dry_run import duration
from fivelenses.execution import EXECUTED, RunError, code_cells, committed_page
from fivelenses.files import damaged
from fivelenses.runs.findings import Finding, findings
from fivelenses.runs.side_by_side import Picture, picture

LOCAL_PROFILE, LOCAL_RUN = "tiny", "tiny-toy-bert-seed-0"
TOY_ENCODERS = "toy-bert"  # encoders that have read nothing but the toy world, whatever the profile
PUBLISHED, HERE = "published", "here"  # the book's two parts: committed runs, and this machine's own
# Folders under the book's _static.
PICTURES, CLEAN = "exhibits", "notebooks"
COLAB = "colab"  # the branch that Colab opens notebooks from
ON_COLAB = """# On Colab this brings the project and its packages; elsewhere it does nothing.
import sys

if "google.colab" in sys.modules:
    !git clone --quiet --depth 1 {repository} five-lenses
    %cd -q five-lenses/notebooks
    %pip install --quiet -e "..[runs]"
    sys.path.insert(0, "../lib")"""
EXHIBIT = re.compile(r'<(?:figure|div) class="exhibit" id="([^"]+)">')
HELD_PICTURE = re.compile(r'(?<=src=")data:image/png;base64,([^"]+)')
IN_THE_PAPERS = "in_the_papers.yaml"  # what the exhibits of the papers show, by our exhibit's key
# A chapter's head has a paragraph that fits any run; its last sentence counts the claims.
OF_ANY_RUN = re.compile(r"\*\*The answer (?:in numbers|here)\.\*\*.*?(?=\n\n|\Z)", re.DOTALL)
COUNTED = re.compile(r"\[The\s+last\s+section\][^.]*`claims_reproduced`.*?\.(?=\s|$)", re.DOTALL)
# Said of a run on its page, because what an encoder learned before bears on what fine-tuning changes.
BEFORE_FINE_TUNING = {
    "all-MiniLM-L6-v2": "all-MiniLM-L6-v2 is no plain BERT: its authors had trained it contrastively "
    "on pairs of sentences, natural language inference and paraphrases among them.",
    "all-mpnet-base-v2": "all-mpnet-base-v2 has the size of BERT-base and is no plain BERT: after masked and permuted "
    "words its authors had trained it contrastively on pairs of sentences, natural language inference and paraphrases "
    "among them.",
}


@dataclass(frozen=True)
class Shown:
    """A run that the book shows.

    Attributes:
        chapter, profile: what was run.
        part: `published` or `here`.
        folder: of the executed page, its exhibits and verdicts.
        name: of the run, `small-all-MiniLM-L6-v2`.
        leads: whether it is the run that its chapter's page shows; other encoders have pages of their own.
        committed: the folder of its committed records, None for a run of this machine.
    """

    chapter: Chapter
    profile: str
    part: str
    folder: Path
    name: str = ""
    leads: bool = True
    committed: Path | None = None

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
        return f"{encoder}, {world}{', this machine' if self.part == HERE else ''}"


def published_runs() -> list[Shown]:
    """The runs whose records are committed: by chapter, the leading run of each first."""
    chapters = {chapter.slug: chapter for chapter in CHAPTERS.values()}
    shown = []
    for file in sorted(records.committed_folder().glob("*/[!.]*/run.json")):
        facts = json.loads(file.read_text(encoding="utf-8"))
        folder = file.parent
        chapter, page = chapters[folder.name], committed_page(folder)
        shown.append(Shown(chapter, facts["profile"], PUBLISHED, page, folder.parent.name, facts["leads"], folder))
    return sorted(shown, key=lambda run: (run.chapter.number, not run.leads, run.name))


def local_runs() -> list[Shown]:
    """This machine's own runs on the toy world, whether they have been made or not."""
    return [
        Shown(chapter, LOCAL_PROFILE, HERE, project.runs_folder() / folder_name(chapter, LOCAL_PROFILE, {}), LOCAL_RUN)
        for chapter in CHAPTERS.values()
    ]


def run_here(chapter: Chapter, folder: Path) -> Shown:
    """A run of this machine that the book does not show."""
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    encoder = facts["parameters"]["encoder"].replace("/", "-")
    return Shown(chapter, facts["profile"], HERE, folder, f"{facts['profile']}-{encoder}")


def assemble(shown: Shown, static: Path, repository: str = "") -> nbformat.NotebookNode:
    """The page of one run.

    Args:
        shown: the run.
        static: the book's folder of static files; pictures are written to its folder `exhibits`, named by content, and
            the notebook without outputs to its folder `notebooks`.
        repository: the address of the project on GitHub, for buttons that open the notebook elsewhere; none without.

    Returns:
        The notebook with outputs, the run in its title, what the run shows at its head with the facts of the run, and
        after each exhibit what the paper and what this run show.

    Raises:
        RunError: the copy failed, has other code, or holds a traceback; the message names the command that mends it.
    """
    chapter, facts = shown.chapter, facts_of(shown)
    page = nbformat.read(chapter.notebook, as_version=4)
    copy = nbformat.read(shown.folder / EXECUTED, as_version=4)
    if [cell.source.strip() for cell in code_cells(page)] != [cell.source.strip() for cell in code_cells(copy)]:
        raise RunError(
            f"The page of chapter {chapter.number} ({shown.profile}) is out of step with its notebook: {_again(shown)}."
        )
    told = findings_of(shown)
    beside = beside_exhibits(told)
    for cell, run in zip(code_cells(page), code_cells(copy), strict=True):
        if run.execution_count is None or any(output.output_type in ("error", "stream") for output in run.outputs):
            raise RunError(
                f"The page of chapter {chapter.number} ({shown.profile}) holds a cell that failed, did not run, or "
                f"printed a warning: {_again(shown)}."
            )
        cell.execution_count = run.execution_count
        outputs = (with_files(output, static, shown.up) for output in run.outputs)
        cell.outputs = list(with_words_beside(outputs, beside))
    (static / CLEAN).mkdir(parents=True, exist_ok=True)
    nbformat.write(_to_take_away(chapter, repository), static / CLEAN / chapter.notebook.name)
    # Names of their own for these cells, not ones from chance: equal content is an equal page.
    text = the_run(facts, _elsewhere(chapter, repository, shown.up))
    page.cells.insert(1, nbformat.v4.new_markdown_cell(text, id="the-run"))
    if page.cells[0].cell_type == "markdown":
        title, _, rest = page.cells[0].source.partition("\n")
        title = f"{title}{'' if title.endswith('?') else ':'} {shown.title}"
        page.cells[0].source = f"{title}\n{answered(rest, [one.sentence for one in told if one.answer])}"
    return page


def answered(head: str, sentences: Iterable[str]) -> str:
    """The head of a chapter with sentences about one run in the place of those that fit any run.

    Example:
        >>> counted = "[The last section](#the-claims) has all, of which `claims_reproduced` hold."
        >>> head = f"**The answer in numbers.** It is 1 to 2. {counted}\\n\\n*You need* it."
        >>> print(answered(head, ["It is 2."]))
        **The answer of this run.**
        <BLANKLINE>
        - It is 2.
        <BLANKLINE>
        [The last section](#the-claims) has all, of which `claims_reproduced` hold.
        <BLANKLINE>
        *You need* it.
    """
    told = "\n".join(f"- {sentence}" for sentence in sentences)
    of_any_run = OF_ANY_RUN.search(head)
    if not told or of_any_run is None:
        return head
    counted = COUNTED.search(of_any_run.group())
    answer = f"**The answer of this run.**\n\n{told}" + (f"\n\n{counted.group()}" if counted else "")
    return head[: of_any_run.start()] + answer + head[of_any_run.end() :]


def findings_of(shown: Shown) -> list[Finding]:
    """The findings of a published run; none of a run of this machine.

    Raises:
        FindingError: one does not hold of the records.
    """
    return findings(shown.committed, shown.folder) if shown.committed else []


def beside_exhibits(told: Iterable[Finding]) -> dict[str, str]:
    """What is printed after each exhibit, by its key, in Markdown."""
    of_papers = yaml.safe_load((Path(papers.__file__).with_name(IN_THE_PAPERS)).read_text(encoding="utf-8"))
    beside = {key: f"*In the paper*: {sentence}" for key, sentence in of_papers.items()}
    for one in told:
        before = f"{beside[one.exhibit]}\n\n*In this run*: " if one.exhibit in beside else "*In this run*: "
        seen = "*In this run*: " in beside.get(one.exhibit, "")
        beside[one.exhibit] = f"{beside[one.exhibit]} {one.sentence}" if seen else f"{before}{one.sentence}"
    return beside


def _again(shown: Shown) -> str:
    return f"run `fivelenses run {shown.chapter.number} --profile {shown.profile} --force`"


def telling_picture(shown: Shown, static: Path, up: str) -> Picture | None:
    """A chapter's headline picture in one run, written to the static files; None where the run lacks it."""
    seen = picture(shown.chapter.telling, shown.folder, shown.title)
    return seen and replace(seen, figure=Markup(pictures_as_files(seen.figure, static, up)))


def _to_take_away(chapter: Chapter, repository: str) -> nbformat.NotebookNode:
    """A chapter's notebook without outputs; where the project's address is known, its first cell fetches the project on
    Colab.
    """
    notebook = nbformat.read(chapter.notebook, as_version=4)
    if repository:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(ON_COLAB.format(repository=repository), id="on-colab"))
    return notebook


def _elsewhere(chapter: Chapter, repository: str, up: str) -> str:
    """Links to the notebook without outputs, here and where it can be run."""
    name = chapter.notebook.name
    links = [f'<a href="{up}_static/{CLEAN}/{name}" download>The notebook without outputs</a>']
    if repository:
        place = repository.rstrip("/").removeprefix("https://github.com/")
        binder = f"https://mybinder.org/v2/gh/{place}/HEAD?labpath=notebooks/{name}"
        # A release puts the notebooks that bring their packages on a branch of their own.
        colab = f"https://colab.research.google.com/github/{place}/blob/{COLAB}/{name}"
        links += [f'<a href="{binder}">open it on Binder</a>', f'<a href="{colab}">open it on Colab</a>']
    return f"{'; '.join(links)}."


def with_files(output: nbformat.NotebookNode, static: Path, up: str) -> nbformat.NotebookNode:
    """An output whose pictures are written to the book's static files, named by content, instead of standing in it."""
    if "text/html" not in output.get("data", {}):
        return output
    written = pictures_as_files(output.data["text/html"], static, up)
    return nbformat.v4.new_output("display_data", {"text/html": written}, metadata=output.metadata)


def pictures_as_files(page: str, static: Path, up: str) -> str:
    """A piece of a page with the addresses of its pictures in place of the pictures, which are written to the static
    files.
    """

    def address(held: re.Match) -> str:
        drawn = base64.b64decode(held[1])
        place = static / PICTURES / f"{hashlib.sha256(drawn).hexdigest()[:16]}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(drawn)
        return f"{up}_static/{PICTURES}/{place.name}"

    return HELD_PICTURE.sub(address, page)


def with_words_beside(
    outputs: Iterable[nbformat.NotebookNode], beside: Mapping[str, str]
) -> Iterator[nbformat.NotebookNode]:
    """Outputs, and after each exhibit what is said beside it."""
    for output in outputs:
        yield output
        exhibit = EXHIBIT.match(output.get("data", {}).get("text/html", ""))
        if exhibit and exhibit[1] in beside:
            yield nbformat.v4.new_output("display_data", {"text/markdown": beside[exhibit[1]]})


def the_run(facts: dict, links: str = "") -> str:
    """What a page says of its run: one paragraph, and the settings folded below.

    Args:
        facts: the run's ``run.json``.
        links: a sentence after the paragraph.
    """
    parameters = facts["parameters"]
    names = parameters.get("encoders") or parameters.get("pretrained") or [parameters["encoder"]]
    seeds, times = parameters["seeds"], (facts["training_seconds"], facts["seconds"])
    trained, measured = map(duration, times)
    took = f"training took {trained}, measuring {measured}" if any(times) else "its times were not kept"
    said = [f"*This run*: seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}; {took} ({facts['device']})."]
    said += [sentence for name, sentence in BEFORE_FINE_TUNING.items() if any(one.endswith(name) for one in names)]
    if facts["not_measured"]:
        by_reason: dict[str, list[str]] = {}
        for name, reason in facts["not_measured"].items():
            by_reason.setdefault(reason, []).append(f"`{name}`")
        lacking = "; ".join(f"{' and '.join(names)}, because {reason}" for reason, names in by_reason.items())
        said.append(f"This run has not measured {lacking}.")
    if facts["outdated"]:
        outdated = ", ".join(f"`{name}`" for name in facts["outdated"])
        said.append(
            f"The code that measures {outdated} has changed since this run; its numbers come from the earlier code."
        )
    encoders = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return (
        f"{' '.join([*said, links]).strip()}\n\n"
        ":::{dropdown} Settings and versions\n"
        f"Profile `{facts['profile']}`: {encoders}, source `{parameters['source']}`, tasks "
        f"{', '.join(parameters.get('tasks', []))}; {facts['peak_memory'] / 1e9:.1f} GB. {versions}.\n"
        ":::"
    )


def facts_of(shown: Shown) -> dict:
    """The facts of a finished run, its ``run.json``.

    Raises:
        RunError: the run is missing, unfinished or damaged; the message names the command that makes it.
    """
    folder, number = shown.folder, shown.chapter.number
    for name in ("run.json", "claims.json", EXECUTED):
        if not (folder / name).is_file():
            raise RunError(
                f"Chapter {number} has no finished run on profile {shown.profile} ({folder} lacks {name}): "
                f"run `fivelenses run {number} --profile {shown.profile}`."
            )
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        broken = damaged(folder, facts["files"])
    except (ValueError, KeyError):
        broken = ["run.json"]
    if broken:
        raise RunError(
            f"The file {broken[0]} of chapter {number} ({shown.profile}) in {folder} is not as it was written: "
            f"{_again(shown)}."
        )
    return facts
