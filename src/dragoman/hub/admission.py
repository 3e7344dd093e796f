"""Admission: a request to send becomes a call that may be made, by steps whose order is the rule.

    resolve → authorize → chain → validate, fill in, fit → the task as it will be opened

Everything here is memory, save the first look at an agent, a parent or a continued task. After it nobody checks
permission again.
"""

from datetime import timedelta
from typing import Final

import msgspec

from dragoman.hub.authorize import authorize_call
from dragoman.hub.chain import chain_of
from dragoman.hub.registry import Registry, can_call
from dragoman.hub.tasks import TaskBook
from dragoman.hub.validate import Compiled, Schemas, filled
from dragoman.model.agent import Agent, AgentStatus, Endpoint, Skill
from dragoman.model.call import AdmittedCall, Arrival, Caller
from dragoman.model.content import Data, Message
from dragoman.model.errors import (
    AgentUnavailable,
    BadParams,
    InputRefused,
    NotSupported,
    SkillNotFound,
    TaskFinished,
)
from dragoman.model.fit import Feature, fit_parts, input_object
from dragoman.model.operations import SendTask
from dragoman.model.states import INTERRUPTED
from dragoman.model.task import Task
from dragoman.ports.clock import Clock

NO_SCHEMA: Final = Compiled(input=None, output=None, defaults={}, text_only=False)


class Admission:
    """Decides which calls may be made."""

    def __init__(
        self,
        *,
        registry: Registry,
        tasks: TaskBook,
        schemas: Schemas,
        clock: Clock,
        spoken: frozenset[str],
        timeout_s: float,
        max_timeout_s: float,
    ) -> None:
        self._registry = registry
        self._tasks = tasks
        self._schemas = schemas
        self._clock = clock
        self._spoken = spoken
        self._timeout_s = timeout_s
        self._max_timeout_s = max_timeout_s

    async def admit(self, caller: Caller, asked: SendTask, arrival: Arrival) -> AdmittedCall:
        """The call that this request makes.

        Raises AgentNotFound, SkillNotFound, TaskNotFound, TaskFinished, AgentUnavailable, NotAuthorized, CallLoop,
        InputRefused, ContentRefused.
        """
        continued = None if asked.continues is None else await self._continued(caller, asked.continues)
        if continued is not None:
            agent = await self._registry.resolve(caller, continued.agent_id)
        elif asked.agent is not None:
            agent = await self._registry.resolve(caller, asked.agent)
        elif asked.skill is not None:
            agent = await self._registry.best(caller, asked.skill)
        else:
            raise BadParams("Name an agent or a skill.")
        skill = skill_of(agent, asked.skill if continued is None else continued.skill)
        authorize_call(caller, agent, skill)
        refuse_unavailable(agent)
        endpoint = self.endpoint_of(agent)
        if continued is not None and Feature.CONTINUE not in endpoint.features:
            raise NotSupported(f"{agent.id} takes no further messages in a task.", agent_id=agent.id)
        parent = None if asked.parent_id is None else await self._tasks.find_parent(caller, asked.parent_id)
        chain = chain_of(caller, agent, parent)
        compiled = NO_SCHEMA if skill is None else self._schemas.of(agent, skill)
        message = checked(asked.message, endpoint, skill, compiled)
        if asked.callback is not None and asked.callback.url is not None:
            await self._registry.may_dial(asked.callback.url)
        timeout_s = min(asked.timeout_s or self._timeout_s, self._max_timeout_s)
        return AdmittedCall(
            caller=caller,
            operation=asked,
            agent=agent,
            endpoint=endpoint,
            skill=skill,
            message=message,
            task=_opening(caller, asked, arrival, agent, skill, chain, timeout_s) if continued is None else continued,
            timeout_s=timeout_s,
            deadline=arrival.since + timeout_s,
        )

    async def readmit(self, task: Task) -> AdmittedCall:
        """The call of a stored task, to be carried on after a restart: is the agent still there and is there time?

        Raises AgentNotFound, AgentUnavailable and what `checked` raises.
        """
        caller = Caller(tenant=task.tenant, id=task.caller_id)
        agent = await self._registry.resolve(caller, task.agent_id)
        refuse_unavailable(agent)
        endpoint = self.endpoint_of(agent)
        skill = skill_of(agent, task.skill)
        compiled = NO_SCHEMA if skill is None else self._schemas.of(agent, skill)
        now = self._clock.now()
        left_s = self._max_timeout_s if task.deadline is None else (task.deadline - now).total_seconds()
        return AdmittedCall(
            caller=caller,
            operation=task.asked,
            agent=agent,
            endpoint=endpoint,
            skill=skill,
            message=checked(task.asked.message, endpoint, skill, compiled),
            task=task,
            timeout_s=left_s,
            deadline=self._clock.monotonic() + left_s,
        )

    def endpoint_of(self, agent: Agent) -> Endpoint:
        """The first of the agent's endpoints that this hub speaks to. Raises AgentUnavailable."""
        for endpoint in agent.card.endpoints:
            if can_call(endpoint, self._spoken):
                return endpoint
        raise AgentUnavailable(f"{agent.id} has no endpoint that this hub can call.", agent_id=agent.id)

    async def _continued(self, caller: Caller, task_id: str) -> Task:
        task = await self._tasks.load(caller, task_id)
        if task.ended:
            raise TaskFinished(f"{task_id} is finished and takes no more messages.", call_id=task_id)
        if task.state not in INTERRUPTED:
            raise BadParams(f"{task_id} does not wait for input.", call_id=task_id)
        return task


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


def refuse_unavailable(agent: Agent) -> None:
    """Raises AgentUnavailable for an agent that is paused or known to be away."""
    if agent.status is not AgentStatus.ACTIVE:
        raise AgentUnavailable(f"Agent {agent.id} is {agent.status}.", retry_after_s=30, agent_id=agent.id)


def checked(message: Message, endpoint: Endpoint, skill: Skill | None, compiled: Compiled) -> Message:
    """The message as it will be sent: its input valid, complete, and in a form the target takes.

    Raises InputRefused naming each failing path, ContentRefused.
    """
    parts = message.parts
    if compiled.input is not None and skill is not None:
        value = filled(input_object(parts, skill.input_schema), compiled.defaults)
        errors = compiled.input(value)
        if errors:
            shown = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
            raise InputRefused(f"The input does not fit {skill.id}: {shown}", errors=errors, skill=skill.id)
        parts = (Data(value=value),)
    parts = fit_parts(parts, endpoint.features, text_only=compiled.text_only)
    return message if parts is message.parts else msgspec.structs.replace(message, parts=parts)


def _opening(
    caller: Caller,
    asked: SendTask,
    arrival: Arrival,
    agent: Agent,
    skill: Skill | None,
    chain: tuple[str, ...],
    timeout_s: float,
) -> Task:
    at = arrival.at
    return Task(
        id=arrival.task_id,
        tenant=caller.tenant,
        caller_id=caller.id,
        agent_id=agent.id,
        agent_version=agent.card.version,
        dialect=arrival.dialect,
        context_id=asked.context_id or f"ctx-{arrival.task_id}",
        asked=asked,
        trace=arrival.trace,
        created_at=at,
        updated_at=at,
        skill=skill.id if skill else asked.skill,
        deadline=at + timedelta(seconds=timeout_s),
        parent_id=asked.parent_id,
        chain=chain,
        callbacks=(asked.callback,) if asked.callback is not None else (),
        last_seq=1,
    )
