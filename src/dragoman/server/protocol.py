"""Uvicorn's HTTP protocol, ours: it bounds what a client may take, and says no before the application hears of it.

    bytes ─▶ data_received ─▶ parser ─▶ on_message_begin ▶ on_headers_complete ▶ on_body ▶ on_message_complete
                 │ counts                     HEAD              │ refuses    BODY                  IDLE
                 ▼                                              ▼
              refusal, then deaf for linger_s, then gone      Answer ─▶ application, or its shortcut

A header that came before on the connection was judged then: `data_received` serves that request at once.

Malformed framing is the parser's to find (it runs without leniency); what it lets pass, `on_headers_complete` judges:
Host, transfer encoding, version, sizes. Deadlines are numbers that `watch.py` sweeps; nothing here has a timer.
Deliberately not here: which hosts are served, body sizes, authentication.
"""

import asyncio
import urllib.parse
from math import inf
from typing import TYPE_CHECKING, Any, Final

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dragoman.model.known_head import KnownHead
from dragoman.server.answer import Answer
from dragoman.server.refusals import (
    BAD_FRAMING,
    BAD_HOST,
    BAD_TRANSFER_ENCODING,
    BODY_TIMEOUT,
    HEADER_TIMEOUT,
    HEADER_TOO_LARGE,
    URL_TOO_LONG,
    Refusal,
    Refused,
)
from dragoman.server.shortcut import SHORT_BYTES, HotPaths, ShortAnswer, is_plain
from dragoman.server.streaming import EXTENSION, SILENT_S
from dragoman.server.upgraded import Upgraded, cut_off

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from uvicorn._types import ASGIVersions
    from uvicorn.config import Config
    from uvicorn.server import ServerState

    from dragoman.server.watch import Watch

IDLE: Final = 0  # between two requests
HEAD: Final = 1  # in a request's header
BODY: Final = 2  # behind the header, before the end of the body
SPEC: Final["ASGIVersions"] = {"version": "3.0", "spec_version": "2.3"}
LINE_BYTES: Final = 4  # colon, space, CR, LF
NO_HOT_PATHS: Final = HotPaths()


class _Dropped(list[tuple[bytes, bytes]]):
    """Where trailers go: behind the body nobody may add a header that was not judged."""

    def append(self, item: tuple[bytes, bytes], /) -> None:
        """Forget it."""


TRAILERS: Final = _Dropped()


class BoundedProtocol(HttpToolsProtocol):
    """One client's connection, within the limits of its watch."""

    # Its own fields beside those of the parent: more than 30 in one dictionary are no longer shared between instances,
    # and cost every idle stream a kilobyte.
    __slots__ = (
        "address",
        "application",
        "chunked",
        "deaf",
        "framing_bytes",
        "head_bytes",
        "head_counted",
        "hot_paths",
        "known",
        "latest",
        "limits",
        "read_deadline",
        "running",
        "seat",
        "stage",
        "stream_deadline",
        "upgrading",
        "watch",
        "write_deadline",
    )

    def __init__(
        self,
        app: "Callable[..., Awaitable[None]]",
        watch: "Watch",
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        hot_paths: HotPaths = NO_HOT_PATHS,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.application = app
        self.hot_paths = hot_paths
        self.watch = watch
        self.limits = watch.limits
        self.address = ""  # the client's
        self.seat: str | None = None
        self.read_deadline = inf
        self.write_deadline = inf
        self.stream_deadline = inf  # when a silent stream says that it is still there
        self.stage = IDLE
        self.deaf = False  # nothing more is read from this client
        self.head_bytes = 0  # of the header being read
        self.head_counted = False  # from its first byte on; not so behind another request in the same piece
        self.framing_bytes = 0  # of a chunked body, since its last content
        self.chunked = False
        self.upgrading = False
        self.running: Answer | None = None  # the request whose application runs
        self.latest: Answer | None = None  # the request whose header came last
        self.known = KnownHead()  # the header of the request that was parsed last

    # -- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the parent has it
        """Take the client in, or hang up when all seats are taken."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.seat = self.watch.admit(self.address)
        if self.seat is None:
            self.deaf = True
            transport.abort()
            return
        self.read_deadline = self.watch.now + self.limits.header_s
        self.watch.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the seat back and tell every request of this client."""
        self.watch.discard(self)
        if self.seat is not None:
            self.watch.release(self.seat)
            self.seat = None
        self._abandon()
        super().connection_lost(exc)
        self.running = self.latest = None  # Who left leaves nothing behind that holds itself in memory.

    def close(self) -> None:
        """Close once what was written has left, or after `reader_s` without a reader."""
        self.read_deadline = self.watch.now + self.limits.reader_s
        self.transport.close()

    def shutdown(self) -> None:
        """The server stops: close now if nothing runs, else with the answer."""
        if self.running is not None:
            self.running.keep_alive = False
        elif self.deaf:
            self.transport.abort()
        else:
            self.close()

    def pause_writing(self) -> None:
        """The reader falls behind."""
        self.write_deadline = self.watch.now + self.limits.reader_s
        super().pause_writing()

    def resume_writing(self) -> None:
        """The reader has caught up."""
        self.write_deadline = inf
        super().resume_writing()

    def spoke(self) -> None:
        """A piece of a stream was written."""
        self.stream_deadline = self.watch.now + SILENT_S

    def fell_silent(self) -> None:
        """The stream has ended."""
        self.stream_deadline = inf

    def stop_stream(self, *, carried: bool) -> None:
        """The server stops: a reader comes back later; one whose call runs here only if `carried`."""
        if self.running is not None and self.running.streaming is not None:
            self.running.streaming.stop(carried=carried)

    def overdue(self, now: float) -> None:
        """A deadline has passed: 408 where the client was in a request, otherwise hang up."""
        if self.stream_deadline <= now and self.running is not None:
            self.running.keep_alive_stream()
            self.spoke()
            if self.read_deadline > now and self.write_deadline > now:
                return
        if self.write_deadline <= now or self.transport.is_closing():
            cut_off(self.transport)
        elif self.deaf or self.stage == IDLE:
            self.transport.abort()
        elif self.flow.read_paused:
            self.read_deadline = now + self.limits.body_s  # it is we who do not read
        else:
            self._refuse(HEADER_TIMEOUT if self.stage == HEAD else BODY_TIMEOUT)

    # -- reading

    def data_received(self, data: bytes) -> None:
        """Count, then parse; what is incomplete then has its time and its bounds."""
        if self.deaf:
            return
        stage, latest = self.stage, self.latest
        if stage == IDLE:
            if self.running is None and self._came_again(data):
                return
            self.head_bytes, self.head_counted = len(data), True
        elif stage == HEAD:
            self.head_bytes += len(data)
        elif self.chunked:
            self.framing_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            reason = error.__context__
            self._refuse(reason.refusal if isinstance(reason, Refused) else BAD_FRAMING)
        except httptools.HttpParserUpgrade as upgrade:
            offset: int = upgrade.args[0]
            self._upgrade(data[offset:])
        else:
            if self.stage != IDLE:
                self._expect_more(begun=self.stage != stage or self.latest is not latest)
            elif stage == IDLE and latest is not None and type(self.latest) is ShortAnswer and self.latest.keep_alive:
                self.known.learn(data, dict(self.headers))  # It has come back: the next may be the same.

    def _came_again(self, data: bytes) -> bool:
        """Serve a request that differs from the one before in nothing that was judged; whether it was one."""
        again = self.known.again(data)
        serve = None if again is None else self.hot_paths[self.url]
        if again is None or serve is None or len(again[1]) > SHORT_BYTES:
            return False
        self.latest = answer = ShortAnswer(self, keep_alive=not self.watch.stopping)
        headers, answer.arrived = again
        answer.more_body = False
        self.read_deadline = inf
        self._start(answer, answer.run(serve, headers, self.address))
        return True

    def _expect_more(self, *, begun: bool) -> None:
        """A header or a body has come in part: its time runs from the piece in which it has `begun`."""
        limits = self.limits
        if self.stage == HEAD:
            if self.head_bytes > limits.header_bytes:
                self._refuse(HEADER_TOO_LARGE if self.headers or len(self.url) <= limits.url_bytes else URL_TOO_LONG)
            elif begun and self.latest is not None:  # the first request's time runs from the connection
                self.read_deadline = self.watch.now + limits.header_s
        elif self.framing_bytes > limits.header_bytes:
            self._refuse(BAD_FRAMING)
        elif begun:
            self.read_deadline = self.watch.now + limits.body_s

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self.stage = HEAD
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """One line of the header, or of what follows the body."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Judge the header; start what serves the request, or queue it behind the one that runs."""
        headers, parser = self.headers, self.parser
        self.known.forget()
        named = dict(headers)
        version, method = parser.get_http_version(), parser.get_method()
        self._judge(named, version, method)
        self.head_bytes, self.head_counted = 0, False  # of the next one, if that begins in the same piece
        keep_alive = version == "1.1" and parser.should_keep_alive() and not self.watch.stopping
        if method == b"POST" and version == "1.1" and self.running is None and len(named) == len(headers):
            serve = self.hot_paths[self.url] if is_plain(named) else None
            if serve is not None:
                self.stage = BODY
                self.latest = answer = ShortAnswer(self, keep_alive=keep_alive)
                self._start(answer, answer.run(serve, named, self.address))
                return
        self._take_long_way(named, version, method.decode("ascii"), keep_alive)

    def _take_long_way(self, named: dict[bytes, bytes], version: str, method: str, keep_alive: bool) -> None:
        """Through ASGI, by the application."""
        raw_path, query = self._target()
        self.stage = BODY
        path = raw_path.decode("ascii")
        self.scope = {
            "type": "http",
            "asgi": SPEC,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "method": method,
            "root_path": "",
            "path": urllib.parse.unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": self.headers,
            "state": self.app_state.copy(),
        }
        if self.chunked:
            self.headers = TRAILERS
        if self.parser.should_upgrade():
            self.upgrading = True
            return
        answer = Answer(
            self,
            self.scope,
            expect_100_continue=named.get(b"expect", b"").lower() == b"100-continue",
            keep_alive=keep_alive,
        )
        self.scope["extensions"] = {EXTENSION: {"send": answer.stream}}
        self.latest = answer
        if self.running is None:
            self._run(answer)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((answer, self.application))

    def on_body(self, body: bytes) -> None:
        """A piece of the body; too many at once and the client has to wait."""
        self.framing_bytes = 0
        answer = self.latest
        if answer is None or answer.response_complete:
            return
        # Joined at most a few times: reading stops at the mark until the application has taken what is there.
        answer.arrived = answer.arrived + body if answer.arrived else body
        if len(answer.arrived) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        answer.wake()

    def on_message_complete(self) -> None:
        """The request is complete."""
        answer = self.latest
        if self.upgrading or answer is None:
            return
        self.stage = IDLE
        self.framing_bytes = 0
        if answer.response_complete:
            self.read_deadline = self.watch.now + self.limits.idle_s
            return
        self.read_deadline = inf
        answer.more_body = False
        answer.wake()

    # -- answering

    def on_response_complete(self) -> None:
        """The answer is written: close, run the request that waits, or wait for the next."""
        done = self.running
        self.running = None
        if self.transport.is_closing():
            self.read_deadline = self.watch.now + self.limits.reader_s
        elif done is not None and not done.keep_alive:
            # Closing while the client still sends would reset the connection, and with it the answer.
            if self.stage == IDLE and not self.deaf:
                self.close()
            else:
                self._linger()
        else:
            if self.flow.read_paused:
                self.flow.resume_reading()
            if self.pipeline:
                answer, _ = self.pipeline.pop()
                if isinstance(answer, Answer):
                    self._run(answer)
            if self.stage == IDLE and self.running is None:
                self.read_deadline = self.watch.now + self.limits.idle_s

    def _run(self, answer: Answer) -> None:
        self._start(answer, answer.run_asgi(self.application))

    def _start(self, answer: Answer, work: "Coroutine[None, None, None]") -> None:
        self.running = answer
        task = answer.task = self.loop.create_task(work)
        self.tasks.add(task)  # the answer takes it out again: a callback would cost another turn of the loop

    # -- judging

    def _judge(self, named: dict[bytes, bytes], version: str, method: bytes) -> None:
        limits, headers = self.limits, self.headers
        if len(self.url) > limits.url_bytes:
            raise Refused(URL_TOO_LONG)
        surely_small = self.head_counted and self.head_bytes <= limits.header_bytes
        if len(headers) > limits.header_lines or (not surely_small and self._too_large()):
            raise Refused(HEADER_TOO_LARGE)
        if b"host" not in named or (len(named) < len(headers) and [name for name, _ in headers].count(b"host") > 1):
            raise Refused(BAD_HOST)
        self.chunked = b"transfer-encoding" in named
        if self.chunked:
            values = [value.lower() for name, value in headers if name == b"transfer-encoding"]
            if values != [b"chunked"] or version != "1.1":
                raise Refused(BAD_TRANSFER_ENCODING)
        if version not in ("1.1", "1.0") or method == b"CONNECT":
            raise Refused(BAD_FRAMING)

    def _too_large(self) -> bool:
        size = len(self.url) + sum(len(name) + len(value) + LINE_BYTES for name, value in self.headers)
        return size > self.limits.header_bytes

    def _target(self) -> tuple[bytes, bytes]:
        url = self.url
        if url.startswith(b"/") and b"#" not in url:
            path, _, query = url.partition(b"?")
            return path, query
        parsed = httptools.parse_url(url)
        return parsed.path or b"/", parsed.query or b""

    # -- refusing

    def _refuse(self, refusal: Refusal) -> None:
        self.watch.refused[refusal.code] += 1
        running = self.running
        if running is not None and (running is not self.latest or self.stage != BODY):
            # The fault lies behind a good request: that one is answered, and the connection ends with its answer.
            self.deaf = True
            self.read_deadline = inf
            self.pipeline.clear()
            running.keep_alive = False
            return
        broken = running is not None and running.response_started
        answered = self.stage == BODY and self.latest is not None and self.latest.response_complete
        self._abandon()
        if broken or self.transport.is_closing():
            self.transport.abort()
            return
        if not answered:  # an application may answer before it has the body; a second answer would be the next one's
            self.transport.write(refusal.wire)
        self._linger()

    def _linger(self) -> None:
        self.deaf = True
        self.read_deadline = self.watch.now + self.limits.linger_s
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()

    def _abandon(self) -> None:
        for answer in (self.running, self.latest):
            if answer is not None:
                answer.abandon()

    # -- upgrading

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to the WebSocket protocol; it keeps its seat to its end."""
        self.watch.discard(self)
        super().handle_websocket_upgrade()
        Upgraded(self.transport, self.watch, self.seat)

    def _upgrade(self, rest: bytes) -> None:
        self.upgrading = False
        self.stage = HEAD
        if self.running is not None:
            self._refuse(BAD_FRAMING)
        elif self._should_upgrade():
            self.handle_websocket_upgrade()
        else:
            self._decline_upgrade(rest)

    def _decline_upgrade(self, rest: bytes) -> None:
        # The parser has skipped the body (clients offer h2c with a POST too): read the request again without the offer.
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.stage = IDLE
        lines = [self.scope["method"].encode("ascii"), b" ", self.url, b" HTTP/1.1\r\n"]
        for name, value in self.scope["headers"]:
            if name == b"connection":
                kept = [token for token in value.split(b",") if token.strip().lower() != b"upgrade"]
                lines += (name, b": ", b",".join(kept), b"\r\n")
            elif name != b"upgrade":
                lines += (name, b": ", value, b"\r\n")
        self.data_received(b"".join((*lines, b"\r\n", rest)))
