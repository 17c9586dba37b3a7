"""A chapter's page: the notebook as it stands (prose and code) with the outputs of an executed copy whose code is the
same.

Each picture gets its own alternative text, and each exhibit an anchor of its key's name, so that other pages can point
at it.
"""

import base64
import hashlib
import html
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
from PIL import Image

from fivelenses import project, records
from fivelenses.exhibits.exhibit import read_words
from fivelenses.runs import checksums
from fivelenses.runs.execution import EXECUTED, RunError, committed_page, notebook_digest
from fivelenses.runs.folders import folder_name
from fivelenses.runs.settings import CHAPTERS, Chapter

LOCAL_PROFILE, LOCAL_RUN = "tiny", "tiny-toy-bert-seed-0"
PUBLISHED, HERE = "published", "here"  # the book's two parts: committed runs, and this machine's own
# Folders under the book's _static.
PICTURES, CLEAN = "exhibits", "notebooks"
ANCHOR = '<span id="{key}"></span>'


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
    def title(self) -> str:
        """The run in a reader's words."""
        encoder = self.name.removeprefix(f"{self.profile}-")
        return f"{encoder}, real data" if self.profile != LOCAL_PROFILE else f"{encoder}, toy world"


def published_runs() -> list[Shown]:
    """The runs whose records are committed: by chapter, the leading run of each first."""
    chapters = {chapter.slug: chapter for chapter in CHAPTERS.values()}
    shown = []
    for file in sorted(records.committed_folder().glob("*/*/run.json")):
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
        if chapter.local
    ]


def assemble(
    chapter: Chapter, executed: Path, facts: dict, static: Path, repository: str = ""
) -> nbformat.NotebookNode:
    """The page of one run.

    Args:
        chapter: whose notebook it is.
        executed: the executed copy; the exhibits' captions (``<key>.md``) lie beside it.
        facts: the run's ``run.json``.
        static: the book's folder of static files; pictures are written to its folder `exhibits`, named by content, and
            the notebook without outputs to its folder `notebooks`.
        repository: the address of the project on GitHub, for buttons that open the notebook elsewhere; none without.

    Returns:
        The notebook with outputs, and at its head the chapter's most telling picture and a line that says what run
        this is.

    Raises:
        RunError: the copy failed, has other code, or holds a traceback; the message names the command that mends it.
    """
    again = f"run `fivelenses run {chapter.number} --profile {facts['profile']} --force`"
    page = nbformat.read(chapter.notebook, as_version=4)
    copy = nbformat.read(executed, as_version=4)
    if notebook_digest(page) != notebook_digest(copy):
        raise RunError(
            f"The page of chapter {chapter.number} ({facts['profile']}) is out of step with its notebook: {again}."
        )
    runs = [
        cell
        for cell in copy.cells
        if cell.cell_type == "code" and "injected-parameters" not in cell.metadata.get("tags", [])
    ]
    titles = exhibit_titles(executed.parent)
    for cell, run in zip((cell for cell in page.cells if cell.cell_type == "code"), runs, strict=True):
        if run.execution_count is None or any(output.output_type in ("error", "stream") for output in run.outputs):
            raise RunError(
                f"The page of chapter {chapter.number} ({facts['profile']}) holds a cell that failed, did not run, or "
                f"printed a warning: {again}."
            )
        cell.execution_count = run.execution_count
        cell.outputs = _anchored([_pictured(output, static) for output in run.outputs], titles)
    (static / CLEAN).mkdir(parents=True, exist_ok=True)
    shutil.copy(chapter.notebook, static / CLEAN / chapter.notebook.name)
    # Names of their own for these cells, not ones from chance: equal content is an equal page.
    said = f"{_run_line(facts)}\n{_elsewhere(chapter, repository)}\n:::"
    page.cells.insert(1, nbformat.v4.new_markdown_cell(said, id="the-run"))
    picture = _telling(chapter, executed.parent, static)
    if picture:
        page.cells.insert(1, nbformat.v4.new_markdown_cell(picture, id="the-picture"))
    return page


def _telling(chapter: Chapter, folder: Path, static: Path) -> str:
    """The picture that a chapter opens with, as a link to where the chapter comes to it; empty where a run lacks it."""
    picture = folder / f"{chapter.telling}.png"
    if not chapter.telling or not picture.is_file():
        return ""
    words = read_words(picture.with_suffix(".md"))
    element = _element(picture.read_bytes(), words.alt, static)
    link = f'<a href="#{chapter.telling}">'
    said = f"{html.escape(words.title)}, which {link}the chapter comes to below</a>."
    return f'<figure class="telling">{link}{element}</a><figcaption>{said}</figcaption></figure>'


def _elsewhere(chapter: Chapter, repository: str) -> str:
    """Links to the notebook without outputs, here and where it can be run."""
    name = chapter.notebook.name
    links = [f'<a href="../_static/{CLEAN}/{name}" download>The notebook without outputs</a>']
    if repository:
        place = repository.rstrip("/").removeprefix("https://github.com/")
        binder = f"https://mybinder.org/v2/gh/{place}/HEAD?labpath=notebooks/{name}"
        colab = f"https://colab.research.google.com/github/{place}/blob/HEAD/notebooks/{name}"
        links += [f'<a href="{binder}">open it on Binder</a>', f'<a href="{colab}">open it on Colab</a>']
    return f"{'; '.join(links)}."


def exhibit_titles(folder: Path) -> dict[str, str]:
    """The exhibits of a run: title to key, read from the captions in its folder."""
    return {read_words(file).title: file.stem for file in sorted(folder.glob("*.md"))}


def _pictured(output: nbformat.NotebookNode, static: Path) -> nbformat.NotebookNode:
    """A picture as an element of the page with its own alternative text: the builder has one for a whole cell."""
    content = output.get("data", {}).get("image/png")
    if content is None:
        return output
    alt = output.metadata.get("image/png", {}).get("alt", "")
    element = _element(base64.b64decode(content), alt, static)
    return nbformat.v4.new_output("display_data", {"text/html": element})


def _element(drawn: bytes, alt: str, static: Path) -> str:
    """An ``img`` of a picture that is written to the book's static files."""
    name = f"{hashlib.sha256(drawn).hexdigest()[:16]}.png"
    place = static / PICTURES / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(drawn)
    width, height = Image.open(io.BytesIO(drawn)).size
    size = f'width="{width}" height="{height}"'
    return f'<img src="../_static/{PICTURES}/{name}" alt="{html.escape(alt)}" {size} loading="lazy">'


def _anchored(outputs: list[nbformat.NotebookNode], titles: dict[str, str]) -> list[nbformat.NotebookNode]:
    """Outputs with an anchor before each exhibit: before a picture whose caption follows it, or before a table."""
    anchored = list(outputs)
    for place, output in enumerate(outputs):
        caption, written = (output.get("data", {}).get(kind, "") for kind in ("text/markdown", "text/html"))
        for title, key in titles.items():
            if f"<caption>{title}. " in written:
                anchored[place] = _with_anchor(output, key)
            elif (
                caption.startswith(f"**{title}.** ")
                and place
                and "<img" in anchored[place - 1].data.get("text/html", "")
            ):
                anchored[place - 1] = _with_anchor(outputs[place - 1], key)
    return anchored


def _with_anchor(output: nbformat.NotebookNode, key: str) -> nbformat.NotebookNode:
    written = ANCHOR.format(key=key) + output.data["text/html"]
    return nbformat.v4.new_output("display_data", {"text/html": written})


def _run_line(facts: dict) -> str:
    parameters = facts["parameters"]
    names = parameters.get("encoders") or parameters.get("pretrained") or [parameters["encoder"]]
    encoders = ", ".join(f"`{name}`" for name in dict.fromkeys([*names, *parameters.get("beside", ())]))
    chosen = ", ".join(parameters["tasks"]) if "tasks" in parameters else ""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return (
        f":::{{admonition}} The run on this page\n:class: note\n"
        f"Profile `{facts['profile']}`: {encoders}, source `{parameters['source']}`, tasks "
        f"{chosen}, seeds {', '.join(map(str, parameters['seeds']))}; {facts['device']}; this run "
        f"{facts['seconds'] / 60:.1f} min, its models {facts['training_seconds'] / 60:.0f} min of training; "
        f"{facts['peak_memory'] / 1e9:.1f} GB. {versions}.\n"
    )


def facts_of(folder: Path, chapter: Chapter, profile: str) -> dict:
    """The facts of a finished run, its ``run.json``.

    Raises:
        RunError: the run is missing, unfinished or damaged; the message names the command that makes it.
    """
    again = f"run `fivelenses run {chapter.number} --profile {profile} --force`"
    for name in ("run.json", "claims.json", EXECUTED):
        if not (folder / name).is_file():
            raise RunError(
                f"Chapter {chapter.number} has no finished run on profile {profile} ({folder} lacks {name}): "
                f"run `fivelenses run {chapter.number} --profile {profile}`."
            )
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        damaged = seals.broken(folder, facts["files"])
    except (ValueError, KeyError):
        damaged = ["run.json"]
    if damaged:
        raise RunError(
            f"The file {damaged[0]} of chapter {chapter.number} ({profile}) in {folder} is not as it was written: "
            f"take it from git again where it is committed, or {again}."
        )
    return facts
