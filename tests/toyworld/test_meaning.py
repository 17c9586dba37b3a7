"""Meaning: preconditions and effects hold along stories."""

from random import Random

import pytest

from toyworld.lexicon import CONVERSES, OPPOSITES, SENSES, verb
from toyworld.meaning import converse, swapped
from toyworld.stories import draw_cast, draw_event, simulate

STORIES = [simulate(Random(f"story {number}"), 8) for number in range(200)]


def test_every_event_is_possible_when_it_happens() -> None:
    for story in STORIES:
        facts = story.facts()
        for event in story.events:
            assert facts.allows(event)
            facts.apply(event)


def test_who_gave_it_away_does_not_have_it() -> None:
    seen = 0
    for story in STORIES:
        for position, event in enumerate(story.events):
            if event.sense.frame not in ("transfer", "taking"):
                continue
            before, after = story.facts(position), story.facts(position + 1)
            theme = event.role("theme").identifier
            loser = event.role("agent" if event.sense.frame == "transfer" else "source")
            gainer = event.role("recipient" if event.sense.frame == "transfer" else "agent")
            assert before.holder[theme] == loser.identifier
            assert after.holder[theme] == gainer.identifier != loser.identifier
            assert not after.allows(event.core())
            with pytest.raises(ValueError, match="not possible"):
                after.apply(event)
            seen += 1
    assert seen > 100


def test_conditions_and_their_opposites_exclude_each_other() -> None:
    for story in STORIES:
        for position in range(len(story.events) + 1):
            for conditions in story.facts(position).conditions.values():
                assert not any(OPPOSITES.get(condition) in conditions for condition in conditions)


def test_what_was_eaten_is_gone() -> None:
    for story in STORIES:
        for position, event in enumerate(story.events):
            if event.sense.name == "eat":
                eaten = event.role("patient")
                assert all(eaten not in later.participants() for later in story.events[position + 1 :])


def test_a_converse_keeps_who_has_it_and_returns_to_itself() -> None:
    for number in range(200):
        generator = Random(f"converse {number}")
        event = draw_event(generator, draw_cast(generator), tuple(SENSES[name] for name in sorted(CONVERSES)))
        other = converse(event)
        if other is not None:
            assert converse(other) == event and other.role("theme") == event.role("theme")


def test_swapping_twice_changes_nothing() -> None:
    for number in range(200):
        generator = Random(f"swap {number}")
        event = draw_event(generator, draw_cast(generator))
        other = swapped(event)
        if other is not None:
            assert other != event and swapped(other) == event


@pytest.mark.parametrize(
    ("given", "forms"),
    [
        ("hug", ("hugs", "hugged", "hugging")),
        ("carry", ("carries", "carried", "carrying")),
        ("take/took/taken", ("takes", "took", "taking")),
        ("push", ("pushes", "pushed", "pushing")),
        ("have/had", ("has", "had", "having")),
    ],
)
def test_verbs_are_inflected_as_in_english(given: str, forms: tuple[str, str, str]) -> None:
    inflected = verb(given)
    assert (inflected.third, inflected.past, inflected.gerund) == forms
