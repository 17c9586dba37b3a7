"""The grammar: an event and free choices (`Form`) make a clause, as a derivation tree with all annotation in it."""

from typing import NamedTuple

from toyworld.lexicon import CONTROLS, Verb
from toyworld.meaning import Entity, Event
from toyworld.phrases import DEFINITE, Node, Styles, is_plural, leaf, noun_phrase, prepositional

TENSES = ("past", "present", "past progressive", "present progressive", "future", "perfect")


class Form(NamedTuple):
    """The free choices of a clause.

    `voice` is "active", "passive" (theme or patient as subject) or "recipient passive" (Ben was given the ball).
    `negation` is empty, "not" or "never"; `control` empty, "try", "fail", "refuse" or "manage" (active only).
    """

    voice: str = "active"
    shifted: bool = False
    synonym: int = 0
    tense: str = "past"
    negation: str = ""
    control: str = ""
    fronted: str = ""
    agentless: bool = False
    styles: Styles = {}


ADJUNCTS = ("stimulus", "path", "companion", "instrument", "cost", "beneficiary", "duration", "place", "time")
FIXED_PREPOSITIONS: dict[str, tuple[str, str, str]] = {
    "topic": ("about", "Topic", "Topic"),
    "recipient": ("to", "Recipient", "Goal"),
    "instrument": ("with", "Instrument", "Instrument"),
    "companion": ("with", "Accompanier", "Accompanier"),
    "beneficiary": ("for", "Beneficiary", "Beneficiary"),
    "cost": ("for", "Cost", "Cost"),
    "duration": ("for", "Duration", "Duration"),
    "stimulus": ("at", "Stimulus", "Direction"),
    "path": ("through", "Path", "Path"),
    "origin": ("from", "Source", "Source"),
}


def direct_object(event: Event) -> str:
    """The role that an active clause makes its object, or an empty string."""
    for role in ("theme", "patient"):
        if event.get(role) is not None:
            return role
    return "source" if event.sense.frame == "leaving" else ""


def subject_role(event: Event, form: Form) -> str:
    """The role that the clause makes its subject.

    >>> from toyworld.lexicon import SENSES
    >>> subject_role(Event(SENSES["sleep"], ()), Form())
    'agent'
    """
    if form.voice == "active":
        return "agent"
    return "recipient" if form.voice == "recipient passive" else direct_object(event)


def voices(event: Event) -> tuple[str, ...]:
    """The voices in which the event can be told."""
    if event.sense.frame in ("activity", "motion", "talk", "leaving", "having"):
        return ("active",)
    if event.sense.frame == "transfer":
        return ("active", "passive", "recipient passive")
    return ("active", "passive")


def _be(tense: str, plural: bool) -> str:
    if tense.startswith("past"):
        return "were" if plural else "was"
    return "are" if plural else "is"


def _passive_group(verb: Verb, form: Form, plural: bool, negation: list[Node]) -> list[Node]:
    participle = leaf(verb.participle, "VERB")
    if form.tense == "future":
        return [leaf("will", "AUX", "aux"), *negation, leaf("be", "AUX", "aux:pass"), participle]
    if form.tense == "perfect":
        have = "have" if plural else "has"
        return [leaf(have, "AUX", "aux"), *negation, leaf("been", "AUX", "aux:pass"), participle]
    return [leaf(_be(form.tense, plural), "AUX", "aux:pass"), *negation, participle]


def verb_group(verb: Verb, form: Form, plural: bool) -> list[Node]:
    """Auxiliaries, negation and the verb (last, the head), agreeing with a singular or plural subject."""
    negation = [leaf(form.negation, "ADV" if form.negation == "never" else "PART", "advmod")] if form.negation else []
    if form.voice != "active":
        return _passive_group(verb, form, plural, negation)
    if form.tense.endswith("progressive"):
        return [leaf(_be(form.tense, plural), "AUX", "aux"), *negation, leaf(verb.gerund, "VERB")]
    if form.tense == "future":
        return [leaf("will", "AUX", "aux"), *negation, leaf(verb.base, "VERB")]
    if form.tense == "perfect":
        return [leaf("have" if plural else "has", "AUX", "aux"), *negation, leaf(verb.participle, "VERB")]
    if form.negation == "not":
        support = "did" if form.tense == "past" else ("do" if plural else "does")
        return [leaf(support, "AUX", "aux"), *negation, leaf(verb.base, "VERB")]
    finite = verb.past if form.tense == "past" else (verb.base if plural else verb.third)
    return [*negation, leaf(finite, "VERB")]


def _oblique(event: Event, role: str, filler: Entity, styles: Styles) -> Node:
    """The prepositional phrase of a role outside subject and object."""
    frame = event.sense.frame
    roles = ((event, role),)

    def phrase(preposition: str, scene: str, function: str) -> Node:
        return prepositional(preposition, filler, "obl", styles, (scene, function), roles)

    if role in ("duration", "cost"):
        styles = {filler.identifier: DEFINITE._replace(determiner="a")}
    if role in FIXED_PREPOSITIONS:
        return phrase(*FIXED_PREPOSITIONS[role])
    if role == "source":
        return phrase("from", "Possessor" if event.sense.name in ("take", "steal") else "Originator", "Source")
    if role == "goal":
        if frame == "placing":
            return phrase("in" if filler.kind == "container" else "on", "Goal", "Locus")
        return phrase("to", "Goal", "Goal")
    if filler.noun is None:
        raise ValueError(f"The role {role!r} needs a place or a time, not {filler.name!r}; fill it with a noun.")
    scene = "Locus" if role == "place" else "Time"
    return phrase(filler.noun.preposition, scene, scene)


def agent_phrase(event: Event, styles: Styles) -> Node:
    """The by-phrase of a passive."""
    scene = "Experiencer" if "mental" in event.sense.traits else "Agent"
    return prepositional("by", event.role("agent"), "obl", styles, (scene, "Agent"), ((event, "agent"),))


def complements(event: Event, form: Form, gap: str = "") -> list[Node]:
    """Everything after the verb, in order; a role named by `gap` or `form.fronted` is left out."""
    styles = form.styles
    subject, main_object = subject_role(event, form), direct_object(event)
    left_out = {gap, form.fronted, subject, "agent"}
    phrases: list[Node] = []
    has_recipient = event.get("recipient") is not None and event.sense.frame == "transfer"
    light = main_object and styles.get(event.role(main_object).identifier, DEFINITE).noun == "pronoun"
    shifted = has_recipient and form.shifted and form.voice == "active" and gap != "recipient" and not light
    if shifted and "recipient" not in left_out:
        phrases.append(noun_phrase(event.role("recipient"), "iobj", styles, ((event, "recipient"),)))
        left_out.add("recipient")
    if main_object and main_object not in left_out:
        phrases.append(noun_phrase(event.role(main_object), "obj", styles, ((event, main_object),)))
        left_out.add(main_object)
    for role in ("recipient", "topic", "source", "origin", "goal"):
        filler = event.get(role)
        if filler is not None and role not in left_out and role != main_object:
            phrases.append(_oblique(event, role, filler, styles))
    if form.voice != "active" and not form.agentless and gap != "agent":
        phrases.append(agent_phrase(event, styles))
    if event.manner:
        phrases.append(Node("ADVP", "advmod", (leaf(event.manner, "ADV"),), roles=((event, "manner"),)))
    for role in ADJUNCTS:
        filler = event.get(role)
        if filler is not None and role not in left_out:
            phrases.append(_oblique(event, role, filler, styles))
    return phrases


def verb_phrase(event: Event, form: Form, plural: bool, relation: str = "head", gap: str = "") -> Node:
    """The verb with its auxiliaries and everything after it."""
    verb = event.sense.verbs[form.synonym % len(event.sense.verbs)]
    after = complements(event, form, gap)
    if form.control:
        group = verb_group(CONTROLS[form.control][0], form._replace(voice="active"), plural)
        marked = leaf(verb.base, "VERB")._replace(event=event)
        inner = Node("VP", "xcomp", (leaf("to", "PART", "mark"), marked, *after))
        return Node("VP", relation, (*group, inner))
    group = verb_group(verb, form, plural)
    group[-1] = group[-1]._replace(event=event)
    return Node("VP", relation, (*group, *after))


def clause(event: Event, form: Form, relation: str = "root", *more: Node) -> Node:
    """A clause for the event; `more` are nodes added at the end of its verb phrase."""
    role = subject_role(event, form)
    subject_relation = "nsubj" if form.voice == "active" else "nsubj:pass"
    subject = noun_phrase(event.role(role), subject_relation, form.styles, ((event, role),))
    predicate = verb_phrase(event, form, is_plural(event.role(role), form.styles))
    predicate = predicate._replace(children=(*predicate.children, *more))
    front: tuple[Node, ...] = ()
    if form.fronted and event.get(form.fronted) is not None:
        front = (_oblique(event, form.fronted, event.role(form.fronted), form.styles),)
    return Node("S", relation, (*front, subject, predicate), event=event)


def relative_clause(event: Event, role: str, form: Form) -> Node | None:
    """A relative clause in which `role` is the gap, or None where the gap is neither subject nor object."""
    entity = event.role(role)
    word = "who" if entity.kind == "person" else "that"
    subject = subject_role(event, form)
    if role == subject:
        relation = "nsubj" if form.voice == "active" else "nsubj:pass"
        pronoun = leaf(word, "PRON", relation)._replace(roles=((event, role),))
        return Node("SBAR", "acl:relcl", (pronoun, verb_phrase(event, form, entity.plural)))
    if role != direct_object(event) or form.voice != "active":
        return None
    pronoun = leaf(word, "PRON", "obj")._replace(roles=((event, role),))
    agent = noun_phrase(event.role("agent"), "nsubj", form.styles, ((event, "agent"),))
    form = form._replace(shifted=False)
    predicate = verb_phrase(event, form, is_plural(event.role("agent"), form.styles), gap=role)
    return Node("SBAR", "acl:relcl", (pronoun, agent, predicate))


def subordinate(word: str, inner: Node) -> Node:
    """An adverbial clause: because, after, before, when."""
    return Node("SBAR", "advcl", (leaf(word, "SCONJ", "mark"), inner._replace(relation="head")))


def conjoined_phrase(event: Event, form: Form, word: str = "and") -> Node:
    """A second verb phrase with the same subject: "and gave it to Ben"."""
    predicate = verb_phrase(event, form, is_plural(event.role("agent"), form.styles), relation="conj")
    return predicate._replace(children=(leaf(word, "CCONJ", "cc"), *predicate.children))


def condition_clause(entity: Entity, condition: str, form: Form, relation: str = "root") -> Node:
    """A state: "the cup was broken"."""
    subject = noun_phrase(entity, "nsubj", form.styles)
    verb = leaf(_be(form.tense, is_plural(entity, form.styles)), "AUX", "cop")
    negation = [leaf(form.negation, "PART", "advmod")] if form.negation else []
    state = Node("ADJP", "head", (leaf(condition, "ADJ"),))
    return Node("S", relation, (subject, Node("VP", "head", (verb, *negation, state))))


def place_clause(entity: Entity, place: Entity, form: Form, relation: str = "root") -> Node:
    """A state: "Anna was in the garden"."""
    if place.noun is None:
        raise ValueError("place_clause needs a place with a noun; pass an entity of the kind 'place'.")
    subject = noun_phrase(entity, "nsubj", form.styles)
    verb = leaf(_be(form.tense, is_plural(entity, form.styles)), "AUX", "cop")
    negation = [leaf(form.negation, "PART", "advmod")] if form.negation else []
    where = prepositional(place.noun.preposition or "at", place, "head", form.styles, ("Locus", "Locus"))
    return Node("S", relation, (subject, Node("VP", "head", (verb, *negation, where))))


def finish(node: Node, mark: str = ".") -> Node:
    """A clause with its final full stop or question mark, as the root of a sentence."""
    return node._replace(relation="root", children=(*node.children, leaf(mark, "PUNCT", "punct")))


FILLERS = ("then", "again", "today")
SHORTEST, LONGEST = 4, 20


def lengthen(node: Node, count: int, filler: str = "then") -> Node:
    """A clause whose verb phrase ends with `count` more adverbs: the filler, or where two are missing "again today"."""
    words = () if count <= 0 else ((filler,) if count == 1 else ("again", "today"))
    adverbs = tuple(Node("ADVP", "advmod", (leaf(word, "ADV"),)) for word in words)
    children = tuple(
        child._replace(children=(*child.children, *adverbs)) if child.relation == "head" else child
        for child in node.children
    )
    return node._replace(children=children)
