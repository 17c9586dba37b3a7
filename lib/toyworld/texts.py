"""Plain text: stories told sentence by sentence, with what follows from their events, for pre-training."""

from collections.abc import Iterator
from random import Random

from toyworld.annotation import words_of
from toyworld.choices import draw_complement, draw_form, draw_style, part_of
from toyworld.grammar import (
    FILLERS,
    LONGEST,
    SHORTEST,
    Form,
    clause,
    condition_clause,
    conjoined_phrase,
    direct_object,
    finish,
    lengthen,
    place_clause,
    relative_clause,
    subject_role,
    subordinate,
)
from toyworld.lexicon import OPPOSITES, SENSES
from toyworld.meaning import Entity, Event, converse
from toyworld.phrases import PRONOUN, Complement, Node, Style, pronoun_class
from toyworld.questions import askable, question
from toyworld.stories import Story

FEELINGS = {1: ("happy", "glad"), -1: ("sad", "upset")}
TENSE_CHOICES = {
    "past": ("past", "past", "past progressive", "past", "perfect"),
    "present": ("present", "present progressive", "present", "future"),
}


class Narrator:
    """Tells one story; remembers who was mentioned, so that first mentions are indefinite and later ones pronouns."""

    def __init__(self, generator: Random, story: Story) -> None:
        self.generator = generator
        self.story = story
        self.tense = "past" if generator.random() < 0.6 else "present"
        self.mentioned: set[int] = set()
        self.recent: tuple[Entity, ...] = ()

    def _chance(self, share: float) -> bool:
        return self.generator.random() < share

    def style(self, entity: Entity, company: tuple[Entity, ...]) -> Style:
        """How to refer to an entity now: a pronoun only where one recent entity fits it."""
        rivals = {*self.recent, *company}
        alike = sum(pronoun_class(other) == pronoun_class(entity) for other in rivals)
        if entity in self.recent and alike == 1 and self._chance(0.45):
            return PRONOUN
        determiner = "the" if entity.identifier in self.mentioned else "a"
        style = draw_style(self.generator, entity, 0.25, 0.06, determiner)
        if determiner == "a" and style.noun == "plain" and self._chance(0.06):
            complement = draw_complement(self.generator, entity, self.story.cast)
            if complement is not None and complement.entity not in company:
                return style._replace(complement=complement)
        return style

    def _styled(self, event: Event, negation: str = "") -> Form:
        form = draw_form(self.generator, event, TENSE_CHOICES[self.tense], negation, passive_share=0.3)
        company = tuple(entity for _, entity in event.roles)
        styles = {}
        for _, entity in event.roles:
            if entity.kind not in ("time", "duration"):
                styles[entity.identifier] = self.style(entity, company)
        if event.sense.frame in ("transfer", "placing", "losing") and form.voice == "active" and self._chance(0.12):
            agent, theme = event.role("agent"), event.role(direct_object(event))
            if styles[theme.identifier].noun == "plain" and not theme.number_word:
                styles[theme.identifier] = Style(owner=agent, word="pronoun")
        return form._replace(styles=styles)

    def _told(self, event: Event) -> None:
        self.recent = event.participants()
        self.mentioned |= {entity.identifier for _, entity in event.roles}

    def tell(self, event: Event, negation: str = "", *more: Node) -> Node:
        """One sentence for an event."""
        form = self._styled(event, negation)
        if not negation and form.voice == "active" and form.tense in ("past", "present") and self._chance(0.04):
            form = form._replace(control="manage")
        if not more and self._chance(0.08):
            form = self._with_relative(event, form)
        node = finish(clause(event, form, "root", *more))
        self._told(event)
        return node

    def _with_relative(self, event: Event, form: Form) -> Form:
        entity = event.role(subject_role(event, form))
        earlier = [other for other in self.story.events if other is not event and other.get("agent") is entity]
        if entity.name or not earlier or form.styles[entity.identifier].noun != "plain":
            return form
        inner = self.generator.choice(earlier).core()
        tense = "past" if self.tense == "past" else "present"
        relative = relative_clause(inner, "agent", Form(synonym=self.generator.randrange(4), tense=tense))
        styles = dict(form.styles) | {entity.identifier: Style(relative=relative)}
        return form._replace(styles=styles)

    def state(self, entity: Entity, condition: str, negation: str = "") -> Node:
        """One sentence for a condition of an entity."""
        styles = {entity.identifier: self.style(entity, (entity,))}
        self.mentioned.add(entity.identifier)
        return finish(condition_clause(entity, condition, Form(tense=self.tense, negation=negation, styles=styles)))

    def ownership(self, entity: Entity, theme: Entity, negation: str = "") -> Node:
        """One sentence that says who has a thing."""
        event = Event(SENSES["have"], (("agent", entity), ("theme", theme)))
        styles = {item.identifier: self.style(item, (entity, theme)) for item in (entity, theme)}
        form = Form(synonym=self.generator.randrange(2), tense=self.tense, negation=negation, styles=styles)
        return finish(clause(event, form))

    def consequences(self, event: Event) -> list[Node]:
        """What holds after an event, in the order of how much it says."""
        frame, agent = event.sense.frame, event.role("agent")
        clauses: list[Node] = []
        theme = event.get(direct_object(event)) if direct_object(event) else None
        loser, gainer = event.get("source"), event.get("recipient")
        if theme is not None and frame in ("transfer", "taking", "finding", "losing", "placing"):
            owner = gainer or (agent if frame in ("taking", "finding") else None)
            former = loser or (agent if frame in ("transfer", "losing", "placing") else None)
            if owner is not None and self._chance(0.5):
                clauses.append(self.ownership(owner, theme))
            elif former is not None:
                clauses.append(self.ownership(former, theme, "not"))
        if event.sense.result and event.affected is not None:
            if self._chance(0.5):
                clauses.append(self.state(event.affected, event.sense.result))
            else:
                clauses.append(self.state(event.affected, OPPOSITES[event.sense.result], "not"))
        if frame in ("motion", "leaving"):
            place = event.role("goal" if frame == "motion" else "source")
            styles = {agent.identifier: self.style(agent, (agent,))}
            form = Form(tense=self.tense, negation="" if frame == "motion" else "not", styles=styles)
            clauses.append(finish(place_clause(agent, place, form)))
        if event.sense.welfare and event.affected is not None and self._chance(0.6):
            clauses.append(self.feeling(event.affected, event.sense.welfare))
        return clauses

    def feeling(self, entity: Entity, welfare: int) -> Node:
        """How somebody feels who was treated well or badly."""
        if self._chance(0.3):
            return self.state(entity, self.generator.choice(FEELINGS[-welfare]), "not")
        return self.state(entity, self.generator.choice(FEELINGS[welfare]))

    def retold(self, event: Event) -> Node:
        """The same event in other words."""
        other = converse(event)
        return self.tell(other if other is not None and self._chance(0.5) else event.core())

    def refused(self, event: Event) -> list[Node]:
        """An event that did not happen, and how its patient feels about that."""
        if self._chance(0.5):
            form = self._styled(event)._replace(voice="active", tense=self.tense)
            form = form._replace(control=self.generator.choice(("fail", "refuse")), fronted="")
            nodes = [finish(clause(event, form))]
            self._told(event)
        else:
            nodes = [self.tell(event, self.generator.choice(("not", "not", "never")))]
        if event.sense.welfare and event.affected is not None and self._chance(0.7):
            nodes.append(self.feeling(event.affected, -event.sense.welfare))
        return nodes

    def cried(self, event: Event) -> Node | None:
        """The patient cries or laughs because of the event."""
        patient = event.affected
        if patient is None or patient.kind != "person" or not event.sense.welfare:
            return None
        sense = SENSES["laugh" if event.sense.welfare > 0 else "cry"]
        form = self._styled(event.core())._replace(tense=self.tense, fronted="")
        rival = any(pronoun_class(e) == pronoun_class(patient) for e in event.participants() if e is not patient)
        if not rival:
            form = form._replace(styles=dict(form.styles) | {patient.identifier: PRONOUN})
        reason = clause(event.core(), form)
        self.mentioned |= {entity.identifier for entity in event.participants()}
        return self.tell(Event(sense, (("agent", patient),)), "", subordinate("because", reason))

    def asked(self, event: Event) -> Node:
        """A question that the event answers."""
        form = draw_form(self.generator, event, (self.tense,), adjective_share=0.1)
        role = self.generator.choice(askable(event))
        return finish(question(self.generator, event, role, form), "?")

    def nominal(self, position: int) -> Node | None:
        """A sentence about a part of a thing, a thing with a complement, or somebody's thing."""
        generator = self.generator
        if self._chance(0.4):
            holders = sorted(self.story.facts(position).holder.items())
            if not holders:
                return None
            thing, owner = (self.story.cast[number] for number in generator.choice(holders))
            if owner.plural:
                return None
            form = Form(tense=self.tense, styles={thing.identifier: Style(owner=owner)})
            return finish(condition_clause(thing, thing.adjective or "new", form))
        entity = generator.choice(
            [e for e in self.story.cast if e.noun is not None and e.kind not in ("place", "time")]
        )
        part = part_of(entity)
        if part is not None and generator.random() < 0.6:
            style = Style(complement=Complement("of", entity, "component-whole(e1,e2)", ("Whole", "Whole")))
            word = generator.choice(("broken", "clean", "dirty", "new", "old"))
            form = Form(tense=self.tense, styles={part.identifier: style})
            return finish(condition_clause(part, word, form))
        complement = draw_complement(generator, entity, self.story.cast)
        if complement is None or entity.plural:
            return None
        word = "happy" if entity.animate else generator.choice(("old", "new", "strange", "big"))
        style = Style(complement=complement)
        return finish(condition_clause(entity, word, Form(tense=self.tense, styles={entity.identifier: style})))

    def narrate(self) -> Iterator[Node]:
        """All sentences of the story in order, of `SHORTEST` to `LONGEST` words."""
        for node in self._sentences():
            count = len(words_of(node)) - 1
            if count < SHORTEST:
                node = lengthen(node, SHORTEST - count, self.generator.choice(FILLERS))
            if count <= LONGEST:
                yield node

    def _sentences(self) -> Iterator[Node]:
        skip = False
        for position, event in enumerate(self.story.events):
            if skip:
                skip = False
                continue
            if self._chance(0.05):
                node = self.nominal(position)
                if node is not None:
                    yield node
            follower = self.story.events[position + 1] if position + 1 < len(self.story.events) else None
            if self._chance(0.07):
                yield self.asked(event)
                yield self.tell(event)
            elif follower is not None and follower.role("agent") is event.role("agent") and self._chance(0.7):
                yield self._joined(event, follower)
                skip = True
                event = follower
            elif event.sense.frame == "social" and self._chance(0.2):
                yield from self.refused(event)
                continue
            else:
                reason = self.cried(event) if self._chance(0.25) else None
                yield reason if reason is not None else self.tell(event)
            if self._chance(0.65):
                yield self.retold(event)
            if self._chance(0.75):
                yield from self.consequences(event)

    def _joined(self, event: Event, follower: Event) -> Node:
        second = draw_form(self.generator, follower, passive_share=0.0, adjective_share=0.1)
        tense = "past" if self.tense == "past" else "present"
        styles = dict(second.styles)
        shared = [entity for entity in follower.participants() if entity in event.participants()[1:]]
        if len(shared) == 1 and self._chance(0.6):
            styles[shared[0].identifier] = PRONOUN
        second = second._replace(tense=tense, fronted="", styles=styles)
        first = self._styled(event)._replace(voice="active", tense=tense)
        node = finish(clause(event, first, "root", conjoined_phrase(follower, second)))
        self._told(event)
        self._told(follower)
        return node
