"""Meaning: preconditions and effects hold along stories."""

from random import Random

import pytest

from toyworld.lexicon import CONVERSES, OPPOSITES, SENSES
from toyworld.meaning import converse, swapped
from toyworld.stories import draw_cast, draw_event, simulate

STORIES = [simulate(Random(f"story {number}"), 8) for number in range(200)]


def test_every_event_is_possible_when_it_happens_and_conditions_exclude_their_opposites() -> None:
    for story in STORIES:
        facts = story.facts()
        for event in story.events:
            assert facts.allows(event)
            facts.apply(event)
            for conditions in facts.conditions.values():
                assert not any(OPPOSITES.get(condition) in conditions for condition in conditions)


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


def test_a_converse_keeps_who_has_it_and_returns_to_itself_and_swapping_twice_changes_nothing() -> None:
    senses = tuple(SENSES[name] for name in sorted(CONVERSES))
    for number in range(200):
        generator = Random(f"converse {number}")
        event = draw_event(generator, draw_cast(generator), senses)
        other, exchanged = converse(event), swapped(event)
        assert other is None or (converse(other) == event and other.role("theme") == event.role("theme"))
        assert exchanged is None or swapped(exchanged) == event != exchanged
