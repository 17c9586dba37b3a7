"""Commands, cells and variables that cannot be right: each is answered by one sentence before anything is written."""

import contextlib
import io
import re
from pathlib import Path

import jupytext
import pytest
from typer.testing import CliRunner

from fivelenses.chapters import CHAPTERS, ParameterError
from fivelenses.cli import app
from fivelenses.files import project_folder

# Arguments of the command line, and a part of the sentence that answers them. {folder} is an empty folder.
COMMANDS = [
    ("run 99", "Invalid value for 'chapter'"),
    ("train 99", "Invalid value for 'chapter'"),
    ("run all -p seeds=[1]", "Parameters, --dry-run and --page go with one chapter"),
    ("run all --profile huge", "There is no profile 'huge': choose among tiny, small, paper"),
    ("run 7 --profile paper", "Chapter 7 has no profile 'paper': it has tiny, small"),
    ("run 1 -p seeds=[1", "The value of seeds is not YAML"),
    ("run 1 -p training_examples={rte: 1, rte: 2}", "is not YAML: '{rte: 1, rte: 2}', found duplicate key \"rte\""),
    ("train 1 -p encoder=random:random:bert-base-uncased", "is random twice: write random:bert-base-uncased"),
    ("run 1 -p layers=3", "Chapter 1 has no parameter 'layers': it has batch_rows"),
    ("run 1 -p seeds=zero", "seeds: Input should be a valid integer, got 'zero'."),
    ("run 1 -p epochs=true", "epochs: true and false are no values of it, got True."),
    ("run 1 -p seeds=[1,1]", "a seed is named twice"),
    ("run 1 -p seeds=[4294967296]", "seeds: Input should be less than 4294967296, got"),
    ("run 1 -p tasks=[sst3]", "There is no task 'sst3': choose among cola, dep"),
    ("run 1 -p tasks=[squad]", "squad has a span head, which this chapter does not fine-tune"),
    ("run 1 -p tasks=[qnli]", "schedules has none for qnli"),
    ("run 1 -p learning_rate=.inf", "learning_rate: Input should be a finite number, got inf"),
    ("run 1 -p schedules={rte: {learning_rate: 0, batch_size: 8, epochs: 1}}", "a positive rate and batch size"),
    ("run 1 -p training_examples={rte: many}", "training_examples: Input should be a valid integer, got 'many'"),
    ("run 1 -p schedules={rte: {batch_size: 8}}", "schedules: expected learning_rate, got"),
    ("run 1 -p encoder={folder}", "There is no encoder at"),
    ("run 1 --profile paper", "asks for a GPU and there is none here"),
    ("run 2 -p encoders=[toy-bert/seed-2]", "encoders does not hold encoder, toy-bert/seed-0"),
    ("run 2 -p followed=[cola]", "followed has none of the tasks"),
    ("run 3 -p second={cola: cola}", "second gives cola for cola"),
    ("run 3 -p long_epochs=5", "long_epochs: expected 2 values, got (5,)."),
    ("run 3 -p long_epochs=[1,1]", "long_epochs are no more than the usual epochs of cola"),
    ("run 5 -p pretrained=[toy-bert/seed-1]", "pretrained has to begin with encoder, toy-bert/seed-0"),
    ("run 4 -p depths=[0,1.5]", "depths: Input should be less than or equal to 1, got 1.5"),
    ("run 4 -p depths=-1", "depths: Input should be greater than or equal to 0, got -1"),
    ("run 4 -p fractions=0", "fractions: Input should be greater than 0, got 0"),
    ("run 5 -p edge_tasks=[nouns]", "edge_tasks: Input should be 'pos', 'constituents'"),
    ("run 5 -p structural_sentences=3", "structural_sentences: expected 0 or at least 4, got 3"),
    ("run 5 -p edge_tasks=[pos]", "codelength_tasks names dependencies, which is not among edge_tasks"),
    ("run 7 -p planted=[cola]", "cola is no task on words"),
    ("train 1 --workers 0", "Invalid value for '--workers'"),
    ("sweep 1 --grid tasks=", "write its grid as --grid name=value,value"),
    ("sweep 1 --grid tasks=rte tasks=mrpc", "tasks is named twice"),
    ("sweep 1 --grid tasks=rte seeds=x", "seeds: Input should be a valid integer, got 'x'"),
    ("sweep 1 --grid tasks=rte --name a/b", "sweep's name is made of"),
    ("sweep 1 --grid tasks=rte --scheduler a --workers 2", "without --workers and --slurm"),
    ("sweep 1 --grid tasks=rte --scheduler tcp://127.0.0.1:1", "No dask scheduler answers at tcp://127.0.0.1:1"),
    ("report nobody/no-such-encoder", "cannot be read"),
    ("report toy-bert/seed-0 --tasks sst3", "There is no task 'sst3': choose among"),
    ("publish 1", "has no current run on small"),
]

# Assignments to a notebook's parameters, as papermill would inject them, and a part of the sentence that answers them.
CELLS = [
    (1, "tasks = 'sst3'", "There is no task 'sst3'"),
    (1, "seedz = 3", "Chapter 1 has no parameter 'seedz'"),
    (1, "profile = 'Tiny'", "There is no profile 'Tiny'"),
    (3, "second = {'cola': 'cola', 'trec': 'cola'}", "second gives cola for cola"),
]


def split(command: str, folder: Path) -> list[str]:
    """The arguments of a command; a space after a colon or comma belongs to a value."""
    return re.split(r"(?<![:,]) ", command.replace("{folder}", str(folder)))


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """Places for runs and checkpoints that hold nothing, and no network."""
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("FIVELENSES_MIRROR", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("fivelenses.sweep.PATIENCE", 0.2)
    return tmp_path


@pytest.mark.parametrize(("command", "sentence"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_the_command_line_answers_with_one_sentence_and_leaves_nothing_behind(command, sentence, empty):
    folder = empty / "folder"
    folder.mkdir()
    result = CliRunner().invoke(app, split(command, folder))
    assert result.exit_code == 2
    answer = result.stderr.strip()
    assert sentence.replace("{folder}", str(folder)) in answer
    assert "Traceback" not in answer and isinstance(result.exception, SystemExit)
    if "Usage:" not in answer:  # the command line's own answer to an argument that is no number
        assert answer.startswith("fivelenses: ") and len(answer.splitlines()) == 1
    assert not list(folder.iterdir())
    assert not list((empty / "runs").rglob("*.ipynb")) and not list((empty / "store").glob("[0-9a-f]*"))


@pytest.mark.parametrize(("number", "assignment", "sentence"), CELLS, ids=[cell for _, cell, _ in CELLS])
def test_a_notebook_answers_with_one_sentence_in_its_first_cells(number, assignment, sentence, empty):
    notebook = jupytext.read(CHAPTERS[number].notebook.with_suffix(".py"))
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    place = next(place for place, cell in enumerate(cells) if "begin(" in cell)
    values: dict = {}
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(ParameterError) as answer:
        for cell in (*cells[:place], assignment, cells[place]):
            exec(cell, values)
    assert sentence in str(answer.value) and len(str(answer.value).splitlines()) == 1
    assert not list((empty / "runs").rglob("*.parquet"))


def test_a_damaged_profile_is_named(empty, monkeypatch):
    notebooks = empty / "home" / "notebooks"
    (notebooks / "profiles").mkdir(parents=True)
    (notebooks / "profiles" / "tiny.yaml").write_text("all: [\n", encoding="utf-8")
    monkeypatch.setenv("FIVELENSES_HOME", str(empty / "home"))
    assert project_folder() == empty / "home"
    result = CliRunner().invoke(app, ["run", "1"])
    assert result.exit_code == 2
    assert "tiny.yaml" in result.stderr and len(result.stderr.strip().splitlines()) == 1


def test_a_variable_that_cannot_be_used_is_named_before_a_notebook_starts(empty, monkeypatch):
    (empty / "file").touch()
    monkeypatch.setenv("FIVELENSES_RUNS", str(empty / "file"))
    result = CliRunner().invoke(app, ["run", "1"])
    assert result.exit_code == 2 and str(empty / "file") in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1 and not list(empty.rglob("*.ipynb"))
