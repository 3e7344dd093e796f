"""A model at a server that has `/chat/completions`: streamed where the server can, asked again where that may help."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, final

import msgspec

from dragoman.dialects.sse import SseParser, is_stream
from dragoman.dialects.times import retry_after_s
from dragoman.model.errors import BadAgentReply, BadParams
from dragoman.model.http import Headers, HttpRequest
from dragoman.model.json import Json
from dragoman.model.secret import Secret
from dragoman.net import NetError, Reach, Streamed, parse
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.client.per_loop import PerLoop
from dragoman.sdk.run.chat_wire import Pieces, body_of, reply_of, told_error
from dragoman.sdk.run.models import ModelFailed, ModelReply, ModelRequest

PATH: Final = "/chat/completions"
TIMEOUT_S: Final = 300.0  # where the caller has no deadline
ANSWER_BYTES: Final = 16 * 1024 * 1024
WAITS_S: Final = (0.5, 2.0)  # before the second and the third try
LONGEST_WAIT_S: Final = 20.0
SHOWN: Final = 300

_BUSY: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_UNREACHED: Final = frozenset({Reach.REFUSED, Reach.RESET, Reach.UNRESOLVED})
_ODD_REQUEST: Final = frozenset({400, 404, 405, 422, 501})

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@final
class ChatCompletions:
    """One model at one server."""

    def __init__(self, url: str, name: str, api_key: str | Secret | None = None, *, clock: Clock | None = None) -> None:
        """Open nothing yet. Raises BadParams for what is no URL."""
        try:
            parse(url)
        except NetError:
            raise BadParams(f"{url!r} is no URL of a model: give one such as http://127.0.0.1:11434/v1.") from None
        self.url = url.rstrip("/")
        self.name = name
        self.api_key = Secret(api_key) if isinstance(api_key, str) else api_key
        self._clock = clock or SystemClock()
        self._clients = PerLoop(self._clock, lambda client: client)
        self._streams = True

    def __repr__(self) -> str:
        return f"chat_completions({self.url!r}, {self.name!r})"

    async def __call__(self, request: ModelRequest) -> AsyncGenerator[str | ModelReply]:
        """Pieces of the text as they come, then the reply. Raises ModelFailed."""
        deadline = self._clock.monotonic() + TIMEOUT_S if request.deadline is None else request.deadline
        waits = list(WAITS_S)
        while True:
            begun = False
            try:
                async with aclosing(self._once(request, deadline)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except _NoStream:
                self._streams = False
            except ModelFailed as error:
                wait_s = self._wait_s(error, waits, deadline)
                if begun or wait_s is None:
                    raise
                await self._clock.sleep(wait_s)

    def _wait_s(self, error: ModelFailed, waits: list[float], deadline: float) -> float | None:
        """How long to wait before the next try; None where there is none."""
        if not error.retryable or not waits:
            return None
        asked: Json = error.details.get("retry_after")
        wait_s = float(asked) if isinstance(asked, int) else self._clock.jitter(waits[0], 0.2)
        del waits[0]
        in_time = wait_s <= LONGEST_WAIT_S and self._clock.monotonic() + wait_s < deadline
        return wait_s if in_time else None

    async def _once(self, request: ModelRequest, deadline: float) -> AsyncGenerator[str | ModelReply]:
        streams = self._streams
        sent = HttpRequest(
            method="POST",
            url=self.url if self.url.endswith(PATH) else self.url + PATH,
            headers=self._headers(),
            body=_encode(body_of(request, self.name, stream=streams)),
        )
        client = await self._clients.get()
        try:
            idle_s = max(0.001, deadline - self._clock.monotonic())
            async with client.stream(sent, deadline=deadline, idle_s=idle_s, repeatable=True) as answer:
                if answer.status != 200 or not is_stream(answer.headers):
                    reply = self._whole_reply(answer.status, answer.headers, await _whole(answer), streams)
                    if reply.text:
                        yield reply.text
                    yield reply
                    return
                pieces = Pieces()
                async for text in _texts(answer, pieces):
                    yield text
                if not pieces.ended:
                    raise self._failed("broke off in the middle of its answer", "model_broke_off", retryable=True)
                yield pieces.reply()
        except NetError as error:
            raise self._unreached(error) from None
        except BadAgentReply:
            raise self._failed("sent a piece that is too large", "model_unreadable") from None

    def _whole_reply(self, status: int, headers: Headers, body: bytes, streamed: bool) -> ModelReply:
        try:
            answer: Json = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = None
        if status == 200:
            if answer is None:
                raise self._failed("gave an answer that is not JSON", "model_unreadable")
            return reply_of(answer)
        said = self._shown(told_error(answer))
        if streamed and status in _ODD_REQUEST and "stream" in said.lower():
            raise _NoStream
        raise self._refused(status, headers, said)

    def _refused(self, status: int, headers: Headers, said: str) -> ModelFailed:
        if status in (401, 403):
            # Their words may quote a part of the key.
            how = "wants a key: api_key=…" if self.api_key is None else "refuses the key"
            return self._failed(f"{how} (HTTP {status})", "model_refused_key", model_status=status)
        words = f"answered HTTP {status}" + (f": {said}" if said else "")
        wait_s = retry_after_s(headers)
        waits = {} if wait_s is None else {"retry_after": wait_s}
        return self._failed(words, "model_failed", retryable=status in _BUSY, model_status=status, **waits)

    def _unreached(self, error: NetError) -> ModelFailed:
        if error.kind is Reach.TIMEOUT:
            return self._failed("did not answer in time", "model_timeout")
        return self._failed(f"cannot be reached ({error})", "model_unreachable", retryable=error.kind in _UNREACHED)

    def _failed(self, what: str, reason: str, **details: Json) -> ModelFailed:
        return ModelFailed(f"The model {self.name} {what}.", reason=reason, model=self.name, **details)

    def _shown(self, text: str) -> str:
        if self.api_key is not None:
            text = text.replace(self.api_key.reveal(), "***")
        return text[:SHOWN].rstrip(".")

    def _headers(self) -> dict[bytes, bytes]:
        headers = {b"content-type": b"application/json", b"accept": b"text/event-stream, application/json"}
        if self.api_key is not None:
            headers[b"authorization"] = f"Bearer {self.api_key.reveal()}".encode()
        return headers


class _NoStream(Exception):
    """The server refuses to stream."""


async def _texts(answer: Streamed, pieces: Pieces) -> AsyncGenerator[str]:
    parser = SseParser()
    size = 0
    async for chunk in answer.chunks:
        size += len(chunk)
        if size > ANSWER_BYTES:
            raise NetError(Reach.TOO_LARGE, sent=True)
        for event in parser.feed(chunk):
            if text := pieces.take(event.data):
                yield text


async def _whole(answer: Streamed) -> bytes:
    body = bytearray()
    async for chunk in answer.chunks:
        body += chunk
        if len(body) > ANSWER_BYTES:
            raise NetError(Reach.TOO_LARGE, sent=True)
    return bytes(body)
