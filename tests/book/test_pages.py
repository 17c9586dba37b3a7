"""Pages: of a run, by itself, and what breaks the build."""

import json
import os
import subprocess
from pathlib import Path

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup

from fivelenses.book import build, pages
from fivelenses.chapters import settings
from fivelenses.execution import EXECUTED, RunError, code_cells


def finished(chapter, tmp_path, cell=0, outputs=()):
    """A finished run of the chapter, with outputs of one of its cells of code."""
    notebook = nbformat.read(chapter.notebook, as_version=4)
    for number, one in enumerate(code_cells(notebook)):
        one.execution_count, one.outputs = number, list(outputs) if number == cell else []
    folder = tmp_path / "run"
    folder.mkdir()
    nbformat.write(notebook, folder / EXECUTED)
    facts = {"chapter": 1, "profile": "tiny", "parameters": settings(1, "tiny").model_dump(mode="json"), "versions": {}}
    facts |= {"device": "CPU", "seconds": 1, "peak_memory": 1, "training_seconds": 60, "not_measured": {}}
    (folder / "run.json").write_text(json.dumps(facts | {"outdated": ["rollbacks"]}))
    return pages.BookRun(chapter, "tiny", folder, "tiny-toy-bert-seed-0")


def test_a_page_is_the_notebook_with_the_outputs_of_its_run_named_in_its_title(chapter, tmp_path):
    shown = [nbformat.v4.new_output("display_data", {"text/html": f"<p>{one}</p>"}) for one in "ab"]
    run = finished(chapter, tmp_path, 1, shown)
    page = pages.assemble(run, tmp_path / "_static")
    assert page == pages.assemble(run, tmp_path / "_static")
    assert code_cells(page)[1].outputs == shown and not code_cells(page)[2].outputs
    assert page.cells[0].source.strip() == "# What changes? toy-bert-seed-0, toy world, this machine"


def test_a_page_says_what_run_it_shows_and_offers_the_clean_notebook(chapter, tmp_path):
    said = pages.assemble(finished(chapter, tmp_path), tmp_path / "_static").cells[1].source
    assert 'href="../_static/notebooks/1-attention-svcca.ipynb" download' in said
    assert "The code that measures `rollbacks` has changed since" in said
    rows = [[cell.text for cell in row.select("td")] for row in BeautifulSoup(said, "html.parser").select("tbody tr")]
    assert ["training_examples", "6000", "–"] in rows and ["variance_kept", "0.99", "0.99"] in rows
    of_rte = next(row for row in rows if row[0] == "schedules, rte")
    assert '"learning_rate": 1e-05' in of_rte[2] and "epochs" not in [row[0] for row in rows]
    clean = nbformat.read(tmp_path / "_static" / "notebooks" / chapter.notebook.name, as_version=4)
    assert clean == nbformat.read(chapter.notebook, as_version=4)


def test_a_page_with_a_warning_breaks_the_build_with_the_command_to_run(chapter, tmp_path):
    run = finished(chapter, tmp_path, 2, [nbformat.v4.new_output("stream", text="warn")])
    with pytest.raises(RunError, match="printed a warning: remove .* and give the same command again"):
        pages.assemble(run, tmp_path / "_static")


@pytest.mark.parametrize("failed", [False, True])
def test_a_page_by_itself_is_a_book_of_one_page_or_says_why_not(chapter, tmp_path, monkeypatch, failed):
    shown = pages.run_here(finished(chapter, tmp_path).folder)
    assert shown.title == "toy-bert-seed-0, toy world, this machine"
    (tmp_path / "_config.yml").touch()
    (tmp_path / "book" / "_static").mkdir(parents=True)
    for name in ("glossary.md", "references.md", "references.bib"):
        (tmp_path / "book" / name).touch()

    def builder(command, **options):
        source, output = Path(command[command.index("build") + 1]), Path(command[-1])
        contents = yaml.safe_load((source / "_toc.yml").read_text())
        named = [contents["root"], *(entry["file"] for entry in contents["chapters"])]
        assert [page for page in named if list(source.glob(f"{page}.*"))] == named
        (output / "_build" / "html" / "here").mkdir(parents=True)
        (output / "_build" / "html" / "glossary.html").touch()
        (output / "_build" / "html" / f"{contents['root']}.html").touch()
        return subprocess.CompletedProcess(command, int(failed), "reading\n", "WARNING: a link leads nowhere")

    monkeypatch.setattr(build.subprocess, "run", builder)
    if failed:
        with pytest.raises(RunError, match="did not build: WARNING: a link leads nowhere"):
            build.build_page(shown)
        assert not (shown.folder / "page").exists()
    else:
        page = build.build_page(shown)
        assert page.is_file() and page.is_relative_to(shown.folder / "page")


def test_a_book_stays_as_it_is_until_something_that_it_is_made_from_is_newer(chapter, tmp_path, monkeypatch):
    for name in ("_config.yml", "_toc.yml"):
        (tmp_path / name).touch()
    page, lines = tmp_path / "build" / "book" / "html" / "index.html", []
    page.parent.mkdir(parents=True)
    page.touch()
    monkeypatch.setattr(build, "execute_all", lambda *_, **__: None)
    monkeypatch.setattr(build, "stage", lambda folder, _: folder.mkdir(parents=True))
    os.utime(page, (build.last_change() + 1,) * 2)
    assert build.build(lines.append) == page and lines == ["book: current"]
    os.utime(chapter.notebook, (page.stat().st_mtime + 1,) * 2)
    with pytest.raises(RunError):  # a book of nothing
        build.build(lines.append)
    assert lines[-1] == "book: building"
