"""One toy world and one toy BERT a session; every test that writes has a store and a runs folder of its own."""

import dataclasses
import os
import sys
from contextlib import contextmanager

# Workers of one test run share the cores; NumPy reads this once, when it is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

# A program of its own, for the extra `browser`.
collect_ignore = ["book/browser.py"]

# The same examples in every run, so that a failure is of what was changed; `--hypothesis-profile=default` draws
# new ones. None has a deadline: a busy machine is no fault of the code.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile("fixed")

torch.set_num_threads(1)
for variable in ("FIVELENSES_MIRROR", "FIVELENSES_HOME"):
    os.environ.pop(variable, None)
os.environ["HF_HUB_OFFLINE"] = "1"

ENCODER = "toy-bert/seed-0"


def pytest_collection_modifyitems(items):
    """Files that start whole commands first: one of them begun last leaves the other core idle for a minute."""
    first = ("tests/test_kills", "tests/test_sweep", "tests/test_execution")
    items.sort(key=lambda item: not item.nodeid.startswith(first))


@pytest.fixture(autouse=True)
def no_figure_is_left_open():
    """Pyplot warns at the twenty-first, and which tests share a process depends on the machine."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@contextmanager
def few_development_examples():
    """Forty of each task, so that a training of seconds is scored in less."""
    from fivelenses import tasks

    whole = tasks.load

    def load(name, source, splits=None):
        data = whole(name, source, splits)
        few = {split: rows if split == "train" else rows.select(range(40)) for split, rows in data.splits.items()}
        return dataclasses.replace(data, splits=few)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "load", load)
        yield


@pytest.fixture(scope="session")
def toy_data():
    """The toy world's RTE."""
    from fivelenses import tasks

    with few_development_examples():
        return tasks.load("rte", "toyworld")


@pytest.fixture(scope="session")
def toy_encoder():
    from fivelenses.models import encoders

    return encoders.locate(ENCODER)


@pytest.fixture(scope="session")
def toy_tokenizer(toy_encoder):
    from fivelenses.models import encoders

    return encoders.tokenizer(toy_encoder)


@pytest.fixture(scope="session")
def toy_examples(toy_data, toy_tokenizer):
    """Forty encoded development examples."""
    from fivelenses.tasks.examples import encode

    return encode(toy_data, "validation", toy_tokenizer, 64).select(range(40))


@pytest.fixture
def toy_model(toy_encoder):
    """The pre-trained toy BERT without a head; made anew, so that a test may change it."""
    from fivelenses.models import encoders

    return encoders.load_weights(toy_encoder)


@pytest.fixture(scope="session")
def session_store(tmp_path_factory, worker_id):
    """One for the workers of a test run, of whom the first that needs a checkpoint trains it."""
    from fivelenses.checkpoints.store import Store

    base = tmp_path_factory.getbasetemp()
    return Store((base if worker_id == "master" else base.parent) / "store")


@torch.no_grad()
def one_by_one(model, examples):
    """(n,) loss and (n,) error of a classifier on each example, alone in its batch."""
    model.eval()
    columns = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in examples.column_names]
    losses, wrong = [], []
    for row in examples:
        logits = model(**{name: torch.tensor([row[name]]) for name in columns}).logits
        losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor([row["labels"]])).item())
        wrong.append(logits.argmax().item() != row["labels"])
    return np.array(losses), np.array(wrong)


def equal_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def short_schedule(**changes):
    """A schedule of a few seconds."""
    from fivelenses.checkpoints.specification import Schedule

    return Schedule(**{"learning_rate": 1e-3, "batch_size": 16, "epochs": 1, "max_length": 64} | changes)


@pytest.fixture(scope="session")
def toy_specification():
    from fivelenses.checkpoints.specification import specify

    return specify(ENCODER, "rte", "toyworld", 0, short_schedule(), examples=96, saved_steps=(0, 3))


@pytest.fixture(scope="session")
def toy_checkpoint(toy_specification, session_store):
    """One fine-tuned toy BERT."""
    from fivelenses.checkpoints.finetuning import prepare

    with few_development_examples():
        return prepare([toy_specification], session_store, workers=1, log=lambda line: None)[0]


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """Chapter 1 with a notebook of three cells in a home of its own."""
    from fivelenses.chapters import CHAPTERS
    from tests import homes

    homes.make_home(tmp_path, monkeypatch)
    homes.write_notebook(homes.BEGIN, "run.finish()")
    return CHAPTERS[1]
