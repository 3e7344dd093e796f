"""The way to one skill of an agent: what the agent's card alone decides of a call, found once for many.

Does not look at who calls, nor at how the agent stands now.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.hub.validate import Schemas
from dragoman.model.agent import Agent, Endpoint, Skill
from dragoman.model.compiled import NO_SCHEMA, Compiled
from dragoman.model.errors import SkillNotFound
from dragoman.model.fit import Feature

MOST_KEPT: Final = 10_000


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How calls of one skill get to an agent."""

    agent: Agent
    skill: Skill | None
    endpoint: Endpoint | None  # the first that this hub speaks to
    compiled: Compiled
    signed: bool  # only calls that their callers signed
    demanding: bool  # a skill has to be named, or an extension brought
    verbatim: bool  # whatever is said goes as it is
    reports: bool  # the agent tells of its progress by itself
    fetches: bool  # the files of a message, from the hub


class Ways:
    """The ways to the agents that were called lately."""

    def __init__(self, *, schemas: Schemas, can_call: Callable[[Endpoint], bool]) -> None:
        self._schemas = schemas
        self._can_call = can_call
        self._known: dict[tuple[str, str | None], Way] = {}  # by the agent's UUID and the name that was asked for

    def of(self, agent: Agent, asked: str | None) -> Way:
        """The way to the skill of that name, or the one that is meant where none is named. Raises SkillNotFound."""
        way = self._known.get((agent.uuid, asked))
        if way is None or way.agent is not agent:  # It was changed, or another version of its card is meant.
            way = self._found(agent, asked)
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            self._known[agent.uuid, asked] = way
        return way

    def _found(self, agent: Agent, asked: str | None) -> Way:
        card, skill = agent.card, skill_of(agent, asked)
        endpoint = next((each for each in card.endpoints if self._can_call(each)), None)
        features = frozenset[Feature]() if endpoint is None else endpoint.features
        compiled = NO_SCHEMA if skill is None else self._schemas.of(agent, skill)
        takes_parts, takes_files = Feature.PARTS in features, Feature.INLINE in features
        return Way(
            agent=agent,
            skill=skill,
            endpoint=endpoint,
            compiled=compiled,
            signed=card.signed or (skill is not None and skill.signed),
            demanding=(skill is None and not takes_parts) or any(each.required for each in card.extensions),
            verbatim=takes_parts and takes_files and compiled.input is None and not compiled.text_only,
            reports=Feature.REPORTS in features,
            fetches=takes_parts and not takes_files,
        )


def skill_of(agent: Agent, asked: str | None) -> Skill | None:
    """The skill that is meant: the one asked for, the agent's default, or its only one.

    Raises SkillNotFound.
    """
    skills = agent.card.skills
    if asked is not None:
        skill = agent.card.skill(asked)
        if skill is None:
            raise SkillNotFound(
                f"Agent {agent.id} has no skill {asked!r}. It has: {', '.join(each.id for each in skills)}.",
                skill=asked,
                supported=[each.id for each in skills],
            )
        return skill
    if agent.card.default_skill is not None:
        return agent.card.skill(agent.card.default_skill)
    return skills[0] if len(skills) == 1 else None
