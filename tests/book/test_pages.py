"""Pages: of a run, by itself, and what breaks the build."""

import json
import subprocess
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from matplotlib.figure import Figure

from fivelenses import judging
from fivelenses.book import build, pages
from fivelenses.chapters import settings
from fivelenses.execution import EXECUTED, RunError
from fivelenses.exhibits import Drawing, Exhibit
from fivelenses.files import checksums


def executed_copy(chapter, tmp_path, change=lambda notebook: None):
    """A finished run of the chapter whose executed notebook was changed."""
    notebook = nbformat.read(chapter.notebook, as_version=4)
    for number, cell in enumerate(notebook.cells, 1):
        cell.execution_count, cell.outputs = number, []
    change(notebook)
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    nbformat.write(notebook, folder / EXECUTED)
    judging.save([], folder)
    return pages.BookRun(chapter, "tiny", pages.HERE, folder, "tiny-toy-bert-seed-0")


def finish(shown):
    """Write the run's facts, when all its other files are there."""
    facts = {
        "profile": "tiny",
        "parameters": settings(1, "tiny").model_dump(mode="json"),
        "versions": {},
        "device": "CPU",
        "seconds": 1,
        "peak_memory": 1,
        "training_seconds": 60,
        "not_measured": {},
        "outdated": ["rollbacks"],
        "files": checksums(shown.folder),
    }
    (shown.folder / "run.json").write_text(json.dumps(facts))
    return shown


def test_a_page_takes_outputs_from_the_run_and_its_pictures_are_files_of_the_book(chapter, tmp_path):
    exhibits = []
    for number, alt in enumerate(("a curve", "another"), 1):
        figure = Figure()
        figure.subplots().plot([0, number])
        drawing = Drawing(figure, pd.DataFrame({"x": [1]}), alt)
        exhibits.append(Exhibit(f"figure-{number}", "Title", "A caption.", drawing.table, drawing))
    outputs = [nbformat.v4.new_output("display_data", {"text/html": exhibit.html}) for exhibit in exhibits]
    shown = finish(executed_copy(chapter, tmp_path, lambda notebook: notebook.cells[1].outputs.extend(outputs)))
    static = tmp_path / "_static"
    page = pages.assemble(shown, static)
    assert page == pages.assemble(shown, static)
    outputs = [cell for cell in page.cells if cell.cell_type == "code"][1].outputs
    figures = BeautifulSoup("".join(output.data["text/html"] for output in outputs), "html.parser").select("figure")
    assert [figure["id"] for figure in figures] == ["figure-1", "figure-2"]
    assert [figure.img["alt"] for figure in figures] == ["a curve", "another"]
    for figure, exhibit in zip(figures, exhibits, strict=True):
        file = static / figure.img["src"].removeprefix("../_static/")
        assert file.read_bytes() == exhibit.drawing.png
    assert len(list((static / "exhibits").glob("*.png"))) == 2


def test_a_page_says_what_run_it_shows_and_offers_the_clean_notebook(chapter, tmp_path):
    shown = finish(executed_copy(chapter, tmp_path))
    page = pages.assemble(shown, tmp_path / "_static")
    (run,) = (cell.source for cell in page.cells if cell.cell_type == "markdown")
    assert 'href="../_static/notebooks/1-attention-svcca.ipynb" download' in run
    assert "The code that measures `rollbacks` has changed since" in run
    assert "| `training_examples` |" in run and "| `schedules, rte` |" in run and "learning_rate: 1.0e-05" in run
    clean = nbformat.read(tmp_path / "_static" / "notebooks" / chapter.notebook.name, as_version=4)
    assert clean == nbformat.read(chapter.notebook, as_version=4)


def test_a_page_with_a_warning_breaks_the_build_with_the_command_to_run(chapter, tmp_path):
    warning = nbformat.v4.new_output("stream", text="warn")
    shown = finish(executed_copy(chapter, tmp_path, lambda notebook: notebook.cells[2].outputs.append(warning)))
    with pytest.raises(RunError, match="printed a warning: run `fivelenses run 1 --profile tiny --force`"):
        pages.assemble(shown, tmp_path / "_static")


def test_a_missing_page_breaks_the_build(chapter, tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "_config.yml").write_text("title: A book\n")
    with pytest.raises(RunError, match="cannot be shown on profile tiny .there is no run.*fivelenses run 1"):
        build.stage(tmp_path / "staged", pages.local_runs())


@pytest.mark.parametrize("failed", [False, True])
def test_a_page_by_itself_is_a_book_of_one_page_or_says_why_not(chapter, tmp_path, monkeypatch, failed):
    shown = pages.run_here(chapter, finish(executed_copy(chapter, tmp_path)).folder)
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
