"""One request, one reply, for every path alike: the only place that turns errors into answers.

    body within its cap, not too deep → read → authenticate → answer
                                          └── refuse, in the words of what was asked, whatever goes wrong

An unexpected exception is told to nobody but the log: the caller gets an id to ask about.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import msgspec

from dragoman.dialects.dialect import ChangesExchange, Dialect, Exchange, StreamExchange
from dragoman.dialects.sse import STREAM_HEADERS
from dragoman.hub.authenticate import ANONYMOUS, Authenticator
from dragoman.hub.files import Files
from dragoman.hub.handle import Hub
from dragoman.hub.signatures import Signatures
from dragoman.model.answers import Answer, Changes, Stream
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadFrame, BadSignature, DragomanError, NotAuthenticated, NotAuthorized
from dragoman.model.fit import Feature
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_array
from dragoman.model.operations import Operation
from dragoman.model.task import Task
from dragoman.observe.metrics import STREAM_KINDS, Metrics
from dragoman.observe.names import REFUSED
from dragoman.observe.noticed import Noticed
from dragoman.observe.trace import read_trace, said_trace
from dragoman.ports.clock import Clock
from dragoman.server.body import check_depth, read_body
from dragoman.server.hosts import Hosts
from dragoman.server.proxies import Proxies
from dragoman.server.streaming import EXTENSION, ByteStream, StreamReply, send_stream

# ASGI's own types are dictionaries of anything; they end in this folder.
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOG: Final = logging.getLogger("dragoman.server")
_BODILESS: Final = frozenset({"GET", "HEAD"})
STREAM_PAGES: Final = {"/v1/agents/connect": "session"}  # whose streams are no feeds for people
PROTECTED_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_HOW: Final = b"www-authenticate"
_BEARER: Final = b"Bearer"
_ONCE: Final = frozenset({b"authorization", b"x-api-key", b"idempotency-key", b"x-request-id", b"content-type"}) | {
    *(b"webhook-id", b"webhook-timestamp", b"webhook-signature", b"x-signature", b"x-timestamp"),
}


class Asked(Protocol):
    """A request that was read: it can at least be refused in its own words."""

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal."""
        ...


Read = TypeVar("Read", bound=Asked)
Given = TypeVar("Given")
Reply = HttpReply | StreamReply


class Spoken(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What has to be known of the dialect that a request is in."""

    slug: str
    task_prefix: str  # how ids of what is asked begin
    inline: bool  # it has a place for files inside
    batches: bool = False


def spoken_of(dialect: Dialect) -> Spoken:
    """The same, of one dialect."""
    return Spoken(
        slug=dialect.slug,
        task_prefix=dialect.task_prefix,
        inline=Feature.INLINE in dialect.features or Feature.PARTS not in dialect.features,
        batches=dialect.batches,
    )


class Served(Protocol[Read, Given]):
    """What serves a path: reads a request, answers what it read, and puts the answer into words."""

    @property
    def cap(self) -> int:
        """How large a body may be."""
        ...

    @property
    def public(self) -> bool:
        """Whether anybody may see it; then no credential is looked at."""
        ...

    @property
    def name(self) -> str:
        """The path's own name, for what reads it."""
        ...

    @property
    def read(self) -> Callable[[HttpRequest], Read]:
        """What a request asks; never raises."""
        ...

    def said(self, asked: Read, /) -> tuple[Operation | None, Spoken]:
        """What the hub is asked, where it is one thing, and in whose words."""
        ...

    def answer(self, asked: Read, caller: Caller, arrival: Arrival) -> Awaitable[Given]:
        """The answer. Raises DragomanError, at once or when awaited."""
        ...

    def worded(self, asked: Read, given: Given, /) -> Reply:
        """The answer as it is sent. Raises DragomanError."""
        ...


class DialectRoute:
    """A path that a dialect serves."""

    def __init__(self, dialect: Dialect, name: str, cap: int, hub: Hub, files: Files) -> None:
        if dialect.read is None:
            raise ValueError(f"{dialect.slug} has routes but reads nothing")
        self._handle = hub.handle
        self.read: Final = dialect.read
        self.name = name
        self.cap = cap
        self.public = False
        self._spoken = spoken_of(dialect)
        self._files = files

    def said(self, asked: Exchange) -> tuple[Operation, Spoken]:
        """What the request asks, in the route's own dialect."""
        return asked.operation, self._spoken

    def answer(self, asked: Exchange, caller: Caller, arrival: Arrival) -> Awaitable[Answer]:
        """The hub's answer."""
        return self._handle(caller, asked.operation, arrival)

    def worded(self, asked: Exchange, answer: Answer) -> Reply:
        """The same in the dialect's words."""
        return worded(asked, answer, self._spoken, self._files)


def worded(asked: Exchange, answer: Answer, spoken: Spoken, files: Files) -> Reply:
    """An answer in the words of the request; files by link, where its dialect has no place for them."""
    if not isinstance(answer, Task):  # That first: it is what is mostly answered.
        if isinstance(answer, Stream) and isinstance(asked, StreamExchange):
            streaming = asked.stream(answer.task_id, answer.context_id)
            linked = None if spoken.inline else partial(files.linked_item, answer.tenant, answer.task_id)
            body = ByteStream(answer.items, streaming.frames, linked, streaming.broken, streaming.nothing_left)
            return StreamReply(headers=streaming.headers, body=body)
        if isinstance(answer, Changes) and isinstance(asked, ChangesExchange):
            return StreamReply(headers=STREAM_HEADERS, body=ByteStream(answer.items, asked.changes()))
    return asked.reply(answer if spoken.inline else files.linked(answer))


class Exchanger:
    """Answers requests, whatever serves them."""

    def __init__(
        self,
        *,
        authenticator: Authenticator,
        signatures: Signatures,
        clock: Clock,
        hosts: Hosts,
        public_url: str,
        depth: int,
        noticed: Noticed,
        metrics: Metrics,
        proxies: Proxies | None = None,
    ) -> None:
        self._noticed = noticed
        self._metrics = metrics
        self._requests = metrics.requests
        self._stream_closed = {kind: partial(metrics.stream_closed, kind) for kind in STREAM_KINDS}
        self._proxies = proxies
        self._authenticator = authenticator
        self._signatures = signatures
        self._clock = clock
        self._hosts = hosts
        self._public_url = public_url
        self._depth = depth

    async def exchange(
        self, scope: Scope, receive: Receive, send: Send, served: Served[Read, Given], params: Mapping[str, str]
    ) -> None:
        """Answer one request that came through ASGI."""
        since = self._clock.monotonic()
        raw: list[tuple[bytes, bytes]] = scope["headers"]
        method: str = scope["method"]
        path: str = scope["path"]
        query: bytes = scope["query_string"]
        client: tuple[str, int] | None = scope.get("client")
        url = f"{path}?{query.decode('ascii', 'replace')}" if query else path
        headers, body, refused = dict(raw), b"", None
        try:
            self._hosts.check(headers)
            if len(headers) != len(raw):
                _check_once(raw)
            if method not in _BODILESS:
                body = await read_body(receive, served.cap)
                check_depth(body, self._depth)
        except DragomanError as error:
            refused, body = error, b""
        work = self._reply(served, params, method, url, headers, body, client[0] if client else "", since, refused)
        refused = None  # Let go of it: an error and the frame that caught it hold each other, and the body with them.
        reply = await work
        if isinstance(reply, StreamReply):
            better = scope.get("extensions", {}).get(EXTENSION)
            await (send_stream(reply, receive, send) if better is None else better["send"](reply))
            return
        await send({"type": "http.response.start", "status": reply.status, "headers": [*reply.headers.items()]})
        await send({"type": "http.response.body", "body": reply.body})

    def post(
        self,
        served: Served[Read, Given],
        params: Mapping[str, str],
        url: str,
        headers: dict[bytes, bytes],
        body: bytes,
        address: str,
    ) -> Awaitable[Reply]:
        """The reply to a POST that came whole, within its cap, with each header once."""
        since = self._clock.monotonic()
        try:
            self._hosts.check(headers)
            check_depth(body, self._depth)
        except DragomanError as error:
            return self._reply(served, params, "POST", url, headers, b"", address, since, error)
        return self._reply(served, params, "POST", url, headers, body, address, since, None)

    async def caller(self, raw: list[tuple[bytes, bytes]], address: str) -> Caller:
        """Who opens a connection with these headers. Raises DragomanError."""
        headers = dict(raw)
        self._hosts.check(headers)
        _check_once(raw)
        if self._proxies is not None:
            address = self._proxies.client(address, headers.get(b"x-forwarded-for"))
        try:
            return await self._authenticator.caller(headers.get(b"authorization"), headers.get(b"x-api-key"), address)
        except NotAuthenticated:
            self._authenticator.failed(address)
            raise

    async def _reply(
        self,
        served: Served[Read, Given],
        params: Mapping[str, str],
        method: str,
        url: str,
        headers: Mapping[bytes, bytes],
        body: bytes,
        address: str,
        since: float,
        refused: DragomanError | None,
    ) -> Reply:
        """The reply, with the ids that tell which call it was."""
        clock = self._clock
        if self._proxies is not None:
            address = self._proxies.client(address, headers.get(b"x-forwarded-for"))
        request = HttpRequest(
            method=method,
            url=url,
            headers=headers,
            body=body,
            id=clock.new_id(""),
            at=clock.now(),
            route=served.name,
            params=params,
            hub=self._public_url,
        )
        asked = served.read(request)
        operation, spoken = served.said(asked)
        arrival = _arrival(request, operation, spoken, since, address)
        if refused is None:
            caller = ANONYMOUS
            try:
                if not served.public:
                    authorization, api_key = headers.get(b"authorization"), headers.get(b"x-api-key")
                    known = self._authenticator.remembered(authorization, api_key)
                    caller = known or await self._authenticator.caller(authorization, api_key, address)
                    if b"webhook-signature" in headers or b"x-signature" in headers:
                        arrival = await self._signatures.checked(caller, headers, body, arrival)
                reply = served.worded(asked, await served.answer(asked, caller, arrival))
            except Exception as error:  # noqa: BLE001 - the boundary: whatever it was, it is answered
                reply = self._failed(asked, error, headers, arrival, caller, public=served.public)
        else:
            reply = self._refused(asked, refused, arrival)
        kind = served.name if operation is None else type(operation).__name__
        self._requests[spoken.slug, kind, reply.status] += 1
        return self._sent(reply, arrival, served.name)

    def _sent(self, reply: Reply, arrival: Arrival, route: str) -> Reply:
        """The reply with the ids of its request; a stream is counted for as long as it goes on."""
        trace = arrival.trace
        ids = {
            b"x-request-id": arrival.request_id.encode("ascii", "replace"),
            b"x-trace-id": (trace.given_id or f"trace_{trace.trace_id}").encode("ascii", "replace"),
            b"x-span-id": f"span_{trace.span_id}".encode(),
        }
        if isinstance(reply, HttpReply):
            headers = {**reply.headers, b"content-length": b"%d" % len(reply.body), **ids}
            return HttpReply(status=reply.status, headers=headers, body=reply.body)
        kind = "caller" if arrival.dialect else STREAM_PAGES.get(route, "feed")
        self._metrics.stream_opened(kind)
        reply.body.counted = self._stream_closed[kind]
        return StreamReply(status=reply.status, headers={**reply.headers, **ids}, body=reply.body)

    def _failed(
        self,
        asked: Asked,
        error: Exception,
        headers: Mapping[bytes, bytes],
        arrival: Arrival,
        caller: Caller,
        *,
        public: bool,
    ) -> HttpReply:
        """The answer to what went wrong."""
        if not isinstance(error, DragomanError):
            # The boundary: a bug of ours must not take the connection down, nor show its inside.
            LOG.exception("a request broke inside the hub", extra={"fields": {"error_id": arrival.request_id}})
            broken = DragomanError(
                "The hub failed; its log has the details under this id.", error_id=arrival.request_id
            )
            self._metrics.refused(arrival.dialect, broken)
            return asked.refuse(broken)
        reply = self._refused(asked, error, arrival, caller)
        if isinstance(error, BadSignature):
            return reply  # No guess at a credential: that one was right.
        if (
            isinstance(error, NotAuthenticated)
            and not public
            and (b"authorization" in headers or b"x-api-key" in headers)
        ):
            self._authenticator.failed(arrival.address)
        return self.challenged(reply, headers, error) if isinstance(error, NotAuthenticated | NotAuthorized) else reply

    def _refused(self, asked: Asked, error: DragomanError, arrival: Arrival, caller: Caller = ANONYMOUS) -> HttpReply:
        """The refusal in the words of what was asked, and a line of it: nothing else keeps that it was asked."""
        self._metrics.refused(arrival.dialect, error)
        self._noticed.note(
            REFUSED,
            arrival.address if caller.anonymous else caller.key_id or caller.id,
            error.code,
            reason=error.details.get("reason"),
            caller=None if caller.anonymous else caller.name,
            dialect=arrival.dialect or None,
            request_id=arrival.request_id,
            trace_id=arrival.trace.given_id or f"trace_{arrival.trace.trace_id}",
            address=arrival.address or None,
        )
        return asked.refuse(error)

    def declined(self, error: DragomanError, address: str, dialect: str = "") -> None:
        """A handshake was refused: it is counted, and leaves a line."""
        self._metrics.refused(dialect, error)
        reason = error.details.get("reason")
        self._noticed.note(REFUSED, address, error.code, reason=reason, dialect=dialect or None, address=address)

    def challenged(self, reply: HttpReply, headers: Mapping[bytes, bytes], error: DragomanError) -> HttpReply:
        """A refusal that says where clients learn how to get a credential, or one that reaches further (RFC 9728)."""
        if reply.headers.get(_HOW, _BEARER) != _BEARER:
            return reply  # It says by itself what it takes.
        missing: Json = error.details.get("missing")
        told = f'Bearer resource_metadata="{self._public_url}{PROTECTED_RESOURCE}"'
        if reply.status == 403 and is_array(missing):
            told += f', error="insufficient_scope", scope="{" ".join(_plain(scope) for scope in missing)}"'
        elif reply.status != 401:
            return reply
        elif b"authorization" in headers or b"x-api-key" in headers:
            told += ', error="invalid_token"'
        return msgspec.structs.replace(reply, headers={**reply.headers, _HOW: told.encode("ascii", "replace")})


def _arrival(request: HttpRequest, operation: Operation | None, spoken: Spoken, since: float, address: str) -> Arrival:
    trace = read_trace(request.headers, request.id)
    if trace.parent_span_id is None and trace.given_id is None and (said := said_trace(operation)):
        trace = read_trace(said, request.id)
    given_id = request.headers.get(b"x-request-id")
    return Arrival(
        task_id=spoken.task_prefix + request.id,
        request_id=given_id.decode("ascii", "replace") if given_id else f"req_{request.id}",
        at=request.at,
        dialect=spoken.slug,
        trace=trace,
        since=since,
        address=address,
    )


def _plain(scope: Json) -> str:
    """A scope as it may stand in a header (RFC 6749, 3.3)."""
    return "".join(sign for sign in str(scope) if "!" <= sign <= "~" and sign not in '"\\')


def _check_once(raw: list[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in raw if name in _ONCE]
    if len(names) != len(set(names)):
        raise BadFrame(f"Send {', '.join(sorted({name.decode() for name in names}))} at most once each.")
