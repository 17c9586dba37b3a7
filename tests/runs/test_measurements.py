"""A measurement in parts that are whole for themselves: each on its own models, whatever else a run has."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from fivelenses.measurements import Measurements


@dataclass(frozen=True)
class Made:
    """What stands for a specification here."""

    task: str
    seed: int

    @property
    def address(self) -> str:
        return f"{self.task}-{self.seed}"


MODELS = [Made(task, seed) for task in ("rte", "mrpc", "sst2") for seed in (0, 1)]


def scores(checkpoints, pair):
    return pd.DataFrame(
        {"pair": ["–".join(pair)] * len(checkpoints), "model": [one.folder.name for one in checkpoints]}
    )


def probes(checkpoints, model):
    return pd.DataFrame({"model": [model], "checkpoints": [len(checkpoints)]})


def sizes(task, size):
    return pd.DataFrame({"task": [task], "size": [size]})


@pytest.fixture
def begin(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_RUNS", str(tmp_path))

    def run(models=MODELS):
        settings = SimpleNamespace(source="hub", device="cpu", specifications=lambda: models)
        chapter = SimpleNamespace(slug="1-a", number=1, measures=(__name__,))
        run = Measurements(chapter, settings, lambda line: None)
        manifest = {"seconds": 1.0}
        run.checkpoints = {one: SimpleNamespace(folder=Path(one.address), manifest=manifest) for one in models}
        return run

    return run


def of_pair(pair):
    return [one for one in MODELS if one.task in pair]


def test_a_value_is_measured_on_its_own_models(begin):
    run = begin()
    table = run.measure("scores", of=of_pair, each="seed", over={"pair": [("rte", "mrpc"), ("mrpc", "sst2")]})
    assert table.groupby("pair", sort=False)["model"].apply(list).to_dict() == {
        "rte–mrpc": ["rte-0", "mrpc-0", "rte-1", "mrpc-1"],
        "mrpc–sst2": ["mrpc-0", "sst2-0", "mrpc-1", "sst2-1"],
    }
    assert len(run.files["scores"]) == 4


def test_a_run_of_more_takes_what_was_measured_before_without_its_models(begin):
    fewer = begin([one for one in MODELS if one.task != "sst2"])
    fewer.measure("scores", of=of_pair, each="seed", over={"pair": [("rte", "mrpc")]})
    more = begin()
    more.checkpoints = {one: made for one, made in more.checkpoints.items() if one.task != "rte"}
    more.measure("scores", of=of_pair, each="seed", over={"pair": [("rte", "mrpc"), ("mrpc", "sst2")]})
    assert more.files["scores"][:2] == fewer.files["scores"]


def test_a_value_without_models_is_measured_without(begin):
    table = begin().measure(
        "probes", of=lambda model: [one for one in MODELS if one.task == model], over={"model": ("base", "rte")}
    )
    assert table["checkpoints"].tolist() == [0, 2]


def test_arguments_that_go_together_are_measured_one_after_another(begin):
    table = begin().measure("sizes", over=[{"task": "rte", "size": 20}, {"task": "mrpc", "size": 30}])
    assert table.to_numpy().tolist() == [["rte", 20], ["mrpc", 30]]
