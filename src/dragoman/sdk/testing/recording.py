"""Record what this process asks over HTTP, and answer it from the record later: tests without a hub, agents or a model.

    with testing.record("calls.jsonl"):      # once, against the real thing
        await call_agent("agt_editor", "summarize", {"content": "…"})
    with testing.replay("calls.jsonl"):      # ever after, without a network
        await call_agent("agt_editor", "summarize", {"content": "…"})

One line of JSON for each exchange. Keys, tokens, cookies and signatures never reach the file. An exchange is found by
its method and URL (the port may be another), of several the one with the same body, else the next in order.
"""

import base64
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock
from urllib.parse import urlsplit

import msgspec

from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json
from dragoman.net.client import Client, Streamed
from dragoman.security.redact import Redactor

_MARK: Final = re.compile(r"\[redacted:[0-9a-f]{4}\]")  # what stands for a secret differs from run to run
REDACTED: Final = "[redacted]"
_MOST_BYTES: Final = 256 * 1024 * 1024  # of one record

_encode = msgspec.json.Encoder().encode


class NotRecorded(LookupError):
    """The record has no answer, or no further one, to what is asked."""


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """A body: its JSON, its text, or its bytes."""

    json: Json = None
    text: str | None = None
    base64: str | None = None


class Asked(msgspec.Struct, frozen=True):
    """A request without its secrets."""

    method: str
    url: str
    headers: dict[str, str]
    body: Body


class Answered(msgspec.Struct, frozen=True):
    """An answer without its secrets; a stream is whole here, so that no secret hides between two pieces."""

    status: int
    headers: dict[str, str]
    body: Body


class Exchange(msgspec.Struct, frozen=True):
    """One line of a record."""

    request: Asked
    answer: Answered


@contextmanager
def record(path: str | Path) -> Generator[None]:
    """Within the block, write every request of this process and its answer to the file; what it held is replaced."""
    keeper = _Keeper(Path(path))
    send, stream = Client.send, Client.stream

    async def kept(client: Client, request: HttpRequest, **how: Any) -> HttpReply:
        reply = await send(client, request, **how)
        keeper.keep(request, reply.status, reply.headers, reply.body)
        return reply

    def kept_stream(client: Client, request: HttpRequest, **how: Any) -> AbstractAsyncContextManager[Streamed]:
        return _kept_stream(keeper, request, stream(client, request, **how))

    with mock.patch.object(Client, "send", kept), mock.patch.object(Client, "stream", kept_stream):
        yield


@contextmanager
def replay(path: str | Path) -> Generator[None]:
    """Within the block, answer every request of this process from the file; raises NotRecorded for any other."""
    answers = _Answers(Path(path))

    async def sent(_client: Client, request: HttpRequest, **_how: Any) -> HttpReply:
        answer = answers.to(request)
        return HttpReply(status=answer.status, headers=_header_bytes(answer.headers), body=_bytes(answer.body))

    def streamed(_client: Client, request: HttpRequest, **_how: Any) -> AbstractAsyncContextManager[Streamed]:
        return _replayed(answers, request)

    with mock.patch.object(Client, "send", sent), mock.patch.object(Client, "stream", streamed):
        yield


class _Keeper:
    """Writes exchanges as they end, so that a test that breaks leaves what it had."""

    def __init__(self, path: Path) -> None:
        self._redactor = Redactor(os.urandom(32))
        self._path = path
        self._written = 0
        path.write_bytes(b"")

    def keep(self, request: HttpRequest, status: int, headers: Headers, body: bytes) -> None:
        """Add one exchange."""
        line = _encode(
            Exchange(
                Asked(
                    request.method, self._text(request.url), self._headers(request.headers), self._body(request.body)
                ),
                Answered(status, self._headers(headers), self._body(body)),
            )
        )
        self._written += len(line)
        if self._written > _MOST_BYTES:
            raise ValueError(f"{self._path} would hold more than {_MOST_BYTES} bytes: record less.")
        with self._path.open("ab") as file:
            file.write(line + b"\n")

    def _text(self, text: str) -> str:
        return _MARK.sub(REDACTED, self._redactor.text(text))

    def _headers(self, headers: Headers) -> dict[str, str]:
        clean = self._redactor.headers(headers)
        return {name.decode("latin-1"): _MARK.sub(REDACTED, value.decode("latin-1")) for name, value in clean.items()}

    def _body(self, body: bytes) -> Body:
        return redacted_body(self._redactor, body)


class _Answers:
    """What is left of a record."""

    def __init__(self, path: Path) -> None:
        decode = msgspec.json.Decoder(Exchange).decode
        self._path = path
        self._redactor = Redactor(os.urandom(32))
        self._left = [decode(line) for line in path.read_bytes().splitlines() if line]

    def to(self, request: HttpRequest) -> Answered:
        """The answer to a request, which is then used up. Raises NotRecorded."""
        body = redacted_body(self._redactor, request.body)
        url = _MARK.sub(REDACTED, self._redactor.text(request.url))
        found = [each for each in self._left if _same_place(each.request, request.method, url)]
        if not found:
            raise NotRecorded(f"{self._path} has no further answer to {request.method} {request.url}; record it again.")
        chosen = next((each for each in found if each.request.body == body), found[0])
        self._left.remove(chosen)
        return chosen.answer


def redacted_body(redactor: Redactor, body: bytes) -> Body:
    """A body without its secrets."""
    try:
        value: Json = msgspec.json.decode(body)
        return Body(json=_unmarked(redactor.json(value)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return Body(text=_MARK.sub(REDACTED, redactor.text(body.decode())))
    except UnicodeDecodeError:
        return Body(base64=base64.b64encode(body).decode())


def _unmarked(value: Json) -> Json:
    return msgspec.json.decode(_MARK.sub(REDACTED, _encode(value).decode()))


def _same_place(asked: Asked, method: str, url: str) -> bool:
    recorded, wanted = urlsplit(asked.url), urlsplit(url)
    return (asked.method, recorded.path, recorded.query) == (method, wanted.path, wanted.query)


def _bytes(body: Body) -> bytes:
    if body.text is not None:
        return body.text.encode()
    return _encode(body.json) if body.base64 is None else base64.b64decode(body.base64)


def _header_bytes(headers: dict[str, str]) -> Headers:
    return {name.encode("latin-1"): value.encode("latin-1") for name, value in headers.items()}


@asynccontextmanager
async def _kept_stream(
    keeper: _Keeper, request: HttpRequest, opened: AbstractAsyncContextManager[Streamed]
) -> AsyncGenerator[Streamed]:
    pieces: list[bytes] = []

    async def noted(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in chunks:
            pieces.append(piece)
            yield piece

    async with opened as real:
        try:
            yield Streamed(status=real.status, headers=real.headers, chunks=noted(real.chunks))
        finally:
            keeper.keep(request, real.status, real.headers, b"".join(pieces))


@asynccontextmanager
async def _replayed(answers: _Answers, request: HttpRequest) -> AsyncGenerator[Streamed]:
    answer = answers.to(request)

    async def chunks() -> AsyncIterator[bytes]:
        yield _bytes(answer.body)

    yield Streamed(status=answer.status, headers=_header_bytes(answer.headers), chunks=chunks())
