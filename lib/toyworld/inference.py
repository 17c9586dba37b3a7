"""Entailment and paraphrase: pairs of sentences whose label comes from the two events, not from their words.

The hypothesis is drawn first, in the same way for every label; then a premise is drawn that makes the label true.
So the hypothesis alone says nothing. As in the corpora, both sentences speak of the same occasion: swapped roles,
another place, or an opposite act contradict. What the premise leaves open is neutral.
"""

from random import Random

from toyworld.annotation import join, words_of
from toyworld.choices import draw_form, draw_style
from toyworld.grammar import LONGEST, SHORTEST, Form, clause, condition_clause, finish, lengthen, place_clause
from toyworld.lexicon import HYPERNYMS, OPPOSITES, SENSES
from toyworld.meaning import Entity, Event, converse, role_kinds, swapped
from toyworld.phrases import Node, Style, Styles
from toyworld.rows import Row
from toyworld.stories import draw_cast, draw_event

Cast = tuple[Entity, ...]
ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2
NO_STYLES: Styles = {}
OPPOSITE_ACTS = {"help": "hurt", "rescue": "attack", "praise": "insult", "scare": "comfort", "admire": "hate"} | {
    "protect": "attack",
    "hug": "push",
    "break": "repair",
    "wash": "soil",
    "open": "close",
    "find": "lose",
}
OPPOSITE_ACTS |= {second: first for first, second in OPPOSITE_ACTS.items()}
# Acts of which one may be told as the other: neither follows from the other, nor is it open.
KINDRED = (
    frozenset(("help", "rescue", "heal", "protect", "comfort", "feed")),
    frozenset(("hurt", "attack", "push", "scare")),
    frozenset(("chase", "follow")),
    frozenset(("give", "sell", "lend", "send")),
    frozenset(("take", "receive", "steal", "buy", "borrow")),
    frozenset(("help", "hurt", "attack")),
)
ACTS = tuple(s for s in SENSES.values() if s.frame in ("social", "transfer", "taking", "change", "placing"))
BETWEEN = tuple(s for s in SENSES.values() if s.frame in ("social", "transfer", "taking", "mental"))
ASIDES = tuple(s for s in SENSES.values() if s.frame in ("activity", "talk") or s.name in ("visit", "see", "follow"))
GAINS = tuple(SENSES[name] for name in ("take", "receive", "steal", "buy", "borrow"))
GIFTS = tuple(SENSES[name] for name in ("give", "sell", "send", "lend"))
RESULTS = tuple(s for s in SENSES.values() if s.result in OPPOSITES)


def sentence_text(node: Node) -> str | None:
    """The text of a finished clause of 4 to 20 words (lengthened where shorter), or None where it is longer."""
    count = len(words_of(node)) - 1
    if count > LONGEST:
        return None
    return join(words_of(lengthen(node, SHORTEST - count) if count < SHORTEST else node))


def _described(generator: Random, event: Event, share: float) -> frozenset[int]:
    """Which participants are told with their adjective."""
    return frozenset(e.identifier for e in event.participants() if e.adjective and generator.random() < share)


def _form(generator: Random, event: Event, described: frozenset[int], special: Styles) -> Form:
    form = draw_form(generator, event, ("past",), "", 0.0)._replace(fronted="")
    styles = {
        entity.identifier: draw_style(generator, entity, 1.0)._replace(very=False)
        for _, entity in event.roles
        if entity.identifier in described
    }
    return form._replace(styles={**form.styles, **styles, **special})


def _told(
    generator: Random, event: Event, negated: bool, described: frozenset[int] = frozenset(), special: Styles = NO_STYLES
) -> Node:
    """One telling of an event or, negated, of that it did not happen (not, never, failed, refused)."""
    form = _form(generator, event, described, special)
    if negated:
        word = generator.choice(("not", "not", "not", "never", "never", "fail", "refuse"))
        if word in ("fail", "refuse") and form.voice == "active":
            form = form._replace(control=word)
        else:
            form = form._replace(negation="never" if word == "never" else "not")
    return clause(event, form)


def _generalised(generator: Random, event: Event) -> dict[int, Style]:
    """A style for one participant as a hypernym, where one fits."""
    fitting = [
        entity
        for entity in event.participants()
        if entity.name or (entity.kind in HYPERNYMS and not entity.number_word and entity.kind != "surface")
    ]
    return {generator.choice(fitting).identifier: Style("hypernym", "a")} if fitting else {}


def _other_sense(generator: Random, event: Event) -> Event | None:
    """A different act, neither the same nor the opposite, between the same participants."""
    name = event.sense.name
    related = {name, OPPOSITE_ACTS.get(name, "")}.union(*(group for group in KINDRED if name in group))
    fitting = [
        sense
        for sense in ACTS
        if sense.frame == event.sense.frame
        and sense.name not in related
        and all(entity.kind in role_kinds(sense, role) for role, entity in event.core().roles)
    ]
    if not fitting:
        return None
    return Event(generator.choice(fitting), event.roles, event.manner)


def _replaced_participant(generator: Random, event: Event, cast: Cast) -> Event | None:
    role, entity = generator.choice([pair for pair in event.core().roles if pair[1].kind != "place"])
    fitting = [
        other for other in cast if other.kind in role_kinds(event.sense, role) and other not in event.participants()
    ]
    return event.having(**{role: generator.choice(fitting)}) if fitting else None


def _moved(generator: Random, event: Event, cast: Cast, adjunct: str) -> Event:
    others = [entity for entity in cast if entity.kind == adjunct and entity is not event.role(adjunct)]
    return event.having(**{adjunct: generator.choice([e for e in others if e not in event.participants()] or others)})


def _contradicting(generator: Random, event: Event, adjunct: str, cast: Cast) -> Event | None:
    options = []
    exchanged = swapped(event)
    if exchanged is not None:
        options += [exchanged, exchanged]
    if adjunct:
        options.append(_moved(generator, event, cast, adjunct))
    opposite = OPPOSITE_ACTS.get(event.sense.name)
    if opposite and all(e.kind in role_kinds(SENSES[opposite], role) for role, e in event.core().roles):
        options.append(Event(SENSES[opposite], event.roles, event.manner))
    return generator.choice(options) if options else None


def _event_pair(generator: Random, label: int, cast: Cast) -> tuple[Node, Node] | None:
    """Premise and hypothesis that are both about an act."""
    event = draw_event(generator, cast, ACTS)
    adjunct = generator.choice(("", "place", "time"))
    if event.sense.frame == "placing" and adjunct == "place":
        adjunct = "time"
    bystanders = [entity for entity in cast if entity.kind == adjunct and entity not in event.participants()]
    if adjunct:
        event = event.having(**{adjunct: generator.choice(bystanders)})
    negated = generator.random() < 0.35
    general = _generalised(generator, event) if not negated and generator.random() < 0.12 else {}
    told = event
    if general == {} and generator.random() < 0.1:
        told = converse(event) or event
    described = _described(generator, event, 0.25)
    hypothesis = _told(generator, told, negated, described, general)
    premise_event, premise_negated, styles = event, negated, {}
    shown = described | _described(generator, event, 0.15)
    if label == CONTRADICTION:
        premise_negated = False if negated else generator.random() < 0.54
        if not negated and not premise_negated:
            premise_event = _contradicting(generator, event, adjunct, cast)
            premise_negated = premise_event is None
            premise_event = premise_event or event
    elif label == NEUTRAL:
        premise_negated = generator.random() < 0.35
        plain = not negated and not premise_negated
        premise_event, shown, styles = _neutral(generator, event, adjunct, cast, described, shown, general, plain)
    if premise_event is None:
        return None
    if premise_negated and negated and label == ENTAILMENT:
        return _told(generator, premise_event, True, described), hypothesis
    if not premise_negated:
        premise_event = _embellished(generator, premise_event, adjunct, cast, event)
    return _told(generator, premise_event, premise_negated, shown, styles), hypothesis


def _neutral(
    generator: Random,
    event: Event,
    adjunct: str,
    cast: Cast,
    described: frozenset[int],
    shown: frozenset[int],
    general: dict,
    plain: bool,
) -> tuple[Event | None, frozenset[int], dict]:
    """The event of a premise that leaves a hypothesis open, who is described in it, and styles; `plain` where neither
    of the two is negated.
    """
    choice = generator.random()
    if adjunct and plain and choice < 0.5:
        return event.having(**{adjunct: None}), shown, {}
    if described and not general and plain and choice < 0.7:
        return event, frozenset(), {}
    if plain and not general and choice < 0.6:
        styles = _generalised(generator, event)
        return event if styles else None, shown, styles
    other = _other_sense(generator, event) if choice < 0.85 else None
    return other or _replaced_participant(generator, event, cast), shown, {}


def _embellished(generator: Random, event: Event, adjunct: str, cast: Cast, other: Event) -> Event:
    """Add a place or a time of another type than the hypothesis speaks of."""
    for role in ("place", "time"):
        if role == adjunct or event.get(role) is not None or (role == "place" and event.sense.frame == "placing"):
            continue
        options = [e for e in cast if e.kind == role and e not in event.participants() + other.participants()]
        if options and generator.random() < 0.5:
            event = event.having(**{role: generator.choice(options)})
    return event


def _ownership_pair(generator: Random, label: int, cast: Cast) -> tuple[Node, Node] | None:
    animates = [entity for entity in cast if entity.kind == "person"]
    things = [entity for entity in cast if entity.kind in SENSES["have"].patients]
    if len(animates) < 2 or len(things) < 2:
        return None
    first, second = generator.sample(animates, 2)
    thing, other_thing = generator.sample(things, 2)
    negated = generator.random() < 0.5
    state = Event(SENSES["have"], (("agent", first), ("theme", thing)))
    hypothesis = clause(state, Form(synonym=generator.randrange(2), negation="not" if negated else ""))
    gains = (label == ENTAILMENT) != negated if label != NEUTRAL else generator.random() < 0.5
    theme = other_thing if label == NEUTRAL else thing
    giver, taker = (second, first) if gains else (first, second)
    if generator.random() < 0.5:
        event = draw_event(generator, cast, GAINS, agent=taker, theme=theme, source=giver)
    else:
        event = draw_event(generator, cast, GIFTS, agent=giver, theme=theme, recipient=taker)
    return _told(generator, _embellished(generator, event, "", cast, event), False), hypothesis


def _condition_pair(generator: Random, label: int, cast: Cast) -> tuple[Node, Node] | None:
    event = draw_event(generator, cast, RESULTS)
    patient, result = event.role("patient"), event.sense.result
    negated = generator.random() < 0.5
    if label == NEUTRAL:
        fitting = sorted(
            {
                sense.result
                for sense in RESULTS
                if patient.kind in sense.patients and sense.result not in (result, OPPOSITES[result])
            }
        )
        if not fitting:
            return None
        condition = generator.choice(fitting)
        condition = generator.choice((condition, OPPOSITES[condition]))
    else:
        condition = result if (label == ENTAILMENT) != negated else OPPOSITES[result]
    form = Form(negation="not" if negated else "", styles={})
    premise = _told(generator, _embellished(generator, event, "", cast, event), False)
    return premise, condition_clause(patient, condition, form)


def _place_pair(generator: Random, label: int, cast: Cast) -> tuple[Node, Node] | None:
    first, second = generator.sample([entity for entity in cast if entity.animate], 2)
    place = generator.choice([entity for entity in cast if entity.kind == "place"])
    negated = generator.random() < 0.5
    hypothesis = place_clause(first, place, Form(negation="not" if negated else ""))
    arrives = (label == ENTAILMENT) != negated if label != NEUTRAL else generator.random() < 0.5
    mover = second if label == NEUTRAL else first
    if arrives:
        event = Event(SENSES["go"], (("agent", mover), ("goal", place)))
    else:
        event = Event(SENSES["leave"], (("agent", mover), ("source", place)))
    times = [entity for entity in cast if entity.kind == "time"]
    return _told(generator, event.having(time=generator.choice(times)), False), hypothesis


PAIRS = (_event_pair, _ownership_pair, _condition_pair, _place_pair)


def inference_texts(generator: Random, label: int) -> tuple[str, str, Cast] | None:
    """A premise and a hypothesis in the relation `label`, with the cast; None where the draw did not work out."""
    cast = draw_cast(generator)
    pair = generator.choices(PAIRS, (70, 12, 12, 6))[0](generator, label, cast)
    if pair is None:
        return None
    texts = [sentence_text(finish(node)) for node in pair]
    if texts[0] is None or texts[1] is None or texts[0] == texts[1]:
        return None
    return texts[0], texts[1], cast


def mnli_row(generator: Random, label: int) -> Row | None:
    """Premise, hypothesis, label: 0 entailment, 1 neutral, 2 contradiction."""
    texts = inference_texts(generator, label)
    return texts and {"premise": texts[0], "hypothesis": texts[1], "label": label}


def rte_row(generator: Random, label: int) -> Row | None:
    """As `mnli_row` with two labels, 0 entailment and 1 not; the premise often has a second sentence."""
    texts = inference_texts(generator, ENTAILMENT if label == 0 else generator.choice((NEUTRAL, CONTRADICTION)))
    if texts is None:
        return None
    premise, hypothesis, cast = texts
    if generator.random() < 0.6:
        times = [entity for entity in cast if entity.kind == "time"]
        aside = draw_event(generator, cast, ASIDES).having(time=generator.choice(times))
        more = sentence_text(finish(_told(generator, aside, False)))
        if more is None:
            return None
        premise = " ".join((premise, more) if generator.random() < 0.5 else (more, premise))
    return {"sentence1": premise, "sentence2": hypothesis, "label": label}


def _altered(generator: Random, event: Event, cast: Cast) -> Event | None:
    """The event with another act or another participant."""
    if generator.random() < 0.5:
        return _other_sense(generator, event) or _replaced_participant(generator, event, cast)
    return _replaced_participant(generator, event, cast)


def mrpc_row(generator: Random, label: int) -> Row | None:
    """Two sentences, label 1 where they tell the same event; else roles are swapped, or an act or participant differs.

    Voice, order of objects and synonyms vary freely on both sides; there are no adjuncts, so that who did what to whom
    is all there is to compare.
    """
    cast = draw_cast(generator)
    event = draw_event(generator, cast, BETWEEN)
    exchanged = swapped(event)
    if exchanged is None:
        return None
    other: Event | None = event
    if label == 0:
        other = exchanged if generator.random() < 0.85 else _altered(generator, event, cast)
    if other is None:
        return None
    texts = []
    for told in (event, other):
        form = draw_form(generator, told, ("past",), "", 0.0, 0.0, 0.45)
        texts.append(sentence_text(finish(clause(told, form))))
    if None in texts or texts[0] == texts[1]:
        return None
    return {"sentence1": texts[0], "sentence2": texts[1], "label": label}
