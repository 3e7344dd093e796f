"""Send one request to an agent over HTTP: with the target's own credential, the trace, and one deadline.

What the network does is put into the hub's own errors by `told` alone; who knows the call says it.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from typing import Final

from dragoman.dialects.sse import SseEvent, SseParser, is_stream
from dragoman.dialects.times import retry_after_s
from dragoman.model.errors import (
    AgentTimeout,
    AgentUnavailable,
    BadAgentReply,
    DragomanError,
)
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.net.client import Client
from dragoman.net.errors import NetError, Reach
from dragoman.net.tls import ClientIdentity
from dragoman.ports.courier import Told

CANCEL_S: Final = 5.0
MAX_CARD: Final = 256 * 1024

_UNAVAILABLE: Final = {
    Reach.FORBIDDEN: "The hub may not call the agent's address.",
    Reach.UNRESOLVED: "The agent's host name does not resolve.",
    Reach.REFUSED: "The agent refused the connection.",
    Reach.TLS: "The agent's certificate could not be verified.",
    Reach.RESET: "The agent closed the connection before it answered.",
    Reach.CLOSED: "The hub is shutting down.",
}
_UNUSABLE: Final = {
    Reach.PROTOCOL: "The agent's answer is not HTTP.",
    Reach.TOO_LARGE: "The agent's answer is too large.",
    Reach.COMPRESSED: "The agent sent a compressed answer, which was not asked for.",
}


class Wire:
    """The HTTP transport of calls."""

    def __init__(self, *, client: Client, max_answer: int) -> None:
        self._client = client
        self._max_answer = max_answer

    def send(
        self, request: HttpRequest, *, deadline: float, identity: ClientIdentity | None = None
    ) -> Coroutine[None, None, HttpReply]:
        """The agent's reply; `identity` is the client certificate for it. Raises NetError, which `told` explains."""
        return self._client.send(
            request, deadline=deadline, max_body=self._max_answer, follow_slash=True, identity=identity
        )

    async def stream(
        self,
        request: HttpRequest,
        *,
        agent_id: str,
        deadline: float,
        timeout_ms: int,
        idle_s: float,
        identity: ClientIdentity | None = None,
    ) -> AsyncGenerator[HttpReply | Sequence[SseEvent]]:
        """The events of the agent's answer, those that have gathered together; or the whole reply, if it is no stream.

        Raises AgentUnavailable, AgentTimeout, BadAgentReply.
        """
        try:
            async with self._client.stream(
                request, deadline=deadline, idle_s=idle_s, follow_slash=True, identity=identity
            ) as answer:
                if answer.status != 200 or not is_stream(answer.headers):
                    body = await self._whole(answer.chunks)
                    yield HttpReply(status=answer.status, headers=answer.headers, body=body)
                    return
                parser = SseParser()
                async for piece in answer.chunks:
                    events = parser.feed(piece)
                    if events:
                        yield events
        except NetError as error:
            raise told(error, agent_id, timeout_ms) from error

    async def _whole(self, chunks: AsyncIterator[bytes]) -> bytes:
        body = bytearray()
        async for piece in chunks:
            body += piece
            if len(body) > self._max_answer:
                raise NetError(Reach.TOO_LARGE)
        return bytes(body)

    async def post(self, request: HttpRequest, deadline: float) -> Told:
        """Tell somebody something, once; never raises. Any 2xx is delivery, a redirect is not."""
        try:
            reply = await self._client.send(request, deadline=deadline, max_body=MAX_CARD)
        except NetError as error:
            return Told(delivered=False, reason=str(error))
        reason = f"HTTP {reply.status}"
        return Told(
            delivered=200 <= reply.status < 300,
            gone=reply.status == 410,
            status=reply.status,
            reason=reason,
            retry_after_s=retry_after_s(reply.headers) if reply.status in (429, 503) else None,
        )

    async def fetch(self, request: HttpRequest, deadline: float, identity: ClientIdentity | None = None) -> HttpReply:
        """A small document, such as a card; no redirect is followed. Raises NetError."""
        return await self._client.send(request, deadline=deadline, max_body=MAX_CARD, identity=identity)

    async def check(self, url: str) -> None:
        """Raises NetError if this address may not be dialled."""
        await self._client.check(url)


def told(error: NetError, agent_id: str, timeout_ms: int) -> DragomanError:
    """A network error as what it means for the call."""
    if error.kind is Reach.TIMEOUT:
        return AgentTimeout(timeout_ms=timeout_ms, agent_id=agent_id)
    if error.kind in _UNUSABLE:
        return BadAgentReply(_UNUSABLE[error.kind], reason=str(error.kind), agent_id=agent_id)
    return AgentUnavailable(
        _UNAVAILABLE.get(error.kind, "The agent cannot be reached."), reason=str(error.kind), agent_id=agent_id
    )
