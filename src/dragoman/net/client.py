"""The outgoing HTTP client: everything the hub sends to anybody goes through here.

Follows no redirect (save one that only adds or drops the final slash, if asked to), reads no proxy from the
environment, keeps no cookies, takes no compressed answers. Retries of failed calls belong to its callers; the one
repetition here is for a kept connection that turns out to be dead.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, final

import msgspec

from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.net.addresses import AddressRule, Target, parse
from dragoman.net.body import Body
from dragoman.net.dial import Dialler, Names, Resolver, system_resolver
from dragoman.net.errors import NetError, Reach
from dragoman.net.http1 import Connection
from dragoman.net.origin import ClientLimits, Origin, OriginFigures
from dragoman.net.pool import Pool
from dragoman.net.requests import after_verb, compose
from dragoman.net.tls import ClientIdentity, TlsProfiles
from dragoman.ports.clock import Clock

BODY_BYTES: Final = 10 * 1024 * 1024
IDLE_S: Final = 60.0
ROUTES: Final = 4096
ORIGINS: Final = 4096
_MOVED: Final = (307, 308)
_UNBOUNDED: Final = 1 << 62


class Streamed(msgspec.Struct, frozen=True, kw_only=True):
    """The head of an answer whose body is still coming."""

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]


@final
class Route:
    """What a URL comes down to: an origin, and what follows the verb in a request for a path there."""

    __slots__ = ("origin", "target", "words")

    def __init__(self, origin: Origin, target: Target) -> None:
        """Encode once."""
        self.origin = origin
        self.target = target
        self.words = after_verb(target)


class Client:
    """One pool of connections under one address rule; make one and share it."""

    __slots__ = ("_dialler", "_origins", "_pool", "_routes", "_slashes")

    def __init__(
        self,
        *,
        clock: Clock,
        rule: AddressRule,
        limits: ClientLimits = ClientLimits(),  # noqa: B008 - frozen
        tls: TlsProfiles | None = None,
        resolve: Resolver | None = None,
    ) -> None:
        """Open nothing yet."""
        names = Names(clock, resolve or system_resolver, limits.dial)
        self._dialler = Dialler(clock, rule, limits.dial, tls or TlsProfiles(), names)
        self._pool = Pool(clock, self._dialler, limits)
        self._origins: dict[tuple[str, str, int, str], Origin] = {}
        self._routes: dict[str, Route] = {}
        self._slashes: dict[str, str] = {}

    async def send(
        self,
        request: HttpRequest,
        *,
        deadline: float,
        max_body: int = BODY_BYTES,
        repeatable: bool = False,
        follow_slash: bool = False,
        identity: ClientIdentity | None = None,
    ) -> HttpReply:
        """Ask and return the whole reply, before `deadline` on the clock's monotonic time; raises NetError.

        `identity`: the client certificate to show, on connections of its own.
        """
        url = request.url
        if follow_slash and self._slashes:
            url = self._slashes.get(url, url)
        route = self._routes.get(url if identity is None else _own(identity, url)) or self._route(url, identity)
        origin, pool, only_head = route.origin, self._pool, request.method == "HEAD"
        data = compose(request, route.words)
        if pool.asleep or deadline <= pool.now:
            self._begin(deadline)
        fresh = False
        while True:
            # The common case, without a coroutine of its own.
            if not fresh and origin.idle and (connection := origin.idle.pop()).usable():
                origin.reused += 1
            else:
                connection = await pool.take(origin, deadline, fresh=fresh)
            future = connection.ask(data, deadline, max_body, only_head)
            try:
                reply = await future
                break
            except NetError as error:
                if fresh or not _died_idle(connection, error, repeatable):
                    raise
                fresh = True
            except BaseException:
                connection.forsake(future)
                raise
        if follow_slash and reply.status in _MOVED and (moved := _only_slash(route.target, reply)) is not None:
            again = msgspec.structs.replace(request, url=moved)
            reply = await self.send(
                again, deadline=deadline, max_body=max_body, repeatable=repeatable, identity=identity
            )
            self._remember_slash(request.url, moved)
        return reply

    def stream(
        self,
        request: HttpRequest,
        *,
        deadline: float,
        idle_s: float = IDLE_S,
        repeatable: bool = False,
        follow_slash: bool = False,
        identity: ClientIdentity | None = None,
    ) -> AbstractAsyncContextManager[Streamed]:
        """Ask and hand out the body as it comes, with at most `idle_s` between its bytes; entering raises NetError."""
        return _Streaming(self, request, deadline, idle_s, repeatable, follow_slash, identity)

    async def check(self, url: str) -> None:
        """Judge a URL before it is stored; raises NetError FORBIDDEN. A name that does not resolve passes."""
        try:
            await self._dialler.judged(parse(url))
        except NetError as error:
            if error.kind is Reach.FORBIDDEN:
                raise

    def figures(self) -> dict[str, OriginFigures]:
        """What happened so far, by origin."""
        return {
            f"{scheme}://{one.target.authority}{f' as {name}' if name else ''}": one.figures()
            for (scheme, _, _, name), one in self._origins.items()
        }

    async def close(self) -> None:
        """Abort what is open; every later call raises NetError CLOSED."""
        await self._pool.close()

    async def open_stream(
        self,
        request: HttpRequest,
        deadline: float,
        idle_s: float,
        repeatable: bool,
        follow_slash: bool,
        identity: ClientIdentity | None,
    ) -> tuple[HttpReply, Body]:
        """The head of an answer and its body to come; the caller must close the body."""
        url = self._slashes.get(request.url, request.url) if follow_slash else request.url
        known = url if identity is None else _own(identity, url)
        route = self._routes.get(known) or self._route(url, identity)
        reply, body = await self._open(request, route, deadline, idle_s, repeatable)
        if follow_slash and reply.status in _MOVED and (moved := _only_slash(route.target, reply)) is not None:
            await body.aclose()
            reply, body = await self._open(request, self._route(moved, identity), deadline, idle_s, repeatable)
            self._remember_slash(request.url, moved)
        return reply, body

    async def _open(
        self, request: HttpRequest, route: Route, deadline: float, idle_s: float, repeatable: bool
    ) -> tuple[HttpReply, Body]:
        data = compose(request, route.words)
        self._begin(deadline)
        fresh = False
        while True:
            connection = await self._pool.take(route.origin, deadline, fresh=fresh)
            body = Body(connection)
            connection.stream_to(body, idle_s)
            future = connection.ask(data, deadline, _UNBOUNDED, request.method == "HEAD")
            try:
                return await future, body
            except NetError as error:
                if fresh or not _died_idle(connection, error, repeatable):
                    raise
                fresh = True
            except BaseException:
                connection.abandon(body)
                raise

    def _begin(self, deadline: float) -> None:
        self._pool.wake()
        if deadline <= self._pool.now:
            raise NetError(Reach.TIMEOUT)

    def _route(self, url: str, identity: ClientIdentity | None = None) -> Route:
        target = parse(url)
        name = "" if identity is None else identity.id
        key = (target.scheme, target.host, target.port, name)
        origin = self._origins.get(key)
        if origin is None:
            if len(self._origins) >= ORIGINS:
                self._forget_origins()
            origin = self._origins[key] = Origin(self._pool, target, identity)
        if len(self._routes) >= ROUTES:
            del self._routes[next(iter(self._routes))]
        route = self._routes[url if identity is None else _own(identity, url)] = Route(origin, target)
        return route

    def _forget_origins(self) -> None:
        """Drop those without connections. Routes point at origins: a kept route would revive a second pool."""
        self._origins = {key: one for key, one in self._origins.items() if one.open or one.waiters}
        self._routes.clear()

    def _remember_slash(self, url: str, moved: str) -> None:
        self._slashes.pop(url, None)
        if moved != url:
            if len(self._slashes) >= ROUTES:
                del self._slashes[next(iter(self._slashes))]
            self._slashes[url] = moved


@final
class _Streaming(AbstractAsyncContextManager[Streamed]):
    """One streamed exchange, from the first byte asked to the last one read or given up."""

    __slots__ = ("_asked", "_body", "_client")

    def __init__(
        self,
        client: Client,
        request: HttpRequest,
        deadline: float,
        idle_s: float,
        repeatable: bool,
        follow_slash: bool,
        identity: ClientIdentity | None,
    ) -> None:
        self._client = client
        self._asked = (request, deadline, idle_s, repeatable, follow_slash, identity)
        self._body: Body | None = None

    async def __aenter__(self) -> Streamed:
        reply, body = await self._client.open_stream(*self._asked)
        self._body = body
        return Streamed(status=reply.status, headers=reply.headers, chunks=body)

    async def __aexit__(self, *_: object) -> None:
        if self._body is not None:
            await self._body.aclose()


def _own(identity: ClientIdentity, url: str) -> str:
    # No URL has a space in it: a route of one agent's certificate is never found for another.
    return f"{identity.id} {url}"


def _died_idle(connection: Connection, error: NetError, repeatable: bool) -> bool:
    """Whether a kept connection died before its first answer byte, with a request that may be sent again."""
    return repeatable and error.kind is Reach.RESET and connection.uses > 1 and not connection.answering


def _only_slash(asked: Target, reply: HttpReply) -> str | None:
    """The new URL, if the redirect stays at the origin and differs in the final slash alone."""
    place = reply.headers.get(b"location", b"").decode("latin-1")
    if place.startswith("/") and not place.startswith("//"):
        place = f"{asked.scheme}://{asked.authority}{place}"
    try:
        moved = parse(place)
    except NetError:
        return None
    if (moved.scheme, moved.host, moved.port) != (asked.scheme, asked.host, asked.port):
        return None
    before, _, query = asked.path.partition("?")
    after, _, moved_query = moved.path.partition("?")
    same = query == moved_query and (after == before + "/" or before == after + "/")
    return place if same else None
