"""The eight edge-probing tasks: spans of a sentence and the label that the derivation gives them."""

from collections.abc import Iterator
from functools import partial
from random import Random

import pandas

from toyworld.annotation import Mention, Sentence, annotate
from toyworld.choices import draw_complement, draw_form, part_of
from toyworld.grammar import LONGEST, SHORTEST, clause, finish
from toyworld.meaning import Entity
from toyworld.phrases import Complement, Style
from toyworld.rows import Row, generator_for
from toyworld.stories import draw_cast, draw_event, with_adjuncts
from toyworld.token_tasks import Told, rows_of_splits, written

SIZES = {"train": 2000, "validation": 300, "test": 400}
Labelled = tuple[tuple[int, int], tuple[int, int] | None, str | list[str]]


def _row(words: tuple[str, ...], labelled: Labelled) -> Row:
    first, second, label = labelled
    return {
        "tokens": written(words),
        "span1": list(first),
        "span2": None if second is None else list(second),
        "label": label,
    }


def _of_sentence(task: str, sentence: Sentence) -> list[Labelled]:
    """All targets of a task in one sentence."""
    if task == "edge_pos":
        return [((index, index + 1), None, tag) for index, tag in enumerate(sentence.upos)]
    if task == "edge_constituents":
        return [((start, end), None, label) for label, start, end in sentence.constituents]
    if task == "edge_dependencies":
        arcs = zip(sentence.heads, sentence.deprels, strict=True)
        return [((index, index + 1), (head - 1, head), relation) for index, (head, relation) in enumerate(arcs) if head]
    if task == "edge_entities":
        return [(mention.span, None, mention.entity.kind) for mention in sentence.mentions if not mention.pronoun]
    if task == "edge_srl":
        return [
            ((predicate.index, predicate.index + 1), span, role)
            for predicate in sentence.predicates
            for role, span in predicate.arguments
        ]
    return [((verb, verb + 1), span, list(found)) for verb, span, found in sentence.proto_roles]


def _targets(task: str, sentences: Iterator[Told], split: str) -> Iterator[Row]:
    """At most three targets of each sentence, rare labels rather than frequent ones."""
    generator = generator_for(task, split, "choice")
    counts: dict[str, int] = {}
    for _, sentence in sentences:
        targets = _of_sentence(task, sentence)
        for labelled in generator.sample(targets, min(3, len(targets))):
            label = str(labelled[2])
            if generator.random() < 80.0 / (80.0 + counts.get(label, 0)):
                counts[label] = counts.get(label, 0) + 1
                yield _row(sentence.words, labelled)


def _pairs(generator: Random, first: Sentence, second: Sentence) -> list[tuple[Labelled, bool]]:
    """Pairs of mentions in two sentences, the later one mostly a pronoun, and whether they corefer."""
    shift = len(first.words)
    mentions: list[Mention] = [
        *first.mentions,
        *(Mention((m.span[0] + shift, m.span[1] + shift), m.entity, m.pronoun) for m in second.mentions),
    ]
    mentions.sort(key=lambda mention: mention.span)
    pairs = []
    for later in mentions:
        for earlier in mentions:
            overlap = earlier.span[1] > later.span[0]
            if overlap or not (later.pronoun or generator.random() < 0.15):
                continue
            same = earlier.entity.identifier == later.entity.identifier
            pairs.append(((earlier.span, later.span, "coreferent" if same else "not"), same))
    return pairs


def _coreference(sentences: Iterator[Told], split: str) -> Iterator[Row]:
    generator = generator_for("edge_coreference", split, "choice")
    wanted = True
    story, previous = next(sentences)
    for number, sentence in sentences:
        if number == story:
            words = tuple(written(previous.words)) + tuple(written(sentence.words))
            fitting = [pair for pair, same in _pairs(generator, previous, sentence) if same == wanted]
            if fitting and len(words) <= 34:
                yield _row(words, generator.choice(fitting))
                wanted = not wanted
        story, previous = number, sentence


def _related(generator: Random, entity: Entity, others: tuple[Entity, ...]) -> Style | None:
    """A style that relates an entity to a nominal: its part before it, its owner, or a complement."""
    owners = [other for other in others if other.animate and not other.plural]
    choice = generator.random()
    if part_of(entity) is not None and choice < 0.5:
        return Style(complement=Complement("of", entity, "component-whole(e1,e2)", ("Whole", "Whole")))
    if choice < 0.6 and owners and entity.noun is not None and not entity.animate and entity.kind != "place":
        return Style(owner=generator.choice(owners))
    complement = draw_complement(generator, entity, others)
    return None if complement is None else Style(complement=complement)


def _relations(sentences: Iterator[Told], split: str) -> Iterator[Row]:
    """Sentences in which one participant has a complement, a part or an owner."""
    number = 0
    counts: dict[str, int] = {}
    while True:
        generator = generator_for("edge_relations", split, number)
        number += 1
        cast = draw_cast(generator)
        event = with_adjuncts(generator, draw_event(generator, cast), cast, 0.3)
        role, entity = generator.choice([pair for pair in event.core().roles if pair[0] != "goal"])
        others = tuple(other for other in cast if other not in event.participants())
        style = _related(generator, entity, others)
        if style is None:
            continue
        if style.complement is not None and style.complement.entity is entity:
            entity = part_of(entity) or entity
            event = event.having(**{role: entity})
        form = draw_form(generator, event, ("past", "present"), "", 0.2)
        form = form._replace(styles=dict(form.styles) | {entity.identifier: style})
        sentence = annotate(finish(clause(event, form)))
        if sentence.relations and SHORTEST <= len(sentence.words) - 1 <= LONGEST:
            labelled = generator.choice(sentence.relations)
            frequent = counts.get(labelled[2], 0)
            if generator.random() < 120.0 / (120.0 + frequent):
                counts[labelled[2]] = frequent + 1
                yield _row(sentence.words, labelled)


def edge_task(task: str) -> dict[str, pandas.DataFrame]:
    """The splits of one edge-probing task: tokens, span1, span2 (or None) and label."""
    if task == "edge_coreference":
        return rows_of_splits(SIZES, _coreference)
    if task == "edge_relations":
        return rows_of_splits(SIZES, _relations)
    return rows_of_splits(SIZES, partial(_targets, task))


EDGE_TASKS = (
    "edge_pos",
    "edge_constituents",
    "edge_dependencies",
    "edge_entities",
    "edge_srl",
    "edge_coreference",
    "edge_spr",
    "edge_relations",
)
