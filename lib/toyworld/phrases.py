"""Phrases of the grammar: derivation nodes, noun phrases and prepositional phrases.

A derivation is a tree of `Node`. Each phrase has one child whose relation is "head"; the others name their
dependency relation to it (Universal Dependencies). All annotation is read off this tree, never off the words.
"""

from collections.abc import Mapping
from typing import NamedTuple, Optional

from toyworld.lexicon import ADJECTIVE_SYNONYMS, HYPERNYMS
from toyworld.meaning import Entity, Event

SUBJECTS = ("nsubj", "nsubj:pass")
PRONOUNS = {
    "feminine": ("she", "her", "her"),
    "masculine": ("he", "him", "his"),
    "neuter": ("it", "it", "its"),
    "plural": ("they", "them", "their"),
}


class Node(NamedTuple):
    """A phrase (with children) or a word (with a form and its part of speech as label)."""

    label: str
    relation: str
    children: tuple["Node", ...] = ()
    form: str = ""
    entity: Entity | None = None
    roles: tuple[tuple[Event, str], ...] = ()
    event: Event | None = None
    adposition: tuple[str, str] | None = None
    nominal: str = ""


class Complement(NamedTuple):
    """A prepositional complement of a noun: "the lid of the box"; `nominal` names the relation with direction."""

    preposition: str
    entity: Entity
    nominal: str
    adposition: tuple[str, str]


class Style(NamedTuple):
    """How an entity is referred to.

    `noun` is "plain", "pronoun", "hypernym" (an animal), "someone" or "question" (who, what, the word in `word`).
    """

    noun: str = "plain"
    determiner: str = "the"
    adjective: str = ""
    synonym: bool = False
    very: bool = False
    relative: Optional["Node"] = None
    complement: Complement | None = None
    owner: Entity | None = None
    also: Entity | None = None
    word: str = ""


DEFINITE = Style()
PRONOUN = Style("pronoun")
Styles = Mapping[int, Style]


def leaf(form: str, tag: str, relation: str = "head") -> Node:
    """One word."""
    return Node(tag, relation, (), form)


def is_plural(entity: Entity, styles: Styles) -> bool:
    """Whether a noun phrase for the entity takes a plural verb."""
    return entity.plural or styles.get(entity.identifier, DEFINITE).also is not None


def pronoun_class(entity: Entity) -> str:
    """The row of `PRONOUNS` that refers to the entity."""
    return "plural" if entity.plural else entity.gender


def article(word: str) -> str:
    """The indefinite article before a word.

    >>> article("apple"), article("hour"), article("ball")
    ('an', 'an', 'a')
    """
    return "an" if word[0] in "aeiou" or word == "hour" else "a"


def _adjectives(style: Style) -> list[Node]:
    if not style.adjective:
        return []
    word = ADJECTIVE_SYNONYMS.get(style.adjective, style.adjective) if style.synonym else style.adjective
    if style.very:
        return [Node("ADJP", "amod", (leaf("very", "ADV", "advmod"), leaf(word, "ADJ")))]
    return [leaf(word, "ADJ", "amod")]


def _common_noun(entity: Entity, style: Style) -> list[Node]:
    noun = entity.noun
    if noun is None:
        raise ValueError(f"Entity {entity.identifier} has neither a name nor a noun; give it one.")
    if style.noun == "hypernym":
        word = HYPERNYMS.get(entity.kind, "")
        head = leaf(word + ("s" if entity.plural else ""), "NOUN")
    else:
        word = noun.plural if entity.plural else noun.singular
        head = leaf(word, "PROPN" if word[0].isupper() else "NOUN")
    modifiers = _adjectives(style)
    first = modifiers[0] if modifiers else head
    first_word = first.form or first.children[0].form
    children: list[Node] = []
    if style.owner is not None:
        children.append(possessor(style.owner, style.word))
    elif not noun.bare:
        if style.determiner == "a" and not entity.plural:
            children.append(leaf(article(first_word), "DET", "det"))
        elif style.determiner == "a" and not entity.number_word:
            children.append(leaf("some", "DET", "det"))
        elif style.determiner == "the":
            children.append(leaf("the", "DET", "det"))
        elif style.determiner not in ("", "a"):
            children.append(leaf(style.determiner, "DET", "det"))
    if entity.plural and entity.number_word and style.noun == "plain":
        children.append(leaf(entity.number_word, "NUM", "nummod"))
    return [*children, *modifiers, head]


def possessor(entity: Entity, pronoun: str = "") -> Node:
    """A possessor before its noun: "her", "Anna 's", "the dog 's"."""
    if pronoun == "pronoun":
        word = PRONOUNS[pronoun_class(entity)][2]
        return Node("NP", "nmod:poss", (leaf(word, "PRON"),), entity=entity)
    inner = [leaf(entity.name, "PROPN")] if entity.name else _common_noun(entity, DEFINITE)
    return Node("NP", "nmod:poss", (*inner, leaf("'s", "PART", "case")), entity=entity)


def noun_phrase(
    entity: Entity, relation: str, styles: Styles, roles: tuple[tuple[Event, str], ...] = (), subject: bool = False
) -> Node:
    """The noun phrase for an entity in the style chosen for it; `subject` asks for the subject form of a pronoun."""
    style = styles.get(entity.identifier, DEFINITE)
    if style.noun == "pronoun":
        word = PRONOUNS[pronoun_class(entity)][0 if subject or relation in SUBJECTS else 1]
        children: tuple[Node, ...] = (leaf(word, "PRON"),)
    elif style.noun in ("someone", "question"):
        children = (leaf(style.word or "someone", "PRON"),)
    elif style.noun == "hypernym" and entity.name:
        word = "woman" if entity.gender == "feminine" else "man"
        children = (leaf(style.determiner, "DET", "det"), leaf(word, "NOUN"))
    elif entity.name:
        children = (leaf(entity.name, "PROPN"),)
    else:
        children = tuple(_common_noun(entity, style))
    core = Node("NP", relation, children, entity=entity, roles=roles)
    if style.noun == "pronoun":
        return core
    if style.owner is not None:
        core = core._replace(nominal="possession(e2,e1)")
    if style.also is not None:
        second = noun_phrase(style.also, "conj", {})
        second = second._replace(children=(leaf("and", "CCONJ", "cc"), *second.children))
        return Node("NP", relation, (core._replace(relation="head", roles=()), second), roles=roles)
    if style.complement is not None:
        return _with_complement(core, style.complement)
    if style.relative is not None and not entity.name:
        return core._replace(children=(core._replace(relation="head", roles=()), style.relative))
    return core


def _with_complement(core: Node, complement: Complement) -> Node:
    modifier = prepositional(complement.preposition, complement.entity, "nmod", {}, complement.adposition)
    inner = core._replace(relation="head", roles=())
    return core._replace(children=(inner, modifier), nominal=complement.nominal)


def prepositional(
    preposition: str,
    entity: Entity,
    relation: str,
    styles: Styles,
    adposition: tuple[str, str],
    roles: tuple[tuple[Event, str], ...] = (),
) -> Node:
    """A prepositional phrase; its noun is its head, the preposition a case marker. `adposition` is (role, function)."""
    marker = leaf(preposition, "ADP", "case")._replace(adposition=adposition)
    return Node("PP", relation, (marker, noun_phrase(entity, "head", styles)), roles=roles)
