"""The ledger of claims: every claim of every paper, with what each run of the book says of it.

Everything on it is read from the runs' ``claims.json``. Readers filter it by paper, run and outcome
(``_static/ledger.js``); without a script all of it is shown.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd
from markdown_it import MarkdownIt

from fivelenses import judging
from fivelenses.book.cards import View, as_cards, figure_name, render
from fivelenses.book.pages import PUBLISHED, BookRun, findings_of
from fivelenses.judging import HOLDS, OPEN, OUTCOMES, REPRODUCED, Claim, Verdict
from fivelenses.records import TWIN

PAPERS = {
    "hao2020": "Hao et al. (2020)",
    "zhou2022": "Zhou and Srikumar (2022)",
    "hao2019": "Hao et al. (2019)",
    "singh2020": "Singh and Giovanardi (2020)",
    "merchant2020": "Merchant et al. (2020)",
}


@dataclass(frozen=True)
class Entry:
    """What one run says of a claim."""

    claim: Claim
    verdict: Verdict
    run: BookRun

    @property
    def count(self) -> str:
        """Groups that hold of groups judged, and models per group, for a cell of the matrix; empty without a group."""
        groups = self.verdict.groups
        if not groups:
            return ""
        models = [str(count) for count in sorted({group.models for group in groups})]
        return f"{len(self.verdict.of(HOLDS))}/{len(groups)} × {'–'.join(dict.fromkeys((models[0], models[-1])))}"

    @property
    def anchor(self) -> str:
        """The name of its place on the ledger."""
        return f"{self.claim.key}-{self.run.part if self.run.leads else self.run.name}"

    def view(self, figures: bool) -> View:
        """For a card of the ledger, with or without links to the exhibits that show it."""
        keys = [key for key in self.claim.exhibits if figures and (self.run.folder / f"{key}.parquet").is_file()]
        places = tuple((figure_name(key), f"{self.run.page}.html#{key}") for key in keys)
        committed = self.run.committed
        record = f"book/records/{committed.parent.name}/{committed.name}" if committed else ""
        return View(self.verdict, self.run.title, self.anchor, places, record)


Matrix = Mapping[str, Mapping[str, Mapping[str, Entry]]]  # paper to claim to run's title


def by_claim(runs: Iterable[BookRun]) -> Matrix:
    """What runs say of each claim, published ones first: papers in the order of `PAPERS`, then what is no paper's."""
    papers: dict[str, dict[str, dict[str, Entry]]] = {}
    for run in sorted(runs, key=lambda run: (run.chapter.number, run.part != PUBLISHED)):
        for claim, verdict in judging.load(run.folder):
            of_paper = papers.setdefault(PAPERS.get(run.chapter.paper, "This project"), {})
            of_paper.setdefault(claim.key, {})[run.title] = Entry(claim, verdict, run)
    return {paper: papers[paper] for paper in (*PAPERS.values(), "This project") if paper in papers}


def entries(matrix: Matrix) -> list[Entry]:
    """All entries, by paper, claim and run."""
    return [entry for claims in matrix.values() for of_claim in claims.values() for entry in of_claim.values()]


def of_papers(runs: Iterable[BookRun]) -> list[BookRun]:
    """The runs of chapters whose claims are a paper's."""
    return [run for run in runs if run.chapter.paper]


def verdict_table(runs: Iterable[BookRun]) -> pd.DataFrame:
    """One row per claim of a paper and run: `run`, `paper`, `claim`, `verdict`, in an order that lasts."""
    every = entries(by_claim(of_papers(runs)))
    rows = [(one.run.title, one.claim.paper, one.claim.key, one.verdict.outcome) for one in every]
    return pd.DataFrame(sorted(rows), columns=["run", "paper", "claim", "verdict"])


def matrix_html(runs: Iterable[BookRun], ledger: str | None = "claims.html", up: str = "") -> str:
    """A matrix of claims by runs, whose signs lead to cards.

    Args:
        ledger: the address of the cards; None for those on the runs' own pages.
        up: the way from the matrix's page to the folder of the book's first page.
    """
    papers = by_claim(runs)
    titles = list(dict.fromkeys(entry.run.title for entry in entries(papers)))
    every = [of_claim for claims in papers.values() for of_claim in claims.values()]
    return render("matrix.html", papers=papers, runs=titles, every=every, count=count, up=up, ledger=ledger)


def count(claims: Iterable[Mapping[str, Entry]], run: str, outcome: str = "") -> int:
    """How many claims a run judges, with an outcome where one is named."""
    return sum(run in of_claim and outcome in of_claim[run].verdict.outcome for of_claim in claims)


def ledger_html(runs: Iterable[BookRun], figures: bool = True) -> str:
    """The ledger: what chance and twins say of all verdicts, and a card per claim, with or without links to figures."""
    papers = by_claim(of_papers(runs))
    every = entries(papers)
    groups = [group for entry in every for group in entry.verdict.groups]
    twins = [entry.verdict.controls.get(TWIN) for entry in every if entry.verdict.outcome == REPRODUCED]
    outcomes_of_twins = [twin.outcome for twin in twins if twin is not None]
    titles = dict.fromkeys(entry.run.title for entry in every)
    claims = [list(of_claim.values()) for of_paper in papers.values() for of_claim in of_paper.values()]
    return render(
        "ledger.html",
        choices={"paper": PAPERS, "run": {one: one for one in titles}, "outcome": {one: one for one in OUTCOMES}},
        tests=len(groups),
        decided=sum(group.outcome != OPEN for group in groups),
        by_chance=math.fsum(group.chance for group in groups),
        twins=len(outcomes_of_twins),
        too=outcomes_of_twins.count(REPRODUCED),
        cards=as_cards([(of_claim[0].claim, [entry.view(figures) for entry in of_claim]) for of_claim in claims]),
    )


def findings_html(runs: Iterable[BookRun]) -> str:
    """The findings for the book's first page, each with a link to its exhibit; empty where there are none."""
    markdown = MarkdownIt("commonmark")
    of_runs = [(run, one, markdown.render(one.says)) for run in runs for one in findings_of(run) if one.introduction]
    return render("findings.html", findings=of_runs, papers=PAPERS)
