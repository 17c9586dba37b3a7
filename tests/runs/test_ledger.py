"""The ledger: every claim once a run, computed verdicts, and the committed runs in step with the predicates."""

import math
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest

from fivelenses import tasks
from fivelenses.exhibits import claims
from fivelenses.exhibits.claims import REPRODUCED, VERDICTS, Verdict
from fivelenses.runs import ledger, pages
from fivelenses.runs.execution import RunError
from fivelenses.runs.settings import CHAPTERS
from fivelenses.tasks.edge_tasks import EDGE_TASKS

PUBLISHED = [shown for shown in pages.shown_runs() if shown.part == pages.PUBLISHED and shown.chapter.paper]


class Rows(HTMLParser):
    """The attributes of the ledger's lines, and the addresses of all links."""

    def __init__(self, text: str):
        super().__init__()
        self.rows, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "tr" and "data-verdict" in found:
            self.rows.append(found)
        if tag == "a":
            self.links.append(found["href"])


@pytest.fixture
def run_of_each_verdict(tmp_path):
    """A run of chapter 1 whose claims got one verdict after another, in turn."""
    verdicts = [
        Verdict(claim.key, VERDICTS[place % 4], 0.5, 0.1, 1, 2, {"rte": 0.5}, "it is <so>" if place == 1 else "")
        for place, claim in enumerate(ledger.CLAIMS["hao2020"])
    ]
    claims.save(verdicts, tmp_path)
    return pages.Shown(CHAPTERS[1], "tiny", pages.HERE, tmp_path)


def test_every_paper_of_a_chapter_has_its_claims_in_the_ledger():
    papers = {chapter.paper for chapter in CHAPTERS.values() if chapter.paper}
    assert papers == set(ledger.CLAIMS) == set(ledger.PAPERS)
    keys = [claim.key for of_paper in ledger.CLAIMS.values() for claim in of_paper]
    assert len(keys) == len(set(keys)) == 35


def test_each_line_can_be_filtered_by_paper_run_and_verdict(run_of_each_verdict):
    rows = Rows(ledger.page([run_of_each_verdict])).rows
    assert [row["data-verdict"] for row in rows] == [VERDICTS[place % 4] for place in range(7)]
    assert {row["data-paper"] for row in rows} == {"hao2020"}
    assert {row["data-run"] for row in rows} == {"tiny, this machine"}


def test_signs_lead_to_lines_and_lines_to_exhibits(run_of_each_verdict):
    found = Rows(ledger.page([run_of_each_verdict]))
    inside = [link.removeprefix("#") for link in found.links if link.startswith("#")]
    assert inside == [row["id"] for row in found.rows]
    assert "here/1-attention-svcca.html#hao2020-figure-1" in found.links


def test_what_a_run_says_is_written_as_text(run_of_each_verdict):
    page = ledger.page([run_of_each_verdict])
    assert "it is &lt;so&gt;" in page and "<so>" not in page


def test_a_run_that_judged_other_claims_is_refused_with_the_command_to_run(run_of_each_verdict):
    verdicts = claims.load(run_of_each_verdict.folder)
    claims.save([replace(verdicts[0], claim="no-such-claim"), *verdicts[1:]], run_of_each_verdict.folder)
    with pytest.raises(RunError, match="judged other claims.*fivelenses run 1 --profile tiny --force"):
        ledger.page([run_of_each_verdict])


@pytest.mark.parametrize("shown", PUBLISHED, ids=lambda shown: shown.chapter.slug)
def test_committed_verdicts_follow_from_committed_tables(shown):
    tables = {file.stem: pd.read_parquet(file) for file in shown.folder.glob("*.parquet")}
    again = claims.judge_all(ledger.CLAIMS[shown.chapter.paper], tables)
    for ours, committed in zip(again, claims.load(shown.folder), strict=True):
        assert (ours.claim, ours.verdict, ours.held, ours.groups) == (
            committed.claim,
            committed.verdict,
            committed.held,
            committed.groups,
        )
        assert (ours.value is None) == (committed.value is None)
        assert ours.value is None or math.isclose(ours.value, committed.value, rel_tol=1e-9)


@pytest.mark.parametrize("shown", PUBLISHED, ids=lambda shown: shown.chapter.slug)
def test_every_exhibit_that_a_committed_run_judges_can_be_pointed_at(shown):
    keys = set(pages.exhibit_titles(shown.folder).values())
    judged = {verdict.claim for verdict in claims.load(shown.folder) if verdict.verdict in (REPRODUCED, claims.PARTLY)}
    for claim in ledger.CLAIMS[shown.chapter.paper]:
        if claim.key in judged:
            assert set(claim.exhibits) <= keys


PUBLISHED = [chapter for chapter in CHAPTERS.values() if chapter.published is not None]


@pytest.mark.parametrize("chapter", PUBLISHED, ids=lambda chapter: chapter.slug)
def test_verdicts_call_tasks_by_their_names_and_not_by_their_keys(chapter):
    groups = [group for verdict in claims.load(pages.published_folder(chapter)) for group in verdict.by_group]
    assert not {*groups} & {*tasks.TASKS, *EDGE_TASKS}
