"""Questions: an event and the role that is asked for make a question whose answer is that role's filler."""

from random import Random

from toyworld.grammar import Form, clause, complements, direct_object, subject_role
from toyworld.lexicon import HYPERNYMS
from toyworld.meaning import Entity, Event
from toyworld.phrases import Node, Style, is_plural, leaf, noun_phrase

QUESTION_NOUNS = HYPERNYMS | {"place": "place", "person": "person"}
PREPOSITIONS = {"instrument": "with", "companion": "with", "recipient": "to", "topic": "about", "source": "from"} | {
    "beneficiary": "for",
    "stimulus": "at",
    "cost": "for",
}


def askable(event: Event) -> tuple[str, ...]:
    """The roles of an event that a question can ask for."""
    roles = [role for role, entity in event.roles if entity.noun is not None or entity.name]
    return tuple(roles + (["manner"] if event.manner else []))


def _question_word(generator: Random, role: str, filler: Entity | None) -> tuple[str, ...]:
    if role == "manner" or filler is None:
        return ("how",)
    if role == "duration":
        return ("how", "long")
    if role == "cost":
        return ("how", "much")
    if role == "time":
        return ("when",)
    if filler.kind == "place" or role in ("goal", "place"):
        return ("where",)
    if filler.kind in QUESTION_NOUNS and generator.random() < 0.3:
        return ("which", QUESTION_NOUNS[filler.kind] + ("s" if filler.plural else ""))
    return ("who",) if filler.kind == "person" else ("what",)


def _subject_question(event: Event, role: str, form: Form, words: tuple[str, ...]) -> Node:
    entity = event.role(role)
    styles = dict(form.styles) | {entity.identifier: Style("question", word=" ".join(words))}
    asked = event.having(**{role: Entity(**(vars(entity) | {"plural": entity.plural and words[0] == "which"}))})
    return clause(asked, form._replace(styles=styles, fronted=""))


def inverted(event: Event, words: tuple[str, ...], form: Form, after: list[Node]) -> Node:
    """A question with its words in front, the auxiliary before the subject, and `after` behind the verb."""
    subject = subject_role(event, form)
    verb = event.sense.verbs[form.synonym % len(event.sense.verbs)]
    plural = is_plural(event.role(subject), form.styles)
    past, passive = form.tense.startswith("past"), form.voice != "active"
    if passive:
        auxiliary = ("were" if plural else "was") if past else ("are" if plural else "is")
    else:
        auxiliary = "did" if past else ("do" if plural else "does")
    front = [leaf(word, "PRON", "advmod") for word in words]
    inner = leaf(auxiliary, "AUX", "aux:pass" if passive else "aux")
    subject_phrase = noun_phrase(event.role(subject), "nsubj:pass" if passive else "nsubj", form.styles)
    head = leaf(verb.participle if passive else verb.base, "VERB")
    return Node("S", "root", (*front, inner, subject_phrase, Node("VP", "head", (head, *after))))


def question(generator: Random, event: Event, role: str, form: Form, words: tuple[str, ...] = ()) -> Node:
    """A question for the filler of `role`, without its question mark; `words` are its question words if given.

    The tense must be past or present; control and negation are ignored.
    """
    form = form._replace(control="", negation="", fronted="")
    words = words or _question_word(generator, role, event.get(role))
    if role == "agent":
        form = form._replace(voice="active")
    if role == subject_role(event, form):
        return _subject_question(event, role, form, words)
    if role == direct_object(event):
        return inverted(event, words, form, complements(event, form._replace(shifted=False), gap=role))
    asked = event.having(**{role: None}) if role != "manner" else Event(event.sense, event.roles)
    after = complements(asked, form)
    if role in PREPOSITIONS and words[0] in ("who", "what", "which", "how"):
        after.append(leaf(PREPOSITIONS[role], "ADP", "case"))
    return inverted(event, words, form, after)
