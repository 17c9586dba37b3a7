"""Stories: a cast of recurring characters, and a short run of events whose preconditions and effects hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from toyworld.lexicon import ADJECTIVES, BY_FREQUENCY, MANNERS, MEN, NOUNS, WOMEN, Noun, Sense, zipf_choice
from toyworld.meaning import CORE_ROLES, Entity, Event, Facts, fill_roles, role_kinds

Word = TypeVar("Word")


@dataclass(frozen=True)
class Domain:
    """The words of one kind of texts: names, nouns and adjectives per kind, and senses in order of frequency."""

    women: tuple[str, ...]
    men: tuple[str, ...]
    nouns: dict[str, tuple[Noun, ...]]
    adjectives: dict[str, tuple[str, ...]]
    senses: tuple[Sense, ...]


HELPFUL_RESULTS = ("whole", "clean", "open")
HOME = Domain(WOMEN, MEN, NOUNS, ADJECTIVES, BY_FREQUENCY)


@dataclass(frozen=True)
class Story:
    """A cast, its events in order, and who held what, was where and in what condition at the beginning."""

    cast: tuple[Entity, ...]
    events: tuple[Event, ...]
    holder: tuple[tuple[int, int], ...]
    place: tuple[tuple[int, int], ...]
    conditions: tuple[tuple[int, str], ...]

    def facts(self, events: int = 0) -> Facts:
        """The facts after the first `events` events."""
        facts = Facts(dict(self.holder), dict(self.place), {identifier: {word} for identifier, word in self.conditions})
        for event in self.events[:events]:
            facts.apply(event)
        return facts


def draw_cast(
    generator: Random, domain: Domain = HOME, plural_share: float = 0.2, characters: int = 4
) -> tuple[Entity, ...]:
    """Draw people, animals, things and places; characters come first, in order of importance."""
    cast: list[Entity] = []
    used: set[str] = set()

    def unused(words: Sequence[Word], spelling: Callable[[Word], str]) -> Word:
        while spelling(word := zipf_choice(generator, words)) in used:
            continue
        used.add(spelling(word))
        return word

    def add(kind: str, plural_share: float = 0.0, gender: str = "neuter") -> None:
        noun = unused(domain.nouns[kind], lambda candidate: candidate.singular)
        plural = bool(noun.plural) and generator.random() < plural_share
        adjective = zipf_choice(generator, domain.adjectives[kind]) if kind in domain.adjectives else ""
        if any(adjective == other.adjective and kind == other.kind for other in cast):
            adjective = ""
        number = generator.choice(("", "", "two", "three", "four")) if plural else ""
        cast.append(Entity(len(cast), kind, noun, "", gender, plural, adjective, number))

    def add_name() -> None:
        gender = generator.choice(("feminine", "masculine"))
        name = unused(domain.women if gender == "feminine" else domain.men, str)
        cast.append(Entity(len(cast), "person", None, name, gender))

    for choice in generator.choices(("name", "job", "animal"), (6, 2, 3), k=characters):
        if choice == "name":
            add_name()
        elif choice == "job":
            add("person", plural_share, gender=generator.choice(("feminine", "masculine")))
        else:
            add("animal", plural_share)
    if not any(entity.kind == "person" for entity in cast):
        add_name()
    for kind in generator.sample(("toy", "food", "clothing", "document", "tool", "container"), 3):
        add(kind, plural_share)
    for kind in (generator.choice(("container", "surface", "surface", "vehicle")), *["place"] * 3, *["time"] * 2):
        add(kind)
    return tuple(cast)


def draw_event(
    generator: Random, cast: tuple[Entity, ...], senses: tuple[Sense, ...] = HOME.senses, **fixed: Entity
) -> Event:
    """Draw an event of one of the senses, ignoring the facts; a cast that lacks a kind is skipped over."""
    for _ in range(200):
        event = fill_roles(generator, zipf_choice(generator, senses), cast, **fixed)
        if event is not None:
            return event
    raise ValueError("No sense fits the cast; offer senses whose argument kinds the cast has.")


def _company(event: Event) -> str:
    """The role in which one more person can take part in an event, or an empty string."""
    if event.sense.name == "laugh":
        return "stimulus"
    if event.sense.frame in ("activity", "motion"):
        return "companion"
    return "beneficiary" if event.sense.frame == "change" and event.sense.result in HELPFUL_RESULTS else ""


def with_adjuncts(
    generator: Random, event: Event, cast: tuple[Entity, ...], share: float = 0.45, domain: Domain = HOME
) -> Event:
    """Add a place, a time, an instrument or a manner, each with some probability."""
    added: dict[str, Entity] = {}
    taken = event.participants()
    for role, kind in (("place", "place"), ("time", "time")):
        options = [entity for entity in cast if entity.kind == kind and entity not in taken]
        fits = role != "place" or event.sense.frame not in ("motion", "leaving", "placing", "mental", "having")
        if options and fits and generator.random() < share:
            added[role] = generator.choice(options)
    manner = ""
    if event.sense.frame not in ("mental", "having") and "mental" not in event.sense.traits and "place" not in added:
        manner = zipf_choice(generator, MANNERS) if generator.random() < share * 0.4 else ""
    if event.sense.instruments and domain is HOME and "time" not in added and generator.random() < share:
        name = generator.choice(event.sense.instruments)
        noun = next(noun for noun in NOUNS["tool"] if noun.singular == name)
        if all(entity.noun is not noun for entity in taken):
            added["instrument"] = Entity(90, "tool", noun)
    others = [entity for entity in cast if entity.kind == "person" and entity not in taken]
    if others and generator.random() < share * 0.35:
        role = _company(event)
        if role:
            added[role] = generator.choice(others)
    if event.sense.name in ("sell", "buy") and generator.random() < share * 0.7:
        number = generator.choice(("", "two", "three", "four"))
        added["cost"] = Entity(92, "coin", domain.nouns["coin"][0], plural=bool(number), number_word=number)
    if event.sense.name == "go":
        free = [entity for entity in cast if entity.kind == "place" and entity not in taken]
        if free and generator.random() < share * 0.8:
            added[generator.choice(("path", "origin"))] = generator.choice(free)
    if event.sense.frame == "activity" and "time" not in added and generator.random() < share * 0.7:
        added["duration"] = Entity(91, "duration", zipf_choice(generator, domain.nouns["duration"]))
    return replace(event.having(**added), manner=manner)


def _likely_event(generator: Random, story_cast: tuple[Entity, ...], facts: Facts, sense: Sense) -> Event | None:
    """Fill roles with an eye on the facts: who has a thing to give, who is where."""
    animates = [entity for entity in story_cast if entity.kind in sense.agents]
    if not animates:
        return None
    agent = zipf_choice(generator, animates)
    fixed: dict[str, Entity] = {"agent": agent}
    held = [entity for entity in story_cast if facts.holder.get(entity.identifier) == agent.identifier]
    roles = CORE_ROLES[sense.frame]
    theme_role = "theme" if "theme" in roles else "patient"
    if sense.frame in ("transfer", "placing", "losing") or sense.name == "eat":
        fitting = [entity for entity in held if entity.kind in role_kinds(sense, theme_role)]
        if not fitting:
            return None
        fixed[theme_role] = generator.choice(fitting)
    elif sense.frame == "taking":
        fitting = [e for e in story_cast if e.kind in sense.patients and e.identifier in facts.holder]
        if not fitting:
            return None
        theme = generator.choice(fitting)
        source = story_cast[facts.holder[theme.identifier]]
        if source is agent or source.kind not in role_kinds(sense, "source"):
            return None
        fixed |= {"theme": theme, "source": source}
    elif sense.frame == "leaving":
        if agent.identifier not in facts.place:
            return None
        fixed["source"] = story_cast[facts.place[agent.identifier]]
    return fill_roles(generator, sense, story_cast, **fixed)


def simulate(generator: Random, length: int, domain: Domain = HOME) -> Story:
    """Draw a cast and `length` events, each possible when it happens.

    >>> len(simulate(Random("a"), 5).events)
    5
    """
    cast = draw_cast(generator, domain, characters=3)
    animates = [entity for entity in cast if entity.animate]
    places = [entity for entity in cast if entity.kind == "place"]
    facts = Facts()
    for entity in animates:
        facts.place[entity.identifier] = places[0].identifier
        if generator.random() < 0.2:
            facts.conditions[entity.identifier] = {generator.choice(("hurt", "hungry", "afraid"))}
    for entity in cast:
        if entity.kind in ("toy", "food", "clothing", "document", "tool", "container") and generator.random() < 0.75:
            facts.holder[entity.identifier] = generator.choice(animates).identifier
        if entity.kind in ("toy", "vehicle", "surface", "container", "clothing") and generator.random() < 0.25:
            words = {"clothing": ("dirty",), "container": ("dirty", "broken", "open", "open")}
            facts.conditions[entity.identifier] = {generator.choice(words.get(entity.kind, ("dirty", "broken")))}
    start = (
        tuple(sorted(facts.holder.items())),
        tuple(sorted(facts.place.items())),
        tuple((identifier, word) for identifier, words in sorted(facts.conditions.items()) for word in words),
    )
    events: list[Event] = []
    while len(events) < length:
        event = _likely_event(generator, cast, facts, zipf_choice(generator, domain.senses))
        if event is None or not facts.allows(event) or any(event == other.core() for other in events[-3:]):
            continue
        facts.apply(event)
        event = with_adjuncts(generator, event.core(), cast, 0.35, domain)
        agent_place = facts.place.get(event.role("agent").identifier)
        if event.get("place") is not None and event.sense.frame not in ("motion", "leaving"):
            event = event.having(place=cast[agent_place] if agent_place is not None else None)
        events.append(event)
    return Story(cast, tuple(events), *start)
