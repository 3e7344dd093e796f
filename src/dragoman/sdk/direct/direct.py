"""`A2AClient.direct`: the same client on one agent, with no hub in between.

The client speaks to a hub in the platform's words. Here it speaks to an object that answers in those words and calls
the one agent itself, so that results, errors, streams and handles are the client's own.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Final

import msgspec

from dragoman.dialects.dialect import Level, Route
from dragoman.dialects.platform import DIALECT
from dragoman.dialects.platform.inbound import PlatformExchange, read
from dragoman.dialects.sse import STREAM_HEADERS
from dragoman.model.answers import Card
from dragoman.model.content import Part, Text
from dragoman.model.errors import AgentNotFound, DragomanError, NotSupported
from dragoman.model.events import StatusChanged
from dragoman.model.http import HttpRequest
from dragoman.model.json import Json, is_array, is_object
from dragoman.model.objects import read_plain_part
from dragoman.model.operations import CancelTask, FollowTask, GetCard, GetTask, Operation, SendTask, Unreadable, Wait
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from dragoman.net import Streamed
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.client.http import NO_HEADERS, Events, HubHttp, Reply
from dragoman.sdk.direct.calls import OneAgent
from dragoman.security.key_manager import KeyManager

_encode = msgspec.json.Encoder().encode
_SEPARATOR: Final = "/"


def direct(
    url: str, dialect: str | None = None, keys: KeyManager | None = None, *, clock: Clock | None = None
) -> A2AClient:
    """A client of the one agent at that URL. Asks nothing yet; `dialect` is one to speak whatever else it offers."""
    return A2AClient(http=DirectHttp(url, dialect, keys or KeyManager(), clock or SystemClock()))


class DirectHttp(HubHttp):
    """What the client takes for its hub: one agent, and the calls made to it from here."""

    def __init__(self, url: str, dialect: str | None, keys: KeyManager, clock: Clock) -> None:
        """No token is read: none is shown to anybody but the agent, and that is the key manager's."""
        self.url = url
        self.clock = clock
        self.refused_tokens = []
        self._agent = OneAgent(url, dialect, keys, clock)

    def use_token(self, token: str) -> None:
        """There is no hub to show a token to."""
        raise NotSupported("A client without a hub takes its credentials from keys=KeyManager(…).")

    async def close(self) -> None:
        """Close the connections of the running loop."""
        await self._agent.close()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        headers: Mapping[str, str] = NO_HEADERS,
        timeout_s: float,
        repeatable: bool | None = None,
    ) -> Reply:
        """The answer that a hub would give. Raises what keeps the agent from being called."""
        exchange = self._exchange(method, path, body, headers)
        answer = exchange.reply(await self._answer(exchange, body))
        return self._reply(answer.status, answer.headers, answer.body)

    def stream(
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        headers: Mapping[str, str] = NO_HEADERS,
        timeout_s: float,
        idle_s: float,
    ) -> AbstractAsyncContextManager[Events]:
        """The stream that a hub would give. Iterating raises what keeps the agent from being called."""
        return self._streamed(self._exchange(method, path, body, headers), body)

    @asynccontextmanager
    async def _streamed(self, exchange: PlatformExchange, body: Json) -> AsyncGenerator[Events]:
        async with aclosing(self._frames(exchange, body)) as chunks:
            yield Events(self, Streamed(status=200, headers=STREAM_HEADERS, chunks=chunks))

    async def _frames(self, exchange: PlatformExchange, body: Json) -> AsyncGenerator[bytes]:
        frames = exchange.stream("", "").frames
        async with aclosing(self._items(exchange, body)) as items:
            async for item in items:
                if isinstance(item, Snapshot):
                    frames = exchange.stream(item.task.id, item.task.context_id).frames
                if framed := frames(item):
                    yield framed

    async def _items(self, exchange: PlatformExchange, body: Json) -> AsyncGenerator[StreamItem]:
        operation = _readable(exchange.operation)
        if isinstance(operation, FollowTask):
            # What happened to it was told to whoever streamed it; how it stands can be told again.
            task = self._agent.task(operation.task_id)
            yield Snapshot(task=task)
            if not task.ended:
                yield Ended(seq=task.last_seq, event=StatusChanged(at=task.updated_at, state=task.state), task=task)
            return
        if not isinstance(operation, SendTask):
            raise _needs_a_hub()
        async with aclosing(self._agent.stream(_with_message(operation, body), exchange.request.headers)) as items:
            async for item in items:
                yield item

    async def _answer(self, exchange: PlatformExchange, body: Json) -> Task | Card:
        operation = _readable(exchange.operation)
        match operation:
            case SendTask(wait=Wait.END, then=()):
                return await self._agent.send(_with_message(operation, body), exchange.request.headers)
            case GetTask(task_id=task_id):
                return self._agent.task(task_id)
            case CancelTask(task_id=task_id):
                reason: Json = body.get("reason") if is_object(body) else None
                return await self._agent.cancel(task_id, reason if isinstance(reason, str) else None)
            case GetCard(agent=name):
                agent = await self._agent.agent()
                if name not in (agent.id, *agent.card.aliases):
                    raise AgentNotFound(f"{self.url} is {agent.id}, not {name}.")
                return Card(agent=agent, owner=True, protected=bool(agent.card.auth))
            case _:
                raise _needs_a_hub()

    def _exchange(self, method: str, path: str, body: Json, headers: Mapping[str, str]) -> PlatformExchange:
        plain, _, _ = path.partition("?")
        for route in DIALECT.routes:
            params = _matched(route, method, plain)
            if params is not None:
                break
        else:
            raise _needs_a_hub()
        # There is an agent, whether or not it is named: so no skill need be.
        params.setdefault("agent", str(body.get("target_agent_id") or "") if is_object(body) else "")
        sent = {name.lower().encode(): value.encode("latin-1", "replace") for name, value in headers.items()}
        return read(
            HttpRequest(
                method=method,
                url=path,
                headers={**sent, b"content-type": b"application/json"},
                body=b"" if body is None else _encode(body),
                id=self.clock.new_id(""),
                at=self.clock.now(),
                route=route.name,
                params=params,
                hub=self.url,
            )
        )


def _matched(route: Route, method: str, path: str) -> dict[str, str] | None:
    """What a path names, where it is that route's."""
    wanted, given = route.path.split(_SEPARATOR), path.split(_SEPARATOR)
    if route.level is not Level.HUB or route.method != method or len(wanted) != len(given):
        return None
    params: dict[str, str] = {}
    for pattern, segment in zip(wanted, given, strict=True):
        if pattern.startswith("{"):
            params[pattern.strip("{}")] = segment
        elif pattern != segment:
            return None
    return params


def _readable(operation: Operation) -> Operation:
    if isinstance(operation, Unreadable):
        raise operation.error
    return operation


def _with_message(asked: SendTask, body: Json) -> SendTask:
    """What is asked, with the words or parts that stand in place of an input."""
    said: Json = body.get("message") if is_object(body) else None
    parts: list[Part | None] = []
    if isinstance(said, str):
        parts = [Text(text=said)]
    elif is_array(said):
        parts = [read_plain_part(part) for part in said]
    known = tuple(part for part in parts if part is not None)
    if not known:
        return asked
    return msgspec.structs.replace(asked, message=msgspec.structs.replace(asked.message, parts=known))


def _needs_a_hub() -> DragomanError:
    return NotSupported("This needs a hub: a client of one agent calls it, streams, and goes on with its own calls.")
