"""The dotted agent card, read into the canonical one and written from it.

Its shape is the one that is left when a card has no other dialect's keys, so it is read as liberally as it can be. A
card that came in this dialect is served as it came, save for what is the hub's: where to call, and what it offers.
"""

from typing import Final

import msgspec

from dragoman.dialects.dialect import Place
from dragoman.dialects.official_card import OFFERED, read_skills
from dragoman.dialects.official_card.members import bad_card, flag, member, objects, text, words
from dragoman.dialects.official_card.security import v03_requirements, v03_schemes
from dragoman.dialects.text import id_of_name, shown_text
from dragoman.model.agent import Agent, AgentCard, Endpoint, Original, Provider, Skill
from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject, is_array, is_object

SLUG: Final = "dotted"
FEATURES: Final = frozenset(
    {Feature.ANSWERS, Feature.GET, Feature.CANCEL, Feature.CONTINUE, Feature.PARTS, Feature.INLINE}
)
MAX_TAGS: Final = 50
MAX_URL: Final = 2048
_LONG_RUNNING: Final = "longRunningTasks"
_WORDS: Final = ("text", "file", "data")
_SCOPES: Final = ("a2a:call",)


def owns_card(card: JsonObject) -> bool:
    """Whether a card says who it is and where it is called; the other dialects have been asked before."""
    return text(card, "name") is not None and text(card, "url") is not None


def read_card(card: JsonObject) -> AgentCard:
    """The canonical card.

    Raises BadParams naming what is missing: a name or a url.
    """
    name, url = text(card, "name"), text(card, "url")
    if name is None:
        raise bad_card("name", "required")
    if url is None or len(url) > MAX_URL:
        raise bad_card("url", f"required, at most {MAX_URL} characters")
    capabilities = member(card, "capabilities")
    streaming = flag(capabilities, "streaming")
    return AgentCard(
        id=id_of_name(name),
        name=shown_text(name, 128),
        description=shown_text(text(card, "description") or "", 4096),
        version=shown_text(text(card, "version") or "1.0.0", 64),
        skills=read_skills(card, _skill),
        endpoints=(Endpoint(dialect=SLUG, url=url, features=FEATURES | {Feature.STREAM} if streaming else FEATURES),),
        streaming=streaming,
        push=flag(capabilities, "pushNotifications"),
        long_running=flag(capabilities, _LONG_RUNNING),
        provider=_provider(card.get("provider")),
        metadata=member(card, "metadata") or None,
        original=Original(dialect=SLUG, body=msgspec.json.encode(card)),
    )


def write_card(agent: Agent, place: Place) -> JsonObject:
    """The card with every member of the document."""
    card = agent.card
    came = _original(card)
    shown: JsonObject = {
        **came,
        "name": card.name,
        "description": card.description or card.name,
        "url": place.base_url,
        "version": card.version,
        "provider": card.provider.name if card.provider is not None else card.name,
        "skills": _shown_skills(card, came),
        "capabilities": _capabilities(came),
        "metadata": card.metadata or {"a2a_version": "1.0"},
    }
    # The agent's own schemes would lead callers past the hub.
    for name in ("securitySchemes", "security"):
        shown.pop(name, None)
    if place.protected:
        scopes = card.scopes_required or _SCOPES
        shown["securitySchemes"] = v03_schemes(place.hub_url, scopes)
        shown["security"] = v03_requirements(scopes)
    return shown


def _skill(skill: JsonObject) -> Skill | None:
    name = text(skill, "id", "name")
    if name is None:
        return None
    examples: Json = skill.get("examples")
    return Skill(
        id=shown_text(name, 128),
        name=shown_text(text(skill, "name") or name, 128),
        description=shown_text(text(skill, "description") or "", 4096),
        input_modes=words(skill.get("inputModes")),
        output_modes=words(skill.get("outputModes")),
        tags=words(skill.get("tags"))[:MAX_TAGS],
        examples=tuple(examples) if is_array(examples) else (),
    )


def _shown_skills(card: AgentCard, came: JsonObject) -> list[JsonObject]:
    """The skills, each with what it brought besides."""
    theirs = {text(each, "id", "name"): each for each in objects(came.get("skills"))}
    return [{**theirs.get(skill.id, {}), **_shown_skill(skill)} for skill in card.skills]


def _shown_skill(skill: Skill) -> JsonObject:
    return {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description or skill.name,
        "inputModes": _modes(skill.input_modes),
        "outputModes": _modes(skill.output_modes),
        "tags": list(skill.tags),
        "examples": list(skill.examples),
    }


def _capabilities(came: JsonObject) -> JsonObject:
    """Three booleans; every task can be long, for the hub keeps it, unless its own agent says otherwise."""
    theirs = member(came, "capabilities")
    long_running = theirs.get(_LONG_RUNNING) is not False
    return {**theirs, **OFFERED, _LONG_RUNNING: long_running}


def _modes(modes: tuple[str, ...]) -> list[str]:
    """Media types as the three words that dotted has for them; who says nothing takes text."""
    return list(dict.fromkeys(_word(mode) for mode in modes)) or ["text"]


def _word(mode: str) -> str:
    if mode in _WORDS:
        return mode
    if mode.startswith("text/"):
        return "text"
    return "data" if mode.partition(";")[0].strip().endswith("json") else "file"


def _provider(value: Json) -> Provider | None:
    """Who stands behind the agent: a name, or the object that published servers send."""
    name = value if isinstance(value, str) else text(value, "organization", "name") if is_object(value) else None
    if not name:
        return None
    return Provider(name=shown_text(name, 128), url=text(value, "url") if is_object(value) else None)


def _original(card: AgentCard) -> JsonObject:
    """The card as it came, if it came in this dialect."""
    if card.original is None or card.original.dialect != SLUG:
        return {}
    came: Json = msgspec.json.decode(card.original.body)
    return came if is_object(came) else {}
