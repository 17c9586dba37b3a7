"""The ledger of claims as a page: every claim of every paper, with what each run that the book shows says of it.

Everything on it is read from the runs' ``claims.json`` and from the claims themselves. Readers filter it by paper, run
and verdict (``_static/ledger.js``); without a script all of it is shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fivelenses.exhibits import claims
from fivelenses.exhibits.claims import REPRODUCED, VERDICTS, Claim, Verdict
from fivelenses.papers.five_lenses.claims import CLAIMS as STATEMENTS
from fivelenses.papers.hao2019.claims import CLAIMS as HAO2019
from fivelenses.papers.hao2020.claims import CLAIMS as HAO2020
from fivelenses.papers.merchant2020.claims import CLAIMS as MERCHANT2020
from fivelenses.papers.own_encoders.claims import CLAIMS as OF_OWN_ENCODERS
from fivelenses.papers.singh2020.claims import CLAIMS as SINGH2020
from fivelenses.papers.toy_world.claims import CLAIMS as OF_THE_TOY_WORLD
from fivelenses.papers.zhou2022.claims import CLAIMS as ZHOU2022
from fivelenses.runs.execution import RunError
from fivelenses.runs.pages import PUBLISHED, Shown
from fivelenses.runs.side_by_side import Picture, render

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "hao2020": HAO2020,
    "zhou2022": ZHOU2022,
    "hao2019": HAO2019,
    "singh2020": SINGH2020,
    "merchant2020": MERCHANT2020,
}
PAPERS = {
    "hao2020": "Hao et al. (2020)",
    "zhou2022": "Zhou and Srikumar (2022)",
    "hao2019": "Hao et al. (2019)",
    "singh2020": "Singh and Giovanardi (2020)",
    "merchant2020": "Merchant et al. (2020)",
}
# What the project itself says, where no paper does; their chapters show them.
OF_CHAPTERS: dict[int, tuple[Claim, ...]] = {0: OF_THE_TOY_WORLD, 6: STATEMENTS, 7: OF_OWN_ENCODERS}


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: a claim, and what one run says of it."""

    claim: Claim
    verdict: Verdict
    shown: Shown

    @property
    def run_name(self) -> str:
        """The run in a reader's words."""
        return self.shown.title

    @property
    def exhibits(self) -> list[str]:
        """The keys of the claim's exhibits that the run has."""
        return [key for key in self.claim.exhibits if (self.shown.folder / f"{key}.parquet").is_file()]

    @property
    def anchor(self) -> str:
        """The name of the line on its page."""
        return f"{self.claim.key}-{self.shown.part if self.shown.leads else self.shown.name}"


def claims_of(shown: Shown) -> tuple[Claim, ...]:
    """The claims that a run's chapter judges."""
    return CLAIMS[shown.chapter.paper] if shown.chapter.paper else OF_CHAPTERS[shown.chapter.number]


def verdicts_of(shown: Shown) -> dict[str, Verdict]:
    """The verdicts of a run by claim.

    Raises:
        RunError: it judged other claims than its chapter has now; the message names the command that mends it.
    """
    judged = {verdict.claim: verdict for verdict in claims.load(shown.folder)}
    if set(judged) != {claim.key for claim in claims_of(shown)}:
        raise RunError(
            f"Chapter {shown.chapter.number} ({shown.profile}) judged other claims than it has now: run "
            f"`fivelenses run {shown.chapter.number} --profile {shown.profile} --force`."
        )
    return judged


def entries(runs: Iterable[Shown]) -> list[Entry]:
    """All lines of the ledger: by paper, then by claim, then by run.

    Raises:
        RunError: see `verdicts_of`.
    """
    lines = []
    runs = [shown for shown in runs if shown.chapter.paper]
    for paper, of_paper in CLAIMS.items():
        verdicts = {shown: verdicts_of(shown) for shown in runs if shown.chapter.paper == paper}
        lines += [Entry(claim, judged[claim.key], shown) for claim in of_paper for shown, judged in verdicts.items()]
    return lines


def page(runs: Iterable[Shown]) -> str:
    """The ledger as HTML: an overview of claims by runs, and a table of all lines."""
    lines = entries(runs)
    # The published runs before this machine's own.
    ordered = sorted(lines, key=lambda line: line.shown.part != PUBLISHED)
    run_names = list(dict.fromkeys(line.run_name for line in ordered))
    choices = {
        "paper": PAPERS,
        "run": {name: name for name in run_names},
        "verdict": {verdict: verdict for verdict in VERDICTS},
    }
    return render(
        "ledger.html",
        entries=lines,
        run_names=run_names,
        papers={paper: name for paper, name in PAPERS.items() if any(line.claim.paper == paper for line in lines)},
        claims=CLAIMS,
        reproduced={paper: _reproduced(lines, paper) for paper in PAPERS},
        choices=choices,
    )


def _reproduced(lines: list[Entry], paper: str) -> dict[str, str]:
    """How many of a paper's claims each run reproduces, by the run's name."""
    held: dict[str, list[bool]] = {}
    for line in lines:
        if line.claim.paper == paper:
            held.setdefault(line.run_name, []).append(line.verdict.verdict == REPRODUCED)
    return {name: f"{sum(of_run)} of {len(of_run)}" for name, of_run in held.items()}


def other_runs(shown: Shown, runs: Iterable[Shown], side_by_side: Sequence[Picture] = ()) -> str:
    """The part of a chapter's page that sets its runs next to one another, as HTML; empty where there is one run.

    Args:
        shown: whose page it is.
        runs: all that the book shows.
        side_by_side: the picture that the chapter opens with, in each of its runs.
    """
    same = [run for run in runs if run.chapter == shown.chapter]
    if len(same) < 2:
        return ""
    return render(
        "other_runs.html",
        runs=same,
        addresses={run: f"{shown.up}{run.page}.html" for run in same},
        claims=claims_of(shown),
        verdicts={run: verdicts_of(run) for run in same},
        pictures=side_by_side,
    )
