"""The card and the scores that a report leaves for the hub."""

import pandas as pd
import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from tests.runs.judged import as_judged

from fivelenses.exhibits import claims
from fivelenses.exhibits.verdicts import CONTRADICTED
from fivelenses.runs import ledger, model_card

ENCODER = "owner/encoder"


def models(**changed):
    """Three seeds of SST-2, trained as usual on the hub's data, and what is changed of them."""
    rows = pd.DataFrame({"seed": [0, 1, 2], "score": [0.80, 0.82, 0.87], "task": "sst2", "encoder": ENCODER})
    usual = dict(chapter=1, source="hub", examples=2000, epochs=2.0, evaluation_examples=872, null_rate=0.509)
    usual |= dict(frozen=-1, truncated=-1, reinitialised=0, shuffled_labels=False, diverged=False)
    return rows.assign(**usual | changed)


def test_a_score_is_the_mean_of_seeds_of_the_chapter_that_trained_on_most_examples():
    (row,) = model_card.scores(ENCODER, pd.concat([models(examples=500, chapter=4), models()])).to_dict("records")
    assert (row["chapter"], row["examples"], row["seeds"]) == (1, 2000, 3)
    assert (row["score"], row["low"], row["high"]) == (pytest.approx(0.83), 0.80, 0.87)


@pytest.mark.parametrize(
    "other",
    [
        dict(frozen=3),
        dict(truncated=2),
        dict(reinitialised=4),
        dict(shuffled_labels=True),
        dict(diverged=True),
        dict(encoder=f"random:{ENCODER}"),
    ],
    ids=str,
)
def test_models_that_were_not_trained_as_usual_have_no_score(other):
    everything = pd.concat([models(score=0.5, examples=9000, **other), models()], ignore_index=True)
    assert model_card.scores(ENCODER, everything)["score"].tolist() == [pytest.approx(0.83)]
    assert model_card.scores(ENCODER, models(**other)).empty


@pytest.mark.parametrize(
    "other", [dict(source="toyworld"), dict(evaluation_examples=200), dict(task="pos"), dict(task="parsing")], ids=str
)
def test_the_hub_gets_scores_on_whole_development_sets_of_its_own_alone(other):
    everything = pd.concat([models(**other), models()], ignore_index=True)
    reached = model_card.scores(ENCODER, everything.drop_duplicates(["task", "source", "seed", "evaluation_examples"]))
    assert set(model_card.on_hub(reached)["task"]) <= {"sst2"}
    assert model_card.on_hub(model_card.scores(ENCODER, models(**other))).empty


def test_the_hubs_own_readers_find_the_scores_in_what_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(model_card, "models_of", lambda runs: pd.concat([models(), models(task="pos")]))
    claims.save([as_judged(ledger.CLAIMS["hao2020"][0], CONTRADICTED)], tmp_path)
    card, results = model_card.write(ENCODER, "6 layers", "small", {1: tmp_path}, tmp_path)
    read = ModelCard.load(card)
    (result,) = read.data.eval_results
    assert (result.dataset_type, result.dataset_config, result.dataset_split) == ("nyu-mll/glue", "sst2", "validation")
    assert (result.metric_type, result.metric_value) == ("accuracy", 0.83) and read.data.model_name == ENCODER
    assert "| SST-2 | accuracy | 0.830 | 0.800 to 0.870 (3) | 0.509 | 2,000 | nyu-mll/glue |" in read.text
    assert "| POS |" in read.text and "| 1 | `js-last-layers` | Contradicted" in read.text
    (entry,) = parse_eval_result_entries(yaml.safe_load(results.read_text()))
    assert (entry.dataset_id, entry.task_id, entry.value) == ("nyu-mll/glue", "sst2", 0.83)
    assert "mean of 3 seeds, 0.800 to 0.870; null rate 0.509" in entry.notes


def test_one_seed_has_no_range(tmp_path, monkeypatch):
    monkeypatch.setattr(model_card, "models_of", lambda runs: models()[:1])
    claims.save([as_judged(ledger.CLAIMS["hao2020"][0], CONTRADICTED)], tmp_path)
    card, results = model_card.write(ENCODER, "6 layers", "small", {1: tmp_path}, tmp_path)
    assert "| 0.800 | one seed | 0.509 |" in card.read_text()
    assert "fine-tuned on 2,000 examples (one seed; null rate 0.509)" in " ".join(results.read_text().split())


def test_without_a_data_set_of_the_hub_there_is_a_card_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(model_card, "models_of", lambda runs: models(source="toyworld"))
    claims.save([as_judged(ledger.CLAIMS["hao2020"][0], CONTRADICTED)], tmp_path)
    assert model_card.write(ENCODER, "6 layers", "tiny", {1: tmp_path}, tmp_path) == [tmp_path / "model-card.md"]
    assert ModelCard.load(tmp_path / "model-card.md").data.eval_results is None
