"""Admission: a request to send becomes a call that may be made, by steps whose order is the rule.

    speak → resolve → authorize → chain → validate, fill in, fit → the task as it will be opened

Everything here is memory, save the first look at an agent, a parent or an earlier task. After it nobody checks
permission again.
"""

from datetime import timedelta
from typing import Final

import msgspec

from dragoman.hub.authenticate import OPERATOR
from dragoman.hub.authorize import authorize_call
from dragoman.hub.chain import chain_of, without_loop
from dragoman.hub.earlier import Earlier
from dragoman.hub.files import Files
from dragoman.hub.registry import Registry, in_quarantine
from dragoman.hub.tasks import TaskBook
from dragoman.hub.validate import Compiled, Schemas, filled
from dragoman.model.agent import Agent, AgentStatus, Endpoint, Skill, Via
from dragoman.model.call import AdmittedCall, Arrival, Caller
from dragoman.model.content import Blob, Data, Message, Role
from dragoman.model.errors import (
    AgentUnavailable,
    ContentRefused,
    ExtensionRequired,
    InputRefused,
    NotSupported,
    SignatureRequired,
    SkillNotFound,
)
from dragoman.model.events import Remote
from dragoman.model.fit import Feature, Host, fit_parts
from dragoman.model.lifecycle import history_of, lone_object
from dragoman.model.objects import PARTS, input_object
from dragoman.model.operations import SendTask, Wait
from dragoman.model.sealed import MEMBER, header_of, sealed_part, sealing_keys
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.security.signing import SignatureProblem

NO_SCHEMA: Final = Compiled(input=None, output=None, defaults={}, text_only=False)
ACCEPTED_S: Final = 86_400.0  # a call that nobody waits for has a day, unless it says otherwise


class Admission:
    """Decides which calls may be made."""

    def __init__(
        self,
        *,
        registry: Registry,
        tasks: TaskBook,
        earlier: Earlier,
        schemas: Schemas,
        files: Files,
        clock: Clock,
        timeout_s: float,
        max_timeout_s: float,
        signed_only: bool,
    ) -> None:
        self._registry = registry
        self._tasks = tasks
        self._earlier = earlier
        self._schemas = schemas
        self._files = files
        self._clock = clock
        self._timeout_s = timeout_s
        self._max_timeout_s = max_timeout_s
        self._signed_only = signed_only  # no call is taken that its caller did not sign

    async def admit(self, caller: Caller, asked: SendTask, arrival: Arrival, first: Task | None = None) -> AdmittedCall:
        """The call that this request makes; with `first`, as a step of that one's workflow.

        Raises AgentNotFound, SkillNotFound, TaskNotFound, TaskFinished, AgentUnavailable, NotAuthorized, CallLoop,
        InputRefused, ContentRefused, SignatureRequired.
        """
        asking = caller
        if asked.sender is not None:
            caller = await self._registry.speaking(caller, asked.sender, registered=asked.sender_registered)
        continued = None if asked.continues is None else await self._earlier.continued(caller, asked)
        agent = await self._registry.target(caller, asked.agent, asked.skill, continued)
        skill = skill_of(agent, asked.skill if continued is None else continued.skill)
        authorize_call(caller, agent, skill)
        if self._signed_only or agent.card.signed or (skill is not None and skill.signed):
            refuse_unsigned(caller, agent, arrival)
        endpoint = self._registry.endpoint_of(agent)
        refuse_unavailable(agent, endpoint, waits=asked.wait is not Wait.NONE)
        refuse_unfit(agent, skill, endpoint, asked)
        if continued is not None and Feature.CONTINUE not in endpoint.features:
            raise NotSupported(f"{agent.id} takes no further messages in a task.", agent_id=agent.id)
        named = None if first is not None else asked.parent_id
        parent = None if named is None else await self._tasks.find_parent(caller, named)
        # Whoever only says that it is the target itself gives itself work; no agent waits for it.
        asking = asking if caller.agent_id == agent.id else caller
        # A step stands where the first call stands: the hub between them is no agent.
        chain = chain_of(asking, agent, parent) if first is None else without_loop(first.chain, agent)
        compiled = NO_SCHEMA if skill is None else self._schemas.of(agent, skill)
        message = asked.message
        remote: Remote | None = None
        if message.references:
            message = await self._earlier.with_references(caller, message, agent)
        if asked.context_id is not None and continued is None:
            remote = await self._earlier.remote_context(caller, asked.context_id, agent)
        task_id = arrival.task_id if continued is None else continued.id
        if not asked.sealed:
            message = checked(message, endpoint, skill, compiled, self._files.host(caller.tenant, task_id, message.id))
        if asked.callback is not None and asked.callback.url is not None:
            await self._registry.may_dial(asked.callback.url)
        timeout_s = self._time_for(asked)
        return AdmittedCall(
            caller=caller,
            operation=asked,
            agent=agent,
            endpoint=endpoint,
            skill=skill,
            message=message,
            task=continued or _opening(caller, asked, arrival, agent, skill, chain, timeout_s, remote),
            timeout_s=timeout_s,
            deadline=arrival.since + timeout_s,
            signed=arrival.signed,
            durable=Feature.REPORTS in endpoint.features or _has_file(asked.message, endpoint),
        )

    async def readmit(self, task: Task) -> AdmittedCall:
        """The call of a stored task, to be carried on later: is the agent still there and is there time?

        Raises AgentNotFound, AgentUnavailable and what `checked` raises.
        """
        caller = Caller(tenant=task.tenant, id=task.caller_id, agent_id=task.chain[-1] if task.chain else None)
        agent = await self._registry.resolve(caller, task.agent_id)
        endpoint = self._registry.endpoint_of(agent)
        refuse_unavailable(agent, endpoint, waits=False)
        skill = skill_of(agent, task.skill)
        compiled = NO_SCHEMA if skill is None else self._schemas.of(agent, skill)
        now = self._clock.now()
        left_s = self._max_timeout_s if task.deadline is None else (task.deadline - now).total_seconds()
        asked = _last_asked(task)
        host = self._files.host(task.tenant, task.id, asked.message.id)
        return AdmittedCall(
            caller=caller,
            operation=asked,
            agent=agent,
            endpoint=endpoint,
            skill=skill,
            message=asked.message
            if sealed_part(asked.message.parts) is not None
            else checked(asked.message, endpoint, skill, compiled, host),
            task=task,
            timeout_s=left_s,
            deadline=self._clock.monotonic() + left_s,
        )

    def _time_for(self, asked: SendTask) -> float:
        if asked.wait is Wait.NONE:
            return min(asked.timeout_s or ACCEPTED_S, ACCEPTED_S)
        return min(asked.timeout_s or self._timeout_s, self._max_timeout_s)


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


def refuse_unavailable(agent: Agent, endpoint: Endpoint, *, waits: bool) -> None:
    """Raises AgentUnavailable for an agent that is paused or known to be away.

    One that connects to the hub may come back at any time: what nobody waits for can wait for that.
    """
    if agent.status is AgentStatus.UNREACHABLE and endpoint.via is Via.CONNECTED and not waits:
        return
    if agent.status is AgentStatus.QUARANTINED:
        raise AgentUnavailable(in_quarantine(agent), reason="quarantined", agent_id=agent.id)
    if agent.status is not AgentStatus.ACTIVE:
        raise AgentUnavailable(f"Agent {agent.id} is {agent.status}.", retry_after_s=30, agent_id=agent.id)


def refuse_unfit(agent: Agent, skill: Skill | None, endpoint: Endpoint, asked: SendTask) -> None:
    """Raises SkillNotFound where the target has to be told which of its skills is meant and nobody said so,
    ExtensionRequired where it demands an extension that the caller does not bring, ContentRefused where the message is
    encrypted, and not for one of its keys."""
    if skill is None and Feature.PARTS not in endpoint.features:
        supported = [each.id for each in agent.card.skills]
        raise SkillNotFound(f"Name one of {agent.id}'s skills: {', '.join(supported)}.", supported=supported)
    missing = [each.uri for each in agent.card.extensions if each.required and each.uri not in asked.extensions]
    if missing:
        raise ExtensionRequired(f"{agent.id} requires the extension {', '.join(missing)}.", extensions=missing)
    if asked.sealed:
        _refuse_unreadable(agent, asked.message)


def refuse_unsigned(caller: Caller, agent: Agent, arrival: Arrival) -> None:
    """Raises SignatureRequired where the request was not signed; where nobody is asked who he is, it need not be."""
    if not arrival.signed and not (caller.admin and caller.id == OPERATOR.id):
        raise SignatureRequired(reason=SignatureProblem.MISSING.value, agent_id=agent.id)


def checked(message: Message, endpoint: Endpoint, skill: Skill | None, compiled: Compiled, host: Host) -> Message:
    """The message as it will be sent: its input valid, complete, and in a form the target takes.

    Raises InputRefused naming each failing path, ContentRefused.
    """
    parts = message.parts
    takes_parts = Feature.PARTS in endpoint.features
    # Words and files that the target takes as they are need no object, so no schema speaks of them.
    if compiled.input is not None and skill is not None and not (takes_parts and lone_object(parts) is None):
        given = input_object(parts, skill.input_schema)
        value = filled(given, compiled.defaults)
        errors = compiled.input(value)
        if errors:
            shown = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
            if given.keys() == {PARTS}:
                raise ContentRefused(
                    f"{skill.id} takes one JSON object as its input, no files or lists of parts: {shown}",
                    reason="not_an_object",
                    skill=skill.id,
                )
            raise InputRefused(f"The input does not fit {skill.id}: {shown}", errors=errors, skill=skill.id)
        parts = (Data(value=value),)
    parts = fit_parts(parts, endpoint.features, text_only=compiled.text_only, host=host)
    return message if parts is message.parts else msgspec.structs.replace(message, parts=parts)


def _refuse_unreadable(agent: Agent, message: Message) -> None:
    """Raises ContentRefused where an encrypted message is not for a key that the target published."""
    keys = sealing_keys(agent.card.keys)
    part = sealed_part(message.parts)
    header = None if part is None else header_of(part.value[MEMBER])
    if not keys:
        raise ContentRefused(f"{agent.id} has published no key to encrypt with.", reason="no_key", agent_id=agent.id)
    if header is None or header.kid not in keys:
        raise ContentRefused(
            f"The message is not encrypted for a key of {agent.id}.", reason="unknown_key", keys=sorted(keys)
        )


def _has_file(message: Message, endpoint: Endpoint) -> bool:
    """Whether the target will have to fetch a file from the hub."""
    features = endpoint.features
    return (
        Feature.PARTS in features
        and Feature.INLINE not in features
        and any(isinstance(part, Blob) for part in message.parts)
    )


def _last_asked(task: Task) -> SendTask:
    """What the target was last asked: the opening, or the message that continued it."""
    first, *later = history_of(task)
    for message in reversed(later):
        if message.role is Role.USER:
            return msgspec.structs.replace(task.asked, message=message, continues=task.id)
    return msgspec.structs.replace(task.asked, message=first) if later else task.asked


def _opening(
    caller: Caller,
    asked: SendTask,
    arrival: Arrival,
    agent: Agent,
    skill: Skill | None,
    chain: tuple[str, ...],
    timeout_s: float,
    remote: Remote | None,
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
        remote=remote,
        last_seq=1,
    )
