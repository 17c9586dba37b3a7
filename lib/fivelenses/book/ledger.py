"""The ledger of claims: every claim of every paper, with what each run of the book says of it in its ``claims.json``.

Readers filter it by paper, run and outcome (``_static/ledger.js``); without a script all of it is shown.
"""

from collections.abc import Iterable

import pandas as pd
from markdown_it import MarkdownIt

from fivelenses import judging, records
from fivelenses.book.cards import View, as_cards, render
from fivelenses.book.pages import BookRun, findings_of
from fivelenses.judging import OURS, OUTCOMES, REPRODUCED
from fivelenses.records import TWIN

PAPERS = {
    "hao2020": "Hao et al. (2020)",
    "zhou2022": "Zhou and Srikumar (2022)",
    "hao2019": "Hao et al. (2019)",
    "singh2020": "Singh and Giovanardi (2020)",
    "merchant2020": "Merchant et al. (2020)",
}
Matrix = dict[str, dict[str, dict[str, View]]]  # paper to claim to run's title


def by_claim(runs: Iterable[BookRun], figures: bool = True) -> Matrix:
    """What runs say of each claim, with or without links to figures: papers in the order of `PAPERS`, then others."""
    papers: Matrix = {paper: {} for paper in (*PAPERS.values(), OURS.capitalize())}
    # Published runs first, so that claims have their runs in the order of the matrix's columns.
    for run in sorted(runs, key=lambda run: (run.committed is None, run.chapter.number)):
        of_paper = papers[PAPERS.get(run.chapter.paper, OURS.capitalize())]
        record = f"book/records/{run.committed.parent.name}/{run.committed.name}" if run.committed else ""
        for claim, verdict in judging.load(run.folder):
            keys = [key for key in claim.exhibits if figures and (run.folder / f"{key}.parquet").is_file()]
            addresses = {key: f"{run.page}.html#{key}" for key in keys}
            anchor = f"{claim.key}-{run.part if run.leads else run.name}"
            view = View(claim, verdict, run.title, anchor, addresses, record)
            of_paper.setdefault(claim.key, {})[run.title] = view
    return {paper: claims for paper, claims in papers.items() if claims}


def verdict_table(runs: Iterable[BookRun]) -> pd.DataFrame:
    """One row per claim of a paper and run: `run`, `paper`, `claim`, `verdict`, in an order that lasts."""
    judged = [(run.title, *one) for run in runs if run.chapter.paper for one in judging.load(run.folder)]
    rows = sorted((title, claim.paper, claim.key, verdict.outcome) for title, claim, verdict in judged)
    return pd.DataFrame(rows, columns=["run", "paper", "claim", "verdict"])


def matrix_html(runs: Iterable[BookRun], ledger: str = "claims.html") -> str:
    """A matrix of claims by runs, whose signs lead to the cards at the address `ledger`."""
    papers = by_claim(runs)
    every = [of_claim for claims in papers.values() for of_claim in claims.values()]
    titles = list(dict.fromkeys(title for of_claim in every for title in of_claim))
    stays = judging.by_rate(records.learning_rates())["stays"]
    return render("matrix.html", papers=papers, runs=titles, every=every, ledger=ledger, rates=stays)


def ledger_html(runs: Iterable[BookRun], figures: bool = True) -> str:
    """The ledger: what chance and twins say of all verdicts, and a card per claim, with or without links to figures."""
    claims = [list(views.values()) for of_paper in by_claim(runs, figures).values() for views in of_paper.values()]
    every = [one for views in claims for one in views]
    groups = [group for one in every for group in one.verdict.groups]
    reproduced = [one.verdict.controls for one in every if one.verdict.outcome == REPRODUCED]
    twins = [controls[TWIN].outcome for controls in reproduced if TWIN in controls]
    titles, outcomes = ({one: one for one in names} for names in ([one.run for one in every], OUTCOMES))
    choices = {"paper": PAPERS, "run": titles, "outcome": outcomes}
    return render("ledger.html", choices=choices, groups=groups, twins=twins, cards=as_cards(claims))


def findings_html(runs: Iterable[BookRun]) -> str:
    """The findings for the book's first page, each with a link to its exhibit; empty where there are none."""
    markdown = MarkdownIt("commonmark")
    found = [(run, one, markdown.render(one.says)) for run in runs for one in findings_of(run) if one.introduction]
    return render("findings.html", findings=found, papers=PAPERS)
