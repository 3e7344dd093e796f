"""The envelope's agent card: taken as liberally as published cards need it, served exactly as its schema demands.

A card that came in this dialect keeps its other members; what the schema or the hub decides is written over them.
"""

import re
from typing import Final

import msgspec

from dragoman.dialects.dialect import Place
from dragoman.dialects.envelope.wire import SLUG, VERSION, read_party
from dragoman.dialects.text import id_of_name, shown_text
from dragoman.dialects.times import wire_time
from dragoman.dialects.uuids import is_uuid4
from dragoman.model.agent import Agent, AgentCard, AgentStatus, Endpoint, Original, Provider, RateLimits, Skill
from dragoman.model.errors import BadParams
from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject, is_array, is_object

FEATURES: Final = frozenset({Feature.ANSWERS, Feature.REPORTS, Feature.CANCEL, Feature.CONTINUE})
CAPABILITIES: Final = (
    *("research", "analysis", "coding", "writing", "planning", "monitoring", "testing", "deployment"),
    "custom",
)
CUSTOM: Final = "custom"
MAX_TASKS: Final = 100
MAX_TASK_NAME: Final = 50
MAX_NAME: Final = 100
MAX_DESCRIPTION: Final = 500
MAX_LIMIT: Final = 1_000_000_000

_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")
_NUMBERS: Final = re.compile(r"\d+")
_NAME: Final = "custom_capability_name"
_DESCRIPTION: Final = "custom_capability_description"
_PARAMS: Final = "custom_capability_params"
_SIGNING: Final = "signing"
_REQUIRED: Final = "required"
_STATUS: Final = {
    AgentStatus.ACTIVE: "active",
    AgentStatus.PAUSED: "inactive",
    AgentStatus.UNREACHABLE: "offline",
    AgentStatus.QUARANTINED: "inactive",
    AgentStatus.REMOVED: "offline",
}
_OWN_STATUS: Final = frozenset({"active", "busy"})  # what an agent that can be called may say of itself


def owns_card(card: JsonObject) -> bool:
    """Whether a card has the envelope's shape: it alone lists `supported_tasks`."""
    return "supported_tasks" in card


def read_card(card: JsonObject) -> AgentCard:
    """The canonical card.

    Raises BadParams naming what is missing: a name, or a task that could be assigned.
    """
    name = _text(card, "name")
    if name is None:
        raise _bad("name", "required")
    skills = _skills(card)
    if not skills:
        raise _bad("supported_tasks", "at least one task type, as text")
    metadata = card.get("metadata")
    own_id = read_party(card.get("id"))
    endpoint = Endpoint(dialect=SLUG, url=_text(card, "endpoint"), tenant=own_id, features=FEATURES)
    return AgentCard(
        id=own_id or id_of_name(name),
        name=shown_text(name, 128),
        description=shown_text(_text(card, "description") or "", 4096),
        version=_text(card, "version") or VERSION,
        skills=skills,
        endpoints=(endpoint,),
        limits=_limits(card),
        long_running=True,
        labels=_labels(card),
        tags=_words(card.get("tags")),
        provider=_provider(card.get("owner")),
        signed=card.get(_SIGNING) == _REQUIRED,
        keys=_keys(card.get("keys")),
        aliases=(own_id,) if own_id is not None and is_uuid4(own_id) else (),
        metadata=metadata if is_object(metadata) and metadata else None,
        original=Original(dialect=SLUG, body=msgspec.json.encode(card)),
    )


def write_card(agent: Agent, place: Place) -> JsonObject:
    """The card as the hub serves it; its endpoint has no final slash, for clients append `/a2a/messages`."""
    card = agent.card
    came: JsonObject = {}
    if card.original is not None and card.original.dialect == SLUG:
        came = msgspec.json.decode(card.original.body)
    capabilities, custom = _capabilities(card)
    shown: JsonObject = {
        "id": card.id if is_uuid4(card.id) else agent.uuid,
        "name": card.name[:MAX_NAME] or card.id[:MAX_NAME],
        "version": _version(card.version),
        "description": card.description[:MAX_DESCRIPTION] or None,
        "capabilities": capabilities,
        "supported_tasks": list(dict.fromkeys(skill.id[:MAX_TASK_NAME] for skill in card.skills)) or ["default"],
        "endpoint": place.base_url.rstrip("/"),
        "supported_protocols": [VERSION],
        "owner": came.get("owner") or (card.provider.name if card.provider is not None else None),
        "status": _status(agent, came),
        "max_concurrent_tasks": agent.limits.concurrent_requests,
        "rate_limit": _rates(agent.limits, came.get("rate_limit")) or None,
        "tags": list(card.tags) or None,
        _SIGNING: _REQUIRED if card.signed else None,
        "keys": list(card.keys) or None,
        "metadata": {**(card.metadata or {}), **custom},
        "created_at": _text(came, "created_at") or wire_time(agent.registered_at),
        "updated_at": _text(came, "updated_at") or wire_time(agent.updated_at),
    }
    # Members that the schema does not know stay as they came, and all in the order in which they came.
    return {name: value for name, value in {**came, **shown}.items() if value is not None or name not in shown}


def _skills(card: JsonObject) -> tuple[Skill, ...]:
    names = dict.fromkeys(shown_text(task, 128) for task in _words(card.get("supported_tasks")))
    return tuple(Skill(id=name, name=name) for name in names if name)[:MAX_TASKS]


def _labels(card: JsonObject) -> tuple[str, ...]:
    """The card's capabilities as free words: a custom one by its own name, where it says that."""
    metadata = card.get("metadata")
    about: JsonObject = metadata if is_object(metadata) else {}
    params = about.get(_PARAMS)
    named = _words(params.get("names")) if is_object(params) else ()
    own = named or ((name,) if (name := _text(about, _NAME)) else ())
    words = _words(card.get("capabilities"))
    replaced = [own if word == CUSTOM and own else (word,) for word in words]
    return tuple(dict.fromkeys(word for group in replaced for word in group))


def _capabilities(card: AgentCard) -> tuple[list[str], JsonObject]:
    """The capabilities of the schema's own list; what is not on it is custom, and named in the metadata."""
    words = card.labels or tuple(word for skill in card.skills for word in (skill.id, *skill.tags))
    known = [word for word in dict.fromkeys(words) if word in CAPABILITIES]
    others = [word for word in card.labels if word not in CAPABILITIES]
    if known and not others:
        return known, {}
    if not others and card.skills:
        others = [card.skills[0].id]
    custom: JsonObject = {}
    if others:
        custom[_NAME] = others[0]
        described = card.skills[0].description if card.skills else ""
        if described and not card.labels:
            custom[_DESCRIPTION] = described[:MAX_DESCRIPTION]
        if len(others) > 1:
            custom[_PARAMS] = {"names": others}
    return [*(word for word in known if word != CUSTOM), CUSTOM], custom


def _status(agent: Agent, came: JsonObject) -> str:
    own = came.get("status")
    if agent.status is AgentStatus.ACTIVE and own in _OWN_STATUS:
        return str(own)
    return _STATUS[agent.status]


def _version(version: str) -> str:
    """The version as three numbers: those it has, the missing ones nought."""
    if _VERSION.fullmatch(version):
        return version
    numbers = [*(number[:9] for number in _NUMBERS.findall(version)), "0", "0"][:3]
    return ".".join(numbers) if len(numbers) == 3 else VERSION


def _keys(value: Json) -> tuple[JsonObject, ...]:
    """Public keys of the agent: by which its messages are checked, and encrypted for it."""
    return tuple(key for key in value if is_object(key)) if is_array(value) else ()


def _limits(card: JsonObject) -> RateLimits:
    limit = card.get("rate_limit")
    rates: JsonObject = limit if is_object(limit) else {}
    return RateLimits(
        requests_per_minute=_count(rates.get("requests_per_minute")),
        requests_per_hour=_count(rates.get("requests_per_hour")),
        concurrent_requests=_count(card.get("max_concurrent_tasks")),
    )


def _rates(limits: RateLimits, came: Json) -> JsonObject:
    shown: JsonObject = {
        "requests_per_minute": limits.requests_per_minute,
        "requests_per_hour": limits.requests_per_hour,
    }
    others = {name: value for name, value in came.items() if name not in shown} if is_object(came) else {}
    return {**{name: value for name, value in shown.items() if value is not None}, **others}


def _provider(owner: Json) -> Provider | None:
    name = owner if isinstance(owner, str) else _text(owner, "name") if is_object(owner) else None
    return Provider(name=shown_text(name, 128)) if name else None


def _count(value: Json) -> int | None:
    return value if type(value) is int and 1 <= value <= MAX_LIMIT else None


def _text(value: JsonObject, name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) and found else None


def _words(value: Json) -> tuple[str, ...]:
    return tuple(shown_text(word, 256) for word in value if isinstance(word, str)) if is_array(value) else ()


def _bad(field: str, message: str) -> BadParams:
    path = f"agent_card.{field}"
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])
