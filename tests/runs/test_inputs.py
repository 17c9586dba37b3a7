"""Files of a mirror and of an encoder that are broken in one way each: refused by name before a notebook starts."""

import json
import lzma
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from fivelenses.catalogue import find
from fivelenses.cli import app
from fivelenses.runs.encoder_names import check_name
from fivelenses.runs.inputs import check_encoder_files, check_inputs, check_task
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import settings
from fivelenses.tasks.sources import SourceError
from fivelenses.tasks.treebanks import TREEBANKS

GOOD = {"sentence": ["good", "bad"] * 10, "label": [1, 0] * 10}


def write(folder, name="sst2", **tables) -> None:
    place = folder / "datasets" / "nyu-mll" / "glue" / name
    place.mkdir(parents=True, exist_ok=True)
    for split in ("train", "validation"):
        pq.write_table(pa.table(tables.get(split, GOOD)), place / f"{split}.parquet")


@pytest.fixture
def mirrored(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    write(tmp_path)
    return tmp_path


def test_a_whole_table_is_taken(mirrored):
    check_task(find("sst2"), mirrored)


EMPTY = {"sentence": pa.array([], pa.string()), "label": pa.array([], pa.int64())}


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (EMPTY, "has none of the 10 rows that SST-2 needs"),
        ({"sentence": ["good"], "label": [1]}, "has 1 of the 10 rows that SST-2 needs"),
        (GOOD | {"label": [1, 2] * 10}, "labels from 1 to 2 where SST-2 has 0 to 1"),
        (GOOD | {"label": [-1] * 20}, "labels from -1 to -1"),
        (GOOD | {"label": [1] * 20}, "the label 1 alone"),
        (GOOD | {"label": ["1", "0"] * 10}, "labels of the type string"),
        (GOOD | {"label": [1, None, *[0] * 18]}, "no label in 1 of its 20 rows, first in row 1"),
        (GOOD | {"sentence": [None, *["bad"] * 19]}, "no sentence in 1 of its 20 rows, first in row 0"),
        (GOOD | {"sentence": ["bad", " ", *["good"] * 18]}, "a blank sentence in 1 of its 20 rows, first in row 1"),
        ({"text": ["good"], "label": [1]}, "has no column sentence"),
    ],
)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_table_that_cannot_be_learned_from_is_named(mirrored, table, sentence, split):
    write(mirrored, **{split: table})
    with pytest.raises(SourceError, match=f"{split}.parquet.*{sentence}") as refusal:
        check_task(find("sst2"), mirrored)
    assert "\n" not in str(refusal.value)


def test_a_table_that_was_cut_short_is_named(mirrored):
    file = mirrored / "datasets" / "nyu-mll" / "glue" / "sst2" / "validation.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(SourceError, match="validation.parquet is damaged or cut short .*: copy it again"):
        check_task(find("sst2"), mirrored)


def test_a_missing_table_is_named(mirrored):
    with pytest.raises(SourceError, match="The mirror has no nyu-mll/glue cola train"):
        check_task(find("cola"), mirrored)


def test_a_treebank_that_was_cut_short_is_named(mirrored):
    (file,) = TREEBANKS["pud"].values()
    place = mirrored / "raw" / file.repository / file.tag / f"{file.path}.xz"
    place.parent.mkdir(parents=True)
    place.write_bytes(lzma.compress(b"1\tA\n" * 5000)[:-30])
    with pytest.raises(SourceError, match="pud.*xz is damaged or cut short"):
        check_task(find("pos"), mirrored)


def test_weights_that_were_cut_short_are_named(tmp_path, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "encoder")
    weights = tmp_path / "encoder" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(ParameterError, match="model.safetensors are damaged or cut short"):
        check_encoder_files(str(tmp_path / "encoder"))


def test_a_configuration_that_is_no_json_is_named(tmp_path, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "encoder")
    (tmp_path / "encoder" / "config.json").write_text("{")
    with pytest.raises(SourceError, match="encoder' could not be read"):
        check_encoder_files(str(tmp_path / "encoder"))


def test_a_run_is_refused_before_its_notebook_starts(mirrored, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(mirrored / "runs"))
    write(mirrored, train=EMPTY)
    arguments = ["run", "1", "-p", "source=hub", "-p", "tasks=[sst2]"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2 and "train.parquet has none of the 10 rows" in result.stderr
    result = CliRunner().invoke(app, ["run", "1", "-p", "encoder=./nowhere"])
    assert result.exit_code == 2 and "There is no encoder at './nowhere'" in result.stderr
    assert not list((mirrored / "runs").rglob("*.ipynb"))


def test_an_architecture_is_refused_before_a_notebook_starts(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(ValueError, match="architecture 't5'"):
        check_inputs(settings(1, "tiny", encoder=str(tmp_path)))


def test_a_name_that_nothing_bears_is_answered_with_the_encoders_that_there_are():
    with pytest.raises(ParameterError, match=r"no encoder at 'toy-bert/seed-9'.*toy-bert/seed-0, toy-bert/seed-1"):
        check_name("toy-bert/seed-9")


@pytest.mark.parametrize(
    ("number", "given"),
    [(1, {"evaluation_examples": 5}), (1, {"mixed_examples": 3}), (6, {"evaluation_examples": 5})],
)
def test_too_few_examples_to_compare_are_refused_before_a_training(number, given):
    with pytest.raises(ValueError, match="of two layers of width 64 needs more than 128: take more examples"):
        check_inputs(settings(number, "tiny", tasks=["cola", "rte"], **given))
