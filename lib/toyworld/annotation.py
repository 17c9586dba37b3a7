"""Annotation: a derivation tree becomes words, dependencies, constituents, mentions, roles and the rest."""

from dataclasses import dataclass

from toyworld.meaning import Entity, Event
from toyworld.phrases import Node
from toyworld.proto_roles import proto_roles

Span = tuple[int, int]


@dataclass(frozen=True)
class Mention:
    """A noun phrase that refers to an entity: its span [start, end), its kind, and whether it is a pronoun."""

    span: Span
    entity: Entity
    pronoun: bool


@dataclass(frozen=True)
class Predicate:
    """A verb with its event and the spans of its roles."""

    index: int
    event: Event
    arguments: tuple[tuple[str, Span], ...]


@dataclass(frozen=True)
class Sentence:
    """One sentence with everything that its derivation says about it.

    `heads` are 1-based, 0 for the root. `constituents` are (label, start, end). `prepositions` are (index, scene
    role, function). `proto_roles` are (verb index, argument span, properties). `relations` between nominals are
    (first span, second span, label with direction).
    """

    words: tuple[str, ...]
    upos: tuple[str, ...]
    heads: tuple[int, ...]
    deprels: tuple[str, ...]
    constituents: tuple[tuple[str, int, int], ...]
    mentions: tuple[Mention, ...]
    predicates: tuple[Predicate, ...]
    prepositions: tuple[tuple[int, str, str], ...]
    relations: tuple[tuple[Span, Span, str], ...]

    @property
    def proto_roles(self) -> tuple[tuple[int, Span, tuple[str, ...]], ...]:
        arguments = [
            (predicate.index, span, proto_roles(predicate.event, role))
            for predicate in self.predicates
            for role, span in predicate.arguments
        ]
        return tuple(item for item in arguments if item[2])

    @property
    def text(self) -> str:
        return join(self.words)


def join(words: tuple[str, ...] | list[str]) -> str:
    """Words as a written sentence.

    >>> join(["the", "dog", "'s", "ball", "was", "red", "."])
    "The dog's ball was red."
    """
    text = " ".join(words).replace(" .", ".").replace(" ?", "?").replace(" '", "'")
    return text[:1].upper() + text[1:]


def offsets(words: tuple[str, ...] | list[str]) -> list[Span]:
    """Where each word starts and ends, in characters of `join(words)`.

    >>> offsets(["she", "slept", "."])
    [(0, 3), (4, 9), (9, 10)]
    """
    spans = []
    position = 0
    for word in words:
        if spans and word not in (".", "?") and not word.startswith("'"):
            position += 1
        spans.append((position, position + len(word)))
        position += len(word)
    return spans


def words_of(node: Node) -> list[str]:
    """The words of a derivation, left to right."""
    if not node.children:
        return [node.form]
    return [word for child in node.children for word in words_of(child)]


class _Reading:
    def __init__(self) -> None:
        self.words: list[str] = []
        self.upos: list[str] = []
        self.heads: list[int] = []
        self.deprels: list[str] = []
        self.constituents: list[tuple[str, int, int]] = []
        self.mentions: list[Mention] = []
        self.verbs: list[tuple[int, Event]] = []
        self.arguments: list[tuple[Event, str, Span]] = []
        self.prepositions: list[tuple[int, str, str]] = []
        self.relations: list[tuple[Span, Span, str]] = []

    def visit(self, node: Node) -> int:
        """Read a node; return the index of its head word."""
        start = len(self.words)
        if not node.children:
            head = self._word(node)
        else:
            heads = [self.visit(child) for child in node.children]
            relations = [child.relation for child in node.children]
            if relations.count("head") != 1:
                raise ValueError(f"A {node.label} has {relations.count('head')} heads; give it exactly one.")
            head = heads[relations.index("head")]
            for child_head, relation in zip(heads, relations, strict=True):
                if relation != "head":
                    self.heads[child_head], self.deprels[child_head] = head + 1, relation
        span = (start, len(self.words))
        if node.children:
            self._phrase(node, span)
        for event, role in node.roles:
            self.arguments.append((event, role, span))
        return head

    def _word(self, node: Node) -> int:
        index = len(self.words)
        self.words.append(node.form)
        self.upos.append(node.label)
        self.heads.append(0)
        self.deprels.append("root")
        if node.event is not None:
            self.verbs.append((index, node.event))
        if node.adposition is not None:
            self.prepositions.append((index, *node.adposition))
        return index

    def _phrase(self, node: Node, span: Span) -> None:
        self.constituents.append((node.label, *span))
        inner = node.children[0]
        nested = inner.label == "NP" and inner.entity is node.entity
        if node.label == "NP" and node.entity is not None and not nested:
            pronoun = span[1] - span[0] == 1 and self.upos[span[0]] == "PRON"
            self.mentions.append(Mention(span, node.entity, pronoun))
        if node.nominal and inner.relation == "nmod:poss":
            owner = len(words_of(inner))
            self.relations.append(((span[0], span[0] + owner), (span[0] + owner, span[1]), node.nominal))
        elif node.nominal:
            first, second = (mention.span for mention in self.mentions[-2:])
            self.relations.append((first, second, node.nominal))


def annotate(node: Node) -> Sentence:
    """Read all annotation off a finished derivation.

    >>> from toyworld.phrases import leaf
    >>> annotate(Node("S", "root", (leaf("dogs", "NOUN", "nsubj"), leaf("sleep", "VERB")))).heads
    (2, 0)
    """
    reading = _Reading()
    reading.visit(node)
    predicates = []
    for index, event in reading.verbs:
        arguments = tuple((role, span) for owner, role, span in reading.arguments if owner is event)
        predicates.append(Predicate(index, event, arguments))
    return Sentence(
        tuple(reading.words),
        tuple(reading.upos),
        tuple(reading.heads),
        tuple(reading.deprels),
        tuple(reading.constituents),
        tuple(reading.mentions),
        tuple(predicates),
        tuple(reading.prepositions),
        tuple(reading.relations),
    )
