"""The ledger: every claim once, with what each run says of it; the runs of a chapter side by side."""

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from tests.book.judged import CLAIMS, in_turn

from fivelenses import judging
from fivelenses.book import ledger, pages
from fivelenses.chapters import CHAPTERS
from fivelenses.judging import OPEN, OUTCOMES

TITLE = "toy-bert-seed-0, toy world, this machine"


def read(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


@pytest.fixture
def run(tmp_path):
    """A run of chapter 1 whose claims have one outcome after another, and one exhibit."""
    judging.save(in_turn(CLAIMS), tmp_path)
    (tmp_path / "hao2020-figure-1.parquet").touch()
    return pages.BookRun(CHAPTERS[1], "tiny", tmp_path, "tiny-toy-bert-seed-0")


@pytest.fixture
def other(run, tmp_path):
    """A published run of another encoder, with controls."""
    folder = tmp_path / "other"
    folder.mkdir()
    judging.save(in_turn(CLAIMS, controls=True), folder)
    committed = tmp_path / "small-some-encoder" / "1-attention-svcca"
    return pages.BookRun(CHAPTERS[1], "small", folder, "small-some-encoder", False, committed)


def test_every_paper_of_a_chapter_has_its_name_in_the_ledger():
    assert {chapter.paper for chapter in CHAPTERS.values() if chapter.paper} == set(ledger.PAPERS)


def test_the_matrix_has_a_sign_per_claim_and_run_that_leads_to_its_place(run, other):
    matrix = read(ledger.matrix_html([run, other])).select_one(".ledger-overview")
    heads = [cell.text for cell in matrix.select("thead th")]
    assert heads == ["claim", "some-encoder, real data", TITLE, "stays", "rates"]
    signs = matrix.select("td.signs a")
    assert len(signs) == 2 * len(CLAIMS)
    said = [sign["aria-label"].split(": ")[1] for sign in signs]
    assert said[::2] == said[1::2] == [OUTCOMES[place % 5] for place in range(len(CLAIMS))]
    assert len({sign.text for sign in signs}) == 5
    places = {element["id"] for element in read(ledger.ledger_html([run, other])).select(".view")}
    assert {sign["href"] for sign in signs} == {f"claims.html#{place}" for place in places}
    assert [cell.text for cell in matrix.select("tbody th")] == ["Hao et al. (2020)", "2 of 7", "2 of 7", "", ""]
    held = [cell.text for cell in matrix.select("td.signs .count")]
    assert held[::2] == ["2/2 × 3", "0/2 × 3", "1/2 × 3", "1/2 × 3", ""] * (len(held) // 10) + ["2/2 × 3", "0/2 × 3"]


def test_the_table_of_verdicts_has_a_row_per_claim_and_run_whatever_the_order_of_runs(run, other):
    table = ledger.verdict_table([run, other])
    assert table.equals(ledger.verdict_table([other, run])) and len(table) == 2 * len(CLAIMS)
    verdicts_here = table[table["run"] == TITLE].set_index("claim")["verdict"]
    assert verdicts_here[CLAIMS[1].key] == OUTCOMES[1] and set(table["paper"]) == {"hao2020"}


def test_there_is_a_card_per_claim_that_can_be_filtered(run, other):
    cards = read(ledger.ledger_html([run, other])).select(".claim-cards > details.claim")
    assert [card["id"] for card in cards] == [f"claim-{claim.key}" for claim in CLAIMS]
    assert {card["data-paper"] for card in cards} == {"hao2020"}
    for place, card in enumerate(cards):
        for elements in (card.select(".chip"), card.select(".view")):
            assert [one["data-run"] for one in elements] == ["some-encoder, real data", TITLE]
            assert {one["data-outcome"] for one in elements} == {OUTCOMES[place % 5]}


def test_a_card_says_what_was_left_out_and_what_controls_show(run, other):
    views = read(ledger.ledger_html([run, other])).select(".view")
    reproduced, contradicted, untested = views[0].text, views[2].text, views[8].text
    assert "Left out: rte, because RTE was not <learned>." in reproduced
    assert "On the twin that moved at random: reproduced (it holds in 2 of 2), so it is no evidence" in reproduced
    assert "On models trained on shuffled labels: contradicted (it holds in 0 of 2)." in reproduced
    assert "On the twin that moved at random: contradicted" in contradicted
    assert "Cannot be tested: this run has not measured <it>." in untested
    assert f"No twin: {CLAIMS[0].no_twin or 'this run has none'}." in views[1].text
    assert "Records: book/records/small-some-encoder/1-attention-svcca" in " ".join(views[0].text.split())
    assert "Records" not in views[1].text


def test_links_lead_to_exhibits_that_the_run_has(run, other):
    links = {link["href"] for link in read(ledger.ledger_html([run, other])).select(".view a")}
    assert links == {"here/1-attention-svcca.html#hao2020-figure-1"}


def test_the_page_says_how_many_tests_it_holds_and_how_many_verdicts_hold_for_the_twin_too(run, other):
    groups = [group for _, verdict in in_turn(CLAIMS) * 2 for group in verdict.groups]
    decided, by_chance = sum(group.outcome != OPEN for group in groups), sum(group.chance for group in groups)
    text = " ".join(read(ledger.ledger_html([run, other])).text.split())
    assert f"Of {len(groups)} group tests with an interval, {decided} are decided." in text
    assert f"chance alone would decide at most {by_chance:.0f} of them on average" in text
    assert "Of 2 reproduced verdicts that have a twin, 2 also hold for it" in text


def test_the_first_page_tells_findings_that_are_for_it_and_leads_to_their_exhibits(run, other):
    assert ledger.findings_html([run]).strip() == ""
    pd.DataFrame({"js": [0.5, 0.1]}).to_parquet(other.folder / "hao2020-figure-1.parquet")
    entry = {"exhibit": "hao2020-figure-1", "numbers": {"top": {"column": "js", "take": "max"}}, "holds": "top > 0.4"}
    entries = [entry | {"says": "It moves {top:.1f}.", "introduction": True}, entry | {"says": "Not for here."}]
    other.committed.mkdir(parents=True)
    (other.committed / "findings.yaml").write_text(yaml.safe_dump(entries))
    page = read(ledger.findings_html([run, other]))
    assert [item.p.text for item in page.select("li")] == ["It moves 0.5."]
    assert page.a["href"] == "published/small-some-encoder/1-attention-svcca.html#hao2020-figure-1"
