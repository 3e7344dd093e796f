"""Whom a call is for, by what people type: the agent, its card, and the schema of the skill's input."""

from dragoman.cli.fault import Fault, not_found
from dragoman.cli.find import SEARCHED, agent_card, did_you_mean, pages, skills_of
from dragoman.cli.hub import Hub
from dragoman.model.json import JsonObject, is_array, is_object


def target_of(hub: Hub, agent: str | None, skill: str) -> tuple[str | None, JsonObject]:
    """Whom to name in the call (nobody, when the hub is to pick), and the card that has the schema. Raises Fault."""
    if agent is not None:
        agent_id, card = agent_card(hub, agent)
        names = [str(one.get("name") or one.get("id")) for one in _skills(card)]
        if names and skill not in names:
            message = f'{agent_id} has no skill "{skill}"; it has: {", ".join(names)}'
            near = did_you_mean(skill, names).removeprefix("; did you mean ").rstrip("?")
            raise not_found("SKILL_NOT_FOUND", message, next=f"dragoman call {agent_id} {near or names[0]}")
        return agent_id, card
    found, _ = pages(hub, "/v1/a2a/discover", {"skill": skill}, items="agents", limit=1)
    if not found:
        _refuse_resting(hub, skill)
        everybody, _ = pages(hub, "/v1/a2a/discover", {}, items="agents", limit=SEARCHED)
        message = f'no agent has the skill "{skill}"{did_you_mean(skill, skills_of(everybody))}'
        raise not_found("SKILL_NOT_FOUND", message, next="dragoman discover")
    return None, agent_card(hub, str(found[0]["id"]))[1]


def input_schema(card: JsonObject, skill: str) -> JsonObject:
    """The schema of a skill's input; an empty one where the card has none."""
    for one in _skills(card):
        if skill in (one.get("name"), one.get("id")):
            schema = one.get("input_schema")
            return schema if is_object(schema) else {}
    return {}


def _refuse_resting(hub: Hub, skill: str) -> None:
    """Return unless somebody has the skill, but takes no calls now. Raises Fault then."""
    for status, next_step in (("paused", "dragoman agents resume"), ("unreachable", "dragoman agents show")):
        found, _ = pages(hub, "/v1/a2a/discover", {"skill": skill, "status": status}, items="agents", limit=1)
        if found:
            agent_id = found[0]["id"]
            message = f'{agent_id} has the skill "{skill}", but is {status}'
            raise Fault(message, next=f"{next_step} {agent_id}", code="AGENT_UNAVAILABLE", retryable=True)


def _skills(card: JsonObject) -> list[JsonObject]:
    skills = card.get("skills")
    return [skill for skill in skills if is_object(skill)] if is_array(skills) else []
