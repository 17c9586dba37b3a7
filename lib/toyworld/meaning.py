"""Meaning: entities, events with typed roles, and facts whose preconditions and effects hold.

An event is a sense with fillers for its roles. `Facts` says who has what, who is where and in what condition things
are; `Facts.allows` checks an event's preconditions and `Facts.apply` makes its effects true.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random

from toyworld.lexicon import ANIMATE, CONVERSES, OPPOSITES, SENSES, Noun, Sense, zipf_choice

CORE_ROLES: dict[str, tuple[str, ...]] = {
    "transfer": ("agent", "theme", "recipient"),
    "taking": ("agent", "theme", "source"),
    "social": ("agent", "patient"),
    "mental": ("agent", "patient"),
    "finding": ("agent", "patient"),
    "losing": ("agent", "patient"),
    "change": ("agent", "patient"),
    "placing": ("agent", "theme", "goal"),
    "motion": ("agent", "goal"),
    "leaving": ("agent", "source"),
    "talk": ("agent", "recipient", "topic"),
    "activity": ("agent",),
    "having": ("agent", "theme"),
}


@dataclass(frozen=True)
class Entity:
    """Somebody, something, some place or some time; `identifier` is unique within a story."""

    identifier: int
    kind: str
    noun: Noun | None = None
    name: str = ""
    gender: str = "neuter"
    plural: bool = False
    adjective: str = ""
    number_word: str = ""

    @property
    def animate(self) -> bool:
        return self.kind in ANIMATE


@dataclass(frozen=True)
class Event:
    """A sense and who or what fills its roles, core roles first; `manner` is an adverb or empty."""

    sense: Sense
    roles: tuple[tuple[str, Entity], ...]
    manner: str = ""

    def get(self, role: str) -> Entity | None:
        """Who fills a role, or None.

        >>> Event(SENSES["sleep"], ()).get("agent") is None
        True
        """
        for name, entity in self.roles:
            if name == role:
                return entity
        return None

    def role(self, name: str) -> Entity:
        entity = self.get(name)
        if entity is None:
            raise KeyError(f"The event {self.sense.name!r} has no role {name!r}; it has {[r for r, _ in self.roles]}.")
        return entity

    def having(self, **fillers: Entity | None) -> "Event":
        """The same event with some roles filled otherwise, added, or (None) removed."""
        kept = [(role, fillers.get(role, entity)) for role, entity in self.roles]
        present = {role for role, _ in self.roles}
        kept += [(role, entity) for role, entity in fillers.items() if role not in present]
        return replace(self, roles=tuple((role, entity) for role, entity in kept if entity is not None))

    def core(self) -> "Event":
        """The event without adjuncts (place, time, instrument and the like)."""
        names = CORE_ROLES[self.sense.frame]
        return replace(self, roles=tuple(pair for pair in self.roles if pair[0] in names), manner="")

    @property
    def affected(self) -> Entity | None:
        """The patient, or who gains or loses in a change of owner."""
        return self.get("patient") or self.get("recipient") or self.get("source")

    def participants(self) -> tuple[Entity, ...]:
        return tuple(entity for role, entity in self.roles if role in CORE_ROLES[self.sense.frame])


@dataclass
class Facts:
    """What is true at a moment: holder of each thing, place of each being, conditions; keys are identifiers."""

    holder: dict[int, int] = field(default_factory=dict)
    place: dict[int, int] = field(default_factory=dict)
    conditions: dict[int, set[str]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    def holds(self, entity: Entity, condition: str) -> bool:
        return condition in self.conditions.get(entity.identifier, ())

    def set_condition(self, entity: Entity, condition: str) -> None:
        """Make a condition true of an entity and its opposite untrue."""
        current = self.conditions.setdefault(entity.identifier, set())
        current.discard(OPPOSITES.get(condition, ""))
        current.add(condition)

    def together(self, entities: Iterable[Entity]) -> bool:
        """Whether no two of the beings are known to be at different places."""
        known = {self.place[entity.identifier] for entity in entities if entity.identifier in self.place}
        return len(known) <= 1

    def allows(self, event: Event) -> bool:
        """Whether the event's preconditions hold."""
        frame, sense, agent = event.sense.frame, event.sense, event.role("agent")
        if any(entity.identifier in self.gone for entity in event.participants()):
            return False
        if sense.name != "send" and not self.together(entity for entity in event.participants() if entity.animate):
            return False
        if frame in ("transfer", "placing"):
            return self.holder.get(event.role("theme").identifier) == agent.identifier
        if frame == "taking":
            return self.holder.get(event.role("theme").identifier) == event.role("source").identifier
        if frame == "having":
            return self.holder.get(event.role("theme").identifier) == agent.identifier
        if frame == "motion":
            return self.place.get(agent.identifier) != event.role("goal").identifier
        if frame == "leaving":
            return self.place.get(agent.identifier) == event.role("source").identifier
        patient = event.get("patient")
        if patient is None:
            return True
        if frame == "finding":
            return patient.identifier not in self.holder
        if frame == "losing" or sense.name == "eat":
            return self.holder.get(patient.identifier) == agent.identifier
        if sense.requires and not self.holds(patient, sense.requires):
            return False
        if frame == "change" and self.holder.get(patient.identifier, agent.identifier) != agent.identifier:
            return False
        return not (sense.unless and self.holds(patient, sense.unless))

    def apply(self, event: Event) -> None:
        """Make the event's effects true.

        Raises ValueError where a precondition does not hold.
        """
        if not self.allows(event):
            raise ValueError(f"The event {event.sense.name!r} is not possible now; check Facts.allows before applying.")
        frame, agent = event.sense.frame, event.role("agent")
        if frame == "transfer":
            self.holder[event.role("theme").identifier] = event.role("recipient").identifier
        elif frame == "taking":
            self.holder[event.role("theme").identifier] = agent.identifier
        elif frame == "finding":
            self.holder[event.role("patient").identifier] = agent.identifier
        elif frame == "losing":
            del self.holder[event.role("patient").identifier]
        elif frame == "placing":
            del self.holder[event.role("theme").identifier]
        elif frame == "motion":
            self.place[agent.identifier] = event.role("goal").identifier
        elif frame == "leaving":
            del self.place[agent.identifier]
        elif event.sense.name == "eat":
            self.gone.add(event.role("patient").identifier)
            del self.holder[event.role("patient").identifier]
        if event.sense.result and event.get("patient") is not None:
            self.set_condition(event.role("patient"), event.sense.result)


def role_kinds(sense: Sense, role: str) -> tuple[str, ...]:
    """The kinds of entity that may fill a core role of a sense.

    >>> role_kinds(SENSES["feed"], "patient")
    ('animal',)
    """
    if role == "agent":
        return sense.agents
    if role in ("patient", "theme", "topic"):
        return sense.patients
    if role == "recipient":
        return ANIMATE if sense.name == "give" else ("person",)
    if role == "source":
        return ("place",) if sense.frame == "leaving" else (ANIMATE if sense.name in ("take", "steal") else ("person",))
    return ("place",) if sense.frame == "motion" else ("container", "surface")


def fill_roles(generator: Random, sense: Sense, cast: tuple[Entity, ...], **fixed: Entity) -> Event | None:
    """Fill the core roles of a sense with different members of the cast, or None where the cast lacks a kind."""
    fillers: dict[str, Entity] = {}
    for role in CORE_ROLES[sense.frame]:
        if role in fixed:
            fillers[role] = fixed[role]
            continue
        kinds = role_kinds(sense, role)
        taken = list(fillers.values()) + list(fixed.values())
        candidates = [entity for entity in cast if entity.kind in kinds and entity not in taken]
        if not candidates:
            return None
        fillers[role] = zipf_choice(generator, candidates)
    return Event(sense, tuple(fillers.items()))


def swapped(event: Event) -> Event | None:
    """The event with its two animate participants exchanged, or None where kinds forbid it."""
    first, other_role = event.role("agent"), ""
    for role, entity in event.roles:
        if role in ("patient", "recipient", "source") and entity.animate:
            other_role = role
    if not other_role:
        return None
    second = event.role(other_role)
    if second.kind not in role_kinds(event.sense, "agent") or first.kind not in role_kinds(event.sense, other_role):
        return None
    return event.having(**{"agent": second, other_role: first})


def converse(event: Event) -> Event | None:
    """The same change of owner seen from the other end (give and receive, sell and buy), or None."""
    name = CONVERSES.get(event.sense.name)
    if name is None:
        return None
    far, near = ("recipient", "source") if event.sense.frame == "transfer" else ("source", "recipient")
    other, agent = event.role(far), event.role("agent")
    if other.kind != "person" or agent.kind != "person":
        return None
    rest = tuple(pair for pair in event.roles if pair[0] not in ("agent", "theme", far))
    core = (("agent", other), ("theme", event.role("theme")), (near, agent))
    return replace(event, sense=SENSES[name], roles=core + rest)
