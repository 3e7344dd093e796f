"""Admission: a request to send becomes a call that may be made, by steps whose order is the rule.

    speak → resolve → authorize → chain → validate, fill in, fit → the task as it will be opened → limits

Everything here is memory, save the first look at an agent, a parent or an earlier task. After it nobody checks
permission again.
"""

from datetime import timedelta
from functools import lru_cache
from typing import Final

import msgspec

from dragoman.dialects.uuids import uuid_at
from dragoman.hub.authenticate import OPERATOR
from dragoman.hub.authorize import authorize_call
from dragoman.hub.chain import MAX_DEPTH, chain_of, without_loop
from dragoman.hub.earlier import Earlier
from dragoman.hub.files import Files
from dragoman.hub.flow.flow import Flow
from dragoman.hub.flow.spending import Spending
from dragoman.hub.parents import Parents
from dragoman.hub.registry import Registry, in_quarantine, unspoken
from dragoman.hub.routing import Router
from dragoman.hub.validate import filled
from dragoman.hub.ways import Way, Ways
from dragoman.model.agent import ACTIVE, Agent, AgentStatus, Endpoint, Skill, Via
from dragoman.model.call import AdmittedCall, Arrival, Caller, OpenedCall
from dragoman.model.content import Blob, Data, Message, Role
from dragoman.model.errors import (
    AgentUnavailable,
    ContentRefused,
    DragomanError,
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
from dragoman.model.operations import ACCEPTED, SendTask
from dragoman.model.route import SHOWN, Route
from dragoman.model.sealed import MEMBER, header_of, sealed_part, sealing_keys
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.security.signing import SignatureProblem

ACCEPTED_S: Final = 86_400.0  # a call that nobody waits for has a day, unless it says otherwise
MOST_OTHERS: Final = SHOWN - 1  # agents that are tried after the first; as many as are kept with the call
_PARTS: Final = Feature.PARTS


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """The agent that a call by skill is for, why, and who is next."""

    agent_id: str
    route: Route
    others: tuple[str, ...]


class Admission:
    """Decides which calls may be made."""

    def __init__(
        self,
        *,
        registry: Registry,
        parents: Parents,
        earlier: Earlier,
        ways: Ways,
        files: Files,
        flow: Flow,
        spending: Spending,
        router: Router,
        clock: Clock,
        timeout_s: float,
        max_timeout_s: float,
        signed_only: bool,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self._registry = registry
        self._parents = parents
        self._earlier = earlier
        self._ways = ways
        self._files = files
        self._flow = flow
        self._spending = spending
        self._router = router
        self._clock = clock
        self._timeout_s = timeout_s
        self._max_timeout_s = max_timeout_s
        self._signed_only = signed_only  # no call is taken that its caller did not sign
        self._max_depth = max_depth  # how many agents may wait for each other

    async def admit(
        self, caller: Caller, asked: SendTask, arrival: Arrival, first: Task | None = None, chosen: Chosen | None = None
    ) -> AdmittedCall:
        """The call that this request makes; with `first`, as a step of that one's workflow.

        Where it names only a skill, whoever is `chosen` for it; nobody yet: the first candidate that can take it.

        Raises AgentNotFound, SkillNotFound, TaskNotFound, TaskFinished, AgentUnavailable, NotAuthorized, CallLoop,
        InputRefused, ContentRefused, SignatureRequired, RateLimited, CircuitOpen.
        """
        asking = caller
        if asked.sender is not None:
            caller = await self._registry.speaking(caller, asked.sender, registered=asked.sender_registered)
        continued = None if asked.continues is None else await self._earlier.continued(caller, asked)
        if chosen is None and self._registry.names_only_skill(asked):
            return await self._routed(asking, caller, asked, arrival, first)
        agent = self._registry.target(caller, asked.agent if chosen is None else chosen.agent_id, continued)
        if not isinstance(agent, Agent):
            agent = await agent
        way = self._ways.of(agent, asked.skill if continued is None else continued.skill)
        authorize_call(caller, agent, way.skill)
        if self._signed_only or way.signed:
            refuse_unsigned(caller, agent, signed=arrival.signed)
        endpoint = endpoint_for(way, asked)
        if continued is not None and Feature.CONTINUE not in endpoint.features:
            raise NotSupported(f"{agent.id} takes no further messages in a task.", agent_id=agent.id)
        parent, chain = None, ()
        if (
            first is not None
            or caller.agent_id is not None
            or arrival.trace.parent_span_id is not None
            or asked.parent_id is not None
            or asked.within is not None
        ):
            parent, chain = await self._behind(asking, caller, asked, arrival, agent, first)
        message = asked.message
        remote: Remote | None = None
        if message.references:
            message = await self._earlier.with_references(caller, message, agent)
        if asked.context_id is not None and continued is None:
            remote = await self._earlier.remote_context(caller, asked.context_id, agent)
        if not (way.verbatim or asked.sealed):
            task_id = arrival.task_id if continued is None else continued.id
            message = checked(message, way, endpoint, self._files.host(caller.tenant, task_id, message.id))
        if asked.callback is not None and asked.callback.url is not None:
            await self._registry.may_dial(asked.callback.url)
        timeout_s = self._time_for(asked)
        if asked.continues is None and (caller.budget is not None or asked.context_id is not None):
            await self._spending.look_up(caller, asked)
            self._spending.refuse(caller, asked)
        call = AdmittedCall(
            caller=caller,
            operation=asked,
            agent=agent,
            endpoint=endpoint,
            skill=way.skill,
            message=message,
            task=continued or _opening(caller, asked, arrival, way, parent, chain, timeout_s, remote, chosen),
            timeout_s=timeout_s,
            deadline=arrival.since + timeout_s,
            signed=arrival.signed,
            durable=way.reports or (way.fetches and _has_file(asked.message)),
            compiled=way.compiled,
            others=() if chosen is None else chosen.others,
        )
        self._flow.admit(call, step=first is not None)
        return call

    async def _behind(
        self, asking: Caller, caller: Caller, asked: SendTask, arrival: Arrival, agent: Agent, first: Task | None
    ) -> tuple[Task | None, tuple[str, ...]]:
        """The call that a new one belongs to, and the agents that wait for it. Raises CallLoop."""
        if first is not None:
            # A step stands where the first call stands: the hub between them is no agent.
            return first, without_loop(first.chain, agent, self._max_depth)
        # Whoever only says that it is the target itself gives itself work; no agent waits for it.
        asking = asking if caller.agent_id == agent.id else caller
        parent = await self._parents.of(asking, asked, arrival.trace)
        return parent, chain_of(asking, agent, parent, self._max_depth)

    async def _routed(
        self, asking: Caller, caller: Caller, asked: SendTask, arrival: Arrival, first: Task | None
    ) -> AdmittedCall:
        """The call to the best of the agents that have the skill; who cannot take it is passed over.

        Raises AgentNotFound, AgentUnavailable, and why the first cannot take it where none can.
        """
        skill = asked.skill or ""
        choice = await self._router.choose(caller, skill, asked)
        refusals: list[tuple[str, DragomanError]] = []
        for place, agent in enumerate(choice.agents):
            passed = tuple([(agent_id, error.code) for agent_id, error in refusals])
            route = choice.route
            if passed:
                route = msgspec.structs.replace(route, chosen=agent.id, passed=passed)
            others = tuple([each.id for each in choice.agents[place + 1 : place + 1 + MOST_OTHERS]])
            try:
                call = await self.admit(
                    asking, asked, arrival, first, Chosen(agent_id=agent.id, route=route, others=others)
                )
            except DragomanError as error:
                refusals.append((agent.id, error))
            else:
                self._router.keep(caller, skill, asked.context_id, agent)
                return call
        raise refusals[0][1]

    async def elsewhere(self, opened: OpenedCall, code: str) -> OpenedCall | None:
        """The same call to the next of its candidates that can take it, where nothing was sent to the one it was for.

        None where there is nobody else. `code` says why that one did not get it.
        """
        call, task = opened.call, opened.task
        for place, agent_id in enumerate(call.others):
            try:
                agent = await self._registry.resolve(call.caller, agent_id)
                way = self._ways.of(agent, task.skill)
                authorize_call(call.caller, agent, way.skill)
                if way.signed:
                    refuse_unsigned(call.caller, agent, signed=call.signed)
                endpoint = endpoint_for(way, call.operation)
                without_loop(task.chain, agent, self._max_depth)
                message = call.operation.message
                if not (way.verbatim or call.operation.sealed):
                    message = checked(message, way, endpoint, self._files.host(task.tenant, task.id, message.id))
                moved = msgspec.structs.replace(
                    call,
                    agent=agent,
                    endpoint=endpoint,
                    skill=way.skill,
                    message=message,
                    compiled=way.compiled,
                    others=call.others[place + 1 :],
                )
                self._flow.admit(moved, step=True)  # Its caller has paid for it already.
            except DragomanError:
                continue
            self._router.keep(call.caller, task.skill or "", call.operation.context_id, agent)
            self._parents.moved(task, agent.id)
            if code == AgentUnavailable.code:
                self._router.missed(task)
            return msgspec.structs.replace(opened, call=moved, attempt=opened.attempt + 1)
        return None

    async def readmit(self, task: Task, left_s: float | None) -> AdmittedCall:
        """The call of a stored task that has so much time left, to be carried on later: is the agent still there?

        Raises AgentNotFound, AgentUnavailable and what `checked` raises.
        """
        caller = Caller(tenant=task.tenant, id=task.caller_id, agent_id=task.chain[-1] if task.chain else None)
        agent = await self._registry.resolve(caller, task.agent_id)
        endpoint = self._registry.endpoint_of(agent)
        # Nothing of it was sent yet, and others could have it: they get it when this one does not answer.
        others = () if task.route is None or task.attempt else task.route.untried()
        if not others or agent.status is not AgentStatus.UNREACHABLE:
            refuse_unavailable(agent, endpoint, waits=False)
        way = self._ways.of(agent, task.skill)
        left_s = self._max_timeout_s if left_s is None else left_s
        asked = _last_asked(task)
        message = asked.message
        if not way.verbatim and sealed_part(message.parts) is None:
            message = checked(message, way, endpoint, self._files.host(task.tenant, task.id, message.id))
        return AdmittedCall(
            caller=caller,
            operation=asked,
            agent=agent,
            endpoint=endpoint,
            skill=way.skill,
            message=message,
            task=task,
            timeout_s=left_s,
            deadline=self._clock.monotonic() + left_s,
            compiled=way.compiled,
            others=others,
        )

    def _time_for(self, asked: SendTask) -> float:
        if asked.wait is ACCEPTED:
            return min(asked.timeout_s or ACCEPTED_S, ACCEPTED_S)
        return min(asked.timeout_s or self._timeout_s, self._max_timeout_s)


def endpoint_for(way: Way, asked: SendTask) -> Endpoint:
    """Where the agent takes this call now. Raises AgentUnavailable, and what `refuse_unfit` raises."""
    agent, endpoint = way.agent, way.endpoint
    if endpoint is None:
        raise unspoken(agent)
    if agent.status is not ACTIVE:
        refuse_unavailable(agent, endpoint, waits=asked.wait is not ACCEPTED)
    if way.demanding or asked.sealed:
        refuse_unfit(agent, way.skill, endpoint, asked)
    return endpoint


def refuse_unavailable(agent: Agent, endpoint: Endpoint, *, waits: bool) -> None:
    """Raises AgentUnavailable for an agent that is paused or known to be away.

    One that connects to the hub may come back at any time: what nobody waits for can wait for that.
    """
    if agent.status is AgentStatus.UNREACHABLE and endpoint.via is Via.CONNECTED and not waits:
        return
    if agent.status is AgentStatus.QUARANTINED:
        raise AgentUnavailable(in_quarantine(agent), reason="quarantined", agent_id=agent.id)
    if agent.status is not ACTIVE:
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


def refuse_unsigned(caller: Caller, agent: Agent, *, signed: bool) -> None:
    """Raises SignatureRequired where the request was not signed; where nobody is asked who he is, it need not be."""
    if not signed and not (caller.admin and caller.id == OPERATOR.id):
        raise SignatureRequired(reason=SignatureProblem.MISSING.value, agent_id=agent.id)


def checked(message: Message, way: Way, endpoint: Endpoint, host: Host) -> Message:
    """The message as it will be sent: its input valid, complete, and in a form the target takes.

    Raises InputRefused naming each failing path, ContentRefused.
    """
    parts, skill, compiled = message.parts, way.skill, way.compiled
    takes_parts = _PARTS in endpoint.features
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


def _has_file(message: Message) -> bool:
    return any(isinstance(part, Blob) for part in message.parts)


def _last_asked(task: Task) -> SendTask:
    """What the target was last asked: the opening, or the message that continued it."""
    first, *later = history_of(task)
    for message in reversed(later):
        if message.role is Role.USER:
            return msgspec.structs.replace(task.asked, message=message, continues=task.id)
    return msgspec.structs.replace(task.asked, message=first) if later else task.asked


@lru_cache(maxsize=64)
def _span(seconds: float) -> timedelta:
    """So many seconds; kept, as most calls have the same time and it is dear to make."""
    return timedelta(seconds=seconds)


def _opening(
    caller: Caller,
    asked: SendTask,
    arrival: Arrival,
    way: Way,
    parent: Task | None,
    chain: tuple[str, ...],
    timeout_s: float,
    remote: Remote | None,
    chosen: Chosen | None,
) -> Task:
    at, card, skill = arrival.at, way.agent.card, way.skill
    task = Task(
        id=arrival.task_id,
        tenant=caller.tenant,
        caller_id=caller.id,
        agent_id=card.id,
        agent_version=card.version,
        dialect=arrival.dialect,
        # A UUID: there are agents that take no other name for a conversation.
        context_id=asked.context_id or uuid_at(at, arrival.trace.span_id),
        asked=asked,
        trace=arrival.trace,
        created_at=at,
        updated_at=at,
        skill=skill.id if skill else asked.skill,
        deadline=at + _span(timeout_s),
        parent_id=asked.parent_id if parent is None else parent.id,
        last_seq=1,
    )
    callbacks = () if asked.callback is None else (asked.callback,)
    if chain or callbacks or remote is not None or chosen is not None:
        # Apart: a call with more than fifteen names builds a dictionary of them first.
        route = None if chosen is None else chosen.route
        task = msgspec.structs.replace(task, chain=chain, callbacks=callbacks, remote=remote, route=route)
    return task
