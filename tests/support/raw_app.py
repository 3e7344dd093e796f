"""A tiny application in a process of its own, under our server or under uvicorn as shipped.

`python -m tests.support.raw_app ours LIMITS DRAIN_S TLS` listens on a free loopback port and says so like the hub;
`shortcut` instead of `ours` lets plain requests for the first, /fail and /hold past ASGI.

    POST /          answers the number of bytes it got and the names of the headers; over 1 MiB 413
    POST /deaf      answers 401 without reading the body
    GET  /big       answers 1 MiB
    GET  /stream    answers in three pieces, without a length
    any  /fail      raises after its head, before its body
    any  /hold      answers when /release is asked for
    GET  /release   answers at once, also while the server drains; everything else is then 503
    WebSocket       echoes
"""

import asyncio
import contextlib
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import uvicorn
import uvloop

from dragoman.model.errors import TooLarge
from dragoman.model.http import HttpReply
from dragoman.server.body import ClientGone, read_body
from dragoman.server.drain import Drain
from dragoman.server.limits import Limits
from dragoman.server.run import Tls, serve
from dragoman.server.shortcut import HotPaths

WENT_SHORT: Final = b"x-went-short"  # an answer that did not go through ASGI says so
ROOT: Final = Path(__file__).parents[2]
START_S: Final = 20.0
STOP_S: Final = 10.0
BODY_BYTES: Final = 1024 * 1024
WAYS: Final = ("ours", "shortcut")
SMALL: Final = Limits(header_s=1.0, body_s=1.0, idle_s=1.0, reader_s=1.0, linger_s=0.3, sweep_s=0.1)

Scope = Mapping[str, object]
Receive = Callable[[], Awaitable[Mapping[str, object]]]
Send = Callable[[Mapping[str, object]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class TinyApp:
    """The application of the raw clients."""

    def __init__(self, drain: Drain) -> None:
        self.drain = drain
        self.released = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "websocket":
            await _echo(receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/release":
            self.released.set()
            await _reply(send, 200, b"released")
        elif self.drain.draining:
            await _reply(send, 503, b"draining", [(b"retry-after", b"1"), (b"connection", b"close")])
        elif path == "/deaf":
            await _reply(send, 401, b"who are you")
        elif path == "/big":
            await _reply(send, 200, b"x" * BODY_BYTES)
        elif path == "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for piece in (b"one ", b"two ", b"three"):
                await send({"type": "http.response.body", "body": piece, "more_body": piece != b"three"})
        elif path == "/fail":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise RuntimeError("planned")
        elif path == "/hold":
            await self.released.wait()
            await _reply(send, 200, b"held")
        else:
            await _count(scope, receive, send)

    def hot_paths(self) -> HotPaths:
        paths = HotPaths()
        paths.open({b"/": self._short_count, b"/fail": _short_fail, b"/hold": self._short_hold}.get)
        return paths

    async def _short_count(self, headers: dict[bytes, bytes], body: bytes, _: str) -> HttpReply:
        if self.drain.draining:
            return _short(503, b"draining", {b"retry-after": b"1", b"connection": b"close"})
        names = [name.decode() for name in headers]
        return _short(200, msgspec.json.encode({"bytes": len(body), "headers": names}), {WENT_SHORT: b"yes"})

    async def _short_hold(self, _headers: dict[bytes, bytes], _body: bytes, _: str) -> HttpReply:
        await self.released.wait()
        return _short(200, b"held", {WENT_SHORT: b"yes"})


async def _short_fail(_headers: dict[bytes, bytes], _body: bytes, _: str) -> HttpReply:
    raise RuntimeError("planned")


def _short(status: int, body: bytes, headers: dict[bytes, bytes]) -> HttpReply:
    return HttpReply(status=status, headers={b"content-length": b"%d" % len(body), **headers}, body=body)


async def _count(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        body = await read_body(receive, BODY_BYTES)
    except TooLarge:
        await _reply(send, 413, b"too large", [(b"connection", b"close")])
    except ClientGone:
        return
    else:
        headers = scope["headers"]
        assert isinstance(headers, list)
        names = [name.decode() for name, _ in msgspec.convert(headers, Headers)]
        await _reply(send, 200, msgspec.json.encode({"bytes": len(body), "headers": names}))


async def _reply(send: Send, status: int, body: bytes, headers: Headers | None = None) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            sys.stderr.write("closed\n")
            return


async def _echo(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


class _Loud(uvicorn.Server):
    """Uvicorn as shipped, which says where it listens."""

    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        port: int = self.servers[0].sockets[0].getsockname()[1]
        sys.stderr.write(f"dragoman is listening on http://127.0.0.1:{port}\n")
        sys.stderr.flush()


@dataclass(frozen=True, kw_only=True)
class Running:
    """The process, and where it listens."""

    process: "subprocess.Popen[str]"
    url: str

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self, timeout_s: float = STOP_S) -> int:
        return self.process.wait(timeout_s)

    def rss_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


@contextlib.contextmanager
def running(
    server: str = "ours", limits: Limits = SMALL, drain_s: float = 30.0, tls: Tls | None = None
) -> Generator[Running]:
    """The tiny application in a process that ends with the block."""
    arguments = (
        server,
        msgspec.json.encode(limits).decode(),
        str(drain_s),
        msgspec.json.encode(tls, enc_hook=str).decode(),
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.raw_app", *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        yield Running(process=process, url=_listening(process))
    finally:
        process.kill()
        process.communicate()


def _listening(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    until = time.monotonic() + START_S
    with selectors.DefaultSelector() as ready:
        ready.register(process.stderr, selectors.EVENT_READ)
        while ready.select(max(0.0, until - time.monotonic())):
            line = process.stderr.readline()
            if not line:
                raise RuntimeError("The tiny application ended before it listened.")
            if line.startswith("dragoman is listening on "):
                return line.split()[-1]
    raise TimeoutError("The tiny application does not listen.")


def _path(_: type, value: str) -> Path:
    return Path(value)


def main() -> None:
    """Serve until a signal."""
    server, limits, drain_s, tls = sys.argv[1:]
    drain = Drain()
    app = TinyApp(drain)
    if server in WAYS:
        serve(
            app,
            host="127.0.0.1",
            port=0,
            limits=msgspec.json.decode(limits, type=Limits),
            drain=drain,
            drain_s=float(drain_s),
            tls=msgspec.json.decode(tls, type=Tls | None, dec_hook=_path),
            hot_paths=app.hot_paths() if server == "shortcut" else HotPaths(),
        )
        return
    config = uvicorn.Config(app, host="127.0.0.1", port=0, http="httptools", log_level="critical", access_log=False)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_Loud(config).serve())


if __name__ == "__main__":
    main()
