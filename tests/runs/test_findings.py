"""Findings are sentences that hold of the records: a changed record breaks the build and names the sentence."""

import nbformat
import pandas as pd
import pytest
import yaml

from fivelenses import judging, records
from fivelenses.chapters import find_chapter
from fivelenses.judging import Claim, over_seeds, statement
from fivelenses.records import Identity, Record
from fivelenses.runs import findings, pages
from fivelenses.runs.findings import FindingError, evaluate

ENTRY = {
    "exhibit": "paper-figure-1",
    "answer": True,
    "numbers": {
        "top": {"column": "js", "where": {"layer": [5, 6]}, "take": "mean"},
        "low": {"column": "js", "where": {"layer": 1}},
        "fall": "low - top",
        "tokens": {"record": "changes", "column": "tokens", "take": "max"},
        "gain": {"claim": "rises", "part": "rise", "group": "RTE"},
        "verdict": {"claim": "rises", "take": "outcome"},
    },
    "says": "Over {tokens} tokens the top moves {top:.2f} nats, the bottom {fall:.1f} more: {verdict}, by {gain:.0f}.",
    "holds": "0.5 < top and low < top / 2 and gain > 3 and verdict == 'reproduced'",
}


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
    claim = Claim("rises", "p", "It rises.", "§1", rise)
    verdict = judging.judge(claim, pd.DataFrame({"task": ["RTE"] * 3, "x": [4.0, 6.0, 5.0]}))
    judging.save([(statement(claim, verdict), verdict)], page)
    return committed, page


def write_entry(committed, **changes):
    (committed / findings.FILE).write_text(yaml.safe_dump([ENTRY | changes], sort_keys=False))


def test_a_sentence_is_filled_with_numbers_of_exhibits_records_claims_and_expressions(tmp_path):
    committed, page = write_run(tmp_path)
    assert findings.findings(committed, page) == []
    write_entry(committed)
    (found,) = findings.findings(committed, page)
    assert found.sentence == "Over 40 tokens the top moves 0.70 nats, the bottom −0.6 more: reproduced, by 5."
    assert (found.exhibit, found.answer, found.introduction) == ("paper-figure-1", True, False)


def test_a_changed_record_fails_and_names_the_sentence(tmp_path):
    committed, page = write_run(tmp_path)
    write_entry(committed)
    write_run(tmp_path, top=0.4)
    with pytest.raises(FindingError, match=r"Over \{tokens\} tokens the top.*does not hold.*top = 0.4.*rewrite"):
        findings.findings(committed, page)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"holds": "open('x')"}, "cannot be checked: .* 'open' is undefined"),
        ({"holds": "top"}, "does not hold"),
        ({"holds": "tip > 1"}, "'tip' is undefined"),
        ({"numbers": {None: {"column": "js", "take": "max"}}}, "that YAML reads as None, not as a name: rename it"),
        ({"numbers": {"none": {"column": "js", "take": "max"}}}, "name none, a word of expressions: rename it"),
        ({"says": "It is {tip}."}, "asks for the unknown number 'tip'"),
        ({"says": "It is {top.real}."}, "asks for the unknown number 'top.real'"),
        ({"exhibit": "paper-figure-9"}, "follows the exhibit 'paper-figure-9', which this run does not have"),
        ({"when": "top > 1"}, "has an unknown when"),
        ({"numbers": {"top": {"column": "jsd"}}}, "no number top: there is no 'jsd' among js, layer"),
        ({"numbers": {"top": {"column": "js", "where": {"layer": 9}, "take": "mean"}}}, "no row of the table is left"),
        ({"numbers": {"top": {"column": "js", "take": "only"}}}, "2 values are left where one is asked for"),
        ({"numbers": {"top": {"column": "js", "take": "mode"}}}, "there is no 'mode' among only, count"),
        ({"numbers": {"top": {"claim": "falls"}}}, "there is no 'falls' among rises"),
    ],
)
def test_what_is_not_well_formed_is_refused_and_the_sentence_named(tmp_path, changes, message):
    committed, page = write_run(tmp_path)
    write_entry(committed, **changes)
    with pytest.raises(FindingError, match=f"The finding “{changes.get('says', 'Over')[:5]}.*{message}"):
        findings.findings(committed, page)


@pytest.mark.parametrize(
    "code", ["__import__('os')", "top.__class__", "''.__class__.__mro__", "lambda: 1", "x:=1", "1 / 0", "top >"]
)
def test_conditions_run_no_code(code):
    with pytest.raises(ValueError, match="has no value: "):
        evaluate(code, {"top": 1.0})


def test_a_page_says_after_an_exhibit_what_the_paper_shows_and_what_the_run_shows(tmp_path):
    committed, page = write_run(tmp_path)
    write_entry(committed)
    shown = pages.Shown(find_chapter(1), "small", pages.PUBLISHED, page, "small-a", True, committed)
    written = [f'<{tag} class="exhibit" id="paper-{key}">' for tag, key in (("figure", "figure-1"), ("div", "table-1"))]
    outputs = [nbformat.v4.new_output("display_data", {"text/html": one}) for one in (*written, "<p>Other.</p>")]
    beside = pages.beside_exhibits(pages.findings_of(shown)) | {"paper-table-1": "*In the paper*: It falls."}
    after = list(pages.with_words_beside(outputs, beside))
    assert [list(output.data) for output in after] == [["text/html"], ["text/markdown"]] * 2 + [["text/html"]]
    assert after[1].data["text/markdown"].startswith("*In this run*: Over 40 tokens")
    assert after[3].data["text/markdown"] == "*In the paper*: It falls."
    both = pages.beside_exhibits(
        [findings.Finding("hao2020-figure-1", "One."), findings.Finding("hao2020-figure-1", "Two.")]
    )
    assert both["hao2020-figure-1"].startswith("*In the paper*: ")
    assert both["hao2020-figure-1"].endswith("\n\n*In this run*: One. Two.")
