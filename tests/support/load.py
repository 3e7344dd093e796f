"""The load generator: requests that come when they come, whatever became of the ones before.

Arrival times are drawn beforehand (Poisson), and a request's time counts from when it was due: a hub that stalls cannot
hide it. `peak` is the other way round: so many callers, each of whom asks again as soon as it is answered.

Runs in a process of its own (`python -m tests.support.load`): one line of JSON in, the plan; one line out, what came of
it. `loaded` does that for a test.
"""

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import deque
from typing import Any, Final

import httptools
import msgspec
import uvloop

from tests.support.hub import ROOT, HubProcess

SPARE_S: Final = 30.0
GIVEN_UP_S: Final = 10.0  # after the last request


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of request: how many a second, or how many callers at once."""

    name: str
    method: str
    path: str
    body: Any = None
    per_s: float = 0.0
    callers: int = 0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of which port, and for how long."""

    port: int
    token: str
    seconds: float
    kinds: list[Kind]
    good_s: float = 1.0  # what is answered later helps nobody any more
    warm_s: float = 0.0  # what was due before that is not counted
    seed: int = 0


class Tally(msgspec.Struct, kw_only=True):
    """What became of the requests of one kind."""

    asked: int = 0
    good: int = 0  # answered with success, in time
    late: int = 0  # answered with success, too late
    refused: int = 0  # 503 or 429 with Retry-After
    failed: int = 0  # anything else
    retry_after_s: list[int] = []
    took_ms: list[float] = []  # of those that were answered with success
    refused_ms: list[float] = []
    good_at: list[float] = []  # when those that count were due, in seconds
    refused_at: list[float] = []
    faults: list[str] = []

    def p(self, percent: float, *, refused: bool = False) -> float:
        """A percentile, in milliseconds."""
        taken = sorted(self.refused_ms if refused else self.took_ms)
        return taken[min(len(taken) - 1, int(len(taken) * percent / 100))] if taken else 0.0

    def windows(self, seconds: float, window_s: float) -> "list[Tally]":
        """The good and the refused ones of each window: a machine that stalls spoils one, a hub that does all."""
        found = [Tally() for _ in range(max(1, round(seconds / window_s)))]
        last = len(found) - 1
        for at in self.good_at:
            found[min(last, int(at / window_s))].good += 1
        for at, took_ms in zip(self.refused_at, self.refused_ms, strict=True):
            found[min(last, int(at / window_s))].refused_ms.append(took_ms)
        return found


class _Asking(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self) -> None:
        self._transport: Any = None  # uvloop's is no asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._answered: asyncio.Future[tuple[int, dict[str, str]]] | None = None
        self._headers: dict[str, str] = {}
        self.body = b""

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and self._answered is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ConnectionResetError("the connection broke off"))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        status, headers = self._parser.get_status_code(), self._headers
        self._headers, self._parser = {}, httptools.HttpResponseParser(self)
        if self._answered is not None and not self._answered.done():
            self._answered.set_result((status, headers))
        if headers.get("connection") == "close" and self._transport is not None:
            self._transport.close()

    async def ask(self, request: bytes) -> tuple[int, dict[str, str]]:
        assert self._transport is not None
        self.body = b""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._answered
        finally:
            self._answered = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class _Generator:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._idle: deque[_Asking] = deque()
        self._counted = 0.0
        self.tallies = {kind.name: Tally() for kind in plan.kinds}

    async def run(self) -> None:
        start = asyncio.get_running_loop().time() + 0.05
        self._counted = start + self._plan.warm_s
        async with asyncio.TaskGroup() as group:
            for kind in self._plan.kinds:
                for _ in range(kind.callers):
                    group.create_task(self._again_and_again(kind, start))
                if kind.per_s:
                    group.create_task(self._as_drawn(kind, start, group))

    async def _again_and_again(self, kind: Kind, start: float) -> None:
        loop, request = asyncio.get_running_loop(), self._request(kind)
        while (now := loop.time()) < start + self._plan.seconds:
            await self._ask(kind, request, now)

    async def _as_drawn(self, kind: Kind, start: float, group: asyncio.TaskGroup) -> None:
        chance, loop = random.Random(f"{self._plan.seed} {kind.name}"), asyncio.get_running_loop()
        request, due = self._request(kind), start
        while (due := due + chance.expovariate(kind.per_s)) < start + self._plan.seconds:
            await asyncio.sleep(max(0.0, due - loop.time()))
            group.create_task(self._ask(kind, request, due))

    async def _ask(self, kind: Kind, request: bytes, due: float) -> None:
        loop, tally = asyncio.get_running_loop(), self.tallies[kind.name] if due >= self._counted else Tally()
        tally.asked += 1
        try:
            async with asyncio.timeout(self._plan.seconds + GIVEN_UP_S):
                asking = await self._connection()
                try:
                    status, headers = await asking.ask(request)
                except BaseException:
                    asking.close()
                    raise
        except (OSError, TimeoutError) as error:
            tally.failed += 1
            tally.faults.append(repr(error)[:200])
            return
        self._idle.append(asking)
        took_s = loop.time() - due
        if status in (503, 429) and "retry-after" in headers:
            tally.refused += 1
            tally.refused_ms.append(took_s * 1000)
            tally.refused_at.append(due - self._counted)
            tally.retry_after_s.append(int(headers["retry-after"]))
        elif status < 300:
            tally.took_ms.append(took_s * 1000)
            if took_s <= self._plan.good_s:
                tally.good += 1
                tally.good_at.append(due - self._counted)
            else:
                tally.late += 1
        else:
            tally.failed += 1
            tally.faults.append(f"{status} {asking.body[:200]!r}")

    async def _connection(self) -> _Asking:
        while self._idle:
            asking = self._idle.popleft()
            if asking.usable:
                return asking
        _, made = await asyncio.get_running_loop().create_connection(_Asking, "127.0.0.1", self._plan.port)
        return made

    def _request(self, kind: Kind) -> bytes:
        body = b"" if kind.body is None else json.dumps(kind.body).encode()
        head = f"{kind.method} {kind.path} HTTP/1.1\r\nHost: 127.0.0.1:{self._plan.port}\r\n"
        head += f"Authorization: Bearer {self._plan.token}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def begin(hub: HubProcess, kinds: list[Kind], seconds: float, **more: Any) -> "subprocess.Popen[bytes]":
    """Begin such a load; what came of it is given by `finish`."""
    plan = Plan(port=hub.port, token=hub.token or "", seconds=seconds, kinds=kinds, **more)
    command = [sys.executable, "-m", "tests.support.load"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(plan) + b"\n")
    process.stdin.close()
    return process


def finish(process: "subprocess.Popen[bytes]", within_s: float) -> dict[str, Tally]:
    """What came of a load."""
    try:
        assert process.stdout is not None
        said = process.stdout.read()
        assert process.wait(within_s) == 0, "the load generator broke"
    finally:
        process.kill()
        process.wait(5)
        if process.stdout is not None:
            process.stdout.close()
    return msgspec.json.decode(said, type=dict[str, Tally])


def loaded(hub: HubProcess, kinds: list[Kind], seconds: float, **more: Any) -> dict[str, Tally]:
    """What came of so many seconds of such requests, by the name of their kind."""
    return finish(begin(hub, kinds, seconds, **more), seconds + GIVEN_UP_S + SPARE_S)


def main() -> None:
    """Carry out the plan that is given."""
    plan = msgspec.json.decode(sys.stdin.readline(), type=Plan)
    generator = _Generator(plan)
    began = time.monotonic()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(generator.run())
    assert time.monotonic() - began < plan.seconds + GIVEN_UP_S + SPARE_S
    sys.stdout.buffer.write(msgspec.json.encode(generator.tallies))


if __name__ == "__main__":
    main()
