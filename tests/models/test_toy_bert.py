"""The shipped toy BERTs are what the recipe makes."""

import dataclasses
import json

import pytest

from fivelenses.files import project_folder
from pretraining import corpora, training_run
from pretraining.pretraining import TOY_BERT, train_wordpiece
from pretraining.text_blocks import tokenise
from pretraining.training_run import PretrainingRun

FOLDER = project_folder() / "models" / "toy-bert"
STEPS_REMADE = 19


def record(seed: int) -> dict:
    return json.loads((FOLDER / f"seed-{seed}" / "pretraining.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_seed_was_made_by_the_recipe(seed):
    expected = dataclasses.asdict(dataclasses.replace(TOY_BERT, seed=seed))
    assert record(seed)["identity"]["specification"] == expected


class EnoughSteps(Exception):
    """Stops a run from its progress lines."""


def test_a_short_piece_is_remade_to_the_same_losses(tmp_path, monkeypatch):
    expected = [entry for entry in record(0)["loss_curve"] if entry["step"] <= STEPS_REMADE]
    documents = corpora.toy_text("train")
    tokenizer = train_wordpiece(documents, TOY_BERT.vocabulary_size)
    text = tokenise(documents, tokenizer, TOY_BERT.length_at(0))
    assert text.fingerprint() == record(0)["identity"]["text"]

    def stop(line: str) -> None:
        if f"step {STEPS_REMADE} " in line:
            raise EnoughSteps

    run = PretrainingRun(text, TOY_BERT, tokenizer, tmp_path / "state.pt", {}, stop)
    monkeypatch.setattr(training_run, "SECONDS_BETWEEN_LINES", 0.0)
    with pytest.raises(EnoughSteps):
        run.train()
    for made, kept in zip(run.progress.loss_curve, expected, strict=True):
        assert made["step"] == kept["step"]
        # Equal on the same machine; other processors round otherwise.
        assert made["masked"] == pytest.approx(kept["masked"], abs=0.02)
