"""The page of a report: one file with its pictures and its style inside, that can be sent as it is.

The claims come first, what this encoder says beside what the book's runs say; then every exhibit, beside the book's.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt

from fivelenses.exhibits import claims
from fivelenses.exhibits.claims import VERDICTS, Verdict
from fivelenses.exhibits.exhibit import read_words
from fivelenses.runs import ledger
from fivelenses.runs.execution import EXECUTED
from fivelenses.runs.pages import PUBLISHED, Shown, exhibit_titles, shown_runs
from fivelenses.runs.settings import Chapter

STYLE = """
:root { color-scheme: light dark; --quiet: #5a5a5a; --line: #bbb; --reproduced: #00694c; --partly: #8a5a00;
  --not-reproduced: #a83c00; --cannot-be-tested: #5a5a5a; }
@media (prefers-color-scheme: dark) { :root { --quiet: #b0b0b0; --line: #555; --reproduced: #4fd1a5; --partly: #f0b445;
  --not-reproduced: #ff8f57; --cannot-be-tested: #b0b0b0; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
caption { caption-side: bottom; text-align: left; padding-top: 0.5rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--line); }
.box { overflow-x: auto; }
.sign.reproduced { color: var(--reproduced); } .sign.partly { color: var(--partly); }
.sign.not-reproduced { color: var(--not-reproduced); } .sign.cannot-be-tested { color: var(--cannot-be-tested); }
.sign { font-weight: 700; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; margin: 1.5rem 0; }
figure { margin: 0; } figure img { width: 100%; height: auto; background: #fff; border-radius: 4px; }
figcaption { font-size: 0.85rem; } figcaption p { margin: 0.4rem 0; } .whose { color: var(--quiet); }
.failed { border-left: 4px solid var(--not-reproduced); padding-left: 1rem; }
@media (max-width: 45rem) { .pair { grid-template-columns: 1fr; } }
@media print { .pair { break-inside: avoid; } }
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body><main>
<h1>{title}</h1>
<p>{shape}. Profile <code>{profile}</code>. What each chapter of <em>Five lenses on fine-tuning</em> finds on this
encoder, beside the run that the book shows (of the same profile, where it has one). Verdicts are computed from tables
by the book’s own predicates and thresholds.</p>
{failed}
{claims}
{chapters}
</main></body></html>
"""


@dataclass(frozen=True)
class Section:
    """One chapter of a report.

    Attributes:
        chapter: which.
        folder: its run on the encoder.
        tasks: what was run.
        narrowed: whether these are the tasks that were asked for.
    """

    chapter: Chapter
    folder: Path
    tasks: tuple[str, ...]
    narrowed: bool


def page(encoder: str, shape: str, profile: str, sections: Sequence[Section], failures: Sequence[str]) -> str:
    """The report as one HTML file.

    Args:
        encoder: its name.
        shape: in words.
        profile: whose data and schedules were used.
        sections: the chapters that ran.
        failures: a sentence for each that did not.
    """
    books = {section.chapter.number: _book_run(section.chapter, profile) for section in sections}
    failed = "".join(f'<p class="failed">{escape(sentence)}</p>' for sentence in failures)
    chapters = "\n".join(_section(section, books[section.chapter.number]) for section in sections)
    title = f"{escape(encoder)} under five lenses"
    return PAGE.format(
        title=title,
        style=STYLE,
        shape=escape(shape),
        profile=escape(profile),
        failed=failed,
        chapters=chapters,
        claims=_claims(sections, books),
    )


def _book_run(chapter: Chapter, profile: str) -> Shown | None:
    """The run of a chapter that the book shows: one of the same profile where there is one, else the committed one."""
    runs = [shown for shown in shown_runs() if shown.chapter == chapter and (shown.folder / EXECUTED).is_file()]
    return min(runs, key=lambda shown: (shown.profile != profile, shown.part != PUBLISHED), default=None)


def _said(verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    kind = verdict.verdict.replace(" ", "-")
    sign = f'<span class="sign {kind}" aria-hidden="true">{ledger.SIGNS[verdict.verdict]}</span>'
    reason = f" ({escape(verdict.reason)})" if verdict.reason else ""
    number = "" if verdict.value is None else f", {verdict.number}"
    return f"{sign} {verdict.verdict}{number}{reason}"


def _claims(sections: Sequence[Section], books: dict[int, Shown | None]) -> str:
    rows, counts = [], dict.fromkeys(VERDICTS, 0)
    every = [claim for of_paper in (*ledger.CLAIMS.values(), ledger.STATEMENTS) for claim in of_paper]
    sentences = {claim.key: claim.sentence for claim in every}
    for section in sections:
        book = books[section.chapter.number]
        theirs = {} if book is None else {verdict.claim: verdict for verdict in claims.load(book.folder)}
        for verdict in claims.load(section.folder):
            counts[verdict.verdict] += 1
            rows.append(
                f'<tr><td><a href="#chapter-{section.chapter.number}">{section.chapter.number}</a></td>'
                f"<td><code>{verdict.claim}</code> {escape(sentences[verdict.claim])}</td>"
                f"<td>{_said(verdict)}</td><td>{_said(theirs.get(verdict.claim))}</td></tr>"
            )
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return (
        f"<h2>The claims</h2><p>Of {sum(counts.values())} claims: {said}.</p>"
        '<div class="box" tabindex="0"><table><caption>Numbers are means with standard deviations over tasks and seeds.'
        '</caption><thead><tr><th scope="col">chapter</th><th scope="col">claim</th><th scope="col">this encoder</th>'
        f'<th scope="col">the book’s run</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _section(section: Section, book: Shown | None) -> str:
    chapter = section.chapter
    chosen = f"Tasks: {', '.join(section.tasks)}" + ("." if section.narrowed else ", the chapter’s own.")
    against = "" if book is None else f" Beside it the book’s run on profile <code>{book.profile}</code>."
    titles = {key: title for title, key in exhibit_titles(section.folder).items()}
    drawn = [key for key in titles if (section.folder / f"{key}.png").is_file()]
    pairs = "\n".join(
        _pair(key, section.folder, None if book is None else book.folder) for key in sorted(drawn, key=_order)
    )
    title = nbformat.read(chapter.notebook, as_version=4).cells[0].source.splitlines()[0].removeprefix("# ")
    heading = f'<h2 id="chapter-{chapter.number}">{chapter.number} · {escape(title)}</h2>'
    return f"{heading}<p>{chosen}{against}</p>{pairs}"


def _order(key: str) -> list[tuple[int, str]]:
    """Figures in the order of their numbers: 2 before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in key.split("-")]


def _pair(key: str, ours: Path, theirs: Path | None) -> str:
    beside = "" if theirs is None or not (theirs / f"{key}.png").is_file() else _figure(key, theirs, "the book’s")
    return f'<div class="pair" id="{key}">{_figure(key, ours, "this encoder")}{beside}</div>'


def _figure(key: str, folder: Path, whose: str) -> str:
    words = read_words(folder / f"{key}.md")
    content = base64.b64encode((folder / f"{key}.png").read_bytes()).decode()
    return (
        f'<figure><img src="data:image/png;base64,{content}" alt="{escape(words.alt)}"><figcaption>'
        f'<span class="whose">{whose}</span>{MarkdownIt("commonmark").render(words.caption)}</figcaption></figure>'
    )
