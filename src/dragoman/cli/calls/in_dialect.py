"""`dragoman call --as DIALECT`: the call made at the agent's base in that dialect, and that dialect's own answer.

The words are those of the dialect's own half, as the hub would say them to an agent, by the agent's card in that
dialect. What is not settled by the first answer is asked for as callers of that dialect do.
"""

import asyncio
from functools import partial
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from dragoman.cli.calls.calling import GRACE_S, Asked, cancel_traced
from dragoman.cli.calls.interrupts import Interrupts
from dragoman.cli.exchange import progress
from dragoman.cli.fault import Exit, Fault
from dragoman.cli.hub import Hub
from dragoman.cli.output import Output
from dragoman.delivery.bridge import learn
from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect, Heard, Outgoing, Verb
from dragoman.dialects.refusals import failure_of
from dragoman.dialects.uuids import uuid_of
from dragoman.model.agent import Endpoint
from dragoman.model.content import Message, Part, Role, Text
from dragoman.model.errors import BadAgentReply, DragomanError, NotSupported
from dragoman.model.events import Remote, Sent
from dragoman.model.fit import Feature, fit_parts
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import fold, legal
from dragoman.model.objects import parts_of_object, read_plain_part
from dragoman.model.operations import SendTask
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.net import AddressRule, Client, ClientLimits, NetError
from dragoman.observe.trace import read_trace, trace_headers
from dragoman.ports.clock import SystemClock
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.errors import HubUnreachable

MAILBOX: Final = "/a2a/messages"  # where those who have no endpoint find what is told of their tasks
LOOK_S: Final = 5.0


def call_in(hub: Hub, output: Output, asked: Asked, slug: str) -> Json:
    """The dialect's answer, whatever it says. Raises Fault where there is none."""
    clock = SystemClock()
    dialect = DIALECTS[slug]
    try:
        card = asyncio.run(A2AClient(http=hub.http()).card(asked.agent, slug))
    except HubUnreachable as error:
        raise hub.unreachable(error.reason or "reset", sent=error.sent) from error
    except DragomanError as error:
        raise hub.failed(error) from error
    endpoint = dialect.read_card(card).endpoints[0]
    return _Talk(hub, output, asked, dialect, endpoint, clock).have()


class _Talk:
    """One message in one dialect, followed to its end."""

    def __init__(
        self, hub: Hub, output: Output, asked: Asked, dialect: Dialect, endpoint: Endpoint, clock: SystemClock
    ) -> None:
        self._hub = hub
        self._output = output
        self._asked = asked
        self._dialect = dialect
        self._clock = clock
        # The card shows its owner where the agent itself is: the call goes to where the hub speaks for it.
        url = f"{hub.url}/agents/{quote(asked.agent, safe='@')}/{dialect.slug}"
        self._endpoint = msgspec.structs.replace(endpoint, url=url, features=endpoint.features or dialect.features)
        self._me = uuid_of(clock.new_id("caller"))
        self._task = self._opening()
        self._answer: Json = None
        self._refused: DragomanError | None = None

    def have(self) -> Json:
        """Have it; the dialect's last answer. Raises Fault where the call failed, once that answer was shown."""
        interrupts = Interrupts(self._clock)
        deadline = self._clock.monotonic() + self._asked.timeout_s + GRACE_S
        try:
            asyncio.run(interrupts.carry(self._talk(deadline), self._cancelled))
        except NetError as error:
            raise self._hub.unreachable(error.kind.value, sent=error.sent) from error
        except DragomanError as error:
            self._refused = error
        if interrupts.counted:
            self._output.document(self._answer)
            raise KeyboardInterrupt
        if self._refused is None and self._task.state not in (TaskState.FAILED, TaskState.REJECTED):
            return self._answer
        if self._answer is not None:
            self._output.document(self._answer)
        told = (self._refused or failure_of(self._task)).message
        raise Fault(told[:1].lower() + told[1:].rstrip("."), next="read the answer", exit_code=Exit.FAILED)

    async def _talk(self, deadline: float) -> None:
        rule = AddressRule.of(("0.0.0.0/0", "::/0"), plain_http_anywhere=True)
        client = Client(clock=self._clock, rule=rule, limits=ClientLimits())
        shown = asyncio.get_running_loop().create_task(
            progress(self._clock, lambda: f"calling in {self._dialect.slug}", self._output)
        )
        ask = partial(self._ask, client, deadline)
        try:
            heard = await ask(Verb.SEND)
            if heard.settled:
                return
            if Feature.REPORTS in self._endpoint.features:
                await self._reported(client, deadline)
            elif Feature.GET in self._endpoint.features:
                async for _ in learn(None, partial(ask, Verb.GET), clock=self._clock, deadline=deadline):
                    pass
        finally:
            shown.cancel()
            await client.close()

    async def _ask(self, client: Client, deadline: float, verb: Verb) -> Heard:
        now = self._clock.now()
        outgoing = Outgoing(
            verb=verb,
            task=self._task,
            asked=self._task.asked,
            endpoint=self._endpoint,
            at=now,
            message=self._task.asked.message if verb is Verb.SEND else None,
            headers=trace_headers(self._task.trace, self._task.id),
            caller=self._me,
            timeout_ms=max(1, int((deadline - self._clock.monotonic()) * 1000)),
            hub_id=self._me,
        )
        request = self._dialect.ask(outgoing)
        if request is None:
            raise NotSupported(f"{self._dialect.slug} cannot ask for what became of it.")
        reply = await self._sent(client, request, deadline)
        heard = self._dialect.hear(outgoing, reply, self._clock.now())
        sent = (Sent(at=now, agent_id=self._asked.agent, remote=heard.remote),) if heard.remote is not None else ()
        kept = legal(self._task.state, (*sent, *heard.events))
        if kept:
            self._task = fold(self._task, kept)
        return heard

    async def _sent(self, client: Client, request: HttpRequest, deadline: float) -> HttpReply:
        request = msgspec.structs.replace(request, headers={**request.headers, **self._hub.credential()})
        reply = await client.send(request, deadline=deadline)
        try:
            self._answer = msgspec.json.decode(reply.body) if reply.body else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BadAgentReply(f"What answered HTTP {reply.status} there is no JSON.") from None
        return reply

    async def _reported(self, client: Client, deadline: float) -> None:
        """Wait for the message that ends the task, in this caller's mailbox."""
        task_id, cursor = self._task.id, 0
        while self._clock.monotonic() < deadline:
            query = urlencode({"after": cursor, "wait": LOOK_S, "agent": self._me})
            url = f"{self._hub.url}{MAILBOX}?{query}"
            reply = await self._sent(client, HttpRequest(method="GET", url=url, headers={}, body=b""), deadline)
            answer, self._answer = self._answer, None
            if reply.status != 200 or not is_object(answer):
                return
            cursor = answer.get("cursor") or 0
            told = [each for each in answer.get("messages") or () if is_object(each)]
            for message in told:
                payload = message.get("payload")
                if is_object(payload) and payload.get("task_id") == task_id:
                    self._answer = message
                    if payload.get("status") in ("completed", "failed", "cancelled"):
                        return

    async def _cancelled(self) -> bool:
        return await cancel_traced(self._hub.http(), self._task.trace.trace_id)

    def _opening(self) -> Task:
        body, now = self._asked.body, self._clock.now()
        task_id = self._clock.new_id("cli-")
        parts = fit_parts(_parts(body), self._endpoint.features, text_only=False, host=_no_host)
        context: JsonObject = body.get("context") or {}
        asked = SendTask(
            message=Message(id=f"msg-{task_id}", role=Role.USER, parts=parts),
            agent=self._asked.agent,
            skill=self._asked.skill,
            context_id=context.get("conversation_id"),
            timeout_s=self._asked.timeout_s,
        )
        return Task(
            id=task_id,
            tenant="default",
            caller_id=self._me,
            agent_id=self._asked.agent,
            agent_version="",
            dialect=self._dialect.slug,
            context_id=context.get("conversation_id") or uuid_of(task_id),
            asked=asked,
            trace=read_trace({}, self._clock.new_id("")),
            created_at=now,
            updated_at=now,
            skill=self._asked.skill,
            remote=Remote(context_id=context.get("conversation_id")) if context else None,
            last_seq=1,
        )


def _parts(body: JsonObject) -> tuple[Part, ...]:
    said = body.get("message")
    if isinstance(said, str):
        return (Text(text=said),)
    if is_array(said):
        return tuple(part for part in (read_plain_part(each) for each in said) if part is not None)
    return parts_of_object(body.get("input") or {})


def _no_host(number: int, _: object) -> str:
    raise NotSupported("This dialect takes no file inside a message.")
