"""Proto-role properties: what an event's participant is like, from the sense, the role and the filler."""

from toyworld.meaning import CORE_ROLES, Event

PROPERTIES = (
    "awareness",
    "change_of_location",
    "change_of_possession",
    "change_of_state",
    "existed_after",
    "instigation",
    "manipulated",
    "physical_contact",
    "sentient",
    "stationary",
    "used",
    "volition",
)


def proto_roles(event: Event, role: str) -> tuple[str, ...]:
    """The properties that hold of a role's filler, in alphabetical order; empty for places, times and manners.

    >>> from toyworld.lexicon import SENSES
    >>> proto_roles(Event(SENSES["sleep"], ()), "place")
    ()
    """
    frame, traits = event.sense.frame, event.sense.traits
    if role not in (*CORE_ROLES[frame], "instrument") or event.get(role) is None:
        return ()
    filler = event.role(role)
    properties = set()
    if filler.animate:
        properties.add("sentient")
        if "mental" not in traits or role == "agent":
            properties.add("awareness")
    if role == "agent" and frame not in ("mental", "having", "losing") and "mental" not in traits:
        properties |= {"instigation", "volition"}
        if event.sense.name == "receive":
            properties -= {"instigation"}
    if frame in ("transfer", "taking") and role == "theme" or frame in ("finding", "losing") and role == "patient":
        properties.add("change_of_possession")
    if role in ("theme", "patient") and (frame in ("transfer", "placing") or "moves" in traits):
        properties.add("change_of_location")
    if role == "agent" and ("mover" in traits or event.sense.name in ("chase", "follow", "carry", "visit")):
        properties.add("change_of_location")
    if role == "patient" and ("changes" in traits or "destroys" in traits):
        properties.add("change_of_state")
    if "destroys" not in traits or role != "patient":
        properties.add("existed_after")
    if role in ("theme", "patient") and not filler.animate and frame in ("transfer", "taking", "change", "placing"):
        properties.add("manipulated")
    if role in ("agent", "patient") and (
        "touches" in traits or (frame == "change" and event.get("instrument") is None)
    ):
        properties.add("physical_contact")
    if role == "instrument":
        properties |= {"used", "manipulated", "physical_contact"}
    if filler.kind in ("place", "surface", "container") and role in ("goal", "source", "topic"):
        properties.add("stationary")
    return tuple(sorted(properties))
