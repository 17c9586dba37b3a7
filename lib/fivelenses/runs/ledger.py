"""The ledger of claims as a page: every claim of every paper, with what each run that the book shows says of it.

Everything on it is read from the runs' ``claims.json`` and from the claims themselves. Readers filter it by paper, run
and outcome (``_static/ledger.js``); without a script all of it is shown.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from fivelenses import judging
from fivelenses.execution import RunError
from fivelenses.judging import HOLDS, OPEN, OUTCOMES, REPRODUCED, Statement, Verdict
from fivelenses.records import FUNCTIONAL_TWIN, SHUFFLED, TWIN
from fivelenses.runs.cards import Card, View, as_html, figure_name
from fivelenses.runs.pages import PUBLISHED, Shown, findings_of
from fivelenses.runs.side_by_side import Picture, render

PAPERS = {
    "hao2020": "Hao et al. (2020)",
    "zhou2022": "Zhou and Srikumar (2022)",
    "hao2019": "Hao et al. (2019)",
    "singh2020": "Singh and Giovanardi (2020)",
    "merchant2020": "Merchant et al. (2020)",
}
CONTROLS = {TWIN: "twin", FUNCTIONAL_TWIN: "functional twin", SHUFFLED: "shuffled labels"}


@dataclass(frozen=True)
class Entry:
    """What one run says of a claim."""

    claim: Statement
    verdict: Verdict
    shown: Shown

    @property
    def run(self) -> str:
        """The run in a reader's words."""
        return self.shown.title

    @property
    def outcome(self) -> str:
        """Of the claim in this run."""
        return self.verdict.outcome

    @property
    def anchor(self) -> str:
        """The name of its place on the ledger."""
        return f"{self.claim.key}-{self.shown.part if self.shown.leads else self.shown.name}"

    @property
    def count(self) -> str:
        """Groups that hold of groups judged, and models per group, for a cell of the matrix; empty without a group."""
        groups = self.verdict.groups
        if not groups:
            return ""
        models = [str(count) for count in sorted({group.models for group in groups})]
        return f"{len(self.verdict.of(HOLDS))}/{len(groups)} × {'–'.join(dict.fromkeys((models[0], models[-1])))}"

    def view(self) -> View:
        """For a card of the ledger."""
        keys = [key for key in self.claim.exhibits if (self.shown.folder / f"{key}.parquet").is_file()]
        figures = tuple((figure_name(key), f"{self.shown.page}.html#{key}") for key in keys)
        committed = self.shown.committed
        record = f"book/records/{committed.parent.name}/{committed.name}" if committed else ""
        return View(self.verdict, self.run, self.anchor, figures, record)


def judged_in(shown: Shown) -> dict[str, tuple[Statement, Verdict]]:
    """The claims of a run with what became of them, by key.

    Raises:
        RunError: its verdicts are damaged or older than this code; the message names the command that mends it.
    """
    try:
        return {claim.key: (claim, verdict) for claim, verdict in judging.load(shown.folder)}
    except ValueError as error:
        command = f"fivelenses run {shown.chapter.number} --profile {shown.profile} --force"
        raise RunError(f"The verdicts of chapter {shown.chapter.number} cannot be read: run `{command}`.") from error


def entries(runs: Iterable[Shown]) -> list[Entry]:
    """All claims of the papers in all runs: by paper, then by claim, then by run, published ones first.

    Raises:
        RunError: see `judged_in`.
    """
    runs = sorted((shown for shown in runs if shown.chapter.paper), key=lambda shown: shown.part != PUBLISHED)
    judgements = []
    for paper in PAPERS:
        judged = {shown: judged_in(shown) for shown in runs if shown.chapter.paper == paper}
        keys = dict.fromkeys(key for of_run in judged.values() for key in of_run)
        judgements += [Entry(*of_run[key], shown) for key in keys for shown, of_run in judged.items() if key in of_run]
    return judgements


def verdict_table(runs: Iterable[Shown]) -> pd.DataFrame:
    """One row per claim and run: `run`, `paper`, `claim`, `verdict`, in an order that lasts.

    Raises:
        RunError: see `judged_in`.
    """
    rows = [(entry.run, entry.claim.paper, entry.claim.key, entry.outcome) for entry in entries(runs)]
    return pd.DataFrame(sorted(rows), columns=["run", "paper", "claim", "verdict"])


def page(runs: Iterable[Shown]) -> str:
    """The ledger as HTML: a matrix of claims by runs, what chance and controls say, and a card per claim."""
    judgements = entries(runs)
    overview = _overview(judgements)
    groups = [group for entry in judgements for group in entry.verdict.groups]
    chance = {"tests": len(groups), "decided": sum(group.outcome != OPEN for group in groups)}
    run_names = overview["run_names"]
    return render(
        "ledger.html",
        **overview,
        ledger="",
        choices={"paper": PAPERS, "run": {name: name for name in run_names}, "outcome": {one: one for one in OUTCOMES}},
        chance=chance | {"by_chance": math.fsum(group.chance for group in groups)},
        controls=_controls(judgements),
        cards=as_html([_card(list(of_claim.values())) for of_claim in overview["by_claim"].values()]),
    )


def matrix(runs: Iterable[Shown]) -> str:
    """The matrix of claims by runs as HTML, for the book's first page; its signs lead to the ledger's cards."""
    return render("matrix.html", **_overview(entries(runs)), ledger="claims.html")


def told_first(runs: Iterable[Shown]) -> str:
    """The findings for the book's first page as HTML, each with a link to its exhibit; empty where there are none."""
    told = [
        (f"{shown.page}.html#{one.exhibit}", PAPERS.get(shown.chapter.paper, "The book"), one.sentence)
        for shown in runs
        for one in findings_of(shown)
        if one.introduction
    ]
    return render("findings.html", told=told)


def _overview(judgements: Sequence[Entry]) -> dict:
    """What the matrix is made of."""
    by_claim: dict[str, dict[str, Entry]] = {}
    by_paper: dict[str, dict[str, Statement]] = {}
    for entry in judgements:
        by_paper.setdefault(entry.claim.paper, {}).setdefault(entry.claim.key, entry.claim)
        by_claim.setdefault(entry.claim.key, {})[entry.run] = entry
    return {
        "run_names": list(dict.fromkeys(entry.run for entry in judgements)),
        "papers": {paper: PAPERS[paper] for paper in by_paper},
        "claims": {paper: list(of_paper.values()) for paper, of_paper in by_paper.items()},
        "by_claim": by_claim,
        "reproduced": {paper: _reproduced(judgements, paper) for paper in PAPERS},
    }


def _card(of_claim: Sequence[Entry]) -> Card:
    claim = of_claim[0].claim
    return Card(claim, tuple(entry.view() for entry in of_claim), f"claim-{claim.key}")


def _controls(judgements: Sequence[Entry]) -> dict:
    """Which claims hold for controls, too: by claim, the runs that have some, and why others have no twin."""
    rows: dict[str, list[Entry]] = {}
    for entry in judgements:
        if entry.verdict.controls:
            rows.setdefault(entry.claim.key, []).append(entry)
    twins = [entry for of_claim in rows.values() for entry in of_claim if _twinned(entry)]
    too = [entry for entry in twins if entry.verdict.controls[TWIN].outcome == REPRODUCED]
    untwinned = {entry.claim.key: entry.claim.no_twin for entry in judgements if entry.claim.no_twin}
    controls = {name for of_claim in rows.values() for entry in of_claim for name in entry.verdict.controls}
    names = {name: title for name, title in CONTROLS.items() if name in controls}
    return {"rows": rows, "twins": len(twins), "too": len(too), "untwinned": untwinned, "names": names}


def _twinned(entry: Entry) -> bool:
    return entry.outcome == REPRODUCED and TWIN in entry.verdict.controls


def _reproduced(judgements: Sequence[Entry], paper: str) -> dict[str, str]:
    """How many of a paper's claims each run reproduces, by the run's name."""
    held: dict[str, list[bool]] = {}
    for entry in judgements:
        if entry.claim.paper == paper:
            held.setdefault(entry.run, []).append(entry.outcome == REPRODUCED)
    return {name: f"{sum(of_run)} of {len(of_run)}" for name, of_run in held.items()}


def other_runs(shown: Shown, runs: Iterable[Shown], side_by_side: Sequence[Picture] = ()) -> str:
    """The part of a chapter's page that sets its runs next to one another, as HTML, with the chapter's headline picture
    in its other runs; empty where there is one run.
    """
    same = [run for run in runs if run.chapter == shown.chapter]
    if len(same) < 2:
        return ""
    of_run = {f"{shown.up}{run.page}.html": judged_in(run) for run in same}
    own = judged_in(shown)
    return render(
        "other_runs.html",
        runs={f"{shown.up}{run.page}.html": run.title for run in same},
        judged=[
            (claim, {page: judged[key][1] for page, judged in of_run.items() if key in judged})
            for key, (claim, _) in own.items()
        ],
        pictures=side_by_side,
    )
