"""Chapter 3 asked of another encoder: which models it takes, and its table judged on its own rows."""

import pandas as pd
import pytest
from tests.papers.test_hao2019 import groups, paths

from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.papers import hao2019
from fivelenses.runs.settings import settings

OURS = "english-bert/seed-0"


@pytest.fixture
def models():
    rows = [
        (title, start, 0, score, 0.5)
        for title, tuned, scratch in (("MNLI", 0.8, 0.5), ("MRPC", 0.7, 0.6))
        for start, score in (("pre-trained", tuned), ("random", scratch))
    ]
    table = pd.DataFrame(rows, columns=["task", "start", "seed", "score", "null rate"])
    return Exhibit("hao2019-models", "Models", table, "The models.")


def low_first(first: float, last: float) -> pd.DataFrame:
    return groups((3.0, 2.0, 1.0), (first, 0.6, last))


def test_the_caption_judges_both_claims_on_this_encoders_rows_and_gives_its_scores(models):
    exhibit = hao2019.another_encoder(models, low_first(0.5, 0.7), paths(40.0, 80.0), OURS)
    assert exhibit.key == "hao2019-table-1-english-bert-seed-0"
    assert "rollback is not reproduced (−0.2 ± 0)" in exhibit.caption
    assert "straighter is reproduced" in exhibit.caption
    assert "MNLI 0.800, from scratch 0.500 (0.500); MRPC 0.700" in exhibit.caption
    assert "BERT-large" not in exhibit.caption
    assert set(exhibit.table["encoder"]) == {OURS} and len(exhibit.table) == 6


def test_the_angles_are_those_after_one_epoch_of_each_way(models):
    # The angle falls evenly to 0: after one of three epochs two thirds are left, after one of nine eight ninths.
    exhibit = hao2019.another_encoder(models, low_first(0.7, 0.5), paths(30.0, 90.0), OURS)
    assert exhibit.shown["first epoch, tuned"].tolist() == ["20°", "20°"]
    assert exhibit.shown["first epoch, scratch"].tolist() == ["80°", "80°"]
    assert exhibit.table["angle_scratch"].tolist() == pytest.approx([80.0] * 6)
    assert not [column for column in exhibit.shown.columns if column.startswith("paper")]


def test_tasks_that_were_not_followed_have_no_angle(models):
    followed = paths(30.0, 90.0).query("task == 'mrpc'")
    exhibit = hao2019.another_encoder(models, low_first(0.7, 0.5), followed, OURS)
    shown = exhibit.shown.set_index("task")["first epoch, tuned"]
    assert shown["MRPC"] == "20°" and (shown.drop("MRPC") == "–").all()
    nothing = hao2019.another_encoder(models, low_first(0.7, 0.5), pd.DataFrame(), OURS)
    assert "straighter" not in nothing.caption and "first epoch, tuned" not in nothing.shown.columns


def test_an_encoder_beside_is_trained_both_ways_at_its_own_rate_and_not_for_longer():
    chosen = settings(3, "tiny", beside=["toy-bert/seed-1"], learning_rate_by_encoder={"toy-bert/seed-1": 1e-4})
    (other,) = chosen.others()
    wanted = chosen.specifications_for(other)
    assert {one.encoder for one in wanted} == {other, f"random:{other}"}
    assert {one.schedule.learning_rate for one in wanted} == {1e-4}
    assert len(wanted) == 2 * len(chosen.tasks)
    first = chosen.specifications_for(chosen.encoder)
    assert {one.schedule.learning_rate for one in first} == {7e-4} and len(first) == 2 * len(chosen.tasks) + 1
    assert set(chosen.specifications()) == {*wanted, *first}
    for one in wanted:
        usual = chosen.scratch_epochs[one.task] if one.encoder.startswith("random:") else 3
        assert one.schedule.epochs == usual


def test_the_time_for_an_encoder_beside_is_that_of_putting_back_layers_alone():
    chosen = settings(3, "tiny", beside=["toy-bert/seed-1"])
    alone, twin = (chosen.passes("cola", name, 6) for name in ("toy-bert/seed-1", "random:toy-bert/seed-1"))
    assert twin == 0 < alone < chosen.passes("cola", chosen.encoder, 6)
