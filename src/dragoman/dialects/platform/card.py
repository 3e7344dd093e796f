"""The platform's agent card, read into the canonical one and written from it.

A card that came in this dialect is served as it came, save for what the hub must change: its endpoint and its id.
"""

from typing import Annotated, Final

import msgspec

from dragoman.dialects.dialect import Place
from dragoman.dialects.text import ID_GRAMMAR, id_of_name, shown_text
from dragoman.model.agent import Agent, AgentCard, AuthScheme, Endpoint, Original, Provider, RateLimits, Skill
from dragoman.model.errors import BadParams
from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject

SLUG: Final = "platform"
FEATURES: Final = frozenset({Feature.ANSWERS, Feature.CANCEL})

_REQUIRED: Final = "required"  # what `signing` says where a signature is
_OPTIONAL: Final = ("default_skill", "pricing", "tags", "keys")  # members that a card has only where they say something

Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class CardCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform agent can do beside answering."""

    streaming: bool | None = None
    a2a: bool | None = None
    memory: bool | None = None
    push: bool | None = None
    long_running: bool | None = None


class CardSkill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill on a platform card; its name is its id."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    description: str | None = None
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    tags: list[str] | None = None
    examples: list[Json] | None = None
    scopes: list[str] | None = None
    idempotent: bool | None = None
    signing: str | None = None


class CardAuthentication(msgspec.Struct, frozen=True, kw_only=True):
    """How callers prove who they are."""

    type: str | None = None
    scopes_required: list[str] | None = None
    signing: str | None = None


class CardRateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent takes at most."""

    requests_per_minute: Limit | None = None
    requests_per_hour: Limit | None = None
    concurrent_requests: Limit | None = None


class PlatformCard(msgspec.Struct, frozen=True, kw_only=True):
    """A platform card, as registration demands it."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    description: Annotated[str, msgspec.Meta(max_length=4096)]
    version: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    skills: Annotated[list[CardSkill], msgspec.Meta(min_length=1, max_length=100)]
    endpoint: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    id: str | None = None
    capabilities: CardCapabilities | None = None
    authentication: CardAuthentication | None = None
    rate_limits: CardRateLimits | None = None
    default_skill: str | None = None
    pricing: JsonObject | None = None
    tags: list[str] | None = None
    keys: list[JsonObject] | None = None
    # Not the document's: read where agents say it, for the dialects that have a place for it.
    provider: JsonObject | str | None = None
    metadata: JsonObject | None = None


def owns_card(card: JsonObject) -> bool:
    """Whether a card has the platform's shape: it alone names an `endpoint` and nothing of the others."""
    return "endpoint" in card


def read_card(card: JsonObject) -> AgentCard:
    """The canonical card.

    Raises BadParams naming the field that is missing or wrong.
    """
    try:
        read = msgspec.convert(card, PlatformCard)
    except msgspec.ValidationError as error:
        raise _bad_card(error) from None
    agent_id = read.id or id_of_name(read.name)
    if ID_GRAMMAR.fullmatch(agent_id) is None:
        raise BadParams(
            "agent_card.id: letters, digits, . _ and -, at most 128",
            errors=[{"path": "agent_card.id", "message": "letters, digits, . _ and -, at most 128"}],
        )
    capabilities = read.capabilities or CardCapabilities()
    authentication = read.authentication or CardAuthentication()
    limits = read.rate_limits or CardRateLimits()
    features = FEATURES | {Feature.STREAM} if capabilities.streaming else FEATURES
    return AgentCard(
        id=agent_id,
        name=shown_text(read.name, 128),
        description=shown_text(read.description, 4096),
        version=read.version,
        skills=tuple(_skill(skill) for skill in read.skills),
        endpoints=(Endpoint(dialect=SLUG, url=read.endpoint, features=features),),
        auth=(AuthScheme(kind=authentication.type),) if authentication.type else (),
        scopes_required=tuple(authentication.scopes_required or ()),
        limits=RateLimits(
            requests_per_minute=limits.requests_per_minute,
            requests_per_hour=limits.requests_per_hour,
            concurrent_requests=limits.concurrent_requests,
        ),
        streaming=bool(capabilities.streaming),
        memory=bool(capabilities.memory),
        push=bool(capabilities.push),
        long_running=bool(capabilities.long_running),
        signed=authentication.signing == _REQUIRED,
        default_skill=read.default_skill,
        pricing=read.pricing,
        tags=tuple(read.tags or ()),
        keys=tuple(read.keys or ()),
        provider=_provider(read.provider),
        metadata=read.metadata,
        original=Original(dialect=SLUG, body=msgspec.json.encode(card)),
    )


def write_card(agent: Agent, place: Place) -> JsonObject:
    """The card as the hub serves it: with the hub's endpoint, unless its owner looks."""
    card = agent.card
    if card.original is not None and card.original.dialect == SLUG:
        shown: JsonObject = msgspec.json.decode(card.original.body)
        # What people read is shown as it was cleaned, not as it came.
        shown |= {"id": card.id, "name": card.name, "description": card.description}
        for each, skill in zip(shown["skills"], card.skills, strict=True):
            if "description" in each:
                each["description"] = skill.description
        if not place.owner or "endpoint" not in shown:
            shown["endpoint"] = f"{place.hub_url}/v1/agents/{card.id}/a2a"
        if agent.limits_set is not None:
            shown["rate_limits"] = msgspec.to_builtins(agent.limits)
        return shown
    capabilities: JsonObject = {"streaming": card.streaming, "a2a": True, "memory": card.memory}
    authentication: JsonObject = {"type": "bearer", "scopes_required": list(card.scopes_required) or ["a2a:call"]}
    if card.long_running:
        capabilities["long_running"] = True
    if card.signed:
        authentication["signing"] = _REQUIRED
    shown = {
        "$schema": f"{place.hub_url}/schemas/agent-card/v1",
        "id": card.id,
        "name": card.name,
        "description": card.description or card.name,
        "version": card.version,
        "capabilities": capabilities,
        "skills": [_shown_skill(skill) for skill in card.skills],
        "authentication": authentication,
        "rate_limits": msgspec.to_builtins(agent.limits),
        "endpoint": f"{place.hub_url}/v1/agents/{card.id}/a2a",
    }
    for name in _OPTIONAL:
        if value := getattr(card, name):
            shown[name] = value
    return shown


def _provider(said: JsonObject | str | None) -> Provider | None:
    if not said:
        return None
    if isinstance(said, str):
        return Provider(name=shown_text(said, 128))
    words = {name: shown_text(text, 2048) for name, text in said.items() if isinstance(text, str)}
    return Provider(name=words["name"], url=words.get("url"), contact=words.get("contact")) if "name" in words else None


def _skill(skill: CardSkill) -> Skill:
    return Skill(
        id=skill.name,
        name=skill.name,
        description=shown_text(skill.description or "", 4096),
        input_schema=skill.input_schema,
        output_schema=skill.output_schema,
        tags=tuple(skill.tags or ()),
        examples=tuple(skill.examples or ()),
        scopes=tuple(skill.scopes or ()),
        idempotent=bool(skill.idempotent),
        signed=skill.signing == _REQUIRED,
    )


def _shown_skill(skill: Skill) -> JsonObject:
    shown: JsonObject = {"name": skill.id, "description": skill.description or skill.name}
    shown["input_schema"] = skill.input_schema or {"type": "object"}
    shown["output_schema"] = skill.output_schema or {"type": "object"}
    if skill.tags:
        shown["tags"] = list(skill.tags)
    if skill.examples:
        shown["examples"] = list(skill.examples)
    if skill.scopes:
        shown["scopes"] = list(skill.scopes)
    if skill.idempotent:
        shown["idempotent"] = True
    if skill.signed:
        shown["signing"] = _REQUIRED
    return shown


def _bad_card(error: msgspec.ValidationError) -> BadParams:
    message, _, at = str(error).partition(" - at `")
    path = "agent_card" + at.rstrip("`").removeprefix("$")
    if message.startswith("Object missing required field `"):
        path, message = f"{path}.{message[31:-1]}", "required"
    message = message.replace("`", "")
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])
