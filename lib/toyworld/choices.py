"""Free choices, drawn: which voice, synonym, tense and reference an event is told with."""

from random import Random

from toyworld.grammar import Form, voices
from toyworld.lexicon import ADJECTIVE_SYNONYMS, HYPERNYMS, NOUNS, PARTS, Noun, zipf_choice
from toyworld.meaning import Entity, Event
from toyworld.phrases import Complement, Style

GRADABLE = (
    *("big", "small", "old", "young", "happy", "tall", "kind", "brave", "fresh"),
    *("sweet", "new", "warm", "heavy", "strange", "long", "quiet"),
)


def part_of(whole: Entity, identifier: int = 95) -> Entity | None:
    """A part of a thing (the lid of the box), or None where it has none."""
    if whole.noun is None or whole.plural:
        return None
    for part, wholes in PARTS.items():
        if whole.noun.singular in wholes:
            return Entity(identifier, "part", Noun(part, "", "part"))
    return None


def draw_complement(generator: Random, entity: Entity, cast: tuple[Entity, ...]) -> Complement | None:
    """A complement that a noun can take: of its whole, of its contents, from somebody, about something; or None."""
    if entity.noun is None or entity.plural:
        return None
    options: list[Complement] = []
    part = part_of(entity)
    if part is not None:
        options.append(Complement("with", part, "component-whole(e2,e1)", ("PartPortion", "Accompanier")))
    if entity.kind == "container":
        material = Entity(96, "material", zipf_choice(generator, NOUNS["material"]))
        options.append(Complement("of", material, "content-container(e2,e1)", ("Stuff", "Stuff")))
    others = [other for other in cast if other is not entity]
    people = [other for other in others if other.kind == "person"]
    animates = [other for other in others if other.animate and not other.name]
    places = [other for other in others if other.kind == "place"]
    if entity.kind == "document" and people:
        sender = generator.choice(people)
        options.append(Complement("from", sender, "entity-origin(e1,e2)", ("Originator", "Source")))
        if animates:
            topic = generator.choice(animates)
            options.append(Complement("about", topic, "message-topic(e1,e2)", ("Topic", "Topic")))
    if entity.kind in ("person", "animal") and places:
        place = generator.choice(places)
        options.append(Complement("from", place, "entity-origin(e1,e2)", ("Source", "Source")))
    if entity.kind in ("food", "toy", "document", "clothing"):
        kept = [other for other in others if other.kind in ("container", "surface") and other.noun is not None]
        if kept:
            keeper = generator.choice(kept)
            if keeper.kind == "container":
                options.append(Complement("in", keeper, "content-container(e1,e2)", ("Locus", "Locus")))
            else:
                options.append(Complement("on", keeper, "other", ("Locus", "Locus")))
        owners = [other for other in others if other.animate]
        if owners and entity.kind != "document":
            owner = generator.choice(owners)
            options.append(Complement("of", owner, "possession(e1,e2)", ("Possessor", "Possessor")))
    return generator.choice(options) if options else None


def draw_style(
    generator: Random,
    entity: Entity,
    adjective_share: float = 0.25,
    hypernym_share: float = 0.0,
    determiner: str = "the",
) -> Style:
    """How a single sentence refers to an entity."""
    if hypernym_share and generator.random() < hypernym_share:
        if entity.kind in HYPERNYMS and not entity.number_word:
            return Style("hypernym", "a")
        if entity.name:
            return Style("hypernym", "a")
    if entity.adjective and generator.random() < adjective_share:
        synonym = entity.adjective in ADJECTIVE_SYNONYMS and generator.random() < 0.4
        very = entity.adjective in GRADABLE and generator.random() < 0.12
        return Style(determiner=determiner, adjective=entity.adjective, synonym=synonym, very=very)
    return Style(determiner=determiner)


def draw_form(
    generator: Random,
    event: Event,
    tenses: tuple[str, ...] = ("past",),
    negation: str = "",
    adjective_share: float = 0.25,
    hypernym_share: float = 0.0,
    passive_share: float = 0.35,
) -> Form:
    """Draw voice, dative shift, synonym, tense and the style of each participant."""
    allowed = voices(event)
    voice = "active"
    if len(allowed) > 1 and generator.random() < passive_share:
        voice = generator.choice(allowed[1:])
    styles = {
        entity.identifier: draw_style(generator, entity, adjective_share, hypernym_share)
        for role, entity in event.roles
        if entity.kind not in ("time", "duration")
    }
    tense = zipf_choice(generator, tenses)
    if voice != "active" and tense.endswith("progressive"):
        tense = tense.split()[0]
    if event.sense.frame in ("mental", "having") and tense.endswith("progressive"):
        tense = tense.split()[0]
    fronted = "time" if event.get("time") is not None and generator.random() < 0.25 else ""
    return Form(voice, generator.random() < 0.5, generator.randrange(4), tense, negation, "", fronted, styles=styles)
