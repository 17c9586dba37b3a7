"""The second domain: the sea. Other names, nouns, verbs and events, told with the same grammar."""

import pandas

from toyworld.lexicon import Noun, Sense, verb
from toyworld.plain import text_of_domain
from toyworld.stories import Domain

WORDS = 20_000
_PERSON, _BEAST, _BOTH = ("person",), ("animal",), ("person", "animal")
_GOODS = ("toy", "food", "clothing", "document", "tool", "container")


def _nouns(kind: str, entries: str, plurals: bool = False) -> tuple[Noun, ...]:
    nouns = []
    for entry in entries.split():
        singular, _, preposition = entry.partition(":")
        plural = singular + "s" if plurals else ""
        nouns.append(Noun(singular, plural, kind, preposition.rstrip("!"), preposition.endswith("!")))
    return tuple(nouns)


def _sense(
    name: str,
    frame: str,
    verbs: str,
    patients: tuple[str, ...] = (),
    welfare: int = 0,
    agents: tuple[str, ...] = _PERSON,
    traits: tuple[str, ...] = (),
) -> Sense:
    inflected = tuple(verb(specification) for specification in verbs.split())
    return Sense(name, frame, inflected, agents, patients, welfare, traits=traits)


SEA = Domain(
    ("Ingrid", "Astrid", "Sigrid", "Freya"),
    ("Magnus", "Olaf", "Leif", "Sven"),
    {
        "person": _nouns("person", "captain pirate fisherman diver"),
        "animal": _nouns("animal", "whale shark crab gull", plurals=True),
        "food": _nouns("food", "herring lobster biscuit"),
        "toy": _nouns("toy", "pearl shell lantern flag"),
        "tool": _nouns("tool", "anchor net oar compass"),
        "clothing": _nouns("clothing", "sail cloak"),
        "container": _nouns("container", "barrel crate"),
        "document": _nouns("document", "chart logbook"),
        "surface": _nouns("surface", "deck mast"),
        "vehicle": _nouns("vehicle", "ship raft"),
        "place": _nouns("place", "harbour:in island:on reef:at beach:on lighthouse:in cave:in"),
        "time": _nouns("time", "dawn:at! dusk:at! storm:in"),
        "duration": _nouns("duration", "year"),
        "coin": _nouns("coin", "coin", plurals=True),
    },
    {
        "person": ("wise", "wild"),
        "animal": ("huge", "wild"),
        "toy": ("golden", "silver"),
        "container": ("huge", "golden"),
        "place": ("foggy", "distant"),
    },
    (
        _sense("sail", "motion", "sail row", ("place",), agents=_PERSON, traits=("mover",)),
        _sense("trade", "transfer", "trade", _GOODS, 1),
        _sense("capture", "social", "capture", _BOTH, -1, _BOTH, ("moves", "touches")),
        _sense("free", "social", "free", _BOTH, 1, traits=("changes",)),
        _sense("warn", "social", "warn", _PERSON, 1),
        _sense("betray", "social", "betray", _PERSON, -1),
        _sense("plunder", "taking", "plunder", _GOODS, -1),
        _sense("load", "placing", "load", _GOODS, traits=("moves",)),
        _sense("fetch", "finding", "fetch", _GOODS),
        _sense("polish", "change", "polish", ("toy", "tool", "container"), traits=("changes", "touches")),
        _sense("swim", "activity", "swim/swam/swum", agents=_BOTH),
        _sense("drop", "change", "drop", _GOODS, agents=_BOTH, traits=("moves",)),
    ),
)


def second_domain() -> dict[str, pandas.DataFrame]:
    """Stories of the sea: text and the number of the story."""
    return {"validation": text_of_domain("second_domain", "validation", WORDS, SEA, frozenset())}
