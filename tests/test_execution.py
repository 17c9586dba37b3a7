import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fivelenses import execution
from fivelenses.chapters import settings
from fivelenses.execution import RunError
from fivelenses.files import project_folder, runs_folder
from tests.homes import BEGIN, make_home, write_notebook


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """Chapter 1 executed once, in another home."""
    with pytest.MonkeyPatch.context() as patch:
        make_home(tmp_path_factory.mktemp("first"), patch)
        write_notebook(BEGIN, "run.finish()")
        return execution.execute(execution.of_chapter(1, "tiny"), log=lambda line: None)


@pytest.fixture
def folder(first_run, chapter):
    """A copy of that run where this home has its own."""
    return Path(shutil.copytree(first_run, runs_folder() / "tiny" / chapter.slug))


def test_a_change_of_code_makes_a_run_stale(folder, chapter):
    job = execution.of_chapter(1, "tiny")
    assert job.place == folder and job.reason == ""
    assert replace(job, chapter=replace(chapter, measures=())).digest != job.digest
    write_notebook(BEGIN, "run.finish()  # changed")
    assert "have changed since" in job.reason


def test_a_failure_names_the_cell_and_keeps_the_last_good_run(folder):
    write_notebook(BEGIN, "1 / 0")
    with pytest.raises(RunError, match="cell that begins '1 / 0' failed, ZeroDivisionError"):
        execution.execute(execution.of_chapter(1, "tiny"), log=lambda line: None)
    assert (folder / "run.json").is_file()


def test_a_run_that_is_current_is_left_alone(folder):
    lines = []
    assert execution.execute(execution.of_chapter(1, "tiny"), log=lines.append) == folder
    assert lines == [f"Chapter 1, tiny: current, in {folder}"]
    facts = json.loads((folder / "run.json").read_text())
    assert facts["parameters"] == settings(1, "tiny").model_dump(mode="json")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda notebook: write_notebook(BEGIN, "pass"), "without run.finish"),
        (lambda notebook: notebook.with_suffix(".py").write_text("# %%\n1\n"), "make pair"),
        (Path.unlink, "or one is missing: run `make pair`"),
    ],
    ids=["without an end", "halves that differ", "missing"],
)
def test_a_notebook_that_is_not_whole_is_no_run(chapter, spoil, message):
    spoil(chapter.notebook)
    with pytest.raises(RunError, match=message):
        execution.execute(execution.of_chapter(1, "tiny"), log=lambda line: None)


def test_a_changed_encoder_of_the_readers_and_another_mirror_make_a_run_stale(tmp_path, monkeypatch):
    own = Path(shutil.copytree(project_folder() / "models" / "toy-bert" / "seed-0", tmp_path / "own"))
    job = execution.of_chapter(1, "tiny", {"encoder": str(own)})
    digests = {job.digest}
    for file in (own / "model.safetensors", own / "tokenizer_config.json"):
        file.write_bytes(file.read_bytes()[:-1] + b"\0")
        digests.add(job.digest)
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    assert len({*digests, job.digest}) == 4


def test_where_all_is_current_no_worker_is_started(folder, monkeypatch):
    monkeypatch.setattr(execution, "workers", None)
    execution.execute_all([execution.of_chapter(1, "tiny")])
    write_notebook(BEGIN, "run.finish()  # changed")
    with pytest.raises(TypeError, match="not callable"):
        execution.execute_all([execution.of_chapter(1, "tiny")])


def test_a_disk_that_fills_while_a_notebook_runs_is_named(chapter):
    write_notebook(BEGIN, "open('/dev/full', 'w').write('a' * 10**6)")
    with pytest.raises(RunError, match="No space left on the disk of .*make room"):
        execution.execute(execution.of_chapter(1, "tiny"), log=lambda line: None)
