"""The directory's record of an agent, which is its card: read into the canonical one, and written from it.

Records have five members and no more: published clients refuse a sixth. What else a card came with is kept, and
stands in the card alone.
"""

from typing import Final

import msgspec

from dragoman.dialects.dialect import Place
from dragoman.dialects.directory.wire import RegisterParams, shaped, wrong_field
from dragoman.dialects.text import ID_GRAMMAR, shown_text
from dragoman.dialects.times import wire_time
from dragoman.model.agent import Agent, AgentCard, Endpoint, Original, Skill
from dragoman.model.fit import Feature
from dragoman.model.json import JsonObject

SLUG: Final = "directory"
FEATURES: Final = frozenset({Feature.ANSWERS})
CANCEL_METHOD: Final = "a2a/cancel"
STREAM_METHOD: Final = "a2a/stream"
# What an agent knows beside a2a/task, where it says so.
_DECLARED: Final = {CANCEL_METHOD: Feature.CANCEL, STREAM_METHOD: Feature.STREAM}
_ID_RULE: Final = "letters, digits, . _ and -, at most 128"


def owns_card(card: JsonObject) -> bool:
    """Whether a card has the directory's shape: it alone names an `agentId`."""
    return "agentId" in card


def read_card(card: JsonObject) -> AgentCard:
    """The canonical card. Raises BadParams naming the fields that are missing or wrong."""
    return card_of(card, "agent_card.")


def card_of(given: JsonObject, above: str = "") -> AgentCard:
    """The canonical card of an agent that announces itself; `above` is where the object stands, for the error.

    Raises BadParams.
    """
    read = shaped(given, RegisterParams, above)
    if ID_GRAMMAR.fullmatch(read.agent_id) is None:
        raise wrong_field(f"{above}agentId", _ID_RULE)
    for index, word in enumerate(read.capabilities):
        if shown_text(word, len(word)) != word:
            raise wrong_field(f"{above}capabilities[{index}]", "holds characters that nobody can see")
    description, version = given.get("description"), given.get("version")
    declared = {_DECLARED[method] for method in read.methods or () if method in _DECLARED}
    return AgentCard(
        id=read.agent_id,
        name=shown_text(read.name, 128) or read.agent_id,
        description=shown_text(description, 4096) if isinstance(description, str) else "",
        version=version if isinstance(version, str) and 0 < len(version) <= 64 else "1.0.0",
        skills=tuple(Skill(id=word, name=word) for word in dict.fromkeys(read.capabilities)),
        endpoints=(Endpoint(dialect=SLUG, url=read.endpoint, features=FEATURES | declared),),
        original=Original(dialect=SLUG, body=msgspec.json.encode(given)),
    )


def record(agent: Agent, base_url: str) -> JsonObject:
    """An agent as the directory lists it. Those who registered here are called directly, all others through the hub."""
    card = agent.card
    first = card.endpoints[0] if card.endpoints else None
    direct = first.url if first is not None and first.dialect == SLUG else None
    return {
        "agentId": card.id,
        "name": card.name,
        "capabilities": [skill.id for skill in card.skills],
        "endpoint": direct or base_url,
        "registeredAt": wire_time(agent.registered_at),
    }


def write_card(agent: Agent, place: Place) -> JsonObject:
    """The card as the hub serves it: the record, and every member that a card of this dialect came with."""
    shown: JsonObject = {}
    original = agent.card.original
    if original is not None and original.dialect == SLUG:
        shown = msgspec.json.decode(original.body)
        shown.pop("error", None)  # By this key clients tell a failure.
    return {**shown, **record(agent, place.base_url)}
