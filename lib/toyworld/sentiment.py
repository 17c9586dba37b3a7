"""Sentiment: what the main event means for its patient, with negation; a relative clause may tell the opposite."""

from dataclasses import replace
from random import Random

from toyworld.choices import draw_form, draw_style
from toyworld.grammar import Form, clause, finish, relative_clause
from toyworld.inference import sentence_text
from toyworld.lexicon import SENSES
from toyworld.meaning import Event
from toyworld.phrases import Style
from toyworld.rows import Row
from toyworld.stories import draw_cast, draw_event, with_adjuncts

CHARGED = tuple(sense for sense in SENSES.values() if sense.welfare)
SPOILED = ("broken", "dirty")
SOCIAL = tuple(sense for sense in CHARGED if sense.frame == "social")


def _with_distraction(generator: Random, event: Event, form: Form) -> Form:
    """Add a relative clause about another charged event, or one that did not happen, to a participant with a noun."""
    for _, entity in generator.sample(event.core().roles, len(event.core().roles)):
        if entity.name or not entity.animate:
            continue
        others = tuple(e for e in draw_cast(generator) if e not in event.participants() and e.name)
        senses = tuple(s for s in SOCIAL if entity.kind in s.agents and s is not event.sense)
        if not others or not senses:
            continue
        other = replace(generator.choice(others), identifier=80)
        fitting = tuple(s for s in senses if "person" in s.patients)
        if not fitting:
            continue
        sense = generator.choice(fitting)
        inner = Event(sense, (("agent", entity), ("patient", other)))
        negation = generator.choice(("", "", "not", "never"))
        relative = relative_clause(inner, "agent", Form(synonym=generator.randrange(4), negation=negation))
        return form._replace(styles=dict(form.styles) | {entity.identifier: Style(relative=relative)})
    return form


def sst2_row(generator: Random, label: int) -> Row | None:
    """A sentence; label 1 where the main event is good for its patient (recipient, or the one robbed), else 0.

    To be given a broken or dirty thing is bad, and to be rid of it good.
    """
    cast = draw_cast(generator)
    device = generator.choices(("plain", "manage", "not", "never", "fail", "double"), (40, 6, 18, 8, 16, 12))[0]
    event = draw_event(generator, cast, CHARGED)
    theme = event.get("theme")
    spoiled = theme is not None and generator.random() < 0.5
    if theme is not None and spoiled:
        event = event.having(theme=replace(theme, adjective=generator.choice(SPOILED)))
    good = (event.sense.welfare > 0) != spoiled
    if (good != (device in ("not", "never", "fail"))) != (label == 1):
        return None
    event = with_adjuncts(generator, event, cast, 0.3)
    passive_share = 0.0 if device in ("fail", "double", "manage") else 0.4
    form = draw_form(generator, event, ("past", "past", "present"), "", 0.2, 0.0, passive_share)
    if device == "manage":
        form = form._replace(control="manage")
    elif device in ("fail", "double"):
        form = form._replace(control=generator.choice(("fail", "refuse")))
    if device in ("not", "never"):
        form = form._replace(negation=device)
    elif device == "double":
        form = form._replace(negation=generator.choice(("not", "never")))
    styles = {entity.identifier: draw_style(generator, entity, 0.3) for _, entity in event.roles if entity.animate}
    if theme is not None:
        styles[theme.identifier] = draw_style(generator, event.role("theme"), 1.0 if spoiled else 0.3)
    form = form._replace(styles=dict(form.styles) | styles)
    if generator.random() < 0.7:
        form = _with_distraction(generator, event, form)
    text = sentence_text(finish(clause(event, form)))
    return text and {"sentence": text, "label": label}
