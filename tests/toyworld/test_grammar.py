"""Grammar and annotation: trees are trees, spans agree, and the choices of a clause do not change who did what."""

from random import Random

import pytest
from tests.trees import is_tree

from toyworld.annotation import Sentence, annotate
from toyworld.grammar import TENSES, Form, clause, finish, voices
from toyworld.lexicon import SENSES
from toyworld.meaning import Entity, Event
from toyworld.stories import HOME, draw_cast, draw_event, with_adjuncts
from toyworld.token_tasks import told_sentences

ANNA = Entity(0, "person", None, "Anna", "feminine")
BEN = Entity(1, "person", None, "Ben", "masculine")
DOGS = Entity(2, "animal", HOME.nouns["animal"][0], plural=True)
BALL = Entity(3, "toy", HOME.nouns["toy"][0])
GIFT = Event(SENSES["give"], (("agent", ANNA), ("theme", BALL), ("recipient", BEN)))
CHASE = Event(SENSES["chase"], (("agent", DOGS), ("patient", ANNA)))


def told(event: Event, **choices: object) -> Sentence:
    return annotate(finish(clause(event, Form(**choices))))


@pytest.mark.parametrize(
    ("event", "choices", "text"),
    [
        (GIFT, {}, "Anna gave the ball to Ben."),
        (GIFT, {"shifted": True}, "Anna gave Ben the ball."),
        (GIFT, {"voice": "recipient passive", "synonym": 1}, "Ben was handed the ball by Anna."),
        (GIFT, {"negation": "not"}, "Anna did not give the ball to Ben."),
        (GIFT, {"tense": "present", "negation": "never"}, "Anna never gives the ball to Ben."),
        (GIFT, {"control": "refuse"}, "Anna refused to give the ball to Ben."),
        (GIFT, {"tense": "perfect", "voice": "passive"}, "The ball has been given to Ben by Anna."),
        (CHASE, {"tense": "present progressive"}, "The dogs are chasing Anna."),
        (CHASE, {"voice": "passive", "tense": "present"}, "Anna is chased by the dogs."),
    ],
)
def test_one_event_is_told_in_many_ways(event: Event, choices: dict[str, object], text: str) -> None:
    assert told(event, **choices).text == text


def test_roles_are_the_same_in_active_and_passive() -> None:
    for number in range(150):
        generator = Random(f"roles {number}")
        cast = draw_cast(generator)
        event = with_adjuncts(generator, draw_event(generator, cast), cast)
        fillers = []
        for voice in voices(event):
            sentence = told(event, voice=voice, tense=generator.choice(TENSES[:2]))
            (predicate,) = sentence.predicates
            words = {role: sentence.words[start:end] for role, (start, end) in predicate.arguments}
            fillers.append({role: set(found) - {"to", "by"} for role, found in words.items()})
        assert all(found == fillers[0] for found in fillers)
        assert set(fillers[0]) == {role for role, _ in event.roles} | ({"manner"} if event.manner else set())


def test_annotated_sentences_are_trees_of_nested_constituents() -> None:
    source = told_sentences("train")
    for _ in range(800):
        sentence = next(source)[1]
        size = len(sentence.words)
        assert is_tree(sentence.heads) and sentence.deprels.count("root") == 1
        spans = [(start, end) for _, start, end in sentence.constituents]
        assert all(0 <= start < end <= size for start, end in spans)
        for start, end in spans:
            assert not any(start < other < end < last or other < start < last < end for other, last in spans)
        assert all(sentence.upos[index] == "ADP" for index, _, _ in sentence.prepositions)
        assert all(0 <= mention.span[0] < mention.span[1] <= size for mention in sentence.mentions)
        assert all(sentence.upos[predicate.index] == "VERB" for predicate in sentence.predicates)
