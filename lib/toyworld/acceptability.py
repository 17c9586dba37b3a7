"""Acceptability: well-formed sentences, and ones with a broken agreement, order, case, verb form or argument list."""

from random import Random

from toyworld.annotation import Sentence, annotate, join
from toyworld.choices import draw_complement, draw_form
from toyworld.grammar import Form, clause, finish, relative_clause, subject_role
from toyworld.lexicon import SENSES, Verb
from toyworld.meaning import Entity, Event
from toyworld.phrases import PRONOUN, PRONOUNS, Style
from toyworld.rows import Row
from toyworld.stories import draw_cast, draw_event, with_adjuncts

Cast = tuple[Entity, ...]
Words = list[str]
AGREEMENT = {"is": "are", "are": "is", "was": "were", "were": "was", "has": "have", "have": "has", "does": "do"} | {
    "do": "does"
}
VERBS: dict[str, Verb] = {
    form: verb
    for sense in SENSES.values()
    for verb in sense.verbs
    for form in (verb.base, verb.third, verb.past, verb.participle, verb.gerund)
}
TENSES_USED = ("past", "present", "present progressive", "perfect", "past progressive", "future")


def _draw_sentence(generator: Random) -> Sentence:
    cast = draw_cast(generator, plural_share=0.8)
    event = with_adjuncts(generator, draw_event(generator, cast), cast, 0.4)
    negation = generator.choice(("", "", "", "not", "never"))
    form = draw_form(generator, event, ("present",), negation, 0.2)
    tense = generator.choices(TENSES_USED, (3, 3, 2, 1, 2, 1))[0]
    if form.voice == "active" or not tense.endswith("progressive"):
        form = form._replace(tense=tense)
    form = _with_distance(generator, event, form, cast)
    return annotate(finish(clause(event, form)))


def _with_distance(generator: Random, event: Event, form: Form, cast: Cast) -> Form:
    """Put a pronoun, a complement, a relative clause or a second name at the subject."""
    entity = event.role(subject_role(event, form))
    choice = generator.random()
    style = None
    if choice < 0.15:
        style = PRONOUN
    elif choice < 0.3 and not entity.plural:
        complement = draw_complement(generator, entity, tuple(e for e in cast if e not in event.participants()))
        style = Style(complement=complement) if complement is not None else None
    elif choice < 0.42 and entity.animate and not entity.name:
        senses = tuple(s for s in SENSES.values() if s.frame == "social")
        inner = draw_event(generator, tuple(e for e in cast if e not in event.participants()) + (entity,), senses)
        if inner.get("patient") is entity or inner.get("agent") is entity:
            role = "agent" if inner.get("agent") is entity else "patient"
            relative = relative_clause(inner, role, Form(synonym=generator.randrange(4)))
            style = Style(relative=relative) if relative is not None else None
    elif choice < 0.75 and entity.name:
        others = [e for e in cast if e.name and e not in event.participants()]
        style = Style(also=others[0]) if others else None
    if style is None:
        return form
    return form._replace(styles=dict(form.styles) | {entity.identifier: style})


def _wrong_agreement(generator: Random, sentence: Sentence) -> Words | None:
    words = list(sentence.words)
    verb = sentence.predicates[-1].index
    head = verb + 1
    for index, word in enumerate(words):
        if word in AGREEMENT and sentence.upos[index] == "AUX" and sentence.heads[index] == head:
            words[index] = AGREEMENT[word]
            return words
    form = VERBS[words[verb]]
    supported = any(tag == "AUX" and at == head for tag, at in zip(sentence.upos, sentence.heads, strict=True))
    if supported or words[verb] not in (form.base, form.third) or form.base == form.past:
        return None
    words[verb] = form.third if words[verb] == form.base else form.base
    return words


def _wrong_order(generator: Random, sentence: Sentence) -> Words | None:
    words = list(sentence.words)
    places = []
    for index in range(len(words) - 2):
        pair = (sentence.upos[index], sentence.upos[index + 1])
        if pair in (
            ("DET", "NOUN"),
            ("AUX", "VERB"),
            ("ADP", "DET"),
            ("AUX", "PART"),
            ("NUM", "NOUN"),
            ("ADP", "PROPN"),
        ) or pair in (("DET", "ADJ"), ("ADJ", "NOUN"), ("VERB", "DET"), ("ADV", "VERB"), ("PART", "VERB")):
            places.append(index)
    if not places:
        return None
    index = generator.choice(places)
    words[index], words[index + 1] = words[index + 1], words[index]
    return words


def _spans(sentence: Sentence, relations: tuple[str, ...]) -> list[tuple[int, int]]:
    """Spans of the main verb's phrases with one of the relations, by their widest constituent."""
    main = sentence.heads.index(0) + 1
    phrases = []
    for index, (head, relation) in enumerate(zip(sentence.heads, sentence.deprels, strict=True)):
        if head == main and relation in relations:
            spans = [(s, e) for label, s, e in sentence.constituents if s <= index < e and not s <= main - 1 < e]
            if spans:
                phrases.append(max(spans, key=lambda span: span[1] - span[0]))
    return phrases


def _missing_argument(generator: Random, sentence: Sentence) -> Words | None:
    spans = _spans(sentence, ("obj", "nsubj", "nsubj:pass"))
    transitive = [span for span in spans if span[0] > 0] or spans
    if not transitive:
        return None
    start, end = generator.choice(transitive if generator.random() < 0.7 else spans)
    return list(sentence.words[:start] + sentence.words[end:])


def _extra_argument(generator: Random, sentence: Sentence) -> Words | None:
    """Another noun phrase right after the verb of a clause that has no place for it."""
    event = sentence.predicates[-1].event
    if event.sense.frame not in ("activity", "motion", "talk", "change", "social"):
        return None
    nouns = ("the ball", "the box", "the dog", "Anna", "Ben", "the book", "the cake", "the old hat")
    words = list(sentence.words)
    at = sentence.predicates[-1].index + 1
    return words[:at] + generator.choice(nouns).split() + words[at:]


def _wrong_form(generator: Random, sentence: Sentence) -> Words | None:
    words = list(sentence.words)
    index = sentence.predicates[-1].index
    form = VERBS[words[index]]
    supported = index > 0 and sentence.upos[index - 1] in ("AUX", "PART")
    if supported:
        options = {form.base, form.third, form.past, form.gerund} - {form.participle, words[index]}
        if words[index] in (form.gerund, form.participle):
            options -= {form.gerund}
    else:
        options = {form.gerund, form.participle} - {form.past, words[index]}
    if not options:
        return None
    words[index] = generator.choice(sorted(options))
    return words


def _wrong_case(generator: Random, sentence: Sentence) -> Words | None:
    exchange = {row[0]: row[1] for row in PRONOUNS.values() if row[0] != row[1]}
    exchange |= {second: first for first, second in exchange.items()}
    words = list(sentence.words)
    places = [index for index, word in enumerate(words) if word in exchange and sentence.upos[index] == "PRON"]
    if not places:
        return None
    index = generator.choice(places)
    words[index] = exchange[words[index]]
    return words


FAULTS = (_wrong_agreement, _wrong_order, _missing_argument, _extra_argument, _wrong_form, _wrong_case)
FAULT_WEIGHTS = (34, 22, 14, 10, 14, 6)


def cola_row(generator: Random, label: int) -> Row | None:
    """A sentence, label 1 where it is acceptable, 0 where one fault was made."""
    sentence = _draw_sentence(generator)
    words: Words | None = list(sentence.words)
    if label == 0:
        words = generator.choices(FAULTS, FAULT_WEIGHTS)[0](generator, sentence)
    if words is None or not 4 <= len(words) - 1 <= 20:
        return None
    return {"sentence": join(words), "label": label}
