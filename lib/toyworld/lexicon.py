"""The words of the toy world: kinds, nouns, adjectives, and verb senses with typed arguments and inflection.

Frequencies follow Zipf's law: within each list a word's weight falls with its rank (`zipf_choice`).
"""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


@cache
def _cumulative_weights(size: int) -> list[float]:
    return list(accumulate(1.0 / (rank + 2.0) for rank in range(size)))


def zipf_choice(generator: Random, items: Sequence[Item]) -> Item:
    """Draw one item, with weights 1 / (rank + 2) in the order given (ranks from 0).

    >>> zipf_choice(Random("seed"), ["only"])
    'only'
    """
    cumulative = _cumulative_weights(len(items))
    return items[min(bisect(cumulative, generator.random() * cumulative[-1]), len(items) - 1)]


@dataclass(frozen=True)
class Noun:
    """A noun with its plural, its kind, and for places and times the preposition that it takes."""

    singular: str
    plural: str
    kind: str
    preposition: str = ""
    bare: bool = False


@dataclass(frozen=True)
class Verb:
    """The five forms of one verb."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str


@dataclass(frozen=True)
class Sense:
    """A verb meaning: its frame, its synonymous verbs, the kinds of its arguments, and what it does to the patient.

    `welfare` is what the event means for its patient or recipient: 1 good, −1 bad, 0 neither.
    `result` is a condition that the patient is in afterwards, `unless` one that it must not be in before.
    """

    name: str
    frame: str
    verbs: tuple[Verb, ...]
    agents: tuple[str, ...]
    patients: tuple[str, ...] = ()
    welfare: int = 0
    result: str = ""
    unless: str = ""
    requires: str = ""
    traits: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()


_DOUBLING = frozenset(["hug", "grab", "spot", "drop", "swim"])


def _third(base: str) -> str:
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def _past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + (base[-1] if base in _DOUBLING else "") + "ed"


def _gerund(base: str) -> str:
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    doubled = base in _DOUBLING or base in {"get", "put", "set", "cut", "run", "hit", "sit", "win"}
    return base + (base[-1] if doubled else "") + "ing"


def verb(specification: str) -> Verb:
    """Inflect a verb from its base, or from base/past/participle where they are irregular.

    >>> verb("carry").past, verb("give/gave/given").participle, verb("hug").gerund
    ('carried', 'given', 'hugging')
    """
    parts = specification.split("/")
    base = parts[0]
    past = parts[1] if len(parts) > 1 else _past(base)
    third = "has" if base == "have" else _third(base)
    return Verb(base, third, past, parts[2] if len(parts) > 2 else past, _gerund(base))


def _nouns(kind: str, entries: str, plurals: bool = True) -> tuple[Noun, ...]:
    irregular = {"fox": "foxes", "wolf": "wolves", "mouse": "mice", "box": "boxes", "bench": "benches"}
    irregular |= {"shelf": "shelves", "potato": "potatoes", "knife": "knives", "brush": "brushes", "dress": "dresses"}
    nouns = []
    for entry in entries.split():
        singular, _, preposition = entry.partition(":")
        plural = irregular.get(singular, singular + "s") if plurals else ""
        nouns.append(Noun(singular, plural, kind, preposition.rstrip("!"), preposition.endswith("!")))
    return tuple(nouns)


WOMEN = (
    *("Anna", "Mary", "Lucy", "Emma", "Clara", "Nora", "Julia"),
    *("Rosa", "Alice", "Sarah", "Helen", "Ruth", "Grace", "Lena"),
)
MEN = (
    *("Ben", "Tom", "Peter", "Paul", "John", "David", "Henry"),
    *("Oscar", "Simon", "Felix", "Jack", "Hugo", "Adam", "Martin"),
)
NOUNS: dict[str, tuple[Noun, ...]] = {
    "person": _nouns("person", "teacher farmer baker doctor painter gardener singer soldier tailor nurse merchant"),
    "animal": _nouns("animal", "dog cat fox horse rabbit goat wolf bear mouse duck hen pig cow monkey lion"),
    "food": _nouns("food", "apple cake pear cookie egg carrot pie plum potato"),
    "toy": _nouns("toy", "ball doll kite drum puppet"),
    "tool": _nouns("tool", "hammer knife brush stick spoon shovel broom needle", plurals=False),
    "clothing": _nouns("clothing", "hat coat scarf shirt dress", plurals=False),
    "container": _nouns("container", "box basket bag jar bucket cup chest", plurals=False),
    "document": _nouns("document", "letter book map ticket", plurals=False),
    "surface": _nouns("surface", "table bench chair shelf", plurals=False),
    "vehicle": _nouns("vehicle", "cart boat wagon bicycle", plurals=False),
    "place": _nouns(
        "place",
        "garden:in market:at forest:in barn:in school:at village:in river:at park:in house:in hill:on bridge:on "
        "station:at kitchen:in library:in tower:in field:in castle:in shop:in",
        plurals=False,
    ),
    "time": _nouns(
        "time",
        "morning:in evening:in noon:at! afternoon:in night:at! Sunday:on! Monday:on! Friday:on! winter:in summer:in",
        plurals=False,
    ),
    "duration": _nouns("duration", "hour day week minute", plurals=False),
    "material": _nouns("material", "honey:! milk:! flour:! water:!", plurals=False),
    "coin": _nouns("coin", "coin"),
}
HYPERNYMS = {"animal": "animal", "toy": "toy", "tool": "tool", "vehicle": "vehicle", "surface": "furniture"}
PARTS: dict[str, tuple[str, ...]] = {
    "lid": ("box", "jar", "chest"),
    "handle": ("bucket", "cup", "basket", "knife"),
    "wheel": ("cart", "wagon", "bicycle"),
    "page": ("book", "map"),
    "leg": ("table", "chair", "bench"),
    "sleeve": ("coat", "shirt", "dress"),
}
THINGS = ("toy", "food", "clothing", "document", "tool", "container")
ANIMATE = ("person", "animal")

ADJECTIVES: dict[str, tuple[str, ...]] = {
    "person": ("old", "young", "happy", "tall", "kind", "brave"),
    "animal": ("big", "small", "old", "brown", "white", "black", "young", "brave"),
    "food": ("big", "small", "fresh", "green", "red", "sweet"),
    "toy": ("red", "blue", "new", "small", "green", "big", "old", "yellow"),
    "tool": ("old", "heavy", "wooden", "new", "big"),
    "clothing": ("blue", "red", "new", "warm", "green", "black", "old"),
    "container": ("big", "small", "wooden", "red", "heavy", "yellow"),
    "document": ("old", "new", "strange", "long"),
    "surface": ("wooden", "old", "heavy", "long"),
    "vehicle": ("old", "red", "new", "blue", "heavy"),
    "place": ("old", "big", "quiet", "small"),
}
ADJECTIVE_SYNONYMS = {"big": "large", "small": "little"}
MANNERS = ("quickly", "slowly", "gently", "quietly", "carefully", "suddenly")
CONDITIONS: dict[str, tuple[str, str]] = {
    "broken": ("whole", "broken"),
    "clean": ("dirty", "clean"),
    "open": ("closed", "open"),
}
OPPOSITES = {"broken": "whole", "whole": "broken", "clean": "dirty", "dirty": "clean", "open": "closed"} | {
    "closed": "open",
    "hungry": "full",
    "full": "hungry",
    "safe": "hurt",
    "hurt": "safe",
    "afraid": "calm",
    "calm": "afraid",
}

_P, _A, _PA = ("person",), ("animal",), ("person", "animal")
_OWNABLE = ("toy", "food", "clothing", "document", "tool", "container")
_FRAGILE = ("toy", "container", "vehicle", "surface", "tool")
_MANY = ("toy", "clothing", "container", "document", "vehicle", "tool", "surface")


def _sense(
    name: str,
    frame: str,
    verbs: str,
    agents: tuple[str, ...],
    patients: tuple[str, ...] = (),
    welfare: int = 0,
    **rest: str | tuple[str, ...],
) -> Sense:
    inflected = tuple(verb(specification) for specification in verbs.split())
    return Sense(name, frame, inflected, agents, patients, welfare, **rest)


_DEFINITIONS: tuple[Sense, ...] = (
    # transfers: agent has the theme, afterwards the recipient has it
    _sense("give", "transfer", "give/gave/given hand", _P, _OWNABLE, 1),
    _sense("sell", "transfer", "sell/sold", _P, _OWNABLE),
    _sense("lend", "transfer", "lend/lent loan", _P, _OWNABLE, 1),
    _sense("send", "transfer", "send/sent mail", _P, _OWNABLE, 1),
    # the same change of owner seen from the other end: agent gets the theme from the source
    _sense("take", "taking", "take/took/taken grab", _PA, _OWNABLE, -1),
    _sense("receive", "taking", "receive get/got", _P, _OWNABLE),
    _sense("steal", "taking", "steal/stole/stolen snatch", _PA, _OWNABLE, -1),
    _sense("buy", "taking", "buy/bought purchase", _P, _OWNABLE),
    _sense("borrow", "taking", "borrow", _P, _OWNABLE),
    # what one animate being does to another
    _sense("see", "social", "see/saw/seen spot notice", _PA, _PA, traits=("mental",)),
    _sense("help", "social", "help assist", _PA, _PA, 1),
    _sense("chase", "social", "chase pursue", _PA, _PA, traits=("moves",)),
    _sense("follow", "social", "follow", _PA, _PA, traits=("moves",)),
    _sense("visit", "social", "visit", _P, _P),
    _sense("hurt", "social", "injure harm", _PA, _PA, -1, result="hurt", traits=("changes", "touches")),
    _sense("rescue", "social", "rescue save", _PA, _PA, 1, result="safe", traits=("changes",)),
    _sense("praise", "social", "praise thank", _P, _PA, 1),
    _sense("insult", "social", "insult mock", _P, _PA, -1),
    _sense("scare", "social", "scare frighten", _PA, _PA, -1, result="afraid", traits=("changes",)),
    _sense("comfort", "social", "comfort console", _P, _PA, 1, result="calm", traits=("changes",)),
    _sense("feed", "social", "feed/fed", _P, _A, 1, result="full", traits=("changes",)),
    _sense("push", "social", "push shove", _PA, _PA, -1, traits=("moves", "touches")),
    _sense("hug", "social", "hug embrace", _P, _PA, 1, traits=("touches",)),
    _sense("attack", "social", "attack strike/struck", _PA, _PA, -1, result="hurt", traits=("changes", "touches")),
    _sense("heal", "social", "heal cure", _P, _PA, 1, result="safe", traits=("changes",)),
    _sense("trick", "social", "trick fool", _PA, _PA, -1),
    _sense("protect", "social", "protect guard", _PA, _PA, 1, result="safe"),
    _sense("admire", "mental", "like admire", _PA, _PA + ("toy", "food", "clothing"), traits=("mental",)),
    _sense("hate", "mental", "hate", _PA, _PA + ("toy", "food", "clothing"), traits=("mental",)),
    _sense("fear", "mental", "fear", _PA, _PA, traits=("mental",)),
    # what an animate being does to a thing
    _sense("find", "finding", "find/found discover", _PA, _OWNABLE),
    _sense("lose", "losing", "lose/lost misplace", _P, _OWNABLE),
    _sense("eat", "change", "eat/ate/eaten devour", _PA, ("food",), traits=("destroys",)),
    _sense(
        "break",
        "change",
        "break/broke/broken smash",
        _PA,
        _FRAGILE,
        result="broken",
        unless="broken",
        traits=("changes",),
        instruments=("hammer", "stick"),
    ),
    _sense(
        "repair",
        "change",
        "repair fix",
        _P,
        _FRAGILE,
        result="whole",
        requires="broken",
        traits=("changes",),
        instruments=("hammer", "needle"),
    ),
    _sense("wash", "change", "wash", _P, _MANY, result="clean", traits=("changes",), instruments=("brush",)),
    _sense("soil", "change", "stain", _PA, _MANY, result="dirty", unless="dirty", traits=("changes",)),
    _sense("paint", "change", "paint", _P, _MANY, traits=("changes",), instruments=("brush",)),
    _sense(
        "open",
        "change",
        "open unlock",
        _P,
        ("container",),
        result="open",
        unless="open",
        traits=("changes",),
        instruments=("knife", "stick"),
    ),
    _sense("close", "change", "close", _P, ("container",), result="closed", requires="open"),
    _sense("lift", "change", "lift raise", _PA, _MANY, traits=("moves", "touches")),
    _sense("carry", "change", "carry", _PA, _MANY, traits=("moves", "touches")),
    _sense("put", "placing", "put/put place", _P, _OWNABLE, traits=("moves",)),
    _sense("hide", "placing", "hide/hid/hidden conceal", _PA, _OWNABLE, traits=("moves",)),
    # motion, talk and activities
    _sense("go", "motion", "go/went/gone walk run/ran/run hurry", _PA, ("place",), traits=("mover",)),
    _sense("leave", "leaving", "leave/left", _PA, ("place",), traits=("mover",)),
    _sense("talk", "talk", "talk speak/spoke/spoken", _P, _P + ("animal", "toy", "document", "place")),
    _sense("laugh", "activity", "laugh", _P),
    _sense("sleep", "activity", "sleep/slept rest", _PA),
    _sense("cry", "activity", "cry weep/wept", _P),
    _sense("dance", "activity", "dance", _PA),
    _sense("sing", "activity", "sing/sang/sung", _P),
    _sense("wait", "activity", "wait", _PA),
    # states
    _sense("have", "having", "have/had own", _PA, _OWNABLE, traits=("state",)),
)
SENSES: dict[str, Sense] = {sense.name: sense for sense in _DEFINITIONS}

# From frequent to rare; the frames are mixed, so that each of them is met often.
BY_FREQUENCY: tuple[Sense, ...] = tuple(
    SENSES[name]
    for row in (
        ("give", "see", "go", "help", "take", "put", "talk", "chase", "eat", "sleep", "break", "find", "hurt"),
        ("visit", "sell", "wash", "laugh", "praise", "leave", "receive", "scare", "repair", "open", "admire"),
        ("follow", "lend", "steal", "push", "carry", "wait", "rescue", "lose", "insult", "paint", "buy", "feed"),
        ("hide", "attack", "send", "comfort", "cry", "hate", "borrow", "hug", "soil", "close", "dance", "trick"),
        ("protect", "fear", "heal", "lift", "sing"),
    )
    for name in row
)

# One change of owner told from both ends; the roles change places.
CONVERSES = {"give": "receive", "sell": "buy", "lend": "borrow"} | {"receive": "give", "buy": "sell", "borrow": "lend"}
CONTROLS: dict[str, tuple[Verb, int]] = {
    "try": (verb("try"), 0),
    "fail": (verb("fail"), -1),
    "refuse": (verb("refuse"), -1),
    "manage": (verb("manage"), 1),
}
