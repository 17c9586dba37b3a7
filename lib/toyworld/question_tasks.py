"""Questions as tasks: does a sentence answer it, where in a story is the answer, what does it ask for."""

from random import Random

import pandas

from toyworld.annotation import Sentence, annotate, offsets
from toyworld.choices import draw_form
from toyworld.grammar import clause, complements, finish
from toyworld.inference import ACTS, sentence_text
from toyworld.lexicon import Sense, zipf_choice
from toyworld.meaning import Entity, Event, fill_roles, role_kinds, swapped
from toyworld.questions import askable, inverted, question
from toyworld.rows import Row, generator_for
from toyworld.stories import HOME, draw_cast, draw_event, simulate, with_adjuncts
from toyworld.texts import Narrator

Cast = tuple[Entity, ...]
QUESTIONS = 3
ADJUNCT_ROLES = ("place", "time", "instrument", "cost", "beneficiary", "companion", "duration", "manner", "path")


def _question_text(generator: Random, event: Event, role: str, words: tuple[str, ...] = ()) -> str | None:
    """A question for a role of the event; other adjuncts are mostly left out of it."""
    kept = {name: None for name in ADJUNCT_ROLES if name != role and generator.random() < 0.75}
    asked = event.having(**kept) if role == "manner" else Event(event.sense, event.having(**kept).roles)
    form = draw_form(generator, asked, ("past",), "", 0.0)
    return sentence_text(finish(question(generator, asked, role, form, words), "?"))


def _without(generator: Random, event: Event, role: str, cast: Cast) -> Event | None:
    """An event from which the asked role cannot be known."""
    if role == "manner":
        bare = Event(event.sense, event.roles)
    elif role in ADJUNCT_ROLES:
        bare = event.having(**{role: None})
    else:
        return _other_event(generator, event, role, cast)
    if generator.random() < 0.35:
        return _other_event(generator, event, role, cast)
    for adjunct in ("time", "place"):
        options = [entity for entity in cast if entity.kind == adjunct and entity not in event.participants()]
        if adjunct != role and bare.get(adjunct) is None and options and event.sense.frame != "placing":
            return bare.having(**{adjunct: generator.choice(options)})
    return bare


def _other_event(generator: Random, event: Event, role: str, cast: Cast) -> Event | None:
    """An event that looks alike: swapped roles, another act, or another participant than the question names."""
    options: list[Event] = []
    exchanged = swapped(event)
    if exchanged is not None:
        options += [exchanged, exchanged]
    senses = [
        sense
        for sense in ACTS
        if sense.frame == event.sense.frame
        and sense is not event.sense
        and all(entity.kind in role_kinds(sense, name) for name, entity in event.core().roles)
    ]
    if senses:
        options.append(Event(generator.choice(senses), event.roles, event.manner))
    for name, _ in event.core().roles:
        others = [e for e in cast if e.kind in role_kinds(event.sense, name) and e not in event.participants()]
        if name != role and others:
            options.append(event.having(**{name: generator.choice(others)}))
    return generator.choice(options) if options else None


def qnli_row(generator: Random, label: int) -> Row | None:
    """A question and a sentence; label 0 where the sentence answers the question, 1 where it does not."""
    cast = draw_cast(generator)
    event = with_adjuncts(generator, draw_event(generator, cast, ACTS), cast, 0.5)
    role = generator.choice(askable(event))
    asked = _question_text(generator, event, role)
    told = event if label == 0 else _without(generator, event, role, cast)
    if told is None or asked is None:
        return None
    form = draw_form(generator, told, ("past",), "", 0.2)
    text = sentence_text(finish(clause(told, form)))
    return text and {"question": asked, "sentence": text, "label": label}


def _answer_span(sentence: Sentence, role: str) -> tuple[int, int] | None:
    """The words that fill a role of the sentence's main event, without a preposition; None for a pronoun."""
    for predicate in sentence.predicates[:1]:
        for name, (start, end) in predicate.arguments:
            if name != role:
                continue
            if sentence.upos[start] == "ADP":
                start += 1
            return None if sentence.upos[start] == "PRON" else (start, end)
    return None


def _told_story(generator: Random) -> tuple[list[tuple[Event, Sentence]], list[str]]:
    """A short story, one sentence per event, and its sentences' texts."""
    narrator = Narrator(generator, simulate(generator, generator.randrange(4, 7)))
    narrator.tense = "past"
    told = []
    for event in narrator.story.events:
        sentence = annotate(narrator.tell(event))
        if 4 <= len(sentence.words) - 1 <= 20:
            told.append((event, sentence))
    return told, [sentence.text for _, sentence in told]


def _squad_rows(generator: Random, split: str, number: int) -> list[Row]:
    """The rows of one story: up to three questions."""
    told, texts = _told_story(generator)
    senses = [event.sense.name for event, _ in told]
    candidates = [item for item in told if senses.count(item[0].sense.name) == 1]
    if len(told) < 3:
        return []
    rows = []
    context = " ".join(texts)
    for event, sentence in generator.sample(candidates, min(QUESTIONS, len(candidates))):
        role = generator.choice(askable(event))
        span = _answer_span(sentence, role)
        asked = _question_text(generator, event, role)
        if span is None or asked is None:
            continue
        start = sum(len(text) + 1 for text in texts[: texts.index(sentence.text)])
        places = offsets(sentence.words)
        first, last = start + places[span[0]][0], start + places[span[1] - 1][1]
        answers = {"text": [context[first:last]], "answer_start": [first]}
        identifier = f"{split}-{number:04d}-{len(rows)}"
        head = {"id": identifier, "title": f"story {split} {number}", "context": context}
        rows.append({**head, "question": asked, "answers": answers})
    return rows


def squad() -> dict[str, pandas.DataFrame]:
    """Stories with questions and the span of each answer."""
    tables: dict[str, pandas.DataFrame] = {}
    earlier: set[str] = set()
    for split, size in (("train", 3000), ("validation", 400)):
        rows: list[Row] = []
        contexts: set[str] = set()
        number = 0
        while len(rows) < size:
            of_story = _squad_rows(generator_for("squad", split, number), split, number)
            number += 1
            if not of_story or of_story[0]["context"] in contexts:
                continue
            if earlier.isdisjoint(_sentences_of(of_story[0]["context"])):
                contexts.add(of_story[0]["context"])
                rows += of_story[: size - len(rows)]
        earlier |= {text for context in contexts for text in _sentences_of(context)}
        tables[split] = pandas.DataFrame(rows)
    return tables


def _sentences_of(context: str) -> list[str]:
    return context.removesuffix(".").split(". ")


# fine label: (coarse label, role asked for, names of frames or senses, kinds of the filler, question words)
QUESTION_TYPES: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "person:agent": ("person", "agent", ("social", "transfer", "taking", "change"), ("person",), ()),
    "person:patient": ("person", "patient", ("social", "mental"), ("person",), ()),
    "person:recipient": ("person", "recipient", ("transfer", "talk"), ("person",), ()),
    "person:source": ("person", "source", ("taking",), ("person",), ()),
    "animal:agent": ("animal", "agent", ("social", "mental", "finding"), ("animal",), ()),
    "animal:patient": ("animal", "patient", ("social",), ("animal",), ()),
    "thing:food": ("thing", "patient", ("eat",), ("food",), ()),
    "thing:container": ("thing", "patient", ("open", "close"), ("container",), ()),
    "thing:possession": ("thing", "theme", ("transfer", "taking", "placing"), (), ()),
    "thing:object": ("thing", "patient", ("break", "repair", "wash", "paint", "lift", "carry"), (), ()),
    "thing:instrument": ("thing", "instrument", ("break", "wash", "paint", "open"), (), ("what",)),
    "place:location": ("place", "place", ("social", "activity", "change", "transfer"), (), ("where",)),
    "place:goal": ("place", "goal", ("motion", "placing"), (), ("where",)),
    "place:left": ("place", "source", ("leaving",), (), ("which", "place")),
    "number:time": ("number", "time", ("social", "transfer", "activity", "change", "motion"), (), ("when",)),
    "number:duration": ("number", "duration", ("activity",), (), ("how", "long")),
    "number:price": ("number", "cost", ("sell", "buy"), (), ("how", "much")),
    "number:count": ("number", "", ("social", "transfer", "taking", "eat"), (), ("how", "many")),
    "description:manner": ("description", "manner", ("social", "change", "transfer", "motion"), (), ("how",)),
    "description:reason": ("description", "reason", ("activity", "social", "motion", "mental"), (), ("why",)),
}
FINE_LABELS = tuple(QUESTION_TYPES)
COARSE_LABELS = tuple(dict.fromkeys(coarse for coarse, *_ in QUESTION_TYPES.values()))
FINE_SHARES = (9, 7, 5, 4, 6, 6, 3, 3, 8, 6, 3, 7, 5, 2, 6, 3, 3, 4, 4, 6)


def _typed_event(generator: Random, senses: tuple[Sense, ...], cast: Cast, role: str) -> Event | None:
    drawn = fill_roles(generator, zipf_choice(generator, senses), cast)
    if drawn is None:
        return None
    event = with_adjuncts(generator, drawn, cast, 0.5)
    if role == "place" and event.get("place") is None:
        event = event.having(place=generator.choice([entity for entity in cast if entity.kind == "place"]))
    if role == "time" and event.get("time") is None:
        event = event.having(time=generator.choice([entity for entity in cast if entity.kind == "time"]))
    missing = role == "manner" and not event.manner
    return None if missing or (role not in ("", "manner", "reason") and event.get(role) is None) else event


def trec_row(generator: Random, label: int) -> Row | None:
    """A question with the coarse and the fine type of what it asks for."""
    coarse, role, names, kinds, words = QUESTION_TYPES[FINE_LABELS[label]]
    cast = draw_cast(generator)
    senses = tuple(sense for sense in HOME.senses if sense.frame in names or sense.name in names)
    event = _typed_event(generator, senses, cast, role)
    if event is None or (kinds and event.role(role).kind not in kinds):
        return None
    if role == "":
        plural = [name for name, entity in event.core().roles if entity.plural]
        if not plural:
            return None
        role = generator.choice(plural)
        words = (*words, event.role(role).noun.plural)  # type: ignore[union-attr]
    if role == "reason":
        form = draw_form(generator, event, ("past",), "", 0.2)._replace(fronted="")
        text = sentence_text(finish(inverted(event, ("why",), form, complements(event, form)), "?"))
    else:
        text = _question_text(generator, event, role, words)
    return text and {"text": text, "coarse_label": COARSE_LABELS.index(coarse), "fine_label": label}
