"""Findings are sentences that hold of the records: a changed record breaks the build and names the sentence."""

from dataclasses import replace

import nbformat
import pandas as pd
import pytest
import yaml

from fivelenses import judging, records
from fivelenses.book import pages
from fivelenses.book.pages import BookRun, findings_of
from fivelenses.chapters import CHAPTERS
from fivelenses.files import RunError
from fivelenses.judging import CANNOT_BE_TESTED, OPEN, Claim, over_seeds
from fivelenses.records import Identity, Record

ENTRY = {
    "exhibit": "paper-figure-1",
    "answer": True,
    "numbers": {
        "top": {"column": "js", "where": {"layer": [5, 6]}, "take": "mean"},
        "low": {"column": "js", "where": {"layer": 1}},
        "fall": "low - top",
        "tokens": {"record": "changes", "column": "tokens", "take": "max"},
        "gain": {"claim": "rises", "part": "rise", "group": "RTE"},
        "least": {"claim": "rises", "take": "low"},
        "verdict": {"claim": "rises", "take": "outcome"},
    },
    "says": "Over {tokens} tokens the top moves {top:.2f} nats, the bottom {fall:.1f} more: {verdict}, by {gain:.0f}.",
    "holds": "0.5 < top and low < top / 2 and gain > 3 and least < gain and verdict == 'reproduced'",
}
SAYS = "Over 40 tokens the top moves 0.70 nats, the bottom −0.6 more: reproduced, by 5."


def rise(table):
    """The rise."""
    return {task: over_seeds(rows["x"]) for task, rows in table.groupby("task")}


def write_run(folder, top=0.7):
    """A run with one exhibit, one record and one claim."""
    page, committed = folder / "page", folder / "small-a" / "1-attention-svcca"
    page.mkdir(parents=True, exist_ok=True)
    changes = pd.DataFrame({"js": [0.1, top, top], "layer": [1, 5, 6]})
    changes.to_parquet(page / "paper-figure-1.parquet")
    record = Record(pd.DataFrame({"tokens": [30, 40]}), Identity("changes", "c0de", {}, ()), {})
    records.write(committed / "changes.parquet", record)
    claim = Claim("rises", "p", "It rises.", "§1", code="rise")
    verdict = judging.judge(claim, rise, pd.DataFrame({"task": ["RTE"] * 3, "x": [4.0, 6.0, 5.0]}))
    judging.save([(claim, verdict)], page)
    return BookRun(CHAPTERS[1], "small", page, "small-a", True, committed)


def write_entry(run, **changes):
    (run.committed / pages.FINDINGS).write_text(yaml.safe_dump([ENTRY | changes], sort_keys=False))


def test_a_sentence_is_filled_with_numbers_of_exhibits_records_claims_and_expressions(tmp_path):
    run = write_run(tmp_path)
    assert findings_of(run) == []
    write_entry(run)
    (found,) = findings_of(run)
    assert found.says == SAYS
    assert (found.exhibit, found.answer, found.introduction) == ("paper-figure-1", True, False)


def test_a_changed_record_fails_and_names_the_sentence(tmp_path):
    run = write_run(tmp_path)
    write_entry(run)
    write_run(tmp_path, top=0.4)
    with pytest.raises(RunError, match=r"Over \{tokens\} tokens the top.*does not hold.*top = 0.4.*rewrite"):
        findings_of(run)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"holds": "open('x')"}, "'open' is undefined"),
        ({"holds": "top"}, "top is not true"),
        ({"says": "It is {tip}."}, "KeyError: 'tip'"),
        ({"exhibit": "paper-figure-9"}, "FileNotFoundError: .*paper-figure-9"),
        ({"when": "top > 1"}, "when.*Extra inputs"),
        ({"numbers": {"top": {"column": "jsd"}}}, "KeyError: 'jsd'"),
        ({"numbers": {"top": {"column": "js", "where": {"layer": 9}, "take": "mean"}}}, "no row is left"),
        ({"numbers": {"top": {"column": "js"}}}, "2 values are left"),
        ({"numbers": {"top": {"column": "js", "take": "mode"}}}, "take.*Input should be '', 'mean', 'min'"),
    ],
)
def test_what_is_not_well_formed_is_refused_and_the_sentence_named(tmp_path, changes, message):
    run = write_run(tmp_path)
    write_entry(run, **changes)
    with pytest.raises(RunError, match=f"The finding “{changes.get('says', 'Over')[:5]}.*{message}"):
        findings_of(run)


@pytest.mark.parametrize("code", ["__import__('os')", "top.__class__.__name__ == 'float'", "1 / 0", "top >"])
def test_conditions_run_no_code(tmp_path, code):
    run = write_run(tmp_path)
    write_entry(run, holds=code)
    with pytest.raises(RunError, match="The finding .* does not hold"):
        findings_of(run)


def test_a_page_says_after_an_exhibit_what_the_paper_shows_and_what_the_run_shows(tmp_path):
    run = write_run(tmp_path)
    write_entry(run)
    written = [f'<{tag} class="exhibit" id="paper-{key}">' for tag, key in (("figure", "figure-1"), ("div", "table-1"))]
    outputs = [nbformat.v4.new_output("display_data", {"text/html": one}) for one in (*written, "<p>Other.</p>")]
    below = pages.below_exhibits(findings_of(run)) | {"paper-table-1": "*In the paper*: It falls."}
    after = [one for output in outputs for one in pages.with_words(output, below)]
    assert [list(output.data) for output in after] == [["text/html"], ["text/markdown"]] * 2 + [["text/html"]]
    assert after[1].data["text/markdown"].endswith("</span>*In this run*: " + SAYS)
    assert after[3].data["text/markdown"] == "*In the paper*: It falls."
    two = [pages.Finding(exhibit="hao2020-figure-1", says=one, holds="true") for one in ("One.", "Two.")]
    both = pages.below_exhibits(two)["hao2020-figure-1"]
    assert both.startswith("*In the paper*: ") and both.endswith("*In this run*: One. Two.")


def test_a_card_is_followed_by_the_runs_in_which_its_claim_came_out_otherwise(tmp_path):
    run, others = write_run(tmp_path), []
    ((claim, verdict),) = judging.load(run.folder)
    for name, outcome in (("b", OPEN), ("c", verdict.outcome), ("d", CANNOT_BE_TESTED)):
        others.append(replace(run, name=f"small-{name}", leads=False, folder=tmp_path / name))
        others[-1].folder.mkdir()
        judging.save([(claim, replace(verdict, outcome=outcome))], others[-1].folder)
    card = nbformat.v4.new_output("display_data", {"text/html": '<div><details class="claim" id="claim-rises">'})
    _, said = pages.with_words(card, pages.below_claims(run, [run, *others]))
    assert said.data["text/markdown"][15:] == "*open* on [b, real data](small-b/1-attention-svcca.html#claim-rises)"
