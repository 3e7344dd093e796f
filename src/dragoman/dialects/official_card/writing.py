"""The official card that the hub serves for an agent: pure 1.0, pure 0.3, or both merged into one.

Interfaces, capabilities and security are always the hub's own, for it is the hub that is called. Signatures of the
card that came do not survive that and are left out. Required lists are never empty: published clients refuse that.
"""

from typing import Final

import msgspec

from dragoman.dialects.dialect import Place
from dragoman.dialects.official_card.members import objects, text, without
from dragoman.dialects.official_card.reading import V03, V10
from dragoman.dialects.official_card.security import (
    merged_schemes,
    v03_requirements,
    v03_schemes,
    v10_requirements,
    v10_schemes,
)
from dragoman.model.agent import Agent, AgentCard, Skill
from dragoman.model.json import Json, JsonObject, is_object

# What the hub does for every agent, whatever the agent itself can do.
OFFERED: Final[JsonObject] = {"streaming": True, "pushNotifications": True}
_TRANSPORTS: Final = ("JSONRPC", "HTTP+JSON")  # the preferred one first
_MODES: Final = ("text/plain", "application/json")
_SCOPES: Final = ("a2a:call",)
# Dialects whose modes are words, not media types.
_MEDIA_TYPES: Final = {"text": "text/plain", "data": "application/json", "file": "application/octet-stream"}
# Every member that a version of the card knows, so that what is left of one that came is nobody's but its own.
_KNOWN: Final = frozenset(
    {"name", "description", "supportedInterfaces", "provider", "version", "documentationUrl", "capabilities", "iconUrl"}
    | {"securitySchemes", "securityRequirements", "defaultInputModes", "defaultOutputModes", "skills", "signatures"}
    | {"protocolVersion", "url", "preferredTransport", "additionalInterfaces", "security"}
    | {"supportsAuthenticatedExtendedCard"}
)
_KNOWN_SKILL: Final = frozenset(
    {"id", "name", "description", "tags", "examples", "inputModes", "outputModes", "security", "securityRequirements"}
)


def write_v10_card(agent: Agent, place: Place) -> JsonObject:
    """The card in 1.0 alone."""
    return _shared(agent.card, place, V10) | _v10_members(agent.card, place)


def write_v03_card(agent: Agent, place: Place) -> JsonObject:
    """The card in 0.3 alone."""
    shown = _shared(agent.card, place, V03) | _v03_members(agent.card, place)
    shown["capabilities"] = _capabilities(agent.card)
    if place.protected:
        shown["securitySchemes"] = v03_schemes(place.hub_url, _scopes(agent.card))
    return shown


def write_merged_card(agent: Agent, place: Place) -> JsonObject:
    """The card in both versions at once, so that clients of either accept it."""
    card = agent.card
    shown = _shared(card, place, V10, V03) | _v03_members(card, place) | _v10_members(card, place)
    shown["supportedInterfaces"] = _interfaces(place, "1.0") + _interfaces(place, "0.3")
    if place.protected:
        shown["securitySchemes"] = merged_schemes(place.hub_url, _scopes(card))
    return shown


def _shared(card: AgentCard, place: Place, *dialects: str) -> JsonObject:
    """What both versions say in the same words; beside it what the card brought that neither knows, if it came so."""
    came = _original(card, dialects)
    shown: JsonObject = {
        "name": card.name,
        "description": card.description or card.name,
        "version": card.version,
        "defaultInputModes": _modes(card.input_modes) or list(_MODES),
        "defaultOutputModes": _modes(card.output_modes) or list(_MODES),
        "skills": _skills(card, came),
    }
    if card.provider is not None:
        shown["provider"] = {"organization": card.provider.name, "url": card.provider.url or place.hub_url}
    links = card.links or {}
    if "documentation" in links:
        shown["documentationUrl"] = links["documentation"]
    if "icon" in links:
        shown["iconUrl"] = links["icon"]
    return shown | without(came, _KNOWN)


def _v10_members(card: AgentCard, place: Place) -> JsonObject:
    shown: JsonObject = {
        "supportedInterfaces": _interfaces(place, "1.0"),
        "capabilities": {**_capabilities(card), "extendedAgentCard": card.extended},
    }
    if place.protected:
        shown["securitySchemes"] = v10_schemes(place.hub_url, _scopes(card))
        shown["securityRequirements"] = v10_requirements(_scopes(card))
    return shown


def _v03_members(card: AgentCard, place: Place) -> JsonObject:
    shown: JsonObject = {
        "protocolVersion": "0.3.0",
        "url": place.base_url,
        "preferredTransport": _TRANSPORTS[0],
        # The main url is among them: some clients look nowhere else.
        "additionalInterfaces": [{"url": place.base_url, "transport": transport} for transport in _TRANSPORTS],
        "supportsAuthenticatedExtendedCard": card.extended,
    }
    if place.protected:
        shown["security"] = v03_requirements(_scopes(card))
    return shown


def _interfaces(place: Place, version: str) -> list[JsonObject]:
    return [
        {"url": place.base_url, "protocolBinding": transport, "protocolVersion": version} for transport in _TRANSPORTS
    ]


def _capabilities(card: AgentCard) -> JsonObject:
    shown: JsonObject = {**OFFERED}
    if card.extensions:
        shown["extensions"] = [
            {name: value for name, value in msgspec.to_builtins(each).items() if value} for each in card.extensions
        ]
    return shown


def _skills(card: AgentCard, came: JsonObject) -> list[JsonObject]:
    theirs = {text(each, "id", "name"): each for each in objects(came.get("skills"))}
    shown: list[JsonObject] = []
    for skill in card.skills:
        shown.append(_skill(skill) | without(theirs.get(skill.id, {}), _KNOWN_SKILL))
    if shown:
        return shown
    described = card.description or card.name
    return [{"id": "default", "name": card.name, "description": described, "tags": ["general"]}]


def _skill(skill: Skill) -> JsonObject:
    shown: JsonObject = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description or skill.name,
        "tags": list(skill.tags) or ["general"],
    }
    if skill.examples:
        shown["examples"] = [_example(each) for each in skill.examples]
    if skill.input_modes:
        shown["inputModes"] = _modes(skill.input_modes)
    if skill.output_modes:
        shown["outputModes"] = _modes(skill.output_modes)
    return shown


def _example(example: Json) -> str:
    return example if isinstance(example, str) else msgspec.json.encode(example).decode()


def _modes(modes: tuple[str, ...]) -> list[str]:
    return [_MEDIA_TYPES.get(mode, mode) for mode in modes]


def _scopes(card: AgentCard) -> tuple[str, ...]:
    return card.scopes_required or _SCOPES


def _original(card: AgentCard, dialects: tuple[str, ...]) -> JsonObject:
    """The card as it came, if it came in one of these versions."""
    if card.original is None or card.original.dialect not in dialects:
        return {}
    came: Json = msgspec.json.decode(card.original.body)
    return came if is_object(came) else {}
