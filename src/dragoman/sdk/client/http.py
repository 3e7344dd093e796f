"""One hub over HTTP: requests with its token, answers as JSON, streams as events.

Does not retry and knows no path. Whatever address the user gives may be dialled. Need not be closed (`per_loop.py`).
"""

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Self, final

import msgspec

from dragoman.dialects.sse import SseEvent, SseParser, is_stream
from dragoman.model.errors import BadAgentReply, BadParams
from dragoman.model.http import Headers, HttpRequest
from dragoman.model.json import Json
from dragoman.model.secret import Secret
from dragoman.net import Client, NetError, Reach, Streamed
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.client.per_loop import PerLoop
from dragoman.sdk.client.reach import is_unanswered, unreachable
from dragoman.sdk.client.settings import DEFAULT_HUB, Tokens, hub_url, is_hub_url, tokens_for
from dragoman.sdk.errors import HubUnreachable, put_into_words
from dragoman.security.signing import webhook_headers

ANSWER_BYTES: Final = 64 * 1024 * 1024
NO_HEADERS: Final[Mapping[str, str]] = {}
_SAFE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer; `body` is None where it holds no JSON. Header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: Json


class HubHttp:
    """One hub: its URL, the tokens that may be meant for it, and connections to it."""

    def __init__(
        self,
        hub: str | None = None,
        token: str | Secret | None = None,
        *,
        signing_secret: str | Secret | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Read the environment where nothing is given; open nothing yet. Raises BadParams for what is no URL, or no
        signing secret."""
        url = hub_url(hub, os.environ)
        if not is_hub_url(url):
            raise put_into_words(BadParams(f'"{url}" is no URL of a hub'), f"Give one such as {DEFAULT_HUB}.")
        self.url = url.rstrip("/")
        self.clock = clock or SystemClock()
        given = token.reveal() if isinstance(token, Secret) else token
        tokens = Tokens([given], []) if given else tokens_for(url, os.environ)
        self._tokens = [Secret(one) for one in tokens.usable]
        self.refused_tokens = tokens.refused
        self._signs_with = None if signing_secret is None else _signing_secret(signing_secret)
        self._clients = PerLoop(self.clock, _as_it_is)

    def use_token(self, token: str) -> None:
        """Show this token from now on."""
        self._tokens = [Secret(token)]

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
        """Ask and return the whole answer, whatever its status. Raises HubUnreachable.

        `repeatable`: may be sent once more where a kept connection turns out to be dead; so for all but POST and PATCH.
        """
        client = await self._clients.get()
        deadline = self.clock.monotonic() + timeout_s
        again = method in _SAFE if repeatable is None else repeatable
        while True:
            request = self._request(method, path, body, headers)
            # What is signed counts once: it is not sent again as it is, but signed anew.
            as_it_is = again and self._signs_with is None
            try:
                answer = await client.send(request, deadline=deadline, max_body=ANSWER_BYTES, repeatable=as_it_is)
            except NetError as error:
                if again and not as_it_is:
                    again = False
                    continue
                raise self._unreachable(error) from error
            if answer.status != 401 or not self._has_other_token():
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
    ) -> "AbstractAsyncContextManager[Events]":
        """Ask for a stream, at most `timeout_s` long, with at most `idle_s` between its bytes.

        Entering and iterating raise HubUnreachable.
        """
        wanted = {"accept": "text/event-stream, application/json", **headers}
        return _Streaming(self, (method, path, body, wanted), timeout_s, idle_s)

    async def close(self) -> None:
        """Close the connections of the running loop; asking again opens new ones."""
        await self._clients.close()

    async def open_stream(
        self, asked: tuple[str, str, Json, Mapping[str, str]], timeout_s: float, idle_s: float
    ) -> tuple[AbstractAsyncContextManager[Streamed], Streamed]:
        """A stream that has begun; the caller leaves the context. Raises HubUnreachable."""
        client = await self._clients.get()
        deadline = self.clock.monotonic() + timeout_s
        while True:
            exchange = client.stream(self._request(*asked), deadline=deadline, idle_s=idle_s)
            try:
                streamed = await exchange.__aenter__()
            except NetError as error:
                raise self._unreachable(error) from error
            if streamed.status != 401 or not self._has_other_token():
                return exchange, streamed
            await exchange.__aexit__(None, None, None)

    def lost(self, error: NetError) -> HubUnreachable:
        """What a stream that broke off means."""
        return self._unreachable(error)

    def _request(self, method: str, path: str, body: Json, headers: Mapping[str, str]) -> HttpRequest:
        sent = {"accept": "application/json", **headers}
        if body is not None:
            sent["content-type"] = "application/json"
        if self._tokens:
            sent["authorization"] = f"Bearer {self._tokens[0].reveal()}"
        told = {name.encode("latin-1"): value.encode("latin-1", "replace") for name, value in sent.items()}
        raw = b"" if body is None else _encode(body)
        if self._signs_with is not None:
            now = int(self.clock.now().timestamp())
            told |= webhook_headers(self._signs_with, id=self.clock.new_id("msg_"), timestamp=now, body=raw)
        return HttpRequest(method=method, url=self.url + path, headers=told, body=raw)

    def _has_other_token(self) -> bool:
        """Whether there is a next one to try: of the hubs of this user, another one may listen here."""
        if len(self._tokens) < 2:
            return False
        self._tokens = self._tokens[1:]
        return True

    def _reply(self, status: int, headers: Headers, body: bytes) -> Reply:
        try:
            value = _decode(body) if body else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if 200 <= status < 300:
                raise self._unreachable(NetError(Reach.PROTOCOL, sent=True)) from None
            value = None
        return Reply(status=status, headers=_words(headers), body=value)

    def _unreachable(self, error: NetError) -> HubUnreachable:
        kind = error.kind.value
        may_have_run = is_unanswered(kind, sent=error.sent)
        words = unreachable(self.url, kind, sent=error.sent)
        return HubUnreachable(
            words[0].upper() + words[1:] if words.startswith("no ") else words,
            sent=error.sent,
            reason=kind,
            next="It may have been carried out: look before you repeat it." if may_have_run else None,
        )


@final
class Events:
    """A stream that has begun: its status, its headers, then its events; or a plain answer in its place."""

    def __init__(self, hub: HubHttp, streamed: Streamed) -> None:
        """Read nothing yet."""
        self._hub = hub
        self._streamed = streamed
        self._parser = SseParser(ANSWER_BYTES)
        self._ready: list[SseEvent] = []
        self.status = streamed.status
        self.headers = _words(streamed.headers)
        self.is_stream = 200 <= streamed.status < 300 and is_stream(streamed.headers)

    async def whole(self) -> Json:
        """The JSON of an answer that is no stream; None where it is no JSON."""
        read: list[bytes] = []
        size = 0
        try:
            async for piece in self._streamed.chunks:
                read.append(piece)
                size += len(piece)
                if size > ANSWER_BYTES:
                    raise NetError(Reach.TOO_LARGE, sent=True)
            return _decode(b"".join(read))
        except NetError as error:
            raise self._hub.lost(error) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def __aiter__(self) -> Self:
        """Iterate once, to the end."""
        return self

    async def __anext__(self) -> SseEvent:
        """The next event; raises HubUnreachable where the connection broke off."""
        while not self._ready:
            try:
                piece = await anext(self._streamed.chunks)
            except NetError as error:
                raise self._hub.lost(error) from error
            try:
                self._ready = self._parser.feed(piece)[::-1]
            except BadAgentReply as error:
                raise self._hub.lost(NetError(Reach.TOO_LARGE, sent=True)) from error
        return self._ready.pop()


@final
class _Streaming(AbstractAsyncContextManager[Events]):
    """One streamed exchange with the hub."""

    def __init__(
        self, hub: HubHttp, asked: tuple[str, str, Json, Mapping[str, str]], timeout_s: float, idle_s: float
    ) -> None:
        self._hub = hub
        self._asked = (asked, timeout_s, idle_s)
        self._exchange: AbstractAsyncContextManager[Streamed] | None = None

    async def __aenter__(self) -> Events:
        self._exchange, streamed = await self._hub.open_stream(*self._asked)
        return Events(self._hub, streamed)

    async def __aexit__(self, *_: object) -> None:
        if self._exchange is not None:
            await self._exchange.__aexit__(None, None, None)


def _signing_secret(given: str | Secret) -> Secret:
    secret = given if isinstance(given, Secret) else Secret(given)
    try:
        webhook_headers(secret, id="try", timestamp=0, body=b"")
    except ValueError:
        # Without the cause: its traceback could show the secret.
        problem = BadParams("This is no signing secret")
        raise put_into_words(problem, "Give the one that was shown with the key; it begins with whsec_.") from None
    return secret


def _words(headers: Headers) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}


def _as_it_is(client: Client) -> Client:
    return client
