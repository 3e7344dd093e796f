"""Raw servers on 127.0.0.1, and a clock that moves when told: what the tests of the client talk to."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path

from dragoman.model.http import HttpRequest
from dragoman.net import AddressRule, Client, ClientLimits, NetError, Resolver, TlsProfiles
from dragoman.ports.clock import Clock, SystemClock

Run = Callable[[Coroutine[object, object, None]], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSING = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
WAIT_S = 10.0


class Line:
    """One accepted connection, as the server sees it."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """The next whole request; b"" when the client has closed."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            for line in head.split(b"\r\n"):
                if line.startswith(b"content-length: "):
                    return head + await self.reader.readexactly(int(line[16:]))
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        return head

    def answer(self, data: bytes = OK) -> None:
        self.writer.write(data)

    async def closed(self) -> None:
        """Return when the client has closed its side."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


Script = Callable[[Line], Awaitable[None]]


class Server:
    """Runs one script per accepted connection."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.port = 0
        self.accepted = 0
        self.open = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.open += 1
        try:
            await self._script(Line(self.accepted, reader, writer))
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort()


@contextlib.asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Server]:
    """A server on a free port until the block ends."""
    server = Server(script)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await server.serve(reader, writer)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def always(answer: bytes = OK) -> Script:
    """Give the same answer to every request of a connection."""

    async def script(line: Line) -> None:
        while await line.request():
            line.answer(answer)

    return script


def once(answer: bytes, *, close: bool = True) -> Script:
    """Answer one request in one write, then close or wait for the client to."""

    async def script(line: Line) -> None:
        await line.request()
        line.answer(answer)
        if close:
            await line.writer.drain()
            line.writer.write_eof()
        await line.closed()

    return script


async def silent(line: Line) -> None:
    """Take everything, say nothing."""
    await line.closed()


def hearing(heard: asyncio.Event) -> Script:
    """Tell that a request has come, and never answer it."""

    async def script(line: Line) -> None:
        if await line.request():
            heard.set()
        await line.closed()

    return script


@contextlib.asynccontextmanager
async def client_of(
    *,
    clock: Clock | None = None,
    rule: AddressRule | None = None,
    limits: ClientLimits | None = None,
    tls: TlsProfiles | None = None,
    resolve: Resolver | None = None,
) -> AsyncGenerator[Client]:
    """A client that may dial loopback alone, closed at the end."""
    client = Client(
        clock=clock or SystemClock(),
        rule=rule or AddressRule.of(["loopback"]),
        limits=limits or ClientLimits(),
        tls=tls,
        resolve=resolve,
    )
    try:
        yield client
    finally:
        await client.close()


def get(url: str) -> HttpRequest:
    return HttpRequest(method="GET", url=url)


def post(url: str, body: bytes = b"{}") -> HttpRequest:
    return HttpRequest(method="POST", url=url, headers={b"content-type": b"application/json"}, body=body)


def soon(seconds: float = WAIT_S) -> float:
    """A deadline on the system's clock."""
    return SystemClock().monotonic() + seconds


async def failure(sending: Awaitable[object]) -> NetError:
    """The error that the sending must end with."""
    try:
        await sending
    except NetError as error:
        return error
    raise AssertionError("no NetError was raised")


async def until(condition: Callable[[], bool]) -> None:
    """Give the loop turns until the condition holds; the test's own time limit bounds it."""
    while not condition():  # noqa: ASYNC110 - what the client does inside itself, it announces to nobody
        await asyncio.sleep(0.001)


def sockets_open() -> int:
    """How many sockets this process holds."""
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            count += entry.readlink().name.startswith("socket:")
    return count


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Alarm:
    """A call that waits on a manual clock."""

    def __init__(self, when: float, function: Callable[[], object]) -> None:
        self.when = when
        self.function = function
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """Time that stands still until `advance`."""

    def __init__(self) -> None:
        self._now = 1000.0
        self.alarms: list[Alarm] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._now, UTC)

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def call_at(self, when: float, function: Callable[[], object]) -> Alarm:
        alarm = Alarm(when, function)
        self.alarms.append(alarm)
        return alarm

    def new_id(self, prefix: str) -> str:
        return prefix

    def jitter(self, seconds: float, share: float) -> float:
        return seconds

    def waiting(self) -> list[Alarm]:
        return [alarm for alarm in self.alarms if not alarm.cancelled]

    def advance(self, seconds: float) -> None:
        """Pass the time, calling what falls due at its own moment."""
        end = self._now + seconds
        while due := sorted((one for one in self.waiting() if one.when <= end), key=lambda one: one.when):
            self.alarms.remove(due[0])
            self._now = max(self._now, due[0].when)
            due[0].function()
        self._now = end
        self.alarms = self.waiting()
