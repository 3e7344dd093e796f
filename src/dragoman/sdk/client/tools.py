"""Skills handed out as tools: found by discovery, named so that every framework takes them, in the form asked for.

    discover ─▶ agents, some at once ─▶ usable skills ─▶ names, schemas, descriptions ─▶ tools of one framework

A list of tools is what there was when it was made; `refresh()` renews it in place.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypedDict, TypeVar

import msgspec

from dragoman.model.errors import AgentNotFound, AgentUnavailable, DragomanError, NotSupported
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.tool_names import tool_names
from dragoman.sdk.client.asking import CallOptions
from dragoman.sdk.client.skill_tool import Arguments, Offered, Outcome, SkillTool, described
from dragoman.sdk.client.sync import BACKGROUND
from dragoman.sdk.client.tool_schema import takes_of

if TYPE_CHECKING:
    from dragoman.sdk.client.client import A2AClient

T = TypeVar("T")

MOST_TOOLS: Final = 1000
AT_ONCE: Final = 8  # agents that are asked for

Names = str | Sequence[str] | None


class ToolOptions(TypedDict, total=False):
    """Which skills are looked for, and how they are called.

    `skill` and `agent` are names, one or several; `q` and `tag` as in `discover`; `limit`: at most so many tools.
    `timeout_ms` and `conversation_id` are those of every call. `raise_errors`: what a call fails with is raised, and
    not told to the model.
    """

    skill: Names
    agent: Names
    q: str | None
    tag: Names
    limit: int | None
    timeout_ms: int | None
    conversation_id: str | None
    raise_errors: bool


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which skills are looked for; nothing means all."""

    skill: Names = None
    agent: Names = None
    q: str | None = None
    tag: Names = None
    limit: int | None = None


class Form(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """How tools of one framework are made, and what answers a call there."""

    make: Callable[[SkillTool], T]
    answer: Callable[[Outcome], Json]
    identifiers: bool = False  # names must be those of functions
    folded: bool = False  # names must differ in their letters and digits


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where tools come from: a client, what is looked for, and how they are called."""

    client: "A2AClient"
    wanted: Wanted
    options: CallOptions
    raise_errors: bool = False

    async def skills(self, form: Form[Any]) -> tuple[SkillTool, ...]:
        """Every skill that fits, of the best agents first. Raises ValueError where it is too many."""
        most = MOST_TOOLS if self.wanted.limit is None else self.wanted.limit
        offered: list[Offered] = []
        async with aclosing(_offered(self.client, self.wanted)) as found:
            async for each in found:
                if len(offered) < most:
                    offered.append(each)
                elif self.wanted.limit is None:
                    raise ValueError(
                        f"There are more than {MOST_TOOLS} skills: name skill=, agent=, q=, tag= or limit=."
                    )
                else:
                    break
        names = tool_names(
            [(each.agent_id, each.skill) for each in offered], identifier=form.identifiers, folded=form.folded
        )
        return tuple(
            SkillTool(each, names[each.agent_id, each.skill], self.client, self.options, raise_errors=self.raise_errors)
            for each in offered
        )


def source_of(client: "A2AClient", options: ToolOptions) -> Source:
    """Where the tools come from that were asked for."""
    wanted = Wanted(
        skill=options.get("skill"),
        agent=options.get("agent"),
        q=options.get("q"),
        tag=options.get("tag"),
        limit=options.get("limit"),
    )
    calls: CallOptions = {
        "timeout_ms": options.get("timeout_ms"),
        "conversation_id": options.get("conversation_id"),
    }
    return Source(client=client, wanted=wanted, options=calls, raise_errors=options.get("raise_errors", False))


class _ToolList(list[T]):
    """The tools of one framework, and the skills they stand for."""

    def __init__(self, source: Source, form: Form[T]) -> None:
        """Nothing yet: it is filled by `refresh`."""
        super().__init__()
        self._source = source
        self._form = form
        self._by_name: dict[str, SkillTool] = {}

    @property
    def skills(self) -> tuple[SkillTool, ...]:
        """What each of them is: its name, description, schema, agent and skill."""
        return tuple(self._by_name.values())

    async def _refreshed(self) -> None:
        skills = await self._source.skills(self._form)
        made = [self._form.make(skill) for skill in skills]
        self._by_name = {skill.name: skill for skill in skills}
        self[:] = made

    async def _answered(self, name: str, arguments: Arguments) -> Json:
        skill = self._by_name.get(name)
        if skill is None:
            known = f"There are: {', '.join(self._by_name)}." if self._by_name else "There is none."
            return self._form.answer(Outcome(value=f"There is no tool {name!r}. {known}", failed=True))
        return self._form.answer(await skill.outcome(arguments))


class Tools(_ToolList[T]):
    """The tools of one framework: a list that can be renewed, and called by name."""

    async def refresh(self) -> Self:
        """Look again: this very list has what there is now."""
        await self._refreshed()
        return self

    async def call(self, name: str, arguments: Arguments = None) -> Any:
        """Call the tool of that name, with an object or its JSON; the answer in the words of the framework."""
        return await self._answered(name, arguments)


class SyncTools(_ToolList[T]):
    """The same for code that cannot await."""

    def refresh(self) -> Self:
        """Look again: this very list has what there is now."""
        BACKGROUND.run(self._refreshed, instead="await tools.refresh()")
        return self

    def call(self, name: str, arguments: Arguments = None) -> Any:
        """Call the tool of that name, with an object or its JSON; the answer in the words of the framework."""
        return BACKGROUND.run(lambda: self._answered(name, arguments), instead="await tools.call(…)")


async def _offered(client: "A2AClient", wanted: Wanted) -> AsyncGenerator[Offered]:
    """The skills that fit, agent by agent."""
    async with aclosing(_agents(client, wanted)) as found:
        waiting: list[str] = []
        async for agent_id in found:
            waiting.append(agent_id)
            if len(waiting) == AT_ONCE:
                for each in await _of_agents(client, waiting, wanted):
                    yield each
                waiting.clear()
    for each in await _of_agents(client, waiting, wanted):
        yield each


async def _agents(client: "A2AClient", wanted: Wanted) -> AsyncGenerator[str]:
    """The agents to look at: those named, else all that discovery shows and that can be called now."""
    agents, skills = _listed(wanted.agent), _listed(wanted.skill)
    if agents and wanted.q is None and wanted.tag is None:
        for agent_id in agents:
            yield agent_id
        return
    only = skills[0] if len(skills) == 1 else None
    async with aclosing(client.discover(only, q=wanted.q, tag=wanted.tag, status="active")) as found:
        async for agent in found:
            if (not agents or agent.id in agents) and (not skills or set(skills) & set(agent.skills)):
                yield agent.id


async def _of_agents(client: "A2AClient", agents: Sequence[str], wanted: Wanted) -> list[Offered]:
    failed: BaseException | None = None
    reading: list[asyncio.Task[JsonObject]] = []
    try:
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(_agent(client, agent_id, wanted)) for agent_id in agents]
    except* DragomanError as several:
        failed = several.exceptions[0]
    if failed is not None:
        raise failed
    return [each for task in reading for each in _of_agent(task.result(), _listed(wanted.skill))]


async def _agent(client: "A2AClient", agent_id: str, wanted: Wanted) -> JsonObject:
    """An agent; nothing where it left since it was found. Raises AgentNotFound for one that was named."""
    try:
        return await client.agent(agent_id)
    except NotSupported:
        return {"card": await client.card(agent_id)}  # With no hub in between, it may be used or not as a whole.
    except (AgentNotFound, AgentUnavailable):
        if agent_id in _listed(wanted.agent):
            raise
        return {}


def _of_agent(agent: JsonObject, wanted: Sequence[str]) -> list[Offered]:
    card: JsonObject = agent.get("card") or {}
    listed: Json = card.get("skills")
    usable: Json = agent.get("usable")
    skills = [each for each in listed if is_object(each)] if is_array(listed) else []
    agent_id, about = str(card.get("id") or ""), str(card.get("description") or "")
    whose = f"By the agent {card.get('name') or agent_id}" + (f": {about}" if about else ".")
    return [
        Offered(
            agent_id=agent_id,
            skill=str(skill["name"]),
            description=described(str(skill.get("description") or ""), whose),
            takes=takes_of(skill.get("input_schema")),
        )
        for skill in skills
        if (not wanted or skill["name"] in wanted) and (not is_array(usable) or skill["name"] in usable)
    ]


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names or ())
