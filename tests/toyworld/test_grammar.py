"""Grammar and annotation: trees are trees, spans agree, and the choices of a clause do not change who did what."""

from random import Random

import pytest

from toyworld.annotation import Sentence, annotate, join, offsets
from toyworld.grammar import TENSES, Form, clause, finish, voices
from toyworld.lexicon import SENSES
from toyworld.meaning import Entity, Event
from toyworld.questions import question
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


def some_sentences(count: int) -> list[Sentence]:
    source = told_sentences("train")
    return [next(source)[1] for _ in range(count)]


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({}, "Anna gave the ball to Ben."),
        ({"shifted": True}, "Anna gave Ben the ball."),
        ({"voice": "passive"}, "The ball was given to Ben by Anna."),
        ({"voice": "recipient passive", "synonym": 1}, "Ben was handed the ball by Anna."),
        ({"negation": "not"}, "Anna did not give the ball to Ben."),
        ({"tense": "present", "negation": "never"}, "Anna never gives the ball to Ben."),
        ({"control": "refuse"}, "Anna refused to give the ball to Ben."),
        ({"tense": "perfect", "voice": "passive"}, "The ball has been given to Ben by Anna."),
    ],
)
def test_one_event_is_told_in_many_ways(choices: dict[str, object], text: str) -> None:
    assert told(GIFT, **choices).text == text


def test_verbs_agree_with_their_subjects() -> None:
    assert told(CHASE, tense="present").text == "The dogs chase Anna."
    assert told(CHASE, tense="present progressive").text == "The dogs are chasing Anna."
    assert told(CHASE, voice="passive", tense="present").text == "Anna is chased by the dogs."


def test_questions_leave_out_what_they_ask_for() -> None:
    generator = Random("questions")
    texts = {
        role: join(_words(question(generator, GIFT, role, Form(), words)))
        for role, words in (("agent", ("who",)), ("theme", ("what",)), ("recipient", ("who",)))
    }
    assert texts == {
        "agent": "Who gave the ball to Ben",
        "theme": "What did Anna give to Ben",
        "recipient": "Who did Anna give the ball to",
    }


def _words(node) -> list[str]:  # noqa: ANN001
    return [node.form] if not node.children else [word for child in node.children for word in _words(child)]


def test_roles_are_the_same_in_active_and_passive() -> None:
    for number in range(150):
        generator = Random(f"roles {number}")
        cast = draw_cast(generator)
        event = with_adjuncts(generator, draw_event(generator, cast), cast)
        fillers = []
        for voice in voices(event):
            sentence = told(event, voice=voice, tense=generator.choice(TENSES[:2]))
            (predicate,) = sentence.predicates
            fillers.append(
                {
                    role: {word for word in sentence.words[start:end] if word not in ("to", "by")}
                    for role, (start, end) in predicate.arguments
                }
            )
        assert all(found == fillers[0] for found in fillers)
        assert set(fillers[0]) == {role for role, _ in event.roles} | ({"manner"} if event.manner else set())


def test_every_annotated_sentence_is_a_tree_with_one_root() -> None:
    for sentence in some_sentences(1500):
        assert sentence.heads.count(0) == 1 and sentence.deprels.count("root") == 1
        for index in range(len(sentence.words)):
            steps, at = 0, index + 1
            while at:
                at = sentence.heads[at - 1]
                steps += 1
                assert steps <= len(sentence.words)


def test_constituents_nest_and_all_spans_are_in_range() -> None:
    for sentence in some_sentences(800):
        size = len(sentence.words)
        spans = [(start, end) for _, start, end in sentence.constituents]
        assert all(0 <= start < end <= size for start, end in spans)
        for start, end in spans:
            assert not any(start < other < end < last or other < start < last < end for other, last in spans)
        assert all(sentence.upos[index] == "ADP" for index, _, _ in sentence.prepositions)
        assert all(0 <= mention.span[0] < mention.span[1] <= size for mention in sentence.mentions)
        assert all(sentence.upos[predicate.index] == "VERB" for predicate in sentence.predicates)


def test_mentions_of_one_entity_agree_in_number_and_gender() -> None:
    for sentence in some_sentences(800):
        for mention in sentence.mentions:
            if mention.pronoun and sentence.words[mention.span[0]] in ("he", "him", "his"):
                assert mention.entity.gender == "masculine" and not mention.entity.plural


def test_offsets_point_at_the_words_of_the_text() -> None:
    for sentence in some_sentences(200):
        for word, (start, end) in zip(sentence.words, offsets(sentence.words), strict=True):
            assert sentence.text[start:end].lower() == word.lower()
