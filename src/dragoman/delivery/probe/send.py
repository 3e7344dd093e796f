"""One real message to an agent that was looked at: whether it answers, how, and where its answer is.

This starts work and may cost the agent's owner money, so it happens only when somebody asks for it. An agent that
claims 0.3 and answered nothing so far is sent the message in the form of 0.1.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Final

import msgspec

from dragoman.delivery.bridge import learn
from dragoman.delivery.probe.asker import AGENT, Fetch
from dragoman.delivery.probe.findings import Examined, Oddity, Said, Spoken
from dragoman.delivery.probe.look import endpoint_of
from dragoman.delivery.probe.oddities import oddity, of_frame
from dragoman.delivery.probe.questions import V03, V10, frame_of
from dragoman.dialects.a2a_v03.legacy import LEGACY
from dragoman.dialects.dialect import Dialect, Heard, Outgoing, Verb
from dragoman.dialects.shapes import unwrapped
from dragoman.dialects.uuids import uuid_of
from dragoman.model.agent import AgentCard, Binding, Endpoint
from dragoman.model.content import Artifact, Message, Role, Text
from dragoman.model.errors import BadAgentReply, DragomanError
from dragoman.model.events import Sent, TaskEvent
from dragoman.model.fit import Feature, fit_parts
from dragoman.model.http import NO_HEADERS, Headers, HttpReply
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import fold, legal, output_of
from dragoman.model.operations import SendTask
from dragoman.model.states import TaskState
from dragoman.model.task import Task, Trace
from dragoman.net.errors import NetError
from dragoman.ports.clock import Clock

SEND_S: Final = 60.0
_NAIVE: Final = re.compile(rb'"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?"')


async def send(
    text: str,
    examined: Examined,
    *,
    fetch: Fetch,
    dialects: Mapping[str, Dialect],
    clock: Clock,
    credentials: Headers = NO_HEADERS,
    timeout_s: float = SEND_S,
) -> Examined:
    """The same findings, and what came of the message; without a dialect to say it in they stay as they are."""
    card = examined.card or _as_legacy(examined, dialects)
    if card is None:
        return examined
    endpoint = card.endpoints[0]
    talk = _Talk(endpoint, card, text, fetch=fetch, dialect=dialects[endpoint.dialect], clock=clock)
    said = await talk.have(credentials, clock.monotonic() + timeout_s)
    known = {each.id for each in examined.oddities}
    odd = (*examined.oddities, *(each for each in talk.oddities.values() if each.id not in known))
    changes: JsonObject = {"said": said, "oddities": tuple(sorted(odd, key=lambda each: int(each.id[1:])))}
    if examined.card is None and said.state == TaskState.COMPLETED:
        changes |= {"card": card, "spoken": (_legacy_spoken(endpoint), *examined.spoken)}
    return msgspec.structs.replace(examined, **changes)


class _Talk:
    """One message, followed to its end."""

    def __init__(
        self, endpoint: Endpoint, card: AgentCard, text: str, *, fetch: Fetch, dialect: Dialect, clock: Clock
    ) -> None:
        self.oddities: dict[str, Oddity] = {}
        self._fetch = fetch
        self._dialect = dialect
        self._clock = clock
        self._endpoint = endpoint
        self._official = dialect.slug in (V10, V03)  # the others have no other place or form
        self._polls = 0
        self._task = _task(text, card, endpoint, clock)

    async def have(self, credentials: Headers, deadline: float) -> Said:
        """Send, and ask until the task is settled or the time is over."""
        since = self._clock.monotonic()
        problem = ""
        try:
            heard = await self._ask(Verb.SEND, credentials, deadline)
            if not heard.settled and Feature.REPORTS in self._endpoint.features:
                problem = "it took the message, and reports to a hub, not here"
            elif not heard.settled:
                if Feature.ANSWERS in self._endpoint.features:
                    self._odd("Q2", "a send never returns the result")
                can_ask = Feature.GET in self._endpoint.features
                get = partial(self._ask, Verb.GET, credentials, deadline) if can_ask else None
                async for _ in learn(None, get, clock=self._clock, deadline=deadline):
                    self._polls += 1
        except (DragomanError, NetError) as error:
            problem = str(error)
        return self._said(problem, (self._clock.monotonic() - since) * 1000)

    async def _ask(self, verb: Verb, credentials: Headers, deadline: float) -> Heard:
        """One request and what its answer says. Raises DragomanError, NetError."""
        try:
            return await self._exchange(verb, credentials, deadline)
        except BadAgentReply as error:
            version = error.details.get("try_version")
            if not isinstance(version, str) or self._endpoint.version == version:
                raise
        self._endpoint = msgspec.structs.replace(self._endpoint, version=version)
        return await self._exchange(verb, credentials, deadline)

    async def _exchange(self, verb: Verb, credentials: Headers, deadline: float) -> Heard:
        now = self._clock.now()
        outgoing = Outgoing(
            verb=verb,
            task=self._task,
            asked=self._task.asked,
            endpoint=self._endpoint,
            at=now,
            message=self._task.asked.message if verb is Verb.SEND else None,
            headers={b"user-agent": AGENT, **credentials},
            caller="dragoman-doctor",
            timeout_ms=max(1, int((deadline - self._clock.monotonic()) * 1000)),
        )
        request = self._dialect.ask(outgoing)
        if request is None:
            raise BadAgentReply("it named no task that could be asked for", reason="not_finished")
        reply = await self._fetch(request, deadline)
        heard = self._dialect.hear(outgoing, reply, self._clock.now())
        sent = (Sent(at=now, agent_id="", remote=heard.remote),) if heard.remote is not None else ()
        events: list[TaskEvent] = legal(self._task.state, (*sent, *heard.events))
        if events:
            self._task = fold(self._task, events)
        self._notice(reply)
        return heard

    def _said(self, problem: str, ms: float) -> Said:
        task = self._task
        places = _places(task)
        answer = "".join(part.text for part in output_of(task) if isinstance(part, Text))
        if task.ended and places and self._official:
            self._notice_places(places)
        failure = task.failure.message if task.failure is not None else ""
        reached = task.last_seq > 0
        return Said(
            dialect=self._dialect.slug,
            binding=self._endpoint.binding,
            state=task.state.value if reached else None,
            text=answer,
            places=places,
            polls=self._polls,
            ms=ms,
            problem=problem or failure,
        )

    def _notice(self, reply: HttpReply) -> None:
        """What is odd about the form of an answer."""
        frame = frame_of(reply)
        known = of_frame(frame, None)
        if known is not None:
            self.oddities.setdefault(known.id, known)
        if _NAIVE.search(reply.body):
            self._odd("Q3", "times without a zone")
        remote = self._task.remote
        if remote is not None and remote.task_id is not None and ":" in remote.task_id:
            self._odd("Q22", "ids of tasks have a colon in them")
        if not self._official:
            return
        result = _result_of(frame)
        if is_object(result.get("message")) and is_object(result.get("status")):
            self._odd("Q28", "the caller's own message comes back beside the task")
        kind, value = unwrapped(result)
        status = value.get("status")
        if kind == "task" and is_object(status) and not status.get("timestamp"):
            self._odd("Q13", "a status without its time")
        if self._dialect.slug == V10 and kind == "task" and value.get("kind") == "task":
            self._odd("Q23", "objects of 1.0 say their kind as in 0.3")

    def _notice_places(self, places: tuple[str, ...]) -> None:
        """What is odd about where an answer is."""
        if places[0] == "status message":
            self._odd("Q10", "the answer is in the status message alone")
        elif places[0] == "history":
            self._odd("Q11", "the answer is in the history alone")
        if len(places) > 1:
            self._odd("Q26", f"the same answer stands in {' and '.join(places)}")
        if any(len(_texts(artifact)) > 1 for artifact in self._task.artifacts):
            self._odd("Q12", "the text comes in several parts")

    def _odd(self, number: str, seen: str) -> None:
        self.oddities.setdefault(number, oddity(number, seen))


def _task(text: str, card: AgentCard, endpoint: Endpoint, clock: Clock) -> Task:
    now = clock.now()
    name = clock.new_id("task-doctor-")
    parts = fit_parts((Text(text=text),), endpoint.features, text_only=False, host=lambda _, __: "")
    skill = card.default_skill or (card.skills[0].id if card.skills else None)
    return Task(
        id=name,
        tenant="default",
        caller_id="dragoman-doctor",
        agent_id=card.id,
        agent_version=card.version,
        dialect=endpoint.dialect,
        context_id=uuid_of(name),
        asked=SendTask(message=Message(id=f"msg-{name}", role=Role.USER, parts=parts), skill=skill),
        trace=Trace(trace_id="0" * 32, span_id="0" * 16),
        created_at=now,
        updated_at=now,
        skill=skill,
        deadline=now + timedelta(seconds=SEND_S),
    )


def _as_legacy(examined: Examined, dialects: Mapping[str, Dialect]) -> AgentCard | None:
    """The card of an agent that answered nothing, as one of 0.1: only if it claims 0.3."""
    found = examined.found
    claimed = [] if found is None else [each for each in found.card.endpoints if each.dialect == V03]
    if found is None or not claimed:
        return None
    spoken = _legacy_spoken(claimed[0])
    endpoint = endpoint_of(spoken, dialects, streaming=False)
    return msgspec.structs.replace(found.card, endpoints=(endpoint,))


def _legacy_spoken(endpoint: Endpoint) -> Spoken:
    return Spoken(
        dialect=V03,
        binding=Binding.JSONRPC,
        url=endpoint.url or "",
        claimed=True,
        answered=True,
        evidence="tasks/send → a result",
        version=LEGACY,
        note="A2A 0.1",
    )


def _places(task: Task) -> tuple[str, ...]:
    """Where agents leave an answer, and where this one did; the first is the one that counts."""
    found: list[str] = []
    if task.direct and task.messages:
        return ("a message",)
    if any(_texts(artifact) or len(artifact.parts) for artifact in task.artifacts):
        found.append("artifacts")
    said = task.status_message
    if said is not None and said.role is not Role.USER and said.parts:
        found.append("status message")
    if any(message.role is Role.AGENT and message.parts for message in task.messages):
        found.append("history")
    return tuple(found)


def _texts(artifact: Artifact) -> list[str]:
    return [part.text for part in artifact.parts if isinstance(part, Text)]


def _result_of(frame: JsonObject | None) -> JsonObject:
    result: Json = None if frame is None else frame.get("result")
    if is_array(result) or not is_object(result):
        return {}
    return result
