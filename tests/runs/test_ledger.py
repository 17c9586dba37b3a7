"""The ledger: every claim once, with what each run says of it; the runs of a chapter side by side."""

from dataclasses import replace
from importlib import import_module

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from tests.runs.judged import as_judged, in_turn

from fivelenses.first_exhibits import claims, verdicts
from fivelenses.first_exhibits.verdicts import OUTCOMES
from fivelenses.runs import ledger, pages
from fivelenses.runs.cards import code_of
from fivelenses.runs.execution import RunError
from fivelenses.runs.settings import CHAPTERS

OF_CHAPTER_1 = ledger.CLAIMS["hao2020"]
TITLE = "toy-bert-seed-0, toy world, this machine"


def read(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


@pytest.fixture
def run(tmp_path):
    """A run of chapter 1 whose claims have one outcome after another, and one exhibit."""
    claims.save(in_turn(OF_CHAPTER_1), tmp_path)
    (tmp_path / "hao2020-figure-1.parquet").touch()
    return pages.Shown(CHAPTERS[1], "tiny", pages.HERE, tmp_path, "tiny-toy-bert-seed-0")


@pytest.fixture
def other(run, tmp_path):
    """A published run of another encoder, with controls."""
    folder = tmp_path / "other"
    folder.mkdir()
    claims.save(in_turn(OF_CHAPTER_1, controls=True), folder)
    committed = tmp_path / "small-some-encoder" / "1-attention-svcca"
    return replace(
        run,
        part=pages.PUBLISHED,
        name="small-some-encoder",
        profile="small",
        leads=False,
        folder=folder,
        committed=committed,
    )


def test_a_chapter_whose_paper_the_ledger_lacks_is_refused_with_what_to_add():
    with pytest.raises(RunError, match="add 'new2026' to CLAIMS and to PAPERS in fivelenses/runs/ledger.py"):
        ledger.claims_of_chapter(replace(CHAPTERS[1], paper="new2026"))


def test_every_paper_of_a_chapter_has_its_claims_in_the_ledger():
    papers = {chapter.paper for chapter in CHAPTERS.values() if chapter.paper}
    assert papers == set(ledger.CLAIMS) == set(ledger.PAPERS)
    keys = [claim.key for of_paper in ledger.CLAIMS.values() for claim in of_paper]
    assert len(keys) == len(set(keys)) >= 35


@pytest.mark.parametrize(
    "claim",
    [one for of in (*ledger.CLAIMS.values(), *ledger.OF_CHAPTERS.values()) for one in of],
    ids=lambda claim: claim.key,
)
def test_a_claim_has_what_a_card_prints(claim):
    assert claim.sentence.endswith(".") and claim.place and claim.measure and claim.unit
    names = [part.name for part in claim.parts]
    assert names and len(names) == len(set(names)) and claim.records
    module, _, function = code_of(claim).rpartition(".")
    assert getattr(import_module(module), function) is claim.effects


def test_the_matrix_has_a_sign_per_claim_and_run_that_leads_to_its_place(run, other):
    page = read(ledger.matrix([run, other]))
    matrix = page.select_one(".ledger-overview")
    assert [cell.text for cell in matrix.select("thead th")] == ["claim", "some-encoder, real data", TITLE, "stays"]
    signs = matrix.select("td.signs a")
    assert len(signs) == 2 * len(OF_CHAPTER_1)
    said = [sign["aria-label"].split(": ")[1] for sign in signs]
    assert said[::2] == said[1::2] == [OUTCOMES[place % 5] for place in range(len(OF_CHAPTER_1))]
    assert len({sign.text for sign in signs}) == 5
    places = {element["id"] for element in read(ledger.page([run, other])).select(".view")}
    assert {sign["href"] for sign in signs} == {f"claims.html#{place}" for place in places}
    counts = [cell.text for cell in matrix.select("tbody th")]
    assert counts == ["Hao et al. (2020)", "2 of 7", "2 of 7", ""]
    held = [cell.text for cell in matrix.select("td.signs .count")]
    assert held[::2] == ["2/2 × 3", "0/2 × 3", "1/2 × 3", "1/2 × 3", ""] * (len(held) // 10) + ["2/2 × 3", "0/2 × 3"]


def test_the_table_of_verdicts_has_a_row_per_claim_and_run_whatever_the_order_of_runs(run, other):
    table = ledger.verdict_table([run, other])
    assert table.equals(ledger.verdict_table([other, run])) and len(table) == 2 * len(OF_CHAPTER_1)
    verdicts_here = table[table["run"] == TITLE].set_index("claim")["verdict"]
    assert verdicts_here[OF_CHAPTER_1[1].key] == OUTCOMES[1] and set(table["paper"]) == {"hao2020"}


def test_there_is_a_card_per_claim_that_can_be_filtered(run, other):
    cards = read(ledger.page([run, other])).select(".claim-cards > details.claim")
    assert [card["id"] for card in cards] == [f"claim-{claim.key}" for claim in OF_CHAPTER_1]
    assert {card["data-paper"] for card in cards} == {"hao2020"}
    for place, card in enumerate(cards):
        for elements in (card.select(".chip"), card.select(".view")):
            assert [one["data-run"] for one in elements] == ["some-encoder, real data", TITLE]
            assert {one["data-outcome"] for one in elements} == {OUTCOMES[place % 5]}


def test_a_card_says_what_was_left_out_and_what_controls_show(run, other):
    views = read(ledger.page([run, other])).select(".view")
    reproduced, contradicted, untested = views[0].text, views[2].text, views[8].text
    assert "Left out: rte, because RTE was not <learned>." in reproduced
    assert "It holds for the twin that moved at random, too (reproduced: it holds in 2 of 2)" in reproduced
    assert "It does not hold for models trained on shuffled labels (contradicted" in reproduced
    assert "It does not hold for the twin that moved at random" in contradicted
    assert "Whether it holds for models trained on shuffled labels is not clear (mixed" in contradicted
    assert "Cannot be tested: this run has not measured <it>." in untested
    assert f"No twin: {OF_CHAPTER_1[0].untwinned or 'this run has none'}." in views[1].text
    assert "Records: book/records/small-some-encoder/1-attention-svcca" in " ".join(views[0].text.split())
    assert "Records" not in views[1].text


def test_links_lead_to_exhibits_that_the_run_has(run, other):
    links = {link["href"] for link in read(ledger.page([run, other])).select(".view a")}
    assert links == {"here/1-attention-svcca.html#hao2020-figure-1"}


def test_the_page_says_how_many_tests_it_holds(run, other):
    found = [one.verdict for one in in_turn(OF_CHAPTER_1)] * 2
    tests, decided, by_chance = verdicts.multiplicity(found)
    text = " ".join(read(ledger.page([run, other])).text.split())
    assert f"Group tests with an interval in the ledger: {tests}; decided: {decided}." in text
    assert (
        f"chance alone would decide at most {by_chance:.0f} of them on average" in text
        and "kept no replicates" not in text
    )


def test_a_run_without_replicates_is_counted_apart(run):
    claims.save([as_judged(claim, OUTCOMES[0], measured=False) for claim in OF_CHAPTER_1], run.folder)
    page = read(ledger.page([run]))
    assert f"Another {2 * len(OF_CHAPTER_1)} groups are of runs that kept no replicates" in page.text.replace("\n", " ")
    assert "Group tests" not in page.text
    assert all("interval not measured" in view.text for view in page.select(".view"))
    assert not page.select("circle[fill]") and len(page.select("circle")) == sum(
        2 * len(one.parts) for one in OF_CHAPTER_1
    )


def test_controls_stand_in_a_table(run, other):
    page = read(ledger.page([run, other]))
    table = page.select_one(".ledger-controls")
    rows = [
        [cell.select_one(".named")["title"].split(": ")[1] for cell in row.select("td")[1:]]
        for row in table.select("tbody tr")
    ]
    assert rows[:4] == [[OUTCOMES[place], OUTCOMES[place], OUTCOMES[place + 1]] for place in range(4)]
    assert len(rows) == sum(place % 5 < 4 for place in range(len(OF_CHAPTER_1)))
    assert "2 of the 2 reproduced verdicts with a twin hold for the twin, too." in page.select_one(".controls").text


def test_what_a_run_says_is_written_as_text(run):
    page = ledger.page([run])
    assert "&lt;it&gt;" in page and "<it>" not in page and "&lt;learned&gt;" in page and "<learned>" not in page


@pytest.mark.parametrize("what", ["claim", "part", "file of before"])
def test_a_run_that_judged_other_claims_is_refused_with_the_command_to_run(run, what):
    judged = claims.load(run.folder)
    if what == "claim":
        judged[0] = replace(judged[0], claim="no-such-claim")
    if what == "part":
        judged[0] = replace(judged[0], effects=tuple(replace(one, part="old") for one in judged[0].effects))
    claims.save(judged, run.folder)
    if what == "file of before":
        (run.folder / "claims.json").write_text('[{"claim": "a", "verdict": "partly"}]')
    with pytest.raises(RunError, match="judged other claims.*fivelenses run 1 --profile tiny --force"):
        ledger.page([run])


def test_a_chapter_of_several_runs_sets_them_side_by_side(run, other):
    page = read(ledger.other_runs(other, [run, other]))
    links = {link["href"] for link in page.select("a")}
    assert (
        "../../here/1-attention-svcca.html" in links
        and "../../here/1-attention-svcca.html#claim-js-last-layers" in links
    )
    assert [code.text for code in page.select("td > code")] == [claim.key for claim in OF_CHAPTER_1]
    assert len(page.select("td.signs > a.sign")) == 2 * len(OF_CHAPTER_1)
    assert not page.select("details.claim"), "the page has its own cards above"
    assert ledger.other_runs(other, [other]) == ""


@pytest.mark.parametrize("number", sorted(ledger.OF_CHAPTERS))
def test_what_the_project_says_itself_has_names_of_its_own(number):
    papers = {claim.key for of_paper in ledger.CLAIMS.values() for claim in of_paper}
    assert not papers & {claim.key for claim in ledger.OF_CHAPTERS[number]}


def test_the_matrix_on_the_first_page_leads_to_the_ledgers_cards(run, other):
    page = read(ledger.matrix([run, other]))
    addresses = {link["href"] for link in page.select("a")}
    assert {f"claims.html#claim-{claim.key}" for claim in OF_CHAPTER_1} <= addresses
    assert all(address.startswith("claims.html#") for address in addresses)


def test_the_first_page_tells_findings_that_are_for_it_and_leads_to_their_exhibits(run, other):
    assert ledger.told_first([run]).strip() == ""
    pd.DataFrame({"js": [0.5, 0.1]}).to_parquet(other.folder / "hao2020-figure-1.parquet")
    entry = {"exhibit": "hao2020-figure-1", "numbers": {"top": {"column": "js", "take": "max"}}, "holds": "top > 0.4"}
    entries = [entry | {"says": "It moves {top:.1f}.", "introduction": True}, entry | {"says": "Not for here."}]
    other.committed.mkdir(parents=True)
    (other.committed / "findings.yaml").write_text(yaml.safe_dump(entries))
    page = read(ledger.told_first([run, other]))
    assert [item.p.text for item in page.select("li")] == ["It moves 0.5."]
    assert page.a["href"] == "published/small-some-encoder/1-attention-svcca.html#hao2020-figure-1"
