"""The ledger: every claim once per run, and the runs of a chapter side by side."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from fivelenses.exhibits import claims
from fivelenses.exhibits.claims import VERDICTS, Verdict
from fivelenses.runs import ledger, pages
from fivelenses.runs.execution import RunError
from fivelenses.runs.settings import CHAPTERS


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
    (tmp_path / "hao2020-figure-1.parquet").touch()
    return pages.Shown(CHAPTERS[1], "tiny", pages.HERE, tmp_path, "tiny-toy-bert-seed-0")


def test_every_paper_of_a_chapter_has_its_claims_in_the_ledger():
    papers = {chapter.paper for chapter in CHAPTERS.values() if chapter.paper}
    assert papers == set(ledger.CLAIMS) == set(ledger.PAPERS)
    keys = [claim.key for of_paper in ledger.CLAIMS.values() for claim in of_paper]
    assert len(keys) == len(set(keys)) == 35


def test_each_line_can_be_filtered_by_paper_run_and_verdict(run_of_each_verdict):
    rows = Rows(ledger.page([run_of_each_verdict])).rows
    assert [row["data-verdict"] for row in rows] == [VERDICTS[place % 4] for place in range(7)]
    assert {row["data-paper"] for row in rows} == {"hao2020"}
    assert {row["data-run"] for row in rows} == {"toy-bert-seed-0, toy world, this machine"}


def test_signs_lead_to_lines_and_lines_to_exhibits(run_of_each_verdict):
    found = Rows(ledger.page([run_of_each_verdict]))
    inside = [link.removeprefix("#") for link in found.links if link.startswith("#")]
    assert inside == [row["id"] for row in found.rows]
    assert {link for link in found.links if ".html" in link} == {"here/1-attention-svcca.html#hao2020-figure-1"}


def test_what_a_run_says_is_written_as_text(run_of_each_verdict):
    page = ledger.page([run_of_each_verdict])
    assert "it is &lt;so&gt;" in page and "<so>" not in page


def test_a_run_that_judged_other_claims_is_refused_with_the_command_to_run(run_of_each_verdict):
    verdicts = claims.load(run_of_each_verdict.folder)
    claims.save([replace(verdicts[0], claim="no-such-claim"), *verdicts[1:]], run_of_each_verdict.folder)
    with pytest.raises(RunError, match="judged other claims.*fivelenses run 1 --profile tiny --force"):
        ledger.page([run_of_each_verdict])


def test_a_chapter_of_several_runs_sets_them_side_by_side(run_of_each_verdict, tmp_path):
    other = replace(run_of_each_verdict, part=pages.PUBLISHED, name="small-some-encoder", profile="small", leads=False)
    html = ledger.other_runs(other, [run_of_each_verdict, other])
    assert html.count('<th scope="col">') == 3 and html.count('<th scope="row">') == 7
    assert 'href="../../here/1-attention-svcca.html"' in html and "some-encoder, real data" in html
    assert ledger.other_runs(other, [other]) == ""


@pytest.mark.parametrize("number", sorted(ledger.OF_CHAPTERS))
def test_what_the_project_says_itself_has_names_of_its_own(number):
    papers = {claim.key for of_paper in ledger.CLAIMS.values() for claim in of_paper}
    assert not papers & {claim.key for claim in ledger.OF_CHAPTERS[number]}
