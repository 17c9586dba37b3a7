"""The hub's own client against a server that speaks its protocol, on good days and on bad ones."""

import json
import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from tests.tasks.hub_server import COMMIT, serve

from fivelenses import project
from fivelenses.catalogue import find

GLUE = ("rte", "mrpc", "qnli", "cola")
# A process of its own: the client reads the hub's address when it is imported. One line of JSON per name.
READ = """
import json, sys
from fivelenses import tasks
from fivelenses.models import encoders
from fivelenses.tasks.sources import SourceError
for kind, name in json.loads(sys.argv[1]):
    try:
        if kind == "task":
            said = [tasks.load(name, "hub", ("train",)).splits["train"].num_rows]
        else:
            encoder = encoders.locate(name)
            encoders.tokenizer(encoder)
            said = [encoders.load_weights(encoder).config.num_hidden_layers, encoder.identity]
    except SourceError as error:
        said = str(error)
    print(json.dumps([name, said]), flush=True)
"""


def publish(folder):
    """A hub with four tasks of GLUE, SQuAD without the revision that is pinned, and three encoders."""
    places = {}
    for name in (*GLUE, "squad"):
        task = find(name)
        places[name] = folder / "datasets" / task.repository
        place = places[name] / task.config
        place.mkdir(parents=True)
        columns = {column: [f"{column} {row}" for row in range(2_000)] for column in task.inputs}
        table = pd.DataFrame(columns | {task.label: [row % 2 for row in range(2_000)]})
        for split in task.splits.values():
            table.to_parquet(place / f"{split}-00000-of-00001.parquet")
    configs = [f"- config_name: {name}\n  data_files:\n" + splits(name) for name in GLUE]
    (places["rte"] / "README.md").write_text("---\nconfigs:\n" + "".join(configs) + "---\n")
    for name in ("good", "cut", "without-tokenizer"):
        shutil.copytree(project.root() / "models" / "toy-bert" / "seed-0", folder / "models" / "someone" / name)
    for file in (folder / "models" / "someone" / "without-tokenizer").glob("*token*"):
        file.unlink()


def splits(name):
    return "".join(f"  - split: {split}\n    path: {name}/{split}-*\n" for split in find(name).splits.values())


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What became of each name, on one hub with all faults; a fault is of one name."""
    folder = tmp_path_factory.mktemp("hub")
    publish(folder)
    (folder / "datasets" / "nyu-mll" / "glue" / "mrpc" / "train-00000-of-00001.parquet").unlink()
    with serve(folder) as hub:
        hub.revisions.add(find("rte").revision)
        hub.cut = {"qnli/train-00000-of-00001.parquet", "cut/resolve/main/model.safetensors"}
        hub.failing = {"cola/train-00000-of-00001.parquet": 1}
        named = [("task", name) for name in (*GLUE, "squad")]
        named += [("encoder", f"someone/{name}") for name in ("good", "cut", "without-tokenizer", "absent")]
        home = tmp_path_factory.mktemp("home")
        ours = {"HF_ENDPOINT": hub.address, "HF_HOME": str(home), "XDG_CACHE_HOME": str(home), "HF_HUB_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", READ, json.dumps(named)], env=os.environ | ours, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_tables_and_encoders_are_read_from_the_hub(answers):
    assert answers["rte"] == [2_000] and answers["someone/good"] == [6, f"someone/good@{COMMIT}"]


def test_one_failure_of_the_server_is_tried_again(answers):
    assert answers["cola"] == [2_000]


@pytest.mark.parametrize("name", ["mrpc", "qnli", "squad"])
def test_a_table_that_the_hub_cannot_give_is_named_in_one_sentence(name, answers):
    assert find(name).title in answers[name] and "could not be read from the hub" in answers[name]


def test_weights_whose_download_breaks_off_are_taken_up_where_it_did(answers):
    assert answers["someone/cut"][0] == 6


@pytest.mark.parametrize("name", ["someone/without-tokenizer", "someone/absent"])
def test_an_encoder_that_the_hub_cannot_give_is_named_in_one_sentence(name, answers):
    assert name in answers[name] and re.search("could not be read|is not its own", answers[name])
