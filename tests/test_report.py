"""A report on an encoder: what would run is known before it runs, and the page holds its claims and pictures."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from transformers import BertConfig, BertModel

from fivelenses import judging, report
from fivelenses.book.pages import BookRun
from fivelenses.chapters import CHAPTERS, ParameterError, chapters_on
from fivelenses.execution import EXECUTED, RunError
from fivelenses.judging import CONTRADICTED
from fivelenses.models import encoders
from fivelenses.tasks.sources import SourceError
from tests.book.judged import CLAIMS, as_judged


@pytest.fixture
def run_folder(tmp_path):
    """A run of chapter 1 with a verdict."""
    folder = tmp_path / "run"
    folder.mkdir()
    judging.save([(CLAIMS[0], as_judged(CLAIMS[0], CONTRADICTED))], folder)
    return folder


def local(profile):
    """The chapters that a machine runs on a profile."""
    return [chapter.number for chapter in chapters_on(profile)]


def test_every_chapter_is_pointed_at_the_encoder_and_only_its_own_tasks_are_chosen():
    jobs = report.plan("toy-bert/seed-2", "tiny", ["cola", "sst2"], {"seeds": [3, 4], "training_examples": 50})
    assert [job.chapter.number for job in jobs] == local("tiny")
    for chosen in (job.parameters for job in jobs):
        assert set(chosen.encoders_used()) <= {"toy-bert/seed-2", "random:toy-bert/seed-2"}
        assert chosen.seeds == (3, 4) and {chosen.examples_of(task) for task in chosen.tasks} == {50}
    assert set(jobs[0].parameters.tasks) == {"cola", "sst2"} != set(jobs[4].parameters.tasks)


def test_a_task_that_no_chapter_runs_is_refused():
    with pytest.raises(ParameterError, match="No chapter runs the task 'wikitext' on tiny: leave it out."):
        report.plan("toy-bert/seed-0", tasks=["cola", "wikitext"])


def here(folder, name="tiny-a/<b>"):
    return BookRun(CHAPTERS[1], "tiny", folder, name, leads=False)


def test_the_page_holds_everything_inside_itself(run_folder, monkeypatch):
    monkeypatch.setattr(report, "book_run", lambda chapter, profile: None)
    page = report.report_page("a/<b>", "6 layers", "tiny", [here(run_folder)], ["Chapter 2 failed."])
    read = BeautifulSoup(page, "html.parser")
    assert not read.select("link, iframe, script") and "url(" not in read.style.text
    assert {link["href"] for link in read.select("a")} == {"#claim-claim-0", "#claim-0-tiny-a/<b>"}
    assert all(read.find(id=link["href"][1:]) for link in read.select("a"))
    assert "a/&lt;b&gt; under five lenses" in page and "RTE was not &lt;learned&gt;" in page
    assert "Chapter 2 failed." in page and "Contradicted: it fails in both tasks" in page


@pytest.mark.parametrize(("name", "views"), [("tiny-toy-bert-seed-0", 2), ("tiny-a/<b>", 1)])
def test_the_books_run_stands_beside_unless_it_is_the_same(run_folder, monkeypatch, tmp_path, name, views):
    (tmp_path / EXECUTED).touch()
    runs = [BookRun(CHAPTERS[1], profile, tmp_path, name) for profile in ("small", "tiny")]
    monkeypatch.setattr(report, "published_runs", lambda: [replace(runs[0], committed=tmp_path)])
    monkeypatch.setattr(report, "local_runs", lambda: runs[1:])
    found = [report.book_run(CHAPTERS[1], profile).profile for profile in ("tiny", "small", "paper")]
    assert found == ["tiny", "small", "small"]
    judging.save([(CLAIMS[0], as_judged(CLAIMS[0], CONTRADICTED))], tmp_path)
    page = report.report_page("encoder", "6 layers", "tiny", [here(run_folder)], [])
    assert page.count('<section class="view"') == views


@pytest.fixture
def executed(run_folder, tmp_path, monkeypatch):
    """The numbers of the chapters that are executed; those of `failures` fail, the others have that run."""
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    ran = SimpleNamespace(numbers=[], failures={})

    def execute(job, log):
        ran.numbers.append(job.chapter.number)
        if error := ran.failures.get(job.chapter.number):
            raise error
        return shutil.copytree(run_folder, job.place)

    monkeypatch.setattr(report, "execute", execute)
    return ran


def test_a_chapter_that_fails_leaves_the_others_on_the_page(executed, tmp_path):
    executed.failures = {2: RunError("Chapter 2, tiny: a cell failed."), 4: SourceError("A table is missing.")}
    page, failures = report.report("toy-bert/seed-0", tasks=["cola", "sst2"], log=lambda line: None)
    assert "Chapter 5 keeps its own tasks." in page.read_text()
    assert failures == ["Chapter 2, tiny: a cell failed.", "Chapter 4, tiny: A table is missing."]
    assert all(sentence in page.read_text() for sentence in failures)
    assert page == tmp_path / "runs" / "reports" / "toy-bert-seed-0-tiny" / "index.html"
    assert [file.name for file in page.parent.parent.iterdir()] == ["toy-bert-seed-0-tiny"]
    table = pd.read_parquet(page.with_name("claims.parquet"))
    assert set(table["chapter"]) == {*local("tiny")} - {2, 4} and set(table["encoder"]) == {"toy-bert/seed-0"}
    assert set(table["group"]) == {"mrpc", "sst2"} and set(table["verdict"]) == {CONTRADICTED}


def test_a_chapter_that_needs_more_layers_is_left_out_before_anything_runs(executed, tmp_path):
    shape = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=1000)
    BertModel(shape).save_pretrained(tmp_path / "one")
    encoders.tokenizer(encoders.locate("toy-bert/seed-0")).save_pretrained(tmp_path / "one")
    lines = []
    page, failures = report.report(str(tmp_path / "one"), log=lines.append)
    assert executed.numbers == [one for one in local("tiny") if CHAPTERS[one].parameters.fewest_layers <= 1]
    assert executed.numbers != local("tiny") and not failures
    assert lines[1] == "Chapter 3 is left out: it needs more layers." and lines[1] in page.read_text()


def test_a_report_without_any_chapter_is_an_error(executed):
    executed.failures = {number: RunError("It failed here.") for number in local("tiny")}
    with pytest.raises(RunError, match="No chapter could be run on toy-bert/seed-0: Chapter 1, tiny: It failed here."):
        report.report("toy-bert/seed-0", log=lambda line: None)
