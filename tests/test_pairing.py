"""The two halves of a notebook, paired by what is in them and not by the times of their files."""

import os
import subprocess
import time

import jupytext
import pytest

from fivelenses import pairing


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """A notebook whose halves agree, committed in a project of its own."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "1-first.py").write_text("# %%\nvalue = 1\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.jupytext]\nformats = "ipynb,py:percent"\n', encoding="utf-8")
    monkeypatch.setattr(pairing, "project_folder", lambda: tmp_path)
    pairing.main()
    for command in ("init", "add .", "-c user.name=a -c user.email=a@b commit -m first"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    return folder / "1-first.ipynb"


def edit(half, source):
    content = jupytext.read(half)
    content.cells[0].source = source
    jupytext.write(content, half, fmt="ipynb" if half.suffix == ".ipynb" else "py:percent")


def sources(notebook):
    return [pairing.read_cells(half)[0][1] for half in (notebook, notebook.with_suffix(".py"))]


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize(("changed", "touched"), [(".py", ".ipynb"), (".ipynb", ".py")])
def test_the_half_that_changed_is_taken_though_the_other_is_newer(changed, touched, remembered, notebook, tmp_path):
    if not remembered:
        (tmp_path / "build" / "pairs" / "1-first.py").unlink()
    edit(notebook.with_suffix(changed), "value = 2")
    os.utime(notebook.with_suffix(touched), (time.time() + 60,) * 2)
    pairing.main()
    assert sources(notebook) == ["value = 2"] * 2
    edit(notebook.with_suffix(changed), "value = 3")  # once more, before a commit
    pairing.main()
    assert sources(notebook) == ["value = 3"] * 2


def test_where_both_changed_both_are_kept_and_one_sentence_says_so(notebook, capsys):
    edit(notebook, "value = 2")
    edit(notebook.with_suffix(".py"), "value = 3")
    with pytest.raises(SystemExit) as end:
        pairing.main()
    assert end.value.code == 2 and sources(notebook) == ["value = 2", "value = 3"]
    assert "Both halves of 1-first have changed" in capsys.readouterr().err


def test_a_half_that_is_missing_is_made_of_the_other(notebook):
    notebook.unlink()
    pairing.main()
    assert sources(notebook) == ["value = 1"] * 2
