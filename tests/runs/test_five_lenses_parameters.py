"""Chapter 6 looks at the models of chapter 1, and says what does not fit before anything is trained."""

import pytest

from fivelenses.chapters import ParameterError, profiles, settings


@pytest.mark.parametrize("profile", profiles())
def test_chapter_6_asks_for_the_models_of_chapter_1_and_for_no_others(profile):
    first, sixth = settings(1, profile), settings(6, profile)
    assert set(sixth.tasks) <= set(first.tasks)
    for name in ("encoder", "source", "training_examples", "seeds"):
        assert getattr(sixth, name) == getattr(first, name)
    assert all(sixth.schedule(task) == first.schedule(task) for task in sixth.tasks)


def test_equal_models_have_one_address():
    first, sixth = (
        {one.address for one in settings(number, "tiny", tasks=["rte"]).specifications()} for number in (1, 6)
    )
    assert sixth == first and len(first) == 2


def test_the_independent_encoder_is_read_and_not_trained():
    chosen = settings(6, "tiny")
    assert chosen.encoders_read() == (chosen.encoder, "toy-bert/seed-1")
    assert chosen.encoders_used() == (chosen.encoder,)


def test_an_independent_encoder_that_is_the_encoder_itself_is_refused():
    with pytest.raises(ParameterError, match="independent is the encoder itself"):
        settings(6, "tiny", independent="toy-bert/seed-0")
