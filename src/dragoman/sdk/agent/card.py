"""An agent's card: the platform's, made of what it publishes, and the same in every other dialect.

The platform's has no endpoint: an agent that connects to a hub has no address. In the other dialects the address is
the one at which its hub speaks for it.
"""

import os
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Place
from dragoman.dialects.uuids import uuid_of
from dragoman.model.agent import Agent as RegisteredAgent
from dragoman.model.agent import AgentCard
from dragoman.model.http import EPOCH
from dragoman.model.json import Json, JsonObject
from dragoman.sdk.client.settings import hub_url

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent
    from dragoman.sdk.agent.skills import Skill

PLATFORM: Final = "platform"


def platform_card(agent: "Agent", laid_over: JsonObject | None) -> JsonObject:
    """The platform's card, as an agent that connects sends it; `laid_over` has the last word."""
    card: JsonObject = {
        "id": agent.id,
        "name": agent.name,
        "description": agent.description or agent.instructions or agent.name,
        "version": agent.version,
        "capabilities": {"streaming": True, "a2a": True, "memory": agent.model is not None},
        "skills": [_skill(skill) for skill in agent.skills.values()],
        "authentication": {"type": "bearer", "scopes_required": list(agent.scopes_required)},
    }
    if agent.rate_limits:
        card["rate_limits"] = dict(agent.rate_limits)
    if agent.default_skill is not None:
        card["default_skill"] = agent.default_skill
    if agent.tags:
        card["tags"] = list(agent.tags)
    if agent.provider:
        card["provider"] = {"name": agent.provider} if isinstance(agent.provider, str) else dict(agent.provider)
    return card | (laid_over or {})


def card_in(agent: "Agent", laid_over: JsonObject | None, dialect: str) -> Json:
    """The card in the words of a dialect. Raises ValueError for one that there is none of."""
    shown = platform_card(agent, laid_over)
    if dialect == PLATFORM:
        return shown
    spoken = DIALECTS.get(dialect)
    if spoken is None or spoken.write_card is None:
        raise ValueError(f"There is no dialect {dialect!r}; there are: {', '.join(DIALECTS)}.")
    hub = hub_url(agent.hub, os.environ).rstrip("/")
    registered = RegisteredAgent(
        card=_canonical(shown, f"{hub}/v1/agents/{agent.id}/a2a"),
        uuid=uuid_of(agent.id),
        tenant="default",
        owner_id=agent.id,
        registered_at=EPOCH,
        updated_at=EPOCH,
    )
    return spoken.write_card(registered, Place(hub_url=hub, base_url=f"{hub}/agents/{agent.id}/"))


def _canonical(card: JsonObject, endpoint: str) -> AgentCard:
    """The card in no dialect's words. Raises BadParams naming the field of it that is wrong."""
    # A registered agent has a skill; one that is only looked at may have none yet.
    skills = card["skills"] or [{"name": "none"}]
    read = DIALECTS[PLATFORM].read_card({**card, "skills": skills, "endpoint": card.get("endpoint", endpoint)})
    return read if card["skills"] else msgspec.structs.replace(read, skills=())


def _skill(skill: "Skill") -> JsonObject:
    shown: JsonObject = {"name": skill.name, "description": skill.description or skill.name}
    if skill.input_schema is not None:
        shown["input_schema"] = skill.input_schema
    if skill.output_schema is not None:
        shown["output_schema"] = skill.output_schema
    for name in ("tags", "examples", "scopes"):
        if listed := getattr(skill, name):
            shown[name] = list(listed)
    if skill.idempotent:
        shown["idempotent"] = True
    return shown
