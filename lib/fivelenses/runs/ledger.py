"""The ledger of claims as a page: every claim of every paper, with what each run that the book shows says of it.

Everything on it is read from the runs' ``claims.json`` and from the claims themselves. Readers filter it by paper, run
and verdict (``_static/ledger.js``); without a script all of it is shown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from fivelenses.exhibits import claims
from fivelenses.exhibits.claims import CANNOT_BE_TESTED, NOT_REPRODUCED, PARTLY, REPRODUCED, VERDICTS, Claim, Verdict
from fivelenses.papers import five_lenses, hao2019, hao2020, merchant2020, singh2020, zhou2022
from fivelenses.runs.execution import RunError
from fivelenses.runs.pages import PUBLISHED, Shown

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "hao2020": hao2020.CLAIMS,
    "zhou2022": zhou2022.CLAIMS,
    "hao2019": hao2019.CLAIMS,
    "singh2020": singh2020.CLAIMS,
    "merchant2020": merchant2020.CLAIMS,
}
PAPERS = {
    "hao2020": "Hao et al. (2020)",
    "zhou2022": "Zhou and Srikumar (2022)",
    "hao2019": "Hao et al. (2019)",
    "singh2020": "Singh and Giovanardi (2020)",
    "merchant2020": "Merchant et al. (2020)",
}
# What this project itself says, where no paper does; chapter 6 shows these.
STATEMENTS: tuple[Claim, ...] = five_lenses.CLAIMS
# A sign beside the colour, for readers to whom colours look alike.
SIGNS = {REPRODUCED: "●", PARTLY: "◐", NOT_REPRODUCED: "○", CANNOT_BE_TESTED: "–"}
NO_NUMBER = "no number printed"


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: a claim, and what one run says of it."""

    claim: Claim
    verdict: Verdict
    shown: Shown

    @property
    def run_name(self) -> str:
        """The run in a reader's words."""
        return f"{self.shown.profile}, {'published' if self.shown.part == PUBLISHED else 'this machine'}"

    @property
    def anchor(self) -> str:
        """The name of the line on its page."""
        return f"{self.claim.key}-{self.shown.part}"


def entries(runs: Iterable[Shown]) -> list[Entry]:
    """All lines of the ledger: by paper, then by claim, then by run.

    Raises:
        RunError: a run judged other claims than its paper has now; the message names the command that mends it.
    """
    found = []
    runs = [shown for shown in runs if shown.chapter.paper]
    for paper, of_paper in CLAIMS.items():
        verdicts = {}
        for shown in (shown for shown in runs if shown.chapter.paper == paper):
            judged = {verdict.claim: verdict for verdict in claims.load(shown.folder)}
            if set(judged) != {claim.key for claim in of_paper}:
                raise RunError(
                    f"Chapter {shown.chapter.number} ({shown.profile}) judged other claims than {paper} has now: run "
                    f"`fivelenses run {shown.chapter.number} --profile {shown.profile} --force`."
                )
            verdicts[shown] = judged
        found += [Entry(claim, judged[claim.key], shown) for claim in of_paper for shown, judged in verdicts.items()]
    return found


def page(runs: Iterable[Shown]) -> str:
    """The ledger as HTML: an overview of signs, and a table of all lines."""
    lines = entries(runs)
    return f"{_overview(lines)}\n{_table(lines)}\n"


def _class(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _overview(lines: list[Entry]) -> str:
    """A row a paper and run, a sign a claim that leads to its line."""
    rows = []
    for paper, name in PAPERS.items():
        for run_name in dict.fromkeys(line.run_name for line in lines if line.claim.paper == paper):
            chosen = [line for line in lines if line.claim.paper == paper and line.run_name == run_name]
            signs = " ".join(
                f'<a class="sign {_class(line.verdict.verdict)}" href="#{line.anchor}" '
                f'aria-label="{line.claim.key}: {line.verdict.verdict}" '
                f'title="{line.claim.key}: {line.verdict.verdict}">{SIGNS[line.verdict.verdict]}</a>'
                for line in chosen
            )
            reproduced = sum(line.verdict.verdict == REPRODUCED for line in chosen)
            rows.append(
                f'<tr><th scope="row">{name}</th><td>{run_name}</td><td class="signs">{signs}</td>'
                f"<td>{reproduced} of {len(chosen)}</td></tr>"
            )
    meaning = ", ".join(f'<span class="sign {_class(one)}">{SIGNS[one]}</span> {one}' for one in VERDICTS)
    return (
        f'<div class="exhibit-table" tabindex="0"><table class="table ledger-overview"><caption>A sign a claim, in the '
        f"order of the table below: {meaning}. The last column counts those that are reproduced.</caption>"
        '<thead><tr><th scope="col">paper</th><th scope="col">run</th><th scope="col">claims</th>'
        f'<th scope="col">reproduced</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _table(lines: list[Entry]) -> str:
    columns = ("claim", "paper’s number", "our measure", "ours", "holds in", "verdict", "run")
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "\n".join(_row(line) for line in lines)
    caption = (
        "All claims. Spreads are standard deviations over tasks and seeds; a claim holds in a group, a task or "
        "a pair, when it does for more than half of its seeds."
    )
    return (
        f'{_filters(lines)}<table class="table ledger"><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _row(line: Entry) -> str:
    claim, verdict, shown = line.claim, line.verdict, line.shown
    exhibits = ", ".join(f'<a href="{shown.page}.html#{key}">{_short(key)}</a>' for key in claim.exhibits)
    reason = f": {verdict.reason}" if verdict.reason else ""
    holds = f"{verdict.held} of {verdict.groups}" if verdict.groups else "–"
    cells = (
        ("claim", f"<code>{claim.key}</code> {escape(claim.sentence)} {PAPERS[claim.paper]}, {escape(claim.place)}."),
        ("paper’s number", escape(claim.printed) or NO_NUMBER),
        ("our measure", escape(f"{claim.measure}; holds if {claim.criterion}")),
        ("ours", verdict.number),
        ("holds in", holds),
        (
            "verdict",
            f'<span class="sign {_class(verdict.verdict)}" aria-hidden="true">{SIGNS[verdict.verdict]}</span> '
            f"{verdict.verdict}{escape(reason)}",
        ),
        ("run", f"{line.run_name}: {exhibits}"),
    )
    written = "".join(f'<td data-name="{name}"><div>{content}</div></td>' for name, content in cells)
    return (
        f'<tr id="{line.anchor}" data-paper="{claim.paper}" data-run="{line.run_name}" '
        f'data-verdict="{verdict.verdict}">{written}</tr>'
    )


def _short(key: str) -> str:
    """`hao2020-figure-1` as `figure 1`."""
    return key.split("-", 1)[1].replace("-", " ")


def _filters(lines: list[Entry]) -> str:
    """Three choices, shown by the script that makes them work."""
    choices = {
        "paper": PAPERS,
        "run": {line.run_name: line.run_name for line in lines},
        "verdict": {verdict: verdict for verdict in VERDICTS},
    }
    written = "".join(
        f'<label>{name} <select data-filter="{name}"><option value="">all</option>'
        + "".join(f'<option value="{value}">{text}</option>' for value, text in options.items())
        + "</select></label>"
        for name, options in choices.items()
    )
    return f'<form class="ledger-filters" hidden>{written}<output aria-live="polite"></output></form>'
